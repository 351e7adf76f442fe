"""Never worse than a full SVD in the input's precision, for the axes returned."""

import functools
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import sklearn.decomposition

from mercer import PCA, config_context
from mercer.data import ArraySource
from mercer.methods import Covariance
from tests.catalogue import STRINGS, graded, pairwise, rows, separated
from tests.laws import truth

SHAPES = {"tall": (800, 20), "wide": (20, 800)}
# Axes above this share of the largest variance, and the relative error they may have.
DEPTH = {"float32": 1e-2, "float64": 1e-6}
ERROR = {"float32": 1e-5, "float64": 1e-12}


def fitted(X, way, k=None, **how):
    """Fit in blocks of some hundred rows, so that there are many to put together."""
    with warnings.catch_warnings(), config_context(block_rows=100):
        warnings.simplefilter("ignore")
        return PCA(k, svd_solver=way.solver, random_state=0, **how).fit(X)


def worst(found, expected, depth):
    """Largest relative error among the expected values above a share of the first."""
    deep = expected > depth * expected[0]
    return float((np.abs(found[: len(expected)] - expected) / expected)[deep[: len(found)]].max())


@functools.cache
def shifted(shape, dtype, mean):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(21)
    X = separated(rng, n, d, 0.8) if n > d else separated(rng, d, n, 0.8).T
    offset = mean * rng.choice([-1.0, 1.0, 0.3], X.shape[1])
    X = (X + offset).astype(dtype)  # the numbers as stored are what the truth is of
    return X, *truth.pca(X)


# At 4e6 float32 numbers are 0.25 apart: coarse data, but all the variance is there.
MEANS = [("float32", m) for m in (0, 1e2, 1e3, 1e4, 4e6)]
MEANS += [("float64", m) for m in (0, 1e6, 1e7, 1e8)]


@pairwise(way=STRINGS, at=MEANS, shape=SHAPES)
def test_large_mean(shape, at, way):
    dtype, mean = at
    X, values, _ = shifted(shape, dtype, mean)
    pca = fitted(X, way, 8)
    assert worst(pca.explained_variance_, values[:8], DEPTH[dtype]) <= ERROR[dtype]
    assert abs(pca.explained_variance_ratio_[0] * values.sum() / values[0] - 1) <= ERROR[dtype]


@pytest.mark.parametrize("way", rows(STRINGS))
@pytest.mark.parametrize(("dtype", "mean"), [("float32", 1e3), ("float64", 1e7)])
@pytest.mark.parametrize("shape", SHAPES)
def test_axes_and_scores_of_data_with_a_large_mean(shape, dtype, mean, way):
    X, values, V = shifted(shape, dtype, mean)
    eps = float(np.finfo(dtype).eps)
    pca = fitted(X, way, 4)
    signs = np.sign((pca.components_ * V[:, :4].T).sum(axis=1))
    axes = V[:, :4] * signs
    # Values 0.64 apart: an axis turns by the error of the matrix over that distance.
    assert np.abs(pca.components_.T - axes).max() <= 400 * eps
    expected = truth.centred(X) @ axes
    # The mean itself is kept to ε of its size.
    allowed = 400 * eps * np.sqrt(float(values[0]) * len(X)) + eps * mean * X.shape[1] ** 0.5
    assert np.abs(pca.transform(X) - expected).max() <= allowed


@pairwise(
    way=STRINGS,
    dtype=["float32", "float64"],
    shape=[(150, 30), (30, 150)],
    decades=[0.5, 2.8, 7],
)
def test_axes_are_orthonormal(shape, decades, dtype, way):
    """However small the variance along them: ‖VᵀV − I‖/(d ε) as of a full SVD."""
    X = graded(np.random.default_rng(29), *shape, decades).astype(dtype)
    V = fitted(X, way, 28).components_.astype(np.longdouble)
    eps = float(np.finfo(dtype).eps)
    assert np.abs(V @ V.T - np.eye(28)).max() <= 2 * max(shape) * eps


@pairwise(
    way=[way for way in STRINGS if way.name in ("auto", "full", "covariance_eigh", "dot")],
    dtype=["float32", "float64"],
    shape=[(300, 25), (25, 300)],
    decades=[3, 7, 14],
)
def test_graded_spectrum(shape, decades, dtype, way):
    """Each singular value to ε σ₁, as LAPACK has it, though the variances span 28 decades."""
    X = graded(np.random.default_rng(22), *shape, decades).astype(dtype)
    A = truth.centred(X)
    expected = truth.svd(A)[0]
    eps = float(np.finfo(dtype).eps)
    error = np.abs(fitted(X, way).singular_values_ - expected)
    lapack = np.abs(scipy.linalg.svdvals(A.astype(dtype)) - expected).max()
    assert error.max() <= 20 * max(shape) ** 0.5 * eps * expected[0]
    if decades > 3:  # where products of the data lose digits, they must not be used
        assert error.max() <= max(10 * lapack, 4 * eps * expected[0])


@pytest.mark.parametrize("way", rows(STRINGS, "krylov", "jacobi", "arpack"))
@pytest.mark.parametrize("shape", [(300, 25), (25, 300)], ids=["tall", "wide"])
def test_graded_spectrum_of_the_leading_axes(shape, way):
    """Iterative ways too: eight axes down to 1e-4 of the first singular value."""
    X = graded(np.random.default_rng(23), *shape, 14)
    expected = truth.svd(truth.centred(X))[0][:8]
    error = np.abs(fitted(X, way, 8).singular_values_ - expected)
    assert error.max() <= 20 * np.finfo(np.float64).eps * expected[0]


@pytest.mark.parametrize("way", rows(STRINGS, "krylov", "jacobi", "arpack"))
@pytest.mark.parametrize("shape", [(300, 25), (25, 300)], ids=["tall", "wide"])
def test_graded_spectrum_below_what_products_see(shape, way):
    """Twenty axes down to 1e-11 of the first: as good as an SVD's, or said not to be."""
    X = graded(np.random.default_rng(23), *shape, 14)
    expected = truth.svd(truth.centred(X))[0][:20]
    pca = fitted(X, way, 20)
    error = np.abs(pca.singular_values_ - expected).max()
    allowed = 20 * max(shape) ** 0.5 * truth.EPS * expected[0]
    assert error <= allowed or not pca.certificate_.converged


@pytest.mark.parametrize("way", rows(STRINGS))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_drift(dtype, way):
    """Rows in order of a walk whose ends are far apart: every block has a mean of its own."""
    rng = np.random.default_rng(24)
    drift = 1e6 if dtype == "float64" else 1e2
    X = rng.standard_normal((1000, 10)) * np.linspace(3, 1, 10)
    X[:, 0] += drift * np.linspace(-1, 1, 1000)
    X = X.astype(dtype)
    expected = truth.svd(truth.centred(X))[0]
    error = np.abs(fitted(X, way, 4).singular_values_ - expected[:4])
    assert error.max() <= 20 * np.finfo(dtype).eps * expected[0]


@pytest.mark.parametrize("way", rows(STRINGS))
def test_large_mean_is_not_worse_than_lapack(way):
    """Float64 at mean 1e8, in many blocks: a mean rounded per block must not cost first order."""
    X, values, _ = shifted("tall", "float64", 1e8)
    expected = np.sqrt(values * (len(X) - 1))
    lapack = np.abs(scipy.linalg.svdvals(X - X.mean(axis=0))[:4] - expected[:4]).max()
    error = np.abs(fitted(X, way, 4).singular_values_ - expected[:4]).max()
    assert error <= max(10 * lapack, 20 * truth.EPS * expected[0])


@pytest.mark.parametrize("way", rows(STRINGS))
def test_sparse_rows_with_a_mean(way):
    rng = np.random.default_rng(25)
    X = scipy.sparse.random_array((600, 40), density=0.1, rng=rng, format="csr")
    X = X @ scipy.sparse.diags_array(0.8 ** np.arange(40)).tocsr()
    values, _ = truth.pca(X.toarray())
    assert worst(fitted(X, way, 6).explained_variance_, values[:6], 1e-6) <= 1e-11


def test_whitened_scores_have_unit_variance():
    X, _, _ = shifted("tall", "float32", 1e3)
    scores = PCA(4, whiten=True).fit(X).transform(X).astype(np.float64)
    assert np.abs(np.cov(scores.T) - np.eye(4)).max() <= 1e-4


WILD = """
import sys, warnings
import numpy as np
from mercer import PCA
warnings.simplefilter("ignore")
X = np.random.default_rng(28).standard_normal((300, 6))
X[137] *= float(sys.argv[2])
X = X.astype(sys.argv[1])
for solver in sys.argv[3:]:
    try:
        found = PCA(1, svd_solver=solver, random_state=0).fit(X).singular_values_[0]
        right = np.linalg.norm(X[137].astype(np.longdouble)) * np.sqrt(299 / 300)
        print(solver, "right" if abs(found / right - 1) < 1e-5 else found)
    except ValueError as error:
        print(solver, "right" if "overflow" in str(error) else error)
    except Exception as error:
        print(solver, repr(error))
"""


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e22), ("float64", 1e200)])
def test_one_wild_row(dtype, size):
    """Squares of one row overflow: the right axis, or an error that says so; LAPACK may hang."""
    solvers = [way.solver for way in STRINGS]
    child = [sys.executable, "-c", WILD, dtype, str(size), *solvers]
    run = subprocess.run(child, capture_output=True, text=True, timeout=600)
    assert run.stdout.splitlines() == [f"{solver} right" for solver in solvers]


# The peers' known wrong answers.


@pytest.mark.parametrize(("dtype", "mean"), [("float32", 1e3), ("float32", 1e4), ("float64", 1e8)])
def test_default_of_scikit_learn_at_a_large_mean(dtype, mean):
    rng = np.random.default_rng(26)
    X = (rng.standard_normal((5000, 20)) * np.linspace(2, 1, 20) + mean).astype(dtype)
    A = truth.centred(X)
    values = np.linalg.eigvalsh((A.T @ A / (len(X) - 1)).astype(np.float64))[::-1]
    theirs = sklearn.decomposition.PCA(20).fit(X).explained_variance_
    ours = PCA(20).fit(X).explained_variance_
    streamed = PCA(20, svd_solver=Covariance()).fit(X).explained_variance_
    assert np.abs(theirs / values - 1).max() > 0.1
    assert np.abs(ours / values - 1).max() < ERROR[dtype]
    assert np.abs(streamed / values - 1).max() < ERROR[dtype]


def test_default_of_scikit_learn_on_gene_like_data():
    """105 × 705 with a slowly falling spectrum: later score columns of randomized PCA are off."""
    rng = np.random.default_rng(27)
    X = rng.standard_normal((105, 105)) * np.arange(1, 106) ** -0.25
    X = X @ scipy.linalg.qr(rng.standard_normal((705, 105)), mode="economic")[0].T
    k = 60
    U, s, _ = scipy.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    expected = (U * s)[:, :k]

    def error(estimator):
        scores = estimator.fit_transform(X)
        signs = np.sign((scores * expected).sum(axis=0))
        return np.linalg.norm(scores * signs - expected, axis=0).max() / s[k - 1]

    assert error(sklearn.decomposition.PCA(k, random_state=0)) > 0.1
    assert error(PCA(k)) < 1e-9
    assert error(PCA(k, svd_solver="krylov", random_state=0)) < 1e-9


def passes(monkeypatch):
    """Count the passes that Moments makes, by precision."""
    made, fold = [], ArraySource.fold

    def counted(self, state):
        if type(state).__name__ == "Moments" and self.shape[0] > 1000:
            made.append(state.products.name)
        return fold(self, state)

    monkeypatch.setattr(ArraySource, "fold", counted)
    return made


@pytest.mark.parametrize(
    ("decades", "misled", "expected"),
    [
        (0.5, False, ["float32"]),
        (4, False, ["float64"]),
        (4, True, ["float32", "float64"]),
    ],
    ids=["shallow", "deep", "deep where few rows look shallow"],
)
def test_a_glance_spares_a_pass_and_decides_nothing(decades, misled, expected, monkeypatch):
    rng = np.random.default_rng(31)
    X = graded(rng, 8000, 12, decades).astype(np.float32)
    if misled:  # every row that the glance sees is noise of the same size in all directions
        at = np.concatenate([i + np.arange(16) for i in np.linspace(0, 8000 - 16, 16).astype(int)])
        X[at] = 1e-4 * X.std() * rng.standard_normal((256, 12))
    values = truth.pca(X)[0][:10]
    made = passes(monkeypatch)
    found = PCA(10, svd_solver="covariance_eigh").fit(X).explained_variance_
    assert made == expected
    assert np.abs(found / values - 1).max() <= 1e-5

"""No crash: data without variance, rows that are equal, and LAPACK drivers that fail."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

import mercer
from mercer import PCA, KernelPCA, arrays, config_context
from mercer.kernels import RBF, Cosine, Linear, Polynomial
from mercer.linalg import DenseOperator
from mercer.linalg.solvers import arpack, dense
from mercer.methods import (
    Adaptive,
    Cholesky,
    Exact,
    Greedy,
    Improved,
    Nystrom,
    Reduced,
    Sketch,
    Sparse,
    Subset,
)
from tests.landmarks.catalogue import ROWS

ROOT = Path(mercer.__file__).parent
ROWS_OF = {
    "equal": np.full((9, 2), 0.3),
    "zero": np.zeros((9, 2)),
    "two equal": np.full((2, 3), -1.7),
    "two": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "two, repeated": np.repeat([[0.0, 1.0], [1.0, 0.3]], 5, axis=0),
}
KERNELS = (Linear(), RBF(0.5), Polynomial(2))
ALONE = [
    *(Exact(name) for name in ("dense", "krylov", "arpack", "power", "jacobi", "randomized")),
    *(Cholesky(2), Cholesky(2, on="rows"), Greedy(2), Adaptive(2), Sparse(), Sketch()),
]
ON_BASIS = (Subset, Reduced, Improved, Nystrom, lambda m, select: Nystrom(m, select, on="basis"))


def attempt(X, kernel, method, center):
    """Fit and transform; only an error that names the remedy is allowed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelPCA(1, kernel=kernel, method=method, center=center, random_state=0)
        try:
            scores = model.fit(X).transform(X)
        except ValueError as error:
            assert "n_basis" in str(error)  # noqa: PT017 (others are a crash)
            return
    assert scores.shape == (len(X), model.n_components_)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("method", ALONE, ids=repr)
@pytest.mark.parametrize("kind", ROWS_OF)
def test_few_distinct_rows(kind, method):
    for kernel in KERNELS:
        for center in (True, False):
            attempt(ROWS_OF[kind], kernel, method, center)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("kind", ROWS_OF)
def test_few_distinct_rows_on_a_basis(kind, row):
    """A rule may select no point at all: there is none that adds to the others."""
    turn = list(ROWS_OF).index(kind) + ROWS.index(row)
    for i, kernel in enumerate(KERNELS):
        for j, make in enumerate(ON_BASIS):
            if (i + j + turn) % 3:  # every pair of kernel, method, rule and rows
                continue
            attempt(ROWS_OF[kind], kernel, make(2, select=row.rule), True)


def test_arpack_on_a_matrix_of_rounding():
    """Its start vector is gone after a step: another solver takes over."""
    for seed in range(40):
        X = np.repeat(np.random.default_rng(seed).standard_normal((1, 3)) * 300, 2, axis=0)
        for kernel in KERNELS:
            attempt(X, kernel, Exact("arpack"), True)


def test_arpack_that_fails(monkeypatch):
    import scipy.sparse.linalg

    def fails(*args, **how):
        raise scipy.sparse.linalg.ArpackError(-9)

    A = np.diag(np.arange(30.0))
    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", fails)
    found = arpack(DenseOperator(A), 3, tol=0.0, rng=np.random.default_rng(0))
    assert np.allclose(found.values, [29, 28, 27])


# LAPACK.


def test_clusters_of_very_different_widths():
    """LAPACK's dsyevr ends in an internal error on some of these kernel matrices."""
    for seed in range(60):
        X = 10 * np.random.default_rng(seed).standard_normal((90, 2))
        X[:30] *= 1e-3
        model = KernelPCA(2, kernel="rbf", gamma=100.0).fit(X)
        assert model.certificate_.gap <= 1e-9


@pytest.fixture
def matrix():
    A = np.random.default_rng(0).standard_normal((40, 40))
    return A @ A.T


@pytest.mark.parametrize("broken", [("evr",), ("evr", "evd"), ("evr", "evd", "ev")], ids=str)
@pytest.mark.parametrize("k", [3, 40])
def test_another_driver_is_tried(monkeypatch, matrix, broken, k):
    own = scipy.linalg.eigh

    def eigh(A, driver="evr", **how):
        if driver in broken:
            raise np.linalg.LinAlgError("Internal Error.")
        return own(A, driver=driver, **how)

    def eigvalsh(A):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    expected = own(matrix)[0][::-1]
    monkeypatch.setattr(scipy.linalg, "eigh", eigh)
    monkeypatch.setattr(np.linalg, "eigvalsh", eigvalsh)
    values, V = arrays.eigh(matrix, k)
    assert np.allclose(values, expected[:k], rtol=1e-12)
    assert np.allclose(matrix @ V, V * values, atol=1e-9)
    assert np.allclose(arrays.eigvalsh(matrix), expected[::-1], rtol=1e-11)


@pytest.mark.parametrize("broken", ["eigh_tridiagonal", "eigvalsh_tridiagonal"])
def test_the_way_of_rules_has_other_drivers_too(monkeypatch, matrix, broken):
    def fails(*args, **how):
        raise np.linalg.LinAlgError("stemr exited with info=22")

    expected = np.linalg.eigvalsh(matrix)[::-1]
    monkeypatch.setattr(scipy.linalg, broken, fails)
    found = dense(DenseOperator(matrix), 5, tol=0.0, rng=None, choose=lambda values: 5)
    assert np.allclose(found.values, expected[:5])


def test_every_decomposition_goes_through_the_module_that_tries_other_drivers():
    calls = re.compile(r"(np|numpy|scipy)\.linalg\.(eigh|eigvalsh|eigvals|eig|svd|svdvals)\(")
    elsewhere = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if calls.search(path.read_text()) and path.name != "linear.py"
    }
    assert elsewhere == {"preimage/closed_form.py"}  # many at once; it has its own second way


def test_lifted_axes_that_depend_on_each_other(monkeypatch):
    def fails(A):
        raise np.linalg.LinAlgError("Matrix is not positive definite")

    X = np.random.default_rng(1).standard_normal((10, 50))
    expected = PCA(4, svd_solver="full").fit(X)
    monkeypatch.setattr(np.linalg, "cholesky", fails)
    found = PCA(4, svd_solver="dot").fit(X)
    assert np.allclose(found.explained_variance_, expected.explained_variance_)
    assert np.allclose(np.abs((found.components_ * expected.components_).sum(axis=1)), 1.0)


# A gap that rounding hides.


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gamma", [1e-3, 0.01, 1.0])
def test_a_gap_is_met_or_missed_but_no_basis_is_empty(dtype, gamma):
    X = np.random.default_rng(0).standard_normal((400, 1)).astype(dtype)
    for basis in (None, 2, 30):
        with warnings.catch_warnings(), config_context(block_rows=100):
            warnings.simplefilter("ignore")
            model = KernelPCA(
                2, kernel=RBF(gamma), method=Adaptive(basis), gap=0.01, random_state=0
            )
            assert 0.0 <= model.fit(X).certificate_.gap <= 1.0


def test_the_example_of_an_empty_basis():
    X = np.random.default_rng(0).standard_normal((2500, 1)).astype(np.float32)
    model = KernelPCA(5, kernel="rbf", gamma=0.01, gap=0.01, random_state=0).fit(X)
    assert model.certificate_.gap <= 0.01


@pytest.mark.parametrize("n", [20, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", ["rp_cholesky", "pivoted_cholesky"])
@pytest.mark.parametrize("centroid", ["span", "basis", "rows"])
@pytest.mark.filterwarnings("error", "ignore:.*above rounding error")
def test_rows_that_leave_a_rule_no_point_to_select(rule, centroid, dtype, n):
    X = np.zeros((n, 3), dtype)
    method = Subset(10, select=rule, centroid=centroid)
    model = KernelPCA(2, method=method, gap=0.01, random_state=0)
    assert model.fit(X).transform(X).shape == (n, 0)
    assert KernelPCA(2, method="cholesky", random_state=0).fit(X).n_components_ == 0


@pytest.mark.parametrize("n_components", [3, 0.9, None])
@pytest.mark.parametrize(
    "method",
    [Subset(7), Improved(7), Nystrom(7), Reduced(7), Cholesky(7, on="rows"), Greedy(7)],
    ids=repr,
)
def test_variance_of_rounding_has_no_component(method, n_components):
    """Positive numbers have the cosine 1, up to a unit in the last place."""
    X = np.random.default_rng(0).uniform(3.0, 7.0, (32, 1))
    model = KernelPCA(n_components, kernel=Cosine(), method=method, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert model.fit(X).transform(X).shape == (32, 0)


# Scale.


@pytest.mark.parametrize("exponent", [-80, -40, 0, 40, 66])
def test_whitened_float32_scores_have_no_unit(exponent):
    X = np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32)
    Z = X * np.float32(2.0**exponent)
    pca = PCA(2, whiten=True).fit(Z)
    assert np.allclose(pca.transform(Z), PCA(2, whiten=True).fit_transform(X), atol=1e-5)
    values = PCA(2).fit(X.astype(np.float64)).explained_variance_ * 4.0**exponent
    assert np.allclose(pca.explained_variance_, values, rtol=1e-5, atol=0.0)
    assert np.allclose(pca.inverse_transform(pca.transform(Z)) / 2.0**exponent,
                       PCA(2).fit(X).reconstruct(X), atol=1e-5)  # fmt: skip

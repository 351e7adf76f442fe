"""Exact kernel PCA: what a dense decomposition gives, however it is stored, weighed or fed."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from mercer import PCA, KernelPCA, as_source, config_context
from mercer.arrays import to_numpy
from mercer.kernels import RBF, Linear, Matern, Polynomial, Tanh
from mercer.linalg import upper_blocks
from mercer.methods import Exact, Subset
from tests.catalogue import rows
from tests.kernel_catalogue import KERNELS, ROWS
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((120, 5)), RNG.standard_normal((30, 5))
STORES = ["float64", "float32", "none"]
SOLVERS = ["auto", "dense", "arpack", "krylov", "power", "jacobi"]


def brute(kernel, X, Y, k, weights=None, center=True):
    """Return eigenvalues, and scores of Y, from the definition."""
    n = len(X)
    w = np.ones(n) if weights is None else np.asarray(weights, float)
    K, H = kernel(X), kernel(Y, X)
    share = w / w.sum()
    if center:
        H = H - K @ share - (H @ share)[:, None] + share @ K @ share
        K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    root = np.sqrt(w)
    values, V = scipy.linalg.eigh(root[:, None] * K * root)
    values, V = values[::-1][:k], V[:, ::-1][:, :k]
    return values, H @ (root[:, None] * V / np.sqrt(values))


@pytest.mark.parametrize("row", rows([row for row in KERNELS if row.kernel.psd]))
def test_every_kernel(row):
    rng = np.random.default_rng(1)
    X, Y = ROWS[row.rows](rng, 60), ROWS[row.rows](rng, 9)
    k = 2 if row.name != "separable" else 1
    values, scores = brute(row.kernel, X, Y, k)
    kpca = KernelPCA(k, kernel=row.kernel, random_state=0).fit(X)
    assert np.abs(kpca.eigenvalues_ - values).max() <= 1e-11 * values[0]
    assert same(kpca.transform(Y), scores) <= 1e-8
    assert same(kpca.fit_transform(X), kpca.transform(X)) <= 1e-9


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("strip", [1, 7, 64, 1000])
def test_any_store_and_any_strip(store, strip, monkeypatch):
    monkeypatch.setattr(upper_blocks, "upper_block_rows", lambda n, itemsize, **_: min(n, strip))
    values, scores = brute(RBF(0.1), X, Y, 4)
    kpca = KernelPCA(4, kernel=RBF(0.1), method=Exact(store=store), random_state=0).fit(X)
    error = 1e-12 if store != "float32" else 1e-10  # quadratic in what float32 leaves
    assert np.abs(kpca.eigenvalues_ - values).max() <= error * values[0]
    assert same(kpca.transform(Y), scores) <= (1e-10 if store != "float32" else 1e-5)
    assert kpca.certificate_.converged
    assert kpca.explained_variance_ratio_.sum() == pytest.approx(
        values.sum() / np.trace(RBF(0.1)(X) - RBF(0.1)(X).mean(axis=0)), rel=1e-10
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kernel", [RBF(0.1), Polynomial(2), Matern(2.0)])
def test_solvers_as_lapack_judges_them(solver, kernel):
    kpca = KernelPCA(5, kernel=kernel, eigen_solver=solver, random_state=0).fit(X)
    K = kernel(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    V, values = kpca.eigenvectors_, kpca.eigenvalues_
    eps = np.finfo(float).eps
    norm = np.linalg.norm(K, 2)  # centring rounds as the uncentred matrix does
    tolerance = 50 if solver not in ("power",) else 1e6
    assert np.linalg.norm(centred @ V - V * values) <= tolerance * norm * len(X) * eps
    assert np.linalg.norm(V.T @ V - np.eye(5)) <= 50 * len(X) * eps


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("center", [True, False])
def test_weights_are_counts(store, center):
    weights = np.random.default_rng(2).integers(0, 4, len(X))
    values, scores = brute(RBF(0.1), X, Y, 3, weights, center)
    settings = {"kernel": RBF(0.1), "method": Exact(store=store), "center": center}
    kpca = KernelPCA(3, **settings, random_state=0).fit(X, sample_weight=weights)
    twice = KernelPCA(3, **settings, random_state=0).fit(np.repeat(X, weights, axis=0))
    error = 1e-5 if store == "float32" else 1e-9
    assert np.abs(kpca.eigenvalues_ - values).max() <= 1e-10 * values[0]
    assert np.abs(kpca.eigenvalues_ - twice.eigenvalues_).max() <= 1e-10 * values[0]
    assert same(kpca.transform(Y), scores) <= error
    assert np.abs(kpca.transform(Y) - twice.transform(Y)).max() <= error  # signs too
    assert np.allclose(kpca.explained_variance_ratio_, twice.explained_variance_ratio_)
    assert np.allclose(kpca.reconstruction_error(Y), twice.reconstruction_error(Y), atol=error)
    positive = kpca.fit_transform(X, sample_weight=weights + 1)
    assert same(positive, kpca.transform(X)) <= error


@pytest.mark.parametrize("gamma", ["median", "scale", None])
def test_gamma_of_weighted_rows_is_that_of_repeated_ones(gamma):
    weights = np.random.default_rng(3).integers(0, 4, len(X))
    kpca = KernelPCA(2, kernel="rbf", gamma=gamma).fit(X, sample_weight=weights)
    twice = KernelPCA(2, kernel="rbf", gamma=gamma).fit(np.repeat(X, weights, axis=0))
    assert kpca.gamma_ == pytest.approx(twice.gamma_, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_the_linear_kernel_is_pca(offset):
    rows, others = X + offset, Y + offset
    pca, kpca = PCA(3).fit(rows), KernelPCA(3, preimage="gradient").fit(rows)
    rounding = 1e-10 + 1e-15 * offset
    assert np.abs(pca.explained_variance_ - kpca.explained_variance_).max() <= 1e-10
    assert np.abs(pca.explained_variance_ratio_ - kpca.explained_variance_ratio_).max() <= 1e-10
    assert same(kpca.transform(others), pca.transform(others)) <= rounding
    assert np.abs(pca.reconstruct(others) - kpca.reconstruct(others)).max() <= rounding * 10
    apart = pca.reconstruction_error(others) - kpca.reconstruction_error(others)
    assert np.abs(apart).max() <= rounding


def test_float32_iris_invents_no_components():
    from sklearn.datasets import load_iris

    rows = load_iris().data.astype(np.float32)
    kpca = KernelPCA().fit(rows)
    assert kpca.n_components_ == 4
    assert kpca.eigenvalues_.dtype == np.float32
    assert kpca.transform(rows).dtype == np.float32
    expected = PCA().fit(rows.astype(np.float64)).explained_variance_
    assert np.abs(kpca.explained_variance_ - expected).max() <= 1e-6 * expected[0]


@pytest.mark.parametrize("store", STORES)
def test_float32_rows(store):
    rows = X.astype(np.float32)
    values, scores = brute(RBF(0.1), rows.astype(np.float64), Y, 4)
    kpca = KernelPCA(4, kernel=RBF(0.1), method=Exact(store=store), random_state=0).fit(rows)
    assert np.abs(kpca.eigenvalues_ - values).max() <= 2e-7 * values[0]
    assert same(kpca.transform(Y.astype(np.float32)), scores) <= 2e-5


@pytest.mark.parametrize("method", [Exact(), Subset(40)])
def test_float32_rows_far_from_zero(method):
    # A mean of 1e4 is off by 5e-4 in float32, while the rows are what they are.
    rows, new = ((a + 1e4).astype(np.float32) for a in (X, Y))
    kpca = KernelPCA(4, kernel=RBF(0.1), method=method, random_state=0).fit(rows)
    scores = kpca.transform(new)
    assert scores.dtype == np.float32
    exact = to_numpy(kpca.projection_.scores(as_source(new.astype(np.float64))).load())
    assert np.abs(scores - exact).max() <= 2e-6 * np.abs(exact).max()
    apart = kpca.projection_.residuals(as_source(new), np.float32).load()
    assert np.abs(apart - kpca.projection_.residuals(as_source(new)).load()).max() <= 5e-6


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads(threads):
    from threadpoolctl import threadpool_limits

    expected = KernelPCA(3, kernel=RBF(0.1), random_state=0).fit_transform(X)
    with threadpool_limits(threads, user_api="blas"):
        found = KernelPCA(3, kernel=RBF(0.1), random_state=0).fit_transform(X)
    assert np.abs(found - expected).max() <= 1e-12


def test_the_same_bits_again():
    fits = [KernelPCA(3, kernel=RBF(0.1), random_state=7).fit(X) for _ in range(2)]
    assert np.array_equal(fits[0].eigenvectors_, fits[1].eigenvectors_)


@pytest.mark.parametrize(
    "form",
    [
        "csr",
        "csc",
        "fortran",
        "pandas",
        "npy",
        "torch",
        "array_api_strict",
        "source",
        "precomputed",
    ],
)
def test_sources(form, tmp_path):
    expected = KernelPCA(3, kernel=RBF(0.1), random_state=0).fit(X).transform(Y)
    fit, new, kernel = X, Y, RBF(0.1)
    if form in ("csr", "csc"):
        fit, new = (getattr(scipy.sparse, f"{form}_array")(A) for A in (X, Y))
    elif form == "fortran":
        fit = np.asfortranarray(X)
    elif form == "pandas":
        pandas = pytest.importorskip("pandas")
        fit, new = (pandas.DataFrame(A, columns=list("abcde")) for A in (X, Y))
    elif form == "npy":
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "y.npy", Y)
        fit, new = tmp_path / "x.npy", tmp_path / "y.npy"
    elif form in ("torch", "array_api_strict"):
        xp = pytest.importorskip(form)
        fit, new = xp.asarray(X), xp.asarray(Y)
    elif form == "source":
        from mercer import as_source

        fit, new = as_source(X), as_source(Y)
    else:
        fit, new, kernel = kernel(X), kernel(Y, X), "precomputed"
    kpca = KernelPCA(3, kernel=kernel, random_state=0).fit(fit)
    scores = kpca.transform(new)
    scores = scores.collect() if hasattr(scores, "collect") else np.asarray(scores)
    assert np.abs(scores - expected).max() <= 1e-11


def test_scores_go_to_a_file(tmp_path):
    kpca = KernelPCA(3, kernel=RBF(0.1)).fit(X)
    for model in (kpca, PCA(3).fit(X)):
        written = model.transform(Y, out=tmp_path / "scores.npy")
        assert np.array_equal(np.load(tmp_path / "scores.npy"), written.collect())
        assert np.abs(written.collect() - model.transform(Y)).max() <= 1e-14
    with pytest.raises(ValueError, match=r"\.npy"):
        kpca.transform(Y, out=tmp_path / "scores.html")
    bad = Y.copy()
    bad[11, 2] = np.nan
    (tmp_path / "scores.npy").unlink()
    with pytest.raises(ValueError, match="row 11, column 2"):
        kpca.transform(bad, out=tmp_path / "scores.npy")
    assert not list(tmp_path.iterdir())


def test_transform_is_bounded_by_the_budget():
    kpca = KernelPCA(3, kernel=RBF(0.1)).fit(X)
    with config_context(memory="64KiB"):
        few = kpca.transform(Y)
    assert np.abs(few - kpca.transform(Y)).max() <= 1e-14


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("n_components", [1, 6])
def test_the_certificate_holds(store, n_components):
    """Captured and bound against the truth, on a spectrum that falls slowly."""
    rows = np.random.default_rng(5).standard_normal((300, 20))
    kernel = RBF(0.02)
    K = kernel(rows)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    truth = np.linalg.eigvalsh(centred)[::-1]
    best = truth[:n_components].sum() / truth.sum()
    found = KernelPCA(n_components, kernel=kernel, method=Exact(store=store), random_state=0).fit(
        rows
    )
    certificate = found.certificate_
    assert float(certificate.captured) <= best * (1 + 1e-10)
    assert float(certificate.optimum_upper) >= best * (1 - 1e-10)
    assert certificate.gap <= 1e-4 or store == "none"
    residuals = np.linalg.norm(
        centred @ found.eigenvectors_ - found.eigenvectors_ * found.eigenvalues_, axis=0
    )
    assert (residuals / (len(rows) - 1) <= certificate.residuals * (1 + 1e-6) + 1e-15).all()


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_negative_eigenvalues_are_told_and_not_mixed_in(solver):
    X = np.random.default_rng(6).standard_normal((300, 5))
    kernel = Tanh(0.5, -1.0)
    K = kernel(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    truth = np.linalg.eigvalsh(centred)[::-1] / (len(X) - 1)
    kpca = KernelPCA(4, kernel=kernel, eigen_solver=solver, random_state=0).fit(X)
    assert np.abs(kpca.explained_variance_ - truth[:4]).max() <= 1e-12
    certificate = kpca.certificate_
    assert certificate.negative[0] == pytest.approx(truth[-1], rel=1e-6)
    assert "not positive semi-definite" in str(certificate)
    # Shares are of the trace, which is exact.
    assert kpca.explained_variance_ratio_.sum() == pytest.approx(truth[:4].sum() / truth.sum())
    assert float(certificate.captured) <= truth[:4].sum() / truth.sum() * (1 + 1e-9)
    assert float(certificate.optimum_upper) >= truth[:4].sum() / truth.sum() * (1 - 1e-9)
    nearest = np.abs(truth[:, None] - certificate.negative).min(axis=0)
    assert (nearest <= 1e-3 * np.abs(certificate.negative)).all()
    if solver == "dense":
        assert len(certificate.negative) == (truth < -1e-12).sum()


@pytest.mark.parametrize("steps", [0, 1, "auto"])
def test_randomized_on_a_flat_spectrum_warns_where_it_is_wrong(steps):
    rows = np.random.default_rng(0).standard_normal((600, 100))
    settings = {"kernel": "rbf", "gamma": 0.01}
    exact = KernelPCA(8, **settings).fit(rows).eigenvalues_
    kpca = KernelPCA(8, **settings, eigen_solver="randomized", iterated_power=steps, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kpca.fit(rows)
    error = np.abs(kpca.eigenvalues_ / exact - 1).max()
    assert error <= 0.03 or "before it converged" in str(caught[0].message)
    if steps == 0:
        assert error > 0.1
        assert len(caught) == 1


def test_a_sum_of_kernels_with_a_linear_part_keeps_its_digits_far_from_zero():
    kernel = Linear() + 2 * RBF(0.1)
    near = KernelPCA(3, kernel=kernel, random_state=0).fit(X)
    far = KernelPCA(3, kernel=kernel, random_state=0).fit(X + 1e7)
    assert np.abs(near.eigenvalues_ - far.eigenvalues_).max() <= 1e-6 * near.eigenvalues_[0]
    assert same(far.transform(Y + 1e7), near.transform(Y)) <= 1e-6

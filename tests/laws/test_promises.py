"""What certificates say, on data that once made them say what is not true."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from mercer import PCA, KernelPCA
from mercer.kernels import RBF, Linear, Polynomial, Tanh
from mercer.methods import (
    Adaptive,
    Cholesky,
    ConvergenceWarning,
    Dot,
    Exact,
    Greedy,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Subset,
)
from mercer.sketches import Gaussian

LD = np.longdouble


def centred(K):
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


@functools.cache
def hidden_cluster():
    """15 close rows near zero beside others at 1e4, in float32, and the share of one component."""
    rng = np.random.default_rng(0)
    x = 1e4 + 300 * rng.standard_normal(1500)
    at = rng.choice(1500, 15, replace=False)
    x[at] = rng.uniform(0, 0.02, 15)
    x[rng.choice(np.setdiff1d(np.arange(1500), at), 2, replace=False)] = [1e6, -1e6]
    X = x.astype(np.float32)[:, None]
    return X, share(gram(RBF(1e4), X), 1)


def gram(kernel, X):
    """The centred kernel matrix over n − 1, its formula in longdouble."""
    X = np.asarray(X, LD)
    if isinstance(kernel, RBF):
        K = np.exp(-LD(kernel.gamma) * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    elif isinstance(kernel, Polynomial):
        K = (LD(kernel.gamma) * (X @ X.T) + LD(kernel.coef0)) ** int(kernel.degree)
    else:
        K = X @ X.T
    return centred(K).astype(np.float64) / (len(X) - 1)


def share(A, k):
    values = np.linalg.eigvalsh(A)[::-1]
    return values[:k].sum() / np.trace(A)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kernel", ["linear", "cosine", Polynomial(2), RBF(1.0)], ids=str)
@pytest.mark.parametrize("n", [30, 120])
def test_krylov_on_a_matrix_of_low_rank(kernel, n):
    """A breakdown must not shrink what is left of the product: the bound would be too low."""
    for seed in range(6):
        X = np.random.default_rng(seed).normal(size=(n, 2))
        X = X[np.arange(n) % 5] if isinstance(kernel, RBF) else X
        model = KernelPCA(1, kernel=kernel, eigen_solver="krylov", gap=0.1, random_state=0).fit(X)
        rows = X / np.linalg.norm(X, axis=1)[:, None] if kernel == "cosine" else X
        assert model.certificate_.optimum_upper >= share(gram(kernel, rows), 1) * (1 - 1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["exact", Subset(700), Reduced(300), Adaptive(100)], ids=str)
def test_float32_rows_that_hide_a_cluster(method):
    """No sample of rows shows the close ones."""
    X, truth = hidden_cluster()
    model = KernelPCA(1, kernel=RBF(1e4), method=method, random_state=0).fit(X)
    assert model.certificate_.captured <= truth * (1 + 1e-6)
    assert model.certificate_.optimum_upper >= truth * (1 - 1e-6)
    assert np.abs(model.fit_transform(X) - model.transform(X)).max() < 1e-4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", ["exact", Subset(400), Subset(100), Nystrom(50)], ids=str)
def test_a_cluster_in_a_wide_column_far_from_zero(method):
    x = 1.7e9 + 3e4 * np.random.default_rng(0).standard_normal((400, 1))
    x[:60] = 1.7e9 + 3 * np.random.default_rng(1).random((60, 1))
    model = KernelPCA(3, kernel=RBF(1.0), method=method, random_state=0).fit(x)
    truth, found = share(gram(RBF(1.0), x), 3), model.certificate_
    assert found.captured <= truth * (1 + 1e-11)
    assert found.optimum_upper >= truth * (1 - 1e-11)


@pytest.mark.parametrize("method", [Adaptive(30), Subset(30), Greedy(6), "exact"], ids=str)
@pytest.mark.parametrize("kernel", [RBF(1e-9), "cosine"], ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_total_within_its_rounding_bounds_nothing(method, kernel):
    X = np.random.default_rng(0).standard_normal((60, 3))
    X = X if isinstance(kernel, RBF) else (1e8 + X).astype(np.float32)
    model = KernelPCA(1, kernel=kernel, method=method, gap=0.01, random_state=0).fit(X)
    found = model.certificate_
    assert 0.0 <= found.captured <= found.optimum_upper <= 1.0
    assert model.projection_.total_variance >= 0.0
    if isinstance(kernel, RBF) and model.n_components_:
        assert found.optimum_upper >= share(gram(kernel, X), 1) * (1 - 1e-6)


def noisy():
    return np.random.default_rng(0).standard_normal((400, 200))


@pytest.mark.parametrize(
    "model",
    [
        KernelPCA(
            10,
            method=RandomFeatures(20),
            kernel="rbf",
            gap=0.9,
            gamma=1e-3,
            certificate=False,
        ),
        KernelPCA(3, kernel="precomputed", method=Subset(100), gap=0.9),
    ],
    ids=["features", "matrix"],
)
def test_a_gap_that_only_an_estimate_meets_warns(model):
    X = noisy()
    X = X @ X.T if getattr(model, "kernel", None) == "precomputed" else X
    with pytest.warns(ConvergenceWarning, match=r"gap=0\.\d+ was requested.* is only an estimate"):
        model.set_params(random_state=0).fit(X)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "krylov", "arpack", "dot"])
@pytest.mark.parametrize("shape", [(300, 20), (30, 200)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_residuals_are_those_of_the_components_returned(solver, shape, dtype):
    rng = np.random.default_rng(1)
    X = (rng.standard_normal(shape) * 10.0 ** rng.uniform(-2, 2, shape[1]) + 30.0).astype(dtype)
    model = PCA(5, svd_solver=solver, random_state=0).fit(X)
    A = X.astype(LD) - X.astype(LD).mean(axis=0)
    V = model.components_.astype(LD).T
    CV = A.T @ (A @ V) / (len(X) - 1)
    true = np.sqrt(((CV - V * model.explained_variance_.astype(LD)) ** 2).sum(axis=0))
    assert np.all(model.certificate_.residuals >= true.astype(float))
    assert np.all(model.certificate_.residuals <= 1e-3 * model.explained_variance_[0])


@pytest.mark.parametrize(
    ("solver", "label"),
    [("dense", "proven"), ("krylov", "estimated"), ("randomized", "proven"), ("power", "proven")],
)
def test_residuals_of_a_recurrence_are_estimated(solver, label):
    """No product measures the residuals of Krylov; those of the other solvers are measured."""
    X = np.random.default_rng(0).standard_normal((60, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = KernelPCA(2, kernel="rbf", method=Exact(solver)).fit(X).certificate_
    assert certificate.residuals_label == label
    assert certificate.table.splitlines()[1].split()[0] == label


@pytest.mark.parametrize("method", [Nystrom(20), Cholesky(20, on="rows")], ids=str)
def test_no_residuals_of_other_pairs(method):
    """None are stated where none are measured."""
    X, kernel = np.random.default_rng(2).standard_normal((150, 4)), RBF(0.3)
    model = KernelPCA(4, kernel=kernel, method=method, random_state=0).fit(X)
    assert np.isnan(model.certificate_.residuals).all()


@pytest.mark.parametrize("solver", ["full", "dot", "krylov"])
def test_wide_sparse_rows_with_a_large_mean(solver):
    rng = np.random.default_rng(3)
    dense = 1e8 + rng.standard_normal((20, 60)) * 10.0 ** rng.uniform(-1, 1, 60)
    model = PCA(3, svd_solver=solver, random_state=0).fit(scipy.sparse.csr_array(dense))
    A = dense.astype(LD) - dense.astype(LD).mean(axis=0)
    V = model.components_.astype(LD).T
    true = A.T @ (A @ V) / (len(A) - 1) - V * model.explained_variance_.astype(LD)
    true = np.sqrt((true**2).sum(axis=0)).astype(float)
    assert np.all(model.certificate_.residuals >= true)
    if solver == "full":
        assert np.all(true < 1e-11 * model.explained_variance_[0])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", [Subset, Reduced, Greedy, Nystrom], ids=lambda m: m.__name__)
def test_shares_on_a_basis_are_of_the_total_itself(method):
    """A basis knows the total within a bracket: no share may be of the wrong end of it."""
    rng = np.random.default_rng(4)
    for kernel in (RBF(50.0), Polynomial(2)):
        X = rng.standard_normal((80, 2)) * 10.0 ** rng.uniform(-1, 1, (80, 1))
        X = np.c_[X, np.full(80, 30.0)] if isinstance(kernel, Polynomial) else X
        for k in (1, 3):
            model = KernelPCA(k, kernel=kernel, method=method(4), random_state=0).fit(X)
            A = gram(kernel, X)
            k = model.n_components_
            assert model.certificate_.optimum_upper >= share(A, k) * (1 - 1e-9)
            assert model.certificate_.captured <= share(A, k) * (1 + 1e-9)


@pytest.mark.parametrize("gap", [0.3, 0.1])
def test_components_that_have_not_converged_have_the_variance_of_their_scores(gap):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        models = (
            KernelPCA(6, kernel="rbf", gamma=0.05, gap=gap, random_state=0, method="exact"),
            KernelPCA(6, kernel="rbf", gamma=0.05, random_state=0, tol=0.5, method="exact"),
            PCA(6, svd_solver="krylov", gap=gap, random_state=0),
        )
        for model in models:
            rows = X.T if isinstance(model, PCA) else X
            scores = model.fit(rows).transform(rows)
            covariance = np.cov(scores.T)
            assert np.allclose(np.diag(covariance), model.explained_variance_, rtol=1e-8)
            assert np.allclose(model.fit_transform(rows), scores, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [Linear() + RBF(0.3), Polynomial(2).rbf(0.1), RBF(0.3), Polynomial(3), Linear()],
    ids=repr,
)
@pytest.mark.parametrize("solver", ["krylov", "dense"])
def test_rows_that_lie_elsewhere_have_the_same_components(kernel, solver):
    """However large a bound on rounding is, it drops no component and ends no iteration."""
    dask = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((90, 4))
    model = KernelPCA(3, kernel=kernel, method=Exact(solver), random_state=0)
    here = model.fit(X).explained_variance_
    there = clone(model).fit(dask.from_array(X, chunks=(30, 4)))
    assert np.allclose(there.explained_variance_, here, rtol=1e-9)
    assert there.certificate_.captured > 0.999 * there.explained_variance_ratio_.sum()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_float32_sums_of_equal_terms_drift():
    d, n, c = 6000, 2100, np.float32(0.39005804)
    X = np.full((n, d), c, np.float32)
    rng, width = np.random.default_rng(1), np.sqrt(float(c) ** 2 * d * 6e-5 / 10)
    X[:, -10:] = c + (width * rng.standard_normal((n, 10))).astype(np.float32)
    model = KernelPCA(1, kernel=Polynomial(1, 0.0, 1.0), method=Subset(30), center=False)
    found = model.set_params(random_state=0).fit(X).certificate_
    # The columns that are all c have the products of one.
    thin = np.c_[np.full(n, float(c) * np.sqrt(d - 10)), X[:, -10:].astype(np.float64)]
    values = np.linalg.svd(thin, compute_uv=False) ** 2
    assert found.captured <= values[0] / values.sum()
    assert found.optimum_upper >= values[0] / values.sum()


def test_what_rests_on_float32_rows_says_so():
    X = np.random.default_rng(1).standard_normal((2300, 3)).astype(np.float32)
    for gap in (None, 1e-2):
        model = KernelPCA(5, kernel=RBF(0.5), method=Subset(100), gap=gap, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = model.fit(X).certificate_
        assert found.captured.confidence == found.gap.confidence == 0.999


@pytest.mark.parametrize("solver", ["randomized", "arpack", "power", "krylov"])
def test_squares_of_variances_that_overflow_are_not_counted_as_nothing(solver):
    """Rows of 1e100 among others of 1: squared variances are infinite, and their difference NaN."""
    rng = np.random.default_rng(3)
    for size in 10.0 ** rng.uniform(75, 150, 20):
        n, d = int(rng.integers(60, 300)), int(rng.integers(3, 20))
        X = rng.standard_normal((n, d))
        X[rng.choice(np.arange(1, n - 1), 20, replace=False)] *= size
        k = int(rng.integers(1, d))
        model = PCA(k, svd_solver=solver, random_state=0).fit(X)
        Z = X / size
        Z -= Z.mean(axis=0)
        shares = np.linalg.svd(Z, compute_uv=False) ** 2 / np.sum(Z * Z)
        held = np.sum((Z @ model.components_.T) ** 2) / np.sum(Z * Z)
        assert model.certificate_.captured <= held + 1e-10
        assert model.certificate_.optimum_upper >= shares[:k].sum() - 1e-10


def test_a_sketch_of_extreme_rows():
    X = np.random.default_rng(4).standard_normal((40, 30))
    settings = {"n_components": 2, "kernel": "linear", "random_state": 0}
    for method in (Sketch(Gaussian(15, random_state=1), polish=False), Sketch(Gaussian(15))):
        plain = KernelPCA(method=method, **settings).fit(X).certificate_
        large = KernelPCA(method=method, **settings).fit(X * 2.0**500).certificate_
        assert large.optimum_upper >= plain.captured
        spectrum = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
        assert large.optimum_upper >= spectrum[:2].sum() / spectrum.sum() - 1e-12


@pytest.mark.parametrize("store", ["none", "float32", "float64"])
def test_float32_kernels_whose_variance_is_below_their_rounding(store):
    """The trace of float32 values is negative here: their products must not pass for float64's."""
    rng = np.random.default_rng(5)
    for size in rng.uniform(1e5, 3e5, 10):
        X = np.full((65, 20), size, np.float32)
        X[:, :3] = 0.3 * rng.standard_normal((65, 3))
        kernel = Polynomial(1, gamma=2.5e-11, coef0=1.0)
        K = gram(kernel, X)
        values = np.linalg.eigvalsh(K.astype(np.float64))[::-1]
        found = KernelPCA(2, kernel=kernel, method=Exact(store=store), random_state=0).fit(X)
        share = values[: found.n_components_].sum() / float(np.trace(K))
        assert found.certificate_.optimum_upper >= min(share, 1.0) - 1e-6
        assert np.all(found.explained_variance_ <= 2.0 * values[0])


@pytest.mark.parametrize("exponent", [-500, -330, 330, 500])
@pytest.mark.parametrize("solver", ["randomized", "krylov", "arpack", "power"])
@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning")
def test_squares_of_kernel_values_that_vanish_or_overflow_bound_nothing(solver, exponent):
    """Eigenvectors that have not converged, of kernel values whose squares are 0 or infinite."""
    X = np.random.default_rng(6).standard_normal((150, 27))
    spectrum = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    model = KernelPCA(2, kernel="linear", eigen_solver=solver, tol=0.03, random_state=0)
    found = model.fit(X * 2.0**exponent).certificate_
    assert found.optimum_upper >= spectrum[:2].sum() / spectrum.sum() - 1e-13


@pytest.mark.parametrize("solver", ["dense", "krylov", "jacobi"])
@pytest.mark.parametrize("scale", [False, True])
def test_residuals_of_wide_rows_whose_mean_is_like_their_deviation(solver, scale):
    """The mean is taken off the dots alone: eigenvectors must not bring it back when lifted."""
    rng = np.random.default_rng(8)
    for _ in range(20):
        X = rng.standard_normal((6, 53)) + 0.5
        X[3] *= 10.0 ** rng.uniform(1, 4)
        model = PCA(4, svd_solver=Dot(solver), scale=scale, random_state=0).fit(X)
        Z = X.astype(LD) - X.astype(LD).mean(axis=0)
        Z = Z / model.scale_.astype(LD) / LD(5) ** 0.5
        V, values = model.components_.T.astype(LD), model.certificate_.eigenvalues
        true = np.sqrt(np.sum((Z.T @ (Z @ V) - V * values) ** 2, axis=0))
        assert np.all(true <= model.certificate_.residuals + 8e-15 * values[0])
        assert np.all(true <= 2e-14 * values[0])


@pytest.mark.parametrize("solver", ["arpack", "krylov", "randomized"])
@pytest.mark.parametrize("gap", [None, 0.1])
def test_an_indefinite_kernel_whose_eigenvalues_add_up_to_less_than_nothing(solver, gap):
    """No trace tells that its matrix is zero, and no share that a gap is met."""
    rng = np.random.default_rng(9)
    for _ in range(5):
        X = 214.0 * np.sign(rng.standard_normal(6)) + rng.standard_normal((39, 6))
        kernel = Tanh(2e-5, coef0=1.0)
        K = centred(np.tanh(LD(2e-5) * (X.astype(LD) @ X.astype(LD).T) + LD(1)))
        values = np.linalg.eigvalsh(K.astype(np.float64) / 38)[::-1][:3]
        assert np.trace(K) < 0
        settings = {"kernel": kernel, "eigen_solver": solver, "gap": gap, "random_state": 0}
        found = KernelPCA(3, **settings).fit(X)
        rough = 1e-5 if gap is None else gap
        assert np.sum(found.explained_variance_) == pytest.approx(np.sum(values), rel=rough)
        assert (
            found.certificate_.gap >= 1 - np.sum(found.explained_variance_) / np.sum(values) - 1e-5
        )


@pytest.mark.parametrize("method", [Nystrom(6, weigh=False), Cholesky(6, on="rows")])
def test_sums_over_rows_of_very_different_weights(method):
    """Components nearly depend on each other there: exact arithmetic tells what they hold."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for seed in range(12):
            rng = np.random.default_rng(seed)
            X = np.sort(rng.standard_normal((7, 1)) * 10.0 ** rng.uniform(-3, 1, (7, 1)), axis=0)
            w = 10.0 ** rng.uniform(-6, 6, 7)
            settings = {"kernel": RBF(0.5), "center": False, "random_state": 0}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = KernelPCA(5, method=clone(method), **settings).fit(X, sample_weight=w)
            K = mpmath.matrix(7, 7)
            for i in range(7):
                for j in range(7):
                    apart = mpmath.mpf(float(X[i, 0])) - mpmath.mpf(float(X[j, 0]))
                    K[i, j] = mpmath.exp(-apart * apart / 2)
            A = mpmath.matrix(model.projection_.components.tolist())
            Y, W = K * A, mpmath.diag([mpmath.mpf(x) for x in w])
            inner = mpmath.inverse(A.T * Y) * (Y.T * W * Y)
            held = sum(inner[i, i] for i in range(inner.rows)) / mpmath.mpf(w.sum())
            assert model.certificate_.captured <= held + mpmath.mpf(1e-15)

"""A column's mean, however large, takes nothing from the others, nor from the certificate."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, config_context
from mercer.methods import Exact, Subset
from tests.catalogue import EXACT, pairwise
from tests.laws import truth

SHAPES = {"tall": (300, 5), "wide": (20, 120)}
# What one column holds beside features in [0, 1]; steps of 2 are ε at 1e16.
COLUMNS = {
    "constant 0.1": lambda rng, n: np.full(n, 0.1),
    "constant 1e16": lambda rng, n: np.full(n, 1e16),
    "constant -3e120": lambda rng, n: np.full(n, -3e120),
    "rounding at 1e16": lambda rng, n: 1e16 + 2.0 * rng.integers(0, 3, n),
    "varies at 1e16": lambda rng, n: 1e16 + 2.0 * rng.integers(0, 90, n),
    "varies at 1e9": lambda rng, n: 1e9 + rng.random(n),
}


def table(shape, column, seed=0):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    # Widths differ, so that all variances are apart.
    return np.c_[rng.random((n, d - 1)) * np.linspace(1.0, 0.3, d - 1), COLUMNS[column](rng, n)]


def spectrum(X, *, scale, weights=None):
    """Variances, where columns that vary by rounding alone count as constant if scaled."""
    A = truth.centred(X, weights)
    w = np.ones(len(A)) if weights is None else weights
    if scale:
        deviation = np.sqrt((w[:, None] * A * A).sum(axis=0) / (w.sum() - 1))
        rounding = deviation <= 8 * truth.EPS * np.abs(np.asarray(X, np.float64)).max(axis=0)
        A = A / np.where(rounding, np.inf, deviation)
    return np.asarray(truth.pca(A, weights=weights)[0], np.float64)


@functools.cache
def whole_spectrum(shape, column, scale):
    return spectrum(table(shape, column), scale=scale)


def check(pca, values, k=2, rtol=1e-9):
    """Variances, shares and the certificate are those of the truth."""
    share = values[:k].sum() / values.sum()
    assert_allclose(pca.explained_variance_, values[:k], rtol=rtol)
    assert_allclose(pca.explained_variance_ratio_, values[:k] / values.sum(), rtol=rtol)
    certificate = pca.certificate_
    assert certificate.captured <= share * (1 + 1e-14)
    assert certificate.optimum_upper >= share * (1 - 1e-14)
    assert certificate.gap <= 1e-6


def fitted(X, solver="auto", weights=None, **how):
    with warnings.catch_warnings(), config_context(block_rows=how.pop("block", None)):
        warnings.simplefilter("error")  # nothing says that X has no variance
        warnings.filterwarnings("ignore", category=UserWarning, message="(?s).*converge")
        return PCA(2, svd_solver=solver, random_state=0, **how).fit(X, sample_weight=weights)


@pairwise(shape=SHAPES, column=COLUMNS, scale=[False, True], way=EXACT)
def test_a_column_of_any_mean(shape, column, scale, way):
    X, values = table(shape, column), whole_spectrum(shape, column, scale)
    for made in (np.asarray, scipy.sparse.csr_array):
        for block in (None, 7):
            check(fitted(made(X), way.solver, scale=scale, block=block), values)


@pairwise(
    scale=[False, True],
    shape=SHAPES,
    solver=["auto", "full", "covariance_eigh", "dot", "krylov"],
)
def test_float32(solver, shape, scale):
    for last in (np.full(SHAPES[shape][0], 1e16), 1e7 + np.arange(SHAPES[shape][0]) % 5):
        X = table(shape, "constant 0.1").astype(np.float32)
        X[:, -1] = last
        for made in (np.asarray, scipy.sparse.csr_array):
            found = fitted(made(X), solver, scale=scale, block=50)
            share = spectrum(X, scale=scale)
            share = share[:2] / share.sum()
            assert_allclose(found.explained_variance_ratio_, share, rtol=2e-5)
            # Float32 products are certified to what they round by.
            assert found.certificate_.captured <= share.sum() <= found.certificate_.optimum_upper


@pairwise(scale=[False, True], column=COLUMNS, shape=SHAPES)
def test_weights_files_batches_and_dask(shape, column, scale, tmp_path):
    da = pytest.importorskip("dask.array")
    X = table(shape, column)
    weights = np.random.default_rng(1).integers(0, 4, len(X)) + 0.25
    weights[:2] = 0.0
    X[0] = 1e30  # and does not count
    values = spectrum(X[2:], scale=scale, weights=weights[2:])
    for solver in ("full", "covariance_eigh", "krylov"):
        check(fitted(X, solver, weights, scale=scale, block=9), values)
        check(fitted(scipy.sparse.csr_array(X), solver, weights, scale=scale), values)
    values = spectrum(X[2:], scale=scale)
    np.save(tmp_path / "x.npy", X[2:])
    check(fitted(tmp_path / "x.npy", scale=scale, block=9), values)
    check(fitted(da.from_array(X[2:], chunks=(7, X.shape[1])), scale=scale), values)
    batches = PCA(2, scale=scale)
    for start in range(2, len(X), 6):
        batches.partial_fit(X[start : start + 6])
    check(batches, values)


@pairwise(
    sparse=[False, True],
    method=[Exact("dense"), Exact("krylov"), Subset(20)],
    column=COLUMNS,
)
def test_the_linear_kernel(column, method, sparse):
    X, made = table("wide", column), scipy.sparse.csr_array if sparse else np.asarray
    pca = KernelPCA(2, kernel="linear", method=method, random_state=0).fit(made(X))
    values = whole_spectrum("wide", column, False)
    assert_allclose(pca.explained_variance_ratio_, values[:2] / values.sum(), rtol=1e-7)
    share = values[:2].sum() / values.sum()
    assert pca.certificate_.captured <= share * (1 + 1e-14)
    assert pca.certificate_.optimum_upper >= share * (1 - 1e-14)


@pytest.mark.parametrize("scale", [False, True])
def test_columns_that_vary_by_rounding_are_no_noise_when_scaled(scale):
    """Of z-scores they would be as loud as any other column."""
    rng = np.random.default_rng(2)
    X = rng.random((200, 3))
    X = np.c_[X, 0.1 * 3 + np.spacing(0.3) * rng.integers(0, 2, 200)]
    pca = fitted(X, scale=scale)
    assert_allclose(pca.components_[:, 3], 0.0, atol=1e-15)
    assert pca.scale_[3] == 1.0
    assert pca.projection_.total_variance == pytest.approx(3.0 if scale else X.var(0, ddof=1).sum())


def test_the_example_of_a_barcode():
    rng = np.random.default_rng(0)
    X = np.c_[rng.random((500, 4)), np.full(500, 1e16)]
    alone = PCA(2, scale=True).fit(X[:, :4])
    found = PCA(2, scale=True).fit(X)
    assert_allclose(found.explained_variance_ratio_, [0.274, 0.262], atol=5e-4)
    assert_allclose(found.explained_variance_, alone.explained_variance_)
    assert_array_equal(found.components_[:, 4], 0.0)
    assert_allclose(found.transform(X), alone.transform(X[:, :4]), atol=1e-12)


def test_equal_rows_have_no_variance_at_all():
    """However they are cut, and whatever their numbers: exactly none."""
    X = np.tile([0.1, 1e16, -1 / 3, 0.0], (40, 1))
    for block in (1, 7, None):
        with config_context(block_rows=block), pytest.warns(UserWarning, match="no variance"):
            assert PCA(2).fit(X).projection_.total_variance == 0.0
    for solver in ("full", "covariance_eigh", "dot", "krylov"):
        for made in (np.float32, scipy.sparse.csr_array):
            with pytest.warns(UserWarning, match="no variance"):
                assert_array_equal(PCA(2, svd_solver=solver).fit(made(X)).explained_variance_, 0.0)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("size", [1e160, 1e200, 1e300])
def test_a_constant_column_of_any_size_hides_nothing(size, scale):
    X = np.random.default_rng(0).random((500, 4))
    plain = PCA(2, scale=scale).fit(X)
    wide = PCA(2, scale=scale).fit(np.c_[X, np.full(500, size)])
    np.testing.assert_allclose(
        wide.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-10
    )


def test_a_column_whose_deviation_overflows_is_not_taken_for_a_constant():
    X = np.random.default_rng(0).random((500, 5))
    X[7, 4] = 1e160
    with pytest.raises(ValueError, match="Divide X by its largest entry"):
        PCA(2, scale=True).fit(X)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "dot", "krylov"])
@pytest.mark.parametrize(
    ("dtype", "tiny", "size"), [("f4", 1e-20, 1.0), ("f4", 1e-30, 1e10), ("f8", 1e-150, 1e90)]
)
def test_ordinary_rows_among_tiny_ones(dtype, tiny, size, solver):
    """The rows that are looked at first are tiny: the others must not overflow for it."""
    rng = np.random.default_rng(0)
    X = tiny * rng.standard_normal((1000, 3))
    X[5:30] = size * rng.standard_normal((25, 3))
    X = X.astype(dtype)
    Z = X.astype(np.float64) / size
    values = np.linalg.svd(Z - Z.mean(axis=0), compute_uv=False)[:2] ** 2
    model = PCA(2, svd_solver=solver, random_state=0).fit(X)
    shares = values / np.sum((Z - Z.mean(axis=0)) ** 2)
    np.testing.assert_allclose(model.explained_variance_ratio_, shares, rtol=1e-5)

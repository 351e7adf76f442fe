"""What reviews found: each is here once, so that it is not found again."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse

from mercer.kernels import (
    RBF,
    Constant,
    Cosine,
    ExponentialChiSquare,
    Fisher,
    FromFunction,
    Hellinger,
    Laplacian,
    Linear,
    Matern,
    Precomputed,
    Separable,
)
from tests.kernel_catalogue import Bell

# By mpmath, 40 digits: 2^{1-nu}/Gamma(nu) z^nu K_nu(z) at z = sqrt(2 nu) r, length 1.
MATERN = [
    (51, 1e-06, 0.99999999999949),
    (51, 0.5, 0.8804389364609361),
    (51, 8, 3.4890609188880395e-12),
    (100, 0.5, 0.88145491073088486),
    (100, 3, 0.011724215420302649),
    (100, 20, 1.0116570703994379e-57),
    (500, 1, 0.6060757316287829),
    (500, 8, 3.0799735896522223e-14),
    (1000, 8, 2.008585953981486e-14),
    (2000, 0.001, 0.99999949975000013),
    (2000, 20, 9.0677321422730951e-84),
    (10000.0, 0.5, 0.882486560045749),
    (10000.0, 30, 5.0483701200448885e-192),
]


@pytest.mark.parametrize(("nu", "r", "value"), MATERN)
def test_matern_of_large_order(nu, r, value):
    assert Matern(1.0, nu)([[0.0]], [[r]])[0, 0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("nu", [50.5, 51.0, 51.5, 800.0])
def test_slopes_of_matern_of_large_order(nu):
    X, Y, h = np.array([[0.7]]), np.array([[0.0], [2.0]]), 1e-5
    kernel, a = Matern(1.0, nu), np.array([1.0, -0.5])
    slope = (kernel(X + h, Y) - kernel(X - h, Y)) @ a / (2 * h)
    assert kernel.gradient(X, Y, a)[0] == pytest.approx(slope, rel=1e-8)


def test_matern_is_between_zero_and_one():
    r = np.concatenate([[0.0], np.geomspace(1e-200, 1e200, 200)])[:, None]
    for nu in (0.3, 7.1, 50.0, 51.0, 1e4, 1e8):
        K = Matern(1.0, nu)([[0.0]], r)[0]
        assert K[0] == 1
        assert ((K >= 0) & (K <= 1)).all()
        assert (np.diff(K) <= 1e-13).all()


def test_lengths_that_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (RBF(), Laplacian(), Matern(), Matern(1.0, 1.8)):
            diagonal = kernel.diag([[1e200], [np.nan], [1.0]])
            assert np.array_equal(diagonal, [1.0, np.nan, 1.0], equal_nan=True)
    with np.errstate(all="ignore"):
        assert np.array_equal(RBF()([[1e200], [-1e200]]), np.eye(2))


def exact(X, gamma):
    X = X.astype(np.longdouble)
    return np.exp(-gamma * np.array([((x - X) ** 2).sum(axis=1) for x in X]))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("form", ["C", "F", "sparse"])
def test_rows_with_outliers_and_clusters(dtype, error, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    outlier, lost, clusters = X + 1000, X + 1000, X + 100 * rng.choice([-1, 1], (200, 1))
    outlier[0] = -1e6
    lost[0], lost[7] = np.nan, np.inf
    for rows in (outlier, lost, clusters):
        rows = np.asarray(rows, dtype, order="F" if form == "F" else "C")
        with np.errstate(invalid="ignore"):
            K = RBF(0.01)(scipy.sparse.csr_array(rows) if form == "sparse" else rows)
            truth = exact(rows, 0.01)
        assert np.array_equal(np.isnan(K), np.isnan(truth))
        assert np.nanmax(np.abs(K - truth)) <= error


def test_plain_rows_do_not_import_numba():
    code = (
        "import sys, numpy as np; from mercer.kernels import RBF;"
        "RBF()(np.random.default_rng(0).standard_normal((1500, 20)));"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Cosine()])
def test_products_of_sparse_rows(kernel):
    rng = np.random.default_rng(0)
    X, Y = (scipy.sparse.random_array((n, 300), density=0.05, rng=rng) for n in (90, 70))
    Y = Y.tocsr().astype(np.float32)
    Y.indices = Y.indices.astype(np.int64)
    Y.indptr = Y.indptr.astype(np.int64)
    for x, y in ((X, Y), (X, X), (Y, X), (X.tocsr()[:0], Y), (X.tocsr()[:, :0], Y[:, :0])):
        expected = kernel(x.toarray(), y.toarray())
        assert kernel(x, y) == pytest.approx(expected, abs=1e-13)
    near = X.tocsr()[[3, 3]]
    near.data[-1] += 1e-9
    assert kernel.distances(near)[0, 1] <= 1e-8
    assert RBF(1.0).distances(near)[0, 1] == pytest.approx(np.sqrt(2) * 1e-9, rel=1e-6)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
def test_constants_of_other_libraries(library):
    xp = pytest.importorskip(library)
    X = xp.ones((3, 2), dtype=xp.float32)
    for kernel, value in (
        (Constant(2.0), 2.0),
        (2 * Constant(), 2.0),
        (Constant(2.0) ** 3, 8.0),
        (Constant().rbf(0.1), 1.0),
        ((Constant() + 0.5).on_columns([0]), 1.5),
        (Constant(3.0).normalized(), 1.0),
    ):
        diagonal, K = kernel.diag(X), kernel(X)
        assert type(diagonal) is type(K) is type(X)
        assert np.asarray(diagonal) == pytest.approx(np.full(3, value))
        assert np.asarray(K) == pytest.approx(np.full((3, 3), value))
        assert np.array_equal(np.asarray(kernel.distances(X)), np.zeros((3, 3)))


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_given_kernels_of_other_libraries(library):
    xp = pytest.importorskip(library)
    host = np.array([[2.0], [0.0], [1.0]])
    K = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])
    for kernel in (
        Precomputed(K),
        FromFunction(lambda X, Y: X @ Y.T),
        FromFunction(lambda x, y: float(x[0]) * float(y[0]), pairwise=True),
    ):
        for call in (kernel, kernel.diag, kernel.distances):
            assert np.asarray(call(xp.asarray(host))) == pytest.approx(call(host))


def test_columns_of_rows_on_another_device():
    xp = pytest.importorskip("array_api_strict")
    X = xp.asarray(np.eye(3), device=xp.Device("device1"))
    assert RBF().on_columns([0, 2])(X).device == X.device
    assert RBF().on_columns([0, 2]).diag(X).device == X.device


@pytest.mark.parametrize(
    ("kernel", "slope"),
    [
        (Cosine(), 1.6),
        (Hellinger(), 0.5 / np.sqrt(0.3)),
        (Separable(lambda rows: 2 * rows[:, 0]), 2.0),
        (Fisher(Bell()), 1.0),
        (Linear().rbf(0.5), 1.0),
        (Cosine().rbf(2.0), 3.2),
        (ExponentialChiSquare(3.0), np.sqrt(2 * 3.0 / 0.6)),
    ],
)
def test_distances_of_near_rows(kernel, slope):
    X = np.array([[0.3, 0.4], [0.3 + 1e-9, 0.4]])
    step = X[1, 0] - X[0, 0]
    assert kernel.distances(X)[0, 1] == pytest.approx(slope * step, rel=1e-6)


def test_asymmetry_anywhere_in_a_tile():
    X = np.arange(200.0)[:, None]

    def late(X, Y):
        K = X @ Y.T
        K[(X[:, :1] > 100) & (Y[:, 0] < 90)] += 1e5
        return K

    def hidden(X, Y):
        K = late(X, Y)
        K[(X[:, :1] == 0) | (Y[:, 0] == 0)] = np.nan
        return K

    for f in (late, hidden):
        with pytest.raises(ValueError, match="not symmetric"):
            FromFunction(f)(X)

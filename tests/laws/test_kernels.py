"""Kernels: each is its formula, symmetric, the same block by block and in any library."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
import sklearn.base

from mercer import config_context
from mercer.kernels import RBF, Constant, Linear, parse
from tests.catalogue import rows
from tests.kernel_catalogue import KERNELS, ROWS

NUMBERS = [row for row in KERNELS if row.rows != "strings"]


def data(row, n=23, m=17, seed=3):
    rng = np.random.default_rng(seed)
    X, Y = ROWS[row.rows](rng, n), ROWS[row.rows](rng, m)
    if row.rows == "strings":
        return X, [*Y[:-2], X[1], X[1]]
    Y[-2:] = X[1]  # equal rows
    X[3] = X[4]
    X[5] = 0.0
    return X, Y


def expected(row, X, Y):
    return np.array([[row.formula(x, y) for y in Y] for x in X])


@pytest.mark.parametrize("row", rows(KERNELS))
def test_the_formula(row):
    X, Y = data(row)
    K = expected(row, X, Y)
    scale = max(1.0, np.abs(K).max())
    assert np.abs(row.kernel(X, Y) - K).max() <= 1e-12 * scale
    own = expected(row, X, X)
    assert np.abs(row.kernel(X) - own).max() <= 1e-12 * max(1.0, np.abs(own).max())


@pytest.mark.parametrize("row", rows(KERNELS))
def test_symmetric_with_its_diagonal(row):
    X, _ = data(row)
    K = row.kernel(X)
    scale = np.abs(K).max()
    assert np.abs(K - K.T).max() <= 1e-14 * scale
    diagonal = row.kernel.diag(X)
    assert diagonal.shape == (len(X),)
    assert np.abs(diagonal - np.diag(K)).max() <= 1e-14 * scale


@pytest.mark.parametrize("row", rows(KERNELS))
def test_positive_semi_definite_where_claimed(row):
    rng = np.random.default_rng(5)
    sets = [ROWS[row.rows](rng, 60)]
    if row.rows == "vectors":  # large, tiny, on a line, all equal
        X = sets[0]
        sets += [30 * X, 1e-3 * X, X[:, :1] * np.ones(6), np.ones((20, 6))]
    for X in sets:
        if row.kernel.psd:
            values = np.linalg.eigvalsh(row.kernel(X))
            assert values[0] >= -1e-10 * values[-1]


@pytest.mark.parametrize("row", rows(KERNELS))
def test_block_by_block(row):
    X, Y = data(row, 40, 31)
    whole = row.kernel(X, Y)
    for size in (1, 7):
        with config_context(block_rows=size):
            assert np.abs(row.kernel(X, Y) - whole).max() <= 1e-14 * np.abs(whole).max()


@pytest.mark.parametrize("row", rows(NUMBERS))
def test_float32_is_close_to_float64(row):
    X, Y = data(row)
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    single = row.kernel(X, Y)
    double = row.kernel(X.astype(np.float64), Y.astype(np.float64))
    assert single.dtype == np.float32
    assert np.abs(single - double).max() <= 1e-5 * max(1.0, np.abs(double).max())


@pytest.mark.parametrize("row", rows(KERNELS))
def test_distances_in_its_space(row):
    X, Y = data(row)
    if row.kernel.psd is False:
        return
    K = expected(row, X, Y)
    x = np.array([row.formula(a, a) for a in X])
    y = np.array([row.formula(b, b) for b in Y])
    squares = np.maximum(x[:, None] + y - 2 * K, 0.0)
    found = row.kernel.distances(X, Y)
    scale = max(1.0, np.abs(K).max(), x.max(), y.max())
    assert np.abs(found**2 - squares).max() <= 1e-12 * scale


@pytest.mark.parametrize("row", rows(KERNELS))
def test_parse_reads_the_repr(row):
    if row.parses:
        assert parse(repr(row.kernel)) == row.kernel
        assert repr(parse(repr(row.kernel))) == repr(row.kernel)


@pytest.mark.parametrize("row", rows(KERNELS))
def test_clone_copy_and_pickle(row):
    assert sklearn.base.clone(row.kernel) is not row.kernel
    assert copy.deepcopy(row.kernel).get_params().keys() == row.kernel.get_params().keys()
    if row.parses:
        assert sklearn.base.clone(row.kernel) == row.kernel
        assert pickle.loads(pickle.dumps(row.kernel)) == row.kernel


@pytest.mark.parametrize("row", rows([row for row in KERNELS if row.smooth]))
def test_slopes_are_finite_differences(row):
    rng = np.random.default_rng(7)
    X, Y, a = rng.standard_normal((4, 6)), rng.standard_normal((5, 6)), rng.standard_normal(5)
    found = row.kernel.gradient(X, Y, a)
    h = 1e-5
    for j in range(6):
        step = np.zeros(6)
        step[j] = h
        slope = (row.kernel(X + step, Y) - row.kernel(X - step, Y)) @ a / (2 * h)
        assert np.abs(found[:, j] - slope).max() <= 1e-6 * max(1.0, np.abs(slope).max())


@pytest.mark.parametrize("row", rows([row for row in KERNELS if row.fourier]))
def test_fourier_features_approach_it(row):
    rng = np.random.default_rng(11)
    X = 0.7 * rng.standard_normal((12, 6))
    q = 40_000
    drawn = row.kernel.spectrum(6, q, rng)
    assert drawn.omega.shape == (6, q)
    assert drawn.amplitude.shape == (q,)
    angles = X @ drawn.omega
    features = np.hstack([np.cos(angles), np.sin(angles)]) * np.tile(drawn.amplitude, 2)
    K = row.kernel(X)
    assert np.abs(features @ features.T - K).max() <= 5 * K.max() / np.sqrt(q)


@pytest.mark.parametrize("row", rows([row for row in KERNELS if not row.fourier]))
def test_without_fourier_features_it_says_which_have(row):
    with pytest.raises(ValueError, match=r"has no Fourier features; .*RBF"):
        row.kernel.spectrum(6, 10, np.random.default_rng(0))


@pytest.mark.parametrize("row", rows([row for row in KERNELS if not row.smooth]))
def test_without_a_gradient_it_says_so(row):
    X, Y = data(row)
    with pytest.raises(ValueError, match="has no gradient"):
        row.kernel.gradient(X, Y, np.ones(len(Y)))


LIBRARIES = ["array_api_strict", "torch"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("row", rows([row for row in NUMBERS if row.parses]))
def test_other_libraries_agree(row, library):
    xp = pytest.importorskip(library)
    X, Y = data(row)
    K = row.kernel(xp.asarray(X), xp.asarray(Y))
    assert type(K) is type(xp.asarray(X))
    scale = max(1.0, np.abs(np.asarray(K)).max())
    assert np.abs(np.asarray(K) - row.kernel(X, Y)).max() <= 1e-12 * scale
    diagonal = np.asarray(row.kernel.diag(xp.asarray(X)))
    assert np.abs(diagonal - row.kernel.diag(X)).max() <= 1e-12 * scale
    apart = np.asarray(row.kernel.distances(xp.asarray(X), xp.asarray(Y)))
    assert np.abs(apart**2 - row.kernel.distances(X, Y) ** 2).max() <= 1e-12 * scale
    if row.smooth:
        a = np.linspace(-1, 1, len(Y))
        slope = np.asarray(row.kernel.gradient(xp.asarray(X), xp.asarray(Y), a))
        assert np.abs(slope - row.kernel.gradient(X, Y, a)).max() <= 1e-11 * scale


DOTS = [
    "linear",
    "polynomial",
    "rbf",
    "laplacian",
    "tanh",
    "cosine",
    "sum",
    "normalised",
    "columns",
]


@pytest.mark.parametrize("row", rows(KERNELS, *DOTS))
def test_sparse_rows(row):
    X, Y = data(row)
    X[np.abs(X) < 0.7] = 0
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        for other in (form(Y), Y):
            K = row.kernel(form(X), other)
            assert np.abs(K - row.kernel(X, Y)).max() <= 1e-12 * np.abs(K).max()
        assert (
            np.abs(row.kernel.diag(form(X)) - row.kernel.diag(X)).max() <= 1e-12 * np.abs(K).max()
        )


@pytest.mark.parametrize("name", ["rbf", "laplacian", "matern 1.5", "rational quadratic"])
@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e3), ("float64", 1e7)])
def test_a_common_offset_costs_no_digits(name, dtype, offset):
    (row,) = [row for row in KERNELS if row.name == name]
    rng = np.random.default_rng(13)
    X = (rng.standard_normal((30, 6)) + offset).astype(dtype)
    expected = row.kernel(X.astype(np.float64) - offset)
    assert np.abs(row.kernel(X) - expected).max() <= {"float32": 2e-6, "float64": 1e-13}[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_equal_rows_are_at_distance_zero(dtype):
    rng = np.random.default_rng(17)
    X = (100 * rng.standard_normal((50, 40)) + 20).astype(dtype)
    X[25:] = X[:25]
    for row in KERNELS:
        if row.fourier and row.rows == "vectors" and "columns" not in row.name:
            K = row.kernel(X)
            assert np.array_equal(np.diag(K), row.kernel.diag(X).astype(dtype))
            assert np.array_equal(np.diag(K[25:, :25]), np.diag(K)[:25])


def test_constants_only():
    assert np.array_equal(Constant(2.0)(np.ones((3, 2))), np.full((3, 3), 2.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", rows([row for row in NUMBERS if row.kernel.psd]))
def test_equal_rows_are_one_point_of_its_space(row, dtype):
    X = ROWS[row.rows](np.random.default_rng(19), 12).astype(dtype)
    X[6:] = X[:6]
    found = row.kernel.distances(X)
    assert np.array_equal(np.diag(found), np.zeros(12))
    assert np.array_equal(np.diag(found[6:, :6]), np.zeros(6))
    within = row.kernel.rbf(0.5)(X)
    assert np.array_equal(np.diag(within), np.ones(12))


def test_sums_and_scales_keep_the_digits_of_their_parts():
    Z = (np.random.default_rng(23).standard_normal((20, 5)) + 1e3).astype(np.float32)
    expected = Linear().rbf(0.5)(Z.astype(np.float64))
    assert np.abs((2 * Linear()).rbf(0.25)(Z) - expected).max() <= 1e-5
    assert np.abs((Linear() + 1).rbf(0.5)(Z) - expected).max() <= 1e-5
    assert (2 * RBF(1.0)).distances([[0.0]], [[1e-9]])[0, 0] == pytest.approx(2e-9)


@pytest.mark.parametrize(
    ("dtype", "scale", "error"), [("float32", 60, 1e-5), ("float64", 600, 1e-12)]
)
def test_clusters_far_apart(dtype, scale, error):
    rng = np.random.default_rng(29)
    centres = np.repeat(np.vstack([np.eye(64), -np.eye(64)]) * scale, 4, axis=0)
    W = (centres + 0.3 * rng.standard_normal(centres.shape)).astype(dtype)
    exact = W.astype(np.longdouble)
    apart = np.array([((row - exact) ** 2).sum(axis=1) for row in exact])
    assert np.abs(RBF(0.2)(W) - np.exp(-0.2 * apart)).max() <= error


@pytest.mark.parametrize("row", rows(NUMBERS))
def test_mixed_precisions_meet_in_the_finer(row):
    X, Y = data(row)
    X = X.astype(np.float32)
    K = row.kernel(X, Y)
    assert K.dtype == np.float64
    assert np.abs(K - row.kernel(X.astype(np.float64), Y)).max() <= 1e-14 * np.abs(K).max()
    assert np.abs(row.kernel(Y, X).T - K).max() <= 1e-14 * np.abs(K).max()


@pytest.mark.parametrize("row", rows([row for row in NUMBERS if row.parses]))
def test_nan_stays_nan(row):
    X, Y = data(row)
    X[2] = np.nan
    K = row.kernel(X, Y)
    assert np.isnan(K[2]).all()
    assert np.isfinite(np.delete(K, 2, axis=0)).all()

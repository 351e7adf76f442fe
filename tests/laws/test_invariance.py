"""The same answer, however the rows are stored, cut, weighted, ordered or shared out."""

import functools
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import sklearn.decomposition
import sklearn.preprocessing
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from mercer import PCA, config_context
from mercer.arrays import to_numpy
from mercer.methods import SVD, Covariance
from tests.catalogue import DATA, EXACT, SOURCES, STREAMS, WAYS, pairwise, rows, separated
from tests.laws import truth

SHAPES = {"tall": (150, 12), "wide": (12, 150)}


def data(shape="tall", dtype=np.float64, seed=31):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = separated(rng, max(n, d), min(n, d), 0.75)
    return ((X if n > d else X.T) + 3.0).astype(dtype)


def fitted(X, way="auto", k=4, *, weights=None, **how):
    solver = getattr(way, "solver", way)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PCA(k, svd_solver=solver, random_state=0, **how).fit(X, sample_weight=weights)


def assert_same(a, b, rtol=1e-12, *, mean=True):
    """Variances alike; axes alike to what the variances' distances let one ask."""
    x, y = (to_numpy(p.explained_variance_).astype(np.float64) for p in (a, b))
    assert x.shape == y.shape
    assert np.abs(x - y).max() <= rtol * y.max()
    V, W = (to_numpy(p.components_).astype(np.float64) for p in (a, b))
    others = np.append(y[1:], 0.0)
    apart = np.minimum(np.abs(np.diff(y, prepend=np.inf)), y - others)
    turned = 1 - np.abs((V * W).sum(axis=1))
    assert np.all(turned <= (100 * rtol * y[0] / apart) ** 2 + 1e-14)
    if mean:
        m = to_numpy(b.mean_).astype(np.float64)
        assert np.abs(to_numpy(a.mean_) - m).max() <= rtol * (1 + np.abs(m).max())


def scores(X, pca):
    return np.asarray(to_numpy(pca.transform(X)), np.float64)


# Blocks, sources, threads.


@pairwise(way=EXACT, block=[1, 7, 64, 150], shape=SHAPES)
def test_any_block_size(shape, block, way):
    X = data(shape)
    with config_context(block_rows=block):
        found = fitted(X, way)
    assert_same(found, fitted(X, "full"))


@pytest.mark.parametrize("block", [1, 7, 64, 150])
def test_scores_for_any_block_size(block):
    X = data()
    pca = fitted(X)
    expected = np.asarray(truth.centred(X) @ pca.components_.T.astype(np.longdouble), np.float64)
    with config_context(block_rows=block):
        assert np.abs(scores(X, pca) - expected).max() <= 1e-13
        assert np.abs(pca.inverse_transform(pca.transform(X)) - pca.reconstruct(X)).max() <= 1e-13


@pairwise(
    way=["full", "covariance_eigh", "dot", "krylov", "arpack"],
    kind=SOURCES,
    shape=SHAPES,
)
def test_any_source(shape, kind, way, tmp_path):
    X = data(shape)
    given_as = kind.make(X, tmp_path)
    pca = fitted(given_as, way)
    expected = fitted(X, "full")
    assert_same(pca, expected)
    out = pca.transform(given_as)
    out = out.collect() if hasattr(out, "collect") else out
    signs = np.sign((to_numpy(pca.components_) * expected.components_).sum(axis=1))
    assert np.abs(to_numpy(out) * signs - expected.transform(X)).max() <= 1e-11


@pytest.mark.parametrize("kind", rows(SOURCES))
def test_any_source_of_float32(kind, tmp_path):
    X = data(dtype=np.float32)
    given_as = kind.make(X, tmp_path)
    pca = fitted(given_as, "covariance_eigh")
    values = truth.pca(X)[0][:4]
    if kind.name != "lists":  # Python's floats are float64
        assert to_numpy(pca.components_).dtype == np.float32
    assert np.abs(to_numpy(pca.explained_variance_) / values - 1).max() <= 1e-6


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, np.float16, np.bool_])
def test_any_number(dtype):
    X = (
        np.random.default_rng(32)
        .integers(0, 2 if dtype is np.bool_ else 100, (60, 5))
        .astype(dtype)
    )
    assert_same(fitted(X), fitted(X.astype(np.float64)))


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_any_number_of_threads(shape, way):
    X = data(shape)
    with config_context(block_rows=16):
        with threadpool_limits(limits=1, user_api="blas"):
            one = fitted(X, way)
        with threadpool_limits(limits=2, user_api="blas"):
            two = fitted(X, way)
    assert_same(one, two)


@pytest.mark.parametrize("way", rows(WAYS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_seed_same_bits(dtype, way):
    X = data(dtype=dtype)
    a, b = fitted(X, way), fitted(X, way)
    assert np.array_equal(a.components_, b.components_)
    assert np.array_equal(a.explained_variance_, b.explained_variance_)


@pairwise(way=WAYS, dtype=["float64", "float32"], whiten=[False, True])
def test_fit_transform_is_transform(whiten, dtype, way):
    X = data(dtype=dtype)
    pca = PCA(4, svd_solver=way.solver, random_state=0, whiten=whiten)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(pca.fit_transform(X), pca.transform(X))


@pytest.mark.parametrize("way", rows(EXACT))
def test_rows_are_not_written_to(way):
    X = data()
    before = X.copy()
    fitted(X, way, scale=True).transform(X)
    assert np.array_equal(X, before)


# Weights, order, units.


@pairwise(way=EXACT, shape=SHAPES, scale=[False, True])
def test_weights_are_repeated_rows(scale, shape, way):
    X = data(shape)
    weights = np.random.default_rng(33).integers(1, 4, len(X))
    repeated = np.repeat(X, weights, axis=0)
    with config_context(block_rows=32):
        found = fitted(X, way, weights=weights, scale=scale)
    assert_same(found, fitted(repeated, "full", scale=scale))


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_weight_zero_is_no_row(shape, way):
    X = data(shape)
    weights = np.ones(len(X))
    weights[::5] = 0.0
    wild = X.copy()
    wild[::5] = 1e6
    with config_context(block_rows=5):
        found = fitted(wild, way, weights=weights)
    assert_same(found, fitted(X[weights > 0], "full"))


@pytest.mark.parametrize("way", rows(EXACT))
def test_whole_block_of_weight_zero(way):
    X = data()
    weights = np.ones(len(X))
    weights[30:60] = 0.0
    with config_context(block_rows=10):
        found = fitted(X, way, weights=weights)
    assert_same(found, fitted(X[weights > 0], "full"))


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_fractions_of_weights(shape, way):
    X = data(shape)
    weights = np.random.default_rng(34).uniform(0.5, 2.0, len(X))
    values = truth.pca(X, weights=weights)[0][:4]
    found = fitted(X, way, weights=weights).explained_variance_
    assert np.abs(found / values - 1).max() <= 1e-12


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_order_of_rows_does_not_matter(shape, way):
    X = data(shape)
    order = np.random.default_rng(35).permutation(len(X))
    with config_context(block_rows=16):
        assert_same(fitted(X[order], way), fitted(X, "full"))


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("exponent", [-8, 5, 300, -300])
def test_a_power_of_two_scales_exactly(exponent, way):
    X = data()
    factor = 2.0**exponent
    one, two = fitted(X, way), fitted(X * factor, way)
    same = np.array_equal if abs(exponent) < 100 else np.allclose
    assert same(two.singular_values_, one.singular_values_ * factor)
    assert same(two.explained_variance_ratio_, one.explained_variance_ratio_)
    assert same(np.abs(two.components_), np.abs(one.components_))


@pairwise(
    way=EXACT,
    shape=SHAPES,
    scaled=["float32 -90", "float32 -45", "float32 60", "float64 -400", "float64 350"],
)
def test_a_power_of_two_scales_sparse_rows(scaled, shape, way):
    """Beyond 2**±40 of float32, and 2**±100 of float64, rows are scaled inside the fit."""
    dtype, exponent = scaled.split()[0], int(scaled.split()[1])
    X = data(shape, dtype) * (np.random.default_rng(36).random(data(shape).shape) < 0.4)
    X, weights = X.astype(dtype), np.arange(len(X)) % 3 + 0.5
    one, two = (
        fitted(scipy.sparse.csr_array(A), way, weights=weights, whiten=True)
        for A in (X, (X * 2.0**exponent).astype(dtype))
    )
    rtol = 1e-4 if dtype == "float32" else 1e-9
    assert np.allclose(two.explained_variance_ratio_, one.explained_variance_ratio_, rtol=rtol)
    factor = 2.0**exponent
    assert np.allclose(two.singular_values_ / factor, one.singular_values_, rtol=rtol)
    turned = np.abs((two.components_ * one.components_).sum(axis=1, dtype=float))
    assert np.allclose(turned, 1.0, atol=rtol)
    # Whitened scores have no unit.
    again = scipy.sparse.csr_array((X * factor).astype(dtype))
    same = np.abs(one.transform(scipy.sparse.csr_array(X)))
    assert np.allclose(np.abs(two.transform(again)), same, atol=30 * rtol)


@pairwise(way=EXACT, block=[1, 2, None], center=[False, True])
def test_rows_of_no_weight_may_be_most_of_them(center, block, way):
    X = np.vstack([np.eye(4, 3) * [3.0, 2.0, 1.0], np.full((3, 3), 7.0)])
    weights = np.array([1.0, 1, 0, 0, 0, 0, 2])
    with config_context(block_rows=block):
        found = fitted(X, way, 3, weights=weights, center=center)
    values = truth.pca(X[weights > 0], center, weights[weights > 0])[0]
    expected = np.zeros(3)
    expected[: len(values)] = values
    assert np.abs(found.explained_variance_ - expected).max() <= 1e-12 * expected[0]


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_scale_is_standard_scaler_before(shape, way):
    X = data(shape) * np.logspace(0, 3, SHAPES[shape][1])
    X[:, 2] = 41.7  # constant, as far as float64 can tell
    Z = sklearn.preprocessing.StandardScaler().fit_transform(X)
    Z *= np.sqrt((len(X) - 1) / len(X))  # which divides by n, and the variances by n − 1
    with config_context(block_rows=16):
        found = fitted(X, way, scale=True)
    expected = sklearn.decomposition.PCA(4, svd_solver="full").fit(Z)
    assert_same(found, expected, 1e-11, mean=False)
    # Rows treated inside the fit: scores are those of the scaled rows.
    assert np.abs(np.abs(scores(X, found)) - np.abs(expected.transform(Z))).max() <= 1e-9


@pytest.mark.parametrize("way", rows(EXACT))
def test_scale_finds_the_deviation_of_coarse_columns(way):
    """Float32 at 1e6 has steps of 1/16: a deviation of 0.5 is no rounding."""
    X = (0.5 * data() + 1e6).astype(np.float32)
    Z = X - X.mean(axis=0, dtype=np.float64)
    values = truth.pca(Z / Z.std(axis=0, ddof=1))[0][:4]
    found = fitted(X, way, scale=True).explained_variance_
    assert np.abs(found / values - 1).max() <= 1e-5


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("shape", SHAPES)
def test_without_centring_it_is_the_svd_of_the_rows(shape, way):
    X = data(shape)
    s = scipy.linalg.svdvals(X)[:4]
    with config_context(block_rows=16):
        found = fitted(X, way, center=False)
    assert np.abs(found.singular_values_ - s).max() <= 1e-12 * s[0]
    assert np.abs(found.explained_variance_ - s**2 / (len(X) - 1)).max() <= 1e-12 * s[0] ** 2
    assert not np.any(found.mean_)


# Batches.


@pytest.mark.parametrize("way", [*rows(STREAMS, "SVD()", "Covariance()"), pytest.param("auto")])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_batches_are_one_fit(seed, shape, way):
    X = data(shape) + 100.0
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(5, len(X)), min(6, len(X) - 6), replace=False))
    pca = PCA(4, svd_solver=getattr(way, "solver", way))
    for batch in np.split(X, cuts):
        pca.partial_fit(batch)
    assert_same(pca, fitted(X, "full"), 1e-10)
    assert pca.n_samples_ == len(X)


@pytest.mark.parametrize("method", [SVD(), Covariance()], ids=str)
def test_row_by_row(method):
    """A batch may be smaller than the number of axes."""
    X = data()[:40]
    pca = PCA(2, svd_solver=method).partial_fit(X[:2])
    for row in X[2:]:
        pca.partial_fit(row[None, :])
    assert_same(pca, fitted(X, "full", 2), 1e-10)


@pytest.mark.parametrize("method", [SVD(), Covariance()], ids=str)
def test_batches_with_weights(method):
    X = data()
    weights = np.random.default_rng(36).integers(0, 3, len(X))
    pca = PCA(4, svd_solver=method)
    for part in np.split(np.arange(len(X)), [40, 41, 90]):
        w = weights[part] if weights[part].sum() > 1 else weights[part] + 2
        weights[part] = w
        pca.partial_fit(X[part], sample_weight=w)
    assert_same(pca, fitted(np.repeat(X, weights, axis=0), "full"), 1e-10)


@pytest.mark.parametrize("method", [SVD(), Covariance()], ids=str)
def test_a_batch_that_fails_leaves_no_trace(method):
    X = data()
    pca = PCA(4, svd_solver=method).partial_fit(X[:60])
    bad = X[60:80].copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pca.partial_fit(bad)
    pca.partial_fit(X[60:])
    assert_same(pca, fitted(X, "full"), 1e-10)


@pytest.mark.parametrize("method", [SVD(), Covariance()], ids=str)
def test_a_batch_that_fails_late_leaves_no_trace(method, monkeypatch):
    X = data()
    pca = PCA(4, svd_solver=method).partial_fit(X[:60])
    with monkeypatch.context() as patch:
        patch.setattr(type(method), "finish", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            pca.partial_fit(X[60:])
    pca.partial_fit(X[60:])
    assert_same(pca, fitted(X, "full"), 1e-10)


# Any shape at all.


@st.composite
def tables(draw):
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 40))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    power = draw(
        st.sampled_from([0, 0, 10, -10] + ([100, -100, 80, -80] if dtype == np.float64 else []))
    )
    mean = draw(st.sampled_from([0.0, 1.0, 1e3]))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([1.0, 0.9, 0.5])) ** np.arange(d) + mean
    X = (X * 10.0**power).astype(dtype)
    layout = draw(st.sampled_from(["C", "F", "view", "backwards"]))
    if layout == "view":
        return np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    return X[::-1].copy()[::-1] if layout == "backwards" else np.asarray(X, order=layout)


@settings(max_examples=150)
@given(tables(), st.sampled_from([None, 1, 3, 16]))
def test_any_table(X, block):
    A = truth.centred(X)
    largest = np.abs(A).max()
    s = scipy.linalg.svdvals((A / largest).astype(np.float64)) * largest
    with warnings.catch_warnings(), config_context(block_rows=block):
        warnings.simplefilter("ignore")
        pca = PCA().fit(X)
    eps = np.finfo(X.dtype).eps
    assert np.all(np.abs(pca.singular_values_ - s) <= truth.rounding(X, s))
    V = pca.components_.astype(np.float64)
    assert np.abs(V @ V.T - np.eye(len(V))).max() <= 40 * eps


@functools.cache
def nasty_case(nasty, dtype):
    X = nasty(dtype)
    return X, truth.svd(truth.centred(X))[0]


@pairwise(nasty=DATA, dtype=["float64", "float32"], way=EXACT)
def test_nasty_data_every_way(nasty, dtype, way):
    """Variances to the working precision of the largest; axes orthonormal; nothing invented."""
    X, values = nasty_case(nasty, dtype)
    k = min(3, *X.shape)
    s = values[:k]
    pca = fitted(X, way, k)
    eps = float(np.finfo(dtype).eps)
    assert pca.components_.shape == (k, X.shape[1])
    # Variances above the floor may come from squares, to a few ε of the largest.
    squared = 4 * np.finfo(np.float64).eps * s[0] ** 2 / np.maximum(s, 1e-3 * s[0]) if s[0] else 0
    assert np.all(np.abs(pca.singular_values_ - s) <= truth.rounding(X, s) + squared)
    V = pca.components_.astype(np.float64)
    assert np.abs(V @ V.T - np.eye(k)).max() <= 20 * X.shape[1] ** 0.5 * eps

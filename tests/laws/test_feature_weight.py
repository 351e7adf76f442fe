"""PCA in the metric of column weights is PCA of the columns times the roots of the weights."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import multivariate_normal

from mercer import PCA, config_context
from mercer.arrays import to_numpy
from mercer.methods import Covariance, FrequentDirections, Sketch
from mercer.sketches import FeatureGrouping, Gaussian, Hashing
from tests.catalogue import EXACT, SOURCES, STREAMS, WAYS, Way, pairwise, rows, separated

SHAPES = {"tall": (150, 12), "wide": (12, 40)}
CENTERS, SCALES = ["centered", "not centered"], ["not scaled", "scaled"]
SKETCHES = [
    Way(repr(sketch), Sketch(sketch), exact=False)
    for sketch in (Gaussian(12), Hashing(12), FeatureGrouping(6))
]


def data(shape="tall", dtype=np.float64, seed=24):
    n, d = SHAPES[shape]
    rng = np.random.default_rng(seed)
    X = separated(rng, max(n, d), min(n, d), 0.8)
    return ((X if n > d else X.T) + 3.0).astype(dtype)


def some_weights(d, seed=25):
    """Weights of several magnitudes, and one of zero."""
    w = 10.0 ** np.random.default_rng(seed).uniform(-2, 1, d)
    w[d // 3] = 0.0
    return w


def fitted(X, way="auto", k=4, **settings):
    solver = getattr(way, "solver", way)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PCA(k, svd_solver=solver, random_state=0, **settings).fit(X)


def columns(X, w, *, center=True, scale=False):
    """The columns that PCA is of, in float64."""
    Z = np.asarray(X, np.float64)
    Z = Z - Z.mean(axis=0) if center else Z
    Z = Z / np.sqrt((Z**2).sum(axis=0) / (len(Z) - 1)) if scale else Z
    return Z * np.sqrt(w)


def svd(Z, k=4):
    """Variances, scores, components and the total variance, by NumPy."""
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    return s[:k] ** 2 / (len(Z) - 1), U[:, :k] * s[:k], Vt[:k], (s**2).sum() / (len(Z) - 1)


def host(x):
    return np.asarray(to_numpy(x.collect() if hasattr(x, "collect") else x), np.float64)


def assert_is_svd(pca, X, Z, rough):
    """The model of X has the variances, scores, components and residuals of an SVD of Z."""
    values, scores, V, total = svd(Z)
    assert np.abs(host(pca.explained_variance_) - values).max() <= rough * values[0]
    assert abs(pca.projection_.total_variance - total) <= rough * total
    np.testing.assert_allclose(host(pca.explained_variance_ratio_), values / total, atol=rough)
    signs = np.sign((host(pca.components_) * V).sum(axis=1))
    atol = 30 * rough * np.abs(scores).max()
    np.testing.assert_allclose(host(pca.transform(X)) * signs, scores, atol=atol)
    np.testing.assert_allclose(host(pca.components_) * signs[:, None], V, atol=30 * rough)
    left = (Z**2).sum(axis=1) - (scores**2).sum(axis=1)
    np.testing.assert_allclose(host(pca.reconstruction_error(X)), left, atol=atol * atol + atol)
    assert_true(pca.certificate_, values, total)


def assert_true(certificate, values, total):
    """What the certificate says of the explained variance, the optimum and the total holds."""
    loose = 1e-12 if certificate.optimum_upper.confidence == 1.0 else 1e-6
    assert certificate.captured <= values.sum() / total * (1 + loose)
    assert certificate.optimum_upper >= values.sum() / total * (1 - loose)
    low, high = certificate.total
    assert low <= total * (1 + loose)
    assert high >= total * (1 - loose)


# The oracle: NumPy's SVD of the weighted columns.


@pairwise(way=WAYS, center=CENTERS, scale=SCALES, shape=SHAPES, dtype=["float64", "float32"])
def test_svd_of_weighted_columns(way, center, scale, shape, dtype):
    X, center, scale = data(shape, dtype), center == "centered", scale == "scaled"
    if scale and "Frequent" in way.name:
        scale = False
    w = some_weights(X.shape[1])
    pca = fitted(X, way, center=center, scale=scale, feature_weight=w)
    Z = columns(X, w, center=center, scale=scale)
    if way.exact:
        assert_is_svd(pca, X, Z, 1e-11 if dtype == "float64" else 2e-5)
    values, _, _, total = svd(Z)
    assert_true(pca.certificate_, values, total)
    s = np.sqrt((columns(X, np.ones(len(w)), center=center) ** 2).sum(axis=0) / (len(X) - 1))
    np.testing.assert_allclose(pca.scale_, np.where(w > 0, s, 1.0) if scale else 1.0, rtol=1e-6)


@pairwise(way=["full", "covariance_eigh", "dot", "krylov", "sketch"], kind=SOURCES, scale=SCALES)
def test_any_source(kind, way, scale, tmp_path):
    X, w, scale = data(), some_weights(12), scale == "scaled"
    given_as = kind.make(X, tmp_path)
    pca = fitted(given_as, way, scale=scale, feature_weight=w)
    assert_is_svd(pca, given_as, columns(X, w, scale=scale), 1e-10)


@pytest.mark.parametrize("way", ["full", "covariance_eigh", "krylov", "sketch"])
def test_dask_rows(way):
    chunks = pytest.importorskip("dask.array").from_array(data(), chunks=(40, 12))
    w = some_weights(12)
    pca = fitted(chunks, way, feature_weight=w)
    np.testing.assert_allclose(pca.transform(chunks).compute(), pca.transform(data()), atol=1e-12)
    assert_is_svd(pca, data(), columns(data(), w), 1e-10)


@pytest.mark.parametrize("way", rows(SKETCHES))
@pytest.mark.parametrize("sparse", [False, True])
def test_a_sketch_is_one_of_weighted_columns(way, sparse):
    X, w = data(), some_weights(12)
    given_as = scipy.sparse.csr_array(X) if sparse else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = fitted(given_as, way, feature_weight=w)
        other = fitted(X * np.sqrt(w), way)
    np.testing.assert_allclose(pca.explained_variance_, other.explained_variance_, rtol=1e-9)
    assert_true(pca.certificate_, svd(columns(X, w))[0], svd(columns(X, w))[3])


@pytest.mark.parametrize("way", rows(WAYS))
@pytest.mark.parametrize("block", [1, 7, 64])
def test_any_block_size(block, way):
    X, w = data(), some_weights(12)
    with config_context(block_rows=block):
        pca = fitted(X, way, feature_weight=w)
    rough = 1e-12 if way.exact else 1e-6
    whole = fitted(X, way, feature_weight=w).explained_variance_
    np.testing.assert_allclose(pca.explained_variance_, whole, rtol=rough)


@pytest.mark.parametrize("way", rows(STREAMS))
@pytest.mark.parametrize("sparse", [False, True])
def test_batches(way, sparse):
    X, w = data(), some_weights(12)
    make = scipy.sparse.csr_array if sparse else np.asarray
    pca = PCA(4, svd_solver=way.solver, feature_weight=w)
    for start in range(0, 150, 40):
        pca.partial_fit(make(X[start : start + 40]))
    assert_is_svd(pca, X, columns(X, w), 1e-10)


@pytest.mark.parametrize("mean", [0.0, 1e3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, False])
def test_blocks_of_a_stream_bound_weighted_columns(mean, dtype, center):
    rng = np.random.default_rng(3)
    X, w = (rng.standard_normal((600, 40)) + mean).astype(dtype), rng.uniform(0, 3, 40)
    pca = PCA(3, svd_solver=FrequentDirections(6), center=center, feature_weight=w, random_state=0)
    for start in range(0, 600, 300):
        pca.partial_fit(X[start : start + 300])
    names = list(pca.certificate_.bounds)
    assert any("blocks of 300 rows" in name for name in names)
    values, _, _, total = svd(columns(X, w, center=center), 3)
    assert_true(pca.certificate_, values, total)
    assert float(pca.certificate_.bounds[names[-1]]) <= 1.2 * values.sum()


def test_weighted_digits_survive_a_large_mean():
    rng = np.random.default_rng(5)
    Y = np.round(rng.standard_normal((200, 6)) * 2.0**20) / 2.0**20  # exact with the mean
    X, w = Y + 2.0**27, rng.uniform(0.5, 2, 6)
    for way in EXACT:
        if way.name != "power":
            values = fitted(X, way, feature_weight=w).explained_variance_
            np.testing.assert_allclose(values, svd(columns(Y, w))[0], rtol=1e-10)


# What weights mean.


@pytest.mark.parametrize("way", rows(EXACT))
def test_inverse_variances_are_scale(way):
    X = data()
    pca = fitted(X, way, feature_weight=1.0 / X.var(axis=0, ddof=1))
    other = fitted(X, way, scale=True)
    for name in ("explained_variance_", "components_", "explained_variance_ratio_", "loadings_"):
        np.testing.assert_allclose(getattr(pca, name), getattr(other, name), atol=1e-9)
    for method in ("transform", "reconstruct", "reconstruction_error", "score_samples"):
        np.testing.assert_allclose(getattr(pca, method)(X), getattr(other, method)(X), atol=1e-8)
    assert pca.certificate_.captured == pytest.approx(other.certificate_.captured, rel=1e-10)


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("scale", [False, True])
def test_weight_two_is_the_column_twice(way, scale):
    X, w = data(), np.ones(12)
    w[[1, 5]] = 2.0, 3.0
    pca = fitted(X, way, feature_weight=w, scale=scale)
    other = fitted(np.repeat(X, w.astype(int), axis=1), way, scale=scale)
    np.testing.assert_allclose(pca.explained_variance_, other.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        pca.explained_variance_ratio_, other.explained_variance_ratio_, rtol=1e-9
    )
    repeated = other.transform(np.repeat(X, w.astype(int), axis=1))
    np.testing.assert_allclose(np.abs(pca.transform(X)), np.abs(repeated), atol=1e-8)


RULES = [2, 0.8, "mle", "kaiser", "broken-stick", "parallel", "gavish-donoho"]


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "dot", "krylov"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scale", [False, True])
def test_weight_zero_is_no_column(solver, rule, scale):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 9)) @ np.diag(np.r_[5, 4, 3, np.ones(6)]) + 1.0
    X[:, 8] = 7.0  # constant
    w = np.r_[rng.uniform(0.5, 2, 7), 0.0, 1.0]
    w[3] = 0.0
    some = np.flatnonzero(w)[: None if not scale else -1]  # scaled constants have no share either
    if rule == "mle" and solver == "krylov":
        solver = "full"
    how = {"svd_solver": solver, "scale": scale, "random_state": 0}
    pca = PCA(rule, feature_weight=w, **how).fit(X)
    other = PCA(rule, feature_weight=w[some], **how).fit(X[:, some])
    assert pca.n_components_ == other.n_components_
    np.testing.assert_allclose(pca.explained_variance_, other.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(pca.transform(X)), np.abs(other.transform(X[:, some])), atol=1e-8
    )
    if not scale:
        assert pca.noise_variance_ == pytest.approx(other.noise_variance_, rel=1e-9)
        np.testing.assert_allclose(pca.score_samples(X), other.score_samples(X[:, some]), rtol=1e-7)


def test_a_column_of_weight_zero_is_its_mean():
    X, w = data(), some_weights(12)
    (out,) = np.flatnonzero(w == 0)
    for k in (3, 12):  # of 12 components the last is that column itself
        for scale in (False, True):
            pca = fitted(X, "full", k, feature_weight=w, scale=scale)
            rows_ = pca.inverse_transform(pca.transform(X))
            np.testing.assert_allclose(rows_[:, out], X[:, out].mean(), rtol=1e-14)
            assert np.abs(pca.loadings_[out]).max() <= 1e-14
            Y = X.copy()
            Y[:, out] = 1e6
            assert np.array_equal(pca.transform(Y), pca.transform(X))
            assert np.array_equal(pca.reconstruction_error(Y), pca.reconstruction_error(X))
    np.testing.assert_allclose(np.delete(rows_ - X, out, axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_the_probabilistic_model_is_in_units_of_the_data(k):
    X = data()[:, :6]
    w = np.array([1.0, 0.3, 0.0, 2.0, 5.0, 0.7])
    some = np.flatnonzero(w)
    pca = PCA(k, feature_weight=w).fit(X)
    C, P = pca.get_covariance(), pca.get_precision()
    assert np.isinf(C[2, 2])
    assert not P[2].any()
    assert not P[:, 2].any()
    C, P = (A[np.ix_(some, some)] for A in (C, P))
    np.testing.assert_allclose(C @ P, np.eye(5), atol=1e-10)
    if k == 5:
        np.testing.assert_allclose(C, np.cov(X[:, some].T), rtol=1e-10)
    model = multivariate_normal(X[:, some].mean(axis=0), C)
    np.testing.assert_allclose(pca.score_samples(X), model.logpdf(X[:, some]), rtol=1e-9)


@pytest.mark.parametrize("way", rows(WAYS))
@pytest.mark.parametrize("power", [-700, 20, 700])
def test_multiples_of_the_weights(power, way):
    """Any multiple gives the same components, to the bit if it is a power of four."""
    X, w = data(), some_weights(12)
    pca, other = (fitted(X, way, feature_weight=v) for v in (w, np.ldexp(w, power)))
    assert np.array_equal(pca.components_, other.components_)
    assert np.array_equal(np.ldexp(pca.explained_variance_, power), other.explained_variance_)
    assert pca.certificate_.captured == other.certificate_.captured
    assert pca.certificate_.optimum_upper == other.certificate_.optimum_upper
    assert np.array_equal(pca.mean_, other.mean_)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "dot", "krylov", "sketch"])
def test_rows_and_weights_of_extreme_scale(solver):
    X, w = data(), some_weights(12)
    values = svd(columns(X, w))[0]
    pca = fitted(X * 1e160, solver, feature_weight=w * 1e-200)
    np.testing.assert_allclose(pca.explained_variance_, values * 1e120, rtol=1e-9)
    assert pca.certificate_.captured <= values.sum() / svd(columns(X, w))[3] * (1 + 1e-12)
    assert pca.certificate_.optimum_upper >= values.sum() / svd(columns(X, w))[3] * (1 - 1e-12)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "dot", "krylov", "sketch"])
def test_a_huge_column_of_weight_zero_hides_no_other(solver):
    X, w = data(), some_weights(12)
    values = svd(columns(X, w))[0]
    X[:, w == 0] *= 1e200
    if solver != "full":
        with pytest.raises(ValueError, match="sums of squares overflow"):
            fitted(X, solver, feature_weight=w)
        return
    pca = fitted(X, solver, feature_weight=w)
    np.testing.assert_allclose(pca.explained_variance_, values, rtol=1e-9)


@pytest.mark.parametrize(("raw", "weight"), [(1.0, 1e-6), (1e-3, 1e6)])
def test_float32_is_judged_by_weighted_columns(raw, weight, monkeypatch):
    """Products of float32 would lose the second component of the first, not that of the other."""
    dtypes, begin = [], Covariance.begin

    def recorded(self, problem, products=np.float64):
        dtypes.append(np.dtype(products).name)
        return begin(self, problem, products)

    monkeypatch.setattr(Covariance, "begin", recorded)
    X = np.random.default_rng(8).standard_normal((5000, 8)).astype(np.float32)
    X[:, 1:] *= np.float32(raw)
    fitted(X, "covariance_eigh", k=2, feature_weight=np.r_[1.0, np.full(7, weight)])
    assert dtypes == (["float64"] if weight < 1 else ["float32"])

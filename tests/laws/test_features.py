"""Random Fourier features: unbiased, linear PCA of them by definition, judged by their span."""

import numpy as np
import pytest
import scipy.sparse

from mercer import KernelPCA, config_context, metrics
from mercer.kernels import RBF, Laplacian, Matern, RationalQuadratic
from mercer.methods import (
    SVD,
    Covariance,
    Dot,
    FrequentDirections,
    Iterative,
    RandomFeatures,
    Size,
    Sketch,
)
from mercer.projection.fourier import FourierMap
from tests.laws import plain
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((90, 4)), RNG.standard_normal((25, 4))
WEIGHTS = RNG.integers(0, 4, len(X)).astype(float)
KERNEL = RBF(0.1)
ISOTROPIC = [
    RBF(0.3),
    Laplacian(0.5),
    Matern(1.5, nu=0.5),
    Matern(1.5),
    Matern(2.0, nu=2.5),
    RationalQuadratic(1.5, alpha=0.7),
    3 * RBF(0.2),
    RBF(0.1) + 2 * Laplacian(0.4),
    RBF(0.1) * Matern(2.0),
    (RBF(0.1) + Matern(3.0)) * Laplacian(0.2),
    RBF(0.1) ** 2,
    (2 * RBF(0.2)).normalized(),
    RBF(0.2) + 1,
    RBF(0.5).on_columns([1, 3]) + Matern(1.0).on_columns([0]),
]
ALL = [*ISOTROPIC, Laplacian(0.3, norm="l1"), RBF(0.1) + Laplacian(0.3, norm="l1")]


def fit(k=3, method=None, X=X, weights=None, kernel=KERNEL, **settings):
    method = RandomFeatures(40) if method is None else method
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def features(model, X):
    """Cosines and sines, by their definition."""
    drawn = model.projection_.map.frequencies
    shift = 0.0 if model.projection_.shift is None else model.projection_.shift
    angles = (np.asarray(X, np.float64) - shift) @ drawn.omega
    return np.hstack([drawn.amplitude * np.cos(angles), drawn.amplitude * np.sin(angles)])


def linear(Z, weights=None, center=True):
    """Mean, variances and axes of linear PCA."""
    w = plain.counts(Z, weights)
    mean = w @ Z / w.sum() * center
    values, V = np.linalg.eigh((Z - mean).T @ ((Z - mean) * w[:, None]) / (w.sum() - 1))
    return mean, values[::-1], V[:, ::-1]


def held(model, kernel, X, weights=None, center=True):
    """Variance of the rows along the scores made orthonormal, tr QᵀK̃Q."""
    w, K = plain.counts(X, weights), kernel(np.asarray(X, np.float64))
    if center:
        share = w / w.sum()
        K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    root = np.sqrt(w)
    K = root[:, None] * K * root / (w.sum() - 1)
    Q, _ = np.linalg.qr(root[:, None] * model.transform(X))
    return float(np.trace(Q.T @ K @ Q))


# The features.


@pytest.mark.parametrize(
    ("kernel", "orthogonal"),
    [(kernel, False) for kernel in ALL] + [(kernel, True) for kernel in ISOTROPIC],
    ids=repr,
)
def test_the_kernel_of_features_is_unbiased(kernel, orthogonal):
    rng = np.random.default_rng(1)
    rows = 0.8 * rng.standard_normal((6, 4))
    K, found = kernel(rows), []
    for _ in range(500):
        Z = FourierMap(kernel.spectrum(4, 6, rng, orthogonal=orthogonal))(rows, np.float64)
        found.append(Z @ Z.T)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - K) <= 4 * error + 1e-12)
    apart = ~np.eye(6, dtype=bool)
    assert error[apart].min() > 0
    assert error.max() < 0.05 * K.max()


@pytest.mark.parametrize(("d", "q"), [(5, 5), (8, 20)])
def test_orthogonal_features_vary_less(d, q):
    rng = np.random.default_rng(2)
    rows = 0.7 * rng.standard_normal((8, d))
    spread = []
    for orthogonal in (False, True):
        found = []
        for _ in range(400):
            Z = FourierMap(RBF(0.2).spectrum(d, q, rng, orthogonal=orthogonal))(rows, np.float64)
            found.append(Z @ Z.T)
        spread.append(np.var(found, axis=0)[np.triu_indices(8, 1)].mean())
    assert spread[1] < 0.75 * spread[0]


def test_orthogonal_frequencies_are_orthogonal_and_as_long_as_normal_ones():
    omega = RBF(0.5).spectrum(6, 3000, np.random.default_rng(3), orthogonal=True).omega
    for block in np.split(omega, 500, axis=1):
        G = block.T @ block
        assert np.abs(G - np.diag(np.diag(G))).max() <= 1e-13 * G.max()
    squares = (omega**2).sum(axis=0)  # χ² of 6: mean 6, variance 12
    assert abs(squares.mean() - 6) <= 4 * np.sqrt(12 / 3000)
    assert abs(squares.var() - 12) <= 2.5
    assert abs(omega.mean()) <= 4 / np.sqrt(omega.size)  # no direction is preferred
    fewer = RBF(0.5).spectrum(6, 4, np.random.default_rng(3), orthogonal=True).omega
    assert np.abs(fewer.T @ fewer - np.diag((fewer**2).sum(axis=0))).max() <= 1e-13 * 50


def test_a_constant_takes_one_feature():
    alone = fit(kernel=RBF(0.1))
    found = fit(kernel=RBF(0.1) + 5)
    np.testing.assert_allclose(found.eigenvalues_, alone.eigenvalues_, rtol=1e-13)
    model = fit(1, kernel=RBF(0.1) + 5, center=False)
    assert model.projection_.map.width == 2 * 41
    assert model.eigenvalues_[0] > 5 * len(X)


# Linear PCA of them.


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_it_is_linear_pca_of_features(weights, center, orthogonal):
    model = fit(4, RandomFeatures(40, orthogonal), weights=weights, center=center)
    mean, values, V = linear(features(model, X), weights, center)
    divisor = plain.counts(X, weights).sum() - 1
    assert np.abs(model.eigenvalues_ / divisor - values[:4]).max() <= 1e-12 * values[0]
    for rows in (X, NEW):
        Z = features(model, rows) - mean
        assert same(model.transform(rows), Z @ V[:, :4]) <= 1e-9
        left = (Z**2).sum(axis=1) - ((Z @ V[:, :4]) ** 2).sum(axis=1)
        assert np.abs(model.reconstruction_error(rows) - left).max() <= 1e-12


@pytest.mark.parametrize(
    "method",
    [
        Covariance(),
        Covariance("jacobi"),
        SVD(),
        Dot(),
        Iterative(),
        Iterative("arpack"),
        Sketch(),
        FrequentDirections(80),
    ],
    ids=repr,
)
def test_any_linear_method(method):
    expected = fit(3)
    found = fit(3, RandomFeatures(40, linear=method))
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-6
    assert same(found.transform(NEW), expected.transform(NEW)) <= 1e-3


def test_fewer_rows_than_features():
    default, plainly = fit(3, RandomFeatures(200)), fit(3, RandomFeatures(200, linear=SVD()))
    assert default.projection_.map.width > len(X)
    assert np.abs(default.eigenvalues_ / plainly.eigenvalues_ - 1).max() <= 1e-10
    assert same(default.transform(NEW), plainly.transform(NEW)) <= 1e-8


def test_many_features_are_the_kernel():
    exact = fit(3, "exact")
    found = fit(3, RandomFeatures(20_000, linear=Dot()))
    assert np.abs(found.eigenvalues_ / exact.eigenvalues_ - 1).max() <= 0.05
    assert metrics.subspace_angles(metrics.kernel_axes(found, X), exact).max() <= 0.1
    assert same(found.transform(NEW), exact.transform(NEW)) <= 0.15


def test_the_excess_of_the_error_falls_as_one_over_q():
    rows = np.random.default_rng(4).standard_normal((150, 3)) * [3.0, 2.0, 1.0]
    best, sizes = metrics.empirical_error(fit(2, "exact", rows), rows), [30, 90, 270, 810]
    excess = [
        np.mean(
            [
                metrics.empirical_error(fit(2, RandomFeatures(q), rows, random_state=seed), rows)
                for seed in range(12)
            ]
        )
        - best
        for q in sizes
    ]
    assert min(excess) > 0
    slope = np.polyfit(np.log(sizes), np.log(excess), 1)[0]
    assert -1.35 <= slope <= -0.7


# The same answer.


def test_a_random_state_gives_the_same_bits():
    for method in (RandomFeatures(30), RandomFeatures(30, True, Iterative())):
        one, two, other = (fit(3, method, random_state=seed) for seed in (1, 1, 2))
        assert np.array_equal(one.transform(NEW), two.transform(NEW))
        assert float(one.certificate_.gap) == float(two.certificate_.gap)
        assert not np.allclose(one.eigenvalues_, other.eigenvalues_, rtol=1e-3)


@pytest.mark.parametrize("block", [1, 7, 64])
@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(0.3)], ids=repr)
def test_any_block_size(block, kernel):
    expected = fit(3, kernel=kernel)
    with config_context(block_rows=block):
        found = fit(3, kernel=kernel)
        assert np.abs(found.transform(NEW) - expected.transform(NEW)).max() <= 1e-10
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-12
    assert abs(found.certificate_.gap - expected.certificate_.gap) <= 1e-9


def test_a_file_larger_than_the_memory(tmp_path):
    import tracemalloc

    rows = np.random.default_rng(5).standard_normal((12_000, 6))
    np.save(tmp_path / "rows.npy", rows)
    method = RandomFeatures(100)
    with config_context(memory="20MiB"):  # too little to judge by, and enough for the rows
        expected = fit(3, RandomFeatures(100, linear=Covariance()), rows)
    with config_context(memory="6MiB"):
        tracemalloc.start()
        found = fit(3, method, tmp_path / "rows.npy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        scores = found.transform(tmp_path / "rows.npy")
        assert np.abs(scores.read(5, 9) - expected.transform(rows[5:9])).max() <= 1e-10
    assert peak <= 8 * 2**20 < rows.nbytes * 200 // 6
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-11
    assert found.certificate_.captured.kind == "bound"


def test_weights_are_rows_that_stand_there_so_often():
    repeated = np.repeat(X, WEIGHTS.astype(int), axis=0)
    found, expected = fit(weights=WEIGHTS), fit(X=repeated)
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-12
    assert np.abs(found.transform(NEW) - expected.transform(NEW)).max() <= 1e-10
    assert abs(found.certificate_.captured - expected.certificate_.captured) <= 1e-10


@pytest.mark.parametrize("center", [True, False])
def test_sparse_rows(center):
    rows = np.where(RNG.random(X.shape) < 0.4, X, 0.0)
    found = fit(X=scipy.sparse.csr_array(rows), center=center)
    expected = fit(X=rows, center=center)
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-12
    assert np.abs(found.transform(scipy.sparse.csr_array(NEW)) - expected.transform(NEW)).max() <= (
        1e-10
    )
    assert abs(found.certificate_.gap - expected.certificate_.gap) <= 1e-9


@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.05) * Matern(3.0), 40 * Laplacian(3.0)], ids=repr)
def test_float32_rows(kernel):
    found, expected = fit(X=X.astype(np.float32), kernel=kernel), fit(kernel=kernel)
    scores = found.transform(NEW.astype(np.float32))
    assert scores.dtype == found.eigenvalues_.dtype == np.float32
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-5
    size = np.abs(expected.transform(NEW)).max()
    assert np.abs(scores - expected.transform(NEW)).max() <= 1e-4 * size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frequencies_of_any_size(dtype):
    rough = fit(3, RandomFeatures(400), X.astype(dtype), kernel=Matern(1.0, nu=0.01))
    omega = rough.projection_.map.frequencies.omega
    assert np.abs(omega).max() > 1e60
    assert np.isfinite(rough.transform(NEW.astype(dtype))).all()
    Z = rough.projection_.map(X[:3].astype(dtype), dtype)
    assert np.abs(Z @ Z.T - np.eye(3)).max() <= 0.3


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.05) * Matern(3.0)], ids=repr)
def test_a_large_mean_costs_no_digits(kernel, center):
    apart = 2.0**27
    rows = np.round(X * 2**20) / 2**20
    found = fit(X=rows + apart, kernel=kernel, center=center)
    expected = fit(X=rows, kernel=kernel, center=center)
    assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-12
    near = found.transform(rows[:5] + apart)
    assert np.abs(np.abs(near) - np.abs(expected.transform(rows[:5]))).max() <= 1e-7


# Batches.


@pytest.mark.parametrize("method", [RandomFeatures(40), RandomFeatures(40, True, SVD())], ids=repr)
@pytest.mark.parametrize("weights", [None, WEIGHTS + 1], ids=["", "weights"])
def test_batches_are_all_rows(method, weights):
    model = KernelPCA(3, kernel=KERNEL, method=method, random_state=0)
    for at in (slice(0, 20), slice(20, 70), slice(70, 90)):
        model.partial_fit(X[at], sample_weight=None if weights is None else weights[at])
    expected = fit(3, method, weights=weights)
    assert np.abs(model.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-12
    assert np.abs(model.transform(NEW) - expected.transform(NEW)).max() <= 1e-10
    assert model.certificate_.captured.kind == "estimate"


# The certificate.


@pytest.mark.parametrize("kernel", [*ISOTROPIC[:4], *ISOTROPIC[6:10]], ids=repr)
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weights"])
@pytest.mark.parametrize("center", [True, False])
def test_captured_is_what_the_span_of_the_scores_holds(kernel, weights, center):
    for q in (3, 30):
        model = fit(3, RandomFeatures(q), weights=weights, kernel=kernel, center=center)
        values = plain.variances(kernel, X, weights, center)
        told, total = model.certificate_, values.sum()
        truth = held(model, kernel, X, weights, center) / total
        assert told.captured.kind == told.optimum_upper.kind == "bound"
        assert truth - 1e-6 <= told.captured <= truth + 1e-12
        assert told.captured <= values[:3].sum() / total <= told.optimum_upper + 1e-12


@pytest.mark.parametrize("certificate", [False, True])
@pytest.mark.parametrize("q", [3, 30])
def test_ratios_are_shares_of_the_features_variance(q, certificate):
    assert fit(None, RandomFeatures(q)).explained_variance_ratio_.sum() == pytest.approx(1.0)
    model = fit(2, RandomFeatures(q), certificate=certificate)
    _, values, *_ = linear(features(model, X))
    shares = model.explained_variance_ratio_
    assert np.abs(shares - values[:2] / values.sum()).max() <= 1e-12


def test_a_gap_that_is_asked_for():
    rows = np.random.default_rng(6).standard_normal((400, 6))
    found = fit(3, RandomFeatures(3000, orthogonal=True), rows, kernel=RBF(0.3), gap=0.1)
    assert found.certificate_.gap <= 0.1
    best = plain.variances(RBF(0.3), rows)
    assert found.certificate_.optimum_upper >= best[:3].sum() / best.sum() * (1 - 1e-9)
    with pytest.warns(match="gap=0.001 was requested.*Increase q"):
        fit(3, RandomFeatures(20), rows, gap=0.001)


def test_without_a_certificate_there_is_an_estimate_that_says_so():
    model = fit(3, certificate=False)
    told = model.certificate_
    assert told.captured.kind == told.gap.kind == "estimate"
    assert float(told.optimum_upper) == 1.0
    assert "a share of the features' variance" in str(told)
    total = linear(features(model, X))[1].sum()
    assert told.captured == pytest.approx(model.explained_variance_.sum() / total)


def test_landmarks_that_do_not_fit_judge_nothing():
    with config_context(memory="64KiB"):
        found = fit(2, RandomFeatures(2), X[:, :1]).certificate_
    assert found.captured.kind == "estimate" or found.captured <= 1.0
    assert fit(2, RandomFeatures(10)).certificate_.captured.kind == "bound"


def test_features_of_few_rows_that_do_not_fit_need_no_columns():
    """`Dot` is chosen only if its features fit; asked for by name, it says what it needs."""
    size = Size(400, 6, 2, kernel=True)
    with config_context(memory=9_000_000):
        assert RandomFeatures().cost(size).memory > 0
        with pytest.raises(MemoryError, match="reads features by columns"):
            RandomFeatures(linear=Dot()).cost(size)

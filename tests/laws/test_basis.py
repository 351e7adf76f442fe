"""Kernel PCA on a basis: what each method is by its definition, and where they are the same."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercer import KernelPCA, config_context, landmarks, metrics
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial
from mercer.methods import (
    Adaptive,
    Cholesky,
    Greedy,
    Improved,
    Nystrom,
    Reduced,
    Sparse,
    SparseL1,
    Subset,
)
from tests.catalogue import rows
from tests.kernel_catalogue import KERNELS, ROWS
from tests.laws import plain
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((90, 4)), RNG.standard_normal((25, 4))
WEIGHTS = RNG.integers(1, 4, len(X)).astype(float)
KERNEL = RBF(0.1)
ALL = [
    Subset(12),
    Subset(12, centroid="basis"),
    Subset(12, centroid="rows"),
    Subset(12, rank=8),
    Reduced(12),
    Improved(12),
    Nystrom(12),
    Nystrom(12, "kmeans"),
    Nystrom(12, on="basis"),
    Cholesky(12),
    Cholesky(12, on="rows"),
    Greedy(12),
    Sparse(12),
    SparseL1(),
    Adaptive(12),
]


def fit(k, method, X=X, weights=None, kernel=KERNEL, **settings):
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def axes(model):
    return np.asarray(model.projection_.components)


# All rows as the basis.


@pytest.mark.parametrize("row", rows([row for row in KERNELS if row.kernel.psd]))
@pytest.mark.parametrize(
    "method",
    [Subset, Cholesky, Greedy, Reduced, Nystrom, lambda n: Nystrom(n, on="basis")],
    ids=["subset", "cholesky", "greedy", "reduced", "nystrom", "nystrom on the basis"],
)
def test_all_rows_as_the_basis_are_exact(row, method):
    rng = np.random.default_rng(1)
    X, new = ROWS[row.rows](rng, 40), ROWS[row.rows](rng, 9)
    weights = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    k = 2 if row.name != "separable" else 1
    # Every kernel meets every method, and both meet every one of these.
    odd = sum(map(ord, row.name)) % 2
    for w, center in (((None, True), (weights, False)), ((weights, True), (None, False)))[odd]:
        values, scores = plain.scores(row.kernel, X, new, k, w, center)
        found = fit(k, method(40), X, w, row.kernel, center=center)
        assert np.abs(found.eigenvalues_ - values).max() <= 1e-8 * values[0]
        assert same(found.transform(new), scores) <= 1e-6


@pytest.mark.parametrize("method", [Reduced, Nystrom, lambda **how: Nystrom(on="basis", **how)])
def test_all_rows_given_by_their_numbers_count_by_their_weights(method):
    values, scores = plain.scores(KERNEL, X, NEW, 3, WEIGHTS)
    found = fit(3, method(select=range(len(X))), weights=WEIGHTS)
    assert np.abs(found.eigenvalues_ - values).max() <= 1e-10 * values[0]
    assert same(found.transform(NEW), scores) <= 1e-8


# Pivots.


@pytest.mark.parametrize("kernel", [RBF(0.1), Laplacian(0.3), Polynomial(3), Matern(2.0)])
@pytest.mark.parametrize("method", [Cholesky, Greedy])
def test_on_pivots_they_are_subset(kernel, method):
    at, _ = plain.pivots(kernel(X), 15)
    problem, _ = KernelPCA(3, kernel=kernel)._plan_fit(KernelPCA()._rows(X, reset=True))
    assert list(landmarks.PivotedCholesky().select(problem, 15).at) == list(at)
    for w, center in ((None, True), (WEIGHTS, False)):
        found = fit(3, method(15), weights=w, kernel=kernel, center=center)
        assert np.array_equal(found.X_fit_, X[at])
        assert np.array_equal(
            axes(found), axes(fit(3, Subset(select=at), X, w, kernel, center=center))
        )
        _, mean, kappa, Z = plain.subset(kernel, X, X[at], w, center)
        assert np.abs(found.eigenvalues_ - kappa[:3]).max() <= 1e-9 * kappa[0]
        assert same(found.transform(NEW), (kernel(NEW, X[at]) - mean) @ Z[:, :3]) <= 1e-7


@pytest.mark.parametrize("center", [True, False])
def test_cholesky_over_all_rows_has_the_eigenvectors_of_the_decomposition(center):
    K = KERNEL(X)
    at, G = plain.pivots(K, 15)
    C = G - center * G.mean(axis=0)
    values, V = scipy.linalg.eigh(C @ C.T)
    values, V = values[::-1][:3], V[:, ::-1][:, :3]
    found = fit(3, Cholesky(15, on="rows"), center=center)
    assert np.abs(found.eigenvalues_ - values).max() <= 1e-10 * values[0]
    assert same(axes(found), V / np.sqrt(values)) <= 1e-8
    # About the mean's projection on the pivots' span.
    shares = scipy.linalg.solve(K[np.ix_(at, at)], K[at].mean(axis=1)) * center
    expected = (KERNEL(NEW, X) - K[:, at] @ shares) @ (V / np.sqrt(values))
    assert same(found.transform(NEW), expected) <= 1e-8
    left = K.trace() - 2 * (K[:, at] @ shares).sum() + len(X) * shares @ K[np.ix_(at, at)] @ shares
    y = found.transform(X)
    overlaps = axes(found).T @ K @ axes(found)
    left -= np.einsum("ij,ij->", y, np.linalg.solve(overlaps, y.T).T)
    assert found.reconstruction_error(X).sum() == pytest.approx(left, rel=1e-9)


# Subset.


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize("points", [X[:20], NEW[:20] * 0.7], ids=["rows", "others"])
def test_subset_solves_its_eigenproblem(center, weights, points):
    _, mean, kappa, Z = plain.subset(KERNEL, X, points, weights, center)
    found = fit(4, Subset(select=points), weights=weights, center=center)
    assert np.abs(found.eigenvalues_ - kappa[:4]).max() <= 1e-11 * kappa[0]
    assert same(found.transform(NEW), (KERNEL(NEW, points) - mean) @ Z[:, :4]) <= 1e-9


def test_no_other_axes_in_the_span_leave_less():
    """The optimum over random axes in the span, about random centres in it."""
    kernel, points = RBF(0.2), X[:8]
    K, h = kernel(points), kernel(X, points)
    least = metrics.empirical_error(fit(2, Subset(select=points), kernel=kernel), X)
    _, mean, _, Z = plain.subset(kernel, X, points)
    shares = np.linalg.solve(K, mean)
    rng = np.random.default_rng(3)
    for size in (1e-4, 1e-2, 1.0):
        A = scipy.linalg.orth(
            np.linalg.cholesky(K).T @ (Z[:, :2] + size * rng.standard_normal((8, 2)))
        )
        A, s = np.linalg.solve(np.linalg.cholesky(K).T, A), shares + size * rng.standard_normal(8)
        y = (h - K @ s) @ A
        error = np.mean(1.0 - 2 * h @ s + s @ K @ s - (y**2).sum(axis=1))
        assert error > least


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize(("kernel", "features"), plain.FEATURES, ids=["linear", "quadratic"])
def test_the_error_in_one_pass_is_the_error(weights, kernel, features):
    """(1/n)[tr K − 1ᵀN₀1/n − Σξ] against the distances of features from the operator's."""
    at, w = np.arange(0, 90, 15), plain.counts(X, weights)
    found = fit(3, Subset(select=at), weights=weights, kernel=kernel)
    K, h = kernel(X), kernel(X, X[at])
    N = h @ np.linalg.pinv(kernel(X[at]), hermitian=True, rcond=1e-11) @ h.T
    n = w.sum()
    formula = (w @ np.diag(K) - w @ N @ w / n - found.eigenvalues_.sum()) / n
    F, B = features(X), features(X[at])
    P = B.T @ axes(found) @ axes(found).T @ B
    apart = F - found.projection_.mean_coef @ B
    direct = np.average(((apart - apart @ P) ** 2).sum(axis=1), weights=w)
    assert np.allclose(P @ P, P, atol=1e-9)  # a projector
    assert formula == pytest.approx(direct, rel=1e-8)
    assert metrics.empirical_error(found, X, weights) == pytest.approx(direct, rel=1e-8)
    assert w @ found.reconstruction_error(X) / n == pytest.approx(direct, rel=1e-8)


@pytest.mark.parametrize("method", [Subset, Greedy, Cholesky])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_operator_is_a_projector(method, dtype):
    many = np.repeat(X[:30], 3, axis=0).astype(dtype)
    for kernel in (RBF(0.1), RBF(1e-3), Polynomial(3)):
        found = fit(4, method(50), many, kernel=kernel)
        A, B = axes(found), np.asarray(found.projection_.basis, np.float64)
        assert np.abs(A.T @ kernel(B) @ A - np.eye(4)).max() <= 1e-5
        for centroid in ("rows", "basis"):
            A = axes(fit(4, Subset(50, centroid=centroid), many, kernel=kernel))[:50]
            B = np.asarray(fit(4, Subset(50), many, kernel=kernel).projection_.basis, np.float64)
            assert np.abs(A.T @ kernel(B) @ A - np.eye(4)).max() <= 1e-5


def test_a_covariance_of_lower_rank():
    points = X[:12]
    K = KERNEL(points)
    S, mean, _, _ = plain.subset(KERNEL, X, points)
    full = fit(3, Subset(select=points))
    assert same(axes(fit(3, Subset(select=points, rank=12))), axes(full)) <= 1e-9
    _, G = plain.pivots(S, 5)
    values, W = scipy.linalg.eigh(G.T @ np.linalg.solve(K, G))
    values, W = values[::-1][:3], W[:, ::-1][:, :3]
    found = fit(3, Subset(select=points, rank=5))
    assert np.abs(found.eigenvalues_ - values).max() <= 1e-9 * values[0]
    expected = (KERNEL(NEW, points) - mean) @ np.linalg.solve(K, G @ W) / np.sqrt(values)
    assert same(found.transform(NEW), expected) <= 1e-8
    assert found.certificate_.captured <= full.certificate_.captured


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize(("kernel", "features"), plain.FEATURES, ids=["linear", "quadratic"])
@pytest.mark.parametrize("centroid", ["span", "rows", "basis"])
def test_three_centroids(weights, kernel, features, centroid):
    """Axes and distances about each, from the features themselves."""
    at, w = np.arange(0, 90, 15), plain.counts(X, weights)
    F, B, new = features(X), features(X[at]), features(NEW)
    Q = scipy.linalg.orth(B.T)
    mean = w @ F / w.sum()
    centre = {"span": mean @ Q @ Q.T, "rows": mean, "basis": B.mean(axis=0)}[centroid]
    y = (F - centre) @ Q
    values, V = scipy.linalg.eigh((y * w[:, None]).T @ y)
    values, U = values[::-1][:2], Q @ V[:, ::-1][:, :2]
    found = fit(2, Subset(select=at, centroid=centroid), weights=weights, kernel=kernel)
    assert np.abs(found.eigenvalues_ - values).max() <= 1e-9 * values[0]
    left = new - centre
    assert same(found.transform(NEW), left @ U) <= 1e-8
    distances = ((left - left @ U @ U.T) ** 2).sum(axis=1)
    assert np.abs(found.reconstruction_error(NEW) - distances).max() <= 1e-9 * distances.max()
    if centroid == "rows":
        same_axes = axes(fit(2, Subset(select=at), weights=weights, kernel=kernel))
        assert np.array_equal(axes(found)[: len(at)], same_axes)
        assert not axes(found)[len(at) :].any()


# The others.


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
def test_improved_by_its_definition(weights):
    points, w = X[:15], plain.counts(X, weights)
    _, mean, kappa, Z = plain.subset(KERNEL, X, points, weights)
    found = fit(3, Improved(select=points), weights=weights)
    expected = (KERNEL(NEW, points) - mean) @ Z[:, :3] / np.sqrt(kappa[:3])
    assert same(found.transform(NEW), expected) <= 1e-9
    assert np.abs(w @ found.transform(X) ** 2 - 1).max() <= 1e-10  # unit length over the rows
    overlaps = axes(found).T @ KERNEL(points) @ axes(found)  # of TZ diag(1/κ) ZᵀT*
    assert np.abs(overlaps * kappa[:3] - np.eye(3)).max() <= 1e-8
    subset = fit(3, Subset(select=points), weights=weights)
    assert float(found.certificate_.captured) == pytest.approx(float(subset.certificate_.captured))
    assert same(found.reconstruction_error(NEW), subset.reconstruction_error(NEW)) <= 1e-9


@pytest.mark.parametrize("center", [True, False])
def test_reduced_is_exact_on_the_basis_alone(center):
    at = np.arange(0, 90, 6)
    found = fit(3, Reduced(select=at), center=center)
    alone = fit(3, "exact", X[at], center=center)
    assert np.allclose(found.explained_variance_, alone.explained_variance_, rtol=1e-10)
    assert np.abs(found.transform(NEW) - alone.transform(NEW)).max() <= 1e-10


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("points", [np.arange(0, 90, 6), NEW[:15] * 0.8], ids=["rows", "others"])
def test_nystrom_by_its_definition(center, points):
    """λ̂ = (n/q)λ_q, û = √(q/n) K̃_nq u_q/λ_q, centred with the mean of the basis."""
    basis = X[points] if points.ndim == 1 else points
    n, q = len(X), len(basis)
    share = np.full(q, 1 / q) * center

    def centred(A, B):
        rows, columns = KERNEL(A, basis) @ share, KERNEL(B, basis) @ share
        return KERNEL(A, B) - rows[:, None] - columns + share @ KERNEL(basis) @ share

    values, u = scipy.linalg.eigh(centred(basis, basis))
    values, u = values[::-1][:3], u[:, ::-1][:, :3]
    extended = np.sqrt(q / n) * centred(X, basis) @ u / values
    for on, expected in (
        ("basis", centred(NEW, basis) @ u / np.sqrt(values)),
        ("rows", centred(NEW, X) @ extended / np.sqrt(n / q * values)),
    ):
        found = fit(3, Nystrom(select=points, on=on), center=center)
        assert np.abs(found.eigenvalues_ - n / q * values).max() <= 1e-10 * values[0]
        assert same(found.transform(NEW), expected) <= 1e-8


def test_nystrom_counts_what_each_point_stands_for():
    """Drawn by k(x,x)², n/q is far off; by the chances it is right on average."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3)) * rng.uniform(0.2, 2.0, (200, 1))
    kernel = Polynomial(2)
    truth = plain.variances(kernel, X, center=False)[0] * (len(X) - 1)

    def drawn(**how):
        method = Nystrom(25, "diagonal", on="basis", **how)
        fits = [
            fit(1, method, X, kernel=kernel, center=False, random_state=seed) for seed in range(40)
        ]
        return np.array([found.eigenvalues_[0] for found in fits]) / truth

    printed, weighed = drawn(weigh=False), drawn()
    assert abs(weighed.mean() - 1) <= 0.1
    assert printed.mean() - 1 >= 1.0
    # The printed form: n/q of the landmarks' own eigenvalue.
    found = fit(1, Nystrom(25, "diagonal", weigh=False, on="basis"), X, kernel=kernel, center=False)
    own = plain.variances(kernel, found.X_fit_, center=False)[0] * 24
    assert found.eigenvalues_[0] == pytest.approx(200 / 25 * own, rel=1e-10)


def test_nystrom_weighed_by_its_definition():
    """Ω^{1/2}K̃_yΩ^{1/2}, with the chances of the draw found again."""
    sizes = np.diag(Polynomial(2)(X)) ** 2
    found = fit(2, Nystrom(10, "diagonal", on="basis"), kernel=Polynomial(2))
    at = np.array([np.flatnonzero((point == X).all(axis=1))[0] for point in found.X_fit_])
    omega = 1 / landmarks.base.inclusion_probabilities(sizes, 10)[at]
    values, scores = plain.scores(Polynomial(2), X[at], NEW, 2, omega)
    assert np.abs(found.eigenvalues_ - values).max() <= 1e-9 * values[0]
    assert same(found.transform(NEW), scores) <= 1e-8


# The source's theorem: no axes of the basis alone leave less than subset's.


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(4, 30)), draw(st.integers(1, 4))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    if draw(st.booleans()):
        X = X[rng.integers(0, max(2, n // 2), n)]
    kernel = draw(st.sampled_from([RBF(0.1), RBF(2.0), Linear(), Polynomial(2), Laplacian(0.5)]))
    m = draw(st.integers(2, min(n, 8)))
    at = rng.integers(0, n, m) if draw(st.booleans()) else rng.permutation(n)[:m]
    weights = rng.integers(1, 5, n).astype(float) if draw(st.booleans()) else None
    return X, kernel, at, draw(st.integers(1, m)), weights


@given(cases())
@example((np.arange(6.0)[:, None], RBF(2.0), np.array([0, 0, 5]), 1, None))
@settings(max_examples=100)
@pytest.mark.filterwarnings("ignore:.*above rounding error")
def test_subset_leaves_no_more_than_reduced(case):
    X, kernel, at, k, weights = case
    reduced = fit(k, Reduced(select=at), X, weights, kernel)
    k = max(1, reduced.n_components_)
    subset = fit(k, Subset(select=at), X, weights, kernel)
    scale = 1e-9 * np.diag(kernel(X)).mean()
    error = metrics.empirical_error
    # Each about its own centre.
    assert error(subset, X, weights) <= error(reduced, X, weights) + scale
    # Both about the rows' mean.
    variance = [plain.held(each, kernel, X, weights) for each in (subset, reduced)]
    assert variance[0] >= variance[1] - scale * len(X)
    if weights is None:  # both about the mean of the basis
        about = fit(k, Subset(select=at, centroid="basis"), X, None, kernel)
        assert error(about, X) <= error(reduced, X) + scale


# The same answer, whatever is done beside it.


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_the_same_bits_again(method):
    found = [fit(3, method, gap=0.2, random_state=7) for _ in range(2)]
    assert np.array_equal(axes(found[0]), axes(found[1]))
    assert np.array_equal(found[0].X_fit_, found[1].X_fit_)
    assert found[0].certificate_.gap == found[1].certificate_.gap


@pytest.mark.parametrize("method", ALL[:-1], ids=repr)
def test_any_block(method):
    expected = fit(3, method, weights=WEIGHTS)
    for block_rows in (1, 7, 1000):
        with config_context(block_rows=block_rows):
            found = fit(3, method, weights=WEIGHTS)
            assert np.array_equal(found.X_fit_, expected.X_fit_)
            assert np.abs(found.transform(NEW) - expected.transform(NEW)).max() <= 1e-11
        assert np.abs(found.eigenvalues_ - expected.eigenvalues_).max() <= 1e-11
        assert found.explained_variance_ratio_.sum() == pytest.approx(
            expected.explained_variance_ratio_.sum(), rel=1e-9
        )


@pytest.mark.parametrize(
    "method",
    [
        Subset(select=NEW),
        Subset(select=NEW, centroid="basis"),
        Subset(select=NEW, centroid="rows"),
        Subset(select=NEW, rank=9),
        Improved(select=NEW),
        Nystrom(select=NEW),
        Nystrom(select=NEW, on="basis"),
        Cholesky(12),
        Cholesky(12, on="rows"),
        Greedy(12),
    ],
    ids=str,
)
def test_weights_are_counts(method):
    weights = np.random.default_rng(5).integers(0, 3, len(X))
    found = fit(3, method, weights=weights)
    twice = fit(3, method, np.repeat(X, weights, axis=0))
    assert np.abs(found.eigenvalues_ - twice.eigenvalues_).max() <= 1e-9 * twice.eigenvalues_[0]
    assert np.abs(found.transform(NEW) - twice.transform(NEW)).max() <= 1e-8
    assert np.allclose(found.reconstruction_error(NEW), twice.reconstruction_error(NEW), atol=1e-8)
    assert float(found.certificate_.captured) == pytest.approx(
        float(twice.certificate_.captured), rel=1e-7
    )


@pytest.mark.parametrize(
    "method",
    [
        Subset(select=[0, 3, 4, 7, 9]),
        Subset(select=NEW[:8]),
        Subset(select=NEW[:8], centroid="basis"),
        Subset(select=NEW[:8], rank=6),
    ],
    ids=["rows", "points", "basis", "rank"],
)
@pytest.mark.parametrize("cuts", [[10], [10, 11, 50], [89]], ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_batches_are_all_rows(method, cuts, offset):
    weights = np.random.default_rng(6).integers(0, 3, len(X)).astype(float)
    weights[[10, 89]] = 2.0  # a batch counts for something
    if np.ndim(method.select) == 2:
        method = type(method)(**{**method.get_params(deep=False), "select": method.select + offset})
    for w, kernel, center in (
        (None, Linear(), True),
        (weights, RBF(0.1), True),
        (None, RBF(0.1), False),
    ):
        if not center and offset:
            continue
        kpca = KernelPCA(2, kernel=kernel, method=method, center=center)
        for part in np.split(np.arange(len(X)), cuts):
            kpca.partial_fit(X[part] + offset, sample_weight=None if w is None else w[part])
        whole = fit(2, method, X + offset, w, kernel, center=center)
        assert np.abs(kpca.eigenvalues_ - whole.eigenvalues_).max() <= 1e-9 * whole.eigenvalues_[0]
        apart = np.abs(kpca.transform(NEW + offset) - whole.transform(NEW + offset)).max()
        assert apart <= 1e-9 * (1 + offset / 1e3)
        gap = float(whole.certificate_.gap)
        assert kpca.certificate_.gap >= gap * (1 - 1e-6) - 1e-10  # without a sample of rows

"""Kernel PCA from a sketch of the kernel matrix: Algorithm 6 as it is written, and its polish."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse

from mercer import KernelPCA, config_context
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Subsequence, Tanh
from mercer.linalg import gram, upper_blocks
from mercer.methods import ConvergenceWarning, Sketch
from mercer.sketches import (
    FeatureGrouping,
    Gaussian,
    Hadamard,
    Hashing,
    PixelGrouping,
    Resize,
    SparseSign,
)
from tests.catalogue import cycled, rows, with_spectrum
from tests.kernel_catalogue import KERNELS, ROWS
from tests.laws import plain
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
NEW = RNG.standard_normal((20, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]
WEIGHTS = RNG.integers(1, 4, len(X)).astype(float)
MAPS = [
    Gaussian(30),
    Hashing(30),
    Hashing(30, hashes=5),
    Hashing(30, hashes=5, scaling="paper"),
    Hashing(30, hashes=2, signed=False),
    SparseSign(30),
    Hadamard(30),
]
KERNEL = RBF(0.05)


def fit(k, method, X=X, weights=None, kernel=KERNEL, **settings):
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def centred(K, weights=None, center=True):
    """√w K̃ √w."""
    w = np.ones(len(K)) if weights is None else weights
    share = w / w.sum() * center
    K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    return np.sqrt(w)[:, None] * K * np.sqrt(w)


def algorithm_6(K, W):
    """Eigenvalues of positive sign, and unit eigenvectors, by the letter."""
    Z = K @ W
    values, U = np.linalg.eigh(Z.T @ Z)
    values, U = values[::-1], U[:, ::-1]
    there = values > 1e-12 * values[0]
    values, V = values[there], K @ (Z @ U[:, there])
    signs = np.array([np.sign(z @ K @ z) for z in (Z @ U[:, there]).T])
    V, values = V[:, signs > 0], np.sqrt(values[signs > 0])
    return values, V / np.linalg.norm(V, axis=0)


# The algorithm.


@pytest.mark.parametrize("sketch", MAPS, ids=repr)
@pytest.mark.parametrize("kernel", [RBF(0.05), Tanh(0.1), Polynomial(2)], ids=repr)
def test_algorithm_6(sketch, kernel):
    W = sketch.matrix_for(len(X)).toarray()
    for weights, center in ((None, True), (WEIGHTS, True), (None, False), (WEIGHTS, False)):
        values, V = algorithm_6(centred(kernel(X), weights, center), W)
        found = fit(3, Sketch(sketch, polish=False), X, weights, kernel, center=center)
        assert np.abs(found.eigenvalues_ / values[:3] - 1).max() <= 1e-9
        w = plain.counts(X, weights)
        alpha = np.sqrt(w)[:, None] * V[:, :3] / np.sqrt(values[:3])
        assert same(found.projection_.components, alpha) <= 1e-7
        share = w / w.sum() * center
        h = kernel(NEW, X) - kernel(X) @ share
        h = h - (h @ share)[:, None]
        assert same(found.transform(NEW), h @ alpha) <= 1e-7


def test_the_map_is_the_one_that_rows_go_through():
    for sketch in MAPS:
        matrix = sketch.matrix_for(90)
        assert np.abs(matrix.toarray() - matrix.apply(np.eye(90))).max() <= 1e-15


@pytest.mark.parametrize("polish", [False, True])
def test_products_with_the_matrix(polish, monkeypatch):
    """Two of them, three with the polish; no matrix of all pairs is made."""
    walks = []

    class Counted(gram.SymmetricProduct):
        def __init__(self, V, *args, **how):
            super().__init__(V, *args, **how)
            walks.append(V.shape)

        def spawn(self):
            part = super().spawn()
            walks.pop()
            return part

    monkeypatch.setattr(gram, "SymmetricProduct", Counted)
    fit(3, Sketch(Gaussian(20), polish=polish))
    assert walks == [(90, 21), (90, 20), (90, 20)][: 3 if polish else 2]


# As many columns as rows.


@pytest.mark.parametrize(
    "row", rows(KERNELS, "rbf", "polynomial", "cosine", "separable", "hellinger", "substring")
)
@pytest.mark.parametrize(
    "method",
    [
        Sketch(),
        Sketch(Gaussian(64)),
        Sketch(Hadamard(64)),
        Sketch(Hadamard(64), polish=False),
        Sketch(Gaussian(500, identity=True), polish=False),
    ],
    ids=["ours", "gaussian", "orthogonal", "orthogonal, not polished", "identity"],
)
def test_as_many_columns_as_rows_are_exact(row, method):
    rng = np.random.default_rng(1)
    X, new = ROWS[row.rows](rng, 64), ROWS[row.rows](rng, 9)
    weights = np.where(np.arange(64) % 3 == 0, 2.0, 1.0)
    k = 2 if row.name != "separable" else 1
    for w, center in ((None, True), (weights, True), (weights, False)):
        values, scores = plain.scores(row.kernel, X, new, k, w, center)
        found = fit(k, method, X, w, row.kernel, center=center)
        assert np.abs(found.eigenvalues_ - values).max() <= 1e-8 * values[0]
        assert same(found.transform(new), scores) <= 1e-6


@pytest.mark.parametrize("sketch", MAPS[:4] + MAPS[5:], ids=repr)
def test_the_polish_is_exact_where_the_sketch_holds_the_axes(sketch):
    """A kernel of 20 dimensions, and a sketch of 30 columns, lose nothing."""
    kernel = Polynomial(2)
    exact, found = fit(4, "exact", kernel=kernel), fit(4, Sketch(sketch), kernel=kernel)
    assert np.abs(found.eigenvalues_ / exact.eigenvalues_ - 1).max() <= 1e-10
    assert np.abs(found.transform(NEW) - exact.transform(NEW)).max() <= 1e-7  # signs too
    assert found.certificate_.gap <= 1e-9
    A = found.projection_.components
    assert np.abs(A.T @ kernel(X) @ A - np.eye(4)).max() <= 1e-9
    # The rank is seen: all axes are those there are, and a share needs no more columns.
    assert fit(None, Sketch(sketch), kernel=kernel).n_components_ == 20
    several = fit(0.999, Sketch(sketch), kernel=kernel).n_components_
    assert several == fit(0.999, "exact", kernel=kernel).n_components_


# Signs.


@pytest.mark.parametrize("polish", [False, True])
@pytest.mark.parametrize("center", [False, True])
def test_signs_on_an_indefinite_matrix(polish, center):
    """√λ has lost them; against a dense decomposition."""
    values = np.concatenate([[9.0, 4.0, 2.0], [-8.0, -3.0], 0.01 * np.linspace(-1, 1, 123)])
    K = with_spectrum(np.random.default_rng(2), values)
    truth = np.linalg.eigvalsh(centred(K, center=center))
    positive, negative = truth[::-1][:3], truth[:2]
    for sketch in (Hadamard(128), Gaussian(60)):  # orthogonal, and not
        found = fit(3, Sketch(sketch, polish=polish), K, kernel="precomputed", center=center)
        whole = sketch.q == 128
        error = 1e-10 if whole else 1e-3 if polish else 0.5
        assert np.abs(found.eigenvalues_ / positive - 1).max() <= error
        below = found.certificate_.negative * 127
        near = 1e-10 if whole else 1e-3 if polish else 0.5
        assert np.abs(below[:2] / negative - 1).max() <= near
        assert (below >= truth[: len(below)] - 1e-9).all()  # eigenvalues are no less negative
        assert "not positive semi-definite" in str(found.certificate_)
        every = fit(None, Sketch(sketch, polish=polish), K, kernel="precomputed", center=center)
        assert (every.eigenvalues_ > 0).all()
        assert every.n_components_ < sketch.q


def test_a_matrix_with_no_positive_eigenvalue_has_no_axes():
    K = -with_spectrum(np.random.default_rng(3), np.linspace(1, 2, 40))
    with pytest.raises(ValueError, match="too few components of positive variance"):
        fit(2, Sketch(Gaussian(10)), K, kernel="precomputed", center=False)
    with pytest.warns(UserWarning, match="no component has variance"):
        found = fit(2, Sketch(Gaussian(40)), K, kernel="precomputed")
    assert found.n_components_ == 0
    assert fit(None, Sketch(Gaussian(10)), K, kernel="precomputed").n_components_ == 0


# Quality.


@pytest.mark.parametrize(
    "sketch",
    [
        pytest.param(Gaussian, marks=pytest.mark.slow),
        lambda q, **how: Hashing(q, 5, **how),
        pytest.param(SparseSign, marks=pytest.mark.slow),
    ],
)
def test_the_error_falls_as_one_over_the_root_of_q(sketch):
    """Of Z's first singular value: λ₁√(1 + N(0, 2)/q), nearly, where others are small."""
    K = with_spectrum(np.random.default_rng(4), 0.5 ** np.arange(250))

    def error(q):
        draws = [
            fit(1, Sketch(sketch(q, random_state=seed), polish=False), K, None, "precomputed")
            for seed in range(40)
        ]
        truth = fit(1, "exact", K, None, "precomputed").eigenvalues_[0]
        return np.sqrt(np.mean([(one.eigenvalues_[0] / truth - 1) ** 2 for one in draws]))

    few, many = error(15), error(240)
    assert 0.33 <= few / many / 4 <= 2.0
    assert many <= 2.0 / np.sqrt(2 * 240)


def test_hashes_as_printed_are_too_small():
    """1/l for 1/√l: all eigenvalues √l too small, the axes the same."""
    right, printed = (
        fit(3, Sketch(Hashing(30, hashes=5, scaling=scaling), polish=False))
        for scaling in ("unbiased", "paper")
    )
    assert np.allclose(printed.eigenvalues_ * np.sqrt(5), right.eigenvalues_)
    polished = fit(3, Sketch(Hashing(30, hashes=5, scaling="paper")))
    exact = fit(3, "exact")
    assert np.abs(polished.eigenvalues_ / exact.eigenvalues_ - 1).max() <= 1e-4


# Certificates.

DATA = {
    "normal": RNG.standard_normal((100, 5)),
    "duplicates": np.repeat(RNG.standard_normal((25, 4)), 4, axis=0),
    "large mean": RNG.standard_normal((90, 4)) + 1e4,
    "clusters": np.repeat([[0.0], [20.0]], 45, axis=0) + 0.01 * RNG.standard_normal((90, 3)),
    "small": 1e-4 * RNG.standard_normal((80, 4)),
    "outlier": RNG.standard_normal((90, 3)) * np.where(np.arange(90) == 50, 100.0, 1.0)[:, None],
}


@pytest.mark.filterwarnings("ignore:.*above rounding error")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", DATA)
def test_certificates_against_the_truth(name, dtype):
    """The bound is never below the optimum; captured is never more than the axes hold."""
    X = DATA[name].astype(dtype)
    turn = list(DATA).index(name) + (dtype == "float32")
    kernels = [RBF(0.1), RBF(1e-4), RBF(10.0), Linear(), Polynomial(3), Laplacian(0.3), Matern(2.0)]
    for i, kernel in enumerate(kernels):
        weights = None if i % 2 else np.random.default_rng(i).integers(0, 3, len(X)).astype(float)
        center = i % 3 != 2
        values = plain.variances(kernel, X, weights, center)
        own = np.abs(kernel.diag(X.astype(float))).mean()
        for j, sketch in enumerate((Gaussian(4), Hashing(20, 2), SparseSign(10))):
            for polish in (False, True):
                if (i + j + polish + turn) % 2:  # every pair, not every product
                    continue
                found = fit(2, Sketch(sketch, polish), X, weights, kernel, center=center)
                certificate, total = found.certificate_, found.projection_.total_variance
                best, k = values[: found.n_components_].sum(), found.n_components_
                held = plain.held(found, kernel, X, weights, center) if k else 0.0
                captured, upper = (
                    float(f) * total for f in (certificate.captured, certificate.optimum_upper)
                )
                assert certificate.gap.kind == "bound"
                told = f"{kernel} {found.method}"
                assert upper >= best - (1e-14 * own + 1e-9 * best), told
                assert captured <= held + 1e-14 * own + 1e-6 * best, told
                assert total == pytest.approx(values.sum(), rel=1e-7, abs=1e-13 * own), told
                if polish and k and not np.isnan(certificate.residuals).any():
                    assert captured >= 0.999 * held - 1e-10 * own, told
                    apart = np.abs(found.explained_variance_[:, None] - values).min(axis=1)
                    coarse = 1e-6 * values[0] if dtype == "float32" else 0.0
                    assert (apart <= certificate.residuals + 1e-14 * own + coarse).all(), told


@pytest.mark.parametrize("polish", [False, True])
@pytest.mark.parametrize("kernel", [Tanh(0.1), Tanh(0.5, -1.0)], ids=repr)
def test_certificates_of_an_indefinite_kernel(kernel, polish):
    truth = np.linalg.eigvalsh(centred(kernel(X)))[::-1] / (len(X) - 1)
    for sketch in MAPS[:4]:
        found = fit(3, Sketch(sketch, polish), kernel=kernel)
        certificate = found.certificate_
        assert certificate.captured.kind == ("bound" if polish else "estimate")
        best = truth[:3].sum() / truth.sum()
        assert float(certificate.optimum_upper) >= best * (1 - 1e-9)
        assert float(certificate.captured) <= best * (1 + 1e-9)
        assert len(certificate.negative)
        assert (certificate.negative >= truth[::-1][: len(certificate.negative)] - 1e-12).all()
        assert (found.eigenvalues_ > 0).all()


@pytest.mark.parametrize("kernel", [RBF(0.05), Polynomial(3), Tanh(0.1)], ids=repr)
def test_inner_products_of_axes(kernel):
    """Of the polished ones they are orthonormal; of others nearly known."""
    for polish in (False, True):
        fitted = fit(3, Sketch(Gaussian(30), polish), kernel=kernel).projection_
        A = fitted.components
        overlaps = np.eye(3) if polish else fitted.overlaps
        assert np.abs(A.T @ kernel(X) @ A - overlaps).max() <= (1e-8 if polish else 0.02)


@pytest.mark.parametrize("sketch", [None, Gaussian(12), Hashing(12, 3), SparseSign(12)], ids=repr)
def test_a_gap_grows_the_sketch(sketch):
    many, kernel = np.random.default_rng(5).standard_normal((400, 6)), RBF(0.3)
    found = fit(5, Sketch(sketch), many, kernel=kernel, gap=0.01)
    assert found.certificate_.gap <= 0.01
    assert found.certificate_.gap.kind == "bound"
    best = plain.variances(kernel, many)[:5].sum()
    assert plain.held(found, kernel, many) >= 0.99 * best
    if sketch is not None:
        rough = fit(5, Sketch(sketch, polish=False), many, kernel=kernel, gap=0.01)
        assert rough.certificate_.gap <= 0.01
        assert plain.held(rough, kernel, many) >= 0.99 * best


def test_a_sketch_does_not_grow_beyond_the_budget():
    many = np.random.default_rng(6).standard_normal((1500, 6))
    with config_context(memory="20MiB"), pytest.warns(ConvergenceWarning, match="gap"):
        found = fit(5, Sketch(Gaussian(10)), many, kernel=RBF(1.0), gap=1e-6)
    assert found.certificate_.gap > 1e-6


# How many axes.


def test_rules_and_few_rows():
    kernel = RBF(0.3)
    exact = fit(0.9, "exact", kernel=kernel)
    found = fit(0.9, "sketch", kernel=kernel)
    assert found.n_components_ == exact.n_components_
    with pytest.raises(ValueError, match=r"Fraction\(0.99\) cannot be met.*Use a larger q"):
        fit(0.99, Sketch(Gaussian(8)), kernel=kernel)
    for n in (2, 3):
        assert fit(None, "sketch", X[:n]).n_components_ == n - 1
        assert fit(1, Sketch(Gaussian(1)), X[:n]).n_components_ == 1
    with pytest.warns(UserWarning, match="only 2 components have variance"):
        assert fit(5, Sketch(Gaussian(3)), X[:3]).n_components_ == 2
    several = np.random.default_rng(7).standard_normal((300, 20))
    grown = fit(0.9, "sketch", several, kernel=RBF(0.1))  # more than the first 200 columns tell
    assert grown.n_components_ == fit(0.9, "exact", several, kernel=RBF(0.1)).n_components_ > 150


@pytest.mark.parametrize("polish", [False, True])
def test_rows_that_are_all_the_same(polish):
    same_rows = np.full((30, 3), 0.7)
    with pytest.warns(UserWarning, match="no component has variance"):
        found = fit(2, Sketch(Gaussian(5), polish), same_rows)
    assert found.n_components_ == 0
    assert found.transform(same_rows[:4]).shape == (4, 0)
    assert found.certificate_.gap == 0.0


# The same answer, whatever is done beside it.


@cycled(sketch=[None, *MAPS], polish=[True, False])
def test_any_block_and_the_same_bits(sketch, polish, monkeypatch):
    method = Sketch(sketch, polish)
    many = np.vstack([X, X[:70] + 0.1, X[:70] - 0.2])
    w = np.random.default_rng(8).integers(1, 3, len(many)).astype(float)
    expected, again = (fit(3, method, many, w) for _ in range(2))
    assert np.array_equal(expected.projection_.components, again.projection_.components)
    assert expected.certificate_.gap == again.certificate_.gap
    for strip in (1, 7, 1000):
        size = lambda n, itemsize, strip=strip, **_: min(n, strip)  # noqa: E731
        monkeypatch.setattr(upper_blocks, "upper_block_rows", size)
        with config_context(block_rows=strip):
            found = fit(3, method, many, w)
            assert np.abs(found.transform(NEW) - expected.transform(NEW)).max() <= 1e-9
        assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-11


def test_the_seed_of_the_estimator_draws_our_map():
    many = np.random.default_rng(9).standard_normal((250, 8))
    a, b, c = (fit(3, Sketch(polish=False), many, random_state=s).eigenvalues_ for s in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.allclose(a, c)
    a, b = (fit(3, Sketch(Gaussian(30)), random_state=s).eigenvalues_ for s in (0, 1))
    assert np.array_equal(a, b)


def test_weights_are_counts():
    """In distribution: of the weighed matrix a Gaussian map is one of repeated rows."""
    weights = np.random.default_rng(10).integers(0, 4, len(X))
    repeated, kernel = np.repeat(X, weights, axis=0), Polynomial(2)
    for center in (True, False):
        found = fit(3, Sketch(Gaussian(30)), weights=weights, kernel=kernel, center=center)
        twice = fit(3, Sketch(Gaussian(30)), repeated, kernel=kernel, center=center)
        assert np.abs(found.eigenvalues_ / twice.eigenvalues_ - 1).max() <= 1e-9
        assert np.abs(found.transform(NEW) - twice.transform(NEW)).max() <= 1e-7
    whole = centred(kernel(X), weights)
    given = fit(3, Sketch(Hashing(30)), kernel(X), weights, "precomputed")
    assert np.allclose(given.eigenvalues_, np.linalg.eigvalsh(whole)[::-1][:3])


@pytest.mark.parametrize("polish", [False, True])
def test_rows_of_every_form(polish, tmp_path):
    method = Sketch(Hashing(30, 3), polish)
    expected = fit(3, method)
    np.save(tmp_path / "x.npy", X)
    torch = pytest.importorskip("torch")
    for made, new in (
        (scipy.sparse.csr_array(X), scipy.sparse.csr_array(NEW)),
        (np.asfortranarray(X), NEW),
        (tmp_path / "x.npy", NEW),
        (torch.asarray(X), torch.asarray(NEW)),
    ):
        found = fit(3, method, made)
        assert np.allclose(np.asarray(found.eigenvalues_), expected.eigenvalues_, rtol=1e-9)
        assert np.abs(np.asarray(found.transform(new)) - expected.transform(NEW)).max() <= 1e-7
    single = fit(3, method, X.astype(np.float32))
    assert single.eigenvalues_.dtype == np.float32
    assert np.abs(single.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-5
    K = KERNEL(X)
    given = fit(3, method, K, kernel="precomputed")
    assert np.abs(given.transform(KERNEL(NEW, X)) - expected.transform(NEW)).max() <= 1e-9
    kept = X.copy()
    fit(3, method, kept)
    assert np.array_equal(kept, X)
    assert np.array_equal(expected.X_fit_, X)


@pytest.mark.parametrize("polish", [False, True])
def test_a_large_mean_and_nearly_equal_kernels_cost_float32_no_digits(polish):
    single, method = (X + 1e3).astype(np.float32), Sketch(Gaussian(30), polish)
    for kernel in (RBF(1e-4), Linear(), RBF(0.05)):
        found, expected = (
            fit(3, method, made, kernel=kernel) for made in (single, single.astype(float))
        )
        assert np.abs(found.eigenvalues_ / expected.eigenvalues_ - 1).max() <= 1e-6


def test_strings():
    words = ["".join(RNG.choice(list("abc"), 6)) for _ in range(50)]
    kernel = Subsequence(2, 0.5)
    values, scores = plain.scores(kernel, words, ["abc", "cab"], 2)
    found = fit(2, Sketch(Gaussian(40)), words, kernel=kernel)
    assert np.abs(found.eigenvalues_ / values - 1).max() <= 1e-3
    assert same(found.transform(["abc", "cab"]), scores) <= 0.05
    assert np.isfinite(found.reconstruction_error(["abc", ""])).all()


@pytest.mark.parametrize("polish", [False, True])
def test_memory_of_the_vectors_alone(polish):
    """2500 rows have 48 MiB of kernels; 40 vectors of them 0.8 MiB."""
    many = np.random.default_rng(11).standard_normal((2500, 4))
    fit(3, Sketch(Gaussian(20), polish))  # what is loaded once
    method, budget = Sketch(Gaussian(40), polish), 12 * 2**20
    with config_context(memory=budget):
        planned = KernelPCA(3, kernel=KERNEL, method=method).plan(many).candidates[0].cost.memory
        tracemalloc.start()
        fit(3, method, many)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak <= planned <= budget
    with (
        config_context(memory="1MiB"),
        pytest.raises(MemoryError, match=r"40 columns\) needs"),
    ):
        fit(3, method, many)


# Bad input.


def test_groups_of_rows_that_agree():
    """Pairs of equal rows: one stands for both, and nothing is lost."""
    pairs = np.repeat(X[:40], 2, axis=0)
    sketch = FeatureGrouping(40).fit(centred(KERNEL(pairs)))
    exact = fit(3, "exact", pairs)
    for polish in (False, True):
        found = fit(3, Sketch(sketch, polish), pairs)
        assert np.abs(found.eigenvalues_ / exact.eigenvalues_ - 1).max() <= 1e-7


@pytest.mark.parametrize(
    ("sketch", "said"),
    [
        (Resize((9, 10), (3, 5)), "whose columns are rows, not pixels. Use Gaussian"),
        (PixelGrouping((9, 10)), "whose columns are rows, not pixels. Use Gaussian"),
        (FeatureGrouping(9), "learns its groups from the kernel matrix.*Fit it to that matrix"),
        ("gaussian", "sketch='gaussian' must be a map such as"),
        (Gaussian("many"), "q='many' must be an integer"),
    ],
    ids=repr,
)
def test_maps_that_mean_nothing_here(sketch, said):
    for method in ("fit", "plan"):
        with pytest.raises(ValueError, match=said):
            getattr(KernelPCA(2, kernel=KERNEL, method=Sketch(sketch)), method)(X)


@pytest.mark.filterwarnings("ignore:overflow")
def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"Gaussian\(3\) has 3 columns, too few for 5 components"):
        fit(5, Sketch(Gaussian(3)))
    with pytest.raises(
        ValueError, match=r"Gaussian\(20\) has 20 columns, too few for 90 components"
    ):
        fit(500, Sketch(Gaussian(20)))
    for scale in (1e-100, 1e80, 1e100):
        found = fit(2, Sketch(Gaussian(10)), X * scale, kernel=Linear())
        assert found.certificate_.gap <= 1e-10
    with pytest.raises(ValueError, match="q=100 is more than the 90 columns"):
        fit(5, Sketch(Gaussian(100)))
    with pytest.raises(ValueError, match=r"fitted to 5 columns|was fitted to 5"):
        fit(2, Sketch(FeatureGrouping(3).fit(X)))
    with pytest.raises(ValueError, match="gives NaN or infinity for 90 rows"):
        fit(2, Sketch(Gaussian(10)), X * 1e200, kernel=Polynomial(3))
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7, column 1"):
        fit(2, Sketch(Gaussian(10)), bad)
    assert not hasattr(KernelPCA(2, method="sketch"), "partial_fit")


def test_the_plan():
    many = np.broadcast_to(0.0, (20_000, 50))
    with config_context(memory="1GiB"):
        plans = [
            KernelPCA(10, kernel="rbf", method=Sketch(Gaussian(300), polish)).plan(many)
            for polish in (False, True)
        ]
    few, all_three = (plan.candidates[0].cost for plan in plans)
    assert (few.passes, all_three.passes) == (3, 4)
    assert all_three.products > 1.3 * few.products
    assert all_three.memory < 8.0 * 20_000**2 / 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "sketch (300 columns)" in str(plans[0])

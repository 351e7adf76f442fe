"""The partition bound against dense truth: never below the optimum, and close to it."""

import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from mercer import PCA, KernelPCA, config_context, load, save, threads
from mercer.certificate import Evidence, Figure
from mercer.certificate import partition as module
from mercer.certificate.block_gram import BlockGram
from mercer.certificate.partition import BlockSums, with_blocks, with_rows
from mercer.data import ArraySource, Block, Fold, as_source
from mercer.data.shuffled import Shuffled
from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial, Tanh
from mercer.linalg.top_sum import top_sum
from mercer.methods import (
    Cholesky,
    FrequentDirections,
    Improved,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Subset,
)
from mercer.problem import KernelProblem, Problem
from mercer.rules import Count
from mercer.sketches import Gaussian
from tests.catalogue import cycled, pairwise, with_spectrum
from tests.kernel_catalogue import KERNELS, ROWS
from tests.laws import plain
from tests.laws.test_bounds import SPECTRA

# The sum of the largest eigenvalues of one matrix.


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("spectrum", SPECTRA)
def test_top_sums_are_bounded_from_above(spectrum, dtype):
    for seed in range(3):
        rng = np.random.default_rng([seed, len(spectrum)])
        for N in (1, 2, 30, 300, 420):
            values = np.sort(SPECTRA[spectrum](N, rng))[::-1]
            A = with_spectrum(rng, values)
            A = ((A + A.T) / 2).astype(dtype)
            true = np.maximum(scipy.linalg.eigvalsh(A.astype(np.float64))[::-1], 0.0)
            for k in {1, 3, 10, N // 4, N}:
                if not 1 <= k <= N:
                    continue
                bound, best = top_sum(A, k, rng), true[:k].sum()
                # Rounded to float32, the matrix itself is not positive semi-definite.
                rounding = 1e-14 if dtype == "float64" else 1e-7
                assert bound >= best - rounding * N * values.max()
                assert bound <= max(true.sum(), 0.0) * (1 + 1e-6) + 1e-12
                if spectrum in ("fast decay", "slow decay", "rank deficient"):
                    assert bound <= best * 1.01 + 1e-12


def test_a_top_sum_of_a_large_matrix_is_close():
    """Within one part in a hundred, also where eigenvalues decay slowly."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 30)) * np.arange(1, 31) ** -0.7
    A = RBF(0.05)(X)
    true = scipy.linalg.eigvalsh(A)[::-1]
    for dtype in ("float64", "float32"):
        for k in (1, 10, 40):
            bound = top_sum(A.astype(dtype), k, rng)
            assert true[:k].sum() <= bound * (1 + 1e-12) <= 1.01 * true[:k].sum()


@pytest.mark.parametrize("guess", [0.0, 1e-300, 1e300])
def test_a_bad_guess_only_loosens_the_bound(guess, monkeypatch):
    """Whatever the search finds, the bound holds."""
    rng = np.random.default_rng(1)
    A = with_spectrum(rng, 1.0 / np.arange(1, 301))
    search = module.top_sum.__globals__["_ritz_vectors"]

    def worse(A, k, rng):
        V, *_ = search(A, k, rng)
        return np.linalg.qr(V + rng.standard_normal(V.shape))[0], guess, True

    monkeypatch.setitem(module.top_sum.__globals__, "_ritz_vectors", worse)
    values = scipy.linalg.eigvalsh(A)[::-1]
    for k in (1, 5):
        assert top_sum(A, k, rng) >= values[:k].sum()


# Partitions.


def nasty_rows(rng, n, d):
    """Rows of one of several kinds that make partitions loose or rounding large."""
    X = rng.standard_normal((n, d))
    kind = rng.integers(8)
    if kind == 0:
        X = X[np.arange(n) // 4]
    elif kind == 1:
        X[: n // 3] += 20.0
    elif kind == 2:
        X = X[np.argsort(X[:, 0])]
    elif kind == 3:
        X = X * 10.0 ** -np.arange(d) + 100.0
    elif kind == 4:
        X[0] *= 1e3
    elif kind == 5:
        X = np.ones((n, d)) * (np.arange(n) % 2)[:, None]
    elif kind == 6:
        X = X * 1e-5
    return X


def evidence_of(k, total):
    """Evidence that knows the total variance and nothing else."""
    high = Figure(total)
    none = np.zeros(k)
    return Evidence(Figure(0.0), {}, (Figure(0.0), high), none, none, none)


def partitioned(problem, kernel, k, rows, total, *, center=None):
    """The evidence of blocks of so many rows."""
    gram = BlockGram(kernel, problem.source.dtype, problem.center if center is None else center)
    sums = BlockSums(gram, k, 0)
    shuffled = Shuffled(problem.source, rows, np.random.default_rng(k))
    return with_blocks(problem, evidence_of(k, total), shuffled.fold(sums))


@pytest.mark.parametrize("seed", range(60))
def test_no_partition_is_below_the_optimum(seed):
    """Any kernel, weights, rows, size of blocks and number of components; float32 too."""
    rng = np.random.default_rng(seed)
    table = [row for row in KERNELS if row.kernel.psd is True and row.rows in ROWS]
    for row in rng.permutation(len(table))[:6]:
        row = table[row]
        n = int(rng.integers(2, 60))
        X = nasty_rows(rng, n, 6) if row.rows == "vectors" else ROWS[row.rows](rng, n)
        if not isinstance(X, list) and rng.random() < 0.4:
            X = X.astype(np.float32)
        weights = rng.integers(0, 4, n).astype(float) if rng.random() < 0.4 else None
        if weights is not None and weights.sum() < 2:
            weights = None
        center, k = bool(rng.random() < 0.7), int(rng.integers(1, min(n, 8) + 1))
        source = as_source(X).weighted(weights)
        problem = KernelProblem(source, Count(k), center=center, kernel=row.kernel)
        values = plain.variances(row.kernel, X, weights, center)
        own = np.abs(row.kernel.diag(plain.double(X))).mean()
        if not np.isfinite(values).all() or not own > 0:
            continue
        total = values.sum() + 1e-13 * own
        rows = int(rng.integers(1, n + 1))
        evidence = partitioned(problem, row.kernel, k, rows, total)
        slack = 1e-12 * own
        assert float(evidence.optimum) >= values[:k].sum() - slack, (row.name, n, rows, k)
        assert float(evidence.total[0]) <= values.sum() + slack, (row.name, n, rows)
        if rows == n and problem.source.dtype == np.float64:
            assert float(evidence.optimum) == pytest.approx(values[:k].sum(), rel=1e-6, abs=slack)


@cycled(seed=range(24), sparse=[False, True])
def test_no_partition_of_rows_is_below_the_optimum_of_linear_pca(seed, sparse):
    """About the exact mean, about an inexact one, and about the means of the blocks."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 80)), int(rng.integers(1, 12))
    X = nasty_rows(rng, n, d)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    w = plain.counts(X, weights)
    mean = w @ X / w.sum()
    deviation = rng.uniform(0.5, 2.0, d)
    Z = (X - mean) / deviation * np.sqrt(w)[:, None]
    values = np.linalg.svd(Z, compute_uv=False) ** 2 / (w.sum() - 1)
    k = int(rng.integers(1, min(n, d) + 1))
    rows = scipy.sparse.csr_array(X) if sparse else X
    problem = Problem(as_source(rows).weighted(weights), Count(k), scale=True)
    for about in (mean, mean + 1e-3):
        gram = BlockGram(Linear(), np.dtype(np.float64), sparse, about, deviation)
        shuffled = Shuffled(problem.source, int(rng.integers(1, n + 1)), rng)
        sums = shuffled.fold(BlockSums(gram, k, 0))
        total = values.sum() * (1 + 1e-12)
        evidence = with_blocks(problem, evidence_of(k, total), sums)
        bound = float(min(evidence.bounds.values(), key=float))
        scale = np.abs(X / deviation).max() ** 2
        assert bound >= values[:k].sum() * (1 - 1e-10) - 1e-13 * scale * n


def test_larger_blocks_are_tighter():
    X = np.random.default_rng(2).standard_normal((2400, 8))
    kernel, k = RBF(0.05), 5
    values = plain.variances(kernel, X)
    problem = KernelProblem(ArraySource(X), Count(k), kernel=kernel)
    gaps = []
    for rows in (150, 300, 600, 1200):
        found = partitioned(problem, kernel, k, rows, values.sum())
        gaps.append(float(found.optimum) / values[:k].sum() - 1.0)
    assert all(0.25 < b / a < 0.65 for a, b in itertools.pairwise(gaps))
    assert 0.0 < gaps[-1] < 0.02
    low, _ = found.total
    assert 0.999 * values.sum() <= low <= values.sum()


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "tiny float32", "huge float32"])
def test_rows_about_the_origin(kind, weighed):
    """Blocks of more rows than columns: the products of the columns, at any scale."""
    rng = np.random.default_rng(15)
    X = rng.standard_normal((300, 7)) * (rng.random((300, 7)) < 0.4)
    unit = {"tiny float32": 1e-25, "huge float32": 1e18}.get(kind, 1.0)
    rows = (X * unit).astype(np.float32) if unit != 1.0 else X
    exact = rows.astype(np.float64) / unit
    weights = rng.integers(0, 4, 300).astype(float) if weighed else None
    w = plain.counts(X, weights)
    values = np.linalg.eigvalsh((exact * w[:, None]).T @ exact)[::-1] / (w.sum() - 1)
    given = scipy.sparse.csr_array(rows) if kind == "sparse" else rows
    settings = {"kernel": "linear", "center": False, "method": Subset(7), "random_state": 0}
    models = [KernelPCA(2, certificate="tight", **settings)]
    if unit == 1.0:
        sketch = Sketch(Gaussian(3, random_state=0))
        models.append(PCA(2, svd_solver=sketch, center=False, certificate="tight"))
    for model in models:
        certificate = model.fit(given, sample_weight=weights).certificate_
        optimum = float(certificate.optimum) / unit**2
        assert values[:2].sum() * (1 - 1e-6) <= optimum <= values[:2].sum() * 1.2


def test_blocks_of_nearly_equal_rows():
    """The variance is the rounding of the rows: centering must not lose it."""
    rng = np.random.default_rng(16)
    for size in (1.0, 1e8):
        X = size * (1.0 + 1e-15 * rng.integers(0, 3, (800, 1)))
        values = plain.variances(Linear(), (X - X.mean()) * 2.0**40)[:1] / 2.0**80
        for rows in (800, 200):
            problem = KernelProblem(ArraySource(X), Count(1), kernel=Linear())
            found = partitioned(problem, Linear(), 1, rows, values.sum())
            low, high = found.total
            assert found.optimum >= values[0] * (1 - 1e-9)
            assert low <= values.sum() * (1 + 1e-9) <= high * (1 + 1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sketches_far_from_the_origin_explain_no_more_than_the_best(dtype):
    """The mean of the rows is rounded, and so are the components that are returned."""
    rng = np.random.default_rng(17)
    for seed in range(10):
        X = (rng.standard_normal((65, 18)) * 1e-13 + 1e3).astype(dtype)
        X[:, :3] = rng.standard_normal((65, 3)) * 10.0 ** -rng.integers(0, 12)
        method = Sketch(Gaussian(10, random_state=seed), polish=False)
        model = PCA(7, svd_solver=method).fit(X)
        rows = X.astype(np.longdouble)
        rows -= rows.mean(axis=0)
        scatter = np.asarray(rows.T @ rows / 64, np.float64)
        best = scipy.linalg.eigvalsh(scatter)[::-1][: model.n_components_].sum()
        V = np.linalg.qr(model.components_.T.astype(np.float64))[0]
        held = np.trace(V.T @ scatter @ V)
        certificate = model.certificate_
        assert certificate.explained <= held * (1 + 1e-12) + 1e-14 * best
        assert certificate.optimum >= best * (1 - 1e-12)


@pytest.mark.parametrize("order", ["f4 f8 f8", "f8 f4 f8"])
def test_batches_of_mixed_precision(order):
    """Far from the origin, where float32 would lose all of the float64 batches."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1200, 5)) * [1, 0.9, 0.8, 0.7, 0.6] * 0.01 + 1e5
        parts = [X[:100], X[100:600], X[600:]]
        parts = [x.astype(kind) for x, kind in zip(parts, order.split(), strict=True)]
        stream = KernelPCA(2, kernel=RBF(5e3), method=Subset(50), random_state=0)
        for part in parts:
            stream.partial_fit(part)
        values = plain.variances(RBF(5e3), np.vstack([x.astype(np.float64) for x in parts]))
        certificate = stream.certificate_
        assert certificate.optimum >= values[:2].sum() * (1 - 1e-9)
        low, high = certificate.total
        assert low <= values.sum() * (1 + 1e-9) <= high * (1 + 1e-8)
        # The first batch says in which precision the others may be.
        assert (certificate.optimum.confidence < 1.0) == (order[:2] == "f4")


@pytest.mark.parametrize("gamma", [1e-7, 1e-6, 1e-5])
def test_nearly_constant_kernels_in_float32(gamma):
    """The variance is far below the rounding of the kernel values."""
    X = np.random.default_rng(18).standard_normal((3000, 10)).astype(np.float32)
    values = plain.variances(RBF(gamma), X.astype(np.float64))
    certificate = KernelPCA(3, kernel=RBF(gamma), method=Subset(200)).fit(X).certificate_
    low, high = certificate.total
    assert 0.0 <= low <= values.sum() * (1 + 1e-9) <= high * (1 + 1e-8)
    assert certificate.optimum >= values[:3].sum() * (1 - 1e-9)
    assert certificate.explained <= values[:3].sum() * (1 + 1e-9)


def test_the_total_about_the_origin_is_known():
    X = np.random.default_rng(19).standard_normal((900, 8))
    certificate = KernelPCA(3, kernel=RBF(0.3), method=Subset(50), center=False).fit(X).certificate_
    low, high = certificate.total
    assert low <= high <= low * (1 + 1e-9)
    assert low <= 900 / 899 * (1 + 1e-12) <= high * (1 + 1e-12)


def test_a_stream_far_from_the_origin_is_bounded_closely():
    """Rows of linear PCA are centered before products are formed."""
    rng = np.random.default_rng(20)
    X = (rng.standard_normal((1500, 40)) * 0.9 ** np.arange(40) + 1e3).astype(np.float32)
    stream = PCA(3, svd_solver=FrequentDirections(6))
    for part in np.array_split(X, 3):
        stream.partial_fit(part)
    rows = X - X.mean(axis=0, dtype=np.float64)
    best = np.linalg.svd(rows, compute_uv=False)[:3] ** 2 / 1499
    optimum = float(stream.certificate_.optimum)
    assert best.sum() * (1 - 1e-6) <= optimum <= 1.1 * best.sum()


@pytest.mark.parametrize("share", [0.01, 0.04])
@pytest.mark.parametrize("k", [10, 50])
def test_rounding_costs_a_top_sum_little(k, share):
    """What rounding may hide is allowed for before a bound on the rest is chosen."""
    rng = np.random.default_rng(24)
    X = (rng.standard_normal((1100, 300)) * np.arange(1, 301) ** -0.6).astype(np.float32)
    A, _ = BlockGram(RBF(0.1), np.dtype(np.float32), True)(Block(0, X, None))
    values = scipy.linalg.eigvalsh(A.astype(np.float64))[::-1]
    for seed in range(3):
        bound = top_sum(A, k, np.random.default_rng(seed), share * values[k - 1])
        assert values[:k].sum() <= bound * (1 + 1e-6) <= 1.01 * values[:k].sum()


def test_flat_spectra_are_decomposed():
    X = np.random.default_rng(21).standard_normal((900, 40))
    A = RBF(1.0)(X)
    values = scipy.linalg.eigvalsh(A)[::-1]
    for k in (1, 20, 100):
        bound = top_sum(A, k, np.random.default_rng(0))
        assert values[:k].sum() <= bound * (1 + 1e-12) <= values[:k].sum() * 1.002


@pytest.mark.parametrize("method", ["sparse_l1", "directions"])
def test_other_methods_have_a_close_bound(method):
    rng = np.random.default_rng(22)
    X = rng.standard_normal((1000, 30)) * 0.8 ** np.arange(30)
    if method == "directions":
        model = PCA(3, svd_solver=FrequentDirections(5)).fit(X)
        values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / 999
        assert model.certificate_.gap <= 0.2
    else:
        model = KernelPCA(3, kernel=RBF(0.05), method=method, random_state=0).fit(X)
        values = plain.variances(RBF(0.05), X)
    assert any("block" in name for name in model.certificate_.bounds)
    assert values[:3].sum() * (1 - 1e-9) <= model.certificate_.optimum <= 1.1 * values[:3].sum()


def test_advice_where_there_are_no_blocks(monkeypatch):
    monkeypatch.setattr("mercer.planning.Plan.block_rows", 0)
    X = np.random.default_rng(23).standard_normal((1500, 6))
    settings = {"kernel": RBF(0.5), "method": Subset(60), "random_state": 0}
    text = str(KernelPCA(3, **settings).fit(X).certificate_)
    assert "certificate='tight' computes them" in text
    for more in ({"certificate": "tight"}, {"certificate": False}, {"gap": 0.99}):
        assert "computes them" not in str(KernelPCA(3, **more, **settings).fit(X).certificate_)


# Blocks.


class Starts(Fold):
    """Keeps the rows of every block."""

    def __init__(self):
        self.blocks = {}

    def add(self, block):
        self.blocks[block.start] = (np.asarray(block.rows).copy(), block.weights)

    def merge(self, other):
        self.blocks |= other.blocks

    def spawn(self):
        return Starts()

    def arrays(self):
        return {}

    def restore(self, arrays):
        pass


@pytest.mark.parametrize("memory", ["64MiB", "4GiB"])
@pytest.mark.parametrize("workers", [1, 2])
def test_every_row_is_in_one_block_whatever_the_threads(memory, workers, monkeypatch):
    X = np.arange(3000.0).reshape(1500, 2)
    weights = np.arange(1500) % 3.0
    monkeypatch.setattr(threads, "workers", lambda: workers)
    with config_context(memory=memory):
        source = Shuffled(ArraySource(X).weighted(weights), 400, np.random.default_rng(0))
        blocks = source.fold(Starts()).blocks
    assert [len(rows) for rows, _ in map(blocks.get, sorted(blocks))] == [400, 400, 200]
    rows = np.vstack([blocks[start][0] for start in sorted(blocks)])
    assert np.array_equal(rows, X[source.order])
    assert np.array_equal(np.sort(source.order), np.flatnonzero(weights))
    assert np.array_equal(np.concatenate([blocks[s][1] for s in sorted(blocks)]), source.weights)


@pytest.mark.parametrize("kind", ["array", "npy", "sparse", "mapped", "strings", "file"])
def test_rows_are_shuffled_wherever_they_are(kind, tmp_path):
    X = np.round(np.random.default_rng(3).standard_normal((700, 3)), 3)
    source = as_source(X)
    if kind == "npy":
        np.save(tmp_path / "x.npy", X)
        source = as_source(tmp_path / "x.npy")
    elif kind == "file":
        np.savetxt(tmp_path / "x.csv", X, delimiter=",", header="a,b,c", comments="")
        source = as_source(tmp_path / "x.csv")
    elif kind == "sparse":
        source = as_source(scipy.sparse.csr_array(X))
    elif kind == "mapped":
        source = source.map(lambda block: 2.0 * block.rows, 3)
    elif kind == "strings":
        source = as_source([str(x) for x in X[:, 0]])
    shuffled = Shuffled(source, 128, np.random.default_rng(1))
    rows = shuffled.read(100, 300)
    if kind == "sparse":
        assert hasattr(rows, "tocsr")
        rows = rows.toarray()
    expected = X[shuffled.order[100:300]] * (2.0 if kind == "mapped" else 1.0)
    if kind == "strings":
        expected = [str(x) for x in expected[:, 0]]
    assert np.array_equal(rows, expected)


def test_blocks_of_sorted_rows_are_as_good():
    """Rows ordered by class: each block has rows of all classes."""
    rng = np.random.default_rng(4)
    X = np.vstack([rng.standard_normal((300, 4)) + 6 * c for c in range(8)])
    kernel = RBF(0.05)
    values = plain.variances(kernel, X)
    best, excesses = values[:4].sum(), []
    for rows in (X, X[rng.permutation(len(X))]):
        problem = KernelProblem(ArraySource(rows), Count(4), kernel=kernel)
        bound = partitioned(problem, kernel, 4, 400, values.sum()).optimum
        excesses.append(float(bound) / best - 1.0)
    assert excesses[0] == pytest.approx(excesses[1], rel=0.25)
    assert 0.0 <= max(excesses) < 0.1


# Certificates.


def truth_of(model, X, kernel, weights=None, center=True):
    return plain.variances(kernel, X, weights, center)[: model.n_components_].sum()


METHODS = [
    Subset(60),
    Subset(60, centroid="basis"),
    Reduced(60),
    Improved(60),
    Nystrom(60),
    Nystrom(60, on="basis"),
    Cholesky(60),
    Cholesky(60, on="rows"),
    Sketch(Gaussian(60, random_state=0)),
    Sketch(Gaussian(60, random_state=0), polish=False),
    RandomFeatures(100),
]


@pairwise(
    method=METHODS,
    kernel=[RBF(0.05), Laplacian(0.3), Matern(2.0)],
    dtype=["float64", "float32"],
    weighed=[False, True],
    center=[True, False],
)
def test_every_method_is_bounded_and_close(method, kernel, dtype, weighed, center):
    """Two thousand rows in blocks: the bound holds, and is far below that of the span."""
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((1500, 6)) * 0.6 ** np.arange(6)).astype(dtype)
    weights = rng.integers(1, 4, 1500).astype(float) if weighed else None
    model = KernelPCA(
        3, kernel=kernel, method=method, center=center, random_state=0, certificate=True
    )
    model.fit(X, sample_weight=weights)
    certificate = model.certificate_
    best = truth_of(model, X, kernel, weights, center)
    assert certificate.optimum.kind == "bound"
    assert best * (1 - 1e-9) <= certificate.optimum <= 1.1 * best
    if not isinstance(method, (Sketch, RandomFeatures)):  # whose eigensolver or span knows more
        assert "block" in certificate.optimum_from
    low, high = certificate.total
    total = plain.variances(kernel, X, weights, center).sum()
    assert low * (1 - 1e-9) <= total <= high * (1 + 1e-9)
    if certificate.explained.kind == "bound":
        assert certificate.explained <= best * (1 + 1e-9)
        assert certificate.gap <= 0.25


@pytest.mark.parametrize("method", [RandomFeatures(40), RandomFeatures(40, orthogonal=True)])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features_explain_no_less_than_is_stated(method, weighed, dtype):
    """The variance in the kernel's feature space along the scores, tr QᵀK̃Q."""
    rng, kernel = np.random.default_rng(6), RBF(0.1)
    X = rng.standard_normal((400, 5)).astype(dtype)
    weights = rng.integers(1, 4, 400).astype(float) if weighed else None
    model = KernelPCA(4, kernel=kernel, method=method, random_state=0)
    model.fit(X, sample_weight=weights)
    w = plain.counts(X, weights)
    K, share = kernel(X.astype(float)), w / w.sum()
    K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    A = np.sqrt(w)[:, None] * K * np.sqrt(w) / (w.sum() - 1)
    y = np.asarray(model.transform(X.astype(float)), float)
    y = (y - share @ y) * np.sqrt(w)[:, None]
    Q = np.linalg.qr(y)[0]
    held = np.trace(Q.T @ A @ Q)
    explained = model.certificate_.explained
    assert explained.kind == "bound"
    assert 0.98 * held <= explained <= held * (1 + 1e-6)


def test_components_over_all_rows_explain_no_less_than_is_stated(monkeypatch):
    """Without a product with the kernel matrix, along the span of the landmarks."""
    from mercer.methods.kernel import products

    rng, kernel = np.random.default_rng(7), RBF(0.05)
    X = rng.standard_normal((300, 4))
    monkeypatch.setattr(products, "AFFORDABLE", 0.0)
    for center in (True, False):
        method = Cholesky(40, on="rows")
        model = KernelPCA(3, kernel=kernel, method=method, center=center).fit(X)
        inside = plain.held(model, kernel, X, center=center)
        assert model.certificate_.explained.kind == "bound"
        assert 0.98 * inside <= model.certificate_.explained <= inside * (1 + 1e-9)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("rows", ["dense", "float32", "far", "sparse", "huge"])
@pytest.mark.parametrize("polish", [True, False])
def test_sketches_of_rows_are_bounded(rows, scale, polish):
    rng = np.random.default_rng(8)
    X = rng.standard_normal((900, 60)) * 0.9 ** np.arange(60)
    X[rng.random(X.shape) < 0.5] = 0.0
    given = {
        "dense": X,
        "float32": X.astype(np.float32),
        "far": (X + 1e3).astype(np.float32),
        "sparse": scipy.sparse.csr_array(X),
        "huge": X * 1e120,
    }[rows]
    unit = 1e120 if rows == "huge" and not scale else 1.0
    dense = np.asarray(given.toarray() if rows == "sparse" else given, np.float64) / unit
    dense = dense - dense.mean(axis=0)
    if scale:
        dense = dense / dense.std(axis=0, ddof=1)
    s = np.linalg.svd(dense, compute_uv=False) ** 2 / 899
    method = Sketch(Gaussian(20, random_state=0), polish=polish)
    model = PCA(4, svd_solver=method, scale=scale, random_state=0).fit(given)
    certificate, best = model.certificate_, s[:4].sum()
    assert certificate.gap.kind == "bound"
    assert best * (1 - 1e-6) <= certificate.optimum / unit**2 <= 1.12 * best
    V = model.projection_.components
    V = np.linalg.qr(np.asarray(V, np.float64))[0]
    held = np.linalg.norm(dense @ V) ** 2 / 899
    assert 0.99 * held <= certificate.explained / unit**2 <= held * (1 + 1e-5)


def test_a_gap_makes_blocks_grow_no_more_than_needed(monkeypatch):
    monkeypatch.setattr("mercer.planning.Plan.block_rows", 300)
    rng = np.random.default_rng(9)
    X = rng.standard_normal((3000, 6))
    settings = {"kernel": RBF(0.1), "method": Subset(300), "random_state": 0}
    loose = KernelPCA(3, **settings).fit(X).certificate_
    tight = KernelPCA(3, certificate="tight", **settings).fit(X).certificate_
    wanted = (float(loose.gap) + 2.0 * float(tight.gap)) / 3.0
    asked = KernelPCA(3, gap=wanted, **settings).fit(X).certificate_
    assert tight.gap <= asked.gap <= wanted < loose.gap
    none = KernelPCA(3, certificate=False, **settings).fit(X).certificate_
    assert none.optimum_from == "the span of 300 points"
    assert none.gap >= loose.gap


@pytest.mark.parametrize("kernel", [Tanh(0.5, -1.0), "precomputed"])
def test_no_bound_is_claimed_where_none_holds(kernel):
    X = np.random.default_rng(10).standard_normal((200, 4))
    X = RBF(0.1)(X) if kernel == "precomputed" else X
    model = KernelPCA(2, kernel=kernel, method=Subset(30), random_state=0).fit(X)
    assert model.certificate_.gap.kind == "estimate"
    assert not any("block" in name for name in model.certificate_.bounds)


def test_likely_gaps_are_near_the_truth():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((2500, 6))
    for kernel in (RBF(0.05), Laplacian(0.2), Polynomial(2)):
        model = KernelPCA(4, kernel=kernel, method=Subset(100), random_state=0).fit(X)
        best = truth_of(model, X, kernel)
        true = 1.0 - plain.held(model, kernel, X) / best
        likely = model.certificate_.gap_estimate
        assert likely.kind == "estimate"
        assert true <= model.certificate_.gap + 1e-12
        if kernel == Polynomial(2):  # of which a hundred points span all rows
            assert np.isnan(likely) or likely <= 1e-6
            continue
        # Eigenvalues that are equal, as those of these rows, are split more slowly than 1/s.
        assert 0.5 * true - 0.003 <= likely <= 1.5 * true + 0.015


# Streams.


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("model", ["subset", "directions"])
def test_batches_are_blocks(model, weighed, tmp_path):
    rng = np.random.default_rng(12)
    X = rng.standard_normal((1200, 30)) * 0.8 ** np.arange(30)
    w = rng.integers(1, 4, 1200).astype(float) if weighed else None
    kernel = RBF(0.05) if model == "subset" else Linear()
    if model == "subset":
        stream = KernelPCA(3, kernel=kernel, method=Subset(80), random_state=0)
    else:
        stream = PCA(3, svd_solver=FrequentDirections(10))
    for start in range(0, 1200, 300):
        part = slice(start, start + 300)
        stream.partial_fit(X[part], sample_weight=None if w is None else w[part])
        save(stream, tmp_path / "stream.mercer")
        stream = load(tmp_path / "stream.mercer")
        seen = slice(0, start + 300)
        weights = None if w is None else w[seen]
        best = truth_of(stream, X[seen], kernel, weights)
        certificate = stream.certificate_
        assert any("block" in name for name in certificate.bounds)
        assert best * (1 - 1e-9) <= certificate.optimum <= 1.15 * best
        assert certificate.optimum.kind == "bound"


def test_a_failed_batch_leaves_the_bound():
    X = np.random.default_rng(13).standard_normal((400, 4))
    stream = KernelPCA(3, kernel=RBF(0.1), method=Subset(50), random_state=0).partial_fit(X)
    before = stream.certificate_
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        stream.partial_fit(bad)
    assert stream.certificate_ is before
    again = KernelPCA(3, kernel=RBF(0.1), method=Subset(50), random_state=0).partial_fit(X)
    a, b = (each.partial_fit(X[::-1]).certificate_ for each in (stream, again))
    assert float(a.optimum) == float(b.optimum)


def test_blocks_have_equal_sizes():
    gram = BlockGram(RBF(), np.dtype(np.float64), True)
    for rows, blocks in ((250, 4), (5000, 1), (600, 2)):
        sums = with_rows(BlockSums(gram, 1, 0, rows), ArraySource(np.zeros((1001, 2))))
        assert sums.blocks == blocks


@pytest.mark.parametrize("weighed", [False, True])
def test_chunks_of_a_cluster_are_mixed(weighed):
    """Sorted rows in sorted chunks: the bound is that of shuffled rows."""
    dask = pytest.importorskip("dask.array")
    rng = np.random.default_rng(14)
    X = np.vstack([rng.standard_normal((300, 4)) + 6 * c for c in range(8)])
    weights = rng.integers(1, 4, len(X)).astype(float) if weighed else None
    kernel, bounds = RBF(0.05), []
    best = plain.variances(kernel, X, weights)[:4].sum()
    for rows in (X, dask.from_array(X, chunks=(480, 4))):
        source = as_source(rows).weighted(weights)
        gram = BlockGram(kernel, np.dtype(np.float64), True)
        sums = with_rows(BlockSums(gram, 4, 0, 400), source)
        problem = KernelProblem(source, Count(4), kernel=kernel)
        total = plain.variances(kernel, X, weights).sum()
        bounds.append(float(with_blocks(problem, evidence_of(4, total), sums).optimum))
        assert sums.blocks in (5, 6)
    assert best <= min(bounds)
    assert max(bounds) <= 1.1 * best

r"""The partition bound: what random blocks of rows prove about the optimum of all rows.

Let C be the covariance in feature space and σ_k(C) the sum of its k largest eigenvalues, the most
that k components can explain. Cut the rows into blocks with shares p_b of the weight, means m_b
and covariances C_b about them. Then :math:`C = \sum_b p_b C_b + D`, where D is the covariance of
the means. σ_k is convex and at most the trace, and tr C = Σ p_b tr C_b + tr D. Therefore

.. math:: \sigma_k(C) \le \sum_b p_b\,\sigma_k(C_b)
          + \Bigl(\operatorname{tr} C - \sum_b p_b \operatorname{tr} C_b\Bigr),
          \qquad \operatorname{tr} C \ge \sum_b p_b \operatorname{tr} C_b.

This holds for every positive semi-definite kernel, every partition and every method: it never looks
at the components. Blocks of s random rows make it tight. What it exceeds the optimum by is about
k/s of the variance that the components leave, and 1/s of the total.

Rows that can be centered at their mean before products, as dense rows of linear PCA can, need no
second term: C is the mean of the second moments of the blocks about that mean, or less.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np

from mercer.arrays import (
    Array,
    Vector,
    cast,
    confidence,
    diagonal,
    like,
    namespace,
    to_numpy,
)
from mercer.certificate.block_gram import BlockGram, centered
from mercer.certificate.evidence import Axes, Evidence
from mercer.config import config_context, get_config
from mercer.data import Block, Source
from mercer.data.fold import SumFold
from mercer.data.shuffled import shuffle
from mercer.kernels import Linear
from mercer.kernels.base import Kernel
from mercer.kernels.points import take_rows
from mercer.linalg import Moments
from mercer.linalg.operator import Figure, least_certain
from mercer.linalg.top_sum import top_sum
from mercer.messages import format_parameter, percent
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection, LinearProjection

# Bytes for each entry of the Gram matrix of a block: the matrix, copies and its factors.
BLOCK_BYTES = 28
# Blocks of so many rows at first, then one in so many, are halved to see what that loses.
_HALVED, _SAMPLED = 2048, 16
# Blocks of s rows exceed k/s of what k components leave by about this factor.
_TYPICAL = 1.2
# Operations of the bound for a pair of rows in a block, at the rate of large products: for each
# column, for the value, component and row; and for a row, for itself and each component.
_PAIR, _SEARCH = (1.5, 300.0, 11.0, 0.22), (6.5e5, 3.3e4)
# The bound has stopped moving if blocks of twice the size gained less than this share of the gap.
_MOVES = 0.05
# A gap is out of reach if the likely one is so many times as large.
_HOPELESS = 2.0
# Larger blocks are mentioned if they would probably leave less than this share of the gap.
_WORTHWHILE = 0.85
# Blocks are mentioned, where there were none, if the gap is larger.
_LOOSE = 0.05
# Blocks of fewer rows say little; those of more take too long for what they add.
LEAST_ROWS, MOST_ROWS = 256, 8192


class BlockSums(SumFold):
    """Sums over blocks of rows: σ_k and the trace of their Gram matrices, rounding, and blocks.

    Of some blocks also the trace, and what the bound loses if they are cut in halves.
    """

    label = "certificate"

    def __init__(self, gram: BlockGram, k: int, seed: int, rows: int = MOST_ROWS) -> None:
        self.gram, self.k, self.seed, self.rows = gram, k, seed, rows
        self.sums = {"blocks": np.zeros(6)}

    def add(self, block: Block) -> None:
        """Add a block; one of too many rows, such as a chunk of a cluster, in random parts."""
        rng = np.random.default_rng((self.seed, block.start))
        parts = max(1, round(block.length / self.rows))
        if parts == 1:
            self._add(block, rng)
            return
        for at in np.array_split(rng.permutation(block.length), parts):
            weights = None if block.weights is None else block.weights[at]
            host = isinstance(block.rows, (list, np.ndarray)) or hasattr(block.rows, "tocsr")
            rows = take_rows(block.rows, at if host else like(at, block.rows))
            self._add(Block(block.start, rows, weights), rng)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return int(self.sums["blocks"][3])

    def _add(self, block: Block, rng: np.random.Generator) -> None:
        A, rounding = self.gram(block)
        trace, top = float(diagonal(A).sum()), top_sum(A, self.k, rng, rounding)
        lost, of = 0.0, 0.0
        at = block.start // self.rows
        halved = at * self.rows < _HALVED or at % _SAMPLED == 0
        if halved and block.length == int(A.shape[0]) > 1:
            lost, of = self._lost(A, block.count, rng) - top + trace * self.gram.center, trace
        self.sums["blocks"] += (top, trace, rounding, 1.0, lost, of)

    def _lost(self, A: Array, weights: Vector, rng: np.random.Generator) -> float:
        """Return the sum of σ_k over the halves of a block, less their traces if centered."""
        half, total = len(weights) // 2, 0.0
        for part in (slice(0, half), slice(half, None)):
            B = namespace(A).asarray(A[part, part], copy=True)
            B = centered(B, weights[part]) if self.gram.center else B
            total += top_sum(B, self.k, rng) - float(diagonal(B).sum()) * self.gram.center
        return total


def excess(evidence: Evidence, rows: float, n: int) -> float:
    """Estimate how far the bound of blocks of so many of n rows is above the optimum."""
    return _slope(evidence) * max(0.0, 1.0 / rows - 1.0 / n)


def _slope(evidence: Evidence) -> float:
    """Return that excess times the rows: measured, or what is typical."""
    if evidence.slope is not None:
        return evidence.slope
    total, explained = float(evidence.total[1]), float(evidence.explained)
    return _TYPICAL * len(evidence.eigenvalues) * max(0.0, total - explained) + total


def rows_needed(evidence: Evidence, gap: float, n: int) -> float:
    """Estimate how many of n rows blocks must have to certify a gap; infinite if none will do."""
    likely = float(evidence.explained) if evidence.likely is None else evidence.likely
    allowed, slope = float(evidence.explained) / (1.0 - gap) - likely, _slope(evidence)
    return max(LEAST_ROWS, slope / (allowed + slope / n)) if allowed > 0.0 else math.inf


def refine(problem: Problem, axes: Axes, rows: int, gap: float | None = None) -> Axes:
    """Return the components with the bound of random blocks of `rows` rows.

    With a `gap`, the blocks grow until it is certified, as long as that seems possible, the bound
    moves, and they fit in memory; with a gap of zero, until the bound stops moving. Nothing is
    computed where no bound holds, or if the one there is would probably not be improved.
    """
    evidence, n, k = axes.evidence, problem.source.shape[0], len(axes.evidence.eigenvalues)
    kernel = problem.kernel if isinstance(problem, KernelProblem) else Linear()
    if kernel is None or kernel.psd is not True or not k or not evidence.total[1] > 0.0:
        return axes
    gram, seed = _gram(problem, kernel, axes), int(problem.rng.integers(2**63))
    most = min(n, largest_block(problem.source))
    rows, least = min(rows if gap is None else max(rows, LEAST_ROWS), most), math.inf
    while rows >= min(LEAST_ROWS, n):
        likely = max(float(evidence.explained), evidence.likely or 0.0)
        if gap != 0.0 and likely + excess(evidence, rows, n) >= float(evidence.optimum):
            break
        evidence = _refined(problem, evidence, gram, rows, seed)
        if gap is None or evidence.gap <= gap or rows == most:
            break
        bound, explained = float(list(evidence.bounds.values())[-1]), float(evidence.explained)
        needed = 1.1 * rows_needed(evidence, gap, n)
        if math.isinf(needed) and evidence.gap_estimate > _HOPELESS * gap > 0.0:
            break
        if least - bound < _MOVES * (bound - explained):
            break
        least = bound
        rows = int(min(most, max(1.5 * rows, 2.0 * rows if math.isinf(needed) else needed)))
    projection, total = axes.projection, float(evidence.total[1])
    if isinstance(projection, KernelProjection) and total < projection.total_variance:
        rest = max(0.0, total - float(projection.eigenvalues.sum()))
        projection = replace(projection, total_variance=total, rest=rest)
    return Axes(projection, evidence)


def block_work(n: int, d: int, k: int, rows: float, *, kernel: bool = True) -> float:
    """Return the operations of the bound, fitted to measured times.

    Blocks of more rows than columns are their columns' products, if they are not kernels'.
    """
    column, value, component, row = _PAIR
    width = rows if kernel else min(rows, d)
    search = width * (value + component * k + row * width) + _SEARCH[0] + _SEARCH[1] * k
    return n * (width * column * d + width / rows * search) if rows else 0.0


def advise(problem: Problem, axes: Axes, rows: int) -> Axes:
    """Say what larger blocks would probably prove, after blocks of so many rows, if much more."""
    evidence, n = axes.evidence, problem.source.shape[0]
    text, larger = "", min(2 * rows, n, MOST_ROWS)
    tight = format_parameter("certificate", "tight")
    if evidence.likely is None and not rows and evidence.gap > _LOOSE:
        if evidence.gap.kind == "bound":
            text = f"Random blocks of rows may certify a smaller gap; {tight} computes them."
    elif evidence.likely is not None and rows < larger:
        gap = _expected_gap(evidence, larger, n)
        if gap < _WORTHWHILE * evidence.gap:
            text = (
                f"Blocks of {larger} rows would probably certify {percent(gap, up=True)}; "
                f"{tight} enlarges them."
            )
    return replace(axes, evidence=evidence.annotated(text)) if text else axes


def _expected_gap(evidence: Evidence, rows: float, n: int) -> float:
    """Estimate the gap that blocks of so many of n rows will certify."""
    assert evidence.likely is not None
    return 1.0 - float(evidence.explained) / (evidence.likely + excess(evidence, rows, n))


def largest_block(source: Source) -> int:
    """Return how many rows a block can have within half of the memory limit."""
    room, row = get_config().budget // 2, 2 * source.row_bytes
    row += 2 * math.prod(source.shape[1:]) * source.dtype.itemsize
    return min(
        MOST_ROWS, (math.isqrt(row * row + 4 * BLOCK_BYTES * room) - row) // (2 * BLOCK_BYTES)
    )


def _gram(problem: Problem, kernel: Kernel, axes: Axes) -> BlockGram:
    """Return the Gram matrix of a block of rows of a problem."""
    dtype = problem.source.dtype
    if isinstance(problem, KernelProblem):
        return BlockGram(kernel, dtype, problem.center)
    plain = _in_units(problem, axes)
    late = problem.source.sparse and problem.center
    return BlockGram(kernel, dtype, late, plain.mean, plain.divisor)


def _in_units(problem: Problem, axes: Axes) -> LinearProjection:
    """Return the fitted map for the rows of the problem, which are the user's over a power of 2."""
    projection, unit = axes.projection, float(np.ldexp(1.0, problem.exponent))
    assert isinstance(projection, LinearProjection)
    deviation = projection.deviation / (unit if problem.scale else 1.0)
    mean = projection.mean / unit
    return replace(projection, mean=mean, deviation=deviation, weights=problem.metric)


def explained_by_scores(problem: Problem, axes: Axes) -> Figure:
    """Return the variance in the span of components that need not be orthogonal, in one pass."""
    plain, source = _in_units(problem, axes), problem.source
    # As they are returned: rounded to the precision of the rows.
    plain = replace(plain, components=cast(plain.components, source.dtype))
    V = to_numpy(plain.components).astype(np.float64)
    scores = plain.scores(source, np.float64)
    moments = Moments(V.shape[1], source.reference, np.float64, center=problem.center)
    moments.label = "certificate"
    scores.fold(moments)
    variance = float(np.trace(np.linalg.lstsq(V.T @ V, np.asarray(moments.scatter))[0]))
    variance *= scale_of(problem) / problem.divisor
    rounding = float(np.finfo(np.float64).eps) * sum(source.shape) * plain.total_variance
    return Figure(max(0.0, variance - rounding))


def scale_of(problem: Problem) -> float:
    """Return the square of the unit of the rows, in which linear variances are measured."""
    return 1.0 if isinstance(problem, KernelProblem) else problem.unit**2


def _refined(
    problem: Problem, evidence: Evidence, gram: BlockGram, rows: int, seed: int
) -> Evidence:
    """Return the evidence with the bound of blocks of so many rows."""
    sums = BlockSums(gram, len(evidence.eigenvalues), seed, rows)
    return with_blocks(problem, evidence, with_rows(sums, problem.source))


def with_rows(sums: BlockSums, source: Source) -> BlockSums:
    """Return sums with those over random blocks of rows; the ones passed stay as they are."""
    n, new, both = source.shape[0], sums.spawn(), sums.spawn()
    rows = -(-n // max(1, round(n / min(sums.rows, n))))  # blocks of equal size
    rng = np.random.default_rng((sums.seed, n, sums.blocks))
    shuffled = shuffle(source, rows, rng, BLOCK_BYTES * rows**2)
    with config_context(block_rows=rows) if source.remote else nullcontext():
        shuffled.fold(new)
    both.merge(sums)
    both.merge(new)
    return both


def with_blocks(problem: Problem, evidence: Evidence, sums: BlockSums) -> Evidence:
    """Return the evidence with the bound that sums over blocks give."""
    k, n = len(evidence.eigenvalues), problem.source.shape[0]
    rows, scale = n / sums.blocks, scale_of(problem) / problem.divisor
    top, trace, rounding, _, lost, of = (sums.sums["blocks"] * scale).tolist()
    slope = max(0.0, lost) * (trace / of) * rows if of > 0.0 else None
    top, within = top + math.sqrt(k) * rounding, max(0.0, trace - 2.0 * rounding)
    low, high = evidence.total
    high = high.like(max(high, within) if sums.gram.center else high)
    sure = min(confidence(problem.source.dtype), confidence(sums.gram.dtype))
    bound = Figure(within, "bound", sure)
    if sums.gram.center or not problem.center:
        low = max(low, bound, key=float)
    if not problem.center or (sums.gram.center and sums.blocks == 1):
        high = min(high, bound.like(trace + 2.0 * rounding), key=float)
    elif sums.gram.center:
        top += max(0.0, float(high) - within)
        bound = Figure(top, **least_certain(high, bound))
    name = (
        f"random blocks of {math.ceil(rows)} rows" if sums.blocks > 1 else "one block of all rows"
    )
    bounds = {**evidence.bounds, name: bound.like(top)}
    evidence = replace(evidence, bounds=bounds, total=(low, high), slope=slope)
    likely = max(float(evidence.explained), top - excess(evidence, rows, n))
    return replace(evidence, likely=likely)

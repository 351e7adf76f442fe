"""Linear PCA from a sketch of the rows (marukatat Alg. 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Vector,
    cast,
    eigh,
    like,
    namespace,
    numpy_dtype,
    orthonormalize,
    scale_columns,
    to_numpy,
)
from mercer.certificate import Axes, Evidence, spectral_evidence
from mercer.config import get_config
from mercer.data import Block, Fold, require_finite_sums
from mercer.linalg import Centering, CovarianceOperator, CovarianceProduct, Moments
from mercer.linalg.solvers import rayleigh_ritz
from mercer.methods.base import Cost, Size
from mercer.methods.linear.direct import SVD, linear_axes
from mercer.methods.linear.iterative import refined_axes
from mercer.methods.preparation import (
    ColumnStatistics,
    column_statistics,
    level,
    metric_deviation,
    statistics_of,
    with_shares,
)
from mercer.problem import Problem
from mercer.sketches import SketchMap, SketchMatrix

NOT_POLISHED = "Components from a sketch, not polished: variances are those of the sketch."
# Components beyond those wanted, for the polish to choose from.
_MORE = 8
# Eigenvalues of a sketch below this share of the largest are rounding.
_RANK = 1e-12


def linear_sketch_cost(size: Size, q: int, *, polish: bool, dense: bool) -> Cost:
    """Return the cost of a sketch of q columns; `dense` if it is a matrix product."""
    p = _component_count(size.n, size.d, q, size.k)
    entries = float(size.n * size.d if size.nnz is None else size.nnz)
    sketching = 2.0 * entries * q if dense else 0.0
    lift = 2.0 * entries * p * (3 if polish else 1)
    work = 2 * sketching + float(size.n) * q * q + lift
    sparse_work, dense_work = (0.0, work) if size.nnz is None else (work, 0.0)
    memory = _memory(size.d, q, p)
    passes = 2 + polish + size.first_pass
    return Cost(passes, dense_work, 4 / 3 * q**3, memory, sparse_work)


def fit_linear_sketch(
    problem: Problem, sketch: SketchMap, rng: np.random.Generator | None, *, polish: bool
) -> Axes | None:
    """Return components from a sketch; None if it has too few for the rule to decide."""
    source, d = problem.source, problem.source.shape[1]
    scaled, deviation = source, metric_deviation(problem)
    if problem.scale:
        deviation = column_statistics(problem).deviation
    if np.any(deviation != 1.0):

        def divide(block: Block) -> Array:
            rows = block.dense(np.float64)
            return rows / like(deviation, rows)

        scaled = source.map(divide, d, np.float64, 8 * d)
    matrix = sketch.matrix_from(scaled, rng)
    mapped = StandardizedSketch(matrix, _first_mean(problem), deviation)
    fold = SketchMoments(
        mapped,
        Moments(d, source.reference, np.float64, diagonal=True, center=problem.center),
        Moments(matrix.q, source.reference, np.float64, center=problem.center),
    )
    fold = source.fold(fold)
    require_finite_sums(source, fold.rows.mean, fold.rows.scatter, fold.small.scatter)
    columns = statistics_of(problem, fold.rows)
    if columns.variance == 0.0:
        return SVD().fit(problem)
    levelled = level(problem, columns)
    if levelled is not problem:
        return fit_linear_sketch(levelled, sketch, rng, polish=polish)
    problem = with_shares(problem, deviation)
    small, small_mean = to_numpy(fold.small.scatter) / problem.divisor, fold.small.mean
    del fold  # it holds the memory of a block
    values, U = eigh(small)
    require_columns(sketch, len(values), problem.n_components or 0)
    # Of the eigenvectors above rounding.
    p = _component_count(*problem.shape, len(values), problem.n_components)
    p = min(int((values > _RANK * values[0]).sum()), p)
    lift = SketchLift(
        Centering(columns.mean, source.dtype, source.reference),
        like(U[:, :p] / values[:p], source.reference),
        (d, p),
        mapped,
        small_mean,
    )
    vectors = cast(source.fold(lift).result, np.float64)
    del lift, mapped, matrix  # and the matrix of the map
    vectors = vectors / like(deviation, vectors)[:, None]
    vectors = vectors / like(np.linalg.norm(to_numpy(vectors), axis=0), vectors)
    missing = (problem.n_components or 0) - p
    if missing > 0:  # random components where the rows have fewer than are wanted
        others = like(problem.rng.standard_normal((d, missing)), vectors) / d**0.5
        vectors = namespace(vectors).concat([vectors, others], axis=1)
    if polish:
        return _polish(problem, columns, vectors, len(values))
    return _unpolished(problem, columns, vectors, values)


def _unpolished(
    problem: Problem, columns: ColumnStatistics, vectors: Array, values: Vector
) -> Axes | None:
    """Return the components of the sketch itself, whose variances are estimates."""
    total = columns.variance
    k = _choose(problem, values, total)
    if k is None:
        return None
    mean, deviation, values, others = columns.mean, columns.deviation, values[:k], values[k:]
    evidence = Evidence.of_estimates(values, others, total, NOT_POLISHED)
    return linear_axes(problem, mean, deviation, vectors[:, :k], values, evidence, total=total)


def _polish(problem: Problem, columns: ColumnStatistics, vectors: Array, q: int) -> Axes | None:
    """Return the best components of the span, by one product with the covariance."""
    mean, deviation, total = columns.mean, columns.deviation, columns.variance
    operator = CovarianceOperator(problem.source, mean, deviation, problem.divisor, total)
    p = int(vectors.shape[1])
    spectrum = rayleigh_ritz(operator, orthonormalize(vectors)[0], p)
    # Components that are rounding in the sketch were not lifted: for a rule they have no variance.
    missing = max(0, min(q, problem.limit) - p)
    k = _choose(problem, np.pad(spectrum.values, (0, missing)), total)
    if k is None:
        return None
    k = min(k, p)
    spectrum = spectrum.head(k)
    evidence = spectral_evidence(operator, spectrum, k, problem.rng, probe=problem.gap is not None)
    values, vectors = spectrum.values, spectrum.vectors
    return refined_axes(problem, columns, spectrum.depth(k), evidence, values, vectors)


def require_columns(sketch: SketchMap, q: int, wanted: int) -> None:
    """Raise if the sketch has fewer columns than components."""
    if wanted > q:
        raise ValueError(
            f"{sketch!r} has {q} columns, too few for {wanted} components. Use q >= {wanted}; "
            f"a few times that is better."
        )


def _component_count(n: int, d: int, q: int, k: int | None) -> int:
    """Return how many components of a sketch to compute: some more than k, or all.

    All if a rule must see them first, or if they are exact, because there are few rows.
    """
    everything = min(n, q)
    if k is None or (n <= q and _memory(d, q, everything) <= get_config().budget):
        return everything
    return min(everything, k + _MORE)


def _memory(d: int, q: int, components: int) -> float:
    """Return the bytes of the scatter, the components and the map."""
    return 24.0 * q * q + 32.0 * d * components + min(8.0 * d * q, get_config().budget / 4)


def _choose(problem: Problem, values: Vector, total: float) -> int | None:
    wanted = problem.n_components
    chosen = wanted if wanted is not None else problem.choose(values, total)
    return None if chosen is None else min(chosen, len(values))


def _first_mean(problem: Problem) -> Vector:
    """Return the mean of the first rows, which is near the others; zeros if not needed."""
    source, (n, d) = problem.source, problem.source.shape
    if source.sparse or not problem.center:
        return np.zeros(d)
    room = get_config().budget // 8 // (source.row_bytes + 8 * d)
    rows = to_numpy(source.read(0, min(256, n, max(1, room)))).astype(np.float64)
    return np.asarray(rows.mean(axis=0))


class StandardizedSketch:
    """A sketch of shifted rows divided by deviations; sparse rows are not shifted."""

    def __init__(self, matrix: SketchMatrix, shift: Vector, deviation: Vector) -> None:
        self.matrix, self.shift, self.deviation = matrix, shift, deviation
        self.plain = not np.any(deviation != 1.0)

    def __call__(self, rows: Any) -> Array:
        if hasattr(rows, "tocsr"):
            if not self.plain:
                rows = scale_columns(rows, 1.0 / self.deviation, rows.dtype)
            return self.matrix.apply(rows)
        dtype = numpy_dtype(rows)
        rows = rows - like(self.shift, rows, dtype)
        return self.matrix.apply(rows if self.plain else rows / like(self.deviation, rows, dtype))


class SketchMoments(Fold):
    """Moments of the rows, column by column, and of their sketch, with its scatter.

    Rows are shifted before they are sketched: a large mean would cost the sketch its digits.
    """

    label = "sketch"

    def __init__(self, sketch: StandardizedSketch, rows: Moments, small: Moments) -> None:
        self.sketch, self.rows, self.small = sketch, rows, small
        self.nbytes = rows.nbytes + small.nbytes
        matrix = sketch.matrix
        self.row_bytes = rows.row_bytes + small.row_bytes + 8 * (matrix.d + 2 * matrix.q)

    def add(self, block: Block) -> None:
        self.rows.add(block)
        self.small.add(replace(block, rows=self.sketch(block.rows)))

    def merge(self, other: Self) -> None:
        self.rows.merge(other.rows)
        self.small.merge(other.small)

    def spawn(self) -> Self:
        return type(self)(self.sketch, self.rows.spawn(), self.small.spawn())

    def arrays(self) -> dict[str, Array]:
        rows = {f"rows.{name}": a for name, a in self.rows.arrays().items()}
        return rows | self.small.arrays()

    def restore(self, arrays: dict[str, Array]) -> None:
        self.small.restore(arrays)
        rows = {n.removeprefix("rows."): a for n, a in arrays.items() if n.startswith("rows.")}
        self.rows.restore(rows)

    def settle(self) -> None:
        self.rows.settle()
        self.small.settle()


class SketchLift(CovarianceProduct):
    r"""The product :math:`\sum_i w_i (x_i-\mu)(f(x_i) - \bar f)^T U`: components of a sketch."""

    label = "components"

    def __init__(
        self,
        centering: Centering,
        V: Array,
        shape: tuple[int, int],
        sketch: StandardizedSketch,
        mean: Vector,
    ) -> None:
        super().__init__(centering, V, shape)
        self.sketch, self.small_mean = sketch, mean
        matrix = sketch.matrix
        self.row_bytes += 8 * (matrix.d + 2 * matrix.q)

    def add(self, block: Block) -> None:
        small = cast(self.sketch(block.rows), np.float64) - like(self.small_mean, self.V)
        scores = cast(small @ self.V, self.centering.dtype)
        if block.weights is not None:
            scores = scores * like(block.weights, scores, self.centering.dtype)[:, None]
        product = self.centering.transposed_times(self.centering(block.rows), scores)
        self.sums["result"] += product

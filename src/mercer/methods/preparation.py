"""Passes that methods make before they solve: column statistics, and rows moved toward zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mercer.arrays import Array, Vector, like
from mercer.config import get_config
from mercer.data import (
    Block,
    ShiftedSource,
    Source,
    StringSource,
    count_stored,
    require_finite_entries,
    require_finite_sums,
)
from mercer.linalg import Moments
from mercer.problem import KernelProblem, Problem

# A deviation below this share of the mean is rounding of the column's float64 values. Float32
# columns that vary by as little as their precision allows are data.
_NOISE = 8.0 * float(np.finfo(np.float64).eps)
# Squared means above this many variances cost sparse products digits.
_FAR = 100.0

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of the columns, as a problem standardizes them."""

    mean: Vector  # what is subtracted from each column
    deviation: Vector  # what it is then divided by, in the metric of the problem
    variance: float  # total variance of the standardized columns
    moments: Moments  # the sums they come from


def column_statistics(problem: Problem, dtype: Any = np.float64) -> ColumnStatistics:
    """Compute the statistics of the columns in one pass, with products of this precision."""
    d, reference = problem.source.shape[1], problem.source.reference
    fold = Moments(d, reference, dtype, diagonal=True, center=problem.center)
    if problem.source.sparse:  # summed by their entries, without dense rows
        fold.row_bytes = 0
    moments = problem.source.fold(fold)
    require_finite_sums(problem.source, moments.mean, moments.scatter)
    return statistics_of(problem, moments)


def statistics_of(problem: Problem, moments: Moments) -> ColumnStatistics:
    """Return the statistics that sums over the columns amount to."""
    deviation = column_deviation(problem, moments.scatter, moments.mean)
    variance = float((moments.scatter / deviation**2).sum()) / problem.divisor
    return ColumnStatistics(moments.mean, deviation, variance, moments)


def column_deviation(problem: Problem, squares: Vector, mean: Vector) -> Vector:
    """Return the divisors of columns with these sums of squares: 1 unless they are scaled.

    Then standard deviations, or infinity for columns that are constant up to rounding. They are
    divided by the roots of the column weights: infinite where the weight is zero.
    """
    if not problem.scale:
        return metric_deviation(problem)
    require_finite_sums(problem.source, squares)  # an overflow would look like a constant
    deviation = np.sqrt(squares / problem.divisor)
    mean = mean if problem.shift is None else mean + problem.shift
    constant = deviation <= _NOISE * np.abs(mean)
    return np.where(constant, np.inf, deviation) * metric_deviation(problem)


def metric_deviation(problem: Problem) -> Vector:
    """Return the divisors of columns that are not scaled: one over the roots of their weights."""
    if problem.metric is None:
        return np.ones(problem.source.shape[1])
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / np.sqrt(problem.metric))


def with_shares(problem: P, deviation: Vector) -> P:
    """Return the problem with the number of columns that have a share in its components."""
    return replace(problem, columns=max(1, int(np.isfinite(deviation).sum())))


def require_finite_vectors(problem: KernelProblem) -> None:
    """Raise on NaN or infinity, in one pass; a kernel might turn them into numbers."""
    if not isinstance(problem.source, StringSource):
        require_finite_entries(problem.source)


def level(problem: P, columns: ColumnStatistics) -> P:
    """Subtract the mean from the rows, if rounding the mean to float64 matters.

    For methods that subtract the mean in every product, where a mean rounded by δ adds δ² to a
    variance. The mean of sparse rows is subtracted after the product, where more is lost: their
    columns without zeros are levelled.
    """
    if not problem.center or not columns.variance > 0.0 or problem.shift is not None:
        return problem
    mean, deviation = columns.mean, columns.deviation
    if problem.source.sparse:
        visible = float(((mean / deviation) ** 2).sum()) > _FAR * columns.variance
    else:
        eps, rounding = float(np.finfo(np.float64).eps), columns.moments.running.rounding
        visible = float(((rounding / deviation) ** 2).sum()) > eps * columns.variance
    if visible and problem.source.sparse:
        stored = count_stored(problem.source)
        mean = np.where(stored == problem.source.shape[0], mean, 0.0)
    if not visible or not mean.any():
        return problem
    return replace(problem, source=ShiftedSource(problem.source, mean), shift=mean)


def levelled_statistics(problem: P) -> tuple[P, ColumnStatistics]:
    """Return the problem with its rows centered where that matters, and its column statistics."""
    columns = column_statistics(problem)
    levelled = level(problem, columns)
    if levelled is not problem:
        columns = column_statistics(levelled)
    return with_shares(levelled, columns.deviation), columns


def needs_moving(problem: KernelProblem, *, always: bool = False) -> bool:
    """Return whether `move_rows` passes over the rows, to see whether shifting them helps."""
    source = problem.source
    if not (always or problem.sees_offset):
        return False
    return not source.sparse or 8 * source.shape[0] * source.shape[-1] <= get_config().budget // 4


def move_rows(problem: KernelProblem, *, always: bool = False) -> KernelProblem:
    """Subtract the mean from the rows, where that keeps digits of kernel values.

    For kernels whose centered matrix does not change when all rows are shifted; `always` for those
    whose matrix does not change, centered or not. Sparse rows stay sparse, unless their mean is so
    far from zero that products lose it: then they become dense, if they fit in memory.
    """
    source = problem.source
    if not needs_moving(problem, always=always):
        return problem
    columns = column_statistics(replace(problem, center=True))
    mean = columns.mean
    far = float(mean @ mean)
    if far <= (_FAR**2 if source.sparse else 10.0) * columns.variance:
        return problem
    shift = _coarse(mean, np.sqrt(columns.moments.scatter / problem.divisor))
    return replace(problem, source=shifted(source, shift), shift=shift)


def _coarse(mean: Vector, deviation: Vector) -> Vector:
    """Round means to a thousandth of the deviations, or finer: the same for any block size."""
    steps = np.ldexp(1.0, np.frexp(deviation)[1] - 10)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rounded = np.round(mean / steps) * steps
    return np.where((deviation > 0) & np.isfinite(rounded), rounded, mean)


def shifted(source: Source, shift: Vector) -> Source:
    """Return rows minus a shift, in float64, computed when they are read."""
    return source.map(Shift(like(shift, source.reference)), source.shape[1], np.float64)


@dataclass(frozen=True)
class Shift:
    """Subtracts a shift from rows; can be pickled and sent to workers."""

    shift: Array

    def __call__(self, block: Block) -> Array:
        return block.dense(np.float64) - self.shift

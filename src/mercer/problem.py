"""What a method is given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Vector,
    is_finite,
    like,
    namespace,
    numpy_dtype,
    to_numpy,
)
from mercer.certificate import Certificate
from mercer.config import get_config
from mercer.data import (
    Block,
    Levelled,
    Search,
    Source,
    Stored,
    StringSource,
    not_finite,
    require_finite_entries,
)
from mercer.kernels import Kernel
from mercer.linalg import Moments
from mercer.projection import LinearProjection
from mercer.rules import Rule

# A deviation below this share of the mean is rounding of the column's numbers, which float64
# holds. Float32 rows that vary by as little as their precision lets them are data.
_NOISE = 8.0 * float(np.finfo(np.float64).eps)
# Squared means above so many variances cost sparse products digits.
_FAR = 100.0


@dataclass(frozen=True)
class Problem:
    """Rows, and what is wanted of them.

    Attributes
    ----------
    source : Source
        The rows, with their weights.
    rule : Rule
        How many axes.
    center, scale : bool
        Subtract the mean of every column; divide by its standard deviation.
    tol : float
        Relative residual asked of a solver, 0 for working precision.
    gap : float or None
        Certified distance from the optimum that is good enough.
    rng : numpy.random.Generator
        Where randomness comes from.
    exponent : int
        The rows are the user's divided by 2**exponent, so that squares neither overflow
        nor vanish; `projection` undoes it.
    shift : ndarray of shape (d,) or None
        What was subtracted from the user's rows: see `levelled`.
    """

    source: Source
    rule: Rule
    center: bool = True
    scale: bool = False
    tol: float = 0.0
    gap: float | None = None
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    exponent: int = 0
    shift: Vector | None = None

    @property
    def divisor(self) -> float:
        """What the scatter is divided by: one less than the number of rows."""
        return self.source.count - 1.0

    @property
    def sides(self) -> tuple[int, int]:
        """Rows, and features that they have."""
        return self.source.shape

    @property
    def limit(self) -> int:
        """The most axes there can be."""
        return min(self.sides)

    @property
    def seen(self) -> tuple[int, int]:
        """Rows and features as a rule counts them: rows as often as their weights say.

        Weights below one are no counts: there are as many rows as there are.
        """
        return max(round(self.source.count), self.sides[0]), self.sides[1]

    def choose(self, values: Vector, total: float) -> int | None:
        """Ask the rule how many axes; None when it needs more eigenvalues."""
        n, d = self.seen
        values = np.maximum(values, 0.0)
        if self.scale and self.rule.first_guess(n, d) is None:
            # The total of scaled columns is their number: constant ones do not count.
            d = min(d, max(1, round(total)))
            values = values[: min(n, d)]
        if len(values) == self.limit < min(n, d):
            # Fewer rows than their weights say: the other eigenvalues are zero.
            values = np.concatenate([values, np.zeros(min(n, d) - len(values))])
        chosen = self.rule.choose(values, total, n, d)
        if chosen is None and len(values) >= min(n, d):
            raise ValueError(
                f"{self.rule!r} was shown all {len(values)} eigenvalues and chose no number."
            )
        return None if chosen is None else min(chosen, self.limit)

    @cached_property
    def standard(self) -> tuple[Vector, Vector, float]:
        """Mean and deviation that the columns are treated with, and the variance they then have.

        One pass over the rows, in float64.
        """
        return self._treated(self._columns)

    @cached_property
    def _columns(self) -> Moments:
        return self._moments(np.float64)

    def treatment(self, products: Any) -> tuple[Vector, Vector, float]:
        """Return what `standard` holds, from products of this precision."""
        return self._treated(self._moments(products))

    def _moments(self, products: Any) -> Moments:
        """Return the sums of every column."""
        d, reference = self.source.shape[1], self.source.reference
        fold = Moments(d, reference, products, diagonal=True, center=self.center)
        if self.source.sparse:  # summed by their entries: nothing as long as a row is made
            fold.row_bytes = 0
        moments = self.source.fold(fold)
        self.require_finite(moments.mean, moments.scatter)
        return moments

    def _treated(self, moments: Moments) -> tuple[Vector, Vector, float]:
        deviation = self.deviation(moments.scatter, moments.mean)
        variance = float((moments.scatter / deviation**2).sum()) / self.divisor
        return moments.mean, deviation, variance

    def levelled(self, columns: Moments | None = None) -> Self:
        """Return the problem of rows less their mean, where float64 rounds the mean visibly.

        For what subtracts the mean in every product. A mean rounded by δ adds δ² to a variance:
        too much where a column has a mean of 1e16 and a deviation of 2. The mean of sparse rows
        is subtracted after the product, where more is lost: columns without zeros are levelled.
        `columns` are the sums of every column; None computes them.
        """
        columns = self._columns if columns is None else columns
        mean, deviation, variance = self._treated(columns)
        if not self.center or not variance > 0.0 or self.shift is not None:
            return self
        if self.source.sparse:
            visible = float(((mean / deviation) ** 2).sum()) > _FAR * variance
        else:
            eps, rounding = float(np.finfo(np.float64).eps), columns.middle.rounding
            visible = float(((rounding / deviation) ** 2).sum()) > eps * variance
        if visible and self.source.sparse:
            stored = self.source.fold(Stored(len(mean))).count
            mean = np.where(stored == self.source.shape[0], mean, 0.0)
        if not visible or not mean.any():
            return self
        return replace(self, source=Levelled(self.source, mean), shift=mean)

    def require_finite(self, *sums: Array) -> None:
        """Refuse what NaN or infinity in the rows made of their sums, and say where they are."""
        require_finite(self.source, *sums)

    def deviation(self, squares: Vector, mean: Vector) -> Vector:
        """Return what columns of these sums of squares are divided by: 1 unless scaled.

        The standard deviation with the divisor of the variances; infinity, which leaves nothing
        of it, for a column that is constant up to the rounding of its numbers.
        """
        if not self.scale:
            return np.ones(len(squares))
        self.require_finite(squares)  # else an overflow would pass for a constant
        deviation = np.sqrt(squares / self.divisor)
        mean = mean if self.shift is None else mean + self.shift
        return np.where(deviation <= _NOISE * np.abs(mean), np.inf, deviation)

    def projection(
        self,
        mean: Vector,
        deviation: Vector,
        axes: Array,
        values: Vector,
        total: float,
        certificate: Certificate,
        rest: float | None = None,
    ) -> LinearProjection:
        """Return the fitted map in the user's units, with scikit-learn's signs.

        `rest` is the variance that no axis holds, where it is known better than as what
        is missing from the total.
        """
        rest = total - float(values.sum()) if rest is None else rest
        with np.errstate(over="ignore", under="ignore"):
            grow, square = np.ldexp(1.0, self.exponent), np.ldexp(1.0, 2 * self.exponent)
        if self.scale:  # z-scores have no unit
            deviation, square = deviation * grow, 1.0
            deviation = np.where(np.isfinite(deviation), deviation, 1.0)
        mean = mean if self.shift is None else mean + self.shift
        if total > 0 and not 0.0 < total * square < np.inf:
            raise ValueError(
                "The variance of X is too large, or too small, for float64. "
                "Divide X by its largest entry first."
            )
        return LinearProjection(
            mean=mean * grow,
            deviation=deviation,
            components=_signed(axes),
            eigenvalues=np.maximum(values, 0.0) * square,
            total_variance=max(total, 0.0) * square,
            rest=max(rest, 0.0) * square,
            certificate=replace(
                certificate,
                eigenvalues=np.maximum(values, 0.0) * square,  # as they are handed out
                residuals=certificate.residuals * square,
                spacing=certificate.spacing * square,
            ),
        )


@dataclass(frozen=True)
class KernelProblem(Problem):
    """Rows and a kernel: axes in the kernel's space.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None where the rows are the kernel matrix itself.
    """

    kernel: Kernel | None = None

    @property
    def sides(self) -> tuple[int, int]:
        """Rows, and as many features: a kernel's space has no end, the rows span n of it."""
        return self.source.shape[0], self.source.shape[0]

    @property
    def seen(self) -> tuple[int, int]:
        n, _ = super().seen
        return n, n

    @property
    def movable(self) -> bool:
        """Whether `moved` passes over the rows, to see whether to shift them."""
        kernel = self.kernel
        moves = kernel is not None and kernel.shift_invariant and kernel.offset_sensitive
        return self.center and moves and self._room

    @property
    def _room(self) -> bool:
        """Whether there is room for rows less their mean, which are dense."""
        size = 8 * self.source.shape[0] * self.source.shape[-1]
        return not self.source.sparse or size <= get_config().budget // 4

    def moved(self, *, always: bool = False) -> KernelProblem:
        """Return the problem of rows less their mean, where that keeps digits.

        For kernels whose centred matrix stays the same when all rows are shifted; `always` for
        those whose matrix does, centred or not. Sparse rows stay as they are, unless their mean
        is so far from zero that products lose it: then they become dense, where there is room.
        """
        source = self.source
        if not (self.movable or (always and self._room)):
            return self
        centred = replace(self, center=True)
        moments = centred._moments(np.float64)
        mean, _, variance = centred._treated(moments)
        if float(mean @ mean) <= (_FAR**2 if source.sparse else 10.0) * variance:
            return self
        shift = _rough(mean, np.sqrt(moments.scatter / self.divisor))
        return replace(self, source=less(source, shift), shift=shift)

    def require_finite_rows(self) -> None:
        """Refuse NaN and infinity, which a kernel may make a number of."""
        if not isinstance(self.source, StringSource):
            require_finite_entries(self.source)


def _rough(mean: Vector, deviation: Vector) -> Vector:
    """Return means rounded to a thousandth of the deviations, or less.

    Sums of other blocks round the mean itself otherwise, and rows less another mean are other
    rows: rules that choose some of them would choose others.
    """
    steps = np.ldexp(1.0, np.frexp(deviation)[1] - 10)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rounded = np.round(mean / steps) * steps
    return np.where((deviation > 0) & np.isfinite(rounded), rounded, mean)


def less(source: Source, shift: Vector) -> Source:
    """Return rows less a shift, in float64, computed when they are read."""
    return source.map(Less(like(shift, source.reference)), source.shape[1], np.float64)


@dataclass(frozen=True)
class Less:
    """What takes a shift off rows; can be sent to where they lie, and pickled."""

    shift: Array

    def __call__(self, block: Block) -> Array:
        return block.dense(np.float64) - self.shift


def require_finite(source: Source, *sums: Array) -> None:
    """Refuse what NaN or infinity in the rows made of their sums, and say where they are."""
    if not all(is_finite(s) for s in sums):
        raise not_finite(source.fold(Search()).found, source)


def _signed(axes: Array) -> Array:
    """Return axes whose largest entry in absolute value, the first of equals, is positive."""
    xp = namespace(axes)
    rows = np.ascontiguousarray(axes.T) if isinstance(axes, np.ndarray) else axes.T
    if not rows.shape[0]:
        return rows.T
    top, bottom = to_numpy(xp.argmax(rows, axis=1)), to_numpy(xp.argmin(rows, axis=1))
    high = np.array([float(rows[i, int(j)]) for i, j in enumerate(top)])
    low = np.array([float(rows[i, int(j)]) for i, j in enumerate(bottom)])
    positive = (high > -low) | ((high == -low) & (top < bottom))
    signs = like(np.where(positive, 1.0, -1.0), rows, numpy_dtype(rows))
    rows *= signs[:, None]
    return rows.T

"""Points whose span holds the axes, and what one pass over the rows tells of it.

A basis Y of m points spans a part of a kernel's space. With K_y = k(Y, Y) and TᵀK_yT = I the map
f(x) = Tᵀh(x) gives orthonormal coordinates in it, h(x) = k(Y, x): what of Φ(x) lies in the span
has the length of f(x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    eigh,
    empty,
    held,
    is_finite,
    longest_column,
    squares,
    to_numpy,
    whitened,
)
from mercer.data import Block, Fold, Seen, Source, StringSource, require_finite_rows
from mercer.kernels import Kernel
from mercer.kernels.evaluate import evaluate, evaluate_into
from mercer.kernels.feature_map import KernelMap
from mercer.kernels.points import Points, cast_rows
from mercer.linalg import Moments
from mercer.threads import serial_blas

# Directions of the span below this share of its largest are left out: what is known of them
# is rounding. Of float32 values more are.
_CUT = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-8}
# Where K_y is no worse conditioned than this, its Cholesky decomposition serves.
_GOOD = 1e6
# Float32 kernel values that are off by more roundings than this, of some rows that are looked
# at, are computed in float64: rows lie far apart beside the kernel's width.
_MANY, _LOOKED_AT = 16.0, 64
# So few rows take no longer in float64 than it takes to find out what float32 would cost.
_FEW_ROWS = 2048


@dataclass(frozen=True)
class Basis:
    """Points that axes are made of.

    Attributes
    ----------
    points : rows or None
        The points; None where rows are a kernel matrix, of which `at` names columns.
    at : ndarray of int or None
        Which rows they are; None where they are none of them.
    counts : ndarray of shape (m,) or None
        How many rows each stands for: one over the probability with which it was drawn. None
        where points were not drawn.
    sizes : ndarray of shape (m,) or None
        Rows of the cluster that each is the centre of; None of points that are not.
    """

    points: Any
    at: np.ndarray[Any, Any] | None = None
    counts: Vector | None = None
    sizes: Vector | None = None

    def __len__(self) -> int:
        if self.at is not None:
            return len(self.at)
        shape = getattr(self.points, "shape", None)
        return len(self.points) if shape is None else int(shape[0])


class Span:
    """The span of a basis in a kernel's space.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
        K_y, float64.
    dtype : dtype
        Precision of kernel values: the rows', or float64 where float32 loses their digits, or
        where there are few rows.
    white : ndarray of shape (m, p)
        T with TᵀK_yT = I, orthonormal axes of the span: from the Cholesky decomposition of K_y,
        or where that is ill-conditioned from its eigenvectors, Uκ^{-1/2}, without those whose κ
        is rounding.
    parts : ndarray of int
        Numbers of first axes for which the next two are known.
    longest, spread : ndarray
        ‖T‖₂² and ‖TTᵀ‖_F of that many first axes, or bounds on them.
    """

    def __init__(
        self, kernel: Kernel | None, basis: Basis, source: Source, dtype: Any = None
    ) -> None:
        self.kernel, self.basis = kernel, basis
        self.dtype = precision(source) if dtype is None else np.dtype(dtype)
        self.reference = source.reference
        self.matrix = self._given(source) if kernel is None else between(kernel, basis.points)
        if not is_finite(self.matrix):
            raise ValueError(
                f"{kernel!r} gives NaN or infinity between points of the basis. Scale the rows, "
                f"or change the kernel's parameters."
            )
        if self.dtype == np.float32 and not self.suits_float32(source):
            self.dtype = np.dtype(np.float64)
        self.white: Matrix
        with serial_blas():
            if not self._by_cholesky():
                self._by_eigenvectors()

    @property
    def size(self) -> int:
        """Points of the basis."""
        return len(self.matrix)

    @property
    def rank(self) -> int:
        """Directions that they span."""
        return int(self.white.shape[1])

    @cached_property
    def error(self) -> float:
        """Bound on the error of K_y, in Frobenius norm: of its values, and in T."""
        own, u = np.abs(np.diag(self.matrix)), float(np.finfo(np.float64).eps) / 2
        each: Any = 0.0
        if self.kernel is not None and self.size:
            y = Points(cast_rows(self.basis.points, np.float64))
            with np.errstate(over="ignore", invalid="ignore"):
                each = self.kernel.roundings(y, y, np.float64)
        values = math.sqrt(float(np.sum(own * each**2)) * float(own.sum()))
        return u * (values + 16.0 * self.size * float(own.sum()))

    def _by_cholesky(self) -> bool:
        """Find the axes by a triangular factor; False where that would lose digits."""
        if not self.size:
            return False
        white = whitened(self.matrix)
        if white is None:
            return False
        product = white @ white.T
        longest = longest_column(product)
        if not longest * longest_column(self.matrix) <= _GOOD:
            return False
        self.white = white
        self.parts = np.array([self.size])
        self.longest, self.spread = np.array([longest]), np.array([math.sqrt(squares(product))])
        return True

    def _by_eigenvectors(self) -> None:
        values, U = eigh((self.matrix + self.matrix.T) / 2)
        # Where a kernel is indefinite, directions no longer than its negative ones tell nothing.
        largest, lowest = np.max(values, initial=0.0), np.min(values, initial=0.0)
        least = max(_CUT[self.dtype] * largest, -lowest)
        there = int((values > least).sum())
        values, U = values[:there], U[:, :there]
        self.white = U / np.sqrt(values)
        self.parts = np.arange(1, len(values) + 1)
        self.longest, self.spread = 1.0 / values, np.sqrt(np.cumsum(values**-2.0))

    def features(self, source: Source, dtype: Any = None) -> Source:
        """Return h(x) of every row, computed when it is read."""
        kind = self.dtype if dtype is None else np.dtype(dtype)
        if self.kernel is not None:
            return KernelMap(self.kernel, self.basis.points).of(source, kind)
        assert self.basis.at is not None  # columns of a kernel matrix
        at = self.basis.at
        return source.map(lambda block: cast(block.rows[:, at], kind), len(at), kind)

    def suits_float32(self, source: Source) -> bool:
        """Tell whether float32 seems to keep the digits of the kernel, by some of the rows.

        It chooses the precision; what rounding costs is bounded for all rows (`roundings`).
        """
        if self.kernel is None or isinstance(source, StringSource) or not self.size:
            return True
        n = source.shape[0]
        at = np.unique(np.linspace(0, n - 1, min(n, _LOOKED_AT)).astype(np.intp))
        block = Block(0, source.take(at), None)
        near, exact = (
            to_numpy(self.features(source, kind).f(block))  # type: ignore[attr-defined]
            for kind in (np.float32, np.float64)
        )
        lengths = np.sqrt(np.abs(to_numpy(self.own(block, np.float64)))[:, None])
        allowed = _MANY * float(np.finfo(np.float32).eps) * lengths
        allowed = allowed * np.sqrt(np.abs(np.diag(self.matrix)))
        return not bool(np.any(np.abs(near - exact) > allowed))

    def own(self, block: Block, dtype: Any = None) -> Array:
        """Return k(x, x) of the rows of a block."""
        kind = self.dtype if dtype is None else np.dtype(dtype)
        if self.kernel is None:
            at = np.arange(block.length)
            return cast(block.rows[at, block.start + at], kind)
        return self.kernel.on_diagonal(Points(cast_rows(block.rows, kind), block.start))

    @cached_property
    def inverse(self) -> Matrix:
        """The pseudo-inverse of K_y, by which a point of the span is written in the basis."""
        return self.white @ self.white.T

    def _given(self, source: Source) -> Matrix:
        assert self.basis.at is not None
        rows = to_numpy(source.take(self.basis.at))
        return np.asarray(rows[:, self.basis.at], dtype=np.float64)


def precision(source: Source) -> np.dtype[Any]:
    """Return the precision of the kernel between rows and a basis."""
    few = source.shape[0] <= _FEW_ROWS
    return np.dtype(np.float64) if few else np.dtype(source.dtype)


def between(kernel: Kernel, points: Any) -> Matrix:
    """Return the kernel between points, float64."""
    y = Points(cast_rows(points, np.float64))
    host = isinstance(points, list) or hasattr(points, "tocsr")
    out = empty((len(y), len(y)), np.empty(0) if host else points, np.float64)
    evaluate_into(kernel.on, y, y, out)
    return held(out)


class KernelMoments(Fold):
    """Moments of h(x), and the sum of k(x, x): all that a basis asks of the rows.

    And what bounds the rounding of kernel values: the sum of w k(x,x) C², with C the roundings
    of a row's, and the largest k(x,x) C².

    Kernel values come in the rows' precision, products of them are float64: the span divides
    them by eigenvalues that may be tiny.
    """

    label = "kernel to the basis"

    def __init__(
        self, span: Span, source: Source, *, center: bool, known: Source | None = None
    ) -> None:
        self.span, self.center, self.known = span, center, known
        # Not the rows: sums are kept between batches, and pickled.
        self.source = Seen(source, 0, 0.0)
        self.moments = Moments(span.size, source.reference, np.float64, center=center)
        self.within = self.largest = self.noise = self.loudest = 0.0
        self.nbytes = self.moments.nbytes
        self.row_bytes = span.size * span.dtype.itemsize + self.moments.row_bytes

    def add(self, block: Block) -> None:
        if self.span.kernel is None or self.known is not None:
            self.take(block, self._features.f(block))  # type: ignore[attr-defined]
            return
        require_finite_rows(block, self.source)
        x, kind = self._rows(block), self.span.dtype
        h = evaluate(self.span.kernel.on, x, self._points, self.source.reference, kind)
        self.take(block, h, x)

    def take(self, block: Block, h: Array, x: Points | None = None) -> None:
        """Add the rows of a block, whose kernels to the basis are known."""
        self.moments.add(Block(block.start, h, block.weights))
        kernel = self.span.kernel
        if kernel is None:
            own, each = to_numpy(self.span.own(block)).astype(np.float64), 0.0
        else:
            x = self._rows(block) if x is None else x
            own = to_numpy(kernel.on_diagonal(x)).astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                each = kernel.roundings(x, self._points, self.span.dtype)
        self.within += float(block.count @ own)
        noise = np.abs(own) * each**2
        self.noise += float(block.count @ noise)
        self.loudest = max(self.loudest, float(noise.max(initial=0.0)))
        self.largest = max(self.largest, float(own.max(initial=0.0)))

    def _rows(self, block: Block) -> Points:
        return Points(cast_rows(block.rows, self.span.dtype), block.start)

    @cached_property
    def _points(self) -> Points:
        """The points of the basis, where the rows live."""
        near = KernelMap(self.span.kernel, self.span.basis.points).near(self.source)
        return Points(cast_rows(near, self.span.dtype))

    @cached_property
    def _features(self) -> Source:
        return self.span.features(self.source) if self.known is None else self.known

    def merge(self, other: Self) -> None:
        self.moments.merge(other.moments)
        self.within += other.within
        self.noise += other.noise
        self.loudest = max(self.loudest, other.loudest)
        self.largest = max(self.largest, other.largest)

    def spawn(self) -> Self:
        return type(self)(self.span, self.source, center=self.center, known=self.known)

    def arrays(self) -> dict[str, Array]:
        sums = np.array([self.within, self.largest, self.noise, self.loudest])
        return {"own": sums, **self.moments.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.within, self.largest, *noise = (float(x) for x in arrays["own"])
        if not noise:  # sums that were saved without it: what holds for any rows
            noise = [self._most_noise * self.within, self._most_noise * self.largest]
        self.noise, self.loudest = noise
        self.moments.restore({k: v for k, v in arrays.items() if k != "own"})

    @property
    def _most_noise(self) -> float:
        """Squared roundings of a kernel value, whatever the row is."""
        if self.span.kernel is None:
            return 0.0
        x = self._points  # strings of any length cost what those of the basis do
        if not isinstance(x.rows, list):
            x = Points(np.full((1, self.source.shape[1]), np.inf))
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.max(self.span.kernel.roundings(x, x, self.span.dtype)) ** 2)

    def settle(self) -> None:
        self.moments.settle()

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        return self.moments.weight

    @property
    def mean(self) -> Vector:
        """Mean of h."""
        return self.moments.mean

    @property
    def scatter(self) -> Matrix:
        """Scatter of h about its mean."""
        return self.moments.scatter

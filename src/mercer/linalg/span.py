"""The span of landmarks in feature space, and the moments of one pass over the rows.

A basis Y of m points spans a subspace of feature space. With h(x) = k(Y, x), K_y = k(Y, Y) and
TᵀK_yT = I, f(x) = Tᵀh(x) are orthonormal coordinates in it: the projection of Φ(x) on the span
has the norm of f(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    cholesky_whitener,
    eigh,
    empty,
    is_finite,
    longest_column,
    namespace,
    reference_of,
    small_matrix,
    squares,
    to_numpy,
)
from mercer.data import Block, PastRows, Source, StringSource
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import KernelFeatures, KernelMap, evaluate_into
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.moments import Moments
from mercer.threads import serial_blas

# Directions of the span below this share of the largest are dropped: they are known up to
# rounding only. Float32 values lose more of them.
_CUT = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 1e-8}
# If K_y is no worse conditioned than this, its Cholesky factor is the whitener.
_GOOD = 1e6
# Kernel values are computed in float64 if float32 is off by more unit roundoffs than this in a
# sample of rows: these lie far apart compared with the width of the kernel.
_MANY, _SAMPLE = 16.0, 64
# So few rows take no longer in float64 than finding out what float32 would cost.
FEW_ROWS = 2048


Beside = tuple[Callable[[Block], Array], int]


@dataclass(frozen=True)
class Basis:
    """The landmarks."""

    points: Any
    """The points; None if rows are a kernel matrix, of which `at` are columns."""
    at: np.ndarray[Any, Any] | None = None
    """Indices of the rows that the points are; None if they are not rows."""
    counts: Vector | None = None
    """Number of rows that each point represents, one over its probability to be drawn, if any."""
    sizes: Vector | None = None
    """Number of rows of the cluster of which each point is the center, if it is one."""

    def __len__(self) -> int:
        if self.at is not None:
            return len(self.at)
        shape = getattr(self.points, "shape", None)
        return len(self.points) if shape is None else int(shape[0])


class Span:
    """The span of a basis in feature space.

    `matrix` is K_y in float64, and `dtype` the precision of kernel values: that of the rows, or
    float64 if float32 loses their digits or if there are few rows. `whitener` is T, m×p: from the
    Cholesky factor of K_y or, if that is ill-conditioned, from its eigenvectors, Uκ^{-1/2},
    without those whose κ is rounding. `norm2` and `norm_fro` are ‖T‖₂² and ‖TTᵀ‖_F, or bounds on
    them, of as many leading directions as `ranks` says.
    """

    def __init__(
        self, kernel: Kernel | None, basis: Basis, source: Source, dtype: Any = None
    ) -> None:
        self.kernel, self.basis = kernel, basis
        if dtype is None:
            dtype = np.float64 if source.shape[0] <= FEW_ROWS else source.dtype
        self.dtype = np.dtype(dtype)
        self.reference = source.reference
        if kernel is None:
            assert basis.at is not None
            rows = to_numpy(source.take(basis.at))
            self.matrix = np.asarray(rows[:, basis.at], dtype=np.float64)
        else:
            self.matrix = kernel_matrix(kernel, basis.points)
        if not is_finite(self.matrix):
            raise ValueError(
                f"{kernel!r} gives NaN or infinity between points of the basis. Scale the rows, "
                f"or change the kernel's parameters."
            )
        if self.dtype == np.float32 and not self.suits_float32(source):
            self.dtype = np.dtype(np.float64)
        with serial_blas():
            if not self._by_cholesky():
                self._by_eigenvectors()

    # Computed, not stored: a model file holds the matrix and the whitener.
    @property
    def size(self) -> int:
        return len(self.matrix)

    @property
    def rank(self) -> int:
        return int(self.whitener.shape[1])

    @cached_property
    def error(self) -> float:
        """Bound on the error of K_y, in Frobenius norm, including that of its whitener."""
        own, u = np.abs(np.diag(self.matrix)), float(np.finfo(np.float64).eps) / 2
        each: Any = 0.0
        if self.kernel is not None and self.size:
            y = Points(cast_rows(self.basis.points, np.float64))
            with np.errstate(over="ignore", invalid="ignore"):
                each = self.kernel.roundings(y, y, np.float64)
        values = math.sqrt(float(np.sum(own * each**2)) * float(own.sum()))
        return u * (values + 16.0 * self.size * float(own.sum()))

    def _by_cholesky(self) -> bool:
        """Set the whitener from a triangular factor; False if that would lose digits."""
        if not self.size:
            return False
        whitener = cholesky_whitener(self.matrix)
        if whitener is None:
            return False
        product = whitener @ whitener.T
        norm2 = longest_column(product)
        if not norm2 * longest_column(self.matrix) <= _GOOD:
            return False
        self.whitener: Matrix = whitener
        self.ranks = np.array([self.size])
        self.norm2, self.norm_fro = np.array([norm2]), np.array([math.sqrt(squares(product))])
        return True

    def _by_eigenvectors(self) -> None:
        values, U = eigh((self.matrix + self.matrix.T) / 2)
        # For an indefinite kernel, directions no longer than its negative ones mean nothing.
        largest, lowest = np.max(values, initial=0.0), np.min(values, initial=0.0)
        least = max(_CUT[self.dtype] * largest, -lowest)
        rank = int((values > least).sum())
        values, U = values[:rank], U[:, :rank]
        self.whitener = U / np.sqrt(values)
        self.ranks = np.arange(1, len(values) + 1)
        self.norm2, self.norm_fro = 1.0 / values, np.sqrt(np.cumsum(values**-2.0))

    def features(self, source: Source, dtype: Any = None) -> Source:
        return source.map(self.feature_map(source, dtype))

    def feature_map(self, source: Source, dtype: Any = None) -> KernelFeatures:
        """Return the map h for rows of a source."""
        basis = self.basis.at if self.kernel is None else self.basis.points
        return KernelMap(self.kernel, basis).on(source, self.dtype if dtype is None else dtype)

    def suits_float32(self, source: Source) -> bool:
        """Return whether float32 seems to keep the digits of the kernel, from some of the rows.

        This only chooses the precision; the cost of rounding is bounded for all rows.
        """
        if self.kernel is None or isinstance(source, StringSource) or not self.size:
            return True
        n = source.shape[0]
        at = np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))
        block = Block(0, source.take(at), None)
        rounded, exact = (
            to_numpy(self.feature_map(source, dtype)(block)) for dtype in (np.float32, np.float64)
        )
        norms = np.sqrt(np.abs(to_numpy(self.diag(block, np.float64)))[:, None])
        allowed = _MANY * float(np.finfo(np.float32).eps) * norms
        allowed = allowed * np.sqrt(np.abs(np.diag(self.matrix)))
        return not bool(np.any(np.abs(rounded - exact) > allowed))

    def diag(self, block: Block, dtype: Any = None) -> Array:
        """Return k(x, x) of the rows of a block."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        if self.kernel is None:
            at = np.arange(block.length)
            return cast(block.rows[at, block.start + at], dtype)
        return self.kernel.on_diagonal(Points(cast_rows(block.rows, dtype), block.start))

    @cached_property
    def inverse(self) -> Matrix:
        return self.whitener @ self.whitener.T


def kernel_matrix(kernel: Kernel, points: Any) -> Matrix:
    """Return the kernel matrix of points, float64."""
    y = Points(cast_rows(points, np.float64))
    out = empty((len(y), len(y)), reference_of(points), np.float64)
    evaluate_into(kernel.on, y, y, out)
    return small_matrix(out)


class KernelMoments(Moments):
    """Moments of h(x), and the sum and maximum of k(x, x).

    Also the sum and maximum of w k(x,x) C², which bound the rounding of kernel values; C is the
    bound of each row in unit roundoffs (`Kernel.roundings`).

    Kernel values are in the precision of the rows, their products in float64, because the span
    divides them by eigenvalues that may be tiny. Rows with NaN or infinity are refused.

    `beside` is a function of a block and its width: these columns follow those of h(x).
    """

    label = "kernel to the landmarks"

    def __init__(
        self, span: Span, source: Source, *, center: bool, beside: Beside | None = None
    ) -> None:
        width = len(span.matrix) + (0 if beside is None else beside[1])
        super().__init__(width, source.reference, np.float64, center=center)
        self.span, self.beside = span, beside
        # Sums that are sent to workers, or outlive the rows of a batch, go without the rows.
        self.source = source if source.remote is None else PastRows(source, 0, 0.0)
        self.diag_sum = self.diag_max = self.rounding_sum = self.rounding_max = 0.0
        self.row_bytes += self.d * span.dtype.itemsize

    def add(self, block: Block) -> None:
        self.add_features(block, self._map(block))

    def add_features(self, block: Block, h: Array) -> None:
        """Add the rows of a block whose kernels to the basis are known."""
        columns = h
        if self.beside is not None:
            columns = namespace(h).concat([cast(h, np.float64), self.beside[0](block)], axis=1)
        super().add(Block(block.start, columns, block.weights))
        kernel, errors = self.span.kernel, 0.0
        if kernel is None:
            diag = to_numpy(self.span.diag(block)).astype(np.float64)
        else:
            x = Points(cast_rows(block.rows, self.span.dtype), block.start)
            diag = to_numpy(kernel.on_diagonal(x)).astype(np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                errors = kernel.roundings(x, self._map.basis, self.span.dtype)
        rounding = np.abs(diag) * errors**2
        self.diag_sum += float(block.count @ diag)
        self.rounding_sum += float(block.count @ rounding)
        self.diag_max = max(self.diag_max, float(diag.max(initial=0.0)))
        self.rounding_max = max(self.rounding_max, float(rounding.max(initial=0.0)))

    @cached_property
    def _map(self) -> KernelFeatures:
        return self.span.feature_map(self.source)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.diag_sum += other.diag_sum
        self.rounding_sum += other.rounding_sum
        self.rounding_max = max(self.rounding_max, other.rounding_max)
        self.diag_max = max(self.diag_max, other.diag_max)

    def spawn(self) -> Self:
        others = {} if self.beside is None else {"beside": self.beside}
        return type(self)(self.span, self.source, center=self.center, **others)

    def arrays(self) -> dict[str, Array]:
        sums = np.array([self.diag_sum, self.diag_max, self.rounding_sum, self.rounding_max])
        return {"own": sums, **super().arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.diag_sum, self.diag_max, *rounding = (float(x) for x in arrays["own"])
        if not rounding and self.span.kernel is not None:  # saved without: the bound for any rows
            x = self._map.basis  # strings of any length round as those of the basis do
            if not isinstance(x.rows, list):
                x = Points(np.full((1, self.source.shape[1]), np.inf))
            with np.errstate(over="ignore", invalid="ignore"):
                worst = float(np.max(self.span.kernel.roundings(x, x, self.span.dtype)) ** 2)
            rounding = [worst * self.diag_sum, worst * self.diag_max]
        self.rounding_sum, self.rounding_max = rounding or (0.0, 0.0)

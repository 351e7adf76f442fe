"""The centered kernel matrix as an operator."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import (
    FEW,
    Array,
    Matrix,
    Vector,
    cast,
    confidence,
    like,
    namespace,
    numpy_dtype,
    product_eps,
    summed,
    to_numpy,
)
from mercer.config import get_config
from mercer.data import Block, Source, require_finite_entries, require_finite_rows
from mercer.kernels import Kernel
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.operator import Figure, Operator
from mercer.linalg.upper_blocks import SymmetricFill, SymmetricProduct, UpperBlocks, upper_blocks

# Number of vectors in a product with a matrix that is not stored: more cost little.
WIDE = 32
# Kernel values between this and its inverse have squares that float64 can represent.
_MODERATE = 1e-120
# A larger bound on the rounding of kernel values says too little.
_VAGUE = 1e-6


class Gram(Operator):
    r"""The centered, weighted kernel matrix of n rows, formed only by `dense`.

    .. math:: \frac1c\sqrt{w_iw_j}\,\langle\Phi(x_i)-\bar\Phi, \Phi(x_j)-\bar\Phi\rangle

    With u the unit vector along √w, this is PKP/c with P = I − uuᵀ and K the weighted matrix: it
    is centered by projecting vectors, never by a copy.

    The upper blocks of K are stored in the precision `store`, or computed again for every product,
    as they always are for remote rows. A float32 matrix only drives an iteration: a product with
    float64 vectors computes K again. Without a kernel the rows are K itself.

    The first walk over all pairs, in the precision `dtype` where K is not stored, also computes
    `first`, the product with the vectors `along`, and `means` of the kernel between each row and
    all rows, whose mean `mean_square` is the squared norm of the mean in feature space. `scaled`
    divides the matrix by `scale`, a power of two, where squares of its eigenvalues might over- or
    underflow.
    """

    def __init__(
        self,
        kernel: Kernel | None,
        source: Source,
        *,
        center: bool = True,
        store: Any = None,
        along: Array = None,
        dtype: Any = None,
        scaled: bool = False,
    ) -> None:
        if store is not None and source.remote is not None and kernel is not None:
            store, dtype = None, store  # remote rows: computed again for every product
        self.kernel, self.source, self.center = kernel, source, center
        self.size, self.reference = source.shape[0], source.reference
        self.divisor = source.count - 1.0
        self.dtype = np.dtype(store if store is not None else dtype or source.dtype)
        self.psd = kernel is not None and kernel.psd is True
        self.blocks = upper_blocks(kernel, source, self.dtype, keep=store is not None)
        weights = np.ones(self.size) if source.weights is None else source.weights
        self.roots = like(np.sqrt(weights), self.reference)[:, None]
        self.unit = self.roots / source.count**0.5
        self.check_interval = 1  # a product costs more than a check
        self.block = 16 if store is not None or kernel is None else WIDE
        self.probe_dtype = None if store is None and kernel is not None else self.dtype
        self.exact_means = self.dtype == np.float64
        self.diag = to_numpy(self._diagonal()).astype(np.float64)
        largest = float(np.max(np.abs(self.diag), initial=0.0))
        if scaled and not _MODERATE < largest < 1.0 / _MODERATE and 0.0 < largest < math.inf:
            self.scale = float(np.exp2(np.floor(np.log2(largest))))
            self.divisor *= self.scale
        self.first = self._survey(along)

    scale = 1.0

    @property
    def noise_floor(self) -> float:
        eps = float(np.finfo(np.float64).eps)
        width = self.source.shape[1] if len(self.source.shape) > 1 else 1
        return 4.0 * eps * (self.size + width) * self.amount / self.divisor

    @property
    def product_error(self) -> float:
        if self.dtype == np.float64:
            return self.rounding
        eps = product_eps(self.dtype, self.reference, coarse=get_config().tf32)
        return self._rounding(self.dtype, eps / 2)

    @property
    def rank(self) -> int:
        return self.size - 1 if self.center else self.size

    def project(self, V: Array) -> Array:
        if not self.center:
            return V
        unit = cast(self.unit, numpy_dtype(V))
        return V - unit @ (unit.T @ V)

    def matmat(self, V: Array) -> Array:
        dtype = numpy_dtype(V)
        W = cast(self.project(V), np.float64)
        if dtype == np.float64 and not self.exact_means:
            W = namespace(W).concat([W, self.unit], axis=1)
        product = self.times(W, dtype)
        if product.shape[1] > V.shape[1]:
            self._set_means(product[:, -1:], exact=True)
            product = product[:, :-1]
        return self.project(product) / self.divisor

    def dense(self) -> Matrix:
        A = np.empty((self.size, self.size))
        self._blocks_in(np.float64).fold(SymmetricFill(A))
        roots = to_numpy(self.roots)
        if self.source.weights is not None:
            A *= roots
            A *= roots.T
        unit = to_numpy(self.unit)
        if not self.exact_means:
            self._set_means(like(A @ unit, self.reference), exact=True)
        if self.center:
            for half in (A, A.T):  # PAP, in place
                half -= unit @ (unit.T @ half)
        A /= self.divisor
        return A

    def _diagonal(self) -> Array:
        """Return k(x, x) of every row; raise if rows have NaN or infinity."""
        if self.kernel is None:
            require_finite_entries(self.source)
            matrix = self.source.load()
            return namespace(matrix).linalg.diagonal(matrix)
        source, on_diagonal = self.source, self.kernel.on_diagonal

        def diagonal(block: Block) -> Array:
            require_finite_rows(block, source)
            with np.errstate(invalid="ignore", over="ignore"):  # checked when all is known
                return on_diagonal(Points(cast_rows(block.rows, np.float64), block.start))[:, None]

        return source.map(diagonal, 1, np.float64).collect(label="kernel matrix")[:, 0]

    def _survey(self, along: Array) -> Array:
        """Compute means, trace and squares in one pass over all pairs; stores the blocks."""
        # In float32 the sum of squares costs more than it saves where products are cheap.
        skip = self.psd and self.probe_dtype is not None and self.dtype != np.float64
        V = self.unit
        if along is not None:
            V, skip = namespace(V).concat([V, self.project(along)], axis=1), False
        roots, weighted = None if skip else self.roots, self.source.weights is not None
        fold = SymmetricProduct(self.roots * V, self.dtype, roots, weighted=weighted)
        fold = self.blocks.fold(fold)
        self._set_means(fold.result[:, :1] * self.roots)
        if roots is not None:
            g, u = to_numpy(self._along)[:, 0], to_numpy(self.unit)[:, 0]
            with np.errstate(over="ignore", invalid="ignore"):
                less = 2.0 * (g @ g) - (u @ g) ** 2 if self.center else 0.0
                # The difference may be less than its rounding: K and Ku are off by δ in Frobenius
                # norm, and neither is larger than ‖K‖.
                error = self.product_error * self.divisor
                found = float(fold.sums["square"])
                slack = (8.0 * math.sqrt(found) + 4.0 * error) * error
                square = (found - less + slack) / self.divisor / self.divisor
            if np.isfinite(square) and self.scale == 1.0:  # else squares over- or underflow
                self.square = Figure(max(0.0, square), "bound", confidence(self.dtype))
        if along is None:
            return None
        return self.project(fold.result[:, 1:] * self.roots) / self.divisor

    def times(self, V: Array, dtype: Any = np.float64) -> Array:
        """Return the product with the weighted matrix, neither centered nor divided."""
        blocks = self._blocks_in(dtype)
        return blocks.fold(SymmetricProduct(V * self.roots, blocks.dtype)).result * self.roots

    def _blocks_in(self, dtype: Any) -> UpperBlocks:
        """Return the blocks in a precision: those at hand, or computed again."""
        if dtype == self.dtype:
            return self.blocks
        return upper_blocks(self.kernel, self.source, dtype, keep=False)

    def _set_means(self, along: Array, *, exact: bool = False) -> None:
        """Set the means, trace and rounding that follow from the product with u."""
        self._along, self.exact_means = along, self.exact_means or exact
        weights = to_numpy(self.roots)[:, 0] ** 2
        count = self.source.count
        g = to_numpy(along)[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = g / (np.sqrt(weights) * count**0.5)
        self.means: Vector = np.where(weights > 0, means, 0.0)
        self.mean_square = float(weights @ self.means) / count
        self.amount = float(weights @ np.abs(self.diag))
        within = float(weights @ self.diag)
        within -= self.mean_square * count if self.center else 0.0
        self.trace = within / self.divisor
        self.rounding = self._rounding(np.float64, float(np.finfo(np.float64).eps) / 2)

    def _rounding(self, dtype: Any, u: float) -> float:
        """Bound the rounding of kernel values and of their products, in Frobenius norm."""
        weights = to_numpy(self.roots)[:, 0] ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            rows = self._row_rounding(dtype)
            values = math.sqrt(float(weights @ (np.abs(self.diag) * rows**2)))
            products = (summed(self.size, dtype, self.reference) + FEW) * math.sqrt(self.amount)
            return 4.0 * u * (values + products) * math.sqrt(self.amount) / self.divisor

    def _row_rounding(self, dtype: Any) -> Any:
        """Bound the error of the kernel values of each row, in unit roundoffs of a precision.

        Of remote rows: a bound for any rows, or for any rows that are no larger.
        """
        if self.kernel is None:
            return 0.0
        points = getattr(self.blocks, "points", None)
        if points is not None:
            return self._rounding_among(points, dtype)
        rows = self._rounding_among(Points(np.full((1, self.source.shape[1]), np.inf)), dtype)
        if np.max(rows) * float(np.finfo(dtype).eps) < _VAGUE:
            return rows
        # One row on either side of zero, which keeps them from being shifted.
        extremes = np.outer(
            [self._twice_largest, -self._twice_largest], np.ones(self.source.shape[1])
        )
        return self._rounding_among(Points(extremes), dtype)

    def _rounding_among(self, points: Points, dtype: Any) -> Vector:
        assert self.kernel is not None
        with np.errstate(over="ignore", invalid="ignore"):
            each = np.asarray(self.kernel.roundings(points, points, dtype), np.float64)
        return each if each.shape == (self.size,) else np.full(self.size, np.max(each))

    @cached_property
    def _twice_largest(self) -> float:
        """Twice the largest entry of the rows: shifted or not, no entry is larger."""

        def sizes(block: Block) -> Array:
            return namespace(block.rows).max(abs(block.dense(np.float64)), axis=1)[:, None]

        largest = self.source.map(sizes, 1, np.float64).collect(label="kernel matrix")
        return 2.0 * float(np.max(to_numpy(largest), initial=0.0))


class LowPrecisionGram(Operator):
    """A kernel matrix with products in its cheap precision, whose rounding is counted.

    `unseen_bound` bounds the norm of the part that the vectors of its first product do not see.
    """

    def __init__(self, gram: Gram, unseen_bound: float | None = None) -> None:
        self.gram, self.unseen_bound = gram, unseen_bound
        self.size, self.trace, self.psd = gram.size, gram.trace, gram.psd
        self.reference = gram.reference
        self.square, self.rounding = gram.square, gram.product_error
        self.probe_dtype = gram.probe_dtype
        self.block, self.check_interval = gram.block, gram.check_interval
        self.confidence = confidence(gram.dtype)

    @property
    def noise_floor(self) -> float:
        if self.gram.dtype == np.float64:
            return self.gram.noise_floor
        return 16.0 * float(np.finfo(np.float32).eps) * self.gram.amount / self.gram.divisor

    @property
    def rank(self) -> int:
        return self.gram.rank

    def project(self, V: Array) -> Array:
        return self.gram.project(V)

    def matmat(self, V: Array) -> Array:
        return self.gram.matmat(cast(V, self.gram.dtype))

    def dense(self) -> Matrix:
        return self.gram.dense()

"""Operators of linear PCA: covariance and dot products of standardized rows, never formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, empty, like, numpy_dtype
from mercer.data import Block, Source
from mercer.linalg.centering import Centering
from mercer.linalg.moments import Moments
from mercer.linalg.operator import Operator
from mercer.linalg.products import AdjointProduct, CovarianceProduct
from mercer.messages import format_parameter


class StandardizedOperator(Operator):
    """An operator made of standardized rows: centered, and divided by their deviations.

    Parameters
    ----------
    source : Source
        The rows.
    mean, deviation : ndarray
        What is subtracted from each column, and what it is divided by.
    divisor : float
        The number c that the sum is divided by.
    variance : float
        Total variance of the standardized rows.
    """

    axis: int
    """The axis of the rows whose length is the size of the operator."""

    def __init__(
        self, source: Source, mean: Vector, deviation: Vector, divisor: float, variance: float
    ) -> None:
        self.source, self.mean, self.deviation = source, mean, deviation
        self.divisor = divisor
        self.plain = not np.any(deviation != 1.0)
        self.size = source.shape[self.axis]
        self.trace = variance
        self.dtype = source.dtype
        self.rounding = _rounding(source, mean / deviation, divisor, variance)

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def rank(self) -> int:
        return min(self.source.shape)


class CovarianceOperator(StandardizedOperator):
    r"""The covariance matrix :math:`\frac1c\sum_i w_i (x_i-\mu)(x_i-\mu)^T`, d×d, never formed.

    A product is one pass over the rows.
    """

    axis = 1

    def matmat(self, V: Array) -> Array:
        dtype = numpy_dtype(V)
        scale = like(self.deviation, V)[:, None]
        V = cast(V / scale, dtype)
        fold = CovarianceProduct(Centering(self.mean, dtype, V), V, tuple(V.shape))
        return self.source.fold(fold).result / scale / self.divisor

    def dense(self) -> Matrix:
        fold = Moments(self.size, self.reference, np.float64, center=bool(np.any(self.mean)))
        scatter = self.source.fold(fold).scatter / self.divisor
        return scatter / np.outer(self.deviation, self.deviation)


class DotOperator(StandardizedOperator):
    r"""Dot products :math:`\frac1c\sqrt{w_iw_j}\,(x_i-\mu)^T(x_j-\mu)`, n×n, never formed.

    Its nonzero eigenvalues are those of `CovarianceOperator`; it is the smaller of the two where
    there are fewer rows than columns. `lift` turns its eigenvectors into components.
    """

    axis = 0

    def columns(self, dtype: Any) -> Source | None:
        """Return the standardized, weighted columns as rows of a source; None if unreadable."""
        columns = self.source.transposed()
        if columns is None:
            return None
        mean = like(self.mean, self.reference, dtype)[:, None]
        divide = like(self.deviation, self.reference, dtype)[:, None]
        roots = self._roots(dtype).T
        center, weighted = bool(np.any(self.mean)), self.source.weights is not None

        def standardize(block: Block) -> Array:
            rows = block.dense(dtype)
            rows = rows - mean[block.start : block.stop, :] if center else rows
            rows = rows if self.plain else rows / divide[block.start : block.stop, :]
            return rows * roots if weighted else rows

        return columns.map(standardize, self.size, dtype)

    def lift(self, V: Array, *, exact: bool = False) -> Array:
        """Return the product of the transposed standardized rows with V, d×b, in V's precision.

        `exact` centers sparse columns before the product, one dense block at a time; otherwise
        they are centered after it.
        """
        dtype, width = numpy_dtype(V), int(V.shape[1])
        divide = like(self.deviation, V, dtype)[:, None]
        if self.source.sparse and not exact:
            # C order: SciPy would copy V to it for every block.
            V = np.ascontiguousarray(self._weight(self._center(V)))
            columns = self.source.transposed()
            lifted = columns.map(lambda block: block.rows @ V, width, dtype)  # type: ignore[union-attr]
            lifted = lifted.collect(label="product")
            return lifted if self.plain else np.divide(lifted, divide, out=lifted)
        columns = self.columns(dtype)
        if columns is not None:
            # One column after the other in memory, as components are returned.
            out = empty((width, self.source.shape[1]), V, dtype).T
            return columns.map(lambda block: (V.T @ block.rows.T).T, width).collect(
                out, label="product"
            )
        V = V * self._roots(dtype)
        fold = AdjointProduct(Centering(self.mean, dtype, V), V, (self.source.shape[1], width))
        return cast(self.source.fold(fold).result, dtype) / divide

    def matmat(self, V: Array) -> Array:
        dtype, width = numpy_dtype(V), int(V.shape[1])
        Y = self.lift(V)
        if not self.plain:
            Y = Y / like(self.deviation, V, dtype)[:, None]
        if self.source.sparse:
            rows = self.source.map(lambda block: block.rows @ Y, width, np.float64)
            return self._center(self._weight(rows.collect(label="product"))) / self.divisor
        centering = Centering(self.mean, dtype, V)
        extra = self.source.shape[1] * dtype.itemsize
        rows = self.source.map(lambda block: centering(block.rows) @ Y, width, np.float64, extra)
        return self._weight(rows.collect(label="product")) / self.divisor

    def dense(self) -> Matrix:
        return self.moments(np.float64).scatter / self.divisor

    def moments(self, products: Any) -> Moments:
        """Return the dot products as the scatter of the standardized columns, in one pass."""
        columns = self.columns(products)
        if columns is None:
            raise ValueError(
                f"{type(self.source).__name__} cannot be read by columns, which the dot matrix "
                f"needs. Use {format_parameter('svd_solver', 'krylov')}."
            )
        return columns.fold(Moments(self.size, self.reference, products, center=False))

    def _weight(self, V: Array) -> Array:
        return V if self.source.weights is None else V * self._roots(numpy_dtype(V))

    def _center(self, V: Array) -> Array:
        """Project out √w, which centers the products of sparse rows."""
        if not np.any(self.mean):
            return V
        u = self._roots(numpy_dtype(V)) / self.source.count**0.5
        return V - u @ (u.T @ V)

    def _roots(self, dtype: Any) -> Array:
        w = np.ones(self.size) if self.source.weights is None else self.source.weights
        return like(np.sqrt(w), self.reference, dtype)[:, None]


def _rounding(source: Source, mean: Vector, divisor: float, variance: float) -> float:
    """Bound the rounding of float64 products: γ times the sum of the products' sizes.

    Dense rows are centered first; sparse rows are not, and their mean counts too.
    """
    amount = variance
    if source.sparse:
        amount += float(mean @ mean) * source.count / divisor
    return float(np.finfo(np.float64).eps) * (source.shape[0] + source.shape[1]) * amount

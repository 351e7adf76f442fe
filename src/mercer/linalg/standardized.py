"""Operators of linear PCA: the covariance and the dot products of treated rows, never formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, empty, like, numpy_dtype
from mercer.data import Block, Source
from mercer.linalg import Adjoint, Centre, Moments, Product
from mercer.linalg.operator import Operator


class Treated(Operator):
    """An operator made of treated rows: less their mean, divided by their deviation.

    Parameters
    ----------
    source : Source
        The rows.
    mean, deviation : ndarray
        What is subtracted from each column, and what it is then divided by.
    divisor : float
        The number c that the sum is divided by.
    variance : float
        Total variance of the rows so treated.
    """

    axis: int
    """Whether it is as large as the rows are many (0) or as long (1)."""

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


class Covariance(Treated):
    r"""The covariance matrix :math:`\frac1c\sum_i w_i (x_i-\mu)(x_i-\mu)^T`, d×d, never formed.

    A product is one pass over the rows.
    """

    axis = 1

    def matmat(self, V: Array) -> Array:
        kind = numpy_dtype(V)
        scale = like(self.deviation, V)[:, None]
        V = cast(V / scale, kind)
        fold = Product(Centre(self.mean, kind, V), V, tuple(V.shape))
        return self.source.fold(fold).result / scale / self.divisor

    def dense(self) -> Matrix:
        fold = Moments(self.size, self.reference, np.float64, center=bool(np.any(self.mean)))
        scatter = self.source.fold(fold).scatter / self.divisor
        return scatter / np.outer(self.deviation, self.deviation)


class Dots(Treated):
    r"""Dot products :math:`\frac1c\sqrt{w_iw_j}\,(x_i-\mu)^T(x_j-\mu)`, n×n, never formed.

    The nonzero eigenvalues are those of `Covariance`; it is the smaller of the two where
    there are fewer rows than columns. `lift` takes its eigenvectors to principal axes.
    """

    axis = 0

    def columns(self, dtype: Any) -> Source | None:
        """Return the treated columns as rows of a source: centred, divided, weighed."""
        columns = self.source.transposed()
        if columns is None:
            return None
        mean = like(self.mean, self.reference, dtype)[:, None]
        divide = like(self.deviation, self.reference, dtype)[:, None]
        roots = self._roots(dtype).T
        far, unit = bool(np.any(self.mean)), self.source.weights is None

        def treated(block: Block) -> Array:
            rows = block.dense(dtype)
            rows = rows - mean[block.start : block.stop, :] if far else rows
            rows = rows if self.plain else rows / divide[block.start : block.stop, :]
            return rows if unit else rows * roots

        return columns.map(treated, self.size, dtype)

    def lift(self, V: Array, *, exact: bool = False) -> Array:
        """Return the product of the treated data's transpose with V, d×b, in V's precision.

        `exact` centres sparse columns before the product, a dense block at a time, where they
        are otherwise centred after it.
        """
        kind, width = numpy_dtype(V), int(V.shape[1])
        divide = like(self.deviation, V, kind)[:, None]
        if self.source.sparse and not exact:
            # In C order: SciPy would copy it so for every block.
            V = np.ascontiguousarray(self._weighed(self._centred(V)))
            columns = self.source.transposed()
            lifted = columns.map(lambda block: block.rows @ V, width, kind)  # type: ignore[union-attr]
            lifted = lifted.collect(label="product")
            return lifted if self.plain else np.divide(lifted, divide, out=lifted)
        columns = self.columns(kind)
        if columns is not None:
            # Column after column in memory, as axes are handed out.
            out = empty((width, self.source.shape[1]), V, kind).T
            return columns.map(lambda block: (V.T @ block.rows.T).T, width).collect(
                out, label="product"
            )
        V = V * self._roots(kind)
        fold = Adjoint(Centre(self.mean, kind, V), V, (self.source.shape[1], width))
        return cast(self.source.fold(fold).result, kind) / divide

    def matmat(self, V: Array) -> Array:
        kind, width = numpy_dtype(V), int(V.shape[1])
        Y = self.lift(V)
        if not self.plain:
            Y = Y / like(self.deviation, V, kind)[:, None]
        if self.source.sparse:
            rows = self.source.map(lambda block: block.rows @ Y, width, np.float64)
            return self._centred(self._weighed(rows.collect(label="product"))) / self.divisor
        centre = Centre(self.mean, kind, V)
        extra = self.source.shape[1] * kind.itemsize
        rows = self.source.map(lambda block: centre(block.rows) @ Y, width, np.float64, extra)
        return self._weighed(rows.collect(label="product")) / self.divisor

    def dense(self) -> Matrix:
        return self.moments(np.float64).scatter / self.divisor

    def moments(self, products: Any) -> Moments:
        """Return the dot products as the scatter of the treated columns, one pass over them."""
        columns = self.columns(products)
        if columns is None:
            raise ValueError(
                f"{type(self.source).__name__} cannot be read by columns, which the dot matrix "
                f'needs. Use svd_solver="krylov".'
            )
        return columns.fold(Moments(self.size, self.reference, products, center=False))

    def _weighed(self, V: Array) -> Array:
        return V if self.source.weights is None else V * self._roots(numpy_dtype(V))

    def _centred(self, V: Array) -> Array:
        """Return V less its part along √w: the products of sparse rows are centred so."""
        if not np.any(self.mean):
            return V
        u = self._roots(numpy_dtype(V)) / self.source.count**0.5
        return V - u @ (u.T @ V)

    def _roots(self, dtype: Any) -> Array:
        w = np.ones(self.size) if self.source.weights is None else self.source.weights
        return like(np.sqrt(w), self.reference, dtype)[:, None]


def _rounding(source: Source, mean: Vector, divisor: float, variance: float) -> float:
    """Bound the rounding of float64 products: γ times what the summed products amount to.

    Dense rows are centred first; sparse rows are not, so their mean counts too.
    """
    amount = variance
    if source.sparse:
        amount += float(mean @ mean) * source.count / divisor
    return float(np.finfo(np.float64).eps) * (source.shape[0] + source.shape[1]) * amount

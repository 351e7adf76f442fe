"""Operators of linear PCA: covariance and dot products of standardized rows, never formed."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    empty,
    like,
    namespace,
    numpy_dtype,
    to_numpy,
)
from mercer.data import Block, Source, SumFold
from mercer.linalg.moments import Moments
from mercer.linalg.operator import Operator

# Largest product of sparse rows that is summed over columns: the first is added to in random
# order and must stay in the cache, the second is copied for every worker.
_LIFT_BYTES, _PRODUCT_BYTES = 2 * 2**20, 32 * 2**20


def transpose(rows: Array) -> Array:
    """Return rows transposed, without a copy: SciPy would copy the entries of a slice."""
    if getattr(rows, "format", "") != "csr" or not isinstance(rows.data, np.ndarray):
        return rows.T
    import scipy.sparse

    columns = scipy.sparse.csc_array(rows.shape[::-1], dtype=rows.dtype)
    columns.data, columns.indices, columns.indptr = rows.data, rows.indices, rows.indptr
    return columns


class Centering:
    """Subtracts a mean: from dense rows before a product, from sparse rows after it."""

    def __init__(self, mean: Array, dtype: Any, reference: Array) -> None:
        self.dtype = np.dtype(dtype)
        self.mean = like(to_numpy(mean), reference, self.dtype)
        self.zero = not np.any(to_numpy(mean))

    def __call__(self, rows: Array) -> Array:
        """Return dense rows centered, and sparse rows unchanged, in the precision `dtype`."""
        if hasattr(rows, "tocsr"):
            return rows.astype(self.dtype, copy=False)
        rows = cast(rows, self.dtype)
        return rows if self.zero else rows - self.mean

    def times(self, rows: Array, V: Array) -> Array:
        """Return (rows - mean) @ V for rows that `__call__` returned."""
        product = rows @ V
        late = hasattr(rows, "tocsr") and not self.zero
        return product - self.mean @ V if late else product

    def transposed_times(self, rows: Array, V: Array) -> Array:
        """Return (rows - mean)ᵀ @ V for rows that `__call__` returned."""
        product = transpose(rows) @ V
        late = hasattr(rows, "tocsr") and not self.zero
        return product - self.mean[:, None] * namespace(V).sum(V, axis=0) if late else product


class CovarianceProduct(SumFold):
    r"""The product :math:`\sum_i w_i (x_i-\mu)(x_i-\mu)^T V`, in one pass, in V's precision.

    It is summed in float64. A subclass may multiply by other vectors: `shape` is that of the sum.
    """

    label = "product"

    def __init__(self, centering: Centering, V: Array, shape: tuple[int, int]) -> None:
        # C order: SciPy would copy V to it for every sparse block.
        V = np.ascontiguousarray(V) if isinstance(V, np.ndarray) else V
        self.centering, self.V, self.shape = centering, V, shape
        self.inputs = (V,)
        self.sums = {"result": like(np.zeros(shape), V)}
        self.row_bytes = (shape[0] + 2 * shape[1]) * centering.dtype.itemsize
        self.nbytes = shape[0] * shape[1] * 8

    def add(self, block: Block) -> None:
        rows = self.centering(block.rows)
        scores = self.centering.times(rows, self.V)
        if block.weights is not None:
            scores = scores * like(block.weights, self.V, self.centering.dtype)[:, None]
        self.sums["result"] += self.centering.transposed_times(rows, scores)


class TransposedProduct(SumFold):
    """The product of the transposed rows with V, in one pass: each block times its rows of V."""

    label = "product"

    def __init__(self, V: Array, size: int) -> None:
        self.V, self.inputs = V, (V,)
        width = int(V.shape[1])
        self.sums = {"result": like(np.zeros((size, width)), V)}
        self.row_bytes, self.nbytes = width * numpy_dtype(V).itemsize, 8 * size * width

    def add(self, block: Block) -> None:
        self.sums["result"] += transpose(block.rows) @ self.V[block.start : block.stop]


def times_sparse(rows: Source, columns: Source, V: Array, most: int) -> Array:
    """Return the product of sparse rows, which have these columns, with V.

    Up to `most` bytes it is summed over the columns: SciPy multiplies their transposes up to four
    times as fast, since it adds consecutive entries to different rows of the result.
    """
    # C order: SciPy would copy V to it for every block.
    V = np.ascontiguousarray(V) if isinstance(V, np.ndarray) else V
    n, width, dtype = rows.shape[0], int(V.shape[1]), numpy_dtype(V)
    if n * width * dtype.itemsize <= most:
        return columns.fold(TransposedProduct(V, n)).result
    return rows.map(lambda block: block.rows @ V, width, dtype).collect(label="product")


class StandardizedOperator(Operator):
    """An operator made of standardized rows: centered, and divided by `deviation`.

    That is s/√w of a column with the standard deviation s, or 1, and the weight w. `variance` is
    the total variance of these rows, and `divisor` the number c.
    """

    axis: int
    """The axis of the rows whose length is the size of the operator."""

    def __init__(
        self, source: Source, mean: Vector, deviation: Vector, divisor: float, variance: float
    ) -> None:
        self.source, self.mean, self.deviation = source, mean, deviation
        self.divisor, self.reference = divisor, source.reference
        self.plain = not np.any(deviation != 1.0)
        self.size = source.shape[self.axis]
        self.trace = variance
        self.dtype = source.dtype
        # γ times the sum of the sizes of float64 products. Dense rows are centered first; sparse
        # rows are not, and their mean counts too.
        if source.sparse:
            far = mean / deviation
            variance += float(far @ far) * source.count / divisor
        self.rounding = float(np.finfo(np.float64).eps) * sum(source.shape) * variance

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
        if self.source.sparse:  # centered after the product, without a dense copy
            fold.row_bytes = 2 * int(V.shape[1]) * dtype.itemsize
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

    def columns(self, dtype: Any) -> Source:
        """Return the standardized, weighted columns as rows of a source."""
        mean = like(self.mean, self.reference, dtype)[:, None]
        divide = like(self.deviation, self.reference, dtype)[:, None]
        roots = self._roots(dtype).T
        center, weighted = bool(np.any(self.mean)), self.source.weights is not None

        def standardize(block: Block) -> Array:
            rows = block.dense(dtype)
            rows = rows - mean[block.start : block.stop, :] if center else rows
            rows = rows if self.plain else rows / divide[block.start : block.stop, :]
            return rows * roots if weighted else rows

        return self.source.transposed().map(standardize, self.size, dtype)

    def lift(self, V: Array, *, exact: bool = False) -> Array:
        """Return the product of the transposed standardized rows with V, d×b, in V's precision.

        `exact` centers sparse columns before the product, one dense block at a time; otherwise
        they are centered after it.
        """
        dtype, width = numpy_dtype(V), int(V.shape[1])
        if self.source.sparse and not exact:
            V = self._weight(self._center(V))
            columns = self.source.transposed()
            lifted = cast(times_sparse(columns, self.source, V, _LIFT_BYTES), dtype)
            if not self.plain:
                lifted /= like(self.deviation, V, dtype)[:, None]
            return lifted
        # One column after the other in memory, as components are returned.
        out = empty((width, self.source.shape[1]), V, dtype).T
        products = self.columns(dtype).map(lambda block: (V.T @ block.rows.T).T, width)
        return products.collect(out, label="product")

    def matmat(self, V: Array) -> Array:
        dtype, width = numpy_dtype(V), int(V.shape[1])
        Y = self.lift(V)
        if not self.plain:
            Y = Y / like(self.deviation, V, dtype)[:, None]
        if self.source.sparse:
            columns = self.source.transposed()
            product = times_sparse(self.source, columns, Y, _PRODUCT_BYTES)
            return self._center(self._weight(cast(product, np.float64))) / self.divisor
        centering = Centering(self.mean, dtype, V)
        extra = self.source.shape[1] * dtype.itemsize
        rows = self.source.map(lambda block: centering(block.rows) @ Y, width, np.float64, extra)
        return self._weight(rows.collect(label="product")) / self.divisor

    def dense(self) -> Matrix:
        return self.moments(np.float64).scatter / self.divisor

    def moments(self, products: Any) -> Moments:
        """Return the dot products as the scatter of the standardized columns, in one pass."""
        fold = Moments(self.size, self.reference, products, center=False)
        return self.columns(products).fold(fold)

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

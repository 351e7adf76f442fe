"""The Gram matrix of a block of rows in feature space, and what rounding does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import (
    FEW,
    Array,
    Vector,
    cast,
    diagonal,
    double_product,
    empty,
    like,
    namespace,
    numpy_dtype,
    reference_of,
    scale_columns,
    summed,
    to_numpy,
    working_dtype,
)
from mercer.data import Block
from mercer.kernels import Linear
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import evaluate, evaluate_into, rounded_mean, value_dtype
from mercer.kernels.points import Points, cast_rows

# Rows and columns of a kernel matrix that are computed at a time: the rest is a mirror image.
_STRIP = 512
# Rounding of a centered matrix, as a share of its trace before: of two products and two differences
# for each entry, in unit roundoffs; and of means, sums in float64, for each row.
_CENTERING, _MEANS = 64.0, 2.0 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class BlockGram:
    """The weighted Gram matrix √w K √w of a block of rows in feature space.

    `center` centers it at the mean of the block. Rows are standardized first: `mean` is subtracted
    from dense rows, and all are divided by `deviation`. Without a mean, dense rows are centered
    before they are divided.
    """

    kernel: Kernel
    dtype: np.dtype[Any]
    center: bool
    mean: Vector | None = None
    deviation: Vector | None = None

    def __call__(self, block: Block) -> tuple[Array, float]:
        """Return the matrix, or one with the same positive eigenvalues, and its rounding.

        That is a bound in Frobenius norm.
        """
        wanted = self._dtype(block.rows)
        points = Points(self._standardized(block.rows, wanted), block.start)
        if points.is_extreme:
            points, wanted = points.double, np.dtype(np.float64)
        if self.center and isinstance(self.kernel, Linear) and not points.sparse:
            return self._covariance(points.rows, block.count)
        with np.errstate(over="ignore", invalid="ignore"):
            # In float64: values that float32 cannot hold would seem to be zero.
            diag = np.abs(to_numpy(self.kernel.on_diagonal(points.double)).astype(np.float64))
            dtype = value_dtype(diag, wanted)
            errors = np.asarray(self.kernel.roundings(points, points, dtype)) + FEW
        if dtype != wanted:
            points = points.double
        energy, unit = float(block.count @ diag), float(np.finfo(dtype).eps) / 2
        rounding = unit * math.sqrt(float(block.count @ (diag * errors**2)) * energy)
        if isinstance(self.kernel, Linear) and not self.center and points.width < len(points):
            Z = points.rows.toarray() if points.sparse else points.rows
            Z = _weighted(Z, block.weights)
            return Z.T @ Z, unit * (summed(len(points), dtype, Z) + FEW) * energy
        K = symmetric_matrix(self.kernel, points, dtype)
        K = _weighted(_weighted(K, block.weights).T, block.weights).T  # rows again lie in order
        if not self.center:
            return K, rounding
        rounding += (_CENTERING * unit + _MEANS * len(points)) * energy
        return centered(K, block.count), rounding

    def _dtype(self, rows: Any) -> np.dtype[Any]:
        """Return the precision of a block: no batch is rounded to that of another."""
        if isinstance(rows, list):
            return self.dtype
        return np.result_type(working_dtype(numpy_dtype(rows)), self.dtype)

    def _standardized(self, rows: Any, dtype: np.dtype[Any]) -> Any:
        if self.deviation is None:
            return cast_rows(rows, dtype)
        if hasattr(rows, "tocsr"):
            return scale_columns(rows, 1.0 / self.deviation, dtype)
        rows = cast(rows, dtype)
        if self.mean is None:
            return rows if self.center else rows / like(self.deviation, rows, dtype)
        mean, rest = rounded_mean(self.mean, rows, dtype)
        return (rows - mean - rest) / like(self.deviation, rows, dtype)

    def _covariance(self, rows: Array, weights: Vector) -> tuple[Array, float]:
        """Return the matrix of dense rows centered before the product, and its rounding.

        A mean that is off only adds to the matrix.
        """
        dtype, n = numpy_dtype(rows), len(weights)
        rows = cast(rows, np.float64)
        share = like(weights / weights.sum(), rows, np.float64)
        sizes = share @ namespace(rows).abs(rows)
        rows = rows - share @ rows
        if self.mean is None and self.deviation is not None:
            divide = like(self.deviation, rows, np.float64)
            sizes, rows = sizes / divide, rows / divide
        Z = _weighted(cast(rows, dtype), weights)
        wide = int(Z.shape[1]) >= n
        A = Z @ Z.T if wide else Z.T @ Z
        energy, unit = float(diagonal(A).sum()), float(np.finfo(dtype).eps) / 2
        terms = int(Z.shape[1]) if wide else n
        off = weights.sum() * int(Z.shape[1]) * (_MEANS * n * float(to_numpy(sizes).max())) ** 2
        return A, unit * (summed(terms, dtype, Z) + FEW) * energy + off


def centered(A: Array, weights: Vector) -> Array:
    """Center a weighted Gram matrix at the weighted mean of its rows, in place."""
    dtype, u = numpy_dtype(A), np.sqrt(weights / weights.sum())
    means = to_numpy(double_product(A, like(u, A, np.float64)))
    v = means - float(u @ means) / 2 * u
    left, right = (like(np.column_stack(x), A, dtype) for x in ((v, u), (u, v)))
    for start in range(0, len(u), _STRIP):
        strip = slice(start, min(start + _STRIP, len(u)))
        A[strip, :] -= left[strip, :] @ right.T
    return A


def _weighted(A: Array, weights: Vector | None) -> Array:
    return A if weights is None else A * like(np.sqrt(weights), A, numpy_dtype(A))[:, None]


def symmetric_matrix(kernel: Kernel, points: Points, dtype: Any) -> Array:
    """Return the kernel matrix of points; on the host little more than half of it is computed."""
    n, rows = len(points), points.rows
    reference = reference_of(rows)
    if not isinstance(reference, np.ndarray):
        return evaluate(kernel.on, points, points, reference, dtype)
    K = empty((n, n), np.empty(0), dtype)
    for start in range(0, n, _STRIP):
        stop = min(start + _STRIP, n)
        x, y = points.part(slice(start, stop)), points.part(slice(start, n))
        evaluate_into(kernel.on, x, y, K[start:stop, start:])
        K[stop:, start:stop] = K[start:stop, stop:].T
    return K

"""Columns of a kernel matrix that is never formed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, is_finite, to_numpy
from mercer.data import Block, StringSource, require_finite_entries
from mercer.kernels.evaluate import KernelMap, value_dtype
from mercer.kernels.points import Points, cast_rows
from mercer.landmarks.base import Rows
from mercer.linalg.span import kernel_matrix
from mercer.problem import KernelProblem


class KernelColumns:
    """Kernel values between the rows of a problem and some of them, as float64 on the host.

    They are computed in `dtype`; by default in that of the rows, unless they overflow it.
    """

    def __init__(self, problem: KernelProblem, dtype: Any = None) -> None:
        self.source, self.kernel = problem.source, problem.kernel
        self.dtype = np.dtype(problem.source.dtype if dtype is None else dtype)

    @cached_property
    def diag(self) -> Vector:
        """The diagonal, k(x, x)."""
        kernel = self.kernel

        def values(block: Block) -> Matrix:
            if kernel is None:
                i = np.arange(block.length)
                return to_numpy(block.rows)[i, block.start + i][:, None]
            rows = Points(cast_rows(block.rows, np.float64), block.start)
            return to_numpy(kernel.on_diagonal(rows))[:, None]

        out = np.empty((self.source.shape[0], 1))
        with np.errstate(invalid="ignore", over="ignore"):
            self.source.map(values, 1, np.float64).collect(out, "kernel matrix")
        if not is_finite(out):
            if kernel is not None and not isinstance(self.source, StringSource):
                require_finite_entries(self.source)
            raise ValueError(
                f"{kernel!r} gives NaN or infinity between rows. Scale the rows, or change the "
                f"kernel's parameters."
            )
        return out[:, 0]

    def between(self, rows: Rows) -> Callable[[Block], Matrix]:
        """Return the function from a block to its kernel with these rows."""
        basis: Any = np.asarray(rows)
        dtype = np.dtype(np.float64)
        if self.kernel is not None:
            dtype = self.dtype if self.dtype == np.float64 else value_dtype(self.diag, self.dtype)
            basis = self.source.take(rows)
        features = KernelMap(self.kernel, basis).on(self.source, dtype)
        return lambda block: to_numpy(features(block)).astype(np.float64, copy=False)

    def collect(self, rows: Rows) -> Matrix:
        """Return the columns of these rows, in column-major order."""
        out: Matrix = np.empty((len(rows), self.source.shape[0])).T
        self.source.map(self.between(rows), len(rows), np.float64).collect(out, "kernel matrix")
        return out

    def submatrix(self, rows: Rows) -> Matrix:
        """Return the kernel matrix of these rows."""
        points = self.source.take(rows)
        if self.kernel is None:
            return to_numpy(points)[:, rows].astype(np.float64)
        return kernel_matrix(self.kernel, points)

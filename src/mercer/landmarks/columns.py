"""Columns of a kernel matrix that is never formed: what rules that look at the kernel read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, empty, is_finite, to_numpy
from mercer.data import Block, StringSource, require_finite_entries
from mercer.kernels.evaluate import evaluate_into, value_dtype
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.span import kernel_matrix
from mercer.problem import KernelProblem

Rows = Any
"""Numbers of rows: a list or an array of int."""


class Columns:
    """Kernel values between the rows of a problem and some of them, float64 on the host.

    They are computed in the precision of the rows where that holds them, or in the one given.
    """

    def __init__(self, problem: KernelProblem, dtype: Any = None) -> None:
        self.problem, self.source, self.kernel = problem, problem.source, problem.kernel
        self._given = dtype

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the values."""
        kind = np.dtype(self.source.dtype if self._given is None else self._given)
        return kind if kind == np.float64 else value_dtype(self.own, kind)

    @cached_property
    def own(self) -> Vector:
        """The diagonal, k(x, x)."""
        out = np.empty((self.source.shape[0], 1))
        with np.errstate(invalid="ignore", over="ignore"):
            self.source.map(self._own, 1, np.float64).collect(out, "kernel matrix")
        if not is_finite(out):
            if self.problem.kernel is not None and not isinstance(self.source, StringSource):
                require_finite_entries(self.source)
            raise ValueError(
                f"{self.kernel!r} gives NaN or infinity between rows. Scale the rows, or change "
                f"the kernel's parameters."
            )
        return out[:, 0]

    def of(self, at: Rows) -> Callable[[Block], Matrix]:
        """Return what makes of a block its kernel to the rows named."""
        if self.kernel is None:
            return lambda block: to_numpy(block.rows)[:, at].astype(np.float64)
        kernel, source, kind = self.kernel, self.source, self.dtype
        y = Points(cast_rows(source.take(at), kind))

        def values(block: Block) -> Matrix:
            h = empty((block.length, len(y)), source.reference, kind)
            evaluate_into(kernel.on, Points(cast_rows(block.rows, kind), block.start), y, h)
            return to_numpy(h).astype(np.float64, copy=False)

        return values

    def collect(self, at: Rows) -> Matrix:
        """Return the columns named, one after the other in memory."""
        out: Matrix = np.empty((len(at), self.source.shape[0])).T
        self.source.map(self.of(at), len(at), np.float64).collect(out, "kernel matrix")
        return out

    def among(self, at: Rows) -> Matrix:
        """Return the kernel between the rows named."""
        rows = self.source.take(at)
        if self.kernel is None:
            return to_numpy(rows)[:, at].astype(np.float64)
        return kernel_matrix(self.kernel, rows)

    def _own(self, block: Block) -> Matrix:
        if self.kernel is None:
            at = np.arange(block.length)
            return to_numpy(block.rows)[at, block.start + at][:, None]
        rows = cast_rows(block.rows, np.float64)
        return to_numpy(self.kernel.on_diagonal(Points(rows, block.start)))[:, None]

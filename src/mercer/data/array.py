"""Rows in memory: NumPy arrays, and arrays of any library of the array API standard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.arrays import Array, cast, empty, like, namespace, numpy_dtype, working_dtype
from mercer.data.source import Source


def require_real_matrix(array: Array) -> None:
    """Refuse an array that is not a matrix of real numbers."""
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead: shape {tuple(array.shape)}. "
            f"Reshape it to rows and columns."
        )
    kind = numpy_dtype(array).kind
    if kind not in "fiub":
        what = "Complex data not supported" if kind == "c" else "Not numbers"
        raise ValueError(f"{what}: the array has dtype {array.dtype}. Convert it to float64.")


class ArraySource(Source):
    """Rows of an array; blocks are views, or copies in the working precision."""

    by_columns = True

    def __init__(self, array: Array, names: Sequence[str] | None = None) -> None:
        require_real_matrix(array)
        self.array = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.stored = numpy_dtype(array)
        self.dtype = working_dtype(self.stored)
        self.names = names
        # Libraries other than NumPy have threads, or a device, of their own.
        self.parallel = isinstance(array, np.ndarray)
        self._reference = empty((0,), array, np.float64)  # does not keep the rows alive

    @property
    def reference(self) -> Array:
        return self._reference

    @property
    def row_bytes(self) -> int:
        return 0 if self.stored == self.dtype else super().row_bytes

    def read(self, start: int, stop: int) -> Array:
        return cast(self.array[start:stop, :], self.dtype)

    def whole(self) -> Array:
        return cast(self.array, self.dtype)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        if isinstance(self.array, np.ndarray):
            return self.array[at].astype(self.dtype)
        rows = namespace(self.array).take(self.array, like(at, self.array), axis=0)
        return cast(rows, self.dtype)

    def transposed(self) -> Source:
        return ArraySource(self.array.T)

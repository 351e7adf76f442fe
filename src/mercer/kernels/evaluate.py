"""Kernel values of whole groups of rows, written to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    empty,
    like,
    moved,
    namespace,
    numpy_dtype,
    to_numpy,
    together,
)
from mercer.data import Block, Fold, Source
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points, cast_rows

# Kernel values in this range leave float32 room for sums of them.
_SMALL, _LARGE = 1e-30, 1e30
# Kernel values in this range have squares, and sums of them, that float64 can hold.
_SMALLEST, _LARGEST = 1e-140, 1e140

Formula = Callable[[TilePair], Any]


def evaluate_into(formula: Formula, x: Points, y: Points, out: Array) -> None:
    """Write a formula of all rows of x and y to an array; matrix products go there first."""
    host = isinstance(out, np.ndarray)
    extreme = x.is_extreme or y.is_extreme
    if extreme:
        x, y = x.double, y.double
    reusable = host and not extreme and _has_dtype(x, out)
    tiles = TilePair.tiles(x, y, [out] if reusable else None) if host else [TilePair.between(x, y)]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # the caller judges
        for pair in tiles:
            values, target = formula(pair), out[pair.rows, pair.columns]
            if not (host and _is_same_memory(values, target)):
                out[pair.rows, pair.columns] = values


def evaluate(formula: Formula, x: Points, y: Points, reference: Array, dtype: Any) -> Array:
    """Return a formula of all rows of x and y, an array on the device of `reference`.

    The array may belong to the pair: it must not be written to.
    """
    shape = len(x), len(y)
    if not isinstance(reference, np.ndarray) and not (x.is_extreme or y.is_extreme):
        values = formula(TilePair.between(x, y))
        if tuple(getattr(values, "shape", ())) == shape and numpy_dtype(values) == dtype:
            return values
    out = empty(shape, reference, dtype)
    evaluate_into(formula, x, y, out)
    return out


def gram_matrix(formula: Formula, x: Source, y: Source) -> Array:
    """Return a formula of all rows of two sources."""
    dtype = np.result_type(x.dtype, y.dtype)
    out = empty((x.shape[0], y.shape[0]), x.home, dtype)
    points = Points(cast_rows(y.whole(), dtype))
    return x.fold(GramFold(formula, points, out, x.reference)).out


class GramFold(Fold):
    """Writes a formula of the rows that are folded and of fixed points to an array.

    Parameters
    ----------
    formula : callable
    y : Points
    out : array
    reference : array
        An array on the device where values are computed.
    """

    label = "kernel"
    here = True

    def __init__(self, formula: Formula, y: Points, out: Array, reference: Array) -> None:
        self.formula, self.y, self.out, self.reference = formula, y, out, reference
        self._in_place = together(reference, out)
        self.row_bytes = len(y) * numpy_dtype(out).itemsize

    def add(self, block: Block) -> None:
        dtype, target = numpy_dtype(self.out), self.out[block.start : block.stop, :]
        x = Points(cast_rows(block.rows, dtype), block.start)
        if self._in_place:
            evaluate_into(self.formula, x, self.y, target)
        else:
            values = evaluate(self.formula, x, self.y, self.reference, dtype)
            self.out[block.start : block.stop, :] = moved(values, self.out)

    def merge(self, other: Self) -> None:
        pass  # both write into the same array

    def spawn(self) -> Self:
        return type(self)(self.formula, self.y, self.out, self.reference)

    def arrays(self) -> dict[str, Array]:
        return {"out": self.out}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.out[...] = like(to_numpy(arrays["out"]), self.out)


def value_dtype(diagonal: Array, dtype: Any) -> np.dtype[Any]:
    """Return dtype, or float64 if it has no room for kernel values of this diagonal."""
    largest = float(namespace(diagonal).max(abs(diagonal))) if diagonal.shape[0] else 0.0
    fits = largest == 0.0 or _SMALL < largest < _LARGE
    return np.dtype(dtype if fits else np.float64)


def check_magnitude(kernel: str, largest: float) -> None:
    """Refuse kernel values whose squares float64 cannot hold."""
    if 0.0 < largest < _SMALLEST or largest > _LARGEST:
        raise ValueError(
            f"{kernel} gives values of about {largest:.0e}: their squares are too large, or too "
            f"small, for float64. Scale the rows, or change the kernel's parameters."
        )


def _has_dtype(x: Points, out: Array) -> bool:
    return isinstance(x.rows, list) or numpy_dtype(x.rows) == numpy_dtype(out)


def _is_same_memory(values: Any, target: Array) -> bool:
    """Return whether an array is the very memory it would be written to."""
    if not isinstance(values, np.ndarray) or values.shape != target.shape:
        return False
    a, b = values.__array_interface__, target.__array_interface__
    return bool(a["data"] == b["data"] and values.strides == target.strides)

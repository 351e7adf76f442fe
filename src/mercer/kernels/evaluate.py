"""Formulas between two groups of rows, written to arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    cast,
    empty,
    like,
    moved,
    namespace,
    numpy_dtype,
    to_numpy,
    together,
)
from mercer.data import Block, Fold, Source
from mercer.kernels.pair import Beside, Pair
from mercer.kernels.points import Points

# Kernel values between these leave float32 room for sums of them.
_SMALL, _LARGE = 1e-30, 1e30

Formula = Callable[[Pair], Any]


class Evaluate(Fold):
    """Writes the values of a formula, between the rows that come by and points, to an array."""

    label = "kernel"
    here = True

    def __init__(self, formula: Formula, y: Points, out: Array, reference: Array) -> None:
        self.formula, self.y, self.out, self.reference = formula, y, out, reference
        self.near = together(reference, out)  # else what a device makes is brought home
        self.row_bytes = len(y) * numpy_dtype(out).itemsize

    def add(self, block: Block) -> None:
        kind, place = numpy_dtype(self.out), self.out[block.start : block.stop, :]
        x = Points(as_precise(block.rows, kind), block.start)
        if self.near:
            fill(self.formula, x, self.y, place)
        else:
            made = filled(self.formula, x, self.y, self.reference, kind)
            self.out[block.start : block.stop, :] = moved(made, self.out)

    def merge(self, other: Self) -> None:
        pass  # both write into the same array

    def spawn(self) -> Self:
        return type(self)(self.formula, self.y, self.out, self.reference)

    def arrays(self) -> dict[str, Array]:
        return {"out": self.out}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.out[...] = like(to_numpy(arrays["out"]), self.out)


def fill(formula: Formula, x: Points, y: Points, out: Array) -> None:
    """Write a formula between two groups of rows to an array: matrix products into it first."""
    host = isinstance(out, np.ndarray)
    double = x.extreme or y.extreme
    if double:  # squares of float32 rows would overflow, or vanish
        x, y = x.double, y.double
    room = host and not double and _suits(x, out)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # judged when all is known
        for pair in Beside(x, y, [out] if room else None).tiles(whole=not host):
            made, place = formula(pair), out[pair.rows, pair.columns]
            if not (host and _is(made, place)):
                out[pair.rows, pair.columns] = made


def filled(formula: Formula, x: Points, y: Points, reference: Array, dtype: Any) -> Array:
    """Return a formula between two groups of rows, an array that lives where `reference` does.

    It may be what the pair holds itself: not to be written to.
    """
    shape = len(x), len(y)
    if not isinstance(reference, np.ndarray) and not (x.extreme or y.extreme):
        made = formula(next(Beside(x, y).tiles(whole=True)))
        if tuple(getattr(made, "shape", ())) == shape and numpy_dtype(made) == dtype:
            return made
    out = empty(shape, reference, dtype)
    fill(formula, x, y, out)
    return out


def matrix(formula: Formula, x: Source, y: Source) -> Array:
    """Return a formula between all rows of one source and all of another."""
    kind = np.result_type(x.dtype, y.dtype)
    out = empty((x.shape[0], y.shape[0]), x.home, kind)
    points = Points(as_precise(y.whole(), kind))
    return x.fold(Evaluate(formula, points, out, x.reference)).out


def as_precise(rows: Any, dtype: Any) -> Any:
    """Return rows of numbers in this precision; strings as they are."""
    if isinstance(rows, list):
        return rows
    return rows.astype(dtype, copy=False) if hasattr(rows, "tocsr") else cast(rows, dtype)


def holds(own: Array, dtype: Any) -> np.dtype[Any]:
    """Return this precision, or float64 where it has no room for kernels of such a diagonal."""
    largest = float(namespace(own).max(abs(own))) if own.shape[0] else 0.0
    roomy = largest == 0.0 or _SMALL < largest < _LARGE
    return np.dtype(dtype if roomy else np.float64)


def _suits(x: Points, out: Array) -> bool:
    """Tell whether products of rows are of the precision of an array."""
    return isinstance(x.rows, list) or numpy_dtype(x.rows) == numpy_dtype(out)


def _is(made: Any, place: Array) -> bool:
    """Tell whether an array is the very memory it would be written to."""
    if not isinstance(made, np.ndarray) or made.shape != place.shape:
        return False
    here, there = made.__array_interface__, place.__array_interface__
    return bool(here["data"] == there["data"] and made.strides == place.strides)

"""Means that keep their digits."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, cast, like, namespace, to_numpy

_PART = 256


class Mean:
    """Weight and mean of rows; the mean is a fixed base plus an offset.

    The base is the first block's mean as rounded; differences of means as large as it are
    then exact, where the means themselves would be rounded: at a mean of 1e8 that alone
    would cost the variance its tenth digit.
    """

    def __init__(self, d: int, reference: Array) -> None:
        self.weight = 0.0
        self.base: Array = None
        self.offset = like(np.zeros(d), reference)

    def centre(
        self, rows: Array, w: Array, weight: float, room: Array = None
    ) -> tuple[Array, Array, Array]:
        """Return rows less their mean, the offset of that mean, and the sum that is left over.

        The rows are centred by the mean of every eighth of them, which is no farther from
        theirs than √7 of their deviation, and costs an eighth of a pass; the offset is that of
        their mean itself. Rows that are near zero already, for their deviation, stay as they
        are. `room` is a NumPy array that the centred rows may be written to.
        """
        if _near_zero(rows[::64, :]):
            middle = 0.0 * rows[0, :]
        else:
            some = float(namespace(w).sum(w[::8]))
            middle = (w[::8] @ rows[::8, :]) / some if some > 0.0 else (w @ rows) / weight
            rows = rows - middle if room is None else np.subtract(rows, middle, out=room)
        left = _total(w, rows)
        middle = cast(middle, np.float64)
        if self.base is None:
            self.base = middle
        return rows, (middle - self.base) + left / weight, left

    def joined(self, weight: float, offset: Array) -> Array:
        """Take in rows of this weight and offset; return how far apart the two means were."""
        apart = offset - self.offset
        self.weight += weight
        self.offset = self.offset + (weight / self.weight) * apart
        return apart

    def offset_of(self, other: Mean) -> Array:
        """Return another's offset from this base."""
        if self.base is None:
            self.base = other.base
        return other.offset + (other.base - self.base)

    @property
    def value(self) -> np.ndarray[Any, Any]:
        """The mean, on the host."""
        offset = to_numpy(self.offset)
        return offset if self.base is None else to_numpy(self.base) + offset

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays."""
        base = self.offset * 0.0 if self.base is None else self.base
        return {"weight": np.array(self.weight), "base": base, "offset": self.offset}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up the state that `arrays` returned."""
        self.weight = float(arrays["weight"])
        self.base = like(to_numpy(arrays["base"]), self.offset) if self.weight else None
        self.offset = like(to_numpy(arrays["offset"]), self.offset)


def _near_zero(rows: Array) -> bool:
    """Tell whether products lose no more than a digit when rows like these are not centred.

    Squared means may add up to the variances, and none may exceed thirty times its own.
    """
    xp = namespace(rows)
    far = xp.mean(rows, axis=0) ** 2
    near = xp.mean(rows * rows, axis=0) - far
    return bool(xp.sum(far) <= xp.sum(near)) and bool(xp.all(far <= 30 * near))


def _total(w: Array, rows: Array) -> Array:
    """Return the weighted sum of rows, float64: of partial sums, which round less."""
    n, d = rows.shape
    whole = n - n % _PART
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and whole):
        return cast(w @ rows, np.float64)
    parts = rows[:whole].reshape(-1, _PART, d)
    sums = w[:whole].reshape(-1, 1, _PART) @ parts
    return sums.sum(axis=(0, 1), dtype=np.float64) + w[whole:] @ rows[whole:]

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
        theirs than √7 of their deviation, and costs an eighth of a pass; by the mean of all where
        those have little of the weight. The offset is that of their mean itself. `room` is a NumPy
        array that the centred rows may be written to.
        """
        xp = namespace(w)
        some = float(xp.sum(w[::8]))
        # Differences from a row that counts: a constant column becomes exactly zero.
        row = rows[int(xp.argmax(w)), :]
        if 16.0 * some >= weight:
            middle = row + (w[::8] @ (rows[::8, :] - row)) / some
        else:
            middle = row + (w @ (rows - row)) / weight
        rows = rows - middle if room is None else np.subtract(rows, middle, out=room)
        left = total(w, rows)
        return rows, self.seen(cast(middle, np.float64), left, weight), left

    def seen(self, middle: Array, left: Array, weight: float) -> Array:
        """Return the offset of rows that sum to `left` once `middle` is taken off them."""
        if self.base is None:
            self.base = middle
        return (middle - self.base) + left / weight

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

    @property
    def rounding(self) -> np.ndarray[Any, Any]:
        """The mean less what `value` rounds it to, on the host; zero for a constant column."""
        offset = to_numpy(self.offset)
        if self.base is None:
            return 0.0 * offset
        return np.asarray((to_numpy(self.base) - self.value) + offset)

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays."""
        base = self.offset * 0.0 if self.base is None else self.base
        return {"weight": np.array(self.weight), "base": base, "offset": self.offset}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up the state that `arrays` returned."""
        self.weight = float(arrays["weight"])
        self.base = like(to_numpy(arrays["base"]), self.offset) if self.weight else None
        self.offset = like(to_numpy(arrays["offset"]), self.offset)


def seems_near_zero(rows: Array) -> bool:
    """Tell from some rows whether products of all may do without centring; `near_zero` judges."""
    xp = namespace(rows)
    far = xp.mean(rows, axis=0) ** 2
    return near_zero(far, xp.mean(rows * rows, axis=0))


def near_zero(far: Array, squares: Array) -> bool:
    """Tell whether no more than a digit is lost when squared means are taken off squares.

    Squared means may add up to the variances, and none may exceed thirty times its own.
    """
    xp = namespace(far)
    near = squares - far
    return bool(xp.sum(far) <= xp.sum(near)) and bool(xp.all(far <= 30 * near))


def total(w: Array, rows: Array) -> Array:
    """Return the weighted sum of rows, float64: of partial sums, which round less."""
    n, d = rows.shape
    whole = n - n % _PART
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and whole):
        return cast(w @ rows, np.float64)
    parts = rows[:whole].reshape(whole // _PART, _PART, d)
    sums = w[:whole].reshape(-1, 1, _PART) @ parts
    return sums.sum(axis=(0, 1), dtype=np.float64) + w[whole:] @ rows[whole:]

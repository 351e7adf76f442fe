"""Means that keep their digits, and rows centered by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, cast, like, namespace, to_numpy

_PART = 256


class RunningMean:
    """Weight and mean of rows; the mean is a fixed base plus an offset.

    The base is the rounded mean of the first block. Differences from it are exact where the means
    themselves would be rounded: at a mean of 1e8 that alone costs the variance its tenth digit.
    """

    def __init__(self, d: int, reference: Array) -> None:
        self.weight = 0.0
        self.base: Array = None
        self.offset = like(np.zeros(d), reference)

    def center(
        self, rows: Array, w: Array, weight: float, room: Array = None
    ) -> tuple[Array, Array, Array]:
        """Return centered rows, the offset of their mean, and the sum of the centered rows.

        The rows are centered by the mean of every eighth row, which is within √7 standard
        deviations of the mean of all and costs an eighth of a pass; by the mean of all rows where
        those carry little of the weight. The offset is that of the exact mean. `room` is a NumPy
        array for the centered rows.
        """
        xp = namespace(w)
        some = float(xp.sum(w[::8]))
        # Differences from a row of positive weight: a constant column becomes exactly zero.
        row = rows[int(xp.argmax(w)), :]
        if 16.0 * some >= weight:
            middle = row + (w[::8] @ (rows[::8, :] - row)) / some
        else:
            middle = row + (w @ (rows - row)) / weight
        rows = rows - middle if room is None else np.subtract(rows, middle, out=room)
        left = weighted_sum(w, rows)
        return rows, self.offset_from(cast(middle, np.float64), left, weight), left

    def offset_from(self, middle: Array, left: Array, weight: float) -> Array:
        """Return the offset of the mean of rows that sum to `left` after subtracting `middle`."""
        if self.base is None:
            self.base = middle
        return (middle - self.base) + left / weight

    def update(self, weight: float, offset: Array) -> Array:
        """Add rows of this weight and offset; return the difference of the two means."""
        difference = offset - self.offset
        self.weight += weight
        self.offset = self.offset + (weight / self.weight) * difference
        return difference

    def offset_of(self, other: RunningMean) -> Array:
        """Return the offset of another mean from this base."""
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
        """The exact mean minus `value`, on the host; zero for a constant column."""
        offset = to_numpy(self.offset)
        if self.base is None:
            return 0.0 * offset
        return np.asarray((to_numpy(self.base) - self.value) + offset)

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays."""
        base = self.offset * 0.0 if self.base is None else self.base
        return {"weight": np.array(self.weight), "base": base, "offset": self.offset}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the state that `arrays` returned."""
        self.weight = float(arrays["weight"])
        self.base = like(to_numpy(arrays["base"]), self.offset) if self.weight else None
        self.offset = like(to_numpy(arrays["offset"]), self.offset)


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
        return product - self.mean @ V if self._late(rows) else product

    def transposed_times(self, rows: Array, V: Array) -> Array:
        """Return (rows - mean)ᵀ @ V for rows that `__call__` returned."""
        product = rows.T @ V
        return product - np.outer(self.mean, V.sum(axis=0)) if self._late(rows) else product

    def _late(self, rows: Array) -> bool:
        return hasattr(rows, "tocsr") and not self.zero


def seems_near_zero(rows: Array) -> bool:
    """Guess from some rows whether centering can be skipped; `near_zero` decides."""
    xp = namespace(rows)
    far = xp.mean(rows, axis=0) ** 2
    return near_zero(far, xp.mean(rows * rows, axis=0))


def near_zero(far: Array, squares: Array) -> bool:
    """Tell whether subtracting squared means from squares loses at most one digit.

    Squared means may sum to the variances, and none may exceed thirty times its own variance.
    """
    xp = namespace(far)
    near = squares - far
    return bool(xp.sum(far) <= xp.sum(near)) and bool(xp.all(far <= 30 * near))


def weighted_sum(w: Array, rows: Array) -> Array:
    """Return the weighted sum of rows, float64, from partial sums, which round less."""
    n, d = rows.shape
    whole = n - n % _PART
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and whole):
        return cast(w @ rows, np.float64)
    parts = rows[:whole].reshape(whole // _PART, _PART, d)
    sums = w[:whole].reshape(-1, 1, _PART) @ parts
    return sums.sum(axis=(0, 1), dtype=np.float64) + w[whole:] @ rows[whole:]

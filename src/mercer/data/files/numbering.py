"""Columns that may number the rows: sorted or consecutive whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]

# First and last values of blocks that are kept to tell whether a column is sorted.
_ENDS = 2**20
# Bytes that record which numbers columns hold.
_SEEN = 2**24


class Rising:
    """Columns of whole numbers, each larger than those before it; missing entries are passed over.

    Parameters
    ----------
    width : int
        Number of columns.
    sign : int
        1; or -1 for columns that fall.
    """

    def __init__(self, width: int, sign: int) -> None:
        self.sign, self.columns = sign, np.arange(width)
        # By the first row of a block: columns, and their first and last values.
        self.ends: dict[int, tuple[Values, Values, Values]] | None = {}

    def add(self, rows: Values, start: int) -> None:
        """Take in a block whose first row has the number `start`."""
        if self.ends is None:
            return
        self.columns = at = narrowed(
            rows, self.columns, lambda r, _: whole(r), lambda r, _: _rises(self.sign * r)
        )
        values = self.sign * rows[:, at]
        low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        self.ends[start] = (at, low, high)
        if sum(len(at) for at, _, _ in self.ends.values()) > _ENDS:
            self.ends = None

    def merge(self, other: Rising) -> None:
        """Take in what another has seen."""
        self.columns = np.intersect1d(self.columns, other.columns)
        known = self.ends is not None and other.ends is not None
        self.ends = {**(self.ends or {}), **(other.ends or {})} if known else None

    @property
    def found(self) -> set[int]:
        """The columns that rise over all rows."""
        if not self.ends:
            return set()
        last = dict.fromkeys(self.columns.tolist(), -np.inf)
        for _, (at, low, high) in sorted(self.ends.items()):
            now = dict(zip(at.tolist(), zip(low, high, strict=True), strict=True))
            # A block without values, of NaN, leaves the last one as it is.
            last = {
                i: float(np.fmax(end, now[i][1]))
                for i, end in last.items()
                if i in now and not now[i][0] <= end
            }
        return set(last)


class Consecutive:
    """Columns of different whole numbers from a range as long as the table, in any order.

    Such numbers differ modulo the number of rows, so one flag for every row tells them apart.

    Parameters
    ----------
    n, width : int
        Number of rows and columns.
    """

    def __init__(self, n: int, width: int) -> None:
        self.n, self.columns = n, np.arange(width)
        self.seen: dict[int, npt.NDArray[np.bool_]] = {}
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)

    def add(self, rows: Values) -> None:
        """Take in a block."""
        at = narrowed(rows, self.columns, lambda r, _: whole(r), lambda r, _: _distinct(r))
        values = np.asarray(rows[:, at], np.float64)
        self.low[at] = np.fmin(self.low[at], np.fmin.reduce(values, axis=0))
        self.high[at] = np.fmax(self.high[at], np.fmax.reduce(values, axis=0))
        near = self.high[at] - self.low[at] < self.n
        self.columns = at[near] if near.sum() * self.n <= _SEEN else at[:0]
        self.seen = {int(i): self._flags(int(i)) for i in self.columns}
        apart = []
        for i, column in zip(self.columns.tolist(), values[:, near].T, strict=True):
            there = np.mod(column[~np.isnan(column)], self.n).astype(np.intp)
            apart.append(not self.seen[i][there].any())
            self.seen[i][there] = True
        self.columns = self.columns[np.array(apart, bool)]

    def _flags(self, i: int) -> npt.NDArray[np.bool_]:
        found = self.seen.get(i)
        return np.zeros(self.n, bool) if found is None else found

    def merge(self, other: Consecutive) -> None:
        """Take in what another has seen."""
        self.low, self.high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        both = np.intersect1d(self.columns, other.columns)
        near = both[self.high[both] - self.low[both] < self.n].tolist()
        apart = [i for i in near if not (self._flags(i) & other._flags(i)).any()]
        self.seen = {i: self._flags(i) | other._flags(i) for i in apart}
        self.columns = np.array(apart, np.intp)

    @property
    def found(self) -> set[int]:
        """The columns of which this holds over all rows."""
        return set(self.columns.tolist())


def whole(rows: Values) -> Any:
    """Tell which entries are whole numbers, or missing."""
    return (rows == np.floor(rows)) | np.isnan(rows)


def narrowed(rows: Values, at: Values, *conditions: Callable[[Values, Values], Any]) -> Values:
    """Return the columns that meet conditions in all rows; most are settled by a few rows."""
    for some in (rows[:64], rows):
        for holds in conditions:
            if len(at):
                at = at[holds(some[:, at], at).all(axis=0)]
    return at


def _rises(rows: Values) -> Any:
    """Tell which entries, from the second row on, are larger than all above them, or missing."""
    return ~(rows[1:] <= np.fmax.accumulate(rows, axis=0)[:-1])


def _distinct(rows: Values) -> Any:
    """Tell which entries of sorted columns, from the second on, differ from the one above."""
    return np.diff(np.sort(rows, axis=0), axis=0) != 0

"""Remarks about the columns of a table: what a user may not have meant to be a feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.sources.base import Source
from mercer.sources.errors import listed
from mercer.sources.files.missing import Missing
from mercer.sources.files.roles import says_id
from mercer.sources.fold import Block

Values = npt.NDArray[Any]

# Values, of evenly spaced rows, that variances are estimated from; and the fewest such rows.
_VALUES, _ROWS = 500_000, 500
# First and last values of blocks that are kept to tell whether a column increases.
_ENDS = 2**20
# Whole numbers from here on are identifiers or times, and seldom measurements.
_LONG = 1e9
DOMINATES = 0.95
"""A column with a larger share of the total variance is remarked on."""


class Profile(Missing):
    """Missing values and variance of every column; which are constant, increasing, or long numbers.

    Parameters
    ----------
    n, width : int
        Rows and columns there are.
    """

    label = "columns"
    resumable = False

    def __init__(self, n: int, width: int) -> None:
        super().__init__(width)
        self.n = n
        self.first: Values | None = None
        self.constant = np.arange(width)
        self.long = np.arange(width)
        self.order = np.arange(width)
        self.ends: dict[int, tuple[Values, Values, Values]] | None = {}
        # Numbers, sums and sums of squares of the values, less those of the first row.
        self.sums = np.zeros((3, width))

    def add(self, block: Block) -> None:
        super().add(block)
        step = math.ceil(self.n / max(_ROWS, _VALUES // len(self.count)))
        some = block.rows[-block.start % step :: step]
        if hasattr(some, "tocsr"):
            self._add_sparse(block.rows, some)
            return
        rows = np.asarray(block.rows)
        if self.first is None:
            self.first = np.array(rows[0], np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            self._look(rows, self.first, block.start)
            self._spread(np.asarray(some, np.float64), self.first)

    def _look(self, rows: Values, first: Values, start: int) -> None:
        """Narrow down which columns are constant, long whole numbers, or increase."""
        self.constant = _narrowed(rows, self.constant, lambda r, at: r == first[at])
        self.long = _narrowed(rows, self.long, lambda r, _: (np.abs(r) >= _LONG) & _whole(r))
        if self.ends is None:
            return
        order = _narrowed(rows, self.order, lambda r, _: np.diff(r, axis=0) > 0)
        self.order = _narrowed(rows, order, lambda r, _: _whole(r))
        self.ends[start] = (self.order, rows[0, self.order], rows[-1, self.order])
        if sum(len(at) for at, _, _ in self.ends.values()) > _ENDS:
            self.ends = None

    def _spread(self, rows: Values, first: Values) -> None:
        there = ~np.isnan(rows)
        off = np.where(there, rows - np.nan_to_num(first), 0)
        self.sums += np.stack([there.sum(axis=0), off.sum(axis=0), (off * off).sum(axis=0)])

    def _add_sparse(self, rows: Any, some: Any) -> None:
        self.first = np.zeros(rows.shape[1])
        self.long, self.ends = self.long[:0], None
        stored = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
        self.constant = self.constant[stored[self.constant] == 0]
        for i, power in ((1, some.data), (2, some.data * some.data)):
            self.sums[i] += np.bincount(some.indices, power, minlength=some.shape[1])
        self.sums[0] += some.shape[0]

    def merge(self, other: Self) -> None:
        if other.first is None:
            return
        if self.first is None:
            self.__dict__.update(other.__dict__)
            return
        super().merge(other)
        shift = np.nan_to_num(other.first) - np.nan_to_num(self.first)
        count, first, second = other.sums
        with np.errstate(invalid="ignore", over="ignore"):
            moved = first + count * shift, second + 2 * shift * first + count * shift * shift
        self.sums += np.stack([count, *moved])
        both = np.intersect1d(self.constant, other.constant)
        self.constant = both[self.first[both] == other.first[both]]
        self.long = np.intersect1d(self.long, other.long)
        self.order = np.intersect1d(self.order, other.order)
        ends = self.ends is not None and other.ends is not None
        self.ends = {**(self.ends or {}), **(other.ends or {})} if ends else None

    def spawn(self) -> Self:
        return type(self)(self.n, len(self.count))

    @property
    def increasing(self) -> list[int]:
        """Columns of whole numbers, each larger than the one before."""
        if not self.ends:
            return []
        found = set(self.order.tolist())
        last: dict[int, float] = {}
        for _, (at, first, end) in sorted(self.ends.items()):
            now = dict(zip(at.tolist(), zip(first, end, strict=True), strict=True))
            found = {i for i in found if i in now and last.get(i, -np.inf) < now[i][0]}
            last = {i: now[i][1] for i in found}
        return sorted(found)

    @property
    def variances(self) -> Values:
        """Estimates of the variances of the columns."""
        count, first, second = self.sums
        with np.errstate(all="ignore"):
            found = (second - first * first / count) / count
        return np.where(np.isfinite(found), np.maximum(found, 0), 0)


def remarks(profile: Profile, names: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Say what is unusual about columns that are used as features."""
    found, constant = [], set(profile.constant.tolist())
    long = [i for i in profile.long.tolist() if i not in constant]
    order = profile.increasing if profile.n > 2 else []
    counting = [i for i in order if i not in constant and i not in long]
    if counting:
        which = listed([names[i] for i in counting])
        found.append(
            f"{which} may number the rows: whole numbers, each larger than the one before. Used "
            f"as a feature. {_leave(names[counting[0]])}"
        )
    if long:
        which = listed([names[i] for i in long])
        found.append(
            f"{which} may be an identifier or a time: whole numbers of ten digits or more. Used "
            f"as a feature. {_leave(names[long[0]])}"
        )
    if constant:
        which = listed([names[i] for i in sorted(constant)])
        found.append(f"constant in all rows, without variance: {which}.")
    if flags:
        found.append(f"true and false are used as 1 and 0: {listed(flags)}.")
    return found


def suspects(names: Sequence[str]) -> list[str]:
    """Say which features have names of identifiers, though they do not tell the rows apart."""
    found = [name for name in names if says_id(name)]
    if not found:
        return []
    return [
        f"{listed(found)} has the name of an identifier, and not a different whole number or text "
        f"in every row. Used as a feature. {_leave(found[0])}"
    ]


def dominating(profile: Profile, names: Sequence[str]) -> str | None:
    """Name the column that has nearly all of the variance, where there is one."""
    variances = profile.variances
    total = variances.sum()
    if len(variances) < 2 or not total > 0:
        return None
    i = int(np.argmax(variances))
    share = variances[i] / total
    if share <= DOMINATES:
        return None
    shown = min(99.99, math.floor(10_000 * share) / 100)
    return (
        f"{names[i]!r} has about {shown:g} % of the total variance, more than all others together."
    )


def _leave(name: str) -> str:
    return f"drop={name!r} leaves it out; id={name!r} names the rows by it."


def _whole(rows: Values) -> Any:
    return rows == np.floor(rows)


def _narrowed(rows: Values, at: Values, holds: Callable[[Values, Values], Any]) -> Values:
    """Return the columns of which something holds in all rows; most are settled by a few rows."""
    at = at[holds(rows[:64, at], at).all(axis=0)]
    return at[holds(rows[:, at], at).all(axis=0)] if len(at) else at


def profiled(source: Source) -> Profile:
    """Look at all rows of a source."""
    return source.fold(Profile(*source.shape))

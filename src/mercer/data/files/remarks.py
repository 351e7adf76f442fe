"""Remarks about the columns of a table: what a user may not have meant to be a feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.data.errors import listed
from mercer.data.files.missing import Missing
from mercer.data.files.numbering import Consecutive, Rising, narrowed, whole
from mercer.data.files.roles import says_id
from mercer.data.fold import Block
from mercer.data.source import Source
from mercer.messages import format_parameter

Values = npt.NDArray[Any]

# Values, of evenly spaced rows, that variances are estimated from; and the fewest such rows.
_VALUES, _ROWS = 500_000, 500
# Fewest rows of which it is said that a column may number them.
_FEW = 10
# Most columns that a remedy names.
_NAMED = 10
# Whole numbers from here on are identifiers or times, and seldom measurements.
_LONG = 1e9
DOMINATES = 0.95
"""A column with a larger share of the total variance is remarked on."""


class Profile(Missing):
    """Missing values and variance of columns; which are constant, long, or may number the rows.

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
        self.up, self.down = Rising(width, 1), Rising(width, -1)
        self.consecutive = Consecutive(n, width)
        # Numbers, sums and sums of squares of the values, less the first ones.
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
        lacking = np.flatnonzero(np.isnan(self.first))
        self.first[lacking] = np.fmax.reduce(rows[:, lacking], axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            self._look(rows, self.first, block.start)
            self._spread(np.asarray(some, np.float64), self.first)

    def _look(self, rows: Values, first: Values, start: int) -> None:
        """Narrow down which columns are constant, long whole numbers, or number the rows."""
        self.constant = narrowed(rows, self.constant, lambda r, at: r == first[at])
        self.long = narrowed(
            rows, self.long, lambda r, _: ((np.abs(r) >= _LONG) & whole(r)) | np.isnan(r)
        )
        self.up.add(rows, start)
        self.down.add(rows, start)
        self.consecutive.add(rows)

    def _spread(self, rows: Values, first: Values) -> None:
        there = ~np.isnan(rows)
        off = np.where(there, rows - np.nan_to_num(first), 0)
        self.sums += np.stack([there.sum(axis=0), off.sum(axis=0), (off * off).sum(axis=0)])

    def _add_sparse(self, rows: Any, some: Any) -> None:
        self.first = np.zeros(rows.shape[1])
        self.long = self.long[:0]
        for numbers in (self.up, self.down, self.consecutive):
            numbers.columns = self.long
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
        self.first = np.where(np.isnan(self.first), other.first, self.first)
        shift = np.nan_to_num(other.first) - np.nan_to_num(self.first)
        count, first, second = other.sums
        with np.errstate(invalid="ignore", over="ignore"):
            moved = first + count * shift, second + 2 * shift * first + count * shift * shift
        self.sums += np.stack([count, *moved])
        both = np.intersect1d(self.constant, other.constant)
        self.constant = both[self.first[both] == other.first[both]]
        self.long = np.intersect1d(self.long, other.long)
        self.up.merge(other.up)
        self.down.merge(other.down)
        self.consecutive.merge(other.consecutive)

    def spawn(self) -> Self:
        return type(self)(self.n, len(self.count))

    @property
    def numbering(self) -> list[int]:
        """Columns of different whole numbers, sorted or consecutive, with few entries missing."""
        found = self.up.found | self.down.found | self.consecutive.found
        return [i for i in sorted(found) if 10 * self.count[i] <= self.n]

    @property
    def variances(self) -> Values:
        """Estimates of the variances of the columns."""
        count, first, second = self.sums
        with np.errstate(all="ignore"):
            found = (second - first * first / count) / count
        return np.where(np.isfinite(found), np.maximum(found, 0), 0)


def remarks(profile: Profile, names: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Say what is unusual about columns that are used as features."""
    found, constant, long = [], set(profile.constant.tolist()), _long(profile)
    counting = [names[i] for i in _counting(profile) if i not in long]
    if counting:
        found.append(
            f"{_all(counting)} may number the rows: whole numbers, all different, and sorted or "
            f"consecutive. {_leave(counting)}"
        )
    if long:
        which = [names[i] for i in long]
        what = "an identifier or a time" if len(long) == 1 else "identifiers or times"
        found.append(
            f"{_all(which)} may be {what}: whole numbers of ten digits or more. {_leave(which)}"
        )
    if constant:
        which = [names[i] for i in sorted(constant)]
        what = "is constant: it has" if len(which) == 1 else "are constant: they have"
        found.append(f"{_all(which)} {what} no variance.")
    if flags:
        found.append(f"true and false are used as 1 and 0: {listed(flags)}.")
    return found


def _long(profile: Profile) -> list[int]:
    """Return the columns of long whole numbers that vary."""
    varied = set(profile.long.tolist()) - set(profile.constant.tolist())
    return [i for i in sorted(varied) if profile.count[i] < profile.n]


def _counting(profile: Profile) -> list[int]:
    """Return the columns that may number the rows, where there are enough rows to tell."""
    constant = set(profile.constant.tolist())
    return [i for i in profile.numbering if i not in constant] if profile.n >= _FEW else []


def suspects(profile: Profile, names: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Say which features are named like identifiers, though they do not tell the rows apart.

    Not those that the user asked for, nor those of which `remarks` says that they may.
    """
    others = {names[i] for i in _counting(profile)} | set(asked) if names else set()
    found = [name for name in names if says_id(name) and name not in others]
    if not found:
        return []
    what, whose = ("is named like an identifier", "its")
    if len(found) > 1:
        what, whose = ("are named like identifiers", "their")
    return [
        f"{_all(found)} {what}, but {whose} values repeat or are not whole numbers. {_leave(found)}"
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


def _all(names: Sequence[str]) -> str:
    """Write names with "and" before the last."""
    if not 1 < len(names) <= _NAMED:
        return listed(names)
    return f"{listed(names[:-1])} and {listed(names[-1:])}"


def _leave(names: Sequence[str]) -> str:
    """Say that columns are features, and how to change that."""
    if len(names) == 1:
        (name,) = names
        drop, id = format_parameter("drop", name), format_parameter("id", name)
        return f"Used as a feature. {drop} leaves it out; {id} uses it as row names."
    every = list(names) if len(names) <= _NAMED else ...
    return f"Used as features. {format_parameter('drop', every)} leaves them out."


def profiled(source: Source) -> Profile:
    """Look at all rows of a source."""
    return source.fold(Profile(*source.shape))

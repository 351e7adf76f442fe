"""Remarks about columns that may not be intended as features."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.data.errors import format_names
from mercer.data.fold import Block, Fold
from mercer.messages import format_parameter

Values = npt.NDArray[Any]

ID_NAME = re.compile(
    r"(?i:ids?|idx|index|rows?|row[ _.-]?(names?|numbers?|nr|no)|uuid|guid|barcodes?|accession|"
    r"samples?|specimen|subject|patient|(samples?|subject|patient)[ _.-]?(names?|no|nr)|names?)"
    r"|.*[ _.-](?i:id|uuid|barcode)|.*[a-z](Id|ID)|Unnamed: 0"
)
"""Names of identifiers: id, sample_id, PassengerId, the row names of R and pandas."""
# Values, of evenly spaced rows, that variances are estimated from; and the fewest such rows.
_VALUES, _ROWS = 500_000, 500
# With fewer rows, nothing is said about columns that may number them.
_FEW = 10
# Most columns that a remedy names.
_NAMED = 10
# Larger integers are identifiers or times rather than measurements.
_LONG = 1e9
# Bytes of flags that record which numbers columns hold.
_FLAGS = 2**24
# A feature with a larger share of the total variance is remarked on.
_DOMINANT = 0.95


class Missing(Fold):
    """Counts the missing entries of every column."""

    label = "missing values"

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width, np.int64)

    def add(self, block: Block) -> None:
        rows = block.rows
        if hasattr(rows, "tocsr"):
            columns = rows.indices[np.isnan(rows.data)]
            if len(columns):
                self.count += np.bincount(columns, minlength=len(self.count))
        else:
            self.count += np.isnan(rows).sum(axis=0)

    def merge(self, other: Self) -> None:
        self.count += other.count

    def spawn(self) -> Self:
        return type(self)(len(self.count))

    def arrays(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.count[:] = arrays["count"]


class Profile(Missing):
    """Missing values and variances of columns; constant, long and row-number columns.

    Numbers of rows are whole, all different, and either sorted or consecutive in any order.
    Most columns are ruled out by their first rows; arrays of column numbers hold the others.
    """

    label = "columns"
    ordered = True
    resumable = False

    def __init__(self, n: int, width: int) -> None:
        super().__init__(width)
        self.n = n
        self.constant = self.long = self.rising = self.falling = self.distinct = np.arange(width)
        self.first = np.full(width, np.nan)
        self.low, self.high = np.full(width, np.inf), np.full(width, -np.inf)
        self.flags: dict[int, npt.NDArray[np.bool_]] = {}
        # Numbers, sums and sums of squares of values, less the first of their column.
        self.sums = np.zeros((3, width))

    def add(self, block: Block) -> None:
        super().add(block)
        step = math.ceil(self.n / max(_ROWS, _VALUES // len(self.count)))
        some = block.rows[-block.start % step :: step]
        with np.errstate(invalid="ignore", over="ignore"):
            if hasattr(some, "tocsr"):
                self._add_sparse(block.rows, some)
            else:
                self._add_dense(np.asarray(block.rows), np.asarray(some, np.float64))

    def _add_dense(self, rows: Values, some: Values) -> None:
        unknown = np.flatnonzero(np.isnan(self.first))
        present = ~np.isnan(rows[:, unknown])
        found = present.any(axis=0)
        self.first[unknown[found]] = rows[present.argmax(axis=0)[found], unknown[found]]
        self.constant = _keep(rows, self.constant, lambda r, at: r == self.first[at])
        for name in ("long", "rising", "falling", "distinct"):  # integers, or missing
            whole = _keep(rows, getattr(self, name), lambda r, _: (r == np.floor(r)) | np.isnan(r))
            setattr(self, name, whole)
        self.long = _keep(rows, self.long, lambda r, _: (np.abs(r) >= _LONG) | np.isnan(r))
        self.rising = _keep(rows, self.rising, lambda r, at: _rises(r, self.high[at]))
        self.falling = _keep(rows, self.falling, lambda r, at: _rises(-r, -self.low[at]))
        at = np.unique(np.concatenate([self.rising, self.falling, self.distinct]))
        values = np.asarray(rows[:, at], np.float64)
        self.low[at] = np.fmin(self.low[at], np.fmin.reduce(values, axis=0))
        self.high[at] = np.fmax(self.high[at], np.fmax.reduce(values, axis=0))
        self._add_distinct(rows)
        known = ~np.isnan(some)
        off = np.where(known, some - np.nan_to_num(self.first), 0)
        self.sums += np.stack([known.sum(axis=0), off.sum(axis=0), (off * off).sum(axis=0)])

    def _add_distinct(self, rows: Values) -> None:
        """Rule out repeats: different numbers from a range of n differ modulo n."""
        at = self.distinct[self.high[self.distinct] - self.low[self.distinct] < self.n]
        if len(at) * self.n > _FLAGS:
            at = at[:0]
        distinct = []
        for i in at.tolist():
            column = np.asarray(rows[:, i], np.float64)
            numbers = np.mod(column[~np.isnan(column)], self.n).astype(np.intp)
            flags = self.flags.setdefault(i, np.zeros(self.n, bool))
            if len(np.unique(numbers)) == len(numbers) and not flags[numbers].any():
                flags[numbers] = True
                distinct.append(i)
        self.distinct = np.array(distinct, np.intp)

    def _add_sparse(self, rows: Any, some: Any) -> None:
        self.first[:] = 0
        self.long = self.rising = self.falling = self.distinct = self.long[:0]
        stored = np.bincount(rows.indices[rows.data != 0], minlength=rows.shape[1])
        self.constant = self.constant[stored[self.constant] == 0]
        for i, power in ((1, some.data), (2, some.data * some.data)):
            self.sums[i] += np.bincount(some.indices, power, minlength=some.shape[1])
        self.sums[0] += some.shape[0]

    @property
    def numbering(self) -> list[int]:
        """Columns that may number the rows; up to a tenth of their entries may be missing."""
        columns = np.unique(np.concatenate([self.rising, self.falling, self.distinct]))
        return [i for i in columns.tolist() if 10 * self.count[i] <= self.n]

    @property
    def variances(self) -> Values:
        """Estimated variances of the columns."""
        count, first, second = self.sums
        with np.errstate(all="ignore"):
            variances = (second - first * first / count) / count
        return np.where(np.isfinite(variances), np.maximum(variances, 0), 0)


def _keep(rows: Values, at: Values, holds: Callable[[Values, Values], Any]) -> Values:
    """Return the columns where a condition holds in all rows; a few rows rule out most."""
    for some in (rows[:64], rows):
        if len(at):
            at = at[holds(some[:, at], at).all(axis=0)]
    return at


def _rises(rows: Values, before: Values) -> Any:
    """Return which entries are larger than all above them, or missing."""
    above = np.fmax.accumulate(np.vstack([before, rows]), axis=0)[:-1]
    return ~(rows <= above)


def feature_remarks(
    profile: Profile, names: Sequence[str], flags: Sequence[str], chosen: Sequence[str], named: bool
) -> list[str]:
    """Describe unusual features; `flags` are Boolean, `chosen` are chosen by the user."""
    remarks, constant = [], set(profile.constant.tolist())
    numbering = [i for i in profile.numbering if i not in constant and profile.n >= _FEW]
    known = {names[i] for i in numbering} | set(chosen)
    like_ids = [name for name in names if named and ID_NAME.fullmatch(name) and name not in known]
    if like_ids:
        what, whose = "is named like an identifier", "its"
        if len(like_ids) > 1:
            what, whose = "are named like identifiers", "their"
        remarks.append(
            f"{_join(like_ids)} {what}, but {whose} values repeat or are not integers. "
            f"{_remedy(like_ids)}"
        )
    long = [i for i in profile.long.tolist() if i not in constant and profile.count[i] < profile.n]
    counting = [names[i] for i in numbering if i not in long]
    if counting:
        remarks.append(
            f"{_join(counting)} may be row numbers: distinct integers, sorted or consecutive. "
            f"{_remedy(counting)}"
        )
    if long:
        which = [names[i] for i in long]
        what = "an identifier or a timestamp" if len(long) == 1 else "identifiers or timestamps"
        remarks.append(
            f"{_join(which)} may be {what}: integers of ten digits or more. {_remedy(which)}"
        )
    if constant:
        what = "is constant: it has" if len(constant) == 1 else "are constant: they have"
        remarks.append(f"{_join([names[i] for i in sorted(constant)])} {what} no variance.")
    if flags:
        remarks.append(f"true and false are used as 1 and 0: {format_names(flags)}.")
    return remarks


def dominant_feature(profile: Profile, names: Sequence[str]) -> str:
    """Name the feature that has nearly all of the variance, if there is one."""
    variances = profile.variances
    total = variances.sum()
    if len(variances) < 2 or not total > 0:
        return ""
    i = int(np.argmax(variances))
    share = variances[i] / total
    if share <= _DOMINANT:
        return ""
    percent = min(99.99, math.floor(10_000 * share) / 100)
    return (
        f"{names[i]!r} has about {percent:g} % of the total variance, more than all others "
        f"together."
    )


def _join(names: Sequence[str]) -> str:
    """Format names with "and" before the last."""
    if not 1 < len(names) <= _NAMED:
        return format_names(names)
    return f"{format_names(names[:-1])} and {format_names(names[-1:])}"


def _remedy(names: Sequence[str]) -> str:
    """Return a hint on how to exclude columns from the features."""
    if len(names) == 1:
        (name,) = names
        drop, id = format_parameter("drop", name), format_parameter("id", name)
        return f"Used as a feature. {drop} excludes it; {id} uses it as row names."
    every = list(names) if len(names) <= _NAMED else ...
    return f"Used as features. {format_parameter('drop', every)} excludes them."

"""Remarks about columns that may not be intended as features."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.data.derived import missing_by_column
from mercer.data.errors import format_names
from mercer.data.fold import Block, Fold
from mercer.messages import format_parameter, percent

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
# A feature with a larger share of the total variance is remarked on.
_DOMINANT = 0.95


class Profile(Fold):
    """Missing values and estimated variances of dense columns; unusual columns.

    Most columns are ruled out by their first rows; arrays of column numbers hold the others.
    """

    label = "columns"
    ordered = True
    resumable = False

    def __init__(self, n: int, width: int) -> None:
        self.n, self.width = n, width
        self.missing = np.zeros(width, np.int64)
        self.constant = self.long = self.rising = np.arange(width)
        self.first, self.last = np.full(width, np.nan), np.full(width, -np.inf)
        # Numbers, sums and sums of squares of values, less the first of their column.
        self.sums = np.zeros((3, width))

    def add(self, block: Block) -> None:
        rows = np.asarray(block.rows)
        unknown = np.flatnonzero(np.isnan(self.first))
        present = ~np.isnan(rows[:, unknown])
        self.first[unknown] = rows[present.argmax(axis=0), unknown]
        self.missing += missing_by_column(block)
        with np.errstate(invalid="ignore", over="ignore"):
            self.constant = _keep(rows, self.constant, lambda r, at: r == self.first[at])
            self.long = _keep(rows, self.long, lambda r, _: (np.abs(r) >= _LONG) & _whole(r))
            self.rising = _keep(rows, self.rising, self._rises)
            step = math.ceil(self.n / max(_ROWS, _VALUES // self.width))
            some = rows[-block.start % step :: step] - np.nan_to_num(self.first)
            known = ~np.isnan(some)
            off = np.where(known, some, 0)
            self.sums += np.stack([known.sum(axis=0), off.sum(axis=0), (off * off).sum(axis=0)])
        self.last = rows[-1].astype(np.float64)

    def _rises(self, rows: Values, at: Values) -> Any:
        return (np.diff(rows, axis=0, prepend=self.last[None, at]) > 0) & _whole(rows)

    def merge(self, other: Self) -> None:
        raise NotImplementedError("the rows are added in order")

    def spawn(self) -> Self:
        return type(self)(self.n, self.width)

    def arrays(self) -> dict[str, Any]:
        return {}

    def restore(self, arrays: dict[str, Any]) -> None:
        pass

    @property
    def variances(self) -> Values:
        """Estimated variances of the columns."""
        count, first, second = self.sums
        with np.errstate(all="ignore"):
            variances = (second - first * first / count) / count
        return np.where(np.isfinite(variances), np.maximum(variances, 0), 0)


def _whole(rows: Values) -> Any:
    return rows == np.floor(rows)


def _keep(rows: Values, at: Values, holds: Callable[[Values, Values], Any]) -> Values:
    """Return the columns where a condition holds in all rows; a few rows rule out most."""
    for some in (rows[:64], rows):
        if len(at):
            at = at[holds(some[:, at], at).all(axis=0)]
    return at


def feature_remarks(
    profile: Profile, names: Sequence[str], flags: Sequence[str], chosen: Sequence[str], named: bool
) -> list[str]:
    """Describe unusual features; `flags` are Boolean, `chosen` are chosen by the user."""
    constant = [names[i] for i in profile.constant]
    long = [names[i] for i in profile.long if names[i] not in constant]
    counting = [names[i] for i in profile.rising if profile.n >= _FEW and names[i] not in long]
    known = {*chosen, *long, *counting}
    like_ids = [name for name in names if named and ID_NAME.fullmatch(name) and name not in known]
    suspicious = {
        "named like identifiers, whose values repeat or are not integers": like_ids,
        "that may be row numbers (increasing integers)": counting,
        "that may be identifiers or timestamps (integers of ten digits or more)": long,
    }
    remarks = [
        f"features {what}: {format_names(which)}. {_remedy(which)}"
        for what, which in suspicious.items()
        if which
    ]
    if constant:
        remarks.append(f"constant features, without variance: {format_names(constant)}.")
    if flags:
        remarks.append(f"true and false are used as 1 and 0: {format_names(flags)}.")
    return remarks


def _remedy(names: Sequence[str]) -> str:
    """Return a hint on how to exclude columns from the features."""
    named = names[0] if len(names) == 1 else list(names) if len(names) <= _NAMED else ...
    return f"{format_parameter('drop', named)} excludes them."


def dominant_feature(profile: Profile, names: Sequence[str]) -> str:
    """Name the feature that has nearly all of the variance, if there is one."""
    variances = profile.variances
    total, i = variances.sum(), int(np.argmax(variances))
    if len(variances) < 2 or not variances[i] > _DOMINANT * total:
        return ""
    share = percent(min(0.9999, variances[i] / total))
    return f"{names[i]!r} has about {share} of the total variance, more than all others together."

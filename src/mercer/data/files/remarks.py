"""Remarks about columns that may not be intended as features."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.data.derived import missing_by_column
from mercer.data.errors import format_names
from mercer.data.fold import Block, Place
from mercer.messages import percent

# Values, of evenly spaced rows, that variances are estimated from; and the fewest such rows.
_VALUES, _ROWS = 500_000, 500
# A feature with a larger share of the total variance is remarked on.
_DOMINANT = 0.95


class Profile(Place):
    """Missing values, constant columns and estimated variances of local dense rows."""

    label = "columns"
    ordered = True
    resumable = False

    def __init__(self, n: int, width: int) -> None:
        self.n, self.width = n, width
        self.missing, self.constant = np.zeros(width, np.int64), np.arange(width)
        self.first = np.full(width, np.nan)
        # Numbers, sums and sums of squares of values, less the first of their column.
        self.sums = np.zeros((3, width))

    def add(self, block: Block) -> None:
        rows = np.asarray(block.rows)
        unknown = np.flatnonzero(np.isnan(self.first))
        present = ~np.isnan(rows[:, unknown])
        self.first[unknown] = rows[present.argmax(axis=0), unknown]
        self.missing += missing_by_column(block)
        for few in (rows[:64], rows):  # the first rows rule out most columns
            at = self.constant
            self.constant = at[(few[:, at] == self.first[at]).all(axis=0)]
        step = math.ceil(self.n / max(_ROWS, _VALUES // self.width))
        with np.errstate(invalid="ignore", over="ignore"):
            off = rows[-block.start % step :: step] - self.first
            squares = np.nansum(off * off, axis=0)
            count = np.count_nonzero(~np.isnan(off), axis=0)
            self.sums += np.stack([count, np.nansum(off, axis=0), squares])

    @property
    def variances(self) -> np.ndarray[Any, Any]:
        """Estimated variances of the columns."""
        count, first, second = self.sums
        with np.errstate(all="ignore"):
            variances = (second - first * first / count) / count
        return np.where(np.isfinite(variances), np.maximum(variances, 0), 0)


def feature_remarks(profile: Profile, names: Sequence[str], flags: Sequence[str]) -> list[str]:
    """Describe features that are constant, or Boolean (`flags`)."""
    constant, remarks = [names[i] for i in profile.constant], list[str]()
    if constant:
        remarks.append(f"constant features, without variance: {format_names(constant)}.")
    if flags:
        remarks.append(f"true and false are used as 1 and 0: {format_names(flags)}.")
    return remarks


def dominant_feature(profile: Profile, names: Sequence[str]) -> str:
    """Name the feature that has nearly all of the variance, if there is one."""
    variances = profile.variances
    total, i = variances.sum(), int(np.argmax(variances))
    if len(variances) < 2 or not variances[i] > _DOMINANT * total:
        return ""
    share = percent(min(0.9999, variances[i] / total))
    return f"{names[i]!r} has about {share} of the total variance, more than all others together."

"""Remarks about columns that may not be intended as features."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.config import get_config
from mercer.data.derived import count_stored, select_columns
from mercer.data.errors import format_names
from mercer.data.source import Source
from mercer.messages import format_parameter, percent

Values = npt.NDArray[Any]

ID_NAME = re.compile(
    r"(?i:ids?|idx|index|rows?|row[ _.-]?(names?|numbers?|nr|no)|uuid|guid|barcodes?|accession|"
    r"samples?|specimen|subject|patient|(samples?|subject|patient)[ _.-]?(names?|no|nr)|names?)"
    r"|.*[ _.-](?i:id|uuid|barcode)|.*[a-z](Id|ID)|Unnamed: 0"
)
"""Names of identifiers: id, sample_id, PassengerId, the row names of R and pandas."""
# Values, of evenly spaced rows, that rule out most columns and show the variances.
_SAMPLE = 100_000
# A feature with a larger share of the total variance is remarked on.
_DOMINANT = 0.95
# With fewer rows, nothing is said about columns that may number them.
_FEW = 10
# Larger integers are identifiers or times rather than measurements.
_LONG = 1e9
# Most columns that a remedy names.
_NAMED = 10


def feature_remarks(
    source: Source, names: Sequence[str], flags: Sequence[str], chosen: Sequence[str], named: bool
) -> list[str]:
    """Describe unusual features; `flags` are Boolean, `chosen` are chosen by the user."""
    constant, numbering, long = list[str](), list[str](), list[str]()
    if source.sparse:
        constant = [names[i] for i in np.flatnonzero(count_stored(source) == 0).tolist()]
    at = [] if source.sparse else _candidates(source)
    n, columns = source.shape[0], np.empty((0, 0))
    if at:
        with progress.quiet():
            columns = select_columns(source, at).collect().T
    for i, column in zip(at, columns, strict=True):
        known = column[~np.isnan(column)]
        if len(known) == n and (known == known[0]).all():
            constant.append(names[i])
        elif len(known) and np.isfinite(known).all() and (known == np.floor(known)).all():
            if (np.abs(known) >= _LONG).all():
                long.append(names[i])
            elif n >= _FEW and 10 * len(known) >= 9 * n and _numbers(known, n):
                numbering.append(names[i])
    said = {*constant, *numbering, *long, *chosen}
    alike = [name for name in names if named and ID_NAME.fullmatch(name) and name not in said]
    remarks = []
    for which, one, many in (
        (alike, "is named like an identifier.", "are named like identifiers."),
        (numbering, *2 * ("may be row numbers: distinct integers, sorted or consecutive.",)),
        (
            long,
            "may be an identifier or a time: integers of ten digits or more.",
            "may be identifiers or times: integers of ten digits or more.",
        ),
    ):
        if which:
            what = one if len(which) == 1 else many
            remarks.append(f"{format_names(which)} {what} {_remedy(which)}")
    if constant:
        what = "is constant: it has" if len(constant) == 1 else "are constant: they have"
        remarks.append(f"{format_names(constant)} {what} no variance.")
    if flags:
        remarks.append(f"true and false are used as 1 and 0: {format_names(flags)}.")
    return remarks


def _sample(source: Source) -> Values:
    """Return evenly spaced rows, in float64."""
    n, d = source.shape
    at = np.linspace(0, n - 1, min(n, max(_FEW, _SAMPLE // d))).astype(np.int64)
    with np.errstate(all="ignore"):
        return np.asarray(source.take(at).astype(np.float64))


def _candidates(source: Source) -> list[int]:
    """Return the columns that are constant, distinct integers or long integers in some rows."""
    rows = np.sort(_sample(source), axis=0)  # NaN last
    with np.errstate(invalid="ignore"):
        steps, missing = np.diff(rows, axis=0), np.isnan(rows)
        whole = ((rows == np.floor(rows)) | missing).all(axis=0)
        long = ((np.abs(rows) >= _LONG) | missing).all(axis=0)
    found = (steps == 0).all(axis=0) | whole & (long | (steps != 0).all(axis=0))
    most = get_config().budget // (64 * source.shape[0])
    return list(np.flatnonzero(found)[:most])


def _numbers(known: Values, n: int) -> bool:
    """Return whether integers are sorted, or all different and from a range of n."""
    steps = np.diff(known)
    distinct = np.ptp(known) < n and len(np.unique(known)) == len(known)
    return bool((steps > 0).all() or (steps < 0).all() or distinct)


def _remedy(names: Sequence[str]) -> str:
    """Return a hint on how to exclude columns from the features."""
    if len(names) == 1:
        (name,) = names
        drop, id = format_parameter("drop", name), format_parameter("id", name)
        return f"Used as a feature. {drop} excludes it; {id} uses it as row names."
    every = list(names) if len(names) <= _NAMED else ...
    return f"Used as features. {format_parameter('drop', every)} excludes them."


def dominant_feature(source: Source, names: Sequence[str]) -> str:
    """Name the feature that has nearly all of the variance of some rows, if there is one."""
    if source.sparse or source.shape[1] < 2:
        return ""
    rows = _sample(source)
    if np.isinf(rows).any():  # the fit refuses them
        return ""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without values
        variances = np.nan_to_num(np.nanvar(rows, axis=0))
    total, i = variances.sum(), int(np.argmax(variances))
    if not variances[i] > _DOMINANT * total:
        return ""
    share = percent(min(0.9999, variances[i] / total))
    return f"{names[i]!r} has about {share} of the total variance, more than all others together."

"""The table that reading a file returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.config import format_bytes, get_config
from mercer.data.errors import BudgetError, FileError, MissingValues, format_names
from mercer.data.files.columns import (
    Request,
    Roles,
    assign_roles,
    column_values,
    id_names,
    missing_entries,
)
from mercer.data.files.remarks import Missing, Profile, dominant_feature, feature_remarks
from mercer.data.in_memory import SparseSource
from mercer.data.source import Source
from mercer.messages import format_parameter

Values = npt.NDArray[Any]

_MOST_COLUMNS = 2**24


@dataclass(frozen=True)
class Table:
    """Rows of a file, and the columns next to them.

    Attributes
    ----------
    source : Source
        The rows: numbers, with the names of their columns and their weights, or strings.
    extra : dict
        Values of the id and label columns and of those kept, by name.
    dropped : tuple of str
        Columns that are neither features nor in `extra`.
    missing : dict
        Number of missing entries by column of `source`, where there are any.
    id : str or None
        The column with the row names.
    reasons : dict
        Why columns were left out that the user did not leave out.
    remarks : tuple of str
        What is unusual about features, if that was requested.
    dominant : str
        Names the feature that has nearly all of the variance, if there is one.
    """

    source: Source
    extra: Mapping[str, Values] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    id: str | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    dominant: str = ""

    @property
    def row_names(self) -> Values | None:
        """Names of the rows; a row without an id goes by its number, as "#3"."""
        return None if self._ids is None else id_names(self._ids)

    @property
    def unnamed(self) -> str:
        """How many rows have no id, and how they are named; for a message."""
        without = [] if self._ids is None else np.flatnonzero(missing_entries(self._ids)).tolist()
        if not without:
            return ""
        if len(without) == 1:
            rows = f"1 row has no {self.id!r} and is named by its row number"
        else:
            rows = f"{len(without)} rows have no {self.id!r} and are named by their row numbers"
        return f"{rows}, counted from 0: {format_names(f'#{i}' for i in without)}."

    @property
    def _ids(self) -> Any:
        return None if self.id is None else (self.source.extra_columns or self.extra)[self.id]

    def naming(self, option: str) -> str:
        """Say which column names the rows, and which option would make it a feature."""
        text = f"column {self.id!r} is used as row names, not as a feature."
        if self.id is not None and self.extra[self.id].dtype.kind in "iuf":
            text += f" To use it as a feature, pass {option}."
        return f"{text} {self.unnamed}".rstrip()

    @property
    def left_out(self) -> str:
        """Names of columns that were left out, and why; for a message."""
        groups: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            groups.setdefault(reason, []).append(name)
        return "; ".join(f"{format_names(names)} ({reason})" for reason, names in groups.items())


def make_table(
    request: Request,
    source: Source,
    names: Sequence[str] | None,
    missing: Values | None = None,
    *,
    extra: Mapping[str, Any] | None = None,
    weights: Values | None = None,
    dropped: Sequence[str] = (),
    reasons: Mapping[str, str] | None = None,
    id: str | None = None,
    flags: Sequence[str] = (),
) -> Table:
    """Make the table of a source; refuse missing values if the user wants that.

    `names` are None if the file has none; `missing` is None if nobody has counted.
    """
    if weights is not None:
        unknown = int(np.isnan(weights).sum())
        if unknown:
            raise FileError(
                f"{request.path}: {unknown} weights of column {request.weights!r} are missing."
            )
        source = source.weighted(np.asarray(weights, np.float64))
    known = names or [str(i) for i in range(source.shape[1])]
    remarks: list[str] = []
    dominant = ""
    if request.remarks:
        profile = source.fold(Profile(*source.shape))
        missing = profile.count
        remarks = feature_remarks(profile, known, flags, request.columns or (), bool(names))
        dominant = dominant_feature(profile, known)
    elif missing is None and source.waits and request.direct:
        missing = np.zeros(source.shape[1], np.int64)  # the fit finds them, in its first pass
    elif missing is None:
        missing = source.fold(Missing(source.shape[1])).count
    counts = {known[i]: int(missing[i]) for i in np.flatnonzero(missing).tolist()}
    if counts and request.refuse:
        raise MissingValues(request.path, counts)
    if names is not None:
        source.names = list(names)
    source.extra_columns, source.id = dict(extra or {}), id
    values = {name: column_values(column) for name, column in source.extra_columns.items()}
    return Table(
        source, values, tuple(dropped), counts, id, dict(reasons or {}), tuple(remarks), dominant
    )


def make_named_table(
    request: Request,
    roles: Roles,
    features: Sequence[int],
    ids: Sequence[int],
    source: Source,
    missing: Values | None,
    *,
    columns: Mapping[int, Any],
    weights: Values | None,
    reasons: Mapping[int, str],
    flags: Sequence[int],
    named: bool = True,
) -> Table:
    """Make the table of a file with columns of several types.

    `features` are the columns of the source, and `flags` those that are true and false; the best
    of `ids` names the rows; `columns` has the values of columns next to the rows, and `reasons`
    say why others are left out.
    """
    names, own = roles.names, roles.id if roles.id is not None else next(iter(ids), None)
    extra = dict.fromkeys([*([] if own is None else [own]), *roles.extra])
    used = {*features, *extra, *roles.weights}
    dropped = [i for i in range(len(names)) if i not in used]
    identifiers = {i: "identifier" for i in ids if i in roles.features}
    why = {i: text for i, text in {**reasons, **identifiers}.items() if text and i not in used}
    return make_table(
        request,
        source,
        [names[i] for i in features] if named else None,
        missing,
        extra={names[i]: columns[i] for i in extra},
        weights=weights,
        dropped=[names[i] for i in dropped],
        reasons={names[i]: why[i] for i in dropped if i in why},
        id=None if own is None else names[own],
        flags=[names[i] for i in flags],
    )


def make_unnamed_table(
    request: Request,
    width: int,
    rows: Callable[[Sequence[int]], Source],
    column: Callable[[int], Values] | None = None,
) -> Table:
    """Make the table of a file whose columns are all numbers and go by their position.

    `rows` reads the columns it is told, and `column` a single one with the stored precision.
    """
    if width >= _MOST_COLUMNS:
        raise FileError(f"{request.path} has {width} columns, and {_MOST_COLUMNS} are too many.")
    names = [str(i) for i in range(width)]
    roles = assign_roles(names, request, named=False)

    def floats(i: int) -> Values:
        with progress.quiet():
            return np.ascontiguousarray(rows([i]).collect()[:, 0])

    used = {*roles.features, *roles.extra, *roles.weights}
    return make_table(
        request,
        rows(roles.features),
        None,
        extra={names[i]: (column or floats)(i) for i in roles.extra},
        weights=floats(roles.weights[0]) if roles.weights else None,
        dropped=[name for i, name in enumerate(names) if i not in used],
        id=None if roles.id is None else names[roles.id],
    )


def select_columns(source: Source, columns: Sequence[int]) -> Source:
    """Return some columns of a source."""
    at = list(columns)
    if at == list(range(source.shape[1])):
        return source
    if isinstance(source, SparseSource):
        return SparseSource(source.csr[:, at])
    return source.map(lambda block: block.rows[:, at], len(at))


def check_file_memory(path: str, needed: int) -> None:
    """Refuse a file that is read at once and exceeds the memory budget."""
    budget = get_config().budget
    if needed > budget:
        raise BudgetError(
            f"{path}: reading it takes {format_bytes(needed)}, and the memory budget is "
            f"{format_bytes(budget)}. Raise it with {format_parameter('memory')}."
        )

"""What comes of reading a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.data.errors import FileError, MissingValues, listed
from mercer.data.files.labels import Column, gaps, id_names
from mercer.data.files.missing import Missing
from mercer.data.files.remarks import dominating, profiled, remarks, suspects
from mercer.data.files.roles import Ask, Roles
from mercer.data.npy import NpySource
from mercer.data.source import Source

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Rows of a file, and the columns beside them.

    Attributes
    ----------
    source : Source
        The rows: numbers, with the names of their columns and their weights, or strings.
    extra : dict
        Values of the id and label columns and of those kept, by name.
    dropped : tuple of str
        Columns that are neither features nor in `extra`.
    missing : dict
        How many entries are missing, of every column of `source` that lacks some.
    id : str or None
        The column that names the rows.
    reasons : dict
        Why columns were left out that nobody asked to leave out.
    remarks : tuple of str
        What is unusual about features: they may number the rows, are constant, and the like.
        Looked for only where that was asked.
    dominant : str
        Says which feature has nearly all of the variance, where one has.
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
        """Says how many rows have no id, and how they are named; for a message."""
        without = [] if self._ids is None else np.flatnonzero(gaps(self._ids)).tolist()
        if not without:
            return ""
        if len(without) == 1:
            said = f"1 row has no {self.id!r} and is named by its row number"
        else:
            said = f"{len(without)} rows have no {self.id!r} and are named by their row numbers"
        return f"{said}, counted from 0: {listed(f'#{i}' for i in without)}."

    @property
    def _ids(self) -> Any:
        return None if self.id is None else (self.source.extra_columns or self.extra)[self.id]

    def naming(self, option: str) -> str:
        """Say which column names the rows, and the option that would make it a feature."""
        said = f"column {self.id!r} is used as row names, not as a feature."
        if self.id is not None and self.extra[self.id].dtype.kind in "iuf":
            said += f" To use it as a feature, pass {option}."
        return f"{said} {self.unnamed}".rstrip()

    @property
    def left_out(self) -> str:
        """Names of columns that were left out, and why; for a message."""
        groups: dict[str, list[str]] = {}
        for name, reason in self.reasons.items():
            groups.setdefault(reason, []).append(name)
        return "; ".join(f"{listed(names)} ({reason})" for reason, names in groups.items())


def finished(
    ask: Ask,
    source: Source,
    names: Sequence[str] | None,
    missing: Values | None,
    *,
    beside: Mapping[str, Column] | None = None,
    weights: Values | None = None,
    dropped: Sequence[str] = (),
    reasons: Mapping[str, str] | None = None,
    id: str | None = None,
    flags: Sequence[str] = (),
) -> Table:
    """Put a table together; refuse what is missing where the user wants that.

    `missing` counts by column of the source, None where nobody has counted; `names` are None
    where the file has none.
    """
    if weights is not None:
        lacking = int(np.isnan(weights).sum())
        if lacking:
            raise FileError(f"{ask.path}: {lacking} weights of column {ask.weights!r} are missing.")
        source = source.weighted(np.asarray(weights, np.float64))
    known = names or [str(i) for i in range(source.shape[1])]
    said: list[str] = []
    dominant = None
    if ask.look:
        profile = profiled(source)
        missing = profile.count
        said, dominant = remarks(profile, known, flags), dominating(profile, known)
        said = suspects(profile, names or (), ask.columns or ()) + said
    elif missing is None:
        missing = counted(ask, source)
    counts = {known[i]: int(missing[i]) for i in np.flatnonzero(missing).tolist()}
    if counts and ask.refuse:
        raise MissingValues(ask.path, counts)
    if names is not None:
        source.names = list(names)
    source.extra_columns = {name: column.stored for name, column in (beside or {}).items()}
    source.id = id
    return Table(
        source,
        {name: column.values for name, column in (beside or {}).items()},
        tuple(dropped),
        counts,
        id,
        dict(reasons or {}),
        tuple(said),
        dominant or "",
    )


def from_numbers(ask: Ask, source: Source, roles: Roles) -> Table:
    """Make the table of a source all of whose columns are numbers."""
    exact = source.column if isinstance(source, NpySource) else None
    return from_parts(ask, roles, lambda columns: chosen(source, columns), exact)


def from_parts(
    ask: Ask,
    roles: Roles,
    rows: Callable[[Sequence[int]], Source],
    exact: Callable[[int], Values] | None = None,
) -> Table:
    """Make the table of a file all of whose columns are numbers and none has a name.

    `rows` reads the columns it is told, and `exact` one of them as it is stored.
    """

    def column(number: int) -> Values:
        with progress.quiet():
            return np.ascontiguousarray(rows([number]).collect()[:, 0])

    beside = {roles.names[i]: Column.of_numbers((exact or column)(i)) for i in roles.beside}
    weights = None if roles.weights is None else column(roles.weights)
    spoken = {*roles.features, *roles.beside, roles.weights}
    return finished(
        ask,
        rows(roles.features),
        None,
        None,
        beside=beside,
        weights=weights,
        dropped=[name for i, name in enumerate(roles.names) if i not in spoken],
        id=None if roles.id is None else roles.names[roles.id],
    )


def counted(ask: Ask, source: Source) -> Values:
    """Count what is missing; 0 where nobody asked, and it would take a pass over a file."""
    if source.waits and not ask.count:
        return np.zeros(source.shape[1], np.int64)
    return source.fold(Missing(source.shape[1])).count


def chosen(source: Source, columns: Sequence[int]) -> Source:
    """Return some columns of a source."""
    from mercer.data.sparse import SparseSource

    at = list(columns)
    if at == list(range(source.shape[1])):
        return source
    if isinstance(source, SparseSource):
        return SparseSource(source.csr[:, at])
    return source.map(lambda block: block.rows[:, at], len(at))

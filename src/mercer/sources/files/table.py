"""What comes of reading a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.sources.base import Source
from mercer.sources.errors import FileError, MissingValues, listed
from mercer.sources.files.roles import Ask, Roles
from mercer.sources.fold import Block, Fold

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Rows of a file, and the columns beside them.

    Attributes
    ----------
    source : Source
        The rows: numbers, with the names of their columns and their weights, or strings.
    extra : dict
        Values of the label column and of those kept, by name.
    dropped : tuple of str
        Columns that are not used: they were not asked for; or, where none were, they are not
        numbers, or hold nothing, or number the rows.
    missing : dict
        How many entries are missing, of every column of `source` that lacks some.
    """

    source: Source
    extra: Mapping[str, Values] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)

    @property
    def left_out(self) -> str:
        """Why columns are not used where none were asked for, and their names; for a message."""
        names = listed(self.dropped)
        return f"not every entry is a number, or they only number the rows: {names}."


def finished(
    ask: Ask,
    source: Source,
    names: Sequence[str] | None,
    missing: Values,
    *,
    extra: Mapping[str, Values] | None = None,
    weights: Values | None = None,
    dropped: Sequence[str] = (),
) -> Table:
    """Put a table together; refuse what is missing where the user wants that.

    `missing` counts by column of the source; `names` are None where the file has none.
    """
    if weights is not None:
        lacking = int(np.isnan(weights).sum())
        if lacking:
            raise FileError(f"{ask.path}: {lacking} weights of column {ask.weights!r} are missing.")
        source = source.weighted(np.asarray(weights, np.float64))
    known = names or [str(i) for i in range(len(missing))]
    counts = {known[i]: int(missing[i]) for i in np.flatnonzero(missing).tolist()}
    if counts and ask.refuse:
        raise MissingValues(ask.path, counts)
    if names is not None:
        source.names = list(names)
    return Table(source, dict(extra or {}), tuple(dropped), counts)


def from_numbers(ask: Ask, source: Source, roles: Roles, names: Sequence[str] | None) -> Table:
    """Make the table of a source all of whose columns are numbers."""
    return from_parts(ask, roles, lambda columns: chosen(source, columns), names)


def from_parts(
    ask: Ask,
    roles: Roles,
    rows: Callable[[Sequence[int]], Source],
    names: Sequence[str] | None = None,
) -> Table:
    """Make the table of a file all of whose columns are numbers; `rows` reads those it is told."""

    def column(number: int) -> Values:
        with progress.quiet():
            return np.ascontiguousarray(rows([number]).collect()[:, 0])

    extra = {roles.names[i]: column(i) for i in roles.beside}
    weights = None if roles.weights is None else column(roles.weights)
    source = rows(roles.features)
    own = None if names is None else [names[i] for i in roles.features]
    return finished(ask, source, own, counted(ask, source), extra=extra, weights=weights)


def counted(ask: Ask, source: Source) -> Values:
    """Count what is missing; 0 where nobody asked, and it would take a pass over a file."""
    if source.waits and not ask.count:
        return np.zeros(source.shape[1], np.int64)
    return source.fold(Missing(source.shape[1])).count


def chosen(source: Source, columns: Sequence[int]) -> Source:
    """Return some columns of a source."""
    from mercer.sources.sparse import SparseSource

    at = list(columns)
    if at == list(range(source.shape[1])):
        return source
    if isinstance(source, SparseSource):
        return SparseSource(source.csr[:, at])
    return source.map(lambda block: block.rows[:, at], len(at))


class Missing(Fold):
    """Counts the missing entries of every column."""

    label = "missing values"

    def __init__(self, width: int) -> None:
        self.count = np.zeros(width, np.int64)

    def add(self, block: Block) -> None:
        rows = block.rows
        if hasattr(rows, "tocsr"):
            at = rows.indices[np.isnan(rows.data)]
            if len(at):
                self.count += np.bincount(at, minlength=len(self.count))
        else:
            self.count += np.isnan(rows).sum(axis=0)

    def merge(self, other: Missing) -> None:
        self.count += other.count

    def spawn(self) -> Missing:
        return type(self)(len(self.count))

    def arrays(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, arrays: dict[str, Any]) -> None:
        self.count[:] = arrays["count"]

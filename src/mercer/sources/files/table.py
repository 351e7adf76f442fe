"""What comes of reading a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.sources.base import Block, Fold, Source
from mercer.sources.errors import FileError, MissingValues, listed
from mercer.sources.files.roles import Ask, Roles

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
    extra = {
        roles.names[i]: value
        for i, value in zip(roles.beside, _columns(source, roles.beside), strict=True)
    }
    weights = None if roles.weights is None else _columns(source, [roles.weights])[0]
    if roles.features != tuple(range(source.shape[1])):
        source = chosen(source, roles.features)
    own = None if names is None else [names[i] for i in roles.features]
    missing = source.fold(Missing(source.shape[1])).count
    return finished(ask, source, own, missing, extra=extra, weights=weights)


def chosen(source: Source, columns: Sequence[int]) -> Source:
    """Return some columns of a source."""
    from mercer.sources.sparse import SparseSource

    at = list(columns)
    if isinstance(source, SparseSource):
        return SparseSource(source.csr[:, at])
    return source.map(lambda block: block.rows[:, at], len(at))


def _columns(source: Source, numbers: Sequence[int]) -> list[Values]:
    if not numbers:
        return []
    with progress.quiet():
        part = chosen(source, numbers).collect()
    return [np.ascontiguousarray(part[:, i]) for i in range(len(numbers))]


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

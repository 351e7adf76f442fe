"""By what rows are known again."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.data.source import Source
from mercer.data.strings import StringSource

# Rows that are looked at, and their entries, at most; letters of a string.
_ROWS, _ENTRIES, _LETTERS = 256, 2**20, 1024
# Entries that are in memory at one time, or a row.
_AT_ONCE = 2**16


def fingerprint(source: Source) -> str:
    """Return a text by which rows are known again: shape, precision, and a hash of some rows.

    The same for the same numbers in memory, dense or sparse, in a table or in a file. Some
    hundred rows, spread evenly from the first to the last, are looked at: a change of others
    leaves no trace. Weights and names are not looked at.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.data import as_source, fingerprint
    >>> fingerprint(as_source(np.arange(6.0).reshape(3, 2)))
    '3x2 float64 84a6e8b7afdd286a48ab0aab'
    """
    n, *columns = source.shape
    digest = hashlib.sha256()
    if isinstance(source, StringSource):
        for text in source.take(_spread(n, _ROWS)):
            digest.update(f"{len(text)} {text[:_LETTERS]}\n".encode("utf-8", "surrogatepass"))
        return f"{n} strings {digest.hexdigest()[:24]}"
    d = max(1, *columns)
    spread = _spread(n, min(_ROWS, max(2, _ENTRIES // d)))
    parts = -(-len(spread) * d // _AT_ONCE)
    for some in np.array_split(spread, parts) if parts > 1 else [spread]:
        digest.update(_bytes(to_numpy(source.take(some)).astype(source.dtype, copy=False)))
    return f"{n}x{columns[0]} {source.dtype} {digest.hexdigest()[:24]}"


def joint_fingerprint(before: str | None, batch: Source) -> str:
    """Return the fingerprint of batches: those before, and another; their order counts."""
    own = fingerprint(batch)
    if before is None:
        return own
    return f"batches {hashlib.sha256(before.encode() + own.encode()).hexdigest()[:24]}"


def _bytes(rows: np.ndarray[Any, Any]) -> Any:
    """Return rows as what is hashed: zero and minus zero are equal, and so are all NaN."""
    rows = np.where(np.isnan(rows), np.nan, rows + 0.0).astype(rows.dtype.newbyteorder("<"))
    return np.ascontiguousarray(rows).data


def _spread(n: int, rows: int) -> np.ndarray[Any, Any]:
    if n <= rows:
        return np.arange(n)
    return np.unique(np.linspace(0, n - 1, rows).astype(np.int64))

"""Small chunks that lie side by side, as one: a task for every two of them would cost more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.data.dask.tasks import everywhere, task
from mercer.data.remote import require_rows
from mercer.data.source import BLOCK_BYTES

if TYPE_CHECKING:
    from mercer.data.dask.chunks import Chunks

Chunk = tuple[Any, int, int]
# Rows of chunks that are joined, at most: two of them keep a worker for much longer than it takes
# to send it the task, and many workers find work.
_ROWS = 2048


def joined(chunks: Chunks, row_bytes: int) -> list[Chunk]:
    """Return the chunks that have rows, small neighbours as one; first row, and number."""
    row = max(1, row_bytes, chunks.array.shape[1] * chunks.array.dtype.itemsize)
    most = min(_ROWS, min(BLOCK_BYTES, everywhere() // 32) // row)
    return [
        some[0] if len(some) == 1 else _as_one(some, chunks.array.shape[1])
        for some in _neighbours(chunks, most)
    ]


def _neighbours(chunks: Chunks, most: int) -> Iterator[list[Chunk]]:
    """Yield neighbours that have no more than so many rows together, or one that has more."""
    some: list[Chunk] = []
    held = 0
    for chunk in chunks.some():
        if some and held + chunk[2] > most:
            yield some
            some, held = [], 0
        some.append(chunk)
        held += chunk[2]
    if some:
        yield some


def _as_one(some: list[Chunk], width: int) -> Chunk:
    return task(_together)(some, width), some[0][1], sum(rows for *_, rows in some)


def _together(some: list[Chunk], width: int) -> np.ndarray[Any, Any]:
    """Return the rows of chunks as one array, or name the one that is not what was announced."""
    return np.concatenate([require_rows(*chunk, width) for chunk in some])

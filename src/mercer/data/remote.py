"""Rows that live on workers, and the work of one worker on one chunk of them.

A source of remote rows, and every source mapped from it, is pickled without rows: on a worker it
reads the chunk that the task received. Functions that hold a source can be sent, too.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mercer import threads
from mercer.arrays import Array, Vector
from mercer.config import config_context
from mercer.data.fold import Block, Fold
from mercer.data.source import Source
from mercer.progress import recorded_by

F = TypeVar("F", bound=Fold)
Arrays = dict[str, Array]
PairTask = Callable[[Block, Any, Any], Fold]
"""Makes the fold of the rows x of one chunk, from the rows y of another and both operands.

The arrays of the fold are sums. Names begin with "left " for sums of the chunk of x, and with
"right " for sums of the chunk of y, unless that is the same.
"""
TILE_COLUMNS = 4096
"""Rows y that the rows x of a block are multiplied with at a time."""
_chunk: ContextVar[tuple[str, int, Array]] = ContextVar("chunk", default=("", 0, None))


class Chunk(NamedTuple):
    """A chunk of rows: an array, or the task that computes it."""

    rows: Any
    start: int
    stop: int

    @property
    def span(self) -> tuple[int, int]:
        """Number of the first row, and of the row after the last."""
        return self.start, self.stop

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    def check(self, width: int) -> np.ndarray[Any, Any]:
        """Return the rows as an array; raise if they are not as declared."""
        masked = isinstance(self.rows, np.ma.MaskedArray) and np.ma.is_masked(self.rows)
        shape = tuple(getattr(self.rows, "shape", ()))
        if masked or hasattr(self.rows, "todense") or shape != (self.length, width):
            raise ValueError(
                f"The chunk of rows {self.start} to {self.stop - 1} is a "
                f"{type(self.rows).__name__} of shape {shape}, expected a dense array of "
                f"{self.length} rows and {width} columns without masked entries. Call "
                f"X.compute_chunk_sizes() if sizes are wrong, or convert chunks: sparse ones with "
                f"X.map_blocks(lambda b: b.toarray())."
            )
        return np.asarray(self.rows)


@dataclass(frozen=True)
class ChunkTask:
    """The part of a task that is the same for every chunk."""

    token: str
    """Identifies the collection of the chunks."""
    width: int
    """Number of columns of a chunk."""
    view: Source
    state: Any
    """An empty fold, or a `PairTask`."""
    memory: int
    """Memory limit in bytes, besides the chunk."""
    block_rows: int | None

    @contextlib.contextmanager
    def part(self, chunk: Chunk, weights: Vector | None = None) -> Iterator[Source]:
        """Provide the view of one chunk, in a single thread."""
        part = copy.copy(self.view)
        part.origin, part.remote, part.weights = chunk.start, None, weights
        part.shape = (chunk.length, *part.shape[1:])
        settings = config_context(
            memory=self.memory, block_rows=self.block_rows, progress=False, checkpoint=None
        )
        token = _chunk.set((self.token, chunk.start, chunk.check(self.width)))
        try:
            blas = threads.serial_blas()
            with settings, recorded_by(None), blas, threads.working():
                yield part
        finally:
            _chunk.reset(token)


def local_rows(token: str, start: int, stop: int) -> Array | None:
    """Return the rows start to stop - 1 of a collection, if this task received them."""
    owner, first, rows = _chunk.get()
    if owner != token or not first <= start <= stop <= first + rows.shape[0]:
        return None
    return rows[start - first : stop - first]


def fold_chunk(chunk: Chunk, weights: Vector | None, task: ChunkTask) -> Arrays:
    """Return the state of a fold over one chunk."""
    with task.part(chunk, weights) as part:
        state: Fold = part.fold(task.state.spawn())
        return state.arrays()


def merge_states(left: Arrays, right: Arrays, task: ChunkTask) -> Arrays:
    """Return the merged state of two folds, in their order; the states stay unchanged.

    They may be needed again after the loss of a worker.
    """
    state, other = task.state.spawn(), task.state.spawn()
    for fold, arrays in ((state, left), (other, right)):
        fold.restore({name: np.array(array) for name, array in arrays.items()})
    with threads.serial_blas(), np.errstate(invalid="ignore", over="ignore"):
        state.merge(other)
        merged: Arrays = state.arrays()
    return merged


def map_chunk(chunk: Chunk, task: ChunkTask) -> Array:
    """Return all rows of the view of one chunk."""
    with task.part(chunk) as part:
        out = np.empty(part.shape, part.dtype)
        for block in part.blocks(part.block_rows(0, held=0, parts=1)):
            out[block.start - part.origin : block.stop - part.origin] = block.rows
    return out


def map_block(rows: Any, task: ChunkTask, block_info: Any = None) -> Array:
    """Map a chunk of a Dask array; `block_info` says which rows it holds."""
    return map_chunk(Chunk(rows, *block_info[0]["array-location"][0]), task)


def fold_pair(
    x: Chunk, y: Chunk, operands: tuple[Any, Any], task: ChunkTask, y_task: ChunkTask
) -> Arrays:
    """Return the sums of a pair of chunks."""
    with y_task.part(y) as part:
        others = Block(y.start, part.read(*y.span), None)
    with task.part(x) as part:
        state: Fold = part.fold(y_task.state(others, *operands))
        return state.arrays()


def sum_sides(parts: list[tuple[Arrays, str]]) -> Arrays:
    """Return the sums of arrays by name, in order; of each part those whose name has its prefix."""
    totals: Arrays = {}
    for arrays, side in parts:
        for name, array in arrays.items():
            if name.startswith(side):
                key = name[len(side) :]
                totals[key] = totals[key] + array if key in totals else array
    return totals

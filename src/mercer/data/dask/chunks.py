"""The chunks of a Dask array, and passes over them and over pairs of them on the workers."""

from __future__ import annotations

import functools
import itertools
import uuid
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from mercer import progress
from mercer.arrays import Array
from mercer.config import get_config
from mercer.data import remote
from mercer.data.dask.scheduler import compute, constant, current_workers, task, tree_reduce
from mercer.data.fold import Block, Fold
from mercer.data.remote import Chunk, ChunkTask, PairTask
from mercer.data.source import BLOCK_BYTES, SILENT, Source

F = TypeVar("F", bound=Fold)
ROUND_CHUNKS = 128
"""Chunks that are folded in one computation, at most."""
JOINED_ROWS = 2048
"""Rows of small chunks that are joined, at most: a task for each of them would cost more."""
GROUP_CHUNKS = 64
"""Chunks of a group, at most: all pairs between two groups are one computation."""
# The same for a recorded pass, which is saved between two computations.
_RECORDED_CHUNKS = 8
# Pairs of a chunk that are summed at a time.
_FAN = 8
# Chunks that are gathered at a time, at most.
_GATHERED = 64
Operand = tuple[Chunk, Any]
Span = tuple[int, int]


class Chunks:
    """The chunks of a Dask array, and the work on them.

    A view is the source of the rows, or a source mapped from it. `first` is the number of the first
    row. Pickled without the array: on a worker, only the chunk that a task received can be read.
    """

    def __init__(self, array: Any, first: int = 0) -> None:
        self.array, self.first = array, first
        self.token = uuid.uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        return {"token": self.token, "array": None, "first": 0}

    @functools.cached_property
    def nonempty(self) -> list[Chunk]:
        """The chunks that have rows."""
        cuts = (self.first + np.cumsum([0, *self.array.chunks[0]])).tolist()
        every = zip(self.array.to_delayed()[:, 0], itertools.pairwise(cuts), strict=True)
        return [Chunk(rows, *span) for rows, span in every if span[0] < span[1]]

    def read(self, start: int, stop: int) -> Any:
        """Return stored rows: from the chunk of this task, or computed."""
        rows = remote.local_rows(self.token, start, stop)
        if rows is not None:
            return rows
        if self.array is None:
            raise ValueError(
                f"Rows {start} to {stop - 1} of a Dask collection are not on this worker. Pickling "
                f"a source does not include them: create it again from the collection."
            )
        (rows,) = compute([self.array[start - self.first : stop - self.first]])
        return Chunk(rows, start, stop).check(self.array.shape[1])

    def fold(self, view: Source, state: F) -> F:
        """Fold every chunk, and merge neighbors two by two: the same bits every time.

        A round of chunks is one computation; a recorded pass is saved between rounds.
        """
        chunk_task, chunks = self.task(view, state.spawn(), state.nbytes), self.nonempty
        shared = constant(chunk_task)
        with (
            progress.task(state.label, view.shape[0]) as tick,
            progress.record(state, f"{self.layout(view)}, in rounds") as record,
        ):
            if record and record.finished:
                return state
            (done,) = record.begin([state]) if record else (0,)
            tick(sum(chunk.length for chunk in chunks[: done * ROUND_CHUNKS]))
            for first in range(done * ROUND_CHUNKS, len(chunks), ROUND_CHUNKS):
                some, other = chunks[first : first + ROUND_CHUNKS], state.spawn()
                parts = [task(remote.fold_chunk)(x, view.counts(*x.span), shared) for x in some]
                steps = {part.key: x.length for part, x in zip(parts, some, strict=True)}
                merged = tree_reduce(parts, lambda two: task(remote.merge_states)(*two, shared), 2)
                with record.step(0) if record else nullcontext(), np.errstate(**SILENT):
                    other.restore(compute([merged], tick, steps)[0])
                    state.merge(other)
        return state

    def fold_pairs(self, view: Source, make: PairTask, state: Any) -> None:
        """Add the sums of every pair of chunks of a view to `state`, a `SymmetricProduct`."""
        groups = _groups(self, view)
        turns = [(a, b) for i, a in enumerate(groups) for b in groups[i:]]
        places = repr([[chunk.span for chunk in group] for group in groups])
        layout = f"pairs of {self.layout(view)}, {zlib.crc32(places.encode()):08x}"
        shared = constant(self.task(view, make))
        with (
            progress.task(state.label, view.shape[0] ** 2) as tick,
            progress.record(state, layout) as record,
        ):
            if record and record.finished:
                return
            (done,) = record.begin([state]) if record else (0,)
            tick(sum(_entries(a, b) for a, b in turns[:done]))
            for a, b in turns[done:]:
                operands = {x.span: (x, constant(state.operand(*x.span))) for x in [*a, *b]}
                left, right = ([operands[x.span] for x in group] for group in (a, b))
                sums, steps = pair_sums(left, right, shared, shared, symmetric=True)
                turn = record.step(0) if record else nullcontext()
                with turn, np.errstate(**SILENT):
                    totals = compute([*sums.values()], tick, steps)
                    for span, total in zip(sums, totals, strict=True):
                        state.add_sums(*span, total)

    def take(self, view: Source, at: np.ndarray[Any, Any]) -> Array:
        """Return the named rows of a view, in the order named."""
        (rows,) = compute([self.as_array(view)[at]])
        return np.asarray(rows)

    def blocks(self, view: Source, rows: int, first: int, step: int) -> Iterator[Block]:
        """Yield blocks of a view, gathering as many chunks at a time as fit in memory."""
        shared = constant(self.task(view))
        spans = [
            (chunk, start, min(start + rows, chunk.stop))
            for chunk in self.nonempty
            for start in range(*chunk.span, rows)
        ]
        by_chunk = itertools.groupby(spans[first::step], lambda span: span[0].start)
        groups = [[*group] for _, group in by_chunk]
        largest = max((chunk.length for chunk in self.nonempty), default=0)
        nbytes = max(1, largest * view.shape[1] * view.dtype.itemsize)
        window = max(1, min(_GATHERED, get_config().budget // 8 // nbytes))
        for at in range(0, len(groups), window):
            some = groups[at : at + window]
            tasks = [task(remote.map_chunk)(group[0][0], shared) for group in some]
            for group, array in zip(some, compute(tasks), strict=True):
                for chunk, start, stop in group:
                    cut = array[start - chunk.start : stop - chunk.start]
                    yield Block(start, cut, view.counts(start, stop))

    def as_array(self, view: Source) -> Any:
        """Return a view as a Dask array with the same chunks; nothing is computed."""
        width = view.shape[1]
        return self.array.map_blocks(
            remote.map_block,
            task=constant(self.task(view.weighted(None))),
            dtype=view.dtype,
            chunks=(self.array.chunks[0], (width,)),
            meta=np.empty((0, width), view.dtype),
            name=f"mercer-{uuid.uuid4().hex}",
        )

    def task(self, view: Source, state: Any = None, nbytes: int = 0) -> ChunkTask:
        """Return the common part of the tasks on a view; a fold holds `nbytes`."""
        _, limit, tasks, _ = current_workers()
        # At least the memory of a fold and its blocks: the share of a task is not a limit.
        share = max(limit // tasks, min(limit, 2 * nbytes + 4 * BLOCK_BYTES))
        width, block_rows = self.array.shape[1], get_config().block_rows
        return ChunkTask(self.token, width, view, state, share, block_rows)

    def layout(self, view: Source) -> str:
        """Describe the chunks: a pass is resumed only with the same ones."""
        places = repr([chunk.span for chunk in self.nonempty])
        return f"{view.shape} in chunks {zlib.crc32(places.encode()):08x}"


def pair_sums(
    left: list[Operand],
    right: list[Operand],
    task_x: Any,
    task_y: Any,
    *,
    symmetric: bool = False,
    fan: int = _FAN,
) -> tuple[dict[Span, Any], dict[str, int]]:
    """Return the task of the sums of every chunk over its pairs, and the entries of every pair.

    Every chunk x on the left is paired with every chunk y on the right. If they are `symmetric`,
    chunks of the same collection, only pairs x ≤ y are computed, for the sums of both x and y.
    """
    pairs: dict[Span, list[tuple[Any, str]]] = {}
    entries = {}
    for x, x_operand in left:
        for y, y_operand in right:
            if symmetric and y.start < x.start:
                continue
            pair = task(remote.fold_pair)(x, y, (x_operand, y_operand), task_x, task_y)
            entries[pair.key] = _entries([x], [y])
            pairs.setdefault(x.span, []).append((pair, "left "))
            if symmetric and x.start < y.start:
                pairs.setdefault(y.span, []).append((pair, "right "))
    sums = {}
    for span, parts in pairs.items():
        some = [task(remote.sum_sides)(parts[i : i + fan]) for i in range(0, len(parts), fan)]
        sums[span] = tree_reduce(
            some, lambda few: task(remote.sum_sides)([(x, "") for x in few]), fan
        )
    return sums, entries


def _entries(a: list[Chunk], b: list[Chunk]) -> int:
    """Return the number of entries of the symmetric matrix that two groups cover."""
    rows, columns = (sum(chunk.length for chunk in group) for group in (a, b))
    return rows * columns * (1 if a[0].start == b[0].start else 2)


def join_small(chunks: Chunks, row_bytes: int) -> list[Chunk]:
    """Return the chunks that have rows, with small neighbors joined."""
    width = chunks.array.shape[1]
    row = max(1, row_bytes, width * chunks.array.dtype.itemsize)
    most = min(JOINED_ROWS, min(BLOCK_BYTES, current_workers().memory // 32) // row)
    return [
        group[0]
        if len(group) == 1
        else Chunk(task(_concatenate)(group, width), group[0].start, group[-1].stop)
        for group in _split(chunks.nonempty, most)
    ]


def _concatenate(chunks: list[Chunk], width: int) -> np.ndarray[Any, Any]:
    return np.concatenate([chunk.check(width) for chunk in chunks])


def _groups(chunks: Chunks, view: Source) -> list[list[Chunk]]:
    """Return the chunks in groups: two of them take a quarter of the memory of all workers."""
    row = max(1, view.row_bytes, chunks.array.shape[1] * chunks.array.dtype.itemsize)
    count = GROUP_CHUNKS if progress.recorder.get() is None else _RECORDED_CHUNKS
    return _split(join_small(chunks, view.row_bytes), current_workers().memory // 8 // row, count)


def _split(chunks: list[Chunk], rows: int, count: int | None = None) -> list[list[Chunk]]:
    """Split chunks into groups of at most `rows` rows and `count` chunks, but at least one."""
    groups: list[list[Chunk]] = []
    total = 0
    for chunk in chunks:
        if not groups or len(groups[-1]) == count or total + chunk.length > rows:
            groups.append([])
            total = 0
        groups[-1].append(chunk)
        total += chunk.length
    return groups

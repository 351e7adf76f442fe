"""Products over pairs of chunks: of one collection with itself, or with another."""

from __future__ import annotations

import zlib
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer import progress
from mercer.data.dask.scheduler import compute, constant, current_workers, task, tree_reduce
from mercer.data.remote import Chunk, P, PairTask, fold_pair, sum_sides
from mercer.data.source import BLOCK_BYTES, SILENT, Source

if TYPE_CHECKING:
    from mercer.data.dask.chunks import Chunks

JOINED_ROWS = 2048
"""Rows of small chunks that are joined, at most: a task for each of them would cost more."""
GROUP_CHUNKS = 64
"""Chunks of a group, at most: all pairs between two groups are one computation."""
# The same for a recorded pass, which is saved between two computations.
_RECORDED_CHUNKS = 8
# Pairs of a chunk that are summed at a time.
_FAN = 8
Operand = tuple[Chunk, Any]
Span = tuple[int, int]


def fold_pairs(chunks: Chunks, view: Source, make: PairTask, state: P) -> P:
    """Add the sums of every pair of chunks of a view to `state` and return it."""
    groups = _groups(chunks, view)
    turns = [(a, b) for i, a in enumerate(groups) for b in groups[i:]]
    places = repr([[chunk.span for chunk in group] for group in groups])
    layout = f"pairs of {chunks.layout(view)}, {zlib.crc32(places.encode()):08x}"
    shared = constant(chunks.task(view, make))
    with (
        progress.task(state.label, view.shape[0] ** 2) as tick,
        progress.record(state, layout) as record,
    ):
        if record and record.finished:
            return state
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
    return state


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
            pair = task(fold_pair)(x, y, (x_operand, y_operand), task_x, task_y)
            entries[pair.key] = _entries([x], [y])
            pairs.setdefault(x.span, []).append((pair, "left "))
            if symmetric and x.start < y.start:
                pairs.setdefault(y.span, []).append((pair, "right "))
    sums = {}
    for span, parts in pairs.items():
        some = [task(sum_sides)(parts[i : i + fan]) for i in range(0, len(parts), fan)]
        sums[span] = tree_reduce(some, lambda few: task(sum_sides)([(x, "") for x in few]), fan)
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

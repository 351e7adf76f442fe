"""Every two chunks of a Dask array, once: what a symmetric product walks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mercer import progress, session
from mercer.data.dask.joined import Chunk, joined
from mercer.data.dask.tasks import Ticks, at_once, compute, everywhere, reduced, sent, task
from mercer.data.remote import Arrays, Meeting, Paired, added_up, met, paired
from mercer.data.source import Source

if TYPE_CHECKING:
    from mercer.data.dask.chunks import Chunks

P = TypeVar("P", bound=Paired)
Place = tuple[int, int]
# Chunks of a group, at most: of two groups all chunks meet in one computation.
_GROUP = 64
# The same where the fit is kept, which is saved between two computations; chunks come more often.
_KEPT = 8
# Meetings of a chunk that are summed at once.
_FAN = 8


def walked(chunks: Chunks, view: Source, meeting: Meeting, state: P) -> P:
    """Have every two chunks meet once; what that gives for each comes here summed.

    Two groups of chunks are walked at a time: as many as the workers hold together.
    """
    groups = _grouped(chunks, view)
    walks = [(a, b) for i, a in enumerate(groups) for b in groups[i:]]
    errand = sent(chunks.errand(view, meeting))
    places = repr([[chunk[1:] for chunk in group] for group in groups])
    layout = f"pairs of {chunks.layout(view)}, {zlib.crc32(places.encode()):08x}"
    with (
        progress.task(state.label, view.shape[0] ** 2) as tick,
        session.record_pass(state, layout) as record,
    ):
        if record and record.finished:
            return state
        (done,) = record.begin([state]) if record else (0,)
        tick(sum(_entries(a, b) for a, b in walks[:done]))
        for a, b in walks[done:]:
            turn = record.step(0) if record else nullcontext()
            with turn, np.errstate(invalid="ignore", over="ignore"):
                for (start, rows), sums in _walk(a, b, state, errand, tick):
                    state.gather(start, start + rows, sums)
    return state


def _grouped(chunks: Chunks, view: Source) -> list[list[Chunk]]:
    """Return the chunks in groups of which the workers hold two, and as much again."""
    d = max(view.row_bytes, chunks.array.shape[1] * chunks.array.dtype.itemsize)
    room, most = everywhere() // 4 // 2, _GROUP
    if session.recorder() is not None:  # twice as many pairs as workers, at least
        most = min(_GROUP, max(_KEPT, math.ceil(2 * math.sqrt(at_once()))))
    groups: list[list[Chunk]] = []
    held = 0
    for chunk in joined(chunks, view.row_bytes):
        if not groups or len(groups[-1]) == most or held + chunk[2] * d > room:
            groups.append([])
            held = 0
        groups[-1].append(chunk)
        held += chunk[2] * d
    return groups


def _walk(
    a: list[Chunk],
    b: list[Chunk],
    state: Paired,
    errand: Any,
    tick: progress.Tick,
) -> Iterator[tuple[Place, Arrays]]:
    """Yield the sums for every chunk of two groups, or of one that meets itself."""
    along = {x[1]: sent(state.beside(x[1], x[1] + x[2])) for x in [*a, *b]}
    meetings: dict[Place, list[tuple[Any, str]]] = {x[1:]: [] for x in [*a, *b]}
    sizes = {}
    for x in a:
        for y in b:
            if y[1] < x[1]:
                continue
            one = task(paired)(x, y, along[x[1]], along[y[1]], errand)
            sizes[one.key] = _entries([x], [y])
            meetings[x[1:]].append((one, "left"))
            if x[1] != y[1]:
                meetings[y[1:]].append((one, "right"))
    tasks = [_summed(each) for each in meetings.values()]
    with Ticks(tick, sizes):
        yield from zip(meetings, compute(tasks), strict=True)


def _summed(meetings: list[tuple[Any, str]]) -> Any:
    """Return the task that sums what a chunk's meetings gave it."""
    some = [meetings[i : i + _FAN] for i in range(0, len(meetings), _FAN)]
    first = [task(met)([each for each, _ in few], [side for _, side in few]) for few in some]
    return reduced(first, task(added_up), _FAN)


def _entries(a: list[Chunk], b: list[Chunk]) -> int:
    """Return the entries of the matrix that two groups stand for."""
    here, there = (sum(rows for _, _, rows in group) for group in (a, b))
    return here * there * (1 if a[0][1] == b[0][1] else 2)

"""The chunks of a Dask array, and what is done with them where they lie."""

from __future__ import annotations

import functools
import uuid
import zlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from mercer import progress, session
from mercer.arrays import Array
from mercer.config import get_config
from mercer.data.dask.joined import Chunk
from mercer.data.dask.pairs import walked
from mercer.data.dask.rounds import Rounds
from mercer.data.dask.tasks import Ticks, compute, reduced, sent, task, worker
from mercer.data.fold import Block, Fold
from mercer.data.remote import (
    Elsewhere,
    Errand,
    Meeting,
    P,
    at_hand,
    folded,
    mapped,
    merged,
    require_rows,
    taken,
)
from mercer.data.source import BLOCK_BYTES, Source

F = TypeVar("F", bound=Fold)
# Chunks that are brought here at once, at most.
_WINDOW = 64
# Chunks of a pass that are folded before what they amount to comes here, at most.
_ONCE = 256


class Chunks(Elsewhere):
    """The chunks of a Dask array, and what is done with them on the workers.

    Pickled without the array: on a worker it knows the chunk at hand and no other. `first` is
    the number of the first row.
    """

    def __init__(self, array: Any, first: int = 0) -> None:
        self.array, self.first = array, first
        self.token = uuid.uuid4().hex
        sizes = [int(size) for size in array.chunks[0]]
        ends = (first + np.cumsum(sizes)).tolist()
        self.places = [(end - size, size) for end, size in zip(ends, sizes, strict=True)]
        """First row of every chunk, and number of its rows."""

    def __getstate__(self) -> dict[str, Any]:
        return {"token": self.token, "array": None, "first": 0, "places": []}

    def read(self, start: int, stop: int) -> Any:
        """Return stored rows: of the chunk at hand, else computed."""
        rows = at_hand(self.token, start, stop)
        if rows is not None:
            return rows
        if self.array is None:
            raise ValueError(
                f"Rows {start} to {stop - 1} of a Dask collection are not on this worker. A source "
                f"of Dask rows is sent without them: make it anew of the collection."
            )
        (rows,) = compute([self.array[start - self.first : stop - self.first]])
        return require_rows(rows, start, stop - start, self.array.shape[1])

    def fold(self, view: Source, state: F) -> F:
        """Fold every chunk on its own and merge neighbours, two by two: the same bits always.

        Of many chunks some hundred at a time; where the pass is kept, as many as the interval
        between two saves asks for.
        """
        plain = self.errand(view, state.spawn(), state.nbytes)
        errand, chunks = sent(plain), [*self.some()]
        with (
            progress.task(state.label, view.shape[0]) as tick,
            session.record_pass(state, f"{self.layout(view)}, in rounds") as record,
        ):
            if record and record.finished:
                return state
            saves = record is not None and state.resumable
            rounds = Rounds(state, plain, _ONCE, get_config().checkpoint_seconds if saves else None)
            if record:
                record.begin([rounds])
            tick(sum(rows for _, _, rows in chunks[: rounds.done]))
            while rounds.done < len(chunks):
                some = chunks[rounds.done : rounds.done + rounds.size]
                with record.step(0) if record else nullcontext(), rounds.timed(len(some)):
                    arrays = self._folded(some, view, errand, tick)
                    rounds.add(arrays, len(some), last=rounds.done + len(some) == len(chunks))
        return state

    def _folded(
        self, some: list[Chunk], view: Source, errand: Any, tick: progress.Tick
    ) -> dict[str, Array]:
        """Return what some chunks amount to, merged where they lie."""
        parts, sizes = [], {}
        for chunk, start, rows in some:
            part = task(folded)(chunk, start, rows, view.counts(start, start + rows), errand)
            parts.append(part)
            sizes[part.key] = rows
        with Ticks(tick, sizes):
            (arrays,) = compute([reduced(parts, lambda two: task(merged)(*two, errand), 2)])
        return dict(arrays)

    def pairs(self, view: Source, meeting: Meeting, state: P) -> P:
        return walked(self, view, meeting, state)

    def take(self, view: Source, at: np.ndarray[Any, Any]) -> Array:
        out = np.empty((len(at), view.shape[1]), view.dtype)
        errand = sent(self.errand(view))
        places, tasks = [], []
        for chunk, start, rows in self.some(at):
            places.append(np.flatnonzero((at >= start) & (at < start + rows)))
            tasks.append(task(taken)(chunk, start, rows, at[places[-1]], errand))
        for place, rows in zip(places, compute(tasks), strict=True):
            out[place] = rows
        return out

    def blocks(self, view: Source, rows: int, first: int, step: int) -> Iterator[Block]:
        """Bring chunks of a view here, as many at once as the memory allows, and cut them."""
        errand = sent(self.errand(view))
        wanted: dict[int, list[tuple[int, int]]] = {}
        cuts = [
            (i, cut, min(cut + rows, start + size))
            for i, (start, size) in enumerate(self.places)
            for cut in range(start, start + size, rows)
        ]
        for i, start, stop in cuts[first::step]:
            wanted.setdefault(i, []).append((start, stop))
        numbers = [*wanted]
        largest = max((size for _, size in self.places), default=0)
        each = max(1, largest * view.shape[1] * view.dtype.itemsize)
        window = max(1, min(_WINDOW, get_config().budget // 8 // each))
        for at in range(0, len(numbers), window):
            some = numbers[at : at + window]
            tasks = [task(mapped)(self._delayed[i], *self.places[i], errand) for i in some]
            for i, made in zip(some, compute(tasks), strict=True):
                origin = self.places[i][0]
                for start, stop in wanted[i]:
                    cut = made[start - origin : stop - origin]
                    yield Block(start, cut, view.counts(start, stop))

    def lazy(self, view: Source) -> Any:
        """Return a view as a Dask array, of as many chunks; nothing is computed."""
        width = view.shape[1]
        return self.array.map_blocks(
            _mapped_block,
            errand=sent(self.errand(view.weighted(None))),
            dtype=view.dtype,
            chunks=(self.array.chunks[0], (width,)),
            meta=np.empty((0, width), view.dtype),
            name=f"mercer-{uuid.uuid4().hex}",
        )

    @functools.cached_property
    def _delayed(self) -> Any:
        return self.array.to_delayed()[:, 0]

    def some(self, at: np.ndarray[Any, Any] | None = None) -> Iterator[Chunk]:
        """Yield the chunks that have rows, or some of the rows named; first row, and number."""
        for chunk, (start, rows) in zip(self._delayed, self.places, strict=True):
            if rows and (at is None or np.any((at >= start) & (at < start + rows))):
                yield chunk, start, rows

    def errand(self, view: Source, state: Any = None, held: int = 0) -> Errand:
        """Return what is sent to chunks of a view; `held` is what a fold of it holds."""
        settings, (room, tasks) = get_config(), worker()
        # No less than what a fold and its blocks hold: the share of a task is not a limit.
        share = max(room // tasks, min(room, 2 * held + 4 * BLOCK_BYTES))
        return Errand(self.token, self.array.shape[1], view, state, share, settings.block_rows)

    def layout(self, view: Source) -> str:
        """Say how the rows are cut: only a pass that is cut so can be gone on with."""
        return f"{view.shape} in chunks {zlib.crc32(repr(self.places).encode()):08x}"


def _mapped_block(chunk: Any, errand: Errand, block_info: Any = None) -> Array:
    start, stop = block_info[0]["array-location"][0]
    return mapped(chunk, start, stop - start, errand)

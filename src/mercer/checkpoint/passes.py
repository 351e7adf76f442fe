"""The record of a pass: its state is saved while it lasts, and when it is finished."""

from __future__ import annotations

import contextlib
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.arrays import Array, to_numpy
from mercer.session import PassRecord

if TYPE_CHECKING:
    from mercer.checkpoint.folder import Checkpoint

Arrays = dict[str, np.ndarray[Any, Any]]


class RecordedPass(PassRecord):
    """A pass whose state, that of all workers, is saved every so often, between two blocks.

    The first worker runs in the thread that began the pass: it alone saves, so that a warning
    comes from there, and the others wait meanwhile.
    """

    def __init__(self, checkpoint: Checkpoint, number: str, state: Any, layout: str) -> None:
        self.checkpoint, self.number = checkpoint, number
        self.begun = time.monotonic()
        self.state, self.parts = state, [state]
        self.place = f"{type(state).__qualname__}, {state.label}, {layout}, {_sum(state.inputs)}"
        self.saved = checkpoint.read(number, self.place) if state.resumable else None
        self.finished = self.saved is not None and "done" not in self.saved
        if self.finished:
            state.restore(_of(0, self.saved or {}))

    def begin(self, parts: Sequence[Any]) -> list[int]:
        self.parts = list(parts)
        self.locks = [threading.Lock() for _ in parts]
        self.done = [0] * len(parts)
        if self.saved is not None:
            self.done = [int(count) for count in self.saved["done"]]
            for i, part in enumerate(parts):
                part.restore(_of(i, self.saved))
            self.saved = None
        return list(self.done)

    @contextlib.contextmanager
    def step(self, worker: int) -> Iterator[None]:
        with self.locks[worker]:
            yield
            self.done[worker] += 1
        if worker == 0 and self.state.resumable and self.checkpoint.due():
            with contextlib.ExitStack() as stack:
                for lock in self.locks:
                    stack.enter_context(lock)
                self._write(done=np.array(self.done))

    def end(self) -> None:
        """Save the result of the pass, if that is worth it."""
        if self.finished or not self.state.resumable:
            return
        self.parts = [self.state]
        arrays = _named(self.parts)
        nbytes = sum(array.nbytes for array in arrays.values())
        if self.checkpoint.worth(time.monotonic() - self.begun, nbytes):
            self._write()

    def _write(self, **more: np.ndarray[Any, Any]) -> None:
        place = {"place": np.array(self.place)}
        self.checkpoint.write(self.number, {**place, **_named(self.parts), **more})


def _named(parts: Sequence[Any]) -> Arrays:
    """Return the arrays of all parts; one that several write to once."""
    named: Arrays = {}
    seen: dict[int, str] = {}
    alive = []
    for i, part in enumerate(parts):
        for name, array in part.arrays().items():
            key = f"{i}/{name}"
            alive.append(array)  # or another may come to lie where it lay
            first = seen.setdefault(id(array), key)
            named[key] = to_numpy(array) if first == key else np.array(first)
    return named


def _of(i: int, arrays: Arrays) -> Arrays:
    """Return the arrays of one part."""
    head = f"{i}/"
    own = {
        name.removeprefix(head): array for name, array in arrays.items() if name.startswith(head)
    }
    return {name: arrays[str(a)] if a.dtype.kind == "U" else a for name, a in own.items()}


def _sum(inputs: Sequence[Array]) -> str:
    """Return a checksum of arrays."""
    total = 0
    for array in inputs:
        host = np.ascontiguousarray(to_numpy(array))
        total = zlib.crc32(host.data.cast("B") if host.size else b"", total)
    return f"{total:08x}"

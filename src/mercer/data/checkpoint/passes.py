"""The passes of a run, and its other steps: saved while they last, and when they are over."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from mercer.arrays import Array, to_numpy
from mercer.data.checkpoint.folder import Arrays, Run, current


class State(Protocol):
    """What a pass accumulates, as far as saving goes: a `Fold`."""

    label: str
    inputs: tuple[Array, ...]
    resumable: bool

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up the state that `arrays` returned."""


class Saving:
    """A pass that nothing is saved of: no folder was asked for."""

    over = False
    """Whether the pass was over already: its state is what it amounted to."""
    done: Sequence[int] = ()
    """How many blocks each worker had taken in."""

    def begin(self, parts: Sequence[State]) -> None:
        """Take up what each worker had, and remember where it stands."""
        self.done = [0] * len(parts)

    def turn(self, worker: int) -> contextlib.AbstractContextManager[Any]:
        """Enter it to take a block in: nothing is saved until it is left."""
        return contextlib.nullcontext()


class Kept(Saving):
    """A pass whose state is saved every so often: all workers', each between two blocks.

    The first worker runs in the thread that asked for the pass: it alone saves, so that a
    warning comes from there, and the others wait meanwhile.
    """

    def __init__(self, run: Run, state: State, layout: str) -> None:
        self.run, self.number = run, run.next()
        self.begun = time.monotonic()
        self.state, self.parts = state, [state]
        self.place = f"{type(state).__qualname__}, {state.label}, {layout}, {_sum(state.inputs)}"
        self.found = run.read(self.number, self.place) if state.resumable else None
        self.over = self.found is not None and "done" not in self.found
        if self.over:
            state.restore(_of(0, self.found or {}))

    def begin(self, parts: Sequence[State]) -> None:
        self.parts = list(parts)
        self.locks = [threading.Lock() for _ in parts]
        self.done = [0] * len(parts)
        if self.found is not None:
            self.done = [int(count) for count in self.found["done"]]
            for i, part in enumerate(parts):
                part.restore(_of(i, self.found))
            self.found = None

    @contextlib.contextmanager
    def turn(self, worker: int) -> Iterator[None]:
        with self.locks[worker]:
            yield
            self.done[worker] += 1  # type: ignore[index]
        if worker == 0 and self.state.resumable and self.run.due():
            with contextlib.ExitStack() as stack:
                for lock in self.locks:
                    stack.enter_context(lock)
                self._write(done=np.array(self.done))

    def end(self) -> None:
        """Save what the pass amounts to, where that is worth it."""
        if self.over or not self.state.resumable:
            return
        self.parts = [self.state]
        arrays = _named(self.parts)
        if self.run.worth(time.monotonic() - self.begun, _size(arrays)):
            self._write()

    def _write(self, **more: np.ndarray[Any, Any]) -> None:
        self.run.write(self.number, {"place": np.array(self.place), **_named(self.parts), **more})


@contextlib.contextmanager
def saving(state: State, layout: str) -> Iterator[Saving]:
    """Save a pass while it lasts and when it is over, where a run is kept.

    `layout` says how the rows are shared out in blocks: only the same can be gone on with.
    """
    run = current()
    if run is None:
        yield Saving()
        return
    kept = Kept(run, state, layout)
    run.busy = True  # a pass inside this one is a part of it
    try:
        yield kept
    finally:
        run.busy = False
    kept.end()


def kept(label: str, make: Callable[[], Arrays], rng: np.random.Generator) -> Arrays:
    """Return what `make` does, or did before the run was killed; `rng` is left where it left it.

    For what is long and no pass over the rows. The passes inside it are saved too, and go when
    it is over.
    """
    run = current()
    if run is None:
        return make()
    place, begun = f"{label}, {_state(rng)}", time.monotonic()
    with run.inside() as number:
        found = run.read(number, place)
        if found is None:
            found = {**make(), "rng": np.array(_state(rng)), "facts": np.array(len(run.facts))}
            worth = run.worth(time.monotonic() - begun, _size(found))
            if worth and run.write(number, {"place": np.array(place), **found}):
                run.forget(f"{number}-", f"{number}.")
    run.facts += run.found[len(run.facts) : int(found.pop("facts"))]  # those that `make` noted
    rng.bit_generator.state = json.loads(str(found.pop("rng")))
    return found


def _state(rng: np.random.Generator) -> str:
    return json.dumps(rng.bit_generator.state)


def _size(arrays: Arrays) -> int:
    return sum(array.nbytes for array in arrays.values())


def _named(parts: Sequence[State]) -> Arrays:
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

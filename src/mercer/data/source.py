"""Rows wherever they live, and the one loop over their blocks."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from mercer import progress, session, threads
from mercer.arrays import Array, Vector, cast, empty, on_accelerator, products, to_numpy
from mercer.config import format_bytes, get_config
from mercer.data.errors import BudgetError
from mercer.data.feature_map import FeatureMap
from mercer.data.fold import Block, Collect, Fold
from mercer.data.prefetch import ahead
from mercer.messages import counted, format_parameter

if TYPE_CHECKING:
    from mercer.data.remote import Elsewhere

# Rows of a block fill about this much: large enough for BLAS, small enough for the caches.
BLOCK_BYTES = 16 * 2**20
# On a device with memory of its own a block must keep thousands of cores busy.
DEVICE_BYTES = 512 * 2**20
# Shorter blocks starve a matrix product that sums over their rows.
BLOCK_ROWS = 32
# A fold that holds more than this is not copied for every worker: BLAS threads serve it.
SPLIT_BYTES = 64 * 2**20
_SILENT: Any = {"invalid": "ignore", "over": "ignore"}


F = TypeVar("F", bound=Fold)


class Source(ABC):
    """Rows of any number, read in blocks.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        Precision of the rows handed out: float32 or float64, whatever is stored.
    names : sequence of str or None
        Names of the columns.
    weights : ndarray or None
        Weight of each row; a weight of two counts the row twice.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import as_source
    >>> as_source(np.arange(6.0).reshape(3, 2)).map(lambda block: block.rows[:, :1], 1).collect()
    array([[0.],
           [2.],
           [4.]])
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: Sequence[str] | None = None
    weights: Vector | None = None
    sparse = False
    uneven = False
    """Whether some rows take much longer than others."""
    by_columns = False
    """Whether `transposed` returns the columns."""
    parallel = True
    """Whether blocks may be read from several threads at once."""
    origin = 0
    """Number of the first row: above 0 where the rows are a part of others."""
    elsewhere: Elsewhere | None = None
    """Where the rows lie and passes over them run, when that is not this process."""
    folder: Any = None
    """What must live as long as the rows: the temporary folder they lie in."""
    extra_columns: Mapping[str, Any] | None = None
    """Columns of the file that are no features, such as row names: written beside scores."""
    id: str | None = None
    """The one of them that names the rows."""
    waits = False
    """Whether a read waits for a disk: then the next block is read while one is worked on."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Return the rows start to stop - 1."""

    def fetch(self, start: int, stop: int) -> Array:
        """Return what `finish` makes rows of: the part of a read that waits, done ahead."""
        return self.read(start, stop)

    def finish(self, start: int, found: Array) -> Array:
        """Return the rows from `start` on, of what `fetch` found."""
        return found

    @property
    def reference(self) -> Array:
        """An array that lives where the rows live."""
        return np.empty(0)

    @property
    def home(self) -> Array:
        """An array that lives where what is made of the rows is handed out."""
        return self.reference

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes once read; 0 where reading it copies nothing."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def ahead_bytes(self) -> int:
        """Bytes of a row that is read ahead; 0 where none is."""
        return self.row_bytes if self.waits else 0

    @property
    def held_bytes(self) -> int:
        """Bytes that reading holds, however many rows a block has."""
        return 0

    @property
    def part_bytes(self) -> int:
        """Bytes that every worker holds beside its block."""
        return 0

    @property
    def count(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.shape[0] if self.weights is None else self.weights.sum())

    def counts(self, start: int, stop: int) -> Vector | None:
        """Return the weights of the rows start to stop - 1; None where every row counts once."""
        first = self.origin
        return None if self.weights is None else self.weights[start - first : stop - first]

    def __getstate__(self) -> dict[str, Any]:
        # Where rows lie elsewhere their weights are sent with them, not with every copy of this.
        gone = {} if self.elsewhere is None else {"weights": None}
        return {**self.__dict__, **gone}

    def weighted(self, weights: Vector | None) -> Self:
        """Return the same rows with these weights."""
        other = copy.copy(self)
        other.weights = weights
        return other

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any]) -> Array:
        """Return the named rows, in the order named, as an array; a mask names those it holds."""
        at, n = np.asarray(rows), self.shape[0]
        if at.dtype == bool:
            at = np.flatnonzero(at)
        bad = at[(at < -n) | (at >= n)]
        if len(bad):
            raise IndexError(f"row {bad[0]} is not one of the {n} rows.")
        return self._take(at % n if n else at)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        if self.elsewhere is not None:
            return self.elsewhere.take(self, at)
        out = empty((len(at), self.shape[1]), self.reference, self.dtype)
        for i, row in enumerate(at):
            out[i : i + 1, :] = self.read(int(row), int(row) + 1)
        return out

    def transposed(self) -> Source | None:
        """Return the columns as a source of rows, or None where they cannot be reached."""
        return None

    def map(
        self,
        f: FeatureMap | Callable[[Block], Array],
        width: int | None = None,
        dtype: Any = None,
        extra_bytes: int = 0,
        part_bytes: int = 0,
    ) -> Source:
        """Return the rows f(block), computed when they are read.

        A `FeatureMap` knows its `width`, `dtype` and `extra_bytes`, what it needs for a row besides
        its input and output; for any other function they are parameters. `part_bytes` is what it
        needs for a block, however many rows that has.
        """
        if width is None:
            width, dtype, extra_bytes = f.width, f.dtype, f.extra_bytes  # type: ignore[union-attr]
        return Mapped(self, f, width, dtype or self.dtype, extra_bytes, part_bytes)

    def blocks(self, rows: int, first: int = 0, step: int = 1) -> Iterator[Block]:
        """Yield the blocks of `rows` rows: number `first`, and every `step`-th after it."""
        if self.elsewhere is not None:
            yield from self.elsewhere.blocks(self, rows, first, step)
            return
        end = self.origin + self.shape[0]
        starts = range(self.origin + first * rows, end, step * rows)
        spans = [(start, min(start + rows, end)) for start in starts]
        every = ahead(self.fetch, spans) if self.waits else (self.fetch(*span) for span in spans)
        for start, stop in spans:
            yield Block(start, self.finish(start, next(every)), self.counts(start, stop))

    def pairs(self, row_bytes: int) -> Iterator[tuple[Block, Block]]:
        """Yield every pair of blocks i ≤ j once: what a symmetric product walks.

        `row_bytes` is what a row of a block needs beside itself.
        """
        rows = self.block_rows(row_bytes, held=0, parts=2)
        with progress.task("pairs of blocks", self.shape[0] ** 2) as tick:
            for i, left in enumerate(self.blocks(rows)):
                for right in self.blocks(rows, first=i):
                    yield left, right
                    share = left.length * right.length
                    tick(share if left.start == right.start else 2 * share)

    def fold(self, state: F) -> F:
        """Add every block to `state` and return it: the only block loop in the program.

        Workers take the blocks in turn and are merged in order: the same bits every time.
        """
        if self.elsewhere is not None and not state.here:
            return self.elsewhere.fold(self, state)
        n = self.shape[0]
        alone = state.ordered or not self.parallel or state.nbytes > SPLIT_BYTES
        workers = 1 if alone else threads.workers()
        workers = min(workers, max(1, get_config().budget // 4 // max(1, state.nbytes)))
        workers, rows = self._shared(state, workers)
        workers = max(1, min(workers, -(-n // rows)))
        stop = threading.Event()

        def work(part: F, first: int) -> F:
            with threads.working():
                return run(part, first)

        def run(part: F, first: int) -> F:
            for block in self.blocks(rows, first + done[first] * workers, workers):
                if stop.is_set():
                    break
                # Sums are judged when all are in.
                with record.step(first) if record else nullcontext(), np.errstate(**_SILENT):
                    part.add(block)
                tick(block.length)
            return part

        layout = f"{self.shape} in {workers} times {rows}"
        digits = products(self.reference, coarse=state.rough and get_config().tf32)
        bars, recording = progress.task(state.label, n), session.record_pass(state, layout)
        with digits, bars as tick, recording as record:
            if record and record.finished:
                return state
            parts = [state, *(state.spawn() for _ in range(1, workers))]
            done = record.begin(parts) if record else [0] * workers
            tick(min(n, sum(done) * rows))
            if workers == 1:
                return run(state, 0)
            with threads.serial_blas():
                others = [threads.submit(work, part, i) for i, part in enumerate(parts) if i]
                try:
                    work(state, 0)
                    for other in others:
                        with np.errstate(**_SILENT):
                            state.merge(other.result())
                except BaseException:  # Ctrl-C too: let the other workers end at once
                    stop.set()
                    wait(others)
                    raise
        return state

    def _shared(self, state: Fold, workers: int) -> tuple[int, int]:
        """Return how many workers the budget has room for, and the rows of their blocks."""
        while True:
            try:
                held = state.nbytes * workers
                return workers, self.block_rows(state.row_bytes, held=held, parts=workers)
            except BudgetError:
                if workers == 1:
                    raise
                workers -= 1

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        """Rows of a block, when `parts` blocks are alive beside `held` bytes of state."""
        settings = get_config()
        n = max(1, self.shape[0])
        if settings.block_rows is not None:
            return min(settings.block_rows, n)
        row = max(1, self.row_bytes + extra_bytes)
        full = DEVICE_BYTES if on_accelerator(self.reference) else BLOCK_BYTES
        wanted = max(BLOCK_ROWS, full // row)
        held += self.held_bytes
        held += parts * min(self.part_bytes, settings.budget // 4)
        alive = row + self.ahead_bytes
        room = (settings.budget - held) // 2 // parts
        if room < alive:
            needed = format_bytes(held + 2 * parts * alive)
            raise BudgetError(
                f"The memory budget of {format_bytes(settings.budget)} is too small: to work on "
                f"{_size(self.shape)}, one row at a time, takes {needed}. Raise it with "
                f"{format_parameter('memory')}."
            )
        rows = int(min(n, wanted, room // alive))
        # An equal number of blocks for every worker; of uneven rows, four.
        rounds = max(-(-n // (rows * parts)), 4 if self.uneven else 1)
        return min(rows, -(-n // (rounds * parts)))

    def __repr__(self) -> str:
        shape = " × ".join(str(size) for size in self.shape)
        return f"<{type(self).__name__} of {shape} {self.dtype}; collect() gives the rows>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        rows = to_numpy(self.collect())
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def whole(self) -> Any:
        """Return all rows at once, as blocks are: a sparse matrix, a list, or an array.

        Those that lie elsewhere are brought here where the memory budget holds them.
        """
        needed, room = self.shape[0] * self.shape[-1] * self.dtype.itemsize, get_config().budget
        if self.elsewhere is not None and needed > room:
            raise BudgetError(
                f"All rows of {type(self).__name__} of shape {self.shape} must be brought here, "
                f"and take {format_bytes(needed)}, more than the memory budget of "
                f"{format_bytes(room)}. Raise it with {format_parameter('memory')}, or fit on a "
                f"basis, such as method=Subset(1000)."
            )
        return self.collect()

    def collect(self, out: Array = None, label: str = "transform") -> Array:
        """Return all rows as one array; `label` is what the progress bar says."""
        if out is None:
            out = empty(self.shape, self.reference, self.dtype)
        if tuple(out.shape) != self.shape:
            raise ValueError(f"out has shape {tuple(out.shape)}, and the rows {self.shape}.")
        self.fold(Collect(out, label))
        return out


def _size(shape: tuple[int, ...]) -> str:
    columns = f" × {counted(shape[1], 'column')}" if len(shape) > 1 else ""
    return counted(shape[0], "row") + columns


class Mapped(Source):
    """Rows of a source through a function."""

    def __init__(
        self,
        source: Source,
        f: Callable[[Block], Array],
        width: int,
        dtype: Any,
        extra_bytes: int,
        part_bytes: int = 0,
    ) -> None:
        self.source = source
        self.f = f
        self.shape = (source.shape[0], width)
        self.dtype = np.dtype(dtype)
        self.weights = source.weights
        self.parallel, self.uneven, self.waits = source.parallel, source.uneven, source.waits
        self.origin, self.elsewhere = source.origin, source.elsewhere
        self.extra_bytes = extra_bytes
        self.extra_part = part_bytes

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def home(self) -> Array:
        return self.source.home

    @property
    def count(self) -> float:
        return self.source.count if self.weights is self.source.weights else super().count

    @property
    def row_bytes(self) -> int:
        own = self.shape[1] * self.dtype.itemsize
        return self.source.row_bytes + own + self.extra_bytes

    @property
    def ahead_bytes(self) -> int:
        return self.source.ahead_bytes

    @property
    def held_bytes(self) -> int:
        return self.source.held_bytes

    @property
    def part_bytes(self) -> int:
        return self.source.part_bytes + self.extra_part

    def read(self, start: int, stop: int) -> Array:
        return self.finish(start, self.fetch(start, stop))

    def fetch(self, start: int, stop: int) -> Array:
        return self.source.fetch(start, stop)

    def finish(self, start: int, found: Array) -> Array:
        found = self.source.finish(start, found)
        block = Block(start, found, None)
        block = Block(start, found, self.counts(start, block.stop))
        rows = self.f(block)
        if tuple(rows.shape) != (block.length, self.shape[1]):
            raise ValueError(
                f"rows {start} to {block.stop - 1} were mapped to shape {tuple(rows.shape)}, where "
                f"{(block.length, self.shape[1])} was promised: check the width given to map."
            )
        return cast(rows, self.dtype)

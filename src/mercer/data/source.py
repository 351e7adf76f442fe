"""Sources of rows, and the loop over their blocks."""

from __future__ import annotations

import contextvars
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from mercer import progress, threads
from mercer.arrays import Array, Vector, cast, empty, on_accelerator, products, to_numpy
from mercer.config import BASIS, BudgetError, format_bytes, get_config, require_budget
from mercer.data.fold import Block, Collect, FeatureMap, Fold
from mercer.messages import counted, format_parameter

if TYPE_CHECKING:
    from mercer.data.dask.chunks import Chunks

# Rows of a block fill about this much: large enough for BLAS, small enough for the caches.
BLOCK_BYTES = 16 * 2**20
# On a device with memory of its own a block must keep thousands of cores busy.
DEVICE_BYTES = 512 * 2**20
# Shorter blocks starve a matrix product that sums over their rows.
BLOCK_ROWS = 32
# A fold that holds more than this is not copied for every worker: BLAS threads serve it.
SPLIT_BYTES = 64 * 2**20
# Less work than this ends before a second thread has begun.
SMALL_BYTES = 2**17
SILENT: Any = {"invalid": "ignore", "over": "ignore"}
"""Sums are checked after the last block."""

F = TypeVar("F", bound=Fold)


class Source(ABC):
    """Any number of rows, read in blocks.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        Precision of the rows as they are read: float32 or float64, whatever is stored.
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
    reference: Array = np.empty(0)
    """An array of the library and on the device of the rows."""
    output: Array | None = None
    """The same for results, where they go elsewhere than the rows."""
    part_bytes = 0
    """Bytes that every worker needs besides its block."""
    block_bytes = 0
    """Bytes that a block should fill; 0 leaves the choice to `block_rows`."""
    held_bytes = 0
    """Bytes that reading needs, however many rows a block has."""
    sparse = False
    uneven = False
    """Whether some rows take much longer than others."""
    by_columns = False
    """Whether `transposed` returns the columns, and does not raise."""
    parallel = True
    """Whether blocks may be read from several threads at once."""
    origin = 0
    """Number of the first row: above 0 where the rows are a part of others."""
    remote: Chunks | None = None
    """The chunks of remote rows, which run the passes over them; None for local rows."""
    folder: Any = None
    """The temporary folder of the rows, which must live as long as they do."""
    extra_columns: Mapping[str, Any] | None = None
    """Columns of the file that are no features, such as row names: written beside scores."""
    id: str | None = None
    """The extra column that names the rows."""
    image_shape: tuple[int, ...] | None = None
    """Height and width, and 3 for color, of rows that are images."""
    waits = False
    """Whether a read waits for a disk: then the next block is read while one is worked on."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Return the rows start to stop - 1."""

    @property
    def output_reference(self) -> Array:
        """An array of the library and on the device of the results."""
        return self.reference if self.output is None else self.output

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes once read; 0 where reading it copies nothing."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all rows in one array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def count(self) -> float:
        """Sum of the weights; the number of rows without weights."""
        return float(self.shape[0] if self.weights is None else self.weights.sum())

    def counts(self, start: int, stop: int) -> Vector | None:
        """Return the weights of the rows start to stop - 1; None without weights."""
        first = self.origin
        return None if self.weights is None else self.weights[start - first : stop - first]

    def __getstate__(self) -> dict[str, Any]:
        # The weights of remote rows are sent with the chunks, not with every copy of the source.
        return self.__dict__ if self.remote is None else {**self.__dict__, "weights": None}

    def weighted(self, weights: Vector | None) -> Self:
        """Return the same rows with these weights."""
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "weights": weights}
        return other

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any]) -> Array:
        """Return the rows of these numbers, or of a boolean mask, in order, as an array."""
        at, n = np.asarray(rows), self.shape[0]
        if at.dtype == bool:
            at = np.flatnonzero(at)
        bad = at[(at < -n) | (at >= n)]
        if len(bad):
            raise IndexError(f"row {bad[0]} is out of range for {n} rows.")
        return self._take(at % n if n else at)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        if self.remote is not None:
            return self.remote.take(self, at)
        out = empty((len(at), self.shape[1]), self.reference, self.dtype)
        for i, row in enumerate(at):
            rows = self.read(int(row), int(row) + 1)
            out[i : i + 1, :] = rows.toarray() if self.sparse else rows
        return out

    def gather(self, at: np.ndarray[Any, Any]) -> Any:
        """Return rows by number as blocks are: sparse rows stay sparse."""
        return self._take(at)

    def transposed(self) -> Source:
        """Return the columns as a source of rows; raise where they cannot be read."""
        raise ValueError(
            f"{type(self).__name__} cannot be read by columns, as dot products require. Use "
            f"{format_parameter('svd_solver', 'krylov')}."
        )

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
        if self.remote is not None:
            yield from self.remote.blocks(self, rows, first, step)
            return
        end = self.origin + self.shape[0]
        starts = range(self.origin + first * rows, end, step * rows)
        stored, maps = self.unmapped()
        stops = np.minimum(np.asarray(starts) + rows, end).tolist()
        spans = list(zip(starts, stops, strict=True))
        # Only stored rows are read ahead; this thread applies the maps.
        reads = (read_ahead if self.waits else itertools.starmap)(stored.read, spans)
        for start, stop in spans:
            array = next(reads)
            for mapped in maps:
                array = mapped.apply(start, array)
            yield Block(start, array, None if self.weights is None else self.counts(start, stop))
            del array  # or it would live on while the next is read

    def unmapped(self) -> tuple[Source, list[Mapped]]:
        """Return the source that is read, and the maps of its rows, the first one first."""
        return self, []

    def fold(self, state: F) -> F:
        """Add every block to `state` and return it: the only block loop in the program.

        Workers take the blocks in turn and are merged in order: the same bits every time.
        """
        if self.remote is not None and not state.local:
            return self.remote.fold(self, state)
        n, settings = self.shape[0], get_config()
        workers = 1
        shape = (self.source if isinstance(self, Mapped) else self).shape
        small = settings.block_rows is None and len(shape) > 1
        small = small and n * (8 * shape[1] + self.row_bytes + state.row_bytes) < SMALL_BYTES
        if self.parallel and not (small or state.ordered or state.nbytes > SPLIT_BYTES):
            most = settings.budget // 4 // max(1, state.nbytes)
            workers = max(1, min(threads.workers(), most))
        rows = 0
        while not rows:
            try:
                rows = self.block_rows(state.row_bytes, held=state.nbytes * workers, parts=workers)
            except BudgetError:
                if workers == 1:
                    raise
                workers -= 1
        workers = max(1, min(workers, -(-n // rows)))
        stopped = False

        def add_blocks(worker: int) -> None:
            nonlocal stopped
            try:
                for block in self.blocks(rows, worker + done[worker] * workers, workers):
                    if stopped:
                        break
                    with record.step(worker) if record else nullcontext(), np.errstate(**SILENT):
                        parts[worker].add(block)
                    tick(block.length)
            except BaseException:  # Ctrl-C too: the other workers stop at once
                stopped = True
                raise

        on_host = isinstance(self.reference, np.ndarray)
        coarse = state.low_precision and settings.tf32
        recorder = progress.recorder.get()
        layout = f"{self.shape} in {workers} times {rows}" if recorder else ""
        with (
            nullcontext() if on_host else products(self.reference, coarse=coarse),
            progress.task(state.label, n) as tick,
            recorder.record(state, layout) if recorder else nullcontext() as record,
        ):
            if record and record.finished:
                return state
            parts = [state]
            while len(parts) < workers:
                parts.append(state.spawn())
            done = record.begin(parts) if record else [0] * workers
            tick(min(n, sum(done) * rows))
            if workers == 1:
                add_blocks(0)
                return state
            threads.in_threads(add_blocks, range(workers))
            for part in parts[1:]:
                with np.errstate(**SILENT):
                    state.merge(part)
        return state

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        """Rows of a block, when `parts` blocks are in memory beside `held` bytes of state."""
        settings, n = get_config(), max(1, self.shape[0])
        if settings.block_rows is not None:
            return min(settings.block_rows, n)
        budget = settings.budget
        row = max(1, self.row_bytes + extra_bytes)
        on_host = isinstance(self.reference, np.ndarray) or not on_accelerator(self.reference)
        full = self.block_bytes or (BLOCK_BYTES if on_host else DEVICE_BYTES)
        held += self.held_bytes + parts * min(self.part_bytes, budget // 4)
        needed = row
        if self.waits:  # and a row that is read ahead
            needed += self.unmapped()[0].row_bytes
        room = (budget - held) // 2 // parts
        if room < needed:
            columns = f" × {counted(self.shape[1], 'column')}" if len(self.shape) > 1 else ""
            raise BudgetError(
                f"The memory budget of {format_bytes(budget)} is too small: processing "
                f"{counted(self.shape[0], 'row')}{columns}, one row at a time, takes "
                f"{format_bytes(held + 2 * parts * needed)}. Raise it with "
                f"{format_parameter('memory')}."
            )
        rows = int(min(n, max(BLOCK_ROWS, full // row), room // needed))
        # An equal number of blocks for every worker. Of uneven rows, up to four for each of several
        # workers, as long as blocks are larger than the state that each is added to.
        few = min(4, n * row // (4 * held + 1)) if self.uneven and parts > 1 else 1
        rounds = max(-(-n // (rows * parts)), few)
        return min(rows, -(-n // (rounds * parts)))

    def __repr__(self) -> str:
        shape = " × ".join(str(size) for size in self.shape)
        return f"<{type(self).__name__} of {shape} {self.dtype}; collect() gives the rows>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        rows = to_numpy(self.collect())
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def load(self) -> Any:
        """Return all rows at once, as blocks are: a sparse matrix, a list, or an array.

        Remote rows are gathered if the memory budget allows it.
        """
        if self.remote is not None:
            require_budget(self.nbytes, f"Collecting rows of shape {self.shape}", BASIS)
        whole = self.sparse or not self.row_bytes
        return self.read(0, self.shape[0]) if whole else self.collect()

    def collect(self, out: Array = None, label: str = "transform") -> Array:
        """Return all rows as one array; the progress bar shows `label`."""
        if out is None:
            out = empty(self.shape, self.reference, self.dtype)
        if tuple(out.shape) != self.shape:
            raise ValueError(f"out has shape {tuple(out.shape)}, but the rows have {self.shape}.")
        self.fold(Collect(out, label))
        return out


class Mapped(Source):
    """Rows of a source mapped by a function."""

    def __init__(
        self,
        source: Source,
        f: Callable[[Block], Array],
        width: int,
        dtype: Any,
        extra_bytes: int,
        part_bytes: int = 0,
    ) -> None:
        self.source, self.f = source, f
        self.shape, self.dtype = (source.shape[0], width), np.dtype(dtype)
        self.weights, self.reference, self.output = source.weights, source.reference, source.output
        self.parallel, self.uneven, self.waits = source.parallel, source.uneven, source.waits
        self.origin, self.remote = source.origin, source.remote
        self.extra_bytes, self.held_bytes = extra_bytes, source.held_bytes
        self.part_bytes = source.part_bytes + part_bytes

    @property
    def count(self) -> float:
        return self.source.count if self.weights is self.source.weights else super().count

    @property
    def row_bytes(self) -> int:
        return self.source.row_bytes + super().row_bytes + self.extra_bytes

    def read(self, start: int, stop: int) -> Array:
        return self.apply(start, self.source.read(start, stop))

    def gather(self, at: np.ndarray[Any, Any]) -> Array:
        weights = None if self.weights is None else self.weights[at]
        return cast(self.f(Block(0, self.source.gather(at), weights)), self.dtype)

    def unmapped(self) -> tuple[Source, list[Mapped]]:
        stored, maps = self.source.unmapped()
        return stored, [*maps, self]

    def apply(self, start: int, rows: Array) -> Array:
        """Map the rows from `start` on."""
        length = Block(start, rows, None).length
        rows = self.f(Block(start, rows, self.counts(start, start + length)))
        if tuple(rows.shape) != (length, self.shape[1]):
            raise ValueError(
                f"Rows {start} to {start + length - 1} were mapped to shape {tuple(rows.shape)}, "
                f"expected {(length, self.shape[1])}: check the width passed to map."
            )
        return cast(rows, self.dtype)


def read_ahead(read: Callable[[int, int], Any], spans: Sequence[tuple[int, int]]) -> Iterator[Any]:
    """Yield read(start, stop) for every span, in order; the next is read while one is used.

    At most two are in memory. The thread that reads ends with the iteration.
    """
    if len(spans) < 2:
        yield from itertools.starmap(read, spans)
        return
    context = contextvars.copy_context()  # the thread needs the settings, such as the budget
    with ThreadPoolExecutor(1, thread_name_prefix="mercer-read") as reader:
        pending = reader.submit(context.run, read, spans[0][0], spans[0][1])
        for start, stop in spans[1:]:
            rows = pending.result()
            pending = reader.submit(context.run, read, start, stop)
            yield rows
            del rows  # or it would live on while the next is waited for
        yield pending.result()

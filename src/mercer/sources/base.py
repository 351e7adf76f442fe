"""Rows wherever they live, and the one loop over their blocks."""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np

from mercer import progress, threads
from mercer.arrays import Array, Vector, cast, empty, like, numpy_dtype, to_numpy
from mercer.config import format_bytes, get_config
from mercer.sources.errors import BudgetError

# Rows of a block fill about this much: large enough for BLAS, small enough for the caches.
BLOCK_BYTES = 16 * 2**20
# Shorter blocks starve a matrix product that sums over their rows.
BLOCK_ROWS = 32
# A fold that holds more than this is not copied for every worker: BLAS threads serve it.
SPLIT_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows, where they start, and their weights."""

    start: int
    rows: Array
    weights: Vector | None

    @property
    def stop(self) -> int:
        """The row after the last."""
        return self.start + self.length

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])

    @property
    def count(self) -> Vector:
        """How often each row counts."""
        return np.ones(self.length) if self.weights is None else self.weights

    def dense(self, dtype: Any) -> Array:
        """Return the rows as an array of this precision."""
        return cast(self.rows.toarray() if hasattr(self.rows, "toarray") else self.rows, dtype)


class Fold(ABC):
    """What one pass over the rows accumulates.

    Folds of parts of the rows merge into the fold of all of them, so a fold can run in
    threads, on a cluster, over batches, or go on from where it was saved.
    """

    label = "pass"
    nbytes = 0
    """Bytes that the state holds."""
    row_bytes = 0
    """Bytes needed while adding a row, beside the row."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Take a block in."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Take in what another fold has seen; `other` is not used again."""

    @abstractmethod
    def spawn(self) -> Self:
        """Return a fold like this one that has seen nothing."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up the state that `arrays` returned."""


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

    @abstractmethod
    def read(self, start: int, stop: int) -> Array:
        """Return the rows start to stop - 1."""

    @property
    def reference(self) -> Array:
        """An array that lives where the rows live."""
        return np.empty(0)

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes once read; 0 where reading it copies nothing."""
        return self.shape[1] * self.dtype.itemsize

    @property
    def count(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.shape[0] if self.weights is None else self.weights.sum())

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
        out = empty((len(at), self.shape[1]), self.reference, self.dtype)
        for i, row in enumerate(at):
            out[i : i + 1, :] = self.read(int(row), int(row) + 1)
        return out

    def transposed(self) -> Source | None:
        """Return the columns as a source of rows, or None where they cannot be reached."""
        return None

    def map(
        self, f: Callable[[Block], Array], width: int, dtype: Any = None, extra_bytes: int = 0
    ) -> Source:
        """Return the rows f(block), computed when they are read.

        `extra_bytes` is what f needs for a row, beside the row it takes and the row it gives.
        """
        return Mapped(self, f, width, dtype or self.dtype, extra_bytes)

    def blocks(self, rows: int, first: int = 0, step: int = 1) -> Iterator[Block]:
        """Yield the blocks of `rows` rows: number `first`, and every `step`-th after it."""
        for start in range(first * rows, self.shape[0], step * rows):
            stop = min(start + rows, self.shape[0])
            weights = None if self.weights is None else self.weights[start:stop]
            yield Block(start, self.read(start, stop), weights)

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
        n = self.shape[0]
        workers = threads.workers() if self.parallel and state.nbytes <= SPLIT_BYTES else 1
        workers = min(workers, max(1, get_config().budget // 4 // max(1, state.nbytes)))
        rows = self.block_rows(state.row_bytes, held=state.nbytes * workers, parts=workers)
        workers = max(1, min(workers, -(-n // rows)))
        stop = threading.Event()

        def work(part: F, first: int) -> F:
            with threads.working():
                return run(part, first)

        def run(part: F, first: int) -> F:
            for block in self.blocks(rows, first, workers):
                if stop.is_set():
                    break
                with np.errstate(invalid="ignore", over="ignore"):  # judged when all are in
                    part.add(block)
                tick(block.length)
            return part

        with progress.task(state.label, n) as tick:
            if workers == 1:
                return run(state, 0)
            parts = [state, *(state.spawn() for _ in range(1, workers))]
            with threads.serial_blas():
                others = [threads.pool().submit(work, part, i) for i, part in enumerate(parts) if i]
                try:
                    work(state, 0)
                    for other in others:
                        with np.errstate(invalid="ignore", over="ignore"):
                            state.merge(other.result())
                except BaseException:  # Ctrl-C too: let the other workers end at once
                    stop.set()
                    wait(others)
                    raise
        return state

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        """Rows of a block, when `parts` blocks are alive beside `held` bytes of state."""
        settings = get_config()
        n = max(1, self.shape[0])
        if settings.block_rows is not None:
            return min(settings.block_rows, n)
        row = max(1, self.row_bytes + extra_bytes)
        wanted = max(BLOCK_ROWS, BLOCK_BYTES // row)
        room = (settings.budget - held) // 2 // parts
        if room < row:
            needed = format_bytes(held + 2 * parts * row)
            raise BudgetError(
                f"{type(self).__name__} of shape {self.shape}: one row at a time needs {needed}, "
                f"the memory budget is {format_bytes(settings.budget)}. "
                f"Raise it with config_context(memory=...)."
            )
        rows = int(min(n, wanted, room // row))
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
        """Return all rows at once, as blocks are: a sparse matrix, a list, or an array."""
        return self.collect()

    def collect(self, out: Array = None, label: str = "transform") -> Array:
        """Return all rows as one array; `label` is what the progress bar says."""
        if out is None:
            out = empty(self.shape, self.reference, self.dtype)
        if tuple(out.shape) != self.shape:
            raise ValueError(f"out has shape {tuple(out.shape)}, and the rows {self.shape}.")
        self.fold(Collect(out, label))
        return out


class Mapped(Source):
    """Rows of a source through a function."""

    def __init__(
        self,
        source: Source,
        f: Callable[[Block], Array],
        width: int,
        dtype: Any,
        extra_bytes: int,
    ) -> None:
        self.source = source
        self.f = f
        self.shape = (source.shape[0], width)
        self.dtype = np.dtype(dtype)
        self.weights = source.weights
        self.parallel, self.uneven = source.parallel, source.uneven
        self.extra_bytes = extra_bytes

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def count(self) -> float:
        return self.source.count if self.weights is self.source.weights else super().count

    @property
    def row_bytes(self) -> int:
        own = self.shape[1] * self.dtype.itemsize
        return self.source.row_bytes + own + self.extra_bytes

    def read(self, start: int, stop: int) -> Array:
        weights = None if self.weights is None else self.weights[start:stop]
        rows = self.f(Block(start, self.source.read(start, stop), weights))
        if tuple(rows.shape) != (stop - start, self.shape[1]):
            raise ValueError(
                f"rows {start} to {stop - 1} were mapped to shape {tuple(rows.shape)}, where "
                f"{(stop - start, self.shape[1])} was promised: check the width given to map."
            )
        return cast(rows, self.dtype)


class Scaled(Mapped):
    """Rows divided by a power of two, which loses nothing."""

    def __init__(self, source: Source, exponent: int) -> None:
        factor = 2.0**-exponent
        super().__init__(
            source, lambda block: block.rows * factor, source.shape[1], source.dtype, 0
        )
        self.exponent = exponent
        self.sparse, self.by_columns = source.sparse, source.by_columns

    def read(self, start: int, stop: int) -> Array:
        return self.f(Block(start, self.source.read(start, stop), None))

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else Scaled(columns, self.exponent)


class Collect(Fold):
    """Writes every block to its place in an array."""

    def __init__(self, out: Array, label: str = "transform") -> None:
        self.out, self.label = out, label

    def add(self, block: Block) -> None:
        self.out[block.start : block.stop, ...] = block.dense(numpy_dtype(self.out))

    def merge(self, other: Self) -> None:
        pass  # both write into the same array

    def spawn(self) -> Self:
        return type(self)(self.out, self.label)

    def arrays(self) -> dict[str, Array]:
        return {"out": self.out}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.out[...] = like(to_numpy(arrays["out"]), self.out)

"""Rows that lie elsewhere, and what is done with a chunk of them where it lies.

A source of such rows, and whatever is mapped from it, is sent to the chunks without any rows:
what it reads there is the chunk at hand. So functions that hold a source, as those of `map` do,
can be sent too.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from mercer import progress, threads
from mercer.arrays import Array, Vector
from mercer.config import config_context
from mercer.data.fold import Block, Fold
from mercer.data.source import Source
from mercer.session import recorded_by

F = TypeVar("F", bound=Fold)
P = TypeVar("P", bound="Paired")
Arrays = dict[str, Array]
_hand = threading.local()
ACROSS = 4096
"""Rows of a chunk that those of another meet at a time."""


class Elsewhere(ABC):
    """Where rows lie when they are not in this process; what is done with them is done there.

    A view is the source of those rows, or what was mapped from it.
    """

    @abstractmethod
    def fold(self, view: Source, state: F) -> F:
        """Add every block of a view to `state` and return it."""

    @abstractmethod
    def take(self, view: Source, at: np.ndarray[Any, Any]) -> Array:
        """Return the named rows of a view, in the order named."""

    @abstractmethod
    def blocks(self, view: Source, rows: int, first: int, step: int) -> Iterator[Block]:
        """Yield blocks of a view of `rows` rows or fewer, in order."""

    @abstractmethod
    def pairs(self, view: Source, meeting: Meeting, state: P) -> P:
        """Have every two chunks of a view meet once, and add what that gives to `state`."""


class Meeting(ABC):
    """What two chunks of rows add up to when they meet: sent to the workers."""

    @abstractmethod
    def fold(self, y: Block, left: Any, right: Any) -> Fold:
        """Return what rows that come by are folded into, when they meet the rows y.

        With what was sent along with the ones, and with the others. Its `arrays` are sums:
        "left" for the rows that come by, "right" for those they meet, and others, for none.
        Where a chunk meets itself there is no "right".
        """


class Terms(ABC):
    """The terms of a sum over points that lie elsewhere, for every row: sent to the workers.

    Attributes
    ----------
    width : int
        Sums of a row.
    dtype : dtype
        Their precision.
    """

    width: int
    dtype: np.dtype[Any]

    @abstractmethod
    def share(self, y: Block, beside: Any) -> Callable[[Block], Array]:
        """Return what gives the rows of a block their sums over the points y."""


class Paired(Fold):
    """What all meetings amount to, in sums for every row."""

    @abstractmethod
    def beside(self, start: int, stop: int) -> Any:
        """Return what is sent along with the rows start to stop - 1."""

    @abstractmethod
    def gather(self, start: int, stop: int, sums: Arrays) -> None:
        """Add the sums for the rows start to stop - 1: "own", and others."""


@dataclass(frozen=True)
class Errand:
    """What is sent to every chunk: a view, what it is folded into, and what may be used.

    Attributes
    ----------
    token : str
        By which the source of the view knows its chunks.
    width : int
        Columns of every chunk.
    view : Source
        The rows that are wanted.
    state : Fold, Meeting or None
        A fold that has seen nothing; or what two chunks are folded into.
    memory : int
        Bytes that may be held beside the chunk.
    block_rows : int or None
        Rows of a block, where the user says so.
    """

    token: str
    width: int
    view: Source
    state: Any
    memory: int
    block_rows: int | None

    @contextlib.contextmanager
    def part(self, chunk: Any, start: int, rows: int, weights: Vector | None) -> Iterator[Source]:
        """Give the view of a chunk, while it is at hand; BLAS and blocks keep to one thread."""
        part = copy.copy(self.view)
        part.origin, part.elsewhere, part.weights = start, None, weights
        part.shape = (rows, *part.shape[1:])
        settings = config_context(
            memory=self.memory, block_rows=self.block_rows, progress=False, checkpoint=None
        )
        here = (self.token, start, require_rows(chunk, start, rows, self.width))
        before = getattr(_hand, "chunk", None)
        with (
            settings,
            progress.quiet(),
            recorded_by(None),
            threads.serial_blas(),
            threads.working(),
        ):
            _hand.chunk = here
            try:
                yield part
            finally:
                _hand.chunk = before


def at_hand(token: str, start: int, stop: int) -> Array | None:
    """Return the rows start to stop - 1 of the chunk at hand; None where it does not hold them."""
    chunk = getattr(_hand, "chunk", None)
    if chunk is None or chunk[0] != token:
        return None
    _, first, rows = chunk
    if not first <= start <= stop <= first + rows.shape[0]:
        return None
    return rows[start - first : stop - first]


def folded(chunk: Any, start: int, rows: int, weights: Vector | None, errand: Errand) -> Arrays:
    """Return the state of a fold that has seen a chunk."""
    state: Fold = errand.state
    with errand.part(chunk, start, rows, weights) as part:
        return part.fold(state.spawn()).arrays()


def merged(left: Arrays, right: Arrays, errand: Errand) -> Arrays:
    """Return the state of a fold that has seen what two have, in their order.

    Both stay as they are: where a worker is lost they may be asked for again.
    """
    state: Fold = errand.state
    both, other = state.spawn(), state.spawn()
    both.restore(_copied(left))
    other.restore(_copied(right))
    with threads.serial_blas(), np.errstate(invalid="ignore", over="ignore"):
        both.merge(other)
        return both.arrays()


def taken(chunk: Any, start: int, rows: int, at: np.ndarray[Any, Any], errand: Errand) -> Array:
    """Return some rows of a view of a chunk, by their numbers among all rows."""
    with errand.part(chunk, start, rows, None) as part:
        return np.concatenate([part.read(int(row), int(row) + 1) for row in at])


def mapped(chunk: Any, start: int, rows: int, errand: Errand) -> Array:
    """Return all rows of a view of a chunk."""
    with errand.part(chunk, start, rows, None) as part:
        return _together(part, start)


def _together(part: Source, start: int) -> Array:
    """Return all rows of a part, which begins at a row."""
    out = np.empty(part.shape, part.dtype)
    for block in part.blocks(part.block_rows(0, held=0, parts=1)):
        out[block.start - start : block.stop - start] = block.rows
    return out


def paired(
    x: tuple[Any, int, int], y: tuple[Any, int, int], left: Any, right: Any, errand: Errand
) -> Arrays:
    """Return the sums of two chunks that meet: each a chunk, its first row and their number."""
    meeting: Meeting = errand.state
    with errand.part(*y, None) as part:
        others = Block(y[1], part.read(y[1], y[1] + y[2]), None)
    with errand.part(*x, None) as part:
        return part.fold(meeting.fold(others, left, right)).arrays()


def shared(
    x: tuple[Any, int, int], y: tuple[Any, int, int], beside: Any, errand: Errand, theirs: Errand
) -> Array:
    """Return the sums of the rows of a chunk over the points of another."""
    terms: Terms = theirs.state
    with theirs.part(*y, None) as part:
        points = Block(y[1], part.read(y[1], y[1] + y[2]), None)
    across = terms.share(points, beside)
    with errand.part(*x, None) as part:
        extra = min(y[2], ACROSS) * terms.dtype.itemsize
        return _together(part.map(across, terms.width, terms.dtype, 2 * extra), x[1])


def met(parts: list[Arrays], sides: list[str]) -> Arrays:
    """Return the sums for one chunk, of its meetings: it was on these sides of them."""
    own = []
    for part, side in zip(parts, sides, strict=True):
        # What is for no row is counted once for a meeting.
        others = part if side == "left" else {}
        names = [name for name in others if name not in ("left", "right")]
        own.append({"own": part[side], **{name: part[name] for name in names}})
    return added_up(own)


def added_up(parts: list[Arrays]) -> Arrays:
    """Return sums of sums, in their order."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: added([part[name] for part in parts if name in part]) for name in names}


def added(parts: list[Array]) -> Array:
    """Return the sum of arrays, in their order."""
    return sum(parts[1:], parts[0])


def require_rows(chunk: Any, start: int, rows: int, width: int) -> np.ndarray[Any, Any]:
    """Return a chunk as an array, or refuse one that is not what was announced."""
    if hasattr(chunk, "tocsr") or hasattr(chunk, "todense"):
        raise TypeError(
            f"The chunk of rows {start} to {start + rows - 1} is sparse ({type(chunk).__name__}), "
            f"and chunks must be dense arrays: X.map_blocks(lambda chunk: chunk.toarray())."
        )
    if isinstance(chunk, np.ma.MaskedArray) and np.ma.is_masked(chunk):
        raise ValueError(
            f"The chunk of rows {start} to {start + rows - 1} has masked entries. Fill them in, "
            f"for example with dask.array.ma.filled."
        )
    found = np.asarray(chunk)
    if found.shape != (rows, width):
        columns = found.ndim == 2 and found.shape[0] == rows
        raise ValueError(
            f"The chunk of rows {start} to {start + rows - 1} was announced with {rows} rows and "
            f"{width} columns, and has shape {found.shape}. "
            + (
                "Give every chunk the same columns, in the same order."
                if columns
                else "Have X.compute_chunk_sizes() find the sizes of its chunks."
            )
        )
    return found


def _copied(arrays: Arrays) -> Arrays:
    return {name: np.array(array) for name, array in arrays.items()}

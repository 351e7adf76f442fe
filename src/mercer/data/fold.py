"""A block of rows, a map of its rows to features, and what a pass over all blocks accumulates."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

from mercer.arrays import Array, Vector, cast, like, numpy_dtype, to_numpy


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows, the number of the first, and their weights."""

    start: int
    rows: Array
    weights: Vector | None

    @property
    def stop(self) -> int:
        """Number of the row after the last."""
        return self.start + self.length

    @property
    def length(self) -> int:
        """Number of rows."""
        return len(self.rows) if isinstance(self.rows, list) else int(self.rows.shape[0])

    @property
    def count(self) -> Vector:
        """Weight of each row, 1 without weights."""
        return np.ones(self.length) if self.weights is None else self.weights

    def dense(self, dtype: Any) -> Array:
        """Return the rows as a dense array of this dtype."""
        return cast(self.rows.toarray() if hasattr(self.rows, "toarray") else self.rows, dtype)


class FeatureMap(Protocol):
    """A map of rows to features: linear, kernel, Fourier or a sketch.

    `Source.map` takes one and computes the features when they are read.
    """

    @property
    def width(self) -> int:
        """Number of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the features."""

    @property
    def extra_bytes(self) -> int:
        """Bytes needed for a row, besides the row itself and its features."""

    def __call__(self, block: Block) -> Array:
        """Return the features of the rows of a block."""


class Fold(ABC):
    """Sums accumulated in one pass over the rows.

    Folds of parts of the rows merge into the fold of all of them, so a fold can run in
    threads, on a cluster, over batches, or resume from where it was saved.
    """

    label = "pass"
    nbytes = 0
    """Bytes of the state."""
    row_bytes = 0
    """Bytes needed to add a row, besides the row."""
    local = False
    """Whether it fills memory of this process, so that remote rows must be gathered."""
    inputs: tuple[Array, ...] = ()
    """Arrays that the sums depend on, such as the other factor of a product."""
    low_precision = False
    """Whether its float32 products only drive an iteration and may be TF32 if the user allows."""
    ordered = False
    """Whether the result depends on the order of the rows: then one worker adds them all."""
    resumable = True
    """Whether `arrays` returns all of the state, so that a killed pass can resume from it."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Add a block."""

    @abstractmethod
    def merge(self, other: Self) -> None:
        """Add the state of another fold; `other` is not used again."""

    @abstractmethod
    def spawn(self) -> Self:
        """Return an empty fold like this one."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays, and leave it as it is."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array]) -> None:
        """Set the state that `arrays` returned."""

    def settle(self) -> None:  # noqa: B027 (most folds have nothing pending)
        """Add pending blocks, so that the state takes the least memory."""


class SumFold(Fold):
    """Sums by name, `sums`, that a subclass makes as zeros and adds to."""

    sums: dict[str, Array]

    @property
    def result(self) -> Array:
        """The sum of this name."""
        return self.sums["result"]

    def merge(self, other: Self) -> None:
        for name, total in other.sums.items():
            self.sums[name] += total

    def spawn(self) -> Self:
        other = copy.copy(self)  # not 0 * x, which keeps NaN
        zeros = ((name, np.zeros(x.shape, numpy_dtype(x))) for name, x in self.sums.items())
        other.sums = {name: like(zero, self.sums[name]) for name, zero in zeros}
        return other

    def arrays(self) -> dict[str, Array]:
        return dict(self.sums)

    def restore(self, arrays: dict[str, Array]) -> None:
        own = self.sums.items()
        self.sums = {name: like(to_numpy(arrays[name]).copy(), x) for name, x in own}


class Place(SumFold):
    """Writes every block to its place in an array or a file, which all workers share; no sums."""

    local = True
    sums: dict[str, Array] = {}  # noqa: RUF012 (never changed)


class Collect(Place):
    """Writes every block to its place in an array."""

    def __init__(self, out: Array, label: str = "transform") -> None:
        self.out, self.label = out, label

    def add(self, block: Block) -> None:
        self.out[block.start : block.stop, ...] = block.dense(numpy_dtype(self.out))

    def arrays(self) -> dict[str, Array]:
        return {"out": self.out}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.out[...] = like(to_numpy(arrays["out"]), self.out)

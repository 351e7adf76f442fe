"""A block of rows, and what a pass over all of them accumulates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Vector, cast, like, numpy_dtype, to_numpy


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
    here = False
    """Whether it fills what lies in this process, so that the rows must come to it."""
    inputs: tuple[Array, ...] = ()
    """Arrays that the sums are made with, such as the other factor of a product."""
    rough = False
    """Whether its float32 products only drive an iteration, and may be TF32 if the user says so."""
    ordered = False
    """Whether the result depends on the order of the rows: then one worker takes them all."""
    resumable = True
    """Whether `arrays` holds all of the state, so that a killed pass can go on from it."""

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
        """Return the state as named arrays, and leave it as it is."""

    @abstractmethod
    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up the state that `arrays` returned."""

    def settle(self) -> None:  # noqa: B027 (most folds let nothing wait)
        """Sum up what waits to be, so that the state is the least there is."""


class Collect(Fold):
    """Writes every block to its place in an array."""

    here = True

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

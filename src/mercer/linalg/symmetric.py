"""A symmetric matrix of which strips come by, whole."""

from __future__ import annotations

from typing import Self

from mercer.arrays import Array, Matrix, to_numpy
from mercer.data import Block, Fold


class Mirror(Fold):
    """Writes strips to a matrix, on both sides of the diagonal."""

    label = "kernel matrix"

    def __init__(self, out: Matrix) -> None:
        self.out = out

    def add(self, block: Block) -> None:
        strip = to_numpy(block.rows)
        self.out[block.start : block.stop, block.start :] = strip
        self.out[block.start :, block.start : block.stop] = strip.T

    def merge(self, other: Self) -> None:
        pass  # both write into the same matrix

    def spawn(self) -> Self:
        return type(self)(self.out)

    def arrays(self) -> dict[str, Array]:
        return {"out": self.out}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.out[...] = to_numpy(arrays["out"])

"""Rounds of a pass over chunks: what they amount to comes here, and is saved between them.

Neighbours are merged two by two, always the same ones: a round is a branch of that tree, so that
rounds of any lengths come to the same bits. What is saved of later passes is known by those.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import Array
from mercer.config import get_config
from mercer.data.dask.tasks import at_once
from mercer.data.fold import Fold
from mercer.data.remote import Arrays, Errand, merged

# Share of the interval between two saves that a round takes.
_SHARE = 0.25


class Rounds:
    """A pass in rounds: what the chunks that are done amount to, as far as it is merged.

    It is saved in place of the state, which holds only whole trees.

    Parameters
    ----------
    state : Fold
        What the pass accumulates.
    errand : Errand
        What is sent to the chunks.
    most : int
        Chunks of a tree, a power of two.
    interval : float or None
        Seconds between two saves. None if the pass is not saved: then a round is a whole tree.
    """

    def __init__(self, state: Fold, errand: Errand, most: int, interval: float | None) -> None:
        self.state, self.errand, self.most, self.interval = state, errand, most, interval
        self.label, self.inputs, self.resumable = state.label, state.inputs, state.resumable
        self.done = 0
        """Chunks that are done."""
        self.branches: list[tuple[int, Arrays]] = []
        """Those of the last tree that wait for their neighbour; how many chunks each has."""
        self.least = _power(max(at_once(), most >> _branches(state)) if interval else most, most)
        self.wanted = min(2 * self.least, most)

    @property
    def size(self) -> int:
        """Chunks of the next round: no more than complete the branch that they begin."""
        at = self.done % self.most
        return min(self.wanted, at & -at) if at else self.wanted

    @contextlib.contextmanager
    def timed(self, chunks: int) -> Iterator[None]:
        """Time a round of so many chunks: the next is to take a share of the interval.

        Never so few that workers have nothing to do.
        """
        begun = time.monotonic()
        yield
        if self.interval:
            took = max(time.monotonic() - begun, 1e-9)
            wanted = min(self.most, chunks * _SHARE * self.interval / took)
            self.wanted = max(self.least, 1 << (max(1, int(wanted)).bit_length() - 1))

    def add(self, arrays: Arrays, size: int, *, last: bool) -> None:
        """Take in what a round amounts to; after the last, all is in the state."""
        self.done += size
        while self.branches and self.branches[-1][0] == size:
            size, arrays = 2 * size, merged(self.branches.pop()[1], arrays, self.errand)
        self.branches.append((size, arrays))
        if size < self.most and not last:
            return
        arrays = self.branches.pop()[1]
        while self.branches:
            arrays = merged(self.branches.pop()[1], arrays, self.errand)
        other = self.state.spawn()
        other.restore(arrays)
        with np.errstate(invalid="ignore", over="ignore"):
            self.state.merge(other)

    def arrays(self) -> dict[str, Array]:
        """Return what the pass has come to, as named arrays."""
        sizes = np.array([self.done, *(size for size, _ in self.branches)])
        every = [self.state.arrays(), *(arrays for _, arrays in self.branches)]
        named = {f"{i} {name}": a for i, part in enumerate(every) for name, a in part.items()}
        return {"sizes": sizes, **named}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take up what `arrays` returned."""
        self.done, *sizes = (int(size) for size in arrays["sizes"])
        every: list[dict[str, Any]] = [{} for _ in range(1 + len(sizes))]
        for name, array in arrays.items():
            number, _, own = name.partition(" ")
            if own:
                every[int(number)][own] = array
        self.state.restore(every[0])
        self.branches = list(zip(sizes, every[1:], strict=True))


def _branches(state: Fold) -> int:
    """Return how many branches may wait here: a quarter of the memory holds them."""
    return max(1, get_config().budget // 4 // max(1, state.nbytes))


def _power(chunks: int, most: int) -> int:
    """Return the least power of two that is not below a number, or the most."""
    return min(most, 1 << (max(1, chunks) - 1).bit_length())

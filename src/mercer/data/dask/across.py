"""Sums over the points of a Dask array, for rows of any source: neither come together here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array
import numpy as np

from mercer.arrays import Array, like, to_numpy
from mercer.config import get_config
from mercer.data.dask.chunks import Chunks
from mercer.data.dask.joined import joined
from mercer.data.dask.source import DaskSource
from mercer.data.dask.tasks import compute, reduced, sent, task
from mercer.data.fold import Block
from mercer.data.remote import Terms, added, shared
from mercer.data.source import BLOCK_BYTES, Source

# Parts of a sum that are added at once.
_FAN = 16


def across(
    source: Source,
    points: Any,
    terms: Terms,
    beside: Callable[[int, int], Any],
    after: Callable[[Block], Array],
    width: int,
) -> Source:
    """Return what a function makes of sums over points, for every row; computed when it is read.

    Parameters
    ----------
    source : Source
        Rows.
    points : dask.array.Array
        What is summed over.
    terms : Terms
        The terms of the sums.
    beside : callable
        What is sent along with points, by the first and the one after the last.
    after : callable
        What is made of a block of sums.
    width : int
        How many columns that has.
    """
    over = DaskSource(points)
    if not isinstance(source.elsewhere, Chunks):
        return Across(source, over, terms, beside, after, width)
    parts = _summed(source.elsewhere, source, over, terms, beside)
    made = [
        dask.array.from_delayed(part, (rows, terms.width), terms.dtype)
        if rows
        else dask.array.zeros((0, terms.width), terms.dtype)
        for part, (_, rows) in zip(parts, source.elsewhere.places, strict=True)
    ]
    sums = DaskSource(dask.array.concatenate(made), source.elsewhere.first)
    return sums.weighted(source.weights).map(after, width, terms.dtype)


class Across(Source):
    """The same of rows that are read here, and sent in blocks as large as the budget allows.

    For every block the points are computed anew, unless they are kept where they lie.
    """

    parallel = False

    def __init__(
        self,
        source: Source,
        over: DaskSource,
        terms: Terms,
        beside: Callable[[int, int], Any],
        after: Callable[[Block], Array],
        width: int,
    ) -> None:
        self.source, self.over, self.terms = source, over, terms
        self.beside, self.after = beside, after
        self.shape, self.dtype = (source.shape[0], width), np.dtype(terms.dtype)
        self.weights, self.origin = source.weights, source.origin

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def row_bytes(self) -> int:
        return self.source.row_bytes + 2 * self.terms.width * self.dtype.itemsize

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        rows = super().block_rows(extra_bytes, held, parts)
        if get_config().block_rows is not None:
            return rows
        most = (get_config().budget - held) // 8 // parts // (self.row_bytes + extra_bytes)
        return max(rows, min(self.shape[0], most))

    def read(self, start: int, stop: int) -> Array:
        rows = np.ascontiguousarray(to_numpy(self.source.read(start, stop)))
        cut = max(1, BLOCK_BYTES // max(1, rows.shape[1] * rows.itemsize))
        array = dask.array.from_array(rows, chunks=(cut, -1), name=False)
        view = DaskSource(array, start)
        parts = compute(_summed(view.chunks, view, self.over, self.terms, self.beside))
        made = self.after(Block(start, np.concatenate(parts), None))
        return like(made, self.reference, self.dtype)


def _summed(
    chunks: Chunks,
    view: Source,
    over: DaskSource,
    terms: Terms,
    beside: Callable[[int, int], Any],
) -> list[Any]:
    """Return a task for every chunk of a view: its sums over all points; None for no rows."""
    errand, theirs = sent(chunks.errand(view)), sent(over.chunks.errand(over, terms))
    points = [(y, sent(beside(y[1], y[1] + y[2]))) for y in joined(over.chunks, over.row_bytes)]
    found = {
        x[1]: reduced(
            [task(shared)(x, y, along, errand, theirs) for y, along in points], task(added), _FAN
        )
        for x in chunks.some()
    }
    return [found[start] if rows else None for start, rows in chunks.places]

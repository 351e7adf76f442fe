"""Maps that send every feature to a few places."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mercer.arrays import Array, Matrix, Vector
from mercer.config import get_config
from mercer.data import Source
from mercer.sketches.drawn import Drawn

# Features whose places are drawn together.
_FEATURES = 1024
# A place, a value, and where the next feature begins.
_ENTRY_BYTES, _FEATURE_BYTES = 12, 8


class Entries(NamedTuple):
    """Where features go: feature j to places[begin[j]:begin[j + 1]], times the values there."""

    begin: npt.NDArray[np.int64]
    places: npt.NDArray[np.uint32]
    values: Vector

    def part(self, first: int, stop: int) -> Entries:
        """Return the entries of some features."""
        begin = self.begin[first : stop + 1]
        own = slice(int(begin[0]), int(begin[-1]))
        return Entries(begin - begin[0], self.places[own], self.values[own])


def equally(places: npt.NDArray[Any], values: Matrix) -> Entries:
    """Return entries of features that have as many each: a row of places and one of values."""
    n, each = places.shape
    begin = np.arange(n + 1, dtype=np.int64) * each
    return Entries(begin, places.astype(np.uint32).ravel(), values.astype(np.float64).ravel())


class Scattered(Drawn):
    """A map that sends every feature to `each` places; summed in float64.

    Dense rows, sparse rows and any block of them give the same bits.
    """

    def __init__(self, d: int, q: int, each: int) -> None:
        super().__init__(d, q)
        self.each = each
        self._entries: Entries | None = None

    @abstractmethod
    def draw(self, number: int, count: int) -> Entries:
        """Return the entries of a piece: of `count` features from 1024 times `number` on."""

    @property
    def nbytes(self) -> int:
        return self._bytes(self.d if self._fits() else _FEATURES)

    def row_bytes(self, source: Source) -> int:
        # The sums, in float64. Of other libraries' rows: a product.
        return self.q * 8

    def entries(self) -> Iterator[tuple[int, Entries]]:
        """Yield entries and the first feature they are of: all, or piece by piece."""
        if not self._fits():
            for first in range(0, self.d, _FEATURES):
                yield first, self._piece(first)
            return
        if self._entries is None:  # two threads may both make them: they are the same
            pieces = [self._piece(first) for first in range(0, self.d, _FEATURES)]
            counts = np.concatenate([[0], *(np.diff(piece.begin) for piece in pieces)])
            places = np.concatenate([piece.places for piece in pieces])
            values = np.concatenate([piece.values for piece in pieces])
            self._entries = Entries(np.cumsum(counts), places, values)
        yield 0, self._entries

    def block(self, first: int, stop: int) -> Matrix:
        out = np.zeros((stop - first, self.q))
        for start, entries in self.entries():
            low, high = max(first, start), min(stop, start + len(entries.begin) - 1)
            if low < high:
                part = entries.part(low - start, high - start)
                at = np.repeat(np.arange(low - first, high - first), np.diff(part.begin))
                out[at, part.places] = part.values
        return out

    def _piece(self, first: int) -> Entries:
        return self.draw(first // _FEATURES, min(_FEATURES, self.d - first))

    def _bytes(self, features: int) -> int:
        return features * (self.each * _ENTRY_BYTES + _FEATURE_BYTES)

    def _fits(self) -> bool:
        return self._bytes(self.d) <= get_config().budget // 4

    def _on_host(self, rows: Array) -> Array:
        from mercer.sketches.loops import scatter

        out = np.zeros((rows.shape[0], self.q))
        packed = np.ascontiguousarray(rows)
        for first, entries in self.entries():
            scatter(packed, first, *entries, out)
        return out.astype(rows.dtype, copy=False)

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import scatter_sparse

        out = np.zeros((rows.shape[0], self.q))
        at = rows.indptr[:-1].copy()
        for first, entries in self.entries():
            ends = (first, first + len(entries.begin) - 1)
            scatter_sparse(at, rows.indptr, rows.indices, rows.data, ends, *entries, out)
        return out.astype(rows.dtype, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_entries": None}


class Fixed(Scattered):
    """A map that sends features where a sparse d×q matrix says."""

    def __init__(self, matrix: Any) -> None:
        csr = matrix.tocsr()
        d, q = (int(size) for size in csr.shape)
        super().__init__(d, q, -(-int(csr.nnz) // d))
        self.given = Entries(
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.uint32),
            csr.data.astype(np.float64),
        )
        self.drops = bool(np.any(np.diff(self.given.begin) == 0))

    def draw(self, number: int, count: int) -> Entries:
        return self.given.part(number * _FEATURES, number * _FEATURES + count)

    def entries(self) -> Iterator[tuple[int, Entries]]:
        yield 0, self.given

"""Maps that no longer change: rows of d columns to rows of q."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    cast,
    device,
    empty,
    is_finite,
    is_foreign,
    like,
    namespace,
    numpy_dtype,
    working_dtype,
)
from mercer.config import get_config
from mercer.data import Block, Search, Source, not_finite

# Features to a piece of the matrix, and the entries a piece may have: 4 MiB in float64.
_FEATURES = 1024
_ENTRIES = 2**19

_making = threading.Lock()


def stream(seed: int, number: int) -> np.random.Generator:
    """Return the random numbers of one piece: its own, whichever piece was made before."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))))


class Drawn(ABC):
    """A linear map from d columns to q, fixed.

    The map is the same, to the bit, for any block of rows, source and number of threads; the
    rows that it gives are the same to rounding.

    Parameters
    ----------
    d, q : int
        Columns of the rows it takes, and of those it gives.
    """

    drops = False
    """Whether some columns go nowhere: NaN in them would leave no trace."""

    def __init__(self, d: int, q: int) -> None:
        self.d, self.q = d, q
        self.step = max(1, min(_FEATURES, _ENTRIES // q))
        self._kept: tuple[Any, Array] = (None, None)

    @abstractmethod
    def block(self, first: int, stop: int) -> Matrix:
        """Return rows `first` to `stop` - 1 of its d×q matrix; `step` divides `first`."""

    def matrix(self, dtype: Any = np.float64) -> Array:
        """Return its d×q matrix."""
        whole = np.empty((self.d, self.q), dtype)
        for first in range(0, self.d, self.step):
            stop = min(first + self.step, self.d)
            whole[first:stop] = self.block(first, stop)
        return whole

    @property
    def nbytes(self) -> int:
        """Bytes that it holds while it is applied to rows of float64, at most."""
        whole = self.d * self.q * 8
        return whole if whole <= get_config().budget // 4 else self.step * self.q * 8

    def row_bytes(self, source: Source) -> int:
        """Bytes that a row needs, beside itself and what it becomes."""
        return self.q * source.dtype.itemsize

    def apply(self, rows: Any) -> Array:
        """Return rows of q columns for rows of d: where they live, and in their precision.

        Parameters
        ----------
        rows : array of shape (n, d), or SciPy sparse matrix
            Rows; sparse ones give a dense array.
        """
        rows = self._checked(rows)
        if hasattr(rows, "tocsr"):
            return self._on_sparse(rows)
        return self._on_host(rows) if isinstance(rows, np.ndarray) else self._elsewhere(rows)

    def on(self, source: Source) -> Source:
        """Return the rows of a source through the map, computed when they are read."""
        self._check_columns(source.shape)

        def mapped(block: Block) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):
                rows = self.apply(block.rows)
            if self.drops or not is_finite(rows):
                search = Search()
                search.add(block)
                if search.found is not None or not is_finite(rows):
                    raise not_finite(search.found, source)
            return rows

        extra, piece = self.row_bytes(source), self.step * self.q * 8
        return source.map(mapped, self.q, extra_bytes=extra, part_bytes=piece)

    def _checked(self, rows: Any) -> Any:
        if not is_foreign(rows) and not hasattr(rows, "tocsr"):
            rows = np.asarray(rows)
        self._check_columns(tuple(rows.shape))
        dtype = working_dtype(numpy_dtype(rows) if not hasattr(rows, "tocsr") else rows.dtype)
        if not hasattr(rows, "tocsr"):
            return cast(rows, dtype)
        csr = rows.tocsr().astype(dtype, copy=False)
        # A piece of the matrix takes the entries of its columns: they must lie in order.
        return csr if csr.has_sorted_indices else csr.sorted_indices()

    def _check_columns(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[1] != self.d:
            raise ValueError(
                f"the rows have shape {shape}, and the map takes rows of {self.d} columns. Draw "
                f"it for the columns that the rows have."
            )

    def _pieces(self, reference: Array, dtype: Any) -> Iterator[tuple[slice, Array]]:
        """Yield the matrix by pieces, in order: kept when it fits, else made each time."""
        whole = self._whole(reference, dtype)
        for first in range(0, self.d, self.step):
            part = slice(first, min(first + self.step, self.d))
            if whole is not None:
                yield part, whole[part, :]
            else:
                yield part, like(self.block(part.start, part.stop), reference, dtype)

    def _whole(self, reference: Array, dtype: Any) -> Array:
        """Return the matrix where `reference` lives, made once; None where it is too large."""
        if self.d * self.q * np.dtype(dtype).itemsize > get_config().budget // 4:
            return None
        place = (namespace(reference).__name__, str(device(reference)), np.dtype(dtype).name)
        with _making:
            if self._kept[0] != place:  # one at a time: two would not fit
                self._kept = (None, None)
                self._kept = (place, like(self.matrix(dtype), reference))
            return self._kept[1]

    def _on_host(self, rows: Array) -> Array:
        # By pieces even where the matrix is kept: a matrix that is not gives the same bits.
        out = np.zeros((rows.shape[0], self.q), rows.dtype)
        room = np.empty_like(out)
        for part, piece in self._pieces(rows, rows.dtype):
            out += np.matmul(rows[:, part], piece, out=room)
        return out

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import add_products

        out = np.zeros((rows.shape[0], self.q), rows.dtype)
        at = rows.indptr[:-1].copy()
        for part, piece in self._pieces(out, rows.dtype):
            ends = (part.start, part.stop)
            add_products(at, rows.indptr, rows.indices, rows.data, ends, piece, out)
        return out

    def _elsewhere(self, rows: Array) -> Array:
        dtype = numpy_dtype(rows)
        out = namespace(rows).zeros_like(empty((rows.shape[0], self.q), rows, dtype))
        for part, piece in self._pieces(rows, dtype):
            out = out + rows[:, part] @ piece
        return out

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": (None, None)}  # it can be made again


class Same(Drawn):
    """The identity."""

    def __init__(self, d: int) -> None:
        super().__init__(d, d)

    @property
    def nbytes(self) -> int:
        return 0

    def block(self, first: int, stop: int) -> Matrix:
        return np.eye(stop - first, self.d, first)

    def _on_host(self, rows: Array) -> Array:
        return rows.copy()

    def _on_sparse(self, rows: Any) -> Array:
        return rows.toarray()

    def _elsewhere(self, rows: Array) -> Array:
        return namespace(rows).asarray(rows, copy=True)

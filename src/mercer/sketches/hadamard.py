"""The subsampled randomised Hadamard transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import Array, Matrix, like, namespace, numpy_dtype
from mercer.data import Source
from mercer.sketches.base import RandomMap
from mercer.sketches.matrix import SketchMatrix, stream

# Length of the last axis of the transform, which is computed for the sampled coordinates only.
_WIDTH = 16


class Hadamard(RandomMap):
    r"""Subsampled randomised Hadamard transform :math:`f(x) = \frac{1}{\sqrt q} R H D x`.

    D flips signs at random, H is Hadamard's matrix of the p = 2^m ≥ d columns that zeros fill
    up, with entries ±1, and R takes q coordinates without replacement: Ailon & Chazelle (2009),
    Tropp (2011). Dot products are unbiased. Of dense rows it costs n p log p whatever q is; of
    sparse ones at most their entries times q. A large single feature is spread over all
    coordinates, as by a Gaussian matrix.

    Parameters
    ----------
    q : int
        Number of columns of the result.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws a different map every time.
    identity : bool
        Leave rows of at most q columns unchanged. Otherwise fewer than q columns are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Hadamard
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Hadamard(1000).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    def draw(self, d: int, seed: int) -> SketchMatrix:
        rng, q = stream(seed, 0), int(self.q)
        up = rng.integers(2, size=d) == 1
        return HadamardMatrix(up, np.sort(rng.choice(_padded(d), q, replace=False)))


class HadamardMatrix(SketchMatrix):
    """Signs of the columns, and the coordinates that are kept.

    Parameters
    ----------
    up : ndarray of bool of shape (d,)
        Which columns keep their sign.
    sample : ndarray of int of shape (q,)
        The coordinates, in order.
    """

    def __init__(self, up: npt.NDArray[np.bool_], sample: npt.NDArray[np.int64]) -> None:
        super().__init__(len(up), len(sample))
        self.size = _padded(self.d)
        # The signs carry the factor 1/√q.
        self.signs = np.zeros(self.size)
        self.signs[: self.d] = (2.0 * up - 1.0) / self.q**0.5
        self.up, self.sample = up, sample
        bits = self.size.bit_length() - 1
        self.shape = (1 << (bits - bits // 2), 1 << (bits // 2))
        rows, columns = self.shape
        self.high = _entries(np.arange(rows), self.sample // columns)
        self.low = _entries(np.arange(columns), self.sample % columns)

    @property
    def nbytes(self) -> int:
        arrays = (self.signs, self.sample, self.high, self.low)
        return sum(array.nbytes for array in arrays) + self.size * 8

    def row_bytes(self, source: Source) -> int:
        host = source.sparse or isinstance(source.reference, np.ndarray)
        return 0 if host else 3 * self.size * source.dtype.itemsize

    def block(self, first: int, stop: int) -> Matrix:
        j, columns = np.arange(first, stop), self.shape[1]
        signs = self.high[j // columns] * self.low[j % columns]
        return signs * self.signs[j, None]

    def _small(self, dtype: Any) -> Matrix:
        width = np.arange(min(_WIDTH, self.size))
        return _entries(width, width).astype(dtype)

    def _on_host(self, rows: Array) -> Array:
        from mercer.sketches.loops import hadamard

        out = np.empty((rows.shape[0], self.q), rows.dtype)
        signs = self.signs.astype(rows.dtype, copy=False)
        packed = np.ascontiguousarray(rows)
        hadamard(packed, signs, self._small(rows.dtype), self.sample, out)
        return out

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import hadamard_sparse

        out = np.empty((rows.shape[0], self.q), rows.dtype)
        csr, signs = (
            (rows.indptr, rows.indices, rows.data),
            self.signs.astype(rows.dtype, copy=False),
        )
        small = self._small(rows.dtype)
        hadamard_sparse(csr, signs, small, self.sample, (self.high, self.low), out)
        return out

    def _on_device(self, rows: Array) -> Array:
        # H is the Kronecker product of two small ones: two products with matrices of √p rows.
        xp, dtype, n = namespace(rows), numpy_dtype(rows), int(rows.shape[0])
        x = rows * like(self.signs[: self.d], rows, dtype)
        if self.size > self.d:
            x = xp.concat([x, like(np.zeros((n, self.size - self.d)), rows, dtype)], axis=1)
        left, right = (
            like(_entries(np.arange(size), np.arange(size)), rows, dtype) for size in self.shape
        )
        x = xp.matmul(left, xp.matmul(xp.reshape(x, (n, *self.shape)), right))
        return xp.take(xp.reshape(x, (n, self.size)), like(self.sample, rows), axis=1)


def _padded(d: int) -> int:
    """Return the power of two that d columns are padded to with zeros."""
    return 1 << (d - 1).bit_length()


def _entries(i: npt.NDArray[Any], j: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return entries of Hadamard's matrix: −1 where i and j share an odd number of bits."""
    shared = np.bitwise_count(i[:, None] & j[None, :]) & 1
    signs: npt.NDArray[np.int8] = np.where(shared, -1, 1).astype(np.int8)
    return signs

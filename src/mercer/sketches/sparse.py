"""Sketches by sparse matrices: feature hashing, and sparse random signs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mercer.arrays import Array, Matrix
from mercer.checks import check_integer, require
from mercer.config import get_config
from mercer.data import Source
from mercer.sketches.base import RandomMap
from mercer.sketches.matrix import SketchMatrix, stream

# Rows of the matrix that are drawn together.
_ROWS = 1024
# Bytes of an entry (its column and its value), and of a row beside its entries.
_ENTRY_BYTES, _ROW_BYTES = 12, 8
_SCALINGS = ("unbiased", "paper")


class SparseMatrix(SketchMatrix):
    """A sparse matrix; sums are in float64.

    Dense rows, sparse rows and any block of them give the same bits.
    """

    @abstractmethod
    def parts(self) -> Iterator[tuple[int, sp.csr_array]]:
        """Yield the whole matrix if it fits in memory, or its parts; with the first row."""

    def row_bytes(self, source: Source) -> int:
        return self.q * 8  # the sums; for arrays on a device, a product

    def block(self, first: int, stop: int) -> Matrix:
        blocks = [
            part[max(first - start, 0) : stop - start].toarray()
            for start, part in self.parts()
            if start < stop and first < start + part.shape[0]
        ]
        return np.vstack(blocks)

    def _on_host(self, rows: Array) -> Array:
        from mercer.sketches.loops import scatter

        out = np.zeros((rows.shape[0], self.q))
        packed = np.ascontiguousarray(rows)
        for first, part in self.parts():
            scatter(packed, first, (part.indptr, part.indices, part.data), out)
        return out.astype(rows.dtype, copy=False)

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import scatter_sparse

        out = np.zeros((rows.shape[0], self.q))
        csr, at = (rows.indptr, rows.indices, rows.data), rows.indptr[:-1].copy()
        for first, part in self.parts():
            ends = (first, first + part.shape[0])
            scatter_sparse(csr, at, ends, (part.indptr, part.indices, part.data), out)
        return out.astype(rows.dtype, copy=False)


class FixedMatrix(SparseMatrix):
    """A given sparse d×q matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix: sp.csr_array = matrix.tocsr().astype(np.float64)
        super().__init__(*map(int, self.matrix.shape))
        self.drops = bool(np.any(np.diff(self.matrix.indptr) == 0))

    def parts(self) -> Iterator[tuple[int, sp.csr_array]]:
        yield 0, self.matrix


class RandomSparseMatrix(SparseMatrix):
    """A random matrix with `each` entries in every row."""

    def __init__(self, d: int, q: int, each: int, seed: int) -> None:
        super().__init__(d, q)
        self.each, self.seed = each, seed
        self._csr: sp.csr_array | None = None

    @abstractmethod
    def draw(self, rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.int64], Any]:
        """Return the columns and the values of the entries of n rows, of shape (n, each)."""

    def parts(self) -> Iterator[tuple[int, sp.csr_array]]:
        def part(first: int) -> sp.csr_array:
            n = min(_ROWS, self.d - first)
            columns, values = self.draw(stream(self.seed, first // _ROWS), n)
            data = np.broadcast_to(values, columns.shape).ravel()
            indptr = np.arange(n + 1, dtype=np.int32) * self.each
            return sp.csr_array((data, columns.astype(np.int32).ravel(), indptr), (n, self.q))

        starts = range(0, self.d, _ROWS)
        if self.d * (self.each * _ENTRY_BYTES + _ROW_BYTES) > get_config().budget // 4:
            yield from ((first, part(first)) for first in starts)
            return
        if self._csr is None:  # two threads may both compute it: they get the same
            self._csr = sp.vstack([part(first) for first in starts], format="csr")
        yield 0, self._csr

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_csr": None}


class Hashing(RandomMap):
    r"""Feature hashing: every hash sends a feature to one bucket, with a random sign.

    :math:`f(x)_j = \frac{1}{\sqrt l} \sum_{i: h(i)=j} s(i) x_i` for each of l hashes, one after
    the other: Weinberger et al. (2009), Marukatat (2022), (40) and (46). It takes l operations
    per entry of the rows. With signs, dot products are unbiased, with variance
    :math:`(\|x\|^2\|y\|^2 + (x^Ty)^2 - 2\sum_i x_i^2 y_i^2)/q`.

    Parameters
    ----------
    q : int
        Number of columns of the result, all hashes together; each has q // l buckets, and the
        first q mod l of them one more.
    hashes : int
        Number of hashes, l. With more hashes, two large features are less likely to share all
        their buckets; the variance does not change.
    signed : bool
        False: no signs, the hash kernel of Shi et al. (2009). It is biased: dot products are
        too large by about :math:`(l/q) \sum_i x_i \sum_j y_j`.
    scaling : {"unbiased", "paper"}
        "paper" divides by l, as printed in (46), instead of :math:`\sqrt l`: all dot products
        are then l times too small. For comparison only.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws a different map every time.
    identity : bool
        Leave rows of at most q columns unchanged. Otherwise fewer than q columns are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Hashing
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Hashing(1000, hashes=4).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    def __init__(
        self,
        q: int,
        hashes: int = 1,
        *,
        signed: bool = True,
        scaling: str = "unbiased",
        random_state: Any = 0,
        identity: bool = False,
    ) -> None:
        super().__init__(q, random_state=random_state, identity=identity)
        self.hashes, self.signed, self.scaling = hashes, signed, scaling

    def check(self) -> None:
        super().check()
        check_integer(self, "hashes")
        require(self, "hashes", self.hashes <= self.q, f"at most q={self.q}, one bucket per hash")
        require(self, "signed", isinstance(self.signed, bool), "True or False")
        require(self, "scaling", self.scaling in _SCALINGS, 'one of "unbiased" and "paper"')

    def draw(self, d: int, seed: int) -> SketchMatrix:
        hashes = int(self.hashes)
        scale = 1 / hashes if self.scaling == "paper" else 1 / hashes**0.5
        return HashingMatrix(d, int(self.q), hashes, signed=self.signed, scale=scale, seed=seed)


class HashingMatrix(RandomSparseMatrix):
    """One entry in every row for each hash: its bucket, with a sign."""

    def __init__(self, d: int, q: int, each: int, *, signed: bool, scale: float, seed: int) -> None:
        super().__init__(d, q, each, seed)
        self.signed, self.scale = signed, scale

    def draw(self, rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.int64], Any]:
        edges = np.arange(self.each + 1) * (self.q // self.each)
        edges += np.minimum(np.arange(self.each + 1), self.q % self.each)
        columns = rng.integers(edges[:-1], edges[1:], size=(n, self.each))
        signs = rng.integers(2, size=columns.shape) if self.signed else 1.0
        return columns, self.scale * (2.0 * signs - 1.0)


class SparseSign(RandomMap):
    r"""Sparse signs: every feature goes to s places of q, times :math:`\pm 1/\sqrt s`.

    Kane & Nelson (2014). It takes s operations per entry of the rows, and keeps dot products as
    well as a Gaussian matrix: s = 8 suffices in practice (Tropp et al. 2019). Unlike the buckets
    of several hashes, the places are distinct among all q columns.

    Parameters
    ----------
    q : int
        Number of columns of the result.
    nonzeros : int
        Places of a feature, s; at most q.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws a different map every time.
    identity : bool
        Leave rows of at most q columns unchanged. Otherwise fewer than q columns are an error.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import SparseSign
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = SparseSign(1000).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    def __init__(
        self, q: int, nonzeros: int = 8, *, random_state: Any = 0, identity: bool = False
    ) -> None:
        super().__init__(q, random_state=random_state, identity=identity)
        self.nonzeros = nonzeros

    def check(self) -> None:
        super().check()
        check_integer(self, "nonzeros")
        require(self, "nonzeros", self.nonzeros <= self.q, f"at most q={self.q}")

    def draw(self, d: int, seed: int) -> SketchMatrix:
        return SignMatrix(d, int(self.q), int(self.nonzeros), seed)


class SignMatrix(RandomSparseMatrix):
    """Random signs in distinct random columns of every row."""

    def draw(self, rng: np.random.Generator, n: int) -> tuple[npt.NDArray[np.int64], Any]:
        columns = np.empty((n, self.each), np.int64)
        for k in range(self.each):  # all sets of columns are as likely (Floyd)
            last = self.q - self.each + k
            new = rng.integers(last + 1, size=n)
            repeated = (columns[:, :k] == new[:, None]).any(axis=1)
            columns[:, k] = np.where(repeated, last, new)
        return columns, (2.0 * rng.integers(2, size=columns.shape) - 1.0) / self.each**0.5

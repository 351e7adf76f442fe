"""Sketches by dense matrices: Gaussian random projection and the Hadamard transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import Array, Matrix
from mercer.checks import is_real
from mercer.sketches.base import RandomMap
from mercer.sketches.matrix import SketchMatrix, stream

# Length of the last axis of the transform, which is computed for the sampled coordinates only.
_WIDTH = 16


class Gaussian(RandomMap):
    r"""Gaussian random projection :math:`f(x) = W^T x/\sqrt q`, :math:`W_{ij} \sim N(0, 1)`.

    Marukatat (2022), (36). The variance of a dot product is
    :math:`(\|x\|^2\|y\|^2 + (x^Ty)^2)/q` for any rows. It takes n d q operations. The d×q matrix
    stays in memory if it fits a quarter of the memory budget. Otherwise it is computed again for
    every block of rows, in parts of at most 4 MiB, with the same bits.

    Parameters
    ----------
    q, random_state, identity
        As in `RandomMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Gaussian
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Gaussian(1000).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    def draw(self, d: int, seed: int) -> SketchMatrix:
        return GaussianMatrix(d, int(self.q), seed)


class GaussianMatrix(SketchMatrix):
    """A Gaussian matrix; every part has its own stream of random numbers."""

    def __init__(self, d: int, q: int, seed: int) -> None:
        super().__init__(d, q)
        self.seed = seed

    def block(self, first: int, stop: int) -> Matrix:
        normal = stream(self.seed, first // self.step).standard_normal((stop - first, self.q))
        normal /= self.q**0.5
        return normal


class Hadamard(RandomMap):
    r"""Subsampled randomized Hadamard transform :math:`f(x) = \frac{1}{\sqrt q} R H D x`.

    D flips signs at random, H is Hadamard's matrix of size p = 2^m ≥ d with entries ±1, for rows
    padded with zeros, and R samples q coordinates without replacement: Ailon & Chazelle (2009),
    Tropp (2011). Dot products are unbiased. It takes n p log p operations for dense rows, and at
    most q per entry for sparse rows. A single large feature is spread over all coordinates, as by
    a Gaussian matrix.

    Parameters
    ----------
    q, random_state, identity
        As in `RandomMap`.

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
    """Which of the d columns keep their sign, and the q sampled coordinates, in order."""

    def __init__(self, up: npt.NDArray[np.bool_], sample: npt.NDArray[np.int64]) -> None:
        super().__init__(len(up), len(sample))
        self.size = _padded(self.d)
        # The signs carry the factor 1/√q.
        self.signs = np.zeros(self.size)
        self.signs[: self.d] = (2.0 * up - 1.0) / self.q**0.5
        self.up, self.sample = up, sample
        bits = self.size.bit_length() - 1
        rows, columns = 1 << (bits - bits // 2), 1 << (bits // 2)
        self.high = _entries(np.arange(rows), self.sample // columns)
        self.low = _entries(np.arange(columns), self.sample % columns)

    def block(self, first: int, stop: int) -> Matrix:
        j, columns = np.arange(first, stop), len(self.low)
        signs = self.high[j // columns] * self.low[j % columns]
        return signs * self.signs[j, None]

    def _on_host(self, rows: Array) -> Array:
        from mercer.sketches.loops import hadamard

        out, last = np.empty((rows.shape[0], self.q), rows.dtype), np.arange(min(_WIDTH, self.size))
        signs, small = self.signs.astype(rows.dtype), _entries(last, last).astype(rows.dtype)
        hadamard(np.ascontiguousarray(rows), signs, small, self.sample, out)
        return out

    def _on_sparse(self, rows: Any) -> Array:
        from mercer.sketches.loops import hadamard_sparse

        out = np.zeros((rows.shape[0], self.q), rows.dtype)
        csr, signs = (rows.indptr, rows.indices, rows.data), self.signs.astype(rows.dtype)
        hadamard_sparse(csr, signs, (self.high, self.low), out)
        return out


def suggested_size(n: int, error: float, confidence: float = 0.99) -> int:
    r"""Return a q that preserves the dot products of all pairs of n rows.

    With q columns of a Gaussian map, :math:`|f(x)^Tf(y) - x^Ty| \le \epsilon\|x\|\|y\|` for all
    pairs of n rows at once, and each row with itself, with the confidence 1 − δ, where

    .. math:: q = \left\lceil \frac{\ln(2n^2/\delta)}{\epsilon^2/4 - \epsilon^3/6} \right\rceil

    It is the lemma of Johnson & Lindenstrauss as proven by Dasgupta & Gupta (2003), applied to the
    n² lengths of :math:`x/\|x\| \pm y/\|y\|`. It holds for any rows and any d, so it is large; the
    error measured by `mercer.metrics.dot_product_error` is usually far smaller. For SparseSign,
    Hadamard and Hashing it is a guide, not a bound: rows with few large features can have larger
    errors, especially with Hashing.

    Parameters
    ----------
    n : int
        Number of rows.
    error : float
        Wanted ε, above 0 and below 1.
    confidence : float
        Probability, over the draw of the map, that all hold; above 0 and below 1.

    Examples
    --------
    >>> from mercer.sketches import suggested_size
    >>> suggested_size(1000, 0.1)
    8192
    """
    if not (is_real(n) and n >= 1 and n == int(n)):
        raise ValueError(f"n={n!r} must be an integer of at least 1.")
    for name, value in {"error": error, "confidence": confidence}.items():
        if not (is_real(value) and 0 < value < 1):
            raise ValueError(f"{name}={value!r} must be a number above 0 and below 1.")
    log = math.log(2.0) + 2.0 * math.log(n) - math.log1p(-confidence)
    return math.ceil(log / (error**2 / 4 - error**3 / 6))


def _padded(d: int) -> int:
    """Return the power of two that d columns are padded to with zeros."""
    return 1 << (d - 1).bit_length()


def _entries(i: npt.NDArray[Any], j: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """Return entries of Hadamard's matrix: −1 where i and j share an odd number of bits."""
    shared: npt.NDArray[np.int8] = np.bitwise_count(i[:, None] & j[None, :]).astype(np.int8)
    return 1 - 2 * (shared & 1)

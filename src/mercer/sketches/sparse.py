"""Sketches by sparse matrices: feature hashing, and sparse random signs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.checks import check_integer, require
from mercer.sketches.base import RandomMap
from mercer.sketches.matrix import RandomSparseMatrix, SketchMatrix

_SCALINGS = ("unbiased", "paper")


@dataclass(eq=False, repr=False)
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
    random_state, identity
        As in `RandomMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Hashing
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Hashing(1000, hashes=4).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    hashes: int = 1
    _: KW_ONLY
    signed: bool = True
    scaling: str = "unbiased"

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


@dataclass(eq=False, repr=False)
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
    random_state, identity
        As in `RandomMap`.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import SparseSign
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = SparseSign(1000).fit_transform(X)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    nonzeros: int = 8

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

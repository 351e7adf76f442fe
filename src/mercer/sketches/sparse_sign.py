"""Sparse random signs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.checks import check_whole, require
from mercer.sketches.base import RandomMap
from mercer.sketches.drawn import Drawn, stream
from mercer.sketches.scattered import Entries, Scattered, equally


class SparseSign(RandomMap):
    r"""Sparse signs: every feature goes to s places of q, times :math:`\pm 1/\sqrt s`.

    Kane & Nelson (2014). It costs n d s, or the entries of sparse rows times s, and keeps dot
    products as a Gaussian matrix does for far fewer numbers: s = 8 serves in practice (Tropp et
    al. 2019). Unlike several hashes, the places are distinct among all q columns.

    Parameters
    ----------
    q : int
        Number of columns of the result.
    nonzeros : int
        Places of a feature, s; at most q.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws another map every time.
    identity : bool
        Leave rows of q columns or fewer as they are, where otherwise fewer are refused.

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
        check_whole(self, "nonzeros")
        require(self, "nonzeros", self.nonzeros <= self.q, f"at most q={self.q}")

    def draw(self, d: int, seed: int) -> Drawn:
        return Signs(d, int(self.q), int(self.nonzeros), seed)


class Signs(Scattered):
    """Places and signs of every feature."""

    def __init__(self, d: int, q: int, each: int, seed: int) -> None:
        super().__init__(d, q, each)
        self.seed = seed

    def draw(self, number: int, count: int) -> Entries:
        rng = stream(self.seed, number)
        places = distinct(rng, count, self.each, self.q)
        signs = 2.0 * rng.integers(2, size=places.shape) - 1.0
        return equally(places, signs / self.each**0.5)


def distinct(rng: np.random.Generator, n: int, each: int, q: int) -> npt.NDArray[np.int64]:
    """Return n rows of `each` distinct numbers below q, all such sets as likely (Floyd)."""
    drawn = np.empty((n, each), np.int64)
    for k in range(each):
        last = q - each + k
        new = rng.integers(last + 1, size=n)
        taken = (drawn[:, :k] == new[:, None]).any(axis=1)
        drawn[:, k] = np.where(taken, last, new)
    return drawn

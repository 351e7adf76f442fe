"""Feature hashing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.checks import check_whole, require
from mercer.sketches.base import RandomMap
from mercer.sketches.drawn import Drawn, stream
from mercer.sketches.scattered import Entries, Scattered, equally

_SCALINGS = ("unbiased", "paper")


class Hashing(RandomMap):
    r"""Feature hashing: every hash sends a feature to one bucket, with a random sign.

    :math:`f(x)_j = \frac{1}{\sqrt l} \sum_{i: h(i)=j} s(i) x_i` for each of l hashes, one after
    the other: Weinberger et al. (2009), Marukatat (2022), (40) and (46). It costs n d l, and of
    sparse rows their entries times l. With signs, dot products are unbiased, with variance
    :math:`(\|x\|^2\|y\|^2 + (x^Ty)^2 - 2\sum_i x_i^2 y_i^2)/q`.

    Parameters
    ----------
    q : int
        Number of columns of the result, all hashes together; each has q // l buckets, and the
        first q mod l of them one more.
    hashes : int
        Number of hashes, l. More of them make it surer that two large features do not share
        all their buckets, at no change of the variance.
    signed : bool
        False: no signs, the hash kernel of Shi et al. (2009). It is biased: dot products come
        out too large by about :math:`(l/q) \sum_i x_i \sum_j y_j`.
    scaling : {"unbiased", "paper"}
        "paper" divides by l, as (46) prints, where :math:`\sqrt l` is right: all dot products
        are then l times too small. For comparison.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws another map every time.
    identity : bool
        Leave rows of q columns or fewer as they are, where otherwise fewer are refused.

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
        self.hashes = hashes
        self.signed = signed
        self.scaling = scaling

    def check(self) -> None:
        super().check()
        check_whole(self, "hashes")
        require(self, "hashes", self.hashes <= self.q, f"at most q={self.q}: a bucket to each")
        require(self, "signed", isinstance(self.signed, bool), "True or False")
        require(self, "scaling", self.scaling in _SCALINGS, 'one of "unbiased" and "paper"')

    def draw(self, d: int, seed: int) -> Drawn:
        hashes = int(self.hashes)
        scale = 1 / hashes if self.scaling == "paper" else 1 / hashes**0.5
        return Buckets(d, int(self.q), hashes, signed=self.signed, scale=scale, seed=seed)


class Buckets(Scattered):
    """A bucket and a sign for every feature and hash."""

    def __init__(self, d: int, q: int, each: int, *, signed: bool, scale: float, seed: int) -> None:
        super().__init__(d, q, each)
        self.signed, self.scale, self.seed = signed, scale, seed

    def draw(self, number: int, count: int) -> Entries:
        rng = stream(self.seed, number)
        edges = np.arange(self.each + 1) * (self.q // self.each)
        edges += np.minimum(np.arange(self.each + 1), self.q % self.each)
        places = rng.integers(edges[:-1], edges[1:], size=(count, self.each))
        signs = rng.integers(2, size=places.shape) if self.signed else 1.0
        return equally(places, np.broadcast_to(self.scale * (2.0 * signs - 1.0), places.shape))

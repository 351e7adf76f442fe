"""Gaussian random projection."""

from __future__ import annotations

from mercer.arrays import Matrix
from mercer.sketches.base import RandomMap
from mercer.sketches.drawn import Drawn, stream


class Gaussian(RandomMap):
    r"""Gaussian random projection :math:`f(x) = W^T x/\sqrt q`, :math:`W_{ij} \sim N(0, 1)`.

    Marukatat (2022), (36). The variance of a dot product is
    :math:`(\|x\|^2\|y\|^2 + (x^Ty)^2)/q`, whatever the rows. It costs a dense product, n d q;
    the d×q matrix is kept where it fits a quarter of the memory budget, and else made again for
    every block of rows, in pieces of at most 4 MiB: the same bits.

    Parameters
    ----------
    q : int
        Number of columns of the result.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws another map every time.
    identity : bool
        Leave rows of q columns or fewer as they are, where otherwise fewer are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Gaussian
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Gaussian(1000).fit_transform(X)
    >>> Y.shape
    (50, 1000)
    >>> float(np.abs(Y @ Y.T / (X @ X.T) - 1).mean()) < 0.1
    True
    """

    def draw(self, d: int, seed: int) -> Drawn:
        return Projection(d, int(self.q), seed)


class Projection(Drawn):
    """A Gaussian matrix, a stream of random numbers to every piece."""

    def __init__(self, d: int, q: int, seed: int) -> None:
        super().__init__(d, q)
        self.seed = seed

    def block(self, first: int, stop: int) -> Matrix:
        normal = stream(self.seed, first // self.step).standard_normal((stop - first, self.q))
        normal /= self.q**0.5
        return normal

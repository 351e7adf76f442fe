"""Gaussian random projection, and the size that it needs."""

from __future__ import annotations

import math

from mercer.arrays import Matrix
from mercer.checks import is_real
from mercer.sketches.base import RandomMap
from mercer.sketches.matrix import SketchMatrix, stream


class Gaussian(RandomMap):
    r"""Gaussian random projection :math:`f(x) = W^T x/\sqrt q`, :math:`W_{ij} \sim N(0, 1)`.

    Marukatat (2022), (36). The variance of a dot product is
    :math:`(\|x\|^2\|y\|^2 + (x^Ty)^2)/q`, whatever the rows. It costs a dense product, n d q;
    the d×q matrix stays in memory if it fits a quarter of the memory budget. Otherwise it is
    computed again for every block of rows, in parts of at most 4 MiB, with the same bits.

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
    >>> from mercer.sketches import Gaussian
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> Y = Gaussian(1000).fit_transform(X)
    >>> Y.shape
    (50, 1000)
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


def suggested_size(n: int, error: float, confidence: float = 0.99) -> int:
    r"""Return a q that keeps the dot products of all pairs of n rows.

    With q columns of a Gaussian map, :math:`|f(x)^Tf(y) - x^Ty| \le \epsilon\|x\|\|y\|` for all
    pairs of n rows at once, and each row with itself, with the confidence 1 − δ, where

    .. math:: q = \left\lceil \frac{\ln(2n^2/\delta)}{\epsilon^2/4 - \epsilon^3/6} \right\rceil

    From the lemma of Johnson & Lindenstrauss as Dasgupta & Gupta (2003) prove it: a squared
    length is off by more than a share ε with probability below
    :math:`2\exp(-q(\epsilon^2/4-\epsilon^3/6))`; dot products follow from the lengths of
    :math:`x/\|x\| \pm y/\|y\|`, and n² such lengths are asked for. It holds whatever the rows
    and whatever d, so it is large; the error measured by `mercer.metrics.dot_product_error` is
    usually far smaller. For SparseSign, Hadamard and Hashing it is a guide, not a bound: their
    dot products have about the same variance, but rows of few large features can do worse, by
    Hashing above all.

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
        raise ValueError(f"n={n!r} must be a whole number of rows, 1 or more.")
    for name, value in {"error": error, "confidence": confidence}.items():
        if not (is_real(value) and 0 < value < 1):
            raise ValueError(f"{name}={value!r} must be a number above 0 and below 1.")
    log = math.log(2.0) + 2.0 * math.log(n) - math.log1p(-confidence)
    return math.ceil(log / (error**2 / 4 - error**3 / 6))

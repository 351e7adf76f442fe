"""How near the dot products of a sketch are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.checks import is_real
from mercer.config import get_config
from mercer.data import ArraySource, Search, Source, as_source, not_finite
from mercer.sketches import Drawn, RandomMap, SketchMap

# Rows whose pairs are taken together.
_GROUP = 128
# A size found by trial may be larger than the smallest by this share.
_LOOSE = 0.05


@dataclass(frozen=True)
class DotProductError:
    """Mean absolute proportion error of dot products; ``float()`` gives the mean.

    Attributes
    ----------
    mean : float
        Mean of |f(x)ᵀf(y) − xᵀy| / |xᵀy|; NaN where all dot products are zero.
    pairs : int
        Number of pairs it is the mean of.
    zeros : int
        Number of pairs left out: those whose dot product is exactly zero.
    """

    mean: float
    pairs: int
    zeros: int

    def __float__(self) -> float:
        return self.mean


def dot_product_error(
    sketch: SketchMap | Drawn, X: Any, pairs: int = 10000, random_state: Any = 0
) -> DotProductError:
    r"""Return the mean absolute proportion error (MAPE) of the dot products of a sketch.

    The mean of :math:`|f(x)^Tf(y) - x^Ty| / |x^Ty|` over pairs of different rows, as in
    Marukatat (2022), Fig. 6. The rows are taken as they are, not centred: centred rows have dot
    products near zero, which make the proportion meaningless (3 % becomes 113 % on the same
    images). Of rows that were centred before, or of sparse rows that share few columns, look at
    :math:`|f(x)^Tf(y) - x^Ty|/(\|x\|\|y\|)` instead.

    Parameters
    ----------
    sketch : SketchMap or Drawn
        Map; as fitted where it is fitted, else as drawn for X.
    X : array-like, sparse matrix, DataFrame, array of another library, path or Source
        Rows.
    pairs : int
        Number of pairs to sample; all of them where there are no more.
    random_state : int or numpy.random.Generator
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import dot_product_error
    >>> from mercer.sketches import Gaussian
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> found = dot_product_error(Gaussian(1000), X)
    >>> found.pairs
    1225
    >>> 0.01 < found.mean < 0.05
    True
    """
    if not isinstance(sketch, (SketchMap, Drawn)):
        raise ValueError(f"sketch={sketch!r} must be a map such as mercer.sketches.Gaussian(500).")
    if not (is_real(pairs) and pairs >= 1 and pairs == int(pairs)):
        raise ValueError(f"pairs={pairs!r} must be a whole number, 1 or more.")
    source = as_source(X)
    if source.shape[0] < 2:
        raise ValueError(f"X has {source.shape[0]} rows, and a pair needs two.")
    drawn = sketch if isinstance(sketch, Drawn) else sketch.drawn_for(source)
    total, used, zeros = 0.0, 0, 0
    for rows in _groups(source, int(pairs), np.random.default_rng(random_state)):
        exact, made = _upper(rows), _upper(to_numpy(drawn.apply(rows)))
        left = int(pairs) - used - zeros
        exact, made = exact[:left], made[:left]
        some = exact != 0.0
        total += float(np.sum(np.abs(made[some] - exact[some]) / np.abs(exact[some])))
        used, zeros = used + int(some.sum()), zeros + int((~some).sum())
    return DotProductError(total / used if used else float("nan"), used, zeros)


def measured_size(
    sketch: RandomMap, X: Any, error: float, pairs: int = 10000, random_state: Any = 0
) -> int:
    r"""Return a q with which the measured error of dot products is at most the one wanted.

    `mercer.sketches.suggested_size` tells a q for any rows; this one tries maps on the rows at
    hand, with the seed of `sketch`, and is mostly far smaller. The error falls as
    :math:`1/\sqrt q`, so one trial tells where the next should be; q is at most 5 % above one
    that did not do, on the same pairs.

    Parameters
    ----------
    sketch : Gaussian, Hashing, SparseSign or Hadamard
        Map; its q is where the search begins.
    X : array-like, sparse matrix, DataFrame, array of another library, path or Source
        Rows, not centred: see `dot_product_error`.
    error : float
        Wanted mean of `dot_product_error`, above 0.
    pairs : int
        Number of pairs to sample.
    random_state : int
        Seed of the sample.

    Returns
    -------
    int
        At most the number of columns d. At d nothing smaller does, and rows had better stay
        as they are: ``identity=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import dot_product_error, measured_size
    >>> from mercer.sketches import Hashing, suggested_size
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> q = measured_size(Hashing(100), X, 0.05)
    >>> dot_product_error(Hashing(q), X).mean <= 0.05
    True
    >>> q < suggested_size(50, 0.05) / 10
    True
    """
    if not isinstance(sketch, RandomMap):
        raise ValueError(f"sketch={sketch!r} must be a map of any size, such as Gaussian(500).")
    if not (is_real(error) and 0 < error < np.inf):
        raise ValueError(f"error={error!r} must be a positive number.")
    sketch.check()
    source = as_source(X)
    given = sketch.get_params(deep=False) | {"identity": True}
    # Hashes and places of a feature must not outnumber the columns.
    least = int(max([1, *(given[name] for name in ("hashes", "nonzeros") if name in given)]))
    few, enough = least - 1, max(least, source.shape[1])
    q = min(int(sketch.q), enough)
    while enough > (1 + _LOOSE) * few + 1:
        tried = type(sketch)(**(given | {"q": q}))
        found = dot_product_error(tried, source, pairs, random_state).mean
        if np.isnan(found):
            raise ValueError("all dot products of X are zero: no error of theirs can be measured.")
        few, enough = (few, q) if found <= error else (q, enough)
        guess = math.ceil(q * min((found / error) ** 2, 1e6) * (1 + _LOOSE / 2))
        # Where the guess is no step forward: the middle of what is left.
        q = guess if few < guess < enough else (few + enough) // 2
    return min(enough, source.shape[1])


def _groups(source: Source, pairs: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield rows whose pairs make up as many as wanted: all rows, or a few at a time."""
    n, d = source.shape
    room = max(2, get_config().budget // 8 // (8 * d))
    few = min(n, room, _GROUP)
    if n <= room and n * (n - 1) // 2 <= pairs:
        yield _taken(source, np.arange(n))
        return
    for _ in range(-(-pairs // (few * (few - 1) // 2))):
        yield _taken(source, np.sort(rng.choice(n, few, replace=False)))


def _taken(source: Source, at: Any) -> Any:
    rows = source.take(at)
    search = ArraySource(rows, source.names).fold(Search())
    if search.found is not None:
        row, column, value = search.found
        raise not_finite((int(at[row]), column, value), source)
    return rows


def _upper(rows: Any) -> Vector:
    """Return the dot products of different rows, in float64."""
    R: Matrix = to_numpy(rows).astype(np.float64)
    dots: Vector = (R @ R.T)[np.triu_indices(len(R), 1)]
    return dots

"""How near the dot products of a sketch are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.config import get_config
from mercer.kernels.parameters import is_number
from mercer.sketches import Drawn, SketchMap
from mercer.sources import ArraySource, Search, Source, as_source, not_finite

# Rows whose pairs are taken together.
_GROUP = 128


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
    if not (is_number(pairs) and pairs >= 1 and pairs == int(pairs)):
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

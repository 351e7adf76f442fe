"""Errors of dot products of a sketch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.checks import is_real
from mercer.config import get_config
from mercer.data import ArraySource, NonFiniteSearch, Source, as_source, not_finite
from mercer.sketches import RandomMap, SketchMap, SketchMatrix

# Rows whose pairs are compared together.
_GROUP = 128
# A measured size may exceed the smallest by this share.
_LOOSE = 0.05


@dataclass(frozen=True)
class DotProductError:
    """Mean absolute proportion error of dot products; ``float()`` gives the mean.

    Attributes
    ----------
    mean : float
        Mean of |f(x)ᵀf(y) − xᵀy| / |xᵀy|; NaN if all dot products are zero.
    pairs, zeros : int
        Number of pairs in the mean, and of those left out because their dot product is zero.
    """

    mean: float
    pairs: int
    zeros: int

    def __float__(self) -> float:
        return self.mean


def dot_product_error(
    sketch: SketchMap | SketchMatrix, X: Any, pairs: int = 10000, random_state: Any = 0
) -> DotProductError:
    r"""Return the mean absolute proportion error (MAPE) of the dot products of a sketch.

    The mean of :math:`|f(x)^Tf(y) - x^Ty| / |x^Ty|` over pairs of different rows, as in
    Marukatat (2022), Fig. 6. The rows are not centered: centered rows have dot products near zero,
    which make the proportion meaningless (3 % becomes 113 % for the same images). For centered
    rows, or sparse rows that share few columns, use :math:`|f(x)^Tf(y) - x^Ty|/(\|x\|\|y\|)`.

    Parameters
    ----------
    sketch : SketchMap or SketchMatrix
        The map; if it is not fitted, it is drawn for X.
    X : array-like, sparse matrix, DataFrame, array of another library, path or Source
        Rows.
    pairs : int
        Number of pairs to sample; all if there are no more.
    random_state : int or numpy.random.Generator
        Seed of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.metrics import dot_product_error
    >>> from mercer.sketches import Gaussian
    >>> X = np.random.default_rng(0).random((50, 5000))
    >>> error = dot_product_error(Gaussian(1000), X)
    >>> error.pairs, 0.01 < error.mean < 0.05
    (1225, True)
    """
    if not isinstance(sketch, (SketchMap, SketchMatrix)):
        raise ValueError(f"sketch={sketch!r} must be a map such as mercer.sketches.Gaussian(500).")
    if not (is_real(pairs) and pairs >= 1 and pairs == int(pairs)):
        raise ValueError(f"pairs={pairs!r} must be an integer of at least 1.")
    source = as_source(X)
    if source.shape[0] < 2:
        raise ValueError(f"X has {source.shape[0]} rows, but a pair needs two.")
    transform = sketch if isinstance(sketch, SketchMatrix) else sketch.current_matrix(source)
    total, used, zeros = 0.0, 0, 0
    for rows in _groups(source, int(pairs), np.random.default_rng(random_state)):
        both = (to_numpy(part).astype(np.float64) for part in (rows, transform.apply(rows)))
        upper = np.triu_indices(int(rows.shape[0]), 1)
        exact, approximate = ((R @ R.T)[upper][: int(pairs) - used - zeros] for R in both)
        nonzero = exact != 0.0
        error = np.abs(approximate[nonzero] - exact[nonzero]) / np.abs(exact[nonzero])
        total += float(np.sum(error))
        used, zeros = used + int(nonzero.sum()), zeros + int((~nonzero).sum())
    return DotProductError(total / used if used else float("nan"), used, zeros)


def measured_size(
    sketch: RandomMap, X: Any, error: float, pairs: int = 10000, random_state: Any = 0
) -> int:
    r"""Return a size q for which the measured error of dot products is small enough.

    `mercer.sketches.suggested_size` returns a q for any rows; this one tries maps on X, with the
    seed of `sketch`, and is usually far smaller. The error falls as :math:`1/\sqrt q`, which
    predicts the next q to try; the result is at most 5 % above a q that failed on the same pairs.
    If it is the number of columns, no smaller sketch suffices: keep the rows as they are with
    ``identity=True``.

    Parameters
    ----------
    sketch : Gaussian, Hashing, SparseSign or Hadamard
        The map; the search starts from its q.
    error : float
        Largest mean of `dot_product_error`, above 0, which the other parameters are for.

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
    params = sketch.get_params(deep=False) | {"identity": True}
    # A feature must not have more hashes or nonzeros than the sketch has columns.
    least = int(max([1, *(params[name] for name in ("hashes", "nonzeros") if name in params)]))
    few, enough = least - 1, max(least, source.shape[1])
    q = min(int(sketch.q), enough)
    while enough > (1 + _LOOSE) * few + 1:
        trial = type(sketch)(**(params | {"q": q}))
        measured = dot_product_error(trial, source, pairs, random_state).mean
        if np.isnan(measured):
            raise ValueError("All dot products of X are zero: their relative error is undefined.")
        few, enough = (few, q) if measured <= error else (q, enough)
        guess = math.ceil(q * min((measured / error) ** 2, 1e6) * (1 + _LOOSE / 2))
        # Bisect if the guess is outside the bracket.
        q = guess if few < guess < enough else (few + enough) // 2
    return min(enough, source.shape[1])


def _groups(source: Source, pairs: int, rng: np.random.Generator) -> Iterator[Any]:
    """Yield groups of rows with enough pairs: all rows, or random samples of a few."""
    n, d = source.shape
    every = n * (n - 1) // 2 <= pairs and 8 * n * d <= get_config().budget // 8
    few = n if every else min(n, _GROUP)
    for _ in range(1 if every else -(-pairs // (few * (few - 1) // 2))):
        chosen = np.arange(n) if every else np.sort(rng.choice(n, few, replace=False))
        rows = source.take(chosen)
        search = ArraySource(rows, source.names).fold(NonFiniteSearch())
        if search.found is not None:
            row, column, value = search.found
            raise not_finite((int(chosen[row]), column, value), source)
        yield rows

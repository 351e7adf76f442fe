"""How far computed kernel values can be from exact ones.

A kernel states it in `roundings`: the factor C with |k̂(x,y) − k(x,y)| ≤ C u √(k(x,x)k(y,y)),
u the unit roundoff. It holds for every pair, because squared distances that cancellation would
spoil are summed again from the differences (`Pair.sqdist`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Vector, namespace, to_numpy
from mercer.arrays.rounding import FEW, summed
from mercer.kernels.pair import CLOSE
from mercer.kernels.points import Points


def compounded(each: Any, power: int, dtype: Any) -> Any:
    """Return the error of a power, given that of its base, in unit roundoffs."""
    u = float(np.finfo(dtype).eps) / 2
    with np.errstate(over="ignore"):
        return np.expm1(power * np.log1p(each * u)) / u


def columns(x: Points) -> int:
    """Return the number of columns."""
    return 1 if isinstance(x.rows, list) else int(x.rows.shape[1])


def dot(x: Points, dtype: Any) -> float:
    """Return the error of dot products, relative to the lengths of both rows."""
    reference = None if isinstance(x.rows, list) or x.sparse else x.rows
    return summed(columns(x), dtype, reference) + FEW


def distances(x: Points, y: Points, dtype: Any) -> tuple[float, Vector]:
    """Return the errors of squared distances, in unit roundoffs: relative, and absolute.

    The absolute one for each row of x: beside any row of y the dot products and squared lengths
    that a distance is made of are no larger than the sum of both squared lengths. A distance
    below a share of that is summed again, which bounds the relative one.
    """
    per = 2.0 * dot(x, dtype)
    shift = y.shift
    with np.errstate(over="ignore", invalid="ignore"):
        here, there = x.shifted(shift).norms, y.shifted(shift).norms
        far = float(namespace(there).max(there)) if len(y) else 0.0
        spread = to_numpy(here).astype(np.float64) + far
    spread = np.where(np.isnan(spread), np.inf, spread)
    return per / CLOSE[np.dtype(dtype)], per * spread

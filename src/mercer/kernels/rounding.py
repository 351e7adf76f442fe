"""How far computed kernel values can be from exact ones.

A kernel states it in `roundings`: the factor C with |k̂(x,y) − k(x,y)| ≤ C u √(k(x,x)k(y,y)),
u the unit roundoff. It holds for every pair, because squared distances that cancellation would
spoil are summed again from the differences (`Pair.sqdist`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import Vector, namespace, to_numpy
from mercer.kernels.pair import CLOSE
from mercer.kernels.points import Points

# Elementary functions and the few operations around them.
FEW = 8.0
# A sum of d rounded terms is off by 3.3 u √d at most with 99.9 %, where roundings are independent
# (Higham & Mary 2019); by d u always. Those of equal terms drift: in a matrix product, which keeps
# several sums, by less than a quarter of d.
_LIKELY, _DRIFT = 3.3, 0.25


def confidence(dtype: Any) -> float:
    """Return the probability with which `roundings` holds: float32 sums are taken as random."""
    return 1.0 if np.dtype(dtype) == np.float64 else 0.999


def summed(d: float, dtype: Any) -> float:
    """Return the relative error of a sum of d products, in unit roundoffs."""
    if confidence(dtype) == 1.0:
        return float(d)
    return min(float(d), max(_LIKELY * math.sqrt(d), _DRIFT * d))


def compounded(each: Any, power: int, dtype: Any) -> Any:
    """Return the error of a power, given that of its base, in unit roundoffs."""
    u = float(np.finfo(dtype).eps) / 2
    with np.errstate(over="ignore"):
        return np.expm1(power * np.log1p(each * u)) / u


def columns(x: Points) -> int:
    """Return the number of columns."""
    return 1 if isinstance(x.rows, list) else int(x.rows.shape[1])


def distances(x: Points, y: Points, dtype: Any) -> tuple[float, Vector]:
    """Return the errors of squared distances, in unit roundoffs: relative, and absolute.

    The absolute one for each row of x: beside any row of y the dot products and squared lengths
    that a distance is made of are no larger than the sum of both squared lengths. A distance
    below a share of that is summed again, which bounds the relative one.
    """
    per = 2.0 * (summed(columns(x), dtype) + FEW)
    shift = y.shift
    with np.errstate(over="ignore", invalid="ignore"):
        here, there = x.shifted(shift).norms, y.shifted(shift).norms
        far = float(namespace(there).max(there)) if len(y) else 0.0
        spread = to_numpy(here).astype(np.float64) + far
    spread = np.where(np.isnan(spread), np.inf, spread)
    return per / CLOSE[np.dtype(dtype)], per * spread

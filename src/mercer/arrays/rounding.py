"""How far computed sums can be from exact ones, in unit roundoffs u = ε/2 of a precision.

Float64 sums of n products are off by n u at most, whatever their order. For float32 that would
say nothing: 3.3 u √n holds with 99.9 % where roundings are independent (Higham & Mary 2019), and
roundings of equal terms, which are not, drift by a third of the terms that are added one after
the other. A matrix product on the host adds a few hundred so, on a device it may be all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays.places import Array, on_accelerator

FEW = 8.0
"""Unit roundoffs of an elementary function and the few operations around it."""
LIKELY = 3.3
"""Unit roundoffs for the root of the number of terms, which independent roundings stay below."""

_DRIFT, _RUN = 1.0 / 3.0, 384


def confidence(dtype: Any) -> float:
    """Return the probability with which bounds on rounding hold."""
    return 1.0 if np.dtype(dtype) == np.float64 else 0.999


def drift(terms: float, reference: Array = None) -> float:
    """Return what roundings of equal terms add up to in a float32 product."""
    device = reference is not None and on_accelerator(reference)
    return _DRIFT * (terms if device else min(terms, _RUN))


def summed(terms: float, dtype: Any, reference: Array = None) -> float:
    """Return the relative error of a sum of products where the reference lives."""
    if confidence(dtype) == 1.0:
        return float(terms)
    return min(float(terms), max(LIKELY * math.sqrt(terms), drift(terms, reference)))

"""Weights of rows, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Vector, to_numpy
from mercer.data.finite import require_present
from mercer.data.source import Source
from mercer.messages import format_parameter

# Shares that sum to one may do so from above: the variance would be divided by rounding.
_ROUNDING = 1e-6


def check_weights(weights: Any, source: Source, least: float = 1.0) -> Vector | None:
    """Return weights as float64, one a row; they must sum to more than `least`."""
    if weights is None:
        weights = source.weights
    elif source.weights is not None:
        raise ValueError("sample_weight was given, and the Source has weights: pass only one.")
    if weights is None:
        return None
    n = source.shape[0]
    name = format_parameter("sample_weight")
    require_present(weights, name)
    try:
        w = np.asarray(to_numpy(weights), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one a row of {n}: {error}.") from None
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(n,)}: one weight a row.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(
            f"{name}[{bad[0]}] is {w[bad[0]]}; weights are counts: finite and not negative."
        )
    if not np.any(w):
        raise ValueError(f"All entries of {name} are zero: no row counts. Drop the weights.")
    if not w.sum() > least * (1.0 + _ROUNDING):
        raise ValueError(
            f"{name} sums to {w.sum():g}; weights are counts of rows, and the variance "
            f"needs more than one row. Multiply them by the number of rows they stand for."
        )
    return w

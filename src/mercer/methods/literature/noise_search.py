"""The noise at which a wanted number of points keep a weight (for Tipping's model)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.methods.literature.noise_model import Fit, NoiseModel, ascent

# The least noise tried, as a share of the most: below it digits are lost.
_FAINT = 1e-10
# Values of the noise that are tried, at most, and how near two of them may come.
_TRIALS, _NEAR = 40, 1e-3
# How much less noise is tried where too few points are left and no less is known.
_FALL = 8.0
# How far from both ends the next value is, as a share of what lies between.
_INSIDE = 0.35


def highest(model: NoiseModel, weights: Vector | None = None, **how: Any) -> Fit:
    """Return the model of the largest likelihood: from these weights, or from equal ones."""
    start = np.full(len(model.points), 1.0 / model.count) if weights is None else weights
    *_, fit = ascent(model, start, **how)
    return fit


def sought(model: NoiseModel, wanted: int, **how: Any) -> Fit:
    """Return the fit that leaves so many points, or of those tried the nearest number.

    Fewer are left the more noise there is, with few exceptions: interpolation of their number
    between too little noise and too much, each fit starting from the last. The first guess is
    the variance along the last axis of as many: PCA's own noise.
    """
    most = float(model.variances.max())
    least = _FAINT * most
    guess = float(model.scatter[min(wanted, len(model.scatter)) - 1]) / model.count
    few, many = (math.log(most), 1), (math.log(least), 0)  # where too few, too many are left
    best: Fit | None = None
    last: Fit | None = None
    at = min(max(math.log(max(guess, least)), many[0]), few[0] - 0.1)
    for _ in range(_TRIALS):
        weights = None if last is None else last.weights
        last = highest(model.of(math.exp(at)), weights, **how)
        left = max(1, len(last.kept))
        best = last if best is None else min(best, last, key=lambda fit: _off(fit, wanted))
        if left == wanted or (left < wanted and at == many[0]):
            break
        few, many = (few, (at, left)) if left > wanted else ((at, left), many)
        if few[0] - many[0] < _NEAR:
            break
        at = _between(few, many, wanted)
    assert best is not None
    return best


def _off(fit: Fit, wanted: int) -> tuple[int, int]:
    """Order fits by how far off their number is; of two as far the one of more points first."""
    left = len(fit.kept)
    return abs(left - wanted), -left


def _between(few: tuple[float, int], many: tuple[float, int], wanted: int) -> float:
    """Return the noise where as many are expected, of logarithms of noise and numbers."""
    if not many[1]:  # nothing is known of less noise
        return max(many[0], few[0] - math.log(_FALL))
    share = (math.log(wanted) - math.log(few[1])) / (math.log(many[1]) - math.log(few[1]))
    return few[0] + min(max(share, _INSIDE), 1.0 - _INSIDE) * (many[0] - few[0])

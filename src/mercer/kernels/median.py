"""The median distance between rows, for the scale of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.data import Search, Source, not_finite
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Beside, Pair
from mercer.kernels.points import Points


def median_distance(
    kernel: Kernel,
    X: Any,
    distance: Callable[[Pair], Any],
    size: int = 1000,
    random_state: int = 0,
) -> float:
    """Return the median distance between rows, some of them drawn; of those above 0 if it is 0."""
    source, name = kernel._rows(X), f"{type(kernel).__name__}.from_median"
    rows = _drawn_rows(source, size, np.random.default_rng(random_state))
    if len(rows) < 2:
        raise ValueError(f"{name}: {len(rows)} rows have no distance.")
    points = Points(source.take(rows))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = to_numpy(distance(next(Beside(points, points).tiles(whole=True))))
        apart = apart[np.triu_indices(len(points), 1)]
        found = float(np.median(apart))
        if found == 0 and np.any(apart > 0):
            found = float(np.median(apart[apart > 0]))
    if not np.isfinite(found):
        place = source.fold(Search()).found
        error = not_finite(place, source)
        raise ValueError(f"{name}: X contains NaN or infinity. {error}") if place else error
    if found == 0:
        raise ValueError(
            f"{name}: the {len(points)} rows drawn are equal, and have no distance. Pass a number "
            f"as gamma instead."
        )
    return found


def _drawn_rows(source: Source, size: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Return the numbers of some rows, all where there are no more; each as often as it counts."""
    numbers, weights = np.arange(source.shape[0]), source.weights
    if weights is not None and source.count <= size and np.array_equal(weights, np.round(weights)):
        return np.repeat(numbers, weights.astype(int))
    if weights is None or np.allclose(weights, weights[0], rtol=1e-9, atol=0.0):
        return np.sort(rng.permutation(numbers)[:size])
    return np.sort(rng.choice(numbers, size, p=weights / source.count))

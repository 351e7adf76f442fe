"""A warning where the scale of a kernel does not suit the distances between the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, eigvalsh, is_dask, to_numpy
from mercer.data import ArraySource, SparseSource, as_source
from mercer.estimators.kernel import has_gamma
from mercer.kernels import Kernel
from mercer.kernels.stationary import DistanceDecay, Stationary
from mercer.messages import format_parameter, warn
from mercer.methods import Adaptive, Exact, Subset
from mercer.problem import KernelProblem

# Rows that are compared, and the fewest that tell anything.
_SAMPLE, _LEAST = 200, 20
# Near the identity: median and mean value between rows, and the share of the first component,
# which is that of a few rows, or as small as this.
_MEDIAN, _MEAN, _SHARE, _ROWS = 1e-3, 5e-3, 5e-3, 3.0
# Near constant: by how much values between rows differ.
_SPREAD = 1e-3


class KernelScaleWarning(UserWarning):
    """The kernel matrix is close to the identity, or close to constant."""


def warn_of_scale(model: Any, problem: KernelProblem) -> None:
    """Warn where the kernel matrix of a fitted model is close to the identity, or to constant.

    Judged by kernel values between some of the rows that are in memory; for kernels of a distance
    only, which have a scale.
    """
    kernel, source = problem.kernel, problem.source
    if not isinstance(kernel, (Stationary, DistanceDecay)) or model.gamma == "median":
        return
    in_memory, points = (ArraySource, SparseSource), model.X_fit_
    if not isinstance(source, in_memory) and points is not None and not is_dask(points):
        source = as_source(points)
    n = source.shape[0]
    if not isinstance(source, in_memory) or n < _LEAST or _large(model, problem):
        return
    drawn = np.sort(np.random.default_rng(0).permutation(n)[:_SAMPLE])
    rows = source.take(drawn)
    if not source.sparse and not np.ptp(to_numpy(rows), axis=0).any():
        return  # equal rows, whatever the kernel
    message = _found(to_numpy(kernel(rows)).astype(np.float64))
    if message is not None:
        close, fact, size = message
        warn(
            f"the kernel matrix is close to {close}, judging from {len(drawn)} rows: {fact}. "
            f"{_remedy(model.kernel, kernel, size)}",
            KernelScaleWarning,
        )


def _large(model: Any, problem: KernelProblem) -> bool:
    """Tell whether the first component has a large share, of a variance that is no rounding.

    Of methods that estimate variances by those of the rows: others overrate them.
    """
    if not isinstance(model.plan_.method, (Exact, Subset, Adaptive)) or not model.n_components_:
        return False
    first = float(to_numpy(model.explained_variance_ratio_[:1])[0])
    large = first > max(_SHARE, _ROWS / problem.divisor)
    return large and model.projection_.total_variance > 10.0 * _SPREAD


def _found(K: Matrix) -> tuple[str, str, str] | None:
    """Return what the matrix is close to, by which fact, and what its γ is; None if neither."""
    values = K[np.triu_indices(len(K), 1)]
    middle, spread = float(np.median(values)), float(np.ptp(values))
    if middle <= _MEDIAN and values.mean() <= _MEAN:
        centred = K - K.mean(axis=0)
        spectrum = eigvalsh(centred - centred.mean(axis=1)[:, None])
        first = spectrum[-1] / spectrum.sum()
        if first > max(_SHARE, _ROWS / len(K)):
            return None
        fact = (
            f"the first component of these rows explains only {100 * first:.2g} % of their "
            f"variance, and the median kernel value between different rows is {middle:.1g}"
        )
        return "the identity", fact, "large"
    if spread <= _SPREAD:
        return "constant", f"kernel values between rows differ by {spread:.1g} at most", "small"
    return None


def _remedy(given: Any, kernel: Kernel, size: str) -> str:
    """Say what would suit the rows."""
    if not isinstance(kernel, DistanceDecay):
        other = "small" if size == "large" else "large"
        larger = "larger" if size == "large" else "smaller"
        return f"The length of {kernel!r} is {other} for these rows: choose a {larger} one."
    if not isinstance(given, str):
        better = f"{type(kernel).__name__}.from_median(X)"
    else:
        better = format_parameter("gamma", "median")
        if not has_gamma(given):
            better = f"{format_parameter('kernel', kernel.name)} with {better}"
    gamma = format_parameter("gamma", float(f"{kernel.gamma:.3g}"))
    return f"{gamma} is {size} for these rows: try {better}; scaling the columns may help too."

"""A warning where the scale of a kernel does not suit the distances between the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Vector, is_dask, to_numpy
from mercer.estimators.kernel import has_gamma
from mercer.kernels import RBF, ExponentialChiSquare, Kernel, Laplacian
from mercer.kernels.distances import Stationary
from mercer.notices import warn
from mercer.problem import KernelProblem
from mercer.sources import ArraySource, SparseSource, as_source

# Rows that are compared, and the fewest that tell anything.
_SAMPLE, _LEAST = 200, 20
# Near the identity: median and mean value between rows, and the share of the first component,
# which is that of a few rows, or as small as this.
_MEDIAN, _MEAN, _SHARE, _ROWS = 1e-3, 5e-3, 5e-3, 3.0
# Near constant: by how much values between rows differ.
_SPREAD = 1e-3
_NAMES: dict[type[Kernel], str] = {
    RBF: "rbf",
    Laplacian: "laplacian",
    ExponentialChiSquare: "chi2",
}


class KernelScaleWarning(UserWarning):
    """The kernel matrix is close to the identity, or close to constant."""


def warn_of_scale(model: Any, problem: KernelProblem) -> None:
    """Warn where the kernel matrix of a fitted model is close to the identity, or to constant.

    Judged by kernel values between some of the rows that are in memory, and by the share of the
    first component; for kernels of a distance only, which have a scale.
    """
    kernel, source = problem.kernel, problem.source
    if not isinstance(kernel, (Stationary, ExponentialChiSquare)) or model.gamma == "median":
        return
    if model.X_fit_ is not None and not is_dask(model.X_fit_):
        source = as_source(model.X_fit_)
    n = source.shape[0]
    if not isinstance(source, (ArraySource, SparseSource)) or n < _LEAST or not model.n_components_:
        return
    first = float(to_numpy(model.explained_variance_ratio_[:1])[0])
    # Values that are all the same leave no component a large share, or no variance at all.
    large = first > max(_SHARE, _ROWS / problem.divisor)
    if large and model.projection_.total_variance > 10.0 * _SPREAD:
        return
    drawn = np.sort(np.random.default_rng(0).permutation(n)[:_SAMPLE])
    values = to_numpy(kernel(source.take(drawn)))[np.triu_indices(len(drawn), 1)]
    message = _found(values.astype(np.float64), first, problem.divisor)
    if message is not None:
        close, fact, size = message
        warn(
            f"the kernel matrix is close to {close}: {fact} (estimated from {len(drawn)} rows). "
            f"{_remedy(model.kernel, kernel, size)}",
            KernelScaleWarning,
        )


def _found(values: Vector, first: float, rows: float) -> tuple[str, str, str] | None:
    """Return what the matrix is close to, by which fact, and what its γ is; None if neither."""
    middle, spread = float(np.median(values)), float(np.ptp(values))
    if middle <= _MEDIAN and values.mean() <= _MEAN and first <= max(_SHARE, _ROWS / rows):
        fact = (
            f"the first component explains only {100 * first:.2g} % of the variance, and the "
            f"median kernel value between different rows is {middle:.1g}"
        )
        return "the identity", fact, "large"
    if spread <= _SPREAD:
        return "constant", f"kernel values between rows differ by {spread:.1g} at most", "small"
    return None


def _remedy(given: Any, kernel: Kernel, size: str) -> str:
    """Say what would suit the rows."""
    name, scaled = _NAMES.get(type(kernel)), "scaling the columns may help too"
    if name is None:
        other = "small" if size == "large" else "large"
        larger = "larger" if size == "large" else "smaller"
        return f"The length of {kernel!r} is {other} for these rows: choose a {larger} one."
    if not isinstance(given, str):
        better = f"{type(kernel).__name__}.from_median(X)"
    else:
        better = 'gamma="median"' if has_gamma(given) else f'kernel="{name}" with gamma="median"'
    gamma = kernel.get_params()["gamma"]
    return f"gamma={gamma:.3g} is {size} for these rows: try {better}; {scaled}."

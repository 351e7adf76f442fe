"""The kernel that the parameters of an estimator describe, and a check of its scale."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.arrays import eigvalsh, is_dask, to_numpy
from mercer.data import ArraySource, Source, SparseSource, StringSource, as_source
from mercer.kernels import RBF, FromFunction, Kernel, as_kernel
from mercer.kernels.base import KERNELS
from mercer.kernels.stationary import DistanceDecay, Stationary
from mercer.messages import ParameterError, format_parameter, warn
from mercer.methods import Adaptive, Exact, Subset
from mercer.methods.preparation import column_statistics
from mercer.params import arguments
from mercer.problem import KernelProblem, Problem
from mercer.rules import Count

# Number of rows that are compared, and the fewest that are worth comparing.
_SAMPLE, _MIN_ROWS = 200, 20
# Close to the identity: largest median and mean kernel value between rows, and largest share of
# the first component, which may also be that of a few rows.
_MEDIAN, _MEAN, _SHARE, _ROWS = 1e-3, 5e-3, 5e-3, 3.0
# Close to constant: largest difference between kernel values.
_SPREAD = 1e-3


def resolve_kernel(estimator: Any, source: Source) -> tuple[Kernel | None, float | None]:
    """Return the kernel of an estimator's parameters and its γ; the kernel is None if precomputed.

    γ is None for kernels that are not given by their name.
    """
    kernel, gamma, kernel_params = estimator.kernel, estimator.gamma, estimator.kernel_params
    strings, value, resolved = isinstance(source, StringSource), None, kernel
    if callable(kernel) and not isinstance(kernel, Kernel):
        # The function itself where possible: two fits with one function have equal kernels.
        function = partial(kernel, **kernel_params) if kernel_params else kernel
        return FromFunction(function, pairwise=True), None
    if isinstance(kernel, Kernel):
        if gamma is not None:
            raise ValueError(f"gamma={gamma!r} and kernel={kernel!r}: set gamma in the kernel.")
        resolved = clone(kernel)
    else:
        value = None if strings else _gamma(kernel, gamma, source)
        if kernel == "precomputed":
            return None, value
        number = gamma
        if isinstance(gamma, str) or (not strings and (gamma is not None or has_gamma(kernel))):
            number = value
        resolved = as_kernel(kernel, number, estimator.degree, estimator.coef0)
    resolved.check()
    if resolved.takes not in ("strings" if strings else "vectors", "anything"):
        raise ParameterError(
            "kernel",
            resolved,
            f"takes {resolved.takes}, but X contains {'strings' if strings else 'numbers'}.",
        )
    return resolved, value


def has_gamma(name: str) -> bool:
    """Return whether this is the name of a kernel with a parameter γ."""
    return name in KERNELS and "gamma" in arguments(KERNELS[name])


def _gamma(kernel: str, gamma: float | str | None, source: Source) -> float:
    """Return γ as given, scikit-learn's default 1/d, or a value computed from the rows."""
    d, known = source.shape[1], KERNELS.get(kernel)
    if gamma is not None and not isinstance(gamma, str):
        return float(gamma)
    ignored = known is not None and known.ignores_gamma and kernel == known.name
    if gamma is None or ignored or kernel == "precomputed":
        return 1.0 / d
    if not has_gamma(kernel):
        names = ", ".join(repr(name) for name in KERNELS if name.islower() and has_gamma(name))
        own = "has no gamma" if kernel in KERNELS else "is an expression with its own parameters"
        raise ValueError(
            f"gamma={gamma!r} is computed only for kernels given by name that have a gamma: "
            f"{names}. kernel={kernel!r} {own}. Omit gamma, or pass one of those names."
        )
    if gamma == "median":
        by_name = as_kernel(kernel, 1.0)
        # Kernels of dot products have no distance of their own: they take the RBF's.
        return (by_name if isinstance(by_name, DistanceDecay) else RBF()).gamma_from_median(source)
    columns = column_statistics(Problem(source, Count(1)))
    variance = columns.variance * (source.count - 1.0) / source.count / d
    spread = variance + float(np.var(columns.mean))
    return 1.0 / (d * spread) if spread > 0 else 1.0


class KernelScaleWarning(UserWarning):
    """The kernel matrix is close to the identity, or close to constant."""


def warn_of_scale(model: Any, problem: KernelProblem) -> None:
    """Warn if the kernel matrix of a fitted model is close to the identity or to a constant.

    Estimated from kernel values between some of the rows in memory, for kernels that depend on a
    distance and therefore have a scale.
    """
    kernel, source = problem.kernel, problem.source
    if not isinstance(kernel, (Stationary, DistanceDecay)) or model.gamma == "median":
        return
    in_memory, points = (ArraySource, SparseSource), model.X_fit_
    if not isinstance(source, in_memory) and points is not None and not is_dask(points):
        source = as_source(points)
    n = source.shape[0]
    if not isinstance(source, in_memory) or n < _MIN_ROWS or _explains_much(model, problem):
        return
    sample = np.sort(np.random.default_rng(0).permutation(n)[:_SAMPLE])
    rows = source.take(sample)
    if not source.sparse and not np.ptp(to_numpy(rows), axis=0).any():
        return  # equal rows, whatever the kernel
    K = to_numpy(kernel(rows)).astype(np.float64)
    values = K[np.triu_indices(len(K), 1)]
    median, spread = float(np.median(values)), float(np.ptp(values))
    if median <= _MEDIAN and values.mean() <= _MEAN:
        centred = K - K.mean(axis=0)
        spectrum = eigvalsh(centred - centred.mean(axis=1)[:, None])
        first = spectrum[-1] / spectrum.sum()
        if first > max(_SHARE, _ROWS / len(K)):
            return
        limit, size = "the identity", "large"
        fact = (
            f"the first component of these rows explains only {100 * first:.2g} % of their "
            f"variance, and the median kernel value between different rows is {median:.1g}"
        )
    elif spread <= _SPREAD:
        limit, size = "constant", "small"
        fact = f"kernel values differ by at most {spread:.1g}"
    else:
        return
    warn(
        f"the kernel matrix is close to {limit}, judging from {len(sample)} rows: {fact}. "
        f"{_remedy(model.kernel, kernel, size)}",
        KernelScaleWarning,
    )


def _explains_much(model: Any, problem: KernelProblem) -> bool:
    """Return whether the first component explains a large share of more than rounding error.

    Only for methods that estimate variances from all rows: others overestimate them.
    """
    if not isinstance(model.plan_.method, (Exact, Subset, Adaptive)) or not model.n_components_:
        return False
    first = float(to_numpy(model.explained_variance_ratio_[:1])[0])
    large = first > max(_SHARE, _ROWS / problem.divisor)
    return large and model.projection_.total_variance > 10.0 * _SPREAD


def _remedy(parameter: Any, kernel: Kernel, size: str) -> str:
    """Return the sentence that says which scale to try."""
    if not isinstance(kernel, DistanceDecay):
        other, better = ("small", "larger") if size == "large" else ("large", "smaller")
        return f"The length of {kernel!r} is {other} for this data: choose a {better} one."
    remedy = format_parameter("gamma", "median")
    if not isinstance(parameter, str):
        remedy = f"{type(kernel).__name__}.from_median(X)"
    elif not has_gamma(parameter):
        remedy = f"{format_parameter('kernel', kernel.name)} with {remedy}"
    gamma = format_parameter("gamma", float(f"{kernel.gamma:.3g}"))
    return f"{gamma} is {size} for this data: try {remedy}; scaling the columns may also help."

"""From what a user says of a kernel to the kernel, with what only the rows can tell."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.data import Source, StringSource
from mercer.kernels import RBF, FromFunction, Kernel, as_kernel
from mercer.kernels.base import KERNELS
from mercer.kernels.stationary import DistanceDecay
from mercer.messages import ParameterError
from mercer.methods.preparation import column_statistics
from mercer.problem import Problem
from mercer.rules import Count


def resolved(
    kernel: Any,
    gamma: float | str | None,
    degree: float,
    coef0: float,
    kernel_params: dict[str, Any] | None,
    source: Source,
) -> tuple[Kernel | None, float | None]:
    """Return the kernel, None for "precomputed", and the γ that was used for it."""
    strings = isinstance(source, StringSource)
    if isinstance(kernel, Kernel):
        if gamma is not None:
            raise ValueError(f"gamma={gamma!r} and kernel={kernel!r}: set gamma in the kernel.")
        kernel.check()
        return _suited(clone(kernel), source), None
    if callable(kernel):
        # As it is where it can be: two fits with the same function have the same kernel.
        function = partial(kernel, **kernel_params) if kernel_params else kernel
        return FromFunction(function, pairwise=True), None
    found = None if strings else _gamma(kernel, gamma, source)
    if kernel == "precomputed":
        return None, found
    named = has_gamma(kernel) and not strings
    used = found if named or isinstance(gamma, str) else gamma
    made = as_kernel(kernel, used, degree, coef0)
    made.check()
    return _suited(made, source), found


def _suited(kernel: Kernel, source: Source) -> Kernel:
    given = "strings" if isinstance(source, StringSource) else "vectors"
    if kernel.takes not in (given, "anything"):
        raise ParameterError(
            "kernel",
            kernel,
            f"takes rows of {kernel.takes}, and X holds "
            f"{'strings' if given == 'strings' else 'numbers'}.",
        )
    return kernel


def has_gamma(name: str) -> bool:
    """Tell whether this is the name of a kernel that has a γ."""
    return name in KERNELS and "gamma" in KERNELS[name]().get_params()


def _ignores_gamma(name: str) -> bool:
    return name in KERNELS and KERNELS[name].ignores_gamma and name == KERNELS[name].name


def _gamma(kernel: str, gamma: float | str | None, source: Source) -> float:
    d = source.shape[1]
    if gamma is None:
        return 1.0 / d
    if not isinstance(gamma, str):
        return float(gamma)
    if kernel == "precomputed" or _ignores_gamma(kernel):  # ignored, as a number is
        return 1.0 / d
    if not has_gamma(kernel):
        names = ", ".join(repr(name) for name in KERNELS if name.islower() and has_gamma(name))
        own = "has no gamma" if kernel in KERNELS else "is a formula, which holds its own numbers"
        raise ValueError(
            f"gamma={gamma!r} is computed for a kernel that is given by its name and has a gamma: "
            f"{names}. kernel={kernel!r} {own}. Leave gamma out, or pass one of those names."
        )
    if gamma == "median":
        return _median_gamma(as_kernel(kernel, 1.0), source)
    columns = column_statistics(Problem(source, Count(1)))
    variance = columns.variance * (source.count - 1.0) / source.count / d
    spread = variance + float(np.var(columns.mean))
    return 1.0 / (d * spread) if spread > 0 else 1.0


def _median_gamma(kernel: Kernel, source: Source) -> float:
    """Return γ from the median distance between rows; for kernels of dot products, the RBF's."""
    decay = kernel if isinstance(kernel, DistanceDecay) else RBF()
    return decay.gamma_from_median(source)

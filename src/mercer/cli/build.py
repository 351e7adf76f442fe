"""Estimators from options."""

from __future__ import annotations

import inspect
from typing import Any

from mercer import methods, rules
from mercer.cli.errors import UsageError, unknown
from mercer.cli.options import Model
from mercer.estimators.kernel_parameters import has_gamma
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.kernels import parse
from mercer.kernels.base import KERNELS
from mercer.landmarks import RULES
from mercer.planning import METHODS, NAMES
from mercer.preimage import PREIMAGES

COUNTS = ("all", *rules.NAMED)
SCALES = ("zscore", "none")
_FEW = 10
_SHARE = 0.95


def estimator(asked: Model, components: Any = _FEW) -> Any:
    """Return the estimator that was asked for, unfitted.

    With a kernel and no --components, it has `components`.
    """
    if asked.scale not in SCALES:
        unknown("--scale", asked.scale, SCALES)
    if asked.gap is not None and not 0 <= asked.gap < 1:
        raise UsageError(f"--gap {asked.gap} must be between 0 and 1: 0.01 is one percent.")
    given: dict[str, Any] = {"gap": asked.gap, "random_state": asked.seed}
    if asked.kernel is None:
        return _linear(asked, given)
    made = KernelPCA(
        _count(asked.components, components, kernel=True),
        kernel=_kernel(asked.kernel),
        gamma=_gamma(asked),
        method=_method(asked),
        **given,
    )
    return _with_preimage(made, asked.preimage)


def scaled_apart(asked: Model) -> bool:
    """Tell whether columns are scaled by a step of their own; linear PCA does it itself."""
    return asked.scale == "zscore" and asked.kernel is not None


def _linear(asked: Model, given: dict[str, Any]) -> PCA:
    for name in ("gamma", "basis", "select", "preimage"):
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name} is for kernel PCA: give a --kernel, as --kernel rbf, too.")
    solver = asked.method or "auto"
    if solver not in NAMES:
        if solver in METHODS:
            raise UsageError(
                f"--method {solver} is for kernel PCA: give a --kernel too. Linear PCA has "
                f"{', '.join(NAMES)}."
            )
        unknown("--method", solver, NAMES)
    count = _count(asked.components, _SHARE, kernel=False)
    return PCA(count, svd_solver=solver, scale=asked.scale == "zscore", **given)


def _count(text: str | None, default: Any, *, kernel: bool) -> Any:
    """Return what n_components is."""
    if text is None:
        return default
    if text == "all":
        return None
    if text == "mle" and kernel:
        raise UsageError(
            "--components mle is for linear PCA; with a kernel give a number or a share."
        )
    if text in rules.NAMED:
        return text
    if text.endswith("%") and (percent := _number(text[:-1])) is not None:
        if not 0 < percent < 100:
            raise UsageError(
                f"--components {text}: a share must be above 0% and below 100%; for every "
                f"component use all."
            )
        return percent / 100
    number = _number(text)
    if number is None:
        unknown("--components", text, COUNTS)
    if number >= 1 and number == int(number) and "." not in text:
        return int(number)
    if not 0 < number < 1:
        hint = f" Write {int(number)} for that many." if number >= 1 and number % 1 == 0 else ""
        raise UsageError(
            f"--components {text} must be a whole number, 1 or more, or a share of the variance "
            f"between 0 and 1, neither of them included.{hint}"
        )
    return number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _kernel(text: str) -> str:
    """Return a name as it is, and any other text once it has been read."""
    if text == "precomputed":
        raise UsageError("--kernel precomputed is not for files of rows; it is in Python.")
    if text not in KERNELS:
        try:
            parse(text)
        except ValueError as error:
            raise UsageError(f"--kernel {error}") from None
    return text


def _gamma(asked: Model) -> Any:
    text, kernel = asked.gamma, asked.kernel or ""
    if text is None:
        return "median" if has_gamma(kernel) else None
    if not has_gamma(kernel):
        remedy = "it has none" if kernel in KERNELS else "write it there"
        raise UsageError(
            f"--gamma is for a kernel given by name alone, such as --kernel rbf, and --kernel is "
            f"{kernel!r}: {remedy}."
        )
    if text in ("median", "scale"):
        return text
    number = _number(text)
    if number is None or number <= 0:
        raise UsageError(f"--gamma {text!r} is not median, scale or a number above 0.")
    return number


def _method(asked: Model) -> Any:
    """Return a method's name, or the method itself where it is given a basis."""
    name = asked.method or "auto"
    if name not in METHODS:
        unknown("--method", name, METHODS)
    if asked.select is not None and asked.select not in RULES:
        unknown("--select", asked.select, tuple(RULES))
    asked_for: dict[str, Any] = {"n_basis": asked.basis, "select": asked.select}
    wanted = {key: value for key, value in asked_for.items() if value is not None}
    if not wanted:
        return name
    name = "subset" if name == "auto" else name
    for key in wanted:
        if key not in takes(name):
            able = ", ".join(one for one in METHODS if key in takes(one))
            option = "--basis" if key == "n_basis" else "--select"
            raise UsageError(f"{option} is not for --method {name}; it is for {able}.")
    if "n_basis" in wanted:
        wanted["n_basis"] = _points(wanted["n_basis"])
    return _class(name)(**wanted)


def _points(text: str) -> int | float:
    number = _number(text)
    if number is None or not (0 < number < 1 or (number >= 1 and number == int(number))):
        raise UsageError(f"--basis {text!r} must be a number of points, or a share of the rows.")
    return number if number < 1 else int(number)


def _class(name: str) -> Any:
    kinds = (getattr(methods, each) for each in methods.__all__)
    return next(kind for kind in kinds if getattr(kind, "name", None) == name)


def takes(name: str) -> tuple[str, ...]:
    """Return the arguments that a method of kernel PCA takes."""
    return () if name in ("auto", "exact") else tuple(inspect.signature(_class(name)).parameters)


def _with_preimage(made: KernelPCA, name: str | None) -> KernelPCA:
    if name is None:
        return made
    if name not in ("auto", *PREIMAGES):
        unknown("--preimage", name, ("auto", *PREIMAGES))
    made.set_params(preimage=name)
    return made

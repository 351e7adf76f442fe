"""Estimators and preprocessing steps from the options of the command line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import validate_parameter_constraints

from mercer import methods
from mercer.arrays import Array
from mercer.cli.console import UsageError, WorkError, as_option, reject
from mercer.cli.feature_weight import read_feature_weight
from mercer.cli.options import CERTIFICATES, SCALES, Options
from mercer.data import Block, Source, require_finite_sums
from mercer.data.errors import format_names
from mercer.estimators.inspection import through
from mercer.estimators.kernel_parameters import has_gamma
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.kernels import parse
from mercer.kernels.base import KERNELS
from mercer.landmarks import RULES
from mercer.linalg import Moments
from mercer.messages import counted
from mercer.methods.preparation import column_deviation
from mercer.planning import METHODS, NAMES
from mercer.preimage import PREIMAGES
from mercer.problem import Problem
from mercer.rules import KERNEL_NAMED, NAMED, Count

_FEW, _SHARE = 10, 0.95


def build_estimator(options: Options, components: Any = _FEW) -> Any:
    """Return the unfitted estimator; `components` is the default with a kernel."""
    if options.scale not in SCALES:
        reject("--scale", options.scale, SCALES)
    if options.certificate not in CERTIFICATES:
        reject("--certificate", options.certificate, tuple(CERTIFICATES))
    shared: dict[str, Any] = {"gap": options.gap, "random_state": options.seed}
    shared["certificate"] = CERTIFICATES[options.certificate]
    count = _parse_number(options.components) or options.components  # "0" is not a number of them
    scale = options.scale == "zscore"
    if options.kernel is None:
        count = _SHARE if options.components is None else count
        if options.feature_weight is not None:
            shared["feature_weight"] = read_feature_weight(options.feature_weight)
        estimator: Any = PCA(count, svd_solver=_build_solver(options), scale=scale, **shared)
    elif options.feature_weight is not None:
        raise UsageError(
            "--feature-weight is for linear PCA: leave out --kernel; novelty fit needs --linear."
        )
    else:
        estimator = KernelPCA(
            components if options.components is None else count,
            kernel=_parse_kernel(options.kernel),
            gamma=_parse_gamma(options),
            method=_build_method(options),
            preimage=options.preimage,
            **shared,
        )
    return validated(estimator, options)


def check_components(estimator: Any, source: Source) -> None:
    """Raise if linear PCA of the rows cannot have this many components."""
    count = estimator.n_components
    if not isinstance(estimator, PCA) or not isinstance(count, int) or len(source.shape) < 2:
        return
    n, d = source.shape
    if count > min(n, d):
        table = f"{counted(n, 'row')} and {counted(d, 'column')}"
        raise WorkError(
            f"--components {count} must be between 1 and {min(n, d)}: the table has {table}."
        )


def validated(estimator: Any, options: Options) -> Any:
    """Return an estimator whose parameters are valid; raise if the command line set others."""
    rules = ", ".join(NAMED if options.kernel is None else KERNEL_NAMED)
    constraints, values = estimator._parameter_constraints, estimator.get_params(deep=False)
    for name, accepted in (
        (
            "n_components",
            "an integer such as 2, a share of the variance between 0 and 1 such as 0.95 or 95%, "
            f"or a rule: all, {rules}",
        ),
        ("gap", "at least 0 and below 1: 0.01 is one percent"),
        ("gamma", "median, scale or a number above 0"),
        ("preimage", f"one of auto, {', '.join(PREIMAGES)}"),
        ("contamination", "a share of the rows, above 0 and at most 0.5"),
    ):
        option = name.removeprefix("n_")
        try:
            if name in values:
                only = {name: constraints[name]}
                validate_parameter_constraints(only, {name: values[name]}, "")
        except ValueError:
            raise UsageError(f"--{option} {getattr(options, option)} must be {accepted}.") from None
    return estimator


def _build_solver(options: Options) -> str:
    for name in ("gamma", "basis", "select", "preimage"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} is for kernel PCA: add a --kernel, such as --kernel rbf.")
    solver = options.method or "auto"
    if solver in METHODS and solver not in NAMES:
        raise UsageError(
            f"--method {solver} is for kernel PCA: add a --kernel. Methods of linear PCA are "
            f"{', '.join(NAMES)}."
        )
    if solver not in NAMES:
        reject("--method", solver, NAMES)
    return solver


def _parse_number(text: str | None) -> Any:
    """Return a number, a percentage as a share, or the text itself."""
    if text is None or text.isdecimal():
        return text and int(text)
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return text
    return number / 100 if text.endswith("%") else number


def _parse_kernel(text: str) -> str:
    if text == "precomputed":
        raise UsageError("--kernel precomputed needs a kernel matrix; use KernelPCA in Python.")
    if text not in KERNELS:
        try:
            parse(text)
        except ValueError as error:
            raise UsageError(f"--kernel {error}") from None
    return text


def _parse_gamma(options: Options) -> Any:
    kernel = options.kernel or ""
    if has_gamma(kernel):
        gamma = _parse_number(options.gamma or "median")
        return float(gamma) if isinstance(gamma, int) else gamma
    if options.gamma is not None:
        remedy = "has no gamma" if kernel in KERNELS else "is an expression: set gamma in it"
        raise UsageError(
            f"--gamma is for a kernel given by name, such as --kernel rbf. --kernel {kernel!r} "
            f"{remedy}."
        )
    return None


def _build_method(options: Options) -> Any:
    """Return the name of a method, or the method itself where the user sets its parameters."""
    name = options.method or "auto"
    if name not in METHODS:
        reject("--method", name, METHODS)
    if options.select is not None and options.select not in RULES:
        reject("--select", options.select, tuple(RULES))
    values = {"n_basis": _parse_number(options.basis), "select": options.select}
    params: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    if not params:
        return name
    name = "subset" if name == "auto" else name
    for key in params:
        if key not in method_parameters(name):
            others = ", ".join(one for one in METHODS if key in method_parameters(one))
            raise UsageError(f"{as_option(key)} is not supported by --method {name}; use {others}.")
    return _method_class(name)(**params)


def _method_class(name: str) -> Any:
    classes = (getattr(methods, each) for each in methods.__all__)
    return next(each for each in classes if getattr(each, "name", None) == name)


def method_parameters(name: str) -> tuple[str, ...]:
    """Return the names of the parameters of a method of kernel PCA."""
    if name in ("auto", "exact"):
        return ()
    return tuple(inspect.signature(_method_class(name)).parameters)


def fit_imputer(source: Source) -> SimpleImputer:
    """Return an imputer fitted to all rows."""
    d = source.shape[1]

    def split(block: Block) -> Array:
        """Return values with zeros for the missing ones, and where they are not missing."""
        rows = block.dense(np.float64)
        present = ~np.isnan(rows)
        return np.hstack([np.where(present, rows, 0.0), present])

    halves = source.map(split, 2 * d, np.float64, extra_bytes=32 * d)
    moments = halves.fold(Moments(2 * d, halves.reference, np.float64, diagonal=True))
    sums, shares = np.split(moments.mean, 2)
    if (shares == 0).any():
        raise WorkError(
            f"No row has a value in {_column_names(source, shares == 0)}. Exclude those columns "
            f"with --drop."
        )
    if not np.isfinite(sums).all():
        raise WorkError(
            f"{_column_names(source, ~np.isfinite(sums))} has no mean: a value is infinite, or the "
            f"sum overflows. Remove those rows, or exclude those columns with --drop."
        )
    # The mean of one row is that row: fitting the row of means sets the statistics.
    return SimpleImputer().fit((sums / shares)[None, :].astype(source.dtype))


def fit_scaler(source: Source) -> StandardScaler:
    """Return a scaler fitted to all rows; sparse rows are not centered.

    It divides as `PCA(scale=True)` does: by the standard deviation with divisor n − 1.
    """
    problem = Problem(source, Count(1), scale=True)
    moments = source.fold(Moments(source.shape[1], source.reference, np.float64, diagonal=True))
    require_finite_sums(source, moments.mean, moments.scatter)
    scaler = StandardScaler(with_mean=not source.sparse)
    count = source.count
    scaler.n_features_in_ = source.shape[1]
    scaler.n_samples_seen_ = int(count) if count == int(count) else np.float64(count)
    scaler.mean_, scaler.var_ = moments.mean, moments.scatter / problem.divisor
    deviation = column_deviation(problem, moments.scatter, moments.mean)
    scaler.scale_ = np.where(np.isfinite(deviation), deviation, 1.0)
    return scaler


def fit_steps(source: Source, options: Options) -> tuple[list[tuple[str, Any]], Source]:
    """Return the fitted steps, and the rows transformed by them."""
    impute = options.impute is not None
    scale = options.scale == "zscore" and options.kernel is not None  # linear PCA scales itself
    steps: list[tuple[str, Any]] = []
    for name, wanted, fit in (("impute", impute, fit_imputer), ("scale", scale, fit_scaler)):
        if wanted:
            step = fit(source)
            if not steps and source.names is not None:  # the first returns an array without names
                step.feature_names_in_ = np.asarray(source.names, dtype=object)
            steps.append((name, step))
            source = through([step], source)
    return steps, source


def _column_names(source: Source, which: Any) -> str:
    """Write the names of some columns, or their numbers if they have no names."""
    at = np.flatnonzero(which).tolist()
    return format_names([str(i) if source.names is None else str(source.names[i]) for i in at])

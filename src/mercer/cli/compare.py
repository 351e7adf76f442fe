"""``mercer compare``: methods side by side on the same rows."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.cli import build, process_memory, reset_peak, rows
from mercer.cli.console import (
    Reporter,
    Result,
    WorkError,
    empty_table,
    error_text,
    format_seconds,
    pairs,
    reject,
)
from mercer.cli.options import Options
from mercer.config import format_bytes, get_config
from mercer.data import ArraySource, Source, StringSource
from mercer.estimators.kernel_parameters import resolve_kernel
from mercer.estimators.validation import load_rows
from mercer.messages import percent
from mercer.planning import METHODS, NAMES, measured

_LINEAR = ("covariance_eigh", "full", "dot", "krylov", "arpack", "randomized", "sketch")
_KERNEL = ("exact", "subset", "reduced", "improved", "nystrom", "cholesky", "sketch", "features")
_COMPONENTS, _BASIS = "10", 500
_WARM_UP_ROWS = 2 * _BASIS


@dataclass
class Run:
    """Result of one method, or why it was skipped."""

    method: str
    left_out: str | None = None
    components: int | None = None
    captured: float | None = None
    optimum_upper: float | None = None
    gap: float | None = None
    kind: str | None = None
    seconds: float | None = None
    memory: int | None = None


def compare(options: Options, reporter: Reporter) -> Result:
    """Fit with several methods, and show their results side by side."""
    linear = options.kernel is None
    known = NAMES if linear else METHODS
    names = list(_LINEAR if linear else _KERNEL)
    if options.method is not None:
        names = [name.strip() for name in options.method.split(",")]
    for name in names:  # invalid options are an error before any work
        if name not in known:
            reject("--method", name, known)
        _estimator(name, options, _BASIS)
    table = rows.read_training(options, reporter)
    if options.components is not None:
        build.check_components(_estimator(names[0], options, _BASIS), table.source)
    _, source = build.fit_steps(table.source, options)
    stays = isinstance(source, StringSource | ArraySource) or source.sparse
    if not stays and math.prod(source.shape) * source.dtype.itemsize <= get_config().budget // 4:
        source = ArraySource(source.collect(label="reading")).weighted(source.weights)
    runs = [_run_method(name, source, options) for name in names]
    if all(run.left_out is not None for run in runs):
        raise WorkError(f"No method could be run; {runs[0].method}: {runs[0].left_out}")
    shown: list[Any] = [pairs([("read", rows.describe_rows(options.data, table.source))]), ""]
    shown.append(_table(run for run in runs if run.left_out is None))
    if skipped := [(run.method, run.left_out) for run in runs if run.left_out is not None]:
        shown += ["", "Skipped:", pairs(skipped)]
    return Result({**rows.shape(source), "methods": [vars(run) for run in runs]}, shown)


def _table(runs: Any) -> Any:
    names = ("method", "components", "explained", "optimum at most", "gap", "seconds", "memory")
    table = empty_table(names, left=("method",))
    for run in runs:
        about = "~" if run.kind == "estimate" else ""
        table.add_row(
            run.method,
            str(run.components),
            percent(run.captured),
            percent(run.optimum_upper, up=True),
            f"{about}{100 * run.gap:.2g} %" if run.gap >= 1e-6 else "< 0.0001 %",
            f"{run.seconds:.2g}",
            "–" if run.memory is None else format_bytes(run.memory),
        )
    return table


def _run_method(name: str, source: Source, options: Options) -> Run:
    if options.components is None and len(source.shape) > 1 and options.kernel is None:
        options = replace(options, components=str(min(int(_COMPONENTS), *source.shape)))
    estimator = _estimator(name, options, min(_BASIS, source.shape[0]))
    try:
        if isinstance(getattr(estimator, "gamma", None), str):  # outside the timed fit
            estimator.set_params(gamma=resolve_kernel(estimator, source)[1])
        plan = estimator.plan(source)
        chosen = next(one for one in plan.candidates if one.method is plan.method)
        if not chosen.fits:
            needs, budget = format_bytes(chosen.cost.memory), format_bytes(plan.budget)
            return Run(name, f"needs {needs}; the memory limit is {budget}")
        seconds = measured().seconds(chosen.cost, plan.size)
        if seconds > options.patience:
            about = format_seconds(seconds)
            return Run(name, f"would take about {about}; see --patience")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table shows what they would say
            # A first fit is not timed: it pays for imports and compilation.
            few = load_rows(source, np.arange(min(source.shape[0], _WARM_UP_ROWS)))
            with contextlib.suppress(ValueError, MemoryError):  # the fit itself says why
                clone(estimator).fit(few)
            return _timed_fit(name, estimator, source)
    except (ValueError, MemoryError, NotImplementedError) as error:
        return Run(name, error_text(error))


def _estimator(name: str, options: Options, basis: int) -> Any:
    """Return the estimator of a method, with this basis if it has one."""
    options = replace(options, method=name, components=options.components or _COMPONENTS)
    if options.kernel is not None:
        parameters = build.method_parameters(name)
        sized = "n_basis" in parameters and name not in ("adaptive", "sparse")
        options = replace(
            options,
            basis=(options.basis or str(basis)) if sized else None,
            select=options.select if "select" in parameters else None,
        )
    return build.build_estimator(options)


def _timed_fit(name: str, estimator: Any, source: Source) -> Run:
    reset_peak()
    before = process_memory("VmRSS")
    start = time.perf_counter()
    estimator.fit(source)
    seconds = time.perf_counter() - start
    certificate = estimator.certificate_
    return Run(
        method=name,
        components=estimator.n_components_,
        captured=float(certificate.captured),
        optimum_upper=float(certificate.optimum_upper),
        gap=float(certificate.gap),
        kind=certificate.gap.kind,
        seconds=seconds,
        memory=None if before is None else max(0, process_memory("VmHWM") - before),
    )

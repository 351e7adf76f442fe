"""``mercer compare``: methods side by side on the same rows."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercer.cli.console import Reporter, Result, empty_table, format_seconds, pairs
from mercer.cli.options import Model, Rows, model_option
from mercer.messages import percent

_LINEAR = ("covariance_eigh", "full", "dot", "krylov", "arpack", "randomized", "sketch")
_KERNEL = ("exact", "subset", "reduced", "improved", "nystrom", "cholesky", "sketch", "features")
_COMPONENTS, _BASIS = "10", 500
# Rows of a first fit that is not timed: it pays for imports and compilation.
_WARM_UP_ROWS = 300
_PROCESS = Path("/proc/self")


@dataclass(frozen=True, kw_only=True)
class CompareOptions(Rows, Model):
    """Options of compare."""

    method: str | None = model_option(
        "Methods to compare. Default: the most useful ones.", "A,B,…", "--method"
    )
    patience: float = model_option(
        "Skip methods that are expected to take more seconds than this.", default=60.0
    )


@dataclass
class Run:
    """Result of one method, or why it was left out."""

    method: str
    components: int | None = None
    captured: float | None = None
    optimum_upper: float | None = None
    gap: float | None = None
    kind: str | None = None
    seconds: float | None = None
    memory: int | None = None
    left_out: str | None = None


def compare(options: CompareOptions, reporter: Reporter) -> Result:
    """Compare methods on the same data: explained variance, bound, time and memory.

    Memory is the growth of the process during the fit. Methods that would exceed the memory limit
    or --patience are skipped and listed.

    Examples
    --------
    $ mercer compare rows.npy --components 10
    $ mercer compare rows.npy --kernel rbf --components 10 --basis 500 --method
      exact,subset,nystrom
    """
    from mercer.cli import rows
    from mercer.cli.errors import WorkError

    methods = _methods(options)
    table = rows.read_training(options, reporter)
    source = _prepare(table.source, options)
    runs = [_run_method(name, source, options) for name in methods]
    if all(run.left_out is not None for run in runs):
        raise WorkError(f"No method could be tried; {runs[0].method}: {runs[0].left_out}")
    shown: list[Any] = [pairs([("read", rows.describe_rows(options.data, table.source))]), ""]
    shown.append(_table(run for run in runs if run.left_out is None))
    left_out = [(run.method, run.left_out) for run in runs if run.left_out is not None]
    if left_out:
        shown += ["", "Left out:", pairs(left_out)]
    return Result({**rows.shape(source), "methods": [vars(run) for run in runs]}, shown)


def _table(runs: Any) -> Any:
    from mercer.config import format_bytes

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


def _methods(options: CompareOptions) -> list[str]:
    """Return the methods to try; invalid options are an error before any work."""
    from mercer.cli.errors import reject
    from mercer.planning import METHODS, NAMES

    linear = options.kernel is None
    names = list(_LINEAR if linear else _KERNEL)
    if options.method is not None:
        names = [name.strip() for name in options.method.split(",")]
    for name in names:
        if name not in (NAMES if linear else METHODS):
            reject("--method", name, NAMES if linear else METHODS)
        _estimator(name, options, _BASIS)
    return names


def _prepare(source: Any, options: CompareOptions) -> Any:
    """Return the rows imputed and scaled, in memory if they fit."""
    from mercer.cli import build, preprocessing
    from mercer.config import get_config
    from mercer.data import ArraySource, StringSource

    impute, scale = options.impute is not None, build.needs_scaler(options)
    _, source = preprocessing.fit_steps(source, impute=impute, scale=scale)
    if isinstance(source, StringSource | ArraySource) or source.sparse:
        return source
    if source.shape[0] * source.shape[1] * source.dtype.itemsize > get_config().budget // 4:
        return source
    return ArraySource(source.collect(label="reading")).weighted(source.weights)


def _run_method(name: str, source: Any, options: CompareOptions) -> Run:
    """Fit with one method, unless it would take too much memory or time."""
    from mercer.cli.errors import error_text
    from mercer.config import format_bytes
    from mercer.planning import measured

    if options.components is None and len(source.shape) > 1 and options.kernel is None:
        options = replace(options, components=str(min(int(_COMPONENTS), *source.shape)))
    estimator = _estimator(name, options, min(_BASIS, source.shape[0]))
    try:
        _set_gamma(estimator, source)
        plan = estimator.plan(source)
        chosen = next(one for one in plan.candidates if one.method is plan.method)
        if not chosen.fits:
            needs, budget = format_bytes(chosen.cost.memory), format_bytes(plan.budget)
            return Run(name, left_out=f"too large: it needs {needs}, and may take {budget}")
        seconds = measured().seconds(chosen.cost, plan.size)
        if seconds > options.patience:
            about = format_seconds(seconds)
            return Run(name, left_out=f"would take about {about}; see --patience")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table shows what they would say
            _warm_up(name, source, options)
            return _timed_fit(name, estimator, source)
    except (ValueError, MemoryError, NotImplementedError) as error:
        return Run(name, left_out=error_text(error))


def _estimator(name: str, options: CompareOptions, basis: int) -> Any:
    """Return the estimator of a method, with this basis if it has one."""
    from mercer.cli import build

    options = replace(options, method=name, components=options.components or _COMPONENTS)
    if options.kernel is None:
        return build.build_estimator(options)
    parameters = build.method_parameters(name)
    sized = "n_basis" in parameters and name not in ("adaptive", "sparse")
    return build.build_estimator(
        replace(
            options,
            basis=(options.basis or str(basis)) if sized else None,
            select=options.select if "select" in parameters else None,
        )
    )


def _set_gamma(estimator: Any, source: Any) -> None:
    """Compute gamma from the rows, outside the timed fit."""
    from mercer.estimators.kernel_parameters import resolve_kernel

    if isinstance(getattr(estimator, "gamma", None), str):
        estimator.set_params(gamma=resolve_kernel(estimator, source)[1])


def _warm_up(name: str, source: Any, options: CompareOptions) -> None:
    import numpy as np

    from mercer.estimators.validation import load_rows

    few = min(source.shape[0], _WARM_UP_ROWS)
    estimator = _estimator(name, replace(options, basis=None, components="2"), few // 2)
    if isinstance(getattr(estimator, "gamma", None), str):
        estimator.set_params(gamma=1.0)
    with contextlib.suppress(ValueError, MemoryError):  # the fit itself fails too, and says why
        estimator.fit(load_rows(source, np.arange(few)))


def _timed_fit(name: str, estimator: Any, source: Any) -> Run:
    measurable = (_PROCESS / "status").exists()  # Linux only
    reset_peak()
    before = process_memory("VmRSS") if measurable else 0
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
        memory=max(0, process_memory("VmHWM") - before) if measurable else None,
    )


def reset_peak() -> None:
    """Return freed memory to the system, and reset the peak that it counts."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        (_PROCESS / "clear_refs").write_text("5")


def process_memory(key: str) -> int:
    """Return bytes of this process: VmRSS now, VmHWM at the peak.

    Not ru_maxrss, which a child process inherits from its parent.
    """
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {key}")

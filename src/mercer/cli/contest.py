"""Methods tried on the same rows, one after the other."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.cli import build, errors, peak, say, steps
from mercer.cli.compare import Options
from mercer.config import format_bytes, get_config
from mercer.data import ArraySource, Source, StringSource
from mercer.estimators.kernel_parameters import resolve_kernel
from mercer.estimators.validation import some
from mercer.planning import METHODS, NAMES
from mercer.planning.base import measured

_LINEAR = ("covariance_eigh", "full", "dot", "krylov", "arpack", "randomized", "sketch")
_KERNEL = ("exact", "subset", "reduced", "improved", "nystrom", "cholesky", "sketch", "features")
_AXES, _BASIS = "10", 500
# Rows of a first fit that no time is taken of: it pays for what is loaded and compiled.
_FEW = 300


@dataclass
class Run:
    """What came of a method."""

    method: str
    components: int | None = None
    captured: float | None = None
    optimum_upper: float | None = None
    gap: float | None = None
    kind: str | None = None
    seconds: float | None = None
    memory: int | None = None
    left_out: str | None = None


def methods(asked: Options) -> list[str]:
    """Return the methods to try; refuse those there are not, before any work is done."""
    linear = asked.kernel is None
    if asked.method is None:
        names = list(_LINEAR if linear else _KERNEL)
    else:
        names = [name.strip() for name in asked.method.split(",")]
        for name in names:
            if name not in (NAMES if linear else METHODS):
                errors.unknown("--method", name, NAMES if linear else METHODS)
    for name in names:
        _estimator(name, asked, _BASIS)
    return names


def prepared(source: Source, asked: Options) -> Source:
    """Return the rows filled in and scaled, in memory where there is room."""
    _, made = steps.learnt(source, impute=asked.impute is not None, scale=build.scaled_apart(asked))
    if isinstance(made, StringSource) or made.sparse or isinstance(made, ArraySource):
        return made
    size = made.shape[0] * made.shape[1] * made.dtype.itemsize
    if size > get_config().budget // 4:
        return made
    return ArraySource(made.collect(label="reading")).weighted(made.weights)


def run(name: str, source: Source, asked: Options) -> Run:
    """Fit by one method, and tell what it took; or why it was left out."""
    n = source.shape[0]
    if asked.components is None and len(source.shape) > 1 and asked.kernel is None:
        asked = replace(asked, components=str(min(int(_AXES), *source.shape)))
    made = _estimator(name, asked, min(_BASIS, n))
    try:
        _settle_gamma(made, source)
        plan = made.plan(source)
        chosen = next(one for one in plan.candidates if one.method is plan.method)
        if not chosen.fits:
            needs, budget = format_bytes(chosen.cost.memory), format_bytes(plan.budget)
            return Run(name, left_out=f"too large: it needs {needs}, and may take {budget}")
        expected = measured().seconds(chosen.cost, plan.size)
        if expected > asked.patience:
            return Run(name, left_out=f"would take about {say.seconds(expected)}; see --patience")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table says what they would
            _warm_up(name, source, asked)
            return _timed(name, made, source)
    except (ValueError, MemoryError, NotImplementedError) as error:
        return Run(name, left_out=errors.sentence(error))


def _estimator(name: str, asked: Options, basis: int) -> Any:
    """Return what fits by this method, on a basis of that size where it has one."""
    given = replace(asked, method=name, components=asked.components or _AXES)
    if asked.kernel is None:
        return build.estimator(given)
    takes = build.takes(name)
    points = given.basis or str(basis)
    return build.estimator(
        replace(
            given,
            basis=points if "n_basis" in takes and name not in ("adaptive", "sparse") else None,
            select=given.select if "select" in takes else None,
        )
    )


def _settle_gamma(made: Any, source: Source) -> None:
    """Find a γ that the rows tell once: it is none of the methods' work."""
    if isinstance(getattr(made, "gamma", None), str):
        made.set_params(gamma=resolve_kernel(made, source)[1])


def _warm_up(name: str, source: Source, asked: Options) -> None:
    few = min(source.shape[0], _FEW)
    rows = some(source, np.arange(few))
    made = _estimator(name, replace(asked, basis=None, components="2"), few // 2)
    if isinstance(getattr(made, "gamma", None), str):
        made.set_params(gamma=1.0)
    try:
        made.fit(rows)
    except (ValueError, MemoryError):
        return  # so will the fit itself, and say why


def _timed(name: str, made: Any, source: Source) -> Run:
    told = peak.measurable()
    peak.settle()
    before = peak.resident("VmRSS") if told else 0
    start = time.perf_counter()
    made.fit(source)
    seconds = time.perf_counter() - start
    found = made.certificate_
    return Run(
        method=name,
        components=made.n_components_,
        captured=float(found.captured),
        optimum_upper=float(found.optimum_upper),
        gap=float(found.gap),
        kind=found.gap.kind,
        seconds=seconds,
        memory=max(0, peak.resident("VmHWM") - before) if told else None,
    )

"""``mercer fit``, ``mercer plan`` and ``mercer novelty fit``."""

from __future__ import annotations

import contextlib
import shlex
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

import mercer
from mercer.atomic_write import write_atomically
from mercer.checkpoint import check_same, checkpointed, has_checkpoint, identify
from mercer.cli import annotate, apply, build, console, rows
from mercer.cli.console import Reporter, Result, UsageError
from mercer.cli.feature_weight import order_feature_weight
from mercer.cli.options import Options
from mercer.data.files import Table, redacted, split_path
from mercer.estimators.inspection import parts
from mercer.estimators.novelty import NoveltyDetector, default_components
from mercer.messages import counted
from mercer.planning import measured

# Options that the model does not depend on.
_NOT_IN_ORIGIN = ("json", "debug", "force", "checkpoint", "checkpoint_seconds")


def fit(options: Options, reporter: Reporter) -> Result:
    """Fit a model; write it, its scores and a report."""
    return _fit("fit", build.build_estimator(options), options, reporter)


def fit_detector(options: Options, reporter: Reporter) -> Result:
    """Fit a novelty detector and write it."""
    if options.linear and options.kernel is not None:
        raise UsageError("--linear and --kernel exclude each other. Use one of them.")
    if not options.linear and options.kernel is None:
        options = replace(options, kernel="rbf")
    inner = build.build_estimator(options, default_components())
    detector = NoveltyDetector(inner, contamination=options.contamination)
    return _fit("novelty fit", build.validated(detector, options), options, reporter)


def _fit(name: str, estimator: Any, options: Options, reporter: Reporter) -> Result:
    start = time.perf_counter()
    model_file, copy = annotate.output_files(options)
    outputs = {
        "model": model_file,
        "annotated": copy.path if copy else None,
        "scores": options.scores,
        "report": options.report,
    }
    suffixes = (".mercer",), (annotate.SUFFIX,), apply.TABLES, apply.PAGES
    inputs: list[str | Path] = [split_path(options.data)[0]]
    for path, allowed in zip(outputs.values(), suffixes, strict=True):
        if path is not None:
            apply.check_file(path, allowed, force=options.force, inputs=inputs)
            inputs.append(path)
    if options.report is not None:
        from mercer.report.html import require_packages

        require_packages()
    # A command that is interrupted writes none of its files. The checkpoint goes last.
    with checkpointed(), contextlib.ExitStack() as files:
        if options.checkpoint is not None and has_checkpoint(options.checkpoint):
            reporter.note(f"resuming from the checkpoint in {options.checkpoint}.")
        table = rows.read_training(options, reporter)
        inner = getattr(estimator, "estimator", estimator)
        build.check_components(inner, table.source)
        order_feature_weight(inner, table.source)
        model = _fit_pipeline(estimator, table, options)
        origin = _origin(name, options, table)
        if options.scores is not None:
            path = files.enter_context(write_atomically(options.scores))
            extra = {} if path.suffix.lower() == ".npy" else table.source.extra_columns
            apply.write_rows(*apply.compute_scores(model, table.source), path, extra)
        if options.report is not None:
            from mercer.report import write_report

            path = files.enter_context(write_atomically(options.report))
            facts = rows.report_arguments(table, options.label, table.extra)
            write_report(model, path=path, origin=origin, **facts)
        if copy is not None:
            path = files.enter_context(write_atomically(copy.path))
            copy.write(model, table.source, path)
        if model_file is not None:
            mercer.save(model, model_file, origin=origin)
    return _result(options, model, table, time.perf_counter() - start, outputs)


def plan(options: Options, reporter: Reporter) -> Result:
    """Return the plan of a fit."""
    estimator = build.build_estimator(options)
    table = rows.read_training(options, reporter)
    build.check_components(estimator, table.source)
    order_feature_weight(estimator, table.source)
    if getattr(estimator, "gamma", None) is not None:
        estimator.set_params(gamma=1.0)  # no cost depends on it, and computing it takes time
    chosen = estimator.plan(table.source)
    data = {
        **rows.shape(table.source),
        "method": repr(chosen.method),
        "reason": chosen.reason,
        "budget": chosen.budget,
        "candidates": [
            {
                "method": one.method.label(chosen.size),
                "passes": one.cost.passes,
                "operations": one.cost.products + one.cost.sparse + one.cost.factor,
                "memory": one.cost.memory,
                "seconds": measured().seconds(one.cost, chosen.size),
                "fits": one.fits,
                "chosen": one.method is chosen.method,
            }
            for one in chosen.candidates
        ],
        "block_rows": chosen.block_rows,
    }
    read = rows.describe_rows(options.data, table.source)
    return Result(data, [console.pairs([("read", read)]), "", str(chosen)])


def _fit_pipeline(estimator: Any, table: Table, options: Options) -> Any:
    if options.checkpoint is not None:  # before the steps, whose passes have checkpoints too
        known, weights = identify(table.source), table.source.weights
        check_same(rows=known, weights=weights, impute=options.impute, scale=options.scale)
    steps, source = build.fit_steps(table.source, options)
    last = (type(estimator).__name__.lower(), estimator.fit(source))
    return Pipeline([*steps, last]) if steps else estimator


def _origin(name: str, options: Options, table: Table) -> dict[str, Any]:
    return {
        "command": equivalent_command(name, options),
        "file": redacted(options.data),
        "label": options.label,
        "weights": options.weights,
        "columns": options.names,
        "id": table.id,
        "drop": options.dropped or None,
        "na": list(options.na) if options.na else None,
        "query": options.query,
        "resize": rows.image_shape("resize", options.resize),
        "images": table.source.image_shape,
        "notes": [*rows.notes(options, table), *rows.imputed(table)] or None,
        "seed": options.seed,
    }


def equivalent_command(name: str, options: Options) -> str:
    """Return the command line that fits the same model again."""
    words = [redacted(options.data)]
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in ("data", *_NOT_IN_ORIGIN) or value == field.default:
            continue
        option = "-o" if field.name == "output" else f"--{field.name.replace('_', '-')}"
        values = value if isinstance(value, list) else [value]
        words += [option] if value is True else [w for v in values for w in (option, str(v))]
    return shlex.join(["mercer", *name.split(), *words])


def _result(
    options: Options, model: Any, table: Table, seconds: float, files: dict[str, Path | None]
) -> Result:
    steps, last = parts(model)
    estimator = rows.component_estimator(model)
    certificate, chosen = estimator.certificate_, estimator.plan_
    data = {
        **rows.shape(table.source),
        "id": table.id,
        "dropped": table.dropped,
        "imputed": table.missing,
        "estimator": type(last).__name__,
        "steps": [repr(step) for step in steps],
        "kernel": None if getattr(estimator, "kernel_", None) is None else repr(estimator.kernel_),
        "method": repr(chosen.method),
        "reason": chosen.reason,
        "components": estimator.n_components_,
        "explained_variance": estimator.explained_variance_,
        "explained_variance_ratio": estimator.explained_variance_ratio_,
        "certificate": {
            "sentence": certificate.sentence,
            "captured": float(certificate.captured),
            "optimum_upper": float(certificate.optimum_upper),
            "optimum_from": certificate.optimum_from,
            "total": [float(bound) for bound in certificate.total],
            "gap": float(certificate.gap),
            "kind": certificate.gap.kind,
            "confidence": certificate.gap.confidence,
            "gap_estimate": float(certificate.gap_estimate),
            "converged": certificate.converged,
            "notes": list(certificate.notes),
        },
        "seconds": seconds,
        **{name: None if path is None else str(path) for name, path in files.items()},
    }
    lines = [("read", rows.describe_rows(options.data, table.source))]
    imputed = sum(table.missing.values())
    if imputed:
        means = "the mean of its column" if imputed == 1 else "the means of their columns"
        lines.append(("imputed", f"{counted(imputed, 'missing value')}, with {means}"))
    lines.append(("plan", f"{chosen.method!r}, {chosen.reason}"))
    written = ", ".join(console.format_file(path) for path in files.values() if path is not None)
    after = [("time", console.format_seconds(seconds)), ("written", written)]
    spectrum = console.spectrum_table(estimator.explained_variance_ratio_)
    shown: list[Any] = [console.pairs(lines), "", spectrum, ""]
    return Result(data, [*shown, str(certificate), "", console.pairs(after)])

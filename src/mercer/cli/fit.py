"""``mercer fit`` and ``mercer plan``."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from mercer.atomic_write import whole
from mercer.cli.console import (
    Reporter,
    Result,
    format_file,
    format_seconds,
    pairs,
    spectrum_table,
)
from mercer.cli.options import (
    CheckpointOptions,
    Keep,
    Model,
    Output,
    Rows,
    data_option,
    output_file,
    output_option,
)
from mercer.messages import counted

# Options that the model does not depend on.
_NOT_IN_ORIGIN = ("json", "debug", "force", "checkpoint", "checkpoint_seconds")
_NOT_WRITTEN = "As for fit. plan does not write this file."


@dataclass(frozen=True, kw_only=True)
class FitOptions(Keep, Rows, Model, CheckpointOptions, Output):
    """Options of fit."""

    output: Path = output_file("Model file to write: NAME.mercer.")
    label: str | None = data_option(
        "Column of labels. It is not a feature; the report colours the rows by it."
    )
    keep: str | None = data_option(
        "Columns to copy to the scores: names, or patterns. They are features only where "
        "--columns names them in full.",
        "A,B,…",
    )
    scores: Path | None = output_option(
        "Also write the scores: .csv, .tsv, .parquet, .arrow or .npy."
    )
    report: Path | None = output_option("Also write a report: NAME.html.")


@dataclass(frozen=True, kw_only=True)
class PlanOptions(FitOptions):
    """Options of plan: those of fit."""

    output: Path | None = output_file(_NOT_WRITTEN, default=None)  # type: ignore[assignment]
    scores: Path | None = output_option(_NOT_WRITTEN)
    report: Path | None = output_option(_NOT_WRITTEN)


def fit(options: FitOptions, reporter: Reporter) -> Result:
    """Fit a model and save it.

    Linear PCA, or kernel PCA with --kernel. Prints what was read, which method was used, and how
    close to optimal the components are.

    Examples
    --------
    $ mercer fit iris.csv --label species --scale zscore -o iris.mercer --report iris.html
    $ mercer fit digits.npy --kernel rbf --components 50 --gap 0.01 -o digits.mercer
    $ mercer fit rows.parquet --kernel "rbf(0.01) + 2*poly(3)" --method subset --basis 1000
      --select kmeans --memory 4GiB -o rows.mercer --scores scores.parquet
    $ mercer fit rows.npy --kernel rbf --method exact --checkpoint run -o rows.mercer
    """
    from mercer.cli import build, rows

    start = time.perf_counter()
    estimator = build.build_estimator(options)
    _check_files(options)
    # A command that is interrupted writes none of its files. The checkpoint goes last.
    with resume(options, reporter), contextlib.ExitStack() as files:
        table = rows.read_training(options, reporter)
        model = fit_pipeline(estimator, table, options)
        origin = describe_origin("fit", options, table)
        if options.scores is not None:
            _write_scores(files.enter_context(whole(options.scores)), model, table)
        if options.report is not None:
            _write_report(files.enter_context(whole(options.report)), model, table, origin)
        save_model(model, options, origin)
    return fit_result(options, model, table, time.perf_counter() - start)


def plan(options: PlanOptions, reporter: Reporter) -> Result:
    """Show what fit would do: methods, passes, memory and time. Computes and writes nothing.

    Takes the same arguments as fit.

    Examples
    --------
    $ mercer plan rows.npy --kernel rbf --components 50 --memory 4GiB
    """
    from mercer.cli import build, rows
    from mercer.planning import measured

    estimator = build.build_estimator(options)
    table = rows.read_training(options, reporter)
    if getattr(estimator, "gamma", None) is not None:
        estimator.set_params(gamma=1.0)  # no cost depends on it, and to compute it takes time
    build.check_components(estimator, table.source)
    chosen = estimator.plan(table.source)
    candidates = [
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
    ]
    data = {
        **rows.shape(table.source),
        "method": repr(chosen.method),
        "reason": chosen.reason,
        "budget": chosen.budget,
        "candidates": candidates,
    }
    read = rows.describe_rows(options.data, table.source)
    return Result(data, [pairs([("read", read)]), "", str(chosen)])


def _check_files(options: FitOptions) -> None:
    """Raise an error about files that cannot, or must not, be written."""
    from mercer.cli import outputs

    inputs: list[str | Path] = [options.data]
    for path, suffixes in (
        (options.output, (".mercer",)),
        (options.scores, outputs.TABLES),
        (options.report, outputs.PAGES),
    ):
        if path is not None:
            outputs.check_file(path, suffixes, force=options.force, inputs=inputs)
            inputs.append(path)
    if options.report is not None:
        from mercer.report.html import require_packages

        require_packages()


def _write_scores(path: Path, model: Any, table: Any) -> None:
    from mercer.cli import outputs

    extra = {} if path.suffix.lower() == ".npy" else table.source.extra_columns
    outputs.write_rows(*outputs.compute_scores(model, table.source), path, extra)


def _write_report(path: Path, model: Any, table: Any, origin: dict[str, Any]) -> None:
    from mercer.report import write_report

    label, extra = origin["label"], dict(table.extra)
    columns = {name: extra[name] for name in extra if name not in (label, table.id)}
    write_report(
        model,
        table.source,
        path,
        labels=None if label is None else extra[label],
        ids=table.row_names,
        columns=columns or None,
        origin=origin,
    )


@contextlib.contextmanager
def resume(options: CheckpointOptions, reporter: Reporter) -> Iterator[None]:
    """Keep checkpoints of the work inside, if the user named a folder for them."""
    from mercer.checkpoint import checkpointed, has_checkpoint

    with checkpointed():
        if options.checkpoint is not None and has_checkpoint(options.checkpoint):
            reporter.note(f"going on with the run that {options.checkpoint} holds.")
        yield


def fit_pipeline(estimator: Any, table: Any, options: FitOptions | Any) -> Any:
    """Return the fitted estimator, with the fitted steps before it."""
    from mercer.checkpoint import check_same, identify
    from mercer.cli import build, preprocessing
    from mercer.data import fingerprint

    build.check_components(getattr(estimator, "estimator", estimator), table.source)
    if options.checkpoint is not None:  # before the steps, whose passes have checkpoints too
        known = identify(table.source, fingerprint(table.source))
        weights = table.source.weights
        check_same(rows=known, weights=weights, impute=options.impute, scale=options.scale)
    steps, source = preprocessing.fit_steps(
        table.source, impute=options.impute is not None, scale=build.needs_scaler(options)
    )
    return preprocessing.join_steps(steps, estimator.fit(source))


def describe_origin(name: str, options: Any, table: Any) -> dict[str, Any]:
    """Return what a model file and a report say about where a model comes from."""
    from mercer.cli import rows

    return {
        "command": equivalent_command(name, options),
        "file": options.data,
        "label": options.label,
        "weights": options.weights,
        "columns": options.names,
        "id": table.id,
        "drop": options.dropped or None,
        "na": list(options.na) if options.na else None,
        "notes": [*rows.notes(options, table), *rows.imputed(table)] or None,
        "seed": options.seed,
    }


def equivalent_command(name: str, options: Any) -> str:
    """Return the command that would do the same again."""
    positional = [key for key in ("model", "data") if hasattr(options, key)]
    words = [str(getattr(options, key)) for key in positional]
    for field in fields(options):
        value = getattr(options, field.name)
        default = None if field.default is MISSING else field.default
        if field.name in (*positional, *_NOT_IN_ORIGIN) or value == default:
            continue
        option = "-o" if field.name == "output" else f"--{field.name.replace('_', '-')}"
        values = value if isinstance(value, list) else [value]
        words += [option] if value is True else [w for v in values for w in (option, str(v))]
    return shlex.join(["mercer", *name.split(), *words])


def save_model(model: Any, options: Any, origin: dict[str, Any]) -> None:
    """Write the model file."""
    from mercer import save

    save(model, options.output, origin=origin)


def fit_result(options: Any, model: Any, table: Any, seconds: float) -> Result:
    """Return what was read, fitted and written."""
    from mercer.cli import rows
    from mercer.estimators.pipeline import parts

    steps, last = parts(model)
    estimator = rows.component_estimator(model)
    certificate, chosen = estimator.certificate_, estimator.plan_
    files = {"model": options.output, "scores": None, "report": None}
    files |= {name: getattr(options, name, None) for name in ("scores", "report")}
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
        lines.append(("filled in", f"{counted(imputed, 'missing value')}, with {means}"))
    lines.append(("plan", f"{chosen.method!r}, {chosen.reason}"))
    written = ", ".join(format_file(path) for path in files.values() if path is not None)
    after = [("time", format_seconds(seconds)), ("written", written)]
    shown: list[Any] = [pairs(lines), "", spectrum_table(estimator.explained_variance_ratio_), ""]
    return Result(data, [*shown, certificate.sentence.replace("\n", " "), "", pairs(after)])

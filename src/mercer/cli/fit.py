"""``mercer fit``: a fitted model in a file."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.atomic_write import whole
from mercer.cli import say
from mercer.cli.columns import Keep
from mercer.cli.options import Kept, Model, Output, Rows


@dataclass(frozen=True, kw_only=True)
class Options(Keep, Rows, Model, Kept, Output):
    """What fit takes."""

    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model file to write: NAME.mercer.", rich_help_panel="Output"
        ),
    ]
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of labels. It is not a feature; the report colours the rows by it.",
            rich_help_panel="Data",
        ),
    ] = None
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to copy to the scores: names, or patterns. They are features only where "
            "--columns names them in full.",
            rich_help_panel="Data",
        ),
    ] = None
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Also write the scores: .csv, .tsv, .parquet, .arrow or .npy.",
            rich_help_panel="Output",
        ),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(help="Also write a report: NAME.html.", rich_help_panel="Output"),
    ] = None


EXAMPLES = (
    "mercer fit iris.csv --label species --scale zscore -o iris.mercer --report iris.html",
    "mercer fit digits.npy --kernel rbf --components 50 --gap 0.01 -o digits.mercer",
    'mercer fit rows.parquet --kernel "rbf(0.01) + 2*poly(3)" --method subset --basis 1000 '
    "--select kmeans --memory 4GiB -o rows.mercer --scores scores.parquet",
    "mercer fit rows.npy --kernel rbf --method exact --checkpoint run -o rows.mercer",
)


def fit(asked: Options, voice: say.Voice) -> say.Result:
    """Fit a model and save it.

    Linear PCA, or kernel PCA with --kernel. Prints what was read, which method was used, and how
    close to optimal the components are.
    """
    from mercer.cli import build, rows

    start = time.perf_counter()
    made = build.estimator(asked)
    _claim(asked)
    # What is kept goes when all is written. A run that is stopped writes none of its files.
    with resumed(asked, voice), contextlib.ExitStack() as files:
        table = rows.learning(asked, voice)
        model = fitted(made, table, asked)
        if asked.scores is not None:
            _write_scores(files.enter_context(whole(asked.scores)), model, table)
        if asked.report is not None:
            _write_page(files.enter_context(whole(asked.report)), model, table, asked)
        keep("fit", model, asked, table)
    return told(asked, model, table, time.perf_counter() - start)


def _claim(asked: Options) -> None:
    """Refuse files that cannot, or must not, be written."""
    from mercer.cli import outputs, tables

    others: list[str | Path] = [asked.data]
    for path, known in (
        (asked.output, (".mercer",)),
        (asked.scores, tables.SUFFIXES),
        (asked.report, outputs.PAGES),
    ):
        if path is not None:
            outputs.require_suffix(path, *known)
            outputs.claim(path, force=asked.force, inputs=tuple(others))
            others.append(path)
    if asked.report is not None:
        from mercer.report.html import require_packages

        require_packages()


def _write_scores(path: Path, model: Any, table: Any) -> None:
    from mercer.cli import tables

    extra = {} if path.suffix.lower() == ".npy" else table.source.extra_columns
    tables.write(tables.scores_of(model, table.source), path, extra)


def _write_page(path: Path, model: Any, table: Any, asked: Options) -> None:
    from mercer.report import write_report

    known = dict(table.extra)
    labels = None if asked.label is None else known[asked.label]
    others = {name: known[name] for name in known if name not in (asked.label, table.id)}
    told = origin("fit", asked, table)
    write_report(
        model,
        table.source,
        path,
        labels=labels,
        ids=table.row_names,
        columns=others or None,
        origin=told,
    )


@contextlib.contextmanager
def resumed(asked: Kept, voice: say.Voice) -> Iterator[None]:
    """Keep what is done inside, where a folder for it was named; say where a run goes on."""
    from mercer.checkpoint import checkpointed, has_checkpoint

    with checkpointed():
        if asked.checkpoint is not None and has_checkpoint(asked.checkpoint):
            voice.note(f"going on with the run that {asked.checkpoint} holds.")
        yield


def fitted(made: Any, table: Any, asked: Options | Any) -> Any:
    """Return the estimator, fitted, with the steps before it."""
    from mercer.checkpoint import check_same, identify
    from mercer.cli import build, steps
    from mercer.data import fingerprint

    if asked.checkpoint is not None:  # before the steps, whose passes are kept too
        known = identify(table.source, fingerprint(table.source))
        weights = table.source.weights
        check_same(rows=known, weights=weights, impute=asked.impute, scale=asked.scale)
    before, source = steps.learnt(
        table.source, impute=asked.impute is not None, scale=build.scaled_apart(asked)
    )
    return steps.joined(before, made.fit(source))


def origin(name: str, asked: Any, table: Any) -> dict[str, Any]:
    """Return where a model comes from."""
    from mercer.cli import facts, rows

    return {
        "command": facts.command_line(name, asked),
        "file": asked.data,
        "label": asked.label,
        "weights": asked.weights,
        "columns": asked.names,
        "id": table.id,
        "drop": asked.left or None,
        "na": list(asked.na) if asked.na else None,
        "notes": [*rows.notes(asked, table), *rows.imputed(table)] or None,
        "seed": asked.seed,
    }


def keep(name: str, model: Any, asked: Any, table: Any) -> None:
    """Write the model, with what it was asked for."""
    from mercer import save

    save(model, asked.output, origin=origin(name, asked, table))


def told(asked: Any, model: Any, table: Any, seconds: float) -> say.Result:
    """Tell what was read, found and written."""
    from mercer.cli import facts, rows

    axes, found = facts.axes_of(model), facts.of_model(model)
    files = {"model": asked.output} | {
        name: getattr(asked, name, None) for name in ("scores", "report")
    }
    written = [facts.written(path) for path in files.values() if path is not None]
    result = {
        **rows.size(table.source),
        "id": table.id,
        "dropped": table.dropped,
        "imputed": table.missing,
        **found,
        "seconds": seconds,
        **{name: None if path is None else str(path) for name, path in files.items()},
    }
    lines = [
        ("read", rows.described(asked.data, table.source)),
        ("plan", f"{axes.plan_.method!r}, {axes.plan_.reason}"),
    ]
    filled = sum(table.missing.values())
    if filled:
        means = "the mean of its column" if filled == 1 else "the means of their columns"
        lines.insert(1, ("filled in", f"{say.count(filled, 'missing value')}, with {means}"))
    after = [("time", say.seconds(seconds)), ("written", ", ".join(written))]
    shown: list[Any] = [say.pairs(lines), "", say.spectrum(axes.explained_variance_ratio_), ""]
    shown += [axes.certificate_.sentence.replace("\n", " "), "", say.pairs(after)]
    return say.Result(result, shown)

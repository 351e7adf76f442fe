"""``mercer fit``: axes of rows, in a file."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import say
from mercer.cli.options import Model, Output, Rows
from mercer.outfile import whole


@dataclass(frozen=True, kw_only=True)
class Options(Rows, Model, Output):
    """What fit takes."""

    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model file to write: NAME.mercer.", rich_help_panel="Output"
        ),
    ]
    scores: Annotated[
        Path | None,
        typer.Option(
            help="Table of the rows' scores to write, too: .csv, .tsv, .parquet, .arrow or .npy.",
            rich_help_panel="Output",
        ),
    ] = None


EXAMPLES = (
    "mercer fit iris.csv --label species --scale zscore -o iris.mercer",
    "mercer fit digits.npy --kernel rbf --gamma median --components 50 --gap 0.01 -o digits.mercer",
    'mercer fit rows.parquet --kernel "rbf(0.01) + 2*poly(3)" --method subset --basis 1000 '
    "--select kmeans --memory 4GiB -o rows.mercer --scores scores.parquet",
)


def fit(asked: Options, voice: say.Voice) -> say.Result:
    """Find the axes of rows, and write them to a model file.

    Linear PCA, or kernel PCA with --kernel. Says what was read, how the axes were found, and
    how far from the best possible ones they can be.
    """
    from mercer.cli import build, outputs, rows, tables

    start = time.perf_counter()
    made = build.estimator(asked)
    outputs.require_suffix(asked.output, ".mercer")
    outputs.claim(asked.output, force=asked.force, inputs=(asked.data,))
    if asked.scores is not None:
        outputs.require_suffix(asked.scores, *tables.SUFFIXES)
        tables.claim(asked.scores, force=asked.force, inputs=(asked.data, asked.output))
    table = rows.learning(asked, voice)
    model = fitted(made, table, asked)
    with contextlib.ExitStack() as both:  # or neither, where it is stopped
        if asked.scores is not None:
            part = both.enter_context(whole(asked.scores))
            extra = {} if asked.scores.suffix.lower() == ".npy" else dict(table.extra)
            tables.write(tables.scores_of(model, table.source), part, extra)
        keep("fit", model, asked)
    return told(asked, model, table, time.perf_counter() - start)


def fitted(made: Any, table: Any, asked: Options | Any) -> Any:
    """Return the estimator, fitted, with the steps before it."""
    from mercer.cli import build, steps

    before, source = steps.learnt(
        table.source, impute=asked.impute is not None, scale=build.scaled_apart(asked)
    )
    return steps.joined(before, made.fit(source))


def keep(name: str, model: Any, asked: Any) -> None:
    """Write the model, with what it was asked for."""
    from mercer import save
    from mercer.cli import facts

    origin = {
        "command": facts.command_line(name, asked),
        "file": asked.data,
        "label": asked.label,
        "weights": asked.weights,
        "columns": asked.names,
        "seed": asked.seed,
    }
    save(model, asked.output, origin=origin)


def told(asked: Any, model: Any, table: Any, seconds: float) -> say.Result:
    """Tell what was read, found and written."""
    from mercer.cli import facts, rows

    axes, found = facts.axes_of(model), facts.of_model(model)
    written = [facts.written(asked.output)]
    scores = getattr(asked, "scores", None)
    if scores is not None:
        written.append(facts.written(scores))
    result = {
        **rows.size(table.source),
        "dropped": table.dropped,
        "imputed": table.missing,
        **found,
        "seconds": seconds,
        "model": str(asked.output),
        "scores": None if scores is None else str(scores),
    }
    lines = [
        ("read", rows.described(asked.data, table.source)),
        ("plan", f"{axes.plan_.method!r}, {axes.plan_.reason}"),
    ]
    filled = sum(table.missing.values())
    if filled:
        lines.insert(
            1, ("filled in", f"{say.count(filled, 'missing value')}, with the mean of their column")
        )
    after = [("time", say.seconds(seconds)), ("written", ", ".join(written))]
    shown: list[Any] = [say.pairs(lines), "", say.spectrum(axes.explained_variance_ratio_), ""]
    shown += [axes.certificate_.sentence.replace("\n", " "), "", say.pairs(after)]
    return say.Result(result, shown)

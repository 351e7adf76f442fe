"""``mercer transform``, ``inverse`` and ``denoise``: a fitted model applied to rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.cli.console import Reporter, Result, format_file, format_seconds, pairs
from mercer.cli.options import Fitted, Output, argument, output_file


@dataclass(frozen=True, kw_only=True)
class TransformOptions(Fitted, Output):
    """Options of transform and denoise."""

    output: Path = output_file(
        "Table to write: .csv, .tsv, .parquet, .arrow or .npy; - is CSV on stdout."
    )


@dataclass(frozen=True, kw_only=True)
class InverseOptions(TransformOptions):
    """Options of inverse."""

    data: str = argument("Scores, as transform writes them, or -.")


def transform(options: TransformOptions, reporter: Reporter) -> Result:
    """Compute the scores of rows with a fitted model.

    Columns are matched by name; others are not used.

    Examples
    --------
    $ mercer transform iris.mercer iris.csv --keep species -o scores.parquet
    $ cat new.csv | mercer transform iris.mercer - --format csv -o - | head
    """
    from mercer.cli import outputs

    return _apply(options, reporter, outputs.compute_scores)


def inverse(options: InverseOptions, reporter: Reporter) -> Result:
    """Map scores back to rows.

    A kernel model must have been fitted with --preimage.

    Examples
    --------
    $ mercer inverse iris.mercer scores.parquet -o rows.csv
    """
    from mercer.cli import outputs

    return _apply(options, reporter, outputs.rows_from_scores, scores=True)


def denoise(options: TransformOptions, reporter: Reporter) -> Result:
    """Denoise data by projecting it onto the components.

    A kernel model must have been fitted with --preimage.

    Examples
    --------
    $ mercer fit clean.npy --kernel rbf --preimage auto -o digits.mercer
    $ mercer denoise digits.mercer noisy.npy -o denoised.npy
    """
    from mercer.cli import outputs

    return _apply(options, reporter, outputs.denoised_rows)


def _apply(
    options: TransformOptions,
    reporter: Reporter,
    compute: Callable[[Any, Any], Any],
    *,
    scores: bool = False,
) -> Result:
    """Write what a model computes from rows."""
    from mercer.cli import outputs, rows
    from mercer.cli.errors import UsageError

    start = time.perf_counter()
    numbers_only = options.output.suffix.lower() == ".npy"
    for option, wanted in (("--keep", options.copied), ("--id", options.id)):
        if wanted and numbers_only:
            raise UsageError(f"{option} is for tables; a .npy file holds only numbers.")
    outputs.check_table(options)
    model, origin = rows.load_model(options.model)
    if scores:
        table = rows.read_scores(model, options, reporter, origin)
    else:
        table = rows.read_new(model, options, reporter, origin, keep=options.copied)
    source, names = compute(model, table.source)
    extra = {} if numbers_only else rows.copied_columns(table, options.copied)
    outputs.write_rows(source, names, options.output, extra)
    if str(options.output) == outputs.STDOUT:
        return Result({})
    seconds = time.perf_counter() - start
    data = {
        "model": str(options.model),
        "rows": source.shape[0],
        "columns": source.shape[1],
        "names": names,
        "id": table.id,
        "seconds": seconds,
        "output": str(options.output),
    }
    lines = [
        ("read", rows.describe_rows(options.data, table.source)),
        ("written", f"{format_file(options.output)}: {source.shape[0]} × {source.shape[1]}"),
        ("time", format_seconds(seconds)),
    ]
    return Result(data, [pairs(lines)])

"""``mercer report``: an HTML page about a model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer.cli.console import Reporter, Result, format_file, format_seconds, pairs
from mercer.cli.options import (
    FittedColumns,
    Keep,
    Memory,
    Output,
    argument,
    data_option,
    output_file,
    output_option,
)


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Keep, FittedColumns, Memory, Output):
    """Options of report."""

    model: Path = argument("Model file, as fit writes it.")
    data: str | None = argument(
        "Rows to show, in any format fit reads. Without them the page shows what the model "
        "alone tells.",
        default=None,
    )
    output: Path = output_file("Page to write: NAME.html.")
    label: str | None = data_option(
        "Column of labels to colour the rows by. Default: that of the fit."
    )
    images: str | None = data_option("Rows are images of this height and width.", "HxW")
    title: str | None = output_option("Title of the page.")


def report(options: ReportOptions, reporter: Reporter) -> Result:
    """Write a report: one HTML file with spectrum, scores, loadings, outliers and certificate.

    It opens in any browser, without a network.

    Examples
    --------
    $ mercer report iris.mercer iris.csv --label species -o iris.html
    $ mercer report digits.mercer digits.npy --images 8x8 -o digits.html
    """
    from mercer.cli import outputs, rows
    from mercer.cli.errors import UsageError
    from mercer.report import write_report

    start = time.perf_counter()
    shape = _image_shape(options.images)
    for name in ("label", "id", "keep", "drop", "na") if options.data is None else ():
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} names columns of DATA, which is not given.")
    rows.check_model(options.model)
    inputs = [path for path in (options.model, options.data) if path is not None]
    outputs.check_file(options.output, outputs.PAGES, force=options.force, inputs=inputs)
    model, origin = rows.load_model(options.model)
    known = {} if options.data is None else _read_rows(model, options, origin, reporter)
    X, known = known.pop("X", None), {"title": options.title, "origin": origin, **known}
    write_report(model, X, options.output, image_shape=shape, **known)
    seconds = time.perf_counter() - start
    lines = [("written", format_file(options.output)), ("time", format_seconds(seconds))]
    data = {"model": str(options.model), "output": str(options.output), "seconds": seconds}
    return Result(data, [pairs(lines)])


def _read_rows(
    model: Any, options: ReportOptions, origin: dict[str, Any], reporter: Reporter
) -> dict[str, Any]:
    """Return the rows to show, and the columns beside them."""
    from mercer.cli import rows

    of_fit = origin.get("label")
    label = options.label if options.label is not None else of_fit
    keep = [*([options.label] if options.label is not None else []), *options.copied]
    optional = [] if of_fit is None else [of_fit]  # new rows may have no labels
    table = rows.read_new(model, options, reporter, origin, keep=keep, optional=optional)
    if table.unnamed:
        reporter.note(table.unnamed)
    extra = table.extra
    copied = rows.copied_columns(table, options.copied)
    origin["label"] = label
    return {
        "X": table.source,
        "labels": extra.get(label) if label is not None else None,
        "ids": table.row_names,
        "columns": {k: extra[k] for k in copied if k not in (label, table.id)} or None,
    }


def _image_shape(text: str | None) -> tuple[int, ...] | None:
    from mercer.cli.errors import UsageError

    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) not in (2, 3) or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UsageError(
            f"--images {text!r} must be height x width, as 28x28; 32x32x3 is in colour."
        )
    return tuple(int(side) for side in sides)

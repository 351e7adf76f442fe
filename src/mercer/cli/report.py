"""``mercer report``: a page to look at."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import say
from mercer.cli.columns import FittedColumns, Keep
from mercer.cli.options import Format, Memory, Output


@dataclass(frozen=True, kw_only=True)
class Options(Keep, FittedColumns, Format, Memory, Output):
    """What report takes."""

    model: Annotated[Path, typer.Argument(help="Model file, as fit writes it.", show_default=False)]
    data: Annotated[
        str | None,
        typer.Argument(
            help="Rows to show, in any format fit reads. Without them the page shows what the "
            "model alone tells.",
            show_default=False,
        ),
    ] = None
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Page to write: NAME.html.", rich_help_panel="Output"),
    ]
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of labels to colour the rows by. That of the fit, if not given.",
            rich_help_panel="Data",
        ),
    ] = None
    images: Annotated[
        str | None,
        typer.Option(
            metavar="HxW", help="Rows are images of this height and width.", rich_help_panel="Data"
        ),
    ] = None
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", rich_help_panel="Output")
    ] = None


EXAMPLES = (
    "mercer report iris.mercer iris.csv --label species -o iris.html",
    "mercer report digits.mercer digits.npy --images 8x8 -o digits.html",
)


def report(asked: Options, voice: say.Voice) -> say.Result:
    """Write a report: one HTML file with spectrum, scores, loadings, outliers and certificate.

    It opens in any browser, without a network.
    """
    from mercer import load
    from mercer.cli import facts, outputs
    from mercer.modelfile import read_header
    from mercer.report import write_report

    start = time.perf_counter()
    shape = _image(asked.images)
    _require_rows(asked)
    outputs.there(asked.model)
    outputs.require_suffix(asked.output, *outputs.PAGES)
    read = () if asked.data is None else (asked.data,)
    outputs.claim(asked.output, force=asked.force, inputs=(asked.model, *read))
    origin = read_header(asked.model).origin or {}
    model = load(asked.model)
    given = {} if asked.data is None else _rows(model, asked, origin, voice)
    X, given = given.pop("X", None), {"title": asked.title, "origin": origin, **given}
    write_report(model, X, asked.output, image_shape=shape, **given)
    seconds = time.perf_counter() - start
    lines = [("written", facts.written(asked.output)), ("time", say.seconds(seconds))]
    result = {"model": str(asked.model), "output": str(asked.output), "seconds": seconds}
    return say.Result(result, [say.pairs(lines)])


def _require_rows(asked: Options) -> None:
    """Refuse columns of rows that are not given."""
    from mercer.cli.errors import UsageError

    if asked.data is not None:
        return
    for name in ("label", "id", "keep", "drop", "na"):
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name} names columns of DATA, which is not given.")


def _rows(model: Any, asked: Options, origin: dict[str, Any], voice: say.Voice) -> dict[str, Any]:
    """Return the rows to show, and what is known of each."""
    from mercer.cli import rows

    usual = origin.get("label")
    label = asked.label if asked.label is not None else usual
    wanted = [*([asked.label] if asked.label is not None else []), *asked.kept]
    optional = [] if usual is None else [usual]  # other rows may well have no labels
    table = rows.fitted(model, asked, voice, origin, keep=wanted, optional=optional)
    if table.unnamed:
        voice.note(table.unnamed)
    known = table.extra
    columns = [name for name in rows.beside(table, asked.kept) if name not in (label, table.id)]
    origin["label"] = label
    return {
        "X": table.source,
        "labels": known.get(label) if label is not None else None,
        "ids": table.row_names,
        "columns": {name: known[name] for name in columns} or None,
    }


def _image(text: str | None) -> tuple[int, ...] | None:
    """Return the sides of an image."""
    from mercer.cli.errors import UsageError

    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) not in (2, 3) or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UsageError(
            f"--images {text!r} must be height x width, as 28x28; 32x32x3 is in colour."
        )
    return tuple(int(side) for side in sides)

"""``mercer report`` and ``mercer inspect``: a model as a page, and in the terminal."""

from __future__ import annotations

import time
from dataclasses import asdict
from inspect import signature
from typing import Any

import mercer
from mercer.cli import console, rows
from mercer.cli.apply import PAGES, check_file
from mercer.cli.console import Reporter, Result
from mercer.cli.errors import UsageError
from mercer.cli.options import Options
from mercer.data.errors import format_names
from mercer.modelfile import read_header


def report(options: Options, reporter: Reporter) -> Result:
    """Write a report about a model, and about rows if the user named a file of them."""
    from mercer.report import write_report

    start = time.perf_counter()
    shape = _image_shape(options.images)
    for name in ("label", "id", "keep", "drop", "na"):
        if options.data is None and getattr(options, name) is not None:
            raise UsageError(f"--{name} names columns of DATA, which is not given.")
    rows.check_model(options.model)
    inputs = [path for path in (options.model, options.data) if path is not None]
    check_file(options.output, PAGES, force=options.force, inputs=inputs)
    model, origin = rows.load_model(options.model)
    facts: dict[str, Any] = {"X": None}
    if options.data is not None:
        facts = _read_rows(model, options, origin, reporter)
    facts |= {"title": options.title, "origin": origin, "image_shape": shape}
    write_report(model, path=options.output, **facts)
    seconds = time.perf_counter() - start
    written, taken = console.format_file(options.output), console.format_seconds(seconds)
    lines = [("written", written), ("time", taken)]
    data = {"model": str(options.model), "output": str(options.output), "seconds": seconds}
    return Result(data, [console.pairs(lines)])


def _read_rows(
    model: Any, options: Options, origin: dict[str, Any], reporter: Reporter
) -> dict[str, Any]:
    """Return the rows to show, and the columns beside them."""
    label = origin.get("label")
    optional = [] if label is None else [label]  # new rows may have no labels
    keep = options.copied
    if options.label is not None:
        label = options.label
        keep = [label, *keep]
    table = rows.read_new(model, options, reporter, origin, keep=keep, optional=optional)
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
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) not in (2, 3) or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UsageError(
            f"--images {text!r} must be height x width, such as 28x28, or 32x32x3 for color."
        )
    return tuple(int(side) for side in sides)


def inspect(options: Options, reporter: Reporter) -> Result:
    """Show the header of a model file."""
    rows.check_model(options.model)
    header = read_header(options.model)
    names, width = header.feature_names, header.n_features
    columns = "" if width is None else f"{width}: {_text(names)}" if names else str(width)
    model = getattr(mercer, header.estimator) if header.estimator in mercer.__all__ else None
    defaults = {} if model is None else signature(model).parameters
    changed = [
        f"{key}={text}"
        for key, text in header.parameters.items()
        if key not in defaults or repr(defaults[key].default) != text
    ]
    lines = [
        ("file", str(options.model)),
        ("model", header.estimator),
        ("kernel", header.kernel),
        ("method", header.method),
        ("steps", ", ".join(header.preprocessing)),
        ("parameters", ", ".join(changed)),
        ("columns", columns),
    ]
    shown: list[Any] = [console.pairs((name, text) for name, text in lines if text)]
    stored: Any = header.spectrum.get("shares", ()) if isinstance(header.spectrum, dict) else ()
    if shares := [float(share) for share in stored if isinstance(share, int | float)]:
        shown += ["", console.spectrum_table(shares)]
    sentence = (header.certificate or {}).get("sentence")
    if sentence:
        shown += ["", str(sentence).replace("\n", " ")]
    about = [
        *((key, _text(value, key == "notes")) for key, value in (header.origin or {}).items()),
        ("fingerprint", header.fingerprint),
        ("created", header.created),
        ("versions", ", ".join(f"{key} {text}" for key, text in header.versions.items())),
        ("format", str(header.format)),
        ("checksum", header.checksum),
    ]
    shown += ["", console.pairs((name, text) for name, text in about if text)]
    return Result({"file": str(options.model), **asdict(header)}, shown)


def _text(value: Any, lines: bool = False) -> str:
    if isinstance(value, list):
        return "\n".join(value) if lines else format_names(value)
    return "" if value is None else str(value)

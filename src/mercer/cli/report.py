"""``mercer report`` and ``mercer inspect``: a model as a page, and in the terminal."""

from __future__ import annotations

import time
from inspect import signature
from typing import Any

import mercer
from mercer.cli import console, rows
from mercer.cli.apply import PAGES, check_file
from mercer.cli.console import Reporter, Result, UsageError
from mercer.cli.options import Options
from mercer.data.errors import format_names
from mercer.modelfile import read_header
from mercer.modelfile.container import refuse_file


def report(options: Options, reporter: Reporter) -> Result:
    """Write a report about a model, and about rows if the user named a file of them."""
    from mercer.report import write_report

    start = time.perf_counter()
    shape = rows.image_shape("images", options.images)
    for name in ("label", "id", "keep", "drop", "na"):
        if options.data is None and getattr(options, name) is not None:
            raise UsageError(f"--{name} names columns of DATA, which is not given.")
    inputs = [path for path in (options.model, options.data) if path is not None]
    check_file(options.output, PAGES, force=options.force, inputs=inputs)
    model, origin = rows.load_model(options.model)
    shape = shape or origin.get("images")
    facts: dict[str, Any] = {"X": None}
    if options.data is not None:
        usual, label = origin.get("label"), options.label
        keep = options.copied if label is None else [label, *options.copied]
        optional = [usual] if usual else []  # new rows may have no labels
        table = rows.read_new(model, options, reporter, origin, keep=keep, optional=optional)
        origin["label"] = label = label or usual
        facts = rows.report_arguments(table, label, rows.copied_columns(table, options.copied))
    facts |= {"title": options.title, "origin": origin, "image_shape": shape}
    write_report(model, path=options.output, **facts)
    seconds = time.perf_counter() - start
    written, taken = console.format_file(options.output), console.format_seconds(seconds)
    lines = [("written", written), ("time", taken)]
    data = {"model": str(options.model), "output": str(options.output), "seconds": seconds}
    return Result(data, [console.pairs(lines)])


def inspect(options: Options, reporter: Reporter) -> Result:
    """Show the header of a model file."""
    header = read_header(options.model)
    try:
        shown = _describe(header, options)
    except Exception as error:  # whatever a file can say
        refuse_file(options.model, error)
    return Result({"file": str(options.model), **header}, shown)


def _describe(header: dict[str, Any], options: Options) -> list[Any]:
    names, width = header["feature_names"], header["n_features"]
    columns = "" if width is None else f"{width}: {_text(names)}" if names else str(width)
    model = getattr(mercer, header["estimator"], None)
    defaults = signature(model).parameters if isinstance(model, type) else {}
    changed = [
        f"{key}={text}"
        for key, text in header["parameters"].items()
        if key not in defaults or repr(defaults[key].default) != text
    ]
    lines = [
        ("file", str(options.model)),
        ("model", header["estimator"]),
        ("kernel", header["kernel"]),
        ("method", header["method"]),
        ("steps", ", ".join(header["preprocessing"])),
        ("parameters", ", ".join(changed)),
        ("columns", columns),
    ]
    about = [
        *((key, _text(value, key == "notes")) for key, value in header["origin"].items()),
        ("created", header["created"]),
        ("versions", ", ".join(f"{key} {text}" for key, text in header["versions"].items())),
        ("format", str(header["format"])),
        ("checksum", header["checksum"]),
    ]
    shares = [share for share in header["spectrum"].get("shares", []) if share is not None]
    certificate = header["certificate"] or {}
    proof = str(certificate.get("text", certificate.get("sentence", "")))
    parts = [_filled(lines), console.spectrum_table(shares) if shares else None, proof or None]
    shown = [line for part in (*parts, _filled(about)) if part is not None for line in ("", part)]
    return shown[1:]


def _filled(lines: list[tuple[str, Any]]) -> Any:
    return console.pairs((name, text) for name, text in lines if text)


def _text(value: Any, lines: bool = False) -> str:
    if isinstance(value, list):
        return "\n".join(value) if lines else format_names(value)
    return "" if value is None else str(value)

"""Rows read from files: those to fit, and those to apply a model to."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import Any

from mercer.cli.console import Reporter, UsageError, WorkError, as_option, reject
from mercer.cli.options import Options
from mercer.data import Source, StringSource
from mercer.data.errors import format_names
from mercer.data.files import (
    IMAGES,
    NAMELESS,
    MissingValues,
    Table,
    read_table,
    redacted,
    split_path,
)
from mercer.estimators.inspection import parts
from mercer.messages import counted


def read_training(options: Options, reporter: Reporter) -> Table:
    """Read the rows to fit; note what was left out, and what is unusual about the columns."""
    if options.impute not in (None, "mean"):
        reject("--impute", options.impute, ("mean",))
    table = read_table(
        existing(options.data),
        columns=options.names,
        label=options.label,
        weights=options.weights,
        id=options.id,
        drop=options.dropped,
        na=options.na or (),
        keep=options.copied,
        missing="refuse" if options.impute is None else "keep",
        remarks=True,
        format=options.format,
        resize=image_shape("resize", options.resize),
        query=options.query,
    )
    for text in notes(options, table):
        reporter.note(text)
    return table


def image_shape(option: str, text: str | None) -> tuple[int, ...] | None:
    """Return the height and width, and perhaps the number of colors, that an option states."""
    if text is None:
        return None
    sides = text.lower().replace("×", "x").split("x")
    if len(sides) not in (2, 3) or not all(side.isdecimal() and int(side) > 0 for side in sides):
        raise UsageError(
            f"--{option} {text!r} must be height x width, such as 28x28, or 32x32x3 for color."
        )
    return tuple(int(side) for side in sides)


def existing(data: str) -> str:
    """Return the path of the data; raise if there is no such file."""
    path = split_path(data)[0]
    if data == "-" or "://" in data or has_magic(data) or path.exists():
        return data
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def notes(options: Options, table: Table) -> list[str]:
    """Return notes about the columns that a model is fitted to."""
    texts: list[str] = []
    suffix = split_path(options.data)[0].suffix.lower()
    named = table.source.names is not None and suffix != ".h5ad"
    if options.id is None and table.id is not None and named:
        texts.append(table.naming(as_option("columns", [table.id, "*"])))
    if table.reasons:
        texts.append(f"left out: {table.left_out}.")
        ids = [name for name, reason in table.reasons.items() if reason == "identifier"]
        if ids:
            option = as_option("columns", [ids[0], "*"])
            texts[-1] += f" To use {ids[0]!r} as a feature, pass {option}."
    features = (*(table.source.names or ()), table.id)
    kept = [name for name in table.extra if _matches(name, options.copied)]
    beside = [name for name in kept if name not in features]
    if beside:
        texts.append(f"left out of the features by --keep: {format_names(beside)}.")
    dropped = [name for name in table.dropped if _matches(name, options.dropped)]
    if dropped:
        texts.append(f"left out by --drop: {format_names(dropped)}.")
    texts += table.remarks
    if table.dominant and options.scale == "none":
        texts.append(f"{table.dominant} --scale zscore gives all columns the same variance.")
    return texts


def imputed(table: Table) -> list[str]:
    """Return a note about imputed values, if there are any."""
    if not table.missing:
        return []
    most = sorted(table.missing.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{count} in {name!r}" for name, count in most[:10])
    more = f" and in {counted(len(most) - 10, 'more column')}" if len(most) > 10 else ""
    values = counted(sum(table.missing.values()), "missing value")
    return [f"{values} imputed with column means: {shown}{more}."]


def read_new(
    model: Any,
    options: Options,
    reporter: Reporter,
    origin: Mapping[str, Any],
    *,
    keep: Sequence[str] = (),
    optional: Sequence[str] = (),
    names: list[str] | None = None,
) -> Table:
    """Read the rows to apply a model to: columns of some names, or those it was fitted to."""
    names = names or feature_names(model)
    path, format = split_path(options.data)[0], options.format
    suffix = path.suffix.lower() if format is None else f".{format.lower().lstrip('.')}"
    columns, drop, usual = names, options.dropped, origin.get("id")
    others = [usual, *optional]
    if names is None:  # columns go by their numbers, as in the fit
        columns, drop = origin.get("columns"), drop or origin.get("drop") or []
        others += [origin.get("label"), origin.get("weights")]
    elif suffix in NAMELESS:
        columns = None
    # New images are resized as those of the fit; rows of a file are what they are.
    fitted_size = origin.get("resize") if suffix in ("", *IMAGES) else None
    imputes = any(type(step).__name__ == "SimpleImputer" for step in parts(model)[0])
    try:
        table = read_table(
            existing(options.data),
            columns=columns,
            keep=keep,
            optional=[name for name in others if name is not None],
            id=options.id,
            drop=drop,
            na=[*(origin.get("na") or ()), *(options.na or ())],
            missing="keep" if imputes else "refuse",
            format=format,
            resize=image_shape("resize", options.resize) or fitted_size,
            query=options.query,
        )
    except MissingValues as error:
        lost = counted(sum(error.missing.values()), "missing value")
        raise WorkError(
            f"{error.path}: {lost} in {format_names(error.missing)}, but the model does not "
            f"impute. Fit a model with --impute mean."
        ) from error
    ignored = [name for name in table.dropped if not _matches(name, drop)]
    if ignored and names is not None:
        reporter.note(f"ignored, because the model has no such columns: {format_names(ignored)}.")
    if usual is not None and table.id is None and usual not in table.extra:
        reporter.note(
            f"{redacted(options.data)} has no column {usual!r}, which held the row names in the "
            f"fit. Rows are unnamed; use --id COLUMN to take names from another column."
        )
    return replace(table, id=usual) if options.id is None and usual in table.extra else table


def copied_columns(table: Table, kept: Sequence[str]) -> dict[str, Any]:
    """Return the columns to copy to the output: the row names, and those of --keep."""
    stored = table.source.extra_columns or {}
    wanted = [name for name in stored if name == table.id or _matches(name, kept)]
    return {name: stored[name] for name in sorted(wanted, key=lambda name: name != table.id)}


def report_arguments(table: Table, label: str | None, columns: Iterable[str]) -> dict[str, Any]:
    """Return the rows to show in a report, and the columns beside them."""
    beside = {name: table.extra[name] for name in columns if name not in (label, table.id)}
    return {
        "X": table.source,
        "labels": None if label is None else table.extra.get(label),
        "ids": table.row_names,
        "columns": beside or None,
    }


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def load_model(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return a fitted model and its origin."""
    from mercer import load
    from mercer.modelfile import read_header
    from mercer.modelfile.container import refuse_file

    model, header = load(path), read_header(path)
    try:
        return model, dict(header["origin"])
    except (KeyError, TypeError, ValueError) as error:
        refuse_file(path, error)


def component_estimator(model: Any) -> Any:
    """Return the estimator that has the components: the last step, or the one inside it."""
    last = parts(model)[1]
    estimator = getattr(last, "estimator_", last)
    if not hasattr(estimator, "projection_"):
        raise WorkError(f"A {type(last).__name__} has no components that this command can use.")
    return estimator


def feature_names(model: Any) -> list[str] | None:
    """Return the names of the columns a model was fitted to, if they had names."""
    steps, last = parts(model)
    names = getattr(steps[0] if steps else last, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def score_names(model: Any) -> list[str]:
    """Return the names of the components of a model."""
    return [str(name) for name in component_estimator(model).get_feature_names_out()]


def shape(source: Source) -> dict[str, int | None]:
    """Return the numbers of rows and columns for --json; strings have no columns."""
    return {"rows": source.shape[0], "columns": source.shape[1] if len(source.shape) > 1 else None}


def describe_rows(data: str, source: Source) -> str:
    """Write the name and the size of the data."""
    name = "stdin" if data == "-" else redacted(data)
    rows = counted(source.shape[0], "row")
    if isinstance(source, StringSource):
        return f"{name}: {rows} of text"
    return f"{name}: {rows} × {counted(source.shape[1], 'column')}"

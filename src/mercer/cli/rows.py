"""Rows read from files: those to learn from, and those that a model is used on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mercer.cli import say
from mercer.cli.errors import UsageError, WorkError, spoken
from mercer.cli.facts import axes_of
from mercer.cli.options import Rows
from mercer.cli.say import Voice
from mercer.data import Source, StringSource
from mercer.data.errors import format_names
from mercer.data.files import (
    NAMELESS,
    MissingValues,
    Table,
    download_advice,
    is_url,
    read_table,
    split_path,
)
from mercer.estimators.pipeline import parts


def learning(asked: Rows, voice: Voice) -> Table:
    """Read the rows of a fit; say what was left out, and what is unusual about the columns."""
    if asked.impute not in (None, "mean"):
        raise UsageError(f"--impute {asked.impute!r} is not known; there is mean.")
    table = read_table(
        present(asked.data),
        columns=asked.names,
        label=asked.label,
        weights=asked.weights,
        id=asked.id,
        drop=asked.left,
        na=asked.na or (),
        keep=getattr(asked, "kept", ()),
        missing="refuse" if asked.impute is None else "keep",
        remarks=True,
        format=asked.format,
    )
    for text in notes(asked, table):
        voice.note(text)
    return table


def notes(asked: Rows, table: Table) -> list[str]:
    """Return what should be known about the columns that a model is fitted to."""
    found = []
    suffix = split_path(asked.data)[0].suffix.lower()
    if asked.id is None and table.id is not None and suffix != ".h5ad":
        found.append(table.naming(f"columns={[table.id, '*']}"))
    elif table.unnamed:
        found.append(table.unnamed)
    if table.reasons:
        found.append(f"left out: {table.left_out}.")
        ids = [name for name, reason in table.reasons.items() if reason == "identifier"]
        if ids:
            found[-1] += f" To use {ids[0]!r} as a feature, pass columns={[ids[0], '*']}."
    kept = getattr(asked, "kept", ())
    beside = [name for name in table.extra if _matches(name, kept) and name != table.id]
    beside = [name for name in beside if name not in (table.source.names or ())]
    if beside:
        found.append(f"left out of the features by --keep: {format_names(beside)}.")
    dropped = [name for name in table.dropped if _matches(name, asked.left)]
    if dropped:
        found.append(f"left out by --drop: {format_names(dropped)}.")
    found += table.remarks
    if table.dominant and getattr(asked, "scale", "none") == "none":
        found.append(f"{table.dominant} --scale zscore gives all columns the same variance.")
    return [spoken(text) for text in found]


def imputed(table: Table) -> list[str]:
    """Say which missing values were imputed."""
    if not table.missing:
        return []
    most = sorted(table.missing.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{count} in {name!r}" for name, count in most[:10])
    more = f", and more in {say.count(len(most) - 10, 'other column')}" if len(most) > 10 else ""
    return [f"missing values imputed with the mean of the column: {shown}{more}."]


def fitted(
    model: Any,
    asked: Any,
    voice: Voice,
    origin: Mapping[str, Any],
    *,
    keep: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> Table:
    """Read the rows that a model is used on: the columns it was fitted to."""
    imputes = any(type(step).__name__ == "SimpleImputer" for step in parts(model)[0])
    names = feature_names(model)
    try:
        return _named(names, asked, voice, origin, keep, optional, missing=imputes)
    except MissingValues as error:
        lost = say.count(sum(error.missing.values()), "missing value")
        raise WorkError(
            f"{error.path}: {lost} in {format_names(error.missing)}, and the model does not impute "
            f"them. One fitted with --impute mean does."
        ) from error


def scored(model: Any, asked: Any, voice: Voice, origin: Mapping[str, Any]) -> Table:
    """Read scores: the columns that a model calls them by."""
    return _named(score_names(model), asked, voice, origin, asked.kept, (), missing=False)


def _named(
    names: list[str] | None,
    asked: Any,
    voice: Voice,
    origin: Mapping[str, Any],
    keep: Sequence[str],
    optional: Sequence[str],
    *,
    missing: bool,
) -> Table:
    """Read the columns of these names; say which others are not used."""
    path, format = split_path(asked.data)[0], asked.format
    suffix = path.suffix.lower() if format is None else f".{format.lower().lstrip('.')}"
    columns, drop, others = names, asked.left, [origin.get("id"), *optional]
    if names is None:  # columns go by their numbers, as in the fit
        columns, drop = origin.get("columns"), asked.left or origin.get("drop") or ()
        others += [origin.get("label"), origin.get("weights")]
    elif suffix in NAMELESS:
        columns = None
    table = read_table(
        present(asked.data),
        columns=columns,
        keep=keep,
        optional=[name for name in others if name is not None],
        id=asked.id,
        drop=drop,
        na=[*(origin.get("na") or ()), *(asked.na or ())],
        missing="keep" if missing else "refuse",
        format=format,
    )
    if names is not None and columns is not None and table.source.names != names:
        lost = [name for name in names if name not in (table.source.names or ())]
        raise WorkError(f"{asked.data} has no columns {format_names(lost)}, which the model needs.")
    dropped = [name for name in table.dropped if not _matches(name, drop)]
    if dropped and names is not None:
        voice.note(f"not used, as the model has no such columns: {format_names(dropped)}.")
    usual = origin.get("id")
    if usual is not None and table.id is None and usual not in table.extra:
        voice.note(
            f"{asked.data} has no column {usual!r}, which has the row names of the fit: there are "
            f"no row names. --id COLUMN uses another column."
        )
    return replace(table, id=usual) if asked.id is None and usual in table.extra else table


def beside(table: Table, kept: Sequence[str]) -> dict[str, Any]:
    """Return the columns to write beside the scores: the names of the rows, and those kept."""
    stored = table.source.extra_columns or {}
    wanted = [name for name in stored if name == table.id or _matches(name, kept)]
    return {name: stored[name] for name in sorted(wanted, key=lambda name: name != table.id)}


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def present(data: str) -> str:
    """Return a path that can be read; say what it is where it cannot."""
    if is_url(data):
        raise WorkError(download_advice(data))
    path = split_path(data)[0]
    if data != "-" and path.is_dir() and not any(path.iterdir()):
        raise WorkError(f"{data} is a folder, and empty. Name a file of rows.")
    if data != "-" and not path.exists():
        near = _near(path)
        raise WorkError(f"There is no file {data}.{near}")
    return data


def _near(path: Path) -> str:
    import difflib

    try:
        names = os.listdir(path.parent)
    except OSError:
        return f" Nor is there a folder {path.parent}."
    found = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f" Did you mean {path.parent / found[0]}?" if found else ""


def feature_names(model: Any) -> list[str] | None:
    """Return the names of the columns a model was fitted to, where they had names."""
    steps, last = parts(model)
    first = steps[0] if steps else last
    names = getattr(first, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def score_names(model: Any) -> list[str]:
    """Return what the components of a model are called."""
    return [str(name) for name in axes_of(model).get_feature_names_out()]


def size(source: Source) -> dict[str, int | None]:
    """Return how many rows and columns there are, as JSON has it; strings have no columns."""
    return {"rows": source.shape[0], "columns": source.shape[1] if len(source.shape) > 1 else None}


def described(data: str, source: Source) -> str:
    """Say what was read."""
    name = "stdin" if data == "-" else data
    rows = say.count(source.shape[0], "row")
    if isinstance(source, StringSource):
        return f"{name}: {rows} of text"
    return f"{name}: {rows} × {say.count(source.shape[1], 'column')}"

"""Rows read from files: those to learn from, and those that a model is used on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mercer.cli import say
from mercer.cli.errors import UsageError, WorkError
from mercer.cli.facts import axes_of
from mercer.cli.options import Rows
from mercer.cli.say import Voice
from mercer.estimators.pipeline import parts
from mercer.sources import Source, StringSource
from mercer.sources.errors import listed
from mercer.sources.files import MissingValues, Table, read_table, split

# Formats without names of columns: these are taken in the order they have.
_NAMELESS = (".npy", ".npz", ".mtx", ".txt", ".h5", ".hdf5", ".zarr")


def learning(asked: Rows, voice: Voice) -> Table:
    """Read the rows of a fit; say what was left out."""
    if asked.impute not in (None, "mean"):
        raise UsageError(f"--impute {asked.impute!r} is not known; there is mean.")
    table = read_table(
        present(asked.data),
        columns=asked.names,
        label=asked.label,
        weights=asked.weights,
        missing="refuse" if asked.impute is None else "keep",
        format=asked.format,
    )
    if table.dropped and asked.columns is None:
        voice.note(f"left out, as {table.left_out}")
    return table


def fitted(model: Any, data: str, voice: Voice, *, keep: list[str], format: str | None) -> Table:
    """Read the rows that a model is used on: the columns it was fitted to."""
    imputes = any(type(step).__name__ == "SimpleImputer" for step in parts(model)[0])
    try:
        return _named(feature_names(model), data, voice, keep, format, missing=imputes)
    except MissingValues as error:
        lost = say.count(sum(error.missing.values()), "missing value")
        raise WorkError(
            f"{error.path}: {lost} in {listed(error.missing)}, and the model does not fill them "
            f"in. One fitted with --impute mean does."
        ) from error


def scored(model: Any, data: str, voice: Voice, *, keep: list[str], format: str | None) -> Table:
    """Read scores: the columns that a model calls them by."""
    return _named(score_names(model), data, voice, keep, format, missing=False)


def _named(
    names: list[str] | None,
    data: str,
    voice: Voice,
    keep: list[str],
    format: str | None,
    *,
    missing: bool,
) -> Table:
    """Read the columns of these names; say which others are not used."""
    suffix = split(data)[0].suffix.lower() if format is None else f".{format.lower().lstrip('.')}"
    table = read_table(
        present(data),
        columns=None if suffix in _NAMELESS else names,
        keep=keep,
        missing="keep" if missing else "refuse",
        format=format,
    )
    if table.dropped:
        voice.note(f"not used, as the model has no such columns: {listed(table.dropped)}.")
    return table


def present(data: str) -> str:
    """Return a path that can be read; say what it is where it cannot."""
    path = split(data)[0]
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

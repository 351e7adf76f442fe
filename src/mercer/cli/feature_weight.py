"""Column weights from a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.console import WorkError
from mercer.data import Source
from mercer.data.errors import file_errors
from mercer.estimators.feature_weight import check_feature_weight


def read_feature_weight(path: Path) -> Any:
    """Return the weights in a file: by column name, or one for each column in their order.

    A .npy file, or text with a weight, or a name and a weight, in each line; the first may be a
    header.
    """
    if path.suffix.lower() == ".npy":
        with file_errors(path, "npy"):
            return np.load(path, allow_pickle=False)
    with path.open(newline="", encoding="utf-8-sig") as file, file_errors(path, "csv"):
        lines = [(number, line) for number, line in enumerate(csv.reader(file), start=1) if line]
    if len(lines) > 1 and not _is_number(lines[0][1][-1]):
        lines = lines[1:]
    width = len(lines[0][1]) if lines else 0
    for number, line in lines:
        if len(line) != width or width not in (1, 2) or not _is_number(line[-1]):
            raise WorkError(
                f"{path}, line {number}: expected a weight, or the name of a column and its "
                f"weight, separated by a comma; it reads {','.join(line)[:60]!r}."
            )
    if width < 2:
        return np.array([float(line[0]) for _, line in lines])
    names = [line[0].strip() for _, line in lines]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkError(f"{path}: column {twice!r} has two weights. Keep one of them.")
    return {name: float(line[1]) for name, (_, line) in zip(names, lines, strict=True)}


def order_feature_weight(estimator: Any, source: Source) -> None:
    """Set the weights of linear PCA in the order of the columns: an imputer drops their names."""
    if getattr(estimator, "feature_weight", None) is not None:
        weights = check_feature_weight(estimator.feature_weight, source)
        estimator.set_params(feature_weight=weights)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

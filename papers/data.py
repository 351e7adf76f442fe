"""The data sets of the sources: files in MERCER_DATA, else OpenML."""

from __future__ import annotations

import functools
import zlib
from typing import Any
from zipfile import BadZipFile

import numpy as np

from benchmarks.data import find, with_target
from papers.openml import fetched

Array = np.ndarray[Any, Any]


@functools.cache
def load(name: str) -> dict[str, Array]:
    """Return the arrays of a data set; unpacking one takes seconds, and is done once.

    Where there is no file of it in the folder that MERCER_DATA names, by default ../shared/data,
    it is fetched from OpenML.
    """
    try:
        path = find(f"{name}.npz")
    except FileNotFoundError as absent:
        return fetched(name, absent)
    try:
        with np.load(path) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, BadZipFile, zlib.error) as broken:
        # To what asks for it, a file that cannot be read is one that is not there.
        raise FileNotFoundError(f"{path} cannot be read ({broken})") from broken


def table(name: str) -> Array:
    """Return a table as washizawa §6.3 has it: with what is to be predicted, or all rows."""
    return with_target(load({"housing": "boston_housing"}.get(name, name)))

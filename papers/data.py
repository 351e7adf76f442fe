"""The data sets of the sources: files in MERCER_DATA, else OpenML."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from benchmarks.data import find
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
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files}

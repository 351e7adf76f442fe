"""The data sets of the sources: files in MERCER_DATA."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from benchmarks.data import find

Array = np.ndarray[Any, Any]


@functools.cache
def load(name: str) -> dict[str, Array]:
    """Return the arrays of a data set; unpacking one takes seconds, and is done once."""
    with np.load(find(f"{name}.npz")) as archive:
        return {key: archive[key] for key in archive.files}

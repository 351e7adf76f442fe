"""Small questions about what a file holds: whether it is an array of some shape, or a number."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer.arrays import is_foreign, numpy_dtype


def need(holds: bool, what: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise ValueError(what)


def shape(found: Any) -> tuple[int, ...] | None:
    """Return the shape of an array of real numbers; None of anything else."""
    if not isinstance(found, np.ndarray) and not is_foreign(found) and not hasattr(found, "tocsr"):
        return None
    numbers = numpy_dtype(found).kind in "fiub"
    return tuple(int(size) for size in found.shape) if numbers else None


def floats(found: Any, wanted: tuple[int, ...], name: str) -> None:
    """Refuse what is no array of floats of that shape."""
    real = isinstance(found, np.ndarray) or is_foreign(found)
    need(real and shape(found) == wanted and numpy_dtype(found).kind == "f", f"{name} is not one")


def number(found: Any, name: str) -> None:
    """Refuse what is not a number."""
    need(isinstance(found, Real) and not isinstance(found, bool), f"{name} is not a number")


def count(found: Any, name: str, least: int = 0) -> None:
    """Refuse what is no whole number from the least on."""
    there = isinstance(found, Integral) and not isinstance(found, bool)
    need(there and least <= int(found) < 2**62, f"{name} is no count")


def host(found: Any, *wanted: int) -> bool:
    """Tell whether this is a float64 array of NumPy's, of that shape."""
    return isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == wanted


def rows_of(found: Any, name: str) -> tuple[int, ...]:
    """Return how many rows there are, and columns where they have some."""
    if isinstance(found, list):
        need(all(isinstance(text, str) for text in found), f"{name} holds no strings")
        return (len(found),)
    sizes = shape(found)
    need(sizes is not None and len(sizes) == 2, f"{name} has no rows")
    need(numpy_dtype(found).kind == "f", f"{name} is not of floats")
    assert sizes is not None
    return sizes


def columns(found: Any) -> None:
    """Refuse an estimator whose columns have no number, or not a name each."""
    parts = vars(found)
    if "n_features_in_" in parts:
        count(parts["n_features_in_"], "n_features_in_")
    if "feature_names_in_" in parts:
        names = parts["feature_names_in_"]
        there = isinstance(names, np.ndarray) and names.dtype == object and names.ndim == 1
        need(there and all(isinstance(x, str) for x in names.tolist()), "columns have no names")
        need(len(names) == parts.get("n_features_in_"), "columns have not a name each")

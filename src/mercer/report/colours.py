"""What points are coloured by: classes, or numbers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.report.text import clean, short

# Numbers of more values than this are a scale; classes of more share the last colour.
MANY = 20
_MISSING = "missing"


@dataclass(frozen=True)
class Colour:
    """Values of every row.

    Attributes
    ----------
    name : str
    numbers : ndarray of shape (n,) or None
        Where they are a scale; NaN where there is none.
    codes : ndarray of shape (n,) or None
        Where they are classes: the place among `names`, −1 where there is none.
    names : list of str
        The classes; the most frequent first where they are many.
    """

    name: str
    numbers: npt.NDArray[np.float64] | None
    codes: npt.NDArray[np.int64] | None
    names: list[str]

    def text(self, row: int) -> str:
        """Return the value of a row."""
        if self.numbers is not None:
            return f"{self.numbers[row]:.6g}"
        assert self.codes is not None
        code = int(self.codes[row])
        return self.names[code] if code >= 0 else _MISSING


def column(values: Any, n: int, what: str) -> npt.NDArray[Any]:
    """Return one value for every row, or refuse what has another number of them."""
    found = to_numpy(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if found.shape != (n,):
        raise ValueError(f"{what} has shape {found.shape}; X has {n} rows, give one for each.")
    return found


def scaled(name: str, values: npt.NDArray[Any]) -> Colour:
    """Return numbers as a scale."""
    found = np.asarray(values, np.float64)
    return Colour(name, np.where(np.isfinite(found), found, np.nan), None, [])


def coloured(name: str, values: npt.NDArray[Any], *, label: bool = False) -> Colour:
    """Return classes, or a scale: numbers of many values; whole ones only where not a label."""
    numbers = _numbers(values)
    if numbers is not None and not (label and values.dtype.kind in "iub"):
        there = numbers[np.isfinite(numbers)]
        if len(np.unique(there)) > MANY:
            return scaled(name, numbers)
    return _classes(name, values, numbers)


def _numbers(values: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Return numbers, NaN where there is none; None where they are something else."""
    if values.dtype.kind in "fiu":
        return values.astype(np.float64)
    if values.dtype.kind != "O":
        return None
    there = [v for v in values if not _absent(v)]
    if not there or not all(isinstance(v, Real) and not isinstance(v, bool) for v in there):
        return None
    return np.array([np.nan if _absent(v) else float(v) for v in values])


def _absent(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value


def _classes(name: str, values: npt.NDArray[Any], numbers: Any) -> Colour:
    if numbers is not None:
        absent = np.isnan(numbers)
        keys, codes, sizes = np.unique(numbers, return_inverse=True, return_counts=True)
        texts = [f"{key:.10g}" for key in keys.tolist()]
    else:
        absent = np.array([_absent(v) for v in values], bool)
        said = np.array([clean(v) for v in values], object)
        keys, codes, sizes = np.unique(said, return_inverse=True, return_counts=True)
        texts = [str(key) for key in keys]
    codes = np.where(absent, -1, codes).astype(np.int64)
    # Classes of nothing but missing values are none.
    here = [i for i in range(len(texts)) if np.any(codes == i)] if absent.any() else None
    order = np.array(here if here is not None else range(len(texts)), np.int64)
    if len(order) > MANY:
        order = order[np.argsort(-sizes[order], kind="stable")]
    place = np.full(len(texts) + 1, -1)
    place[order] = np.arange(len(order))
    return Colour(name, None, place[codes], [short(texts[i], 80) for i in order])

"""What points are coloured by: classes, numbers, or dates."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.plotting.dates import absent, moments, written

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
        The classes, as they were given; the most frequent first where they are many.
    dates : bool
        Whether the numbers are milliseconds since 1970.
    """

    name: str
    numbers: npt.NDArray[np.float64] | None
    codes: npt.NDArray[np.int64] | None
    names: list[str]
    dates: bool = False

    def text(self, row: int) -> str:
        """Return the value of a row."""
        if self.numbers is not None and np.isnan(self.numbers[row]):
            return _MISSING
        if self.numbers is not None and self.dates:
            return written(self.numbers[row : row + 1].astype("datetime64[ms]"))[0]
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
    name = f"{name} (s)" if values.dtype.kind == "m" else name
    values = moments(values)
    if values.dtype.kind == "M":
        return _dated(name, values)
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
    there = [v for v in values if not absent(v)]
    if not there or not all(isinstance(v, Real) and not isinstance(v, bool) for v in there):
        return None
    return np.array([np.nan if absent(v) else float(v) for v in values])


def _dated(name: str, values: npt.NDArray[Any]) -> Colour:
    lost = np.isnat(values)
    if len(np.unique(values[~lost])) > MANY:
        numbers = np.where(lost, np.nan, values.astype(np.int64).astype(np.float64))
        return Colour(name, numbers, None, [], dates=True)
    said = np.full(len(values), None, object)
    said[~lost] = written(values[~lost])
    return _classes(name, said, None)


def _classes(name: str, values: npt.NDArray[Any], numbers: Any) -> Colour:
    if numbers is not None:
        lost = np.isnan(numbers)
        keys, codes = np.unique(numbers, return_inverse=True)
        texts = [f"{key:.10g}" for key in keys.tolist()]
    else:
        texts, codes = _coded(values)
        lost = np.zeros(len(values), bool)
        if values.dtype.kind not in "Ub":
            lost = np.fromiter((absent(v) for v in values), bool, len(values))
    codes = np.where(lost, -1, codes).astype(np.int64)
    sizes = np.bincount(codes[codes >= 0], minlength=len(texts))
    order = np.flatnonzero(sizes)  # what is missing is no class
    if len(order) > MANY:
        order = order[np.argsort(-sizes[order], kind="stable")]
    place = np.full(len(texts) + 1, -1)  # the last is that of −1
    place[order] = np.arange(len(order))
    return Colour(name, None, place[codes], [texts[i] for i in order])


def _coded(values: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Return the texts there are, in order, and the place of each value among them."""
    if values.dtype.kind == "U":
        keys, codes = np.unique(values, return_inverse=True)
        return [str(key) for key in keys], codes
    seen: dict[str, int] = {}
    said = (seen.setdefault(str(v), len(seen)) for v in values)
    first = np.fromiter(said, np.int64, len(values))
    texts = sorted(seen)
    rank = np.empty(len(seen), np.int64)
    rank[[seen[text] for text in texts]] = np.arange(len(texts))
    return texts, rank[first]

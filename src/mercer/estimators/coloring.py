"""Colors of points by classes, numbers or dates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy

Values = npt.NDArray[Any]
MISSING = "missing"
# Numbers and dates with more distinct values than this are a scale, not names of classes.
MAX_LEVELS = 20


@dataclass(frozen=True)
class Coloring:
    """One value per row: the name of a class, or a number along a scale."""

    name: str  # of the values; may be empty
    classes: list[str]  # names in order; empty for a scale
    codes: npt.NDArray[np.int64]  # class of each row; −1 if missing, and for a scale
    numbers: npt.NDArray[np.float64] | None = None  # of a scale, NaN if missing
    dates: bool = False  # whether the numbers are milliseconds since 1970

    @property
    def missing(self) -> Values:
        """Mask of the rows without a value."""
        return self.codes < 0 if self.numbers is None else np.isnan(self.numbers)

    def text(self, row: int) -> str:
        """Return the value of a row as text."""
        if self.missing[row]:
            return MISSING
        if self.numbers is None:
            return self.classes[int(self.codes[row])]
        if self.dates:
            return _date_texts(self.numbers[row : row + 1].astype("datetime64[ms]"))[0]
        return f"{self.numbers[row]:.6g}"

    def largest(self, count: int) -> npt.NDArray[np.int64]:
        """Return the classes with the most rows, largest first."""
        sizes = np.bincount(self.codes[self.codes >= 0], minlength=len(self.classes))
        return np.argsort(-sizes, kind="stable")[:count]

    def groups(self, most: int) -> npt.NDArray[np.int64]:
        """Return the group of each class: with more than `most` classes, the small ones share one.

        Groups are numbered in the order of the classes; the shared one is number most − 1.
        """
        if len(self.classes) <= most:
            return np.arange(len(self.classes))
        groups = np.full(len(self.classes), most - 1)
        groups[np.sort(self.largest(most - 1))] = np.arange(most - 1)
        return groups


def row_values(values: Any, n: int, argument: str) -> Values:
    """Return one value per row as an array, or raise an error that names the argument."""
    array = to_numpy(values.to_numpy() if hasattr(values, "to_numpy") else values)
    if array.shape != (n,):
        raise ValueError(
            f"{argument} has shape {array.shape}, but there are {n} rows: pass one value per row."
        )
    return array


def coloring(
    values: Any, n: int, *, name: str = "", argument: str = "labels", max_integers: int = 60
) -> Coloring:
    """Return the colors of n points: of classes, numbers or dates; None, NaN and NaT are missing.

    Integers with more than `max_integers` distinct values are a scale, other numbers and dates
    with more than 20. Error messages call the values `argument`.
    """
    array = _plain(row_values(values, n, argument))
    if array.dtype.kind == "m":
        name = f"{name} (s)".strip()
        array = np.where(np.isnat(array), np.nan, array / np.timedelta64(1, "s"))
    missing = _missing(array)
    known = array[~missing]
    limit = {"f": MAX_LEVELS, "M": MAX_LEVELS, "i": max_integers, "u": max_integers}
    if array.dtype.kind in limit and len(np.unique(known)) > limit[array.dtype.kind]:
        numbers, none = np.full(n, np.nan), np.full(n, -1)
        numbers[~missing] = known.astype(np.int64) if array.dtype.kind == "M" else known
        return Coloring(name, [], none, numbers, dates=array.dtype.kind == "M")
    if array.dtype.kind == "M":
        known = np.array(_date_texts(known), object)
    codes = np.full(n, -1)
    classes, codes[~missing] = _classes(known)
    return Coloring(name, classes, codes)


def _plain(values: Values) -> Values:
    """Return dates as datetime64[ms] and objects that are all numbers as floats."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[ms]")
    if values.dtype.kind != "O":
        return values
    missing = _missing(values)
    known = values[~missing]
    if len(known) and all(isinstance(value, date) for value in known):
        dates = np.full(len(values), "NaT", "datetime64[ms]")
        # NumPy takes moments in UTC without their time zone.
        zoned = [isinstance(x, datetime) and x.tzinfo is not None for x in known]
        dates[~missing] = [
            x.astimezone(UTC).replace(tzinfo=None) if zone else x
            for x, zone in zip(known, zoned, strict=True)
        ]
        return dates
    if len(known) and all(isinstance(x, Real) and not isinstance(x, bool) for x in known):
        numbers = np.full(len(values), np.nan)
        numbers[~missing] = known.astype(np.float64)
        return numbers
    return values


def _missing(values: Values) -> Values:
    """Return where values are None, NaN, NaT or pandas' NA."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    missing = (
        x is None or type(x).__name__ in ("NAType", "NaTType") or (isinstance(x, Real) and x != x)
        for x in values
    )
    return np.fromiter(missing, bool, len(values))


def _date_texts(values: Values) -> list[str]:
    """Write dates, with the time of day unless all are at midnight."""
    days = bool(np.all(values == values.astype("datetime64[D]")))
    texts = np.datetime_as_string(values, unit="D" if days else "s").tolist()
    return [text.replace("T", " ") for text in texts]


def _classes(values: Values) -> tuple[list[str], Values]:
    """Return the names of the classes in order, and the class of each value."""
    if values.dtype.kind != "O":
        distinct, codes = np.unique(values, return_inverse=True)
        if distinct.dtype.kind != "f":
            return [str(value) for value in distinct], codes
        return [f"{x:.0f}" if x.is_integer() else f"{x:.7g}" for x in distinct.tolist()], codes
    # An array of str would give every text the length of the longest.
    texts = [str(value) for value in values]
    classes = sorted(set(texts))
    place = {text: i for i, text in enumerate(classes)}
    return classes, np.array([place[text] for text in texts], np.int64)

"""Dates among the values of rows, and values that are missing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt


def absent(value: Any) -> bool:
    """Tell whether a value is none: None, NaN, NaT, pandas' NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Real) and value != value


def moments(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return dates as NumPy has them, in milliseconds; whatever else there is stays as it is."""
    if values.dtype.kind == "m":
        return np.where(np.isnat(values), np.nan, values / np.timedelta64(1, "s"))
    if values.dtype.kind == "M":
        return values.astype("datetime64[ms]")
    if values.dtype.kind != "O":
        return values
    there = [v for v in values if not absent(v)]
    if not there or not all(isinstance(v, date) for v in there):
        return values
    plain = [None if absent(v) else _plain(v) for v in values]
    return np.array(plain, "datetime64[ms]")


def _plain(moment: date) -> date:
    """Return a time without its zone, in that of Greenwich."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def written(values: npt.NDArray[Any]) -> list[str]:
    """Write dates; with the time where one is not midnight."""
    days = bool(np.all(values == values.astype("datetime64[D]")))
    texts = np.datetime_as_string(values, unit="D" if days else "s").tolist()
    return [text.replace("T", " ") for text in texts]

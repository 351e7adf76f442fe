"""Values of single columns, held by Polars: row names, labels and columns to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import extras

Values = npt.NDArray[Any]

MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-NaN", "-nan", "null", "NULL", "Null"),
    *("None", "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Texts that stand for a missing value, as in pandas."""
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
# 007 is a name, and would lose its zeros as a number.
_PADDED = r"^[+-]?0\d|^\+"
# Floats would confuse whole numbers of so many digits: identifiers.
_LONG = r"^-?\d{16,}$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"


def extra(module: str, format: str) -> Any:
    """Import a package of the extra `files`, or say how to install it."""
    return extras.extra(module, "files", f"{format} files are read and written with")


def polars() -> Any:
    """Import Polars."""
    return extra("polars", "Table")


@dataclass(frozen=True)
class Text:
    """A column of a text file: written to text files as it is, to others with a type."""

    series: Any
    na: tuple[str, ...] = ()

    def typed(self) -> Any:
        """Return integers, dates, floats or Booleans if that loses nothing, else the text."""
        pl, known = polars(), self.known()
        if known.null_count() == len(known) or known.str.contains(_PADDED).any():
            return self.series
        if known.str.contains(_DAY).all():
            return _cast(known.str.to_date("%Y-%m-%d", strict=False), known, self.series)
        numbers = _cast(known.cast(pl.Int64, strict=False), known, None)
        if numbers is None and not known.str.contains(_LONG).any():
            numbers = _cast(known.cast(pl.Float64, strict=False), known, None)
        if numbers is None and known.is_in([*TRUE, *FALSE]).all() and not known.null_count():
            numbers = known.is_in(TRUE)
        return self.series if numbers is None else numbers

    def as_text(self) -> Any:
        """Return what is written to a text file: the text, whole numbers and dates unquoted."""
        typed = self.typed()
        exact = typed.dtype.is_integer() or typed.dtype == polars().Date
        return typed if exact else self.series

    def known(self) -> Any:
        """Return the texts, null where they stand for a missing value."""
        return self.series.set(self.series.is_in([*MISSING, *self.na]), None)


def _cast(values: Any, before: Any, otherwise: Any) -> Any:
    return values if values.null_count() == before.null_count() else otherwise


def column_values(column: Any) -> Values:
    """Return a column next to the rows as an array: numbers, else texts ("" where missing)."""
    typed = column.typed() if isinstance(column, Text) else column
    if not hasattr(typed, "null_count"):
        return np.asarray(typed)
    values = _numbers(typed)
    return _texts(getattr(column, "series", column)) if values is None else values


def _numbers(series: Any) -> Values | None:
    """Return numbers as an array: floats where some are missing, None if these lose digits."""
    pl, dtype = polars(), series.dtype
    if not is_number(dtype):
        return None
    if not (dtype.is_integer() or dtype == pl.Boolean):
        return np.asarray(series.cast(pl.Float64).to_numpy())
    floats = series.cast(pl.Float64)
    if series.null_count() and not (floats.abs() < 2**53).all():
        return None
    return np.asarray((floats if series.null_count() else series).to_numpy())


def _texts(series: Any) -> Values:
    pl = polars()
    try:
        texts = series.cast(pl.String).fill_null("").to_list()
    except pl.exceptions.PolarsError:  # nested values
        texts = ["" if value is None else str(value) for value in series.to_list()]
    return np.array([*texts, None], dtype=object)[:-1]  # never an array of equal-sized parts


def is_number(dtype: Any) -> bool:
    """Tell whether a type of Polars is numbers, or true and false."""
    return bool(dtype.is_numeric() or dtype == polars().Boolean)


def can_identify(dtype: Any) -> bool:
    """Tell whether entries of a type of Polars can name rows: numbers or text."""
    pl = polars()
    return dtype in (pl.String, pl.Categorical, pl.Enum) or bool(dtype.is_numeric())


def count_ids(series: Any, na: Sequence[str] = (), *, whole: bool = False) -> int | None:
    """Return how many rows a column names; None if its entries are not all different.

    Entries are texts or whole numbers; with `whole`, texts must be whole numbers.
    """
    pl = polars()
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    text = series.dtype == pl.String
    if text:
        known = Text(series, tuple(na)).known().drop_nulls()
        known = known.str.strip_chars() if whole else known
    else:
        known = series.drop_nulls()
        known = known.drop_nans() if known.dtype.is_float() else known
    if whole or not (text or known.dtype.is_integer()):
        numbers = known.cast(pl.Float64, strict=False)
        if not (numbers.is_finite() & (numbers == numbers.floor())).fill_null(False).all():
            return None
        if text:  # pandas adds a point to whole numbers if one of their column is missing
            known = known.str.replace(r"\.0*$", "")
    return len(known) if known.n_unique() == len(known) else None


def rank_ids(counts: Mapping[int, int | None]) -> list[int]:
    """Return the columns that name rows, given how many each names: first the most."""
    return sorted((i for i, count in counts.items() if count), key=lambda i: -(counts[i] or 0))


def missing_entries(column: Any) -> npt.NDArray[np.bool_]:
    """Tell which entries of a column next to the rows are missing."""
    values = column_values(column)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    marks = {*MISSING, *(column.na if isinstance(column, Text) else ())}
    return np.array([isinstance(value, str) and value in marks for value in values], bool)


def id_names(column: Any) -> Values:
    """Return the row names in a column next to the rows.

    A row without an entry goes by its number, counted from 0: "#3". Whole floats are integers.
    """
    values, missing = column_values(column), missing_entries(column)
    if values.dtype.kind == "f":
        known = values[~missing]
        if ((np.abs(known) < 2**63) & (known == np.floor(known))).all():
            values = np.where(missing, 0, values).astype(np.int64)
    if missing.any():
        values = values.astype(object)
        for i in np.flatnonzero(missing).tolist():
            values[i] = f"#{i}"
    return values

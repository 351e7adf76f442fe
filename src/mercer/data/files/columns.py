"""Columns of a file: their roles (features, row names, label, weights), and their values."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import extras
from mercer.data.errors import FileError, format_names
from mercer.messages import as_python, format_parameter

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
# Names of identifiers: id, sample_id, PassengerId, the row names of R and pandas.
_ID_NAME = re.compile(
    r"(?i:ids?|idx|index|rows?|row[ _.-]?(names?|numbers?|nr|no)|uuid|guid|barcodes?|accession|"
    r"samples?|specimen|subject|patient|(samples?|subject|patient)[ _.-]?(names?|no|nr)|names?)"
    r"|.*[ _.-](?i:id|uuid|barcode)|.*[a-z](Id|ID)|Unnamed: 0"
)
# Columns with such names whose values are examined; any further ones are ordinary columns.
_CANDIDATES = 8


@dataclass(frozen=True)
class Request:
    """What the user wants from a file: the arguments of `read_table`."""

    path: str
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weights: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    """Columns to keep if the file has them."""
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    refuse: bool = True
    """Whether missing values are an error."""
    remarks: bool = False
    """Whether remarks about the columns are wanted, which take a pass over the rows."""
    direct: bool = False
    """Whether a path was passed instead of rows: then there are no options, and missing values
    are counted only where that takes no extra pass over a file."""
    encoding: str = "utf-8"
    """Of text that is not marked as another Unicode encoding."""
    part: str = ""
    """Name of the array or sheet in the file: what follows ``::`` in a path."""

    @property
    def all_columns(self) -> bool:
        """Whether no column has a role of its own."""
        roles = (self.columns, self.label, self.weights, self.id)
        return roles == (None,) * 4 and not (self.keep or self.drop or self.optional)

    def option(self, name: str, value: Any, **others: Any) -> str:
        """Format an option of `read_table`; as a whole call if the user has not called it.

        The whole call has the `others` too.
        """
        if not self.direct:
            return format_parameter(name, value)
        arguments = ", ".join(as_python(*each) for each in {name: value, **others}.items())
        call = f"read_table({self.path!r}, {arguments}).source"
        return f"{call}, with: from mercer.data.files import read_table"


@dataclass(frozen=True)
class Roles:
    """Numbers of columns by role; a column may have several."""

    names: tuple[str, ...]
    """Of all columns."""
    features: tuple[int, ...]
    exact: tuple[int, ...]
    """Features requested by their full name: they must be numbers."""
    extra: tuple[int, ...]
    """Columns returned next to the rows: id, label and those to keep."""
    weights: tuple[int, ...]
    """The column of weights, or none."""
    id: int | None
    candidates: tuple[int, ...]
    """Possible identifiers. Those that identify rows are not features."""


def assign_roles(
    names: Sequence[str], request: Request, *, named: bool = True, index: Sequence[int] = ()
) -> Roles:
    """Give every column its role, or say which name does not exist.

    Without names (`named` false), columns go by their numbers. Columns of the `index`, with row
    names or row numbers, are features only if the user names them.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        what = "1 column name occurs" if len(twice) == 1 else f"{len(twice)} column names occur"
        raise FileError(
            f"{request.path}: {what} more than once: {format_names(twice)}. Give every column a "
            f"name of its own."
        )
    path, place = request.path, {name: i for i, name in enumerate(names)}
    single = {
        role: [find_column(name, place, path, named)]
        for role in ("id", "label", "weights")
        if (name := getattr(request, role)) is not None
    }
    kept = _match(request.keep, place, path, named)[0]
    kept += [place[name] for name in request.optional if name in place]
    extra = dict.fromkeys([*single.get("id", ()), *single.get("label", ()), *kept])
    weights = single.get("weights", [])
    other = {*extra, *weights}
    dropped = set(_match(request.drop, place, path, named)[0]) - other
    features, exact = [i for i in range(len(names)) if i not in index], list[int]()
    if request.columns is not None:
        features, exact = _match(request.columns, place, path, named)
        for role in ("label", "weights"):
            if exact and single.get(role, [None])[0] in exact:
                name = getattr(request, role)
                raise FileError(f"{path}: {name!r} is both in columns and the {role} column.")
    # A pattern does not match columns that have another role.
    features = [i for i in features if i in exact or i not in other]
    features = [i for i in features if i not in dropped]
    if not features:
        raise FileError(f"{path}: no column is left for the rows; there are {format_names(names)}.")
    free = [i for i in range(len(names)) if named and i not in {*other, *exact, *dropped}]
    candidates = [i for i in free if i in index or is_id_name(names[i])]
    return Roles(
        tuple(names),
        tuple(features),
        tuple(i for i in exact if i not in dropped),
        tuple(extra),
        tuple(weights),
        single.get("id", [None])[0],
        tuple(sorted(candidates, key=lambda i: i not in index)[:_CANDIDATES]),
    )


def is_id_name(name: str) -> bool:
    """Tell whether a column is named like an identifier.

    Examples
    --------
    >>> from mercer.data.files.columns import is_id_name
    >>> [is_id_name(name) for name in ("id", "sample_id", "PassengerId", "width", "grid")]
    [True, True, True, False, False]
    """
    return _ID_NAME.fullmatch(name) is not None


def no_features(
    request: Request, names: Sequence[str], ids: Sequence[int], delimiter: str = ""
) -> FileError:
    """Return the error that no column can be a feature; `ids` identify rows."""
    text = f"{request.path} has no column of numbers"
    text += f", read with {delimiter!r} between fields" if delimiter else ""
    text += f". Its columns are {format_names(names)}."
    if ids:
        option = request.option("columns", [names[ids[0]]])
        which = format_names(names[i] for i in ids)
        text += f" Identifiers are not features: {which}. To use one, pass {option}."
    if delimiter == "\t" and len(names) == 1:
        option = request.option("format", "csv")
        text += f" If fields are separated otherwise, read it with {option}."
    return FileError(text)


def find_column(name: str, place: dict[str, int], path: str, named: bool = True) -> int:
    """Return the number of a column, or suggest the most similar names."""
    if name in place:
        return place[name]
    if not named:
        raise FileError(
            f"{path} has no column names: {name!r} must be a number from 0 to {len(place) - 1}."
        )
    near = difflib.get_close_matches(name, list(place)[:10_000], n=3, cutoff=0.5)
    near += [other for other in place if other.lower() == name.lower() and other not in near]
    hint = f"did you mean {format_names(near)}?" if near else f"there are {format_names(place)}."
    raise FileError(f"{path} has no column {name!r}: {hint}")


def _match(
    wanted: Sequence[str], place: dict[str, int], path: str, named: bool
) -> tuple[list[int], list[int]]:
    """Return the columns that match names and patterns, and those named in full."""
    wanted = wanted if named else _expand_ranges(wanted)
    columns: list[int] = []
    exact: list[int] = []
    unknown = [name for name in wanted if name not in place and not _is_pattern(name)]
    if named and len(unknown) > 1:
        raise FileError(
            f"{path} has no columns {format_names(unknown)}: there are {format_names(place)}."
        )
    for name in wanted:
        if name in place or not _is_pattern(name):
            exact.append(find_column(name, place, path, named))
            columns.append(exact[-1])
            continue
        matches = [i for other, i in place.items() if fnmatchcase(other, name)]
        if not matches:
            raise FileError(f"{path}: no column matches {name!r}; there are {format_names(place)}.")
        columns += matches
    return list(dict.fromkeys(columns)), list(dict.fromkeys(exact))


def _is_pattern(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def _expand_ranges(columns: Sequence[str]) -> list[str]:
    """Expand ranges of column numbers such as "3-7"."""
    out: list[str] = []
    for text in columns:
        ends = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text)
        if ends and int(ends[2]) - int(ends[1]) < 10_000_000:
            out += map(str, range(int(ends[1]), int(ends[2]) + 1))
        else:
            out.append(text)
    return out


def import_format(module: str, format: str) -> Any:
    """Import a package of the extra `files`, or say how to install it."""
    return extras.extra(module, "files", f"{format} files are read and written with")


def polars() -> Any:
    """Import Polars."""
    return import_format("polars", "Table")


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
    if not is_numeric(dtype):
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


def is_numeric(dtype: Any) -> bool:
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

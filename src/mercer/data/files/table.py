"""Columns of a file: their roles and values; and the table that reading a file returns."""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import filterfalse
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer import extras
from mercer.data.derived import count_missing
from mercer.data.errors import FileError, MissingValues, format_kinds, format_names
from mercer.data.files.remarks import ID_NAME, dominant_feature, feature_remarks
from mercer.data.source import Source
from mercer.messages import as_python, counted, format_parameter

Values = npt.NDArray[Any]

MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "-NaN", "-nan", "null", "NULL", "Null"),
    *("None", "<NA>", "#N/A", "#NA", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Texts that stand for a missing value, as in pandas."""
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
# 007 is a name, and would lose its zeros as a number.
_PADDED = r"^[+-]?0\d|^\+"
# Floats would confuse integers of so many digits: identifiers.
_LONG = r"^-?\d{16,}$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
# Columns named like identifiers whose values are examined; any further ones are ordinary columns.
_CANDIDATES = 8
_MOST_COLUMNS = 2**24


@dataclass(frozen=True)
class Request:
    """The arguments of `read_table`."""

    path: str
    columns: tuple[str, ...] | None = None
    label: str | None = None
    weights: str | None = None
    id: str | None = None
    keep: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    refuse: bool = True
    """Whether missing values are an error."""
    remarks: bool = False
    direct: bool = False
    """Whether a path was passed instead of rows: then there are no options, and missing values
    are counted only where that takes no extra pass over a file."""
    encoding: str = "utf-8"
    """Of text that is not marked as another Unicode encoding."""
    part: str = ""
    """Name of the array or sheet in the file: what follows ``::`` in a path."""
    resize: tuple[int, ...] | None = None
    """Height and width of images and, optionally, 3 for color and 1 for gray."""
    arguments: str = ""
    """What is passed to `read_table`, as Python code, if it is not the path alone."""

    @property
    def all_columns(self) -> bool:
        """Whether no column has a role of its own."""
        roles = (self.columns, self.label, self.weights, self.id)
        return roles == (None,) * 4 and not (self.keep or self.drop or self.optional)

    def option(self, name: str, value: Any, **others: Any) -> str:
        """Format an option of `read_table`; if the user has not called it, the call with others."""
        if not self.direct:
            return format_parameter(name, value)
        options = ", ".join(as_python(*each) for each in {name: value, **others}.items())
        call = f"read_table({self.arguments or repr(self.path)}, {options}).source"
        return f"{call}, with: from mercer.data.files import read_table"


@dataclass(frozen=True)
class Roles:
    """Numbers of columns by role; a column may have several."""

    names: tuple[str, ...]
    """Of all columns."""
    features: tuple[int, ...]
    exact: tuple[int, ...] = ()
    """Features requested by their full name: they must be numbers."""
    extra: tuple[int, ...] = ()
    """Columns returned next to the rows: id, label and those to keep."""
    weights: tuple[int, ...] = ()
    """The column of weights, or none."""
    id: int | None = None
    candidates: tuple[int, ...] = ()
    """Possible identifiers. Those that identify rows are not features."""


def assign_roles(
    names: Sequence[str], request: Request, *, named: bool = True, index: Sequence[int] = ()
) -> Roles:
    """Assign a role to every column; raise if a name does not exist.

    Without names (`named` false), columns go by their numbers. Columns of the `index`, with row
    names or row numbers, are features only if the user names them.
    """
    path, place = request.path, dict(zip(names, range(len(names)), strict=True))
    if len(place) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        what = counted(len(twice), "column name occurs", "column names occur")
        raise FileError(
            f"{path}: {what} more than once: {format_names(twice)}. Column names must be unique."
        )
    single: dict[str, list[int]] = {}
    for role in ("id", "label", "weights"):
        name = getattr(request, role)
        single[role] = [] if name is None else [find_column(name, place, path, named)]
    optional = [place[name] for name in request.optional if name in place]
    kept = _match(request.keep, place, path, named)[0] if request.keep else []
    extra = dict.fromkeys([*single["id"], *single["label"], *kept, *optional])
    other = {*extra, *single["weights"]}
    dropped = set(_match(request.drop, place, path, named)[0] if request.drop else ()) - other
    features, exact = [i for i in range(len(names)) if i not in index], list[int]()
    if request.columns is not None:
        features, exact = _match(request.columns, place, path, named)
        for role in ("label", "weights"):
            if not {*single[role]}.isdisjoint(exact):
                name = getattr(request, role)
                raise FileError(f"{path}: {name!r} is both in columns and the {role} column.")
    # A pattern does not match columns that have another role.
    features = [i for i in features if i not in dropped and (i in exact or i not in other)]
    if not features:
        raise FileError(f"{path}: no feature column is left. Columns: {format_names(names)}.")
    used = {*other, *exact, *dropped}
    candidates = [i for i in index if i not in used]
    if named:
        similar = [i for name, i in place.items() if ID_NAME.fullmatch(name)]
        candidates += [i for i in similar if i not in used and i not in index]
    return Roles(
        tuple(names),
        tuple(features),
        tuple([i for i in exact if i not in dropped]),
        tuple(extra),
        tuple(single["weights"]),
        next(iter(single["id"]), None),
        tuple(candidates[:_CANDIDATES]),
    )


def choose_features(
    request: Request,
    roles: Roles,
    numeric: Sequence[int],
    ids: Sequence[int],
    delimiter: str = "",
) -> list[int]:
    """Return the features: numeric columns that do not identify rows; raise if there are none."""
    features = list(filterfalse(ids.__contains__, numeric))
    if features:
        return features
    text = f"{request.path} has no numeric column"
    text += f", read with {delimiter!r} between fields" if delimiter else ""
    text += f". Its columns are {format_names(roles.names)}."
    if ids:
        option = request.option("columns", [roles.names[ids[0]]])
        which = format_names(roles.names[i] for i in ids)
        text += f" Identifiers are not features: {which}. To use one, pass {option}."
    if delimiter == "\t" and len(roles.names) == 1:
        option = request.option("format", "csv")
        text += f" If the delimiter is different, read it with {option}."
    raise FileError(text)


def find_column(name: str, place: Mapping[str, int], path: str, named: bool = True) -> int:
    """Return the index of a column, or suggest similar names."""
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
    """Return the columns that match names and patterns, and those named in full.

    Without names, "3-7" is a range of columns.
    """
    unknown = [name for name in wanted if name not in place and set("*?[").isdisjoint(name)]
    if named and len(unknown) > 1:
        there = format_names(place)
        raise FileError(f"{path} has no columns {format_names(unknown)}. Columns: {there}.")
    columns, exact = list[int](), list[int]()
    for name in wanted:
        ends = None if named else re.fullmatch(r"(\d{1,9})-(\d{1,9})", name)
        if ends and int(ends[2]) - int(ends[1]) < _MOST_COLUMNS:
            each = map(str, range(int(ends[1]), int(ends[2]) + 1))
            exact += (matches := [find_column(number, place, path, named) for number in each])
        elif name in place or set("*?[").isdisjoint(name):
            exact += (matches := [find_column(name, place, path, named)])
        else:
            matches = [i for other, i in place.items() if fnmatchcase(other, name)]
            if not matches:
                there = format_names(place)
                raise FileError(f"{path}: no column matches {name!r}. Columns: {there}.")
        columns += matches
    return list(dict.fromkeys(columns)), list(dict.fromkeys(exact))


def import_format(module: str, format: str) -> Any:
    """Import a package of the extra `files`, or say how to install it."""
    return extras.extra(module, "files", f"{format} files require")


@functools.cache
def polars() -> Any:
    """Import Polars."""
    return extras.extra("polars", "files", "Table files require")


@dataclass(frozen=True)
class Text:
    """A column of a text file: written to text files as it is, to others with a type."""

    series: Any
    na: tuple[str, ...] = ()

    def typed(self) -> Any:
        """Return integers, dates, floats or Booleans if that loses nothing, else the text."""
        pl, known = polars(), self.known()
        nulls = known.null_count()
        if nulls == len(known) or known.str.contains(_PADDED).any():
            return self.series
        if known.str.contains(_DAY).all():
            types = [known.str.to_date("%Y-%m-%d", strict=False)]
        else:
            types = [known.cast(pl.Int64, strict=False)]
            if not known.str.contains(_LONG).any():
                types.append(known.cast(pl.Float64, strict=False))
            if not nulls and known.is_in([*TRUE, *FALSE]).all():
                types = [known.is_in(TRUE)]
        return next((values for values in types if values.null_count() == nulls), self.series)

    def as_text(self) -> Any:
        """Return what is written to a text file: the text, integers and dates unquoted."""
        typed = self.typed()
        exact = typed.dtype.is_integer() or typed.dtype == polars().Date
        return typed if exact else self.series

    def known(self) -> Any:
        """Return the texts, null where they stand for a missing value."""
        return self.series.set(self.series.is_in([*MISSING, *self.na]), None)


def column_values(column: Any) -> Values:
    """Return an extra column as an array: numbers, else strings ("" if missing).

    Whole numbers with gaps are floats, or texts if floats would lose digits.
    """
    typed = column.typed() if isinstance(column, Text) else column
    if not hasattr(typed, "null_count"):
        return np.asarray(typed)
    pl, dtype = polars(), typed.dtype
    if is_numeric(dtype):
        whole, floats = dtype.is_integer() or dtype == pl.Boolean, typed.cast(pl.Float64)
        if whole and not typed.null_count():
            return np.asarray(typed.to_numpy())
        if not whole or (floats.abs() < 2**53).all():
            return np.asarray(floats.to_numpy())
    series = getattr(column, "series", column)
    try:
        texts = series.cast(pl.String).fill_null("").to_list()
    except pl.exceptions.PolarsError:  # nested values
        texts = ["" if value is None else str(value) for value in series.to_list()]
    return np.array([*texts, None], dtype=object)[:-1]  # never an array of equal-sized parts


def is_numeric(dtype: Any) -> bool:
    """Return whether a type of Polars is numbers, or true and false."""
    return bool(dtype.is_numeric() or dtype == polars().Boolean)


def column_kind(dtype: Any) -> str:
    """Return what a column of a type of Polars holds; "" if it is numbers."""
    pl = polars()
    if is_numeric(dtype):
        return ""
    if dtype == pl.Null:
        return "no values"
    if dtype == pl.String:
        return "text"
    if dtype in (pl.Categorical, pl.Enum):
        return "categories"
    if dtype.is_temporal():
        return "durations" if dtype == pl.Duration else "dates"
    return str(dtype)


def identifies_rows(known: Any, *, integers: bool = False) -> bool:
    """Return whether the entries of a column are different texts or integers.

    With `integers`, texts must be integers.
    """
    pl = polars()
    known = known.drop_nulls()
    if known.dtype in (pl.Categorical, pl.Enum):
        known = known.cast(pl.String)
    text = known.dtype == pl.String
    known = known.str.strip_chars() if text and integers else known
    known = known.drop_nans() if known.dtype.is_float() else known
    if integers or not (text or known.dtype.is_integer()):
        numbers = known.cast(pl.Float64, strict=False)
        if not (numbers.is_finite() & (numbers == numbers.floor())).fill_null(False).all():
            return False
        if text:  # pandas adds a point to integers if one of their column is missing
            known = known.str.replace(r"\.0*$", "")
    return len(known) > 0 and known.n_unique() == len(known)


def id_names(column: Any) -> Values:
    """Return the row names in an extra column.

    A row without an entry goes by its number, counted from 0: "#3". Whole floats are integers.
    """
    values = column_values(column)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
        known = values[~missing]
        if ((np.abs(known) < 2**63) & (known == np.floor(known))).all():
            values = np.where(missing, 0, values).astype(np.int64)
    else:
        marks = {*MISSING, *getattr(column, "na", ())} if values.dtype.kind == "O" else ()
        missing = np.array([isinstance(value, str) and value in marks for value in values], bool)
    if missing.any():
        values = values.astype(object)
        values[missing] = [f"#{i}" for i in np.flatnonzero(missing)]
    return values


@dataclass(frozen=True)
class Table:
    """Rows of a file, and its extra columns."""

    source: Source
    """The rows: numbers, with the names of their columns and their weights, or strings."""
    extra: Mapping[str, Values] = field(default_factory=dict)
    """Values of the id and label columns and of those kept, by name."""
    dropped: tuple[str, ...] = ()
    """Columns that are neither features nor in `extra`."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Number of missing entries by column of `source`, where there are any."""
    id: str | None = None
    """The column with the row names."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why columns were left out that the user did not leave out."""
    remarks: tuple[str, ...] = ()
    """What is unusual about features, if that was requested."""
    dominant: str = ""
    """Names the feature that has nearly all of the variance, if that was requested."""

    @property
    def row_names(self) -> Values | None:
        """Names of the rows; a row without an id goes by its number, as "#3"."""
        columns = self.source.extra_columns or self.extra
        return None if self.id is None else id_names(columns[self.id])

    def naming(self, option: str) -> str:
        """Describe the column of row names, and how to use it as a feature."""
        text = f"column {self.id!r} is used as row names, not as a feature."
        if self.id is not None and self.extra[self.id].dtype.kind in "iuf":
            text += f" To use it as a feature, pass {option}."
        return text

    @property
    def left_out(self) -> str:
        """Names of columns that were left out, and why; for a message."""
        return format_kinds(self.reasons)


def make_table(
    request: Request,
    roles: Roles,
    source: Source,
    missing: Values | None = None,
    *,
    features: Sequence[int] | None = None,
    ids: Sequence[int] = (),
    columns: Mapping[int, Any] | None = None,
    weights: Values | None = None,
    reasons: Mapping[int, str] | None = None,
    flags: Sequence[int] = (),
    named: bool = True,
) -> Table:
    """Return the table of a file; raise if missing values are not allowed.

    `features` are the columns of the source; `missing` counts their missing entries, and is None if
    nobody has counted. The first of `ids` names the rows; `columns` has the values of columns next
    to the rows, `reasons` say why others are left out, and `flags` have entries true or false.
    """
    names, columns, features = roles.names, columns or {}, features or roles.features
    used = list(map(names.__getitem__, features))
    if weights is not None:
        unknown = int(np.isnan(weights).sum())
        if unknown:
            raise FileError(
                f"{request.path}: {unknown} weights of column {request.weights!r} are missing."
            )
        source = source.weighted(np.asarray(weights, np.float64))
    if missing is None and source.waits and request.direct:
        missing = np.zeros(len(used), np.int64)  # the fit finds them, in its first pass
    elif missing is None:
        missing = count_missing(source)
    counts = {name: int(n) for name, n in zip(used, missing, strict=True) if n}
    if counts and request.refuse:
        raise MissingValues(request.path, counts, request.arguments)
    own = roles.id if roles.id is not None else next(iter(ids), None)
    extra = dict.fromkeys([*([] if own is None else [own]), *roles.extra])
    dropped = sorted({*range(len(names))} - {*features, *extra, *roles.weights})
    why = (
        {}
        if request.columns
        else dict.fromkeys({*roles.candidates} - {*roles.features}, "an index")
    )
    why |= {**(reasons or {}), **dict.fromkeys({*ids} & {*roles.features}, "identifier")}
    remarks, dominant = list[str](), ""
    if request.remarks:
        flagged = [names[i] for i in features if i in flags]
        remarks = feature_remarks(source, used, flagged, request.columns or (), named)
        dominant = dominant_feature(source, used)
    source.names = used if named else None
    source.id = None if own is None else names[own]
    source.extra_columns = {names[i]: columns[i] for i in extra}
    return Table(
        source,
        {name: column_values(column) for name, column in source.extra_columns.items()},
        tuple(map(names.__getitem__, dropped)),
        counts,
        source.id,
        {names[i]: why[i] for i in dropped if i in why},
        tuple(remarks),
        dominant,
    )


def make_unnamed_table(
    request: Request,
    width: int,
    rows: Callable[[Sequence[int]], Source],
    column: Callable[[int], Values],
) -> Table:
    """Return the table of a file with numeric columns and no names.

    `rows` reads the columns it is told, and `column` a single one with the stored precision.
    """
    if width >= _MOST_COLUMNS:
        raise FileError(f"{request.path} has {width} columns; the limit is {_MOST_COLUMNS}.")
    roles = assign_roles([str(i) for i in range(width)], request, named=False)
    return make_table(
        request,
        roles,
        rows(roles.features),
        columns={i: column(i) for i in roles.extra},
        weights=next((np.asarray(column(i), np.float64) for i in roles.weights), None),
        named=False,
    )

"""Values of a column beside the rows: labels, identifiers, whatever was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.data.files.extra import extra
from mercer.data.files.text import MISSING

Values = npt.NDArray[Any]

# 007 is a name, and would lose its zeros as a number.
_PADDED = r"^[+-]?0\d|^\+"
# Whole numbers that floats may take for one another: identifiers.
_LONG = r"^-?\d{16,}$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
# What pandas adds to whole numbers where an entry of their column is missing.
_POINT = r"\.0*$"


@dataclass(frozen=True)
class Text:
    """A column of delimited text: written to text as it stands, elsewhere with a type."""

    column: Any
    na: tuple[str, ...] = ()

    def typed(self) -> Any:
        """Return integers, numbers, truth values or days where nothing is lost; else the text."""
        pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
        marks = pa.array([*MISSING, *self.na], pa.string())
        lacking = pc.is_in(self.column, value_set=marks)
        if pc.all(lacking).as_py():
            return self.column
        known = pc.if_else(lacking, pa.scalar(None, pa.string()), self.column)
        if pc.any(pc.match_substring_regex(known, _PADDED)).as_py():
            return self.column
        if pc.all(pc.match_substring_regex(known, _DAY)).as_py():
            kinds: tuple[str, ...] = ("date32",)
        else:
            kinds = ("int64", "float64", "bool")
        for kind in kinds:
            try:
                numbers = known.cast(kind)
            except pa.ArrowInvalid:
                continue
            if kind == "bool" and known.null_count:
                break
            if kind == "float64" and pc.any(pc.match_substring_regex(known, _LONG)).as_py():
                break
            return numbers
        return self.column

    def written(self) -> Any:
        """Return what is written to delimited text: as it stands, whole numbers without quotes."""
        types, found = extra("pyarrow", "CSV").types, self.typed()
        exact = types.is_integer(found.type) or types.is_date(found.type)
        return found if exact else self.column


@dataclass(frozen=True)
class Column:
    """A column beside the rows: as it is stored, which is how it is written, and as an array."""

    stored: Any
    values: Values

    @classmethod
    def of_numbers(cls, values: Values) -> Column:
        """Return a column of an array."""
        return cls(values, values)

    @classmethod
    def of_text(cls, parts: Sequence[Any], na: tuple[str, ...] = ()) -> Column:
        """Return a column of delimited text, whose parts are given."""
        pa = extra("pyarrow", "CSV")
        chunks = [chunk for part in parts for chunk in part.chunks]
        column = pa.chunked_array(chunks, pa.string())
        text = Text(column, na)
        typed = text.typed()
        found = None
        if not pa.types.is_string(typed.type) and not pa.types.is_date(typed.type):
            found = _numpy(typed)
        return cls(text, as_objects(column) if found is None else found)

    @classmethod
    def of_arrow(cls, parts: Sequence[Any]) -> Column:
        """Return a typed column, whose parts are given."""
        return cls(joined(parts), from_arrow(parts))


def as_array(stored: Any) -> Values:
    """Return a column of a source, as it is stored, as an array."""
    if isinstance(stored, Text):
        return Column.of_text([stored.column], stored.na).values
    if hasattr(stored, "chunks"):
        return from_arrow(stored.chunks)
    return np.asarray(stored)


def id_names(stored: Any) -> Values:
    """Return the names of rows that a column, as it is stored, gives them.

    A row without an entry goes by its number, counted from 0: "#3". Whole floats are integers.
    """
    values, lacking = as_array(stored), gaps(stored)
    if values.dtype.kind == "f":
        known = values[~lacking]
        if ((np.abs(known) < 2**63) & (known == np.floor(known))).all():
            values = np.where(lacking, 0, values).astype(np.int64)
    if lacking.any():
        values = values.astype(object)
        for i in np.flatnonzero(lacking).tolist():
            values[i] = f"#{i}"
    return values


def gaps(stored: Any) -> npt.NDArray[np.bool_]:
    """Tell which entries of a column, as it is stored, are missing."""
    values = as_array(stored)
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    marks = {*MISSING, *(stored.na if isinstance(stored, Text) else ())}
    return np.array([isinstance(value, str) and value in marks for value in values], bool)


def present(column: Any, na: tuple[str, ...] = ()) -> Any:
    """Return the entries of a column that are not missing."""
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if _is_text(column.type):
        marks = pa.array([*MISSING, *na], column.type)
        lacking = pc.or_(pc.is_null(column), pc.is_in(column, value_set=marks))
    else:
        lacking = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return column.filter(pc.invert(lacking))


def identifies(known: Any, *, whole: bool) -> bool:
    """Tell whether entries are all different; whole numbers, or with `whole` false texts."""
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    if _is_text(known.type):
        if whole:
            known = pc.utf8_trim_whitespace(known)
            if not _all_whole(known):
                return False
            known = pc.replace_substring_regex(known, _POINT, "")
    elif not pa.types.is_integer(known.type) and not _all_whole(known):
        return False
    return bool(pc.count_distinct(known).as_py() == len(known))


def _all_whole(column: Any) -> bool:
    """Tell whether all entries are whole numbers."""
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    try:
        numbers = column.cast("float64", safe=not pa.types.is_decimal(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    finite = pc.all(pc.is_finite(numbers)).as_py() is not False
    return finite and pc.all(pc.equal(numbers, pc.floor(numbers))).as_py() is not False


def as_objects(column: Any) -> Values:
    """Return text as an array of `str`; what is missing is the empty one."""
    out = np.empty(len(column), object)
    at = 0
    for chunk in column.chunks:
        coded = chunk.dictionary_encode()
        # One object for every distinct text, not one for every row.
        texts = np.array([*map(_text, coded.dictionary.to_pylist()), ""], dtype=object)
        codes = coded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
        out[at : at + len(chunk)] = texts[codes]
        at += len(chunk)
    return out


def joined(parts: Sequence[Any]) -> Any:
    """Join the parts of a typed column; numbers of several types get one that holds them."""
    pa = extra("pyarrow", "Parquet")
    kinds = {part.type for part in parts}
    if len(kinds) > 1:
        wide = pa.int64() if all(map(pa.types.is_signed_integer, kinds)) else pa.float64()
        parts = [part.cast(wide, safe=False) for part in parts]
    return pa.chunked_array(parts)


def from_arrow(parts: Sequence[Any]) -> Values:
    """Join the parts of a typed column: numbers stay numbers, all else becomes text."""
    types, column = extra("pyarrow", "Parquet").types, joined(parts)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_number(column.type):
        whole = types.is_integer(column.type) or types.is_boolean(column.type)
        found = _numpy(column if whole else column.cast("float64", safe=False))
        if found is not None:
            return found
    return as_objects(column if types.is_string(column.type) else _cast_text(column))


def is_name(kind: Any) -> bool:
    """Tell whether a type of pyarrow can name rows: numbers, as far as they are whole, or text."""
    types = extra("pyarrow", "Parquet").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return _is_text(kind) or (is_number(kind) and not types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    types = extra("pyarrow", "Parquet").types
    return bool(types.is_string(kind) or types.is_large_string(kind))


def is_number(kind: Any) -> bool:
    """Tell whether a type of pyarrow is numbers, or true and false."""
    types = extra("pyarrow", "Parquet").types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
    )


def _cast_text(column: Any) -> Any:
    pa = extra("pyarrow", "Parquet")
    try:
        return column.cast("string")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, "string")])


def _numpy(column: Any) -> Values | None:
    """Return numbers as an array: floats where some are missing, None if these lose digits."""
    if column.null_count:
        try:
            column = column.cast("float64")
        except extra("pyarrow", "CSV").ArrowInvalid:
            return None
    return np.asarray(column.to_numpy())


def _text(value: Any) -> str:
    return "" if value is None else str(value)

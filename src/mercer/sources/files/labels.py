"""Values of a column beside the rows: labels, identifiers, whatever was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.sources.files.extra import extra
from mercer.sources.files.text import MISSING

Values = npt.NDArray[Any]

# 007 is a name, and would lose its zeros as a number.
_PADDED = r"^[+-]?0\d|^\+"
# Whole numbers that floats may take for one another: identifiers.
_LONG = r"^-?\d{16,}$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"
_WHOLE = r"^\d+$"


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
        pa = extra("pyarrow", "Parquet")
        return cls(pa.chunked_array(parts), from_arrow(parts))


def as_array(stored: Any) -> Values:
    """Return a column of a source, as it is stored, as an array."""
    if isinstance(stored, Text):
        return Column.of_text([stored.column], stored.na).values
    if hasattr(stored, "chunks"):
        return from_arrow(stored.chunks)
    return np.asarray(stored)


def identifies(column: Any, *, whole: bool) -> bool:
    """Tell whether a column tells all rows apart, with `whole` by non-negative whole numbers."""
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    if not len(column) or column.null_count:
        return False
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if pc.any(pc.is_in(column, value_set=pa.array(MISSING, column.type))).as_py():
            return False
        if whole and not pc.all(pc.match_substring_regex(column, _WHOLE)).as_py():
            return False
    elif not pa.types.is_integer(column.type):
        return False
    return bool(pc.count_distinct(column).as_py() == len(column))


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


def from_arrow(parts: Sequence[Any]) -> Values:
    """Join the parts of a typed column: numbers stay numbers, all else becomes text."""
    pa = extra("pyarrow", "Parquet")
    column = pa.chunked_array(parts)
    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_number(column.type):
        whole = types.is_integer(column.type) or types.is_boolean(column.type)
        found = _numpy(column if whole else column.cast("float64", safe=False))
        if found is not None:
            return found
    return as_objects(column if types.is_string(column.type) else _cast_text(column))


def is_name(kind: Any) -> bool:
    """Tell whether a type of pyarrow can name rows: whole numbers or text."""
    types = extra("pyarrow", "Parquet").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind))


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

"""Values of a column beside the rows: labels, identifiers, whatever was kept."""

from __future__ import annotations

from collections.abc import Sequence
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


def from_text(parts: Sequence[Any]) -> Values:
    """Join the parts of a column: numbers, or text that may be numbers after all."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    pa = extra("pyarrow", "CSV")
    column = pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())
    return as_numbers(column) if _may_be_numbers(column) else as_objects(column)


def _may_be_numbers(column: Any) -> bool:
    """Tell whether the values of a column may be numbers: some are there, and none is padded."""
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    lacking = pc.is_in(column, value_set=pa.array(MISSING, pa.string()))
    padded = pc.match_substring_regex(column, _PADDED)
    return not pc.all(lacking).as_py() and not pc.any(padded).as_py()


def as_numbers(column: Any) -> Values:
    """Return text as integers, numbers or truth values; as text where it is none of these.

    Nor is it numbers where these would lose digits.
    """
    pa, pc = extra("pyarrow", "CSV"), extra("pyarrow.compute", "CSV")
    lacking = pc.is_in(column, value_set=pa.array(MISSING, pa.string()))
    known = pc.if_else(lacking, pa.scalar(None, pa.string()), column)
    for kind in ("int64", "float64", "bool"):
        try:
            numbers = known.cast(kind)
        except pa.ArrowInvalid:
            continue
        if kind == "bool" and known.null_count:
            break
        if kind == "float64" and pc.any(pc.match_substring_regex(known, _LONG)).as_py():
            break
        found = _numpy(numbers)
        return as_objects(column) if found is None else found
    return as_objects(column)


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

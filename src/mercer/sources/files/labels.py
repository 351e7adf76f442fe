"""Values of a column beside the rows: labels, identifiers, whatever was kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.sources.files.extra import extra
from mercer.sources.files.text import MISSING

Values = npt.NDArray[Any]

# 007 is a name, and would lose its zeros as a number.
_PADDED = re.compile(r"[+-]?0\d|\+")


def from_text(parts: Sequence[Any]) -> Values:
    """Join the parts of a column: numbers, or text that may be numbers after all."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    pa = extra("pyarrow", "CSV")
    column = pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())
    return as_numbers(column) if _all_numbers(column) else as_objects(column)


def _all_numbers(column: Any) -> bool:
    """Tell whether the distinct values of a column are numbers or missing, and some a number."""
    pc = extra("pyarrow.compute", "CSV")
    first = column[:1000].to_pylist()
    if any(_PADDED.match(text) for text in first):
        return False
    known = [text for text in first if text not in MISSING]
    padded = pc.any(pc.match_substring_regex(column, r"^[+-]?0\d|^\+")).as_py()
    return bool(known) and not padded


def as_numbers(column: Any) -> Values:
    """Return text as integers, numbers or truth values; as text where it is none of these."""
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
        return _numpy(numbers)
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
        if whole and not column.null_count:
            return np.asarray(column.to_numpy())
        return _numpy(column.cast("float64", safe=False))
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


def _numpy(column: Any) -> Values:
    """Return numbers as an array: floats where some are missing."""
    return np.asarray(column.cast("float64").to_numpy() if column.null_count else column.to_numpy())


def _text(value: Any) -> str:
    return "" if value is None else str(value)

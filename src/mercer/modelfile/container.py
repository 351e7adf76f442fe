"""The file itself: a safetensors file of named arrays and a few texts, with a checksum.

Written and read by hand, in the format that the safetensors library reads: the library takes
all arrays as bytes at once, a copy of each, and the checksum wants to be computed while they go
by. Layout: 8 bytes, the length N of the header, little-endian; N bytes of JSON that name dtype,
shape and place of each array; the arrays, one after the other. The checksum stands first in the
header, and is that of the file with zeros in its place.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from mercer.atomic_write import whole
from mercer.modelfile.errors import ModelFileError

# What the safetensors library reads at most.
MOST_HEADER = 100_000_000
_ZEROS = "0" * 64
_BEGINNING = b'{"__metadata__":{"checksum":"'
_KINDS = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_MOST_AXES = 32
_REMEDY = "Write one with mercer.save."


class Place(NamedTuple):
    """Where an array lies in a file, and what it is."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True)
class Contents:
    """What the header of a file says."""

    path: Path
    texts: dict[str, str]
    places: list[Place]
    begin: int
    """Where the arrays begin."""
    raw: bytes
    """Length and header as they stand, but for the checksum, which is zeros."""


def storable(dtype: np.dtype[Any]) -> bool:
    """Tell whether arrays of this dtype can be written."""
    return dtype.newbyteorder("<").str in _NAMES


def write(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Mapping[str, Any]) -> str:
    """Write texts and arrays to a file that is there whole or not at all; return its checksum."""
    # Widest entries first: each array begins at a multiple of its entries' size.
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    table: dict[str, Any] = {"__metadata__": {"checksum": _ZEROS, **texts}}
    at = 0
    for name, array in ordered:
        kind = _NAMES[array.dtype.newbyteorder("<").str]
        stop = at + array.size * array.dtype.itemsize
        table[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, stop]}
        at = stop
    header = json.dumps(table, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MOST_HEADER:
        raise ModelFileError(
            f"{path}: names, texts and parameters of the model take {len(header)} bytes, and a "
            f"model file holds {MOST_HEADER} of them. Nothing was written."
        )
    head = len(header).to_bytes(8, "little") + header
    digest = hashlib.sha256(head)
    with whole(path) as part, part.open("wb") as file:
        file.write(head)
        for _, array in ordered:
            little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            view = _bytes(little)
            digest.update(view)
            file.write(view)
        found = digest.hexdigest()
        file.seek(8 + len(_BEGINNING))
        file.write(found.encode())
    return found


def read_contents(path: str | os.PathLike[str]) -> Contents:
    """Return what the header of a file says, checked; no array is read."""
    with _opened(path) as file:
        return _contents(Path(path), file)


def read(path: str | os.PathLike[str]) -> tuple[Contents, dict[str, np.ndarray[Any, Any]]]:
    """Return what a file holds; its checksum is compared while the arrays are read."""
    with _opened(path) as file:
        contents = _contents(Path(path), file)
        digest = hashlib.sha256(contents.raw)
        arrays = {}
        for place, array in _arrays(contents, file):
            digest.update(_bytes(array))
            arrays[place.name] = array
    told = contents.texts["checksum"]
    if digest.hexdigest() != told:
        raise ModelFileError(
            f"{path} was changed after it was written: its checksum is {digest.hexdigest()[:12]}…, "
            f"and it says {told[:12]}…. Get the file again, or fit and save the model again."
        )
    return contents, arrays


def _arrays(contents: Contents, file: BinaryIO) -> Iterator[tuple[Place, np.ndarray[Any, Any]]]:
    for place in contents.places:
        try:
            array = np.empty(place.shape, place.dtype)
        except (ValueError, MemoryError, OverflowError) as error:
            raise ModelFileError(
                f"{contents.path}: array {place.name!r} of shape {place.shape} cannot be held "
                f"({error}). Load it where there is more memory."
            ) from None
        view = _bytes(array)
        while len(view):
            got = file.readinto(view)  # type: ignore[attr-defined]
            if not got:
                _refuse(contents.path, "it ended while it was being read")
            view = view[got:]
        yield place, array


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the bytes of a contiguous array, not copied."""
    return array.reshape(-1).view(np.uint8).data


def _opened(path: str | os.PathLike[str]) -> BinaryIO:
    path = Path(path)
    mode = path.stat().st_mode  # no such file: says so itself
    if stat.S_ISDIR(mode):
        _refuse(path, "it is a folder")
    if not stat.S_ISREG(mode):
        _refuse(path, "it is no ordinary file")
    return path.open("rb")


def _contents(path: Path, file: BinaryIO) -> Contents:
    size = os.fstat(file.fileno()).st_size
    if size < 8 + len(_BEGINNING):
        _refuse(path, f"it has {size} bytes" if size else "it is empty")
    first = file.read(8)
    length = int.from_bytes(first, "little")
    if not len(_BEGINNING) + 64 < length <= MOST_HEADER:
        _refuse(path, "it does not begin as one")
    if length > size - 8:
        raise ModelFileError(
            f"{path} is truncated: its header has {length} bytes, and the file {size}. Get the "
            f"file again, or fit and save the model again."
        )
    header = file.read(length)
    if not header.startswith(_BEGINNING):
        _refuse(path, "its header does not begin with a checksum")
    table = _parsed(path, header)
    texts = table.pop("__metadata__", None)
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        _refuse(path, "its header holds no texts")
    places = _places(path, table, size - 8 - length)
    blank = len(_BEGINNING)
    raw = first + header[:blank] + _ZEROS.encode() + header[blank + 64 :]
    return Contents(path, texts, places, 8 + length, raw)


def _parsed(path: Path, header: bytes) -> dict[str, Any]:
    table = parsed(header)
    if not isinstance(table, dict):
        _refuse(path, "its header cannot be read")
    return table


def parsed(text: bytes | str) -> Any:
    """Return what JSON says; None where it says nothing, or more than once."""
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once)
    except (ValueError, RecursionError):  # undecodable bytes and too long numbers among them
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _places(path: Path, table: dict[str, Any], room: int) -> list[Place]:
    """Return where arrays lie: one after the other, as long as their shapes say, to the end."""
    places = [_place(path, name, entry) for name, entry in table.items()]
    places.sort(key=lambda place: (place.start, place.stop))
    at = 0
    for place in places:
        if place.start != at:
            _refuse(path, f"array {place.name!r} does not lie behind the one before it")
        at = place.stop
    if at != room:
        what = "is truncated" if at > room else "goes on behind its arrays"
        raise ModelFileError(
            f"{path} {what}: its arrays take {at} bytes, and there are {room}. Get the file "
            f"again, or fit and save the model again."
        )
    return places


def _place(path: Path, name: str, entry: Any) -> Place:
    named = isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}
    if not named or not isinstance(entry["dtype"], str) or entry["dtype"] not in _KINDS:
        _refuse(path, f"it does not say what array {name[:80]!r} is")
    dtype, shape, offsets = np.dtype(_KINDS[entry["dtype"]]), entry["shape"], entry["data_offsets"]
    if not (_are_sizes(shape) and len(shape) <= _MOST_AXES):
        _refuse(path, f"array {name[:80]!r} has no shape")
    if not (_are_sizes(offsets) and len(offsets) == 2 and offsets[0] <= offsets[1]):
        _refuse(path, f"array {name[:80]!r} has no place")
    if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        _refuse(path, f"array {name[:80]!r} is not as long as its shape says")
    return Place(name, dtype, tuple(shape), offsets[0], offsets[1])


def _are_sizes(found: Any) -> bool:
    return isinstance(found, list) and all(type(x) is int and 0 <= x < 2**62 for x in found)


def _refuse(path: Path, why: str) -> NoReturn:
    raise ModelFileError(f"{path} is no Mercer model file: {why}. {_REMEDY}")

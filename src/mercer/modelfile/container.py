"""The file itself: arrays and texts in safetensors, and a checksum over all of it.

The texts are safetensors metadata. One of them is the checksum: the SHA-256 of the whole file
with 64 zeros in its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mercer.atomic_write import whole
from mercer.config import format_bytes, machine_memory

# Bytes of a header that the library reads at most.
_LARGEST_HEADER = 100_000_000
_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')
_ZEROS = "0" * 64
_AGAIN = "Get the file again, or fit and save the model again."

Arrays = dict[str, np.ndarray[Any, Any]]


class ModelFileError(ValueError):
    """A file that is not an intact model file, or a model that cannot be saved in one.

    Examples
    --------
    >>> import mercer
    >>> mercer.save([1, 2, 3], "list.mercer")
    Traceback (most recent call last):
    mercer.modelfile.container.ModelFileError: list is not a model of Mercer. ...
    """


def storable(dtype: np.dtype[Any]) -> bool:
    """Tell whether arrays of this dtype can be written."""
    return dtype.kind in "fiub" and dtype.itemsize <= 8


def write_contents(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Arrays) -> None:
    """Write texts and arrays; the file appears complete or not at all."""
    packed = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    with whole(path) as part:
        part.touch()  # with the usual permissions: the library's file has narrower ones
        mode = part.stat().st_mode
        try:
            save_file(packed, part, {"checksum": _ZEROS, **texts})
        except SafetensorError as error:  # of the operating system, as a text
            number = re.search(r"os error (\d+)", str(error))
            if number is None:
                raise
            code = int(number[1])
            raise OSError(code, os.strerror(code), os.fspath(path)) from error
        part.chmod(mode)
        with part.open("r+b") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _LARGEST_HEADER:
                raise ModelFileError(
                    f"{path}: names, texts and parameters of the model take {length} bytes; a "
                    f"model file holds at most {_LARGEST_HEADER}. Nothing was written."
                )
            checksum = _CHECKSUM.search(file.read(length))
            assert checksum is not None
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256")
            file.seek(8 + checksum.start(1))
            file.write(digest.hexdigest().encode())


def read_texts(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the texts of a file; no array is read, and the checksum is not compared."""
    with _open(Path(path)) as (tensors, _):
        return dict(tensors.metadata())


def read_contents(path: str | os.PathLike[str]) -> tuple[dict[str, str], Arrays]:
    """Return the texts and arrays of a file after comparing its checksum."""
    path, arrays = Path(path), {}
    with _open(path) as (tensors, head):
        size, memory = path.stat().st_size, machine_memory()
        if size > memory:
            raise ModelFileError(
                f"{path} takes {format_bytes(size)}, more than the memory of this machine, "
                f"{format_bytes(memory)}. Load it where there is more."
            )
        texts = dict(tensors.metadata())
        digest = hashlib.sha256(head.replace(texts["checksum"].encode(), _ZEROS.encode(), 1))
        for name in tensors.offset_keys():
            array = arrays[name] = tensors.get_tensor(name)
            # An empty array can claim any shape, and results computed with it would be as large.
            if not storable(array.dtype) or max(array.shape, default=0) > size:
                _damaged(path, f"array {name[:80]!r} has dtype {array.dtype}, shape {array.shape}")
            digest.update(array.reshape(-1).view(np.uint8))
    if digest.hexdigest() != texts["checksum"]:
        raise ModelFileError(
            f"{path} was changed after it was written: its checksum is {digest.hexdigest()[:12]}…, "
            f"but the file says {texts['checksum'][:12]}…. {_AGAIN}"
        )
    return texts, arrays


@contextlib.contextmanager
def _open(path: Path) -> Iterator[tuple[Any, bytes]]:
    """Yield the opened file, and the bytes of its header with the length before it."""
    mode = path.stat().st_mode  # a missing file raises FileNotFoundError
    if not stat.S_ISREG(mode):
        _refuse(path, "it is a folder" if stat.S_ISDIR(mode) else "it is not a regular file")
    with path.open("rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        header = file.read(length) if length <= _LARGEST_HEADER else b""
    if len(first) < 8:
        _refuse(path, f"it has {len(first)} bytes" if first else "it is empty")
    if not header.startswith(b"{"):
        _refuse(path, "it does not begin like one")
    if len(header) < length:
        _damaged(path, f"it is truncated: its header has {length} bytes, {len(header)} are there")
    if not _CHECKSUM.search(header):
        _refuse(path, "it has no checksum")
    try:
        # Not mapped into memory: a file that shrinks while it is read would crash the process.
        with safe_open(path, "np", backend="pread") as tensors:
            yield tensors, first + header
    except (SafetensorError, TypeError, KeyError) as error:  # TypeError: a dtype NumPy lacks
        size = "file not fully covered" in str(error)
        _damaged(path, "it is truncated, or continues after its arrays" if size else str(error))


def _refuse(path: Path, reason: str) -> NoReturn:
    raise ModelFileError(
        f"{path} is not a Mercer model file: {reason}. Write one with mercer.save."
    )


def _damaged(path: Path, reason: str) -> NoReturn:
    raise ModelFileError(f"{path} is damaged: {reason}. {_AGAIN}")

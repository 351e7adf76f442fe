"""The file itself: arrays, texts and a header in safetensors, and a checksum over all of it.

The texts are safetensors metadata. One of them is the checksum: the SHA-256 of the whole file
with 64 zeros in its place.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from mercer import __version__
from mercer.arrays import to_numpy
from mercer.atomic_write import write_atomically
from mercer.certificate import Certificate
from mercer.config import format_bytes, machine_memory
from mercer.estimators.inspection import parts

# Bytes of a header that the library reads at most.
_LARGEST_HEADER = 100_000_000
_CHECKSUM = re.compile(rb'"checksum":"([0-9a-f]{64})"')
_ZEROS = "0" * 64

FORMAT = 2
"""Version of the format that this version of Mercer writes; it also reads all earlier ones."""
_LONGEST_TEXT, _MOST_VALUES = 1000, 100
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch")

Arrays = dict[str, np.ndarray[Any, Any]]


class ModelFileError(ValueError):
    """A file that is not an intact model file, or a model that cannot be saved in one.

    Examples
    --------
    >>> import mercer
    >>> mercer.save([1, 2, 3], "list.mercer")
    Traceback (most recent call last):
    mercer.modelfile.container.ModelFileError: list is not a Mercer model. ...
    """


def storable(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this dtype can be written."""
    return dtype.kind in "fiub" and dtype.itemsize <= 8


def write_contents(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Arrays) -> None:
    """Write texts and arrays; the file appears complete or not at all."""
    packed = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    with write_atomically(path) as part:
        part.touch()  # with the usual permissions: the library's file has narrower ones
        mode = part.stat().st_mode
        save_file(packed, part, {"checksum": _ZEROS, **texts})
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
                f"{format_bytes(memory)}. Load it on a machine with more memory."
            )
        texts = dict(tensors.metadata())
        digest = hashlib.sha256(head.replace(texts["checksum"].encode(), _ZEROS.encode(), 1))
        for name in tensors.offset_keys():
            array = arrays[name] = tensors.get_tensor(name)
            # An empty array can claim any shape, and results computed with it would be as large.
            if not storable(array.dtype) or max(array.shape, default=0) > size:
                refuse_file(
                    path, f"array {name[:80]!r} has dtype {array.dtype}, shape {array.shape}"
                )
            digest.update(array.reshape(-1).view(np.uint8))
    if digest.hexdigest() != texts["checksum"]:
        refuse_file(path, "it was changed after it was written: its checksum does not match")
    return texts, arrays


@contextlib.contextmanager
def _open(path: Path) -> Iterator[tuple[Any, bytes]]:
    """Yield the opened file, and the bytes of its header with the length before it."""
    if not path.is_file() and path.exists():
        refuse_file(path, "it is a folder" if path.is_dir() else "it is not a regular file")
    with path.open("rb") as file:
        first = file.read(8)
        length = int.from_bytes(first, "little")
        header = file.read(length) if length <= _LARGEST_HEADER else b""
    if not header.startswith(b"{"):
        refuse_file(path, "its first bytes are wrong" if first else "it is empty")
    if len(header) < length:
        refuse_file(path, f"it is truncated: expected {length} header bytes, found {len(header)}")
    if not _CHECKSUM.search(header):
        refuse_file(path, "it has no checksum")
    try:
        # Not mapped into memory: a file that shrinks while it is read would crash the process.
        with safe_open(path, "np", backend="pread") as tensors:
            yield tensors, first + header
    except (SafetensorError, TypeError, KeyError) as error:  # TypeError: a dtype NumPy lacks
        size = "file not fully covered" in str(error)
        refuse_file(path, "it is truncated or has trailing bytes" if size else error)


def refuse_file(path: str | os.PathLike[str], reason: Exception | str) -> NoReturn:
    """Raise an error about a file that is not an intact model file."""
    error = reason if isinstance(reason, Exception) else None
    text = reason if error is None else f"{type(error).__name__}: {str(error)[:500]}"
    raise ModelFileError(
        f"{path} is not a valid model file: {text}. Download or copy the file again, or save the "
        f"model again with mercer.save."
    ) from error


def make_header(model: Any, origin: dict[str, Any] | None) -> dict[str, Any]:
    """Return the header of a fitted model, as `read_header` describes it."""
    for name, value in (origin or {}).items():
        try:
            json.dumps({name: value}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ModelFileError(
                f"origin[{name!r}] is {value!r}; it must be plain JSON, such as a string, a "
                f"finite number or a list of them ({error}). Nothing was written."
            ) from error
    before, last = parts(model)
    first = before[0] if before else last
    inner = getattr(last, "estimator_", last)
    if hasattr(last, "estimators_"):  # one of every class
        inner = max(last.estimators_, key=lambda one: np.nan_to_num(one.certificate_.gap, nan=2.0))
    certificate = getattr(inner, "certificate_", None)
    names = getattr(first, "feature_names_in_", None)
    n_features = getattr(first, "n_features_in_", None)
    plan, kernel = getattr(inner, "plan_", None), getattr(inner, "kernel_", None)
    precomputed = getattr(inner, "kernel", None) == "precomputed"
    versions = {"mercer": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "format": FORMAT,
        "estimator": type(last).__name__,
        "kernel": "precomputed" if precomputed else None if kernel is None else _text(kernel),
        "method": _text(last if plan is None else plan.method),
        "parameters": {name: _text(v) for name, v in last.get_params(deep=False).items()},
        "preprocessing": [_text(step) for step in before],
        "feature_names": None if names is None else [str(name) for name in names],
        "n_features": None if n_features is None else int(n_features),
        "certificate": None if certificate is None else _summary(certificate),
        "spectrum": {
            "eigenvalues": _values(inner, "explained_variance_"),
            "shares": _values(inner, "explained_variance_ratio_"),
        },
        "versions": versions,
        "origin": dict(origin or {}),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def _summary(certificate: Certificate) -> dict[str, Any]:
    summary = {"sentence": certificate.sentence, "converged": bool(certificate.converged)}
    for name in ("captured", "optimum_upper", "gap"):
        figure = getattr(certificate, name)
        summary[name] = {"value": _finite(figure), "label": figure.label}
    return {**summary, "notes": list(certificate.notes), "text": str(certificate)}


def _values(model: Any, attribute: str) -> list[float | None]:
    return [_finite(x) for x in to_numpy(getattr(model, attribute, np.zeros(0)))[:_MOST_VALUES]]


def _finite(x: Any) -> float | None:
    return float(x) if np.isfinite(x) else None

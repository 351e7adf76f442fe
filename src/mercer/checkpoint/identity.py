"""Identity of parameters and rows: a text that is the same in another process."""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import is_foreign, to_numpy
from mercer.data import Block, Source, SumFold
from mercer.progress import recorded_by, recorder

# Longer texts of lists are replaced by a hash.
_LONG = 400


def describe(value: Any, within: tuple[Any, ...] = ()) -> str:
    """Return a text that identifies an object by its parameters, not by its address.

    Arrays are identified by a hash, functions by their name and code. Random generators are all
    alike, because a fit records its seeds. For example `RBF(gamma=0.5)`, `[builtins.len, 1.0]`.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if any(value is outer for outer in within):
        return "itself"
    within = (*within, value)
    name = type(value).__name__
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = sorted(value.get_params(deep=False).items())
        fitted = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
        own = [f"{key}={describe(param, within)}" for key, param in params]
        return f"{name}({', '.join([*own, describe(fitted, within)] if fitted else own)})"
    if isinstance(value, (dict, list, tuple)):
        if isinstance(value, dict):
            entries = [f"{key!r}: {describe(entry, within)}" for key, entry in value.items()]
            text = f"{{{', '.join(entries)}}}"
        else:
            text = f"[{', '.join([describe(entry, within) for entry in value])}]"
        return text if len(text) <= _LONG else f"{text[: _LONG // 4]}… {_hash(text.encode())}"
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return name
    if isinstance(value, functools.partial):
        return f"partial({describe([value.func, value.args, value.keywords], within)})"
    if hasattr(value, "__qualname__"):
        text = f"{value.__module__}.{value.__qualname__}"
        code = getattr(value, "__code__", None)
        if code is None:
            return text
        # Functions of one name, such as <lambda>, differ by code, defaults and closure.
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        state = describe([value.__defaults__, value.__kwdefaults__, cells], within)
        return f"{text} {_hash(_code(code), state.encode())}"
    if hasattr(value, "tocsr") or hasattr(value, "__array__") or is_foreign(value):
        hashed = [
            repr(part.tolist()).encode() if part.dtype.kind == "O" else part.tobytes()
            for part in _buffers(value)
        ]
        shape = " × ".join(str(size) for size in value.shape)
        return f"<{name} of {shape}, {_hash(*hashed)}>"
    if hasattr(value, "__dict__"):
        return f"{name}({describe(vars(value), within)})"
    return f"{name}({'' if ' at 0x' in repr(value) else repr(value)})"


def _buffers(rows: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of NumPy that hold rows, dense or sparse."""
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
        return [to_numpy(part) for part in (rows.data, rows.indices, rows.indptr)]
    return [to_numpy(rows)]


def _code(code: types.CodeType) -> bytes:
    """Return the instructions and constants of a function, and of those inside it."""
    inner = [x for x in code.co_consts if isinstance(x, types.CodeType)]
    constants = [describe(x) for x in code.co_consts if not isinstance(x, types.CodeType)]
    own = code.co_code + repr((code.co_names, constants)).encode()
    return b"".join([own, *map(_code, inner)])


def _hash(*texts: bytes) -> str:
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def identify(source: Source) -> str:
    """Return the shape and dtype of rows, and a digest of all of them; "" in no recorded fit."""
    if recorder.get() is None:
        return ""
    shape = "x".join(map(str, source.shape))
    with recorded_by(None), progress.quiet():
        return f"{shape} {source.dtype} {int(source.fold(Digest(source)).result[0]):016x}"


class Digest(SumFold):
    """Sum, modulo 2⁶⁴, of a hash of every block: a resumed fit divides the rows as before."""

    label = "digest of the rows"

    def __init__(self, source: Source) -> None:
        dense = len(source.shape) > 1 and not source.sparse
        self.row_bytes = source.shape[1] * source.dtype.itemsize if dense else 0
        self.sums = {"result": np.zeros(1, np.uint64)}

    def add(self, block: Block) -> None:
        digest = hashlib.blake2b(str(block.start).encode(), digest_size=8)
        rows: Any = block.rows
        if isinstance(rows, list):
            digest.update(repr(rows).encode("utf-8", "surrogatepass"))
        else:
            for part in _buffers(rows):
                digest.update(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
        self.sums["result"] += np.frombuffer(digest.digest(), np.uint64)

"""Parameters as a text that is the same in another process."""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any

import numpy as np

from mercer.arrays import is_foreign, to_numpy

# Lists of a longer text than this are told apart by a hash.
_LONG = 400


def describe(value: Any, within: tuple[Any, ...] = ()) -> str:
    """Return a text that tells objects apart by their parameters, and not by where they lie.

    Arrays are told apart by a hash, functions by their name and what they do; where random
    numbers come from is not told, for a run keeps its seeds.

    Examples
    --------
    >>> from mercer.checkpoint import describe
    >>> from mercer.kernels import RBF
    >>> describe(RBF(0.5))
    'RBF(gamma=0.5)'
    >>> describe([len, None, 1.0])
    '[builtins.len, None, 1.0]'
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if any(value is outer for outer in within):
        return "itself"
    within = (*within, value)
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        fitted = {k: v for k, v in vars(value).items() if k.endswith("_") and not k.startswith("_")}
        own = ", ".join(f"{name}={describe(params[name], within)}" for name in sorted(params))
        own += f", {describe(fitted, within)}" if fitted else ""
        return f"{type(value).__name__}({own})"
    if isinstance(value, dict):
        return _short(
            "{" + ", ".join(f"{k!r}: {describe(v, within)}" for k, v in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        return _short("[" + ", ".join(describe(entry, within) for entry in value) + "]")
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return type(value).__name__
    if isinstance(value, functools.partial):
        return f"partial({describe([value.func, value.args, value.keywords], within)})"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}{_code(value, within)}"
    return _data(value, within)


def _code(function: Any, within: tuple[Any, ...]) -> str:
    """Describe what a Python function does: another may have its name, such as <lambda>."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    given = [function.__defaults__, function.__kwdefaults__, cells]
    return " " + _hash(_steps(code), describe(given, within).encode())


def _steps(code: types.CodeType) -> bytes:
    """Return what a function does, and those inside it."""
    inner = [x for x in code.co_consts if isinstance(x, types.CodeType)]
    known = [describe(x) for x in code.co_consts if not isinstance(x, types.CodeType)]
    own = code.co_code + repr((code.co_names, known)).encode()
    return b"".join([own, *map(_steps, inner)])


def _data(value: Any, within: tuple[Any, ...]) -> str:
    """Describe an array, a sparse matrix or a table by a hash of its entries."""
    if hasattr(value, "tocsr"):
        value = value.tocsr()
        parts = [value.data, value.indices, value.indptr]
    elif hasattr(value, "__array__") or is_foreign(value):
        parts = [to_numpy(value)]
    elif hasattr(value, "__dict__"):
        return f"{type(value).__qualname__}({describe(vars(value), within)})"
    else:
        text = "" if " at 0x" in repr(value) else repr(value)  # where it lies tells nothing
        return f"{type(value).__qualname__}({text})"
    texts = [repr(x.tolist()).encode() if x.dtype.kind == "O" else x.tobytes() for x in parts]
    shape = " × ".join(str(size) for size in value.shape)
    return f"<{type(value).__name__} of {shape}, {_hash(*texts)}>"


def _short(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[: _LONG // 4]}… {_hash(text.encode())}"


def _hash(*texts: bytes) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text)
    return digest.hexdigest()[:16]

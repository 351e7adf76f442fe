"""Identity of parameters and rows: a text that is the same in another process."""

from __future__ import annotations

import functools
import hashlib
import types
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import Array, is_foreign, to_numpy
from mercer.data import Block, Fold, Source
from mercer.progress import recorded_by, recorder

Numbers = npt.NDArray[np.uint64]
# Longer texts of lists are replaced by a hash.
_LONG = 400
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: bits of neighbors fall far apart


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
    if hasattr(value, "tocsr"):
        value = value.tocsr()
        parts = [value.data, value.indices, value.indptr]
    elif hasattr(value, "__array__") or is_foreign(value):
        parts = [to_numpy(value)]
    elif hasattr(value, "__dict__"):
        return f"{type(value).__qualname__}({describe(vars(value), within)})"
    else:
        text = "" if " at 0x" in repr(value) else repr(value)
        return f"{type(value).__qualname__}({text})"
    hashed = [repr(x.tolist()).encode() if x.dtype.kind == "O" else x.tobytes() for x in parts]
    shape = " × ".join(str(size) for size in value.shape)
    return f"<{name} of {shape}, {_hash(*hashed)}>"


def _code(code: types.CodeType) -> bytes:
    """Return the instructions and constants of a function, and of those inside it."""
    inner = [x for x in code.co_consts if isinstance(x, types.CodeType)]
    constants = [describe(x) for x in code.co_consts if not isinstance(x, types.CodeType)]
    own = code.co_code + repr((code.co_names, constants)).encode()
    return b"".join([own, *map(_code, inner)])


def _hash(*texts: bytes) -> str:
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16]


def identify(source: Source, fingerprint: str) -> str:
    """Return the fingerprint of rows and, if the fit is recorded, a digest of all of them.

    The fingerprint reads some rows only: a fit must not be resumed if any other has changed.
    """
    if recorder.get() is None:
        return fingerprint
    with recorded_by(None), progress.quiet():
        return f"{fingerprint} {source.fold(Digest(source)).value:016x}"


class Digest(Fold):
    """Sum, modulo 2⁶⁴, of a hash of every entry: of its bits, its column and its row.

    The same for any blocks, and for dense and sparse rows: zeros count nothing.
    """

    label = "digest of the rows"

    def __init__(self, source: Source) -> None:
        self.width = source.shape[1] if len(source.shape) > 1 else 0
        self.row_bytes = 0 if source.sparse else 4 * 8 * self.width
        self.total = np.zeros(1, np.uint64)
        odd = np.random.default_rng(0).integers(0, 2**63, self.width, np.uint64)
        self.columns: Numbers = odd * np.uint64(2) + np.uint64(1)

    @property
    def value(self) -> int:
        """The sum."""
        return int(self.total[0])

    def add(self, block: Block) -> None:
        rows, at = block.rows, np.arange(block.start, block.stop, dtype=np.uint64)
        if isinstance(rows, list):
            texts = [text.encode("utf-8", "surrogatepass") for text in rows]
            hashes = [hashlib.blake2b(text, digest_size=8).digest() for text in texts]
            sums = np.frombuffer(b"".join(hashes), "<u8").astype(np.uint64)
        elif hasattr(rows, "tocsr"):
            rows = rows.tocsr()
            entries = _mixed(_bits(rows.data)) * self.columns[rows.indices]
            row_of_entry = np.repeat(np.arange(block.length), np.diff(rows.indptr))
            sums = np.zeros(block.length, np.uint64)
            np.add.at(sums, row_of_entry, _mixed(entries))
        else:
            sums = _mixed(_mixed(_bits(to_numpy(rows))) * self.columns).sum(axis=1, dtype=np.uint64)
        self.total += (_mixed(sums) * (np.uint64(2) * at + np.uint64(1))).sum(dtype=np.uint64)

    def merge(self, other: Self) -> None:
        self.total += other.total

    def spawn(self) -> Self:
        other = object.__new__(type(self))
        other.__dict__ = {**self.__dict__, "total": np.zeros(1, np.uint64)}
        return other

    def arrays(self) -> dict[str, Array]:
        return {"total": self.total}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.total = np.array(arrays["total"], np.uint64)


def _bits(values: npt.NDArray[Any]) -> Numbers:
    """Return the bits of numbers: zero and minus zero are equal, and so are all NaN."""
    values = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
    unsigned = np.uint32 if values.dtype == np.float32 else np.uint64
    return np.ascontiguousarray(values).view(unsigned).astype(np.uint64)


def _mixed(numbers: Numbers) -> Numbers:
    """Spread every bit over the others; zero stays zero."""
    numbers = numbers * _SPREAD
    return numbers ^ (numbers >> np.uint64(29))

"""A number that tells all rows apart from any others, made in one pass over them."""

from __future__ import annotations

import hashlib
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer import progress
from mercer.arrays import Array, to_numpy
from mercer.checkpoint.folder import current
from mercer.data.fold import Block, Fold
from mercer.data.source import Source
from mercer.session import recorded_by

Numbers = npt.NDArray[np.uint64]
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # the golden ratio: bits of neighbours fall far apart


def identify(source: Source, fingerprint: str) -> str:
    """Return the fingerprint of rows, and if the fit is recorded, a digest of all of them.

    The fingerprint reads some rows only: a fit must not be resumed if any other has changed.
    """
    if current() is None:
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
        """The number."""
        return int(self.total[0])

    def add(self, block: Block) -> None:
        rows, at = block.rows, np.arange(block.start, block.stop, dtype=np.uint64)
        if isinstance(rows, list):
            sums = np.array([_text(text) for text in rows], np.uint64)
        elif hasattr(rows, "tocsr"):
            rows = rows.tocsr()
            entries = _mixed(_bits(rows.data)) * self.columns[rows.indices]
            whose = np.repeat(np.arange(block.length), np.diff(rows.indptr))
            sums = np.zeros(block.length, np.uint64)
            np.add.at(sums, whose, _mixed(entries))
        else:
            sums = _mixed(_mixed(_bits(to_numpy(rows))) * self.columns).sum(axis=1, dtype=np.uint64)
        self.total += (_mixed(sums) * (np.uint64(2) * at + np.uint64(1))).sum(dtype=np.uint64)

    def merge(self, other: Self) -> None:
        self.total += other.total

    def spawn(self) -> Self:
        made = object.__new__(type(self))
        made.__dict__ = {**self.__dict__, "total": np.zeros(1, np.uint64)}
        return made

    def arrays(self) -> dict[str, Array]:
        return {"total": self.total}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.total = np.array(arrays["total"], np.uint64)


def _bits(values: npt.NDArray[Any]) -> Numbers:
    """Return the bits of numbers: zero and minus zero are equal, and so are all NaN."""
    values = np.where(np.isnan(values), np.nan, values + 0.0).astype(values.dtype)
    kind = np.uint32 if values.dtype == np.float32 else np.uint64
    return np.ascontiguousarray(values).view(kind).astype(np.uint64)


def _mixed(numbers: Numbers) -> Numbers:
    """Let every bit count in every other; zero stays zero."""
    numbers = numbers * _SPREAD
    return numbers ^ (numbers >> np.uint64(29))


def _text(text: str | bytes) -> int:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")

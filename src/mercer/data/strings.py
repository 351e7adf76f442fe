"""Rows that are strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.data.source import Source


class StringSource(Source):
    """Strings, one a row; blocks are lists of `str`."""

    def __init__(self, strings: Sequence[Any]) -> None:
        self.strings = [str(s) if isinstance(s, np.str_) else s for s in strings]
        for i, entry in enumerate(self.strings):
            if not isinstance(entry, str):
                remedy = "Decode" if isinstance(entry, bytes) else "Convert it with str, or drop"
                raise ValueError(
                    f"entry {i} is {entry!r} ({type(entry).__name__}), where rows must be "
                    f"strings. {remedy} it."
                )
        self.shape = (len(self.strings),)  # type: ignore[assignment]
        self.dtype = np.dtype(np.float64)  # of what kernels make of them

    @property
    def row_bytes(self) -> int:
        return 0

    def read(self, start: int, stop: int) -> list[str]:
        return self.strings[start:stop]

    def whole(self) -> list[str]:
        return self.strings

    def _take(self, at: np.ndarray[Any, Any]) -> list[str]:
        return [self.strings[i] for i in at]

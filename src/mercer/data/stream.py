"""Rows that have gone by."""

from __future__ import annotations

from typing import Any

from mercer.data.source import Source


class Seen(Source):
    """Rows that have gone by: their number and weight, but not themselves."""

    def __init__(self, batch: Source, n: int, count: float) -> None:
        self.shape = (n, *batch.shape[1:])
        self.dtype, self.names = batch.dtype, batch.names
        self._reference, self._count = batch.reference, count

    @property
    def reference(self) -> Any:
        return self._reference

    @property
    def count(self) -> float:
        return self._count

    def read(self, start: int, stop: int) -> Any:
        raise ValueError("The rows of earlier batches are gone.")

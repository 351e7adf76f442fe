"""Rows of the host that are worked on by a device, and what is made of them brought home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    apart_stream,
    device_memory,
    device_reference,
    helped_by,
    like,
    on_accelerator,
    to_numpy,
    together,
)
from mercer.config import config_context, get_config
from mercer.data.array import ArraySource
from mercer.data.fold import Block
from mercer.data.source import Mapped, Source
from mercer.data.strings import StringSource


class OnDevice(Source):
    """Rows of the host, copied to a device block by block.

    The next block is read and copied, in a thread and a stream of their own, while one is
    worked on.
    """

    waits = True
    parallel = False

    def __init__(self, source: Source, reference: Array) -> None:
        self.source = source
        self.shape, self.dtype = source.shape, source.dtype
        self.names, self.weights, self.by_columns = source.names, source.weights, source.by_columns
        self._reference = reference

    @property
    def reference(self) -> Array:
        return self._reference

    @property
    def home(self) -> Array:
        return self.source.home

    @property
    def row_bytes(self) -> int:
        return self.shape[1] * self.dtype.itemsize + self.source.row_bytes

    @property
    def held_bytes(self) -> int:
        return self.source.held_bytes

    def read(self, start: int, stop: int) -> Array:
        rows = self.source.read(start, stop)
        with apart_stream(self._reference) as used_here:
            return used_here(like(to_numpy(rows), self._reference))

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        return like(to_numpy(self.source.take(at)), self._reference)

    def transposed(self) -> Source | None:
        columns = self.source.transposed()
        return None if columns is None else OnDevice(columns, self._reference)


class Resident(ArraySource):
    """Rows on a device, of which what is made goes home as that of a source does."""

    def __init__(self, rows: Array, source: Source) -> None:
        super().__init__(rows, source.names)
        self._home = source.home

    @property
    def home(self) -> Array:
        return self._home


class AtHome(Mapped):
    """Rows that a device computes, as arrays of the place the data came from."""

    def __init__(self, source: Source) -> None:
        def brought(block: Block) -> Array:
            return like(to_numpy(block.rows), source.home)

        super().__init__(source, brought, source.shape[1], source.dtype, 0)

    @property
    def reference(self) -> Array:
        return self.source.home


def placed(source: Source) -> Source:
    """Return rows where the settings say that they are worked on."""
    name = get_config().device
    if name is None or on_accelerator(source.reference):
        return source
    if source.remote is not None:
        raise ValueError(
            f"device={name!r}: rows of Dask are worked on where they lie, by its workers. Leave "
            f"device out."
        )
    if source.sparse or isinstance(source, StringSource):
        kind = "sparse rows" if source.sparse else "strings"
        raise TypeError(
            f"device={name!r} takes dense rows of numbers, and X holds {kind}, which the CPU works "
            f"on. Leave device out{', or pass X.toarray()' if source.sparse else ''}."
        )
    return OnDevice(source, device_reference(name))


def resident(source: Source) -> Source:
    """Return rows that are read more than once, on their device where they fit."""
    if not isinstance(source, OnDevice):
        return source
    n, d = source.shape
    if n * d * source.dtype.itemsize > get_config().budget // 4:
        return source
    rows = source.collect(label="to the device")
    return Resident(rows, source).weighted(source.weights)


def in_place_of(rows: Array, source: Source) -> ArraySource:
    """Return rows in memory, that go home as those of a source do."""
    at_home = together(source.reference, source.home)
    return ArraySource(rows, source.names) if at_home else Resident(rows, source)


def at_home(source: Source) -> Source:
    """Return rows as arrays of the place the data came from."""
    return source if together(source.reference, source.home) else AtHome(source)


@contextlib.contextmanager
def at_work(reference: Array) -> Iterator[None]:
    """Work where an array lives: within that memory, and with its device for larger matrices."""
    there = device_memory(reference)
    if there is None:
        yield
        return
    fits = {} if get_config().memory is not None else {"memory": there // 2}
    with helped_by(reference), config_context(**fits):
        yield

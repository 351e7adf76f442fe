"""Host rows processed on a device, with results returned to the host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import (
    CSR,
    ENTRY_BYTES,
    Array,
    copy_stream,
    device_lapack,
    device_memory,
    device_reference,
    like,
    on_accelerator,
    products,
    same_device,
    stack_rows,
    to_device_of,
    to_numpy,
)
from mercer.config import config_context, get_config
from mercer.data.in_memory import ArraySource, SparseSource, StringSource
from mercer.data.source import Source


class OnDevice(Source):
    """Rows of the host, copied to a device block by block.

    The next block is read and copied, in a thread and a stream of their own, while one is
    worked on.
    """

    waits = True
    parallel = False

    def __init__(self, source: Source, reference: Array) -> None:
        self.source, self.reference, self.output = source, reference, source.output_reference
        self.shape, self.dtype, self.held_bytes = source.shape, source.dtype, source.held_bytes
        self.names, self.weights, self.by_columns = source.names, source.weights, source.by_columns
        self.sparse, self.uneven = source.sparse, source.uneven

    @property
    def nnz(self) -> int | None:
        """Number of stored entries of sparse rows."""
        entries: int | None = getattr(self.source, "nnz", None)
        return entries

    @property
    def nbytes(self) -> int:
        return super().nbytes if self.nnz is None else (self.dtype.itemsize + 4) * self.nnz

    @property
    def row_bytes(self) -> int:
        entries = getattr(self.source, "row_entries", None)
        own = super().row_bytes if entries is None else ENTRY_BYTES * entries
        return own + self.source.row_bytes

    def read(self, start: int, stop: int) -> Any:
        rows = self.source.read(start, stop)
        with copy_stream(self.reference) as share:
            copied = to_device_of(rows, self.reference)
            for part in copied.arrays if isinstance(copied, CSR) else (copied,):
                share(part)
            return copied

    def gather(self, at: np.ndarray[Any, Any]) -> Any:
        return to_device_of(self.source.gather(at), self.reference)

    def _take(self, at: np.ndarray[Any, Any]) -> Array:
        return like(to_numpy(self.source.take(at)), self.reference)

    def transposed(self) -> Source:
        return OnDevice(self.source.transposed(), self.reference)


def to_configured_device(source: Source) -> Source:
    """Return rows on the device of the settings."""
    name = get_config().device
    if name is None or on_accelerator(source.reference):
        return source
    if source.remote is not None or isinstance(source, StringSource):
        content = "Dask" if source.remote else "string"
        raise TypeError(
            f"device={name!r} requires numeric rows of this process, but X has {content} rows. "
            f"Omit device."
        )
    return OnDevice(source, device_reference(name))


def cache_on_device(source: Source) -> Source:
    """Return rows that are read more than once, kept on their device if they fit."""
    if not isinstance(source, OnDevice):
        return source
    if source.nbytes > get_config().budget // 4:
        return source
    if source.sparse:
        rows = _gather_sparse(source)
    else:
        rows = source.collect(label="to the device")
    return source_like(rows, source).weighted(source.weights)


def _gather_sparse(source: Source) -> Any:
    """Return all sparse rows in one matrix."""
    blocks = []
    with progress.task("to the device", source.shape[0]) as tick:
        for block in source.blocks(source.block_rows(0, held=0, parts=1)):
            blocks.append(block.rows)
            tick(block.length)
    return stack_rows(blocks)


def source_like(rows: Any, source: Source) -> ArraySource | SparseSource:
    """Return rows in memory whose results go where those of the source go."""
    kind = SparseSource if hasattr(rows, "tocsr") else ArraySource
    result, output = kind(rows, source.names), source.output_reference
    result.output = None if same_device(source.reference, output) else output
    return result


def to_output_device(source: Source) -> Source:
    """Return rows as arrays of the library and device that the data came from."""
    output = source.output_reference
    if same_device(source.reference, output):
        return source
    copied = source.map(lambda block: like(to_numpy(block.rows), output), source.shape[1])
    copied.reference = output
    return copied


@contextlib.contextmanager
def device_context(reference: Array) -> Iterator[None]:
    """Compute on the device of an array: within its memory, larger host matrices included."""
    memory = None if isinstance(reference, np.ndarray) else device_memory(reference)
    limit = {} if memory is None or get_config().memory is not None else {"memory": memory // 2}
    with products(reference), device_lapack(reference), config_context(**limit):
        yield

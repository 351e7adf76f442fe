"""Rows of a Zarr array, version 2 or 3: a `.zarr` folder, or `folder.zarr::name`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.errors import FileError, decoding, listed
from mercer.data.file_guard import Stamp
from mercer.data.files.banded import Sliced, Unpack, placed
from mercer.data.files.extra import extra
from mercer.data.files.hdf5 import check_rows
from mercer.data.files.roles import Ask, assign
from mercer.data.files.table import Table, from_parts
from mercer.data.source import Source

MARKS = ("zarr.json", ".zarray", ".zgroup")
"""What lies in a folder that is Zarr's."""
# What compression can save at most.
_SMALLEST = 1032


class ZarrSource(Sliced):
    """Rows of an array of chunks, a file each."""

    def __init__(self, folder: Path, array: Any, ask: Ask, columns: Sequence[int] | None) -> None:
        n, d = array.shape
        shape = (int(n), int(d) if columns is None else len(columns))
        root = folder / array.path
        # Of folders too, after what is in them: chunks may be added.
        stamp = Stamp([*sorted(root.rglob("*"), key=lambda path: (path.is_dir(), path)), root])
        # A chunk that was never written is zeros; and so would be all of an array that is a lie.
        if int(n) * int(d) * array.dtype.itemsize > _SMALLEST * stamp.size + 2**20:
            raise FileError(f"{ask.path} claims shape {array.shape}, and is not filled.")
        # Of shards, which hold chunks, the chunk is what is unpacked.
        super().__init__(shape, array.dtype, int(array.chunks[0]), stamp, (ask.path, "Zarr"))
        self.root, self.name = folder, array.path
        codecs = str(array.compressors).lower()
        self.slow = "gzip" in codecs or "zlib" in codecs
        if columns is not None:
            self.choose(columns, int(array.chunks[1]))

    def check(self, start: int, stop: int) -> None:
        """Look at the chunks when a pass begins and when it ends: they may be very many."""
        if start == 0 or stop == self.shape[0]:
            self.stamp.check_all()

    @contextmanager
    def opened(self) -> Iterator[Unpack]:
        yield self.pick(_open(self.root, self.name))


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read the array that is named, or the only one of rows and columns of numbers."""
    with decoding(ask.path, "Zarr"):
        array = _array(path, ask)
        check_rows(array, array.path or "the array", ask)
        roles = assign([str(i) for i in range(array.shape[1])], ask, named=False)

        def rows(columns: Sequence[int]) -> Source:
            every = list(columns) == list(range(array.shape[1]))
            return placed(ZarrSource(path, array, ask, None if every else columns))

        return from_parts(ask, roles, rows, lambda j: np.asarray(array[:, j]))


def _array(path: Path, ask: Ask) -> Any:
    try:
        opened = _open(path, ask.part or "")
    except FileNotFoundError as absent:
        if not ask.part:
            raise
        held = listed([array.path for array in _arrays(_open(path, ""))])
        raise FileError(f"{ask.path}: there is no {ask.part!r}. It holds {held}.") from absent
    if hasattr(opened, "shape"):
        return opened
    found = [array for array in _arrays(opened) if len(array.shape) == 2]
    if len(found) != 1:
        names = [array.path for array in found]
        raise FileError(
            f"{ask.path} holds {len(found)} arrays of rows and columns"
            f"{f' ({listed(names)})' if found else ''}, and one is wanted. "
            f"Name it: {ask.path}::NAME."
        )
    return found[0]


def _arrays(group: Any) -> Iterator[Any]:
    for _, array in sorted(group.arrays()):
        yield array
    for _, inner in sorted(group.groups()):
        yield from _arrays(inner)


def _open(folder: Path, name: str) -> Any:
    return extra("zarr", "Zarr").open(str(folder), path=name.strip("/") or None, mode="r")

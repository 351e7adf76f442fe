"""Rows of an HDF5 file: its one dataset of rows and columns, or `file.h5::name`."""

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
from mercer.data.files.roles import Ask, assign
from mercer.data.files.table import Table, from_parts
from mercer.data.source import Source

# What compression can save at most; more is a lie, or an array that was never filled.
_SMALLEST = 1032


class H5Source(Sliced):
    """Rows of a dataset of an HDF5 file; opened for every read, so that none holds it open."""

    def __init__(self, path: Path, dataset: Any, ask: Ask, columns: Sequence[int] | None) -> None:
        n, d = dataset.shape
        band = 1 if dataset.chunks is None else int(dataset.chunks[0])
        shape = (int(n), int(d) if columns is None else len(columns))
        super().__init__(shape, dataset.dtype, band, Stamp([path]), (ask.path, "HDF5"))
        self.path, self.name, self.slow = path, dataset.name, dataset.compression == "gzip"
        if columns is not None:
            self.choose(columns, 1024 if dataset.chunks is None else int(dataset.chunks[1]))

    @contextmanager
    def opened(self) -> Iterator[Unpack]:
        with extra("h5py", "HDF5").File(self.path, "r") as file:
            yield self.pick(file[self.name])


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read the dataset that is named, or the only one of rows and columns of numbers."""
    h5py = extra("h5py", "HDF5")
    with decoding(ask.path, "HDF5"), h5py.File(path, "r") as file:
        dataset = _named(file, ask.part, ask) if ask.part else _only(file, ask)
        table = from_dataset(path, dataset, ask)
    tick(path.stat().st_size)
    return table


def from_dataset(path: Path, dataset: Any, ask: Ask) -> Table:
    """Return the table of a dataset without names: its columns go by their numbers."""
    check_rows(dataset, dataset.name, ask)
    roles = assign([str(i) for i in range(dataset.shape[1])], ask, named=False)
    return from_parts(
        ask, roles, lambda at: dense(path, dataset, ask, at), lambda j: np.asarray(dataset[:, j])
    )


def dense(path: Path, dataset: Any, ask: Ask, columns: Sequence[int] | None = None) -> Source:
    """Return rows of a dataset that is rows of numbers."""
    check_rows(dataset, dataset.name, ask)
    if columns is not None and list(columns) == list(range(dataset.shape[1])):
        columns = None
    return placed(H5Source(path, dataset, ask, columns))


def check_rows(array: Any, name: str, ask: Ask) -> None:
    """Refuse an array that is not rows and columns of real numbers."""
    shape, dtype = array.shape, array.dtype
    if shape is None or len(shape) != 2 or 0 in shape or dtype.kind not in "fiub":
        raise FileError(
            f"{ask.path}: {name} is {dtype} of shape {shape}, not rows and columns of numbers."
        )


def _named(file: Any, name: str, ask: Ask) -> Any:
    group = file
    for part in name.strip("/").split("/"):
        if not hasattr(group, "keys") or part not in group:
            raise FileError(f"{ask.path}: there is no {name!r}. {_there(file, ask)}")
        group = inner(group, part, ask)
    if not hasattr(group, "shape"):
        raise FileError(f"{ask.path}: {name!r} is a group, not an array. {_there(file, ask)}")
    return group


def _only(file: Any, ask: Ask) -> Any:
    found = _tables(file, ask)
    if len(found) != 1:
        raise FileError(
            f"{ask.path} holds {len(found)} datasets of rows and columns of numbers"
            f"{f' ({listed(found)})' if found else ''}, and one is wanted. "
            f"Name it: {ask.path}::NAME."
        )
    return _named(file, found[0], ask)


def _there(file: Any, ask: Ask) -> str:
    found = _tables(file, ask)
    return f"Rows and columns of numbers are in {listed(found)}." if found else ""


def _tables(file: Any, ask: Ask) -> list[str]:
    found: list[str] = []

    def visit(name: str, item: Any) -> None:
        shape = getattr(item, "shape", None)
        if shape is not None and len(shape) == 2 and item.dtype.kind in "fiub":
            found.append(name)

    file.visititems(visit)
    return found


def inner(group: Any, name: str, ask: Ask) -> Any:
    """Return a member of a group; one that lies in another file, or is not filled, is refused."""
    link = group.get(name, getlink=True)
    if link is None:
        raise FileError(f"{ask.path} has no {group.name.rstrip('/')}/{name}.")
    if type(link).__name__ == "ExternalLink":
        raise FileError(f"{ask.path}: {name} is a link to another file, which is not followed.")
    found = group[name]
    if hasattr(found, "is_virtual") and (found.is_virtual or found.external):
        raise FileError(f"{ask.path}: {name} lies in other files, which are not read.")
    if hasattr(found, "shape") and found.shape is not None:
        size = int(np.prod(found.shape, dtype=object)) * found.dtype.itemsize
        if size > _SMALLEST * found.id.get_storage_size() + 2**20:
            raise FileError(f"{ask.path}: {name} claims shape {found.shape}, and is not filled.")
    return found

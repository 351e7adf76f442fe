"""Copies of AnnData files with more entries, encoded as AnnData 0.8 and later encodes them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mercer.data.errors import FileError, FileGuard, file_errors
from mercer.data.files.table import import_format


def copy_annotated(
    path: Path, copy: Path, fields: Mapping[str, Mapping[str, Any]], guard: FileGuard
) -> None:
    """Copy an .h5ad file and set members of groups such as obsm; None deletes a member.

    `guard` has watched the file since it was read. Links are not followed: nothing but the copy
    is changed.
    """
    shutil.copyfile(path, copy)
    guard.check()
    with file_errors(path, "AnnData"), import_format("h5py", "HDF5").File(copy, "r+") as file:
        for name, members in fields.items():
            group = _group(file, name, path)
            for key, value in members.items():
                if key in group:
                    del group[key]
                _write(group, key, value)


def _group(file: Any, name: str, path: Path) -> Any:
    """Return obsm, varm or uns; raise if it is a link, or the table of an old format."""
    link = file.get(name, getlink=True)
    if link is None:
        return _make_group(file, name)
    group = file[name] if type(link).__name__ == "HardLink" else None
    if group is None or not hasattr(group, "create_group"):
        what = "a link" if group is None else "a table, as AnnData wrote it before version 0.7"
        raise FileError(
            f"{path}: {name} is {what}. Rewrite the file: anndata.read_h5ad(...).write_h5ad(...)."
        )
    return group


def _make_group(parent: Any, name: str) -> Any:
    group = parent.create_group(name)
    group.attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
    return group


def _write(group: Any, key: str, value: Any) -> None:
    """Write a mapping, an array, a text or a number; None, which AnnData 0.11 lacks, is absent."""
    if value is None:
        return
    if isinstance(value, Mapping):
        inner = _make_group(group, key)
        for name, each in value.items():
            _write(inner, name, each)
        return
    if isinstance(value, str):
        kind, dtype = "string", import_format("h5py", "HDF5").string_dtype()
    else:
        kind, dtype = "array" if np.ndim(value) else "numeric-scalar", np.asarray(value).dtype
    group.create_dataset(key, data=value, dtype=dtype)
    group[key].attrs.update({"encoding-type": kind, "encoding-version": "0.2.0"})

"""Rows in files: one table of suffixes, one file a format."""

from __future__ import annotations

from mercer.data.errors import FileError, MissingValues
from mercer.data.files.addresses import download, is_url
from mercer.data.files.labels import id_names
from mercer.data.files.read import NAMELESS, READERS, read_source, read_table, split
from mercer.data.files.table import Table
from mercer.data.files.write import WRITERS, write_table

__all__ = [
    "NAMELESS",
    "READERS",
    "WRITERS",
    "FileError",
    "MissingValues",
    "Table",
    "download",
    "id_names",
    "is_url",
    "read_source",
    "read_table",
    "split",
    "write_table",
]

"""Tables and arrays in files: reading, writing, and the roles of columns."""

from __future__ import annotations

from mercer.data.errors import FileError, MissingValues
from mercer.data.files.read import (
    NAMELESS,
    READERS,
    read_source,
    read_table,
    split_path,
)
from mercer.data.files.table import Request, Table, id_names
from mercer.data.files.write import WRITERS, write_table

__all__ = [
    "NAMELESS",
    "READERS",
    "WRITERS",
    "FileError",
    "MissingValues",
    "Request",
    "Table",
    "id_names",
    "read_source",
    "read_table",
    "split_path",
    "write_table",
]

"""Strings in a text file, `.txt`: one a line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mercer.sources.errors import FileError
from mercer.sources.files.arrays import require_room
from mercer.sources.files.roles import Ask
from mercer.sources.files.table import Table
from mercer.sources.files.text import not_utf8
from mercer.sources.strings import StringSource


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read strings. A blank line is an empty string; blank lines at the end are not."""
    if not replace(ask, optional=()).plain:
        raise FileError(
            f"{ask.path}: strings, one a line, have no columns to choose from. Leave columns, "
            f"drop, id, label, weights and keep out."
        )
    size = path.stat().st_size
    require_room(ask, 2 * size)
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(not_utf8(ask.path, "a line", error)) from None
    # Not `splitlines`, which also splits at form feeds and the like.
    strings = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    tick(size)
    if strings == [""]:
        raise FileError(f"{ask.path} is empty: it holds no strings.")
    return Table(StringSource(strings))

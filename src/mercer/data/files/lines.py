"""Strings in a text file, `.txt`: one a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mercer.data.errors import FileError
from mercer.data.files.arrays import require_room
from mercer.data.files.roles import Ask
from mercer.data.files.table import Table
from mercer.data.files.text import NUMBER, not_utf8
from mercer.data.strings import StringSource

# Lines that are looked at to tell whether a file is a table.
_LINES = 20


def read(path: Path, ask: Ask, tick: Callable[[int], None]) -> Table:
    """Read strings. A blank line is an empty string; blank lines at the end are not."""
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
    if not replace(ask, optional=()).plain:
        raise FileError(
            f"{ask.path}: strings, one a line, have no columns to choose from. Leave columns, "
            f"drop, id, label, weights and keep out.{as_table(strings, ask)}"
        )
    return Table(StringSource(strings))


def as_table(strings: Sequence[str], ask: Ask) -> str:
    """Say how to read lines as a table where they look like one: numbers in most fields."""
    fields = [re.split(r"[,;\t]| +", line.strip()) for line in strings[1:_LINES]]
    flat = [text for line in fields for text in line]
    numbers = sum(NUMBER.fullmatch(text) is not None for text in flat)
    if not fields or min(map(len, fields)) < 2 or 2 * numbers < len(flat):
        return ""
    return f" Its lines look like a table of numbers: read it with {ask.option('format', 'csv')}."

"""Console output: results on stdout, everything else on stderr."""

from __future__ import annotations

import io
import itertools
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercer.messages import percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# In a file or a pipe, no line is cut or broken.
_WIDE = 1000
# Names of columns may be of any length; messages are not.
_LONGEST = 1200


@dataclass
class Result:
    """Result of a command: data for --json, and what people read."""

    data: dict[str, Any]
    shown: list[RenderableType] = field(default_factory=list)


class Reporter:
    """Prints notes and results, for people or as JSON."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Print a note on stderr, the same one only once."""
        if text not in self.notes:
            self.notes.append(text)
            print_note("note", "yellow", text)

    def show(self, result: Result) -> None:
        if self.json:
            print(json.dumps(as_json({**result.data, "notes": self.notes}), allow_nan=False))
            return
        out = open_console()
        for part in result.shown:
            out.print(part)


def open_console(*, stderr: bool = False) -> Console:
    """Return a console; outside a terminal it neither colors nor breaks lines."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def print_note(title: str, style: str, text: str) -> None:
    """Print a note or an error on stderr."""
    from rich.text import Text

    line = Text.assemble((f"{title}: ", style), printable(text))
    open_console(stderr=True).print(line, soft_wrap=not sys.stderr.isatty())


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and values, one line each."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, printable(text))
    return table


def empty_table(names: Iterable[str], left: Iterable[str] = ()) -> Table:
    """Return a table without lines; numbers are aligned to the right."""
    from rich.table import Table

    table, left = Table(box=None, pad_edge=False, header_style="bold"), set(left)
    for name in names:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return table


def spectrum_table(shares: Iterable[float], most: int = 12) -> Table:
    """Return the explained variance of each component, with a bar; of many, first and last."""
    values = list(shares)
    table = empty_table(("component", "share", "cumulative", ""), left=("",))
    largest = max([*values, 1e-300])
    for i, total in enumerate(itertools.accumulate(values)):
        if len(values) <= most or i < most - 2 or i == len(values) - 1:
            bar = "█" * round(36 * values[i] / largest)
            table.add_row(str(i + 1), percent(values[i]), percent(total), bar)
        elif i == most - 2:
            table.add_row("…", "", "", "")
    table.columns[3].style = "cyan"
    return table


def format_seconds(seconds: float) -> str:
    """Write a duration."""
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def format_file(path: Path) -> str:
    """Write the name and size of a file."""
    from mercer.config import format_bytes

    return f"{path} ({format_bytes(path.stat().st_size)})"


def printable(text: str) -> str:
    """Return text without control characters: names in files may hold anything."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def as_json(value: Any) -> Any:
    """Return a value that JSON can hold; NaN and infinity become null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): as_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, str | int) or value is None else str(value)


def replace_unencodable() -> None:
    """Replace characters that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")

"""What is said, and how: results on stdout, everything else on stderr."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mercer.messages import counted

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# In a file or a pipe nothing is cut off, or broken, for want of room.
_WIDE = 1000
# Names of columns may be of any length; what is said of them is not.
_LONGEST = 1200
# What a terminal that knows only ASCII shows instead.
_PLAIN = {"×": "x", "→": "->", "…": "...", "−": "-", "·": "-", "█": "#", "–": "-", "≤": "<="}


@dataclass
class Result:
    """What a command found: facts for machines, and what people read."""

    facts: dict[str, Any]
    shown: list[RenderableType] = field(default_factory=list)


class Voice:
    """Says what there is to say, for people or for machines."""

    def __init__(self, *, json: bool = False) -> None:
        self.json = json
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Say on stderr what should be known; the same only once."""
        if text in self.notes:
            return
        self.notes.append(text)
        from rich.text import Text

        line = Text.assemble(("note: ", "yellow"), printable(text))
        console(stderr=True).print(line, soft_wrap=not sys.stderr.isatty())

    def show(self, result: Result) -> None:
        """Print what was found."""
        if self.json:
            facts = {**result.facts, "notes": self.notes}
            print(json.dumps(plain(facts), allow_nan=False))
            return
        out = console()
        if out.is_terminal or not result.shown:
            for part in result.shown:
                out.print(part)
            return
        with out.capture() as captured:  # tables fill their lines with blanks
            for part in result.shown:
                out.print(part)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def console(*, stderr: bool = False) -> Console:
    """Return where to print; neither colours nor line breaks where it is no terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else _WIDE
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def pairs(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names and what they stand for, a line each."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, printable(text))
    return table


def columns(names: Iterable[str], left: Iterable[str] = ()) -> Table:
    """Return an empty table in the house's style: numbers to the right, no lines."""
    from rich.table import Table

    table, to_the_left = Table(box=None, pad_edge=False, header_style="bold"), set(left)
    for name in names:
        table.add_column(name, justify="left" if name in to_the_left else "right", no_wrap=True)
    return table


def spectrum(shares: Iterable[float], most: int = 12) -> Table:
    """Return the share of each component, with a bar; of many the first ones and the last."""
    values = list(shares)
    table = columns(("component", "share", "together", ""), left=("",))
    largest, together = max(values, default=0.0), 0.0
    for i, share in enumerate(values, start=1):
        together += share
        if len(values) > most and most - 1 <= i < len(values):
            if i == most - 1:
                table.add_row("…", "", "", "")
            continue
        bar = "█" * round(36 * share / largest) if largest > 0 else ""
        table.add_row(str(i), percent(share), percent(together), bar)
    table.columns[3].style = "cyan"
    return table


def percent(share: float) -> str:
    """Write a share for people, rounded down."""
    from mercer.messages import percent as rounded_down

    return rounded_down(share)


def count(number: int, what: str) -> str:
    """Write how many there are."""
    return counted(number, what)


def seconds(number: float) -> str:
    """Write a time for people."""
    if number < 60:
        return f"{number:.2g} s" if number < 10 else f"{number:.0f} s"
    minutes, rest = divmod(round(number), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def printable(text: str) -> str:
    """Return text that moves no cursor: names in files may hold anything."""
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "…"
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def plain(value: Any) -> Any:
    """Return what JSON can hold: numbers that are none become null."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, str | bool) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    return str(value)


def speak_plainly() -> None:
    """Let no encoding of the terminal fail: what it lacks is written with what it has."""
    codecs.register_error("mercer", _instead)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="mercer")


def _instead(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lost = error.object[error.start : error.end]
    return "".join(_PLAIN.get(c, "?") for c in lost), error.end

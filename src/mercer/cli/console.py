"""Console output: results on stdout, notes and errors on stderr; exit codes of errors."""

from __future__ import annotations

import contextlib
import difflib
import io
import itertools
import json
import math
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mercer.cli import signal_code
from mercer.cli.options import Options
from mercer.messages import as_python, parameter_format, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

# In a file or a pipe, no line is cut or broken.
_WIDE = 1000
# Names of columns may be of any length; messages are not.
_LONGEST = 1200

DONE, FAILED, USAGE, BROKEN_PIPE = 0, 1, 2, 141

# Errors about data, files or memory; any other is a bug.
_EXPECTED = (ValueError, TypeError, MemoryError, OSError, ImportError, NotImplementedError)

_SAME_NAME = (
    *("kernel", "gamma", "method", "select", "preimage", "gap", "certificate", "memory"),
    *("checkpoint", "format", "columns", "drop", "id", "na", "impute", "resize", "query"),
)
# Parameters of Python, and the options that set them.
_OPTIONS = {name: f"--{name}" for name in _SAME_NAME} | {
    "checkpoint_seconds": "--checkpoint-seconds",
    "feature_weight": "--feature-weight",
    "n_components": "--components",
    "n_basis": "--basis",
    "svd_solver": "--method",
    "eigen_solver": "--method",
    "random_state": "--seed",
    "sample_weight": "--weights",
}


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
        with contextlib.nullcontext() if out.is_terminal else out.capture() as captured:
            for part in result.shown:
                out.print(part)
        if captured is not None and result.shown:  # rich pads the lines of tables
            print("\n".join(line.rstrip() for line in captured.get().splitlines()))


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


class WorkError(Exception):
    """A command failed; the message says why and what to do."""


class UsageError(Exception):
    """The command line is not valid."""


def as_option(name: str, value: Any = ...) -> str:
    """Write a parameter as an option; as in Python if the command line has no such option."""
    if name not in _OPTIONS:
        return as_python(name, value)
    if value is ...:
        return _OPTIONS[name]
    if hasattr(value, "get_params") and name == "method":
        basis = value.get_params(deep=False).get("n_basis")
        if type(value)(*[] if basis is None else [basis]) != value:
            return as_python(name, value)  # it has parameters without an option
        return f"--method {value.name}" + ("" if basis is None else f" --basis {basis}")
    if name == "n_components" and value is None:
        value = "all"
    if isinstance(value, list):
        value = ",".join(f'"{text}"' if "," in text else text for text in map(str, value))
    if isinstance(value, tuple):
        value = "x".join(map(str, value))
    text, quoted = str(value), shlex.quote(str(value))
    if quoted == text and name in ("columns", "drop", "id", "na"):  # text from a file stands out
        quoted = f"'{text}'"
    return f"{_OPTIONS[name]} {quoted}"


def run_guarded(work: Callable[[], None], command: str, options: Options) -> int:
    """Run a command and return its exit code; print its error."""
    with parameter_format(as_option):
        try:
            work()
            sys.stdout.flush()
            return DONE
        except BrokenPipeError:
            return close_pipe()
        except (KeyboardInterrupt, Exception) as error:
            # An interrupted import may end in any error.
            if isinstance(error, KeyboardInterrupt) or signal_code() is not None:
                text = "Stopped: no file was written."
                if options.checkpoint is not None:
                    from mercer.checkpoint import has_checkpoint

                    if has_checkpoint(options.checkpoint):
                        text += f" The same command resumes from {options.checkpoint}."
                return fail(text, signal_code() or 130, options.json)
            if options.debug:
                traceback.print_exc()
            code = USAGE if isinstance(error, UsageError) else FAILED
            return fail(f"{command}: {error_text(error)}", code, options.json)


def fail(text: str, code: int, as_object: bool) -> int:
    """Print an error on stderr, and on stdout with --json; return the exit code."""
    with contextlib.suppress(OSError):
        print_note("error", "bold red", text)
    if as_object:
        with contextlib.suppress(OSError):
            print(json.dumps({"error": text, "exit_code": code}), flush=True)
    return code


def close_pipe() -> int:
    """Return the exit code of a pipe whose reader has gone; drop what is still buffered."""
    # The flush at exit must not fail.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def error_text(error: BaseException) -> str:
    """Return the message of an error."""
    from mercer.data.errors import MissingValues

    text = str(error).strip()
    if isinstance(error, MissingValues):
        return f"{error.summary} Use --impute mean, or drop those rows or columns."
    if isinstance(error, FileNotFoundError) and error.filename:
        return _missing_file(Path(os.fsdecode(error.filename)))
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "  # a pipe has no name
        return f"{where}{error.strerror[0].lower()}{error.strerror[1:]}."
    if isinstance(error, MemoryError) and not text:
        return "Out of memory. Set a smaller --memory, or use fewer rows."
    if isinstance(error, (*_EXPECTED, WorkError, UsageError)):
        return text or type(error).__name__
    return (
        f"This is a bug in Mercer, {type(error).__name__}: {text or 'no message'}. "
        f"Run the command again with --debug and report the output."
    )


def _missing_file(path: Path) -> str:
    """Say that a file or its folder does not exist, and which file has a similar name."""
    if not path.parent.is_dir():
        return f"{path}: no such file; the folder {path.parent} does not exist."
    similar = [  # the suffix is what names of files have in common
        name
        for name in os.listdir(path.parent)
        if difflib.get_close_matches(path.stem, [Path(name).stem], cutoff=0.75)
    ]
    near = difflib.get_close_matches(path.name, similar, n=1, cutoff=0.0)
    hint = f" Did you mean {path.parent / near[0]}?" if near else ""
    return f"{path}: no such file.{hint}"


def reject(option: str, name: str, known: tuple[str, ...]) -> NoReturn:
    """Raise an error about a value that is not one of the known ones."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"{option} {name!r} is unknown.{hint} Choose from {', '.join(known)}.")

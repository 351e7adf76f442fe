"""Errors of commands: exit codes and messages."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Callable
from json import dumps
from typing import Any, NoReturn

from mercer.cli import signal_code
from mercer.cli.console import print_note
from mercer.cli.options import Options
from mercer.messages import as_python, parameter_format

DONE, FAILED, USAGE, BROKEN_PIPE = 0, 1, 2, 141

# Errors about data, files or memory; any other is a bug.
_EXPECTED = (ValueError, TypeError, MemoryError, OSError, ImportError, NotImplementedError)

_SAME_NAME = (
    *("kernel", "gamma", "method", "select", "preimage", "gap", "memory", "checkpoint", "format"),
    *("columns", "drop", "id", "na", "impute", "contamination"),
)
# Parameters of Python, and the options that set them.
_OPTIONS = {name: f"--{name}" for name in _SAME_NAME} | {
    "n_components": "--components",
    "n_basis": "--basis",
    "svd_solver": "--method",
    "eigen_solver": "--method",
    "random_state": "--seed",
    "sample_weight": "--weights",
}


class WorkError(Exception):
    """A command failed; the message says why and what to do."""


class UsageError(Exception):
    """The command line is not valid."""


def as_option(name: str, value: Any = ...) -> str:
    """Write a parameter as an option; as in Python if the command line has no such option.

    Examples
    --------
    >>> as_option("n_components", 9), as_option("n_basis"), as_option("tol", 0.1)
    ('--components 9', '--basis', 'tol=0.1')
    """
    if name not in _OPTIONS:
        return as_python(name, value)
    if value is ...:
        return _OPTIONS[name]
    if hasattr(value, "get_params") and name == "method":
        basis = value.get_params(deep=False).get("n_basis")
        if basis is None or type(value)(basis) != value:  # it has parameters without an option
            return as_python(name, value)
        return f"--method {value.name} --basis {basis}"
    if name == "n_components" and value is None:
        value = "all"
    if isinstance(value, list):
        value = ",".join(f'"{text}"' if "," in text else text for text in map(str, value))
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


def fail(text: str, code: int, json: bool) -> int:
    """Print an error on stderr, and on stdout with --json; return the exit code."""
    with contextlib.suppress(OSError):
        print_note("error", "bold red", text)
    if json:
        with contextlib.suppress(OSError):
            print(dumps({"error": text, "exit_code": code}), flush=True)
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


def reject(option: str, name: str, known: tuple[str, ...]) -> NoReturn:
    """Raise an error about a value that is not one of the known ones."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"{option} {name!r} is unknown.{hint} Choose from {', '.join(known)}.")

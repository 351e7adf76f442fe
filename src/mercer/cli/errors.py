"""What ends a command: its exit code, and a sentence or two instead of a traceback."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
import traceback
from ast import literal_eval
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import NoReturn

from mercer.cli import say
from mercer.cli.stops import stopped

DONE, FAILED, USAGE, BROKEN_PIPE = 0, 1, 2, 141

# Errors that say what is wrong with data, files or memory; others are ours.
_KNOWN = (ValueError, TypeError, MemoryError, OSError, ImportError, NotImplementedError)
_TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"


def _between(names: str) -> str:
    """Write a list of names for an option that takes them between commas."""
    texts = [f'"{name}"' if "," in name else name for name in literal_eval(names)]
    return shlex.quote(",".join(texts))


# What the library calls by its Python name, and the command line by another.
_WORDS: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r" with svd_solver='full'", ""),  # scikit-learn's word for "auto", too
    (r"config_context\(memory=\.\.\.\)", "--memory"),
    (r"config_context\(memory='(\w+)'\)", r"--memory \1"),
    (r"config_context\(memory=", "--memory "),
    (r"method=Subset\((\d+)\)", r"--method subset --basis \1"),
    (r"; method=RandomFeatures\(\d+\) fits(?: all rows)?", ""),  # its size is no option
    (r"config_context\(checkpoint=\.\.\.\)", "--checkpoint"),
    (r"\bcheckpoint=(['\"])(.*?)\1", r"--checkpoint \2"),
    # What a checkpoint tells of its run and of this one.
    (r"\bIts random_state:", "Its --seed:"),
    (r"\bIts (?:svd_solver|method):", "Its --method:"),
    (r"\bIts n_components:", "Its --components:"),
    (r"n_components=('?)([\w.]+)\1", r"--components \2"),
    (r"n_basis=([\w.]+)", r"--basis \1"),
    (r"\bn_basis\b", "--basis"),
    (r"(?:svd_solver|method)=(['\"])(\w+)\1", r"--method \2"),
    (r"eigen_solver=(['\"])(\w+)\1", r"--method \2"),
    (r"select=(['\"])(\w+)\1", r"--select \2"),
    (r"preimage=(['\"])(\w+)\1", r"--preimage \2"),
    (r"gamma=(['\"]?)([\w.]+)\1", r"--gamma \2"),
    (r"kernel=(['\"])(.*?)\1", r"--kernel '\2'"),
    (r"\bkernel=", "the kernel "),
    (r"\bgap=([\d.e-]+)", r"--gap \1"),
    (r"\bsample_weight\b", "--weights"),
    (
        r"there is KernelPCA with a kernel of strings",
        "give a kernel of strings: --kernel substring",
    ),
    (r"\bmercer\.save\b", "mercer fit"),
    (
        r"must be between 0 and min\(n_samples, n_features\)=(\d+)(?:; None keeps them all)?\.?",
        r"must be between 1 and \1, the lesser of rows and columns; --components all keeps all.",
    ),
    (r"\bformat='(\w+)'", r"--format \1"),
    (r"\bna=\[(['\"])(.*?)\1\]", r"--na \1\2\1"),
    (r"\b(drop|id)=(['\"])(.*?)\2", r"--\1 \2\3\2"),
    (r"\bdrop=\.\.\.", "--drop"),
    (rf"\b(drop|columns)=(\[{_TEXT}(?:, {_TEXT})*\])", lambda m: f"--{m[1]} {_between(m[2])}"),
    # A file is called by its own name, not by that which it has while it is written.
    (r"\.([^/\\]+)\.\d+\.part(\.\w+)", r"\1\2"),
    (r", for example with sklearn\.impute\.SimpleImputer", " with --impute mean"),
    (r"Impute missing values, for.*--impute mean\. Or drop", "Use --impute mean, or drop"),
)


class WorkError(Exception):
    """The work cannot be done; the message says why and what to do."""


class UsageError(Exception):
    """The command line cannot be understood."""


def guarded(
    work: Callable[[], None],
    command: str,
    *,
    debug: bool,
    json: bool = False,
    kept: Path | None = None,
) -> int:
    """Do the work and return the exit code; say what went wrong, and what is `kept`."""
    try:
        work()
        sys.stdout.flush()
        return DONE
    except BrokenPipeError:
        return closed()
    except (KeyboardInterrupt, Exception) as error:
        # An interrupted import may end in any error.
        if isinstance(error, KeyboardInterrupt) or stopped() is not None:
            return failed(f"Stopped: no file was written.{_rest(kept)}", stopped() or 130, json)
        if debug:
            traceback.print_exc()
        code = USAGE if isinstance(error, UsageError) else FAILED
        return failed(f"{command}: {sentence(error)}", code, json)


def failed(text: str, code: int, json: bool) -> int:
    """Say on stderr what went wrong, and on stdout where JSON was asked for; return the code."""
    complain(text)
    if json:
        with contextlib.suppress(OSError):
            print(dumps({"error": text, "exit_code": code}), flush=True)
    return code


def _rest(folder: Path | None) -> str:
    """Say where what was done is kept, if it is."""
    if folder is None:
        return ""
    from mercer.checkpoint import has_checkpoint

    if not has_checkpoint(folder):
        return ""
    return f" The same command goes on from what {folder} holds."


def closed() -> int:
    """Return the code of a pipe that was closed at its other end, which is no one's fault."""
    # What is still in the buffer has nowhere to go; the flush at exit must not say so.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE


def sentence(error: BaseException) -> str:
    """Return what an error says, in the words of the command line."""
    text = str(error).strip()
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "  # a pipe has no name
        text = f"{where}{error.strerror[0].lower()}{error.strerror[1:]}."
    elif isinstance(error, MemoryError) and not text:
        text = "There is not enough memory. Give a smaller --memory, or work on fewer rows."
    elif not isinstance(error, (*_KNOWN, WorkError, UsageError)):
        text = f"This is a fault of Mercer's, {type(error).__name__}: {text or 'no message'}. "
        text += "Run it again with --debug, and report what it shows."
    return spoken(text or type(error).__name__)


def spoken(text: str) -> str:
    """Return a message of the library in the words of the command line."""
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def complain(text: str) -> None:
    """Say on stderr what went wrong."""
    from rich.text import Text

    with contextlib.suppress(OSError):
        line = Text.assemble(("error: ", "bold red"), say.printable(text))
        say.console(stderr=True).print(line, soft_wrap=not sys.stderr.isatty())


def unknown(what: str, name: str, known: tuple[str, ...]) -> NoReturn:
    """Refuse a name that is none of those known."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(f"{what} {name!r} is not known.{hint} There are {', '.join(known)}.")

"""Commands whose arguments and options are the fields of a dataclass."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import typer

from mercer.cli import errors
from mercer.cli.say import Result, Voice

Work = Callable[[Any, Voice], Result]


def command(
    group: typer.Typer, options: type, name: str, examples: tuple[str, ...], *, bars: bool = True
) -> Callable[[Work], Work]:
    """Register a function of options as a command; its docstring is the help.

    Without `bars` the command shows its progress itself.
    """

    def register(work: Work) -> Work:
        def run(**given: Any) -> None:
            asked = options(**given)
            called = " ".join(dict.fromkeys(["mercer", str(group.info.name), name]))
            code = errors.guarded(
                lambda: _done(work, asked, bars),
                called,
                debug=asked.debug,
                kept=getattr(asked, "checkpoint", None),
                json=asked.json,
            )
            if code:
                raise typer.Exit(code)

        parameters = _parameters(options)
        # What typer reads: the fields, as if they stood in the function's head.
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__doc__ = paragraphs(work.__doc__ or "")
        shown = "\n\n".join(["Example:" if len(examples) == 1 else "Examples:", *examples])
        group.command(name, epilog=shown)(run)
        return work

    return register


def paragraphs(text: str) -> str:
    """Return text with a line a paragraph, as typer wraps it."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _parameters(options: type) -> list[inspect.Parameter]:
    """Return the fields as parameters: arguments, then options, a class's before its bases'."""
    hints = get_type_hints(options, include_extras=True)
    defaults = {one.name: one.default for one in fields(options)}
    names = [name for name in ("model", "data") if name in defaults]
    for kind in options.__mro__:
        names += [name for name in vars(kind).get("__annotations__", {}) if name not in names]
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if defaults[name] is MISSING else defaults[name],
            annotation=hints[name],
        )
        for name in names
    ]


def _done(work: Work, asked: Any, bars: bool) -> None:
    """Do the work with the settings asked for, show what takes long, then print the result."""
    from mercer import progress
    from mercer.config import config_context

    voice = Voice(json=asked.json)
    named = ("memory", "checkpoint", "checkpoint_seconds")
    settings = {name: getattr(asked, name) for name in named if hasattr(asked, name)}
    shown = progress.patient() if bars else contextlib.nullcontext()
    with warnings.catch_warnings(), config_context(**settings), shown:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # Of blocks, whose columns were compared by name when the file was read.
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        warnings.showwarning = lambda message, *_, **__: voice.note(errors.spoken(str(message)))
        result = work(asked, voice)
    voice.show(result)

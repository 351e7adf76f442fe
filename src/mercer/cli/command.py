"""Commands whose arguments and options are the fields of a dataclass."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any, get_type_hints

import typer

from mercer.cli import errors
from mercer.cli.console import Reporter, Result
from mercer.cli.options import COMPLETED, completions

Work = Callable[[Any, Reporter], Result]


def add_command(group: typer.Typer, name: str, work: Work, *, bars: bool = True) -> None:
    """Register a function of options as a command; its docstring is the help.

    Without `bars`, the command shows its own progress.
    """
    options: type = get_type_hints(work)["options"]

    def run(**values: Any) -> None:
        chosen = options(**values)
        code = errors.run_guarded(
            lambda: _run(work, chosen, bars),
            " ".join(dict.fromkeys(["mercer", str(group.info.name), name])),
            debug=chosen.debug,
            json=chosen.json,
            checkpoint=getattr(chosen, "checkpoint", None),
        )
        if code:
            raise typer.Exit(code)

    parameters = _parameters(options)
    # typer reads the signature: the fields stand there as parameters.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    text, _, code = (inspect.getdoc(work) or "").partition("Examples\n--------\n")
    examples = [" ".join(example.split()) for example in code.split("$ ")[1:]]
    title = "Example:" if len(examples) == 1 else "Examples:"
    group.command(name, help=join_lines(text), epilog="\n\n".join([title, *examples]))(run)


def join_lines(text: str) -> str:
    """Return text with one line per paragraph, as typer wraps it."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _parameters(options: type) -> list[inspect.Parameter]:
    """Return the fields as parameters: arguments, then options, a class's before its bases'."""
    hints = get_type_hints(options)
    known = {one.name: one for one in fields(options)}
    names = [name for name in ("model", "data") if name in known]
    for base in options.__mro__:
        names += [name for name in vars(base).get("__annotations__", {}) if name not in names]
    parameters = []
    for name in names:
        info, default = known[name].metadata["typer"], known[name].default
        if name in COMPLETED:
            info.autocompletion = _completion(name)
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if default is MISSING else default,
                annotation=Annotated[hints[name], info],
            )
        )
    return parameters


def _completion(option: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [value for value in completions(option) if value.startswith(incomplete)]

    return complete


def _run(work: Work, options: Any, bars: bool) -> None:
    """Run a command with its settings and progress bars, then print the result."""
    from mercer import progress
    from mercer.config import config_context

    reporter = Reporter(json=options.json)
    names = ("memory", "checkpoint", "checkpoint_seconds")
    settings = {name: getattr(options, name) for name in names if hasattr(options, name)}
    shown = progress.patient() if bars else contextlib.nullcontext()
    with warnings.catch_warnings(), config_context(**settings), shown:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # Blocks have no column names; they were compared when the file was read.
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        warnings.showwarning = lambda message, *_, **__: reporter.note(str(message))
        result = work(options, reporter)
    reporter.show(result)

"""``mercer plan``: what a fit would do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import fit, say

_NO_FILE = "As for fit. plan does not write this file."


@dataclass(frozen=True, kw_only=True)
class Options(fit.Options):
    """What fit takes; it writes nothing."""

    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=_NO_FILE, rich_help_panel="Output")
    ] = None  # type: ignore[assignment]
    scores: Annotated[Path | None, typer.Option(help=_NO_FILE, rich_help_panel="Output")] = None
    report: Annotated[Path | None, typer.Option(help=_NO_FILE, rich_help_panel="Output")] = None


EXAMPLES = ("mercer plan rows.npy --kernel rbf --components 50 --memory 4GiB",)


def plan(asked: Options, voice: say.Voice) -> say.Result:
    """Show what fit would do: methods, passes, memory and time. Computes and writes nothing.

    Takes the same arguments as fit.
    """
    from mercer.cli import build, facts, rows

    made = build.estimator(asked)
    table = rows.learning(asked, voice)
    if getattr(made, "gamma", None) is not None:
        made.set_params(gamma=1.0)  # which no cost depends on, and the median of distances has one
    found = made.plan(table.source)
    read = rows.described(asked.data, table.source)
    shown: list[Any] = [say.pairs([("read", read)]), "", str(found)]
    return say.Result({**rows.size(table.source), **facts.of_plan(found)}, shown)

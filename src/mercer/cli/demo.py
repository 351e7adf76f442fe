"""``mercer demo``: what Mercer does, in half a minute, ending with a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli import say
from mercer.cli.options import Common

FOLDER = Path("mercer-demo")


@dataclass(frozen=True, kw_only=True)
class Options(Common):
    """What demo takes."""

    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder for the model and the report."),
    ] = FOLDER


EXAMPLES = ("mercer demo -o somewhere",)


def demo(asked: Options, voice: say.Voice) -> say.Result:
    """Show what Mercer does on handwritten digits: plan, fit, certificate, noise, report.

    The data come with scikit-learn. The folder is made, and files of an earlier demo replaced.
    """
    from mercer.cli import show

    made = show.everything(asked.output, quiet=asked.json)
    return say.Result({key: None if path is None else str(path) for key, path in made.items()})

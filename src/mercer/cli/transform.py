"""``mercer transform``: scores of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli import say
from mercer.cli.options import Fitted, Output


@dataclass(frozen=True, kw_only=True)
class Options(Fitted, Output):
    """What transform takes."""

    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Table to write: .csv, .tsv, .parquet, .arrow or .npy; - is CSV on stdout.",
            rich_help_panel="Output",
        ),
    ]


EXAMPLES = (
    "mercer transform iris.mercer iris.csv --keep species -o scores.parquet",
    "cat new.csv | mercer transform iris.mercer - --format csv -o - | head",
)


def transform(asked: Options, voice: say.Voice) -> say.Result:
    """Compute the scores of rows with a fitted model.

    Columns are matched by name; others are not used.
    """
    from mercer.cli import tables, use

    return use.written(asked, voice, tables.scores_of)

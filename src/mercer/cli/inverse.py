"""``mercer inverse``: rows of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from mercer.cli import say, transform


@dataclass(frozen=True, kw_only=True)
class Options(transform.Options):
    """What inverse takes."""

    data: Annotated[
        str, typer.Argument(help="Scores, as transform writes them, or -.", show_default=False)
    ]


EXAMPLES = ("mercer inverse iris.mercer scores.parquet -o rows.csv",)


def inverse(asked: Options, voice: say.Voice) -> say.Result:
    """Map scores back to rows.

    A kernel model must have been fitted with --preimage.
    """
    from mercer.cli import tables, use

    return use.written(asked, voice, tables.rows_of_scores, scores=True)

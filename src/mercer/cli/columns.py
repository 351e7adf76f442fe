"""Options about the columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

_DATA = "Data"


def between_commas(text: str | None) -> list[str] | None:
    """Return names between commas; a comma within quotes is part of a name."""
    import csv

    return None if text is None else [name.strip() for name in next(csv.reader([text]), [])]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What columns of a table are for."""

    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the names of the rows, for scores and reports; not a feature. "
            "Default: a column such as id or sample_id without repeats.",
            rich_help_panel=_DATA,
        ),
    ] = None
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to leave out: names, or patterns such as 'meta_*'.",
            rich_help_panel=_DATA,
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text in a .csv or .tsv file that stands for a missing value, such as '?', "
            "besides NA, NaN, null and the like. Can be given several times.",
            rich_help_panel=_DATA,
        ),
    ] = None

    @property
    def left(self) -> list[str]:
        """The columns to leave out."""
        return between_commas(self.drop) or []


@dataclass(frozen=True, kw_only=True)
class FittedColumns(Columns):
    """What columns of a table are for that a model is used on."""

    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column with the names of the rows, for scores and reports. Default: that of the "
            "fit, or a column such as id or sample_id without repeats.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Keep:
    """Columns that go through to the output."""

    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to copy to the output: names, or patterns.",
            rich_help_panel=_DATA,
        ),
    ] = None

    @property
    def kept(self) -> list[str]:
        """The columns to copy."""
        return between_commas(self.keep) or []

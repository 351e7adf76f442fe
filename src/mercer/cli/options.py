"""Options that commands share, as dataclasses to be joined by inheritance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mercer.config import parse_bytes

_DATA, _MODEL, _OUT = "Data", "Model", "Output"


def _size(text: str | None) -> str | None:
    if text is not None:
        try:
            parse_bytes(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return text


def _interval(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{seconds:g} is not a number of seconds above 0.")
    return seconds


def between_commas(text: str | None) -> list[str] | None:
    """Return names between commas; a comma within quotes is part of a name."""
    import csv

    return None if text is None else [name.strip() for name in next(csv.reader([text]), [])]


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")] = (
        False
    )
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", envvar="MERCER_DEBUG", help="Show where in the code an error arose."
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Memory(Common):
    """What commands take that compute."""

    memory: Annotated[
        str | None,
        typer.Option(
            callback=_size,
            metavar="SIZE",
            help="Memory that the work may take, as 4GiB. Half of the machine's, if not given.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Kept(Common):
    """A run that goes on where it was killed."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what is done in this folder: where the run is killed, the same command "
            "goes on from there. Emptied when all is written.",
            rich_help_panel=_OUT,
        ),
    ] = None
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            callback=_interval,
            metavar="SECONDS",
            help="How often: so much work may be lost.",
            rich_help_panel=_OUT,
        ),
    ] = 60.0


@dataclass(frozen=True, kw_only=True)
class Output(Common):
    """A file to be written."""

    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to write.", rich_help_panel=_OUT),
    ]
    force: Annotated[
        bool,
        typer.Option(
            "--force", "-f", help="Replace files that are there already.", rich_help_panel=_OUT
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Format(Common):
    """How files are read."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Format of the data where its name does not tell, as csv.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Rows(Format, Memory):
    """Rows to learn from."""

    data: Annotated[
        str,
        typer.Argument(
            help="Rows: .csv, .tsv, .parquet, .arrow, .feather, .npy, .npz, .mtx, .h5ad, .h5, "
            ".hdf5, .zarr, .txt (strings, one a line), a folder of .parquet or .arrow files, "
            "FILE.h5::NAME for one array of several, or - for stdin.",
            show_default=False,
        ),
    ]
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to use. All that hold numbers, if not given.",
            rich_help_panel=_DATA,
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of labels: not used, but kept for the report.",
            rich_help_panel=_DATA,
        ),
    ] = None
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that says how often each row counts.",
            rich_help_panel=_DATA,
        ),
    ] = None
    impute: Annotated[
        str | None,
        typer.Option(
            metavar="mean",
            help="Fill missing values with the mean of their column. Refused, if not given.",
            rich_help_panel=_DATA,
        ),
    ] = None

    @property
    def names(self) -> list[str] | None:
        """The columns to use."""
        return between_commas(self.columns)


@dataclass(frozen=True, kw_only=True)
class Model(Common):
    """What to fit."""

    components: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE|RULE",
            help="Axes: a number, a share of the variance (0.95), all, mle, kaiser, broken-stick, "
            "parallel or gavish-donoho. If not given 0.95, and 10 with a kernel.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help='Kernel PCA with this kernel, as "rbf(0.01) + 2*poly(3)". If not given, linear.',
            rich_help_panel=_MODEL,
        ),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(
            metavar="median|scale|NUMBER",
            help="Scale of a kernel by name, as of --kernel rbf. 1/columns, if not given.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How axes are found: exact, subset, nystrom, sketch, …; of linear PCA full, "
            "krylov, …. Planned, if not given.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE",
            help="Points of the basis, for methods that have one.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    select: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="How they are chosen: uniform, kmeans, forward, rp_cholesky, ….",
            rich_help_panel=_MODEL,
        ),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(
            help="How far below the best the axes may be: 0.01 is certified within 1 %.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    scale: Annotated[
        str,
        typer.Option(
            metavar="zscore|none",
            help="zscore divides every column by its standard deviation (divisor n − 1).",
            rich_help_panel=_MODEL,
        ),
    ] = "none"
    preimage: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The way back from a kernel's scores to rows, for inverse and denoise: auto, "
            "fixed_point, gradient, ridge or distances.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Where random choices start.", rich_help_panel=_MODEL
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class Fitted(Format, Memory):
    """A model, and rows to use it on."""

    model: Annotated[Path, typer.Argument(help="Model file, as fit writes it.", show_default=False)]
    data: Annotated[
        str, typer.Argument(help="Rows, in any format fit reads, or -.", show_default=False)
    ]
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to copy to the output, as of ids or labels.",
            rich_help_panel=_DATA,
        ),
    ] = None

    @property
    def kept(self) -> list[str]:
        """The columns to copy."""
        return between_commas(self.keep) or []

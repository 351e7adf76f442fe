"""Options that commands share, as dataclasses to be joined by inheritance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli.columns import Columns, FittedColumns, Keep, between_commas
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


@dataclass(frozen=True, kw_only=True)
class Common:
    """What every command takes."""

    json: Annotated[bool, typer.Option("--json", help="Print one JSON object; errors too.")] = False
    debug: Annotated[
        bool,
        typer.Option("--debug", envvar="MERCER_DEBUG", help="Show the traceback of an error."),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Memory(Common):
    """What commands take that compute."""

    memory: Annotated[
        str | None,
        typer.Option(
            callback=_size,
            metavar="SIZE",
            help="Memory limit, for example 4GiB. Default: half of the machine's memory.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Kept(Common):
    """A run that goes on where it was killed."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for checkpoints: if the run is killed, the same command resumes from "
            "there. Emptied when the run is complete.",
            rich_help_panel=_OUT,
        ),
    ] = None
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            callback=_interval,
            metavar="SECONDS",
            help="Time between checkpoints.",
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
        typer.Option("--force", "-f", help="Overwrite existing files.", rich_help_panel=_OUT),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Format(Common):
    """How files are read."""

    format: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Format, if the file name does not show it, such as csv.",
            rich_help_panel=_DATA,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Rows(Columns, Format, Memory):
    """Rows to learn from."""

    data: Annotated[
        str,
        typer.Argument(
            help="Rows: .csv, .tsv, .parquet, .arrow, .feather, .npy, .npz, .mtx, .h5ad, .h5, "
            ".hdf5, .zarr, .txt (strings, one a line), a folder of .parquet or .arrow files, "
            "FILE.h5::NAME for one array of several, FILE.h5ad::layers/NAME for a layer, or - for "
            "stdin. Files may be compressed: .gz, .bz2, .xz.",
            show_default=False,
        ),
    ]
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…",
            help="Columns to use: names, or patterns such as 'gene*'. All that hold numbers, if "
            "not given.",
            rich_help_panel=_DATA,
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of labels. It is not a feature.",
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
            help="Fill missing values with the mean of their column. Without it, missing values "
            "are refused.",
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
            help="Components: a number, a share of the variance (0.95), all, mle, kaiser, "
            "broken-stick, parallel or gavish-donoho. Default: 0.95; with --kernel, 10.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Kernel PCA with this kernel: a name (rbf or gaussian, laplacian, poly, sigmoid, "
            'cosine, chi2, …) or an expression such as "rbf(0.01) + 2*poly(3)". Default: linear '
            "PCA.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    gamma: Annotated[
        str | None,
        typer.Option(
            metavar="median|scale|NUMBER",
            help="Scale of a kernel given by name, such as --kernel rbf: median takes it from the "
            "median distance between rows, scale is 1/(columns × variance). Default: median.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Method: exact, subset, nystrom, sketch, … with --kernel; full, krylov, … for "
            "linear PCA. Default: chosen from the size of the data and the memory limit.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    basis: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE",
            help="Number of basis points, or share of the rows, for methods with a basis.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    select: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="How basis points are chosen: uniform, kmeans, forward, rp_cholesky, ….",
            rich_help_panel=_MODEL,
        ),
    ] = None
    gap: Annotated[
        float | None,
        typer.Option(
            help="Largest certified distance from optimal: 0.01 explains at least 99 % of what the "
            "best components could.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    scale: Annotated[
        str,
        typer.Option(
            metavar="zscore|none",
            help="zscore divides each column by its standard deviation (divisor n − 1).",
            rich_help_panel=_MODEL,
        ),
    ] = "none"
    preimage: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Pre-image method with --kernel, needed for inverse and denoise: auto, "
            "fixed_point, gradient, ridge or distances.",
            rich_help_panel=_MODEL,
        ),
    ] = None
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed of the random numbers.", rich_help_panel=_MODEL
        ),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class Fitted(Keep, FittedColumns, Format, Memory):
    """A model, and rows to use it on."""

    model: Annotated[Path, typer.Argument(help="Model file, as fit writes it.", show_default=False)]
    data: Annotated[
        str, typer.Argument(help="Rows, in any format fit reads, or -.", show_default=False)
    ]

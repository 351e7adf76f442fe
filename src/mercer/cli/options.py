"""Options that commands share, as dataclasses that commands join by inheritance."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

import typer

from mercer.config import parse_bytes


def option(help: str, *flags: str, default: Any = None, **settings: Any) -> Any:
    """Return a field of a command's options; MISSING is the default of a required one."""
    return field(default=default, metadata={"typer": typer.Option(*flags, help=help, **settings)})


def data_option(help: str, metavar: str | None = "COLUMN") -> Any:
    """Return an option about the data."""
    return option(help, metavar=metavar, rich_help_panel="Data")


def model_option(help: str, metavar: str | None = None, *flags: str, **settings: Any) -> Any:
    """Return an option about the model."""
    return option(help, *flags, metavar=metavar, rich_help_panel="Model", **settings)


def output_option(help: str, *flags: str, **settings: Any) -> Any:
    """Return an option about what is written."""
    return option(help, *flags, rich_help_panel="Output", **settings)


def output_file(help: str, default: Any = MISSING) -> Any:
    """Return the option -o."""
    return output_option(help, "--output", "-o", default=default)


def argument(help: str, default: Any = MISSING) -> Any:
    """Return a positional argument."""
    info = typer.Argument(help=help, show_default=False)
    return field(default=default, metadata={"typer": info})


def split_names(text: str | None) -> list[str] | None:
    """Return names between commas; a comma within quotes is part of a name."""
    return None if text is None else [name.strip() for name in next(csv.reader([text]), [])]


def _check_size(text: str | None) -> str | None:
    if text is not None:
        try:
            parse_bytes(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None
    return text


def _check_seconds(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{seconds:g} is not a number of seconds above 0.")
    return seconds


@dataclass(frozen=True, kw_only=True)
class Common:
    """Options of every command."""

    json: bool = option("Print one JSON object; errors too.", "--json", default=False)
    debug: bool = option(
        "Show the traceback of an error.", "--debug", default=False, envvar="MERCER_DEBUG"
    )


@dataclass(frozen=True, kw_only=True)
class Memory(Common):
    """Options of commands that compute."""

    memory: str | None = option(
        "Memory limit, for example 4GiB. Default: half of the machine's memory.",
        callback=_check_size,
        metavar="SIZE",
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointOptions(Common):
    """Options of commands that can resume."""

    checkpoint: Path | None = output_option(
        "Folder for checkpoints: if the run is killed, the same command resumes from there. "
        "Emptied when the run is complete.",
        metavar="FOLDER",
    )
    checkpoint_seconds: float = output_option(
        "Time between checkpoints.", callback=_check_seconds, metavar="SECONDS", default=60.0
    )


@dataclass(frozen=True, kw_only=True)
class Output(Common):
    """Options of commands that write a file."""

    output: Path = output_file("File to write.")
    force: bool = output_option("Overwrite existing files.", "--force", "-f", default=False)


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Common):
    """How a file is read."""

    id: str | None = data_option(
        "Column with the names of the rows, for scores and reports; not a feature. "
        "Default: a column such as id or sample_id without repeats."
    )
    drop: str | None = data_option(
        "Columns to leave out: names, or patterns such as 'meta_*'.", "A,B,…"
    )
    na: list[str] | None = data_option(
        "Text in a .csv or .tsv file that stands for a missing value, such as '?', "
        "besides NA, NaN, null and the like. Can be given several times.",
        "TEXT",
    )
    format: str | None = data_option(
        "Format, if the file name does not show it, such as csv.", "NAME"
    )

    @property
    def dropped(self) -> list[str]:
        """Columns to leave out."""
        return split_names(self.drop) or []


@dataclass(frozen=True, kw_only=True)
class Rows(ColumnOptions, Memory):
    """Rows to fit."""

    data: str = argument(
        "Rows: .csv, .tsv, .parquet, .arrow, .feather, .npy, .npz, .mtx, .h5ad, .h5, .hdf5, "
        ".zarr, .txt (strings, one a line), a folder of .parquet or .arrow files, "
        "FILE.h5::NAME for one array of several, FILE.h5ad::layers/NAME for a layer, or - for "
        "stdin. Files may be compressed: .gz, .bz2, .xz."
    )
    columns: str | None = data_option(
        "Columns to use: names, or patterns such as 'gene*'. Default: all columns of numbers.",
        "A,B,…",
    )
    label: str | None = data_option("Column of labels. It is not a feature.")
    weights: str | None = data_option("Column that says how often each row counts.")
    impute: str | None = data_option(
        "Fill missing values with the mean of their column. Without it, missing values are "
        "refused.",
        "mean",
    )

    @property
    def names(self) -> list[str] | None:
        """Columns to use."""
        return split_names(self.columns)


@dataclass(frozen=True, kw_only=True)
class Model(Common):
    """The model to fit."""

    components: str | None = model_option(
        "Components: a number, a share of the variance (0.95), all, mle, kaiser, "
        "broken-stick, parallel or gavish-donoho. Default: 0.95; with --kernel, 10.",
        "N|SHARE|RULE",
    )
    kernel: str | None = model_option(
        "Kernel PCA with this kernel: a name (rbf or gaussian, laplacian, poly, sigmoid, "
        'cosine, chi2, …) or an expression such as "rbf(0.01) + 2*poly(3)". Default: linear '
        "PCA.",
        "TEXT",
    )
    gamma: str | None = model_option(
        "Scale of a kernel given by name, such as --kernel rbf: median takes it from the "
        "median distance between rows, scale is 1/(columns × variance). Default: median.",
        "median|scale|NUMBER",
    )
    method: str | None = model_option(
        "Method: exact, subset, nystrom, sketch, … with --kernel; full, krylov, … for linear "
        "PCA. Default: chosen from the size of the data and the memory limit.",
        "NAME",
    )
    basis: str | None = model_option(
        "Number of basis points, or share of the rows, for methods with a basis.", "N|SHARE"
    )
    select: str | None = model_option(
        "How basis points are chosen: uniform, kmeans, forward, rp_cholesky, ….", "RULE"
    )
    gap: float | None = model_option(
        "Largest certified distance from optimal: 0.01 explains at least 99 % of what the "
        "best components could."
    )
    scale: str = model_option(
        "zscore divides each column by its standard deviation (divisor n − 1).",
        "zscore|none",
        default="none",
    )
    preimage: str | None = model_option(
        "Pre-image method with --kernel, needed for inverse and denoise: auto, fixed_point, "
        "gradient, ridge or distances.",
        "NAME",
    )
    seed: int = model_option("Seed of the random numbers.", min=0, max=2**32 - 1, default=0)


@dataclass(frozen=True, kw_only=True)
class FittedColumns(ColumnOptions):
    """How a file is read that a fitted model is applied to."""

    id: str | None = data_option(
        "Column with the names of the rows, for scores and reports. Default: that of the "
        "fit, or a column such as id or sample_id without repeats."
    )


@dataclass(frozen=True, kw_only=True)
class Keep(Common):
    """Columns to copy to the output."""

    keep: str | None = data_option("Columns to copy to the output: names, or patterns.", "A,B,…")

    @property
    def copied(self) -> list[str]:
        """Columns to copy."""
        return split_names(self.keep) or []


@dataclass(frozen=True, kw_only=True)
class Fitted(Keep, FittedColumns, Memory):
    """A fitted model, and rows to apply it to."""

    model: Path = argument("Model file, as fit writes it.")
    data: str = argument("Rows, in any format fit reads, or -.")


SCALES = ("zscore", "none")
COMPLETED = (
    *("components", "format", "gamma", "impute", "kernel", "method", "preimage", "scale"),
    "select",
)
"""Options whose values the shell completes."""


def completions(option: str) -> Iterable[str]:
    """Return the values of an option of `COMPLETED`."""
    from mercer.data.files import READERS
    from mercer.kernels.base import KERNELS
    from mercer.landmarks import RULES
    from mercer.planning import METHODS, NAMES
    from mercer.preimage import PREIMAGES
    from mercer.rules import NAMED

    return {
        "components": ("all", *NAMED),
        "format": [suffix[1:] for suffix in READERS],
        "gamma": ("median", "scale"),
        "impute": ("mean",),
        "kernel": KERNELS,
        "method": sorted({*METHODS, *NAMES}),
        "preimage": ("auto", *PREIMAGES),
        "scale": SCALES,
        "select": RULES,
    }[option]

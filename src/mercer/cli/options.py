"""Arguments and options of all commands, each declared once."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import typer

SCALES = ("zscore", "none")
CERTIFICATES = {"auto": True, "tight": "tight", "none": False}


def _option(metavar: str | None, help: str, *flags: str, default: Any = None, **more: Any) -> Any:
    info = typer.Option(*flags, help=help, metavar=metavar, **more)
    return field(default=default, metadata={"typer": info})


_data = partial(_option, rich_help_panel="Data")
_model = partial(_option, rich_help_panel="Model")
_output = partial(_option, rich_help_panel="Output")


def _argument(help: str) -> Any:
    return field(default=None, metadata={"typer": typer.Argument(help=help, show_default=False)})


def _split_names(text: str | None) -> list[str] | None:
    """Return names between commas; a comma within quotes is part of a name."""
    return None if text is None else [name.strip() for name in next(csv.reader([text]), [])]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments and options of all commands; a command takes some and leaves the others unset."""

    model: Path = _argument("Model file written by fit.")
    data: str = _argument(
        "Data file: .csv, .tsv, .ndjson, .jsonl, .parquet, .arrow, .feather, .xlsx, .xls, .ods, "
        ".npy, .npz, .mtx, .h5ad, .h5, .hdf5, .zarr, .txt (one string per line) or an image (.png, "
        ".jpg, .jpeg, .tif, .tiff, .bmp, .gif, .webp, .pgm, .ppm); or a folder of .csv, .tsv, "
        ".ndjson, .jsonl, .parquet, .arrow or .feather files, or of images, each of which is a "
        "row. FILE.h5::NAME selects one of several arrays, FILE.h5ad::layers/NAME a layer, "
        "FILE.xlsx::NAME a sheet; - is stdin. Files may be compressed: .gz, .bz2, .xz, .zst."
    )
    columns: str | None = _data(
        "A,B,…", "Columns to use: names, or patterns such as 'gene*'. Default: all numeric columns."
    )
    label: str | None = _data("COLUMN", "Label column. It is not used as a feature.")
    weights: str | None = _data(
        "COLUMN", "Column of row weights; a weight of 2 counts the row twice."
    )
    id: str | None = _data(
        "COLUMN",
        "Column of row names, for scores and reports. It is not used as a feature. Default: a "
        "column named id, sample_id or similar, if its values are unique.",
    )
    drop: str | None = _data("A,B,…", "Columns to exclude: names, or patterns such as 'meta_*'.")
    keep: str | None = _data("A,B,…", "Columns to copy to the output: names or patterns.")
    na: list[str] | None = _data(
        "TEXT",
        "Text that marks a missing value in a .csv or .tsv file, such as '?', in addition to NA, "
        "NaN, null and similar. Can be repeated.",
    )
    impute: str | None = _data(
        "mean", "Impute missing values with column means. Without it, missing values are an error."
    )
    format: str | None = _data(
        "NAME", "File format, such as csv, if the file name does not show it."
    )
    query: str | None = _data(
        "SQL",
        "Query whose result is the data. DATA is then the URI of a database: sqlite:///FILE, "
        "duckdb:///FILE or postgresql://USER@HOST/NAME.",
    )
    resize: str | None = _data(
        "HxW",
        "Resize images to this height and width. HxWx3 reads them in color, and HxWx1 in gray.",
    )
    images: str | None = _data("HxW", "Image size, height and width, if rows are images.")
    components: str | None = _model(
        "N|SHARE|RULE",
        "Number of components, a share of the variance (0.95), or a rule: all, mle, kaiser, "
        "broken-stick, parallel, gavish-donoho. Default: 0.95; with --kernel, 10.",
    )
    kernel: str | None = _model(
        "TEXT",
        "Use kernel PCA with this kernel: a name (rbf or gaussian, laplacian, poly, sigmoid, "
        'cosine, chi2, …) or an expression such as "rbf(0.01) + 2*poly(3)". Default: linear '
        "PCA.",
    )
    linear: bool = _model(None, "Use linear PCA instead of a kernel.", "--linear", default=False)
    gamma: str | None = _model(
        "median|scale|NUMBER",
        "Gamma of a kernel given by name, such as --kernel rbf. median: from the median distance "
        "between rows; scale: 1/(columns × variance). Default: median.",
    )
    method: str | None = _model(
        "NAME",
        "Method: exact, subset, nystrom, sketch, … with --kernel; full, krylov, … for linear "
        "PCA. Default: chosen by the size of the data and the memory limit.",
    )
    basis: str | None = _model(
        "N|SHARE", "Basis size: number of points, or share of the rows, for methods with a basis."
    )
    select: str | None = _model(
        "RULE", "Rule that selects the basis points: uniform, kmeans, forward, rp_cholesky, …."
    )
    gap: float | None = _model(
        None,
        "Required accuracy: with 0.01, the components are certified to explain at least 99 % of "
        "what the best components could.",
    )
    certificate: str = _model(
        "auto|tight|none",
        "How closely to bound what the best components could explain, if the method does not: "
        "auto takes about as long as the fit, tight as long as it helps.",
        default="auto",
    )
    scale: str = _model(
        "zscore|none",
        "zscore divides each column by its standard deviation (with n − 1 degrees of freedom).",
        default="none",
    )
    feature_weight: Path | None = _model(
        "FILE",
        "Weights of the columns for linear PCA: a .csv file with the name and the weight of a "
        "column in each line, or a .npy or .txt file with one weight per column, in their order. "
        "Variances and squared distances count a column as often as its weight says.",
    )
    preimage: str | None = _model(
        "NAME",
        "Pre-image method of a kernel model, required for inverse and denoise: auto, fixed_point, "
        "gradient, ridge or distances.",
    )
    contamination: float = _model(
        None, "Share of the rows to flag as novel, at most 0.5.", default=0.1
    )
    patience: float = _model(
        None, "Skip methods that are expected to take longer than this many seconds.", default=60.0
    )
    seed: int = _model(None, "Random seed.", min=0, max=2**32 - 1, default=0)
    output: Path = _output(None, "Model file to write: NAME.mercer.", "--output", "-o")
    scores: Path | None = _output(
        None, "Also write the scores: .csv, .tsv, .parquet, .arrow or .npy."
    )
    report: Path | None = _output(None, "Also write a report: NAME.html.")
    obsm: bool = _output(
        None,
        "Write the result into a copy of the .h5ad file, as scanpy does: obsm/X_pca, varm/PCs and "
        "uns/pca. The copy is DATA_pca.h5ad, unless -o names it.",
        "--obsm",
        default=False,
    )
    title: str | None = _output(None, "Title of the page.")
    force: bool = _output(None, "Overwrite existing files.", "--force", "-f", default=False)
    checkpoint: Path | None = _output(
        "FOLDER",
        "Folder for checkpoints. If the run is interrupted, the same command resumes it. The "
        "folder is emptied when the run is complete.",
    )
    checkpoint_seconds: float = _output("SECONDS", "Time between checkpoints.", default=60.0)
    memory: str | None = _option(
        "SIZE",
        "Memory limit, for example 4GiB. Default: half of the machine's memory.",
    )
    json: bool = _option(None, "Print the result or the error as JSON.", "--json", default=False)
    debug: bool = _option(
        None, "Show the traceback of an error.", "--debug", default=False, envvar="MERCER_DEBUG"
    )

    @property
    def names(self) -> list[str] | None:
        """Columns to use."""
        return _split_names(self.columns)

    @property
    def dropped(self) -> list[str]:
        """Columns to exclude."""
        return _split_names(self.drop) or []

    @property
    def copied(self) -> list[str]:
        """Columns to copy to the output."""
        return _split_names(self.keep) or []


COMPLETED = (
    *(
        "certificate",
        "components",
        "format",
        "gamma",
        "impute",
        "kernel",
        "method",
        "preimage",
        "scale",
    ),
    "select",
)
"""Options whose values the shell completes."""


def completion(option: str) -> Callable[[str], list[str]]:
    """Return the function that completes the values of an option in the shell."""

    def complete(incomplete: str) -> list[str]:
        from mercer.data.files import READERS
        from mercer.kernels.base import KERNELS
        from mercer.landmarks import RULES
        from mercer.planning import METHODS, NAMES
        from mercer.preimage import PREIMAGES
        from mercer.rules import NAMED

        values: dict[str, Iterable[str]] = {
            "certificate": CERTIFICATES,
            "components": ("all", *NAMED),
            "format": [suffix[1:] for suffix in READERS],
            "gamma": ("median", "scale"),
            "impute": ("mean",),
            "kernel": KERNELS,
            "method": sorted({*METHODS, *NAMES}),
            "preimage": ("auto", *PREIMAGES),
            "scale": SCALES,
            "select": RULES,
        }
        return [value for value in values[option] if value.startswith(incomplete)]

    return complete

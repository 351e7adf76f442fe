"""What a model makes of rows, block by block, and the tables it is written to."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer import progress
from mercer.cli import outputs
from mercer.cli.errors import WorkError
from mercer.cli.facts import axes_of
from mercer.cli.rows import feature_names, score_names
from mercer.cli.steps import back
from mercer.data import Source
from mercer.data.files import WRITERS, write_table
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.pca import PCA
from mercer.estimators.pipeline import mapped, parts, through

SUFFIXES = (*WRITERS, ".npy")

Made = tuple[Source, list[str] | None]
"""Rows, and the names of their columns."""


def claim(path: Path, *, force: bool, inputs: tuple[str | Path, ...] = ()) -> None:
    """Refuse a table that cannot, or must not, be written."""
    if str(path) != outputs.STDOUT:
        outputs.require_suffix(path, *SUFFIXES)
    outputs.claim(path, force=force, inputs=inputs)


def scores_of(model: Any, source: Source) -> Made:
    """Return the scores of rows."""
    before, last = parts(model)
    if isinstance(last, Denoiser):
        raise WorkError("A Denoiser has no scores to write; mercer denoise removes noise with it.")
    return axes_of(model).transform(through(before, source)), score_names(model)


def rows_of_scores(model: Any, source: Source) -> Made:
    """Return the rows that scores stand for."""
    axes = axes_of(model)
    if isinstance(axes, PCA):
        made = axes.inverse_transform(source)
    else:
        # Looked up when it is called: a model without a way back does not have it.
        made = _by_blocks(axes, lambda x: axes.inverse_transform(x), source, _width(axes))
    return back(parts(model)[0], made), feature_names(model)


def kept_of(model: Any, source: Source) -> Made:
    """Return what the components keep of rows."""
    before, last = parts(model)
    axes, rows = axes_of(model), through(before, source)
    work = last.transform if isinstance(last, Denoiser) else axes.reconstruct
    if isinstance(axes, PCA):
        made = work(rows)
    else:
        made = _by_blocks(axes, work, rows, rows.shape[1])
    return back(before, made), feature_names(model)


def write(made: Made, path: Path, extra: dict[str, Any] | None = None) -> None:
    """Write rows to a file, or to stdout."""
    source, names = made
    if str(path) != outputs.STDOUT:
        write_table(source, path, names=names, extra=extra)
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        spool = Path(folder) / "rows.csv"
        write_table(source, spool, names=names, extra=extra)
        sys.stdout.flush()
        with spool.open(encoding="utf-8") as file:
            shutil.copyfileobj(file, sys.stdout)


def _width(axes: Any) -> int:
    """Return how many columns the rows of the fit had."""
    if not hasattr(axes, "n_features_in_"):
        raise WorkError("The model is of strings, and these cannot be made of scores.")
    return int(axes.n_features_in_)


def _by_blocks(axes: Any, f: Callable[[Any], Any], source: Source, width: int) -> Source:
    """Return rows by a way back that takes arrays, which need never be whole."""
    if not (hasattr(axes, "preimage_") or hasattr(axes, "dual_coef_")):
        raise WorkError(
            "The model has no way back from scores to rows. Fit it again with --preimage auto."
        )

    def found(rows: Any) -> Any:
        with progress.quiet():
            return f(rows)

    made = mapped(source, found, width)
    # A row is compared to the whole basis, in a few arrays.
    made.extra_bytes += 32 * len(axes.X_fit_)  # type: ignore[attr-defined]
    made.parallel = False
    return made

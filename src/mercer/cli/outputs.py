"""Files that commands write: checks before any work, and what a model computes from rows."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer import progress
from mercer.cli.errors import UsageError, WorkError
from mercer.cli.preprocessing import undo
from mercer.cli.rows import component_estimator, feature_names, score_names
from mercer.data import Source
from mercer.data.files import WRITERS, write_table
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.inspection import mapped, parts, through
from mercer.estimators.pca import PCA

STDOUT = "-"
PAGES = (".html", ".htm")
TABLES = (*WRITERS, ".npy")


def check_file(path: Path, suffixes: tuple[str, ...], *, force: bool, inputs: Any = ()) -> None:
    """Raise an error about a file that cannot, or must not, be written."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: give it a name that ends in {' or '.join(suffixes)}.")
    folder = path.parent
    if not folder.is_dir():
        raise WorkError(f"There is no folder {folder} to write {path.name} to. Make it first.")
    if path.is_dir():
        raise WorkError(f"{path} is a folder. Name a file to write.")
    if any(_same_file(path, other) for other in inputs):
        raise WorkError(f"{path} is an input of this command; it cannot be written to as well.")
    if path.exists() and not force:
        raise WorkError(f"{path} already exists; use --force to overwrite.")
    if not os.access(folder, os.W_OK):
        raise WorkError(f"The folder {folder} is not writable. Name another folder.")


def check_table(options: Any) -> None:
    """Raise an error about a table, computed with a model, that cannot be written."""
    if str(options.output) != STDOUT:
        inputs = (options.data, options.model)
        check_file(options.output, TABLES, force=options.force, inputs=inputs)
    elif options.json:
        raise UsageError("--json and -o - both write to stdout: name a file for one of them.")


def _same_file(path: Path, other: str | Path) -> bool:
    if str(other) == STDOUT:
        return False
    if path.exists() and os.path.exists(other):
        return os.path.samefile(path, other)
    return path.absolute() == Path(other).absolute()


def compute_scores(model: Any, source: Source) -> tuple[Source, list[str] | None]:
    """Return the scores of rows, and the names of their columns."""
    before, last = parts(model)
    if isinstance(last, Denoiser):
        raise WorkError("A Denoiser has no scores to write; apply it with mercer denoise.")
    return component_estimator(model).transform(through(before, source)), score_names(model)


def rows_from_scores(model: Any, source: Source) -> tuple[Source, list[str] | None]:
    """Return the rows that scores stand for, and the names of their columns."""
    estimator = component_estimator(model)
    if isinstance(estimator, PCA):
        rows = estimator.inverse_transform(source)
    else:
        if not hasattr(estimator, "n_features_in_"):
            raise WorkError("The model was fitted to strings, which scores cannot be mapped to.")
        # A lambda: a model without pre-images does not have the method.
        back = lambda x: estimator.inverse_transform(x)  # noqa: E731
        rows = _by_blocks(estimator, back, source, int(estimator.n_features_in_))
    return undo(parts(model)[0], rows), feature_names(model)


def denoised_rows(model: Any, source: Source) -> tuple[Source, list[str] | None]:
    """Return rows projected onto the components, and the names of their columns."""
    before, last = parts(model)
    estimator, rows = component_estimator(model), through(before, source)
    project = last.transform if isinstance(last, Denoiser) else estimator.reconstruct
    if isinstance(estimator, PCA):
        denoised = project(rows)
    else:
        denoised = _by_blocks(estimator, project, rows, rows.shape[1])
    return undo(before, denoised), feature_names(model)


def write_rows(
    source: Source, names: list[str] | None, path: Path, extra: dict[str, Any] | None = None
) -> None:
    """Write rows to a file, or to stdout."""
    if str(path) != STDOUT:
        write_table(source, path, names=names, extra=extra)
        return
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        spool = Path(folder) / "rows.csv"
        write_table(source, spool, names=names, extra=extra)
        sys.stdout.flush()
        with spool.open(encoding="utf-8") as file:
            shutil.copyfileobj(file, sys.stdout)


def _by_blocks(estimator: Any, f: Callable[[Any], Any], source: Source, width: int) -> Source:
    """Return the rows that pre-images make, block by block."""
    if not (hasattr(estimator, "preimage_") or hasattr(estimator, "dual_coef_")):
        raise WorkError(
            "The model cannot map scores back to rows. Fit it again with --preimage auto."
        )

    def quiet(rows: Any) -> Any:
        with progress.quiet():
            return f(rows)

    made = mapped(source, quiet, width)
    # A row is compared to the whole basis, in a few arrays.
    made.extra_bytes += 32 * len(estimator.X_fit_)  # type: ignore[attr-defined]
    made.parallel = False
    return made

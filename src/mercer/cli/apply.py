"""``mercer transform``, ``inverse``, ``denoise`` and ``novelty score``: models applied to rows."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mercer import progress
from mercer.cli import console, rows
from mercer.cli.console import Reporter, Result, UsageError, WorkError
from mercer.cli.options import Options
from mercer.data import ArraySource, Source
from mercer.data.files import WRITERS, write_table
from mercer.estimators.denoiser import Denoiser
from mercer.estimators.inspection import mapped, parts, through, undo
from mercer.estimators.novelty import NoveltyDetector
from mercer.estimators.pca import PCA
from mercer.messages import percent

STDOUT = "-"
PAGES = (".html", ".htm")
TABLES = (*WRITERS, ".npy")

Computed = tuple[Source, list[str] | None]
"""Rows to write, and the names of their columns."""


def _apply(
    options: Options, reporter: Reporter, compute: Callable[[Any, Source], Computed]
) -> Result:
    start = time.perf_counter()
    numbers_only = options.output.suffix.lower() == ".npy"
    for option, wanted in (("--keep", options.copied), ("--id", options.id)):
        if wanted and numbers_only:
            raise UsageError(f"{option} needs a table; a .npy file contains only numbers.")
    _check_table(options)
    model, origin = rows.load_model(options.model)
    named = {"names": rows.score_names(model)} if compute is _inverted else {}
    table = rows.read_new(model, options, reporter, origin, keep=options.copied, **named)
    source, names = compute(model, table.source)
    copied = {} if numbers_only else rows.copied_columns(table, options.copied)
    write_rows(source, names, options.output, copied)
    if str(options.output) == STDOUT:
        return Result({})
    n, columns = source.shape
    data: dict[str, Any] = {
        "model": str(options.model),
        "rows": n,
        "columns": columns,
        "names": names,
    }
    data |= {"id": table.id, "seconds": time.perf_counter() - start, "output": str(options.output)}
    lines = [
        ("read", rows.describe_rows(options.data, table.source)),
        ("written", f"{console.format_file(options.output)}: {n} × {columns}"),
        ("time", console.format_seconds(data["seconds"])),
    ]
    return Result(data, [console.pairs(lines)])


def compute_scores(model: Any, source: Source) -> Computed:
    """Return the scores of rows."""
    before, last = parts(model)
    if isinstance(last, Denoiser):
        raise WorkError("A Denoiser computes no scores. Apply it with mercer denoise.")
    scores = rows.component_estimator(model).transform(through(before, source))
    return scores, rows.score_names(model)


def _inverted(model: Any, source: Source) -> Computed:
    estimator = rows.component_estimator(model)
    if isinstance(estimator, PCA):
        inverted = estimator.inverse_transform(source)
    else:
        if not hasattr(estimator, "n_features_in_"):
            raise WorkError("The model was fitted to strings; scores cannot be mapped to strings.")
        invert = getattr(estimator, "inverse_transform", None)
        inverted = _by_blocks(estimator, invert, source, estimator.n_features_in_)
    return _undone(parts(model)[0], inverted), rows.feature_names(model)


def _denoised(model: Any, source: Source) -> Computed:
    before, last = parts(model)
    estimator, preprocessed = rows.component_estimator(model), through(before, source)
    project = last.transform if isinstance(last, Denoiser) else estimator.reconstruct
    if isinstance(estimator, PCA):
        denoised = project(preprocessed)
    else:
        denoised = _by_blocks(estimator, project, preprocessed, preprocessed.shape[1])
    return _undone(before, denoised), rows.feature_names(model)


def _undone(steps: list[Any], source: Source) -> Source:
    return mapped(source, partial(undo, steps), source.shape[1]) if steps else source


def _by_blocks(estimator: Any, f: Any, source: Source, width: int) -> Source:
    """Return the pre-images of rows, computed block by block."""
    if not (hasattr(estimator, "preimage_") or hasattr(estimator, "dual_coef_")):
        raise WorkError(
            "The model cannot map scores back to rows. Fit it again with --preimage auto."
        )

    def quiet(block: Any) -> Any:
        with progress.quiet():
            return f(block)

    preimages = mapped(source, quiet, int(width))
    # A row is compared to the whole basis, in a few arrays.
    preimages.extra_bytes += 32 * len(estimator.X_fit_)  # type: ignore[attr-defined]
    preimages.parallel = False
    return preimages


transform = partial(_apply, compute=compute_scores)
inverse = partial(_apply, compute=_inverted)
denoise = partial(_apply, compute=_denoised)


def score(options: Options, reporter: Reporter) -> Result:
    """Compute the novelty of rows, and write it if the user named a file."""
    start = time.perf_counter()
    _check_table(options)
    model, origin = rows.load_model(options.model)
    before, detector = parts(model)
    if not isinstance(detector, NoveltyDetector):
        raise WorkError(
            f"{options.model} contains a {type(detector).__name__}, not a novelty detector. Fit "
            f"one with mercer novelty fit."
        )
    table = rows.read_new(model, options, reporter, origin, keep=options.copied)
    source = through(before, table.source, table.source.shape[1])
    novelty = -np.asarray(detector.score_samples(source))
    threshold = -float(detector.offset_)
    novel = novelty > threshold
    copied = rows.copied_columns(table, options.copied)
    data: dict[str, Any] = {"rows": len(novel), "novel": int(novel.sum()), "threshold": threshold}
    share = f"{data['novel']} of {len(novel)} rows ({percent(float(novel.mean()))})"
    lines = [
        ("read", rows.describe_rows(options.data, table.source)),
        ("novel", f"{share}, novelty above {threshold:.4g}"),
    ]
    if options.output is None:
        data |= {"novelty": novelty, "novel_rows": np.flatnonzero(novel)}
        if table.row_names is not None:
            data["novel_ids"] = table.row_names[novel]
    else:
        scored = ArraySource(np.column_stack([novelty, novel.astype(novelty.dtype)]))
        write_rows(scored, ["novelty", "novel"], options.output, copied)
        if str(options.output) == STDOUT:
            return Result({})
        lines.append(("written", console.format_file(options.output)))
    data |= {"seconds": time.perf_counter() - start}
    data["output"] = None if options.output is None else str(options.output)
    shown = [console.pairs(lines), "", _most_novel(table, novelty, novel, list(copied))]
    return Result(data, shown if novel.any() else shown[:1])


def _most_novel(table: Any, novelty: Any, novel: Any, copied: list[str]) -> Any:
    """Return a table of the rows with the largest novelty, and of columns beside them."""
    extra = {name: table.row_names if name == table.id else table.extra[name] for name in copied}
    most = console.empty_table(("row", "novelty", *map(console.printable, extra)))
    for i in np.argsort(-novelty, kind="stable")[: min(10, int(novel.sum()))].tolist():
        cells = (console.printable(str(values[i])) for values in extra.values())
        most.add_row(str(i), f"{novelty[i]:.4g}", *cells)
    return most


def check_file(path: Path, suffixes: tuple[str, ...], *, force: bool, inputs: Any = ()) -> None:
    """Raise an error about a file that cannot, or must not, be written."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: use a name that ends in {' or '.join(suffixes)}.")
    folder = path.parent
    if not folder.is_dir():
        raise WorkError(f"There is no folder {folder} for {path.name}. Create it first.")
    if path.is_dir():
        raise WorkError(f"{path} is a folder. Name a file to write.")
    if path.resolve() in {Path(other).resolve() for other in inputs}:
        raise WorkError(f"{path} is an input of this command and cannot be overwritten by it.")
    if path.exists() and not force:
        raise WorkError(f"{path} already exists; use --force to overwrite.")
    if not os.access(folder, os.W_OK):
        raise WorkError(f"The folder {folder} is not writable. Name another folder.")


def _check_table(options: Options) -> None:
    if options.output is None:
        return
    if str(options.output) != STDOUT:
        inputs = (options.data, options.model)
        check_file(options.output, TABLES, force=options.force, inputs=inputs)
    elif options.json:
        raise UsageError("--json and -o - both write to stdout: name a file for one of them.")


def write_rows(
    source: Source, names: list[str] | None, path: Path, extra: Mapping[str, Any] | None = None
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

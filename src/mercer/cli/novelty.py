"""``mercer novelty fit`` and ``mercer novelty score``."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercer.cli import fit
from mercer.cli.console import Reporter, Result, empty_table, format_file, pairs, printable
from mercer.cli.options import (
    CheckpointOptions,
    Fitted,
    Model,
    Output,
    Rows,
    model_option,
    output_file,
    output_option,
)
from mercer.messages import percent


@dataclass(frozen=True, kw_only=True)
class NoveltyFitOptions(Rows, Model, CheckpointOptions, Output):
    """Options of novelty fit."""

    output: Path = output_file("Model file to write: NAME.mercer.")
    contamination: float = model_option(
        "Share of the rows to flag as novel, up to 0.5.", default=0.1
    )
    linear: bool = model_option("Linear PCA instead of a kernel.", None, "--linear", default=False)
    components: str | None = model_option(
        "Components: a number, a share of the variance (0.95), all, mle, kaiser, "
        "broken-stick, parallel or gavish-donoho. Default: 0.95, at most 100 components; with "
        "--linear, 0.95.",
        "N|SHARE|RULE",
    )
    kernel: str | None = model_option(
        'Kernel: a name, or an expression such as "rbf(0.01) + 2*poly(3)". Default: rbf.', "TEXT"
    )


@dataclass(frozen=True, kw_only=True)
class NoveltyScoreOptions(Fitted):
    """Options of novelty score."""

    output: Path | None = output_file(
        "Table to write, one line per row: .csv, .tsv, .parquet, .arrow; - is CSV on stdout.",
        default=None,
    )
    force: bool = output_option("Overwrite an existing file.", "--force", "-f", default=False)


def fit_detector(options: NoveltyFitOptions, reporter: Reporter) -> Result:
    """Fit a novelty detector and save it.

    The novelty of a row is its squared distance from the principal components.

    Examples
    --------
    $ mercer novelty fit ordinary.csv --contamination 0.05 -o ordinary.mercer
    """
    from mercer.cli import build, outputs, rows
    from mercer.cli.errors import UsageError
    from mercer.estimators.novelty import NoveltyDetector, default_components

    start = time.perf_counter()
    if options.linear and options.kernel is not None:
        raise UsageError("--linear and --kernel: give one of them.")
    if not 0 < options.contamination <= 0.5:
        raise UsageError(
            f"--contamination {options.contamination} must be above 0 and at most 0.5."
        )
    if not options.linear and options.kernel is None:
        options = replace(options, kernel="rbf")
    inner = build.build_estimator(options, default_components())
    detector = NoveltyDetector(inner, contamination=options.contamination)
    outputs.check_file(options.output, (".mercer",), force=options.force, inputs=(options.data,))
    with fit.resume(options, reporter):
        table = rows.read_training(options, reporter)
        model = fit.fit_pipeline(detector, table, options)
        fit.save_model(model, options, fit.describe_origin("novelty fit", options, table))
    return fit.fit_result(options, model, table, time.perf_counter() - start)


def score(options: NoveltyScoreOptions, reporter: Reporter) -> Result:
    """Score rows for novelty.

    Novelty is the squared distance from the components. Rows beyond the threshold of the fit are
    novel.

    Examples
    --------
    $ mercer novelty score ordinary.mercer new.csv -o scored.csv
    """
    import numpy as np

    from mercer.cli import outputs, rows
    from mercer.cli.errors import WorkError
    from mercer.data import ArraySource
    from mercer.estimators.inspection import parts, through
    from mercer.estimators.novelty import NoveltyDetector

    start = time.perf_counter()
    if options.output is not None:
        outputs.check_table(options)
    model, origin = rows.load_model(options.model)
    before, detector = parts(model)
    if not isinstance(detector, NoveltyDetector):
        raise WorkError(
            f"{options.model} holds a {type(detector).__name__}, and no threshold. Make one with "
            f"mercer novelty fit."
        )
    table = rows.read_new(model, options, reporter, origin, keep=options.copied)
    source = through(before, table.source, table.source.shape[1])
    novelty = -np.asarray(detector.score_samples(source))
    threshold = -float(detector.offset_)
    novel = novelty > threshold
    copied = rows.copied_columns(table, options.copied)
    extra = {name: table.extra[name] for name in copied}
    if table.id is not None and table.row_names is not None:
        extra[table.id] = table.row_names
    if options.output is not None:
        scored = ArraySource(np.column_stack([novelty, novel.astype(novelty.dtype)]))
        outputs.write_rows(scored, ["novelty", "novel"], options.output, copied)
        if str(options.output) == outputs.STDOUT:
            return Result({})
    data: dict[str, Any] = {
        "rows": len(novel),
        "novel": int(novel.sum()),
        "threshold": threshold,
        "seconds": time.perf_counter() - start,
        "output": None if options.output is None else str(options.output),
    }
    if options.output is None:
        data |= {"novelty": novelty, "novel_rows": np.flatnonzero(novel)}
        if table.id is not None:
            data["novel_ids"] = extra[table.id][novel]
    share = f"{int(novel.sum())} of {len(novel)} rows ({percent(float(novel.mean()))})"
    lines = [
        ("read", rows.describe_rows(options.data, table.source)),
        ("novel", f"{share}, novelty above {threshold:.4g}"),
    ]
    if options.output is not None:
        lines.append(("written", format_file(options.output)))
    most = [int(i) for i in np.argsort(-novelty, kind="stable")[:10] if novel[i]]
    return Result(data, [pairs(lines), *_most_novel(most, novelty, extra)])


def _most_novel(rows: list[int], novelty: Any, extra: dict[str, Any]) -> list[Any]:
    """Return a table of the most novel rows."""
    if not rows:
        return []
    table = empty_table(("row", "novelty", *map(printable, extra)))
    for i in rows:
        cells = (printable(str(values[i])) for values in extra.values())
        table.add_row(str(i), f"{novelty[i]:.4g}", *cells)
    return ["", table]

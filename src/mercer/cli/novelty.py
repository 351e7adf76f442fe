"""``mercer novelty``: rows that are unlike those of the fit."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer.cli import fit as fits
from mercer.cli import say
from mercer.cli.options import Fitted, Kept, Model, Output, Rows


@dataclass(frozen=True, kw_only=True)
class FitOptions(Rows, Model, Kept, Output):
    """What novelty fit takes."""

    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Model file to write: NAME.mercer.", rich_help_panel="Output"
        ),
    ]
    contamination: Annotated[
        float,
        typer.Option(
            help="Share of the rows to flag as novel, up to 0.5.", rich_help_panel="Model"
        ),
    ] = 0.1
    linear: Annotated[
        bool,
        typer.Option("--linear", help="Linear PCA instead of a kernel.", rich_help_panel="Model"),
    ] = False
    components: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE|RULE",
            help="Components: a number, a share of the variance (0.95), all, mle, kaiser, "
            "broken-stick, parallel or gavish-donoho. Default: 0.95, at most 100 components; with "
            "--linear, 0.95.",
            rich_help_panel="Model",
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help='Kernel: a name, or an expression such as "rbf(0.01) + 2*poly(3)". Default: rbf.',
            rich_help_panel="Model",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(Fitted):
    """What novelty score takes."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Table to write, one line per row: .csv, .tsv, .parquet, .arrow; - is CSV on "
            "stdout.",
            rich_help_panel="Output",
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option("--force", "-f", help="Overwrite an existing file.", rich_help_panel="Output"),
    ] = False


FIT_EXAMPLES = ("mercer novelty fit ordinary.csv --contamination 0.05 -o ordinary.mercer",)
SCORE_EXAMPLES = ("mercer novelty score ordinary.mercer new.csv -o scored.csv",)


def fit(asked: FitOptions, voice: say.Voice) -> say.Result:
    """Fit a novelty detector and save it.

    The novelty of a row is its squared distance from the principal components.
    """
    from dataclasses import replace

    from mercer.cli import build, outputs, rows
    from mercer.cli.errors import UsageError
    from mercer.estimators.novelty import NoveltyDetector, default_components

    start = time.perf_counter()
    if asked.linear and asked.kernel is not None:
        raise UsageError("--linear and --kernel: give one of them.")
    if not 0 < asked.contamination <= 0.5:
        raise UsageError(f"--contamination {asked.contamination} must be above 0 and at most 0.5.")
    if not asked.linear and asked.kernel is None:
        asked = replace(asked, kernel="rbf")
    inner = build.estimator(asked, default_components())
    made = NoveltyDetector(inner, contamination=asked.contamination)
    outputs.require_suffix(asked.output, ".mercer")
    outputs.claim(asked.output, force=asked.force, inputs=(asked.data,))
    with fits.resumed(asked, voice):
        table = rows.learning(asked, voice)
        model = fits.fitted(made, table, asked)
        fits.keep("novelty fit", model, asked, table)
    return fits.told(asked, model, table, time.perf_counter() - start)


def score(asked: ScoreOptions, voice: say.Voice) -> say.Result:
    """Score rows for novelty.

    Novelty is the squared distance from the components. Rows beyond the threshold of the fit are
    novel.
    """
    import numpy as np

    from mercer import load
    from mercer.cli import outputs, rows, tables
    from mercer.cli.errors import UsageError, WorkError
    from mercer.data import ArraySource
    from mercer.estimators.novelty import NoveltyDetector
    from mercer.estimators.pipeline import parts, through
    from mercer.modelfile import read_header

    start = time.perf_counter()
    outputs.there(asked.model)
    if asked.output is not None:
        if str(asked.output) == outputs.STDOUT and asked.json:
            raise UsageError("--json and -o - both want stdout: name a file for one of them.")
        tables.claim(asked.output, force=asked.force, inputs=(asked.data, asked.model))
    model = load(asked.model)
    before, detector = parts(model)
    if not isinstance(detector, NoveltyDetector):
        raise WorkError(
            f"{asked.model} holds a {type(detector).__name__}, and no threshold. Make one with "
            f"mercer novelty fit."
        )
    origin = read_header(asked.model).origin or {}
    table = rows.fitted(model, asked, voice, origin, keep=asked.kept)
    distance = -np.asarray(
        detector.score_samples(through(before, table.source, table.source.shape[1]))
    )
    threshold = -float(detector.offset_)
    novel = distance > threshold
    stored = rows.beside(table, asked.kept)
    extra = {name: table.extra[name] for name in stored}
    if table.id is not None and table.row_names is not None:
        extra[table.id] = table.row_names
    if asked.output is not None:
        made = np.column_stack([distance, novel.astype(distance.dtype)])
        tables.write((ArraySource(made), ["novelty", "novel"]), asked.output, stored)
        if str(asked.output) == outputs.STDOUT:
            return say.Result({})
    found: dict[str, Any] = {
        "rows": len(novel),
        "novel": int(novel.sum()),
        "threshold": threshold,
        "seconds": time.perf_counter() - start,
        "output": None if asked.output is None else str(asked.output),
    }
    if asked.output is None:
        found |= {"novelty": distance, "novel_rows": np.flatnonzero(novel)}
        if table.id is not None:
            found["novel_ids"] = extra[table.id][novel]
    return say.Result(found, _shown(asked, table, distance, novel, threshold, extra))


def _shown(
    asked: ScoreOptions,
    table: Any,
    distance: Any,
    novel: Any,
    threshold: float,
    extra: dict[str, Any],
) -> list[Any]:
    """Return the count, and the most novel rows."""
    import numpy as np

    from mercer.cli import facts, rows

    share = f"{int(novel.sum())} of {len(novel)} rows ({say.percent(float(novel.mean()))})"
    lines = [
        ("read", rows.described(asked.data, table.source)),
        ("novel", f"{share}, novelty above {threshold:.4g}"),
    ]
    if asked.output is not None:
        lines.append(("written", facts.written(asked.output)))
    shown: list[Any] = [say.pairs(lines)]
    worst = [int(i) for i in np.argsort(-distance, kind="stable")[:10] if novel[i]]
    if worst:
        most = say.columns(("row", "novelty", *map(say.printable, extra)))
        for i in worst:
            most.add_row(
                str(i), f"{distance[i]:.4g}", *(say.printable(str(v[i])) for v in extra.values())
            )
        shown += ["", most]
    return shown

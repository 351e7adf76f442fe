"""``mercer compare``: methods side by side on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from mercer.cli import say
from mercer.cli.options import Model, Rows


@dataclass(frozen=True, kw_only=True)
class Options(Rows, Model):
    """What compare takes."""

    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="A,B,…",
            help="Methods to compare. Default: the most useful ones.",
            rich_help_panel="Model",
        ),
    ] = None
    patience: Annotated[
        float,
        typer.Option(
            help="Skip methods that are expected to take more seconds than this.",
            rich_help_panel="Model",
        ),
    ] = 60.0


EXAMPLES = (
    "mercer compare rows.npy --components 10",
    "mercer compare rows.npy --kernel rbf --components 10 --basis 500 "
    "--method exact,subset,nystrom",
)


def compare(asked: Options, voice: say.Voice) -> say.Result:
    """Compare methods on the same data: explained variance, bound, time and memory.

    Memory is the growth of the process during the fit. Methods that would exceed the memory limit
    or --patience are skipped and listed.
    """
    from mercer.cli import contest, rows
    from mercer.cli.errors import WorkError

    methods = contest.methods(asked)
    table = rows.learning(asked, voice)
    source = contest.prepared(table.source, asked)
    runs = [contest.run(name, source, asked) for name in methods]
    if all(run.left_out is not None for run in runs):
        raise WorkError(f"No method could be tried; {runs[0].method}: {runs[0].left_out}")
    shown: list[Any] = [say.pairs([("read", rows.described(asked.data, table.source))]), ""]
    return say.Result(
        {**rows.size(source), "methods": [vars(r) for r in runs]},
        [*shown, _table(runs), *_left_out(runs)],
    )


def _table(runs: list[Any]) -> Any:
    from mercer.config import format_bytes
    from mercer.messages import percent

    names = ("method", "components", "explained", "optimum at most", "gap", "seconds", "memory")
    table = say.columns(names, left=("method",))
    for run in runs:
        if run.left_out is not None:
            continue
        memory = "–" if run.memory is None else format_bytes(run.memory)
        about = "~" if run.kind == "estimate" else ""
        gap = f"{about}{100 * run.gap:.2g} %" if run.gap >= 1e-6 else "< 0.0001 %"
        captured, upper = say.percent(run.captured), percent(run.optimum_upper, up=True)
        cells = (str(run.components), captured, upper, gap)
        table.add_row(run.method, *cells, f"{run.seconds:.2g}", memory)
    return table


def _left_out(runs: list[Any]) -> list[Any]:
    lines = [(run.method, run.left_out) for run in runs if run.left_out is not None]
    return ["", "Left out:", say.pairs(lines)] if lines else []

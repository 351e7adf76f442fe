"""The command ``mercer`` and its subcommands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mercer import __version__
from mercer.cli import apply, compare, demo, errors, fit, inspect, novelty, report
from mercer.cli.command import add_command, join_lines
from mercer.cli.console import replace_unencodable

_HELP = """PCA and kernel PCA at any scale, with a proof of how close to optimal every result
is."""
_EPILOG = """Exit codes: 0 success; 1 the work failed (data, files, memory); 2 invalid command line;
130 interrupted by Ctrl-C (143 by SIGTERM); 141 the reader of a pipe went away.

Example:

mercer fit iris.csv --label species -o iris.mercer &&
mercer report iris.mercer iris.csv -o iris.html"""

app = typer.Typer(
    name="mercer",
    help=join_lines(_HELP),
    epilog=join_lines(_EPILOG),
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)
_novelty = typer.Typer(
    name="novelty",
    help="Novelty detection: novelty fit, then novelty score.",
    no_args_is_help=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"mercer {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


add_command(
    app,
    "fit",
    fit.FitOptions,
    fit.fit,
    "mercer fit iris.csv --label species --scale zscore -o iris.mercer --report iris.html",
    "mercer fit digits.npy --kernel rbf --components 50 --gap 0.01 -o digits.mercer",
    'mercer fit rows.parquet --kernel "rbf(0.01) + 2*poly(3)" --method subset --basis 1000 '
    "--select kmeans --memory 4GiB -o rows.mercer --scores scores.parquet",
    "mercer fit rows.npy --kernel rbf --method exact --checkpoint run -o rows.mercer",
)
add_command(
    app,
    "plan",
    fit.PlanOptions,
    fit.plan,
    "mercer plan rows.npy --kernel rbf --components 50 --memory 4GiB",
)
add_command(
    app,
    "transform",
    apply.TransformOptions,
    apply.transform,
    "mercer transform iris.mercer iris.csv --keep species -o scores.parquet",
    "cat new.csv | mercer transform iris.mercer - --format csv -o - | head",
)
add_command(
    app,
    "inverse",
    apply.InverseOptions,
    apply.inverse,
    "mercer inverse iris.mercer scores.parquet -o rows.csv",
)
add_command(
    app,
    "denoise",
    apply.TransformOptions,
    apply.denoise,
    "mercer fit clean.npy --kernel rbf --preimage auto -o digits.mercer",
    "mercer denoise digits.mercer noisy.npy -o denoised.npy",
)
add_command(
    _novelty,
    "fit",
    novelty.NoveltyFitOptions,
    novelty.fit_detector,
    "mercer novelty fit ordinary.csv --contamination 0.05 -o ordinary.mercer",
)
add_command(
    _novelty,
    "score",
    novelty.NoveltyScoreOptions,
    novelty.score,
    "mercer novelty score ordinary.mercer new.csv -o scored.csv",
)
app.add_typer(_novelty)
add_command(app, "inspect", inspect.InspectOptions, inspect.inspect, "mercer inspect iris.mercer")
add_command(
    app,
    "report",
    report.ReportOptions,
    report.report,
    "mercer report iris.mercer iris.csv --label species -o iris.html",
    "mercer report digits.mercer digits.npy --images 8x8 -o digits.html",
)
add_command(
    app,
    "compare",
    compare.CompareOptions,
    compare.compare,
    "mercer compare rows.npy --components 10",
    "mercer compare rows.npy --kernel rbf --components 10 --basis 500 "
    "--method exact,subset,nystrom",
)
add_command(app, "demo", demo.DemoOptions, demo.demo, "mercer demo -o somewhere", bars=False)

# What typer raises for an invalid command line: the base of BadParameter.
_Usage: Any = typer.BadParameter.__mro__[1]


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    replace_unencodable()
    try:
        code = app(arguments, prog_name="mercer", standalone_mode=False)
    except _Usage as error:
        return _misused(error, json="--json" in arguments)
    except typer.Abort:
        return 130
    except BrokenPipeError:  # of --help and the like
        return errors.close_pipe()
    except SystemExit as error:  # typer's 1 is a broken pipe; completion exits too
        return errors.BROKEN_PIPE if error.code == 1 else int(error.code or 0)
    return code if isinstance(code, int) else errors.DONE


def _misused(error: Any, *, json: bool) -> int:
    """Print what is invalid, and where the help is."""
    message = error.format_message()
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "mercer"
    if not message:  # a group without a command: its help was printed
        return errors.USAGE
    text = f"{command}: {message.rstrip('.')}. See {command} --help."
    return errors.fail(text, errors.USAGE, json)

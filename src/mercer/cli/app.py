"""The command ``mercer`` and its subcommands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from mercer import __version__
from mercer.cli import (
    compare,
    demo,
    denoise,
    errors,
    fit,
    inspect,
    inverse,
    novelty,
    plan,
    report,
    say,
    transform,
)
from mercer.cli.command import command, paragraphs

_HELP = """PCA and kernel PCA at any scale, with a proof of how close to optimal every result
is."""
_EPILOG = """Exit codes: 0 done; 1 the work failed: data, files, memory; 2 the command line was not
understood; 130 stopped by Ctrl-C (143 by SIGTERM); 141 the reader of a pipe went away.

Example:

mercer fit iris.csv --label species -o iris.mercer &&
mercer report iris.mercer iris.csv -o iris.html"""

app = typer.Typer(
    name="mercer",
    help=paragraphs(_HELP),
    epilog=paragraphs(_EPILOG),
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
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
) -> None:
    pass


command(app, fit.Options, "fit", fit.EXAMPLES)(fit.fit)
command(app, plan.Options, "plan", plan.EXAMPLES)(plan.plan)
command(app, transform.Options, "transform", transform.EXAMPLES)(transform.transform)
command(app, inverse.Options, "inverse", inverse.EXAMPLES)(inverse.inverse)
command(app, denoise.Options, "denoise", denoise.EXAMPLES)(denoise.denoise)
command(_novelty, novelty.FitOptions, "fit", novelty.FIT_EXAMPLES)(novelty.fit)
command(_novelty, novelty.ScoreOptions, "score", novelty.SCORE_EXAMPLES)(novelty.score)
app.add_typer(_novelty)
command(app, inspect.Options, "inspect", inspect.EXAMPLES)(inspect.inspect)
command(app, report.Options, "report", report.EXAMPLES)(report.report)
command(app, compare.Options, "compare", compare.EXAMPLES)(compare.compare)
command(app, demo.Options, "demo", demo.EXAMPLES, bars=False)(demo.demo)

# What typer raises of a command line that it does not understand: the base of BadParameter.
_Usage: Any = typer.BadParameter.__mro__[1]


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    say.speak_plainly()
    try:
        code = app(arguments, prog_name="mercer", standalone_mode=False)
    except _Usage as error:
        return _misused(error, json="--json" in arguments)
    except typer.Abort:
        return 130
    except BrokenPipeError:  # of --help and its like
        return errors.closed()
    except SystemExit as error:  # 1 is typer's way with a broken pipe; completion ends so too
        return errors.BROKEN_PIPE if error.code == 1 else int(error.code or 0)
    return code if isinstance(code, int) else errors.DONE


def _misused(error: Any, *, json: bool) -> int:
    """Say what was not understood, and where to read on."""
    said = error.format_message()
    context = getattr(error, "ctx", None)
    called = context.command_path if context is not None else "mercer"
    if not said:  # a command of none: its help was printed
        return errors.USAGE
    text = f"{called}: {said.rstrip('.')}. See {called} --help."
    return errors.failed(text, errors.USAGE, json)

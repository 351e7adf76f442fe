"""The command ``mercer`` and its subcommands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from mercer import __version__
from mercer.cli import apply, compare, errors, fit, inspect, novelty, report
from mercer.cli.command import add_command, join_lines
from mercer.cli.console import Reporter, Result, replace_unencodable
from mercer.cli.options import Common, option

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


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Common):
    """Options of demo."""

    output: Path = option(
        "Folder for the model and the report.", "--output", "-o", default=Path("mercer-demo")
    )


def _demo(options: DemoOptions, reporter: Reporter) -> Result:
    """Show what Mercer does on handwritten digits: plan, fit, certificate, noise, report.

    The data come with scikit-learn. The folder is made, and files of an earlier demo replaced.

    Examples
    --------
    $ mercer demo -o somewhere
    """
    from mercer.cli.demo import show_all

    files = show_all(options.output, quiet=options.json)
    return Result({key: None if path is None else str(path) for key, path in files.items()})


add_command(app, "fit", fit.fit)
add_command(app, "plan", fit.plan)
add_command(app, "transform", apply.transform)
add_command(app, "inverse", apply.inverse)
add_command(app, "denoise", apply.denoise)
add_command(_novelty, "fit", novelty.fit_detector)
add_command(_novelty, "score", novelty.score)
app.add_typer(_novelty)
add_command(app, "inspect", inspect.inspect)
add_command(app, "report", report.report)
add_command(app, "compare", compare.compare)
add_command(app, "demo", _demo, bars=False)

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

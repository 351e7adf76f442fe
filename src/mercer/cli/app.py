"""The command ``mercer`` and its subcommands: help texts, options, and how they run."""

from __future__ import annotations

import contextlib
import copy
import inspect
import warnings
from dataclasses import fields
from functools import partial
from importlib import import_module
from typing import Annotated, Any, get_type_hints

import typer

from mercer import __version__
from mercer.cli import console
from mercer.cli.console import Reporter, replace_unencodable
from mercer.cli.options import COMPLETED, Options, completion

_COMMON = ("memory", "json", "debug")
_COLUMNS = ("id", "drop", "na", "format", "resize", "query")
_ROWS = ("data", "columns", "label", "weights", *_COLUMNS, "impute")
_MODEL = (
    *("components", "kernel", "gamma", "method", "basis", "select", "gap", "certificate"),
    *("scale", "preimage"),
)
_FIT = (
    *(*_ROWS, *_MODEL, "feature_weight", "seed", "output", "force"),
    *("checkpoint", "checkpoint_seconds", *_COMMON),
)
_APPLY = ("model", "data", *_COLUMNS, "keep", "output", "force", *_COMMON)
_FIT_FILES = (*_FIT, "keep", "scores", "report", "obsm")
_FITTED = {
    "output": "Model file to write: NAME.mercer. Optional with --obsm, where NAME.h5ad names the "
    "copy.",
    "label": "Label column. It is not used as a feature; the report colors the points by it.",
    "keep": "Columns to copy to the scores: names or patterns. They are used as features only if "
    "--columns names them in full.",
}
_APPLIED = {
    "data": "Data file in any format that fit reads, or -.",
    "id": "Column of row names, for scores and reports. Default: as in the fit, or a column "
    "named id, sample_id or similar, if its values are unique.",
    "output": "Table to write: .csv, .tsv, .parquet, .arrow or .npy; - writes CSV to stdout.",
}
_NOT_WRITTEN = "As for fit; plan does not write this file."
_EPILOG = """Exit codes: 0 success; 1 failure (data, files, memory); 2 invalid command line;
130 interrupted by Ctrl-C (143 by SIGTERM); 141 broken pipe.

Example:

mercer fit iris.csv --label species -o iris.mercer &&
mercer report iris.mercer iris.csv -o iris.html"""


def _join_lines(text: str) -> str:
    """Return text with one line per paragraph, as typer wraps it."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


app = typer.Typer(
    name="mercer",
    help="PCA and kernel PCA at any scale, with a proof of how close to optimal every result is.",
    epilog=_join_lines(_EPILOG),
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)
_novelty = typer.Typer(
    name="novelty",
    help="Novelty detection: novelty fit, then novelty score.",
    no_args_is_help=True,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mercer {__version__}")
        raise typer.Exit


_Version = typer.Option(callback=_print_version, is_eager=True, help="Print the version.")


@app.callback()
def _main(version: Annotated[bool, _Version] = False) -> None:
    pass


def _add(
    target: str,
    help: str,
    examples: str,
    options: tuple[str, ...],
    helps: dict[str, str] | None = None,
    *,
    group: typer.Typer = app,
    name: str | None = None,
    optional: dict[str, Any] | None = None,
) -> None:
    """Register the function ``module.name`` of `mercer.cli` as a command that takes some options.

    Its module is imported when the command runs. `optional` are defaults of options that are
    required otherwise, and `helps` are help texts that differ from those of `Options`.
    """
    name = name or target.partition(".")[2]
    path = " ".join(dict.fromkeys(["mercer", str(group.info.name), name]))

    def run(**values: Any) -> None:
        chosen = Options(**values)
        code = console.run_guarded(partial(_run, target, chosen), path, chosen)
        if code:
            raise typer.Exit(code)

    hints, known = get_type_hints(Options), {field.name: field for field in fields(Options)}
    required = dict.fromkeys(("model", "data", "output"), inspect.Parameter.empty)
    parameters = []
    for option in options:
        info = copy.copy(known[option].metadata["typer"])
        info.help = (helps or {}).get(option, info.help)
        info.autocompletion = completion(option) if option in COMPLETED else None
        default = {option: known[option].default, **required, **(optional or {})}[option]
        kind, annotation = inspect.Parameter.KEYWORD_ONLY, Annotated[hints[option], info]
        parameters.append(inspect.Parameter(option, kind, default=default, annotation=annotation))
    # typer reads the options from the signature.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    epilog = _join_lines(f"Examples:\n\n{examples}")
    group.command(name, help=_join_lines(help), epilog=epilog)(run)


def _run(target: str, options: Options) -> None:
    """Run a command with its settings and progress bars, then print the result."""
    module, _, name = target.partition(".")
    work = getattr(import_module(f"mercer.cli.{module}"), name)
    from mercer import progress
    from mercer.config import config_context

    reporter = Reporter(json=options.json)
    names = ("memory", "checkpoint", "checkpoint_seconds")
    settings = {name: getattr(options, name) for name in names}
    bars = contextlib.nullcontext() if target == "demo.demo" else progress.patient()
    with warnings.catch_warnings(), contextlib.ExitStack() as context:
        try:
            context.enter_context(config_context(**settings))
        except ValueError as error:
            raise console.UsageError(str(error)) from None
        context.enter_context(bars)
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        # Blocks have no column names; they were compared when the file was read.
        warnings.filterwarnings("ignore", message="X (has|does not have valid) feature names")
        warnings.showwarning = lambda message, *_, **__: reporter.note(str(message))
        result = work(options, reporter)
    reporter.show(result)


_add(
    "fit.fit",
    """Fit a model and save it.

    Linear PCA, or kernel PCA with --kernel. Prints what was read, which method was used, and how
    close to optimal the components are.""",
    """mercer fit iris.csv --label species --scale zscore -o iris.mercer --report iris.html

    mercer fit rows.parquet --kernel "rbf(0.01) + 2*poly(3)" --method subset --basis 1000
    --select kmeans --memory 4GiB -o rows.mercer --scores scores.parquet

    mercer fit rows.npy --kernel rbf --gap 0.01 --checkpoint run -o rows.mercer

    mercer fit pbmc.h5ad --components 50 --obsm""",
    _FIT_FILES,
    _FITTED,
    optional={"output": None},
)
_add(
    "fit.plan",
    """Show what fit would do: methods, passes, memory and time. Computes and writes nothing.

    Takes the same arguments as fit.""",
    "mercer plan rows.npy --kernel rbf --components 50 --memory 4GiB",
    _FIT_FILES,
    _FITTED | dict.fromkeys(("output", "scores", "report", "obsm"), _NOT_WRITTEN),
    optional={"output": None},
)
_add(
    "apply.transform",
    """Compute scores with a fitted model.

    Columns are matched by name; columns that the model does not know are ignored.""",
    """mercer transform iris.mercer iris.csv --keep species -o scores.parquet

    cat new.csv | mercer transform iris.mercer - --format csv -o - | head""",
    _APPLY,
    _APPLIED,
)
_add(
    "apply.inverse",
    """Map scores back to data.

    A kernel model must have been fitted with --preimage.""",
    "mercer inverse iris.mercer scores.parquet -o rows.csv",
    _APPLY,
    _APPLIED | {"data": "Scores written by transform, or -."},
)
_add(
    "apply.denoise",
    """Denoise data by projecting it onto the components.

    A kernel model must have been fitted with --preimage.""",
    """mercer fit clean.npy --kernel rbf --preimage auto -o digits.mercer

    mercer denoise digits.mercer noisy.npy -o denoised.npy""",
    _APPLY,
    _APPLIED,
)
_add(
    "fit.fit_detector",
    """Fit a novelty detector and save it.

    The novelty of a row is its squared distance from its projection onto the components.""",
    "mercer novelty fit ordinary.csv --contamination 0.05 -o ordinary.mercer",
    (*_FIT, "contamination", "linear"),
    {
        "components": "Number of components, a share of the variance (0.95), or a rule: all, mle, "
        "kaiser, broken-stick, parallel, gavish-donoho. Default: 0.95, at most 100 components; "
        "with --linear, 0.95.",
        "kernel": 'Kernel: a name, or an expression such as "rbf(0.01) + 2*poly(3)". Default: rbf.',
    },
    group=_novelty,
    name="fit",
)
_add(
    "apply.score",
    """Score rows for novelty.

    The novelty of a row is its squared distance from its projection onto the components. Rows
    above the threshold of the fit are novel.""",
    "mercer novelty score ordinary.mercer new.csv -o scored.csv",
    _APPLY,
    _APPLIED
    | {"output": "Table to write: .csv, .tsv, .parquet or .arrow; - writes CSV to stdout."},
    group=_novelty,
    optional={"output": None},
)
app.add_typer(_novelty)
_add(
    "report.inspect",
    """Show the contents of a model file: kernel, method, spectrum, certificate, data, versions.

    Reads only the header, not the arrays.""",
    "mercer inspect iris.mercer",
    ("model", "json", "debug"),
)
_add(
    "report.report",
    """Write a report: one HTML file with spectrum, scores, loadings, outliers and certificate.

    It opens in any browser, without a network.""",
    """mercer report iris.mercer iris.csv --label species -o iris.html

    mercer report digits.mercer digits.npy --images 8x8 -o digits.html""",
    (*_APPLY, "label", "images", "title"),
    {
        "data": "Data to show, in any format that fit reads. Without it, the report shows the "
        "model only.",
        "label": "Label column, which colors the points. Default: as in the fit.",
        "id": _APPLIED["id"],
        "output": "Page to write: NAME.html.",
    },
    optional={"data": None},
)
_add(
    "compare.compare",
    """Compare methods on the same data: explained variance, bound, time and memory.

    Memory is the growth of the process during the fit. Methods that would exceed the memory limit
    or --patience are skipped and listed.""",
    """mercer compare rows.npy --components 10

    mercer compare rows.npy --kernel rbf --components 10 --basis 500 --method
    exact,subset,nystrom""",
    (*_ROWS, *_MODEL, "seed", "patience", *_COMMON),
    {"method": "Methods to compare, separated by commas. Default: the most useful ones."},
)
_add(
    "demo.demo",
    """Demonstrate Mercer on handwritten digits: plan, fit, certificate, denoising, report.

    The data come with scikit-learn. Creates the folder; overwrites files of an earlier demo.""",
    "mercer demo -o somewhere",
    ("output", "json", "debug"),
    {"output": "Folder for the model and the report."},
    optional={"output": "mercer-demo"},
)


# What typer raises for an invalid command line: the base of BadParameter.
_Usage: Any = typer.BadParameter.__mro__[1]


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code."""
    replace_unencodable()
    try:
        code = app(arguments, prog_name="mercer", standalone_mode=False)
    except _Usage as error:
        message = error.format_message()
        if not message:  # a group without a command: its help was printed
            return console.USAGE
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "mercer"
        end = "" if message.endswith(("?", ".")) else "."
        text = f"{command}: {message}{end} See {command} --help."
        return console.fail(text, console.USAGE, "--json" in arguments)
    except typer.Abort:
        return 130
    except BrokenPipeError:  # of --help and the like
        return console.close_pipe()
    except SystemExit as error:  # typer's 1 is a broken pipe; completion exits too
        return console.BROKEN_PIPE if error.code == 1 else int(error.code or 0)
    return code if isinstance(code, int) else console.DONE

"""Parts of the command line by themselves: words, numbers, signals, the command again."""

import contextlib
import errno
import pickle
import re
import shlex
import signal
import sys
import threading
from dataclasses import fields
from io import StringIO

import numpy as np
import pytest

from mercer import cli, progress
from mercer.cli import console
from mercer.cli.app import run
from mercer.cli.fit import equivalent_command
from mercer.cli.options import Options
from mercer.cli.rows import imputed
from mercer.data.errors import format_names
from mercer.data.files import READERS, Table
from mercer.data.files.images import IMAGES
from mercer.data.files.read import _FOLDERS
from mercer.messages import ParameterError, format_parameter, parameter_format
from mercer.methods import RandomFeatures, Subset
from mercer.modelfile import read_header


def test_what_json_cannot_hold():
    value = {"a": np.arange(2), "b": (np.float32(0.5), float("nan"), float("-inf")), "c": {1: None}}
    assert console.as_json(value) == {"a": [0, 1], "b": [0.5, None, None], "c": {"1": None}}
    assert console.as_json([True, np.bool_(False), np.int64(3)]) == [True, False, 3]


def test_text_that_would_fill_the_screen_or_move_the_cursor():
    assert console.printable("a\x1b[2Jb\nc\x00") == "a\\x1b[2Jb\nc\\x00"
    assert len(console.printable("x" * 100_000)) < 2000
    assert format_names(["x" * 1000]) == repr("x" * 59 + "…")
    assert format_names(map(str, range(20))).endswith("and 10 more")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0123, "0.012 s"), (9.96, "10 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7300, "2 h 1 min")],
)
def test_seconds(number, text):
    assert console.format_seconds(number) == text


def test_many_axes_are_cut_and_their_sum_is_of_all():
    out = StringIO()
    from rich.console import Console

    Console(file=out, width=100).print(console.spectrum_table([0.01] * 100))
    lines = out.getvalue().splitlines()
    assert len(lines) == 1 + 12
    assert lines[-1].split()[:2] == ["100", "1.00"]
    assert "100.00 %" in lines[-1]


def test_lines_end_without_spaces(capsys):
    table = console.pairs([("a", "1"), ("longer", "of two lines\nand more")])
    console.Reporter().show(console.Result({}, [table, "", console.spectrum_table([0.9, 0.1])]))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines == [line.rstrip() for line in lines]


def test_imputed_values_are_counted_by_column():
    assert imputed(Table(None, missing={})) == []
    assert imputed(Table(None, missing={"height": 1, "age": 2})) == [
        "3 missing values imputed with column means: 2 in 'age', 1 in 'height'."
    ]
    (note,) = imputed(Table(None, missing={f"c{i}": 1 for i in range(12)}))
    assert note.endswith("1 in 'c9' and in 2 more columns.")


def test_help_names_all_formats():
    text = next(one for one in fields(Options) if one.name == "data").metadata["typer"].help
    single, folders = text.split("or a folder of")
    assert set(READERS) <= set(re.findall(r"\.[a-z0-9]+", single))
    assert {*_FOLDERS} - {*IMAGES} <= set(re.findall(r"\.[a-z0-9]+", folders.split(" files")[0]))


def test_notes_are_said_once(capsys):
    reporter = console.Reporter()
    reporter.note("one of 3 [bold]")
    reporter.note("one of 3 [bold]")
    assert capsys.readouterr().err == "note: one of 3 [bold]\n"
    assert reporter.notes == ["one of 3 [bold]"]


@pytest.mark.parametrize(
    ("name", "value", "python", "option"),
    [
        ("memory", ..., "config_context(memory=...)", "--memory"),
        ("memory", "4GiB", "config_context(memory='4GiB')", "--memory 4GiB"),
        ("n_components", 9, "n_components=9", "--components 9"),
        ("n_components", None, "n_components=None", "--components all"),
        ("n_basis", ..., "n_basis", "--basis"),
        ("svd_solver", "full", "svd_solver='full'", "--method full"),
        ("method", Subset(40), "method=Subset(40)", "--method subset --basis 40"),
        ("method", Subset(), "method=Subset()", "--method subset"),
        ("method", RandomFeatures(9), "method=RandomFeatures(9)", "method=RandomFeatures(9)"),
        ("kernel", "rbf(1) + poly(2)", "kernel='rbf(1) + poly(2)'", "--kernel 'rbf(1) + poly(2)'"),
        ("drop", ["a, b", "c"], "drop=['a, b', 'c']", """--drop '"a, b",c'"""),
        ("impute", "mean", "PCA(missing='em')", "--impute mean"),
        ("tol", 0.5, "tol=0.5", "tol=0.5"),
    ],
)
def test_parameters_in_messages(name, value, python, option):
    error = ParameterError(name, value, "is wrong.", "Owner")
    assert error.parameter == name
    assert str(error) == f"Owner: {python} is wrong."
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with parameter_format(console.as_option):
        assert format_parameter(name, value) == option
        assert str(error) == f"Owner: {option} is wrong."
    assert format_parameter(name, value) == python


def test_errors_of_the_system():
    full = OSError(errno.ENOSPC, "No space left on device")
    assert console.error_text(full) == "no space left on device."
    assert console.error_text(OSError(*full.args, "x.csv")) == "x.csv: no space left on device."


def test_the_command_can_be_run_again(tmp_path, iris, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = Options(
        data=str(iris),
        output="a b.mercer",
        kernel="rbf(0.1) + 2*poly(3)",
        components="2",
        force=True,
    )
    text = equivalent_command("fit", options)
    words = shlex.split(text)
    assert words[0] == "mercer"
    assert run(words[1:]) == 0
    assert read_header("a b.mercer")["origin"]["command"] == text
    assert run([*words[1:], "--force"]) == 0


def stopped_by(work):
    """Do some work that signals come to, and tell whether it was stopped."""
    # In the background of a shell SIGINT is ignored, here and in what a process starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with cli.interrupts():
            work()
    except KeyboardInterrupt:
        return cli.signal_code()
    finally:
        _restore(before)
    return None


def test_the_first_signal_stops_and_others_do_not():
    cleared = []

    def work():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            cleared.append(True)

    assert stopped_by(work) == 130
    assert cleared


def test_a_signal_that_comes_later_stops_again(monkeypatch):
    """A callback may have swallowed what the first raised."""
    monkeypatch.setattr(cli, "IMPATIENT", 0.0)

    def work():
        with contextlib.suppress(BaseException):  # as some packages do with an `except:`
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)

    assert stopped_by(work) == 143


def _restore(before):
    cli._received.clear()
    signal.signal(signal.SIGINT, before)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal(StringIO):
    def isatty(self):
        return True


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_bars_wait_for_what_takes_long(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "PATIENCE", 0.2)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.patient():
        with progress.task("quick", 2) as tick:
            tick(2)
        for _ in range(4):  # a name counts as one piece of work
            with progress.task("slow", 2) as tick:
                clock.now += 0.1
                tick(1)
    assert "quick" not in screen.getvalue()
    assert "slow" in screen.getvalue()
    assert threading.active_count() < 50


def test_no_bars_where_no_one_looks(monkeypatch):
    screen = StringIO()
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", screen)
    with progress.patient(), progress.task("slow", 2) as tick:
        tick(1)
    assert screen.getvalue() == ""

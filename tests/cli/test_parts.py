"""Parts of the command line by themselves: words, numbers, signals, the command again."""

import contextlib
import errno
import shlex
import signal
import sys
import threading
import time
from io import StringIO

import numpy as np
import pytest

from mercer import progress
from mercer.cli import errors, say, stops
from mercer.cli.app import run
from mercer.cli.facts import command_line
from mercer.cli.fit import Options
from mercer.data.errors import format_names
from mercer.modelfile import read_header


def test_what_json_cannot_hold():
    value = {"a": np.arange(2), "b": (np.float32(0.5), float("nan"), float("-inf")), "c": {1: None}}
    assert say.plain(value) == {"a": [0, 1], "b": [0.5, None, None], "c": {"1": None}}
    assert say.plain([True, np.bool_(False), np.int64(3)]) == [True, False, 3]


def test_text_that_would_fill_the_screen_or_move_the_cursor():
    assert say.printable("a\x1b[2Jb\nc\x00") == "a\\x1b[2Jb\nc\\x00"
    assert len(say.printable("x" * 100_000)) < 2000
    assert format_names(["x" * 1000]) == repr("x" * 59 + "…")
    assert format_names(map(str, range(20))).endswith("and 10 more")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0123, "0.012 s"), (9.96, "10 s"), (59.4, "59 s"), (61, "1 min 1 s"), (7300, "2 h 1 min")],
)
def test_seconds(number, text):
    assert say.seconds(number) == text


def test_many_axes_are_cut_and_their_sum_is_of_all():
    out = StringIO()
    from rich.console import Console

    Console(file=out, width=100).print(say.spectrum([0.01] * 100))
    lines = out.getvalue().splitlines()
    assert len(lines) == 1 + 12
    assert lines[-1].split()[:2] == ["100", "1.00"]
    assert "100.00 %" in lines[-1]


def test_notes_are_said_once(capsys):
    voice = say.Voice()
    voice.note("one of 3 [bold]")
    voice.note("one of 3 [bold]")
    assert capsys.readouterr().err == "note: one of 3 [bold]\n"
    assert voice.notes == ["one of 3 [bold]"]


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("config_context(memory=...) raises it", "--memory raises it"),
        ("n_components=9 must be", "--components 9 must be"),
        ('method="exact" takes all', "--method exact takes all"),
        ("A larger n_basis comes nearer", "A larger --basis comes nearer"),
        ("gap=0.01 finds", "--gap 0.01 finds"),
        (
            "For strings there is KernelPCA with a kernel of strings.",
            "For strings give a kernel of strings: --kernel substring.",
        ),
        ("Write one with mercer.save.", "Write one with mercer fit."),
        ("/x/.m.123.part.mercer: no", "/x/m.mercer: no"),
    ],
)
def test_words_of_the_command_line(python, said):
    assert errors.spoken(python) == said


def test_errors_of_the_system():
    full = OSError(errno.ENOSPC, "No space left on device")
    assert errors.sentence(full) == "no space left on device."
    assert errors.sentence(OSError(*full.args, "x.csv")) == "x.csv: no space left on device."


def test_the_command_can_be_run_again(tmp_path, iris, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = Options(
        data=str(iris),
        output="a b.mercer",
        kernel="rbf(0.1) + 2*poly(3)",
        components="2",
        force=True,
    )
    text = command_line("fit", asked)
    words = shlex.split(text)
    assert words[0] == "mercer"
    assert run(words[1:]) == 0
    assert read_header("a b.mercer").origin["command"] == text
    assert run([*words[1:], "--force"]) == 0


LONG = 120  # seconds: as good as forever, so that only a stop ends it


def stopped_by(work):
    """Do some work that signals come to, and tell whether it was stopped."""
    # In the background of a shell SIGINT is ignored, here and in what a process starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with stops.stops():
            work()
    except stops.Stopped:
        return stops.stopped()
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


def test_a_stop_that_a_callback_drops_comes_again():
    class Dropped:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def work():
        Dropped()  # what it raises is dropped
        time.sleep(LONG)

    assert stopped_by(work) == 143


def test_a_stop_that_an_import_drops_comes_again():
    def work():
        with contextlib.suppress(BaseException):  # as some packages do with an `except:`
            signal.raise_signal(signal.SIGTERM)
        time.sleep(LONG)

    assert stopped_by(work) == 143


def test_what_is_cleared_away_is_not_stopped_again(monkeypatch):
    cleared, looks, stopping = [], threading.Semaphore(0), stops._stopping

    def looked(found):
        looks.release()
        return stopping(found)

    def wait():  # for as many looks as say that a stop was lost, and more
        for _ in range(2 * stops._LOOKS):
            assert looks.acquire(timeout=LONG)

    monkeypatch.setattr(stops, "_stopping", looked)

    def work():
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            try:
                int("one")
            except ValueError:
                wait()
            wait()
            cleared.append(True)

    assert stopped_by(work) == 130
    assert cleared


def _restore(before):
    stops._last.clear()
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

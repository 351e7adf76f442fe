"""The command as a process: how soon it answers, what it leaves, pipes, signals, locales."""

import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import PCA, __version__

SOURCE = str(Path(__file__).resolve().parents[2] / "src")
COMMAND = [sys.executable, "-m", "mercer"]
HEAVY = (
    *("numpy", "scipy", "sklearn", "pyarrow", "numba", "pandas", "mercer.estimators"),
    *("mercer.data", "mercer.modelfile", "mercer.report", "mercer.kernels", "mercer.planning"),
)
NAMES = ("fit", "plan", "transform", "inverse", "denoise", "inspect", "report", "compare", "demo")
HELPS = ([], *([name] for name in NAMES), ["novelty"], ["novelty", "fit"], ["novelty", "score"])


def environment(**more):
    return {**os.environ, "PYTHONPATH": SOURCE, "OPENBLAS_NUM_THREADS": "1", **more}


def call(*arguments, cwd, **options):
    given = {"capture_output": True, "text": True, "timeout": 600, "env": environment(), **options}
    return subprocess.run([*COMMAND, *map(str, arguments)], cwd=cwd, **given)


def test_help_imports_nothing_heavy(tmp_path):
    code = (
        "import sys\n"
        "from mercer.cli.app import run\n"
        f"for words in {list(HELPS)!r}:\n"
        "    assert run([*words, '--help']) == 0\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Example") >= len(HELPS) - 1
    assert "--scores" in done.stdout


def test_help_answers_at_once(tmp_path):
    """As a process, from its first import: what takes long is to import much."""
    command = [sys.executable, "-X", "importtime", "-m", "mercer", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    names = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "mercer.cli.app" in names
    assert not names & set(HEAVY)
    assert len(names) < 600


def test_version(tmp_path):
    assert call("--version", cwd=tmp_path).stdout == f"mercer {__version__}\n"


def test_a_pipeline_of_commands(mercer, tmp_path, iris, X):
    mercer("fit", iris, "--components", 2, "-o", "m.mercer")
    text = iris.read_text()
    done = call("transform", "m.mercer", "-", "-o", "-", cwd=tmp_path, input=text)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].replace('"', "") == "pca0,pca1"
    assert len(lines) == 151
    scores = np.array([line.split(",") for line in lines[1:]], float)
    assert np.array_equal(scores, PCA(2).fit(X).transform(X))
    again = call("inverse", "m.mercer", "-", "-o", "-", cwd=tmp_path, input=done.stdout)
    rows = np.array([line.split(",") for line in again.stdout.splitlines()[1:]], float)
    assert np.allclose(rows, PCA(2).fit(X).reconstruct(X), atol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iris.csv", "m.mercer"]


def test_fit_from_stdin(mercer, iris, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(iris.read_bytes())))
    assert mercer("fit", "-", "-o", "m.mercer", "--json").json["rows"] == 150
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO()))
    mercer("fit", "-", "-o", "n.mercer", code=1)


def test_a_reader_that_goes_away(mercer, tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(20_000, 3)))
    mercer("fit", "x.npy", "-o", "m.mercer")
    shell = f"{sys.executable} -m mercer transform m.mercer x.npy -o - | head -1"
    shell += "; echo ${PIPESTATUS[0]}"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.stdout.splitlines()[0].replace('"', "").startswith("pca0,pca1")
    assert done.stdout.splitlines()[-1] == "141"
    assert done.stderr == ""
    shell = f"{sys.executable} -m mercer fit --help | true"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True
    )
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("ascii", b"150 rows ? 4"),
        pytest.param("latin-1", "150 rows × 4".encode("latin-1"), marks=pytest.mark.slow),
    ],
)
def test_a_terminal_that_knows_few_letters(tmp_path, iris, encoding, said):
    env = environment(PYTHONIOENCODING=encoding, PYTHONUTF8="0", LC_ALL="C")
    done = call("fit", iris, "-o", "m.mercer", cwd=tmp_path, env=env, text=False)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert b"???" in done.stdout  # the bars
    done = call("--help", cwd=tmp_path, env=env, text=False)
    assert done.returncode == 0


# Sends itself signals at a moment of the program, which comes sooner or later by the clock: when
# a module is about to be imported, or in the middle of a task.
STOPPED = """
import contextlib, os, runpy, signal, sys, threading

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
number, times, moment = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
sent = []

def send():
    for _ in range(times):  # an impatient user
        os.kill(os.getpid(), number)

def now():
    if not sent:
        sent.append(threading.Thread(target=send))
        sent[0].start()
        sent[0].join()

if moment.startswith("import "):
    name = moment.removeprefix("import ")
    sys.addaudithook(lambda event, given: event == "import" and given[0] == name and now())
else:
    from mercer import progress
    announced = progress.task

    @contextlib.contextmanager
    def task(label, total):
        with announced(label, total) as tick:
            def told(steps):
                tick(steps)
                if label == moment and threading.current_thread() is threading.main_thread():
                    now()
            yield told

    progress.task = task
sys.argv[1:] = sys.argv[4:]
runpy.run_module("mercer", run_name="__main__", alter_sys=True)
"""
NONE_WRITTEN = "Stopped: no file was written."


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("number", "code", "times", "moment", "said"),
    [
        (signal.SIGINT, 130, 1, "import mercer.cli.app", ""),
        (signal.SIGINT, 130, 2, "import mercer.cli.options", ""),
        (signal.SIGTERM, 143, 2, "import mercer.cli.options", ""),
        pytest.param(
            *(signal.SIGTERM, 143, 2, "import mercer.estimators.pca", NONE_WRITTEN),
            marks=pytest.mark.slow,
        ),
        (signal.SIGTERM, 143, 2, "kernel matrix", NONE_WRITTEN),
        pytest.param(signal.SIGINT, 130, 2, "kernel matrix", NONE_WRITTEN, marks=pytest.mark.slow),
    ],
)
def test_stopped(tmp_path, rng, number, code, times, moment, said):
    np.save(tmp_path / "x.npy", rng.normal(size=(10_000, 40)))
    (tmp_path / "m.mercer").write_text("as it was")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    arguments = ["fit", "x.npy", "--kernel", "rbf(0.01)", "--method", "exact", "--force"]
    arguments += ["--components", "30", "--memory", "1GiB", "-o", "m.mercer", "--scores", "s.csv"]
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, str(int(number)), str(times), moment, *arguments],
        cwd=tmp_path,
        env=environment(TMPDIR=str(temporary)),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.mercer", "tmp", "x.npy"]
    assert (tmp_path / "m.mercer").read_text() == "as it was"
    assert not list(temporary.iterdir())


# A clock by which only the kernel matrix takes long; its bar is drawn at every step.
SLOW = """
import runpy
from mercer import progress

class Clock:
    now = 0.0
    def monotonic(self):
        return self.now

clock = progress.time = Clock()
advance = progress.Bars.advance

def slowly(self, handle, steps):
    advance(self, handle, steps)
    if handle == self.bars.get("kernel matrix", (None,))[0]:
        clock.now += 0.5
        self.display.refresh()

progress.Bars.advance = slowly
runpy.run_module("mercer", run_name="__main__", alter_sys=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_bars_with_the_time_left_in_a_terminal(tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.normal(size=(2_000, 40)))
    slow = ["fit", "x.npy", "--kernel", "rbf(0.01)", "--method", "exact", "--components", "20"]
    seen = in_terminal([*slow, "--memory", "30MiB", "-o", "m.mercer"], tmp_path)
    assert "kernel matrix" in seen
    assert "looking for NaN" not in seen  # which takes no second
    assert re.search(r"\d:\d\d:\d\d", seen)  # the time left
    assert "2000 rows × 40 columns" in seen
    assert seen.count("\x1b[?25l") == seen.count("\x1b[?25h")  # the cursor is back


def in_terminal(arguments, cwd):
    """Run a command in a terminal of 80 columns and return all that it wrote."""
    pid, fd = pty.fork()
    if pid == 0:  # pragma: no cover (the child)
        os.chdir(cwd)
        os.environ.update(environment(COLUMNS="80", LINES="30", TERM="xterm-256color"))
        os.execv(sys.executable, [sys.executable, "-c", SLOW, *arguments])
    parts = []
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        parts.append(part)
    _, status = os.waitpid(pid, 0)
    text = b"".join(parts).decode()
    assert os.waitstatus_to_exitcode(status) == 0, text
    return text

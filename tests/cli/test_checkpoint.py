"""Runs that are killed, and go on when the same command is given again."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer import threads
from mercer.checkpoint import folder
from mercer.modelfile import load, read_header
from tests.cli.test_process import environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

# Ends itself, as the kernel would that has no memory left, instead of writing so many files.
KILLED = """
import os, signal, sys
from mercer.checkpoint import folder
from mercer.cli import main

write, left, name = folder.Checkpoint.write, [int(sys.argv[1])], sys.argv[2]
def counted(self, number, arrays):
    if left[0] == 0:
        os.kill(os.getpid(), getattr(signal, name))
    left[0] -= 1
    return write(self, number, arrays)
folder.Checkpoint.write = counted
sys.argv[1:] = sys.argv[3:]
sys.exit(main())
"""
FIT = ["fit", "x.npy", "--kernel", "rbf", "--scale", "zscore", "--impute", "mean"]
FIT += ["--components", "3", "--method", "exact", "--memory", "64MiB", "--scores", "s.csv"]
KEPT = ["--checkpoint", "run", "--checkpoint-seconds", "1e-6"]


def killed(cwd, arguments, files, number="SIGKILL"):
    """Run a command that is killed when it is about to write another file."""
    env = environment(OPENBLAS_NUM_THREADS=str(threads.workers()))
    words = [sys.executable, "-c", KILLED, str(files), number, *arguments]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.stdout == ""
    return done


@pytest.fixture(autouse=True)
def _one_thread():
    """The child's passes and ours are cut alike: one worker takes all blocks."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def passed(monkeypatch):
    """Blocks that were computed, one after the other."""
    seen, turn = [], folder.RecordedPass.step

    def counted(self, worker):
        seen.append(self.state.label)
        return turn(self, worker)

    monkeypatch.setattr(folder.RecordedPass, "step", counted)
    return seen


@pytest.fixture
def x(tmp_path, rng):
    X = rng.normal(size=(400, 12))
    X[3, 4] = np.nan
    np.save(tmp_path / "x.npy", X)
    return X


def names(path):
    return sorted(each.name for each in path.iterdir())


def test_a_killed_fit_goes_on_and_gives_the_same_model(mercer, tmp_path, x, passed):
    mercer(*FIT, "-o", "m.mercer", "--checkpoint", "other", *KEPT[2:])
    whole, scores = load("m.mercer"), (tmp_path / "s.csv").read_bytes()
    origin = read_header("m.mercer")["origin"]
    assert names(tmp_path) == ["m.mercer", "s.csv", "x.npy"]
    for name in ("m.mercer", "s.csv"):
        (tmp_path / name).unlink()
    once = len(passed)
    passed.clear()

    command = [*FIT, "-o", "m.mercer", *KEPT]
    assert killed(tmp_path, command, 16).returncode == -signal.SIGKILL
    (tmp_path / "run" / "mercer-run.lock").unlink()  # of a process that is no more
    kept = names(tmp_path / "run")
    assert len(kept) > 5
    assert kept[0] == "mercer-run.json"
    assert names(tmp_path) == ["run", "x.npy"]

    refused = [
        ("Its --components: 3. This fit's: 4.", ["--components", "4"]),
        ("Its scale: 'zscore'. This fit's: 'none'.", ["--scale", "none"]),
        ("Its --seed: 0. This fit's: 1.", ["--seed", "1"]),
        ("memory=64.0 MiB. This fit's: mercer", ["--memory", "65MiB"]),
    ]
    for said, other in refused:
        done = mercer(*command, *other, code=1)
        assert said in done.err
        assert "set --checkpoint to another folder" in done.err
    np.save("x.npy", x + 1.0)
    done = mercer(*command, code=1)
    assert "run holds the checkpoint of another fit. Its rows: '400x12 float64" in done.err
    assert names(tmp_path / "run") == kept
    assert not passed

    np.save("x.npy", x)
    done = mercer(*command)
    assert "resuming from the checkpoint in run" in done.err
    assert 0 < len(passed) < once - 10
    assert names(tmp_path) == ["m.mercer", "s.csv", "x.npy"]
    again = load("m.mercer")
    assert np.array_equal(again[1].scale_, whole[1].scale_)
    assert np.array_equal(again[2].eigenvectors_, whole[2].eigenvectors_)
    assert repr(again[2].certificate_) == repr(whole[2].certificate_)
    assert (tmp_path / "s.csv").read_bytes() == scores
    assert read_header("m.mercer")["origin"] == origin


@pytest.mark.slow
def test_what_is_stopped_says_that_it_can_go_on(mercer, tmp_path, x):
    command = ["novelty", *FIT[:-2], "-o", "m.mercer", *KEPT]
    done = killed(tmp_path, command, 8, "SIGTERM")
    assert done.returncode == 143
    assert "no file was written. The same command resumes from run." in done.stderr
    assert names(tmp_path) == ["run", "x.npy"]
    mercer(*command)
    assert names(tmp_path) == ["m.mercer", "x.npy"]
    again = load(tmp_path / "m.mercer")
    mercer(*command[: command.index("-o")], "-o", "n.mercer")
    assert again[-1].offset_ == load(tmp_path / "n.mercer")[-1].offset_


def test_a_fit_whose_files_cannot_be_written_keeps_what_it_did(mercer, tmp_path, x, monkeypatch):
    command = [*FIT, "-o", "m.mercer", *KEPT]
    with monkeypatch.context() as full:
        full.setattr("mercer.save", lambda *_, **__: 1 / 0, raising=False)
        mercer(*command, code=1)
    assert names(tmp_path) == ["run", "x.npy"]
    computed = folder.Checkpoint.write
    monkeypatch.setattr(folder.Checkpoint, "write", lambda *_: pytest.fail("computed again"))
    mercer(*command)
    monkeypatch.setattr(folder.Checkpoint, "write", computed)
    assert names(tmp_path) == ["m.mercer", "s.csv", "x.npy"]


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["--checkpoint", "x.npy"], 1, "x.npy is a file. Pass the path of a folder."),
        (["--checkpoint", "run", "--checkpoint-seconds", "0"], 2, "above 0"),
        (["--checkpoint", "run", "--checkpoint-seconds", "nan"], 2, "above 0"),
    ],
)
def test_folders_and_intervals_that_are_none(mercer, tmp_path, x, given, code, said):
    assert said in mercer(*FIT, "-o", "m.mercer", *given, code=code).err
    assert names(tmp_path) == ["x.npy"]

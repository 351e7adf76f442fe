"""Long runs: killed at any moment, gone on with, the same in the end; and what is refused."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
    as_source,
    config_context,
    threads,
)
from mercer.checkpoint import CheckpointError, describe
from mercer.checkpoint import folder as running
from mercer.kernels import RBF
from mercer.landmarks import KMeans
from mercer.methods import (
    Cholesky,
    Exact,
    FrequentDirections,
    Hebbian,
    RandomFeatures,
    Sketch,
    Subset,
)
from mercer.sketches import Gaussian
from tests.catalogue import others_slow

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 12)) * np.linspace(3, 1, 12) + 5.0
Y = np.repeat([0, 1, 2], 100)
WIDE = RNG.normal(size=(40, 300))

CASES = {
    "covariance": (PCA(3, svd_solver="covariance_eigh"), X),
    "covariance, float32": (PCA(3, svd_solver="covariance_eigh"), X.astype(np.float32)),
    "svd": (PCA(3, svd_solver="full", scale=True), X),
    "krylov": (PCA(2, svd_solver="krylov"), X),
    "krylov, float32": (PCA(2, svd_solver="krylov"), X.astype(np.float32)),
    "krylov, sparse": (PCA(2, svd_solver="krylov"), sparse.random(300, 40, 0.1, "csr", rng=3)),
    "dot": (PCA(3, svd_solver="dot"), WIDE),
    "krylov of dot products": (PCA(3, svd_solver="krylov"), WIDE),
    "power": (PCA(2, svd_solver="power", tol=1e-3), X),
    "arpack": (PCA(2, svd_solver="arpack"), X),
    "randomized": (PCA(2, svd_solver="randomized"), X),
    "sketch": (PCA(2, svd_solver=Sketch(Gaussian(6))), X),
    "sketch of no given size": (PCA(2, svd_solver="sketch", gap=0.1), X),
    "frequent directions": (PCA(2, svd_solver=FrequentDirections(8)), X),
    "exact": (KernelPCA(3, kernel=RBF(0.02), method=Exact(solver="krylov", store="none")), X),
    "exact, kept": (KernelPCA(3, kernel=RBF(0.02), method="exact"), X),
    "subset": (KernelPCA(3, kernel=RBF(0.02), method=Subset(50)), X),
    "subset of k-means": (KernelPCA(3, kernel=RBF(0.02), method=Subset(20, KMeans())), X),
    "nystrom": (KernelPCA(3, kernel=RBF(0.02), method="nystrom"), X),
    "cholesky": (KernelPCA(3, kernel=RBF(0.02), method=Cholesky(10)), X),
    "features": (KernelPCA(3, kernel=RBF(0.02), method=RandomFeatures(40)), X),
    "hebbian": (KernelPCA(2, kernel=RBF(0.02), method=Hebbian(n_basis=8, max_passes=3)), X),
    "gap": (KernelPCA(2, kernel=RBF(0.02), gap=0.2), X),
}

_BY_TWO = ("covariance", "krylov", "subset")
_LIKE_OTHERS = ("covariance, float32", "krylov, float32", "exact, kept")
_BY_TWO_TOO = ("svd", "dot", "sketch", "exact", "features")


class Killed(BaseException):
    """Ends a fit as a signal would: nothing tidies up after it."""


@pytest.fixture(autouse=True)
def _one_thread():
    """How many files a pass writes must not depend on the machine."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def meticulous(monkeypatch):
    """Save after every block and every pass; count blocks, and stop after so many files."""

    class Watch:
        left, files = 10**9, 0
        blocks = 0

    write, turn = running.Checkpoint.write, running.RecordedPass.step

    def counted_write(self, number, arrays):
        if Watch.left == 0:
            raise Killed
        Watch.left, Watch.files = Watch.left - 1, Watch.files + 1
        return write(self, number, arrays)

    def counted_turn(self, worker):
        Watch.blocks += 1
        return turn(self, worker)

    monkeypatch.setattr(running, "_WORTH", 0.0)
    monkeypatch.setattr(running.Checkpoint, "write", counted_write)
    monkeypatch.setattr(running.RecordedPass, "step", counted_turn)
    return Watch


def fitted(estimator, rows, folder, seconds=1e-9, **settings):
    rows_each = {"block_rows": 64, **settings}
    with config_context(checkpoint=folder, checkpoint_seconds=seconds, **rows_each):
        model = clone(estimator)
        return model.fit_transform(rows), model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("case", "workers"),
    [
        *(
            pytest.param(case, 1, marks=pytest.mark.slow if case in _LIKE_OTHERS else ())
            for case in CASES
        ),
        *((case, 2) for case in _BY_TWO),
        *(pytest.param(case, 2, marks=pytest.mark.slow) for case in _BY_TWO_TOO),
    ],
)
def test_a_killed_fit_goes_on_and_ends_the_same(case, workers, meticulous, monkeypatch, tmp_path):
    busy = threads._worker
    monkeypatch.setattr(threads, "workers", lambda: 1 if getattr(busy, "busy", False) else workers)
    estimator, rows = CASES[case]
    estimator = estimator.set_params(random_state=7)
    folder = tmp_path / "kept"
    expected, model = fitted(estimator, rows, folder)
    plain, _ = fitted(estimator, rows, None)
    np.testing.assert_array_equal(expected, plain)  # to save changes nothing
    once, files, meticulous.blocks = meticulous.blocks, meticulous.files, 0
    lots, kills = random.Random(case), 0
    while True:
        meticulous.left = lots.randrange(1, 2 + files // 3)
        try:
            found, again = fitted(estimator, rows, folder)
            break
        except Killed:
            kills += 1
            assert list(folder.glob("mercer-step-*.npz"))
    assert kills > 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert again.certificate_.captured == pytest.approx(model.certificate_.captured, rel=1e-12)
    # A block a worker is lost each time, and what one pass does after it was saved last.
    assert meticulous.blocks <= once + 4 * kills
    assert not folder.exists()


def slow(rows):
    """Return rows of which every block takes some milliseconds."""

    def wait(block):
        time.sleep(0.004 if block.length > 1 else 0.0)
        return block.rows

    return as_source(rows).map(wait, rows.shape[1])


KILLED = {
    "covariance": PCA(3, svd_solver="covariance_eigh"),
    "svd": PCA(3, svd_solver="full"),
    "krylov": PCA(2, svd_solver="krylov"),
    "sketch": PCA(2, svd_solver=Sketch(Gaussian(6))),
    "exact": KernelPCA(2, kernel=RBF(0.02), method=Exact(solver="krylov", store="none")),
    "subset": KernelPCA(3, kernel=RBF(0.02), method=Subset(30)),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", others_slow(KILLED, "covariance", "subset"))
def test_sigkill_at_a_random_moment(case, tmp_path):
    folder, out = tmp_path / "kept", tmp_path / "scores.npy"
    estimator, rows = KILLED[case].set_params(random_state=3), slow(X)
    begun = time.monotonic()
    expected = np.asarray(fitted(estimator, rows, None, block_rows=16)[0])
    lasts = time.monotonic() - begun
    for delay in sorted(random.Random(case).uniform(0.1, 0.9) * lasts for _ in range(3)):
        child = os.fork()
        if child == 0:
            scores, _ = fitted(estimator, rows, folder, 0.01, block_rows=16)
            np.save(out, np.asarray(scores))
            os._exit(0)
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    scores, _ = fitted(estimator, rows, folder, 0.01, block_rows=16)
    found = np.asarray(scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    # A fit that was killed before it could say that the folder is its own leaves it, empty.
    assert not folder.exists() or not list(folder.iterdir())


SCRIPT = """
import os, signal, sys
import numpy as np
from mercer import KernelPCA, config_context
from mercer.checkpoint import folder
from mercer.kernels import RBF
from mercer.methods import Subset

folder._WORTH = 0.0
write, left = folder.Checkpoint.write, [int(sys.argv[2])]
def counted(self, number, arrays):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    return write(self, number, arrays)
folder.Checkpoint.write = counted
X = np.random.default_rng(5).normal(size=(300, 12))
model = KernelPCA(3, kernel=RBF(0.02), method=Subset(30))  # drawn by no random_state
with config_context(checkpoint=sys.argv[1], checkpoint_seconds=1e-9, block_rows=16):
    model.fit(X)
np.savez(sys.argv[3], values=model.eigenvalues_, basis=model.X_fit_)
"""


def test_another_process_goes_on_with_the_same_random_numbers(tmp_path):
    folder, out = tmp_path / "kept", tmp_path / "found.npz"
    command = [sys.executable, "-c", SCRIPT, str(folder)]
    killed = subprocess.run([*command, "9", str(out)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with (folder / "mercer-run.json").open() as file:
        seed = dict(json.load(file)["facts"])["seed"]
    (folder / ".mercer-step-000009.123.part.npz").write_bytes(b"half")
    subprocess.run([*command, "9999", str(out)], check=True)
    assert not folder.exists()
    rows = np.random.default_rng(5).normal(size=(300, 12))
    found = np.load(out)
    rng = np.random.default_rng(int(seed))
    drawn = np.sort(rng.choice(300, 30, replace=False, shuffle=False))  # as Uniform does
    np.testing.assert_array_equal(found["basis"], rows[drawn])
    again = KernelPCA(3, kernel=RBF(0.02), method=Subset(select=rows[drawn])).fit(rows)
    np.testing.assert_allclose(found["values"], again.eigenvalues_, rtol=1e-12)


def stopped(estimator, rows, folder, meticulous, files=6, **settings):
    """Leave the checkpoint of a fit that was killed."""
    meticulous.left = files
    with pytest.raises(Killed):
        fitted(estimator, rows, folder, **settings)
    meticulous.left = 10**9


def test_another_fit_is_refused(meticulous, tmp_path):
    folder = tmp_path / "kept"
    stopped(PCA(3, svd_solver="full"), X, folder, meticulous)
    kept = sorted(path.read_bytes() for path in folder.iterdir())
    others = [
        (PCA(4, svd_solver="full"), X, {}, "n_components: 3. This fit's: 4"),
        (PCA(3, svd_solver="krylov"), X, {}, "svd_solver: 'full'. This fit's: 'krylov'"),
        (KernelPCA(3), X, {}, "estimator: PCA. This fit's: KernelPCA"),
        (PCA(3, svd_solver="full"), X + 1.0, {}, "rows: '300x12 float64"),
        (PCA(3, svd_solver="full"), X[:-1], {}, "This fit's: '299x12 float64"),
        (PCA(3, svd_solver="full"), X, {"block_rows": 50}, "block_rows=64. This fit's: .*=50"),
        (PCA(3, svd_solver="full"), X, {"memory": "1GiB"}, r"memory=1\.0 GiB"),
    ]
    for estimator, rows, settings, says in others:
        with pytest.raises(CheckpointError, match=says) as refused:
            fitted(estimator, rows, folder, **settings)
        assert str(folder) in str(refused.value)
        assert "config_context(checkpoint=...)" in str(refused.value)
        assert sorted(path.read_bytes() for path in folder.iterdir()) == kept
    weighing = config_context(checkpoint=folder, block_rows=64)
    with weighing, pytest.raises(CheckpointError, match="weights: None"):
        PCA(3, svd_solver="full").fit(X, sample_weight=np.arange(1.0, 301.0))
    fitted(PCA(3, svd_solver="full"), X, folder)  # the one that it is of
    assert not folder.exists()
    fitted(PCA(4, svd_solver="full"), X, folder)


def test_no_space_is_warned_of_once_and_the_fit_goes_on(meticulous, monkeypatch, tmp_path):
    folder = tmp_path / "kept"
    stopped(PCA(3, svd_solver="full"), X, folder, meticulous)
    before = sorted(folder.iterdir())

    def full(file, **arrays):
        file.write(b"some of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        patch.setattr(running.Checkpoint, "clear", lambda self: None)
        with pytest.warns(UserWarning, match="no room to write the file") as warned:
            found, _ = fitted(PCA(3, svd_solver="full"), X, folder)
    assert [w.category for w in warned] == [UserWarning]
    assert "test_checkpoint" in warned[0].filename
    assert sorted(folder.iterdir()) == before  # nothing half written, nothing lost
    np.testing.assert_array_equal(found, fitted(PCA(3, svd_solver="full"), X, None)[0])


def test_a_damaged_step_is_done_again(meticulous, tmp_path):
    folder, model = tmp_path / "kept", PCA(2, svd_solver="krylov", random_state=0)
    stopped(model, X, folder, meticulous, files=12)
    first, *_, last = sorted(folder.glob("mercer-step-*.npz"))
    first.write_bytes(first.read_bytes()[:-40])
    assert last != first
    expected = fitted(model, X, None)[0]
    np.testing.assert_array_equal(fitted(model, X, folder)[0], expected)
    stopped(model, X, folder, meticulous, files=12)
    (folder / "mercer-run.json").write_text("{")
    with pytest.raises(CheckpointError, match="damaged"):
        fitted(model, X, folder)


def test_only_what_is_ours_is_removed(meticulous, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "rows.npz").write_bytes(b"of the user")
    fitted(PCA(2), X, folder)
    assert meticulous.files > 0
    assert [path.name for path in folder.iterdir()] == ["rows.npz"]
    with pytest.raises(CheckpointError, match="is a file"):
        fitted(PCA(2), X, folder / "rows.npz")


def test_a_short_fit_writes_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(running.Checkpoint, "write", lambda *_: pytest.fail("written"))
    monkeypatch.setattr(running, "_FILE", 60.0)
    with config_context(checkpoint=tmp_path / "kept"):
        PCA(2).fit(X)
    assert not (tmp_path / "kept").exists()


@pytest.mark.filterwarnings("ignore")
def test_estimators_around_others_are_one_run(meticulous, tmp_path):
    folder = tmp_path / "kept"
    models = [
        lambda: SubspaceClassifier(PCA(2, svd_solver="krylov")).fit(X, Y).estimators_,
        lambda: [NoveltyDetector(PCA(2), cv=3).fit(X).estimator_],
        lambda: [Denoiser(PCA(), n_components=[1, 2], noise=0.5).fit(X).estimator_],
        lambda: [NearestProjection(PCA(2)).fit(X, Y).estimator_],
    ]
    for fit in models:
        expected = [model.components_ for model in fit()]
        for files in (9, 5, 3, 10**9):
            meticulous.left = files
            try:
                with config_context(checkpoint=folder, checkpoint_seconds=1e-9, block_rows=16):
                    found = [model.components_ for model in fit()]
            except Killed:
                assert folder.exists()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        assert not folder.exists()


def test_batches_are_not_kept(meticulous, tmp_path):
    with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=1e-9):
        PCA(2).partial_fit(X).partial_fit(X)
    assert meticulous.files == 0


STEP = {"place": np.array("a fold"), "sum": np.zeros(3)}


def begun(folder, rows):
    """Return a run of rows that are known by this text."""
    run = running.Checkpoint(folder, 0.5)
    run.note("rows", rows)
    return run


def test_a_folder_has_one_owner_at_a_time(tmp_path):
    folder = tmp_path / "kept"
    first = begun(folder, "a")
    assert first.write("000001", STEP)
    with pytest.raises(CheckpointError, match=r"kept holds .* that is still running\. Wait for it"):
        begun(folder, "a")
    first.close()
    second = begun(folder, "a")
    assert second.read("000001", "a fold") is not None
    second.clear()
    assert not folder.exists()


def test_a_run_that_comes_late_is_refused_and_removes_nothing(tmp_path):
    """Nothing may be written yet: the steps of two must not lie beside each other."""
    folder = tmp_path / "kept"
    first = begun(folder, "a")
    with pytest.raises(CheckpointError, match="a fit that is still running"):
        begun(folder, "b")
    assert first.write("000001", STEP)
    with pytest.raises(CheckpointError, match="a fit that is still running"):
        begun(folder, "b")
    first.close()  # as when it is killed
    again = begun(folder, "a")
    assert again.read("000001", "a fold") is not None
    again.clear()
    assert not folder.exists()


def test_steps_without_a_header_are_removed(tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "mercer-step-000001.npz").write_bytes(b"of no fit")
    run = begun(folder, "a")
    assert not (folder / "mercer-step-000001.npz").exists()
    run.close()
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_to(meticulous, monkeypatch, tmp_path):
    """What it holds is used, and nothing in it is changed."""
    folder, model = tmp_path / "kept", PCA(3, svd_solver="full")
    stopped(model, X, folder, meticulous)
    before = sorted(folder.iterdir())

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        patch.setattr(os, "unlink", refuse)
        patch.setattr(os, "rmdir", refuse)
        patch.setattr(running, "write_atomically", refuse)
        patch.setattr(Path, "unlink", refuse)
        with pytest.warns(UserWarning, match="could not be written .*Read-only file system"):
            found, _ = fitted(model, X, folder)
    assert sorted(folder.iterdir()) == before
    np.testing.assert_array_equal(found, fitted(model, X, None)[0])


def test_two_fits_of_one_process_do_not_share_a_folder(meticulous, tmp_path):
    folder = tmp_path / "kept"
    model, other = PCA(3, svd_solver="covariance_eigh"), PCA(3, svd_solver="covariance_eigh")
    stopped(model, X, folder, meticulous, files=2)
    held = running.Checkpoint(folder, 0.5)
    with pytest.raises(CheckpointError, match="a fit that is still running"):
        fitted(other, X + 1.0, folder)
    held.close()
    np.testing.assert_array_equal(fitted(model, X, folder)[0], fitted(model, X, None)[0])


def test_descriptions_tell_parameters_apart():
    rows = np.arange(6.0).reshape(3, 2)
    assert describe(RBF(0.5)) == "RBF(gamma=0.5)" != describe(RBF(0.25))
    assert describe([len, None, 1.0]) == "[builtins.len, None, 1.0]"
    assert describe(rows) == describe(rows.copy()) != describe(rows + 1)
    assert describe(sparse.csr_array(rows)) != describe(sparse.csr_array(rows + 1))
    assert describe(lambda x: x + 1) != describe(lambda x: x + 2)
    assert describe(np.random.RandomState(0)) == describe(np.random.RandomState(1))
    assert describe(list(range(1000))) != describe([*range(999), 0])
    assert "0x" not in describe([len, lambda: 0, rows, PCA(2), object()])


@pytest.mark.parametrize("bad", [{"checkpoint": 3}, {"checkpoint": ""}, {"checkpoint_seconds": 0}])
def test_settings_that_are_none(bad):
    with pytest.raises(ValueError, match="checkpoint"), config_context(**bad):
        pass

"""Recorded passes over Dask chunks: a saved round is not computed again."""

import contextlib

import numpy as np
import pytest

from mercer import PCA, as_source, config_context
from mercer.checkpoint import check_same, checkpointed
from mercer.linalg import DirectionsSketch, Moments
from mercer.progress import PassRecord, Recorder, recorded_by

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
chunks = pytest.importorskip("mercer.data.dask.chunks")

N, D, SIZE = 103, 6, 5
COUNT = -(-N // SIZE)
ROWS = np.random.default_rng(0).normal(size=(N, D)) * np.linspace(5, 0.3, D) + 2.0


class Killed(BaseException):
    """Ends a fit as a signal would."""


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def counted():
    """Rows whose chunks record that they are computed, and kill the fit at a given one."""
    seen, fatal = [], []

    def count(chunk, block_info=None):
        number = block_info[0]["chunk-location"][0]
        if fatal and len(seen) == fatal[0]:
            fatal.clear()
            raise Killed
        seen.append(number)
        return chunk

    rows = da.from_array(ROWS, chunks=(SIZE, D))
    return rows.map_blocks(count, dtype=float, meta=np.empty((0, D))), seen, fatal


def fold(X, make=Moments):
    """Return the state of a pass, which is recorded if there is a checkpoint."""
    state = Moments(D, np.empty(0), np.float64) if make is Moments else make(D, 4, np.empty(0))
    with checkpointed():
        check_same(rows="some")
        return as_source(X).fold(state).arrays()


def same_bits(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


class TestRounds:
    @pytest.mark.parametrize(
        ("make", "most", "seconds"),
        [
            (Moments, 256, [1e-9, 3e-3, 60.0]),
            (Moments, 16, [1e-9, 60.0]),
            (DirectionsSketch, 16, [1e-9, 3e-3, 60.0]),
        ],
    )
    def test_the_same_bits_as_without(self, make, most, seconds, tmp_path, monkeypatch):
        X = da.from_array(ROWS, chunks=(SIZE, D))
        monkeypatch.setattr(chunks, "ROUND_CHUNKS", most)
        wanted = fold(X, make)
        for interval in seconds:
            with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=interval):
                same_bits(fold(X, make), wanted)

    @pytest.mark.parametrize("make", [Moments, DirectionsSketch])
    def test_what_was_saved_is_not_done_again(self, counted, make, tmp_path):
        X, seen, fatal = counted
        wanted = fold(X, make)
        assert sorted(seen) == list(range(COUNT))
        for at in (17, COUNT - 1):
            seen.clear()
            fatal[:] = [at]
            with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=1e-9):
                with pytest.raises(Killed):
                    fold(X, make)
                done = len(seen)
                found = fold(X, make)
            assert done == at
            assert len(seen) <= COUNT + 2  # the round that was killed
            assert set(seen) == set(range(COUNT))
            same_bits(found, wanted)

    def test_a_fit_that_is_killed_often(self, counted, tmp_path):
        X, seen, fatal = counted
        pca, kills = PCA(3, svd_solver="covariance_eigh"), 0
        wanted = pca.fit(X).components_
        with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=1e-9):
            seen.clear()
            pca.fit(X)
            once = len(seen)
            seen.clear()
            while True:
                # Each time some rows are sampled first, and the fingerprint is computed.
                fatal[:] = [len(seen) + once - COUNT + 8]
                try:
                    found = pca.fit(X).components_
                    break
                except Killed:
                    kills += 1
                    assert kills < 9
        assert kills == 2
        np.testing.assert_array_equal(found, wanted)
        assert len(seen) <= once + kills * (once - COUNT + 2)

    @pytest.mark.parametrize(
        ("options", "size"),
        [
            ({}, 2),
            ({"resumable": False}, 16),
            ({"states": 3}, 4),  # the memory holds three states
            ({"num_workers": 3}, 8),
        ],
    )
    def test_rounds_of_a_recorded_pass(self, options, size, monkeypatch):
        seen, ends = [], [0]
        monkeypatch.setattr(chunks, "ROUND_CHUNKS", 16)

        def count(chunk):
            seen.append(len(chunk))
            return chunk

        class Steps(Recorder, PassRecord):
            """Records the number of chunks after every step."""

            @contextlib.contextmanager
            def record(self, state, layout):
                yield self

            def begin(self, parts):
                return [0] * len(parts)

            @contextlib.contextmanager
            def step(self, worker):
                yield
                ends.append(len(seen))

            def seed(self, drawn):
                return drawn

        X = da.from_array(ROWS[:64], chunks=(1, D))
        source = as_source(X.map_blocks(count, dtype=float, meta=np.empty((0, D))))
        state = Moments(D, np.empty(0), np.float64)
        state.resumable = options.get("resumable", True)
        memory = 4 * state.nbytes * options["states"] if "states" in options else None
        workers = options.get("num_workers", 1)
        schedule = {"scheduler": "threads" if workers > 1 else "synchronous"}
        with (
            config_context(checkpoint_seconds=60.0, **({"memory": memory} if memory else {})),
            dask.config.set(num_workers=workers, **schedule),
            recorded_by(Steps()),
        ):
            source.fold(state)
        assert ends[-1] == 64
        assert set(np.diff(ends)) == {size}

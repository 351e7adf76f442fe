"""Passes over Dask chunks that are kept: what a saved round has done is not done again."""

import numpy as np
import pytest
from mercer.data.checkpoint import folder as running

from mercer import PCA, as_source, config_context
from mercer.linalg import DirectionsSketch, Moments

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
chunks = pytest.importorskip("mercer.data.dask.chunks")
rounds = pytest.importorskip("mercer.data.dask.rounds")

N, D, SIZE = 203, 6, 5
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
    """Rows whose chunks tell that they are computed, and kill at one of them if they are to."""
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
    """Return what a pass over rows amounts to; kept, where that is asked for."""
    state = Moments(D, np.empty(0), np.float64) if make is Moments else make(D, 4, np.empty(0))
    with running.run():
        running.same(rows="some")
        return as_source(X).fold(state).arrays()


def same_bits(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


class TestRounds:
    @pytest.mark.parametrize("make", [Moments, DirectionsSketch])
    @pytest.mark.parametrize("seconds", [1e-9, 3e-3, 60.0])
    def test_the_same_bits_as_without(self, make, seconds, tmp_path, monkeypatch):
        X = da.from_array(ROWS, chunks=(SIZE, D))
        for once in (256, 16):
            monkeypatch.setattr(chunks, "_ONCE", once)
            wanted = fold(X, make)
            with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=seconds):
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
            assert len(seen) <= COUNT + 2  # what the round in course had done
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
                # Some rows are looked at first, and the fingerprint is made: every time.
                fatal[:] = [len(seen) + once - COUNT + 16]
                try:
                    found = pca.fit(X).components_
                    break
                except Killed:
                    kills += 1
                    assert kills < 9
        assert kills == 2
        np.testing.assert_array_equal(found, wanted)
        assert len(seen) <= once + kills * (once - COUNT + 2)

    def test_rounds_are_as_long_as_the_interval_asks(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr(rounds.time, "monotonic", lambda: now[0])
        state, X = Moments(D, np.empty(0), np.float64), as_source(da.from_array(ROWS))

        def sizes(each, kept):
            made = rounds.Rounds(state.spawn(), X.chunks.errand(X, state), 256, kept=kept)
            while made.done < 1024:
                yield made.size
                with made.timed(made.size):
                    now[0] += each * made.size
                made.add(state.spawn().arrays(), made.size, last=False)

        with config_context(checkpoint_seconds=60.0):
            assert set(sizes(60.0, True)) == {2, 1}
            assert max(sizes(1.0, True)) == 8  # a quarter of the interval, at most
            assert 256 in sizes(1e-3, True)
            assert set(sizes(60.0, False)) == {256}
        with config_context(memory=4 * state.nbytes * 3, checkpoint_seconds=60.0):
            assert min(sizes(60.0, True)) == 256 >> 3  # no more than three states wait here
        with dask.config.set(scheduler="threads", num_workers=6):
            assert min(sizes(60.0, True)) == 8

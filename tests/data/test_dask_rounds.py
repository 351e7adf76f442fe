"""Recorded passes over Dask chunks: a saved round is not computed again."""

import numpy as np
import pytest

from mercer import PCA, as_source, config_context
from mercer.checkpoint import check_same, checkpointed
from mercer.linalg import DirectionsSketch, Moments

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
chunks = pytest.importorskip("mercer.data.dask.chunks")

N, D, SIZE = 103, 6, 5
COUNT, ROUND = -(-N // SIZE), 2
ROWS = np.random.default_rng(0).normal(size=(N, D)) * np.linspace(5, 0.3, D) + 2.0


class Killed(BaseException):
    """Ends a fit as a signal would."""


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(chunks, "ROUND_CHUNKS", ROUND)
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
    @pytest.mark.parametrize("make", [Moments, DirectionsSketch])
    def test_the_same_bits_as_without(self, make, tmp_path):
        X = da.from_array(ROWS, chunks=(SIZE, D))
        wanted = fold(X, make)
        with config_context(checkpoint=tmp_path / "kept", checkpoint_seconds=1e-9):
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
            assert len(seen) <= COUNT + ROUND  # the round that was killed
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
                # Each time some rows are sampled first, and the digest is computed.
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

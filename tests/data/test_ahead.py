"""Blocks read ahead: the same rows, two at a time, and no thread left behind."""

import os
import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer import PCA, as_source, config_context
from mercer.config import get_config
from mercer.data import NonFiniteSearch, NpySource, Source
from mercer.data.files import FileError
from mercer.data.source import read_ahead

SPANS = [(i, i + 1) for i in range(6)]


def readers():
    return [t for t in threading.enumerate() if t.name.startswith("mercer-read")]


@pytest.fixture(autouse=True)
def _no_thread_left():
    yield
    assert readers() == []


class Slow(Source):
    """Rows that must be waited for; says who reads, and how many are read and not yet used."""

    waits = True

    def __init__(self, n=12):
        self.shape, self.dtype = (n, 3), np.dtype(np.float64)
        self.names_, self.budgets = set(), set()
        self.begun, self.broken = 0, None
        self.reads = threading.Semaphore(0)

    def read(self, start, stop):
        self.begun += 1
        self.reads.release()
        self.names_.add(threading.current_thread().name)
        self.budgets.add(get_config().budget)
        if self.broken is not None and start >= self.broken:
            raise OSError("the disk is gone")
        return np.full((stop - start, 3), float(start))


def test_order_and_lead():
    begun, used, reads = [], [], threading.Semaphore(0)

    def read(start, stop):
        begun.append(start)
        reads.release()
        return start

    for i in read_ahead(read, SPANS):
        if len(used) < 5:
            assert reads.acquire(timeout=60)
        assert len(begun) <= len(used) + 2  # the one in use, and one more
        used.append(i)
    assert used == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_read_ahead(count):
    seen = []
    read = lambda start, stop: seen.append(threading.current_thread()) or start  # noqa: E731
    assert list(read_ahead(read, SPANS[:count])) == list(range(count))
    assert set(seen) <= {threading.current_thread()}


def test_reading_and_working_overlap():
    source = Slow(n=10)
    for block in source.blocks(1):
        # While one block is in use the next is read: two reads have begun at the first.
        for _ in range(2 if block.start == 0 else int(block.start < 9)):
            assert source.reads.acquire(timeout=60)
    assert source.begun == 10
    assert all(name.startswith("mercer-read") for name in source.names_)


@pytest.mark.parametrize("workers", [1, 2])
def test_settings_hold_in_the_thread(monkeypatch, workers):
    monkeypatch.setattr("mercer.threads.workers", lambda: workers)
    source = Slow()
    with config_context(memory="77MiB", block_rows=2):
        source.collect()
    assert source.budgets == {77 * 2**20}


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_where_its_rows_are_due(monkeypatch, workers):
    monkeypatch.setattr("mercer.threads.workers", lambda: workers)
    source = Slow()
    source.broken = 6
    with config_context(block_rows=2), pytest.raises(OSError, match="the disk is gone"):
        source.fold(NonFiniteSearch())
    seen = []
    with pytest.raises(OSError, match="the disk is gone"):
        seen.extend(block.start for block in source.blocks(2))
    assert seen == [0, 2, 4]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_an_end_half_way(kind):
    class Ends(NonFiniteSearch):
        def add(self, block):
            if block.start >= 4:
                raise kind

        def spawn(self):
            return Ends()

    source = Slow()
    with config_context(block_rows=1), pytest.raises(kind):
        source.fold(Ends())
    assert source.begun <= 11
    for _ in source.blocks(1):
        break
    assert readers() == []


def test_what_is_computed_is_computed_by_who_needs_it():
    source, by = Slow(), set()

    def f(block):
        by.add(threading.current_thread().name)
        return block.rows[:, :1]

    found = [block.rows[0, 0] for block in source.map(f, 1).blocks(4)]
    assert found == [0.0, 4.0, 8.0]
    assert by == {threading.current_thread().name}
    assert all(name.startswith("mercer-read") for name in source.names_)


def test_the_block_ahead_is_in_the_budget(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4000, 1000)))
    source = NpySource(tmp_path / "x.npy")
    with config_context(memory="16MiB"):
        rows = source.block_rows(0, held=0, parts=1)
        assert 4 * rows * 8000 <= 2**24  # two blocks in half the budget
        half = source.map(lambda block: block.rows[:, :1], 1).block_rows(0, held=0, parts=1)
        assert half * (8000 + 8000 + 8) <= 2**23


def test_the_same_bits_as_in_memory(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 20)) * np.arange(1, 21)
    np.save(tmp_path / "x.npy", X)
    with config_context(block_rows=100):
        ours, memory = PCA(5).fit(str(tmp_path / "x.npy")), PCA(5).fit(X)
    assert_array_equal(ours.components_, memory.components_)


@pytest.mark.parametrize("damage", ["shorter", "longer", "rewritten", "gone"])
def test_a_file_that_changes_half_way(tmp_path, damage):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((1000, 10)))
    os.utime(path, ns=(0, 10**18))
    source = as_source(path)

    class Damage(NonFiniteSearch):
        def add(self, block):
            if damage == "gone":
                path.unlink(missing_ok=True)
            elif damage == "rewritten":
                np.save(path, np.zeros((1000, 10)))
            else:
                os.truncate(path, 80_000 if damage == "shorter" else 90_000)

        def spawn(self):
            return Damage()

    with config_context(block_rows=10), pytest.raises(FileError, match=r"x\.npy"):
        source.fold(Damage())


def test_a_file_removed_just_before_it_is_opened(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((10, 2)))
    source = as_source(path)
    fromfile = np.fromfile

    def late(*args, **options):
        path.unlink()
        return fromfile(*args, **options)

    monkeypatch.setattr(np, "fromfile", late)
    with pytest.raises(FileError, match=r"x\.npy was removed while it was being read"):
        source.read(0, 10)

"""Workers: whatever their number, the settings hold in all of them, and they fit the memory."""

import threading

import numpy as np
import pytest

import mercer
from mercer import PCA, as_source, config_context, progress, threads
from mercer.config import get_config
from mercer.data import NonFiniteSearch, Source
from mercer.data.errors import BudgetError
from mercer.linalg import Moments

SETTINGS = {
    "memory": "77MiB",
    "block_rows": 2,
    "checkpoint_seconds": 7.0,
    "tf32": True,
}


def use(monkeypatch, count):
    """Have so many workers, whatever the machine has; inside one of them one, as always."""
    busy = threads._worker
    monkeypatch.setattr(threads, "workers", lambda: 1 if getattr(busy, "busy", False) else count)


@pytest.fixture(params=[1, 2, 5])
def workers(request, monkeypatch):
    use(monkeypatch, request.param)


class Told(NonFiniteSearch):
    """Notes the settings of every worker, when all of them have begun."""

    def __init__(self, seen, together):
        super().__init__()
        self.seen, self.together = seen, together

    def add(self, block):
        if block.start < 2 * self.together.parties:  # the first block of each worker
            self.together.wait(60)
        self.seen.append((threading.current_thread().name, get_config()))

    def spawn(self):
        return Told(self.seen, self.together)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("waits", [False, True])
def test_settings_hold_in_every_worker(monkeypatch, count, waits):
    use(monkeypatch, count)
    seen, read = [], []

    class Rows(Source):
        def __init__(self):
            self.shape, self.dtype, self.waits = (12, 3), np.dtype(np.float64), waits

        def read(self, start, stop):
            read.append(get_config())
            return np.zeros((stop - start, 3))

    with config_context(**SETTINGS):
        wanted = get_config()
        Rows().fold(Told(seen, threading.Barrier(count)))
    assert len({name for name, _ in seen}) == count
    assert all(found == wanted for _, found in seen)
    assert all(found == wanted for found in read)
    assert len(read) == len(seen) == 6


def test_workers_announce_nothing_of_their_own(workers):
    heard = []

    class Heard(progress.Listener):
        def begin(self, label, total):
            heard.append((label, threading.current_thread()))

        def advance(self, handle, steps):
            pass

        def end(self, handle):
            pass

    def nested(block):
        as_source(block.rows).fold(NonFiniteSearch())
        return block.rows

    with progress.session(Heard()), config_context(block_rows=10):
        as_source(np.ones((100, 2))).map(nested, 2).collect()
    assert {thread for _, thread in heard} == {threading.current_thread()}


def test_what_fits_one_worker_is_not_refused_to_many(monkeypatch, tmp_path):
    """At every budget: many workers are refused what one is, and nothing else."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(6, 20_000)))
    source = as_source(tmp_path / "x.npy")

    def ends(count, memory):
        use(monkeypatch, count)
        with config_context(memory=memory):
            try:
                return source.collect().sum()
            except BudgetError:
                return None

    budgets = [2**10 * kib for kib in (100, 300, 600, 700, 1000, 2000, 4000)]
    alone = [ends(1, memory) for memory in budgets]
    assert None in alone
    assert None not in alone[-3:]
    for count in (2, 5):
        assert [ends(count, memory) for memory in budgets] == alone


def test_the_same_sums_whatever_the_budget(workers):
    rows = np.random.default_rng(0).normal(size=(500, 8))
    wanted = PCA(3).fit(rows)
    with config_context(memory="200KiB", block_rows=7):
        found = PCA(3).fit(rows)
        scatter = as_source(rows).fold(Moments(8, rows, np.float64)).scatter
    np.testing.assert_allclose(found.components_, wanted.components_, atol=1e-12)
    np.testing.assert_allclose(scatter, np.cov(rows.T) * 499, atol=1e-10)


def test_settings_hold_in_every_thread():
    seen = []
    mercer.set_config(memory="1GiB")
    try:
        thread = threading.Thread(target=lambda: seen.append(mercer.get_config().memory))
        thread.start()
        thread.join()
    finally:
        mercer.set_config(memory=None)
    assert seen == ["1GiB"]

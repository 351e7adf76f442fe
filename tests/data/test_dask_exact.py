"""Exact kernel PCA of Dask rows: the workers compute pairs of chunks, and the rows stay there."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import mercer
from mercer import KernelPCA, SubspaceClassifier, as_source, config_context, metrics
from mercer.arrays import to_numpy
from mercer.checkpoint import folder as running
from mercer.data import write_npy
from mercer.data.errors import BudgetError
from mercer.kernels import RBF, Polynomial
from mercer.linalg import Gram
from mercer.linalg.upper_blocks import SymmetricProduct, upper_blocks
from mercer.methods import Adaptive, Exact, Hebbian, RandomFeatures, Sketch
from mercer.modelfile import ModelFileError
from mercer.progress import Listener, session
from mercer.sketches import Gaussian

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
chunks = pytest.importorskip("mercer.data.dask.chunks")

N, D = 160, 6
ROWS = np.random.default_rng(0).normal(size=(N, D)) * np.linspace(5, 0.3, D) + 2.0
NEW = np.random.default_rng(1).normal(size=(45, D)) * 3.0
WEIGHTS = np.random.default_rng(2).integers(0, 3, N).astype(float)
SIZES = (1, 0, 90, 69)


def rows_of(rows=ROWS, sizes=SIZES):
    return da.from_array(rows, chunks=(sizes, rows.shape[1]))


def model(**options):
    options = {"kernel": "rbf", "gamma": 0.01, "method": "exact", "random_state": 0, **options}
    return KernelPCA(4, **options)


def near(found, wanted, rtol=1e-10):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=rtol * scale)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(autouse=True, scope="module")
def separate():
    """Keep chunks separate that are small enough to be joined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "JOINED_ROWS", 0)
        yield


@pytest.fixture(scope="module")
def both(separate):
    """Models of the same rows: in memory, and of Dask."""
    with dask.config.set(scheduler="synchronous"):
        return model().fit(ROWS), model().fit(rows_of())


def counting(gamma):
    """Return a kernel, and the list of the rows and columns of the tiles it computes."""
    tiles = []

    class Counting(RBF):
        def on(self, pair):
            tiles.append(tuple(len(points) for points in pair.groups))
            return super().on(pair)

    return Counting(gamma), tiles


class Killed(BaseException):
    """Ends a fit as a signal would."""


class TestFit:
    @pytest.mark.parametrize(
        ("scheduler", "weights", "offset"),
        [
            ("synchronous", None, 0.0),
            ("synchronous", WEIGHTS, 100.0),
            ("threads", None, 100.0),
            ("threads", WEIGHTS, 0.0),
        ],
    )
    def test_the_same_as_in_memory(self, scheduler, weights, offset):
        rows = ROWS + offset  # rows far from zero are shifted first
        here = model().fit(rows, sample_weight=weights)
        with dask.config.set(scheduler=scheduler):
            there = model().fit(rows_of(rows), sample_weight=weights)
            near(there.eigenvalues_, here.eigenvalues_)
            near(there.eigenvectors_, here.eigenvectors_, 1e-9)
            near(there.transform(rows_of(rows)), here.transform(rows))
            near(there.reconstruction_error(NEW + offset), here.reconstruction_error(NEW + offset))
        # For remote rows the bound on rounding holds for any rows.
        assert float(there.certificate_.gap) == pytest.approx(here.certificate_.gap, abs=1e-8)

    @pytest.mark.parametrize("solver", ["dense", "arpack", "randomized"])
    def test_every_solver(self, solver):
        here, there = (model(eigen_solver=solver).fit(x) for x in (ROWS, rows_of()))
        near(there.eigenvalues_, here.eigenvalues_)
        near(there.transform(NEW), here.transform(NEW), 1e-7)

    @pytest.mark.parametrize(
        "options",
        [
            {"kernel": Polynomial(2, gamma=0.1), "gamma": None, "center": False},
            {"kernel": "sigmoid", "gamma": 1e-3},
            {"kernel": RBF(0.01).on_columns([0, 2]) + 0.1 * RBF(1.0), "gamma": None},
            {"method": Exact(store="float32"), "tol": 1e-4},
            {"method": "auto", "n_components": 0.8},
            {"method": Adaptive(40, store="float64"), "gap": 1e-6},
            {"method": Sketch(Gaussian(60, random_state=0))},
        ],
        ids=str,
    )
    def test_kernels_and_options(self, options):
        here = clone(model()).set_params(**options).fit(ROWS)
        there = clone(model()).set_params(**options).fit(rows_of())
        assert isinstance(there.X_fit_, da.Array)
        near(there.eigenvalues_, here.eigenvalues_)
        near(there.transform(NEW), here.transform(NEW), 1e-3 if "tol" in options else 1e-8)

    def test_float32(self):
        rows = ROWS.astype(np.float32)
        here, there = model().fit(rows), model().fit(rows_of(rows))
        assert there.eigenvalues_.dtype == there.transform(rows_of(rows)).dtype == np.float32
        near(there.eigenvalues_, here.eigenvalues_, 1e-6)
        near(there.transform(rows_of(rows)), here.transform(rows), 1e-5)

    def test_chunks_that_are_split_or_unknown(self):
        with pytest.warns(UserWarning, match="split along its columns into 2"):
            there = model().fit(da.from_array(ROWS, chunks=(50, 4)))
        near(there.eigenvalues_, model().fit(ROWS).eigenvalues_)
        X = rows_of()
        X = X[X[:, 0] > 0]
        rows = ROWS[ROWS[:, 0] > 0]
        there, here = model().fit(X), model().fit(rows)
        near(there.eigenvalues_, here.eigenvalues_)
        near(there.transform(X), here.transform(rows))

    def test_the_plan_reckons_with_no_rows_here(self):
        small, wide = (da.zeros((10_000, d), chunks=(1000, d)) for d in (10, 1000))
        plans = [model(method="auto").plan(X) for X in (small, wide)]
        assert repr(plans[0].method) == repr(Exact(store="none"))
        assert plans[0].candidates[0].cost.memory == plans[1].candidates[0].cost.memory
        assert "exact (krylov, not kept)" in str(plans[0])
        asked = model(method=Exact(store="float64")).plan(small)
        assert asked.candidates[0].cost.memory == plans[0].candidates[0].cost.memory

    def test_a_product_computes_every_chunk_once(self, monkeypatch):
        lock, seen = threading.Lock(), []

        def count(chunk):
            with lock:
                seen.append(len(chunk))
            return chunk

        X = rows_of().map_blocks(count, dtype=float, meta=np.empty((0, D)))
        gram = Gram(RBF(0.01), as_source(X))
        V = np.random.default_rng(3).normal(size=(N, 3))
        seen.clear()
        product = gram.times(V)
        assert sum(seen) == N
        near(product, RBF(0.01)(ROWS) @ V, 1e-13)
        # Two groups of chunks at a time, if the memory holds no more.
        monkeypatch.setattr(chunks, "GROUP_CHUNKS", 2)
        heard = []

        class Ear(Listener):
            def begin(self, label, total):
                heard.append([label, total, 0])

            def advance(self, handle, steps):
                heard[-1][2] += steps

            def end(self, handle):
                pass

        with session(Ear()):
            near(gram.times(V), product, 1e-14)
        assert heard == [["kernel matrix", N * N, N * N]]

    def test_little_is_held_where_tasks_run(self):
        kernel, tiles = counting(0.1)
        X = da.ones((1200, 4), chunks=(600, 4))
        with config_context(memory="256KiB"), dask.config.set(num_workers=1):
            gram = Gram(kernel, as_source(X))
        assert gram.means == pytest.approx(1.0)
        assert max(x * y for x, y in tiles) * 8 <= 2**18

    @pytest.mark.filterwarnings("ignore:invalid value")
    def test_a_kernel_that_is_not_finite(self):
        bad = ROWS.copy()
        bad[90] *= 1e200
        with pytest.raises(ValueError, match=r"gives NaN or infinity for \d+ rows"):
            model(kernel="poly", degree=3, gamma=1.0).fit(rows_of(bad))


class TestSmallChunks:
    def test_neighbors_are_joined(self, monkeypatch):
        monkeypatch.setattr(chunks, "JOINED_ROWS", 2048)
        X, (kernel, tiles) = rows_of(ROWS, (8,) * 20), counting(0.01)
        here, there = model().fit(ROWS), model(kernel=kernel, gamma=None).fit(X)
        assert 0 < len(tiles) < 20  # one pair instead of 210, for every product
        assert set(tiles) == {(N, N)}
        near(there.eigenvalues_, here.eigenvalues_)
        tiles.clear()
        near(there.transform(NEW), here.transform(NEW))
        assert tiles == [(len(NEW), N)]
        tiles.clear()
        near(there.transform(X), here.transform(ROWS))
        assert tiles == [(8, N)] * 20  # the chunks of a lazy result are those of X

    def test_the_certificate_of_features(self, monkeypatch):
        monkeypatch.setattr(chunks, "JOINED_ROWS", 2048)
        kernel, tiles = counting(0.01)
        method, X = RandomFeatures(40), rows_of(ROWS, (8,) * 20)
        here = model(method=method).fit(ROWS)
        there = model(method=method, kernel=kernel, gamma=None).fit(X)
        assert 0 < tiles.count((N, N)) < 20
        # For remote rows the bound on rounding holds for any rows.
        assert float(there.certificate_.gap) == pytest.approx(here.certificate_.gap, abs=1e-8)
        near(there.transform(NEW), here.transform(NEW))

    @pytest.mark.parametrize(
        ("sizes", "most", "wanted"),
        [
            ((10, 10, 10, 10), 20, [20, 20]),
            ((10, 50, 10, 0, 10), 20, [10, 50, 20]),
            ((50, 50), 20, [50, 50]),
            ((1, 19, 1), 20, [20, 1]),
        ],
    )
    def test_large_ones_stay_as_they_are(self, sizes, most, wanted, monkeypatch):
        monkeypatch.setattr(chunks, "JOINED_ROWS", most)
        rows = ROWS[: sum(sizes)]
        source = as_source(rows_of(rows, sizes))
        found = chunks.join_small(source.remote, source.row_bytes)
        assert [chunk.length for chunk in found] == wanted
        assert [chunk.start for chunk in found] == [0, *np.cumsum(wanted)[:-1]]
        parts = dask.compute(*(chunk.rows for chunk in found))
        np.testing.assert_array_equal(np.concatenate(parts), rows)
        with config_context(memory=32 * 12 * D * 8):  # room for twelve rows
            small = chunks.join_small(source.remote, source.row_bytes)
        assert max(chunk.length for chunk in small) <= max(12, *sizes)

    def test_a_chunk_that_is_not_what_it_says_is_named(self, monkeypatch):
        monkeypatch.setattr(chunks, "JOINED_ROWS", 2048)

        def cut(chunk, block_info=None):
            return chunk[:, 1:] if block_info[0]["chunk-location"][0] == 3 else chunk

        X = rows_of(ROWS, (40,) * 4).map_blocks(cut, dtype=float, meta=np.empty((0, D)))
        with pytest.raises(ValueError, match="rows 120 to 159 is a ndarray of shape"):
            Gram(RBF(0.01), as_source(X))


class TestModel:
    def test_rows_stay_where_they_lie(self, both):
        _, there = both
        assert isinstance(there.X_fit_, da.Array)
        assert isinstance(there.projection_.basis, da.Array)
        np.testing.assert_array_equal(there.X_fit_, ROWS)
        moved = model(kernel="linear", gamma=None).fit(rows_of(ROWS + 100.0))
        assert moved.projection_.shift is not None
        np.testing.assert_array_equal(moved.X_fit_, ROWS + 100.0)
        few = model().fit(rows_of(), sample_weight=WEIGHTS)
        np.testing.assert_array_equal(few.X_fit_, ROWS[WEIGHTS > 0])

    @pytest.mark.parametrize("block_rows", [None, 7])
    def test_new_rows_of_any_source(self, both, block_rows, tmp_path):
        here, there = both
        wanted = here.transform(NEW)
        path = tmp_path / "new.npy"
        write_npy(as_source(NEW), path)
        with config_context(block_rows=block_rows):
            near(there.transform(NEW), wanted)
            near(there.transform(scipy.sparse.csr_array(NEW)), wanted)
            near(there.transform(path).collect(), wanted)
            near(there.transform(path, out=tmp_path / "scores.npy").collect(), wanted)
            lazy = there.transform(rows_of(NEW, (20, 0, 25)))
            assert isinstance(lazy, da.Array)
            assert lazy.chunks == ((20, 25), (4,))
            near(lazy, wanted)
        near(there.fit_transform(rows_of()), here.transform(ROWS), 1e-9)
        near(there.reconstruction_error(rows_of(NEW, (45,))), here.reconstruction_error(NEW))

    def test_nothing_is_computed_before_it_is_asked_for(self, both):
        _, there = both

        def refuse(chunk):
            raise AssertionError("computed")

        X = rows_of(NEW, (45,)).map_blocks(refuse, dtype=float, meta=np.empty((0, D)))
        scores = there.transform(X)
        with pytest.raises(AssertionError, match="computed"):
            scores.compute()

    def test_bad_rows_are_named(self, both):
        bad = NEW.copy()
        bad[33, 2] = np.nan
        with config_context(block_rows=10), pytest.raises(ValueError, match="row 33, column 2"):
            both[1].transform(bad)
        with pytest.raises(ValueError, match="row 33, column 2"):
            both[1].transform(rows_of(bad, (20, 25))).compute()

    def test_it_is_pickled_with_its_tasks(self, both):
        again = pickle.loads(pickle.dumps(both[1]))
        assert isinstance(again.X_fit_, da.Array)
        near(again.transform(NEW), both[0].transform(NEW))

    def test_rows_far_from_zero_are_pickled_too(self):
        X = np.random.default_rng(3).normal(size=(60, 4)) + 1e3
        made = KernelPCA(2, kernel="rbf", gamma=0.1).fit(rows_of(X, (20, 20, 20)))
        again = pickle.loads(pickle.dumps(made))
        near(again.transform(X), KernelPCA(2, kernel="rbf", gamma=0.1).fit(X).transform(X))

    def test_a_file_holds_the_rows_or_none(self, both, tmp_path):
        path = tmp_path / "model.mercer"
        mercer.save(both[1], path)
        again = mercer.load(path)
        assert isinstance(again.X_fit_, np.ndarray)
        near(again.transform(NEW), both[0].transform(NEW))
        path.unlink()
        with (
            config_context(memory="4KiB"),
            pytest.raises(ModelFileError, match=r"is on a cluster.*memory=.*Subset"),
        ):
            mercer.save(both[1], path)
        assert not list(tmp_path.iterdir())

    def test_pre_images_bring_the_rows_here_or_refuse(self):
        here = model(preimage="fixed_point").fit(ROWS)
        there = model(preimage="fixed_point").fit(rows_of())
        scores = here.transform(ROWS[:5])
        near(there.inverse_transform(scores), here.inverse_transform(scores), 1e-6)
        with config_context(memory="1MiB"), pytest.raises(BudgetError, match=r"memory=.*Subset"):
            as_source(da.zeros((200_000, 10), chunks=(1000, 10))).load()
        with config_context(memory="1MiB"), pytest.raises(MemoryError, match=r"memory="):
            to_numpy(da.zeros((200_000, 10), chunks=(1000, 10)))

    @pytest.mark.filterwarnings("ignore")  # it has not converged
    def test_methods_that_hold_all_rows_bring_them_here(self):
        method, rows = Hebbian(max_passes=2), ROWS[:40]
        here, there = (
            model(method=method, tol=1e-2).fit(x).transform(NEW)
            for x in (rows, rows_of(rows, (25, 15)))
        )
        near(there, here, 1e-6)

    def test_axes_are_compared(self, both):
        assert metrics.subspace_angles(*both).max() < 1e-6

    def test_classes(self):
        labels = (ROWS[:, 0] > 2).astype(int)
        here, there = (SubspaceClassifier(model()).fit(x, labels) for x in (ROWS, rows_of()))
        assert isinstance(there.estimators_[0].X_fit_, da.Array)
        np.testing.assert_array_equal(there.predict(rows_of()), here.predict(ROWS))


class TestCheckpoint:
    def test_a_killed_fit_goes_on(self, monkeypatch, tmp_path):
        """Kills at every third file that is written, and counts what is done again."""
        monkeypatch.setattr(running, "_WORTH", 0.0)
        monkeypatch.setattr(chunks, "GROUP_CHUNKS", 2)
        monkeypatch.setattr(chunks, "ROUND_CHUNKS", 2)
        seen, write, left = [], running.Checkpoint.write, [3]

        def killing(self, number, arrays):
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return write(self, number, arrays)

        def count(chunk):
            seen.append(len(chunk))
            return chunk

        X = rows_of(ROWS, (1, 40, 0, 70, 49)).map_blocks(count, dtype=float, meta=np.empty((0, D)))
        kept, kills = tmp_path / "kept", 0
        wanted = model().fit(X)
        once, seconds = len(seen), {"checkpoint": kept, "checkpoint_seconds": 1e-9}
        seen.clear()
        monkeypatch.setattr(running.Checkpoint, "write", killing)
        while True:
            left[0] = 3
            try:
                with config_context(**seconds):
                    found = model().fit(X)
                break
            except Killed:
                kills += 1
                assert list(kept.glob("mercer-step-*.npz"))
            assert kills < 100
        assert kills > 3
        near(found.eigenvalues_, wanted.eigenvalues_, 1e-12)
        near(found.transform(NEW), wanted.transform(NEW), 1e-12)
        assert not kept.exists()
        # Every time the digest, the diagonal and the pairs of two groups are computed again.
        assert len(seen) <= once + 16 * kills

    def test_fewer_pairs_between_two_saves(self, tmp_path):
        """A recorded product computes the pairs of small groups: chunks are computed more often."""
        seen = []

        def count(chunk):
            seen.append(len(chunk))
            return chunk

        rows = ROWS[:18]
        X = rows_of(rows, (2,) * 9).map_blocks(count, dtype=float, meta=np.empty((0, D)))
        V = np.random.default_rng(3).normal(size=(18, 3))

        def computed(**options):
            seen.clear()
            with dask.config.set(**options):
                blocks = upper_blocks(RBF(0.01), as_source(X), np.float64, keep=False)
                near(
                    blocks.fold(SymmetricProduct(V, np.float64)).result, RBF(0.01)(rows) @ V, 1e-13
                )
            return len(seen)

        assert computed() == 9
        with config_context(checkpoint=tmp_path / "kept"), running.checkpointed():
            assert computed() == 9 * 2  # in groups of 8 and 1

    def test_workers_keep_nothing_of_their_own(self, tmp_path):
        from mercer.config import get_config

        source = as_source(rows_of())
        told = source.map(
            lambda block: np.full((block.length, 1), get_config().checkpoint is None), 1
        )
        with config_context(checkpoint=tmp_path / "kept"):
            assert told.collect().all()

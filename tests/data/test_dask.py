"""Rows of Dask collections: the same results as in memory, whatever the scheduler."""

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mercer import PCA, Denoiser, KernelPCA, NoveltyDetector, SubspaceClassifier, config_context
from mercer.data import NonFiniteSearch, as_source, check_weights, write_npy
from mercer.linalg import Moments, TriangularFactor
from mercer.methods import Exact, Subset
from mercer.progress import Listener, session
from mercer.sketches import Gaussian

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")

from mercer.data.dask import as_dask_array  # noqa: E402

N, D = 700, 9
ROWS = np.random.default_rng(0).normal(size=(N, D)) * np.linspace(5, 0.3, D) + 2.0
PLAIN = Exact(store="none")
WEIGHTS = np.random.default_rng(1).integers(0, 3, N).astype(float)


@pytest.fixture(params=["threads", "synchronous"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


@pytest.fixture
def counted():
    """Rows whose chunks count how often they are computed."""
    lock, seen = threading.Lock(), []

    def count(chunk):
        with lock:
            seen.append(len(chunk))
        return chunk

    X = dask_rows().map_blocks(count, dtype=float, meta=np.empty((0, D)))
    return X, seen


def dask_rows(rows=ROWS, chunk=101):
    return da.from_array(rows, chunks=(chunk, rows.shape[1]))


def uneven(rows=ROWS):
    """Rows in chunks of all sizes, some of them empty."""
    cuts = [0, 0, 1, 250, 250, 251, 600, N, N]
    parts = [da.from_array(rows[a:b], chunks=-1) for a, b in itertools.pairwise(cuts)]
    empty = da.from_array(np.empty((0, rows.shape[1])), chunks=-1)
    return da.concatenate([empty, *parts, empty], allow_unknown_chunksizes=True)


def kernel_pca(**options):
    method = options.pop("method", Subset(60))
    return KernelPCA(4, kernel="rbf", gamma=0.01, method=method, random_state=0, **options)


def near(found, wanted, rtol=1e-10):
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=0, atol=rtol * scale)


class TestSource:
    def test_reads_and_takes_as_an_array_does(self, scheduler):
        source = as_source(uneven())
        assert source.shape == ROWS.shape
        np.testing.assert_array_equal(source.read(240, 260), ROWS[240:260])
        some = [3, 699, 0, 250, 3]
        np.testing.assert_array_equal(source.take(some), ROWS[some])
        assert source.take([]).shape == (0, D)
        with pytest.raises(IndexError, match="row 700"):
            source.take([700])
        np.testing.assert_array_equal(source.collect(), ROWS)
        np.testing.assert_array_equal(np.asarray(source), ROWS)

    def test_maps_are_computed_where_the_rows_are(self, scheduler):
        source = as_source(dask_rows())
        main = threading.get_ident()

        def twice(block):
            number = np.arange(block.start, block.stop)[:, None]
            there = np.full((block.length, 1), threading.get_ident() != main)
            return np.hstack([2 * block.rows[:, :1], number, there])

        view = source.map(twice, 3).map(lambda block: block.rows + 1.0, 3)
        wanted = np.column_stack([2 * ROWS[:, 0] + 1, np.arange(N) + 1])
        for found in (view.collect(), as_dask_array(view).compute()):
            np.testing.assert_array_equal(found[:, :2], wanted)
            assert np.all(found[:, 2] == (2.0 if scheduler == "threads" else 1.0))
        np.testing.assert_array_equal(view.take([5, 650, 100])[:, :2], wanted[[5, 650, 100]])
        np.testing.assert_array_equal(view.read(95, 110)[:, :2], wanted[95:110])

    def test_blocks_come_in_order_with_their_weights(self):
        source = as_source(uneven()).weighted(WEIGHTS)
        for first, step in ((0, 1), (2, 3)):
            blocks = list(source.blocks(40, first, step))
            assert [b.start for b in blocks] == sorted(b.start for b in blocks)
            assert max(b.length for b in blocks) <= 40
            for block in blocks:
                here = slice(block.start, block.stop)
                np.testing.assert_array_equal(block.rows, ROWS[here])
                np.testing.assert_array_equal(block.weights, WEIGHTS[here])
        every = [i for b in source.blocks(40) for i in range(b.start, b.stop)]
        assert every == list(range(N))

    @pytest.mark.parametrize("block_rows", [None, 7])
    @pytest.mark.parametrize("weights", [None, WEIGHTS])
    def test_folds_see_every_row_once(self, block_rows, weights, scheduler):
        for fold in (Moments(D, np.empty(0), np.float64), TriangularFactor(D, np.empty(0))):
            with config_context(block_rows=block_rows):
                there = as_source(uneven()).weighted(weights).fold(fold.spawn())
                here = as_source(ROWS).weighted(weights).fold(fold.spawn())
            assert there.weight == here.weight
            near(there.mean, here.mean, 1e-14)
            square = [
                f.scatter if isinstance(f, Moments) else f.factor.T @ f.factor
                for f in (there, here)
            ]
            near(*square, 1e-13)

    def test_a_fold_goes_on_from_what_it_has_seen(self):
        state = as_source(ROWS[:200]).fold(Moments(D, np.empty(0), np.float64))
        assert as_source(dask_rows(ROWS[200:])).fold(state) is state
        near(state.scatter, (N - 1) * np.cov(ROWS.T), 1e-13)

    def test_the_same_bits_every_time(self):
        bits = set()
        for workers in (1, 2, 5):
            for _ in range(2):
                with dask.config.set(scheduler="threads", num_workers=workers):
                    fold = as_source(dask_rows()).fold(Moments(D, np.empty(0), np.float64))
                bits.add(fold.scatter.tobytes())
        assert len(bits) == 1

    def test_a_pass_computes_every_chunk_once(self, counted):
        X, seen = counted
        as_source(X).fold(Moments(D, np.empty(0), np.float64))
        assert sum(seen) == N
        seen.clear()
        as_source(X).take([0, 1, 2, 650])
        assert len(seen) == 2  # the chunks that hold those rows, and no others
        seen.clear()
        as_source(X).map(lambda block: block.rows, D).collect()
        assert sum(seen) == N

    def test_blocks_inside_a_chunk_keep_to_the_memory(self):
        longest = []
        source = as_source(dask_rows(np.ones((60_000, 64)), 30_000))

        def look(block):
            longest.append(block.length)
            return block.rows[:, :1]

        with config_context(memory="8MiB"), dask.config.set(num_workers=2, scheduler="threads"):
            source.map(look, 1).fold(Moments(1, np.empty(0), np.float64))
        assert max(longest) * 64 * 8 <= 4 * 2**20
        with config_context(block_rows=500):
            source.map(look, 1).fold(NonFiniteSearch())
        assert max(longest[-120:]) == 500

    def test_progress_hears_of_every_row(self, scheduler):
        heard = []

        class Ear(Listener):
            def begin(self, label, total):
                heard.append([label, total, 0, 0])

            def advance(self, handle, steps):
                heard[-1][2] += steps
                heard[-1][3] += 1

            def end(self, handle):
                pass

        with session(Ear()):
            as_source(dask_rows()).fold(NonFiniteSearch())
        assert heard[0][:3] == ["looking for NaN", N, N]
        assert heard[0][3] >= 7  # chunk by chunk

    def test_weights_may_be_a_dask_array(self):
        found = check_weights(da.from_array(WEIGHTS, chunks=50), as_source(dask_rows()))
        np.testing.assert_array_equal(found, WEIGHTS)

    def test_it_is_sent_without_rows_or_weights(self):
        big = as_source(da.ones((10**6, 4), chunks=(10**5, 4))).weighted(np.ones(10**6))
        sent = pickle.dumps(big)
        assert len(sent) < 5000
        with pytest.raises(ValueError, match="not on this worker"):
            pickle.loads(sent).read(0, 1)
        assert big.weights is not None
        assert big.weighted(None).weights is None

    def test_rows_are_written(self, tmp_path):
        view = as_source(dask_rows()).map(lambda block: block.rows + 1.0, D)
        np.testing.assert_array_equal(
            np.asarray(write_npy(view, tmp_path / "rows.npy")), ROWS + 1.0
        )


class TestWhatComesIn:
    def test_a_table_has_names(self):
        table = pd.DataFrame(ROWS, columns=[f"c{i}" for i in range(D)])
        table["c3"] = np.arange(N)  # not all columns are of one dtype
        there = PCA(3).fit(dd.from_pandas(table, npartitions=4))
        here = PCA(3).fit(table)
        assert list(there.feature_names_in_) == list(table.columns)
        near(there.components_, here.components_)
        scores = there.transform(dd.from_pandas(table, npartitions=3))
        assert isinstance(scores, da.Array)
        near(scores, here.transform(table))
        wrong = table.rename(columns={"c3": "other"})
        with pytest.raises(ValueError, match="feature names should match"):
            there.transform(dd.from_pandas(wrong, npartitions=2))

    def test_a_column_of_words_is_named(self):
        table = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
        with pytest.raises(ValueError, match=r"'colour'.*not numeric"):
            PCA(1).fit(dd.from_pandas(table, npartitions=1))

    @pytest.mark.parametrize(
        ("kind", "column"),
        [
            ("float64", "bool"),
            ("float32", "bool"),
            ("int64", "bool"),
            ("float64", "Int64"),
            ("float64", "boolean"),
            ("float32", "Int64"),
            ("Int64", "Int64"),
            ("Float32", "Float32"),
            ("float32", "float32"),
        ],
    )
    def test_columns_of_several_kinds(self, kind, column):
        table = pd.DataFrame(np.round(ROWS * 10), columns=[f"c{i}" for i in range(D)]).astype(kind)
        made = ROWS[:, 3] > 2 if column in ("bool", "boolean") else np.arange(N)
        table["c3"] = pd.Series(made).astype(column)
        there, here = PCA(3).fit(dd.from_pandas(table, npartitions=4)), PCA(3).fit(table)
        assert there.components_.dtype == here.components_.dtype
        assert list(there.feature_names_in_) == list(here.feature_names_in_)
        loose = 1e-5 if here.components_.dtype == np.float32 else 1e-10
        near(there.components_, here.components_, loose)
        near(there.transform(dd.from_pandas(table, npartitions=3)), here.transform(table), loose)

    @pytest.mark.parametrize("kind", ["Int64", "boolean", "Float64"])
    def test_what_is_missing_in_a_table_is_nan(self, kind):
        table = pd.DataFrame(ROWS, columns=[f"c{i}" for i in range(D)])
        table["c3"] = pd.Series(ROWS[:, 3] > 2).astype(kind)
        table.loc[433, "c3"] = pd.NA
        for rows in (table, dd.from_pandas(table, npartitions=4)):
            with pytest.raises(ValueError, match=r"NaN: the first is in row 433, column 3 \('c3'"):
                PCA(2).fit(rows)

    def test_chunks_split_along_columns_are_joined_with_a_warning(self):
        X = da.from_array(ROWS, chunks=(101, 4))
        with pytest.warns(UserWarning, match=r"split along its columns into 3.*rechunk") as seen:
            there = PCA(3).fit(X)
        assert seen[0].filename == __file__
        near(there.components_, PCA(3).fit(ROWS).components_)

    def test_unknown_sizes_are_counted_and_x_stays_as_it_is(self):
        X = dask_rows()
        X = X[X[:, 0] > 0]
        assert np.isnan(X.shape[0])
        rows = ROWS[ROWS[:, 0] > 0]
        there = PCA(3).fit(X)
        assert there.n_samples_ == len(rows)
        assert np.isnan(X.shape[0])
        near(there.components_, PCA(3).fit(rows).components_)
        near(there.transform(X), PCA(3).fit(rows).transform(rows))

    @pytest.mark.parametrize("kind", ["int16", "uint8", "bool", "float32", "float64"])
    def test_every_dtype_of_numbers(self, kind):
        rows = (ROWS * 10).astype(kind) if kind != "bool" else ROWS > 2
        there, here = PCA(3).fit(dask_rows(rows)), PCA(3).fit(rows)
        assert there.components_.dtype == here.components_.dtype
        near(there.explained_variance_, here.explained_variance_, 1e-5)
        scores = there.transform(dask_rows(rows))
        assert scores.dtype == here.transform(rows).dtype == scores.compute().dtype

    def test_nan_is_named_by_row_and_column(self):
        bad = ROWS.copy()
        bad[433, 5] = np.nan
        for fit in (PCA(2).fit, kernel_pca().fit):
            with pytest.raises(ValueError, match="NaN: the first is in row 433, column 5"):
                fit(dask_rows(bad))
        lazily_bad = PCA(2).fit(ROWS).transform(dask_rows(bad))
        with pytest.raises(ValueError, match="row 433, column 5"):
            lazily_bad.compute()

    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda: da.ones(5), ValueError, "Expected 2D"),
            (lambda: da.ones((5, 2), dtype=complex), ValueError, "Complex"),
            (lambda: da.ones((5, 2)).astype("U3"), ValueError, "Not numbers"),
            (lambda: da.ones((0, 2)), ValueError, "0 sample"),
            (lambda: dask.delayed(3), TypeError, "Only Dask arrays and Dask DataFrames"),
            (lambda: dask_rows().map_blocks(sparse_chunk), TypeError, "are sparse .*toarray"),
            (lambda: lied(sparse_chunk), ValueError, r"expected a dense array.* b\.toarray\(\)\)"),
            (lambda: lied(lambda chunk: chunk[1:]), ValueError, r"dense array of (101|94) rows"),
            (
                lambda: lied(lambda chunk: np.hstack([chunk, chunk])),
                ValueError,
                r"rows \d+ to \d+ is a ndarray of shape \((101|94), 18\), expected a dense array",
            ),
            (lambda: lied(np.ma.masked_less, 0), ValueError, "masked"),
        ],
    )
    def test_what_cannot_be_read_is_refused(self, make, error, message):
        with pytest.raises(error, match=message):
            PCA(1).fit(make())

    def test_a_part_of_a_table_with_other_columns_is_named(self):
        def part(number):
            made = pd.DataFrame(ROWS[:39], columns=[f"c{i}" for i in range(D)])
            return made if number < 2 else made.assign(more=1.0)

        X = dd.from_map(part, range(4), meta=part(0).iloc[:0], enforce_metadata=False)
        told = r"rows (78 to 116|117 to 155) is a \w+ of shape \(39, 10\), expected.* 39 rows and 9"
        for fit in (PCA(2).fit, kernel_pca().fit, kernel_pca(method=PLAIN).fit):
            with pytest.raises(ValueError, match=told):
                fit(X)
        with pytest.raises(ValueError, match=told):
            PCA(2).fit(ROWS).transform(X.to_dask_array(lengths=True)).compute()


def sparse_chunk(chunk):
    import scipy.sparse

    return scipy.sparse.csr_array(chunk)


def lied(make, *more):
    """Return an array whose chunks are not what it says."""
    return dask_rows().map_blocks(make, *more, dtype=float, meta=np.empty((0, D)))


class TestEstimators:
    @pytest.mark.parametrize(
        ("solver", "weights"),
        [
            ("auto", None),
            ("full", WEIGHTS),
            ("covariance_eigh", None),
            ("covariance_eigh", WEIGHTS),
            ("krylov", WEIGHTS),
            ("randomized", None),
            ("sketch", WEIGHTS),
        ],
    )
    def test_pca(self, solver, weights):
        here = PCA(3, svd_solver=solver, random_state=0).fit(ROWS, sample_weight=weights)
        there = PCA(3, svd_solver=solver, random_state=0).fit(uneven(), sample_weight=weights)
        near(there.components_, here.components_)
        near(there.explained_variance_ratio_, here.explained_variance_ratio_)
        assert there.score(uneven()) == pytest.approx(here.score(ROWS), rel=1e-10)
        near(there.reconstruction_error(uneven()), here.reconstruction_error(ROWS))

    def test_what_comes_out_is_lazy(self, counted):
        X, seen = counted
        pca = PCA(3).fit(X)
        seen.clear()
        scores = pca.transform(X)
        back = pca.inverse_transform(scores)
        assert isinstance(back, da.Array)
        assert scores.chunks == (X.chunks[0], (3,))
        assert not seen
        near(back.compute(), pca.inverse_transform(pca.transform(ROWS)))
        assert sum(seen) == N

    @pytest.mark.parametrize("method", ["exact", "subset", "nystrom", "cholesky", "features"])
    def test_kernel_pca(self, method):
        # Far from zero: rows are shifted first, so that landmarks are rows of a map.
        rows = ROWS[:300] + 100.0
        X = dask_rows(rows, 70)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            here = kernel_pca(method=method).fit(rows)
            there = kernel_pca(method=method).fit(X)
            both = kernel_pca(method=method).fit_transform(X)
        near(there.eigenvalues_, here.eigenvalues_)
        near(there.transform(X), here.transform(rows), 1e-9)
        assert isinstance(both, da.Array)
        near(both, here.transform(rows), 1e-8)

    def test_batches(self):
        halves = dask_rows()[:400], dask_rows()[400:]
        for model in (PCA(3), kernel_pca(method=Subset(select=ROWS[:50]))):
            for half in halves:
                model.partial_fit(half)
            whole = model.transform(ROWS)
            wanted = clone(model).fit(ROWS).transform(ROWS)
            near(whole, wanted, 1e-9)

    def test_the_others_take_them_too(self):
        labels, X = (ROWS[:, 0] > 2).astype(int), dask_rows()
        here, there = (SubspaceClassifier(PCA(2)).fit(x, labels) for x in (ROWS, X))
        np.testing.assert_array_equal(there.predict(X), here.predict(ROWS))
        here, there = (NoveltyDetector(PCA(2)).fit(x) for x in (ROWS, X))
        np.testing.assert_array_equal(there.predict(X), here.predict(ROWS))
        for make in (lambda: Denoiser(PCA(2)), lambda: Gaussian(4, random_state=0)):
            out = make().fit(X).transform(X)
            assert isinstance(out, da.Array)
            near(out, make().fit(ROWS).transform(ROWS))

    def test_set_output_asks_for_a_table(self):
        out = PCA(2).set_output(transform="pandas").fit(dask_rows()).transform(dask_rows())
        assert isinstance(out, pd.DataFrame)
        near(out.to_numpy(), PCA(2).fit(ROWS).transform(ROWS))

    def test_dask_is_imported_when_it_is_needed(self):
        code = (
            "import sys, numpy as np; from mercer.data import as_source; "
            "as_source(np.eye(3)).collect(); assert 'dask' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        dask.config.set({"distributed.worker.daemon": True}),
        distributed.LocalCluster(processes=True, **options) as there,
        distributed.Client(there) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("mercer.data.dask.chunks.JOINED_ROWS", 0)  # these chunks are small
        yield client


class TestCluster:
    def test_two_processes_give_the_same(self, cluster):
        X, here = dask_rows(), PCA(3).fit(ROWS, sample_weight=WEIGHTS)
        there = PCA(3).fit(X, sample_weight=WEIGHTS)
        near(there.components_, here.components_)
        near(there.transform(X), here.transform(ROWS))
        # A function that reads a map of the rows while it maps them.
        near(there.score_samples(X), here.score_samples(ROWS))
        here, there = kernel_pca().fit(ROWS), kernel_pca().fit(X)
        near(there.transform(X), here.transform(ROWS))
        near(there.eigenvalues_, here.eigenvalues_)
        # The blocks of rows that bound the optimum are others.
        assert float(there.certificate_.gap) == pytest.approx(float(here.certificate_.gap), rel=0.1)

    @pytest.mark.slow
    def test_exact_kernel_pca(self, cluster):
        rows, new = ROWS[:300] + 100.0, ROWS[300:330] + 99.0
        kpca, weights, X = kernel_pca(method=PLAIN, tol=1e-3), WEIGHTS[:300], dask_rows(rows)
        here, there = (clone(kpca).fit(x, sample_weight=weights) for x in (rows, X))
        near(there.eigenvalues_, here.eigenvalues_)
        near(there.transform(new), here.transform(new))
        near(there.transform(X), here.transform(rows))
        near(there.reconstruction_error(new), here.reconstruction_error(new))

    def test_errors_are_told_here(self, cluster):
        bad = ROWS.copy()
        bad[433, 5] = np.inf
        with pytest.raises(ValueError, match=r"infinity \(inf\): the first is in row 433"):
            PCA(2).fit(dask_rows(bad))

    def test_little_comes_to_the_client(self, cluster):
        """Counts the bytes of every result that is gathered."""
        n, d, m = 20_000, 50, 40
        X = da.random.default_rng(0).normal(size=(n, d), chunks=(2000, d))
        came, gather = [], type(cluster)._gather

        async def counted(self, futures, *more, **options):
            found = await gather(self, futures, *more, **options)
            came.append(len(pickle.dumps(found)))
            return found

        type(cluster)._gather = counted
        try:
            PCA(3, svd_solver="covariance_eigh").fit(X)
            kernel_pca(method=Subset(m)).fit(X)
        finally:
            type(cluster)._gather = gather
        # d² and m², and a sample of 1024 rows for the certificate; all rows are 8 MB.
        assert came
        assert max(came) < 8 * (d * d + m * m + 1100 * d)
        assert sum(came) < 8 * n * d / 4
        # Of exact kernel PCA, products of n rows with 33 vectors; all rows are 4.8 MB.
        n, d = 1000, 600
        X = da.random.default_rng(0).normal(size=(n, d), chunks=(250, d))
        came.clear()
        type(cluster)._gather = counted
        try:
            kpca = kernel_pca(method="exact", tol=0.1).fit(X)
            kpca.transform(np.ones((300, d)))
        finally:
            type(cluster)._gather = gather
        assert isinstance(kpca.X_fit_, da.Array)
        assert len(came) >= 3  # diagonal, products, scores
        assert max(came) < 1.1 * 8 * max(n * 33, 2**16)  # some rows are looked at, in blocks

    @pytest.mark.parametrize(
        ("method", "size", "had"),
        [(Subset(60), 101, 5), pytest.param(PLAIN, 240, 8, marks=pytest.mark.slow)],
        ids=str,
    )
    def test_a_worker_that_is_killed(self, cluster, tmp_path, method, size, had):
        wanted = kernel_pca(method=method, tol=1e-3).fit(ROWS)

        folder, over = tmp_path / "had", tmp_path / "killed"
        folder.mkdir()

        def waits(chunk, folder, over, had):  # local, as workers need not import pytest
            mine = f"-{os.getpid()}"
            (folder / f"{time.time_ns()}{mine}").touch()  # tells who had it
            while sum(each.name.endswith(mine) for each in folder.iterdir()) >= had:
                if over.exists():
                    break
                time.sleep(0.01)  # in mid-fit, with chunks of more than one pass: one is killed
            return chunk

        X = dask_rows(ROWS, size).map_blocks(
            waits, folder, over, had, dtype=float, meta=np.empty((0, D))
        )
        pids = list(cluster.run(os.getpid).values())
        killed, ended = [], threading.Event()

        def kill():
            while not killed and not ended.is_set():
                names = [path.name for path in folder.iterdir()]
                for pid in pids:
                    if sum(name.endswith(f"-{pid}") for name in names) >= had:
                        os.kill(pid, signal.SIGKILL)
                        killed.append(time.time_ns())
                        break
                time.sleep(0.01)
            over.touch()

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            found = kernel_pca(method=method, tol=1e-3).fit(X)
        finally:
            done = time.time_ns()
            ended.set()
            killer.join()
        assert killed
        assert killed[0] < done
        last = max(int(path.name.partition("-")[0]) for path in folder.iterdir())
        assert last > killed[0]  # chunks were still to be computed
        near(found.eigenvalues_, wanted.eigenvalues_)
        near(found.transform(dask_rows()), wanted.transform(ROWS))

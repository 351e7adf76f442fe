"""Rows beyond memory that are read where they lie: chunks, row groups, batches, sparse rows."""

import contextlib
import copy
import functools
import os
import pickle
import time

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import PCA, KernelPCA, as_source, config_context
from mercer.data import ArraySource, NpySource
from mercer.data.files import FileError, MissingValues, read_table
from mercer.data.files.anndata import CSRRows
from mercer.data.files.storage import Banded
from mercer.methods import Subset
from tests.catalogue import cycled
from tests.data.test_formats import write_h5ad
from tests.data.test_fuzz import mutated, outcome

N, D = 3007, 24
# Rows take 0.55 MiB, which is more than a quarter of this.
SMALL = "1536KiB"


def rows(dtype=np.float64):
    X = np.random.default_rng(0).standard_normal((N, D)) * np.arange(1, D + 1)
    return (10 * X).astype(dtype)


def hdf5_plain(X, path):
    with h5py.File(path, "w") as file:
        file["X"] = X
        file["other"] = np.arange(3)
    return path


def hdf5_chunks(X, path):
    with h5py.File(path, "w") as file:
        group = file.create_group("deep")
        group.create_dataset("rows", data=X, chunks=(101, 7), compression="lzf")
    return f"{path}::deep/rows"


def h5ad_dense(X, path):
    write_h5ad(path, X, True)
    with h5py.File(path, "a") as file:  # not by Deflate, which is gone over once
        del file["X"]
        file.create_dataset("X", data=X, chunks=(101, 24))
    return path


def zarr_2(X, path):
    zarr.create_array(path, data=X, chunks=(101, 7), zarr_format=2)
    return path


def zarr_3(X, path):
    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.create_array("labels", data=np.arange(len(X)))
    group.create_array("rows", data=X, chunks=(101, 24))
    return path


def zarr_shards(X, path):
    group = zarr.open_group(path, mode="w", zarr_format=3)
    group.create_array("a", data=X, chunks=(200, 8), shards=(1000, 24))
    group.create_array("b", data=X[:10])
    return f"{path}::a"


def arrow_table(X):
    return pa.table({f"x{i}": X[:, i] for i in range(X.shape[1])})


def parquet(X, path):
    pa.parquet.write_table(arrow_table(X), path, row_group_size=101)
    return path


def parquet_folder(X, path):
    (path / "later").mkdir(parents=True)
    (path / "_SUCCESS").write_text("")
    names = [f"x{i}" for i in range(X.shape[1])]
    for part, at in {"a": (0, 1000), "b": (1000, 1000), "later/c": (1000, len(X))}.items():
        table = arrow_table(X[slice(*at)]).select(names if part == "a" else names[::-1])
        pa.parquet.write_table(table, path / f"{part}.parquet", row_group_size=130)
    return path


def arrow(X, path):
    with pa.ipc.new_file(str(path), arrow_table(X).schema) as file:
        file.write_table(arrow_table(X), max_chunksize=99)
    return path


def arrow_folder(X, path):
    path.mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        arrow(part, path / f"{i}.feather")
    return path


KINDS = {
    "x.h5": hdf5_plain,
    "y.hdf5": hdf5_chunks,
    "x.h5ad": h5ad_dense,
    "x.zarr": zarr_2,
    "y.zarr": zarr_3,
    "z.zarr": zarr_shards,
    "x.parquet": parquet,
    "folder of parquet": parquet_folder,
    "x.arrow": arrow,
    "folder of feather": arrow_folder,
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def written(kind, folder, X):
    return KINDS[kind](X, folder / kind)


# The same rows.


@cycled(kind=KINDS, dtype=["float64", "float32", "int32"])
def test_every_row_in_blocks_of_any_length(tmp_path, kind, dtype):
    X = rows(dtype)
    path = written(kind, tmp_path, X)
    with config_context(memory="512KiB" if dtype == "float32" else SMALL):
        source = as_source(path)
        assert isinstance(source, Banded)
        assert source.dtype == ("float32" if dtype == "float32" else "float64")
        assert_array_equal(source.collect(), X)
    for length in (1000, 101):
        with config_context(block_rows=length):
            assert_array_equal(source.collect(), X)
    rng = np.random.default_rng(1)
    for start, stop in np.sort(rng.integers(0, N + 1, (10, 2))):
        assert_array_equal(source.read(int(start), int(stop)), X[start:stop])
    at = rng.integers(-N, N, 60)
    assert_array_equal(source.take(at), X[at])


@pytest.mark.parametrize("dtype", ["uint8", ">i2"])
def test_small_integers_take_no_more_memory_than_in_the_file(tmp_path, dtype):
    h5py, X = pytest.importorskip("h5py"), rows("int16") % 100
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = X.astype(dtype)
    source = as_source(tmp_path / "x.h5")
    assert (source.array.itemsize, source.dtype) == (np.dtype(dtype).itemsize, np.float64)
    assert_array_equal(source.collect(), X)
    assert_array_equal(source.read(3, 9), X[3:9].astype(float))


def test_few_rows_go_to_memory(tmp_path, kind):
    source = as_source(written(kind, tmp_path, rows()))
    assert isinstance(source, ArraySource)
    assert_array_equal(source.collect(), rows())


def test_columns_are_chosen_by_the_reader(tmp_path, kind):
    X = rows()
    path = written(kind, tmp_path, X)
    named = {"x.h5ad": "g{}"}.get(kind, "{}" if kind.endswith((".zarr", ".h5", ".hdf5")) else "x{}")
    at = [20, 3, 4, 5, 0, 9, 10, 11, 12, 13, 14, 15, 16, 17]
    with config_context(memory="1MiB"):
        table = read_table(path, columns=[named.format(i) for i in at])
        assert isinstance(table.source, Banded)
        assert_array_equal(table.source.collect(), X[:, at])
        assert table.source.width <= D
    if named != "{}":
        assert table.source.names == [named.format(i) for i in at]


@functools.cache
def in_memory():
    """Models, and the same fitted to rows in memory."""
    subset = KernelPCA(3, kernel="rbf", gamma=1e-5, method=Subset(40), random_state=0)
    return [(model, clone(model).fit(rows())) for model in (PCA(3), subset)]


def test_pca_and_subset_as_in_memory(tmp_path, kind):
    X = rows()
    path = written(kind, tmp_path, X)
    with config_context(memory=SMALL):
        source = as_source(path)
    for model, expected in in_memory():
        ours = clone(model).fit(source)
        assert_allclose(ours.projection_.eigenvalues, expected.projection_.eigenvalues, rtol=1e-9)


def test_labels_and_weights_beside_rows_in_place(tmp_path):
    X = rows()
    table = arrow_table(X).append_column("name", pa.array([f"n{i % 3}" for i in range(N)]))
    table = table.append_column("w", pa.array(np.arange(N) + 1))
    pa.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=101)
    with config_context(memory=SMALL):
        found = read_table(tmp_path / "x.parquet", label="name", weights="w")
        assert isinstance(found.source, Banded)
        assert found.extra["name"][:4].tolist() == ["n0", "n1", "n2", "n0"]
        assert_array_equal(found.source.weights, np.arange(N) + 1)
        assert_array_equal(found.source.collect(), X)
    hdf5_plain(np.column_stack([np.arange(N), X]), tmp_path / "x.h5")
    with config_context(memory=SMALL):
        found = read_table(tmp_path / "x.h5", label="0")
        assert_array_equal(found.extra["0"], np.arange(N))
        assert_array_equal(found.source.collect(), X)


def test_missing_values_are_found(tmp_path, kind):
    X = rows()
    X[2500, 7] = np.nan
    path = written(kind, tmp_path, X)
    with config_context(memory=SMALL):
        with pytest.raises(MissingValues, match="1 value is missing"):
            read_table(path)
        assert list(read_table(path, missing="keep").missing.values()) == [1]
        with pytest.raises(ValueError, match="row 2500, column 7"):
            PCA(2).fit(path)


def test_copies_and_pickles(tmp_path, kind):
    X = rows()
    with config_context(memory=SMALL):
        source = as_source(written(kind, tmp_path, X))
    for other in (copy.copy(source), pickle.loads(pickle.dumps(source))):
        assert_array_equal(other.read(95, 310), X[95:310])


# Each band about once; bands that are too large, or slow.


def test_a_band_is_unpacked_once_a_pass(tmp_path, monkeypatch):
    X, seen = rows(), []
    path = parquet(X, tmp_path / "x.parquet")
    with config_context(memory=SMALL):
        source = as_source(path)
    own = type(source).open

    @contextlib.contextmanager
    def counting(self):
        with own(self) as decode:
            yield lambda start, stop: seen.append(start // 101) or decode(start, stop)

    monkeypatch.setattr(type(source), "open", counting)
    monkeypatch.setattr("mercer.threads.workers", lambda: 1)
    with config_context(block_rows=37):
        source.collect()
    assert seen == list(range(30))
    seen.clear()
    source.take([N - 1, N - 2])
    assert seen == []  # it is still kept
    source.take(np.arange(N)[::-1])
    assert len(seen) == 30


@pytest.mark.parametrize("why", ["large", "slow"])
def test_bands_that_do_not_suit_go_to_a_temporary_file(tmp_path, why):
    X = rows()
    options = {"chunks": (N, D)} if why == "large" else {"chunks": (101, D), "compression": "gzip"}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("X", data=X, **options)
    compressors = zarr.codecs.GzipCodec() if why == "slow" else "auto"
    chunks = options["chunks"]
    zarr.create_array(tmp_path / "x.zarr", data=X, chunks=chunks, compressors=compressors)
    pa.parquet.write_table(arrow_table(X), tmp_path / "x.parquet", row_group_size=chunks[0])
    for name in ("x.h5", "x.zarr", *(["x.parquet"] if why == "large" else [])):
        with config_context(memory=SMALL):
            source = as_source(tmp_path / name)
            assert isinstance(source, NpySource), name
            assert_array_equal(source.collect(), X)


# Sparse rows.


def test_sparse_rows_beyond_memory(tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(10_000, 30)) < 0.2, rng.integers(1, 9, (10_000, 30)), 0)
    X = X.astype(np.float32)
    write_h5ad(tmp_path / "x.h5ad", X, False)
    with config_context(memory="1MiB"):
        source = as_source(tmp_path / "x.h5ad")
        assert isinstance(source, CSRRows)
        assert source.sparse
        assert source.nnz == np.count_nonzero(X)
        assert scipy.sparse.issparse(source.read(3, 9))
        assert_array_equal(source.collect(), X)
        assert_array_equal(source.take([7, -1, 7]), X[[7, -1, 7]])
        some = read_table(tmp_path / "x.h5ad", columns=["g9", "g2"]).source
        assert isinstance(some, CSRRows)
        assert_array_equal(some.collect(), X[:, [9, 2]])
        ours = PCA(3).fit(source)
    expected = PCA(3).fit(scipy.sparse.csr_array(X))
    assert_allclose(ours.explained_variance_, expected.explained_variance_, rtol=1e-5)
    os.utime(tmp_path / "x.h5ad", ns=(0, 10**18))
    with pytest.raises(FileError, match="changed while it was being read"):
        source.collect()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": "far"}, "could not be read as AnnData"),
        ({"indptr": "far"}, "sparse matrix has indices outside"),
        ({"indptr": "back"}, "sparse matrix has indices outside"),
    ],
)
def test_sparse_rows_that_lie(tmp_path, changes, message):
    X = np.ones((2000, 20))
    write_h5ad(tmp_path / "x.h5ad", X, False)
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        for name, how in changes.items():
            values = file["X"][name][:]
            values[len(values) // 2 if how == "back" else -1] = -5 if how == "back" else 10**6
            file["X"][name][:] = values
    with config_context(memory="200KiB"), pytest.raises(FileError, match=message):
        as_source(tmp_path / "x.h5ad").collect()


# What is wrong.


def test_a_file_that_changes(tmp_path, kind):
    path = written(kind, tmp_path, rows())
    with config_context(memory=SMALL, block_rows=100):
        source = as_source(path)
        source.collect()
        target = tmp_path / kind
        inside = [file for file in target.rglob("*") if file.is_file()] if target.is_dir() else []
        newest = max(inside, key=lambda file: file.stat().st_size, default=target)
        time.sleep(0.02)
        newest.write_bytes(newest.read_bytes()[:-10])
        with pytest.raises(FileError, match="changed while it was being read"):
            source.collect()
        newest.unlink()
        with pytest.raises((FileError, FileNotFoundError), match="was removed"):
            source.collect()


def test_chunks_that_are_added(tmp_path):
    X = rows()
    half, chunks = len(X) // 2, (101, X.shape[1])
    array = zarr.create_array(tmp_path / "x.zarr", shape=X.shape, chunks=chunks, dtype="f8")
    array[:half] = X[:half]
    with config_context(memory=SMALL, block_rows=100):
        source = as_source(tmp_path / "x.zarr")
        source.collect()
        time.sleep(0.02)
        array[half:] = 1.0
        with pytest.raises(FileError, match="changed while it was being read"):
            source.collect()


def test_names_of_arrays_in_a_file(tmp_path):
    X = np.ones((4, 3))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"], file["c"] = X, X * 2, np.arange(3)
        file.create_group("g")["a::b"] = X
    assert_array_equal(as_source(f"{tmp_path}/x.h5::b").collect(), 2 * X)
    for name, message in {
        "x.h5": r"the file is not one 2D numeric array.*x\.h5::NAME: 'a', 'b', 'g/a::b'",
        "x.h5::d": "'d' is not one 2D numeric array.*'a', 'b'",
        "x.h5::c": "'c' is not one 2D numeric array",
        "x.h5::g": "'g' is not one 2D numeric array",
        "x.npy::g": "only files with several tables .* accept a name after '::'",
    }.items():
        with pytest.raises(FileError, match=message):
            as_source(f"{tmp_path}/{name}")
    os.rename(tmp_path / "x.h5", tmp_path / "x::b.h5")
    with pytest.raises(FileError, match="the file is not one 2D numeric array"):
        as_source(tmp_path / "x::b.h5")
    group = zarr.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a", data=X)
    group.create_array("b", data=X)
    with pytest.raises(FileError, match=r"the file is not one 2D.*x\.zarr::NAME: 'a', 'b'"):
        as_source(tmp_path / "x.zarr")
    with pytest.raises(FileError, match=r"x\.zarr::c: .c. is not one .*: .a., .b.\."):
        as_source(f"{tmp_path}/x.zarr::c")


def test_an_array_with_nothing_behind_its_shape(tmp_path):
    zarr.create_array(tmp_path / "x.zarr", shape=(10**9, 10**6), chunks=(100, 100), dtype="f4")
    with pytest.raises(FileError, match="is mostly empty"):
        as_source(tmp_path / "x.zarr")


def test_folders_that_are_no_table(tmp_path):
    with pytest.raises(FileError, match="contains no data files"):
        as_source(tmp_path)
    with pytest.raises(FileError, match=r"^No file matches the pattern .*/x\*\.csv\. Supported"):
        as_source(tmp_path / "x*.csv")
    arrow(rows()[:9], tmp_path / "b.arrow")
    parquet(rows()[:9], tmp_path / "a.parquet")
    with pytest.raises(FileError, match=r"2 formats \(.arrow, .parquet\)"):
        as_source(tmp_path)
    for kind in ("arrow", "parquet"):
        assert_array_equal(read_table(tmp_path, format=kind).source.collect(), rows()[:9])
    (tmp_path / "_empty").mkdir()
    with pytest.raises(FileError, match="contains no data files"):
        read_table(tmp_path / "_empty", format="parquet")
    (tmp_path / "b.arrow").unlink()
    parquet(rows()[:9, :23], tmp_path / "c.parquet")
    with pytest.raises(FileError, match=r"a\.parquet and c\.parquet have different columns.*'x23'"):
        as_source(tmp_path)
    pa.parquet.write_table(pa.table({f"x{i}": ["t"] for i in range(D)}), tmp_path / "c.parquet")
    with pytest.raises(FileError, match=r"a\.parquet and c\.parquet have different.*'x0'"):
        as_source(tmp_path)
    (tmp_path / "npy").mkdir()
    np.save(tmp_path / "npy" / "x.npy", rows())
    with pytest.raises(
        FileError, match=r"1 format \(\.npy\), but a table in a folder has one of: \.csv"
    ):
        as_source(tmp_path / "npy")


def test_damaged_chunks(tmp_path):
    rng, ends = np.random.default_rng(0), dict[str, int]()
    for version in (2, 3):
        folder = tmp_path / f"{version}.zarr"
        zarr.create_array(folder, data=rows()[:40], chunks=(15, 10), zarr_format=version)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        whole = {file: file.read_bytes() for file in files}
        for _ in range(40):
            # Half of the damage is to the description of the array.
            marks = [file for file in files if "zarr" in file.name or file.name == ".zattrs"]
            file = files[rng.integers(len(files))] if rng.uniform() < 0.5 else marks[0]
            file.write_bytes(mutated(whole[file], rng))
            end = outcome(folder)
            ends[end] = ends.get(end, 0) + 1
            file.write_bytes(whole[file])
    assert ends.keys() <= {"FileError", "MissingValues", "BudgetError", "table"}
    assert ends["FileError"] > 20

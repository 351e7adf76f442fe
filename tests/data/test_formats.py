"""The same rows in every format, read and written."""

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from types import SimpleNamespace

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from numpy.testing import assert_array_equal

from mercer import PCA, KernelPCA, as_source, config_context
from mercer.data import NpySource, SparseSource, StringSource
from mercer.data.files import FileError, MissingValues, id_names, read_table, write_table
from mercer.data.files.table import polars
from mercer.kernels import Substring
from tests.catalogue import others_slow

NAMES = ["length", "width", 'näme, "quoted"\nand <b>broken</b> 😀']
TABLES = [".csv", ".tsv", ".parquet", ".arrow", ".feather"]


def rows(n=50, dtype=np.float64):
    """Return rows of all scales, whose digits all count."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-30, 30, (n, 3))
    X[0] = 0.1, 1.0 / 3.0, 5e-324 if dtype == np.float64 else 1e-45
    X[1] = -0.0, 2.0**53 + 2, 1.7e308 if dtype == np.float64 else 3e38
    return X.astype(dtype)


# Round trips.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("suffix", [*TABLES, ".npy"])
@pytest.mark.parametrize("length", [1, 7, 1000])
def test_every_bit_comes_back(tmp_path, suffix, dtype, length):
    X, path = rows(dtype=dtype), tmp_path / f"x{suffix}"
    with config_context(block_rows=length):
        write_table(as_source(X), path, NAMES)
        table = read_table(path)
    found = table.source.collect()
    text = suffix in (".csv", ".tsv")
    assert found.dtype == (np.float64 if text else dtype)
    assert found.astype(dtype).tobytes() == X.tobytes()
    assert table.source.names == (None if suffix == ".npy" else NAMES)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", TABLES)
def test_columns_beside_the_rows(tmp_path, suffix):
    X, n = rows(), 50
    beside = {
        "label": np.array(["a", 'b,"\n', "<script>", "é😀", ""] * 10, dtype=object),
        "id": np.arange(n) + 2**60,
        "share": np.linspace(0, 1, n),
        "flag": np.arange(n) % 2 == 0,
    }
    path = tmp_path / f"x{suffix}"
    write_table(as_source(X), path, extra=beside)
    table = read_table(path, label="label", keep=["id", "share", "flag"])
    assert table.source.names == ["component1", "component2", "component3"]
    assert_array_equal(table.source.collect(), X)
    for name, values in beside.items():
        assert_array_equal(table.extra[name], values)
        assert table.extra[name].dtype == values.dtype
    alone = read_table(path)
    assert (alone.dropped, alone.id) == (("label",), "id")
    assert alone.source.names[:2] == ["share", "flag"]
    assert read_table(path, columns=["id", "flag"]).source.names == ["id", "flag"]


def test_sparse_and_computed_rows_are_written(tmp_path):
    X = scipy.sparse.random_array((40, 5), density=0.3, rng=0)
    write_table(SparseSource(X.tocsr()), tmp_path / "x.parquet")
    doubled = as_source(tmp_path / "x.parquet").map(lambda block: 2 * block.rows, 5)
    write_table(doubled, tmp_path / "x.parquet", names=list("abcde"))  # over what it reads
    assert_array_equal(as_source(tmp_path / "x.parquet").collect(), 2 * X.toarray())


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("x.xlsx", {}, r"suffix '\.xlsx'.*\.csv, \.tsv, \.parquet.*\.npy"),
        ("x", {}, "suffix ''"),
        ("x.csv", {"names": ["a"]}, "1 names were given for 3 columns"),
        ("x.csv", {"names": ["a", "b", "a"]}, "several columns are named 'a'"),
        ("x.csv", {"extra": {"component2": np.zeros(50)}}, "columns are named 'component2'"),
        ("x.csv", {"extra": {"y": np.zeros(3)}}, r"'y' has shape \(3,\), but there are 50"),
        ("x.npy", {"extra": {"y": np.zeros(50)}}, "contains only numbers, not 'y'"),
        ("nowhere/x.csv", {}, "there is no folder .*nowhere"),
    ],
)
def test_what_cannot_be_written(tmp_path, path, options, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        write_table(as_source(rows()), tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [*TABLES, ".npy"])
def test_a_writing_that_fails_leaves_what_was_there(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_text("before")

    def broken(block):
        if block.start:
            raise RuntimeError("half way")
        return block.rows

    with config_context(block_rows=10), pytest.raises(RuntimeError, match="half way"):
        write_table(as_source(rows()).map(broken, 3), path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# Typed columns.


def typed():
    return pa.table(
        {
            "i": pa.array([1, None, 3], pa.int64()),
            "u": pa.array([1, 2, 3], pa.uint8()),
            "h": pa.array(np.array([0.5, 1, 2], np.float16)),
            "b": pa.array([True, False, None]),
            "d": pa.array([1, 2, 3], pa.decimal128(6, 2)),
            "text": ["x", None, "z"],
            "cat": pa.array(["x", "y", "x"]).dictionary_encode(),
            "day": pa.array([1, 2, 3], pa.date32()),
            "list": [[1.0], [2.0], [3.0]],
            "__index_level_0__": [7, 8, 9],
        }
    )


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_columns_of_many_types(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(typed(), path)
    else:
        pyarrow.feather.write_feather(typed(), path, compression="lz4")
    table = read_table(path, missing="keep", label="cat", keep=["text", "day"])
    expected = [[1, 1, 0.5, 1, 1], [np.nan, 2, 1, 0, 2], [3, 3, 2, np.nan, 3]]
    assert_array_equal(table.source.collect(), expected)
    assert table.source.names == ["i", "u", "h", "b", "d"]
    assert (table.dropped, table.id) == (("list",), "__index_level_0__")
    assert table.missing == {"i": 1, "b": 1}
    assert table.extra["cat"].tolist() == ["x", "y", "x"]
    assert table.extra["text"].tolist() == ["x", "", "z"]
    assert table.extra["day"].tolist()[0] == "1970-01-02"
    with pytest.raises(MissingValues, match="1 of 'i', 1 of 'b'"):
        read_table(path)
    with pytest.raises(FileError, match=r"that is not numeric: 'text' \(text\)"):
        read_table(path, columns=["text"])
    with pytest.raises(FileError, match="did you mean 'text'"):
        read_table(path, label="txt")


def test_an_arrow_stream(tmp_path):
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pa.ipc.new_stream(str(tmp_path / "x.arrow"), table.schema) as file:
        file.write_table(table)
    assert_array_equal(as_source(tmp_path / "x.arrow").collect(), [[1, 3], [2, 4]])


def test_a_batch_larger_than_the_budget_allows(tmp_path):
    X = np.random.default_rng(0).standard_normal((50_000, 4))
    table = pa.table({name: X[:, i] for i, name in enumerate("abcd")})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as file:
        file.write_table(table)
    with config_context(memory="4MiB"):
        source = as_source(tmp_path / "x.arrow")
        assert isinstance(source, NpySource)
        assert_array_equal(source.collect(), X)


def test_a_wide_parquet_file_some_columns_at_a_time(tmp_path):
    X = np.random.default_rng(0).standard_normal((300, 50))
    X[7, 20] = np.nan
    columns = {f"x{i}": X[:, i] for i in range(50)} | {"t": list("abc") * 100}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    with config_context(memory="100KiB"):
        table = read_table(tmp_path / "x.parquet", label="t", weights="x3", missing="keep")
        assert isinstance(table.source, NpySource)
        assert_array_equal(table.source.collect(), np.delete(X, 3, axis=1))
    assert_array_equal(table.source.weights, X[:, 3])
    assert table.extra["t"].tolist() == list("abc") * 100
    assert table.missing == {"x20": 1}
    assert table.source.names == [f"x{i}" for i in range(50) if i != 3]


def test_tables_without_rows_or_numbers(tmp_path):
    pyarrow.parquet.write_table(pa.table({"a": pa.array([], "float64")}), tmp_path / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    pyarrow.parquet.write_table(pa.table({}), tmp_path / "c.parquet")
    for name, message in {"a": "no rows", "b": "no numeric column", "c": "no columns"}.items():
        with pytest.raises(FileError, match=message):
            as_source(tmp_path / f"{name}.parquet")


# NumPy and SciPy.


def test_npy_by_column_numbers(tmp_path):
    X = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "x.npy", X)
    table = read_table(tmp_path / "x.npy", label="3", weights="0", columns=["2", "1"])
    assert_array_equal(table.source.collect(), X[:, [2, 1]])
    assert_array_equal(table.extra["3"], X[:, 3])
    assert_array_equal(table.source.weights, X[:, 0])
    assert isinstance(read_table(tmp_path / "x.npy").source, NpySource)
    with pytest.raises(FileError, match="no column names: 'class' must be a number from 0 to 3"):
        read_table(tmp_path / "x.npy", label="class")


def test_missing_values_in_npy(tmp_path):
    X = np.array([[1.0, np.nan], [np.nan, np.nan]])
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(MissingValues, match="2 of '1', 1 of '0'"):
        read_table(tmp_path / "x.npy")
    assert read_table(tmp_path / "x.npy", missing="keep").missing == {"0": 1, "1": 2}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("memory", ["1MiB", "1GiB"])
def test_npz_with_one_array(tmp_path, save, order, memory):
    X = np.asarray(np.random.default_rng(0).standard_normal((5000, 20)), order=order)
    save(tmp_path / "x.npz", X=X)
    with config_context(memory=memory):
        source = as_source(tmp_path / "x.npz")
        assert isinstance(source, NpySource) == (memory == "1MiB")
        assert_array_equal(source.collect(), X)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_npz_with_a_sparse_matrix(tmp_path, kind):
    X = scipy.sparse.random_array((30, 8), density=0.2, rng=0)
    scipy.sparse.save_npz(tmp_path / "x.npz", X.asformat(kind))
    table = read_table(tmp_path / "x.npz", columns=["0-2", "7"])
    assert isinstance(table.source, SparseSource)
    assert_array_equal(table.source.collect(), X.toarray()[:, [0, 1, 2, 7]])


def npy_bytes(array, shape=None, descr=None):
    """Return an array as a .npy file that claims this shape and type."""
    file = io.BytesIO()
    header = {
        "descr": descr or array.dtype.str,
        "fortran_order": False,
        "shape": array.shape if shape is None else shape,
    }
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def zipped(path, members, claim=None):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name + ".npy", content)
    if claim is not None:  # the size in the directory at the end of the file
        data = bytearray(path.read_bytes())
        at = data.rindex(b"PK\x01\x02") + 24
        data[at : at + 4] = claim.to_bytes(4, "little")
        path.write_bytes(data)


@pytest.mark.parametrize(
    ("members", "claim", "message"),
    [
        ({}, None, "contains 0 arrays"),
        ({"a": npy_bytes(np.ones((2, 2))), "b": b""}, None, r"2 arrays \('a', 'b'\)"),
        ({"a": npy_bytes(np.ones(3))}, None, "expected 2D"),
        ({"a": npy_bytes(np.ones((2, 2)), (10**9, 10**9))}, None, "is not a .npy file"),
        ({"a": npy_bytes(np.ones((2, 2)))}, 2**31, "cannot unpack from .* to 2.0 GiB"),
        ({"a": npy_bytes(np.zeros((2, 2)), descr="|O")}, None, "is not a .npy file"),
        (
            {
                "format": npy_bytes(np.array(b"csr")),
                "shape": npy_bytes(np.array([2, 3])),
                "data": npy_bytes(np.ones(2)),
                "indices": npy_bytes(np.array([0, 10**6], np.int32)),
                "indptr": npy_bytes(np.array([0, 1, 2], np.int32)),
            },
            None,
            "could not be read as a (.npz file|sparse)",
        ),
        (
            {
                "format": npy_bytes(np.array(b"coo")),
                "shape": npy_bytes(np.array([2**50, 3])),
                "data": npy_bytes(np.ones(1)),
                "row": npy_bytes(np.array([0])),
                "col": npy_bytes(np.array([0])),
            },
            None,
            "memory budget",
        ),
    ],
)
def test_npz_that_lies(tmp_path, members, claim, message):
    zipped(tmp_path / "x.npz", members, claim)
    with pytest.raises((FileError, MemoryError), match=message):
        read_table(tmp_path / "x.npz")


def test_npz_runs_nothing(tmp_path):
    """An array of objects is a pickle, which may run anything."""

    class Loud:
        def __reduce__(self):
            return print, ("it ran",)

    np.savez(tmp_path / "x.npz", X=np.array([[Loud()]], dtype=object))
    np.save(tmp_path / "x.npy", np.array([[Loud()]], dtype=object))
    for suffix in ("npz", "npy"):
        with pytest.raises(FileError, match=r"is not a \.npy file"):
            read_table(tmp_path / f"x.{suffix}")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("dense", [True, False])
def test_matrix_market(tmp_path, field, symmetry, dense):
    X = scipy.sparse.random_array((12, 12), density=0.3, rng=0)
    if symmetry != "general":
        X = X + X.T if symmetry == "symmetric" else X - X.T
    if field != "real":
        X = X.sign()
    if field == "pattern":
        if dense or symmetry == "skew-symmetric":
            pytest.skip("no such file: a pattern is sparse, and has no sign")
        X = abs(X)
    X = X.toarray() if dense else X
    scipy.io.mmwrite(tmp_path / "x.mtx", X, "two\nlines", field, 17, symmetry)
    source = as_source(tmp_path / "x.mtx")
    assert source.sparse == (not dense)
    assert_array_equal(source.collect(), X if dense else X.toarray())


def test_a_wide_matrix_market_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((6, 3))
    scipy.io.mmwrite(tmp_path / "x.mtx", X, precision=17)
    assert_array_equal(as_source(tmp_path / "x.mtx").collect(), X)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%%MatrixMarket matrix coordinate real general\n9 9 9999999\n1 1 1\n", "declares 9999999"),
        ("%%MatrixMarket matrix array real general\n999999 999999\n1\n", "memory budget"),
        ("%%MatrixMarket matrix array real general\n999999999999 0\n", "memory budget"),
        (
            "%%MatrixMarket matrix coordinate real general\n3 3 1\n9 9 1\n",
            "outside 3 × 3",
        ),
        ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n", "1 entries of 3"),
        ("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1 1\n", "1 entries of 4"),
        ("%%MatrixMarket matrix array real symmetric\n3 2\n1\n", "matrix cannot have shape 3 × 2"),
        ("%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 1 1 1\n", "complex"),
        ("%%MatrixMarket matrix coordinate real general\n3 0 0\n", "shape .*, expected 2D"),
        ("nothing of it", "Matrix Market"),
    ],
)
def test_matrix_market_that_lies(tmp_path, text, message):
    (tmp_path / "x.mtx").write_text(text)
    with pytest.raises((FileError, MemoryError), match=message):
        as_source(tmp_path / "x.mtx")


# AnnData.


def write_h5ad(path, X, dense=True, **changes):
    """Write a file in the layout of AnnData 0.8 and later, which anndata reads too."""
    with h5py.File(path, "w") as file:
        if dense:
            file.create_dataset("X", data=X, chunks=True, compression="gzip")
            encode(file["X"], "array")
        else:
            group = file.create_group("X")
            matrix = scipy.sparse.csr_array(X) if dense is False else scipy.sparse.csc_array(X)
            encode(group, f"{matrix.format}_matrix", "0.1.0")
            group.attrs["shape"] = changes.get("shape", matrix.shape)
            for part in ("data", "indices", "indptr"):
                group[part] = changes.get(part, getattr(matrix, part))
        var, obs = file.create_group("var"), file.create_group("obs")
        for table, index, columns in ((var, "gene", []), (obs, "_index", ["depth", "kind"])):
            encode(table, "dataframe")
            table.attrs.update(
                {"_index": index, "column-order": np.array(columns, h5py.string_dtype())}
            )
        write_texts(var, "gene", changes.get("names", [f"g{i}" for i in range(X.shape[1])]))
        write_texts(obs, "_index", [f"cell{i}" for i in range(len(X))])
        obs["depth"] = np.arange(len(X)) + 0.5
        encode(obs["depth"], "array")
        kind = obs.create_group("kind")
        encode(kind, "categorical")
        kind.attrs["ordered"] = False
        kind["codes"] = (np.arange(len(X)) % 3 - 1).astype(np.int8)
        encode(kind["codes"], "array")
        write_texts(kind, "categories", ["B", "T"])
        count = obs.create_group("count")
        count["values"], count["mask"] = np.arange(len(X)) + 1, np.zeros(len(X), bool)


def encode(member, kind, version="0.2.0"):
    member.attrs.update({"encoding-type": kind, "encoding-version": version})


def write_texts(group, name, texts):
    group.create_dataset(name, data=texts, dtype=h5py.string_dtype())
    encode(group[name], "string-array")


@pytest.mark.parametrize("dense", [True, False, None], ids=["dense", "csr", "csc"])
def test_h5ad(tmp_path, dense):
    X = np.random.default_rng(0).poisson(0.5, (30, 6)).astype(np.float32)
    write_h5ad(tmp_path / "x.h5ad", X, dense)
    table = read_table(tmp_path / "x.h5ad", label="kind", keep=["depth", "_index"], weights="count")
    assert_array_equal(table.source.collect(), X)
    assert table.source.dtype == np.float32
    assert table.source.sparse == (dense is not True)
    assert table.source.names == [f"g{i}" for i in range(6)]
    assert table.extra["kind"].tolist() == ["", "B", "T"] * 10
    assert table.extra["_index"][3] == "cell3"
    assert_array_equal(table.extra["depth"], np.arange(30) + 0.5)
    assert_array_equal(table.source.weights, np.arange(30) + 1)
    some = read_table(tmp_path / "x.h5ad", columns=["g5", "g0"])
    assert_array_equal(some.source.collect(), X[:, [5, 0]])
    with pytest.raises(FileError, match="did you mean 'kind'"):
        read_table(tmp_path / "x.h5ad", label="kin")


def test_h5ad_names_are_made_unique(tmp_path):
    write_h5ad(tmp_path / "x.h5ad", np.ones((3, 4)), names=["a", "a", "a-1", "a"])
    with pytest.warns(UserWarning, match="1 names in var are not unique"):
        names = as_source(tmp_path / "x.h5ad").names
    assert names[0] == "a"
    assert names[2] == "a-1"
    assert len(set(names)) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": np.array([0, 99, 1, 2], np.int32)}, "could not be read as AnnData"),
        ({"indptr": np.array([0, 2, 400], np.int32)}, "could not be read as AnnData"),
        ({"shape": (2, 10**15)}, "var has 2 names"),
        ({"shape": (2, 2, 2)}, r"X has shape .*, expected 2D"),
        ({"names": ["a"]}, "var has 1 names, but X has 2 columns"),
    ],
)
def test_h5ad_that_lies(tmp_path, changes, message):
    write_h5ad(tmp_path / "x.h5ad", np.ones((2, 2)), False, **changes)
    with pytest.raises((FileError, MemoryError), match=message):
        read_table(tmp_path / "x.h5ad")


def test_h5ad_follows_no_link_to_another_file(tmp_path):
    write_h5ad(tmp_path / "secret.h5ad", np.ones((2, 2)))
    write_h5ad(tmp_path / "x.h5ad", np.ones((2, 2)))
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink("secret.h5ad", "X")
    with pytest.raises(FileError, match="is an external link"):
        read_table(tmp_path / "x.h5ad")


def test_h5ad_with_nothing_behind_its_shape(tmp_path):
    write_h5ad(tmp_path / "x.h5ad", np.ones((2, 2)))
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        del file["X"]
        file.create_dataset("X", (10**9, 10**6), "f4", chunks=(100, 100))
    with pytest.raises(FileError, match="is mostly empty"):
        read_table(tmp_path / "x.h5ad")


# Strings.


def test_strings_one_a_line(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes("banana\r\n\r\nänanas\x0cx\nbandana\n\n".encode())
    source = as_source(path)
    assert isinstance(source, StringSource)
    assert source.strings == ["banana", "", "änanas\x0cx", "bandana"]
    with pytest.raises(FileError, match="strings, one per line, has no columns"):
        read_table(path, label="a")
    path.write_bytes(b"")
    with pytest.raises(FileError, match="is empty"):
        as_source(path)
    path.write_bytes(b"\xe9t\xe9")
    with pytest.raises(FileError, match=r"UTF-8 text \(UnicodeDecodeError.*byte 0xe9"):
        as_source(path)


def test_a_kernel_of_strings_in_a_file(tmp_path):
    words = ["banana", "ananas", "bandana", "cabana", "havana"]
    (tmp_path / "x.txt").write_text("\n".join(words))
    fitted = KernelPCA(2, kernel=Substring(2)).fit(tmp_path / "x.txt")
    expected = KernelPCA(2, kernel=Substring(2)).fit(words)
    assert_array_equal(fitted.eigenvalues_, expected.eigenvalues_)
    scores = fitted.transform(str(tmp_path / "x.txt")).collect()
    assert_array_equal(scores, expected.transform(words))
    with pytest.raises(ValueError, match="X contains strings, but PCA needs numbers"):
        PCA(2).fit(tmp_path / "x.txt")


# The standard input.


STANDARD = [*TABLES, ".npy", ".npz", ".mtx", ".h5ad"]


def written(folder, suffix):
    X, path = rows().clip(-1e9, 1e9), folder / f"x{suffix}"
    if suffix == ".npz":
        np.savez(path, X)
    elif suffix == ".mtx":
        scipy.io.mmwrite(path, X, precision=17)
    elif suffix == ".h5ad":
        write_h5ad(path, X)
    else:
        write_table(as_source(X), path)
    return X, path


@pytest.mark.parametrize("suffix", STANDARD)
def test_the_standard_input(tmp_path, monkeypatch, suffix):
    X, path = written(tmp_path, suffix)
    for memory in ("64KiB", "1GiB") if suffix in (".csv", ".npy") else ("1GiB",):
        with path.open("rb") as file, config_context(memory=memory):
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=file))
            assert_array_equal(read_table("-").source.collect(), X)


@pytest.mark.parametrize("suffix", others_slow(STANDARD, ".csv"))
def test_the_standard_input_of_a_process(tmp_path, suffix):
    X, path = written(tmp_path, suffix)
    code = (
        "from mercer.data.files import read_table\nprint(read_table('-').source.collect().tolist())"
    )
    with path.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdin=file, capture_output=True, check=True
        )
    assert_array_equal(json.loads(done.stdout), X)


def test_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=["a,b\n1,2\n"])
    writer.start()
    assert_array_equal(as_source(tmp_path / "pipe").collect(), [[1, 2]])
    writer.join()


# The estimators.


@pytest.mark.parametrize("suffix", TABLES)
def test_estimators_take_paths(tmp_path, suffix):
    X = np.random.default_rng(0).standard_normal((60, 3))
    path, out = tmp_path / f"x{suffix}", tmp_path / f"scores{suffix}"
    write_table(as_source(X), path, NAMES)
    fitted, expected = PCA(2).fit(str(path)), PCA(2).fit(X)
    assert list(fitted.feature_names_in_) == NAMES
    assert_array_equal(fitted.components_, expected.components_)
    scores = fitted.transform(path, out=out)
    assert_array_equal(scores.collect(), expected.transform(X))
    written = as_source(out)
    assert list(written.names) == ["pca0", "pca1"]
    assert_array_equal(written.collect(), expected.transform(X))
    write_table(as_source(X), path, ["length", "width", "other"])
    with pytest.raises(FileError, match=r"x\.\w+ has no column .*there are 'length', 'width'"):
        fitted.transform(path)


def test_an_estimator_says_what_it_does_not_use(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,x\n3,5,y\n4,4,z\n")
    with pytest.warns(UserWarning, match=r"1 column is not used: 'c'") as caught:
        PCA(1).fit(tmp_path / "x.csv")
    assert caught[0].filename == __file__
    (tmp_path / "y.csv").write_text("a,b\n1,2\n,5\n4,4\n")
    with pytest.raises(MissingValues, match="1 of 'a'"):
        PCA(1).fit(tmp_path / "y.csv")
    (tmp_path / "z.csv").write_text("a,b\n1,2\ninf,5\n4,4\n")
    with pytest.raises(ValueError, match=r"infinity.*row 1, column 0 \('a'\)"):
        PCA(1).fit(tmp_path / "z.csv")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow", ".h5ad"])
def test_without_the_extra(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"a,b\n1,2\n" if suffix != ".h5ad" else b"")
    polars.cache_clear()
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[files\]'"):
        read_table(path)
    if suffix != ".h5ad":
        with pytest.raises(ImportError, match=r"pip install 'mercer\[files\]'"):
            write_table(as_source(rows()), path)


def test_what_needs_no_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    X = np.eye(3)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X)
    scipy.io.mmwrite(tmp_path / "x.mtx", scipy.sparse.csr_array(X))
    for suffix in (".npy", ".npz", ".mtx"):
        assert_array_equal(as_source(tmp_path / f"x{suffix}").collect(), X)
    write_table(as_source(X), tmp_path / "y.npy")


def test_identifiers_keep_their_digits(tmp_path):
    found = {
        "id": pyarrow.array([2**53 + 1, None, 2**53 + 3]),
        "big": pyarrow.array([2**64 - 1, 2**64 - 2, 0], "uint64"),
        "few": pyarrow.array([1, None, 3]),
        "flag": pyarrow.array([True, None, False]),
    }
    pyarrow.parquet.write_table(
        pyarrow.table({**found, "x": [1.0, 2.0, 4.0]}), tmp_path / "x.parquet"
    )
    extra = read_table(tmp_path / "x.parquet", columns=["x"], keep=list(found)).extra
    assert extra["id"].tolist() == ["9007199254740993", "", "9007199254740995"]
    assert extra["big"].tolist() == [2**64 - 1, 2**64 - 2, 0]
    assert_array_equal(extra["few"], [1, np.nan, 3])
    assert_array_equal(extra["flag"], [1, np.nan, 0])


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("which", "at", "value"),
    [
        ("indptr", -1, -1),
        ("indptr", -1, -(2**31)),
        ("indptr", -1, 10**6),
        ("indptr", 1, 9),
        ("indptr", 0, -1),
        ("indices", 0, -1),
        ("indices", -1, 4),
    ],
)
def test_sparse_entries_beyond_the_shape_are_refused(kind, which, at, value, tmp_path):
    """SciPy takes some of these, and its loops go astray."""
    matrix = getattr(scipy.sparse, f"{kind}_array")(np.ones((4, 4)))
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr.copy()}
    parts[which] = parts[which].copy()
    parts[which][at] = value
    np.savez(tmp_path / "x.npz", format=np.array(kind), shape=np.array([4, 4]), **parts)
    with pytest.raises(FileError, match=r"sparse matrix|index pointer"):
        read_table(tmp_path / "x.npz")
    with h5py.File(tmp_path / "x.h5ad", "w") as file:
        X = file.create_group("X")
        file["var/_index"] = ["a", "b", "c", "d"]
        X.attrs["encoding-type"], X.attrs["shape"] = f"{kind}_matrix", (4, 4)
        for name, part in parts.items():
            X[name] = part
    with pytest.raises(FileError, match=r"sparse matrix|index pointer"):
        read_table(tmp_path / "x.h5ad")


@pytest.mark.parametrize("name", ["x.npy", "x.csv"])
def test_a_budget_too_small_is_not_blamed_on_the_file(name, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((9, 3)))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    with config_context(memory=10), pytest.raises(MemoryError, match="budget of 10 B") as refused:
        PCA(1).fit(tmp_path / name)
    assert "Recreate the file" not in str(refused.value)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_extra_columns_stay_beside_their_rows_in_any_blocks(tmp_path, suffix):
    path, names = tmp_path / f"x{suffix}", [f"r{i}" for i in range(25)]
    with config_context(block_rows=10):
        write_table(as_source(np.arange(50.0).reshape(25, 2)), path, extra={"id": names})
    assert list(id_names(read_table(path, id="id").source.extra_columns["id"])) == names

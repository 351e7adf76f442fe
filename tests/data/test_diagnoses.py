"""Files and objects that are not what they seem: read, or refused with a remedy that works."""

import bz2
import datetime
import gzip
import lzma
import pickle
import re
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from mercer import (
    PCA,
    KernelPCA,
    NoveltyDetector,
    config_context,
)
from mercer.data import as_source
from mercer.data.files import FileError, MissingValues, read_table, write_table
from tests.annotated import stand_in

pa = pytest.importorskip("pyarrow", reason="tables need pyarrow: mercer[files]")

TABLE = "a,b\n1,2\n3,5\n4,4\n"
ROWS = [[1, 2], [3, 5], [4, 4]]
R = '"a" "b"\n"s1" 1 2\n"s2" 3 5\n"s3" 4 4\n'  # as write.table writes it


def sheet(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    return path


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["x.csv.{}", "x.csv", "x.{}"])
def test_compressed_text_is_read_under_any_name(tmp_path, pack, name):
    suffix = {gzip.compress: "gz", bz2.compress: "bz2", lzma.compress: "xz"}[pack]
    path = tmp_path / name.format(suffix)
    path.write_bytes(pack(TABLE.encode()))
    assert_array_equal(read_table(path).source.collect(), ROWS)
    assert list(PCA(1).fit(path).feature_names_in_) == ["a", "b"]
    packed = path.read_bytes()
    path.write_bytes(packed[: len(packed) - 9])
    with pytest.raises(FileError, match=r"could not be read as text .*(ended before|CRC)"):
        read_table(path)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".npy", ".tsv", ".mtx"])
def test_every_format_may_be_compressed(tmp_path, suffix):
    X = np.array(ROWS, float)
    path = tmp_path / f"x{suffix}"
    if suffix == ".mtx":
        path.write_text("%%MatrixMarket matrix array real general\n3 2\n1\n3\n4\n2\n5\n4\n")
    else:
        write_table(as_source(X), path)
    packed = tmp_path / f"y{suffix}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert_array_equal(read_table(packed).source.collect(), X)
    with config_context(memory="64KiB"):  # from the temporary file, which must still be there
        assert_array_equal(as_source(packed).collect(), X)


def test_text_that_begins_as_a_compressed_file_does(tmp_path):
    (tmp_path / "x.csv").write_text(TABLE.replace("a", "BZh9"))
    assert read_table(tmp_path / "x.csv").source.names == ["BZh9", "b"]


def test_sheets(tmp_path):
    path = tmp_path / "x.xlsx"
    with pd.ExcelWriter(path) as file:
        frame = pd.DataFrame({"a": [1, 3, 4], "name": list("xyz"), "b": [2.0, 5.0, 4.0]})
        frame.to_excel(file, sheet_name="one", index=False)
        pd.DataFrame([[0.5, None], [1.5, 7.0]]).to_excel(
            file, sheet_name="two", index=False, header=False
        )
    table = read_table(path, label="name")
    assert_array_equal(table.source.collect(), ROWS)
    assert (table.source.names, table.extra["name"].tolist()) == (["a", "b"], ["x", "y", "z"])
    with pytest.warns(UserWarning, match="was read as data, not as column names"):
        table = read_table(f"{path}::two", missing="keep")
    assert_array_equal(table.source.collect(), [[0.5, np.nan], [1.5, 7.0]])
    with pytest.raises(FileError, match=r"no sheet 'three'\. Its sheets are 'one', 'two'"):
        read_table(f"{path}::three")
    path.rename(tmp_path / "x.csv")
    with pytest.raises(FileError, match=r"looks like a \.xlsx file.*format='xlsx'"):
        read_table(tmp_path / "x.csv")
    assert read_table(tmp_path / "x.csv", format="xlsx").source.shape == (3, 2)


def write_sheet(path, lines):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append(line)
    book.save(path)
    return path


def test_numbers_of_sheets_keep_their_digits(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 1e-12, 1e14]
    X[0] = [1e-300, -1e300, 1 / 3]
    # openpyxl writes 16 digits, which are not those of every number.
    X = np.vectorize(lambda x: float(f"{x:.16g}"))(X)
    rows = [[*row, ["n.d.", 1 / 7, True][i % 3]] for i, row in enumerate(X.tolist())]
    path = write_sheet(tmp_path / "x.xlsx", [list("abcd"), *rows])
    table = read_table(path, na=["n.d."], missing="keep")
    assert_array_equal(table.source.collect()[:, :3], X)
    assert_array_equal(table.source.collect()[1::3, 3], float(f"{1 / 7:.16g}"))


def test_ids_and_dates_of_sheets_are_no_features(tmp_path):
    days = [datetime.date(2024, 1, 1 + i) for i in range(4)]
    lines = [[10**14 + i, days[i], f"{i:03}", i / 3, bool(i % 2)] for i in range(4)]
    path = write_sheet(tmp_path / "x.xlsx", [["id", "day", "code", "a", "b"], *lines])
    table = read_table(path, keep=["code"])
    assert (table.source.names, table.reasons) == (["a", "b"], {"day": "dates"})
    assert table.row_names.tolist() == [10**14 + i for i in range(4)]
    assert table.extra["code"].tolist() == ["000", "001", "002", "003"]


def test_titles_above_sheets_are_skipped(tmp_path):
    title = [["Results of 2024"], ["by the laboratory"], [], [None, "a", "b"]]
    path = write_sheet(tmp_path / "x.xlsx", [*title, [None, 1, 2], [None, 3, 5], [], [None, 4, 4]])
    with pytest.warns(UserWarning, match=r"first blank row \('Results of 2024'\) were skipped"):
        table = read_table(path)
    assert_array_equal(table.source.collect(), ROWS)
    assert table.source.names == ["a", "b"]
    lines = [["a", "b"], [1, 2], [], [3, 5], [4, "x"]]
    with pytest.warns(UserWarning, match=r"line 5: column 'b' holds 'x'"):
        read_table(write_sheet(path, lines))


@pytest.mark.parametrize("name", ["x.xlsx", "x.xls", "x.ods"])
def test_damaged_sheets(tmp_path, name):
    with pytest.raises(FileError, match=r"x\.\w+ could not be read as"):
        read_table(sheet(tmp_path / name))


def test_json_lines(tmp_path):
    path = tmp_path / "x.ndjson"
    path.write_text('{"a": 1, "t": "x", "b": 2}\n\n{"b": 5.0, "a": 3}\n{"a": null, "b": 4}\n')
    table = read_table(path, label="t", missing="keep")
    assert_array_equal(table.source.collect(), [[1, 2], [3, 5], [np.nan, 4]])
    assert table.extra["t"].tolist() == ["x", "", ""]
    path.write_text('{"a": 1}\n{"a": 2\n')
    with pytest.raises(FileError, match="line 2: Expecting"):
        read_table(path)


@pytest.mark.parametrize("url", ["https://example.org/x.csv?a=1", "s3://b/x.parquet", "file:///x"])
def test_addresses(url):
    for read in (read_table, PCA(1).fit, as_source):
        with pytest.raises(FileError) as refused:
            read(url)
        assert str(refused.value).startswith(f"{url} is a URL. Download it first")


def test_missing_values_have_a_remedy_that_works(tmp_path):
    """The lines run as they stand."""
    path = tmp_path / "x.csv"
    lines = [f"{i % 7},{(3 * i) % 11}.5" for i in range(30)]
    path.write_text("\n".join(["a,b", *lines, ",5"]) + "\n")
    with pytest.raises(MissingValues) as caught:
        PCA(1).fit(path)
    caught, names = pickle.loads(pickle.dumps(caught.value)), {}
    exec(str(caught).split("with column means: ")[1].split(". Or drop")[0], names)
    assert np.isfinite(names["X"]).all()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_folders_of_text(tmp_path, suffix):
    folder, sep = tmp_path / "parts", "\t" if suffix == ".tsv" else ","
    folder.mkdir()
    for i in range(3):
        text = f"a{sep}b{sep}n\n{i}.5{sep}2{sep}r{i}\n{i}.25{sep}1{sep}s{i}\n".encode()
        (folder / f"{i}{suffix}").write_bytes(gzip.compress(text) if "gz" in suffix else text)
    for path in (folder, folder / f"*{suffix}"):
        table = read_table(path, label="n")
        assert_array_equal(table.source.collect()[:3], [[0.5, 2], [0.25, 1], [1.5, 2]])
        assert table.extra["n"].tolist() == ["r0", "s0", "r1", "s1", "r2", "s2"]
    first = read_table(folder / f"[12]{suffix}").source.collect()
    assert_array_equal(first[:, 0], [1.5, 1.25, 2.5, 2.25])
    (folder / "3.csv").write_text("a,c\n1,2\n")
    with pytest.raises(FileError, match=r"0\..* and 3\.csv have different columns|2 formats"):
        read_table(folder)


def test_keys_of_hive_folders(tmp_path):
    for year, place in ((2023, "a b"), (2024, "c")):
        folder = tmp_path / "t" / f"year={year}" / f"place={place.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pd.DataFrame({"x": [year / 2, 1.0]}).to_parquet(folder / "0.parquet")
    table = read_table(tmp_path / "t", label="place")
    assert table.source.names == ["x", "year"]
    assert_array_equal(table.source.collect()[:3], [[1011.5, 2023], [1, 2023], [1012, 2024]])
    assert table.extra["place"].tolist() == ["a b", "a b", "c", "c"]


# Text.


@pytest.mark.parametrize("sep", [" ", ",", "\t", ";"])
@pytest.mark.parametrize("quote", ['"', ""])
def test_the_default_of_r(tmp_path, sep, quote):
    """write.table: no name above the row names."""
    name = [f"{quote}{text}{quote}" for text in ("a", "b", "s1", "s2", "s3")]
    lines = [name[:2], [name[2], "1", "2"], [name[3], "3", "5"], [name[4], "4", "4"]]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(sep.join(line) for line in lines) + "\n")
    table = read_table(path)
    assert_array_equal(table.source.collect(), ROWS)
    assert table.source.names == ["a", "b"]
    assert table.extra[table.id].tolist() == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand, on a Monday\n" + TABLE,
        "# one\n#\n# two, three\n\n" + TABLE,
        "#a,b\n1,2\n3,5\n4,4\n",
        "# made\n# a,b\n1,2\n3,5\n4,4\n",
        "# made\r\n\r\na,b\r\n1,2\r\n# in between\r\n3,5\r\n4,4\r\n",
        "# made\na,b\n1,2\n#3,4\n3,5\n4,4\n# the end\n",
    ],
)
def test_comments(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    table = read_table(path)
    assert table.source.names == ["a", "b"]
    assert_array_equal(table.source.collect(), ROWS)


def test_comments_and_no_rows(tmp_path):
    (tmp_path / "x.csv").write_text("# made\na,b\n# the end")
    with pytest.raises(FileError, match="has a header, but no rows"):
        read_table(tmp_path / "x.csv")


def test_a_number_sign_is_a_comment_only_below_others(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('tag,a,b\n#1,1,2\n#2,3,5\n"x\n#y",4,4\n')
    table = read_table(path, keep=["tag"])
    assert_array_equal(table.source.collect(), ROWS)
    assert table.extra["tag"].tolist() == ["#1", "#2", "x\n#y"]
    path.write_text('# a comment\ntag,a,b\nt,1,2\nt,3,5\n"x\n#y",4,4\n')
    assert read_table(path, keep=["tag"]).extra["tag"].tolist() == ["t", "t", "x\n#y"]


# AnnData.


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
@pytest.mark.parametrize("part", ["layers/counts", "X", "raw/X"])
def test_layers(tmp_path, form, part):
    h5py = pytest.importorskip("h5py")
    X = scipy.sparse.random_array((30, 5), density=0.3, rng=0).toarray()
    path = tmp_path / "x.h5ad"
    names = [f"g{j}".encode() for j in range(5)]
    with h5py.File(path, "w") as file:
        for matrix in ("X", "layers/counts", "raw/X"):
            rows = X if matrix == part else np.zeros_like(X)
            if form == "dense":
                file[matrix] = rows
                continue
            kept = scipy.sparse.csr_array(rows) if form == "csr" else scipy.sparse.csc_array(rows)
            group = file.create_group(matrix)
            group.attrs.update({"encoding-type": f"{form}_matrix", "shape": X.shape})
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(kept, name)
        for var in ("var", "raw/var"):
            file.create_group(var).attrs["_index"] = "_index"
            file[var]["_index"] = names
        file.create_group("obs").attrs["_index"] = "_index"
        file["obs"]["_index"] = [f"cell{i}".encode() for i in range(30)]
        file["obs"]["n_counts"] = np.arange(30) + 2**60
    table = read_table(f"{path}::{part}")
    found = table.source.collect()
    assert_array_equal(found.toarray() if hasattr(found, "toarray") else found, X)
    assert table.source.names == ["g0", "g1", "g2", "g3", "g4"]
    assert table.extra[table.id][:2].tolist() == ["cell0", "cell1"]
    some = read_table(f"{path}::{part}", keep=["n_*"], drop=["g[02]"])
    assert some.source.names == ["g1", "g3", "g4"]
    assert some.dropped == ("g0", "g2")
    assert_array_equal(some.extra["n_counts"], np.arange(30) + 2**60)
    with pytest.raises(FileError, match=r"no 'layers/none'.*'X', 'layers/counts'"):
        read_table(f"{path}::layers/none")


def annotated(table, matrix=np.asarray):
    data = stand_in(matrix(table.to_numpy()))
    data.var_names, data.obs_names = table.columns, table.index
    return data


def frame():
    names = [f"c{i}" for i in range(20)]
    return pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), names, list("abc"))


@pytest.mark.parametrize("estimator", [PCA(2), KernelPCA(2, kernel="rbf")])
@pytest.mark.parametrize(
    "make",
    [
        annotated,
        lambda table: annotated(table, scipy.sparse.csr_matrix),
        lambda table: pytest.importorskip("polars").from_pandas(table).lazy(),
        lambda table: pa.Table.from_pandas(table, preserve_index=False).to_reader(5),
        lambda table: pytest.importorskip("pyarrow.dataset").dataset(
            pa.Table.from_pandas(table, preserve_index=False)
        ),
    ],
    ids=["AnnData", "sparse AnnData", "LazyFrame", "reader", "dataset"],
)
def test_objects_of_other_libraries(estimator, make):
    table = frame()
    expected = estimator.fit(table)
    scores = expected.transform(table)
    found = estimator.fit(make(table))
    assert list(found.feature_names_in_) == ["a", "b", "c"]
    assert np.allclose(np.abs(found.transform(make(table))), np.abs(scores))
    assert as_source(make(table)).shape == (20, 3)


def test_too_little_memory_is_said_of_rows_and_columns(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((9, 400)))
    with (
        config_context(memory="1KB"),
        pytest.raises(MemoryError, match="budget of 1000 B is too small: processing 9 rows × 400"),
    ):
        PCA(1).fit(tmp_path / "x.npy")


def write_mixed(folder):
    folder.mkdir()
    pd.DataFrame({"a": [1, 2, 4], "b": [2, 2, 5]}).to_parquet(folder / "x.parquet")
    (folder / "notes.txt").write_text("read me\n")


@pytest.mark.parametrize(
    ("name", "write", "names"),
    [
        ("x.csv", "id,a\n1,2\n2,5\n3,4\n", ["id", "a"]),
        ("x.csv", "a,b\n1,2\n?,5\n4,4\n3,1\n", ["a", "b"]),
        ("x.csv", "id\n1\n2\n4\n", ["id"]),
        ("x.csv", "a,b\n1,2\n,5\n4,4\n", ["a", "b"]),
        ("x.tsv", pd.DataFrame({"a": [1, 2], "b": [4, 2]}).to_parquet, ["a", "b"]),
        ("rows", write_mixed, ["a", "b"]),
        *((name, R, ["a", "b"]) for name in ("x.txt", "x.tsv")),
    ],
)
def test_the_call_that_a_fit_to_a_path_advises_works(tmp_path, name, write, names):
    path = tmp_path / name
    write(path) if callable(write) else path.write_text(write)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            PCA(1).fit(path)
        except ValueError as error:
            seen.append(error)
    said = " ".join(str(getattr(one, "message", one)) for one in seen)
    assert "from mercer.data.files import read_table" in said
    call = re.search(r"read_table\(.*?\)\.source", said)[0]
    assert repr(str(path)) in call
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eval(call, {"read_table": read_table})
    assert found.names == names


@pytest.mark.parametrize("model", [PCA(1), KernelPCA(1, kernel="rbf"), NoveltyDetector(PCA(1))])
def test_a_table_in_place_of_its_rows(tmp_path, model):
    (tmp_path / "x.csv").write_text(TABLE)
    table = read_table(tmp_path / "x.csv")
    with pytest.raises(TypeError, match=r"Pass table\.source"):
        model.fit(table)
    model.fit(table.source)
    method = getattr(model, "transform", None) or model.predict
    with pytest.raises(TypeError, match=r"Pass table\.source"):
        method(table)
    with pytest.raises(TypeError, match=r"Pass table\.source"):
        as_source(table)


def test_dates_beside_numbers_are_named_and_nothing_else_is_said():
    table = pd.DataFrame({"day": pd.to_datetime(["2024-01-01", "2024-01-02"]), "a": [1.5, 2.5]})
    with pytest.raises(ValueError, match=r"not numeric: 'day' \(dates, .*in row 0\).*Encode"):
        PCA(1).fit(table)

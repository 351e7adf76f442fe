"""Names of rows and kept columns: found, no features, and written as they were read."""

import datetime
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer import PCA, config_context
from mercer.data import as_source
from mercer.data.files import FileError, read_table, write_table

pa = pytest.importorskip("pyarrow", reason="tables need pyarrow: mercer[files]")
pq = pytest.importorskip("pyarrow.parquet")

TEXT = (".csv", ".tsv")
TYPED = (".parquet", ".arrow", ".feather")
N = 40


def frame():
    """A table with columns of every kind that should come out as it went in."""
    rng = np.random.default_rng(0)
    day = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(N)]
    return pa.table(
        {
            "sample_id": pa.array(rng.permutation(N).astype(np.int64) * 2 + 10**18 + 1),
            "code": pa.array([f"{i:05d}" for i in range(N)]),
            "day": pa.array(day),
            "site": pa.array(['a,"b"', "", "NA", "é😀"] * (N // 4)),
            "count": pa.array([None if i == 3 else 2**62 + i for i in range(N)]),
            "a": pa.array(rng.normal(size=N)),
            "b": pa.array(rng.normal(size=N)),
        }
    )


def written(table, path):
    rows = np.column_stack([table[name].to_numpy() for name in ("a", "b")])
    extra = {name: table[name] for name in table.column_names[:-2]}
    write_table(as_source(rows), path, ["a", "b"], extra)
    return path


@pytest.mark.parametrize(("first", "last"), list(itertools.product(TEXT + TYPED, repeat=2)))
def test_kept_columns_come_out_as_they_went_in(tmp_path, first, last):
    table = frame()
    path = written(table, tmp_path / f"rows{first}")
    kept = ["code", "day", "site", "count"]
    found = read_table(path, keep=kept, columns=["a", "b"])
    assert found.id == "sample_id"
    model = PCA(2).fit(found.source)
    out = tmp_path / f"scores{last}"
    model.transform(found.source, out=out)
    again = read_table(out, keep=kept, columns=["pca0", "pca1"])
    ids = table["sample_id"].to_numpy()
    assert again.extra["sample_id"].dtype == np.int64
    assert_array_equal(again.extra["sample_id"], ids)
    for name in ("code", "site", "day"):
        texts = ["" if value is None else str(value) for value in table[name].to_pylist()]
        assert again.extra[name].tolist() == texts, name
    counts = [str(value) for value in table["count"].to_pylist() if value is not None]
    assert [str(value) for value in again.extra["count"] if value != ""] == counts
    if last == ".parquet":
        types = {field.name: str(field.type) for field in pq.read_schema(out)}
        assert (types["sample_id"], types["day"]) == ("int64", "date32[day]")
        assert (types["count"], types["pca0"]) == ("int64", "double")


def test_text_that_is_kept_is_not_touched(tmp_path):
    text = "a,b,kept\n1,2,1.50\n2,1,1e3\n3,5,007\n"
    (tmp_path / "x.csv").write_text(text)
    source = read_table(tmp_path / "x.csv", keep=["kept"]).source
    PCA(1).fit(source).transform(source, out=tmp_path / "s.csv")
    found = pd.read_csv(tmp_path / "s.csv", dtype=str)["kept"]
    assert found.tolist() == ["1.50", "1e3", "007"]


@given(
    st.lists(
        st.integers(0, 2**63 - 1) | st.integers(10**16, 10**17),
        min_size=3,
        max_size=60,
        unique=True,
    ),
    st.sampled_from(["id", "ID", "sample_id", "PassengerId", "barcode", "Sample", "row.names", ""]),
    st.integers(0, 2),
)
@settings(max_examples=60, deadline=None)
def test_identifiers_are_no_features(tmp_path_factory, ids, name, place):
    """Whatever the identifiers, their name, and how the pieces of the file fall."""
    if not name:
        place = 0  # only the first column may have no name
    folder = tmp_path_factory.mktemp("ids")
    names, columns = ["a", "b"], [[0.5 + i for i in range(len(ids))], [1.5] * len(ids)]
    names.insert(place, name)
    columns.insert(place, ids)
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*columns, strict=True))]
    (folder / "x.csv").write_text("\n".join(lines))
    table = read_table(folder / "x.csv")
    assert table.source.names == ["a", "b"]
    assert table.id == (name or "Unnamed: 0")
    assert table.extra[table.id].tolist() == ids
    if name:
        chosen = read_table(folder / "x.csv", columns=["a", name])
        assert chosen.source.names == ["a", name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@given(
    st.lists(st.integers(-(2**50), 2**50), min_size=2, max_size=40, unique=True),
    st.sampled_from(["integers", "floats", "texts"]),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_identifiers_with_gaps_are_no_features(tmp_path_factory, suffix, ids, kind, data):
    """Wherever the gaps are, and as pandas writes integers with gaps: 1000.0."""
    n = len(ids)
    gaps = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    values = [None if i in gaps else value for i, value in enumerate(ids)]
    expected = [f"#{i}" if i in gaps else value for i, value in enumerate(ids)]
    if kind == "texts":
        values = [None if value is None else f"s{value}" for value in values]
        expected = [name if i in gaps else f"s{name}" for i, name in enumerate(expected)]
    column = pd.Series(values, dtype={"integers": "Int64", "floats": float, "texts": object}[kind])
    path = tmp_path_factory.mktemp("gaps") / f"x{suffix}"
    table = pd.DataFrame({"a": np.arange(n) + 0.5, "sample_id": column})
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = read_table(path, missing="refuse")
    assert (found.id, found.source.names, found.missing) == ("sample_id", ["a"], {})
    assert found.row_names.tolist() == expected


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_first_identifier_names_the_rows(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    table = pd.DataFrame({"id": [1, None, 3], "sample": ["x", "y", "z"], "a": [0.5, 2.5, 1.5]})
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = read_table(path)
    assert (found.id, found.reasons) == ("id", {"sample": "identifier"})
    assert found.row_names.tolist() == [1, "#1", 3]


def test_parts_of_a_table_with_gaps_in_some(tmp_path):
    """pandas stores integers with gaps as floats, of that part alone."""
    folder = tmp_path / "x.parquet"
    folder.mkdir()
    for i, ids in enumerate([[1, 2], [3, None]]):
        part = pd.DataFrame({"id": ids, "a": [0.5 + i, 2.5]})
        part.to_parquet(folder / f"{i}.parquet")
    found = read_table(folder)
    assert (found.id, found.source.names) == ("id", ["a"])
    assert found.row_names.tolist() == [1, 2, 3, "#3"]


def test_gaps_of_whole_pieces(tmp_path, small_pieces):
    ids = ["" if 5_000 < i < 25_000 else str(i) for i in range(30_000)]
    lines = ["id,a", *(f"{name},{i % 7}.5" for i, name in enumerate(ids))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    found = read_table(tmp_path / "x.csv")
    assert (found.id, found.source.names) == ("id", ["a"])
    (tmp_path / "x.csv").write_text("\n".join([*lines, "5,0.5"]))
    assert read_table(tmp_path / "x.csv", missing="keep").source.names == ["id", "a"]


def test_markers_are_gaps_of_identifiers(tmp_path):
    (tmp_path / "x.csv").write_text("id,a\n7,1.5\n?,2.5\n?,0.5\n9,3.5\n")
    found = read_table(tmp_path / "x.csv", na=["?"])
    assert (found.id, found.source.names) == ("id", ["a"])
    assert found.row_names.tolist() == [7, "#1", "#2", 9]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("id", "Id", "index", "sample", "user id", "gene-id", "UserID")),
        *((name, False) for name in ("width", "grid", "valid", "arid", "index of refraction", "x")),
    ],
)
def test_names_of_identifiers(tmp_path, name, expected):
    (tmp_path / "x.csv").write_text(f"a,{name}\n0.5,7\n1.5,9\n")
    assert read_table(tmp_path / "x.csv").id == (name if expected else None)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    "values",
    [[1, 2, 2, 3], [0.5, 1.5, 2.5, 3.5]],
    ids=["repeated", "fractions"],
)
def test_a_name_alone_makes_no_identifier(tmp_path, suffix, values):
    path = tmp_path / f"x{suffix}"
    table = pd.DataFrame({"id": values, "a": [1.0, 4.0, 2.0, 3.0]})
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = read_table(path)
    assert (found.id, found.source.names) == (None, ["id", "a"])


def test_identifiers_are_told_apart_over_all_pieces(tmp_path, small_pieces):
    """A repeat far below is a repeat."""
    ids = [*range(30_000), 5]
    lines = ["id,a", *(f"{i},{i % 7}.5" for i in ids)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert read_table(tmp_path / "x.csv").source.names == ["id", "a"]
    (tmp_path / "x.csv").write_text("\n".join(lines[:-1]))
    assert read_table(tmp_path / "x.csv").source.names == ["a"]


def test_two_identifiers(tmp_path):
    (tmp_path / "x.csv").write_text("id,sample,a,b\n1,s1,3,4\n2,s2,5,1\n3,s3,1,1\n")
    table = read_table(tmp_path / "x.csv")
    assert (table.id, table.source.names) == ("id", ["a", "b"])
    assert table.reasons == {"sample": "identifier"}
    table = read_table(tmp_path / "x.csv", id="sample")
    assert (table.id, table.source.names) == ("sample", ["a", "b"])


@pytest.mark.parametrize(
    ("options", "names", "dropped"),
    [
        ({"drop": ["g*"]}, ["x1", "x2"], ("g1", "g2")),
        ({"drop": ["g?", "x1"]}, ["x2"], ("x1", "g1", "g2")),
        ({"columns": ["x*"]}, ["x1", "x2"], ("g1", "g2")),
        ({"columns": ["*"], "drop": ["x[1]"]}, ["x2", "g1", "g2"], ("x1",)),
        ({"columns": ["g2", "x*"]}, ["g2", "x1", "x2"], ("g1",)),
        ({"keep": ["g*"]}, ["x1", "x2"], ()),
        ({"drop": ["*1"], "label": "g1"}, ["x2", "g2"], ("x1",)),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_patterns(tmp_path, suffix, options, names, dropped):
    path = tmp_path / f"x{suffix}"
    table = pd.DataFrame(np.eye(4), columns=["x1", "x2", "g1", "g2"])
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = read_table(path, **options)
    assert (found.source.names, found.dropped) == (names, dropped)
    if "keep" in options:
        assert list(found.extra) == ["g1", "g2"]


def test_a_column_whose_name_is_a_pattern(tmp_path):
    (tmp_path / "x.csv").write_text("x[1],x1,y\n1,2,3\n4,5,7\n")
    assert read_table(tmp_path / "x.csv", columns=["x[1]"]).source.names == ["x[1]"]
    with pytest.raises(FileError, match=r"no column matches 'z\*'\. Columns: 'x\[1\]'"):
        read_table(tmp_path / "x.csv", drop=["z*"])


@pytest.mark.parametrize("marker", ["?", "n.d.", "-999", "missing"])
def test_markers_of_missing_values(tmp_path, marker):
    path = tmp_path / "x.csv"
    path.write_text(f"a,b,t\n1,2,{marker}\n{marker},3,y\n4,4,z\n")
    table = read_table(path, na=[marker], missing="keep", keep=["t"])
    assert table.missing == {"a": 1}
    assert table.source.names == ["a", "b"]
    assert np.isnan(table.source.collect()[1, 0])
    assert table.extra["t"].tolist() == [marker, "y", "z"]


@pytest.mark.parametrize("line", [1, 2, 30])
def test_one_marker_among_numbers_is_pointed_out(tmp_path, line):
    """Wherever it stands: the column is not dropped without a word."""
    cells = ["1.5"] * 30
    cells[line - 1] = "n.d."
    (tmp_path / "x.csv").write_text("a,b\n" + "".join(f"{i}.5,{c}\n" for i, c in enumerate(cells)))
    with pytest.warns(UserWarning, match=rf"line {line + 1}.*'n\.d\.'.*na=\['n\.d\.'\]"):
        assert read_table(tmp_path / "x.csv").dropped == ("b",)
    with pytest.raises(FileError, match=r"not a number.*na=\['n\.d\.'\]"):
        read_table(tmp_path / "x.csv", columns=["b"])


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5", ".zarr"])
def test_long_integers_of_arrays(tmp_path, suffix):
    X = np.arange(12).reshape(4, 3)
    X[:, 0] += 2**62
    path = tmp_path / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, np.asfortranarray(X))
    elif suffix == ".npz":
        np.savez(path, X)
    elif suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["x"] = X
    else:
        pytest.importorskip("zarr").save(str(path), X)
    table = read_table(path, id="0")
    assert (table.id, table.source.shape) == ("0", (4, 2))
    assert_array_equal(table.extra["0"], X[:, 0])


def test_the_index_of_a_frame_is_written(tmp_path):
    table = pd.DataFrame(
        np.random.default_rng(0).normal(size=(5, 2)),
        columns=["a", "b"],
        index=pd.Index([f"{i:03d}" for i in range(5)], name="sample"),
    )
    model = PCA(1).fit(table)
    model.transform(table, out=tmp_path / "s.csv")
    assert pd.read_csv(tmp_path / "s.csv", dtype=str)["sample"].tolist() == list(table.index)
    model.transform(table.reset_index(drop=True), out=tmp_path / "s.csv")
    assert list(pd.read_csv(tmp_path / "s.csv")) == ["pca0"]
    table.to_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").id == "sample"


def test_a_file_is_transformed_by_the_names_of_its_columns(tmp_path):
    """Ids may repeat, columns change their places, and others be there."""
    (tmp_path / "x.csv").write_text("id,a,b\n1,3,4\n2,5,1\n3,1,1\n")
    (tmp_path / "y.csv").write_text("b,c,a,id\n4,x,3,7\n1,x,5,7\n")
    with pytest.warns(UserWarning, match="'id' is used as row names"):
        model = PCA(2).fit(tmp_path / "x.csv")
    found = model.transform(tmp_path / "y.csv").collect()
    assert_array_equal(found, model.transform(tmp_path / "x.csv").collect()[:2])


def test_ids_of_a_file_beyond_memory(tmp_path):
    n, d = 30_000, 40
    ids = 10**17 + np.random.default_rng(0).permutation(n)
    X = np.random.default_rng(1).normal(size=(n, d))
    columns = {"id": ids, **{f"x{j}": X[:, j] for j in range(d)}}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=1000)
    with config_context(memory="16MiB"):
        table = read_table(tmp_path / "x.parquet")
        assert table.source.waits, "the rows are read where they lie"
        assert table.source.shape == (n, d)
        assert_array_equal(table.extra["id"], ids)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_of_identifiers_alone(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    table = pd.DataFrame({"id": [1, 2, 4], "t": ["x", "y", "y"]})
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    with pytest.raises(FileError, match=r"not features: 'id'.*pass columns=\['id'\]"):
        read_table(path)
    assert read_table(path, columns=["id"]).source.names == ["id"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("id", [None, "sample", "code"])
def test_no_identifier_is_a_feature_whichever_names_the_rows(tmp_path, suffix, id):
    path = tmp_path / f"x{suffix}"
    ids = {"sample": [10, 30, 20], "user_id": [7, 5, 6], "code": [4, 4, 9]}
    table = pd.DataFrame({**ids, "a": [0.5, 2.5, 1.5]})
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    found = read_table(path, id=id)
    assert found.id == (id or "sample")
    others = [name for name in ("sample", "user_id") if name != found.id]
    assert found.reasons == dict.fromkeys(others, "identifier")
    assert found.source.names == (["a"] if id == "code" else ["code", "a"])
    chosen = read_table(path, id=id, columns=["sample", "a"])
    assert chosen.source.names == ["sample", "a"]

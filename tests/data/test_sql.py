"""Results of SQL queries as rows."""

import sqlite3

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, config_context
from mercer.data import NpySource
from mercer.data.files import FileError, MissingValues, read_table, redacted

pytest.importorskip("adbc_driver_sqlite")
pytest.importorskip("pyarrow")
RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(3000, 2)), RNG.integers(0, 99, 3000)])
CREATE = "CREATE TABLE rows (sample_id TEXT, a DOUBLE, b DOUBLE, c INTEGER, kind TEXT, hole DOUBLE)"
QUERY = "SELECT sample_id, a, b, c, kind FROM rows ORDER BY sample_id"


def lines():
    for i, (a, b, c) in enumerate(X.tolist()):
        yield f"s{i:05}", a, b, int(c), "xy"[i % 2], None if i == 2500 else 1.0


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "my rows?.db"
    with sqlite3.connect(path) as connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", lines())
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory):
    path = tmp_path_factory.mktemp("duckdb") / "duck.db"
    with pytest.importorskip("duckdb").connect(str(path)) as connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", list(lines())[:300])
    return f"duckdb:///{path}"


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_result_of_a_query_is_a_table(kind, request):
    uri = request.getfixturevalue(kind)
    rows = X[: 3000 if kind == "sqlite" else 300]
    table = read_table(uri, query=QUERY, label="kind")
    assert_array_equal(table.source.collect(), rows)
    assert (table.source.names, table.id) == (["a", "b", "c"], "sample_id")
    assert table.extra["kind"][:3].tolist() == ["x", "y", "x"]
    assert table.row_names[2] == "s00002"
    some = read_table(uri, query=QUERY, columns=["c", "a"], drop=["kind"])
    assert_array_equal(some.source.collect(), rows[:, [2, 0]])
    assert read_table(uri, query=QUERY).reasons == {"kind": "text"}


def test_results_beyond_the_budget(sqlite):
    with config_context(memory="150KB"):  # the rows are 72 KB
        source = read_table(sqlite, query=QUERY).source
        assert isinstance(source, NpySource)
        assert_array_equal(source.collect(), X)
    assert_allclose(PCA(2).fit(source).components_, PCA(2).fit(X).components_, atol=1e-10)


def test_missing_values_are_named_with_advice_that_works(sqlite):
    with pytest.raises(MissingValues, match="1 of 'hole'") as error:
        read_table(sqlite, query="SELECT a, hole FROM rows")
    call = str(error.value).partition("X = ")[2].partition(".source")[0]
    table = eval(call, {"read_table": read_table})
    assert table.missing == {"hole": 1}


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELEC a FROM rows", "syntax error"),
        ("SELECT nope FROM rows", "nope"),
        ("SELECT a FROM nope", "nope"),
        ("DELETE FROM rows", "read-?only"),
        ("SELECT a, b AS a FROM rows", "more than once"),
        ("SELECT a FROM rows WHERE a > 1e9", "no rows"),
        ("SELECT kind FROM rows", "no numeric column"),
    ],
)
def test_what_a_database_says_is_said_with_the_query(kind, query, message, request):
    uri = request.getfixturevalue(kind)
    with pytest.raises(FileError, match=message) as error:
        read_table(uri, query=query)
    assert "the query failed" not in str(error.value) or query in str(error.value)


def test_databases_that_cannot_be_read(tmp_path, sqlite):
    with pytest.raises(FileNotFoundError, match=r"nope\.db"):
        read_table(f"sqlite:///{tmp_path}/nope.db", query="SELECT 1")
    assert not (tmp_path / "nope.db").exists()
    (tmp_path / "text.db").write_text("not a database, but text\n" * 99)
    with pytest.raises(FileError, match="not a database"):
        read_table(f"sqlite:///{tmp_path}/text.db", query="SELECT a FROM rows")
    with pytest.raises(FileError, match=r"not the URI of a database .*sqlite://, duckdb://"):
        read_table("rows.csv", query="SELECT 1")
    with pytest.raises(FileError, match=r"is a database\. Query it with query='SELECT"):
        read_table(sqlite)
    with pytest.raises(FileError, match=r"read_table\('sqlite:.*query='SELECT \.\.\.'\)"):
        PCA(1).fit(sqlite)


def test_a_missing_driver_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(ImportError, match=r"PostgreSQL .*adbc_driver_postgresql.*'mercer\[sql\]'"):
        read_table("postgresql://user@host/name", query="SELECT 1")


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgresql://me:se:cret@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("sqlite:////home/a:b@c/x.db", "sqlite:////home/a:b@c/x.db"),
        ("postgresql://h/db?user=me&password=se:cret", "postgresql://h/db?user=me&password=***"),
        ("C:/rows:1@x.csv", "C:/rows:1@x.csv"),
    ],
)
def test_passwords_are_not_shown(uri, shown):
    assert redacted(uri) == shown
    with pytest.raises((ValueError, OSError)) as error:
        read_table(uri.replace("postgresql", "mysql"), query="SELECT 1")
    assert "cret" not in str(error.value)

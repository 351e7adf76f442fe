"""Queries on the command line."""

import sqlite3

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import PCA, load
from mercer.modelfile import read_header

pytest.importorskip("adbc_driver_sqlite")


def test_a_query_is_fitted_and_transformed(mercer, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 3))
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("CREATE TABLE t (id INTEGER, a REAL, b REAL, c REAL, kind TEXT)")
        rows = [(10 * i, *row, "uv"[i % 2]) for i, row in enumerate(X.tolist())]
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    query = ("--query", "SELECT * FROM t ORDER BY id")
    done = mercer("fit", "sqlite:///x.db", *query, "--label", "kind", "-o", "m.mercer")
    assert "sqlite:///x.db: 200 rows × 3 columns" in done.out
    expected = PCA(0.95).fit(X)
    assert_allclose(load(tmp_path / "m.mercer").components_, expected.components_, atol=1e-9)
    header = read_header(tmp_path / "m.mercer")["origin"]
    assert header["query"] in header["command"]
    done = mercer("transform", "m.mercer", "sqlite:///x.db", *query, "-o", "s.csv")
    assert (tmp_path / "s.csv").read_text().splitlines()[2].startswith("10,")
    wrong = mercer("fit", "sqlite:///x.db", "--query", "SELECT z FROM t", "-o", "n.mercer", code=1)
    assert "no such column: z" in wrong.err
    done = mercer("fit", "sqlite:///x.db", "-o", "n.mercer", code=1)
    assert "Query it with --query 'SELECT ...'" in " ".join(done.err.split())
    mercer("fit", "sqlite:///none.db", *query, "-o", "n.mercer", code=1)


def test_passwords_stay_out_of_messages(mercer):
    done = mercer(
        "fit", "postgres://me:secret@h/x", "--query", "SELECT 1", "-o", "m.mercer", code=1
    )
    assert "secret" not in done.err + done.out

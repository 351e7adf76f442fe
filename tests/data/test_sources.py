"""Rows wherever they live: the same rows, in blocks of any length."""

import os
import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from mercer import as_source, config_context
from mercer.data import (
    ArraySource,
    Collect,
    NonFiniteSearch,
    NpySource,
    ScaledSource,
    Source,
    SparseSource,
)
from mercer.linalg import Moments


def table(shape=(23, 5), dtype=np.float64):
    rng = np.random.default_rng(0)
    return np.where(rng.uniform(size=shape) < 0.5, rng.integers(1, 100, size=shape), 0).astype(
        dtype
    )


def memory(X, tmp_path):
    return ArraySource(X)


def strided(X, tmp_path):
    return ArraySource(np.repeat(X, 2, axis=1)[:, ::2])


def sparse(X, tmp_path):
    return SparseSource(scipy.sparse.csr_array(X))


def by_rows(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    return NpySource(tmp_path / "rows.npy")


def by_columns(X, tmp_path):
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    return NpySource(tmp_path / "columns.npy")


def mapped(X, tmp_path):
    return ArraySource(X / 2).map(lambda block: block.rows * 2, X.shape[1])


def scaled(X, tmp_path):
    return ScaledSource(ArraySource(X * 8), 3)


KINDS = [memory, strided, sparse, by_rows, by_columns, mapped, scaled]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def source(request, tmp_path):
    return request.param(table(), tmp_path)


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def test_shape_and_precision(source):
    assert source.shape == (23, 5)
    assert source.dtype == np.float64
    assert source.count == 23.0


@pytest.mark.parametrize("rows", [1, 4, 23, 100])
def test_all_rows_in_blocks_of_any_length(source, rows):
    with config_context(block_rows=rows):
        assert_array_equal(dense(source.collect()), table())


@pytest.mark.parametrize(("start", "stop"), [(0, 23), (3, 4), (22, 23), (5, 17)])
def test_some_rows(source, start, stop):
    assert_array_equal(dense(source.read(start, stop)), table()[start:stop])


def test_rows_by_number(source):
    assert_array_equal(dense(source.take([7, 0, 22, 7])), table()[[7, 0, 22, 7]])


def test_columns_as_rows(source):
    if not source.by_columns:
        with pytest.raises(ValueError, match=r"cannot be read by columns.*svd_solver='krylov'"):
            source.transposed()
        return
    columns = source.transposed()
    assert columns.shape == (5, 23)
    assert_array_equal(dense(columns.collect()), table().T)


def test_rows_as_an_array(source):
    assert_array_equal(np.asarray(source), table())
    assert np.asarray(source, dtype=np.float32).dtype == np.float32


def test_weights_go_with_their_rows(source):
    class Sum(Collect):
        def add(self, block):
            assert_array_equal(block.weights, np.arange(23)[block.start : block.stop])
            super().add(block)

    weighted = source.weighted(np.arange(23.0))
    with config_context(block_rows=4):
        out = weighted.fold(Sum(np.empty((23, 5)))).out
    assert_array_equal(out, table())
    assert weighted.count == 253.0
    assert source.weights is None


def test_a_map_is_lazy(source):
    calls = []

    def double(block):
        calls.append(block.start)
        return dense(block.rows) * 2

    doubled = source.map(double, 5)
    assert calls == []
    assert_array_equal(dense(doubled.read(2, 4)), 2 * table()[2:4])
    assert calls == [2]


def test_a_map_of_a_map(source):
    other = source.map(lambda b: dense(b.rows)[:, :2], 2).map(lambda b: b.rows.sum(1)[:, None], 1)
    assert_array_equal(other.collect()[:, 0], table()[:, :2].sum(axis=1))


@pytest.mark.parametrize("rows", [1, 7, 23])
def test_a_fold_does_not_depend_on_blocks(source, rows):
    with config_context(block_rows=rows):
        moments = source.fold(Moments(5, np.empty(0), np.float64))
    np.testing.assert_allclose(moments.scatter / 22, np.cov(table(), rowvar=False), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("at", [(0, 0), (22, 4), (11, 2)])
def test_the_first_entry_that_is_not_finite(kind, at, tmp_path):
    X = table()
    X[at] = np.inf
    X[22, 4] = np.nan
    with config_context(block_rows=3):
        row, column, value = kind(X, tmp_path).fold(NonFiniteSearch()).found
    assert (row, column) == at
    assert np.isinf(value) == (at != (22, 4))


def test_nothing_is_found_in_finite_rows(source):
    assert source.fold(NonFiniteSearch()).found is None


def test_an_error_in_a_fold_comes_out(source):
    class Broken(Collect):
        def add(self, block):
            if block.start >= 12:
                raise RuntimeError("broken")

    with config_context(block_rows=4), pytest.raises(RuntimeError, match="broken"):
        source.fold(Broken(None))


def test_one_row_must_fit_the_budget(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 10_000)))
    source = NpySource(tmp_path / "x.npy")
    with (
        config_context(memory="1KiB"),
        pytest.raises(MemoryError, match=r"1\.0 KiB.*config_context"),
    ):
        source.collect()


def test_blocks_shrink_with_the_budget(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1000, 1000)))
    source = NpySource(tmp_path / "x.npy")
    with config_context(memory="1MiB"):
        assert 2 * 8000 * source.block_rows(0, held=0, parts=1) <= 2**20


def test_many_cores_keep_to_the_budget_of_one(monkeypatch):
    # A copy of the state for each of 64 workers would take 90 MiB.
    X = np.random.default_rng(0).normal(size=(2000, 300))
    monkeypatch.setattr("mercer.threads.workers", lambda: 64)
    with config_context(memory="8MiB"):
        moments = ArraySource(X).fold(Moments(300, np.empty(0), np.float64))
    np.testing.assert_allclose(moments.scatter / 1999, np.cov(X, rowvar=False), atol=1e-12)


# Making a source.


@pytest.mark.parametrize(
    ("X", "kind"),
    [
        (table(), ArraySource),
        (table().tolist(), ArraySource),
        (scipy.sparse.csc_matrix(table()), SparseSource),
        (scipy.sparse.coo_array(table()), SparseSource),
    ],
)
def test_what_becomes_of_rows(X, kind):
    source = as_source(X)
    assert type(source) is kind
    assert_array_equal(dense(source.collect()), table())


def test_a_source_stays_itself():
    source = as_source(table())
    assert as_source(source) is source


def test_the_columns_of_a_dataframe_have_names():
    pd = pytest.importorskip("pandas")
    assert list(as_source(pd.DataFrame(table(), columns=list("abcde"))).names) == list("abcde")


@pytest.mark.parametrize(
    ("stored", "worked"), [("f4", "f4"), ("f8", "f8"), ("u1", "f8"), ("i2", "f8"), ("?", "f8")]
)
@pytest.mark.parametrize("kind", [memory, sparse, by_rows, by_columns], ids=lambda k: k.__name__)
def test_working_precision(kind, stored, worked, tmp_path):
    X = table(dtype=stored)
    source = kind(X, tmp_path)
    assert source.dtype == worked
    assert dense(source.read(0, 5)).dtype == worked
    assert_array_equal(dense(source.collect()), X)


def test_blocks_of_an_array_are_views():
    X = table()
    assert np.shares_memory(ArraySource(X).read(2, 9), X)


def test_a_source_made_by_a_user():
    class Counting(Source):
        shape, dtype, parallel = (10, 2), np.dtype(np.float64), False

        def read(self, start, stop):
            return np.arange(2.0 * start, 2.0 * stop).reshape(-1, 2)

    with config_context(block_rows=3):
        assert_array_equal(Counting().collect(), np.arange(20.0).reshape(10, 2))


# Files.


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npy"):
        as_source(tmp_path / "nowhere.npy")


def test_another_kind_of_file(tmp_path):
    (tmp_path / "x.abc").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"x\.abc: the suffix '\.abc' is not known.*\.csv"):
        as_source(tmp_path / "x.abc")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"not an array at all", b"PK\x03\x04" * 20])
def test_a_file_that_is_not_what_its_name_says(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy is not a \.npy file.*numpy\.save"):
        as_source(tmp_path / "x.npy")


@pytest.mark.parametrize("lost", [1, 8, 400])
def test_a_truncated_file(tmp_path, lost):
    path = tmp_path / "x.npy"
    np.save(path, table((20, 5)))
    path.write_bytes(path.read_bytes()[:-lost])
    with pytest.raises(ValueError, match=r"x\.npy is not a \.npy file"):
        as_source(path)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3, 4)])
def test_a_file_of_another_shape(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape))
    with pytest.raises(ValueError, match=r"shape \(.*expected 2D.*Reshape"):
        as_source(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["c16", "U3", "O", "M8[s]", [("a", "f8")]], ids=str)
def test_a_file_of_something_else_than_numbers(tmp_path, dtype):
    np.save(tmp_path / "x.npy", np.zeros((3, 2), dtype))
    with pytest.raises(ValueError, match=r"x\.npy (contains an array|is not a .npy file).*numbers"):
        as_source(tmp_path / "x.npy")


def test_a_file_that_changes_while_it_is_read(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, table())
    source = as_source(path)
    os.utime(path, ns=(0, 10**18))  # as if it had been written again
    with pytest.raises(ValueError, match=r"x\.npy changed"):
        source.read(0, 5)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_versions_of_the_format(tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, table(), version)
    assert_array_equal(as_source(tmp_path / "x.npy").collect(), table())


def test_a_file_longer_than_it_says(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, table())
    path.write_bytes(path.read_bytes() + b"more")
    assert_array_equal(as_source(path).collect(), table())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_folds_too(monkeypatch):
    """The helping threads of the parent are not in the child, which must start its own."""
    monkeypatch.setattr("mercer.threads.workers", lambda: 2)
    X = np.arange(6000.0).reshape(3000, 2)
    with config_context(block_rows=100):
        before = ArraySource(X).collect()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads, and fork
            child = os.fork()
        if child == 0:  # nothing of pytest may run here
            os._exit(0 if np.array_equal(ArraySource(X).collect(), before) else 1)
    deadline = time.monotonic() + 60
    done, status = os.waitpid(child, os.WNOHANG)
    while not done and time.monotonic() < deadline:
        time.sleep(0.01)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done
    assert os.waitstatus_to_exitcode(status) == 0


def test_what_a_map_promises_it_must_keep():
    rows = as_source(table()).map(lambda block: block.rows[:, :3], 4)
    with pytest.raises(ValueError, match=r"Rows 0 to .* mapped to shape \(.*3\).*width"):
        rows.collect()
    with pytest.raises(ValueError, match=r"out has shape \(3, 5\), but the rows have \(23, 5\)"):
        as_source(table()).collect(np.empty((3, 5)))

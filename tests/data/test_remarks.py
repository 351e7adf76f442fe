"""Remarks about columns: true, and the same for rows in memory and elsewhere."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.data import as_source
from mercer.data.files import read_table
from mercer.data.files.remarks import dominant_feature, feature_remarks

KINDS = ("normal", "constant", "counting", "increasing", "decreasing", "shuffled", "long")
KINDS += ("repeats", "gaps", "huge")


def column(kind, n, rng):
    return {
        "normal": lambda: rng.normal(size=n),
        "constant": lambda: np.full(n, 1e16),
        "counting": lambda: np.arange(n) - 3.0,
        "increasing": lambda: np.cumsum(rng.integers(1, 9, n)).astype(float),
        "decreasing": lambda: -np.arange(n, dtype=float),
        "shuffled": lambda: rng.permutation(n) + 7.0,
        "repeats": lambda: rng.integers(0, n, n).astype(float),
        "long": lambda: rng.integers(10**9, 10**12, n).astype(float),
        "gaps": lambda: np.where(np.arange(n) % 3 == 1, np.nan, rng.normal(size=n)),
        "huge": lambda: 1e9 + rng.normal(size=n),
    }[kind]()


def numbers(x, n):
    """Tell whether integers are sorted, or all different and of a range of n."""
    steps = np.diff(x)
    apart = len(np.unique(x)) == len(x) and np.ptp(x) < n
    return (steps > 0).all() or (steps < 0).all() or apart


def named(names, remarks):
    return {name for name in names if any(repr(name) in text for text in remarks)}


@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
    st.sampled_from([2, 9, 10, 50, 30_000]),
    st.integers(0, 3),
    st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_what_is_found_is_true(kinds, n, holes, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([column(kind, n, rng) for kind in kinds])
    X[rng.integers(0, n, holes), rng.integers(0, len(kinds), holes)] = np.nan
    names = [f"c{j}" for j in range(len(kinds))]
    source = as_source(X)
    said = feature_remarks(source, names, (), (), True)
    mapped = source.map(lambda block: block.rows, X.shape[1])
    assert feature_remarks(mapped, names, (), (), True) == said
    present = [x[~np.isnan(x)] for x in X.T]
    constant = {f"c{j}" for j, x in enumerate(X.T) if (x == x[0]).all()}
    whole = [j for j, x in enumerate(present) if len(x) and (np.floor(x) == x).all()]
    long = {f"c{j}" for j in whole if (np.abs(present[j]) >= 1e9).all()} - constant
    full = [j for j in whole if n >= 10 and len(present[j]) >= 0.9 * n]
    numbering = {f"c{j}" for j in full if numbers(present[j], n)} - constant - long
    for start, expected in (("no var", constant), ("ten dig", long), ("row num", numbering)):
        assert named(names, [text for text in said if start in text]) == expected


def test_sparse_rows():
    X = scipy.sparse.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    (said,) = feature_remarks(as_source(X), ["a", "b", "c"], (), (), True)
    assert said == "'a' is constant: it has no variance."


@pytest.mark.parametrize("factor", [1, 4, 6, 1e3, 1e8])
@pytest.mark.parametrize("gaps", [0, 3])
def test_the_column_that_dominates(factor, gaps):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1, factor, 1] + 1e4
    X[:gaps] = np.nan
    variances = np.nanvar(X, axis=0)
    said = dominant_feature(as_source(X), ["a", "b", "c"])
    assert (said != "") == (variances[1] > 0.95 * variances.sum())
    if said:
        assert said.startswith("'b' has about 9")
        assert "100" not in said


def test_infinity_hides_what_dominates():
    X = np.random.default_rng(0).normal(size=(30, 2)) * [100.0, 1.0]
    X[3, 1] = np.inf
    assert dominant_feature(as_source(X), ["a", "b"]) == ""


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_said(tmp_path, suffix):
    pl = pytest.importorskip("polars", reason="tables need polars: mercer[files]")
    rows = range(20)
    frame = pl.DataFrame(
        {
            "n": [i + 1 for i in rows],
            "t": [1700000000 + i * i for i in rows],
            "c": [5] * 20,
            "flag": [i % 2 > 0 for i in rows],
            "x": [i % 5 for i in rows],
            "user_id": [i % 3 for i in rows],
        }
    )
    path = tmp_path / f"x{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    assert read_table(path).remarks == ()
    said = read_table(path, remarks=True).remarks
    assert said == (
        "'user_id' is named like an identifier. Used as a feature. drop='user_id' excludes it; "
        "id='user_id' uses it as row names.",
        "'n' may be row numbers: distinct integers, sorted or consecutive. Used as a feature. "
        "drop='n' excludes it; id='n' uses it as row names.",
        "'t' may be an identifier or a time: integers of ten digits or more. Used as a feature. "
        "drop='t' excludes it; id='t' uses it as row names.",
        "'c' is constant: it has no variance.",
        "true and false are used as 1 and 0: 'flag'.",
    )
    chosen = read_table(path, remarks=True, columns=["user_id", "x"])
    assert chosen.remarks == ()

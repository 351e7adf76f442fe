"""Remarks about columns: the same for any block size, and true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer import config_context
from mercer.data import as_source
from mercer.data.files import read_table
from mercer.data.files.remarks import Profile, dominant_feature

pytest.importorskip("pyarrow", reason="tables need pyarrow: mercer[files]")

KINDS = ("normal", "constant", "counting", "repeats", "gaps", "huge")


def column(kind, n, rng):
    return {
        "normal": lambda: rng.normal(size=n),
        "constant": lambda: np.full(n, 1e16),
        "counting": lambda: np.arange(n) - 3.0,
        "repeats": lambda: rng.integers(0, n, n).astype(float),
        "gaps": lambda: np.where(np.arange(n) % 3 == 1, np.nan, rng.normal(size=n)),
        "huge": lambda: 1e9 + rng.normal(size=n),
    }[kind]()


@given(
    st.lists(st.sampled_from(KINDS), min_size=1, max_size=6),
    st.integers(2, 50),
    st.integers(1, 50),
    st.integers(0, 3),
    st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_what_is_found_is_true_for_any_blocks(kinds, n, block, holes, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([column(kind, n, rng) for kind in kinds])
    X[rng.integers(0, n, holes), rng.integers(0, len(kinds), holes)] = np.nan
    with config_context(block_rows=block):
        found = as_source(X).fold(Profile(*X.shape))
    assert_array_equal(found.missing, np.isnan(X).sum(axis=0))
    with np.errstate(invalid="ignore"):
        assert found.constant.tolist() == np.flatnonzero((X[0] == X).all(axis=0)).tolist()
    present = [x[~np.isnan(x)] for x in X.T]
    expected = [np.var(x) if len(x) else 0 for x in present]
    assert_allclose(found.variances, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("factor", [1, 4, 6, 1e3, 1e8])
def test_the_column_that_dominates(factor):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * [1, factor, 1]
    share = X[:, 1].var() / X.var(axis=0).sum()
    said = dominant_feature(as_source(X).fold(Profile(*X.shape)), ["a", "b", "c"])
    assert (said != "") == (share > 0.95)
    if said:
        assert said.startswith("'b' has about 9")
        assert "100 %" not in said


def test_what_is_said(tmp_path):
    lines = ["c,flag,x,y", *(f"5,{str(i % 2 > 0).lower()},{i % 5},{i % 3}.5" for i in range(20))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert read_table(tmp_path / "x.csv").remarks == ()
    assert read_table(tmp_path / "x.csv", remarks=True).remarks == (
        "constant features, without variance: 'c'.",
        "true and false are used as 1 and 0: 'flag'.",
    )

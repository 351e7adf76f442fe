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

KINDS = ("normal", "constant", "counting", "increasing", "long", "repeats", "gaps", "huge")


def column(kind, n, rng):
    return {
        "normal": lambda: rng.normal(size=n),
        "constant": lambda: np.full(n, 1e16),
        "counting": lambda: np.arange(n) - 3.0,
        "increasing": lambda: np.cumsum(rng.integers(1, 9, n)).astype(float),
        "repeats": lambda: rng.integers(0, n, n).astype(float),
        "long": lambda: rng.integers(10**9, 10**12, n).astype(float),
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
        whole = (np.floor(X) == X).all(axis=0)
        assert (
            found.long.tolist() == np.flatnonzero(whole & (np.abs(X) >= 1e9).all(axis=0)).tolist()
        )
        rising = (np.diff(X, axis=0) > 0).all(axis=0)
        assert found.rising.tolist() == np.flatnonzero(whole & rising).tolist()
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
    lines = ["n,t,c,flag,x,y"]
    lines += [
        f"{i + 1},{1700000000 + i * i},5,{str(i % 2 > 0).lower()},{i % 5},{i % 3}.5"
        for i in range(20)
    ]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert read_table(tmp_path / "x.csv").remarks == ()
    said = read_table(tmp_path / "x.csv", remarks=True).remarks
    assert len(said) == 4
    for text, start in zip(
        said,
        (
            "features that may be row numbers (increasing integers): 'n'.",
            "features that may be identifiers or timestamps (integers of ten digits or more): 't'.",
            "constant features, without variance: 'c'.",
            "true and",
        ),
        strict=True,
    ):
        assert text.startswith(start)
    assert "drop='n'" in said[0]
    assert said[3].endswith("'flag'.")


def test_the_name_of_an_identifier_with_repeats(tmp_path):
    (tmp_path / "x.csv").write_text("user_id,a\n1,2.5\n1,3.5\n2,1.5\n")
    (said,) = read_table(tmp_path / "x.csv", remarks=True).remarks
    assert said.startswith(
        "features named like identifiers, whose values repeat or are not integers"
    )
    assert "drop='user_id'" in said
    assert read_table(tmp_path / "x.csv", remarks=True, columns=["user_id", "a"]).remarks == ()


@given(
    st.lists(st.none() | st.integers(-30, 30) | st.floats(0, 1), min_size=2, max_size=30),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_remarks_about_a_column_do_not_contradict_each_other(
    tmp_path_factory, values, ascending, named
):
    """Whatever a column named like an identifier holds, and whether it is a feature."""
    if ascending:
        values = sorted({value for value in values if value is not None})
    path = tmp_path_factory.mktemp("remarks") / "x.csv"
    cells = ["" if value is None else str(value) for value in values]
    path.write_text(
        "id,a\n" + "".join(f"{cell},{i}.5\n" for i, cell in enumerate(cells)) + ",7.5\n"
    )
    columns = ["id", "a"] if named else None
    table = read_table(path, remarks=True, missing="keep", columns=columns)
    said = [text for text in table.remarks if "'id'" in text]
    assert sum("excludes" in text for text in said) <= 1
    if table.id == "id" or "id" in table.reasons:
        assert not said
    known = [float(cell) for cell in cells if cell]
    if any("repeat" in text for text in said):
        repeats = len(set(known)) < len(known)
        assert repeats or any(value != np.floor(value) for value in known)
    if any("increasing integers" in text for text in said):
        assert len(set(known)) == len(known)


@pytest.mark.parametrize("n", [3, 9, 10, 500])
def test_numbers_of_rows_and_long_identifiers(tmp_path, n):
    rng = np.random.default_rng(0)
    one, few = np.arange(1, n + 1), np.arange(n) % 2
    columns = {"count": one, "code": 10**11 + one[::-1], "few": few, "x": rng.normal(size=n)}
    lines = [
        ",".join(columns),
        *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True)),
    ]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    said = " ".join(read_table(tmp_path / "x.csv", remarks=True).remarks)
    assert ("row numbers (increasing integers): 'count'" in said) == (n >= 10)
    assert "(integers of ten digits or more): 'code'" in said
    assert "'few'" not in said
    assert "'x'" not in said

"""Data frames with columns of every type: numbers come through, all else is refused by name."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, as_source
from mercer.sketches import Gaussian

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(12, 2)), RNG.integers(0, 9, 12), RNG.integers(0, 2, 12)])
NAMES = ["a", "b", "i", "f"]
WHOLE, FLAG = X[:, 2].astype(int), X[:, 3].astype(bool)
DECIMALS = [decimal.Decimal(int(x)) for x in WHOLE]
DAYS = [datetime.date(2024, 1, 1 + i) for i in range(12)]

# Columns of pandas that hold the integers of X, and those that hold its flags.
PANDAS_WHOLE = {
    "int64": WHOLE,
    "uint8": WHOLE.astype("u1"),
    "Int64": pd.array(WHOLE, dtype="Int64"),
    "Float64": pd.array(WHOLE, dtype="Float64"),
    "int64[pyarrow]": pd.array(WHOLE, dtype="int64[pyarrow]"),
    "decimal[pyarrow]": pd.array(DECIMALS, dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
    "objects": np.array(WHOLE.tolist(), object),
    "decimals": np.array(DECIMALS, object),
    "sparse": pd.arrays.SparseArray(WHOLE),
}
PANDAS_FLAG = {
    "bool": FLAG,
    "boolean": pd.array(FLAG, dtype="boolean"),
    "bool[pyarrow]": pd.array(FLAG, dtype="bool[pyarrow]"),
    "objects": FLAG.astype(object),
}
POLARS_WHOLE = {str(t): t for t in (pl.Int64, pl.UInt8, pl.Float32, pl.Decimal(9, 2))}


def pandas_frame(whole, flag="bool"):
    columns = {"a": X[:, 0], "b": X[:, 1], "i": PANDAS_WHOLE[whole], "f": PANDAS_FLAG[flag]}
    return pd.DataFrame(columns, index=[f"row{i}" for i in range(12)])


def polars_frame(dtype):
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "i": pl.Series(WHOLE, dtype=dtype), "f": FLAG})


FRAMES = {
    **{f"pandas {whole}": pandas_frame(whole) for whole in PANDAS_WHOLE},
    **{f"pandas {flag}": pandas_frame("int64", flag) for flag in PANDAS_FLAG},
    **{f"polars {name}": polars_frame(dtype) for name, dtype in POLARS_WHOLE.items()},
}


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)])
def test_numbers_come_through_with_their_names(model, name):
    frame = FRAMES[name]
    expected = model.fit_transform(X)
    assert_allclose(model.fit_transform(frame), expected, atol=1e-12)
    assert list(model.feature_names_in_) == NAMES
    assert_allclose(model.transform(frame), expected, atol=1e-12)


@pytest.mark.parametrize("name", FRAMES)
def test_frames_as_sources(name):
    source = as_source(FRAMES[name])
    assert list(source.names) == NAMES
    assert_array_equal(source.collect(), X)
    if name.startswith("pandas"):
        assert source.extra_columns[source.id].tolist() == [f"row{i}" for i in range(12)]
    assert_array_equal(Gaussian(2, random_state=0).fit_transform(FRAMES[name]).shape, (12, 2))


def pandas_missing(dtype):
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.array(X[:, 2], dtype=dtype)})
    frame.loc[7, "b"] = pd.NA
    return frame


MISSING = {
    **{f"pandas {dtype}": pandas_missing(dtype) for dtype in ("Int64", "Float32")},
    "pandas int64[pyarrow]": pandas_missing("int64[pyarrow]"),
    "pandas objects": pd.DataFrame({"a": X[:, 0], "b": [1] * 7 + [None] + [2] * 4}, dtype=object),
    "polars Int64": pl.DataFrame({"a": X[:, 0], "b": [1] * 7 + [None] + [2] * 4}),
    "polars Boolean": pl.DataFrame({"b": [True] * 7 + [None] + [False] * 4}),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_values_are_refused_with_their_column(name):
    with pytest.raises(ValueError, match=r"contains NaN: .* row 7, column \d \('b'\).*impute"):
        PCA(1).fit(MISSING[name])


ODD = {
    "pandas categories": (pd.Categorical(list("xyz") * 4), r"categories, 'x' in row 0"),
    # Their codes are no numbers, and their values may be.
    "pandas numbered categories": (pd.Categorical([3, 1, 2] * 4), "categories"),
    "pandas text": (list("xyz") * 4, "text, 'x' in row 0"),
    "pandas text objects": (np.array([*"xyz"] * 4, object), "text, 'x' in row 0"),
    "pandas digits": (np.array(["1", "2", "3"] * 4, object), "text, '1' in row 0"),
    "pandas text[pyarrow]": (pd.array([*"xyz"] * 4, dtype="string[pyarrow]"), "text"),
    "pandas dates": (pd.date_range("2024", periods=12), "dates, Timestamp"),
    "pandas date objects": (np.array(DAYS, object), r"dates, datetime\.date\(2024, 1, 1\)"),
    "pandas zones": (pd.date_range("2024", periods=12, tz="UTC"), "dates, Timestamp"),
    "pandas periods": (pd.period_range("2024", periods=12), "dates, Period"),
    "pandas durations": (pd.to_timedelta(np.arange(12), "s"), "durations, Timedelta"),
    "pandas mixed": (np.array([1, 2, "n.d."] * 4, object), r"mixed, 'n\.d\.' in row 2"),
    "pandas lists": (pd.Series([[1.0], [2.0]] * 6), r"mixed, \[1\.0\] in row 0"),
    "pandas complex": (np.full(12, 1j), "complex"),
    "polars categories": (pl.Series(list("xyz") * 4, dtype=pl.Categorical), "categories"),
    "polars enum": (pl.Series(list("xy") * 6, dtype=pl.Enum(["x", "y"])), "categories"),
    "polars text": (pl.Series(list("xyz") * 4), "text"),
    "polars dates": (pl.Series(DAYS), "dates"),
    "polars durations": (pl.Series(np.arange(12)).cast(pl.Duration("ms")), "durations"),
    "polars lists": (pl.Series([[1.0], [2.0]] * 6), r"List\(Float64\)"),
    "polars nothing": (pl.Series([None] * 12), "no values"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_number_is_refused_with_its_column(name):
    column, kind = ODD[name]
    pandas = name.startswith("pandas")
    frame = (pd if pandas else pl).DataFrame({"a": X[:, 0], "odd": column, "b": X[:, 1]})
    message = rf"X has 1 column that is not numeric: 'odd' \({kind}.*Encode them as numbers"
    for fit in (PCA(1).fit, as_source, Gaussian(1).fit):
        with pytest.raises(ValueError, match=message) as error:
            fit(frame)
    # The advice works.
    numeric = eval(str(error.value).rpartition(": ")[2].rstrip("."), {"X": frame})
    assert list(PCA(1).fit(numeric).feature_names_in_) == ["a", "b"]


def test_all_columns_that_are_no_numbers_are_named_by_kind():
    frame = pl.DataFrame({"x": ["p", "q"], "t": DAYS[:2], "a": [1.0, 2.0], "y": ["r", "s"]})
    with pytest.raises(ValueError, match=r"3 columns .*: 'x', 'y' \(text\); 't' \(dates\)"):
        PCA(1).fit(frame)
    many = pl.DataFrame({f"x{j}": ["p", "q"] for j in range(20)})
    with pytest.raises(ValueError, match=r"and 10 more \(text\).*selectors\.numeric"):
        PCA(1).fit(many)


def test_a_frame_of_one_array_is_not_copied():
    frame = pd.DataFrame(RNG.normal(size=(100, 4)))
    assert np.shares_memory(as_source(frame).array, frame.to_numpy())


def test_float32_frames_stay_in_their_precision():
    rows = X.astype(np.float32)
    assert as_source(pd.DataFrame(rows)).dtype == np.float32
    assert as_source(pl.DataFrame(rows)).dtype == np.float32


def test_sparse_frames_stay_sparse():
    rows = np.where(X > 0.5, X, 0.0)
    frame = pd.DataFrame(rows, columns=NAMES).astype(pd.SparseDtype("float64", 0.0))
    assert as_source(frame).sparse
    assert_allclose(PCA(2).fit_transform(frame), PCA(2).fit_transform(rows), atol=1e-12)


def test_columns_without_names():
    assert as_source(pd.DataFrame(X)).names is None
    assert not hasattr(PCA(2).fit(pd.DataFrame(X)), "feature_names_in_")


class OnTheGPU:
    """A stand-in for a data frame of cuDF, whose arrays are CuPy's."""

    def __init__(self, frame):
        self.columns, self.dtypes, self.frame, self.index = frame.columns, frame.dtypes, frame, None

    def to_numpy(self):
        raise AssertionError("the rows left the GPU")

    def to_cupy(self, dtype=None, na_value=None):
        import torch

        return torch.tensor(self.frame.to_numpy(dtype=np.float64, na_value=na_value))


def test_frames_on_a_gpu_stay_there():
    torch = pytest.importorskip("torch")
    frame = pd.DataFrame(X, columns=NAMES)
    pca = PCA(2).fit(OnTheGPU(frame))
    assert isinstance(pca.components_, torch.Tensor)
    assert_allclose(pca.components_.numpy(), PCA(2).fit(X).components_, atol=1e-12)
    assert list(pca.feature_names_in_) == NAMES
    frame["name"] = list("xyz") * 4
    with pytest.raises(ValueError, match=r"not numeric: 'name' \(str\).*X\.drop\(columns="):
        PCA(2).fit(OnTheGPU(frame))

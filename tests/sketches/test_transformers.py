"""Maps in scikit-learn, and what they refuse."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import Source, as_source
from mercer.sketches import (
    Gaussian,
    Hadamard,
    Hashing,
    PixelGrouping,
    Resize,
    SparseSign,
    suggested_size,
)


@pytest.fixture
def X(rng):  # noqa: N802
    return rng.random((40, 60))


def test_pipeline_and_grid_search(X):
    y = (X[:, 0] > 0.5).astype(int)
    search = GridSearchCV(
        make_pipeline(Hashing(10), LogisticRegression()), {"hashing__hashes": [1, 2]}, cv=2
    )
    search.fit(X, y)
    assert search.best_estimator_[0].matrix_.q == 10
    assert search.predict(sp.csr_array(X)).shape == (40,)


def test_clone_is_not_fitted(X):
    sketch = SparseSign(10, nonzeros=4, random_state=3).fit(X)
    again = clone(sketch)
    assert again == sketch
    assert not hasattr(again, "matrix_")
    with pytest.raises(NotFittedError, match="Call 'fit'"):
        again.transform(X)
    assert repr(sketch) == "SparseSign(10, nonzeros=4, random_state=3)"
    assert sketch.set_params(q=20).get_params()["q"] == 20


def test_names_and_tables(X):
    table = pd.DataFrame(X, columns=[f"c{i}" for i in range(60)])
    sketch = Gaussian(3).set_output(transform="pandas").fit(table)
    out = sketch.transform(table)
    assert list(out.columns) == ["gaussian0", "gaussian1", "gaussian2"]
    assert list(sketch.feature_names_in_) == list(table.columns)
    np.testing.assert_allclose(out.to_numpy(), Gaussian(3).fit_transform(X))
    with pytest.raises(ValueError, match="feature names should match"):
        sketch.transform(table.rename(columns={"c0": "other"}))


def test_array_in_array_out_source_in_source_out(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    sketch = Hadamard(5)
    expected = sketch.fit_transform(X)
    for rows in (tmp_path / "rows.npy", str(tmp_path / "rows.npy"), as_source(X)):
        found = sketch.fit(rows).transform(rows)
        assert isinstance(found, Source)
        assert np.array_equal(found.collect(), expected)
    assert type(sketch.transform(X.tolist())) is np.ndarray


def test_random_state_may_be_a_generator_or_nothing(X):
    for kind in (np.random.default_rng, np.random.RandomState):
        a, b = (Gaussian(5, random_state=kind(0)).fit_transform(X) for _ in range(2))
        assert np.array_equal(a, b)
    sketch = Gaussian(5, random_state=None)
    first = sketch.fit_transform(X)
    assert np.array_equal(first, sketch.transform(X))
    assert not np.allclose(first, sketch.fit_transform(X))


def test_weights_stay(X):
    source = as_source(X).weighted(np.arange(40.0))
    assert np.array_equal(Hashing(5).fit(source).transform(source).weights, np.arange(40.0))


def test_the_identity_only_if_asked(X):
    for sketch in (Gaussian(100), Hashing(100), SparseSign(100), Hadamard(100)):
        with pytest.raises(ValueError, match=r"q=100 is more than n_features=60.*identity=True"):
            sketch.fit(X)
        same = sketch.set_params(identity=True).fit_transform(X)
        assert np.array_equal(same, X)
        assert not np.shares_memory(same, X)


@pytest.mark.parametrize(
    ("sketch", "said"),
    [
        (Gaussian(0), "q=0 must be an integer of at least 1"),
        (Gaussian(-3), "q=-3"),
        (Gaussian(2.5), r"q=2\.5"),
        (Gaussian("many"), "q='many'"),
        (Gaussian(True), "q=True"),
        (Hadamard(5, random_state=-1), "random_state=-1"),
        (Hadamard(5, random_state="a"), "random_state='a'"),
        (Gaussian(5, identity="yes"), "identity='yes'"),
        (Hashing(5, hashes=6), "hashes=6 must be at most q=5"),
        (Hashing(5, hashes=0), "hashes=0"),
        (Hashing(5, signed=2), "signed=2"),
        (Hashing(5, scaling="l"), "scaling='l' must be one of"),
        (SparseSign(5), "nonzeros=8 must be at most q=5"),
        (Resize((6, 11), (3, 4)), "6 × 11 have 66 pixels, but the rows have 60 columns"),
        (Resize((6, 10, 3), (3, 4)), "6 × 10 × 3 have 180 pixels"),
        (Resize((6, 10), (7, 4)), r"to=\(7, 4\) must be at most the image size 6 × 10"),
        (Resize((6, 10), 3), "to=3 must be"),
        (Resize(60, (3, 4)), "shape=60 must be"),
        (Resize((6, -10), (3, 4)), "shape="),
        (Resize((6, 10), (3, 4), channels="middle"), "channels='middle'"),
        (PixelGrouping((6, 10), 0), "block=0 must be"),
        (PixelGrouping((6, 10), (2, 2, 2)), "block="),
        (PixelGrouping((6, 10), 2, by="median"), "by='median'"),
        (PixelGrouping((5, 10), 2), "5 × 10 have 50 pixels"),
    ],
    ids=repr,
)
def test_bad_parameters(sketch, said, X):
    with pytest.raises(ValueError, match=said):
        sketch.fit(X)
    with pytest.raises(ValueError, match=said):
        sketch.matrix_for(60)
    assert not hasattr(sketch, "n_features_in_")


def test_wrong_columns(X):
    sketch = Gaussian(5).fit(X)
    for rows in (X[:, :59], as_source(X[:, :59]), sp.csr_array(X[:, :59])):
        with pytest.raises(ValueError, match=r"59 features.*expecting 60"):
            sketch.transform(rows)
    with pytest.raises(ValueError, match="the map takes 60 columns"):
        sketch.matrix_.apply(X[:, :59])
    with pytest.raises(ValueError, match="the map takes 60 columns"):
        sketch.matrix_.apply(X[0])


def test_strings(X):
    with pytest.raises(ValueError, match="the rows are strings"):
        Gaussian(1).fit(as_source(["one", "two"]))
    with pytest.raises(ValueError, match="not compatible with arrays of bytes/strings"):
        Gaussian(1).fit([["a", "b"]])


@pytest.mark.parametrize(
    "sketch",
    [
        Gaussian(5),
        Hashing(5),
        Hadamard(5),
        Resize((6, 10), (3, 4)),
        PixelGrouping((6, 10), 2, by="corner"),
    ],
)
def test_what_is_not_finite_is_named(sketch, X, tmp_path):
    sketch = clone(sketch).fit(X)
    bad = X.copy()
    bad[7, 11] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    for rows in (bad, sp.csr_array(bad), tmp_path / "bad.npy"):
        with pytest.raises(ValueError, match="NaN: the first is in row 7, column 11"):
            np.asarray(sketch.transform(rows))
    with pytest.raises(ValueError, match="row 7, column 11"):
        clone(sketch).fit(bad)


def test_suggested_sizes_it_refuses():
    for bad in ({"n": 0}, {"n": 2.5}, {"error": 0}, {"error": 1}, {"confidence": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            suggested_size(**({"n": 10, "error": 0.1} | bad))


def test_neither_scikit_learn_nor_numba_is_imported():
    code = "import sys, mercer.sketches; print({'sklearn', 'numba', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"

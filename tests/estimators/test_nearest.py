"""NearestProjection: against scikit-learn's neighbours of scikit-learn's scores."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
import sklearn.decomposition
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, NearestProjection
from mercer.methods import Subset


@pytest.fixture(name="digits", scope="module")
def split():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400], X[400:600], y[400:600]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PCA(10), sklearn.decomposition.PCA(10)),
        (PCA(10, whiten=True), sklearn.decomposition.PCA(10, whiten=True)),
        (
            KernelPCA(10, kernel="rbf", gamma=1e-3),
            sklearn.decomposition.KernelPCA(10, kernel="rbf", gamma=1e-3),
        ),
    ],
)
@pytest.mark.parametrize(
    "options",
    [{}, {"n_neighbors": 5}, {"n_neighbors": 3, "weights": "distance", "metric": "manhattan"}],
)
def test_neighbours_among_scores(digits, ours, theirs, options):
    X, y, new, _ = digits
    model = NearestProjection(ours, **options).fit(X, y)
    search = KNeighborsClassifier(**{"n_neighbors": 1, **options})
    search.fit(theirs.fit_transform(X), y)
    np.testing.assert_array_equal(model.predict(new), search.predict(theirs.transform(new)))
    np.testing.assert_allclose(
        model.predict_proba(new), search.predict_proba(theirs.transform(new)), atol=1e-8
    )
    distances, rows = model.kneighbors(new, 4)
    truth, same = search.kneighbors(theirs.transform(new), 4)
    np.testing.assert_array_equal(rows, same)
    np.testing.assert_allclose(distances, truth, rtol=1e-6)


def test_all_axes_are_the_rows_themselves(digits):
    X, y, new, labels = digits
    plain = KNeighborsClassifier(1).fit(X, y)
    model = NearestProjection(PCA()).fit(X, y)
    np.testing.assert_array_equal(model.predict(new), plain.predict(new))
    assert model.score(new, labels) == plain.score(new, labels)


def test_training_rows_are_not_their_own_neighbours(digits):
    X, y, *_ = digits
    model = NearestProjection(PCA(10)).fit(X, y)
    assert (model.kneighbors(return_distance=False)[:, 0] != np.arange(400)).all()
    np.testing.assert_array_equal(model.kneighbors(X, return_distance=False)[:, 0], np.arange(400))


def test_rows_of_any_kind(digits, tmp_path):
    X, y, new, _ = digits
    truth = NearestProjection(PCA(10)).fit(X, y).predict(new)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "new.npy", new)
    kinds = {
        "paths": (tmp_path / "X.npy", tmp_path / "new.npy"),
        "sparse": (scipy.sparse.csr_array(X), scipy.sparse.csr_array(new)),
        "pixels": (X.astype(np.uint8), new.astype(np.uint8)),
        "lists": (X.tolist(), new.tolist()),
        "tables": (pd.DataFrame(X).add_prefix("p"), pd.DataFrame(new).add_prefix("p")),
    }
    for kind, (rows, others) in kinds.items():
        found = NearestProjection(PCA(10)).fit(rows, y).predict(others)
        np.testing.assert_array_equal(found, truth, err_msg=kind)
    names = np.array([f"digit {digit}" for digit in range(10)])
    named = NearestProjection(PCA(10)).fit(X, names[y])
    np.testing.assert_array_equal(named.predict(new), names[truth])
    np.testing.assert_array_equal(named.classes_, names)
    with sklearn.config_context(transform_output="pandas"):
        np.testing.assert_array_equal(NearestProjection(PCA(10)).fit(X, y).predict(new), truth)


def test_arrays_of_another_library(digits):
    xp = pytest.importorskip("array_api_strict")
    X, y, new, _ = digits
    truth = NearestProjection(PCA(10)).fit(X, y).predict(new)
    found = NearestProjection(PCA(10)).fit(xp.asarray(X), y).predict(xp.asarray(new))
    np.testing.assert_array_equal(found, truth)


def test_several_labels(digits):
    X, y, new, labels = digits
    model = NearestProjection(PCA(10)).fit(X, np.c_[y, y % 2])
    assert model.predict(new).shape == (200, 2)
    assert (model.predict(new) == np.c_[labels, labels % 2]).mean() > 0.85


def test_composition(digits):
    X, y, new, labels = digits
    piped = make_pipeline(StandardScaler(), NearestProjection(PCA(20)))
    assert cross_val_score(piped, X, y, cv=3).mean() > 0.8
    subset = KernelPCA(20, kernel="rbf", gamma=1e-3, method=Subset(60), random_state=0)
    grid = {"n_neighbors": [1, 3], "estimator__n_components": [2, 20]}
    search = GridSearchCV(NearestProjection(subset), grid, cv=3).fit(X, y)
    assert search.best_params_["estimator__n_components"] == 20
    assert search.score(new, labels) > 0.8
    calibrated = CalibratedClassifierCV(NearestProjection(PCA(10), 5), cv=3).fit(X, y)
    assert calibrated.score(new, labels) > 0.8
    model = NearestProjection().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert not hasattr(clone(model), "classes_")
    K, beside = X @ X.T, new @ X.T
    given = NearestProjection(KernelPCA(10, kernel="precomputed")).fit(K, y)
    np.testing.assert_array_equal(
        given.predict(beside), NearestProjection(PCA(10)).fit(X, y).predict(new)
    )
    assert cross_val_score(given, K, y, cv=3).mean() > 0.8


def test_bad_input(digits):
    X, y, new, _ = digits
    model = NearestProjection(PCA(10)).fit(X, y)
    before = dict(vars(model))
    refused = [
        ((new[:, :50], y[:200]), "X has 50 features, but PCA is expecting 64", "predict"),
        ((new.reshape(-1, 8, 8), y), r"shape \(200, 8, 8\).*X.reshape\(200, -1\)", "predict"),
        ((X, None), "requires y to be passed", "fit"),
        ((X, y[:5]), "inconsistent numbers of samples", "fit"),
        ((X, X[:, 2] / 7), "Unknown label type", "fit"),
        ((np.where(X == 9, np.nan, X), y), "contains NaN", "fit"),
    ]
    for (rows, labels), match, method in refused:
        with pytest.raises(ValueError, match=match):
            model.fit(rows, labels) if method == "fit" else model.predict(rows)
        assert vars(model) == before


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (NearestProjection(n_neighbors=0), "n_neighbors"),
        (NearestProjection(n_neighbors=401), "n_neighbors=401, but X has 400 rows"),
        (NearestProjection(PCA(0)), "found no component"),
        (NearestProjection(metric="precomputed"), "distances are computed from scores"),
        (NearestProjection(metric="nearest"), "Metric 'nearest' not valid"),
    ],
)
def test_bad_parameters(digits, model, match):
    X, y, *_ = digits
    with pytest.raises(ValueError, match=match):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")


def test_what_cannot_be_inside(digits):
    X, y, *_ = digits
    with pytest.raises(TypeError, match=r"no transform. NearestProjection takes a mercer.PCA"):
        NearestProjection(KNeighborsClassifier()).fit(X, y)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_sparse_labels(digits, kind):
    X, y, new, _ = digits
    many = np.column_stack([y % 2, y > 4]).astype(int)
    sparse = NearestProjection(PCA(10)).fit(X, kind(many))
    assert np.array_equal(sparse.predict(new), NearestProjection(PCA(10)).fit(X, many).predict(new))

"""Reconstruction errors: histogram, threshold, outliers."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, NoveltyDetector, as_source, config_context
from mercer.plotting import ReconstructionErrorDisplay
from tests.plotting.drawn import apart, rendered


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


def truth(X, k):
    left = X - X.mean(axis=0)
    U, S, V = np.linalg.svd(left, full_matrices=False)
    return ((left - U[:, :k] * S[:k] @ V[:k]) ** 2).sum(axis=1)


def counted(display):
    within, beyond = display.within_.get_data(), display.beyond_.get_data()
    np.testing.assert_array_equal(within.edges, beyond.edges)
    return within.values, beyond.values, within.edges


def test_bars_count_rows_and_outliers_are_beyond(wine):
    X = StandardScaler().fit_transform(wine)
    errors = truth(X, 3)
    display = ReconstructionErrorDisplay.from_estimator(PCA(3).fit(X), X, quantile=0.95)
    np.testing.assert_allclose(display.errors, errors, rtol=1e-9)
    threshold = np.quantile(errors, 0.95)
    assert display.threshold == pytest.approx(threshold)
    within, beyond, edges = counted(display)
    assert display.threshold in edges
    np.testing.assert_array_equal(
        within, np.histogram(display.errors[errors <= threshold], edges)[0]
    )
    assert beyond.sum() == (errors > threshold).sum() == len(display.outliers)
    assert within.sum() + beyond.sum() == len(X)
    # No bar is of both.
    assert not np.any((within > 0) & (beyond > 0))
    expected = np.argsort(-errors)[:5]
    assert list(display.outliers[:5]) == list(expected)
    assert [note.get_text() for _, note in display.furthest_] == [f"row {i}" for i in expected]
    assert [line.get_xdata()[0] for line, _ in display.furthest_] == list(display.errors[expected])
    assert display.threshold_.get_xdata()[0] == display.threshold
    assert display.ax_.get_xlabel() == "Squared distance from the components"
    assert display.ax_.get_ylabel() == "Rows"


def test_threshold_of_a_detector(wine):
    X = StandardScaler().fit_transform(wine)
    detector = NoveltyDetector(PCA(3), contamination=0.1).fit(X)
    pipe = make_pipeline(StandardScaler(), NoveltyDetector(PCA(3), contamination=0.1)).fit(wine)
    for model, rows in ((detector, X), (pipe, wine)):
        display = ReconstructionErrorDisplay.from_estimator(model, rows)
        novel = np.flatnonzero(model.predict(rows) == -1)
        assert sorted(display.outliers) == list(novel)
        assert display.rule == "threshold"
        stated = ReconstructionErrorDisplay.from_estimator(model, rows, quantile=0.5)
        assert len(stated.outliers) == len(X) // 2


@pytest.mark.parametrize("kind", ["sparse", "float32", "pandas", "torch", "source"])
def test_kinds_of_rows(wine, kind):
    rows = {
        "sparse": lambda: scipy.sparse.csr_array(wine),
        "float32": lambda: wine.astype(np.float32),
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(wine),
        "torch": lambda: pytest.importorskip("torch").asarray(wine),
        "source": lambda: as_source(wine),
    }[kind]()
    display = ReconstructionErrorDisplay.from_estimator(PCA(3).fit(wine), rows)
    np.testing.assert_allclose(
        display.errors, truth(wine, 3), rtol=2e-2 if kind == "float32" else 1e-6
    )


def test_other_models(wine):
    X = StandardScaler().fit_transform(wine)
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(wine)
    with config_context(block_rows=7):
        for model, rows in ((pipe, wine), (peers.PCA(3).fit(X), X)):
            display = ReconstructionErrorDisplay.from_estimator(model, rows)
            np.testing.assert_allclose(display.errors, truth(X, 3), rtol=1e-9)
    kernel = KernelPCA(5, kernel="rbf", gamma=0.1).fit(X)
    display = ReconstructionErrorDisplay.from_estimator(kernel, X)
    np.testing.assert_allclose(display.errors, kernel.reconstruction_error(X))
    with pytest.raises(TypeError, match="neither reconstruction_error nor inverse_transform"):
        ReconstructionErrorDisplay.from_estimator("pca", X)


def test_a_row_far_away_does_not_flatten_the_others(wine):
    X = StandardScaler().fit_transform(wine)
    far = np.r_[X, 1e4 * X[:1]]
    display = ReconstructionErrorDisplay.from_estimator(PCA(3).fit(X), far)
    assert display.ax_.get_xscale() == "log"
    within, beyond, _ = counted(display)
    assert (within > 0).sum() > 5
    assert within.sum() + beyond.sum() == len(far)
    assert display.outliers[0] == len(X)
    rendered(display)


@pytest.mark.parametrize(
    "errors", [[0.0] * 9, [2.5] * 9, [1.0], [0.0, 1e-300], [0.0, 1e300, 1.0], [1e-9, 1e9, 1e9]]
)
def test_nasty_errors(errors):
    for threshold in (0.0, np.max(errors), -1.0, 7.0):
        display = ReconstructionErrorDisplay(np.array(errors), threshold).plot()
        within, beyond, edges = counted(display)
        assert within.sum() + beyond.sum() == len(errors)
        assert beyond.sum() == np.sum(np.array(errors) > threshold)
        assert (np.diff(edges) > 0).all()
        rendered(display)


def test_names_of_rows_and_given_axes(wine):
    ids = [f"$bottle_{i}" for i in range(len(wine))]
    ax = Figure((3.4, 2.4), layout="constrained").subplots()
    display = ReconstructionErrorDisplay.from_estimator(
        PCA(3).fit(wine), wine, ids=ids, furthest=3, quantile=0.9, ax=ax
    )
    assert display.ax_ is ax
    rendered(display)
    texts = [note for _, note in display.furthest_]
    assert [t.get_text() for t in texts] == [f"row {ids[i]}" for i in display.outliers[:3]]
    assert apart(texts)
    none = ReconstructionErrorDisplay.from_estimator(PCA(3).fit(wine), wine, furthest=0)
    assert none.furthest_ == []


def test_what_is_refused(wine):
    pca = PCA(3).fit(wine)
    refused = [
        (lambda: ReconstructionErrorDisplay.from_estimator(pca, wine, quantile=95), "quantile=95"),
        (lambda: ReconstructionErrorDisplay.from_estimator(pca, wine, ids=[1]), "1 ids for them"),
        (lambda: ReconstructionErrorDisplay.from_estimator(pca, wine, bins=0), "bins=0"),
        (lambda: ReconstructionErrorDisplay([], 1.0).plot(), "one for each row"),
        (lambda: ReconstructionErrorDisplay([1.0, np.nan], 1.0).plot(), "error of row 1 is nan"),
    ]
    for call, message in refused:
        with pytest.raises(ValueError, match=message):
            call()

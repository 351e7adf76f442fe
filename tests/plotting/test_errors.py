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
from tests.plotting.artists import apart, lay_out, plain_axes


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


@pytest.fixture(scope="module", name="X")
def scaled(wine):
    return StandardScaler().fit_transform(wine)


def draw(model, X, **options):
    return ReconstructionErrorDisplay.from_estimator(model, X, ax=plain_axes(), **options)


def truth(X, k):
    centered = X - X.mean(axis=0)
    U, S, V = np.linalg.svd(centered, full_matrices=False)
    return ((centered - U[:, :k] * S[:k] @ V[:k]) ** 2).sum(axis=1)


def counts(display):
    within, beyond = display.within_.get_data(), display.beyond_.get_data()
    np.testing.assert_array_equal(within.edges, beyond.edges)
    return within.values, beyond.values, within.edges


def test_bars_count_rows_and_outliers_are_beyond(X):
    errors = truth(X, 3)
    display = draw(PCA(3).fit(X), X, quantile=0.95)
    np.testing.assert_allclose(display.errors, errors, rtol=1e-9)
    threshold = np.quantile(errors, 0.95)
    assert display.threshold == pytest.approx(threshold)
    within, beyond, edges = counts(display)
    assert display.threshold in edges
    np.testing.assert_array_equal(
        within, np.histogram(display.errors[errors <= threshold], edges)[0]
    )
    assert beyond.sum() == (errors > threshold).sum() == len(display.outliers)
    assert within.sum() + beyond.sum() == len(X)
    assert not np.any((within > 0) & (beyond > 0))  # no bar has rows of both sides
    expected = np.argsort(-errors)[:5]
    assert list(display.outliers[:5]) == list(expected)
    assert [name.get_text() for _, name in display.furthest_] == [f"row {i}" for i in expected]
    assert [line.get_xdata()[0] for line, _ in display.furthest_] == list(display.errors[expected])
    assert display.threshold_.get_xdata()[0] == display.threshold
    assert display.ax_.get_xlabel() == "Squared distance from the components"
    assert display.ax_.get_ylabel() == "Rows"


@pytest.mark.parametrize("steps", [False, True])
def test_threshold_of_a_detector(X, wine, steps):
    detector = NoveltyDetector(PCA(3), contamination=0.1)
    model = make_pipeline(StandardScaler(), detector) if steps else detector
    rows = wine if steps else X
    display = draw(model.fit(rows), rows)
    assert sorted(display.outliers) == list(np.flatnonzero(model.predict(rows) == -1))
    assert display.rule == "threshold"
    half = draw(model, rows, quantile=0.5)
    assert len(half.outliers) == len(X) // 2


def test_kinds_of_rows(wine):
    pca = PCA(3).fit(wine)
    kinds = {
        "sparse": scipy.sparse.csr_array(wine),
        "float32": wine.astype(np.float32),
        "pandas": pytest.importorskip("pandas").DataFrame(wine),
        "torch": pytest.importorskip("torch").asarray(wine),
        "source": as_source(wine),
    }
    for kind, rows in kinds.items():
        display = draw(pca, rows)
        tolerance = 2e-2 if kind == "float32" else 1e-6
        np.testing.assert_allclose(display.errors, truth(wine, 3), rtol=tolerance, err_msg=kind)


def test_other_models(X, wine):
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(wine)
    with config_context(block_rows=7):
        for model, rows in ((pipe, wine), (peers.PCA(3).fit(X), X)):
            display = draw(model, rows)
            np.testing.assert_allclose(display.errors, truth(X, 3), rtol=1e-9)
    kernel = KernelPCA(5, kernel="rbf", gamma=0.1).fit(X)
    display = draw(kernel, X)
    np.testing.assert_allclose(display.errors, kernel.reconstruction_error(X))
    with pytest.raises(TypeError, match="neither reconstruction_error nor inverse_transform"):
        draw("pca", X)


def test_a_row_far_away_does_not_flatten_the_others(X):
    far = np.r_[X, 1e4 * X[:1]]
    display = draw(PCA(3).fit(X), far)
    assert display.ax_.get_xscale() == "log"
    within, beyond, _ = counts(display)
    assert (within > 0).sum() > 5
    assert within.sum() + beyond.sum() == len(far)
    assert display.outliers[0] == len(X)
    lay_out(display)


@pytest.mark.parametrize(
    ("errors", "thresholds"),
    [
        ([0.0] * 9, (0.0, 7.0)),
        ([2.5] * 9, (2.5, -1.0)),
        ([1.0], (1.0, 7.0)),
        ([0.0, 1e-300], (0.0, -1.0)),
        ([0.0, 1e300, 1.0], (0.0, 7.0)),
        ([1e-9, 1e9, 1e9], (1e9, -1.0)),
    ],
)
def test_extreme_errors(errors, thresholds):
    for threshold in thresholds:
        display = ReconstructionErrorDisplay(np.array(errors), threshold).plot(plain_axes())
        within, beyond, edges = counts(display)
        assert within.sum() + beyond.sum() == len(errors)
        assert beyond.sum() == np.sum(np.array(errors) > threshold)
        assert (np.diff(edges) > 0).all()
    lay_out(display)


def test_names_of_rows_and_given_axes(wine):
    ids = [f"$bottle_{i}" for i in range(len(wine))]
    ax = Figure((3.4, 2.4), layout="constrained").subplots()
    display = ReconstructionErrorDisplay.from_estimator(
        PCA(3).fit(wine), wine, ids=ids, furthest=3, quantile=0.9, ax=ax
    )
    assert display.ax_ is ax
    lay_out(display)
    names = [name for _, name in display.furthest_]
    assert [t.get_text() for t in names] == [f"row {ids[i]}" for i in display.outliers[:3]]
    assert apart(names)
    none = ReconstructionErrorDisplay([1.0, 2.0], 1.5).plot(furthest=0)
    assert none.furthest_ == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantile": 95}, "quantile=95"),
        ({"ids": [1]}, "ids has shape"),
    ],
)
def test_errors_of_arguments(wine, options, message):
    with pytest.raises(ValueError, match=message):
        draw(PCA(3).fit(wine), wine, **options)


def test_errors_that_cannot_be_drawn():
    with pytest.raises(ValueError, match="one error per row"):
        ReconstructionErrorDisplay([], 1.0).plot()
    with pytest.raises(ValueError, match="error of row 1 is nan"):
        ReconstructionErrorDisplay([1.0, np.nan], 1.0).plot()

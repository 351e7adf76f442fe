"""Pairs of components."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA
from mercer.plotting import PairsDisplay
from tests.plotting.drawn import rendered, texts


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_points_are_scores_and_histograms_count_them(iris):
    X, species = iris
    pca = PCA(4).fit(X)
    Y = pca.transform(X)
    display = PairsDisplay.from_estimator(pca, X, labels=species)
    assert display.axes_.shape == (4, 4)
    assert set(display.points_) == {(i, j) for i in range(4) for j in range(i)}
    for (i, j), parts in display.points_.items():
        for group, part in enumerate(parts):
            expected = Y[species == group][:, [j, i]]
            np.testing.assert_allclose(part.get_offsets(), expected, atol=1e-12)
    for i, patches in enumerate(display.histograms_):
        for group, patch in enumerate(patches):
            counts, edges, _ = patch.get_data()
            expected = np.histogram(Y[species == group, i], edges)[0]
            np.testing.assert_array_equal(counts, expected)
            assert counts.sum() == 50
    assert texts(display.key_) == ["0", "1", "2"]


def test_names_and_scales(iris):
    X, species = iris
    display = PairsDisplay.from_estimator(PCA(4).fit(X), X, components=[2, 0], labels=species)
    below = [display.axes_[1, j] for j in range(2)]
    assert [ax.get_xlabel() for ax in below] == ["Component 3", "Component 1"]
    assert below[0].get_ylabel() == "Component 1"
    assert display.axes_[0, 0].get_xlim() == below[0].get_xlim()
    assert [t.get_text() for t in display.axes_[0, 0].texts] == ["1.7 %"]
    assert display.axes_[0, 1] is None
    rendered(display)


def test_given_axes(iris):
    X, species = iris
    given = Figure().subplots(3, 3)
    display = PairsDisplay.from_estimator(PCA(4).fit(X), X, components=3, labels=species, ax=given)
    assert (display.axes_ == given).all()
    assert [ax.get_visible() for ax in given[0]] == [True, False, False]
    assert given[0, 0].figure.legends == []
    with pytest.raises(ValueError, match="ax holds 4 Axes, and 9 panels"):
        PairsDisplay.from_scores(X, components=3, ax=Figure().subplots(2, 2))


def test_one_component_many_classes_and_constant_scores(iris):
    X, _ = iris
    one = PairsDisplay.from_estimator(PCA(1).fit(X), X)
    assert one.points_ == {}
    assert one.histograms_[0][0].get_data().values.sum() == 150
    rendered(one)
    many = PairsDisplay.from_scores(X[:, :2], labels=np.arange(150) % 30)
    assert len(many.histograms_[0]) == 1
    assert len(many.points_[1, 0]) == len(texts(many.key_)) == 30
    rendered(many)
    still = PairsDisplay.from_scores(np.full((9, 2), 3.0))
    assert still.histograms_[0][0].get_data().values.sum() == 9
    rendered(still)
    alone = PairsDisplay.from_scores(np.full((1, 3), 3.0), labels=[np.nan])
    rendered(alone)


def test_a_scale_of_numbers_has_a_bar(iris):
    X, _ = iris
    display = PairsDisplay.from_scores(X, labels=np.linspace(0, 1, 150))
    assert display.key_.ax in display.figure_.axes
    assert display.histograms_[0][0].get_data().values.sum() == 150


def test_pipelines_and_refusals(iris):
    X, _ = iris
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(X)
    display = PairsDisplay.from_estimator(pipe, X)
    np.testing.assert_allclose(display.scores, pipe.transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="of 0 to 2"):
        PairsDisplay.from_estimator(pipe, X, components=4)
    with pytest.raises(ValueError, match="labels has shape"):
        PairsDisplay.from_scores(X, labels=[1])

"""Biplot: points, arrows, and names that cover no other."""

import numpy as np
import pytest
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA
from mercer.plotting import BiplotDisplay
from tests.plotting.artists import apart, boxes, lay_out, offsets, plain_axes


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


def biplot(model, X, **options):
    return BiplotDisplay.from_estimator(model.fit(X), X, ax=plain_axes(), **options)


@pytest.fixture(scope="module")
def scaled(wine):
    return biplot(PCA(2, scale=True), wine, top=13)


def test_points_times_arrows_are_the_data(wine, scaled):
    X = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
    arrows = np.c_[scaled.arrows_.U, scaled.arrows_.V] / scaled.stretch_
    loadings = np.empty((13, 2))
    loadings[scaled.drawn_] = arrows
    U, S, V = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(offsets(scaled) @ loadings.T, U[:, :2] * S[:2] @ V[:2], atol=1e-8)
    np.testing.assert_allclose(offsets(scaled).std(axis=0, ddof=1), 1)
    np.testing.assert_allclose(np.hypot(*arrows.T), np.sort(np.hypot(*loadings.T))[::-1])


def test_arrows_reach_as_far_as_the_points(wine):
    display = biplot(PCA(2), wine)
    longest = np.hypot(display.arrows_.U, display.arrows_.V).max()
    assert 0.5 < longest / np.abs(offsets(display)).max() < 1.5
    assert len(display.arrows_.U) == 10
    assert "10 of 13 loadings" in display.ax_.texts[-1].get_text()
    assert display.names[3] == "x3"


@pytest.mark.parametrize(("steps", "whiten"), [(True, True), (False, False), (False, True)])
def test_other_models_draw_the_same(wine, scaled, steps, whiten):
    X = wine if steps else StandardScaler().fit_transform(wine)
    pca = peers.PCA(2, whiten=whiten)
    model = make_pipeline(StandardScaler(), PCA(2, whiten=whiten)) if steps else pca
    display = biplot(model, X, top=13)
    np.testing.assert_allclose(np.abs(offsets(display)), np.abs(offsets(scaled)), atol=1e-7)
    assert list(display.drawn_) == list(scaled.drawn_)
    np.testing.assert_allclose(np.abs(display.arrows_.U), np.abs(scaled.arrows_.U), rtol=1e-6)


def test_names_of_columns(wine):
    pd = pytest.importorskip("pandas")
    names = load_wine().feature_names
    table = pd.DataFrame(wine, columns=names)
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2))
    for model in (PCA(2, scale=True), pipe):
        display = biplot(model, table)
        assert display.names == names
        assert "flavanoids" in [note.get_text() for note in display.names_]
    given = biplot(PCA(2), wine, names=list("abcdefghijklm"))
    assert given.names_[0].get_text() == "abcdefghijklm"[given.drawn_[0]]


@pytest.mark.parametrize(
    ("size", "data", "least"),
    [((2.5, 2.2), load_wine, 1), ((6.2, 4.6), load_wine, 10), ((11, 9), load_digits, 1)],
)
def test_names_cover_no_other(size, data, least):
    bunch = data()
    pca = PCA(2, scale=data is load_wine).fit(bunch.data)
    names = [f"a name of some length {j}" for j in range(bunch.data.shape[1])]
    ax = Figure(size, layout="constrained").subplots()
    display = BiplotDisplay.from_estimator(
        pca, bunch.data, labels=bunch.target, names=names, top=13, ax=ax
    )
    lay_out(display)
    assert len(display.names_) >= least
    assert apart([*display.names_, display.key_])
    frame = ax.get_window_extent().padded(2)
    for box in boxes(display.names_):
        assert frame.contains(box.x0, box.y0)
        assert frame.contains(box.x1, box.y1)


def test_angles_are_true(wine):
    ax = Figure((8, 3)).subplots()
    display = BiplotDisplay.from_estimator(PCA(2).fit(wine), wine, ax=ax)
    lay_out(display)
    origin, across, up = ax.transData.transform([(0, 0), (1, 0), (0, 1)])
    assert (across - origin)[0] == pytest.approx((up - origin)[1])
    assert display.ax_ is ax


def test_names_that_are_no_formulas_and_columns_that_are_constant(wine):
    X = np.c_[wine[:, :3], np.ones(len(wine))]
    display = BiplotDisplay.from_estimator(
        PCA(3).fit(X), X, names=["$a_", "_", "x" * 400, "constant"], components=(2, 0)
    )
    lay_out(display)
    assert 3 not in display.drawn_
    assert display.ax_.get_xlabel().startswith("Component 3")


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_no_variance_and_one_row(wine):
    constant = BiplotDisplay.from_estimator(PCA(2).fit(np.ones((5, 3))), np.ones((5, 3)))
    assert len(constant.drawn_) == 0
    lay_out(constant)
    lay_out(BiplotDisplay.from_estimator(PCA(2).fit(wine), wine[:1]))


def test_errors(wine):
    with pytest.raises(TypeError, match="KernelPCA has no loadings"):
        BiplotDisplay.from_estimator(KernelPCA(2).fit(wine), wine)
    for model, options, message in (
        (PCA(1), {}, "A biplot needs two components, but the model has 1. Fit at least two."),
        (PCA(2), {"names": ["a", "b"]}, r"loadings \(13, 2\) and 2 names"),
        (PCA(3), {"components": [0]}, "a biplot needs two components"),
    ):
        with pytest.raises(ValueError, match=message):
            BiplotDisplay.from_estimator(model.fit(wine), wine, **options)

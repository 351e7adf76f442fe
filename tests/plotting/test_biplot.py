"""Biplot: points, arrows, and names that cover no other."""

import numpy as np
import pytest
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA
from mercer.plotting import BiplotDisplay
from tests.plotting.drawn import apart, boxes, rendered


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


def drawn(display):
    return np.asarray(display.points_[0].get_offsets())


def test_points_times_arrows_are_the_data(wine):
    X = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
    display = BiplotDisplay.from_estimator(PCA(2, scale=True).fit(wine), wine, top=13)
    arrows = np.c_[display.arrows_.U, display.arrows_.V] / display.stretch_
    loadings = np.empty((13, 2))
    loadings[display.drawn_] = arrows
    U, S, V = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(drawn(display) @ loadings.T, U[:, :2] * S[:2] @ V[:2], atol=1e-8)
    np.testing.assert_allclose(drawn(display).std(axis=0, ddof=1), 1)
    np.testing.assert_allclose(np.hypot(*arrows.T), np.sort(np.hypot(*loadings.T))[::-1])


def test_arrows_reach_as_far_as_the_points(wine):
    display = BiplotDisplay.from_estimator(PCA(2).fit(wine), wine)
    longest = np.hypot(display.arrows_.U, display.arrows_.V).max()
    assert 0.5 < longest / np.abs(drawn(display)).max() < 1.5
    assert len(display.arrows_.U) == 10
    assert "10 of 13 loadings" in display.ax_.texts[-1].get_text()


@pytest.mark.parametrize("whiten", [False, True])
def test_other_models_draw_the_same(wine, whiten):
    ours = BiplotDisplay.from_estimator(PCA(2, scale=True).fit(wine), wine)
    X = StandardScaler().fit_transform(wine)
    pipe = make_pipeline(StandardScaler(), PCA(2, whiten=whiten)).fit(wine)
    theirs = peers.PCA(2, whiten=whiten).fit(X)
    for model, rows in ((pipe, wine), (theirs, X)):
        display = BiplotDisplay.from_estimator(model, rows)
        np.testing.assert_allclose(np.abs(drawn(display)), np.abs(drawn(ours)), atol=1e-7)
        assert list(display.drawn_) == list(ours.drawn_)
        np.testing.assert_allclose(np.abs(display.arrows_.U), np.abs(ours.arrows_.U), rtol=1e-6)


def test_names_of_columns(wine):
    pd = pytest.importorskip("pandas")
    names = load_wine().feature_names
    table = pd.DataFrame(wine, columns=names)
    pipe = make_pipeline(StandardScaler(), PCA(2)).fit(table)
    for model in (PCA(2, scale=True).fit(table), pipe):
        display = BiplotDisplay.from_estimator(model, table)
        assert display.names == names
        assert "flavanoids" in [note.get_text() for note in display.names_]
    plain = BiplotDisplay.from_estimator(PCA(2).fit(wine), wine)
    assert plain.names[3] == "x3"
    given = BiplotDisplay.from_estimator(PCA(2).fit(wine), wine, names=list("abcdefghijklm"))
    assert given.names_[0].get_text() == "abcdefghijklm"[given.drawn_[0]]


@pytest.mark.parametrize("size", [(2.5, 2.2), (6.2, 4.6), (11, 9)])
@pytest.mark.parametrize("data", ["wine", "digits"])
def test_names_cover_no_other(size, data):
    bunch = load_wine() if data == "wine" else load_digits()
    pca = PCA(2, scale=data == "wine").fit(bunch.data)
    names = [f"a name of some length {j}" for j in range(bunch.data.shape[1])]
    ax = Figure(size, layout="constrained").subplots()
    display = BiplotDisplay.from_estimator(
        pca, bunch.data, labels=bunch.target, names=names, top=13, ax=ax
    )
    rendered(display)
    assert len(display.names_) >= 1
    assert apart([*display.names_, display.key_])
    frame = ax.get_window_extent().padded(2)
    for box in boxes(display.names_):
        assert frame.contains(box.x0, box.y0)
        assert frame.contains(box.x1, box.y1)
    if size[0] > 6 and data == "wine":
        assert len(display.names_) >= 10


def test_angles_are_true(wine):
    ax = Figure((8, 3)).subplots()
    display = BiplotDisplay.from_estimator(PCA(2).fit(wine), wine, ax=ax)
    rendered(display)
    origin, across, up = ax.transData.transform([(0, 0), (1, 0), (0, 1)])
    assert (across - origin)[0] == pytest.approx((up - origin)[1])
    assert display.ax_ is ax


def test_names_that_are_no_formulas_and_columns_that_are_constant(wine):
    X = np.c_[wine[:, :3], np.ones(len(wine))]
    display = BiplotDisplay.from_estimator(
        PCA(3).fit(X), X, names=["$a_", "_", "x" * 400, "still"], components=(2, 0)
    )
    rendered(display)
    assert 3 not in display.drawn_
    assert display.ax_.get_xlabel().startswith("Component 3")


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_no_variance_and_one_row(wine):
    still = BiplotDisplay.from_estimator(PCA(2).fit(np.ones((5, 3))), np.ones((5, 3)))
    assert len(still.drawn_) == 0
    rendered(still)
    rendered(BiplotDisplay.from_estimator(PCA(2).fit(wine), wine[:1]))


def test_what_is_refused(wine):
    with pytest.raises(TypeError, match="KernelPCA has no loadings"):
        BiplotDisplay.from_estimator(KernelPCA(2).fit(wine), wine)
    with pytest.raises(ValueError, match="two components, and there are 1"):
        BiplotDisplay.from_estimator(PCA(1).fit(wine), wine)
    with pytest.raises(ValueError, match="13 columns, and 2 names"):
        BiplotDisplay.from_estimator(PCA(2).fit(wine), wine, names=["a", "b"])
    with pytest.raises(ValueError, match="top=0"):
        BiplotDisplay.from_estimator(PCA(2).fit(wine), wine, top=0)
    with pytest.raises(ValueError, match="a biplot has two components"):
        BiplotDisplay.from_estimator(PCA(3).fit(wine), wine, components=[0])

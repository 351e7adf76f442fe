"""Figures: what is drawn, on which Axes, and what is left behind."""

import gc
import subprocess
import sys
import types
import weakref

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, KernelPCA
from mercer.methods import Improved, Nystrom, Subset
from mercer.plotting import contours, projection_norms, scatter, scree

matplotlib = pytest.importorskip("matplotlib", reason="figures need matplotlib: mercer[plot]")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.collections import PathCollection  # noqa: E402
from matplotlib.contour import QuadContourSet  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402


class Powers(BaseEstimator):
    """A model of any number of components: yⱼ = x₁ʲ x₂."""

    n_features_in_ = 2

    def __init__(self, width=1):
        self.width = width

    def transform(self, X):
        self.seen = X
        x, y = np.asarray(X).T
        return np.stack([x**j * y for j in range(self.width)], axis=1)


@pytest.fixture(name="X")
def rows(rng):
    return rng.normal(size=(40, 2)) * [3, 1] + [10, 0]


@pytest.fixture(autouse=True)
def _no_traces():
    """Whatever is drawn: no figure is left with pyplot, no setting is changed."""
    before = dict(matplotlib.rcParams)
    yield
    assert pyplot.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def sets(ax):
    return [c for c in ax.collections if isinstance(c, QuadContourSet)]


def points(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


def legend(host):
    return [text.get_text() for text in host.get_texts()]


# Contours


@pytest.mark.parametrize(("width", "across"), [(1, 1), (2, 2), (4, 4), (5, 3), (7, 4), (8, 4)])
def test_one_panel_for_each_component(X, width, across):
    axes = contours(Powers(width), X, resolution=8)
    assert isinstance(axes, np.ndarray)
    assert [ax.get_title() for ax in axes] == [f"Component {j + 1}" for j in range(width)]
    figure = axes[0].figure
    assert figure.axes == list(axes)
    figure.draw_without_rendering()
    # Every panel at the foot of its column has numbers, also above an empty place.
    feet = axes[-across:]
    assert all(any(t.get_visible() for t in ax.get_xticklabels()) for ax in feet)
    assert [bool(ax.get_xlabel()) for ax in axes] == [ax in feet for ax in axes]
    assert [bool(ax.get_ylabel()) for ax in axes] == [j % across == 0 for j in range(width)]


@pytest.mark.parametrize(
    ("components", "numbers"), [(None, range(1, 9)), (3, [1, 2, 3]), ([4, 0], [5, 1])]
)
def test_components(X, components, numbers):
    axes = contours(Powers(10), X, components=components, resolution=8)
    assert [ax.get_title() for ax in axes] == [f"Component {j}" for j in numbers]


@pytest.mark.parametrize("components", [0, 4, [], [3], [-1]])
def test_components_that_are_not_there(X, components):
    with pytest.raises(ValueError, match=r"there are 3: .* of 0 to 2"):
        contours(Powers(3), X, components=components, resolution=8)


def test_values_are_those_of_transform(X):
    pca = PCA().fit(X)
    axes = contours(pca, X, resolution=30)
    for j, ax in enumerate(axes):
        lines = sets(ax)[1]
        for level, segments in zip(lines.levels, lines.allsegs, strict=True):
            for segment in filter(len, segments):
                scores = pca.transform(np.asarray(segment))[:, j]
                # A linear score is linear between the points of the grid.
                np.testing.assert_allclose(scores, level, atol=1e-9)
        assert sum(map(len, lines.allsegs)) > 3


def test_grid_covers_the_rows(X):
    model = Powers()
    (ax,) = contours(model, X, resolution=25)
    assert model.seen.shape == (625, 2)
    low, high = model.seen.min(axis=0), model.seen.max(axis=0)
    assert (low < X.min(axis=0)).all()
    assert (high > X.max(axis=0)).all()
    assert ax.get_xlim() == pytest.approx((low[0], high[0]))
    assert ax.get_ylim() == pytest.approx((low[1], high[1]))
    np.testing.assert_array_equal(points(ax)[0].get_offsets(), X)


def test_levels(X):
    (ax,) = contours(Powers(), X, levels=[-1, 0, 0.5], resolution=20)
    filled, lines = sets(ax)
    np.testing.assert_array_equal(lines.levels, [-1, 0, 0.5])
    assert filled.extend == "both"
    few, many = (len(sets(contours(Powers(), X, levels=n)[0])[1].levels) for n in (4, 20))
    assert few <= 8 < 15 <= many


def test_zero_is_in_the_middle_of_the_colours_and_heavier(X):
    (ax,) = contours(Powers(), X - X.mean(axis=0) / 2)
    filled, lines = sets(ax)
    assert filled.norm.vmin == -filled.norm.vmax
    (zero,) = np.flatnonzero(lines.levels == 0)
    widths = np.asarray(lines.get_linewidths())
    assert widths[zero] > np.delete(widths, zero).max()


def test_constant_score_and_constant_column(X):
    still = np.column_stack([X[:, 0], np.zeros(len(X))])
    pca = PCA(2).fit(still)
    axes = contours(pca, still, resolution=10)
    axes[0].figure.draw_without_rendering()
    assert sets(axes[0])
    (flat,) = contours(Powers(1), still, resolution=2)
    flat.figure.draw_without_rendering()

    class Nothing(Powers):
        def transform(self, X):
            return np.zeros((len(X), 1))

    (none,) = contours(Nothing(), X, resolution=10)
    none.figure.draw_without_rendering()
    assert not sets(none)


def test_shares_in_the_titles(X):
    pca = PCA().fit(X)
    share = [f"{100 * r:.1f} %" for r in pca.explained_variance_ratio_]
    titles = [f"Component 1 ({share[0]})", f"Component 2 ({share[1]})"]
    assert [ax.get_title() for ax in contours(pca, X, resolution=8)] == titles
    pipe = make_pipeline(StandardScaler(with_std=False), PCA()).fit(X)
    assert [ax.get_title() for ax in contours(pipe, X, resolution=8)] == titles


def test_given_axes(X):
    figure = Figure()
    one = figure.add_subplot()
    (drawn,) = contours(Powers(), X, labels=X[:, 0] > 10, ax=one, resolution=8)
    assert drawn is one
    assert figure.legends == []
    square = figure.subplots(2, 2)
    drawn = contours(Powers(4), X, ax=square, resolution=8)
    assert list(drawn) == list(square.ravel())
    assert all(ax.get_xlabel() == "$x_1$" for ax in drawn)
    with pytest.raises(ValueError, match="ax holds 4 Axes, and 2 components"):
        contours(Powers(2), X, ax=square, resolution=8)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("error")
def test_names_of_a_table(X, library):
    table = pytest.importorskip(library).DataFrame({"height": X[:, 0], "weight": X[:, 1]})
    pca = PCA().fit(table)
    axes = contours(pca, table, resolution=8)
    assert axes[0].get_xlabel() == axes[1].get_xlabel() == "height"
    assert axes[0].get_ylabel() == "weight"
    lines = sets(axes[0])[1].levels
    np.testing.assert_array_equal(sets(contours(PCA().fit(X), X)[0])[1].levels, lines)


def test_tensors(X):
    torch = pytest.importorskip("torch")
    rows = torch.asarray(X)
    pca = PCA().fit(rows)
    axes = contours(pca, rows, labels=rows[:, 0] > 10, resolution=8)
    assert len(axes) == 2
    scatter(pca.transform(rows), ratio=pca.explained_variance_ratio_)
    scree(pca)


@pytest.mark.parametrize("kind", ["list", "sparse", "float32"])
def test_other_rows(X, kind):
    from scipy.sparse import csr_array

    rows = {"list": X.tolist(), "sparse": csr_array(X), "float32": X.astype(np.float32)}[kind]
    assert len(contours(PCA().fit(rows), rows, resolution=8)) == 2


def test_legend_of_a_figure_of_ours(X):
    axes = contours(Powers(2), X, labels=np.where(X[:, 1] > 0, "up", "down"), resolution=8)
    (key,) = axes[0].figure.legends
    assert legend(key) == ["down", "up"]
    assert len(points(axes[1])) == 2


def test_wrong_number_of_columns(X, rng):
    with pytest.raises(ValueError, match=r"This PCA takes 5 columns.*mercer\.plotting\.scatter"):
        contours(PCA(2).fit(rng.normal(size=(9, 5))), X)
    with pytest.raises(ValueError, match=r"X has shape \(40, 3\)"):
        contours(PCA().fit(X), np.column_stack([X, X[:, 0]]))
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        contours(PCA().fit(X), np.where(X > 10, np.nan, X))
    with pytest.raises(ValueError, match="resolution=1"):
        contours(PCA().fit(X), X, resolution=1)


# Projection norms


def on_basis(X, method):
    return KernelPCA(3, kernel="rbf", gamma=0.1, center=False, method=method).fit(X)


@pytest.mark.parametrize("method", ["exact", Subset(10), Nystrom(10), Improved(10)], ids=repr)
def test_norms_are_those_of_the_operator(X, method):
    model = on_basis(X, method)
    (ax,) = projection_norms({"a": model}, X, levels=[0.01, 0.2, 0.5], resolution=60)
    lines, p = sets(ax)[1], model.projection_
    basis = np.asarray(model.X_fit_)
    K = model.kernel_(basis, basis)
    for level, segments in zip(lines.levels, lines.allsegs, strict=True):
        for segment in filter(len, segments):
            # PΦ(x) = Σ y_k A_jk Φ(b_j), on lines that are straight between points of the grid.
            weights = model.transform(np.asarray(segment)) @ p.components.T
            norms = np.sqrt(np.einsum("ij,ij->i", weights @ K, weights))
            np.testing.assert_allclose(norms, level, atol=0.02)
    assert sum(map(len, lines.allsegs)) >= 1 or isinstance(method, Improved)


def test_models_share_the_scale_of_the_first(X):
    models = {name: on_basis(X, Subset(m)) for name, m in {"few": 5, "more": 20}.items()}
    axes = projection_norms(models, X, basis=X[:7], resolution=10)
    assert [ax.get_title() for ax in axes] == ["few", "more"]
    first, second = (sets(ax)[0] for ax in axes)
    np.testing.assert_array_equal(first.levels, second.levels)
    assert first.norm.vmin == second.norm.vmin == 0
    assert first.norm.vmax == second.norm.vmax
    assert [len(c.get_offsets()) for c in points(axes[0])] == [40, 7]
    assert [len(c.get_offsets()) for c in points(axes[1])] == [40]
    (bar,) = [other for other in axes[0].figure.axes if other not in axes]
    assert "Phi" in bar.get_ylabel()


def test_norms_of_linear_models_and_of_pipelines(X):
    pipe = make_pipeline(StandardScaler(), PCA(1)).fit(X)
    given = Figure().subplots(1, 2)
    axes = projection_norms({"linear": PCA(1).fit(X), "scaled": pipe}, X, ax=given, resolution=10)
    assert list(axes) == list(given)
    assert given[0].figure.axes == list(given)


def test_projection_norms_refuses(X, rng):
    with pytest.raises(ValueError, match="models is empty"):
        projection_norms({}, X)
    with pytest.raises(ValueError, match="This PCA takes 5 columns"):
        projection_norms({"a": PCA().fit(X), "b": PCA(2).fit(rng.normal(size=(9, 5)))}, X)
    with pytest.raises(ValueError, match="ax holds 2 Axes, and 1 models"):
        projection_norms({"a": PCA().fit(X)}, X, ax=Figure().subplots(1, 2))


# Scores


def test_scatter(X):
    labels = np.repeat(["b", "a"], 20)
    ax = scatter(X, labels, ratio=[0.7, 0.2])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Component 1 (70.0 %)", "Component 2 (20.0 %)")
    assert legend(ax.get_legend()) == ["a", "b"]
    a, b = points(ax)
    np.testing.assert_array_equal(a.get_offsets(), X[20:])
    np.testing.assert_array_equal(b.get_offsets(), X[:20])
    assert a.get_facecolor().tolist() != b.get_facecolor().tolist()


def test_scatter_of_chosen_components_on_given_axes(rng):
    Y = rng.normal(size=(30, 4))
    given = Figure().add_subplot()
    ax = scatter(Y, components=(3, 1), ax=given)
    assert ax is given
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Component 4", "Component 2")
    np.testing.assert_array_equal(points(ax)[0].get_offsets(), Y[:, [3, 1]])
    assert ax.get_legend() is None


def test_many_classes_differ_in_colour_or_marker(rng):
    ax = scatter(rng.normal(size=(60, 2)), np.arange(60) % 20)
    looks = {(tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in points(ax)}
    assert len(looks) == 20


def test_numbers_are_a_scale(X):
    pd = pytest.importorskip("pandas")
    ax = scatter(X, pd.Series(X[:, 0], name="age"))
    assert len(points(ax)) == 1
    assert ax.get_legend() is None
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "age"


@pytest.mark.parametrize(
    "labels",
    [["x", None] * 20, [0.0, np.nan] * 20],
    ids=["None", "nan"],
)
def test_rows_without_a_class_are_a_class(X, labels):
    ax = scatter(X, np.array(labels))
    assert len(points(ax)) == 2
    assert sum(len(c.get_offsets()) for c in points(ax)) == 40


def test_scatter_refuses(X):
    with pytest.raises(ValueError, match=r"scores has shape \(40, 1\)"):
        scatter(X[:, :1])
    with pytest.raises(ValueError, match=r"labels has shape \(3,\); there are 40 rows"):
        scatter(X, [1, 2, 3])
    with pytest.raises(ValueError, match="of 0 to 1"):
        scatter(X, components=(0, 2))
    with pytest.raises(ValueError, match="scatter draws two"):
        scatter(X, components=(0,))


# Spectra


def test_scree(rng):
    pca = PCA(3).fit(rng.normal(size=(20, 5)))
    given = Figure().add_subplot()
    ax = scree(pca, ax=given)
    assert ax is given
    shares = pca.explained_variance_ratio_
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], shares)
    (line,) = ax.lines
    np.testing.assert_allclose(line.get_xydata(), np.c_[1:4, np.cumsum(shares)])
    ax.figure.draw_without_rendering()
    assert "100 %" in [text.get_text() for text in ax.get_yticklabels()]


def test_scree_without_shares():
    with pytest.raises(ValueError, match="This Powers has no explained_variance_ratio_"):
        scree(Powers())
    with pytest.raises(ValueError, match=r"This PCA has no .* not fitted"):
        scree(PCA())


# Figures


def test_a_figure_goes_with_its_axes(X):
    ax = scatter(X)
    figure = weakref.ref(ax.figure)
    del ax
    gc.collect()
    assert figure() is None


def test_a_notebook_gets_a_figure_it_displays(X, monkeypatch):
    pyplot.figure(1)  # the display hook is in place before the stand-in comes
    pyplot.close(1)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    ax = scatter(X)
    assert [pyplot.figure(n) for n in pyplot.get_fignums()] == [ax.figure]
    pyplot.close(ax.figure)


def test_without_matplotlib(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("figure", "colors", "ticker"):
        monkeypatch.delitem(sys.modules, f"matplotlib.{module}", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[plot\]'"):
        scatter(X)


def test_matplotlib_comes_with_the_first_figure():
    code = "import sys, mercer; mercer.plotting.scree; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "plotting" in dir(mercer)

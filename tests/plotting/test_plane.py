"""Scores and lengths of projections over the plane."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA
from mercer.messages import percent
from mercer.methods import Improved, Nystrom, Subset
from mercer.plotting import ContoursDisplay, NormsDisplay
from tests.plotting.artists import Powers, contour_sets, lay_out, points, texts


def contours(model, X, **options):
    return ContoursDisplay.from_estimator(model, X, **options).axes_


@pytest.mark.parametrize(("width", "across"), [(1, 1), (4, 4), (5, 3), (7, 4)])
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
    with pytest.raises(ValueError, match=r"there are 3 components: .* from 0 to 2"):
        contours(Powers(3), X, components=components, resolution=8)


def test_values_are_those_of_transform(X):
    pca = PCA().fit(X)
    axes = contours(pca, X, resolution=30)
    for j, ax in enumerate(axes):
        lines = contour_sets(ax)[1]
        for level, segments in zip(lines.levels, lines.allsegs, strict=True):
            for segment in filter(len, segments):
                scores = pca.transform(np.asarray(segment))[:, j]
                # A linear score is linear between the points of the grid.
                np.testing.assert_allclose(scores, level, atol=1e-9)
        assert sum(map(len, lines.allsegs)) > 3


def test_grid_covers_the_rows(X):
    model = Powers()
    (ax,) = contours(model, X, resolution=25)
    assert model.rows.shape == (625, 2)
    low, high = model.rows.min(axis=0), model.rows.max(axis=0)
    assert (low < X.min(axis=0)).all()
    assert (high > X.max(axis=0)).all()
    assert ax.get_xlim() == pytest.approx((low[0], high[0]))
    assert ax.get_ylim() == pytest.approx((low[1], high[1]))
    np.testing.assert_array_equal(points(ax)[0].get_offsets(), X)


def test_levels(X):
    (ax,) = contours(Powers(), X, levels=[-1, 0, 0.5], resolution=20)
    filled, lines = contour_sets(ax)
    np.testing.assert_array_equal(lines.levels, [-1, 0, 0.5])
    assert filled.extend == "both"
    few, many = (
        len(contour_sets(contours(Powers(), X, levels=n, resolution=20)[0])[1].levels)
        for n in (4, 20)
    )
    assert few <= 8 < 15 <= many


def test_zero_is_in_the_middle_of_the_colours_and_heavier(X):
    (ax,) = contours(Powers(), X - X.mean(axis=0) / 2, resolution=40)
    filled, lines = contour_sets(ax)
    assert filled.norm.vmin == -filled.norm.vmax
    (zero,) = np.flatnonzero(lines.levels == 0)
    widths = np.asarray(lines.get_linewidths())
    assert widths[zero] > np.delete(widths, zero).max()


def test_constant_score_and_constant_column(X):
    constant = np.column_stack([X[:, 0], np.zeros(len(X))])
    display = ContoursDisplay.from_estimator(PCA(2).fit(constant), constant, resolution=10)
    lay_out(display)
    assert contour_sets(display.axes_[0])
    lay_out(ContoursDisplay.from_estimator(Powers(1), constant, resolution=2))

    class Zero(Powers):
        def transform(self, X):
            return np.zeros((len(X), 1))

    zero = ContoursDisplay.from_estimator(Zero(), X, resolution=10)
    lay_out(zero)
    assert len(contour_sets(zero.axes_[0])) == 1  # a color, no lines


def test_shares_in_the_titles(X):
    pca = PCA().fit(X)
    share = [percent(r, 1) for r in pca.explained_variance_ratio_]
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
    assert all(ax.get_xlabel() == "x₁" for ax in drawn)
    with pytest.raises(ValueError, match="ax has 4 Axes, but there are 2 components"):
        contours(Powers(2), X, ax=square, resolution=8)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.filterwarnings("error")
def test_names_of_a_table(X, library):
    table = pytest.importorskip(library).DataFrame({"height": X[:, 0], "weight": X[:, 1]})
    axes = contours(PCA().fit(table), table, resolution=8)
    assert axes[0].get_xlabel() == axes[1].get_xlabel() == "height"
    assert axes[0].get_ylabel() == "weight"
    plain = contours(PCA().fit(X), X, resolution=8)
    levels = contour_sets(axes[0])[1].levels
    np.testing.assert_array_equal(contour_sets(plain[0])[1].levels, levels)


@pytest.mark.parametrize("kind", ["list", "sparse", "float32", "torch"])
def test_other_rows(X, kind):
    from scipy.sparse import csr_array

    rows = {
        "list": lambda: X.tolist(),
        "sparse": lambda: csr_array(X),
        "float32": lambda: X.astype(np.float32),
        "torch": lambda: pytest.importorskip("torch").asarray(X),
    }[kind]()
    labels = rows[:, 0] > 10 if kind == "torch" else X[:, 0] > 10
    assert len(contours(PCA().fit(rows), rows, labels=labels, resolution=8)) == 2


def test_legend_of_a_figure_of_ours(X):
    axes = contours(Powers(2), X, labels=np.where(X[:, 1] > 0, "up", "down"), resolution=8)
    (key,) = axes[0].figure.legends
    assert texts(key) == ["down", "up"]
    assert len(points(axes[1])) == 2


def test_errors_of_contours(X, rng):
    with pytest.raises(
        ValueError, match=r"This PCA takes 5 columns.*mercer\.plotting\.ScoresDisplay"
    ):
        contours(PCA(2).fit(rng.normal(size=(9, 5))), X)
    with pytest.raises(ValueError, match=r"X has shape \(40, 3\)"):
        contours(PCA().fit(X), np.column_stack([X, X[:, 0]]))
    with pytest.raises(ValueError, match="X contains NaN or infinity"):
        contours(PCA().fit(X), np.where(X > 10, np.nan, X))


def test_what_it_holds_is_what_is_drawn(X):
    pca = PCA().fit(X)
    display = ContoursDisplay.from_estimator(pca, X, components=[1], resolution=9)
    assert display.scores.shape == (1, 9, 9)
    corner = pca.transform([[display.x[0], display.y[-1]]])
    assert display.scores[0, -1, 0] == pytest.approx(corner[0, 1])
    again = display.plot()
    assert again is display
    assert len(display.contours_) == len(display.axes_) == 1


def test_names_that_are_no_formulas(X):
    table = pytest.importorskip("pandas").DataFrame(X, columns=["$a_", "b" * 300])
    display = ContoursDisplay.from_estimator(PCA().fit(table), table, resolution=8)
    assert display.axes_[0].get_xlabel() == "$a_"
    lay_out(display)


def test_one_row(X):
    lay_out(ContoursDisplay.from_estimator(PCA().fit(X), X[:1], resolution=8))


def projection_norms(models, X, **options):
    return NormsDisplay.from_estimators(models, X, **options).axes_


def on_basis(X, method):
    model = KernelPCA(3, kernel="rbf", gamma=0.1, center=False, method=method, random_state=0)
    return model.fit(X)


@pytest.mark.parametrize("method", ["exact", Subset(10), Nystrom(10), Improved(10)], ids=repr)
def test_norms_are_those_of_the_operator(X, method):
    model = on_basis(X, method)
    (ax,) = projection_norms({"a": model}, X, levels=[0.01, 0.2, 0.5], resolution=60)
    lines, p = contour_sets(ax)[1], model.projection_
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
    first, second = (contour_sets(ax)[0] for ax in axes)
    np.testing.assert_array_equal(first.levels, second.levels)
    assert first.norm.vmin == second.norm.vmin == 0
    assert first.norm.vmax == second.norm.vmax
    assert [len(c.get_offsets()) for c in points(axes[0])] == [40, 7]
    assert [len(c.get_offsets()) for c in points(axes[1])] == [40]
    (bar,) = [other for other in axes[0].figure.axes if other not in axes]
    assert bar.get_ylabel() == "‖PΦ(x)‖"


def test_norms_of_linear_models_and_of_pipelines(X):
    pipe = make_pipeline(StandardScaler(), PCA(1)).fit(X)
    given = Figure().subplots(1, 2)
    axes = projection_norms({"linear": PCA(1).fit(X), "scaled": pipe}, X, ax=given, resolution=10)
    assert list(axes) == list(given)
    assert given[0].figure.axes == list(given)


def test_errors_of_norms(X, rng):
    with pytest.raises(ValueError, match="estimators is empty"):
        projection_norms({}, X)
    with pytest.raises(ValueError, match="This PCA takes 5 columns"):
        projection_norms({"a": PCA().fit(X), "b": PCA(2).fit(rng.normal(size=(9, 5)))}, X)
    with pytest.raises(ValueError, match="ax has 2 Axes, but there are 1 models"):
        projection_norms({"a": PCA().fit(X)}, X, ax=Figure().subplots(1, 2))


def test_one_model(X):
    display = NormsDisplay.from_estimator(PCA(1).fit(X), X, resolution=10)
    assert [ax.get_title() for ax in display.axes_] == ["PCA"]
    at = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    expected = np.abs(PCA(1).fit(X).transform(at)[:, 0]).reshape(10, 10)
    np.testing.assert_allclose(display.norms["PCA"], expected)
    assert display.colorbar_.ax.get_ylabel() == "‖PΦ(x)‖"

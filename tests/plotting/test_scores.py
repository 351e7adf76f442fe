"""Scores: points, classes, scales, keys; two components and several in pairs."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, Denoiser, KernelPCA, NoveltyDetector, as_source, config_context
from mercer.kernels import Substring
from mercer.plotting import BiplotDisplay, ContoursDisplay, PairsDisplay, ScoresDisplay
from tests.plotting.artists import lay_out, offsets, points, texts


def test_scores_of_an_estimator():
    X, species = load_iris(return_X_y=True)
    display = ScoresDisplay.from_estimator(PCA(3).fit(X), X, labels=species)
    left = X - X.mean(axis=0)
    V = np.linalg.svd(left)[2][:2]
    for j, part in enumerate(display.points_):
        found = np.asarray(part.get_offsets())
        np.testing.assert_allclose(np.abs(found), np.abs(left[species == j] @ V.T), atol=1e-9)
    assert display.ax_.get_xlabel() == "Component 1 (92.4 %)"
    assert texts(display.key_) == ["0", "1", "2"]
    assert display.scores.shape == (150, 2)


@pytest.mark.parametrize(
    "display",
    [ScoresDisplay, PairsDisplay, BiplotDisplay, ContoursDisplay],
    ids=lambda x: x.__name__,
)
def test_labels_by_position(display):
    X, species = load_iris(return_X_y=True)
    X = X[:, :2]
    model = PCA(2).fit(X)
    assert texts(display.from_estimator(model, X, species).key_) == ["0", "1", "2"]


def test_classes_by_name(X):
    labels = np.repeat(["b", "a"], 20)
    display = ScoresDisplay.from_scores(X, labels=labels, ratio=[0.7, 0.2])
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Component 1 (70.0 %)", "Component 2 (20.0 %)")
    assert texts(display.key_) == ["a", "b"]
    a, b = points(ax)
    np.testing.assert_array_equal(a.get_offsets(), X[20:])
    np.testing.assert_array_equal(b.get_offsets(), X[:20])
    assert a.get_facecolor().tolist() != b.get_facecolor().tolist()
    assert not a.get_rasterized()


def test_chosen_components_on_given_axes(rng):
    Y = rng.normal(size=(30, 4))
    given = Figure().add_subplot()
    display = ScoresDisplay.from_scores(Y, components=(3, 1), ax=given)
    assert display.ax_ is given
    assert (given.get_xlabel(), given.get_ylabel()) == ("Component 4", "Component 2")
    np.testing.assert_array_equal(points(given)[0].get_offsets(), Y[:, [3, 1]])
    assert given.get_legend() is display.key_ is None
    assert given.figure.axes == [given]


def test_one_component_is_drawn_row_by_row(X):
    display = ScoresDisplay.from_estimator(PCA(1).fit(X), X)
    np.testing.assert_array_equal(offsets(display)[:, 0], np.arange(40))
    np.testing.assert_allclose(offsets(display)[:, 1], PCA(1).fit_transform(X)[:, 0])
    assert display.ax_.get_xlabel() == "Row"
    assert display.ax_.get_ylabel().startswith("Component 1")


def test_a_single_row_and_equal_rows():
    lay_out(ScoresDisplay.from_scores([[1.0, 2.0]], labels=["only"]))
    lay_out(ScoresDisplay.from_scores(np.ones((5, 2)), labels=[1, 1, 2, 2, 2]))


MODELS = {
    "pca": lambda X: PCA(2).fit(X),
    "kernel": lambda X: KernelPCA(3, kernel="rbf", gamma=0.1).fit(X),
    "pipeline": lambda X: make_pipeline(StandardScaler(), PCA(2)).fit(X),
    "passthrough": lambda X: make_pipeline("passthrough", PCA(2)).fit(X),
    "detector": lambda X: NoveltyDetector(PCA(2)).fit(X),
    "denoiser": lambda X: Denoiser(PCA(2)).fit(X),
    "their pca": lambda X: peers.PCA(2).fit(X),
    "their kernel": lambda X: peers.KernelPCA(2, kernel="rbf").fit(X),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(rng, name):
    X = rng.normal(size=(60, 4)) * [4, 3, 2, 1]
    model = MODELS[name](X)
    inner = getattr(model, "estimator_", model)
    with config_context(block_rows=7):
        display = ScoresDisplay.from_estimator(model, X)
    np.testing.assert_allclose(offsets(display), inner.transform(X)[:, :2], atol=1e-12)


KINDS = ["list", "sparse", "coo", "float32", "pandas", "polars", "torch"]


# scikit-learn's scaler takes no tensors
@pytest.mark.parametrize(
    ("kind", "pipeline"),
    [*((kind, False) for kind in KINDS), *((kind, True) for kind in KINDS[:-1])],
)
@pytest.mark.filterwarnings("error")
def test_kinds_of_rows(rng, kind, pipeline):
    X = rng.normal(size=(50, 3)) * [4, 2, 1]
    rows = {
        "list": lambda: X.tolist(),
        "sparse": lambda: scipy.sparse.csr_array(X),
        "coo": lambda: scipy.sparse.coo_matrix(X),
        "float32": lambda: X.astype(np.float32),
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(X, columns=[*"abc"]),
        "polars": lambda: pytest.importorskip("polars").DataFrame(X, schema=[*"abc"]),
        "torch": lambda: pytest.importorskip("torch").asarray(X),
    }[kind]()
    scaler = StandardScaler(with_mean=False)
    model = (make_pipeline(scaler, PCA(2)) if pipeline else PCA(2)).fit(rows)
    with config_context(block_rows=7):
        display = ScoresDisplay.from_estimator(model, rows, labels=np.arange(50) % 3)
    plain = X / X.std(axis=0) if pipeline else X
    expected = np.concatenate([PCA(2).fit_transform(plain)[j::3] for j in range(3)])
    np.testing.assert_allclose(offsets(display), expected, atol=1e-5)


def test_rows_in_a_file_or_a_source(rng, tmp_path):
    X = rng.normal(size=(50, 5))
    np.save(tmp_path / "rows.npy", X)
    pca = PCA(4).fit(X)
    pipe = make_pipeline(StandardScaler(), PCA(4)).fit(X)
    for model in (pca, pipe):
        expected = ScoresDisplay.from_estimator(model, X, components=(2, 3))
        for rows in (tmp_path / "rows.npy", as_source(X)):
            display = ScoresDisplay.from_estimator(model, rows, components=(2, 3))
            np.testing.assert_allclose(offsets(display), offsets(expected))
            assert display.scores.shape == (50, 2)


def test_strings_and_kernel_matrices(rng):
    words = ["abcab", "abd", "bcdbc", "xyz", "xywxy", "abcd"] * 5
    kpca = KernelPCA(2, kernel=Substring(2)).fit(words)
    display = ScoresDisplay.from_estimator(kpca, words)
    np.testing.assert_allclose(offsets(display), kpca.transform(words), atol=1e-12)
    X = rng.normal(size=(20, 3))
    given = KernelPCA(2, kernel="precomputed").fit(X @ X.T)
    display = ScoresDisplay.from_estimator(given, X @ X.T)
    np.testing.assert_allclose(offsets(display), given.transform(X @ X.T), atol=1e-12)


def test_many_classes_differ_in_color_or_marker(rng):
    display = ScoresDisplay.from_scores(rng.normal(size=(120, 2)), labels=np.arange(120) % 60)
    looks = {
        (tuple(c.get_facecolor()[0]), c.get_paths()[0].vertices.tobytes()) for c in display.points_
    }
    assert len(looks) == len(texts(display.key_)) == 60
    lay_out(display)


def test_more_classes_than_looks_leave_the_smallest_together(rng):
    names = np.array([f"class {i:03}" for i in range(100)])
    labels = np.repeat(names, np.where(np.arange(100) < 45, 1, 3))
    Y = rng.normal(size=(len(labels), 2))
    display = ScoresDisplay.from_scores(Y, labels=labels)
    assert len(display.points_) == 60
    assert texts(display.key_)[-1] == "41 others"
    assert set(names[45:]) <= set(texts(display.key_))
    rest = ~np.isin(labels, texts(display.key_))
    np.testing.assert_array_equal(display.points_[-1].get_offsets(), Y[rest])


def test_numbers_are_a_scale(X):
    pd = pytest.importorskip("pandas")
    display = ScoresDisplay.from_scores(X, labels=pd.Series(X[:, 0], name="a$ge_1"))
    (drawn,) = display.points_
    np.testing.assert_array_equal(drawn.get_array(), X[:, 0])
    assert display.ax_.get_legend() is None
    assert display.key_.ax.get_ylabel() == "a$ge_1"
    lay_out(display)
    whole = ScoresDisplay.from_scores(np.zeros((61, 2)), labels=np.arange(61))
    np.testing.assert_array_equal(whole.points_[0].get_array(), np.arange(61))


def test_numbers_that_are_missing_or_infinite(X):
    numbers = X[:, 0].copy()
    numbers[[3, 5]], numbers[7] = np.nan, np.inf
    display = ScoresDisplay.from_scores(X, labels=numbers)
    known, lost = display.points_
    np.testing.assert_array_equal(lost.get_offsets(), X[[3, 5]])
    assert known.norm.vmax == np.max(numbers[np.isfinite(numbers)])
    lay_out(display)
    none = ScoresDisplay.from_scores(X, labels=np.full(40, np.nan))
    assert texts(none.key_) == ["missing"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["x", None] * 20, ["x", "missing"]),
        ([0.0, np.nan] * 20, ["0", "missing"]),
        ([True, False] * 20, ["False", "True"]),
        ([0.5, 2.0] * 20, ["0.5", "2"]),
        (["", "b"] * 20, ["(empty)", "b"]),
    ],
)
def test_rows_without_a_class_are_gray_and_last(X, labels, names):
    display = ScoresDisplay.from_scores(X, labels=np.array(labels))
    assert texts(display.key_) == names
    assert sum(len(c.get_offsets()) for c in display.points_) == 40
    lay_out(display)


def test_labels_of_pandas(X):
    pd = pytest.importorskip("pandas")
    some = pd.Series(["a", None] * 20, dtype="category", name="kind")
    display = ScoresDisplay.from_scores(X, labels=some)
    assert texts(display.key_) == ["a", "missing"]
    assert display.key_.get_title().get_text() == "kind"
    whole = pd.Series([*range(39), None], dtype="Int64")
    assert len(ScoresDisplay.from_scores(X, labels=whole).points_[0].get_array()) == 39
    days = pd.to_datetime(pd.Series(["2020-01-01", None] * 20))
    assert texts(ScoresDisplay.from_scores(X, labels=days).key_)[-1] == "missing"


def test_names_that_are_no_formulas(X):
    labels = np.repeat(["_hidden", "$x", "a$b_c$d", "x" * 500], 10)
    display = ScoresDisplay.from_scores(X, labels=labels)
    lay_out(display)
    assert texts(display.key_)[:3] == ["$x", "_hidden", "a$b_c$d"]
    assert len(texts(display.key_)[3]) < 40


def test_very_many_points_are_an_image_in_which_no_class_covers_another(rng):
    Y, labels = rng.normal(size=(25_000, 2)), np.repeat(np.arange(25), 1000)
    display = ScoresDisplay.from_scores(Y, labels=np.where(labels == 0, np.nan, labels))
    assert all(c.get_rasterized() for c in display.points_)
    lay_out(display)
    assert offsets(display).shape == Y.shape
    np.testing.assert_array_equal(np.sort(offsets(display), axis=0), np.sort(Y, axis=0))
    few = Y[: 40 * 100]
    display = ScoresDisplay.from_scores(few, labels=np.repeat([5, 7], 2000))
    (drawn,) = display.points_
    assert texts(display.key_) == ["5", "7"]
    colors = drawn.get_facecolors()[:, :3]
    where = {tuple(row): i for i, row in enumerate(few)}
    row = np.array([where[tuple(point)] for point in drawn.get_offsets()])
    first = (colors == colors[row < 2000][0]).all(axis=1)
    np.testing.assert_array_equal(first, row < 2000)  # each in the color of its class
    assert 0.4 < first[:2000].mean() < 0.6  # and in mixed order


def test_errors(X):
    calls = [
        (lambda: ScoresDisplay.from_scores(X[:, 0]), r"scores has shape \(40,\)"),
        (lambda: ScoresDisplay.from_scores(X[:0]), r"scores has shape \(0, 2\)"),
        (
            lambda: ScoresDisplay.from_scores(X, labels=[1, 2, 3]),
            r"labels has shape \(3,\), but there",
        ),
        (lambda: ScoresDisplay.from_scores(X, components=(0, 2)), "from 0 to 1"),
        (lambda: ScoresDisplay.from_scores(X, components=(0, 1, 0)), "one or two components"),
        (lambda: ScoresDisplay.from_scores(X, components=[]), "from 0 to 1"),
        (lambda: ScoresDisplay.from_scores([["a", "b"]]), "could not convert string to float"),
        (lambda: ScoresDisplay.from_scores(np.where(X > 12, np.nan, X)), "NaN or infinity"),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match="The model has no components to draw"):
        ScoresDisplay.from_estimator(PCA(0).fit(X), X)
    with pytest.raises(TypeError, match="This str has no transform"):
        ScoresDisplay.from_estimator("pca", X)


def test_dates_along_a_scale():
    rows = np.random.default_rng(0).standard_normal((60, 3))
    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]").astype("datetime64[ns]")
    days[7] = "NaT"
    pca = PCA(2).fit(rows)
    display = ScoresDisplay.from_estimator(pca, rows, labels=days)
    known, lost = display.ax_.collections
    expected = np.delete(days, 7).astype("datetime64[D]").astype(int)
    np.testing.assert_array_equal(known.get_array(), expected)
    assert len(lost.get_offsets()) == 1
    display.figure_.canvas.draw()
    assert "Feb" in [text.get_text() for text in display.key_.ax.get_yticklabels()]
    few = ScoresDisplay.from_estimator(pca, rows, labels=days[np.arange(60) % 2])
    assert [text.get_text() for text in few.key_.get_texts()] == ["2020-01-01", "2020-01-02"]


def test_many_long_names_leave_room_for_the_points():
    rows = np.random.default_rng(0).standard_normal((120, 3))
    labels = [f"{i % 60:02d} WITH A NAME IN CAPITALS" for i in range(120)]
    display = ScoresDisplay.from_estimator(PCA(2).fit(rows), rows, labels=labels)
    lay_out(display)
    points, key = (part.get_window_extent() for part in (display.ax_, display.key_))
    assert points.x1 <= key.x0
    assert points.width > 0.3 * display.figure_.bbox.width


def test_small_classes_are_drawn_over_large_ones():
    rows = np.random.default_rng(0).normal(size=(100, 2))
    names = np.array(["rare"] * 4 + ["usual"] * 90 + ["some"] * 6, dtype=object)
    names[:2] = None
    display = ScoresDisplay.from_scores(rows, labels=names)
    assert texts(display.key_)[:3] == ["rare", "some", "usual"]
    height = {part.get_label(): part.get_zorder() for part in display.points_}
    missing = next(key for key in height if key not in ("rare", "some", "usual"))
    assert height[missing] < height["usual"] < height["some"] < height["rare"] < 5


def test_points_are_scores_and_histograms_count_them():
    X, species = load_iris(return_X_y=True)
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


def test_names_and_scales_of_pairs():
    X, species = load_iris(return_X_y=True)
    display = PairsDisplay.from_estimator(PCA(4).fit(X), X, components=[2, 0], labels=species)
    below = [display.axes_[1, j] for j in range(2)]
    assert [ax.get_xlabel() for ax in below] == ["Component 3", "Component 1"]
    assert below[0].get_ylabel() == "Component 1"
    assert display.axes_[0, 0].get_xlim() == below[0].get_xlim()
    assert [t.get_text() for t in display.axes_[0, 0].texts] == ["1.7 %"]
    assert not display.axes_[0, 1].get_visible()
    lay_out(display)


def test_given_axes_of_pairs():
    X, species = load_iris(return_X_y=True)
    given = Figure().subplots(3, 3)
    display = PairsDisplay.from_estimator(PCA(4).fit(X), X, components=3, labels=species, ax=given)
    assert (display.axes_ == given).all()
    assert [ax.get_visible() for ax in given[0]] == [True, False, False]
    assert given[0, 0].figure.legends == []
    with pytest.raises(ValueError, match="ax has 4 Axes, but there are 9 panels"):
        PairsDisplay.from_scores(X, components=3, ax=Figure().subplots(2, 2))


def test_one_component_many_classes_and_constant_scores():
    X = load_iris().data
    one = PairsDisplay.from_estimator(PCA(1).fit(X), X)
    assert one.points_ == {}
    assert one.histograms_[0][0].get_data().values.sum() == 150
    lay_out(one)
    many = PairsDisplay.from_scores(X[:, :2], labels=np.arange(150) % 30)
    assert len(many.histograms_[0]) == 1
    assert len(many.points_[1, 0]) == len(texts(many.key_)) == 30
    lay_out(many)
    constant = PairsDisplay.from_scores(np.full((9, 2), 3.0))
    assert constant.histograms_[0][0].get_data().values.sum() == 9
    lay_out(constant)
    alone = PairsDisplay.from_scores(np.full((1, 3), 3.0), labels=[np.nan])
    lay_out(alone)


def test_a_scale_of_numbers_in_pairs_has_a_bar():
    X = load_iris().data
    display = PairsDisplay.from_scores(X, labels=np.linspace(0, 1, 150))
    assert display.key_.ax in display.figure_.axes
    assert display.histograms_[0][0].get_data().values.sum() == 150


def test_pairs_of_a_pipeline_and_errors():
    X = load_iris().data
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(X)
    display = PairsDisplay.from_estimator(pipe, X)
    np.testing.assert_allclose(display.scores, pipe.transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="from 0 to 2"):
        PairsDisplay.from_estimator(pipe, X, components=4)
    with pytest.raises(ValueError, match="labels has shape"):
        PairsDisplay.from_scores(X, labels=[1])

"""Contours of the lengths of projections, for models side by side."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA
from mercer.methods import Improved, Nystrom, Subset
from mercer.plotting import NormsDisplay
from tests.plotting.drawn import points, sets


def projection_norms(models, X, **options):
    return NormsDisplay.from_estimators(models, X, **options).axes_


def on_basis(X, method):
    model = KernelPCA(3, kernel="rbf", gamma=0.1, center=False, method=method, random_state=0)
    return model.fit(X)


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
    assert bar.get_ylabel() == "‖PΦ(x)‖"


def test_norms_of_linear_models_and_of_pipelines(X):
    pipe = make_pipeline(StandardScaler(), PCA(1)).fit(X)
    given = Figure().subplots(1, 2)
    axes = projection_norms({"linear": PCA(1).fit(X), "scaled": pipe}, X, ax=given, resolution=10)
    assert list(axes) == list(given)
    assert given[0].figure.axes == list(given)


def test_projection_norms_refuses(X, rng):
    with pytest.raises(ValueError, match="estimators is empty"):
        projection_norms({}, X)
    with pytest.raises(ValueError, match="This PCA takes 5 columns"):
        projection_norms({"a": PCA().fit(X), "b": PCA(2).fit(rng.normal(size=(9, 5)))}, X)
    with pytest.raises(ValueError, match="ax holds 2 Axes, and 1 models"):
        projection_norms({"a": PCA().fit(X)}, X, ax=Figure().subplots(1, 2))


def test_one_model(X):
    display = NormsDisplay.from_estimator(PCA(1).fit(X), X, resolution=10)
    assert [ax.get_title() for ax in display.axes_] == ["PCA"]
    at = np.stack(np.meshgrid(display.x, display.y), axis=-1).reshape(-1, 2)
    expected = np.abs(PCA(1).fit(X).transform(at)[:, 0]).reshape(10, 10)
    np.testing.assert_allclose(display.norms["PCA"], expected)
    assert display.colorbar_.ax.get_ylabel() == "‖PΦ(x)‖"

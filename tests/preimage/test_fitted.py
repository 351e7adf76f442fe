"""Pre-images on what the exact method fits: shifted, weighted, float32."""

import numpy as np
import pytest

from mercer import KernelPCA
from mercer.arrays import to_numpy
from mercer.kernels import RBF, Linear
from mercer.preimage import Distances, FixedPoint, Gradient, Ridge

LINEAR = [FixedPoint(), Gradient(), Ridge(1e-6, kernel="linear"), Distances(20)]


def fitted(kernel, X, k, weights=None):
    model = KernelPCA(k, kernel=kernel, eigen_solver="dense").fit(X, sample_weight=weights)
    return model.projection_, to_numpy(model.transform(X))


def rows(n=60):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 4)) * [5, 3, 1, 0.3]


@pytest.mark.parametrize("method", LINEAR, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_linear_is_pca(method, mean, weighted):
    if weighted and isinstance(method, Ridge):
        pytest.skip("ridge weighs all rows alike, and so regresses to another mean")
    X = rows() + mean
    weights = np.random.default_rng(1).uniform(0.5, 3.0, len(X)) if weighted else None
    projection, scores = fitted(Linear(), X, 2, weights)
    assert (projection.shift is None) == (mean == 0)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    w = np.ones(len(X)) if weights is None else weights
    centre = w @ X / w.sum()
    V = np.linalg.svd(np.sqrt(w)[:, None] * (X - centre), full_matrices=False)[2][:2].T
    wanted = centre + (X - centre) @ V @ V.T
    np.testing.assert_allclose(result.rows, wanted, atol=1e-5 if mean else 1e-6)


@pytest.mark.parametrize("method", [FixedPoint(), Gradient(), Ridge(), Distances()], ids=repr)
def test_a_mean_far_away_changes_nothing(method):
    X = rows()
    near, scores = fitted(RBF(0.05), X, 6)
    far, same = fitted(RBF(0.05), X + 1e4, 6)
    first = method.find(near, method.begin(near, X, scores), scores)
    second = method.find(far, method.begin(far, X + 1e4, same), same)
    np.testing.assert_allclose(first.rows, second.rows - 1e4, atol=1e-3)


@pytest.mark.parametrize("method", [FixedPoint(), Gradient(), Ridge(), Distances()], ids=repr)
def test_float32(method):
    X = rows().astype(np.float32)
    projection, scores = fitted(RBF(0.05), X, 6)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    assert scores.dtype == np.float32
    assert result.rows.dtype == np.float32
    assert np.isfinite(result.rows).all()
    assert result.converged.all()

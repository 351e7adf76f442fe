"""What every pre-image method owes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, make_moons

from mercer import KernelPCA, config_context
from mercer.kernels import (
    RBF,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Subsequence,
)
from mercer.preimage import PREIMAGES, Distances, FixedPoint, Gradient, Preimage, Ridge
from tests.preimage.exact import kernel_pca, pca_rows, scores_of

ALL = [FixedPoint(), Gradient(), Ridge(), Distances()]
DESCENTS = [FixedPoint(), Gradient()]
LINEAR = [
    (FixedPoint(), 1e-8),
    (Gradient(), 1e-8),
    (Ridge(1e-7, kernel="linear"), 1e-6),
    (Distances(20), 1e-8),
]


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 4)) * [5, 3, 1, 0.3] + [10, -4, 0, 2]


def found(method, projection, X, scores, new=None):
    return method.find(
        projection, method.begin(projection, X, scores), scores if new is None else new
    )


def far(projection, gamma, r):
    """Squared distance in feature space, written out."""
    k, y = projection.kernel, projection.basis
    cross = np.einsum("ij,ij->i", gamma, k(r, y))
    return k.diag(r) - 2 * cross + np.einsum("ij,jk,ik->i", gamma, k(y), gamma)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shifted", [False, True])
@pytest.mark.parametrize(("method", "within"), LINEAR, ids=lambda m: str(m))
def test_linear_is_pca(method, within, shifted, center):
    X, new = rows(), 3 * rows(9, seed=1)
    if not center and (shifted or isinstance(method, Ridge)):
        pytest.skip("a shift is for centred rows; ridge regresses to the mean")
    projection, scores = kernel_pca(Linear(), X, 2, center, X.mean(axis=0) if shifted else None)
    result = found(method, projection, X, scores, scores_of(projection, new))
    if center:
        wanted = pca_rows(X, 2, new)
    else:
        V = np.linalg.svd(X, full_matrices=False)[2][:2].T
        wanted = new @ V @ V.T
    np.testing.assert_allclose(result.rows, wanted, atol=within * 30)
    assert result.converged.all()


@pytest.mark.parametrize("method", ALL, ids=repr)
@pytest.mark.parametrize("kernel", [RBF(0.05), Matern(4.0), RationalQuadratic(3.0)], ids=repr)
def test_distance_is_that_of_feature_space(method, kernel):
    X = rows()
    projection, scores = kernel_pca(kernel, X, 5)
    result = found(method, projection, X, scores)
    wanted = far(projection, projection.coefficients(scores), result.rows)
    np.testing.assert_allclose(result.distance, wanted, atol=1e-12)


@pytest.mark.parametrize("method", DESCENTS, ids=repr)
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.01), RBF(1.0), Laplacian(0.2), Polynomial(3), RBF(0.1) + 0.01 * Polynomial(2)],
    ids=repr,
)
def test_no_farther_than_the_nearest_training_row(method, kernel):
    X = rows()
    projection, scores = kernel_pca(kernel, X, 5)
    new = scores_of(projection, rows(20, seed=1))
    result = found(method, projection, X, scores, new)
    gamma = projection.coefficients(new)
    each = [far(projection, gamma, np.repeat(y[None], len(new), 0)) for y in X]
    assert (result.distance <= np.min(each, axis=0) * (1 + 1e-10) + 1e-10).all()


@pytest.mark.parametrize("method", ALL, ids=repr)
@pytest.mark.parametrize(
    "kernel", [RBF(0.05), Laplacian(0.2), Matern(3.0, 0.5), Matern(3.0, 1.8)], ids=repr
)
def test_training_rows_return_with_all_axes(method, kernel):
    X = rows(30)
    projection, scores = kernel_pca(kernel, X)
    method = Ridge(1e-9) if isinstance(method, Ridge) else method
    np.testing.assert_allclose(found(method, projection, X, scores).rows, X, atol=1e-4)


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_two_moons_come_out_cleaner(method):
    clean, _ = make_moons(300, noise=0.0, random_state=0)
    noise = np.random.default_rng(0).normal(size=clean.shape) * 0.12
    projection, scores = kernel_pca(RBF(2.0), clean + noise, 12)
    result = found(method, projection, clean + noise, scores)

    def off(r):
        apart = ((r[:, None] - clean[None]) ** 2).sum(axis=2)
        return apart.min(axis=1).mean()

    assert off(result.rows) < 0.8 * off(clean + noise)


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_digits_come_out_cleaner(method):
    rng = np.random.default_rng(0)
    images = rng.permutation(load_digits().data / 16.0)
    train, clean = images[:500], images[500:560]
    noisy = clean + rng.normal(size=clean.shape) * 0.3
    projection, scores = kernel_pca(RBF(0.05), train, 30)
    result = found(method, projection, train, scores, scores_of(projection, noisy))

    def error(r):
        return ((r - clean) ** 2).sum(axis=1).mean()

    assert error(result.rows) < 0.4 * error(noisy)
    assert error(result.rows) < error(pca_rows(train, 30, noisy))


@pytest.mark.parametrize("method", ALL, ids=repr)
def test_any_block_size_gives_the_same(method):
    X = rows(80)
    projection, scores = kernel_pca(RBF(0.05), X, 6)
    whole = found(method, projection, X, scores)
    with config_context(block_rows=7):
        parts = found(method, projection, X, scores)
    np.testing.assert_allclose(whole.rows, parts.rows, atol=1e-4 * 5)
    np.testing.assert_allclose(whole.distance, parts.distance, atol=1e-10)


@pytest.mark.parametrize("method", ALL, ids=repr)
class TestEdges:
    def test_the_mean_has_a_pre_image(self, method):
        X = rows()
        projection, scores = kernel_pca(RBF(0.01), X, 3)
        result = found(method, projection, X, scores, np.zeros((1, 3)))
        assert result.rows.shape == (1, 4)
        assert np.isfinite(result.rows).all()
        assert (np.abs(result.rows - X.mean(axis=0)) < 3 * X.std(axis=0)).all()

    def test_one_axis_and_one_column(self, method):
        X = rows()[:, :1]
        projection, scores = kernel_pca(RBF(0.01), X, 1)
        result = found(method, projection, X, scores, scores[:1])
        assert result.rows.shape == (1, 1)
        assert np.isfinite(result.rows).all()

    def test_no_points(self, method):
        X = rows()
        projection, scores = kernel_pca(RBF(0.01), X, 2)
        result = found(method, projection, X, scores, scores[:0])
        assert result.rows.shape == (0, 4)
        assert str(result) == "No points."

    def test_duplicates(self, method):
        X = np.repeat(rows(12), 5, axis=0)
        projection, scores = kernel_pca(RBF(0.05), X)
        result = found(method, projection, X, scores)
        assert np.isfinite(result.rows).all()
        if not isinstance(method, Ridge):
            np.testing.assert_allclose(result.rows, X, atol=1e-4)

    def test_float32_in_float32_out(self, method):
        X = rows().astype(np.float32)
        projection, scores = kernel_pca(RBF(0.05), X, 3)
        single = found(method, projection, X, scores.astype(np.float32))
        double = found(method, projection, X, scores.astype(np.float32).astype(np.float64))
        assert single.rows.dtype == np.float32
        assert double.rows.dtype == np.float64
        np.testing.assert_allclose(single.rows, double.rows, rtol=1e-5, atol=1e-4)

    def test_far_scores_stay_finite(self, method):
        X = rows()
        projection, scores = kernel_pca(RBF(0.5), X, 3)
        result = found(method, projection, X, scores, np.full((2, 3), 1e3))
        assert np.isfinite(result.rows).all()

    def test_bad_scores(self, method):
        X = rows()
        projection, scores = kernel_pca(RBF(0.05), X, 3)
        state = method.begin(projection, X, scores)
        with pytest.raises(ValueError, match="pass 3 columns, one per component"):
            method.find(projection, state, scores[:, :2])
        scores[4, 1] = np.nan
        with pytest.raises(ValueError, match="row 4, column 1 is nan"):
            method.find(projection, state, scores)

    def test_rows_that_are_no_dense_numbers(self, method):
        X = rows()
        projection, scores = kernel_pca(RBF(0.05), X, 3)
        with pytest.raises(ValueError, match=r"X\.toarray\(\)"):
            method.begin(replace(projection, basis=sparse.csr_array(X)), X, scores)
        strings = replace(projection, basis=["a"] * 60, kernel=Subsequence(2))
        with pytest.raises(ValueError, match="is a string kernel"):
            method.begin(strings, ["a"] * 60, scores)
        with pytest.raises(ValueError, match="precomputed"):
            method.begin(replace(projection, kernel=None, basis=None), X, scores)


def test_names():
    assert all(issubclass(method, Preimage) for method in PREIMAGES.values())
    for wrong in ("rigde", 3, Ridge):
        with pytest.raises(ValueError, match="'preimage' parameter"):
            KernelPCA(2, preimage=wrong).fit(rows())


def test_report():
    X = rows()
    projection, scores = kernel_pca(RBF(0.05), X, 4)
    text = str(found(FixedPoint(), projection, X, scores))
    assert text.startswith("60 of 60 converged, after ")

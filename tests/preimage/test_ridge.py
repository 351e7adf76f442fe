"""Kernel ridge regression."""

import numpy as np
import pytest

from mercer import config_context
from mercer.kernels import RBF, HistogramIntersection, Linear
from mercer.preimage import Ridge
from tests.preimage.exact import kernel_pca, pca_rows


def rows(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [3, 1, 0.5] + [4, 0, -2]


def test_the_formula():
    X = rows()
    projection, scores = kernel_pca(RBF(0.2), X, 4)
    method = Ridge(0.3, gamma=0.7)
    K = RBF(0.7)(scores)
    mean = X.mean(axis=0)
    wanted = mean + K @ np.linalg.solve(K + 0.3 * np.eye(50), X - mean)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    np.testing.assert_allclose(result.rows, wanted, atol=1e-10)


def test_its_width_is_that_of_the_scores():
    X = rows()
    for kernel in (RBF(0.2), 1e6 * RBF(0.2)):
        projection, scores = kernel_pca(kernel, X, 4)
        assert Ridge().begin(projection, X, scores).kernel == RBF.from_median(scores)


def test_linear_nears_pca_as_alpha_falls():
    X = rows()
    projection, scores = kernel_pca(Linear(), X, 2)
    errors = []
    for alpha in (1e-1, 1e-3, 1e-5):
        method = Ridge(alpha, kernel=Linear())
        result = method.find(projection, method.begin(projection, X, scores), scores)
        errors.append(np.abs(result.rows - pca_rows(X, 2)).max())
    assert errors[0] > 50 * errors[1] > 2500 * errors[2]


def test_a_large_penalty_leaves_the_mean():
    X = rows()
    projection, scores = kernel_pca(RBF(0.2), X, 4)
    method = Ridge(1e9)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    np.testing.assert_allclose(result.rows, np.repeat(X.mean(axis=0)[None], 50, 0), atol=1e-6)


def test_any_kernel():
    X = np.abs(rows())
    projection, scores = kernel_pca(HistogramIntersection(), X, 10)
    method = Ridge(1e-3)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    assert ((result.rows - X) ** 2).sum() < 0.05 * ((X - X.mean(axis=0)) ** 2).sum()


def test_a_shift_is_not_added_twice():
    X = rows() + 100
    plain, scores = kernel_pca(RBF(0.2), X, 4)
    moved, same = kernel_pca(RBF(0.2), X, 4, shift=X.mean(axis=0))
    method = Ridge()
    first = method.find(plain, method.begin(plain, X, scores), scores)
    second = method.find(moved, method.begin(moved, X, same), same)
    np.testing.assert_allclose(first.rows, second.rows, atol=1e-8)
    np.testing.assert_allclose(first.distance, second.distance, atol=1e-10)


def test_equal_scores_have_a_width():
    X = np.repeat(rows(4), 20, axis=0)
    projection, scores = kernel_pca(RBF(0.2), X, 3)
    method = Ridge(1e-6)
    result = method.find(projection, method.begin(projection, X, scores), scores)
    np.testing.assert_allclose(result.rows, X, atol=1e-3)


def test_bad_input():
    X = rows()
    projection, scores = kernel_pca(RBF(0.2), X, 4)
    for method in (Ridge(0), Ridge(-1.0), Ridge("a"), Ridge(gamma=-1.0)):
        with pytest.raises(ValueError, match="must be a positive number"):
            method.begin(projection, X, scores)
    with pytest.raises(ValueError, match="Pass it to the kernel"):
        Ridge(gamma=1.0, kernel="linear").begin(projection, X, scores)
    with pytest.raises(ValueError, match="scores for 50 rows"):
        Ridge().begin(projection, X[:-1], scores)
    with pytest.raises(ValueError, match="begin"):
        Ridge().find(projection, None, scores)
    with pytest.raises(ValueError, match="Increase alpha"):
        Ridge(1e-9, kernel="tanh(1.0, -1.0)").begin(projection, X, scores)
    with config_context(memory=19_000), pytest.raises(MemoryError, match="memory budget"):
        Ridge().begin(projection, X, scores)

"""Pivots of Cholesky decompositions: the worst row, or one drawn by what is left of it."""

import numpy as np
import pytest

from mercer import landmarks
from mercer.kernels import RBF, Polynomial
from mercer.landmarks.cholesky import pivoted_cholesky
from tests.landmarks.catalogue import points, problem


def plain(K, m, free=None):
    """The incomplete Cholesky decomposition, a column at a time."""
    left, G, at = np.diag(K).copy(), np.zeros((len(K), m)), []
    for i in range(m):
        p = int(np.argmax(left if free is None else np.where(free, left, -1.0)))
        G[:, i] = (K[:, p] - G[:, :i] @ G[p, :i]) / np.sqrt(left[p])
        left -= G[:, i] ** 2
        at.append(p)
        left[at] = 0.0
    return at, G, left


@pytest.mark.parametrize("kernel", [RBF(0.5), Polynomial(4)], ids=repr)
@pytest.mark.parametrize("m", [1, 20, 90])
def test_a_plain_decomposition_gives_the_same(kernel, m):
    X = points(300, 6)
    K = kernel(X)
    at, G, left = plain(K, m)
    found = pivoted_cholesky(problem(X, kernel=kernel), m)
    np.testing.assert_array_equal(found.pivots, at)
    scale = np.sqrt(K.max())
    np.testing.assert_allclose(found.G, G, atol=1e-11 * scale)
    np.testing.assert_allclose(found.residual_diag, left, atol=1e-11 * scale**2)


def test_what_is_left_is_positive_semi_definite():
    X = points(200, 2)
    K = RBF(0.5)(X)
    found = pivoted_cholesky(problem(X, kernel=RBF(0.5)), 60)
    at, G, left = found.pivots, found.G, found.residual_diag
    E = K - G @ G.T
    assert np.linalg.eigvalsh(E).min() > -1e-13
    np.testing.assert_allclose(np.diag(E), left, atol=1e-13)
    np.testing.assert_allclose(E[at], 0, atol=1e-13)
    np.testing.assert_array_equal(np.triu(G[at], 1), 0.0)


def test_all_rows_reproduce_the_matrix():
    X = points(80, 2)
    found = pivoted_cholesky(problem(X, kernel=RBF(0.1)), 80)
    assert found.size < 80
    np.testing.assert_allclose(found.G @ found.G.T, RBF(0.1)(X), atol=1e-11)
    assert found.residual_diag.max() < 1e-11


def test_the_first_of_equals():
    found = pivoted_cholesky(problem(np.eye(6), kernel=RBF(50.0)), 6)
    np.testing.assert_array_equal(found.pivots, np.arange(6))


def test_tol_is_a_share_of_the_trace():
    X, w = points(200, 2), np.random.default_rng(0).random(200)
    for weights in (None, w):
        given = problem(X, kernel=RBF(0.5), weights=weights)
        count = np.ones(200) if weights is None else weights
        found = pivoted_cholesky(given, 200, tol=0.01)
        before = pivoted_cholesky(given, found.size - 1).residual_diag
        assert count @ found.residual_diag <= 0.01 * count.sum() < count @ before
    assert len(landmarks.PivotedCholesky(tol=0.01).select(problem(X, kernel=RBF(0.5)), 200)) < 60


def test_weights_only_say_which_rows_may_be_chosen():
    X, w = points(100), np.random.default_rng(0).integers(0, 3, 100)
    at = pivoted_cholesky(problem(X, weights=w), 15).pivots
    np.testing.assert_array_equal(at, plain(RBF(0.3)(X), 15, w > 0)[0])
    some = np.arange(0, 100, 3)
    at = pivoted_cholesky(problem(X), 15, candidates=some).pivots
    np.testing.assert_array_equal(at, plain(RBF(0.3)(X), 15, np.isin(np.arange(100), some))[0])


X8 = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [3.0], [3.05], [6.0]])
W8 = np.array([1.0, 2.0, 1.0, 3.0, 0.0, 1.0, 1.0, 0.5])


@pytest.mark.parametrize(
    ("block", "weights"),
    [
        (4, W8),
        pytest.param(1, W8, marks=pytest.mark.slow),
        pytest.param(None, None, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_random_pivots_follow_the_sequential_law(block, weights):
    """The first is drawn by k(x,x), the second by what the first has left: all pairs counted."""
    kernel, trials = Polynomial(2, gamma=0.3) * RBF(0.5), 2000
    K = kernel(X8)
    w = np.ones(8) if weights is None else weights
    first = w * np.diag(K)
    first /= first.sum()
    law = np.zeros((8, 8))
    for i in range(8):
        left = w * np.maximum(np.diag(K) - K[:, i] ** 2 / K[i, i], 0.0)
        left[i] = 0.0
        law[i] = first[i] * left / left.sum()
    given, seen = problem(X8, kernel=kernel, weights=weights, seed=7), np.zeros((8, 8))
    for _ in range(trials):
        i, j = landmarks.RPCholesky(block).select(given, 2).at
        seen[i, j] += 1
    assert (seen[law == 0] == 0).all()
    expected = trials * np.array([*law[trials * law >= 10], law[trials * law < 10].sum()])
    counted = np.array([*seen[trials * law >= 10], seen[trials * law < 10].sum()])
    z = (counted - expected) / np.sqrt(expected * (1 - expected / trials))
    assert np.abs(z).max() < 4
    assert (z**2).sum() < len(z) + 4 * np.sqrt(2 * len(z))


def test_random_pivots_explain_nearly_as_much_as_the_best_components():
    """A few times as many points leave little more of the trace (Chen et al., Thm 3.1)."""
    X = points(400, 2)
    K = RBF(0.5)(X)
    best = np.linalg.eigvalsh(K)[::-1][10:].sum()
    left = []
    for seed in range(10):
        at = landmarks.RPCholesky().select(problem(X, kernel=RBF(0.5), seed=seed), 25).at
        Y = K[:, at]
        left.append(
            np.trace(K) - np.trace(np.linalg.pinv(K[np.ix_(at, at)], hermitian=True) @ Y.T @ Y)
        )
    assert np.mean(left) < 1.2 * best

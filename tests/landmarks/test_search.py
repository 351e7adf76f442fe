"""Searches by the explained variance, against a refit for every candidate."""

import numpy as np
import pytest

from mercer import landmarks
from mercer.kernels import RBF, Polynomial
from mercer.landmarks.base import row_basis
from mercer.landmarks.objective import basis_variance, gains, losses
from tests.landmarks.catalogue import points, problem


def direct(X, kernel, at, r, weights=None, center=True):
    """The criterion in float64 from its definition."""
    w = np.ones(len(X)) if weights is None else np.asarray(weights, float)
    h = kernel(X, X[at])
    h = h - np.average(h, axis=0, weights=w) if center else h
    root = np.linalg.pinv(np.linalg.cholesky(kernel(X[at]) + 1e-14 * np.eye(len(at))))
    values = np.linalg.eigvalsh(root @ (h.T * w) @ h @ root.T)[::-1]
    return values[: len(at) if r is None else r].sum()


def spectra():
    rng = np.random.default_rng(0)
    for trial in range(60):
        q = int(rng.integers(1, 12))
        xi = np.sort(10.0 ** rng.uniform(-8, 2, q))[::-1]
        if trial % 5 == 0 and q > 2:
            xi[1] = xi[0]
        if trial % 7 == 0:
            xi[-1] = 0.0
        yield rng, xi, int(rng.integers(1, q + 2))


def test_gains_are_those_of_the_bordered_matrix():
    for rng, xi, r in spectra():
        q, p = len(xi), 15
        b = rng.standard_normal((q, p)) * np.sqrt(xi)[:, None] * 10.0 ** rng.uniform(-6, 0, p)
        b[rng.integers(q), rng.integers(p)] = 0.0
        c = rng.random(p) * (xi[0] + (b**2).sum(axis=0))
        found = gains(xi, b, c, r)
        for j in range(p):
            A = np.diag([*xi, c[j]])
            A[q, :q] = A[:q, q] = b[:, j]
            expected = np.sort(np.linalg.eigvalsh(A))[::-1][:r].sum() - xi[:r].sum()
            if q >= r:
                assert found[j] == pytest.approx(expected, abs=1e-13 * q * (xi[0] + c[j]))
            else:
                assert found[j] == c[j]
        np.testing.assert_array_equal(gains(xi, b, c, None), c)


def test_losses_are_those_of_the_compressed_matrix():
    for rng, xi, r in spectra():
        q = len(xi)
        if q < 2:
            continue
        u = np.linalg.qr(rng.standard_normal((q, q)))[0]
        u[0, 0], u[:, 0] = 0.0, u[:, 0] / np.linalg.norm(u[:, 0])
        u /= np.linalg.norm(u, axis=0)
        found = losses(xi, u, r)
        for j in range(q):
            Q = np.linalg.qr(np.c_[u[:, j], rng.standard_normal((q, q - 1))])[0][:, 1:]
            left = np.sort(np.linalg.eigvalsh(Q.T @ np.diag(xi) @ Q))[::-1][:r].sum()
            assert found[j] == pytest.approx(xi[:r].sum() - left, abs=1e-13 * q * xi[0])


def test_a_tiny_gain_keeps_its_digits():
    xi, b, c = np.array([1.0, 0.5]), np.array([[1e-9], [0.0]]), np.array([1e-3])
    assert gains(xi, b, c, 1)[0] == pytest.approx(1e-18 / (1 - 1e-3), rel=1e-10)


PAIRS = [(1, False, True), (1, True, False), (4, False, False), (4, True, True)]
PAIRS += [(None, False, True), (None, True, False)]


@pytest.mark.parametrize(("r", "weighed", "center"), PAIRS)
def test_the_criterion_is_its_definition(center, weighed, r):
    X, at = points(60), np.arange(0, 60, 6)
    weights = np.random.default_rng(0).random(60) * 2 if weighed else None
    given = problem(X, r or 60, weights=weights, center=center)
    expected = direct(X, RBF(0.3), at, r, weights, center)
    assert basis_variance(given, row_basis(given, at)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("r", "weighed", "center"), PAIRS)
@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2)], ids=repr)
def test_forward_search_adds_what_a_refit_for_every_candidate_adds(kernel, r, weighed, center):
    X = points(30)
    weights = 1 + np.random.default_rng(0).integers(0, 3, 30) if weighed else None
    given = problem(X, r or 30, kernel=kernel, weights=weights, center=center)
    chosen = landmarks.Forward().select(given, 7).at
    for i in range(7):
        before = list(chosen[:i])
        rest = [x for x in range(30) if x not in before]
        scores = [direct(X, kernel, [*before, x], r, weights, center) for x in rest]
        best = max(scores)
        assert scores[rest.index(chosen[i])] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("r", "weighed"), [(2, True), (4, False), (None, True)])
def test_backward_search_removes_what_a_refit_misses_least(r, weighed):
    X = points(20)
    weights = 1 + np.random.default_rng(0).integers(0, 3, 20) if weighed else None
    given = problem(X, r or 20, weights=weights)
    left = list(range(20))
    while len(left) > 5:
        fewer = sorted(landmarks.Backward(step=1).select(given, len(left) - 1).at)
        scores = {x: direct(X, RBF(0.3), [y for y in left if y != x], r, weights) for x in left}
        (gone,) = set(left) - set(fewer)
        assert scores[gone] == pytest.approx(max(scores.values()), rel=1e-9)
        left = fewer


def test_a_point_removed_alone_is_a_round():
    given = problem(points(40))
    one, several = (landmarks.Backward(step).select(given, 30) for step in (1, 5))
    assert basis_variance(given, one) >= basis_variance(given, several) * 0.999


@pytest.mark.parametrize("seed", range(5))
def test_forward_then_backward_is_no_worse_than_half_of_the_way(seed):
    """What is left after the removal holds at most what the larger basis held."""
    given = problem(points(120, 2, seed), r=4)
    larger = landmarks.Forward().select(given, 15)
    both = landmarks.ForwardBackward().select(given, 10)
    assert set(both.at) <= set(larger.at)
    held = [basis_variance(given, basis) for basis in (both, larger)]
    assert held[0] <= held[1] * (1 + 1e-12)
    drawn = [basis_variance(given, landmarks.Uniform().select(given, 10)) for _ in range(10)]
    assert held[0] > max(drawn)


def test_several_at_a_time_are_not_alike():
    """Near copies of the best row would all score best."""
    X = np.repeat(points(20), 10, axis=0) + 1e-3 * points(200, 3, seed=1)
    chosen = landmarks.Forward(step=10).select(problem(X, kernel=RBF(2.0)), 20).at
    assert len(set(chosen // 10)) >= 17


def test_a_weight_of_two_is_a_row_twice():
    X, w = points(40), 1 + np.random.default_rng(0).integers(0, 3, 40)
    for rule in (landmarks.Forward(), landmarks.Backward(step=1)):
        weighed = rule.select(problem(X, weights=w), 8).at
        repeated = rule.select(problem(np.repeat(X, w, axis=0)), 8).at
        np.testing.assert_array_equal(np.repeat(np.arange(40), w)[repeated], weighed)


def test_ransac_is_the_best_of_its_draws():
    given = problem(points())
    best = basis_variance(given, landmarks.Ransac(trials=8).select(problem(points(), seed=3), 6))
    rng_twin = problem(points(), seed=3)
    draws = [basis_variance(given, landmarks.Uniform().select(rng_twin, 6)) for _ in range(8)]
    assert best == max(draws)


def test_a_thousand_rows_and_fifty_points():
    given = problem(points(1000, 2), r=5, kernel=RBF(0.1))
    chosen = landmarks.Forward().select(given, 50)
    assert len(chosen) == 50
    every = row_basis(given, np.arange(1000))
    assert basis_variance(given, chosen) == pytest.approx(basis_variance(given, every), rel=1e-6)

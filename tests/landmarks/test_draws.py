"""Rows drawn by chance: with the chances that were promised."""

import numpy as np
import pytest

from mercer import landmarks
from mercer.kernels import RBF, Linear, Polynomial
from mercer.landmarks.base import inclusion_probabilities, systematic_sample
from mercer.landmarks.columns import KernelColumns
from mercer.landmarks.sampling import leverage_scores
from tests.landmarks.catalogue import points, problem


def test_chances_add_up_and_none_exceeds_one():
    sizes = np.array([100.0, 50.0, 3.0, 2.0, 1.0, 0.0])
    chance = inclusion_probabilities(sizes, 3)
    np.testing.assert_allclose(chance, [1, 1, 0.5, 1 / 3, 1 / 6, 0])


@pytest.mark.parametrize("m", [1, 3, 6])
def test_rows_are_drawn_as_often_as_their_chance_says(m):
    rng, trials = np.random.default_rng(0), 4000
    sizes = np.array([9.0, 5.0, 4.0, 2.0, 1.0, 1.0, 0.5, 0.0])
    chance, seen = inclusion_probabilities(sizes, m), np.zeros(8)
    for _ in range(trials):
        at, said = systematic_sample(rng, sizes, m)
        assert len(set(at)) == m
        np.testing.assert_array_equal(said, chance[at])
        seen[at] += 1
    error = np.sqrt(chance * (1 - chance) / trials)
    assert (np.abs(seen / trials - chance) <= 4 * error + 1e-12).all()


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        (landmarks.Uniform(), lambda K, w: w),
        (landmarks.Diagonal(), lambda K, w: w * np.diag(K) ** 2),
        (landmarks.ColumnNorm(), lambda K, w: w * (K**2 @ w)),
    ],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize("weighed", [False, True])
def test_counts_are_one_over_the_chance(rule, sizes, weighed):
    X, kernel = points(50), Polynomial(2)
    weights = np.random.default_rng(1).random(50) if weighed else None
    basis = rule.select(problem(X, kernel=kernel, weights=weights), 12)
    w = np.ones(50) if weights is None else weights
    chance = inclusion_probabilities(sizes(kernel(X), w), 12)
    np.testing.assert_allclose(basis.counts, (w / chance)[basis.at], rtol=1e-12)


def test_leverage_of_all_rows_is_the_formula():
    """With every row in the sample nothing is estimated."""
    X, w = points(40), np.random.default_rng(0).random(40) + 0.5
    given, every = problem(X, weights=w), np.arange(40)
    K = RBF(0.3)(X)
    root = np.sqrt(w)
    values = np.linalg.eigvalsh(root[:, None] * K * root)[::-1]
    k = int(np.ceil(40 / (4 * np.log(40))))
    ridge = values[k:].sum() / k
    expected = np.diag(K @ np.linalg.inv(K + ridge * np.diag(1 / w)))
    found = leverage_scores(KernelColumns(given), w, every, every, np.ones(40))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_leverage_finds_a_rare_cluster():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.1 * rng.standard_normal((2000, 2)), 5 + rng.random((10, 2))])
    rare = {"leverage": 0, "uniform": 0}
    for name in rare:
        rule = landmarks.as_landmarks(name)
        for seed in range(20):
            basis = rule.select(problem(X, kernel=RBF(2.0), seed=seed), 20)
            rare[name] += int((basis.at >= 2000).any())
    assert rare["leverage"] >= 17
    assert rare["uniform"] <= 5


def test_counts_of_leverage_estimate_the_trace():
    X = points(300) * np.random.default_rng(3).random((300, 1)) * 3
    own = np.einsum("ij,ij->i", X, X)
    sums = []
    for seed in range(200):
        basis = landmarks.Leverage().select(problem(X, kernel=Linear(), seed=seed), 40)
        sums.append(basis.counts @ own[basis.at])
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - own.sum()) < 4 * error

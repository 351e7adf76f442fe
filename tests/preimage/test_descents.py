"""Fixed point and gradient."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.kernels import (
    RBF,
    Cosine,
    HistogramIntersection,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Tanh,
)
from mercer.preimage import FixedPoint, Gradient
from tests.preimage.exact import kernel_pca, scores_of

KERNELS = [
    RBF(0.1),
    RBF(1.0),
    Polynomial(2),
    Laplacian(0.4),
    Matern(2.0),
    Matern(2.0, 1.8),
    RationalQuadratic(2.0, 0.7),
    RBF(0.2) + 0.5 * Polynomial(3) + Tanh(0.1),
    RBF(0.2) * Matern(3.0) * 2,
    (RBF(0.2) + 1) * (Linear() + 1),
    (RBF(0.2) + 1) ** 2,
    Polynomial(3).normalized(),
    Cosine(),
    Polynomial(2).rbf(0.01),
]


def rows(n=30, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [2, 1, 0.5]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_as_near_as_brute_force(kernel):
    X = rows()
    projection, _ = kernel_pca(kernel, X, 4)
    scores = scores_of(projection, rows(1, seed=1))
    results = [method.find(projection, None, scores) for method in (FixedPoint(), Gradient())]
    for i, gamma in enumerate(projection.coefficients(scores)):

        def rho(r, gamma=gamma):
            return float(kernel.diag(r[None])[0] - 2 * kernel(r[None], X)[0] @ gamma)

        starts = np.vstack([X[::6], X.mean(axis=0) + 0.01])
        least = min(minimize(rho, start, method="L-BFGS-B").fun for start in starts)
        length = gamma @ kernel(X) @ gamma
        for result in results:
            assert result.distance[i] <= least + length + 1e-7 * abs(length)


def test_mikas_rule_is_a_fixed_point_of_what_is_found():
    X = rows()
    projection, scores = kernel_pca(RBF(0.3), X, 4)
    r = FixedPoint(tol=1e-10).find(projection, None, scores).rows
    weights = projection.coefficients(scores) * RBF(0.3)(r, X)
    np.testing.assert_allclose(weights @ X / weights.sum(axis=1)[:, None], r, atol=1e-9)


def test_both_agree_and_the_gradient_takes_fewer_steps():
    X = rows(60)
    projection, scores = kernel_pca(RBF(2.0), X, 6)
    first = FixedPoint(tol=1e-9, max_iter=2000).find(projection, None, scores)
    second = Gradient().find(projection, None, scores)
    assert first.converged.all()
    assert second.converged.all()
    np.testing.assert_allclose(first.rows, second.rows, atol=1e-6)
    assert second.steps.mean() < first.steps.mean()


def test_a_cubic_does_not_run_away():
    # Undamped, the length of r goes through t → 1/t²: away from its fixed point.
    X = rows()
    projection, scores = kernel_pca(Polynomial(3, coef0=0.0), X, 5)
    result = FixedPoint().find(projection, None, scores)
    assert result.converged.mean() > 0.9
    assert np.isfinite(result.rows).all()


def test_too_few_steps_are_reported():
    X = rows()
    projection, scores = kernel_pca(RBF(10.0), X, 4)
    result = FixedPoint(max_iter=2, restarts=1).find(projection, None, scores)
    assert not result.converged.all()
    assert np.isfinite(result.rows).all()
    assert str(result).startswith(f"{result.converged.sum()} of 30 converged, after ")


@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
def test_columns(method):
    X = rows()
    kernel = RBF(0.2).on_columns([0, 2]) + 3 * Linear().on_columns([1])
    projection, scores = kernel_pca(kernel, X)
    result = method.find(projection, None, scores)
    np.testing.assert_allclose(result.rows, X, atol=1e-3)


@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
def test_a_column_that_the_kernel_does_not_see_keeps_its_start(method):
    X = rows()
    projection, scores = kernel_pca(RBF(0.2).on_columns([0, 1]), X, 5)
    result = method.find(projection, None, scores)
    assert result.converged.all()
    assert np.isin(result.rows[:, 2], X[:, 2]).all()


@pytest.mark.parametrize("method", [FixedPoint(), Gradient()], ids=repr)
@pytest.mark.parametrize("kernel", [Laplacian(0.2, norm="l1"), HistogramIntersection()], ids=repr)
def test_no_gradient(method, kernel):
    projection, scores = kernel_pca(kernel, np.abs(rows()), 3)
    with pytest.raises(ValueError, match=r'has no gradient.*Use "ridge"'):
        method.begin(projection, rows(), scores)


@pytest.mark.parametrize(
    "method",
    [
        FixedPoint(max_iter=0),
        FixedPoint(tol=-1.0),
        FixedPoint(restarts=1.5),
        Gradient(memory=0),
        Gradient(tol=float("nan")),
    ],
    ids=repr,
)
def test_bad_parameters(method):
    projection, scores = kernel_pca(RBF(0.2), rows(), 3)
    with pytest.raises(ValueError, match="must be a"):
        method.find(projection, None, scores)

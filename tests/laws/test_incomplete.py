"""Probabilistic PCA of incomplete rows: the model, its likelihood, EM, and conditional means."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.stats

from mercer import as_source, config_context
from mercer.linalg.incomplete import Expectation, FactorModel
from mercer.linalg.maximization import Sums, maximize, objective
from mercer.methods import EM
from mercer.problem import Problem
from mercer.rules import Count


def rows(n=40, d=6, k=2, share=0.3, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, k)) * (3.0, 2.0, 1.0)[:k]) @ rng.standard_normal((k, d))
    X += noise * rng.standard_normal((n, d)) + 10.0 * rng.standard_normal(d)
    X[rng.random((n, d)) < share] = np.nan
    return X


def problem(X, k, weights=None, **settings):
    source = as_source(X).weighted(None if weights is None else np.asarray(weights, float))
    return Problem(source, Count(k), rng=np.random.default_rng(0), **settings)


def model_of(projection):
    return projection.mean, projection.factors, projection.noise


def log_density(X, mean, A, noise):
    """The log-density of the observed part of every row, by a dense normal distribution."""
    C = A @ A.T + noise * np.eye(len(mean))
    found = []
    for x in X:
        seen = ~np.isnan(x)
        normal = scipy.stats.multivariate_normal(mean[seen], C[np.ix_(seen, seen)])
        found.append(normal.logpdf(x[seen]) if seen.any() else 0.0)
    return np.array(found)


def step(X, model, prior):
    source = as_source(X)
    sums = Sums.of(source.fold(Expectation(model, source.reference)))
    return maximize(model, sums, prior), objective(model, sums, prior)


def start(X, k, bayes, seed=0):
    rng, d = np.random.default_rng(seed), X.shape[1]
    loadings = np.column_stack([rng.standard_normal((d, k)), np.zeros(d)])
    spread = np.broadcast_to(0.01 * np.eye(k + 1), (d, k + 1, k + 1)).copy() if bayes else None
    base = np.nanmean(X, axis=0)
    model = FactorModel(base, np.ones(d), loadings, spread, 1.0)
    return model, np.ones(k) if bayes else None


def test_the_objective_is_the_likelihood_of_the_observed_entries():
    X = rows()
    (model, _), value = step(X, *start(X, 2, False))
    first, _ = start(X, 2, False)
    dense = log_density(X, first.base + first.mean, first.factors, first.noise).sum()
    np.testing.assert_allclose(value, dense, rtol=1e-12)
    assert model.spread is None


@pytest.mark.parametrize("bayes", [False, True])
def test_no_step_lowers_the_objective(bayes):
    X, values = rows(share=0.5), []
    model, prior = start(X, 3, bayes)
    for _ in range(60):
        (model, prior), value = step(X, model, prior)
        values.append(value)
    assert np.all(np.diff(values) >= -1e-9 * np.abs(values[1:]))
    assert values[-1] > values[0] + 10.0


def test_maximum_likelihood_is_the_optimum():
    X, k = rows(n=25, d=4, share=0.25, seed=3), 1
    axes = EM("none", tol=1e-9, max_iter=2000).fit(problem(X, k))
    found = log_density(X, *model_of(axes.projection)).sum()

    def negative(theta):
        mean, a, log_noise = theta[:4], theta[4:8], theta[8]
        return -log_density(X, mean, a[:, None], np.exp(log_noise)).sum()

    theta = np.concatenate([np.nanmean(X, axis=0), np.ones(4), [0.0]])
    best = -scipy.optimize.minimize(negative, theta, method="BFGS").fun
    assert found >= best - 1e-5


def test_iterative_pca_is_its_plain_form():
    X, k = rows(n=60, d=6, seed=1), 2
    axes = EM("missmda", tol=1e-12, max_iter=5000).fit(problem(X, k))
    missing, (n, d) = np.isnan(X), X.shape
    filled = np.where(missing, np.nanmean(X, axis=0), X)
    for _ in range(5000):
        mean = filled.mean(axis=0)
        U, s, V = np.linalg.svd(filled - mean, full_matrices=False)
        values = s**2 / n
        noise = values[k:].sum() * n * d / min(d, n - 1) / ((n - 1) * (d - k) - d * k + k * k)
        fit = mean + (U[:, :k] * s[:k] * (1 - noise / values[:k])) @ V[:k]
        filled = np.where(missing, fit, X)
    found = axes.projection.filled(as_source(X)).collect()
    np.testing.assert_allclose(found, filled, atol=1e-6)


@pytest.mark.parametrize("regularization", ["bayes", "none", "missmda"])
def test_complete_rows_give_ordinary_components(regularization):
    X, k = rows(share=0.0), 2
    axes = EM(regularization, tol=1e-12, max_iter=3000).fit(problem(X, k))
    _, s, V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(axes.projection.eigenvalues, s[:k] ** 2 / (len(X) - 1), rtol=1e-8)
    overlaps = np.abs(V[:k] @ np.asarray(axes.projection.components))
    np.testing.assert_allclose(overlaps, np.eye(k), atol=1e-6)
    np.testing.assert_allclose(axes.projection.total_variance, X.var(axis=0, ddof=1).sum())


def test_conditional_means_are_those_of_the_normal_distribution():
    X, k = rows(seed=5), 2
    projection = EM().fit(problem(X, k)).projection
    mean, A, noise = model_of(projection)
    C = A @ A.T + noise * np.eye(len(mean))
    V = np.asarray(projection.components)
    filled, scores, spread = X.copy(), np.empty((len(X), k)), np.empty((len(X), k))
    for i, x in enumerate(X):
        m = np.isnan(x)
        gain = C[np.ix_(m, ~m)] @ np.linalg.inv(C[np.ix_(~m, ~m)])
        filled[i, m] = mean[m] + gain @ (x[~m] - mean[~m])
        left = C[np.ix_(m, m)] - gain @ C[np.ix_(~m, m)]
        scores[i] = (filled[i] - mean) @ V
        spread[i] = np.sqrt(np.einsum("ma,mn,na->a", V[m], left, V[m]))
    source = as_source(X)
    np.testing.assert_allclose(projection.filled(source).collect(), filled, rtol=1e-9)
    np.testing.assert_allclose(projection.scores(source).collect(), scores, atol=1e-8)
    np.testing.assert_allclose(projection.score_deviations(source).collect(), spread, atol=1e-8)
    likelihood = projection.likelihood(source).collect()[:, 0]
    np.testing.assert_allclose(likelihood, log_density(X, mean, A, noise), rtol=1e-9)


def test_variances_are_those_expected_of_the_completed_rows():
    """By drawing the missing entries many times from their conditional distribution."""
    X, k = rows(n=30, seed=7), 2
    projection = EM("none", tol=1e-9, max_iter=2000).fit(problem(X, k)).projection
    mean, A, noise = model_of(projection)
    C = A @ A.T + noise * np.eye(len(mean))
    second = np.zeros_like(C)
    for x in X:
        m = np.isnan(x)
        gain = C[np.ix_(m, ~m)] @ np.linalg.inv(C[np.ix_(~m, ~m)])
        r = x - mean
        r[m] = gain @ (x[~m] - mean[~m])
        second += np.outer(r, r)
        second[np.ix_(m, m)] += C[np.ix_(m, m)] - gain @ C[np.ix_(~m, m)]
    second /= len(X) - 1
    V = np.asarray(projection.components)
    np.testing.assert_allclose(V.T @ second @ V, np.diag(projection.eigenvalues), atol=1e-8)
    np.testing.assert_allclose(projection.total_variance, np.trace(second), rtol=1e-10)


def test_weights_count_rows():
    X, k = rows(n=20), 2
    weights = np.arange(20) % 3 + 1
    weighted = EM(tol=1e-9).fit(problem(X, k, weights)).projection
    repeated = EM(tol=1e-9).fit(problem(np.repeat(X, weights, axis=0), k)).projection
    np.testing.assert_allclose(weighted.eigenvalues, repeated.eigenvalues, rtol=1e-6)
    np.testing.assert_allclose(weighted.noise, repeated.noise, rtol=1e-6)


def test_blocks_and_sparse_rows_give_the_same():
    X, k = rows(n=50), 2
    X[3] = np.nan
    whole = EM().fit(problem(X, k)).projection
    with config_context(block_rows=7):
        parts = EM().fit(problem(X, k)).projection
    np.testing.assert_allclose(whole.eigenvalues, parts.eigenvalues, rtol=1e-9)
    at = np.nonzero(~np.isnan(X))
    S = scipy.sparse.csr_array((X[at], at), shape=X.shape)
    stored = EM().fit(problem(S, k)).projection
    np.testing.assert_allclose(whole.eigenvalues, stored.eigenvalues, rtol=1e-9)
    np.testing.assert_allclose(
        stored.filled(as_source(S)).collect(), whole.filled(as_source(X)).collect(), rtol=1e-9
    )


def test_scaled_columns_are_divided_by_their_observed_deviations():
    X, k = rows(), 2
    scaled = EM(tol=1e-9).fit(problem(X, k, scale=True)).projection
    deviation = np.nanstd(X, axis=0, ddof=1)
    np.testing.assert_allclose(scaled.deviation, deviation, rtol=1e-9)
    plain = EM(tol=1e-9).fit(problem(X / deviation, k)).projection
    np.testing.assert_allclose(scaled.eigenvalues, plain.eigenvalues, rtol=1e-6)


def test_a_column_without_entries_is_named():
    X = rows()
    X[:, 4] = np.nan
    with pytest.raises(ValueError, match=r"1 column of X \('4'\) has no entries"):
        EM().fit(problem(X, 2))


def test_infinity_is_not_missing():
    X = rows()
    X[5, 2] = np.inf
    with pytest.raises(ValueError, match=r"infinity \(inf\): the first is in row 5, column 2"):
        EM().fit(problem(X, 2))


def test_tensors_give_the_same():
    torch = pytest.importorskip("torch")
    X, k = rows(n=50), 2
    host = EM().fit(problem(X, k)).projection
    source = as_source(torch.asarray(X))
    device = EM().fit(problem(source, k)).projection
    np.testing.assert_allclose(device.eigenvalues, host.eigenvalues, rtol=1e-9)
    for name in ("filled", "scores", "score_deviations", "likelihood"):
        there = getattr(device, name)(source).collect()
        assert isinstance(there, torch.Tensor)
        here = getattr(host, name)(as_source(X)).collect()
        np.testing.assert_allclose(there.numpy(), here, atol=1e-7)

"""The noise model of sparse kernel PCA: its likelihood from dense features, and its steps."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize

from mercer import KernelPCA
from mercer.kernels import RBF
from mercer.methods import Sparse
from mercer.methods.literature.noise_model import (
    UPDATES,
    NoiseModel,
    ascent,
    most_likely,
    nonnegative_qp,
)
from mercer.methods.literature.sparse import noise_model
from tests.laws import plain
from tests.laws.sparse_sets import RNG, SETS, WEIGHTS, X, fit


def model_of(X, kernel, weights=None, center=True):
    """The noise model whose candidates are all rows of a weight."""
    kpca = KernelPCA(2, kernel=kernel, center=center)
    source = kpca._rows(X, reset=True).weighted(weights)
    problem = kpca._problem(source)
    basis = Sparse(2).basis(problem)
    model, distinct = noise_model(problem, basis)
    return model, basis.at[distinct]


class Dense:
    """The model of explicit features: C is D×D."""

    def __init__(self, features, weights=None, center=True):
        self.count = plain.counts(features, weights)
        self.F = features - center * (self.count @ features / self.count.sum())
        self.S = (self.F.T * self.count) @ self.F

    def covariance(self, w, noise):
        return noise * np.eye(len(self.S)) + (self.F.T * w) @ self.F

    def likelihood(self, w, noise):
        C = self.covariance(w, noise)
        _, logdet = np.linalg.slogdet(C)
        return -0.5 * (self.count.sum() * logdet + np.trace(np.linalg.solve(C, self.S)))

    def slopes(self, w, noise):
        """Terms q and Na of twice the gradient."""
        V = np.linalg.solve(self.covariance(w, noise), self.F.T)
        a = np.einsum("ij,ji->i", self.F, V)
        return np.einsum("ij,ij->j", V, self.S @ V), self.count.sum() * a


# The likelihood, and its slope.


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize(("kernel", "features"), plain.FEATURES, ids=["linear", "quadratic"])
def test_the_likelihood_is_that_of_dense_features(kernel, features, weights, center):
    dense = Dense(features(X), weights, center)
    model, at = model_of(X, kernel, weights, center)
    D, r, rng = len(dense.S), len(model.scatter), np.random.default_rng(1)
    for noise, share in ((1e-3, 1.0), (0.1, 1.0), (0.1, 0.2), (2.0, 0.05)):
        w = np.zeros(len(X))
        w[at] = rng.random(len(at)) * (rng.random(len(at)) < share)
        found = model.with_noise(noise / model.unit).fit(w[at])
        # Features beyond the span hold noise alone.
        beyond = -0.5 * dense.count.sum() * (D - r) * np.log(noise)
        truth = dense.likelihood(w, noise)
        assert found.likelihood + beyond == pytest.approx(truth, rel=1e-9)
        q, Na = dense.slopes(w, noise)
        assert np.abs(found.gradient * 2 - (q - Na)[at]).max() <= 1e-7 * np.abs(q).max()
    slope = np.empty(len(at))
    for i, row in enumerate(at):  # by differences, too
        up, down = (w + sign * 1e-5 * (np.arange(len(X)) == row) for sign in (1, -1))
        slope[i] = (dense.likelihood(up, noise) - dense.likelihood(down, noise)) / 2e-5
    assert np.abs(found.gradient - slope).max() <= 1e-4 * np.abs(slope).max()


def test_the_steps_of_the_source():
    """Latent variables as Tipping writes them: Σ = (W⁻¹ + K/σ²)⁻¹, μ_n = Σk_n/σ²."""
    kernel, noise = RBF(0.2), 0.05
    K = kernel(X)
    model, _ = model_of(X, kernel, center=False)
    w = RNG.random(len(X))
    S = np.linalg.inv(np.diag(1 / w) + K / noise)
    mu = S @ K / noise
    start = model.with_noise(noise / model.unit).fit(w)
    em, fast = start.em_step(), start.fast_step()
    assert np.allclose(em.weights, (mu**2).mean(axis=1) + np.diag(S), rtol=1e-8)
    assert np.allclose(fast.weights, (mu**2).mean(axis=1) / (1 - np.diag(S) / w), rtol=1e-8)
    assert em.value > start.value


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("update", UPDATES)
def test_the_likelihood_never_falls(name, update):
    rows, kernel = SETS[name]
    model, _ = model_of(rows[::2], kernel)
    for noise in (1e-5, 1e-2, 0.2):
        steps = list(ascent(model.with_noise(noise), update=update, max_iter=40, tol=1e-9))
        assert len(steps) > 1
        assert all(step.value > before.value for before, step in pairwise(steps))
        if update != "newton":  # the steps of the paper alone
            for before, step in pairwise(steps):
                others = [before.em_step(), before.prune()]
                others += [before.fast_step()] if update == "fast" else []
                assert any(
                    x is not None and np.array_equal(x.weights, step.weights) for x in others
                )
        # By a dense decomposition in the span's coordinates.
        for fitted in steps[:: len(steps) - 1]:
            C = noise * np.eye(len(model.scatter))
            C += (model.points.T * fitted.weights) @ model.points
            value = model.count * np.linalg.slogdet(C)[1]
            value += np.trace(np.linalg.solve(C, np.diag(model.scatter)))
            assert fitted.value == pytest.approx(-0.5 * value, rel=1e-9)


@pytest.mark.parametrize("update", ["newton", "fast"])
def test_a_step_that_would_fall_is_not_taken(update, monkeypatch):
    """Where all others lead down there is the EM step, which never does."""
    model, _ = model_of(X, RBF(0.2))
    model = model.with_noise(0.05)
    lower = model.fit(np.zeros(len(X)))
    monkeypatch.setattr(type(lower), "fast_step", lambda fit: lower)
    monkeypatch.setattr(type(lower), "newton_step", lambda fit, damping: (lower, 1.0))
    for seed in range(20):
        w = np.random.default_rng(seed).uniform(0.2, 2.0, len(X)) / len(X)
        steps = list(ascent(model, w, update=update, max_iter=8, tol=0.0))
        assert all(step.value > before.value for before, step in pairwise(steps))
        assert len(steps) > 8


def test_points_that_stand_for_each_other_are_not_pruned_at_once():
    """Each of them could go, as the others are; without all of them the likelihood falls."""
    near = np.array([1.0, 0.0]) + 1e-6 * RNG.standard_normal((1500, 2))
    fitted = NoiseModel(near, np.array([200.0, 10.0]), count=100, noise=0.5).fit(
        np.full(1500, 1.6 / 1500)
    )
    idle = fitted.q <= fitted.model.count * fitted.a
    assert idle.all()
    assert fitted.model.fit(np.zeros(1500)).value < fitted.value
    pruned = fitted.prune()
    assert pruned is None or pruned.value >= fitted.value


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize("noise", [0.02, 0.3, 2.0])
def test_the_conditions_of_a_maximum(noise, weights, center):
    """Of dense features: slope zero where there is a weight, none above zero elsewhere."""
    kernel, features = plain.FEATURES[1]
    dense = Dense(features(X), weights, center)
    found = fit(1, Sparse(sigma2=noise, tol=1e-9), weights=weights, kernel=kernel, center=center)
    projection, w = found.projection_, np.zeros(len(X))
    rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in found.X_fit_]
    w[rows] = projection.weights
    q, Na = dense.slopes(w, noise)
    off, there = q / Na - 1, plain.counts(X, weights) > 0
    assert np.abs(off[rows]).max() <= 1e-6
    assert off[there].max() <= 1e-6
    assert 0 < len(rows) <= there.sum()
    assert len(rows) < there.sum() or noise < 0.1
    best = dense.likelihood(w, noise)
    rng = np.random.default_rng(2)
    for size in (1e-3, 1e-1):  # nothing near is better
        for _ in range(10):
            near = np.maximum(w + size * w.max() * rng.standard_normal(len(w)) * there, 0)
            assert dense.likelihood(near, noise) < best


def test_all_updates_come_to_the_same_weights():
    model, _ = model_of(X[:15], RBF(0.2))
    start = np.full(15, 1 / 15)
    *_, newton = ascent(model.with_noise(0.1), start, update="newton", max_iter=100, tol=1e-10)
    assert 3 < len(newton.support) < 15
    *_, fast = ascent(model.with_noise(0.1), start, update="fast", max_iter=2000, tol=1e-7)
    assert np.array_equal(fast.support, newton.support)
    assert np.abs(fast.weights - newton.weights).max() <= 1e-5 * newton.weights.max()
    *_, em = ascent(model.with_noise(0.1), start, update="em", max_iter=2000, tol=1e-7)
    assert 0 < newton.value - em.value < 0.05  # it takes some 1e5 steps
    assert np.abs(em.weights - newton.weights).max() <= 0.05 * newton.weights.max()


@pytest.mark.parametrize("seed", range(6))
def test_quadratic_programs_against_scipy(seed):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    F = A.T @ A + 1e-9 * np.eye(25)
    found = nonnegative_qp(F, A.T @ y)
    expected, _ = scipy.optimize.nnls(A, y)
    assert np.abs(found - expected).max() <= 1e-6
    assert (found[expected == 0] == 0).all()


def test_a_search_that_starts_anywhere_ends_at_the_same_maximum():
    model, _ = model_of(*SETS["iris"])
    how = {"update": "newton", "max_iter": 500, "tol": 1e-8}
    at_once = most_likely(model.with_noise(0.02), **how)
    for noise in (1e-4, 0.2):
        warm = most_likely(
            model.with_noise(0.02), most_likely(model.with_noise(noise), **how).weights, **how
        )
        assert warm.value == pytest.approx(at_once.value, rel=1e-12)
        assert np.array_equal(warm.support, at_once.support)

"""Sparse kernel PCA: the likelihood from dense features, and what its largest value means."""

import re
from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from mercer import KernelPCA, config_context, landmarks
from mercer.kernels import RBF, Laplacian, Linear, Polynomial, Subsequence
from mercer.methods import ConvergenceWarning, Reduced, Sparse, Subset
from mercer.methods.noise_model import UPDATES, NoiseModel, ascent, not_negative
from mercer.methods.noise_search import highest
from mercer.methods.sparse import modelled
from mercer.metrics import empirical_error, subspace_angles
from tests.laws import plain
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((40, 3)), RNG.standard_normal((9, 3))
WEIGHTS = RNG.integers(0, 3, len(X)).astype(float)
SETS = {
    "iris": (load_iris().data, RBF(0.3)),
    "wine": (scale(load_wine().data), RBF(0.05)),
    "plane": (RNG.normal(0.0, 2.2, (150, 2)), RBF(0.1)),
    "laplacian": (RNG.standard_normal((80, 3)), Laplacian(0.5)),
    "quadratic": (RNG.standard_normal((60, 4)), Polynomial(2)),
}


def fit(k, method, X=X, weights=None, kernel=RBF(0.2), **settings):  # noqa: B008
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


def model_of(X, kernel, weights=None, center=True):
    """The noise model whose candidates are all rows of a weight."""
    kpca = KernelPCA(2, kernel=kernel, center=center)
    source = kpca._rows(X, reset=True).weighted(weights)
    problem = kpca._problem(source)
    basis = Sparse(2).basis(problem)
    model, among = modelled(problem, basis)
    return model, basis.at[among]


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
        found = model.of(noise / model.unit).at(w[at])
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
    start = model.of(noise / model.unit).at(w)
    em, fast = start.em(), start.fast()
    assert np.allclose(em.weights, (mu**2).mean(axis=1) + np.diag(S), rtol=1e-8)
    assert np.allclose(fast.weights, (mu**2).mean(axis=1) / (1 - np.diag(S) / w), rtol=1e-8)
    assert em.value > start.value


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("update", UPDATES)
def test_the_likelihood_never_falls(name, update):
    rows, kernel = SETS[name]
    model, _ = model_of(rows[::2], kernel)
    for noise in (1e-5, 1e-2, 0.2):
        start = np.full(len(model.points), 1 / model.count)
        steps = list(ascent(model.of(noise), start, update=update, max_iter=40, tol=1e-9))
        assert len(steps) > 1
        assert all(step.value > before.value for before, step in pairwise(steps))
        allowed = {"newton": {"newton", "scoring"}, "fast": {"fast", "em", "pruned"}}
        allowed = allowed.get(update, {"em", "pruned"}) | {"start", "fast", "em"}
        assert {step.step for step in steps} <= allowed
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
    model = model.of(0.05)
    lower = model.at(np.zeros(len(X)))
    monkeypatch.setattr(type(lower), "fast", lambda fit: lower)
    monkeypatch.setattr(type(lower), "scored", lambda fit, damping, expected: lower)
    for seed in range(20):
        w = np.random.default_rng(seed).uniform(0.2, 2.0, len(X)) / len(X)
        steps = list(ascent(model, w, update=update, max_iter=8, tol=0.0))
        assert {step.step for step in steps} <= {"start", "em", "pruned"}
        assert all(step.value > before.value for before, step in pairwise(steps))
        assert len(steps) > 8


def test_points_that_stand_for_each_other_are_not_pruned_at_once():
    """Each of them could go, as the others are; without all of them the likelihood falls."""
    near = np.array([1.0, 0.0]) + 1e-6 * RNG.standard_normal((1500, 2))
    fitted = NoiseModel(near, np.array([200.0, 10.0]), count=100, noise=0.5).at(
        np.full(1500, 1.6 / 1500)
    )
    idle = fitted.energies <= fitted.model.count * fitted.leverages
    assert idle.all()
    assert fitted.model.at(np.zeros(1500)).value < fitted.value
    pruned = fitted.pruned()
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
    *_, newton = ascent(model.of(0.1), start, update="newton", max_iter=100, tol=1e-10)
    assert 3 < len(newton.kept) < 15
    *_, fast = ascent(model.of(0.1), start, update="fast", max_iter=2000, tol=1e-7)
    assert np.array_equal(fast.kept, newton.kept)
    assert np.abs(fast.weights - newton.weights).max() <= 1e-5 * newton.weights.max()
    *_, em = ascent(model.of(0.1), start, update="em", max_iter=2000, tol=1e-7)
    assert 0 < newton.value - em.value < 0.05  # it takes some 1e5 steps
    assert np.abs(em.weights - newton.weights).max() <= 0.05 * newton.weights.max()


@pytest.mark.parametrize("seed", range(6))
def test_quadratic_programs_against_scipy(seed):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((40, 25)), rng.standard_normal(40)
    F = A.T @ A + 1e-9 * np.eye(25)
    found = not_negative(F, A.T @ y)
    expected, _ = scipy.optimize.nnls(A, y)
    assert np.abs(found - expected).max() <= 1e-6
    assert (found[expected == 0] == 0).all()


# What the weights make.


@pytest.mark.parametrize("center", [True, False])
def test_axes_are_those_of_the_weighed_points(center):
    found = fit(3, Sparse(12), center=center)
    w, Y, kernel = found.projection_.weights, found.X_fit_, RBF(0.2)
    K, h = kernel(Y), kernel(X, Y)
    shares = center * np.linalg.solve(K, h.mean(axis=0))  # of the mean's projection
    H = np.eye(len(Y)) - np.outer(np.ones(len(Y)), shares)
    root = np.sqrt(w)
    values, V = scipy.linalg.eigh(root[:, None] * (H @ K @ H.T) * root)
    axes = H.T @ (root[:, None] * V / np.sqrt(np.maximum(values, 1e-300)))[:, ::-1][:, :3]
    expected = (kernel(NEW, Y) - center * h.mean(axis=0)) @ axes
    assert same(found.transform(NEW), expected) <= 1e-7
    y = found.transform(X)
    variances = y.var(axis=0, ddof=1) if center else (y**2).sum(axis=0) / (len(X) - 1)
    assert np.allclose(found.explained_variance_, variances, rtol=1e-9)
    A = found.projection_.components
    assert np.abs(A.T @ K @ A - np.eye(3)).max() <= 1e-8


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", ["iris", "laplacian", "quadratic"])
def test_axes_of_exact_as_the_noise_vanishes(name, center):
    rows, kernel = SETS[name]
    exact = fit(3, "exact", rows, kernel=kernel, center=center)
    apart = []
    for share in (1e-2, 1e-5, 1e-10):
        noise = share * float(exact.explained_variance_[0])
        method = Sparse(sigma2=noise, tol=1e-9, max_iter=1000)
        found = fit(3, method, rows, kernel=kernel, center=center)
        apart.append(float(np.max(subspace_angles(found, exact))))
    # Of iris the smallest variances are near 1e-9 of the largest: noise is seen beside them.
    assert apart[2] < (5e-3 if name == "iris" else 1e-7)
    assert apart[2] < 0.1 * apart[0]
    assert np.allclose(found.explained_variance_, exact.explained_variance_, rtol=1e-4)


@pytest.mark.parametrize("name", SETS)
def test_the_more_noise_the_fewer_points(name):
    rows, kernel = SETS[name]
    largest = float(fit(1, "exact", rows, kernel=kernel).explained_variance_[0])
    sizes = [
        len(fit(1, Sparse(sigma2=share * largest), rows, kernel=kernel).X_fit_)
        for share in np.geomspace(1e-5, 0.3, 7)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 2 * sizes[-1]


@pytest.mark.parametrize("name", ["iris", "wine", "laplacian"])
@pytest.mark.parametrize("m", [1, 4, 20, 50])
def test_as_many_points_as_are_asked_for(name, m):
    rows, kernel = SETS[name]
    found = fit(1, Sparse(m), rows, kernel=kernel)
    left, notes = len(found.X_fit_), " ".join(found.certificate_.notes)
    assert abs(left - m) <= 1
    assert (f"leaves n_basis={m} points: {left} is the nearest" in notes) == (left != m)
    again = fit(1, Sparse(sigma2=found.projection_.noise), rows, kernel=kernel)
    assert abs(len(again.X_fit_) - left) <= 2  # from equal weights, not from the last tried


def test_more_points_than_differ():
    twice = np.repeat(X[:8], 3, axis=0)
    found = fit(2, Sparse(15), twice)
    assert len(found.X_fit_) == len(np.unique(found.X_fit_, axis=0)) <= 8
    assert "No noise was found that leaves n_basis=15 points" in str(found.certificate_)


def test_weighed_is_better_than_unweighed():
    """The plane of Washizawa (2012), Table 1."""
    rows, kernel = RNG.normal(0.0, 2.2, (400, 2)), RBF(0.1)
    for center in (False, True):
        least = empirical_error(fit(5, "exact", rows, kernel=kernel, center=center), rows)
        found = fit(5, Sparse(40), rows, kernel=kernel, center=center)
        errors = [
            empirical_error(
                fit(5, method(select=found.X_fit_), rows, kernel=kernel, center=center), rows
            )
            for method in (Reduced, Subset)
        ]
        weighed = empirical_error(found, rows) / least
        unweighed, best = (error / least for error in errors)
        assert 1 <= best <= weighed < 1.03
        assert unweighed > 1.05


def test_the_certificate_holds():
    for name, (rows, kernel) in SETS.items():
        for method in (Sparse(8), Sparse(8, pool=30)):
            found = fit(3, method, rows, kernel=kernel)
            truth, certificate = plain.variances(kernel, rows), found.certificate_
            held = plain.held(found, kernel, rows)
            total = found.projection_.total_variance
            assert certificate.captured * total <= held * (1 + 1e-9), name
            assert certificate.captured * total >= held * (1 - 1e-6), name
            assert certificate.optimum_upper * total >= truth[:3].sum() * (1 - 1e-9), name
            assert truth.sum() <= total * (1 + 1e-9), name


# Rows, weights, candidates.


def test_weights_are_counts():
    many = np.repeat(X, WEIGHTS.astype(int), axis=0)
    for method in (Sparse(10), Sparse(sigma2=0.02)):
        weighed, plainly = fit(2, method, weights=WEIGHTS), fit(2, method, many)
        assert len(weighed.X_fit_) == len(plainly.X_fit_)
        assert same(weighed.transform(NEW), plainly.transform(NEW)) <= 1e-3
        assert np.allclose(weighed.projection_.noise, plainly.projection_.noise, rtol=1e-6)


def test_other_forms_of_rows():
    method, kernel = Sparse(8), RBF(0.2)
    expected = fit(2, method)
    given = fit(2, method, kernel(X), kernel="precomputed")
    assert same(given.transform(kernel(NEW, X)), expected.transform(NEW)) <= 1e-6
    coarse = fit(2, method, X.astype(np.float32))
    assert coarse.transform(NEW.astype(np.float32)).dtype == np.float32
    assert same(coarse.transform(NEW), expected.transform(NEW)) <= 1e-3
    far = fit(2, Sparse(8), (X + 1e6))
    assert np.allclose(far.explained_variance_, expected.explained_variance_, rtol=1e-6)
    words = ["".join(RNG.choice(list("abc"), 5)) for _ in range(30)]
    strings = fit(2, method, words, kernel=Subsequence(2, 0.5))
    assert isinstance(strings.X_fit_, list)
    assert len(strings.X_fit_) == 8
    hyperbolic = fit(2, method, kernel="sigmoid")
    assert hyperbolic.certificate_.captured.kind == "estimate"


def test_a_pool_of_candidates():
    rows = np.random.default_rng(5).standard_normal((300, 3))
    for select in ("uniform", "kmeans", landmarks.KMeans(nearest=False), rows[:40], range(40)):
        pool = None if isinstance(select, (np.ndarray, range)) else 40
        found = fit(2, Sparse(10, select=select, pool=pool), rows)
        assert len(found.X_fit_) == 10
        note = found.certificate_.notes[1]
        assert "40 candidates" in note
        assert ("chosen by" in note) == (pool is not None)
    assert "Of all rows" in fit(2, Sparse(10), rows).certificate_.notes[1]
    with config_context(memory="70MiB"):  # candidates that fit
        small = fit(2, Sparse(10), np.random.default_rng(5).standard_normal((2500, 3)))
        assert re.search(
            r"Of \d+ candidates of 2500 rows, chosen by uniform, 10", str(small.certificate_)
        )
        assert small.plan_.candidates[0].cost.memory <= 70 * 2**20


def test_a_pool_of_all_rows_is_all_rows():
    rows = X[:25]
    all_rows, pooled = fit(2, Sparse(8), rows), fit(2, Sparse(8, select=rows[::-1]), rows)
    assert same(pooled.transform(NEW), all_rows.transform(NEW)) <= 1e-4


def test_no_rows_that_differ():
    with pytest.warns(UserWarning, match="only 0 have a variance"):
        found = fit(2, Sparse(5), np.ones((20, 3)))
    assert found.transform(np.ones((4, 3))).shape == (4, 0)


@pytest.mark.parametrize(
    ("method", "k", "words"),
    [
        (Sparse(sigma2=0), 2, "sigma2=0 must be a positive number"),
        (Sparse(sigma2=np.nan), 2, "sigma2=nan must be a positive number"),
        (Sparse(sigma2="much"), 2, "sigma2='much' must be a positive number"),
        (Sparse(sigma2=50.0), 2, "sigma2=50.0 leaves no point"),
        (Sparse(sigma2=0.1), 12, "n_components=12 axes do not fit their span"),
        (Sparse(5, sigma2=0.1), 2, "sigma2=0.1 must be left out, or n_basis=5"),
        (Sparse(5, pool=4), 2, "pool=4 must be at least the 5 points"),
        (Sparse(5, pool=2.5), 2, "pool=2.5 must be a whole number"),
        (Sparse(5, pool="all"), 2, "pool='all' must be a whole number"),
        (Sparse(5, select=range(9), pool=9), 2, "pool=9 must be left out"),
        (Sparse(5, update="gibbs"), 2, "update='gibbs' must be one of newton, fast, em"),
        (Sparse(5, max_iter=0), 2, "max_iter=0 must be a whole number"),
        (Sparse(5, tol=-1), 2, "tol=-1 must be a number, 0 or more"),
        (Sparse(41), 2, "n_basis=41 is more than the 40 rows"),
        (Sparse(3), 4, "n_components=4 axes do not fit the span of n_basis=3"),
        (Sparse(3.5), 2, "n_basis=3.5 must be a whole number"),
        (Sparse(4), 0.999, "cannot be met"),
        (Sparse(5, select="nope"), 2, "select='nope' is not one of"),
    ],
    ids=repr,
)
def test_bad_input(method, k, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(k, method)


def test_what_did_not_converge_is_told():
    with pytest.warns(
        ConvergenceWarning, match=r"Sparse stopped before the likelihood was largest"
    ):
        found = fit(2, Sparse(sigma2=0.02, max_iter=1))
    assert "The likelihood is not the largest yet" in str(found.certificate_)


def test_a_search_that_starts_anywhere_ends_at_the_same_maximum():
    model, _ = model_of(*SETS["iris"])
    how = {"update": "newton", "max_iter": 500, "tol": 1e-8}
    at_once = highest(model.of(0.02), **how)
    for noise in (1e-4, 0.2):
        warm = highest(model.of(0.02), highest(model.of(noise), **how).weights, **how)
        assert warm.value == pytest.approx(at_once.value, rel=1e-12)
        assert np.array_equal(warm.kept, at_once.kept)


def test_a_linear_kernel_and_two_rows():
    found = fit(1, Sparse(2), X[:2], kernel=Linear())
    assert found.eigenvalues_ == pytest.approx(fit(1, "exact", X[:2], kernel=Linear()).eigenvalues_)

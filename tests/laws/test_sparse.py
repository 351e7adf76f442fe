"""Sparse kernel PCA: what the weights of the largest likelihood make."""

import re

import numpy as np
import pytest
import scipy.linalg

from mercer import config_context, landmarks
from mercer.kernels import RBF, Linear, Subsequence
from mercer.methods import ConvergenceWarning, Reduced, Sparse, Subset
from mercer.metrics import empirical_error, subspace_angles
from tests.laws import plain
from tests.laws.sparse_sets import NEW, RNG, SETS, WEIGHTS, X, fit
from tests.laws.truth import same

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
    assert (f"leaves exactly n_basis={m} points; {left} is nearest" in notes) == (left != m)
    again = fit(1, Sparse(sigma2=found.projection_.noise), rows, kernel=kernel)
    assert abs(len(again.X_fit_) - left) <= 2  # from equal weights, not from the last tried


def test_more_points_than_differ():
    twice = np.repeat(X[:8], 3, axis=0)
    with pytest.warns(UserWarning, match=r"Sparse: No noise variance leaves exactly n_basis=15"):
        found = fit(2, Sparse(15), twice)
    assert len(found.X_fit_) == len(np.unique(found.X_fit_, axis=0)) <= 8
    assert "No noise variance leaves exactly n_basis=15 points" in str(found.certificate_)


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
    with pytest.warns(UserWarning, match="no component has variance"):
        found = fit(2, Sparse(5), np.ones((20, 3)))
    assert found.transform(np.ones((4, 3))).shape == (4, 0)


@pytest.mark.parametrize(
    ("method", "k", "words"),
    [
        (Sparse(sigma2=0), 2, "sigma2=0 must be a positive number"),
        (Sparse(sigma2=np.nan), 2, "sigma2=nan must be a positive number"),
        (Sparse(sigma2="much"), 2, "sigma2='much' must be a positive number"),
        (Sparse(sigma2=50.0), 2, "sigma2=50.0 leaves no point"),
        (Sparse(sigma2=0.1), 12, "too few for 12 components"),
        (Sparse(5, sigma2=0.1), 2, "sigma2=0.1 must be omitted if n_basis=5 is set"),
        (Sparse(5, pool=4), 2, "pool=4 must be at least n_basis, 5 points"),
        (Sparse(5, pool=2.5), 2, "pool=2.5 must be an integer"),
        (Sparse(5, pool="all"), 2, "pool='all' must be an integer"),
        (Sparse(5, select=range(9), pool=9), 2, "pool=9 must be omitted"),
        (Sparse(5, update="gibbs"), 2, "update='gibbs' must be one of newton, fast, em"),
        (Sparse(5, max_iter=0), 2, "max_iter=0 must be an integer"),
        (Sparse(5, tol=-1), 2, "tol=-1 must be a number, 0 or more"),
        (Sparse(41), 2, "n_basis=41 is more than the 40 rows"),
        (Sparse(3), 4, "n_components=4 is too many for n_basis=3"),
        (Sparse(3.5), 2, "n_basis=3.5 must be an integer"),
        (Sparse(4), 0.999, "cannot be met"),
        (Sparse(5, select="nope"), 2, "select='nope' is not one of"),
    ],
    ids=repr,
)
def test_bad_input(method, k, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(k, method)


def test_what_did_not_converge_is_told():
    with pytest.warns(ConvergenceWarning, match=r"Sparse did not reach the maximum likelihood"):
        found = fit(2, Sparse(sigma2=0.02, max_iter=1))
    assert "The likelihood is not at its maximum" in str(found.certificate_)


def test_a_linear_kernel_and_two_rows():
    found = fit(1, Sparse(2), X[:2], kernel=Linear())
    assert found.eigenvalues_ == pytest.approx(fit(1, "exact", X[:2], kernel=Linear()).eigenvalues_)


def test_what_comes_nearer_to_a_gap():
    for method, remedy in (
        (Sparse(10), "Increase n_basis"),
        (Sparse(sigma2=0.01), "Decrease sigma2"),
    ):
        with pytest.warns(UserWarning, match=f"{remedy}, or use method="):
            fit(2, method, gap=1e-9)

"""Bounds never lie: they are held against spectra that are known."""

import functools
import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer import PCA, config_context
from mercer.linalg import DenseOperator
from mercer.linalg.bounds import (
    lanczos_excess,
    pinching_bound,
    schur_bound,
    split_bound,
    unseen_frobenius,
)
from mercer.linalg.solvers import unseen_norm
from tests.catalogue import DATA, EXACT, WAYS, pairwise, rows, separated, with_spectrum
from tests.laws import truth

SPECTRA = {
    "flat": lambda N, rng: rng.uniform(0.9, 1.1, N),
    "uniform": lambda N, rng: rng.uniform(0, 1, N),
    "slow decay": lambda N, rng: 1.0 / np.arange(1, N + 1),
    "fast decay": lambda N, rng: 0.5 ** np.arange(N),
    "clusters": lambda N, rng: rng.choice([1.0, 0.5, 0.1], N),
    "near clusters": lambda N, rng: rng.choice([1.0, 0.5], N) + 1e-7 * rng.uniform(0, 1, N),
    "one above the rest": lambda N, rng: np.r_[1.3, np.ones(N - 1)],
    "rank deficient": lambda N, rng: np.r_[rng.uniform(0, 1, N // 3), np.zeros(N - N // 3)],
    "graded": lambda N, rng: 10.0 ** -np.linspace(0, 14, N),
    "zero": lambda N, rng: np.zeros(N),
}
BASES = ("random", "krylov", "nearly right", "right", "wrong ones", "all but one")


def basis(kind, A, m, rng):
    """m orthonormal columns, from hopeless to perfect."""
    N = len(A)
    V = np.linalg.eigh(A)[1][:, ::-1]
    W = {
        "random": lambda: rng.standard_normal((N, m)),
        "krylov": lambda: np.hstack(
            [G := rng.standard_normal((N, m - m // 2)), (A @ G)[:, : m // 2]]
        ),
        "nearly right": lambda: (
            V[:, :m] + 10.0 ** rng.uniform(-6, -1) * rng.standard_normal((N, m))
        ),
        "right": lambda: V[:, :m],
        "wrong ones": lambda: V[:, rng.permutation(N)[:m]],
        "all but one": lambda: V[:, 1:],
    }[kind]()
    return scipy.linalg.qr(W, mode="economic")[0]


def seen(A, Q):
    """Ritz values, coupling where the compression is diagonal, and C = (I−QQᵀ)A(I−QQᵀ)."""
    ritz, S = np.linalg.eigh(Q.T @ A @ Q)
    Q = Q @ S[:, ::-1]
    P = np.eye(len(A)) - Q @ Q.T
    B = P @ A @ Q
    return ritz[::-1], B.T @ B, P @ A @ P


def cases(seeds):
    for seed in range(seeds):
        for spectrum in SPECTRA:
            for kind in BASES:
                rng = np.random.default_rng([seed, len(spectrum), len(kind)])
                N = int(rng.integers(4, 30))
                values = np.sort(SPECTRA[spectrum](N, rng))[::-1]
                A = with_spectrum(rng, values)
                Q = basis(kind, A, int(rng.integers(1, N)), rng)
                yield A, values, Q, int(rng.integers(0, Q.shape[1] + 1))


def test_bounds_are_never_below_the_truth():
    """Some 900 operators and bases; schur and split with the tightest δ they may be given."""
    applied = 0
    for A, values, Q, r in cases(15):
        ritz, coupling, C = seen(A, Q)
        best = values[:r].sum() * (1 - 1e-12) - 1e-14
        hidden = max(0.0, np.linalg.eigvalsh(C)[-1])
        left = max(0.0, np.trace(A) - ritz.sum())
        assert pinching_bound(ritz, np.trace(A), r) >= best
        assert schur_bound(ritz, coupling, hidden, r) >= best
        assert schur_bound(ritz, coupling, left, r) >= best
        assert split_bound(ritz, coupling, hidden, r) >= best
        assert split_bound(ritz, coupling, left, r) >= best
        applied += np.isfinite(schur_bound(ritz, coupling, hidden, r))
    assert applied > 200


def test_frobenius_norm_of_what_is_not_seen():
    for A, _, Q, _ in cases(3):
        ritz, _, C = seen(A, Q)
        product = float(((A @ Q) ** 2).sum())
        found = unseen_frobenius(float((A * A).sum()), product, ritz)
        assert abs(found**2 - (C * C).sum()) <= 1e-13 * (A * A).sum()


def test_bounds_are_tight_when_converged():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = 0.5 ** np.arange(20)
        A = with_spectrum(rng, values)
        V = np.linalg.eigh(A)[1][:, ::-1]
        Q = scipy.linalg.qr(V[:, :6] + 1e-9 * rng.standard_normal((20, 6)), mode="economic")[0]
        ritz, coupling, C = seen(A, Q)
        hidden = np.linalg.eigvalsh(C)[-1]
        best = values[:3].sum()
        assert schur_bound(ritz, coupling, hidden, 3) <= best * (1 + 1e-13)
        assert split_bound(ritz, coupling, hidden, 3) <= best * (1 + 1e-8)  # linear in the residual
        assert schur_bound(ritz, coupling, np.trace(A) - ritz.sum(), 3) <= best * (1 + 1e-13)
        assert pinching_bound(ritz, np.trace(A), 3) <= best + values[6:].sum() * (1 + 1e-13)


@st.composite
def operators(draw):
    """A small operator, a coordinate basis and r: any (A, Q) is one of these, turned."""
    N = draw(st.integers(2, 5))
    values = draw(st.lists(st.floats(0, 1), min_size=N, max_size=N))
    A = with_spectrum(np.random.default_rng(draw(st.integers(0, 2**16))), values)
    m = draw(st.integers(1, N - 1))
    return A, m, draw(st.integers(1, m)), draw(st.floats(1, 2))


@settings(max_examples=300)
@given(operators())
def test_schur_and_split_withstand_a_hunt(case):
    A, m, r, slack = case
    ritz, coupling, C = seen(A, np.eye(len(A))[:, :m])
    hidden = slack * max(0.0, np.linalg.eigvalsh(C)[-1])
    best = np.linalg.eigvalsh(A)[::-1][:r].sum() - 1e-13
    assert schur_bound(ritz, coupling, hidden, r) >= best
    assert split_bound(ritz, coupling, hidden, r) >= best


HIDDEN = {
    "one above the rest": np.r_[1.0, np.full(119, 0.9)],
    "slow decay": 1.0 / np.sqrt(np.arange(1, 121)),
}


@pytest.mark.parametrize("spectrum", HIDDEN)
def test_unseen_holds_as_often_as_it_says(spectrum):
    """At 99.9 % more than 3 violations in 200 trials have a chance of 6e-5."""
    values, violations = HIDDEN[spectrum], 0
    operator = DenseOperator(np.diag(values))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        Q = np.eye(120)[:, 1 + rng.permutation(119)[:4]]  # the largest stays hidden
        bound = unseen_norm(operator, Q, rng)
        assert bound.confidence == 0.999
        violations += bound < 1.0
        assert bound <= 1.1  # and it is of use
    assert violations <= 3


def test_unseen_is_exact_when_the_probe_sees_all():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        N, m = int(rng.integers(1, 40)), 0
        m = int(rng.integers(0, N + 1))
        A = with_spectrum(rng, rng.uniform(0, 1, N))
        Q = scipy.linalg.qr(rng.standard_normal((N, N)))[0][:, :m]
        _, _, C = seen(A, Q) if m else (None, None, A)
        bound = unseen_norm(DenseOperator(A), Q, rng)
        if bound.confidence == 1.0:
            assert abs(bound - np.linalg.eigvalsh(C)[-1]) <= 1e-13
        else:
            assert bound >= np.linalg.eigvalsh(C)[-1] * (1 - 1e-13)


def test_lanczos_excess_is_the_theorem_solved_for_the_factor():
    """1.648 √N ((1−√ε)/(1+√ε))^{s−1/2} = (1 − confidence)^{1/starts} with factor = 1/(1−ε)."""
    for steps, size, starts, confidence in [
        (8, 100, 8, 0.999),
        (3, 10**6, 1, 0.9),
        (50, 40, 2, 0.99),
    ]:
        factor = lanczos_excess(steps, size, starts, confidence)
        root = np.sqrt(1 - 1 / factor)
        odds = 1.648 * np.sqrt(size) * ((1 - root) / (1 + root)) ** (steps - 0.5)
        assert odds**starts == pytest.approx(1 - confidence)


# The whole certificate, of every way to fit.


@functools.cache
def case(data, dtype):
    X = data(dtype)
    values, _ = truth.pca(X)
    total = values.sum()
    return X, np.cumsum(values / total) if total > 0 else 0 * values


def fitted(X, way, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PCA(k, svd_solver=way.solver, random_state=0).fit(X)


@pairwise(data=DATA, dtype=["float64", "float32"], way=WAYS)
def test_certificate_holds(data, dtype, way):
    """captured ≤ what the axes hold ≤ optimum ≤ optimum_upper."""
    X, shares = case(data, dtype)
    k = min(3, *X.shape)
    pca = fitted(X, way, k)
    certificate = pca.certificate_
    assert len(pca.components_) == k
    assert certificate.captured <= truth.held(X, pca.components_) + 1e-13
    assert certificate.optimum_upper >= shares[k - 1] - 1e-13
    assert 0 <= certificate.gap <= 1


@pytest.mark.parametrize("way", rows(EXACT))
@pytest.mark.parametrize("data", rows(DATA, "tall", "wide", "square", "two rows", "outlier"))
def test_certificate_is_tight_where_all_can_be_seen(data, way):
    """Few enough rows or columns that a probe sees the rest: a converged fit must show it."""
    X, _ = case(data, "float64")
    for k in sorted({1, min(3, *X.shape), min(5, *X.shape)}):
        assert fitted(X, way, k).certificate_.gap <= 1e-9


@pytest.mark.parametrize("way", rows(WAYS, "krylov", "randomized", "Iterative()"))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(700, 100), (100, 700)], ids=["tall", "wide"])
def test_certificate_holds_for_part_of_a_slow_spectrum(shape, dtype, way):
    rng = np.random.default_rng(11)
    X = (rng.standard_normal(shape) @ np.diag(np.arange(1, shape[1] + 1) ** -0.4)).astype(dtype)
    A = truth.centred(X).astype(np.float64)
    variances = scipy.linalg.svdvals(A) ** 2
    for k in (1, 5, 20):
        certificate = (pca := fitted(X, way, k)).certificate_
        assert certificate.captured <= truth.held(X, pca.components_) + 1e-13
        assert certificate.optimum_upper >= variances[:k].sum() / variances.sum() - 1e-13


@pytest.mark.parametrize("gap", [0.1, 0.01, 1e-4])
def test_gap_asked_for_is_the_gap_got(gap):
    X = separated(np.random.default_rng(12), 800, 300, 0.97)
    pca = PCA(10, svd_solver="krylov", gap=gap, random_state=0).fit(X)
    best = scipy.linalg.svdvals(X - X.mean(axis=0))[:10] ** 2
    held = float(truth.held(X, pca.components_)) * ((X - X.mean(axis=0)) ** 2).sum()
    assert pca.certificate_.gap <= gap
    assert 1 - held / best.sum() <= pca.certificate_.gap + 1e-12


def test_what_was_not_converged_is_said():
    """A flat spectrum in few steps: the bound must leave room for what was missed."""
    X = np.random.default_rng(13).standard_normal((600, 400))
    way = next(row for row in WAYS if row.name == "randomized")
    with config_context(block_rows=100):
        pca = fitted(X, way, 10)
    best = scipy.linalg.svdvals(X - X.mean(axis=0))[:10] ** 2
    lost = 1 - float(truth.held(X, pca.components_)) / (
        best.sum() / ((X - X.mean(axis=0)) ** 2).sum()
    )
    assert lost > 1e-3
    assert pca.certificate_.gap >= lost

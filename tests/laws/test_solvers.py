"""Eigensolvers: LAPACK's test ratios, mpmath's eigenvalues, honest residuals."""

import functools

import numpy as np
import pytest
import scipy.linalg

from mercer import arrays, config_context
from mercer.arrays import column_signs
from mercer.linalg import DenseOperator
from mercer.linalg.solvers import dense
from mercer.linalg.solvers.dense import Tridiagonal
from tests.catalogue import OPERATORS, SOLVERS, rows, with_spectrum
from tests.laws import truth
from tests.laws.truth import EPS

CONVERGING = [row for row in SOLVERS if row.ratio is not None]
BY_NAME = {row.name: row for row in SOLVERS}


@functools.cache
def matrix(nasty):
    return nasty.make(np.random.default_rng(7))


@functools.cache
def eigenvalues(nasty):
    A = matrix(nasty)
    scale = np.abs(A).max() or 1.0
    return scale * np.array([float(x) for x in truth.eigenvalues(A / scale)])


@functools.cache
def solved(solver, nasty, k):
    return solver(DenseOperator(matrix(nasty)), k)


def residuals(A, spectrum):
    """‖Av − λv‖ of each pair, in longdouble."""
    V = np.asarray(spectrum.vectors, np.longdouble)
    apart = A.astype(np.longdouble) @ V - V * spectrum.values
    scale = np.abs(apart).max() or np.longdouble(1)
    return (scale * np.sqrt(((apart / scale) ** 2).sum(axis=0))).astype(np.float64)


def sizes(A):
    return sorted({1, min(2, len(A)), len(A)})


@pytest.mark.parametrize("solver", rows(CONVERGING))
@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_residual_ratio(nasty, solver):
    A = matrix(nasty)
    for k in sizes(A):
        spectrum = solved(solver, nasty, k)
        assert spectrum.converged
        assert spectrum.values.shape == (k,)
        norm = np.abs(eigenvalues(nasty)).max()
        assert np.all(residuals(A, spectrum) <= solver.ratio * len(A) * EPS * norm)


@pytest.mark.parametrize("solver", rows(CONVERGING))
@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_eigenvalues_are_the_largest(nasty, solver):
    A, expected = matrix(nasty), eigenvalues(nasty)
    for k in sizes(A):
        values = solved(solver, nasty, k).values
        error = np.abs(values - expected[:k]).max()
        assert error <= solver.ratio * len(A) * EPS * np.abs(expected).max()


@pytest.mark.parametrize("solver", rows(SOLVERS))
@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_vectors_are_orthonormal(nasty, solver):
    A = matrix(nasty)
    for k in sizes(A)[:2] if solver.name == "power" else sizes(A):
        V = np.asarray(solved(solver, nasty, k).vectors, np.longdouble)
        assert np.abs(V.T @ V - np.eye(k)).max() <= 10 * len(A) * EPS


@pytest.mark.parametrize("solver", rows(SOLVERS))
@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_reported_residuals_are_honest(nasty, solver):
    A = matrix(nasty)
    rounding = 4 * len(A) * EPS * np.abs(eigenvalues(nasty)).max()
    for k in sizes(A)[:2]:
        spectrum = solved(solver, nasty, k)
        assert np.all(residuals(A, spectrum) <= spectrum.residuals + rounding)


@pytest.mark.parametrize("solver", rows(SOLVERS))
@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_ritz_values_never_exceed_eigenvalues(nasty, solver):
    """Whatever the solver did not reach, a Ritz value is from below (Courant–Fischer)."""
    A, expected = matrix(nasty), eigenvalues(nasty)
    k = min(2, len(A))
    values = solved(solver, nasty, k).values
    assert np.all(values <= expected[:k] + 10 * len(A) * EPS * expected[0])


@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_power_iteration_says_whether_it_converged(nasty):
    """Near-clusters turn too slowly for it: then it must not claim the tolerance."""
    A, expected = matrix(nasty), eigenvalues(nasty)
    k = min(2, len(A))
    spectrum = solved(BY_NAME["power"], nasty, k)
    if spectrum.converged:
        assert np.abs(spectrum.values - expected[:k]).max() <= 1e-11 * expected[0]


@pytest.mark.parametrize("name", ["rank one", "graded", "diagonal", "hilbert", "duplicates"])
def test_power_iteration_converges_where_gaps_are_wide(name):
    nasty = next(row for row in OPERATORS if row.name == name)
    expected = eigenvalues(nasty)
    spectrum = solved(BY_NAME["power"], nasty, 2)
    assert spectrum.converged
    assert np.abs(spectrum.values - expected[:2]).max() <= 1e-11 * expected[0]


@pytest.mark.parametrize("solver", rows(CONVERGING))
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_tolerance_bounds_the_residual(solver, tol):
    A = with_spectrum(np.random.default_rng(3), 1.0 / np.arange(1, 81))
    spectrum = solver(DenseOperator(A), 5, tol=tol)
    assert spectrum.converged
    assert np.all(residuals(A, spectrum) <= 1.01 * tol * spectrum.values)


@pytest.mark.parametrize("name", ["krylov", "power"])
def test_more_eigenvalues_from_an_earlier_spectrum(name):
    A = with_spectrum(np.random.default_rng(4), 0.8 ** np.arange(60))
    expected = np.linalg.eigvalsh(A)[::-1]
    first = BY_NAME[name](DenseOperator(A), 3)
    grown = BY_NAME[name](DenseOperator(A), 12, start=first, seed=1)
    assert np.abs(grown.values - expected[:12]).max() <= 1e-12
    assert np.all(residuals(A, grown) <= 100 * len(A) * EPS)


@pytest.mark.parametrize("spectrum", ["slow decay", "clusters", "flat"])
def test_krylov_restarts_reach_the_same(spectrum):
    N, k = 300, 6
    values = {
        "slow decay": 1.0 / np.arange(1, N + 1),
        "clusters": np.repeat([3.0, 2.0, 1.0], [4, 8, N - 12]),
        "flat": np.linspace(1.2, 1.0, N),
    }[spectrum]
    A = with_spectrum(np.random.default_rng(5), values)
    with config_context(memory="1KiB"):
        found = BY_NAME["krylov"](DenseOperator(A), k)
    assert found.converged
    assert found.basis.shape[1] < N / 2  # it was restarted
    assert np.abs(found.values - values[:k]).max() <= 1e-12 * values[0]
    assert np.all(residuals(A, found) <= 100 * N * EPS * values[0])


def test_krylov_finds_all_copies_of_an_eigenvalue_wider_than_its_block():
    A = with_spectrum(np.random.default_rng(6), [1.0] * 40 + [0.5] * 160)
    assert np.abs(BY_NAME["krylov"](DenseOperator(A), 35).values - 1.0).max() <= 1e-12


@pytest.mark.parametrize("decades", [8, 10, 12])
def test_jacobi_keeps_small_eigenvalues_of_graded_matrices(decades):
    """DMD with M well-conditioned: Jacobi is accurate relative to each eigenvalue."""
    rng = np.random.default_rng(8)
    M = with_spectrum(rng, np.linspace(1.0, 2.0, 12))
    D = rng.permutation(10.0 ** -np.linspace(0, decades, 12))
    A = D[:, None] * M * D
    exact = truth.eigenvalues(A, digits=90)

    def error(values):
        return max(float(abs(x - y) / y) for x, y in zip(map(float, values), exact, strict=True))

    assert error(scipy.linalg.eigvalsh(A)[::-1]) > 1e-6
    assert error(BY_NAME["jacobi"](DenseOperator(A), 12).values) < 1e-13


def test_power_iteration_bound():
    """|y·v₁| ≥ 1 − 20 N (λ₂/λ₁)^k with probability 9/10 (worrell, Prop. 6)."""
    N, trials, failures = 20, 200, 0
    A = with_spectrum(np.random.default_rng(9), [1.0] + [0.8] * (N - 1))
    v = np.linalg.eigh(A)[1][:, -1]
    for seed in range(trials):
        spectrum = BY_NAME["power"](DenseOperator(A), 1, tol=1e-3, seed=seed)
        steps = spectrum.products - 1
        failures += abs(v @ spectrum.vectors[:, 0]) < 1 - 20 * N * 0.8**steps
    assert failures <= trials / 10


@pytest.mark.parametrize("nasty", rows(OPERATORS))
def test_vectors_chosen_after_the_eigenvalues(nasty):
    """`choose` sees the whole spectrum; the vectors it asks for are as good as any."""
    A, expected = matrix(nasty), eigenvalues(nasty)
    for k in sizes(A):
        seen = []
        spectrum = dense(
            DenseOperator(A),
            1,
            tol=0.0,
            rng=None,
            choose=lambda values, k=k, seen=seen: seen.append(values) or k,
        )
        allowed = 10 * len(A) * EPS * np.abs(expected).max()
        assert np.abs(seen[0] - expected).max() <= allowed
        assert len(spectrum.values) == k
        assert np.all(residuals(A, spectrum) <= allowed)
        V = np.asarray(spectrum.vectors, np.longdouble)
        assert np.abs(V.T @ V - np.eye(k)).max() <= 10 * len(A) * EPS


@pytest.mark.parametrize("k", [1, 3, 40, 59])
def test_pairs_of_a_tridiagonal_matrix(k):
    rng = np.random.default_rng(5)
    A = with_spectrum(rng, np.r_[np.ones(30), np.geomspace(1, 1e-9, 210)])
    reduced = Tridiagonal(A)
    values, V = reduced.pairs(k)
    assert np.abs(A @ V - V * values).max() <= 1e-13
    assert np.abs(V.T @ V - np.eye(k)).max() <= 1e-13
    assert np.abs(reduced.values - np.linalg.eigvalsh(A)[::-1]).max() <= 1e-13


def test_eigenvalues_that_bisection_loses_are_found_again(monkeypatch):
    """LAPACK may hand out fewer of a cluster than were asked for."""
    plain = scipy.linalg.eigh

    def losing(A, subset_by_index=None, **how):
        w, V = plain(A, subset_by_index=subset_by_index, **how)
        return (w, V) if subset_by_index is None else (w[:0], V[:, :0])

    monkeypatch.setattr(scipy.linalg, "eigh", losing)
    values, vectors = arrays.eigh(np.diag(np.arange(1.0, 21.0)), 2)
    np.testing.assert_allclose(values, [20.0, 19.0])
    assert vectors.shape == (20, 2)


def test_the_first_of_entries_of_equal_size_is_made_positive():
    V = np.array([[1.0, -1.0, 0.0, -2.0], [-1.0, 1.0, 0.0, 1.0]])
    assert column_signs(V).tolist() == [1.0, -1.0, 1.0, -1.0]

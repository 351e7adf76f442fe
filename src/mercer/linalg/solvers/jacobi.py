"""Jacobi's rotations (marukatat App. A), a cyclic sweep at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mercer.arrays import Matrix, Vector
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.dense import decomposed
from mercer.linalg.solvers.spectrum import Spectrum

Index = npt.NDArray[np.intp]

_SWEEPS = 60


def jacobi(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: np.random.Generator,
    start: Spectrum | None = None,
) -> Spectrum:
    """Rotate the matrix to diagonal form.

    Each sweep visits every pair once in round-robin order, N/2 disjoint pairs at a time, so
    that a step is a few vector operations on whole rows and columns. The sweeps end in full
    precision whatever `tol`: the last ones converge quadratically.
    """
    A = operator.dense()
    values, V = rotate(A, float(np.finfo(np.float64).eps))
    return decomposed(operator, A, k, values, V)


def rotate(A: Matrix, tol: float) -> tuple[Vector, Matrix]:
    """Return eigenvalues, largest first, and eigenvectors of a symmetric matrix.

    An off-diagonal entry counts as zero when it is below `tol` times the geometric mean of
    its two diagonal entries, which keeps small eigenvalues of graded matrices accurate.
    """
    N = A.shape[0]
    A, V = A.copy(), np.eye(N)
    norm = np.abs(A).max(initial=0.0)
    for _ in range(_SWEEPS):
        rotated = False
        for i, j in _rounds(N):
            off, ii, jj = A[i, j], A[i, i], A[j, j]
            small = tol * np.sqrt(np.abs(ii)) * np.sqrt(np.abs(jj))
            active = np.abs(off) > np.maximum(small, tol**2 * norm)
            if not active.any():
                continue
            rotated = True
            c, s = _angle(np.where(active, off, 0.0), ii, jj)
            A[[*i, *j], :] = np.vstack(_turn(c[:, None], s[:, None], A[i, :], A[j, :]))
            A[:, [*i, *j]] = np.hstack(_turn(c, s, A[:, i], A[:, j]))
            V[:, [*i, *j]] = np.hstack(_turn(c, s, V[:, i], V[:, j]))
            A[i[active], j[active]] = A[j[active], i[active]] = 0.0
        if not rotated:
            break
    values = np.diag(A)
    order = np.argsort(values)[::-1]
    return values[order], V[:, order]


def _angle(off: Vector, ii: Vector, jj: Vector) -> tuple[Vector, Vector]:
    """Return cos θ and sin θ with tan 2θ = 2 A_ij / (A_jj − A_ii), θ = π/4 when equal (72).

    Of the two solutions for tan θ the smaller, without which the sweeps need not converge.
    """
    still = off == 0.0
    with np.errstate(over="ignore"):
        tau = (jj - ii) / (2.0 * np.where(still, 1.0, off))
        t = np.where(tau < 0.0, -1.0, 1.0) / (np.abs(tau) + np.hypot(1.0, tau))
    t = np.where(still, 0.0, t)
    c = 1.0 / np.hypot(1.0, t)
    return c, c * t


def _turn(c: Vector, s: Vector, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    return c * x - s * y, s * x + c * y


def _rounds(N: int) -> list[tuple[Index, Index]]:
    """Return rounds of disjoint pairs that together hold every pair once."""
    players = list(range(N)) + ([-1] if N % 2 else [])
    half = len(players) // 2
    rounds = []
    for _ in range(len(players) - 1):
        pairs = [
            (min(a, b), max(a, b))
            for a, b in zip(players[:half], players[: half - 1 : -1], strict=True)
            if min(a, b) >= 0
        ]
        if pairs:
            i, j = np.array(pairs).T
            rounds.append((i, j))
        players = [players[0], players[-1], *players[1:-1]]
    return rounds

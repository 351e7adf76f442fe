"""Solvers of a matrix in memory: LAPACK, and the rotations of Jacobi."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from mercer.arrays import Matrix, Vector, column_norms, eigh, eigvalsh, lapack_threads, like
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.spectrum import Spectrum

Index = npt.NDArray[np.intp]

# Columns of a residual that are computed at a time: fewer than A has.
_CHUNK = 256
_SWEEPS = 60


def dense(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: Generator,
    start: Spectrum | None = None,
    choose: Callable[[Vector], int] | None = None,
) -> Spectrum:
    """Decompose the matrix itself: the operator must fit in memory, N×N.

    A few pairs beyond the k come along: they tell how far the k-th is from the next. `choose`
    says how many are wanted once all eigenvalues are known, in place of k.
    """
    A = operator.dense()
    tridiagonal = None if choose is None else Tridiagonal(A)
    if choose is not None and tridiagonal is not None:
        k = choose(tridiagonal.values)
    # All pairs where there may be negative eigenvalues to report.
    pairs = min(operator.size, k + max(2, k // 4)) if operator.psd else operator.size
    if tridiagonal is not None and 4 * pairs < operator.size:
        with contextlib.suppress(np.linalg.LinAlgError):
            return decomposed(operator, A, k, *tridiagonal.pairs(pairs))
    del tridiagonal
    return decomposed(operator, A, k, *eigh(A, pairs))


class Tridiagonal:
    """A symmetric matrix reduced to three diagonals: all eigenvalues, then a few vectors.

    What `scipy.linalg.eigh` does in one call, which must know beforehand how many are wanted.
    """

    def __init__(self, A: Matrix) -> None:
        from scipy.linalg import LinAlgError, eigvalsh_tridiagonal, lapack

        with lapack_threads(len(A)):
            room = int(lapack.dsytrd_lwork(len(A), lower=1)[0])
            done = lapack.dsytrd(A, lower=1, lwork=room)
        self.reflectors, self.diagonal, self.beside, self.factors, _ = done
        try:
            values = eigvalsh_tridiagonal(
                self.diagonal, self.beside, lapack_driver="sterf", check_finite=False
            )
        except LinAlgError:
            values = eigvalsh(A)
        self.values = np.array(values[::-1], np.float64)

    def pairs(self, k: int) -> tuple[Vector, Matrix]:
        """Return the k largest eigenvalues and their vectors; LAPACK may fail to find them."""
        from scipy.linalg import eigh_tridiagonal, lapack

        N = len(self.diagonal)
        _, Z = eigh_tridiagonal(
            self.diagonal,
            self.beside,
            select="i",
            select_range=(N - k, N - 1),
            check_finite=False,
            lapack_driver="stemr",
        )
        V = np.asfortranarray(Z[:, ::-1], np.float64)
        if N == 1:
            return self.values[:k], V
        with lapack_threads(N):
            # The reflectors of a lower reduction are those of a QR one row further down.
            turned = lapack.dormqr("L", "N", self.reflectors[1:, :-1], self.factors, V[1:], 64 * k)
        V[1:] = turned[0]
        return self.values[:k], V


def decomposed(operator: Operator, A: Matrix, k: int, values: Vector, V: Matrix) -> Spectrum:
    """Return the first k pairs of a decomposition of A, with their residuals measured."""
    basis = like(V, operator.reference)
    residuals = np.empty(k)
    for start in range(0, k, _CHUNK):  # not as large as A all at once
        part = slice(start, min(k, start + _CHUNK))
        residuals[part] = column_norms(A @ V[:, part] - V[:, part] * values[part])
    return Spectrum(
        values=values[:k],
        vectors=basis[:, :k],
        residuals=residuals + operator.rounding,
        complete=True,
        basis=basis,
        ritz=values,
        products=operator.size,
    )


def jacobi(
    operator: Operator, k: int, *, tol: float, rng: Generator, start: Spectrum | None = None
) -> Spectrum:
    """Rotate the matrix to diagonal form.

    Each sweep visits every pair once in round-robin order, N/2 disjoint pairs at a time, so
    that a step is a few vector operations on whole rows and columns. The sweeps end in full
    precision whatever `tol`: the last ones converge quadratically. An entry counts as zero when
    it is below ε times the geometric mean of its two diagonal entries, which keeps small
    eigenvalues of graded matrices accurate.
    """
    matrix = np.asarray(operator.dense())
    A, N, V = matrix.copy(), len(matrix), np.eye(len(matrix))
    eps, norm = float(np.finfo(np.float64).eps), np.abs(A).max(initial=0.0)
    for _ in range(_SWEEPS):
        rotated = False
        for i, j in _rounds(N):
            off, ii, jj = A[i, j], A[i, i], A[j, j]
            small = eps * np.sqrt(np.abs(ii)) * np.sqrt(np.abs(jj))
            active = np.abs(off) > np.maximum(small, eps**2 * norm)
            if not active.any():
                continue
            rotated = True
            # tan 2θ = 2 A_ij / (A_jj − A_ii), θ = π/4 when equal (72). Of the two solutions for
            # t = tan θ the smaller, without which the sweeps need not converge.
            with np.errstate(over="ignore"):
                tau = (jj - ii) / (2.0 * np.where(active, off, 1.0))
                t = np.where(tau < 0.0, -1.0, 1.0) / (np.abs(tau) + np.hypot(1.0, tau))
            t = np.where(active, t, 0.0)
            c = 1.0 / np.hypot(1.0, t)
            s = c * t
            A[[*i, *j], :] = np.vstack(_turn(c[:, None], s[:, None], A[i, :], A[j, :]))
            A[:, [*i, *j]] = np.hstack(_turn(c, s, A[:, i], A[:, j]))
            V[:, [*i, *j]] = np.hstack(_turn(c, s, V[:, i], V[:, j]))
            A[i[active], j[active]] = A[j[active], i[active]] = 0.0
        if not rotated:
            break
    values = np.diag(A)
    order = np.argsort(values)[::-1]
    return decomposed(operator, matrix, k, values[order], V[:, order])


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

"""All of a small matrix, by LAPACK."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

import numpy as np

from mercer.arrays import Matrix, Vector, eigh, eigvalsh, lapack_threads, like
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.spectrum import Spectrum, column_norms

_CHUNK = 256


def dense(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: np.random.Generator,
    start: Spectrum | None = None,
    choose: Callable[[Vector], int] | None = None,
) -> Spectrum:
    """Decompose the matrix itself: the operator must fit in memory, N×N.

    A few pairs beyond the k come along: they tell how far the k-th is from the next. `choose`
    says how many are wanted once all eigenvalues are known, in place of k.
    """
    A = operator.dense()
    if choose is None:
        return decomposed(operator, A, k, *eigh(A, _more(k, operator)))
    tridiagonal = Tridiagonal(A)
    k = choose(tridiagonal.values)
    more = _more(k, operator)
    if 4 * more < operator.size:
        with contextlib.suppress(np.linalg.LinAlgError):
            return decomposed(operator, A, k, *tridiagonal.pairs(more))
    del tridiagonal
    return decomposed(operator, A, k, *eigh(A, more))


def _more(k: int, operator: Operator) -> int:
    """Return how many pairs to compute; all where there may be negative eigenvalues to report."""
    return min(operator.size, k + max(8, k // 4)) if operator.psd else operator.size


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
        """Return the k largest eigenvalues and their vectors.

        By relatively robust representations; by bisection where they fail.
        """
        from scipy.linalg import LinAlgError, eigh_tridiagonal, lapack

        N = len(self.diagonal)
        find = functools.partial(
            eigh_tridiagonal,
            self.diagonal,
            self.beside,
            select="i",
            select_range=(N - k, N - 1),
            check_finite=False,
        )
        try:
            _, Z = find(lapack_driver="stemr")
        except LinAlgError:
            _, Z = find(lapack_driver="stebz")
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

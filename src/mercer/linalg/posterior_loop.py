"""The compiled loop over the posteriors of rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from mercer.arrays import Matrix, Vector


@njit(nogil=True, cache=True)
def solve_rows(
    packed: Matrix, linear: Matrix, noise: float, covariance: bool, logdet: Vector, square: Vector
) -> None:
    """Solve one system a row, by Cholesky factors; see `solve_posteriors`."""
    n, k = linear.shape
    L = np.zeros((k, k))  # the lower factor, then its inverse
    for r in range(n):
        at = 0
        for i in range(k):
            for j in range(i, k):
                L[j, i] = packed[r, at]
                at += 1
            L[i, i] += noise
        total = 0.0
        for j in range(k):
            for i in range(j):
                x = L[j, i]
                for l in range(j, k):  # noqa: E741
                    L[l, j] -= L[l, i] * x
            pivot = np.sqrt(L[j, j])
            total += np.log(pivot)
            for l in range(j, k):  # noqa: E741
                L[l, j] /= pivot
        logdet[r] = 2.0 * total
        for j in range(k):
            L[j, j] = 1.0 / L[j, j]
            for i in range(j + 1, k):
                x = 0.0
                for l in range(j, i):  # noqa: E741
                    x += L[i, l] * L[l, j]
                L[i, j] = -x / L[i, i]
        at = 0
        for i in range(k):
            for j in range(i, k):
                x = 0.0
                for l in range(j, k):  # noqa: E741
                    x += L[l, i] * L[l, j]
                packed[r, at] = x
                at += 1
        b = linear[r].copy()
        for i in range(k):
            linear[r, i] = 0.0
        at = 0
        for i in range(k):
            for j in range(i, k):
                linear[r, i] += packed[r, at] * b[j]
                if j > i:
                    linear[r, j] += packed[r, at] * b[i]
                at += 1
        x = 0.0
        for i in range(k):
            x += b[i] * linear[r, i]
        square[r] = x
        at = 0
        for i in range(k):
            for j in range(i, k):
                packed[r, at] = noise * packed[r, at] if covariance else 0.0
                packed[r, at] += linear[r, i] * linear[r, j]
                at += 1

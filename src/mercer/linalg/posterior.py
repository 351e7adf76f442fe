"""Posteriors of the factors of rows: one small positive definite system for each row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mercer.arrays import Array, namespace, on_accelerator


def triangle(k: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the rows and columns of the entries of a packed symmetric k×k matrix."""
    return np.triu_indices(k)


def unpack(packed: Array, k: int) -> Array:
    """Return symmetric k×k matrices from their packed upper triangles, the last axis."""
    place = np.empty((k, k), np.int64)
    i, j = triangle(k)
    place[i, j] = place[j, i] = np.arange(len(i))
    return packed[..., place]


def solve_posteriors(
    packed: Array, linear: Array, noise: float, *, covariance: bool = True
) -> tuple[Array, Array]:
    r"""Compute the posterior moments of the factors of rows, in place.

    For each row, with :math:`P = \sigma^2 I + M` of its packed matrix M: `linear`, b, becomes the
    mean :math:`z = P^{-1}b`, and `packed` becomes :math:`zz^T`, plus :math:`\sigma^2 P^{-1}` with
    `covariance`. Returns log det P and bᵀz of each row.
    """
    if on_accelerator(packed):
        return _solve_batch(packed, linear, noise, covariance)
    logdet, square = np.empty(len(packed)), np.empty(len(packed))
    _loop()(packed, linear, noise, covariance, logdet, square)
    return logdet, square


def _solve_batch(packed: Array, linear: Array, noise: float, covariance: bool) -> tuple[Array, Array]:
    """Solve all systems by batched factorizations, on a device."""
    xp, k = namespace(packed), int(linear.shape[1])
    i, j = triangle(k)
    P = unpack(packed, k)
    P[:, range(k), range(k)] += noise
    L = xp.linalg.cholesky(P)
    inverse = xp.linalg.inv(P)
    z = xp.sum(inverse * linear[:, None, :], axis=2)
    square = xp.sum(linear * z, axis=1)
    logdet = 2.0 * xp.sum(xp.log(L[:, range(k), range(k)]), axis=1)
    packed[...] = z[:, i] * z[:, j]
    if covariance:
        packed[...] += noise * inverse[:, i, j]
    linear[...] = z
    return logdet, square


@functools.cache
def _loop() -> Any:
    """Return the compiled loop; numba is imported when it is first needed."""
    from mercer.linalg.posterior_loop import solve_rows

    return solve_rows

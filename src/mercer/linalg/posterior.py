"""Posteriors of the factors of rows: one small positive definite system for each row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from mercer.arrays import Array, like, namespace


def packed_places(k: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the rows and columns of the entries of a packed symmetric k×k matrix."""
    return np.triu_indices(k)


def unpack_symmetric(packed: Array, k: int) -> Array:
    """Return symmetric k×k matrices from their packed upper triangles, the last axis."""
    place = np.empty((k, k), np.int64)
    i, j = packed_places(k)
    place[i, j] = place[j, i] = np.arange(len(i))
    xp = namespace(packed)
    entries = xp.take(packed, like(place.reshape(-1), packed), axis=-1)
    return xp.reshape(entries, (*packed.shape[:-1], k, k))


def pack_squares(Z: Array) -> Array:
    """Return the packed upper triangles of z zᵀ for the rows z."""
    xp, (i, j) = namespace(Z), packed_places(int(Z.shape[1]))
    return xp.take(Z, like(i, Z), axis=1) * xp.take(Z, like(j, Z), axis=1)


def solve_posteriors(
    packed: Array, linear: Array, noise: float, *, covariance: bool = True
) -> tuple[Array, Array, Array, Array]:
    r"""Return the posterior moments of the factors of rows.

    For each row, with :math:`P = \sigma^2 I + M` of its packed matrix M and its vector b of
    `linear`: the mean :math:`z = P^{-1}b`; :math:`zz^T`, plus :math:`\sigma^2 P^{-1}` with
    `covariance`, packed; log det P; and bᵀz. On the host in place.
    """
    if not isinstance(packed, np.ndarray):
        return _solve_batch(packed, linear, noise, covariance)
    logdet, square = np.empty(len(packed)), np.empty(len(packed))
    _loop()(packed, linear, noise, covariance, logdet, square)
    return linear, packed, logdet, square


def _solve_batch(
    packed: Array, linear: Array, noise: float, covariance: bool
) -> tuple[Array, Array, Array, Array]:
    """Solve all systems by batched factorizations, on a device."""
    xp, k = namespace(packed), int(linear.shape[1])
    P = unpack_symmetric(packed, k) + like(noise * np.eye(k), packed)
    inverse = xp.linalg.inv(P)
    Z = xp.sum(inverse * linear[:, None, :], axis=2)
    square = xp.sum(linear * Z, axis=1)
    logdet = 2.0 * xp.sum(xp.log(xp.linalg.diagonal(xp.linalg.cholesky(P))), axis=1)
    second = pack_squares(Z)
    if covariance:
        place = np.ravel_multi_index(packed_places(k), (k, k))
        flat = xp.reshape(inverse, (inverse.shape[0], k * k))
        second = second + noise * xp.take(flat, like(place, packed), axis=1)
    return Z, second, logdet, square


@functools.cache
def _loop() -> Any:
    """Return the compiled loop; numba is imported when it is first needed."""
    from mercer.linalg.posterior_loop import solve_rows

    return solve_rows

"""How wrong an answer is, judged by nothing that either library computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.data import Array, chunks


def exact(X: Array, k: int | None = None) -> tuple[Array, Array]:
    """Return the k largest variances and, where n ≥ d, their axes (d, k), in float64.

    Every chunk is centred in float64 before any product, so that a large mean costs no digits.
    """
    n, d = X.shape
    side = min(n, d)
    product = np.zeros((side, side))
    if d <= n:
        mean = sum(X[rows].sum(axis=0, dtype=np.float64) for rows in chunks(n)) / n
        for rows in chunks(n):
            block = X[rows].astype(np.float64) - mean
            product += block.T @ block
    else:
        for columns in chunks(d):
            block = X[:, columns].astype(np.float64)
            block -= block.mean(axis=0)
            product += block @ block.T
    with threadpool_limits(1, user_api="blas"):
        values, vectors = scipy.linalg.eigh(product / (n - 1))
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def eigenvalue_error(model: Any, values: Array) -> float:
    """Return max |λ̂ − λ| / λ over the axes that the model has."""
    found = np.asarray(model.explained_variance_, dtype=np.float64)
    values = values[: len(found)]
    return float(np.max(np.abs(found - values) / values))


def span_error(model: Any, axes: Array) -> float:
    """Return the sine of the largest angle between the model's axes and the exact ones."""
    found = np.asarray(model.components_, dtype=np.float64).T
    return float(np.sin(scipy.linalg.subspace_angles(found, axes)[0]))


def residual(model: Any, A: Any) -> float:
    """Return max ‖Cv − λv‖ / λ, with C the covariance of the sparse rows A, in float64."""
    n = A.shape[0]
    V = np.asarray(model.components_, dtype=np.float64).T
    values = np.asarray(model.explained_variance_, dtype=np.float64)
    mean = np.asarray(A.mean(axis=0), dtype=np.float64).ravel()
    Y = A @ V - mean @ V
    CV = (A.T @ Y - np.outer(mean, Y.sum(axis=0))) / (n - 1)
    return float(np.max(np.linalg.norm(CV - V * values, axis=0) / values))

"""What is true, found slowly and independently of the library, in longdouble or mpmath."""

import mpmath
import numpy as np
import pytest

EPS = float(np.finfo(np.float64).eps)
if np.finfo(np.longdouble).eps > 1e-18:
    pytest.skip("longdouble is no wider than float64 here", allow_module_level=True)


def centred(X, weights=None):
    """The rows less their mean, in longdouble; what rounding leaves is taken off as well.

    The first row is taken off before: equal rows leave nothing at all.
    """
    A = np.asarray(X, dtype=np.longdouble)
    A = A - A[0]
    w = np.ones(len(A), np.longdouble) if weights is None else np.asarray(weights, np.longdouble)
    for _ in range(2):
        A = A - (w[:, None] * A).sum(axis=0) / w.sum()
    return A


def svd(A):
    """Singular values, largest first, and right singular vectors (columns), in longdouble.

    Householder's QR, then Hestenes' one-sided Jacobi: the columns are turned in pairs until
    they are orthogonal.
    """
    A = np.asarray(A, dtype=np.longdouble)
    largest = np.abs(A).max(initial=0)
    scale = np.exp2(np.floor(np.log2(largest))) if largest > 0 else np.longdouble(1)
    A = A / scale
    wide = A.shape[0] < A.shape[1]
    if wide:
        s, U = svd(A.T)
        return s * scale, _orthonormal(A.T @ U)
    A, V = _triangle(A), np.eye(A.shape[1], dtype=np.longdouble)
    eps = np.finfo(np.longdouble).eps
    for _ in range(60):
        turned = False
        for i, j in _rounds(A.shape[1]):
            x, y = A[:, i], A[:, j]
            a, b, c = (x * x).sum(axis=0), (y * y).sum(axis=0), (x * y).sum(axis=0)
            active = np.abs(c) > 4 * eps * np.sqrt(a * b)
            if not active.any():
                continue
            turned = True
            tau = (b - a) / (2 * np.where(active, c, 1))
            t = np.where(tau < 0, -1, 1) / (np.abs(tau) + np.hypot(1, tau))
            t = np.where(active, t, 0)
            cos = 1 / np.hypot(1, t)
            sin = cos * t
            for M in (A, V):
                x, y = M[:, i], M[:, j]
                M[:, i], M[:, j] = cos * x - sin * y, sin * x + cos * y
        if not turned:
            break
    s = np.sqrt((A * A).sum(axis=0))
    order = np.argsort(-s)
    return s[order] * scale, V[:, order]


def pca(X, center=True, weights=None):
    """Variances (divisor Σw − 1), largest first, and axes (columns), in longdouble."""
    A = centred(X, weights) if center else np.asarray(X, dtype=np.longdouble)
    count = len(A) if weights is None else np.sum(weights, dtype=np.longdouble)
    if weights is not None:
        A = A * np.sqrt(np.asarray(weights, np.longdouble))[:, None]
    s, V = svd(A)
    return s * s / (count - 1), V


def rounding(X, s):
    """Error that LAPACK's SVD of the centred rows may have in singular values s.

    ε σ₁ of its own; and a mean that is off by δ adds n δδᵀ to the squares, σ² by n ‖δ‖².
    """
    eps = float(np.finfo(X.dtype).eps)
    drift = eps * np.abs(np.asarray(X, np.longdouble)).max() * X.size**0.5
    tiny = np.finfo(np.longdouble).tiny
    return 40 * eps * s[0] + np.minimum(drift, drift * (drift / np.maximum(s, tiny)))


def held(X, components):
    """Share of the variance of X that the span of the rows of `components` holds."""
    A = centred(X)
    A = A / max(np.abs(A).max(), np.finfo(np.longdouble).tiny)
    Q = _orthonormal(np.asarray(components, dtype=np.longdouble).T)
    total = (A * A).sum()
    return ((A @ Q) ** 2).sum() / total if total > 0 else np.longdouble(0)


def eigenvalues(A, digits=60):
    """Eigenvalues of a small symmetric matrix, largest first, as mpmath numbers."""
    with mpmath.workdps(digits):
        return sorted(mpmath.eigsy(mpmath.matrix(A.tolist()), eigvals_only=True), reverse=True)


def _triangle(A):
    A = A.copy()
    n, d = A.shape
    for j in range(min(d, n - 1)):
        x = A[j:, j]
        v = x.copy()
        v[0] += np.copysign(np.sqrt((x * x).sum()), x[0])
        square = (v * v).sum()
        if square > 0:
            A[j:, j:] -= np.outer(2 * v / square, v @ A[j:, j:])
    return np.triu(A[: min(n, d)])


def same(scores, expected):
    """Return the largest difference, whatever the signs, as a share of the largest score."""
    signs = np.sign((scores * expected).sum(axis=0))
    return np.abs(scores * signs - expected).max() / np.abs(expected).max()


def _orthonormal(W):
    """Gram–Schmidt, twice, keeping the order of the columns; zero columns stay zero."""
    Q = np.zeros_like(W)
    for j in range(W.shape[1]):
        v = W[:, j]
        length = np.sqrt((v * v).sum())
        for _ in range(2):
            v = v - Q[:, :j] @ (Q[:, :j].T @ v)
        left = np.sqrt((v * v).sum())
        Q[:, j] = v / left if left > 1e-17 * length else 0
    return Q


def _rounds(d):
    """Every pair of columns once, in rounds of disjoint pairs."""
    players = [*range(d)] + ([None] if d % 2 else [])
    half, rounds = len(players) // 2, []
    for _ in range(len(players) - 1):
        pairs = zip(players[:half], players[: half - 1 : -1], strict=True)
        pairs = [pair for pair in pairs if None not in pair]
        if pairs:
            rounds.append(tuple(np.array(side) for side in zip(*pairs, strict=True)))
        players = [players[0], players[-1], *players[1:-1]]
    return rounds

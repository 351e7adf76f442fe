"""Kernel PCA on a basis from its definitions: dense matrices of all rows, nothing clever."""

import numpy as np
import scipy.linalg

from mercer.kernels import Linear, Polynomial


def quadratic(X):
    """Features of (xᵀy + 1)²."""
    X = np.asarray(X, np.float64)
    products = np.einsum("ij,ik->ijk", X, X).reshape(len(X), -1)
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2) * X, products])


FEATURES = [(Linear(), np.asarray), (Polynomial(2), quadratic)]
"""Kernels whose features can be written down."""


def counts(X, weights=None):
    return np.ones(len(X)) if weights is None else np.asarray(weights, np.float64)


def double(X):
    return X if isinstance(X, list) else np.asarray(X, np.float64)


def variances(kernel, X, weights=None, center=True):
    """Eigenvalues of the centred kernel matrix over Σw − 1, largest first."""
    w, K = counts(X, weights), kernel(double(X))
    if center:
        share = w / w.sum()
        K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    root = np.sqrt(w)
    return scipy.linalg.eigvalsh(root[:, None] * K * root)[::-1] / (w.sum() - 1)


def scores(kernel, X, Y, k, weights=None, center=True):
    """Eigenvalues, and scores of Y, of kernel PCA of all rows."""
    w, K, H = counts(X, weights), kernel(X), kernel(Y, X)
    if center:
        share = w / w.sum()
        H = H - K @ share - (H @ share)[:, None] + share @ K @ share
        K = K - K @ share - (K @ share)[:, None] + share @ K @ share
    root = np.sqrt(w)
    values, V = scipy.linalg.eigh(root[:, None] * K * root)
    values, V = values[::-1][:k], V[:, ::-1][:, :k]
    return values, H @ (root[:, None] * V / np.sqrt(values))


def held(model, kernel, X, weights=None, center=True):
    """Variance of the rows in the span of a model's axes."""
    fitted = model.projection_
    rows, w = double(X), counts(X, weights)
    rows = rows if fitted.shift is None else rows - fitted.shift
    A, basis = np.asarray(fitted.components, np.float64), double(fitted.basis)
    gram = kernel(basis)
    A = A / np.sqrt(np.maximum(np.einsum("ij,ij->j", A, gram @ A), 1e-300))
    y = kernel(rows, basis) @ A
    if center:
        y = y - w @ y / w.sum()
    inside = (y * w[:, None]).T @ y / (w.sum() - 1)
    overlaps = A.T @ gram @ A
    return float(np.trace(np.linalg.pinv(overlaps, rcond=1e-10, hermitian=True) @ inside))


def pivots(K, m):
    """Pivots of the incomplete Cholesky decomposition, and G, by the definition."""
    left, G, at = np.diag(K).copy(), np.zeros((len(K), 0)), []
    for _ in range(m):
        i = int(np.argmax(left))
        column = (K[:, i] - G @ G[i]) / np.sqrt(left[i])
        G, at = np.column_stack([G, column]), [*at, i]
        left = left - column**2
        left[at] = -np.inf
    return np.array(at), G


def subset(kernel, X, basis, weights=None, center=True):
    """Scatter S of h, its mean, and κ, Z of Sz = κK_yz with zᵀK_yz = 1; K_y must be regular."""
    w, h, K = counts(X, weights), kernel(X, basis), kernel(basis)
    mean = w @ h / w.sum() * center
    S = (h - mean).T @ ((h - mean) * w[:, None])
    kappa, Z = scipy.linalg.eigh(S, K)
    return S, mean, kappa[::-1], Z[:, ::-1]

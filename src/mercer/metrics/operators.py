"""How far the operators of two models, and the spans of their components, are apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Matrix, Vector, eigh, svd
from mercer.metrics.shared import shared

# Directions of axes of length one that are shorter than this, squared, are rounding.
_DEPENDENT = 1e-12


def operator_distance(model: Any, other: Any) -> float:
    r"""Return the distance D = ‖P − Q‖ in the Frobenius norm of two models' operators.

    .. math:: D^2 = \|A^TK_{bb}A\|_F^2 + \|B^TK_{b'b'}B\|_F^2 - 2\|A^TK_{bb'}B\|_F^2

    washizawa (47), for operators :math:`P = \sum_k u_ku_k^T` of components
    :math:`u_k = \sum_j A_{jk}\Phi(b_j)`, which need not be orthonormal. The centres of the
    models are not compared. Projectors on spans of r components that are at right angles have
    D² = 2r. D²/r is what washizawa's Table 1 and Fig. 3 seem to print.

    Parameters
    ----------
    model, other : PCA, KernelPCA or Projection
        Fitted: both linear, or both with the same kernel. Linear components are compared in the
        units of the columns as each model treats them.

    Returns
    -------
    float

    Notes
    -----
    Computed as the norm of a difference: with the second components turned towards the first,
    P − Q = ½(ΔΣᵀ + ΣΔᵀ) of differences Δ and sums Σ. Distances below 1e-8, where the squares
    above cancel, are told from zero where both bases hold the same points, or the same and
    some more. Takes the kernel between all points of both bases, a strip at a time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.metrics import operator_distance
    >>> X = load_iris().data
    >>> pca, half = PCA(2).fit(X), PCA(2).fit(X[::2])
    >>> round(operator_distance(pca, half), 3)
    0.17
    """
    with progress.session():
        axes = shared(model, other)
    k, both = axes.first, axes.coefficients.shape[1]
    r = max(k, both - k)
    if r == 0:
        return 0.0
    # The fewer axes are joined by axes of length zero.
    P, Q = np.zeros((both, r)), np.zeros((both, r))
    P[:k, :k], Q[k:, : both - k] = np.eye(k), np.eye(both - k)
    Y, _, Zt = svd(axes.inner(Q, P))
    Q = Q @ (Y @ Zt)
    D, S = P - Q, P + Q
    mixed = axes.inner(D, S)
    square = np.sum(axes.inner(D, D) * axes.inner(S, S)) + np.sum(mixed * mixed.T)
    return float(np.sqrt(max(0.0, 0.5 * float(square))))


def subspace_angles(model: Any, other: Any) -> Vector:
    r"""Return the principal angles between the spans of two models' components, in radians.

    In feature space, for kernels: cosines are the singular values of :math:`U^TW`, with U and W
    orthonormal bases of the spans, and sines those of :math:`W - UU^TW`; each angle is taken
    from both. Björck & Golub (1973), Knyazev & Argentati (2002).

    Parameters
    ----------
    model, other : PCA, KernelPCA or Projection
        Fitted: both linear, or both with the same kernel. Linear components are compared in the
        units of the columns as each model treats them.

    Returns
    -------
    ndarray of shape (min(k, l),)
        The largest first, as in `scipy.linalg.subspace_angles`; of components that depend on each
        other, as many as there are dimensions.

    Notes
    -----
    A kernel tells angles below 1e-8 from zero only where both bases hold the same points, or
    the same and some more: values of the kernel between different points are rounded, and the
    angle is the root of what is left of them. Takes the kernel between all points of both
    bases, a strip at a time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.metrics import subspace_angles
    >>> X = load_iris().data
    >>> pca, half = PCA(2).fit(X), PCA(2).fit(X[::2])
    >>> subspace_angles(pca, half).round(3)
    array([0.12 , 0.009])
    """
    with progress.session():
        axes = shared(model, other)
    k, both = axes.first, axes.coefficients.shape[1]
    every = np.eye(both)
    G = axes.inner(every, every)
    U = every[:, :k] @ _orthonormal(G[:k, :k])
    W = every[:, k:] @ _orthonormal(G[k:, k:])
    if U.shape[1] < W.shape[1]:
        U, W = W, U
    if W.shape[1] == 0:
        return np.zeros(0)
    Y, cosines, Zt = svd(U.T @ G @ W)
    left = W @ Zt.T - U @ (Y * cosines)
    _, sines, _ = svd(_root(axes.inner(left, left)))
    angles: Vector = np.arctan2(sines, cosines[::-1])
    return angles


def _orthonormal(G: Matrix) -> Matrix:
    """Return the combinations of components, of inner products G, that are orthonormal."""
    size, values, vectors = _graded(G)
    kept = values > _DEPENDENT * len(G)
    made: Matrix = (vectors[:, kept] / np.sqrt(values[kept])) / size[:, None]
    return made


def _root(G: Matrix) -> Matrix:
    """Return R with RᵀR = G; its small singular values are as sure as the small entries of G."""
    size, values, vectors = _graded(G)
    made: Matrix = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * size
    return made


def _graded(G: Matrix) -> tuple[Vector, Vector, Matrix]:
    """Return the lengths of components, and the eigenpairs of the cosines between them."""
    size = np.sqrt(np.maximum(np.diag(G), 0.0))
    # An axis of length zero has no direction: a row and column of zeros.
    divide = np.where(size > 0, size, np.inf)
    cosines = G / divide / divide[:, None]
    values, vectors = eigh((cosines + cosines.T) / 2) if len(G) else (size, G)
    return np.where(size > 0, size, 1.0), values, vectors

"""Differences of components, eigenvalues, operators and subspaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Matrix, Vector, eigh, svd, to_numpy
from mercer.metrics.joint import JointComponents, joint_components

# Squared lengths of combinations of unit components below this are rounding.
_DEPENDENT = 1e-12


def similarity(V: Any, W: Any) -> Any:
    r"""Return Sim :math:`= |v^Tw|/(\|v\|\|w\|)` of components: 1 if parallel, 0 if orthogonal.

    Marukatat (2022), (66).

    Parameters
    ----------
    V, W : array-like of shape (k, d), or (d,)
        Components as rows, such as `components_`; row i of V is compared with row i of W.

    Returns
    -------
    ndarray of shape (k,), or float

    Examples
    --------
    >>> from mercer.metrics import similarity
    >>> similarity([[1.0, 0.0], [0.0, 1.0]], [[-2.0, 0.0], [1.0, 1.0]]).round(3)
    array([1.   , 0.707])
    """
    v, w = (np.asarray(to_numpy(x), np.float64) for x in (V, W))
    if v.shape != w.shape or v.ndim not in (1, 2):
        raise ValueError(f"V has shape {v.shape} and W {w.shape}: they must have the same shape.")
    # Each is scaled first: the squares of tiny entries would underflow.
    v, w = (x / np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300) for x in (v, w))
    lengths = np.linalg.norm(v, axis=-1) * np.linalg.norm(w, axis=-1)
    if np.any(lengths == 0.0):
        raise ValueError("a component is zero and has no direction. Leave it out.")
    cosines = np.minimum(np.abs(np.sum(v * w, axis=-1)) / lengths, 1.0)
    return float(cosines) if cosines.ndim == 0 else cosines


def eigenvalue_difference(exact: Any, found: Any) -> Any:
    r"""Return Diff :math:`= |\lambda - \lambda'|/\lambda` of eigenvalues; Marukatat (2022), (67).

    Parameters
    ----------
    exact, found : array-like of shape (k,), or float
        Eigenvalues λ and their approximations λ′.

    Returns
    -------
    ndarray of shape (k,), or float
        Infinite if λ is zero and λ′ is not.

    Examples
    --------
    >>> from mercer.metrics import eigenvalue_difference
    >>> eigenvalue_difference([4.0, 2.0], [3.0, 2.0])
    array([0.25, 0.  ])
    """
    a, b = (np.asarray(to_numpy(x), np.float64) for x in (exact, found))
    if a.shape != b.shape:
        raise ValueError(f"the eigenvalues have shapes {a.shape} and {b.shape}: pass as many.")
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(a == b, 0.0, np.abs(a - b) / np.abs(a))
    return float(difference) if difference.ndim == 0 else difference


def operator_distance(model: Any, other: Any) -> float:
    r"""Return the distance D = ‖P − Q‖ in the Frobenius norm of two models' operators.

    .. math:: D^2 = \|A^TK_{bb}A\|_F^2 + \|B^TK_{b'b'}B\|_F^2 - 2\|A^TK_{bb'}B\|_F^2

    washizawa (47), for operators :math:`P = \sum_k u_ku_k^T` of components
    :math:`u_k = \sum_j A_{jk}\Phi(b_j)`, which need not be orthonormal. The means of the models
    are not compared. Projectors on orthogonal spans of r components have D² = 2r. Washizawa's
    Table 1 and Fig. 3 seem to print D²/r.

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
    Computed as the norm of a difference: with the second components rotated towards the first,
    P − Q = ½(ΔΣᵀ + ΣΔᵀ) with their differences Δ and sums Σ. Distances below 1e-8, where the
    squares above cancel, are accurate if one basis contains the other. Needs the kernel between all
    points of both bases, a block at a time.

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
    components = _compare(model, other)
    k, total = components.first, components.coefficients.shape[1]
    r = max(k, total - k)
    if r == 0:
        return 0.0
    # The model with fewer components gets zero vectors as further ones.
    P, Q = np.zeros((total, r)), np.zeros((total, r))
    P[:k, :k], Q[k:, : total - k] = np.eye(k), np.eye(total - k)
    Y, _, Zt = svd(components.inner(Q, P))
    Q = Q @ (Y @ Zt)
    D, S = P - Q, P + Q
    mixed = components.inner(D, S)
    square = np.sum(components.inner(D, D) * components.inner(S, S)) + np.sum(mixed * mixed.T)
    return float(np.sqrt(max(0.0, 0.5 * float(square))))


def subspace_angles(model: Any, other: Any) -> Vector:
    r"""Return the principal angles between the spans of two models' components, in radians.

    In feature space, for kernels: cosines are the singular values of :math:`U^TW`, with U and W
    orthonormal bases of the spans, and sines those of :math:`W - UU^TW`; each angle follows from
    both. Björck & Golub (1973), Knyazev & Argentati (2002).

    Parameters
    ----------
    model, other : PCA, KernelPCA or Projection
        Fitted: both linear, or both with the same kernel. Linear components are compared in the
        units of the columns as each model treats them.

    Returns
    -------
    ndarray of shape (min(k, l),)
        The largest first, as in `scipy.linalg.subspace_angles`; fewer if the components are
        linearly dependent.

    Notes
    -----
    Angles below 1e-8 in feature space are accurate only if one basis contains the other: kernel
    values between different points are rounded, and the angle is the root of their difference.
    Needs the kernel between all points of both bases, a block at a time.

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
    components = _compare(model, other)
    k, total = components.first, components.coefficients.shape[1]
    identity = np.eye(total)
    G = components.inner(identity, identity)
    U = identity[:, :k] @ _orthonormal_combinations(G[:k, :k])
    W = identity[:, k:] @ _orthonormal_combinations(G[k:, k:])
    if U.shape[1] < W.shape[1]:
        U, W = W, U
    if W.shape[1] == 0:
        return np.zeros(0)
    Y, cosines, Zt = svd(U.T @ G @ W)
    residual = W @ Zt.T - U @ (Y * cosines)
    _, sines, _ = svd(_square_root(components.inner(residual, residual)))
    angles: Vector = np.arctan2(sines, cosines[::-1])
    return angles


def _compare(model: Any, other: Any) -> JointComponents:
    with progress.session():
        return joint_components(model, other)


def _orthonormal_combinations(G: Matrix) -> Matrix:
    """Return orthonormal combinations of components with inner products G."""
    lengths, values, vectors = _eigh_of_cosines(G)
    independent = values > _DEPENDENT * len(G)
    scaled: Matrix = vectors[:, independent] / np.sqrt(values[independent])
    return scaled / lengths[:, None]


def _square_root(G: Matrix) -> Matrix:
    """Return R with RᵀR = G; its small singular values are as accurate as small entries of G."""
    lengths, values, vectors = _eigh_of_cosines(G)
    root: Matrix = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * lengths
    return root


def _eigh_of_cosines(G: Matrix) -> tuple[Vector, Vector, Matrix]:
    """Return the lengths of components, and the eigenpairs of the cosines between them."""
    lengths = np.sqrt(np.maximum(np.diag(G), 0.0))
    # A component of length zero has no direction: a row and column of zeros.
    divisor = np.where(lengths > 0, lengths, np.inf)
    cosines = G / divisor / divisor[:, None]
    values, vectors = eigh((cosines + cosines.T) / 2) if len(G) else (lengths, G)
    return np.where(lengths > 0, lengths, 1.0), values, vectors

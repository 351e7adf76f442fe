"""Differences of components, eigenvalues, operators and subspaces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import csr_array, vstack

from mercer import progress
from mercer.arrays import (
    Matrix,
    Vector,
    cast,
    eigh,
    is_dask,
    is_finite,
    like,
    svd,
    to_device_of,
    to_numpy,
)
from mercer.data import as_source
from mercer.kernels.points import Points
from mercer.linalg.upper_blocks import SymmetricProduct, upper_blocks
from mercer.params import same
from mercer.projection import KernelProjection, LinearProjection
from mercer.projection.fourier import FourierProjection

# Squared lengths of combinations of unit components below this are rounding.
_DEPENDENT = 1e-12
# Coefficients whose sum is below this share of their absolute sum add up to zero.
_ZERO = 1e-9


def similarity(V: Any, W: Any) -> Any:
    r"""Return Sim :math:`= |v^Tw|/(\|v\|\|w\|)` of components: 1 if parallel, 0 if orthogonal.

    Row i of V is compared with row i of W, of shape (k, d), such as `components_`; or two vectors.
    Marukatat (2022), (66).

    Examples
    --------
    >>> from mercer.metrics import similarity
    >>> similarity([[1.0, 0.0], [0.0, 1.0]], [[-2.0, 0.0], [1.0, 1.0]]).round(3)
    array([1.   , 0.707])
    """
    v, w = (np.asarray(to_numpy(x), np.float64) for x in (V, W))
    if v.shape != w.shape or v.ndim not in (1, 2):
        raise ValueError(f"V has shape {v.shape}, but W has shape {w.shape}: pass equal shapes.")
    # Each is scaled first: the squares of tiny entries would underflow.
    v, w = (x / np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300) for x in (v, w))
    lengths = np.linalg.norm(v, axis=-1) * np.linalg.norm(w, axis=-1)
    if np.any(lengths == 0.0):
        raise ValueError("A component is zero and has no direction. Remove it.")
    cosines = np.minimum(np.abs(np.sum(v * w, axis=-1)) / lengths, 1.0)
    return float(cosines) if cosines.ndim == 0 else cosines


def eigenvalue_difference(exact: Any, found: Any) -> Any:
    r"""Return Diff :math:`= |\lambda - \lambda'|/\lambda` of eigenvalues; Marukatat (2022), (67).

    Of arrays of shape (k,), or numbers. If only λ is zero, the result is infinite.

    Examples
    --------
    >>> from mercer.metrics import eigenvalue_difference
    >>> eigenvalue_difference([4.0, 2.0], [3.0, 2.0])
    array([0.25, 0.  ])
    """
    a, b = (np.asarray(to_numpy(x), np.float64) for x in (exact, found))
    if a.shape != b.shape:
        raise ValueError(f"Eigenvalues have shapes {a.shape} and {b.shape}: pass equal numbers.")
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(a == b, 0.0, np.abs(a - b) / np.abs(a))
    return float(difference) if difference.ndim == 0 else difference


def operator_distance(model: Any, other: Any) -> float:
    r"""Return the distance D = ‖P − Q‖ in the Frobenius norm of two models' operators.

    .. math:: D^2 = \|A^TK_{bb}A\|_F^2 + \|B^TK_{b'b'}B\|_F^2 - 2\|A^TK_{bb'}B\|_F^2

    washizawa (47), for operators :math:`P = \sum_k u_ku_k^T` of components
    :math:`u_k = \sum_j A_{jk}\Phi(b_j)`, which need not be orthonormal. The means of the models
    are not compared. Projectors on orthogonal spans of r components have D² = 2r.

    Parameters
    ----------
    model, other : PCA, KernelPCA or Projection
        Fitted: both linear, or both with the same kernel. Linear components are compared in the
        units of the columns as each model treats them.

    Notes
    -----
    Computed as the norm of a difference: with the second components rotated toward the first,
    P − Q = ½(ΔΣᵀ + ΣΔᵀ) with their differences Δ and sums Σ. Distances below 1e-8, where the
    squares above cancel, are accurate if one basis contains the other.

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
    components = joint_components(model, other)
    k, total = components.k, components.coefficients.shape[1]
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

    The models are as in `operator_distance`. The result, largest first, has fewer angles if the
    components are linearly dependent. Angles below 1e-8 in feature space are accurate only if one
    basis contains the other: kernel values between different points are rounded, and the angle is
    the root of their difference.

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
    components = joint_components(model, other)
    k, total = components.k, components.coefficients.shape[1]
    identity = np.eye(total)
    G = components.inner(identity, identity)
    U, W = (
        identity[:, part] @ _orthonormal_combinations(G[part, part])
        for part in (slice(k), slice(k, None))
    )
    if U.shape[1] < W.shape[1]:
        U, W = W, U
    if W.shape[1] == 0:
        return np.zeros(0)
    Y, cosines, Zt = svd(U.T @ G @ W)
    residual = W @ Zt.T - U @ (Y * cosines)
    # R with RᵀR = G has small singular values as accurate as small entries of G.
    lengths, values, vectors = _eigh_of_cosines(components.inner(residual, residual))
    _, sines, _ = svd(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * lengths)
    angles: Vector = np.arctan2(sines, cosines[::-1])
    return angles


def _orthonormal_combinations(G: Matrix) -> Matrix:
    """Return orthonormal combinations of components with inner products G."""
    lengths, values, vectors = _eigh_of_cosines(G)
    independent = values > _DEPENDENT * len(G)
    scaled: Matrix = vectors[:, independent] / np.sqrt(values[independent])
    return scaled / lengths[:, None]


def _eigh_of_cosines(G: Matrix) -> tuple[Vector, Vector, Matrix]:
    """Return the lengths of components, and the eigenpairs of the cosines between them."""
    lengths = np.sqrt(np.maximum(np.diag(G), 0.0))
    # A component of length zero has no direction: a row and column of zeros.
    divisor = np.where(lengths > 0, lengths, np.inf)
    cosines = G / divisor / divisor[:, None]
    values, vectors = eigh((cosines + cosines.T) / 2) if len(G) else (lengths, G)
    return np.where(lengths > 0, lengths, 1.0), values, vectors


class JointComponents(NamedTuple):
    """Components Σ U_jk Φ(z_j) of two models over common points z; the first model has k of them.

    `coefficients` are U and `products` KU, with K the kernel between the points.
    """

    coefficients: Matrix
    products: Matrix
    k: int

    def inner(self, S: Matrix, T: Matrix) -> Matrix:
        """Return the inner products of the combinations S of the components with those of T.

        Coefficients are combined before they are multiplied: if S and T are differences of nearly
        equal components, (US)ᵀ(KUT) keeps the digits that Sᵀ(UᵀKU)T loses.
        """
        return (self.coefficients @ S).T @ (self.products @ T)


def joint_components(model: Any, other: Any) -> JointComponents:
    """Return the components of two models over common points."""
    p, q = (projection_of(each) for each in (model, other))
    spaces, kernels = zip(*map(_space, (p, q)), strict=True)
    if spaces[0] != spaces[1] or kernels[0] != kernels[1]:
        raise ValueError(
            f"The components of the models are in different spaces, of {' and of '.join(spaces)}. "
            f"Fit both to the same columns, with the same kernel, scale and feature_weight."
        )
    A, B = coefficients(p), coefficients(q)
    if isinstance(p, LinearProjection) or isinstance(q, LinearProjection):
        U = np.hstack([A, B])
        return JointComponents(U, U, A.shape[1])
    if p.kernel is None:
        raise ValueError(
            "kernel='precomputed' does not provide the kernel between rows of two fits. Fit with "
            "the kernel itself, or to row indices with kernels.Precomputed(matrix)."
        )
    with progress.session():
        points, U = _merge(_common_origin(p, q), block_diag(A, B))
        return JointComponents(U, kernel_product(p.kernel, points, U), A.shape[1])


def _space(projection: LinearProjection | KernelProjection) -> tuple[str, Any]:
    """Describe the space of the components, and return the kernel."""
    rows = row_type(projection)
    if isinstance(projection, LinearProjection):
        scaled = "scaled " * bool(np.any(projection.deviation != 1.0))
        if projection.weights is None:
            return f"{scaled}{rows}", None
        return f"{scaled}weighted {rows}", projection.weights.tolist()
    return f"{rows} under {projection.kernel!r}", projection.kernel


def projection_of(model: Any) -> LinearProjection | KernelProjection:
    """Return the fitted map of an estimator, or the map itself."""
    projection = getattr(model, "projection_", model)
    if isinstance(projection, (LinearProjection, KernelProjection)):
        return projection
    if isinstance(projection, FourierProjection):
        raise ValueError(
            "Random features have no components in the kernel's feature space. Instead of the "
            "model, pass mercer.metrics.kernel_axes(model, X) with the training rows X."
        )
    raise TypeError(
        f"Expected a fitted mercer.PCA or mercer.KernelPCA, or its projection_, but this "
        f"{type(model).__name__} is not one, or not fitted: call fit first."
    )


def coefficients(projection: LinearProjection | KernelProjection) -> Matrix:
    """Return the coefficients of the components, on the host, in float64."""
    return np.asarray(to_numpy(projection.components), np.float64)


def row_type(projection: Any) -> str:
    """Describe the rows that a projection takes."""
    if isinstance(projection, FourierProjection):
        d = len(projection.map.frequencies.omega)
    elif isinstance(projection, LinearProjection) or projection.kernel is None:
        d = len(projection.mean)
    elif isinstance(projection.basis, list):
        return "strings"
    else:
        d = int(projection.basis.shape[1])
    return f"rows of {d} columns"


def kernel_product(kernel: Any, points: Any, U: Matrix) -> Matrix:
    """Return KU, with K the kernel between all points, a block of rows of K at a time."""
    source = as_source(points)
    V = like(U, source.reference)
    blocks = upper_blocks(kernel, source, np.float64, keep=False)
    product = to_numpy(blocks.fold(SymmetricProduct(V, np.float64)).result)
    if not is_finite(product):
        raise ValueError(
            f"{kernel!r} gives NaN or infinity between points of the basis. Scale the rows, or "
            f"change the kernel's parameters."
        )
    return product


def _common_origin(p: KernelProjection, q: KernelProjection) -> list[Any]:
    """Return both bases minus the same shift; it must not change the components.

    A shift changes the kernel by f(x) + f(y), if at all. Coefficients that sum to zero cancel
    that; and f is zero if k(x,x) does not change.
    """
    sparse = any(hasattr(each.basis, "tocsr") for each in (p, q))
    shifts = [None] if sparse else sorted((p.shift, q.shift), key=lambda shift: shift is None)
    for shift in shifts:
        bases = [_moved_basis(each, shift) for each in (p, q)]
        if all(basis is not None for basis in bases):
            return bases
    raise ValueError(
        f"The models shifted their rows by different means, and the components of {p.kernel!r} "
        f"depend on the shift. Fit both to the same rows, or with center=False."
    )


def _moved_basis(projection: KernelProjection, shift: Vector | None) -> Any:
    """Return the basis minus this shift instead of its own; None if that changes components."""
    own, A = projection.shift, coefficients(projection)
    basis = to_numpy(projection.basis) if is_dask(projection.basis) else projection.basis
    if same(own, shift):
        return basis
    # First the original rows: those that two models share become equal again.
    before = rows = cast(basis, np.float64)
    rows = rows if own is None else rows + like(own, rows)
    rows = rows if shift is None else rows - like(shift, rows)
    if np.all(np.abs(A.sum(axis=0)) <= _ZERO * np.abs(A).sum(axis=0)):
        return rows
    assert projection.kernel is not None
    old, new = (to_numpy(projection.kernel.on_diagonal(Points(x))) for x in (before, rows))
    return rows if np.allclose(old, new, rtol=1e-13, atol=0.0) else None


def _merge(bases: list[Any], coef: Matrix) -> tuple[Any, Matrix]:
    """Return the distinct points of two bases, and the coefficients of all components over them."""
    first, second = bases
    sparse = hasattr(first, "tocsr") or hasattr(second, "tocsr")
    # Equal rows have equal keys: in one precision, and −0 as 0.
    if isinstance(first, list):
        points = keys = first + second
    elif sparse:
        hosts = [to_device_of(x, np.empty(0)) for x in (first, second)]
        both = [x if hasattr(x, "tocsr") else csr_array(x) for x in hosts]
        points = vstack(both, format="csr")
        data = points.data.astype(np.float64) + 0.0
        rows = [slice(*ends) for ends in pairwise(points.indptr)]
        keys = [points.indices[row].tobytes() + data[row].tobytes() for row in rows]
    else:
        points = np.concatenate([to_numpy(first), to_numpy(second)])
        keys = [row.tobytes() for row in points.astype(np.float64) + 0.0]
    _, at, place = np.unique(np.array(keys, object), return_index=True, return_inverse=True)
    U = np.zeros((len(at), coef.shape[1]))
    np.add.at(U, place, coef)
    if isinstance(points, list):
        return [points[i] for i in at], U
    return points[at] if sparse else like(points[at], first), U

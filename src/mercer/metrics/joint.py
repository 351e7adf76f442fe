"""The components of two models as combinations of the same points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, cast, is_dask, is_finite, like, to_numpy
from mercer.data import as_source
from mercer.kernels import Kernel
from mercer.kernels.points import Points
from mercer.linalg.upper_blocks import SymmetricProduct, upper_blocks
from mercer.projection import KernelProjection, LinearProjection
from mercer.projection.fourier import FourierProjection

# Coefficients whose sum is below this share of their absolute sum add up to zero.
_ZERO = 1e-9


@dataclass(frozen=True)
class JointComponents:
    """Components of two models, Σ U_jk Φ(z_j), those of the first model first.

    Attributes
    ----------
    coefficients : ndarray of shape (m, k + l)
        U.
    products : ndarray of shape (m, k + l)
        KU, with K the kernel between the points z.
    first : int
        k, the number of components of the first model.
    """

    coefficients: Matrix
    products: Matrix
    first: int

    def inner(self, S: Matrix, T: Matrix) -> Matrix:
        """Return the inner products of the combinations S of the components with those of T.

        Coefficients are combined before they are multiplied: if S and T are differences of nearly
        equal components, (US)ᵀ(KUT) keeps the digits that Sᵀ(UᵀKU)T loses.
        """
        return (self.coefficients @ S).T @ (self.products @ T)


def joint_components(model: Any, other: Any) -> JointComponents:
    """Return the components of two models over common points."""
    p, q = projection_of(model), projection_of(other)
    if isinstance(p, LinearProjection) and isinstance(q, LinearProjection):
        return _linear(p, q)
    if isinstance(p, KernelProjection) and isinstance(q, KernelProjection):
        return _kernel(p, q)
    raise ValueError(
        "one model is linear and the other a kernel's: their components live in different spaces. "
        "Compare with KernelPCA(kernel='linear')."
    )


def projection_of(model: Any) -> LinearProjection | KernelProjection:
    """Return the fitted map of an estimator, or the map itself."""
    projection = getattr(model, "projection_", model)
    if isinstance(projection, (LinearProjection, KernelProjection)):
        return projection
    if isinstance(projection, FourierProjection):
        raise ValueError(
            "random features have no components in the kernel's space until rows are named: pass "
            "mercer.metrics.kernel_axes(model, X), with the rows X of the fit, instead of the "
            "model."
        )
    reason = "is not fitted: call fit first" if hasattr(model, "fit") else "is none"
    raise TypeError(
        f"a fitted mercer.PCA or mercer.KernelPCA is needed, or its projection_, and "
        f"{type(model).__name__} {reason}."
    )


def coefficients(projection: LinearProjection | KernelProjection) -> Matrix:
    """Return the coefficients of the components, on the host, in float64."""
    return np.asarray(to_numpy(projection.components), np.float64)


def n_columns(projection: LinearProjection | KernelProjection) -> int | None:
    """Return the number of columns of the rows; None for strings."""
    if isinstance(projection, LinearProjection) or projection.kernel is None:
        return len(projection.mean)
    return None if isinstance(projection.basis, list) else int(projection.basis.shape[1])


def component_gram(projection: KernelProjection) -> Matrix:
    """Return G = AᵀKA, the inner products of the components."""
    A = coefficients(projection)
    assert projection.kernel is not None
    return A.T @ _kernel_product(projection.kernel, projection.basis, A)


def _linear(p: LinearProjection, q: LinearProjection) -> JointComponents:
    _require_same_columns(p, q)
    if np.all(p.deviation == 1.0) != np.all(q.deviation == 1.0):
        raise ValueError(
            "one model scales the columns and the other does not: their components have different "
            "units. Fit both with the same scale."
        )
    A, B = coefficients(p), coefficients(q)
    U = np.hstack([A, B])
    return JointComponents(U, U, A.shape[1])


def _kernel(p: KernelProjection, q: KernelProjection) -> JointComponents:
    if p.kernel is None or q.kernel is None:
        raise ValueError(
            "kernel='precomputed' does not tell the kernel between the rows of two fits. Fit "
            "with the kernel itself, or to row numbers with kernels.Precomputed(matrix)."
        )
    if p.kernel != q.kernel:
        raise ValueError(
            f"the models have different kernels, {p.kernel!r} and {q.kernel!r}: their components "
            f"live in different spaces. Fit both with the same kernel."
        )
    _require_same_columns(p, q)
    first, second = _common_origin(p, q)
    points, U = _merge(first, second, coefficients(p), coefficients(q))
    return JointComponents(U, _kernel_product(p.kernel, points, U), int(p.components.shape[1]))


def _require_same_columns(*both: LinearProjection | KernelProjection) -> None:
    p, q = (n_columns(each) for each in both)
    if p != q:
        rows = ("strings" if size is None else f"rows of {size} columns" for size in (p, q))
        raise ValueError(f"the models were fitted to {' and to '.join(rows)}: they share no space.")


def _kernel_product(kernel: Kernel, points: Any, U: Matrix) -> Matrix:
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
    """Return both bases minus the same shift; it must not change the components."""
    both = [
        replace(each, basis=to_numpy(each.basis)) if is_dask(each.basis) else each
        for each in (p, q)
    ]
    sparse = any(hasattr(each.basis, "tocsr") for each in both)
    shifts = [None] if sparse else sorted((p.shift, q.shift), key=lambda shift: shift is None)
    for shift in shifts:
        bases = [_moved_basis(each, shift) for each in both]
        if all(map(_keeps_components, both, bases)):
            return bases
    raise ValueError(
        f"the models moved their rows by different means, and the components of {p.kernel!r} "
        f"depend on that. Fit both to the same rows, or with center=False."
    )


def _moved_basis(projection: KernelProjection, shift: Vector | None) -> Any:
    """Return the basis minus this shift instead of its own."""
    own, rows = projection.shift, projection.basis
    if own is shift or (own is not None and shift is not None and np.array_equal(own, shift)):
        return rows
    # First the original rows: those that two models share become equal again.
    rows = cast(rows, np.float64)
    rows = rows if own is None else rows + like(own, rows)
    return rows if shift is None else rows - like(shift, rows)


def _keeps_components(projection: KernelProjection, basis: Any) -> bool:
    """Tell whether components over the moved basis are the same.

    A shift changes the kernel by f(x) + f(y), if at all. Coefficients that sum to zero cancel
    that; and f is zero if k(x,x) does not change.
    """
    if basis is projection.basis:
        return True
    A, kernel = coefficients(projection), projection.kernel
    if np.all(np.abs(A.sum(axis=0)) <= _ZERO * np.abs(A).sum(axis=0)):
        return True
    assert kernel is not None
    before, after = (
        to_numpy(kernel.on_diagonal(Points(cast(rows, np.float64))))
        for rows in (projection.basis, basis)
    )
    return bool(np.allclose(before, after, rtol=1e-13, atol=0.0))


def _merge(first: Any, second: Any, A: Matrix, B: Matrix) -> tuple[Any, Matrix]:
    """Return the distinct points of two bases, and the coefficients of all components over them."""
    points = _concatenate(first, second)
    place: dict[Any, int] = {}
    index = np.array([place.setdefault(key, len(place)) for key in _row_keys(points)], np.int64)
    distinct = np.unique(index, return_index=True)[1]  # the first row of each
    m, k = A.shape
    U = np.zeros((len(distinct), k + B.shape[1]))
    np.add.at(U[:, :k], index[:m], A)
    np.add.at(U[:, k:], index[m:], B)
    if isinstance(points, list):
        return [points[i] for i in distinct], U
    points = points[distinct]
    device = not (hasattr(first, "tocsr") or hasattr(second, "tocsr"))
    return like(points, first) if device else points, U


def _concatenate(first: Any, second: Any) -> Any:
    """Return the rows of both on the host: CSR if those of one are sparse."""
    if isinstance(first, list):
        return first + second
    if hasattr(first, "tocsr") or hasattr(second, "tocsr"):
        from scipy.sparse import csr_array, vstack

        both = [x if hasattr(x, "tocsr") else csr_array(to_numpy(x)) for x in (first, second)]
        return vstack(both, format="csr")
    return np.concatenate([to_numpy(first), to_numpy(second)])


def _row_keys(rows: Any) -> Sequence[Any]:
    """Return a key for every row; equal rows have equal keys."""
    if isinstance(rows, list):
        return rows
    if hasattr(rows, "tocsr"):
        parts = np.split(np.arange(rows.nnz), rows.indptr[1:-1])
        return [_digest(rows.indices[at], rows.data[at]) for at in parts]
    return [_digest(row) for row in rows]


def _digest(*parts: np.ndarray[Any, Any]) -> bytes:
    # In one precision, and −0 as 0.
    data = b"".join((part.astype(np.float64) + 0.0).tobytes() for part in parts)
    return blake2b(data, digest_size=16).digest()

"""Components of two models as combinations of the same points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, is_finite, like, to_numpy
from mercer.data import as_source
from mercer.kernels.base import Kernel
from mercer.linalg.distributed_gram import upper_blocks
from mercer.linalg.upper_blocks import SymmetricProduct
from mercer.metrics.bases import in_one_frame, merged
from mercer.metrics.models import coefficients, projection_of, width
from mercer.projection import KernelProjection, LinearProjection


@dataclass(frozen=True)
class Shared:
    """Components of two models, Σ U_jk Φ(z_j), one model's after the other's.

    Attributes
    ----------
    coefficients : ndarray of shape (m, k + l)
        U.
    products : ndarray of shape (m, k + l)
        KU, with K the kernel between the points z.
    first : int
        k, the number of components of the first.
    """

    coefficients: Matrix
    products: Matrix
    first: int

    def inner(self, S: Matrix, T: Matrix) -> Matrix:
        """Return the inner products of the combinations S of the components with those of T.

        Coefficients are combined before they are multiplied: where S and T are differences of
        components that are nearly the same, (US)ᵀ(KUT) keeps the digits that Sᵀ(UᵀKU)T has lost.
        """
        return (self.coefficients @ S).T @ (self.products @ T)


def lengths(projection: KernelProjection) -> Matrix:
    """Return G = AᵀKA, the inner products of the components."""
    A = coefficients(projection)
    assert projection.kernel is not None
    return A.T @ _times(projection.kernel, projection.basis, A)


def shared(model: Any, other: Any) -> Shared:
    """Return the components of two models over points that both have."""
    p, q = projection_of(model), projection_of(other)
    if isinstance(p, LinearProjection) and isinstance(q, LinearProjection):
        return _linear(p, q)
    if isinstance(p, KernelProjection) and isinstance(q, KernelProjection):
        return _kernel(p, q)
    raise ValueError(
        "one model is linear and the other a kernel's: their components live in different spaces. "
        "Compare with KernelPCA(kernel='linear')."
    )


def _linear(p: LinearProjection, q: LinearProjection) -> Shared:
    _require_width(p, q)
    if np.all(p.deviation == 1.0) != np.all(q.deviation == 1.0):
        raise ValueError(
            "one model scales the columns and the other does not: their components have different "
            "units. Fit both with the same scale."
        )
    A, B = coefficients(p), coefficients(q)
    U = np.hstack([A, B])
    return Shared(U, U, A.shape[1])


def _kernel(p: KernelProjection, q: KernelProjection) -> Shared:
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
    _require_width(p, q)
    basis, U = merged(*in_one_frame(p, q), coefficients(p), coefficients(q))
    return Shared(U, _times(p.kernel, basis, U), int(p.components.shape[1]))


def _require_width(*both: LinearProjection | KernelProjection) -> None:
    p, q = (width(each) for each in both)
    if p != q:
        of = ("strings" if size is None else f"rows of {size} columns" for size in (p, q))
        raise ValueError(f"the models were fitted to {' and to '.join(of)}: they share no space.")


def _times(kernel: Kernel, basis: Any, U: Matrix) -> Matrix:
    """Return KU, K the kernel between all points of the basis: a strip at a time."""
    source = as_source(basis)
    V = like(U, source.reference)
    strips = upper_blocks(kernel, source, np.float64, keep=False)
    product = to_numpy(strips.fold(SymmetricProduct(V, np.float64)).result)
    if not is_finite(product):
        raise ValueError(
            f"{kernel!r} gives NaN or infinity between points of the basis. Scale the rows, or "
            f"change the kernel's parameters."
        )
    return product

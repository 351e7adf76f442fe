"""The result of an eigensolver, and the Rayleigh–Ritz step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    column_norms,
    eigh,
    like,
    numpy_dtype,
    orthonormalize,
    to_numpy,
)
from mercer.linalg.operator import Operator


@dataclass(frozen=True)
class Spectrum:
    """The largest eigenvalues of an operator, with what is needed to bound their error."""

    values: Vector
    """Eigenvalues, largest first."""
    vectors: Array
    """Orthonormal eigenvectors, one per column."""
    residuals: Vector
    """‖Av − λv‖ of each pair, rounding included."""
    residuals_kind: str = "bound"
    """"bound", or "estimate" where the rounding of a recurrence is estimated."""
    complete: bool = False
    """Whether the solver cannot have missed an eigenvalue (a dense decomposition)."""
    basis: Array = None
    """Orthonormal basis Q of the whole search space, N×m."""
    ritz: Vector | None = None
    """Eigenvalues of QᵀAQ, largest first."""
    coupling: Matrix | None = None
    """BᵀB with B = (I − QQᵀ)AQ, in the coordinates where QᵀAQ is diagonal."""
    products: int = 0
    """Number of vectors that were multiplied."""
    converged: bool = True
    """Whether the tolerance was met."""
    state: Any = None
    """What the solver needs to go on to more eigenvalues."""

    @property
    def pairs(self) -> tuple[Vector, Array]:
        """All eigenpairs that were computed: a decomposition has more than were asked for."""
        if self.coupling is None and self.ritz is not None:
            return self.ritz, self.basis
        return self.values, self.vectors

    def depth(self, k: int) -> float:
        """Return the k-th eigenvalue as a share of the first; 0 where there is no variance."""
        if k == 0:
            return 1.0
        return float(self.values[k - 1] / self.values[0]) if self.values[0] > 0 else 0.0

    def head(self, k: int) -> Spectrum:
        return replace(
            self, values=self.values[:k], vectors=self.vectors[:, :k], residuals=self.residuals[:k]
        )


def with_score_variances(spectrum: Spectrum, k: int) -> Spectrum:
    r"""Return the first k pairs as axes Xᵀu of A = XXᵀ whose variances are those of their scores.

    Ritz vectors u have uᵀAu = θ, the squared length of Xᵀu; the scores Au are longer than that
    where u has not converged: ‖Au‖² = θ² + ‖r‖². The best axes of the span of Xᵀu solve
    (Θ² + RᵀR)z = κΘz, and have uncorrelated scores of the variance κ ≥ θ.
    """
    values, vectors, coupling = spectrum.values[:k], spectrum.vectors[:, :k], spectrum.coupling
    if coupling is None or not k or not values[-1] > 0.0:
        return spectrum.head(k)
    roots = np.sqrt(values)
    off = coupling[:k, :k] / roots / roots[:, None]
    if np.max(np.diag(off) / values) < _CONVERGED:
        return spectrum.head(k)
    kappa, Y = eigh(np.diag(values) + off)
    Z = Y / roots[:, None] * np.sqrt(kappa)
    sizes = column_norms(Z)
    # Of (κ, Vz): AVz − κVz = V(Θ − κ)z + Rz.
    inside = column_norms((values[:, None] - kappa) * Z)
    beside = np.sqrt(np.maximum(np.einsum("ij,ij->j", Z, coupling[:k, :k] @ Z), 0.0))
    rounding = np.min(spectrum.residuals[:k] - np.sqrt(np.diag(coupling)[:k]))
    residuals = np.hypot(inside, beside) / sizes + max(float(rounding), 0.0)
    return replace(
        spectrum,
        values=kappa,
        vectors=vectors @ like(Z, vectors, numpy_dtype(vectors)),
        residuals=residuals,
    )


@dataclass(frozen=True)
class WarmStart:
    """Orthonormal vectors to begin with, and the operator's product with them."""

    vectors: Array
    product: Array


StopRule = Callable[[Spectrum], bool]
"""Tells from a spectrum without vectors whether it is good enough."""


class Solver(Protocol):
    """Finds the k largest eigenvalues of an operator.

    `tol` bounds the residual relative to the eigenvalue, 0 asks for working precision;
    `start` is an earlier spectrum to go on from, with more eigenvalues or more precisely.
    """

    def __call__(
        self,
        operator: Operator,
        k: int,
        *,
        tol: float,
        rng: np.random.Generator,
        start: Spectrum | None = None,
    ) -> Spectrum: ...


# Squared residuals below this share of the squared eigenvalue change no variance visibly.
_CONVERGED = 1e-12
# The least residual, relative to the largest eigenvalue, that rounding lets one hope for.
PRECISION = {np.dtype(np.float32): 5e-7, np.dtype(np.float64): 1e-13}


def residual_target(values: Vector, tol: float, dtype: Any, size: int) -> Vector:
    """Return the residual that each eigenvalue must reach; n ε ‖A‖ is as good as LAPACK's."""
    largest = float(np.max(np.abs(values), initial=0.0))
    least = max(PRECISION[np.dtype(dtype)], size * float(np.finfo(np.float64).eps))
    return np.maximum(tol * np.abs(values), least * largest)


def rayleigh_ritz(operator: Operator, Q: Array, k: int) -> Spectrum:
    """Return the best k eigenpairs within the span of orthonormal columns Q: one product."""
    Q = cast(Q, np.float64)
    return ritz_pairs(operator, Q, operator.matmat(Q), k)


def ritz_pairs(operator: Operator, Q: Array, AQ: Array, k: int) -> Spectrum:
    """Return the best k eigenpairs within the span of Q, from the product AQ."""
    T = to_numpy(Q.T @ AQ)
    ritz, S = eigh((T + T.T) / 2)
    S = like(S, Q)
    basis = Q @ S
    coupled = AQ @ S - basis * like(ritz, Q)[None, :]
    coupled = coupled - basis @ (basis.T @ coupled)
    coupling = to_numpy(coupled.T @ coupled)
    residuals = column_norms(to_numpy(coupled)) + operator.rounding
    return Spectrum(
        values=ritz[:k],
        vectors=basis[:, :k],
        residuals=residuals[:k],
        basis=basis,
        ritz=ritz,
        coupling=coupling,
        products=int(Q.shape[1]),
    )


def random_basis(operator: Operator, width: int, rng: np.random.Generator) -> Array:
    """Return random orthonormal columns where the operator lives."""
    Q, _ = orthonormalize(like(rng.standard_normal((operator.size, width)), operator.reference))
    return Q

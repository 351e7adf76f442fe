"""Power iteration, randomized subspace iteration, and ARPACK."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    column_norms,
    like,
    namespace,
    orthonormalize,
    to_numpy,
)
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.dense import dense
from mercer.linalg.solvers.krylov import krylov
from mercer.linalg.solvers.spectrum import PRECISION, Spectrum, random_basis, rayleigh_ritz

_STEPS = 20_000


def power(
    operator: Operator, k: int, *, tol: float, rng: Generator, start: Spectrum | None = None
) -> Spectrum:
    r"""Iterate :math:`y \leftarrow Ay/\lVert Ay \rVert` for one eigenvector after the other.

    Every iterate is projected orthogonally to the eigenvectors found before; it stops when
    :math:`\lVert y_k - y_{k-1} \rVert` is small. One Rayleigh–Ritz step ends it, which
    measures the residuals. With probability 9/10,
    :math:`|y_k^T v_1| \ge 1 - 20 N (\lambda_2/\lambda_1)^k` (Prop. 6).
    """
    small = max(tol, PRECISION[operator.dtype] / 2)
    V = like(np.zeros((operator.size, 0)), operator.reference) if start is None else start.vectors
    products, converged, largest = 0, True, 0.0
    while V.shape[1] < k:
        y, steps, value = _next_eigenvector(operator, V, small, largest, rng)
        V = namespace(V).concat([V, y], axis=1)
        products, largest = products + steps, max(largest, value)
        converged &= steps < _STEPS
    spectrum = rayleigh_ritz(operator, V, k)
    return replace(spectrum, products=products + spectrum.products, converged=converged)


def _next_eigenvector(
    operator: Operator, V: Array, small: float, largest: float, rng: Generator
) -> tuple[Array, int, float]:
    """Return the next eigenvector after V, the number of steps, and its eigenvalue.

    It stops, too, when the residual is down to rounding of the largest eigenvalue.
    """
    y = _deflated(like(rng.standard_normal((operator.size, 1)), operator.reference), V, 0.0)
    negligible = 16 * float(np.finfo(np.float64).eps) * abs(operator.trace)
    value = 0.0
    for step in range(1, _STEPS + 1):
        x = operator.matmat(y)
        value = float((y.T @ x)[0, 0])
        x = _deflated(x, V, negligible)
        if x is None:  # A is zero, to rounding, on the complement of V
            return y, step, value
        change, y = _norm(x - y), x
        if change < small or value * change < small / 5 * largest:
            return y, step, value
    return y, _STEPS, value


def _deflated(x: Array, V: Array, negligible: float) -> Array:
    """Return x orthogonal to V, of unit length; None if its rest is negligible."""
    for _ in range(2):
        x = x - V @ (V.T @ x)
    norm = _norm(x)
    return x / norm if norm > negligible else None


def _norm(x: Array) -> float:
    return float(column_norms(to_numpy(x))[0])  # squares may overflow or vanish


@dataclass(frozen=True)
class Randomized:
    """Subspace iteration with a fixed number of steps, with measured residuals.

    `n_oversamples` random vectors are taken beyond the k wanted. `iterated_power` is the number
    of steps; "auto" takes 7 where k is less than a tenth of the rank there can be, else 4.
    `power_iteration_normalizer`, "QR", "LU" or "none", keeps the vectors apart between steps;
    "auto" is LU, or none for two steps or fewer. A step makes so many `products`: a covariance
    is the product of the rows and their transpose; of a kernel matrix scikit-learn takes two.
    """

    n_oversamples: int = 10
    iterated_power: int | str = "auto"
    power_iteration_normalizer: str = "auto"
    products: int = 1

    def __call__(
        self,
        operator: Operator,
        k: int,
        *,
        tol: float,
        rng: Generator,
        start: Spectrum | None = None,
    ) -> Spectrum:
        """Iterate, then take the best k pairs of the subspace."""
        N, steps = operator.size, self.steps(k, operator.rank)
        width = min(N, k + self.n_oversamples)
        Q = like(rng.standard_normal((N, width)), operator.reference)
        for _ in range(steps * self.products):
            Q = self._normalized(operator.matmat(Q), steps)
        # Orthonormal before the last product too: it squares the condition of what it is given.
        Q, _ = orthonormalize(operator.matmat(orthonormalize(Q)[0]))
        return rayleigh_ritz(operator, Q, k)

    def steps(self, k: int, rank: int) -> int:
        """Return the number of steps for k components of a matrix of this rank."""
        if self.iterated_power == "auto":
            return 7 if k < 0.1 * rank else 4
        return int(self.iterated_power)

    def _normalized(self, Y: Array, steps: int) -> Array:
        how = self.power_iteration_normalizer
        if how == "auto":
            how = "none" if steps <= 2 else "LU"
        if how == "none":
            return Y
        if how == "LU" and isinstance(Y, np.ndarray):
            import scipy.linalg

            return scipy.linalg.lu(to_numpy(Y), permute_l=True)[0]
        return orthonormalize(Y)[0]


def arpack(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: Generator,
    start: Spectrum | None = None,
    max_iter: int | None = None,
) -> Spectrum:
    """Let `scipy.sparse.linalg.eigsh` find the vectors; one product measures their residuals."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    N, size = operator.size, operator.trace
    if not operator.psd:  # eigenvalues of both signs may cancel
        size = float(column_norms(to_numpy(operator.matmat(random_basis(operator, 1, rng))))[0])
    if not size > 0:  # ARPACK cannot start on a zero matrix
        return rayleigh_ritz(operator, random_basis(operator, k, rng), k)
    if k >= N:  # ARPACK leaves one eigenvalue out; to find all is to decompose the matrix
        return dense(operator, k, tol=tol, rng=rng)
    products = 0

    def matvec(v: Vector) -> Matrix:
        nonlocal products
        products += 1
        return to_numpy(operator.matmat(like(v.reshape(N, -1), operator.reference)))

    scaled = 1.0 / size  # eigsh is not scale free
    linear = LinearOperator((N, N), matvec=lambda v: matvec(v) * scaled, dtype=np.float64)
    converged, V = True, np.zeros((N, 0))
    try:
        _, V = eigsh(linear, k, which="LA", tol=tol, maxiter=max_iter, v0=rng.uniform(-1, 1, N))
    except ArpackNoConvergence as stopped:
        converged, V = False, np.asarray(stopped.eigenvectors, np.float64)
    except ArpackError:  # the matrix is rounding, or has fewer vectors than a factorization takes
        return krylov(operator, k, tol=tol, rng=rng)
    Q, _ = np.linalg.qr(np.hstack([V, rng.standard_normal((N, k - V.shape[1]))]))
    spectrum = rayleigh_ritz(operator, like(Q, operator.reference), k)
    return replace(spectrum, products=products + spectrum.products, converged=converged)

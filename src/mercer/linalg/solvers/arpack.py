"""ARPACK's implicitly restarted Lanczos, through SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Matrix, Vector, like, to_numpy
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.dense import dense
from mercer.linalg.solvers.krylov import krylov
from mercer.linalg.solvers.spectrum import Spectrum, column_norms, random_basis, rayleigh_ritz


def arpack(
    operator: Operator,
    k: int,
    *,
    tol: float,
    rng: np.random.Generator,
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

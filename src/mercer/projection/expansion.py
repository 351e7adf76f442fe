"""Components that are linear combinations of all rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, cast, column_signs, eigh, like, to_numpy
from mercer.data import Source, lazily
from mercer.linalg.gram import Gram
from mercer.projection.kernel import KernelProjection


def row_expansion(
    gram: Gram, values: Vector, vectors: Array, shift: Vector | None = None
) -> KernelProjection:
    r"""Return the map with the components :math:`\sum_i \alpha_i(\Phi(x_i)-\bar\Phi)`.

    :math:`\alpha = v/\sqrt\lambda` for vectors v over the rows and variances λ: of unit norm if
    :math:`v^T\tilde Kv = \lambda`, as for eigenvectors. `shift` is what was subtracted from the
    rows.
    """
    source, total, scale = gram.source, gram.trace, gram.scale
    V = gram.project(cast(vectors, np.float64))
    V = V * weighted_signs(V, gram.roots)
    norms = like(np.sqrt(values * gram.divisor), V)
    mean_coef = (to_numpy(gram.roots)[:, 0] ** 2 / source.count) * gram.center
    return KernelProjection(
        mean=gram.means * gram.center,
        components=gram.roots * V / norms,
        eigenvalues=values * scale,
        total_variance=max(0.0, total) * scale,
        rest=max(0.0, total - float(values.sum())) * scale,
        kernel=gram.kernel,
        basis=None if gram.kernel is None else points_of(source),
        shift=shift,
        mean_coef=mean_coef,
        mean_sq=gram.mean_square * gram.center,
    )


def weighted_signs(V: Array, roots: Array) -> Array:
    """Return the signs of scikit-learn's convention for vectors weighted by `roots`."""
    each, root = to_numpy(V), to_numpy(roots)
    return like(column_signs(np.divide(each, root, where=root > 0, out=np.zeros_like(each))), V)


def points_of(source: Source) -> Any:
    """Return all rows, to compare new ones with; a Dask array if they are remote."""
    return source.whole() if source.remote is None else lazily(source.weighted(None))


def best_in_span(Q: Array, product: Array, rounding: float) -> tuple[Vector, Array, float]:
    r"""Return the best components in the span of orthonormal vectors Q over the rows.

    The components :math:`\sum_i Q_i\tilde\Phi(x_i)` have the inner products
    :math:`T = Q^T\tilde KQ`, and the rows the scores :math:`\tilde KQ` along them: the best of
    their combinations solve :math:`(\tilde KQ)^T\tilde KQz = \kappa Tz`.

    Parameters
    ----------
    Q, product : array of shape (n, k)
        The vectors, and the product of the kernel matrix with them.
    rounding : float
        Bound on how far rounding can have moved the matrix.

    Returns
    -------
    values : ndarray of shape (p,)
        Variances κ, largest first; p < k if components are linearly dependent.
    vectors : array of shape (n, p)
        Vectors Qz√κ, as `row_expansion` takes them.
    explained : float
        A lower bound on the variance in the span.
    """
    T = to_numpy(Q.T @ product)
    theta, U = eigh((T + T.T) / 2)
    scores = product @ like(U, Q)
    norms = np.einsum("ij,ij->j", to_numpy(scores), to_numpy(scores))
    positive = theta > max(1e-12 * float(np.max(theta, initial=0.0)), rounding)
    W = U[:, positive] / np.sqrt(theta[positive])
    along = to_numpy(product @ like(W, Q))
    values, Y = eigh(along.T @ along)
    vectors = Q @ like(W @ Y * np.sqrt(np.maximum(values, 0.0)), Q)
    return values, vectors, span_variance(theta, norms, rounding)


def span_variance(values: Vector, squares: Vector, rounding: float) -> float:
    """Bound the variance tr(T⁻¹M) in the span of components from below.

    T, their inner products, has these eigenvalues, and the scores along its eigenvectors have these
    squared norms. T is off by at most the rounding ρ, and tr((T + ρ)⁻¹M) is no larger.
    """
    divide = np.maximum(values, 0.0) + rounding
    parts = squares - 2.0 * rounding * np.sqrt(squares)
    variance = np.divide(parts, divide, where=divide > 0, out=np.zeros_like(parts))
    return max(0.0, float(variance.sum()))

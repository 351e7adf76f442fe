"""Axes that are sums over all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, cast, eigh, like, to_numpy
from mercer.certificate import Certificate
from mercer.data import Source, lazily
from mercer.linalg.gram import Gram
from mercer.projection import KernelProjection


def combined(
    gram: Gram,
    values: Vector,
    vectors: Array,
    certificate: Certificate,
    shift: Vector | None = None,
) -> KernelProjection:
    r"""Return the map with the axes :math:`\sum_i \alpha_i(\Phi(x_i)-\bar\Phi)`.

    :math:`\alpha = v/\sqrt\lambda` of vectors v over the rows, and variances λ: of length one
    where :math:`v^T\tilde Kv = \lambda`, as of eigenvectors. `shift` is what was subtracted from
    the rows.
    """
    source, total = gram.source, gram.trace
    V = gram.project(cast(vectors, np.float64))
    V = V * facing(V, gram.roots)
    lengths = like(np.sqrt(values * gram.divisor), V)
    shares = (to_numpy(gram.roots)[:, 0] ** 2 / source.count) * gram.center
    scale = gram.scale
    if scale != 1.0:
        certificate = replace(
            certificate,
            eigenvalues=certificate.eigenvalues * scale,
            residuals=certificate.residuals * scale,
            spacing=certificate.spacing * scale,
            negative=certificate.negative * scale,
        )
    return KernelProjection(
        mean=gram.means * gram.center,
        components=gram.roots * V / lengths,
        eigenvalues=values * scale,
        total_variance=max(0.0, total) * scale,
        rest=max(0.0, total - float(values.sum())) * scale,
        certificate=certificate,
        kernel=gram.kernel,
        basis=None if gram.kernel is None else points_of(source),
        shift=shift,
        shares=shares,
        height=gram.height * gram.center,
    )


def points_of(source: Source) -> Any:
    """Return all rows, as what new ones are compared to; a Dask array of those that lie there."""
    return source.whole() if source.elsewhere is None else lazily(source.weighted(None))


def best_in_span(Q: Array, product: Array, rounding: float) -> tuple[Vector, Array, float]:
    r"""Return the best axes of the span that orthonormal vectors Q over the rows make.

    The axes :math:`\sum_i Q_i\tilde\Phi(x_i)` have the inner products :math:`T = Q^T\tilde KQ`,
    and the rows the scores :math:`\tilde KQ` along them: the best of their combinations solve
    :math:`(\tilde KQ)^T\tilde KQz = \kappa Tz`.

    Parameters
    ----------
    Q, product : array of shape (n, k)
        The vectors, and the kernel matrix times them.
    rounding : float
        Bound on how far rounding can have moved the matrix.

    Returns
    -------
    values : ndarray of shape (p,)
        Variances κ, largest first; p is less than k where axes depend on each other.
    vectors : array of shape (n, p)
        What `combined` takes: Qz√κ.
    held : float
        A bound from below on the variance that the span holds.
    """
    T = to_numpy(Q.T @ product)
    theta, U = eigh((T + T.T) / 2)
    scores = product @ like(U, Q)
    lengths = np.einsum("ij,ij->j", to_numpy(scores), to_numpy(scores))
    there = theta > max(1e-12 * float(np.max(theta, initial=0.0)), rounding)
    W = U[:, there] / np.sqrt(theta[there])
    along = to_numpy(product @ like(W, Q))
    values, Y = eigh(along.T @ along)
    vectors = Q @ like(W @ Y * np.sqrt(np.maximum(values, 0.0)), Q)
    return values, vectors, held_by(theta, lengths, rounding)


def held_by(values: Vector, lengths: Vector, rounding: float) -> float:
    """Bound the variance tr(T⁻¹M) in the span of axes from below.

    T, their inner products, has these eigenvalues, and the rows' scores along its eigenvectors
    these squared lengths. T is off by no more than the rounding ρ: tr((T + ρ)⁻¹M) is too small,
    if anything.
    """
    divide = np.maximum(values, 0.0) + rounding
    parts = lengths - 2.0 * rounding * np.sqrt(lengths)
    held = np.divide(parts, divide, where=divide > 0, out=np.zeros_like(parts))
    return max(0.0, float(held.sum()))


def facing(V: Array, roots: Array) -> Array:
    """Return the signs that make each vector's largest entry positive, as in scikit-learn.

    Of what a row's entry would be if it stood there as often as its weight says.
    """
    each, root = to_numpy(V), to_numpy(roots)
    each = np.divide(each, root, where=root > 0, out=np.zeros_like(each))
    largest = np.argmax(np.abs(each), axis=0)
    return like(np.sign(each[largest, np.arange(each.shape[1])]), V)

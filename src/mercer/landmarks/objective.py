r"""The variance that a basis explains, and how one landmark more or less changes it.

Washizawa (2012), (33) and (40): the best r components in the span of the basis explain
:math:`\sum_{i\le r}\xi_i`, with ξ the eigenvalues of :math:`K_y^\dagger K_{xy}^THK_{xy}`; weights
are counts. In orthonormal coordinates of the span, suitably rotated, the scatter matrix of the rows
is diag(ξ), largest first.

- A new landmark borders it: a direction f orthogonal to the span, with inner products b with the
  old coordinates and c with itself, gives the roots of :math:`\lambda - c = \sum_j
  b_j^2/(\lambda-\xi_j)`, one above each ξ.
- Removing a landmark removes a direction u from the span and leaves the roots of
  :math:`\sum_j u_j^2/(\xi_j-\lambda) = 0`, one below each ξ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.problem import KernelProblem

# Tolerances of roots, relative to themselves and to the largest ξ.
_ROOT_TOL, _LARGEST_TOL, _MAX_STEPS = 1e-14, 1e-16, 100
# Values that differ by at most this share of the largest are equal.
_EQUAL = 1e-6


def basis_variance(problem: KernelProblem, basis: Basis) -> float:
    """Return the variance that the basis explains, in one pass over the rows."""
    span = Span(problem.kernel, basis, problem.source)
    moments = problem.source.fold(KernelMoments(span, problem.source, center=problem.center))
    r, T = problem.n_leading, span.whitener
    values, _ = eigh(T.T @ moments.scatter @ T, None if r is None else min(r, span.rank))
    return float(values.sum())


def center_features(problem: KernelProblem, features: Matrix) -> Matrix:
    """Center features of all rows and multiply them by the roots of the weights, in place."""
    weights = problem.source.weights
    if problem.center:
        count = problem.source.count
        features -= features.mean(axis=0) if weights is None else weights @ features / count
    if weights is not None:
        features *= np.sqrt(weights)[:, None]
    return features


def descending_order(values: Vector) -> np.ndarray[Any, Any]:
    """Return the order of finite values, largest first; values equal to rounding keep theirs.

    Otherwise rounding, which depends on the block size, would decide between them.
    """
    order = np.argsort(-values, kind="stable")
    steps = np.diff(values[order], prepend=values[order[:1]])
    rank = np.cumsum(steps < -_EQUAL * np.max(np.abs(values), initial=0.0))
    return np.asarray(order[np.lexsort((order, rank))])


def gains(xi: Vector, b: Matrix, c: Vector, r: int | None) -> Vector:
    """Return the increase of the sum of the r largest eigenvalues by each of p directions.

    Direction i has the inner products b[:, i] with the eigenvectors and c[i] with itself.
    """
    if r is None or len(xi) < r:
        return c
    squares, total = b**2, np.zeros(len(c))
    norms = np.sqrt(squares.sum(axis=0))
    for k in range(r):
        offsets = xi - xi[k]
        gap = np.maximum(c - xi[0], 0.0) + norms if k == 0 else np.full(len(c), offsets[k - 1])
        total += _root(offsets, squares, gap, 1.0, c - xi[k])
    return total


def losses(xi: Vector, u: Matrix, r: int | None) -> Vector:
    """Return the decrease of the sum of the r largest eigenvalues without each of p directions.

    The columns of u are unit vectors in the coordinates of the eigenvectors.
    """
    squares, (q, p) = u**2, u.shape
    if r is None or r >= q:
        return np.asarray(xi @ squares)
    total, mirrored = np.zeros(p), np.ascontiguousarray(squares[::-1])
    for k in range(r):
        offsets = (xi[k] - xi)[::-1]  # mirrored: distances below ξ_k
        total += _root(offsets, mirrored, np.full(p, xi[k] - xi[k + 1]), 0.0, np.zeros(p))
    return total


def _root(offsets: Vector, squares: Matrix, gap: Vector, slope: float, level: Vector) -> Vector:
    """Return the root μ in (0, gap) of slope·μ − level − Σ_j squares_j/(μ − offsets_j).

    Offsets descend; one of them is 0, and the gap ends at the next above, if there is one. The
    poles at or below 0 are modelled as s + t/μ, the others as u + v/(gap − μ), with the value and
    the derivative of the sums (Li 1993). A step out of the bracket is replaced by its middle.
    """
    above = int((offsets > 0).sum())
    low, high, mu = np.zeros_like(gap), gap, 0.5 * gap
    tiny = _LARGEST_TOL * float(np.max(np.abs(offsets)) + np.max(gap, initial=0.0))
    with np.errstate(all="ignore"):  # a step that is not finite is out of the bracket
        for _ in range(_MAX_STEPS):
            distance = mu - offsets[:, None]
            terms = squares / distance
            slopes = terms / distance
            s, ds = terms[above:].sum(axis=0), slopes[above:].sum(axis=0)
            u, du = slope * mu - terms[:above].sum(axis=0), slope + slopes[:above].sum(axis=0)
            value = u - s - level
            low, high = np.where(value < 0, mu, low), np.where(value > 0, mu, high)
            t, a = ds * mu**2, ds * mu - s - level
            if above:  # the root in (0, gap) of a − t/μ + v/(gap − μ)
                rest = gap - mu
                v = du * rest**2
                a = a + u - du * rest
                B = a * gap + t + v
                root = np.sqrt(np.maximum(B**2 - 4.0 * a * t * gap, 0.0))
                step = np.where(B > 0, 2.0 * t * gap / (B + root), (B - root) / (2.0 * a))
            else:  # the positive root of slope·μ + a − t/μ
                root = np.sqrt(a**2 + 4.0 * slope * t)
                step = np.where(a > 0, 2.0 * t / (a + root), (root - a) / (2.0 * slope))
            step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            exact = np.abs(value) <= _ROOT_TOL * (np.abs(u) + s + np.abs(level))
            change, mu = np.abs(step - mu), np.where(exact, mu, step)
            if bool(np.all(exact | (change <= _ROOT_TOL * mu + tiny))):
                break
    return np.where(gap > 0, mu, 0.0)

r"""The criterion by which rules search for a basis, and what one point more or less does to it.

Washizawa (2012), (33) and (40): the variance :math:`\sum_{i\le r}\xi_i` that the best r axes in
the span of the basis hold, ξ the eigenvalues of :math:`K_y^\dagger K_{xy}^THK_{xy}`; rows count
as often as their weights say. In orthonormal coordinates of the span the scatter of the rows is
diag(ξ), once rotated. Then

- a point more borders it: a direction f beyond the span, with the products b to the old
  coordinates and c with itself, gives the roots of :math:`\lambda - c = \sum_j
  b_j^2/(\lambda-\xi_j)`, one above each ξ;
- a point less takes a direction u of the span out of it, and leaves the roots of
  :math:`\sum_j u_j^2/(\xi_j-\lambda) = 0`, one below each ξ.
"""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector, eigh
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.problem import KernelProblem

# Roots are found to these shares: of themselves, and of the largest ξ.
_OF_ROOT, _OF_LARGEST, _STEPS = 1e-14, 1e-16, 100


def captured(problem: KernelProblem, basis: Basis) -> float:
    """Return the criterion for a basis: one pass over the rows."""
    span = Span(problem.kernel, basis, problem.source)
    seen = problem.source.fold(KernelMoments(span, problem.source, center=problem.center))
    r, T = problem.n_leading, span.whitener
    values, _ = eigh(T.T @ seen.scatter @ T, None if r is None else min(r, span.rank))
    return float(values.sum())


def centred(problem: KernelProblem, features: Matrix) -> Matrix:
    """Centre features of all rows, and weigh them by the roots of the weights, in place."""
    weights = problem.source.weights
    if problem.center:
        count = problem.source.count
        features -= features.mean(axis=0) if weights is None else weights @ features / count
    if weights is not None:
        features *= np.sqrt(weights)[:, None]
    return features


def gains(xi: Vector, b: Matrix, c: Vector, r: int | None) -> Vector:
    """Return what each of p directions would add to the sum of the r largest.

    Parameters
    ----------
    xi : ndarray of shape (q,)
        Eigenvalues of the scatter, largest first.
    b : ndarray of shape (q, p)
        Products of each direction with the eigenvectors.
    c : ndarray of shape (p,)
        Its product with itself.
    r : int or None
        How many axes count; None: all.
    """
    if r is None or len(xi) < r:
        return c
    squares, total = b**2, np.zeros(len(c))
    far = np.sqrt(squares.sum(axis=0))
    for k in range(r):
        offsets = xi - xi[k]
        gap = np.maximum(c - xi[0], 0.0) + far if k == 0 else np.full(len(c), offsets[k - 1])
        total += _root(offsets, squares, gap, 1.0, c - xi[k])
    return total


def losses(xi: Vector, u: Matrix, r: int | None) -> Vector:
    """Return what the sum of the r largest loses with each of p directions.

    Parameters
    ----------
    xi : ndarray of shape (q,)
        Eigenvalues of the scatter, largest first.
    u : ndarray of shape (q, p)
        Directions: unit vectors in the coordinates of the eigenvectors.
    r : int or None
        How many axes count; None: all.
    """
    squares, q = u**2, len(xi)
    if r is None or r >= q:
        return np.asarray(xi @ squares)
    total, upwards = np.zeros(u.shape[1]), np.ascontiguousarray(squares[::-1])
    for k in range(r):
        offsets = (xi[k] - xi)[::-1]  # mirrored: from ξ_k down is up
        gap = np.full(u.shape[1], xi[k] - xi[k + 1])
        total += _root(offsets, upwards, gap, 0.0, np.zeros(u.shape[1]))
    return total


def _root(offsets: Vector, squares: Matrix, gap: Vector, slope: float, level: Vector) -> Vector:
    """Return the root μ in (0, gap) of slope·μ − level − Σ_j squares_j/(μ − offsets_j).

    Offsets fall; one of them is 0, and the gap ends at the next above where there is one. What
    the poles at or below 0 give is modelled as s + t/μ, the rest as u + v/(gap − μ), with the
    value and the slope that they have (Li 1993). A step out of the bracket is halved.
    """
    above = int((offsets > 0).sum())
    low, high, mu = np.zeros_like(gap), gap, 0.5 * gap
    small = _OF_LARGEST * float(np.max(np.abs(offsets)) + np.max(gap, initial=0.0))
    with np.errstate(all="ignore"):  # a step that is not finite is out of the bracket
        for _ in range(_STEPS):
            away = mu - offsets[:, None]
            terms = squares / away
            slopes = terms / away
            s, steep = terms[above:].sum(axis=0), slopes[above:].sum(axis=0)
            u, rise = slope * mu - terms[:above].sum(axis=0), slope + slopes[:above].sum(axis=0)
            value = u - s - level
            low, high = np.where(value < 0, mu, low), np.where(value > 0, mu, high)
            t, beneath = steep * mu**2, s - steep * mu + level
            if above:
                left = gap - mu
                step = _between_poles(t, rise * left**2, u - rise * left - beneath, gap)
            else:
                step = _above_poles(t, -beneath, slope)
            step = np.where((step > low) & (step < high), step, 0.5 * (low + high))
            found = np.abs(value) <= _OF_ROOT * (np.abs(u) + s + np.abs(level))
            moved, mu = np.abs(step - mu), np.where(found, mu, step)
            if bool(np.all(found | (moved <= _OF_ROOT * mu + small))):
                break
    return np.where(gap > 0, mu, 0.0)


def _between_poles(t: Vector, v: Vector, a: Vector, gap: Vector) -> Vector:
    """Return the root in (0, gap) of a − t/μ + v/(gap − μ), t and v not negative."""
    B = a * gap + t + v
    root = np.sqrt(np.maximum(B**2 - 4.0 * a * t * gap, 0.0))
    return np.where(B > 0, 2.0 * t * gap / (B + root), (B - root) / (2.0 * a))


def _above_poles(t: Vector, a: Vector, slope: float) -> Vector:
    """Return the positive root of slope·μ + a − t/μ, t not negative."""
    root = np.sqrt(a**2 + 4.0 * slope * t)
    return np.where(a > 0, 2.0 * t / (a + root), (root - a) / (2.0 * slope))

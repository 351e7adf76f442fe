"""Pre-images by descent: Mika's fixed point and L-BFGS.

All points descend at once, each with its own step and memory: the result for a point does not
depend on the others. Only their kernel with the basis is computed together, as one matrix product.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.checks import check_integer, check_positive, require
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.kernels.points import Points
from mercer.preimage.base import Estimate, Index, Preimage, Slope, Target

# A denominator below this share of its terms is rounding, or has the wrong sign.
_VANISHED = 1e-10
# A refused step below this share of the basis' scale means a minimum, to rounding.
_LEAST_STEP = 1e-13
# Rounding of ρ, as a share of its terms.
_NOISE = 1e-14
# The share of the decrease predicted by the slope that a step must reach (Armijo).
_ARMIJO = 1e-4


class DescentPreimage(Preimage):
    """A pre-image method that follows the gradient of the kernel."""

    max_iter: int
    tol: float
    restarts: int
    memory: int = 0
    """Steps that L-BFGS remembers; 0 is Mika's fixed point."""

    def check(self) -> None:
        check_integer(self, "max_iter")
        check_positive(self, "tol")
        require(self, "restarts", self.restarts in range(11), "an integer from 0 to 10")

    def probe(self, kernel: Kernel, rows: Matrix) -> None:
        kernel.slopes(DiagonalPair(Points(rows)))

    def seek(self, target: Target, scores: Matrix, state: Any) -> Estimate:
        # The first start ensures that no result is farther than the nearest row of the basis.
        nearest, y = target.nearest(2**self.restarts), target.components.basis.rows
        first = Descent(target, self, y[nearest[:, 0]], np.arange(len(target.gamma))).run()
        rows, converged, steps, value = first.rows, first.converged, first.steps, first.value
        for trial in range(1, self.restarts + 1):
            points = np.flatnonzero(~converged)
            if not len(points):
                break
            start = y[nearest[points, : 2**trial]].mean(axis=1)
            other = Descent(target, self, start, points).run()
            steps[points] += other.steps
            better = ~(other.value >= value[points])  # NaN is worse than any value
            at = points[better]
            rows[at], value[at] = other.rows[better], other.value[better]
            converged[at] = other.converged[better]
        return rows, converged, steps


class FixedPoint(DescentPreimage):
    r"""Stationary points of :math:`\rho(r) = k(r,r) - 2\sum_j\gamma_j k(r,y_j)`.

    .. math:: r \leftarrow \frac{\sum_j \gamma_j (a_j - 2b_j)\, y_j}
                                {a_r + 2c_r - 2\sum_j \gamma_j (b_j + c_j)}

    with a, b, c the derivatives of k(r, yⱼ) by the dot product, the squared distance and ‖r‖²,
    and :math:`a_r, c_r` those of k(r, r). For the RBF this is the iteration
    :math:`\sum\gamma_j k_j y_j / \sum\gamma_j k_j` of Mika et al. (1999), for kernels of the
    dot product their form :math:`\sum\gamma_j a_j y_j / a_r`, for the linear kernel PCA's
    reconstruction in one step. A step that would increase ρ is halved.

    Starts from the row of the basis that is nearest in feature space. Points that do not converge
    start again from the mean of the 2, 4, 8, … nearest rows and keep the best result.

    Parameters
    ----------
    max_iter : int
        Steps from each start, at most.
    tol : float
        Step at which a point has converged, relative to the scale of the basis.
    restarts : int
        Further starts if the first fails.

    Examples
    --------
    >>> from mercer.preimage import FixedPoint
    >>> FixedPoint(max_iter=50)
    FixedPoint(50)
    """

    def __init__(self, max_iter: int = 300, tol: float = 1e-6, restarts: int = 3) -> None:
        self.max_iter, self.tol, self.restarts = max_iter, tol, restarts


class Gradient(DescentPreimage):
    r"""Minima of :math:`\rho(r) = k(r,r) - 2\sum_j\gamma_j k(r,y_j)`, by L-BFGS.

    Source: aguilera (25); Nocedal & Wright (2006), alg. 7.4. Works with every kernel that has a
    gradient, even if the fixed point has no denominator.

    Parameters
    ----------
    max_iter, tol, restarts
        As for `FixedPoint`.
    memory : int
        Number of steps from which the curvature is estimated.

    Examples
    --------
    >>> from mercer.preimage import Gradient
    >>> Gradient(tol=1e-6)
    Gradient(tol=1e-06)
    """

    def __init__(
        self, max_iter: int = 300, tol: float = 1e-8, restarts: int = 3, memory: int = 6
    ) -> None:
        self.max_iter, self.tol, self.restarts, self.memory = max_iter, tol, restarts, memory

    def check(self) -> None:
        super().check()
        check_integer(self, "memory")


class Descent:
    """L-BFGS for all points at once, scaled by the denominator; Mika's rule without memory.

    r ← numerator/denominator is r minus the gradient over twice the denominator: a descent
    direction as long as the denominator is positive. It is halved until ρ decreases.
    """

    def __init__(
        self, target: Target, method: DescentPreimage, start: Matrix, points: Index
    ) -> None:
        self.target, self.points, self.scale = target, points, target.components.scale
        self.max_iter, self.tol, memory = method.max_iter, method.tol, int(method.memory)
        q, d = start.shape
        self.rows, self.steps = start.copy(), np.zeros(q, np.int64)
        self.converged, self.failed = np.zeros(q, bool), np.zeros(q, bool)
        self.stride, self.value = np.ones(q), np.empty(q)
        self.gradient, self.direction = np.empty((q, d)), np.empty((q, d))
        # L-BFGS pairs (s, y) and 1/(s·y); 0 where there is none.
        self.s, self.y = (np.zeros((memory, q, d)) for _ in range(2))
        self.inverse = np.zeros((memory, q))

    def run(self) -> Descent:
        self._update(np.arange(len(self.rows)), self.target.slope(self.rows, self.points))
        for _ in range(self.max_iter):
            active = np.flatnonzero(~(self.converged | self.failed))
            if not len(active):
                break
            self._step(active)
        return self

    def _step(self, active: Index) -> None:
        """Try a step for each point; halve those that do not decrease ρ."""
        step = self.stride[active, None] * self.direction[active]
        trial, value, gradient = self.rows[active] + step, self.value[active], self.gradient[active]
        slope = self.target.slope(trial, self.points[active])
        self.steps[active] += 1
        accepted = slope.value <= value + _ARMIJO * np.einsum("ij,ij->i", step, gradient)
        # Where rounding hides whether ρ decreases, its gradient must.
        noise = _NOISE * (np.abs(value) + self.target.norm_sq[self.points[active]])
        flatter = _norms(slope.gradient) <= 0.9 * _norms(gradient)
        accepted |= (slope.value <= value + noise) & flatter
        accepted &= np.isfinite(slope.gradient).all(axis=1)  # a step that overflows is halved too
        refused, moved = active[~accepted], active[accepted]
        self.converged[refused] = _norms(step[~accepted]) <= _LEAST_STEP * self.scale
        self.stride[refused] *= 0.5
        slope = Slope(*(part[accepted] for part in slope))
        if len(self.s):
            self._remember(moved, step[accepted], slope.gradient - gradient[accepted])
        self.rows[moved] = trial[accepted]
        self.stride[moved] = np.minimum(1.0, 2.0 * self.stride[moved])
        self._update(moved, slope)

    def _update(self, moved: Index, slope: Slope) -> None:
        """Store ρ and its gradient at the new rows, and choose the next direction."""
        self.value[moved], self.gradient[moved] = slope.value, slope.gradient
        ignored = slope.size == 0  # columns that the kernel does not use
        vanished = (slope.denominator <= _VANISHED * slope.size) & ~ignored
        bad = vanished.any(axis=1) | ignored.all(axis=1)
        scaling = 0.5 / np.where(ignored | bad[:, None], 1.0, slope.denominator)
        failed = bad
        if len(self.s):
            norms = _norms(slope.gradient)
            default = 0.1 * self.scale / np.where(norms, norms, 1.0)
            scaling[bad] = np.where(norms > 0, default, 1.0)[bad, None]
            failed = ignored.all(axis=1)
        self.failed[moved] = failed | ~np.isfinite(slope.value)
        short = _norms(scaling * slope.gradient) <= self.tol * self.scale
        self.converged[moved] = short & ~bad & ~self.failed[moved]
        self.direction[moved] = -self._times_inverse_hessian(moved, slope.gradient, scaling)

    def _remember(self, moved: Index, s: Matrix, y: Matrix) -> None:
        """Store a step and the change of the gradient along it, if ρ is convex there."""
        product = np.einsum("ij,ij->i", s, y)
        convex = product > 1e-10 * _norms(s) * _norms(y)
        moved = moved[convex]
        pairs = ((self.s, s[convex]), (self.y, y[convex]), (self.inverse, 1.0 / product[convex]))
        for memory, new in pairs:
            memory[1:, moved] = memory[:-1, moved]
            memory[0, moved] = new

    def _times_inverse_hessian(self, moved: Index, gradient: Matrix, scaling: Matrix) -> Matrix:
        """Return the gradient times the inverse Hessian: Nocedal & Wright (2006), alg. 7.4."""
        g, alpha = gradient.copy(), np.zeros((len(self.s), len(moved)))
        for i in range(len(self.s)):
            alpha[i] = self.inverse[i, moved] * np.einsum("ij,ij->i", self.s[i, moved], g)
            g -= alpha[i][:, None] * self.y[i, moved]
        g *= scaling
        for i in reversed(range(len(self.s))):
            beta = self.inverse[i, moved] * np.einsum("ij,ij->i", self.y[i, moved], g)
            g += (alpha[i] - beta)[:, None] * self.s[i, moved]
        return g


def _norms(rows: Matrix) -> Vector:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float64)

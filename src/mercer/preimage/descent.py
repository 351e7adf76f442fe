"""Descent to the rows nearest to many points at once, each on its own way.

Every point has its own step and its own memory; only the kernel between all of them and the
basis is made together, as one matrix product. So the answer of a point does not depend on
which others are sought beside it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.preimage.base import Sought
from mercer.preimage.target import Index, Slope, Target

# The weight is lost in rounding, or of the wrong sign, below this share of its terms.
_VANISHED = 1e-10
# A step that is refused at this share of the spread is at the bottom, to rounding.
_LEAST = 1e-13
# Rounding of ρ, as a share of its terms.
_NOISE = 1e-14
# Part of the fall that the slope promises, which a step must bring.
_ARMIJO = 1e-4


class Way(NamedTuple):
    """How to descend.

    Attributes
    ----------
    max_iter : int
        Evaluations at most.
    tol : float
        Step, as a share of the basis' spread, at which a point has arrived.
    memory : int
        Steps that L-BFGS remembers; none leaves pull/weight itself: Mika's rule.
    restarts : int
        Further starts for points that do not arrive.
    """

    max_iter: int
    tol: float
    memory: int
    restarts: int


def search(target: Target, way: Way) -> Sought:
    """Descend from the nearest row; where that fails, from means of the nearest 2, 4, 8.

    The first start makes sure that no row found is farther than the nearest of the basis.
    """
    q = len(target.gamma)
    nearest, y = target.nearest(2**way.restarts), target.axes.basis.rows
    best = Descent(target, way, y[nearest[:, 0]], np.arange(q)).run()
    rows, converged, steps, value = best.rows, best.converged, best.steps, best.value
    for trial in range(1, way.restarts + 1):
        who = np.flatnonzero(~converged)
        if not len(who):
            break
        start = y[nearest[who, : 2**trial]].mean(axis=1)
        other = Descent(target, way, start, who).run()
        steps[who] += other.steps
        better = ~(other.value >= value[who])  # NaN is worse than any
        at = who[better]
        rows[at], value[at] = other.rows[better], other.value[better]
        converged[at] = other.converged[better]
    return Sought(rows, converged, steps)


class Descent:
    """L-BFGS of all points in step, scaled by the weight; Mika's rule where it has no memory.

    r ← pull/weight is r less the gradient over twice the weight: as long as the weight is
    positive it points downhill, and halving it until ρ falls keeps it from going astray.
    """

    def __init__(self, target: Target, way: Way, start: Matrix, who: Index) -> None:
        self.target, self.way, self.who = target, way, who
        self.spread = target.axes.spread
        q, d = start.shape
        self.rows, self.steps = start.copy(), np.zeros(q, np.int64)
        self.converged, self.lost = np.zeros(q, bool), np.zeros(q, bool)
        self.stride, self.value = np.ones(q), np.empty(q)
        self.gradient, self.step = np.empty((q, d)), np.empty((q, d))
        self.moved, self.turned = (np.zeros((way.memory, q, d)) for _ in range(2))
        self.curve = np.zeros((way.memory, q))  # 1/(moved · turned); 0 where there is none

    def run(self) -> Descent:
        everyone = np.arange(len(self.rows))
        first = self.target.at(self.rows, self.who)
        self._arrive(everyone, first, 2.0 * (first.weight * self.rows - first.pull))
        for _ in range(self.way.max_iter):
            at = np.flatnonzero(~(self.converged | self.lost))
            if not len(at):
                break
            self._move(at)
        return self

    def _move(self, at: Index) -> None:
        """Try a step of each point; halve those that do not bring ρ down."""
        step = self.stride[at, None] * self.step[at]
        trial = self.rows[at] + step
        found = self.target.at(trial, self.who[at])
        self.steps[at] += 1
        gradient = 2.0 * (found.weight * trial - found.pull)
        falls = self._falls(at, step, found.value, gradient)
        stay, go = at[~falls], at[falls]
        self.converged[stay] = _length(step[~falls]) <= _LEAST * self.spread
        self.stride[stay] *= 0.5
        found, gradient = Slope(*(part[falls] for part in found)), gradient[falls]
        self._remember(go, step[falls], gradient - self.gradient[go])
        self.rows[go] = trial[falls]
        self.stride[go] = np.minimum(1.0, 2.0 * self.stride[go])
        self._arrive(go, found, gradient)

    def _falls(self, at: Index, step: Matrix, value: Vector, gradient: Matrix) -> Any:
        """Tell which steps go down: ρ falls, or, where its rounding hides that, its slope does."""
        old, steep = self.value[at], self.gradient[at]
        falls = value <= old + _ARMIJO * np.einsum("ij,ij->i", step, steep)
        level = value <= old + _NOISE * (np.abs(old) + self.target.length[self.who[at]])
        falls |= level & (_length(gradient) <= 0.9 * _length(steep))
        # NaN falls nowhere: a step that overflows is halved too.
        return falls & np.isfinite(gradient).all(axis=1)

    def _arrive(self, at: Index, found: Slope, gradient: Matrix) -> None:
        """Take up ρ and its slope at the new rows, and choose the next step."""
        self.value[at], self.gradient[at] = found.value, gradient
        held = found.size == 0  # columns that the kernel does not look at
        bad = ((found.weight <= _VANISHED * found.size) & ~held).any(axis=1) | held.all(axis=1)
        scale = 0.5 / np.where(held | bad[:, None], 1.0, found.weight)
        if self.way.memory:
            flat = _length(gradient)
            scale[bad] = np.where(flat > 0, 0.1 * self.spread / np.where(flat, flat, 1.0), 1.0)[
                bad, None
            ]
            self.lost[at] = (held.all(axis=1)) | ~np.isfinite(found.value)
        else:
            self.lost[at] = bad | ~np.isfinite(found.value)
        near = _length(scale * gradient) <= self.way.tol * self.spread
        self.converged[at] = near & ~bad & ~self.lost[at]
        self.step[at] = -self._turned(at, gradient, scale)

    def _remember(self, at: Index, moved: Matrix, turned: Matrix) -> None:
        """Push a step and the change of the gradient along it, where ρ curves upwards."""
        if not self.way.memory:
            return
        bend = np.einsum("ij,ij->i", moved, turned)
        up = bend > 1e-10 * _length(moved) * _length(turned)
        at, moved, turned, bend = at[up], moved[up], turned[up], bend[up]
        for kept, new in ((self.moved, moved), (self.turned, turned), (self.curve, 1.0 / bend)):
            kept[1:, at] = kept[:-1, at]
            kept[0, at] = new

    def _turned(self, at: Index, gradient: Matrix, scale: Matrix) -> Matrix:
        """Return the gradient times the inverse Hessian: Nocedal & Wright (2006), alg. 7.4."""
        g, shares = gradient.copy(), np.zeros((self.way.memory, len(at)))
        for i in range(self.way.memory):
            shares[i] = self.curve[i, at] * np.einsum("ij,ij->i", self.moved[i, at], g)
            g -= shares[i][:, None] * self.turned[i, at]
        g *= scale
        for i in reversed(range(self.way.memory)):
            back = self.curve[i, at] * np.einsum("ij,ij->i", self.turned[i, at], g)
            g += (shares[i] - back)[:, None] * self.moved[i, at]
        return g


def _length(rows: Matrix) -> Vector:
    length: Any = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(length, np.float64)

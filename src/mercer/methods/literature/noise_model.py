r"""A Gaussian noise model of rows in feature space, with weighted points (Tipping 2001).

Its covariance is :math:`C = \sigma^2 I + \sum_i w_i z_iz_i^T`, with points z and weights w ≥ 0. For
N rows with scatter S the log-likelihood and its gradient are

.. math:: \mathcal L(w) = -\tfrac12\left[N\log|C| + \mathrm{tr}(C^{-1}S)\right],\qquad
          \frac{\partial\mathcal L}{\partial w_i} = \tfrac12(q_i - Na_i),

with :math:`a_i = z_i^TC^{-1}z_i` and :math:`q_i = z_i^TC^{-1}SC^{-1}z_i`. At the maximum
:math:`q_i = Na_i` where :math:`w_i > 0`, and :math:`q_i \le Na_i` for the other points, which are
most of them. Vectors are coordinates in an orthonormal basis of the span of the points; the terms
outside the span do not depend on w.

In Tipping's terms the latent variables have the covariance :math:`\Sigma` with
:math:`\Sigma_{ii} = w_i - w_i^2a_i`, and means with :math:`\sum_n\mu_{ni}^2 = w_i^2q_i`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.linalg.lapack

from mercer.arrays import Matrix, Vector, eigh

UPDATES = ("newton", "fast", "em")
"""How weights may be updated."""
# Initial, least and largest damping of a Newton step, and its factors after a good and a bad one.
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING, _LESS, _MORE = 1e-6, 1e-9, 1e2, 0.1, 16.0
# Ratio of the actual to the predicted rise above which a step is good.
_GOOD = 0.75
# A point may be pruned if it adds no more than this to what C explains along it.
_NEGLIGIBLE = 1e-3
# Most rounds of block pivoting in a quadratic program.
_MAX_ROUNDS = 50
# In the search for the noise: least noise, as a share of the most; most trials; smallest interval
# of log σ²; decrease of σ² while no lower end is known; distance of a trial from both ends.
_LEAST_NOISE, _TRIALS, _NEAR, _DECREASE, _INSIDE = 1e-10, 40, 1e-3, 8.0, 0.35


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """The rows, the points and the noise variance: everything but the weights."""

    points: Matrix  # (p, r) coordinates of the points along the eigenvectors of the scatter
    scatter: Vector  # (r,) eigenvalues of the scatter of the rows
    count: float  # number of rows
    noise: float = 1.0  # σ²
    unit: float = 1.0  # the variance in which squared lengths and the noise are measured

    @classmethod
    def of_scatter(cls, points: Matrix, scatter: Matrix, count: float) -> NoiseModel:
        """Return the model for rows with this scatter, and points in the same coordinates."""
        values, U = eigh(scatter)
        unit = float(values[0]) / count
        points = points @ U / math.sqrt(unit)
        return cls(points, np.maximum(values / unit, 0.0), count, unit=unit)

    def with_noise(self, noise: float) -> NoiseModel:
        return replace(self, noise=noise)

    @cached_property
    def variances(self) -> Vector:
        """Mean square of the rows along each point: if σ² is above all of them, no weight is."""
        squares = self.points**2
        return np.asarray((squares @ self.scatter) / (squares.sum(axis=1) * self.count))

    def fit(self, weights: Vector) -> NoiseFit:
        """Return the model with these weights.

        With U an orthonormal basis of the m points of positive weight, C⁻¹ = UPUᵀ + (I − UUᵀ)/σ²:
        if they are few, an m×m matrix is inverted instead of r×r.
        """
        positive = weights > 0
        Z, w, r = self.points[positive], weights[positive], len(self.scatter)
        U: Matrix | None = None
        if len(w) < r:
            U, R = np.linalg.qr(Z.T)
            Z = R.T
        C = (Z.T * w) @ Z
        C[np.diag_indices_from(C)] += self.noise
        L, P = C, C.copy()
        if len(C):
            L = scipy.linalg.cholesky(C, lower=True, check_finite=False)
            P, _ = scipy.linalg.lapack.dpotri(L, lower=1)
            P = np.tril(P) + np.tril(P, -1).T
        logdet = 2.0 * float(np.log(np.diag(L)).sum()) + (r - len(C)) * math.log(self.noise)
        diagonal = np.diag(P)
        if U is not None:
            diagonal = np.einsum("ij,ij->i", U @ P, U) + (1.0 - (U**2).sum(axis=1)) / self.noise
        value = -0.5 * (self.count * logdet + float(self.scatter @ diagonal))
        return NoiseFit(self, weights, value, U, P)


@dataclass(frozen=True, eq=False)
class NoiseFit:
    """A noise model with weights, its log-likelihood in the model's unit, and the steps from it."""

    model: NoiseModel
    weights: Vector
    value: float
    basis: Matrix | None  # U
    inverse: Matrix  # P, or C⁻¹ without U

    @cached_property
    def solved(self) -> Matrix:
        """ZC⁻¹."""
        Z, U, P = self.model.points, self.basis, self.inverse
        if U is None:
            return Z @ P
        inside = Z @ U
        outside = Z - inside @ U.T
        outside[self.weights > 0] = 0.0  # it is rounding, which σ² would amplify
        return np.asarray((inside @ P) @ U.T + outside / self.model.noise)

    @cached_property
    def a(self) -> Vector:
        return np.asarray(np.einsum("ij,ij->i", self.solved, self.model.points))

    @cached_property
    def q(self) -> Vector:
        return np.asarray(self.solved**2 @ self.model.scatter)

    @cached_property
    def gradient(self) -> Vector:
        return np.asarray(0.5 * (self.q - self.model.count * self.a))

    @property
    def noise(self) -> float:
        """The noise variance, in the units of the rows."""
        return self.model.noise * self.model.unit

    @property
    def likelihood(self) -> float:
        """The log-likelihood of the rows in their units, within the span of the points."""
        directions = self.model.count * len(self.model.scatter)
        return self.value - 0.5 * directions * math.log(self.model.unit)

    @property
    def support(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Indices of the points of positive weight."""
        return np.flatnonzero(self.weights)

    @cached_property
    def violation(self) -> float:
        """Violation of the conditions of a maximum: the largest q/(Na) − 1, absolute if w > 0."""
        off = self.q / (self.model.count * self.a) - 1.0
        return float(np.max(np.where(self.weights > 0, np.abs(off), off), initial=0.0))

    def em_step(self) -> NoiseFit:
        """Take the EM step w ← Σ_n μ²/N + Σ_ii: the likelihood never falls."""
        w = self.weights * (1.0 + self.weights * (self.q / self.model.count - self.a))
        return self.model.fit(np.maximum(w, 0.0))

    def fast_step(self) -> NoiseFit:
        """Take the fast step w ← Σ_n μ²/(N(1 − Σ_ii/w)): the likelihood usually rises."""
        return self.model.fit(self.weights * (self.q / (self.model.count * self.a)))

    def newton_step(self, damping: float) -> tuple[NoiseFit, float] | None:
        """Maximize gᵀ(x − w) − ½(x − w)ᵀF(x − w) over x ≥ 0; return also the rise it predicts.

        With A = ZC⁻¹Zᵀ and Q = ZC⁻¹SC⁻¹Zᵀ, F is A∘Q − ½N A∘A, and damping adds to its diagonal a
        share of that of its expected value ½N A∘A. Over the points that have a weight or would gain
        by one; the others stay at zero. None if there is no maximum.
        """
        active = np.flatnonzero((self.weights > 0) | (self.gradient > 0))
        V, w, g = self.solved[active], self.weights[active], self.gradient[active]
        A = V @ self.model.points[active].T
        expected = 0.5 * self.model.count * A * A
        F = A * ((V * self.model.scatter) @ V.T) - expected
        F[np.diag_indices_from(F)] += damping * np.diag(expected)
        try:
            x = nonnegative_qp(F, g + F @ w)
        except scipy.linalg.LinAlgError:
            return None
        weights, step = np.zeros_like(self.weights), x - w
        weights[active] = x
        return self.model.fit(weights), float(g @ step - 0.5 * (step @ F @ step))

    def prune(self) -> NoiseFit | None:
        """Return the model without points of negligible weight, if that is as likely; or None.

        With the others fixed, the best weight of a point is 0 if q ≤ Na(1 − wa). Several points may
        stand for each other: the likelihood decides.
        """
        share = self.weights * self.a
        idle = self.q <= self.model.count * self.a * (1.0 - share)
        out = (self.weights > 0) & idle & (share < _NEGLIGIBLE)
        while out.any():
            fit = self.model.fit(np.where(out, 0.0, self.weights))
            if fit.value >= self.value:
                return fit
            out &= share < 0.5 * np.max(share[out])
        return None


def ascent(
    model: NoiseModel,
    weights: Vector | None = None,
    *,
    update: str = "newton",
    max_iter: int,
    tol: float,
) -> Iterator[NoiseFit]:
    """Yield fits of rising likelihood, from these weights, or equal ones, to a maximum.

    A step that would lower the likelihood is not taken: more damping is tried, then the fast step,
    then the EM step. Ends when the conditions of a maximum hold to `tol`, or when no step rises:
    then they hold to rounding.
    """
    weights = np.full(len(model.points), 1.0 / model.count) if weights is None else weights
    fit, damping = model.fit(weights), _DAMPING
    yield fit
    for _ in range(max_iter):
        if fit.violation <= tol:
            return
        higher = None
        if update == "newton":
            higher, damping = _damped_step(fit, damping)
        higher = _simple_step(fit, update) if higher is None else higher
        if higher is None:
            return
        fit = higher
        yield fit
        pruned = None if update == "newton" else fit.prune()
        if pruned is not None:
            fit = pruned
            yield fit


def _damped_step(fit: NoiseFit, damping: float) -> tuple[NoiseFit | None, float]:
    """Return a Newton step that rises, if damping helps, and the damping to begin the next with."""
    while damping <= _MOST_DAMPING:
        result = fit.newton_step(damping)
        if result is not None and result[0].value > fit.value:
            higher, predicted = result
            good = higher.value - fit.value > _GOOD * predicted
            return higher, max(damping * (_LESS if good else 1.0), _LEAST_DAMPING)
        damping *= _MORE
    return None, _DAMPING


def _simple_step(fit: NoiseFit, update: str) -> NoiseFit | None:
    """Take the fast step, if it rises, or the EM step; None: neither rises."""
    if update != "em":
        higher = fit.fast_step()
        if higher.value > fit.value:
            return higher
    higher = fit.em_step()
    return higher if higher.value > fit.value else None


def nonnegative_qp(F: Matrix, b: Vector) -> Vector:
    """Return the x ≥ 0 that minimizes ½xᵀFx − bᵀx, F positive definite.

    Block pivoting (Portugal, Júdice & Vicente 1994): all negative entries are set to zero at once,
    and some of those that would gain by being positive are freed. If the rounds do not suffice, the
    positive part of the last result is returned.
    """
    free = np.ones(len(b), bool)
    least = 1e-9 * float(np.max(np.abs(b), initial=0.0))
    for _ in range(_MAX_ROUNDS):
        i, x = np.flatnonzero(free), np.zeros(len(b))
        if not len(i):
            break
        factor = scipy.linalg.cho_factor(F[np.ix_(i, i)], lower=True, check_finite=False)
        x[i] = scipy.linalg.cho_solve(factor, b[i], check_finite=False)
        if not np.any(x < 0):
            slope = np.where(free, 0.0, F @ x - b)
            rising = np.flatnonzero(slope < -least)
            if not len(rising):
                break
            free[rising[np.argsort(slope[rising], kind="stable")[: -(-len(rising) // 4)]]] = True
            continue
        free &= ~(x < 0)
    return np.maximum(x, 0.0)


def most_likely(model: NoiseModel, weights: Vector | None = None, **options: Any) -> NoiseFit:
    """Return the fit of largest likelihood."""
    *_, fit = ascent(model, weights, **options)
    return fit


def search_noise(model: NoiseModel, n_points: int, **options: Any) -> NoiseFit:
    """Return the fit with this many points of positive weight, or the nearest number tried.

    With few exceptions, more noise leaves fewer points: their number is interpolated between too
    little noise and too much, and each fit starts from the last. The first guess is PCA's noise,
    the variance of the component of this number.
    """

    def distance(fit: NoiseFit) -> tuple[int, int]:
        return abs(len(fit.support) - n_points), -len(fit.support)

    most = float(model.variances.max())
    least = _LEAST_NOISE * most
    guess = float(model.scatter[min(n_points, len(model.scatter)) - 1]) / model.count
    # log σ² with too few points, and with too many (0 points: not known yet), and their numbers.
    high, few, low, many = math.log(most), 1, math.log(least), 0
    at = min(max(math.log(max(guess, least)), low), high - 0.1)
    fit = best = most_likely(model.with_noise(math.exp(at)), **options)
    for _ in range(_TRIALS - 1):
        points = max(1, len(fit.support))
        if points == n_points or (points < n_points and at == low):
            break
        if points > n_points:
            low, many = at, points
        else:
            high, few = at, points
        if high - low < _NEAR:
            break
        if many:
            share = (math.log(n_points) - math.log(few)) / (math.log(many) - math.log(few))
            at = high + min(max(share, _INSIDE), 1.0 - _INSIDE) * (low - high)
        else:
            at = max(low, high - math.log(_DECREASE))
        fit = most_likely(model.with_noise(math.exp(at)), fit.weights, **options)
        best = min(best, fit, key=distance)
    return best

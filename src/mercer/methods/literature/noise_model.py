r"""Noise, and weighed points: a Gaussian model of rows in feature space (Tipping 2001).

The model's covariance is :math:`C = \sigma^2 I + \sum_i w_i z_iz_i^T`, with points z and weights
w ≥ 0. Of rows with the scatter S and the count N its likelihood is

.. math:: \mathcal L(w) = -\tfrac12\left[N\log|C| + \mathrm{tr}(C^{-1}S)\right],\qquad
          \frac{\partial\mathcal L}{\partial w_i} = \tfrac12(q_i - Na_i),

with :math:`a_i = z_i^TC^{-1}z_i` and :math:`q_i = z_i^TC^{-1}SC^{-1}z_i`. At its maximum
:math:`q_i = Na_i` where :math:`w_i > 0`, and :math:`q_i \le Na_i` where :math:`w_i = 0`: of most
points. Vectors are coordinates in an orthonormal basis of the points' span; what of the rows lies
beyond it, and of log|C|, does not depend on w.

In Tipping's terms the latent variables have the covariance :math:`\Sigma` with
:math:`\Sigma_{ii} = w_i - w_i^2a_i`, and means with :math:`\sum_n\mu_{ni}^2 = w_i^2q_i`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.linalg.lapack

from mercer.arrays import Matrix, Vector, eigh

# How much a scoring step is damped at first, at least, and at most before others are tried.
_DAMPING, _LEAST_DAMPING, _MOST_DAMPING = 1e-6, 1e-9, 1e2
# Scoring steps between tries of a Newton step, at most.
_PAUSE = 4
# Below this share of its promise a Newton step is a poor one, above the next it is a good one.
_POOR, _GOOD = 0.25, 0.75
# A point that adds no more than this to what C holds along it may be tried without.
_LITTLE = 1e-3
# Rounds in which a quadratic program finds out which weights are zero.
_ROUNDS = 50


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Rows, points and the noise: all but the weights.

    Attributes
    ----------
    points : ndarray of shape (p, r)
        Coordinates of the points, along the eigenvectors of the rows' scatter.
    scatter : ndarray of shape (r,)
        Its eigenvalues.
    count : float
        Number of rows.
    noise : float
        σ².
    unit : float
        The variance that squared lengths are measured in, and the noise; weights have no unit.
    """

    points: Matrix
    scatter: Vector
    count: float
    noise: float = 1.0
    unit: float = 1.0

    def at(self, weights: Vector, step: str = "start") -> Fit:
        """Return the model with these weights.

        With U an orthonormal basis of the m points that have one, C⁻¹ = UPUᵀ + (I − UUᵀ)/σ²:
        where they are few it is m×m that is inverted, not r×r.
        """
        kept = weights > 0
        Z, w, r = self.points[kept], weights[kept], len(self.scatter)
        U: Matrix | None = None
        if len(w) < r:
            U, R = np.linalg.qr(Z.T)
            Z = R.T
        C = (Z.T * w) @ Z
        C[np.diag_indices_from(C)] += self.noise
        L, P = _inverse(C)
        logdet = 2.0 * float(np.log(np.diag(L)).sum()) + (r - len(C)) * math.log(self.noise)
        own = np.diag(P)
        if U is not None:
            own = np.einsum("ij,ij->i", U @ P, U) + (1.0 - (U**2).sum(axis=1)) / self.noise
        value = -0.5 * (self.count * logdet + float(self.scatter @ own))
        return Fit(self, weights, value, U, P, step)

    def of(self, noise: float) -> NoiseModel:
        """Return the model of more, or less, noise."""
        return replace(self, noise=noise)

    @cached_property
    def variances(self) -> Vector:
        """Mean square of the rows along each point's direction.

        A point of which it is not above σ² has no weight where it stands alone: above the largest
        of them no point has.
        """
        squares = self.points**2
        return np.asarray((squares @ self.scatter) / (squares.sum(axis=1) * self.count))


def model_of(points: Matrix, scatter: Matrix, count: float) -> NoiseModel:
    """Return the model of rows with this scatter, by points in the same coordinates."""
    values, U = eigh(scatter)
    unit = float(values[0]) / count
    values, points = np.maximum(values / unit, 0.0), points @ U / math.sqrt(unit)
    return NoiseModel(points, values, count, unit=unit)


@dataclass(frozen=True, eq=False)
class Fit:
    """A model with weights.

    Attributes
    ----------
    weights : ndarray of shape (p,)
    value : float
        The log-likelihood of what of the rows lies in the points' span, in the model's unit.
    step : str
        The update that led here.
    promised : float
        How much a Newton step was to raise the likelihood, where it is quadratic.
    """

    model: NoiseModel
    weights: Vector
    value: float
    basis: Matrix | None
    inner: Matrix
    step: str
    promised: float = 0.0

    @cached_property
    def divided(self) -> Matrix:
        """ZC⁻¹."""
        Z, U, P = self.model.points, self.basis, self.inner
        if U is None:
            return Z @ P
        inside = Z @ U
        beyond = Z - inside @ U.T
        beyond[self.weights > 0] = 0.0  # what there is of it is rounding, which σ² would blow up
        return np.asarray((inside @ P) @ U.T + beyond / self.model.noise)

    @cached_property
    def leverages(self) -> Vector:
        """The numbers a."""
        return np.asarray(np.einsum("ij,ij->i", self.divided, self.model.points))

    @cached_property
    def energies(self) -> Vector:
        """The numbers q."""
        return np.asarray(self.divided**2 @ self.model.scatter)

    @cached_property
    def gradient(self) -> Vector:
        """Slope of the likelihood in each weight."""
        return np.asarray(0.5 * (self.energies - self.model.count * self.leverages))

    @property
    def noise(self) -> float:
        """The noise variance, in the rows' units."""
        return self.model.noise * self.model.unit

    @property
    def likelihood(self) -> float:
        """The log-likelihood, of the rows in their units."""
        directions = self.model.count * len(self.model.scatter)
        return self.value - 0.5 * directions * math.log(self.model.unit)

    @property
    def kept(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Which points have a weight."""
        return np.flatnonzero(self.weights)

    @cached_property
    def violation(self) -> float:
        """How far from a maximum: |q/(Na) − 1| of points with a weight, q/(Na) − 1 of others."""
        off = self.energies / (self.model.count * self.leverages) - 1.0
        return float(np.max(np.where(self.weights > 0, np.abs(off), off), initial=0.0))

    def em(self) -> Fit:
        """Take the EM step w ← Σ_n μ²/N + Σ_ii: the likelihood never falls."""
        a, q, w = self.leverages, self.energies, self.weights
        grown = w * (1.0 + w * (q / self.model.count - a))
        return self.model.at(np.maximum(grown, 0.0), "em")

    def fast(self) -> Fit:
        """Take the fast step w ← Σ_n μ²/(N(1 − Σ_ii/w)): it mostly rises."""
        ratio = self.energies / (self.model.count * self.leverages)
        return self.model.at(self.weights * ratio, "fast")

    def scored(self, damping: float, *, expected: bool) -> Fit | None:
        """Newton's step within w ≥ 0: the most of gᵀ(x − w) − ½(x − w)ᵀF(x − w).

        With A = ZC⁻¹Zᵀ and Q = ZC⁻¹SC⁻¹Zᵀ, F is A∘Q − ½N A∘A, or what that is expected to be,
        ½N A∘A (Fisher's scoring). Of all points that have a weight, or would gain by one; the
        others stay at zero. None where there is no most.
        """
        among = np.flatnonzero((self.weights > 0) | (self.gradient > 0))
        V, w = self.divided[among], self.weights[among]
        A = V @ self.model.points[among].T
        F = 0.5 * self.model.count * A * A
        least = damping * np.diag(F)
        if not expected:
            F = A * ((V * self.model.scatter) @ V.T) - F
        F[np.diag_indices_from(F)] += least
        try:
            x = not_negative(F, self.gradient[among] + F @ w)
        except scipy.linalg.LinAlgError:
            return None
        weights = np.zeros_like(self.weights)
        weights[among] = x
        fit = self.model.at(weights, "scoring" if expected else "newton")
        along = x - w
        promised = float(self.gradient[among] @ along - 0.5 * (along @ F @ along))
        return replace(fit, promised=promised)

    def pruned(self) -> Fit | None:
        """Return the model without points of little weight that would gain by none; None: none are.

        Others as they are, a point's best weight is 0 where q ≤ Na(1 − wa). Of several at once
        the likelihood must tell: they may stand for each other.
        """
        held = self.weights * self.leverages
        idle = self.energies <= self.model.count * self.leverages * (1.0 - held)
        out = (self.weights > 0) & idle & (held < _LITTLE)
        while out.any():
            fit = self.model.at(np.where(out, 0.0, self.weights), "pruned")
            if fit.value >= self.value:
                return fit
            out &= held < 0.5 * np.max(held[out])
        return None


def ascent(
    model: NoiseModel, weights: Vector, *, update: str = "newton", max_iter: int, tol: float
) -> Iterator[Fit]:
    """Yield models of rising likelihood, from these weights to a maximum.

    A step that would lower the likelihood is not taken: more damping is tried, then the fast
    step, then the EM step. Ends when the conditions of a maximum hold to `tol`, or when no step
    rises: then they hold to rounding.
    """
    fit, follow = model.at(weights), _STEPS[update]()
    yield fit
    for _ in range(max_iter):
        if fit.violation <= tol:
            return
        higher = follow(fit)
        if higher is None:
            return
        fit = higher
        yield fit
        shorter = None if update == "newton" else fit.pruned()
        if shorter is not None:
            fit = shorter
            yield fit


class _Newton:
    """Newton's steps, or scoring, damped as the last one had to be.

    Where there are many ways to choose the points there is no most, at first: after a Newton step
    that failed, scoring alone goes on for a while, twice as long each time.
    """

    def __init__(self) -> None:
        self.damping, self.wait, self.pause = _DAMPING, 0, 1

    def __call__(self, fit: Fit) -> Fit | None:
        if self.wait == 0:
            higher = fit.scored(_LEAST_DAMPING, expected=False)
            if higher is not None and _kept(fit, higher) > _POOR:
                self.pause = 1
                return higher
            self.wait, self.pause = self.pause, min(2 * self.pause, _PAUSE)
        self.wait -= 1
        while self.damping <= _MOST_DAMPING:
            higher = fit.scored(self.damping, expected=True)
            kept = -1.0 if higher is None else _kept(fit, higher)
            if kept > 0:
                calmer = 0.25 if kept > _GOOD else 1.0
                self.damping = max(calmer * self.damping, _LEAST_DAMPING)
                return higher
            self.damping *= 16.0
        self.damping = _DAMPING
        return _fast(fit)


def _kept(fit: Fit, higher: Fit) -> float:
    """Return what share of its promise a step kept; 0 or less where it did not rise."""
    rise = higher.value - fit.value
    return rise / higher.promised if higher.promised > 0 else rise


def _fast(fit: Fit) -> Fit | None:
    higher = fit.fast()
    return higher if higher.value > fit.value else _em(fit)


def _em(fit: Fit) -> Fit | None:
    higher = fit.em()
    return higher if higher.value > fit.value else None


_STEPS: dict[str, Callable[[], Callable[[Fit], Fit | None]]] = {
    "newton": _Newton,
    "fast": lambda: _fast,
    "em": lambda: _em,
}
UPDATES = tuple(_STEPS)
"""How weights may be updated."""


def not_negative(F: Matrix, b: Vector) -> Vector:
    """Return the x ≥ 0 that minimises ½xᵀFx − bᵀx, F positive definite.

    Block pivoting: what comes out negative is put to zero, all of it at once, and some of what
    would gain by more than zero is let back (Portugal, Júdice & Vicente 1994). After too many
    rounds it is what the last one gave, without the negative.
    """
    free = np.ones(len(b), bool)
    least = 1e-9 * float(np.max(np.abs(b), initial=0.0))
    for _ in range(_ROUNDS):
        i, x = np.flatnonzero(free), np.zeros(len(b))
        if not len(i):
            break
        factor = scipy.linalg.cho_factor(F[np.ix_(i, i)], lower=True, check_finite=False)
        x[i] = scipy.linalg.cho_solve(factor, b[i], check_finite=False)
        if not np.any(x < 0):
            slope = np.where(free, 0.0, F @ x - b)
            back = np.flatnonzero(slope < -least)
            if not len(back):
                break
            free[back[np.argsort(slope[back], kind="stable")[: -(-len(back) // 4)]]] = True
            continue
        free &= ~(x < 0)
    return np.maximum(x, 0.0)


def _inverse(C: Matrix) -> tuple[Matrix, Matrix]:
    """Return the Cholesky factor of a matrix, and its inverse."""
    if not len(C):
        return C, C.copy()
    L = scipy.linalg.cholesky(C, lower=True, check_finite=False)
    inverse, _ = scipy.linalg.lapack.dpotri(L, lower=1)
    return L, np.tril(inverse) + np.tril(inverse, -1).T

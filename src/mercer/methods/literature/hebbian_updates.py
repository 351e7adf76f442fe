"""Compiled updates of the kernel Hebbian algorithm, one row after another.

The products lt(yyᵀ)A are running sums over the components: an update costs O(nr). This module
imports numba, and is imported when the first rows are learned.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Ints = npt.NDArray[Any]
Gain = tuple[int, float, float, float, float]
State = tuple[Matrix, Matrix, Matrix, Vector]
"""A, V, B and ρ."""

# Sums may be reordered, which allows vector instructions. The helpers are inlined: linked, they
# would round differently when they come from the cache than when they are compiled.
_FAST = {"reassoc", "contract"}
# Largest change of a log-gain in one update, and the range of log-gains.
_RHO_CHANGE, _RHO_MIN, _RHO_MAX = math.log(2.0), -2.0, 12.0
# Largest product of gain and squared scores; an update with more than 1 would overshoot.
_MAX_STEP = 0.5
# Largest ratio of the squared norms of B and A.
_MAX_SLOPE = 100.0
# Eigenvalues count as at least this share of their norm.
_FLOOR = 1e-8


@njit(nogil=True, cache=True, inline="always", fastmath=_FAST)
def _dot(a: Vector, b: Vector) -> float:
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(nogil=True, cache=True, inline="always", fastmath=_FAST)
def _squared_eigenvalue(v: Vector, a: Vector) -> float:
    """Return ‖v‖²/‖a‖² with v = K'a: the squared eigenvalue near a (Günter et al. 2007, (20))."""
    above, below = 0.0, 0.0
    for j in range(a.size):
        above += v[j] * v[j]
        below += a[j] * a[j]
    return above / below if below > 0.0 else 0.0


@njit(nogil=True, cache=True, inline="always", fastmath=_FAST)
def _set_gains(gain: Gain, t: int, squares: Vector, scores: Any, state: Any, work: Any) -> int:
    """Write the gain of each component to c: η, or η‖λ‖/λ_i (Günter et al. 2007, (22)).

    With learned gains, add μ diag(ΓK'Bᵀ) to the log-gains first, with z = Bk' ((32)), and update
    B = ∂A/∂ρ afterwards, except for the term of the row itself ((37)). Returns 1 if gains with
    which the update would overshoot were lowered.
    """
    kind, eta, tau, mu, xi = gain
    (y, z, c), (A, V, B, rho), (sums, both) = scores, state, work
    norm, length, limited = 0.0, 0.0, 0
    for i in range(c.size):
        norm += squares[i]
    norm = math.sqrt(norm)
    for i in range(c.size):
        c[i] = eta * tau / (t + tau)
        if kind > 0 and norm > 0.0:
            c[i] *= norm / max(math.sqrt(squares[i]), _FLOOR * norm)
    sums[:] = 0.0
    both[:] = 0.0
    for i in range(y.size if kind > 1 else 0):
        inner = 0.0
        for j in range(sums.size):
            sums[j] += y[i] * V[i, j]
            inner += sums[j] * B[i, j]
        change = mu * y[i] * (z[i] - inner)
        rho[i] += min(max(change, -_RHO_CHANGE), _RHO_CHANGE)
        rho[i] = min(max(rho[i], _RHO_MIN), _RHO_MAX)
        c[i] *= math.exp(rho[i])
    for i in range(y.size):
        length += y[i] * y[i]
        if c[i] * length > _MAX_STEP:
            c[i] = _MAX_STEP / length
            limited = 1
    sums[:] = 0.0
    for i in range(y.size if kind > 1 else 0):
        a, b = A[i], B[i]
        norm_a, norm_b = 0.0, 0.0
        for j in range(sums.size):
            sums[j] += y[i] * a[j]
            both[j] += y[i] * (a[j] + xi * b[j]) + xi * z[i] * a[j]
            b[j] = xi * b[j] - c[i] * (y[i] * both[j] + xi * z[i] * sums[j])
            norm_a += a[j] * a[j]
            norm_b += b[j] * b[j]
        if norm_b > _MAX_SLOPE * norm_a:  # far from unit length, B would grow without bound
            b *= math.sqrt(_MAX_SLOPE * norm_a / norm_b)
    return limited


@njit(nogil=True, cache=True, fastmath=_FAST)
def update(
    K: Matrix, rows: Ints, state: State, travel: Vector, squares: Vector, gain: Gain, t: int
) -> int:
    """Update A ← A + η(y e_tᵀ − lt(yyᵀ)A), and V = AK' with it, for some rows of K'.

    Without `rows`, the numbers of these rows, K holds orthonormal coordinates f instead: A is
    updated with fᵀ in place of e_tᵀ, V is A, and the squared eigenvalues `squares` stay. `gain`
    contains the kind, η₀, τ, μ and ξ; `travel` sums η_i y_i². Returns the number of updates with
    limited gains.
    """
    A, V, B, _ = state
    kind, xi, coefficients = gain[0], gain[4], rows.size > 0
    r, n = A.shape
    y, z, c = np.empty(r), np.zeros(r), np.empty(r)
    sums, others = np.empty(n), np.empty(n)
    limited = 0
    for s in range(K.shape[0]):
        k, row = K[s], rows[s] if coefficients else 0
        for i in range(r):
            y[i] = V[i, row] if coefficients else _dot(A[i], k)
            if kind > 1:
                z[i] = _dot(B[i], k)
        limited += _set_gains(gain, t + s, squares, (y, z, c), state, (sums, others))
        for i in range(r if kind > 1 else 0):
            step = c[i] * (y[i] + xi * z[i])
            if coefficients:
                B[i, row] += step
            for j in range(0 if coefficients else n):
                B[i, j] += step * k[j]
        sums[:] = 0.0
        others[:] = 0.0
        for i in range(r):
            a, v, e = A[i], V[i], c[i] * y[i]
            travel[i] += e * y[i]
            for j in range(0 if coefficients else n):
                sums[j] += y[i] * a[j]
                a[j] += e * (k[j] - sums[j])
            if not coefficients:
                continue
            for j in range(n):
                sums[j] += y[i] * a[j]
                others[j] += y[i] * v[j]
                a[j] -= e * sums[j]
                v[j] += e * (k[j] - others[j])
            a[row] += e
            if kind > 0:
                squares[i] = _squared_eigenvalue(v, a)
    return limited

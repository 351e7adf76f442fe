"""The steps of the kernel Hebbian algorithm, one row after another: compiled loops.

Sums lt(yyᵀ)A are running sums over the axes, so a step costs as much as a few sweeps over A:
O(nr). Numba is imported here, in `kernels` and in `sketches.loops` alone; nothing is compiled
before its first call.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from mercer.arrays import Matrix, Vector

Ints = npt.NDArray[Any]

# Sums may be added in another order, so that they are made by vector instructions.
_FAST = {"reassoc", "contract"}
# A log-gain changes by no more than this in a step, the gain by 2; and stays in these ends.
_TURN, _LEAST, _MOST = math.log(2.0), -2.0, 12.0
# A step takes no more than this of what lies along the axes: beyond 1 it would overshoot.
_CAP = 0.5
# B is no longer than ten times A.
_LONG = 100.0
# Eigenvalues are taken for no less than this share of their length.
_FLOOR = 1e-8


@njit(nogil=True, cache=True, fastmath=_FAST)
def _gains(kind: int, eta: float, squares: Vector, out: Vector) -> None:
    """Write the gain of each axis: one for all, or ‖λ‖/λ_i of it (Günter et al. 2007, (22))."""
    length = 0.0
    for i in range(out.size):
        length += squares[i]
    length = math.sqrt(length)
    for i in range(out.size):
        out[i] = eta
        if kind > 0 and length > 0.0:
            out[i] *= length / max(math.sqrt(squares[i]), _FLOOR * length)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot(a: Vector, b: Vector) -> float:
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@njit(nogil=True, cache=True, fastmath=_FAST)
def _square(v: Vector, a: Vector) -> float:
    """Return ‖v‖²/‖a‖²: of v = K'a the square of an eigenvalue near a (their (20))."""
    above, below = 0.0, 0.0
    for j in range(a.size):
        above += v[j] * v[j]
        below += a[j] * a[j]
    return above / below if below > 0.0 else 0.0


@njit(nogil=True, cache=True, fastmath=_FAST)
def _adapt(
    mu: float, y: Vector, z: Vector, V: Matrix, B: Matrix, rho: Vector, sums: Vector
) -> None:
    """Add μ diag(ΓK'Bᵀ) to the log-gains; z = Bk' (Günter et al. 2007, (32))."""
    sums[:] = 0.0
    for i in range(y.size):
        v, b = V[i], B[i]
        inner = 0.0
        for j in range(sums.size):
            sums[j] += y[i] * v[j]
            inner += sums[j] * b[j]
        change = mu * y[i] * (z[i] - inner)
        rho[i] += min(max(change, -_TURN), _TURN)
        rho[i] = min(max(rho[i], _LEAST), _MOST)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _differentiate(
    xi: float, c: Vector, y: Vector, z: Vector, A: Matrix, B: Matrix, both: Vector, sums: Vector
) -> None:
    """Make of B = ∂A/∂ρ that of the next step, but for what the row itself adds (their (37)).

    Where axes are far from unit length, as at first, that would grow without end: it is held
    to some lengths of A.
    """
    both[:] = 0.0
    sums[:] = 0.0
    for i in range(y.size):
        a, b = A[i], B[i]
        length, long = 0.0, 0.0
        for j in range(sums.size):
            sums[j] += y[i] * a[j]
            both[j] += y[i] * (a[j] + xi * b[j]) + xi * z[i] * a[j]
            b[j] = xi * b[j] - c[i] * (y[i] * both[j] + xi * z[i] * sums[j])
            length += a[j] * a[j]
            long += b[j] * b[j]
        if long > _LONG * length:
            b *= math.sqrt(_LONG * length / long)


@njit(nogil=True, cache=True)
def _limit(c: Vector, y: Vector) -> int:
    """Hold gains down where a step would overshoot; return 1 where it did."""
    along, held = 0.0, 0
    for i in range(y.size):
        along += y[i] * y[i]
        if c[i] * along > _CAP:
            c[i] = _CAP / along
            held = 1
    return held


@njit(nogil=True, cache=True, fastmath=_FAST)
def over_rows(
    K: Matrix,
    at: Ints,
    rows: Ints,
    A: Matrix,
    V: Matrix,
    B: Matrix,
    rho: Vector,
    spent: Vector,
    gain: tuple[int, float, float, float, float],
    t: int,
) -> int:
    """Take a step for every row named: A ← A + η(y e_tᵀ − lt(yyᵀ)A), and V = AK' with it.

    K[at[s]] is the row of K' that belongs to rows[s]. `gain` is the kind, η₀, τ, μ and ξ; `spent`
    adds up η_i y_i². Returns how many steps were held down.
    """
    kind, eta, tau, mu, xi = gain
    r, n = A.shape
    y, z, c, squares = np.empty(r), np.zeros(r), np.empty(r), np.empty(r)
    sums, others = np.empty(n), np.empty(n)
    held = 0
    for i in range(r):
        squares[i] = _square(V[i], A[i])
    for s in range(rows.size):
        row, k = rows[s], K[at[s]]
        for i in range(r):
            y[i] = V[i, row]
        _gains(kind, eta * tau / (t + s + tau), squares, c)
        if kind > 1:
            for i in range(r):
                z[i] = _dot(B[i], k)
            _adapt(mu, y, z, V, B, rho, sums)
            for i in range(r):
                c[i] *= math.exp(rho[i])
        held += _limit(c, y)
        if kind > 1:
            _differentiate(xi, c, y, z, A, B, others, sums)
            for i in range(r):
                B[i, row] += c[i] * (y[i] + xi * z[i])
        sums[:] = 0.0
        others[:] = 0.0
        for i in range(r):
            a, v, e = A[i], V[i], c[i] * y[i]
            spent[i] += e * y[i]
            for j in range(n):
                sums[j] += y[i] * a[j]
                others[j] += y[i] * v[j]
                a[j] -= e * sums[j]
                v[j] += e * (k[j] - others[j])
            a[row] += e
            if kind > 0:
                squares[i] = _square(v, a)
    return held


@njit(nogil=True, cache=True, fastmath=_FAST)
def over_features(
    F: Matrix,
    W: Matrix,
    B: Matrix,
    rho: Vector,
    spent: Vector,
    squares: Vector,
    gain: tuple[int, float, float, float, float],
    t: int,
) -> int:
    """Do the same of rows whose coordinates in an orthonormal basis are there.

    W ← W + η(y fᵀ − lt(yyᵀ)W), y = Wf; `squares` are those of the eigenvalues.
    """
    kind, eta, tau, mu, xi = gain
    r, p = W.shape
    y, z, c = np.empty(r), np.zeros(r), np.empty(r)
    sums, others = np.empty(p), np.empty(p)
    held = 0
    for s in range(F.shape[0]):
        f = F[s]
        for i in range(r):
            y[i] = _dot(W[i], f)
            if kind > 1:
                z[i] = _dot(B[i], f)
        _gains(kind, eta * tau / (t + s + tau), squares, c)
        if kind > 1:
            _adapt(mu, y, z, W, B, rho, sums)
            for i in range(r):
                c[i] *= math.exp(rho[i])
        held += _limit(c, y)
        if kind > 1:
            _differentiate(xi, c, y, z, W, B, others, sums)
            for i in range(r):
                for j in range(p):
                    B[i, j] += c[i] * (y[i] + xi * z[i]) * f[j]
        sums[:] = 0.0
        for i in range(r):
            w, e = W[i], c[i] * y[i]
            spent[i] += e * y[i]
            for j in range(p):
                sums[j] += y[i] * w[j]
                w[j] += e * (f[j] - sums[j])
    return held

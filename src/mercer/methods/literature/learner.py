"""What the kernel Hebbian algorithm keeps from step to step, and how it tells that it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, svd

KINDS = ("kha", "et", "smd")
"""Gains: one for all axes, one for each, and one for each that is learnt itself."""
# Where no τ is given the gain falls as so much over the number of steps, by what it does to the
# axis it does least to: axes whose variances differ by more than the inverse keep coming nearer. A
# gain that is learnt falls by itself too, by e² at most.
_FALL = {"kha": 20.0, "et": 20.0, "smd": 150.0}
_ETA = {"kha": 0.2, "et": 0.05, "smd": 0.1}
# Squared lengths below this share of the largest are none.
_NONE = 1e-10


@dataclass(frozen=True)
class Gain:
    """How far a step goes; without units: whatever the kernel's scale."""

    kind: str
    eta: float | None = None
    tau: float | None = None
    mu: float = 1.0
    xi: float = 0.99

    def numbers(
        self, squares: Vector, trace: float, visits: int
    ) -> tuple[int, float, float, float, float]:
        """Return kind, η₀, τ, μ and ξ for a matrix of this trace, near such eigenvalues."""
        eta = _ETA[self.kind] if self.eta is None else float(self.eta)
        scale, tau = trace / visits, self.tau
        lengths = np.sqrt(squares)
        most = float(np.linalg.norm(lengths))
        if tau is None:
            least = float(np.min(lengths, initial=most)) if self.kind == "kha" else most
            tau = _FALL[self.kind] * trace / (eta * max(least, 1e-2 * most, 1e-300))
        return KINDS.index(self.kind), eta / scale, float(tau), self.mu / scale, self.xi


@dataclass
class Learner:
    """Axes under way: the rows of A, with V = AK' of which y is read.

    Where rows have coordinates in an orthonormal basis, A and V are the same: the axes'.

    Attributes
    ----------
    A, V, B : ndarray of shape (r, n)
        Coefficients, their products with the matrix, and ∂A/∂ρ.
    rho : ndarray of shape (r,)
        Log-gains.
    spent : ndarray of shape (r,)
        Σ η_i y_i² since the axes were last looked at: at 1 a direction that does not belong to
        them is down to 1/e.
    steps, held : int
        Steps so far, and those of them whose gain was held down.
    change : float
        How far, as a sine, the axes had turned when they were last looked at.
    squared : ndarray of shape (r,) or None
        Squares of the eigenvalues, where they are looked up now and then.
    before : ndarray
        The axes when they were last looked at.
    """

    A: Matrix
    V: Matrix
    B: Matrix
    rho: Vector
    spent: Vector
    steps: int = 0
    held: int = 0
    change: float = 1.0
    squared: Vector | None = None
    before: Matrix = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def begin(cls, A: Matrix, V: Matrix | None = None) -> Learner:
        """Begin with these axes."""
        r = len(A)
        A = np.ascontiguousarray(A)
        V = A if V is None else np.ascontiguousarray(V)
        return cls(
            A, V, np.zeros_like(A), np.zeros(r), np.zeros(r), before=np.zeros((0, A.shape[1]))
        )

    @property
    def finite(self) -> bool:
        """Whether no step has led to infinity."""
        return bool(np.all(np.isfinite(self.V)) and np.all(np.isfinite(self.B)))

    def squares(self, V: Matrix) -> Vector:
        """Return the squares of the eigenvalues near the axes, ‖K'a‖²/‖a‖², of V = AK'."""
        above, below = (np.einsum("ij,ij->i", X, X) for X in (V, self.A))
        return np.asarray(np.divide(above, below, where=below > 0, out=np.zeros_like(above)))

    def looked(
        self,
        covariances: Callable[[], Matrix],
        tol: float,
        keep: Callable[[Vector], int],
        *,
        turned: bool,
        least: float = 0.0,
    ) -> bool:
        """Look how far the axes have turned; tell whether that is within the tolerance.

        Not before they have had time to: until then nothing is known. `keep` says from variances
        how many axes count. Where some lie in the span of others, and all hold less than `least`,
        there is one yet to be learnt.
        """
        if float(np.max(self.spent, initial=0.0)) < 1.0:
            return False
        values, S = principal(self.A @ self.V.T, covariances(), turned=turned)
        k = min(keep(values), len(values))
        if k == len(values) < len(self.rho) and float(values.sum()) < least:
            self.change = 1.0
            return False
        if float(np.min(self.spent[:k], initial=np.inf)) < 1.0:
            return False
        before, self.before = self.before, S[:, :k].T @ self.A
        self.change = _turn(before @ self.V.T @ S[:, :k], turned=turned)
        self.spent = np.zeros(len(self.rho))
        return self.change <= tol

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays; of axes that are coordinates."""
        counts = np.array([self.steps, self.held, self.change])
        return {
            "axes": self.A,
            "slopes": self.B,
            "log-gains": self.rho,
            "spent": self.spent,
            "steps": counts,
            "before": self.before,
        }

    @classmethod
    def restore(cls, arrays: dict[str, Any]) -> Learner:
        """Take up the state that `arrays` returned."""
        names = ("axes", "slopes", "log-gains", "spent", "before")
        A, B, rho, spent, before = (np.array(arrays[name], np.float64) for name in names)
        steps, held, change = (float(x) for x in arrays["steps"])
        return cls(A, A, B, rho, spent, int(steps), int(held), change, None, before)


def _whitened(G: Matrix) -> Matrix:
    """Return N with NᵀGN = I, G the inner products of axes; directions of no length left out."""
    values, U = eigh(G)
    there = values > _NONE * np.max(values, initial=0.0)
    return np.asarray(U[:, there] / np.sqrt(values[there]))


def _turn(across: Matrix, *, turned: bool) -> float:
    """Return the sine of the largest angle between unit axes, or between spans of orthonormal ones.

    From the inner products of those then and those now.
    """
    if across.shape[0] != across.shape[1]:
        return 1.0
    cosines = svd(across)[1] if turned else np.abs(np.diag(across))
    least = min(1.0, float(np.min(cosines, initial=1.0)))
    return float(np.sqrt((1.0 - least) * (1.0 + least)))


def principal(G: Matrix, M: Matrix, *, turned: bool) -> tuple[Vector, Matrix]:
    """Return the variances along unit axes, largest first, and what makes them of those learnt.

    G are the inner products of those, M their covariances. Turned within their span to its
    principal axes (Rayleigh–Ritz: no kernel values are needed); or as they are, less those that
    the ones before them hold already.
    """
    G = (G + G.T) / 2
    if turned:
        N = _whitened(G)
        values, U = eigh(N.T @ M @ N)
        return np.maximum(values, 0.0), np.asarray(N @ U)
    lengths = np.sqrt(np.maximum(np.diag(G), 0.0))
    kept: list[int] = []
    for i in np.flatnonzero(lengths > np.sqrt(_NONE) * np.max(lengths, initial=0.0)):
        others = np.array(kept, dtype=int)
        unit = G[np.ix_(others, others)] / np.outer(lengths[others], lengths[others])
        g = G[others, i] / (lengths[others] * lengths[i])
        if not kept or float(g @ np.linalg.lstsq(unit, g, rcond=None)[0]) < 1.0 - 1e-6:
            kept.append(int(i))
    S = np.zeros((len(G), len(kept)))
    S[kept, np.arange(len(kept))] = 1.0 / lengths[kept]
    values = np.einsum("ij,ij->j", S, M @ S)
    order = np.argsort(-values, kind="stable")
    return values[order], S[:, order]

"""What the kernel Hebbian algorithm learns, and the rows it learns from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import Generator

from mercer.arrays import Array, Matrix, Vector, eigh, like, svd, to_numpy
from mercer.config import get_config
from mercer.data import Block
from mercer.kernels.points import Points
from mercer.landmarks.base import Rows
from mercer.landmarks.columns import KernelColumns
from mercer.linalg import DenseOperator, Gram, Operator
from mercer.linalg.span import KernelMoments, Span
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.methods.kernel.expansion import BETTER
from mercer.methods.kernel.landmark_fit import LandmarkFit
from mercer.problem import KernelProblem

# Share of the variance that need not be learned.
_NEGLIGIBLE = 1e-9
# Squared norms below this share of the largest are zero.
_ZERO = 1e-10
# In coordinates, eigenvalues are computed again after at least this many updates.
_EVERY = 32

GainParameters = tuple[int, float, float, float, float]
"""Kind of the gain, η₀, τ, μ and ξ."""
Gains = Callable[[Vector, float, int], GainParameters]
"""Gain parameters, from squared eigenvalues, the trace of the matrix and its number of rows."""


def half_memory_holds(entries: float) -> bool:
    """Tell whether two arrays of this many float64 numbers fit into half of the memory."""
    return 16.0 * entries <= get_config().budget / 2


def random_coefficients(rng: Generator, r: int, n: int) -> Matrix:
    """Return random coefficients of variance 1/(rn), as in the papers."""
    return rng.standard_normal((r, n)) / math.sqrt(max(1, r * n))


@dataclass
class HebbianState:
    """The components while they are learned: the rows of A."""

    A: Matrix  # coefficients, or in orthonormal coordinates the components themselves
    V: Matrix  # AK', or in orthonormal coordinates A
    B: Matrix  # ∂A/∂ρ
    rho: Vector  # log-gains
    # Σ η_i y_i² since the last check: at 1, what does not belong to a component is down to 1/e.
    travel: Vector
    last: Matrix  # components at the last check
    steps: int = 0
    limited: int = 0  # updates whose gains were limited
    turn: float = 1.0  # sine of the angle by which components had turned at the last check
    squares: Vector | None = None  # squared eigenvalues

    @classmethod
    def begin(cls, A: Matrix, V: Matrix | None = None) -> HebbianState:
        """Return the state before the first update."""
        A = np.ascontiguousarray(A)
        V, r = A if V is None else np.ascontiguousarray(V), len(A)
        return cls(A, V, np.zeros_like(A), np.zeros(r), np.zeros(r), np.zeros((0, A.shape[1])))

    def set_squares(self, V: Matrix) -> Vector:
        """Set the squared eigenvalues near the components, ‖K'a‖²/‖a‖², given V = AK'."""
        above, below = (np.einsum("ij,ij->i", X, X) for X in (V, self.A))
        self.squares = np.divide(above, below, where=below > 0, out=np.zeros_like(above))
        return self.squares

    def principal(self, covariances: Matrix, *, polish: bool) -> tuple[Vector, Matrix]:
        """Return variances, and what makes unit components of the learned ones."""
        return principal_components(self.A @ self.V.T, covariances, polish=polish)

    def check_turn(
        self, values: Vector, S: Matrix, k: int, *, polish: bool, enough: float
    ) -> float | None:
        """Return how far the first k principal components have turned since the last check.

        `values` and `S` are the result of `principal_components`. None if it is too early to tell,
        or if components have become dependent and explain less than `enough`: others are missing.
        """
        if k == len(values) < len(self.rho) and float(values.sum()) < enough:
            self.turn = 1.0
            return None
        if float(np.min(self.travel[:k], initial=np.inf)) < 1.0:
            return None
        last, self.last = self.last, S[:, :k].T @ self.A
        self.turn = _sine(last @ self.V.T @ S[:, :k], polish=polish)
        self.travel = np.zeros(len(self.rho))
        return self.turn

    def arrays(self) -> dict[str, Array]:
        """Return the state, in orthonormal coordinates, as named arrays."""
        return {
            "axes": self.A,
            "slopes": self.B,
            "log-gains": self.rho,
            "spent": self.travel,
            "steps": np.array([self.steps, self.limited, self.turn]),
            "before": self.last,
        }

    @classmethod
    def restore(cls, arrays: dict[str, Any]) -> HebbianState:
        """Return the state from its arrays."""
        names = ("axes", "slopes", "log-gains", "spent", "before")
        A, B, rho, travel, last = (np.array(arrays[name], np.float64) for name in names)
        steps, limited, turn = (float(x) for x in arrays["steps"])
        return cls(A, A, B, rho, travel, last, int(steps), int(limited), turn)


def _sine(products: Matrix, *, polish: bool) -> float:
    """Return the sine of the largest angle between two sets of unit vectors, or their spans."""
    if products.shape[0] != products.shape[1]:
        return 1.0
    cosines = svd(products)[1] if polish else np.abs(np.diag(products))
    least = min(1.0, float(np.min(cosines, initial=1.0)))
    return float(np.sqrt((1.0 - least) * (1.0 + least)))


def principal_components(G: Matrix, M: Matrix, *, polish: bool) -> tuple[Vector, Matrix]:
    """Return variances of unit components, largest first, and S that makes them of the learned.

    G contains inner products of the learned components, M their covariances. With `polish` they
    are rotated to the principal components of their span (Rayleigh–Ritz); without, they are
    normalized, and those that depend on earlier ones are dropped.
    """
    G = (G + G.T) / 2
    if polish:
        values, U = eigh(G)
        nonzero = values > _ZERO * np.max(values, initial=0.0)
        N = U[:, nonzero] / np.sqrt(values[nonzero])
        values, U = eigh(N.T @ M @ N)
        return np.maximum(values, 0.0), np.asarray(N @ U)
    norms = np.sqrt(np.maximum(np.diag(G), 0.0))
    independent: list[int] = []
    for i in np.flatnonzero(norms > np.sqrt(_ZERO) * np.max(norms, initial=0.0)):
        others = np.array(independent, dtype=int)
        unit = G[np.ix_(others, others)] / np.outer(norms[others], norms[others])
        g = G[others, i] / (norms[others] * norms[i])
        if not independent or float(g @ np.linalg.lstsq(unit, g, rcond=None)[0]) < 1.0 - 1e-6:
            independent.append(int(i))
    S = np.zeros((len(G), len(independent)))
    S[independent, np.arange(len(independent))] = 1.0 / norms[independent]
    values = np.einsum("ij,ij->j", S, M @ S)
    order = np.argsort(-values, kind="stable")
    return values[order], S[:, order]


class GramRows:
    """Rows of the centered kernel matrix: stored if it fits, otherwise computed as needed."""

    def __init__(self, problem: KernelProblem, gram: Gram) -> None:
        self.gram = gram
        self.operator: Operator = gram
        self.visited = np.flatnonzero(to_numpy(gram.roots)[:, 0])
        self.total, self.rank = gram.trace, min(gram.rank, len(self.visited))
        # Variance of components that explain everything except rounding.
        self.enough = (1.0 - _NEGLIGIBLE) * gram.trace - gram.noise_floor
        self.chunk = upper_block_rows(gram.size, 8)
        # With negative eigenvalues the trace is less than the sum of the positive ones.
        self.trace = gram.trace if gram.psd else max(gram.trace, math.sqrt(gram.square or 0.0))
        self.constant = self.trace <= gram.noise_floor
        self._matrix: Matrix | None = None
        if half_memory_holds(gram.size**2):
            self._matrix = gram.dense()
            self.operator = DenseOperator(self._matrix, psd=gram.psd, rounding=gram.rounding)
        else:
            self._columns = KernelColumns(problem, np.float64)
            self._means = gram.means * problem.center
            self._mean_square = gram.mean_square * problem.center

    def _kernel_rows(self, at: Rows) -> tuple[Matrix, Rows]:
        """Return a matrix that contains these rows of K', and where."""
        if self._matrix is not None:
            return self._matrix, at
        roots = to_numpy(self.gram.roots)[:, 0]
        K = self._columns.collect(at).T
        K = K - self._means - self._means[at][:, None] + self._mean_square
        K *= roots * roots[at][:, None] / self.gram.divisor
        return np.ascontiguousarray(K), np.arange(len(at))

    def begin(self, rng: Generator, r: int, before: HebbianState | None = None) -> HebbianState:
        """Return the state of r components: those learned before, and random ones."""
        known = np.zeros((0, self.gram.size)) if before is None else before.A
        more = np.zeros((r - len(known), self.gram.size))
        more[:, self.visited] = random_coefficients(rng, len(more), len(self.visited))
        more *= math.sqrt(len(self.visited) / max(self.trace, 1e-300))
        centered = to_numpy(self.gram.project(like(more.T, self.gram.reference))).T
        A = np.vstack([known, centered])
        state = HebbianState.begin(A, self.product(A))
        # Principal components of their span: one that begins along a much longer one stays there.
        _, S = state.principal(self.covariances(state), polish=True)
        return HebbianState.begin(S.T @ A, S.T @ state.V) if S.shape[1] == r else state

    def product(self, A: Matrix) -> Matrix:
        """Return AK'."""
        if not len(A):
            return A
        product = self.operator.matmat(like(A.T, self.operator.reference))
        return np.ascontiguousarray(to_numpy(product).T)

    def learn(self, state: HebbianState, at: Rows, gains: Gains) -> None:
        """Learn from these rows, in this order."""
        from mercer.methods.literature.hebbian_updates import update_coefficients

        squares = state.squares
        if state.steps % len(self.visited) == 0 or squares is None:  # a pass begins
            squares = state.set_squares(state.V)
        gain = gains(squares, self.trace, len(self.visited))
        arrays = (state.A, state.V, state.B, state.rho, state.travel)
        state.limited += update_coefficients(*self._kernel_rows(at), at, *arrays, gain, state.steps)
        state.steps += len(at)

    def covariances(self, state: HebbianState) -> Matrix:
        """Return the covariances of the scores."""
        return state.V @ state.V.T

    def leading(self, values: Vector) -> bool:
        """Tell whether components are the leading ones: not known before they are judged."""
        return True


class LandmarkRows:
    """Centered rows in orthonormal coordinates of the span of landmarks."""

    def __init__(self, fit: LandmarkFit) -> None:
        self.fit, source = fit, fit.problem.source
        T = fit.span.whitener
        self.covariance: Matrix = np.asarray(T.T @ fit.covariance @ T)
        n, weights = source.shape[0], source.weights
        self.visited = np.arange(n) if weights is None else np.flatnonzero(weights)
        self.counts = np.ones(n) if weights is None else weights
        self.total, self.rank = fit.total_upper, fit.span.rank
        self.trace = float(np.trace(self.covariance))
        self.constant = self.trace <= 0.0
        self.enough = (1.0 - _NEGLIGIBLE) * self.trace
        self.chunk = upper_block_rows(fit.span.size, 8)

    def begin(self, rng: Generator, r: int, before: HebbianState | None = None) -> HebbianState:
        """Return the state of r components: those learned before, and random ones."""
        known = np.zeros((0, self.rank)) if before is None else before.A
        more = random_coefficients(rng, r - len(known), self.rank)
        return HebbianState.begin(np.vstack([known, more]))

    def learn(self, state: HebbianState, at: Rows, gains: Gains) -> None:
        """Learn from these rows, in this order."""
        if self._stored is not None:
            return self.learn_coordinates(state, self._stored[at], gains)
        source = self.fit.problem.source
        h = self.fit.span.feature_map(source)(Block(0, source.take(at), None))
        return self.learn_coordinates(state, self.coordinates(h, self.counts[at]), gains)

    def learn_coordinates(self, state: HebbianState, F: Matrix, gains: Gains) -> None:
        """Learn from rows given by their coordinates.

        Eigenvalues are computed after a number of updates, which does not depend on blocks.
        """
        from mercer.methods.literature.hebbian_updates import update_components

        every, first = max(_EVERY, self.rank), 0
        while first < len(F):
            count = min(len(F) - first, every - state.steps % every)
            squares = state.squares
            if state.steps % every == 0 or squares is None:
                squares = state.set_squares(state.A @ self.covariance)
            gain = gains(squares, self.trace, len(self.counts))
            rows = np.ascontiguousarray(F[first : first + count])
            arrays = (state.A, state.B, state.rho, state.travel, squares)
            state.limited += update_components(rows, *arrays, gain, state.steps)
            state.steps += count
            first += count

    def covariances(self, state: HebbianState) -> Matrix:
        """Return the covariances of the scores."""
        return np.asarray(state.A @ self.covariance @ state.A.T)

    def leading(self, values: Vector) -> bool:
        """Tell whether components with these variances are the leading ones of the span."""
        best = float(self._eigenvalues[: len(values)].sum())
        return float(values.sum()) >= (1.0 - BETTER) * best

    @cached_property
    def _eigenvalues(self) -> Vector:
        return eigh(self.covariance)[0]

    def coordinates(self, h: Array, counts: Vector) -> Matrix:
        """Return coordinates of rows, scaled such that their squares sum to the covariance."""
        mean = self.fit.moments.mean * self.fit.problem.center
        roots = np.sqrt(counts / max(self.fit.divisor, 1e-300))
        centered = to_numpy(h).astype(np.float64) - mean
        return np.asarray(centered @ self.fit.span.whitener) * roots[:, None]

    @cached_property
    def _stored(self) -> Matrix | None:
        """Coordinates of all rows, if they fit."""
        source, span = self.fit.problem.source, self.fit.span
        if not half_memory_holds(source.shape[0] * span.size):
            return None
        return self.coordinates(span.features(source).collect(), self.counts)


TrainingRows = GramRows | LandmarkRows


class HebbianFold(KernelMoments):
    """Moments of h(x), and components that learn from the rows in the order of the batches.

    Rows wait until all blocks of a batch have been added: threads add them in any order.
    """

    here = True  # the rows that wait are not among the arrays
    resumable = False

    def __init__(
        self,
        span: Span,
        source: Any,
        *,
        center: bool,
        known: Any = None,
        state: HebbianState | None = None,
    ) -> None:
        super().__init__(span, source, center=center, known=known)
        self.state = state
        self.rows: dict[int, Matrix] = {}

    def add_features(self, block: Block, h: Array, x: Points | None = None) -> None:
        super().add_features(block, h, x)
        self.rows[block.start] = np.column_stack([to_numpy(h).astype(np.float64), block.count])

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.rows.update(other.rows)

    def learn(self, data: LandmarkRows, gains: Gains) -> None:
        """Learn from the rows that wait, in their order."""
        assert self.state is not None
        for start in sorted(self.rows):
            h, counts = self.rows[start][:, :-1], self.rows[start][:, -1]
            data.learn_coordinates(self.state, data.coordinates(h, counts), gains)
        self.rows = {}

    def arrays(self) -> dict[str, Array]:
        state = {} if self.state is None else self.state.arrays()
        return {**super().arrays(), **{f"learner {name}": x for name, x in state.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        prefix = "learner "
        state = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        super().restore({k: v for k, v in arrays.items() if not k.startswith(prefix)})
        self.state = HebbianState.restore(state) if state else None

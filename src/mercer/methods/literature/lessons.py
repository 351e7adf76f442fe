"""What the kernel Hebbian algorithm learns from: rows of the kernel matrix, or of a span."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, like, to_numpy
from mercer.config import get_config
from mercer.data import Block
from mercer.kernels.points import Points
from mercer.landmarks.columns import Columns
from mercer.linalg import DenseOperator, Gram, Operator
from mercer.linalg.span import KernelMoments, Span
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.methods.kernel.expansion import BETTER
from mercer.methods.kernel.landmark_fit import LandmarkFit
from mercer.methods.literature.learner import Gain, Learner, principal
from mercer.problem import KernelProblem

# A share of the variance that need not be learnt.
_LEFT = 1e-9
# Coordinates at which eigenvalues are looked up no more often than after so many steps.
_EVERY = 32

Rows = Any
"""Numbers of rows: an array of int."""


def fits(entries: float) -> bool:
    """Tell whether so many float64 numbers, twice, fit half of the memory."""
    return 16.0 * entries <= get_config().budget / 2


def start(rng: np.random.Generator, r: int, n: int) -> Matrix:
    """Return random coefficients of variance 1/(rn), as in the sources."""
    return rng.standard_normal((r, n)) / math.sqrt(max(1, r * n))


class Lessons(ABC):
    """Rows to learn from.

    Attributes
    ----------
    visited : ndarray of int
        Numbers of the rows that count.
    total : float
        Their variance in all directions.
    least : float
        What axes hold at least where they hold all of what can be learnt, but for rounding.
    limit : int
        The most axes there can be.
    chunk : int
        Rows to take at once.
    """

    visited: Rows
    total: float
    least: float
    limit: int
    chunk: int

    @property
    @abstractmethod
    def nothing(self) -> bool:
        """Whether all rows are the same."""

    @abstractmethod
    def begun(self, rng: np.random.Generator, r: int, before: Learner | None) -> Learner:
        """Return a learner of r axes: those learnt before, and random ones."""

    @abstractmethod
    def take(self, learner: Learner, at: Rows, rule: Gain) -> None:
        """Learn from the rows named, in this order."""

    @abstractmethod
    def covariances(self, learner: Learner) -> Matrix:
        """Return the covariances along the axes as they are."""

    def best(self, values: Vector) -> bool:
        """Tell whether axes of these variances are the first, as far as is known.

        Others stand still too, once learnt.
        """
        return True


class OfRows(Lessons):
    """Rows of the centred kernel matrix: kept where it fits, else computed when they are needed."""

    def __init__(self, problem: KernelProblem, gram: Gram) -> None:
        self.gram = gram
        self.operator: Operator = gram
        self.visited = np.flatnonzero(to_numpy(gram.roots)[:, 0])
        self.total, self.limit = gram.trace, min(gram.rank, len(self.visited))
        self.least = (1.0 - _LEFT) * gram.trace - gram.noise_floor
        self.chunk = upper_block_rows(gram.size, 8)
        # Negative eigenvalues make the sum of all smaller than what the positive ones hold.
        self.size = gram.trace if gram.psd else max(gram.trace, math.sqrt(gram.square or 0.0))
        self._rows = self._kept() if fits(gram.size**2) else self._computed(problem)

    def _kept(self) -> Callable[[Rows], tuple[Matrix, Rows]]:
        K = self.gram.dense()
        self.operator = DenseOperator(K, psd=self.gram.psd, rounding=self.gram.rounding)
        return lambda at: (K, at)

    def _computed(self, problem: KernelProblem) -> Callable[[Rows], tuple[Matrix, Rows]]:
        gram, columns = self.gram, Columns(problem, np.float64)
        roots = to_numpy(gram.roots)[:, 0]
        means, height = gram.means * problem.center, gram.mean_square * problem.center

        def rows(at: Rows) -> tuple[Matrix, Rows]:
            K = columns.collect(at).T
            K = K - means - means[at][:, None] + height
            K *= roots * roots[at][:, None] / gram.divisor
            return np.ascontiguousarray(K), np.arange(len(at))

        return rows

    @property
    def nothing(self) -> bool:
        return self.size <= self.gram.noise_floor

    def begun(self, rng: np.random.Generator, r: int, before: Learner | None) -> Learner:
        known = np.zeros((0, self.gram.size)) if before is None else before.A
        more = np.zeros((r - len(known), self.gram.size))
        more[:, self.visited] = start(rng, len(more), len(self.visited))
        more *= math.sqrt(len(self.visited) / max(self.size, 1e-300))
        centred = to_numpy(self.gram.project(like(more.T, self.gram.reference))).T
        A = np.vstack([known, centred])
        V = self.product(A)
        # Principal axes of their span: one that begins along a much longer one hardly leaves it.
        _, S = principal(A @ V.T, V @ V.T, turned=True)
        return Learner.begin(S.T @ A, S.T @ V) if S.shape[1] == r else Learner.begin(A, V)

    def product(self, A: Matrix) -> Matrix:
        """Return AK'."""
        if not len(A):
            return A
        product = self.operator.matmat(like(A.T, self.operator.reference))
        return np.ascontiguousarray(to_numpy(product).T)

    def take(self, learner: Learner, at: Rows, rule: Gain) -> None:
        from mercer.methods.literature.steps import over_rows

        if learner.steps % len(self.visited) == 0 or learner.squared is None:  # a pass begins
            learner.squared = learner.squares(learner.V)
        gain = rule.numbers(learner.squared, self.size, len(self.visited))
        state = (learner.A, learner.V, learner.B, learner.rho, learner.spent)
        learner.held += over_rows(*self._rows(at), at, *state, gain, learner.steps)
        learner.steps += len(at)

    def covariances(self, learner: Learner) -> Matrix:
        return learner.V @ learner.V.T


class OfSpan(Lessons):
    """Rows by their orthonormal coordinates in the span of a basis, about their mean."""

    def __init__(self, found: LandmarkFit) -> None:
        self.found, source = found, found.problem.source
        T = found.span.whitener
        self.covariance: Matrix = np.asarray(T.T @ found.covariance @ T)
        weights = source.weights
        self.visits = n = source.shape[0]
        self.visited = np.arange(n) if weights is None else np.flatnonzero(weights)
        self.counts = np.ones(n) if weights is None else weights
        self.total, self.limit = found.total_upper, found.span.rank
        self.size = float(np.trace(self.covariance))
        self.least = (1.0 - _LEFT) * self.size
        self.chunk = upper_block_rows(found.span.size, 8)
        self._known: Matrix | None = None

    @property
    def nothing(self) -> bool:
        return self.size <= 0.0

    def begun(self, rng: np.random.Generator, r: int, before: Learner | None) -> Learner:
        known = np.zeros((0, self.limit)) if before is None else before.A
        return Learner.begin(np.vstack([known, start(rng, r - len(known), self.limit)]))

    def take(self, learner: Learner, at: Rows, rule: Gain) -> None:
        self.follow(learner, self._coordinates(at), rule)

    def follow(self, learner: Learner, F: Matrix, rule: Gain) -> None:
        """Learn from rows given by their coordinates; eigenvalues are looked up now and then.

        By the number of steps, so that where blocks end makes no difference.
        """
        from mercer.methods.literature.steps import over_features

        every, done = max(_EVERY, self.limit), 0
        while done < len(F):
            now = min(len(F) - done, every - learner.steps % every)
            if learner.steps % every == 0 or learner.squared is None:
                learner.squared = learner.squares(learner.A @ self.covariance)
            gain = rule.numbers(learner.squared, self.size, self.visits)
            some = np.ascontiguousarray(F[done : done + now])
            state = (learner.A, learner.B, learner.rho, learner.spent, learner.squared)
            learner.held += over_features(some, *state, gain, learner.steps)
            learner.steps += now
            done += now

    def covariances(self, learner: Learner) -> Matrix:
        return np.asarray(learner.A @ self.covariance @ learner.A.T)

    def best(self, values: Vector) -> bool:
        most = float(self._most[: len(values)].sum())
        return float(values.sum()) >= (1.0 - BETTER) * most

    @cached_property
    def _most(self) -> Vector:
        return eigh(self.covariance)[0]

    def white(self, h: Array, counts: Vector) -> Matrix:
        """Return coordinates of rows, so that their squares add up to the covariance."""
        mean = self.found.moments.mean * self.found.problem.center
        roots = np.sqrt(counts / max(self.found.divisor, 1e-300))
        return (
            np.asarray((to_numpy(h).astype(np.float64) - mean) @ self.found.span.whitener)
            * roots[:, None]
        )

    def _coordinates(self, at: Rows) -> Matrix:
        source = self.found.problem.source
        features = self.found.span.features(source)
        if self._known is None and fits(source.shape[0] * self.found.span.size):
            self._known = self.white(features.collect(), self.counts)
        if self._known is not None:
            return self._known[at]
        h = self.found.span.feature_map(source)(Block(0, source.take(at), None))
        return self.white(h, self.counts[at])


class Learning(KernelMoments):
    """Moments of h(x), and axes that learn from the rows in the order they came.

    Rows wait until all blocks of a batch are in: workers take them in turn.
    """

    here = True  # the rows that wait are no part of `arrays`
    resumable = False  # rows that wait are not among the arrays

    def __init__(
        self,
        span: Span,
        source: Any,
        *,
        center: bool,
        known: Any = None,
        learner: Learner | None = None,
    ) -> None:
        super().__init__(span, source, center=center, known=known)
        self.learner = learner
        self.rows: dict[int, Matrix] = {}

    def add_features(self, block: Block, h: Array, x: Points | None = None) -> None:
        super().add_features(block, h, x)
        self.rows[block.start] = np.column_stack([to_numpy(h).astype(np.float64), block.count])

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.rows.update(other.rows)

    def learn(self, lessons: OfSpan, rule: Gain) -> Learner:
        """Learn from the rows that wait, in their order; none wait then."""
        assert self.learner is not None
        for start in sorted(self.rows):
            h, counts = self.rows[start][:, :-1], self.rows[start][:, -1]
            lessons.follow(self.learner, lessons.white(h, counts), rule)
        self.rows = {}
        return self.learner

    def arrays(self) -> dict[str, Array]:
        state = {} if self.learner is None else self.learner.arrays()
        return {**super().arrays(), **{f"learner {name}": x for name, x in state.items()}}

    def restore(self, arrays: dict[str, Array]) -> None:
        head = "learner "
        state = {k.removeprefix(head): v for k, v in arrays.items() if k.startswith(head)}
        super().restore({k: v for k, v in arrays.items() if not k.startswith(head)})
        self.learner = Learner.restore(state) if state else None

"""What a landmark rule is: rows in, a basis out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.config import format_bytes, get_config
from mercer.data import StringSource
from mercer.linalg.span import Basis
from mercer.messages import format_parameter
from mercer.params import Params
from mercer.problem import KernelProblem


class Landmarks(Params, ABC):
    """A rule by which points of a basis are chosen."""

    name: str
    takes = "anything"
    """What rows must be: "vectors", or "anything"."""

    @abstractmethod
    def select(self, problem: KernelProblem, m: int) -> Basis:
        """Choose m points."""

    @property
    def passes(self) -> int:
        """Passes over the rows; of a rule whose steps depend on the data, the fewest."""
        return 0

    def work(self, n: int, d: int, m: int) -> float:
        """Return how many floating-point operations the choice takes."""
        return 0.0

    def memory(self, n: int, d: int, m: int) -> float:
        """Return how many bytes the choice takes."""
        return 0.0

    def check(self, problem: KernelProblem) -> None:
        """Refuse rows that the rule has no meaning for."""
        if self.takes == "anything":
            return
        given = "strings" if isinstance(problem.source, StringSource) else None
        given = "a precomputed kernel matrix" if problem.kernel is None else given
        if given is not None:
            from mercer.landmarks import RULES

            others = sorted(name for name, rule in RULES.items() if rule.takes == "anything")
            raise ValueError(
                f"{self!r} takes the mean of rows of numbers, and was given {given}. "
                f"Choose the basis by one of {', '.join(others)}."
            )


def drawn(problem: KernelProblem, sizes: Vector, m: int) -> Basis:
    """Draw m different rows, each with a probability in proportion to its size.

    Systematic sampling of a random order (Madow 1949): a row is drawn with probability
    min(1, c·size), exactly, so it stands for one over that many rows, as Horvitz & Thompson
    (1952) have it. Of sizes that are all equal it is a plain random sample.
    """
    at, chance = systematic(problem.rng, sizes, m)
    weights = problem.source.weights
    return taken(problem, at, (1.0 if weights is None else weights[at]) / chance)


def systematic(
    rng: np.random.Generator, sizes: Vector, m: int
) -> tuple[np.ndarray[Any, Any], Vector]:
    """Draw m different rows; return them in order, and the probability that each had."""
    n, chance = len(sizes), inclusion(sizes, m)
    order = rng.permutation(n)
    ends = np.cumsum(chance[order])
    at = order[np.searchsorted(ends, rng.random() + np.arange(m), side="right").clip(max=n - 1)]
    at.sort()
    return at, chance[at]


def inclusion(sizes: Vector, m: int) -> Vector:
    """Return min(1, c·size), with the c that makes them add up to m."""
    sizes = np.asarray(sizes, np.float64)
    if int((sizes > 0).sum()) < m:
        raise ValueError(
            f"only {int((sizes > 0).sum())} rows can be drawn, and "
            f"{format_parameter('n_basis', m)} were asked for. Take a smaller basis, or "
            f"{format_parameter('select', 'uniform')}."
        )
    certain = np.zeros(len(sizes), bool)
    while True:
        rest = float(sizes[~certain].sum())
        chance = np.where(certain, 1.0, sizes * ((m - certain.sum()) / rest if rest > 0 else 0.0))
        more = (chance > 1.0) & ~certain
        if not more.any():
            return np.minimum(chance, 1.0)
        certain |= more


def taken(problem: KernelProblem, at: Any, counts: Vector | None = None) -> Basis:
    """Return rows as a basis."""
    at = np.asarray(at, dtype=np.intp)
    points = None if problem.kernel is None else problem.source.take(at)
    return Basis(points, at, counts)


def pool(problem: KernelProblem, size: int) -> np.ndarray[Any, Any]:
    """Return rows drawn with equal chances, in order; those of a weight above zero."""
    weights = problem.source.weights
    there = np.arange(problem.source.shape[0]) if weights is None else np.flatnonzero(weights > 0)
    if size >= len(there):
        return there
    return np.sort(problem.rng.choice(there, size, replace=False))


def require_memory(nbytes: float, what: str) -> None:
    """Refuse what does not fit the memory budget."""
    budget = get_config().budget
    if nbytes > budget:
        raise MemoryError(
            f"{what} takes {format_bytes(nbytes)}, the memory budget is {format_bytes(budget)}. "
            f"Take a smaller basis, {format_parameter('select', 'uniform')}, or raise it with "
            f"{format_parameter('memory')}."
        )


def require_rows(problem: KernelProblem, m: int) -> None:
    """Refuse to choose more rows than there are of a weight above zero."""
    weights = problem.source.weights
    there = problem.source.shape[0] if weights is None else int((weights > 0).sum())
    if there < m:
        raise ValueError(
            f"only {there} rows have a weight above zero, and {format_parameter('n_basis', m)} "
            f"were asked for. Take a smaller basis."
        )

"""What methods on a basis share: its points, and what they cost."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

from mercer.arrays import like, to_numpy
from mercer.checks import is_real
from mercer.data.checkpoint import described, kept
from mercer.landmarks import Given, Landmarks, as_landmarks
from mercer.landmarks.base import taken
from mercer.landmarks.objective import axes_asked
from mercer.linalg.span import Basis
from mercer.messages import counted
from mercer.methods.base import Cost, Method, Size, largest
from mercer.methods.kernel.landmark_fit import AFFORDABLE
from mercer.problem import KernelProblem

# Points of a basis of no given size: so many, or so many for every axis.
_LEAST, _EACH = 1000, 4


class OnBasis(Method):
    """A method whose axes lie in the span of some points, the basis.

    Parameters
    ----------
    n_basis : int, float or None
        Points of the basis; below 1, their share of the rows. None: as many as are given, or as
        suit the number of axes.
    select : str, Landmarks, points or numbers of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
    """

    for_rows = False

    def __init__(self, n_basis: int | float | None = None, select: Any = "uniform") -> None:
        self.n_basis, self.select = n_basis, select

    @property
    def rule(self) -> Landmarks:
        """How the points are chosen."""
        return as_landmarks(self.select)

    def cost(self, size: Size) -> Cost:
        m, rule = self.points(size.n, size.k), self.rule
        products = 2.0 * size.n * m * size.d + float(size.n) * m * m
        products += rule.work(size.n, size.d, m)
        memory = 64.0 * m * m + 2.0 * 2**25 + rule.memory(size.n, size.d, m)
        pairs = float(size.n) * size.n * size.d
        if size.gap is not None and pairs <= AFFORDABLE:  # to judge the axes, if nothing else does
            products += 2 * pairs
            memory += 16.0 * size.n * (size.axes + size.d)
        # One looks for NaN and finds the mean, one meets the basis.
        return Cost(2 + rule.passes, products, 12.0 * m**3, memory)

    def points(self, n: int, k: int | None) -> int:
        """Return how many points the basis has, of n rows and for k axes."""
        m, rule = self.n_basis, self.rule
        if m is None and isinstance(rule, Given):
            return given(rule)
        if m is None:
            return min(n, max(_LEAST, _EACH * (k or 0)))
        return size_of(m, None if isinstance(rule, Given) else n)

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.points(size.n, size.k), 'point')})"

    def shrunk(self, size: Size, room: float) -> Self | None:
        def fits(m: int) -> bool:
            return self.changed(n_basis=m).cost(size).memory <= room

        if isinstance(self.rule, Given):
            return None
        m = largest(fits, max(1, size.k or 1), self.points(size.n, size.k))
        if m is not None:
            return self.changed(n_basis=m)
        if "select" not in self.get_params(deep=False) or self.rule == as_landmarks("uniform"):
            return None
        return self.changed(select="uniform").shrunk(size, room)

    def smaller(self, size: Size, room: float) -> str | None:
        found = self.shrunk(size, room)
        if found is None:
            return None
        rule = "" if found.rule == self.rule else " with select='uniform'"
        return f"n_basis={found.n_basis}{rule} fits"

    @property
    def nearer(self) -> str:
        return 'A larger n_basis comes nearer; method="auto" finds the way.'

    def require_room(self, n: int, k: int) -> None:
        require_room(k, self.points(n, k))

    def basis(self, problem: KernelProblem) -> Basis:
        """Choose the points."""
        wanted, rule = axes_asked(problem), self.rule
        # Rows of no weight are not drawn; but one that is given may be one of them.
        n = problem.source.shape[0] if isinstance(rule, Given) else weighing(problem)
        m = self.points(n, wanted)
        require_room(wanted, m)
        rule.check(problem)
        return rule.select(problem, m) if isinstance(rule, Given) else selected(rule, problem, m)


def selected(rule: Landmarks, problem: KernelProblem, m: int) -> Basis:
    """Choose points by a rule; of a run that was killed, those that it had chosen."""
    made: list[Basis] = []

    def select() -> dict[str, Any]:
        made.append(rule.select(problem, m))
        basis = made[0]
        points = None if basis.at is not None else to_numpy(basis.points)
        parts = {"points": points, "at": basis.at, "counts": basis.counts, "sizes": basis.sizes}
        return {name: part for name, part in parts.items() if part is not None}

    parts = kept(f"{described(rule)}, {m} points", select, problem.rng)
    if made:
        return made[0]
    if "at" in parts:
        basis = taken(problem, parts["at"], parts.get("counts"))
        return replace(basis, sizes=parts.get("sizes"))
    points = like(parts["points"], problem.source.reference)
    return Basis(points, counts=parts.get("counts"), sizes=parts.get("sizes"))


def given(rule: Given) -> int:
    """Return how many points are given."""
    shape = getattr(rule.points, "shape", None)
    return len(rule.points) if shape is None else int(shape[0])


def weighing(problem: KernelProblem) -> int:
    """Return how many rows have a weight above zero."""
    n, weights = problem.source.shape[0], problem.source.weights
    return n if weights is None else int((weights > 0).sum())


def size_of(m: Any, n: int | None) -> int:
    """Return the size of a basis that is asked for, if n rows have room for it.

    A number between 0 and 1 is a share of the rows, rounded, and one point at least.
    """
    if is_real(m) and 0 < m < 1:
        if n is None:
            raise ValueError(
                f"n_basis={m!r} is a share of rows, and points were given. Leave it out."
            )
        return max(1, round(float(m) * n))
    if is_real(m) and m == 1 and not isinstance(m, Integral):
        raise ValueError(
            f"n_basis={m!r} may mean one point, or all rows. Write 1 for one point; with all rows "
            f"method='exact' gives the same components."
        )
    if not (is_real(m) and math.isfinite(m) and m == int(m) >= 1):
        raise ValueError(
            f"n_basis={m!r} must be a whole number, 1 or more, or a share of the rows, more than "
            f"0 and less than 1."
        )
    if n is not None and m > n:
        raise ValueError(
            f"n_basis={m} is more than the {n} rows it is chosen from. Take at most {n}; with "
            f"all rows method='exact' gives the same components."
        )
    return int(m)


def require_room(wanted: int | None, m: int) -> None:
    """Refuse a basis that has fewer points than there are to be axes."""
    if wanted is not None and wanted > m:
        raise ValueError(
            f"n_components={wanted} does not fit the span of n_basis={m}. Take a "
            f"basis of at least {wanted}; some times that is better."
        )


def ready(problem: Any) -> KernelProblem:
    """Return the problem with its rows checked, and moved where that keeps digits."""
    assert isinstance(problem, KernelProblem)
    if problem.movable:  # one pass looks for NaN and finds the mean
        return problem.moved()
    problem.require_finite_rows()
    return problem

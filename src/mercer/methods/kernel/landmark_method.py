"""What methods on landmarks share: the choice of the points, the pass, and their cost."""

from __future__ import annotations

import math
from abc import abstractmethod
from numbers import Integral
from typing import Any, Self

from mercer.arrays import is_finite
from mercer.certificate import Axes
from mercer.checks import is_real
from mercer.data import Search, not_finite
from mercer.landmarks import Given, Landmarks, as_landmarks
from mercer.linalg.span import Basis
from mercer.messages import ParameterError, counted, format_parameter
from mercer.methods.base import Cost, Method, Size, largest
from mercer.methods.kernel.landmark_fit import AFFORDABLE, LandmarkFit, fit_landmarks
from mercer.methods.preparation import move_rows, needs_moving, require_finite_vectors
from mercer.problem import KernelProblem, Problem

# Points of a basis whose size is not set: at least this many, and this many per component.
_LEAST, _EACH = 1000, 4


class OnBasis(Method):
    """A method whose components lie in the span of some points, the basis.

    Parameters
    ----------
    n_basis : int, float or None
        Number of points; below 1, their share of the rows. None: the number of points passed as
        `select`, or a number that suits the number of components.
    select : str, Landmarks, points or indices of rows
        How they are chosen: a rule of `mercer.landmarks` or its name; or the points themselves.
    """

    for_rows = False

    def __init__(self, n_basis: int | float | None = None, select: Any = "uniform") -> None:
        self.n_basis, self.select = n_basis, select

    @property
    def rule(self) -> Landmarks:
        """The landmark rule."""
        return as_landmarks(self.select)

    def cost(self, size: Size) -> Cost:
        m, rule = self.points(size.n, size.k), self.rule
        products = 2.0 * size.n * m * size.d + float(size.n) * m * m
        selection = rule.cost(size.n, size.d, m)
        products += selection.work
        memory = 64.0 * m * m + 2.0 * 2**25 + selection.memory
        pairs = float(size.n) * size.n * size.d
        if size.gap is not None and pairs <= AFFORDABLE:  # for the certificate, if need be
            products += 2 * pairs
            memory += 16.0 * size.n * (size.components + size.d)
        # Rules that pass over the rows check them first.
        passes = 1 + size.first_pass + selection.passes + bool(selection.passes)
        return Cost(passes, products, 12.0 * m**3, memory)

    def points(self, n: int, k: int | None) -> int:
        """Return the number of points, for n rows and k components."""
        m, rule = self.n_basis, self.rule
        if m is None and isinstance(rule, Given):
            return len(rule)
        if m is None:
            return min(n, max(_LEAST, _EACH * (k or 0)))
        return basis_size(m, None if isinstance(rule, Given) else n)

    def label(self, size: Size) -> str:
        return f"{self.name} ({counted(self.points(size.n, size.k), 'point')})"

    def shrink(self, size: Size, room: float) -> Self | None:
        def fits(m: int) -> bool:
            return self.with_params(n_basis=m).cost(size).memory <= room

        if isinstance(self.rule, Given):
            return None
        m = largest(fits, max(1, size.k or 1), self.points(size.n, size.k))
        if m is not None:
            return self.with_params(n_basis=m)
        if "select" not in self.get_params(deep=False) or self.rule == as_landmarks("uniform"):
            return None
        return self.with_params(select="uniform").shrink(size, room)

    def suggestion(self, size: Size, room: float) -> str | None:
        smaller = self.shrink(size, room)
        if smaller is None:
            return None
        same = smaller.rule == self.rule
        rule = "" if same else f" with {format_parameter('select', 'uniform')}"
        return f"{format_parameter('n_basis', smaller.n_basis)}{rule} fits"

    @property
    def remedy(self) -> str:
        automatic = format_parameter("method", "auto")
        return f"A larger {format_parameter('n_basis')} comes nearer; {automatic} finds the way."

    def check_size(self, n: int, k: int) -> None:
        require_points(k, self.points(n, k))

    def basis(self, problem: KernelProblem) -> Basis:
        """Choose the points."""
        wanted, rule = problem.n_leading, self.rule
        # Rows of zero weight are not drawn, but may be among the points that a user passes.
        n = problem.source.shape[0] if isinstance(rule, Given) else weighted_rows(problem)
        m = self.points(n, wanted)
        require_points(wanted, m)
        rule.check(problem)
        if rule.cost(n, 1, m).passes:  # rules compute with the rows before the fit checks them
            require_finite_vectors(problem)
        basis = rule.select(problem, m)
        points = basis.points
        if isinstance(points, list) or points is None:
            return basis
        if is_finite(points.data if hasattr(points, "tocsr") else points):
            return basis
        raise not_finite(problem.source.fold(Search()).found, problem.source)


class LandmarkMethod(OnBasis):
    """A method that solves for the components after one pass over the rows."""

    def fit(self, problem: Problem) -> Axes:
        problem = prepare(problem)
        return self.solve(fit_landmarks(problem, self.basis(problem)))

    @abstractmethod
    def solve(self, fit: LandmarkFit) -> Axes:
        """Return the components, given the sums of that pass."""


def prepare(problem: Problem) -> KernelProblem:
    """Return the problem with its rows moved toward zero, if that keeps digits."""
    assert isinstance(problem, KernelProblem)
    return move_rows(problem) if needs_moving(problem) else problem


def weighted_rows(problem: KernelProblem) -> int:
    """Return the number of rows of positive weight."""
    n, weights = problem.source.shape[0], problem.source.weights
    return n if weights is None else int((weights > 0).sum())


def basis_size(m: Any, n: int | None) -> int:
    """Return the size of a basis of n rows, or of points that the user passed.

    A number between 0 and 1 is a share of the rows, rounded, and at least one point.
    """
    if is_real(m) and 0 < m < 1:
        if n is None:
            raise ParameterError(
                "n_basis", m, "is a share of rows, and points were given. Leave it out."
            )
        return max(1, round(float(m) * n))
    if is_real(m) and m == 1 and not isinstance(m, Integral):
        raise ParameterError(
            "n_basis",
            m,
            f"may mean one point, or all rows. Write 1 for one point; with all rows "
            f"{format_parameter('method', 'exact')} gives the same components.",
        )
    if not (is_real(m) and math.isfinite(m) and m == int(m) >= 1):
        raise ParameterError(
            "n_basis",
            m,
            "must be a whole number, 1 or more, or a share of the rows, more than 0 and less "
            "than 1.",
        )
    if n is not None and m > n:
        raise ParameterError(
            "n_basis",
            m,
            f"is more than the {n} rows it is chosen from. Take at most {n}; with all rows "
            f"{format_parameter('method', 'exact')} gives the same components.",
        )
    return int(m)


def require_points(wanted: int | None, m: int) -> None:
    """Refuse a basis with fewer points than components."""
    if wanted is not None and wanted > m:
        raise ParameterError(
            "n_components",
            wanted,
            f"does not fit the span of {format_parameter('n_basis', m)}. Take a basis of at least "
            f"{wanted}; some times that is better.",
        )

"""Base class of methods: cost, fit and eigensolvers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mercer.arrays import Vector
from mercer.certificate import Axes, spectral_evidence
from mercer.data import Fold
from mercer.linalg.bounds import split_bound
from mercer.linalg.operator import Operator
from mercer.linalg.solvers import SOLVERS, Randomized, Solver, Spectrum, dense, krylov
from mercer.linalg.solvers.spectrum import WarmStart
from mercer.messages import counted, format_parameter
from mercer.params import Params
from mercer.problem import Problem

# Below this share of the largest eigenvalue, a product in this precision loses digits that an
# SVD of the data keeps.
FLOOR = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
# Below this share, a float32 product has lost the component, not only some of its digits.
LOST = 1e-5


@dataclass(frozen=True)
class Size:
    """Shapes and parameters that determine the cost of a method."""

    n: int
    d: int
    k: int | None  # number of components; None where the rule must see the eigenvalues first
    itemsize: int = 8
    nnz: int | None = None
    columns: bool = True  # whether the rows can be read by columns
    gap: float | None = None  # certified distance from the optimum that is good enough
    kernel: bool = False  # whether components lie in feature space: there may be as many as rows
    strings: bool = False  # whether rows are strings; d is then the cost of comparing two of them
    on_device: bool = False  # whether rows live on a device with its own memory
    remote: bool = False  # whether rows, and products with their kernel matrix, stay on a cluster
    first_pass: bool = False  # whether a pass of its own sums columns, to scale or shift rows

    @property
    def shape(self) -> str:
        """The shape of the rows, in words."""
        return counted(self.n, "string") if self.strings else f"{self.n} × {self.d}"

    @property
    def row_size(self) -> float:
        """Numbers that a row takes: its columns, or its entries with their places."""
        return self.d if self.nnz is None else 1.5 * self.nnz / max(1, self.n)

    @property
    def components(self) -> int:
        """Number of components to plan for."""
        if self.k is not None:
            return self.k
        return self.n if self.kernel else min(self.n, self.d)


class Cost(NamedTuple):
    """Cost of a method: passes, operations and memory.

    Attributes
    ----------
    passes : int
        Passes over the rows; the fewest, if the number depends on the data. Iterative solvers of
        linear PCA and of `Exact` may converge earlier.
    products : float
        Floating-point operations in matrix products, in the precision of the data.
    sparse : float
        The same in products with a sparse matrix.
    factor : float
        Floating-point operations in LAPACK, float64.
    memory : float
        Bytes beside the data.
    extra_passes : float
        Passes that the data may require besides, at most; infinite if no limit is known.
    """

    passes: int
    products: float
    factor: float
    memory: float
    sparse: float = 0.0
    extra_passes: float = 0.0

    @property
    def passes_range(self) -> str:
        """The number of passes, as "3", "3 to 1003" or "3 or more"."""
        if not self.extra_passes:
            return str(self.passes)
        most = self.passes + self.extra_passes
        return f"{self.passes} or more" if math.isinf(most) else f"{self.passes} to {most:.0f}"


class Method(Params, ABC):
    """A method that computes components: `fit` solves a problem, `cost` predicts its cost."""

    name: str
    for_rows = for_kernels = True  # whether it finds components of the rows; in feature space
    approximates = False
    """Whether the optimum needs a bound of its own, from random blocks of rows."""
    judges = False
    """Whether `judge` may take a pass."""
    pairwise = False
    """Whether rows enter only by products with the kernel matrix: remote rows can stay remote."""

    @property
    def keeps_rows(self) -> bool:
        """Whether the fitted map contains all rows."""
        return False

    @abstractmethod
    def fit(self, problem: Problem) -> Axes:
        """Find the components."""

    @abstractmethod
    def cost(self, size: Size) -> Cost:
        """Return what `fit` needs for rows of this size."""

    def judge(self, problem: Problem, axes: Axes) -> Axes:
        """Return the components with evidence that takes a pass of its own."""
        return axes

    def label(self, size: Size) -> str:
        """Return its name in plans."""
        solver = getattr(self, "solver", "dense")
        name = solver if isinstance(solver, str) else type(solver).__name__.lower()
        return self.name if name == "dense" else f"{self.name} ({name})"

    @property
    def remedy(self) -> str:
        """Advice if the gap was not reached."""
        return f"{format_parameter('method', 'exact')} uses all rows."

    def check_size(self, n: int, k: int) -> None:
        """Raise if the method cannot find k components of n rows."""


class Streaming(Method):
    """A method that reads every row once, so that rows may come in batches."""

    fixes_components: ClassVar[bool] = False
    """Whether the first batch fixes the number of components."""

    @abstractmethod
    def begin(self, problem: Problem) -> Fold:
        """Return the fold that the rows are added to."""

    @abstractmethod
    def finish(self, problem: Problem, fold: Any) -> Axes:
        """Return the components of the rows added so far, without reading the source."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before it met its tolerance, or a certificate missed its gap."""


def find_solver(solver: str | Solver) -> Solver:
    """Return a solver, if need be by its name."""
    if not isinstance(solver, str):
        return solver
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not one of {', '.join(sorted(SOLVERS))}.")
    return SOLVERS[solver]


def solve(
    problem: Problem,
    operator: Operator,
    solver: str | Solver,
    warm: WarmStart | None = None,
    most: int | None = None,
) -> tuple[Spectrum, int]:
    """Find as many eigenpairs as the rule asks for, or more; return them, and the number it chose.

    Krylov starts from `warm`, and stops as soon as the required gap is certified. If the rule needs
    more than `most` pairs, the operator is decomposed instead.
    """
    if isinstance(solver, str):
        solver = find_solver(solver)
    how: dict[str, Any] = {}
    limit = min(problem.limit, operator.size)
    wanted = problem.n_components
    if wanted is None and solver is dense:
        return _decompose(problem, operator, limit)
    if wanted is None:
        at_once = problem.rule.needs_all or solver is SOLVERS["jacobi"]
        wanted = limit if at_once else min(limit, 32)
    if problem.gap is not None and solver is krylov:
        how["enough"] = lambda spectrum: within_gap(problem, operator, spectrum)
    k = max(1, min(wanted, limit))
    start: Any = warm
    while True:
        spectrum = solver(operator, k, tol=problem.tol, rng=problem.rng, start=start, **how)
        start = spectrum
        chosen = problem.choose(spectrum.values, operator.trace)
        if chosen is not None:
            break
        k = min(limit, 2 * k)
        if most is not None and k > most:
            return _decompose(problem, operator, limit)
    return _converged(spectrum, chosen) if isinstance(solver, Randomized) else spectrum, chosen


def _decompose(problem: Problem, operator: Operator, limit: int) -> tuple[Spectrum, int]:
    """Show the rule all eigenvalues, and compute as many vectors as it chooses."""
    chosen = 0

    def choose(values: Vector) -> int:
        nonlocal chosen
        k = problem.choose(values[:limit], operator.trace)
        assert k is not None  # the spectrum is complete
        chosen = k
        return max(1, k)

    spectrum = dense(operator, limit, tol=problem.tol, rng=problem.rng, choose=choose)
    return spectrum, chosen


def _converged(spectrum: Spectrum, k: int) -> Spectrum:
    """Record whether a fixed number of steps found the first digits of the eigenvalues."""
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    small = np.maximum(0.05 * values, 1e-10 * np.max(values, initial=0.0))
    return replace(spectrum, converged=bool(np.all(residuals <= small)))


def within_gap(problem: Problem, operator: Operator, spectrum: Spectrum) -> bool:
    """Return whether the eigenpairs are certified within the required gap."""
    k = problem.choose(spectrum.values, operator.trace)
    if k is None or problem.gap is None or k == 0:
        return k == 0
    if spectral_evidence(operator, spectrum, k, problem.rng, probe=False).gap <= problem.gap:
        return True
    assert spectrum.ritz is not None
    assert spectrum.coupling is not None
    # The bound that costs products: only if the coupling alone leaves at most half of the gap.
    explained = float(spectrum.values[:k].sum())
    hopeful = split_bound(spectrum.ritz, spectrum.coupling, float(spectrum.ritz[-1]), k)
    if hopeful * (1.0 - problem.gap / 2) > explained:
        return False
    return spectral_evidence(operator, spectrum, k, problem.rng).gap <= problem.gap

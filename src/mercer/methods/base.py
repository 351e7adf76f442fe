"""What a method is, what it costs, and how its answer is certified."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from mercer.arrays import Vector
from mercer.arrays.rounding import FEW, summed
from mercer.certificate import (
    Certificate,
    Figure,
    pinching,
    schur,
    spacing_of,
    split,
    unseen_frobenius,
)
from mercer.data import Fold
from mercer.linalg import Operator
from mercer.linalg.solvers import SOLVERS, Randomized, Solver, Spectrum, dense, krylov, unseen
from mercer.linalg.solvers.spectrum import Warm, lengths
from mercer.messages import counted
from mercer.params import Params
from mercer.problem import Problem
from mercer.projection import Projection
from mercer.threads import serial_blas

# Below this share of the largest eigenvalue a product in this precision loses digits that
# an SVD of the data keeps.
FLOOR = {np.dtype(np.float32): 1e-2, np.dtype(np.float64): 1e-6}
# Below this share a float32 product has lost the axis, not only some of its digits.
LOST = 1e-5


@dataclass(frozen=True)
class Size:
    """What a cost depends on: shapes and wishes, never the machine."""

    n: int
    d: int
    k: int | None
    """Axes wanted, None where the rule must see the spectrum first."""
    itemsize: int = 8
    nnz: int | None = None
    columns: bool = True
    """Whether the rows can be read by columns."""
    gap: float | None = None
    """Certified distance from the optimum that is good enough."""
    square: bool = False
    """Whether there may be as many axes as rows, however few the columns: a kernel's."""
    strings: bool = False
    """Whether rows are strings; d is then what comparing two of them is reckoned at."""
    on_device: bool = False
    """Whether rows live on a device with memory of its own."""
    elsewhere: bool = False
    """Whether rows lie elsewhere, and products with their kernel matrix are made there."""

    @property
    def shape(self) -> str:
        """The shape of the rows, in words."""
        return counted(self.n, "string") if self.strings else f"{self.n} × {self.d}"

    @property
    def side(self) -> int:
        """The most axes there can be."""
        return self.n if self.square else min(self.n, self.d)

    @property
    def axes(self) -> int:
        """Axes to reckon with."""
        return self.side if self.k is None else self.k


@dataclass(frozen=True)
class Cost:
    """What a method needs.

    Attributes
    ----------
    passes : int
        Passes over the rows.
    products : float
        Floating-point operations in matrix products, in the precision of the data.
    sparse : float
        The same in products with a sparse matrix.
    factor : float
        Floating-point operations in LAPACK, float64.
    memory : float
        Bytes beside the data.
    """

    passes: int
    products: float
    factor: float
    memory: float
    sparse: float = 0.0


class Method(Params, ABC):
    """Finds principal axes: a problem in, a projection out."""

    name: str
    for_rows = for_kernels = True
    """Whether it finds components of rows themselves, and in the space of a kernel."""
    in_pairs = False
    """Whether all rows meet only in products with the kernel matrix, so that those which lie
    elsewhere may stay there."""

    @property
    def keeps_rows(self) -> bool:
        """Whether the fitted map holds all rows."""
        return False

    @abstractmethod
    def fit(self, problem: Problem) -> Projection:
        """Solve the problem."""

    @abstractmethod
    def cost(self, size: Size) -> Cost:
        """Say what `fit` needs at this size."""

    def label(self, size: Size) -> str:
        """Return the name that plans call it by."""
        solver = getattr(self, "solver", "dense")
        name = solver if isinstance(solver, str) else type(solver).__name__.lower()
        return self.name if name == "dense" else f"{self.name} ({name})"

    def shrunk(self, size: Size, room: float) -> Self | None:
        """Return the method with parameters that fit into `room` bytes; None where none do."""
        return None

    def smaller(self, size: Size, room: float) -> str | None:
        """Name a change of parameters that fits into `room` bytes; None where none does."""
        found = self.shrunk(size, room)
        return None if found is None else f"method={found!r} fits"

    def changed(self, **params: Any) -> Self:
        """Return a copy with other parameters."""
        return copy.copy(self).set_params(**params)

    @property
    def nearer(self) -> str:
        """Say what would come nearer to a gap that was missed."""
        return 'method="exact" takes all rows.'

    def require_room(self, n: int, k: int) -> None:
        """Refuse to find k axes of n rows, where they have no room."""


def largest(fits: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the largest number from low to high that fits, where smaller ones do; else None."""
    if low > high or not fits(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


class Streaming(Method):
    """A method that sees every row once, so that rows may come in batches."""

    fixes_components: ClassVar[bool] = False
    """Whether the number of components is settled by the first batch."""

    @abstractmethod
    def begin(self, problem: Problem) -> Fold:
        """Return the fold that the rows are added to."""

    @abstractmethod
    def finish(self, problem: Problem, fold: Any) -> Projection:
        """Return what the rows added so far amount to; does not read the source."""


class ConvergenceWarning(UserWarning):
    """A solver stopped before it met its tolerance, or a certificate missed its gap."""


def find_solver(solver: str | Solver) -> Solver:
    """Return a solver by its name."""
    if not isinstance(solver, str):
        return solver
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is not one of {', '.join(sorted(SOLVERS))}.")
    return SOLVERS[solver]


def solve(
    problem: Problem,
    operator: Operator,
    solver: Solver,
    warm: Warm | None = None,
    most: int | None = None,
) -> tuple[Spectrum, int]:
    """Find as many eigenvalues as the rule asks for; return them, and the number it chose.

    There may be more in the spectrum than were chosen. Krylov begins with `warm`, and stops as
    soon as the gap asked for is certain. Where the rule needs more than `most`, the operator
    is decomposed instead.
    """
    how: dict[str, Any] = {}
    limit = min(problem.limit, operator.size)
    wanted = problem.rule.first_guess(*problem.sides)
    if wanted is None and solver is dense:
        return _chosen(problem, operator, limit)
    if wanted is None:
        at_once = problem.rule.whole or solver is SOLVERS["jacobi"]
        wanted = limit if at_once else min(limit, 32)
    if problem.gap is not None and solver is krylov:
        how["enough"] = lambda found: within_gap(problem, operator, found)
    k = max(1, min(wanted, limit))
    start: Any = warm
    while True:
        spectrum = solver(operator, k, tol=problem.tol, rng=problem.rng, start=start, **how)
        start = spectrum
        chosen = problem.choose(spectrum.values, operator.trace)
        if chosen is not None:
            break
        if most is not None and not _within(most, problem, operator, spectrum):
            return _chosen(problem, operator, limit)
        k = min(limit, 2 * k)
    return _judged(spectrum, chosen) if isinstance(solver, Randomized) else spectrum, chosen


def _within(most: int, problem: Problem, operator: Operator, found: Spectrum) -> bool:
    """Tell whether the rule may be content with `most` eigenvalues, if the next are as large."""
    more = most - len(found.values)
    if more <= 0:
        return False
    hoped = np.append(found.values, np.full(more, found.values[-1]))
    return problem.choose(hoped, operator.trace) is not None


def _chosen(problem: Problem, operator: Operator, limit: int) -> tuple[Spectrum, int]:
    """Let the rule see all eigenvalues, and compute as many vectors as it chooses."""
    chosen = 0

    def choose(values: Vector) -> int:
        nonlocal chosen
        found = problem.choose(values[:limit], operator.trace)
        assert found is not None  # the whole spectrum is there
        chosen = found
        return max(1, found)

    spectrum = dense(operator, limit, tol=problem.tol, rng=problem.rng, choose=choose)
    return spectrum, chosen


def _judged(spectrum: Spectrum, k: int) -> Spectrum:
    """Say whether a fixed number of steps was enough for the eigenvalues' first digits."""
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    few = np.maximum(0.05 * values, 1e-10 * np.max(values, initial=0.0))
    return replace(spectrum, converged=bool(np.all(residuals <= few)))


def certify(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator, *, probe: bool = True
) -> Certificate:
    """Say what the first k axes hold, and what no k axes can exceed.

    A dense decomposition misses nothing, so only rounding counts. Otherwise the bounds of
    `certificate` apply: those that always hold, and, where they leave something open, the
    one that six to sixteen more products of four vectors buy at 99.9 %.
    """
    total = operator.trace
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    slack = operator.rounding * k**0.5
    held = max(0.0, float(values.sum()) - slack)
    if spectrum.complete:
        # Residuals count the matrix's rounding too, which is in the slack already.
        apart = np.maximum(residuals - operator.rounding, 0.0)
        error = float(lengths(apart[:, None])[0]) * k**0.5
        upper = Figure(float(values.sum()) + slack + error, "bound", operator.confidence)
    else:
        with serial_blas():
            upper = _optimum(operator, spectrum, k, rng if probe else None)
        upper = Figure(upper + slack, upper.kind, upper.confidence)
    # The total is rounded too: shares are of the larger, and of the smaller, that it can be.
    most, least = total + operator.rounding, max(total - operator.rounding, 0.0)
    captured = held / most if most > 0 else 0.0
    # Where the total is within its rounding, nothing is known of shares.
    best = upper / least if least > 0 else float(most > 0)
    best = best if k else 0.0
    # Negative eigenvalues make the total smaller than what positive ones hold; where nothing is
    # left of it there are no shares, and the gap is that of the variances.
    most_there_is, ratio = 1.0 if operator.psd else np.inf, None
    if not operator.psd and not least > 0 and upper > 0:
        ratio = Figure(min(1.0, held / upper), upper.kind, upper.confidence)
    others = spectrum.values[k:] if spectrum.ritz is None else spectrum.ritz[k:]
    return Certificate(
        captured=Figure(min(most_there_is, captured), "bound", operator.confidence),
        optimum_upper=Figure(min(most_there_is, best), upper.kind, upper.confidence),
        residuals=residuals,
        eigenvalues=values,
        spacing=spacing_of(values, others),
        converged=spectrum.converged,
        ratio=ratio,
    )


def lifted_certificate(
    certificate: Certificate, total: float, n: int, products: Any = np.float64
) -> Certificate:
    """Return the certificate of axes v = Xᵀu/σ, given that of eigenvectors u of the dot matrix.

    Cv − λv = Xᵀ(Gu − λu)/σ is longer by √(λ₁/λ) at most; and a product of n terms rounds v by
    n u ‖X‖_F/σ. No unit vector has a residual above λ₁.
    """
    values = certificate.eigenvalues
    largest = float(np.max(values + certificate.residuals, initial=0.0))
    unit = (summed(n, products) + FEW) * float(np.finfo(products).eps) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = certificate.residuals * np.sqrt(largest / values)
        grown += unit * largest * np.sqrt(total / values)
    return replace(certificate, residuals=np.fmin(grown, largest))


def within_gap(problem: Problem, operator: Operator, found: Spectrum) -> bool:
    """Tell whether what was found is within the gap asked for.

    The bounds that cost nothing come first; the one that costs products is tried only
    when the coupling alone would leave half of the gap.
    """
    k = problem.choose(found.values, operator.trace)
    if k is None or problem.gap is None or k == 0:
        return k == 0
    if certify(operator, found, k, problem.rng, probe=False).gap <= problem.gap:
        return True
    assert found.ritz is not None
    assert found.coupling is not None
    held = float(found.values[:k].sum())
    hopeful = split(found.ritz, found.coupling, float(found.ritz[-1]), k)
    if hopeful * (1.0 - problem.gap / 2) > held:
        return False
    return certify(operator, found, k, problem.rng).gap <= problem.gap


def _optimum(
    operator: Operator, spectrum: Spectrum, k: int, rng: np.random.Generator | None
) -> Figure:
    ritz, coupling = spectrum.ritz, spectrum.coupling
    assert ritz is not None  # every solver that is not complete gives them
    assert coupling is not None
    held = float(ritz[:k].sum())
    # What rounding hides of the trace may be unseen, too.
    trace = operator.trace + operator.rounding
    left = max(0.0, trace - float(ritz.sum())) if operator.psd else np.inf
    bounds = [schur(ritz, coupling, left, k), split(ritz, coupling, left, k)]
    bounds += [pinching(ritz, trace, k)] if operator.psd else []
    always = Figure(min(bounds), "bound", operator.confidence)
    if operator.square is not None:
        product = float(ritz @ ritz) + float(np.trace(coupling))
        left = min(left, unseen_frobenius(operator.square, product, ritz))
        tighter = min(schur(ritz, coupling, left, k), split(ritz, coupling, left, k))
        if tighter < always:
            always = Figure(tighter, "bound", min(operator.confidence, operator.square.confidence))
    if operator.hidden is not None and spectrum.products <= len(ritz):  # nothing was dropped
        hidden = min(left, operator.hidden)
        likely = min(schur(ritz, coupling, hidden, k), split(ritz, coupling, hidden, k))
        if likely < always:
            always = Figure(likely, "bound", 0.999)
    probe = operator.psd and operator.probe is not None
    if rng is None or not probe or always <= held * (1 + 1e-6):
        return always
    basis = spectrum.basis
    if basis is None:
        basis = spectrum.state.rows[: len(ritz), :].T

    def bounded(hidden: float) -> float:
        return split(ritz, coupling, min(hidden, left), k)

    hidden = unseen(operator, basis, rng, lambda bound: bounded(bound) <= held * (1 + 1e-6))
    likely = bounded(hidden)
    return Figure(likely, "bound", hidden.confidence) if likely < always else always

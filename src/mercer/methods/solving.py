"""Solving the eigenproblem of a method: as many eigenpairs as its rule asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Vector
from mercer.certificate import spectral_evidence
from mercer.linalg.bounds import split_bound
from mercer.linalg.operator import Operator
from mercer.linalg.solvers import SOLVERS, Randomized, Solver, Spectrum, dense, krylov
from mercer.linalg.solvers.spectrum import WarmStart
from mercer.problem import Problem


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
    warm: WarmStart | None = None,
    most: int | None = None,
) -> tuple[Spectrum, int]:
    """Find as many eigenpairs as the rule asks for; return them, and the number it chose.

    The spectrum may hold more pairs than were chosen. Krylov starts from `warm`, and stops as soon
    as the required gap is certified. If the rule needs more than `most` pairs, the operator is
    decomposed instead.
    """
    how: dict[str, Any] = {}
    limit = min(problem.limit, operator.size)
    wanted = problem.n_components
    if wanted is None and solver is dense:
        return _decompose(problem, operator, limit)
    if wanted is None:
        at_once = problem.rule.whole or solver is SOLVERS["jacobi"]
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
        if most is not None and not _within(most, problem, operator, spectrum):
            return _decompose(problem, operator, limit)
        k = min(limit, 2 * k)
    return _converged(spectrum, chosen) if isinstance(solver, Randomized) else spectrum, chosen


def _within(most: int, problem: Problem, operator: Operator, spectrum: Spectrum) -> bool:
    """Tell whether `most` eigenvalues could satisfy the rule, if the next are as large."""
    more = most - len(spectrum.values)
    if more <= 0:
        return False
    optimistic = np.append(spectrum.values, np.full(more, spectrum.values[-1]))
    return problem.choose(optimistic, operator.trace) is not None


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
    """Tell whether the eigenpairs are certified within the required gap.

    The bounds that cost nothing come first; the one that costs products is tried only when the
    coupling alone would leave half of the gap.
    """
    k = problem.choose(spectrum.values, operator.trace)
    if k is None or problem.gap is None or k == 0:
        return k == 0
    if spectral_evidence(operator, spectrum, k, problem.rng, probe=False).gap <= problem.gap:
        return True
    assert spectrum.ritz is not None
    assert spectrum.coupling is not None
    explained = float(spectrum.values[:k].sum())
    hopeful = split_bound(spectrum.ritz, spectrum.coupling, float(spectrum.ritz[-1]), k)
    if hopeful * (1.0 - problem.gap / 2) > explained:
        return False
    return spectral_evidence(operator, spectrum, k, problem.rng).gap <= problem.gap

"""Choice of the method of kernel PCA."""

from __future__ import annotations

from dataclasses import replace
from inspect import isabstract
from operator import attrgetter
from typing import Any

from mercer import methods
from mercer.arrays import on_accelerator
from mercer.config import format_bytes, get_config
from mercer.linalg.solvers import Solver
from mercer.messages import format_parameter
from mercer.methods import Adaptive, Exact, Method, Size
from mercer.methods.preparation import needs_moving
from mercer.planning.plan import (
    ASKED,
    Candidate,
    Plan,
    alternative,
    enough_memory,
    largest_subset,
    price,
)
from mercer.problem import KernelProblem

_NAMED: dict[str, type[Method]] = {
    method.name: method
    for method in (getattr(methods, name) for name in methods.__all__)
    if issubclass(method, Method) and not isabstract(method)
    if method.for_kernels and method is not Exact
}
METHODS = ("auto", "exact", *_NAMED)
"""Names of methods."""

# A pair of strings costs about as much as a pair of rows with so many columns.
_STRING_COST = 10_000
# Seconds, on the nominal machine, that a kernel matrix which is not stored may take.
_PATIENCE = 600.0
# Below so many rows a decomposition costs no more than a basis.
_FEW = 2000
# Up to so many rows the whole spectrum costs next to nothing.
_DENSE = 1000


def make_kernel_plan(problem: KernelProblem, solver: str | Solver, method: str | Method) -> Plan:
    """Choose a method of kernel PCA.

    All rows where that fits the memory budget: the kernel matrix stored in float64, else in
    float32, else computed again for every product, unless that takes too long. Else a basis. With
    a gap, the cheapest of those and of a basis that grows.
    """
    shape = problem.source.shape
    n = shape[0]
    size = Size(
        n=n,
        d=shape[1] if len(shape) > 1 else _STRING_COST,
        k=problem.rule.at_most(n, n),
        itemsize=problem.source.dtype.itemsize,
        nnz=getattr(problem.source, "nnz", None),
        gap=problem.gap,
        kernel=True,
        strings=len(shape) == 1,
        on_device=on_accelerator(problem.source.reference),
        remote=problem.source.remote is not None and problem.kernel is not None,
        first_pass=problem.sees_offset and needs_moving(problem),
    )
    budget = get_config().budget
    if isinstance(method, str) and method in _NAMED:
        method = _NAMED[method]()
    if isinstance(method, Method):
        if solver != "auto":
            raise ValueError(
                f"eigen_solver={solver!r} applies to kernel PCA of all rows, not to "
                f"method={method!r}. Omit one of them; Exact(solver=...) takes a solver."
            )
        if not method.for_kernels:
            raise ValueError(
                f"method={method!r} is a method of linear PCA. Use "
                f"PCA(svd_solver={method!r}), or a method of KernelPCA such as Exact(), Subset() "
                f"or Nystrom()."
            )
        return Plan(method, ASKED, (price(method, size, budget),), size, budget)
    exact = [price(one, size, budget) for one in _exact(problem, solver)]
    if solver == "dense":
        return Plan(exact[0].method, ASKED, tuple(exact), size, budget)
    psd = problem.kernel is not None and problem.kernel.psd is True
    stored = [c for c in exact if c.fits and getattr(c.method, "store", "") == "float64"]
    best = next((c for c in exact if c.fits), None)
    reason = f"the first that fits in {format_bytes(budget)}"
    grows = solver == "auto" and size.k is None and psd and not problem.rule.needs_all
    if grows and len(stored) > 1 and n > _DENSE:
        # Krylov decomposes the whole matrix only if a rule asks for many components.
        best, reason = stored[-1], "computes the whole spectrum only if the rule needs it"
    elif stored:
        best, reason = min(stored, key=attrgetter("nominal")), "the cheapest"
    if method != "exact" and solver == "auto":
        return _chosen(problem, exact, best, reason, size, budget, psd)
    if best is None:
        raise _too_large(problem, exact, size, budget)
    return Plan(best.method, reason, tuple(exact), size, budget)


def _exact(problem: KernelProblem, solver: Any) -> list[Method]:
    """Return the ways to solve the problem of all rows."""
    iterated = "krylov" if solver in ("auto", "dense") else solver
    # Only Krylov iterates in float32; the others would compute the matrix anew every time.
    stores = ["float64", "float32", "none"] if iterated == "krylov" else ["float64", "none"]
    if problem.kernel is None:
        stores = ["float64"]
    elif problem.source.remote is not None:  # the matrix is not stored there
        return [Exact("dense" if solver == "dense" else iterated, "none")]
    methods: list[Method] = [Exact(iterated, store) for store in stores]
    return [Exact("dense"), *methods] if solver in ("auto", "dense") else methods


def _chosen(
    problem: KernelProblem,
    exact: list[Candidate],
    best: Candidate | None,
    reason: str,
    size: Size,
    budget: int,
    psd: bool,
) -> Plan:
    """Choose between all rows and a basis."""
    if best is not None and _takes_long(best):
        best = None
    store = None if best is None else getattr(best.method, "store", None)
    certified = size.gap is not None and psd
    other = Adaptive(store=store) if certified else largest_subset(size, budget)
    basis = price(other, size, budget)
    candidates = (*exact, basis) if size.n > _FEW or best is None else tuple(exact)
    if best is not None:
        cheaper = certified and size.n > _FEW and basis.fits and basis.nominal < best.nominal
        chosen, why = (other, "the cheapest") if cheaper else (best.method, reason)
        return Plan(chosen, why, candidates, size, budget)
    if basis.fits:
        return Plan(other, "as all rows take too much memory or time", candidates, size, budget)
    quick = [one for one in exact if not _takes_long(one)]
    raise _too_large(problem, [*quick, basis], size, budget)


def _takes_long(one: Candidate) -> bool:
    """Return whether a kernel matrix that is not stored takes too long."""
    return getattr(one.method, "store", "") == "none" and one.nominal > _PATIENCE


def _too_large(
    problem: KernelProblem,
    candidates: list[Candidate],
    size: Size,
    budget: int,
) -> MemoryError:
    """Return the error where no method fits, with the budget, rows or basis that do."""
    least = min(candidates, key=lambda c: c.cost.memory)
    remedies = [f"{format_parameter('memory', enough_memory(least.method, size))} is enough"]
    whole = [one.method for one in candidates if isinstance(one.method, Exact)]
    rows = max((_rows_that_fit(one, size, budget) for one in whole), default=0)
    if rows > 1:
        remedies.append(f"a sample of {rows} rows fits")
    other = alternative(problem, size, budget)
    remedies.append(other and f"{other} all rows")
    return MemoryError(
        f"Kernel PCA of {size.n} rows needs {format_bytes(least.cost.memory)} with "
        f"{least.method.label(size)}, but the memory budget is {format_bytes(budget)}. "
        f"{'; '.join(filter(None, remedies))}."
    )


def _rows_that_fit(method: Method, size: Size, budget: int) -> int:
    """Return how many rows fit, by bisection."""
    low, high = 0, size.n
    while low < high:
        n = (low + high + 1) // 2
        k = None if size.k is None else min(size.k, n)
        fits = method.cost(replace(size, n=n, k=k)).memory <= budget
        low, high = (n, high) if fits else (low, n - 1)
    return low

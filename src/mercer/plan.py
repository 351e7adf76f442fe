"""The plan: which methods could do the work, what each costs, and which one is chosen.

The choice depends on shapes, the number of axes, the gap and the memory budget only, so it
is the same on every machine; a quick measurement of this one fills the column of seconds.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace

import numpy as np

from mercer.arrays import eigh
from mercer.config import format_bytes, get_config, machine_memory
from mercer.eigen import Randomized, Solver
from mercer.methods import (
    SVD,
    Cost,
    Covariance,
    Dot,
    Exact,
    Improved,
    Iterative,
    Method,
    Nystrom,
    Reduced,
    Size,
    Sketch,
    Subset,
)
from mercer.problem import KernelProblem
from mercer.rules import Rule
from mercer.sources import Source, SparseSource

_METHODS: dict[str, Method] = {
    "full": SVD(),
    "covariance_eigh": Covariance(),
    "dot": Dot(),
    "krylov": Iterative("krylov"),
    "arpack": Iterative("arpack"),
    "sketch": Sketch(),
}
NAMES = ("auto", *_METHODS, "randomized", "jacobi", "power")
"""What `svd_solver` may be called."""

_ON_BASIS: dict[str, type[Method]] = {
    method.name: method for method in (Subset, Reduced, Improved, Nystrom)
}
METHODS = ("auto", "exact", *_ON_BASIS)
"""What `method` may be called."""

_ASKED = "as asked for"
# A pair of strings costs about as much as a pair of rows with so many columns.
_STRING_COST = 10_000
# Up to this many entries the most accurate method costs next to nothing.
_SMALL = 250_000


@dataclass(frozen=True)
class Rates:
    """Operations in a second; bytes in a second."""

    products: float
    sparse: float
    factor: float
    read: float

    def seconds(self, cost: Cost, size: Size) -> float:
        """Predict the time of a method."""
        entry = size.itemsize if size.nnz is None else 12
        entries = size.n * size.d if size.nnz is None else size.nnz
        double = size.itemsize / 8  # float32 products go twice as fast
        return (
            cost.products * double / self.products
            + cost.sparse / self.sparse
            + cost.factor / self.factor
            + cost.passes * entries * entry / self.read
        )


# What the choice reckons with: a machine that is no one's, so that it is everyone's.
_NOMINAL = Rates(products=6e10, sparse=2e9, factor=1.5e10, read=5e9)


@dataclass(frozen=True)
class Candidate:
    """A method that could do the work."""

    method: Method
    cost: Cost
    fits: bool
    nominal: float


@dataclass(frozen=True)
class Plan:
    """What will be done, and what else could have been.

    Printing it gives the table.

    Attributes
    ----------
    method : Method
        The method chosen.
    reason : str
        Why.
    candidates : tuple of Candidate
        All that were considered.
    size : Size
        What the costs were reckoned for.
    budget : int
        Bytes that the computation may hold beside the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA
    >>> plan = PCA(10).plan(np.zeros((1000, 300)))
    >>> plan.method, plan.reason
    (Covariance(), 'the cheapest')
    """

    method: Method
    reason: str
    candidates: tuple[Candidate, ...]
    size: Size
    budget: int

    def require_fit(self) -> None:
        """Refuse a method that was asked for by name and does not fit.

        The budget where the user has set one, all of the machine's memory where not.
        """
        chosen = next(c for c in self.candidates if c.method is self.method)
        others = [_label(c.method) for c in self.candidates if c.fits]
        room = self.budget if get_config().memory is not None else machine_memory()
        solver = "eigen_solver" if self.size.square else "svd_solver"
        if chosen.cost.memory <= room or self.reason != _ASKED:
            return
        instead = f"choose from {', '.join(others)}, which fit" if others else "find none that fits"
        raise MemoryError(
            f"{_label(self.method)} needs {format_bytes(chosen.cost.memory)} for {self.size.n} × "
            f"{self.size.d}, more than the memory budget of {format_bytes(room)}. "
            f'{solver}="auto" would {instead}; '
            f"config_context(memory=...) raises the budget."
        )

    def __str__(self) -> str:
        size = self.size
        shape = f"{size.n} × {size.d} {'float32' if size.itemsize == 4 else 'float64'}"
        if size.nnz is not None:
            shape += f", {size.nnz} entries"
        axes = "as many axes as the rule finds" if size.k is None else f"{size.k} axes"
        lines = [
            f"Plan for {shape}, {axes}, memory {format_bytes(self.budget)}:",
            f"{self.method!r}, {self.reason}.",
            "",
            f"   {'method':<24}{'passes':>7}{'operations':>12}{'memory':>11}{'seconds':>10}",
        ]
        for candidate in self.candidates:
            cost = candidate.cost
            work = cost.products + cost.sparse + cost.factor
            mark = "→" if candidate.method is self.method else " "
            seconds = f"{measured().seconds(cost, size):.2g}" if candidate.fits else "too large"
            lines.append(
                f" {mark} {_label(candidate.method):<24}{cost.passes:>7}{work:>12.1e}"
                f"{format_bytes(cost.memory):>11}{seconds:>10}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def make_plan(
    source: Source,
    rule: Rule,
    solver: str | Method,
    randomized: Randomized,
    gap: float | None = None,
) -> Plan:
    """Choose a method.

    Parameters
    ----------
    source : Source
        The rows.
    rule : Rule
        How many axes.
    solver : str or Method
        A name, "auto", or the method itself.
    randomized : Randomized
        What the name "randomized" stands for.
    gap : float or None
        Certified distance from the optimum that is good enough.
    """
    n, d = source.shape
    size = Size(
        n=n,
        d=d,
        k=rule.first_guess(n, d),
        itemsize=source.dtype.itemsize,
        nnz=source.nnz if isinstance(source, SparseSource) else None,
        columns=source.by_columns,
        gap=gap,
    )
    budget = get_config().budget
    methods = [Covariance(), SVD(), Iterative()]
    if size.columns:
        methods.insert(1, Dot())
    candidates = [_candidate(method, size, budget) for method in methods]
    if solver == "auto":
        chosen, reason = _choose(candidates, size, budget)
        return Plan(chosen.method, reason, tuple(candidates), size, budget)
    method = _named(solver, size, budget, randomized) if isinstance(solver, str) else solver
    candidates = [c for c in candidates if c.method != method]
    candidates.insert(0, _candidate(method, size, budget))
    return Plan(method, _ASKED, tuple(candidates), size, budget)


def make_kernel_plan(problem: KernelProblem, solver: str | Solver, method: str | Method) -> Plan:
    """Choose how the problem of all rows is solved: decomposed, or iterated on what fits.

    The kernel matrix is kept in float64 where that fits, else in float32, else computed anew
    for every product.
    """
    shape, budget = problem.source.shape, get_config().budget
    n = shape[0]
    size = Size(
        n=n,
        d=shape[1] if len(shape) > 1 else _STRING_COST,
        k=problem.rule.first_guess(n, n),
        itemsize=problem.source.dtype.itemsize,
        gap=problem.gap,
        square=True,
    )
    if isinstance(method, str) and method in _ON_BASIS:
        method = _ON_BASIS[method]()
    if isinstance(method, Method):
        return Plan(method, _ASKED, (_candidate(method, size, budget),), size, budget)
    iterated = "krylov" if solver in ("auto", "dense") else solver
    # Only Krylov iterates in float32; the others would compute the matrix anew every time.
    stores = ["float64", "float32", "none"] if iterated == "krylov" else ["float64", "none"]
    if problem.kernel is None:
        stores = ["float64"]
    methods: list[Method] = [Exact(iterated, store) for store in stores]
    if solver in ("auto", "dense"):
        methods.insert(0, Exact("dense"))
    candidates = tuple(_candidate(method, size, budget) for method in methods)
    if solver == "dense":
        return Plan(candidates[0].method, _ASKED, candidates, size, budget)
    exact = [c for c in candidates if c.fits and getattr(c.method, "store", "") == "float64"]
    if exact:
        best = min(exact, key=lambda c: c.nominal)
        return Plan(best.method, "the cheapest", candidates, size, budget)
    for candidate in candidates:
        if candidate.fits:
            reason = f"the first of those that fit {format_bytes(budget)}"
            return Plan(candidate.method, reason, candidates, size, budget)
    least = min(candidates, key=lambda c: c.cost.memory)
    raise MemoryError(
        f"Kernel PCA of {n} rows needs {format_bytes(least.cost.memory)} at least, and the memory "
        f"budget is {format_bytes(budget)}. config_context(memory=...) raises it; a sample of "
        f"{_rows_that_fit(least.method, size, budget)} rows fits."
    )


def _rows_that_fit(method: Method, size: Size, budget: int) -> int:
    """Return how many rows fit, by halving the interval."""
    fits, too_many = 2, size.n
    while too_many - fits > 1:
        n = (fits + too_many) // 2
        k = None if size.k is None else min(size.k, n)
        if method.cost(replace(size, n=n, k=k)).memory <= budget:
            fits = n
        else:
            too_many = n
    return fits


def _candidate(method: Method, size: Size, budget: int) -> Candidate:
    cost = method.cost(size)
    return Candidate(method, cost, cost.memory <= budget, _NOMINAL.seconds(cost, size))


def _choose(candidates: list[Candidate], size: Size, budget: int) -> tuple[Candidate, str]:
    fitting = [c for c in candidates if c.fits]
    small = size.n * size.d <= _SMALL and size.nnz is None
    for candidate in fitting:
        if small and isinstance(candidate.method, SVD):
            return candidate, "the most accurate, at next to no cost for so small a table"
    if fitting:
        best = min(fitting, key=lambda c: c.nominal)
        others = (
            "" if len(fitting) == len(candidates) else f" of those that fit {format_bytes(budget)}"
        )
        return best, f"the cheapest{others}"
    least = min(candidates, key=lambda c: c.cost.memory)
    return least, f"none fits {format_bytes(budget)}: the one that needs least memory"


def _named(name: str, size: Size, budget: int, randomized: Randomized) -> Method:
    """Return the method that a name stands for."""
    if name not in NAMES:
        names = ", ".join(NAMES)
        raise ValueError(f"svd_solver={name!r} is not one of {names}, and not a method.")
    if name in ("jacobi", "power"):
        small: Method = Covariance(name) if size.d <= size.n or not size.columns else Dot(name)
        formed = small.cost(size).memory <= budget
        return small if formed or name == "jacobi" else Iterative(name)
    if name == "randomized":
        return Iterative(randomized)
    return _METHODS[name]


def _label(method: Method) -> str:
    solver = getattr(method, "solver", "dense")
    name = solver if isinstance(solver, str) else type(solver).__name__.lower()
    if isinstance(method, Exact):
        kept = "not kept" if method.store == "none" else method.store
        return f"exact ({name}, {kept})"
    return method.name if name == "dense" else f"{method.name} ({name})"


@functools.cache
def measured() -> Rates:
    """Measure this machine, in some hundredths of a second, once."""
    A = np.random.default_rng(0).standard_normal((384, 384))
    product = _best(lambda: A @ A)
    factor = _best(lambda: eigh(A[:192, :192] + A[:192, :192].T))
    copy = _best(lambda: A + 1.0)
    return replace(
        _NOMINAL,
        products=2 * 384**3 / product,
        factor=4 * 192**3 / factor,
        read=A.nbytes / copy,
    )


def _best(f: object) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        f()  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)

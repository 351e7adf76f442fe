"""The plan of a fit: candidate methods, their costs, and the method chosen.

The choice depends on shapes, the number of components, the gap and the memory budget only, so it
is the same on every machine; a quick measurement of this one fills the column of seconds.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from mercer.arrays import eigh
from mercer.certificate.partition import BLOCK_BYTES, LEAST_ROWS, MOST_ROWS, block_work
from mercer.config import (
    config_context,
    format_bytes,
    get_config,
    machine_memory,
    parse_bytes,
    rounded_up,
)
from mercer.data import Source
from mercer.linalg.solvers import Randomized
from mercer.messages import ParameterError, counted, format_parameter
from mercer.methods import (
    SVD,
    Cost,
    Covariance,
    Dot,
    Iterative,
    Method,
    RandomFeatures,
    Size,
    Sketch,
    Subset,
)
from mercer.methods.kernel.features import has_spectrum
from mercer.notebook import as_html
from mercer.problem import KernelProblem, Problem
from mercer.rules import Rule

ASKED = "as requested"

_METHODS: dict[str, Method] = {
    "full": SVD(),
    "covariance_eigh": Covariance(),
    "dot": Dot(),
    "krylov": Iterative("krylov"),
    "arpack": Iterative("arpack"),
    "sketch": Sketch(),
}
NAMES = ("auto", *_METHODS, "randomized", "jacobi", "power")
"""Names of `svd_solver`."""

# The methods among which "auto" chooses.
_CANDIDATES = tuple(_METHODS[name] for name in ("covariance_eigh", "dot", "full", "krylov"))
# Up to this many entries the most accurate method costs next to nothing.
_SMALL = 250_000
# A certificate may take so many seconds, on the nominal machine, whatever the fit takes.
_FREE = 0.15
# The fewest points of a basis that is chosen to fit the memory.
_SMALLEST = 100


@dataclass(frozen=True)
class Rates:
    """Operations per second; bytes per second."""

    products: float
    sparse: float
    factor: float
    read: float

    def seconds(self, cost: Cost, size: Size) -> float:
        """Predict the time of a method."""
        entry = size.itemsize if size.nnz is None else 12
        entries = size.n * size.d if size.nnz is None else size.nnz
        double = size.itemsize / 8  # float32 products are twice as fast
        return (
            cost.products * double / self.products
            + cost.sparse / self.sparse
            + cost.factor / self.factor
            + cost.passes * entries * entry / self.read
        )


# The choice assumes a fixed machine, so that it is the same on every machine.
_NOMINAL = Rates(products=6e10, sparse=2e9, factor=1.5e10, read=5e9)


class Candidate(NamedTuple):
    """A method that could be used, with its cost."""

    method: Method
    cost: Cost
    fits: bool
    nominal: float


@dataclass(frozen=True)
class Plan:
    """The method chosen for a fit, and the alternatives.

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
        What the costs were computed for.
    budget : int
        Bytes that the computation may hold beside the data.
    certificate : bool
        Whether random blocks of rows may bound the optimum.

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
    certificate: bool = True

    @property
    def block_rows(self) -> int:
        """Number of rows in the blocks whose bound certifies the result; 0 if it needs none.

        As many as cost no more than the fit, or next to nothing.
        """
        if not (self.certificate and self.method.approximates):
            return 0
        size, double = self.size, self.size.itemsize / 8
        seconds = max(_NOMINAL.seconds(self.method.cost(size), size), _FREE)
        work = seconds * _NOMINAL.products / double
        low, high = 0, size.n
        while low < high:
            rows = (low + high + 1) // 2
            low, high = (rows, high) if self._block_work(rows) <= work else (low, rows - 1)
        return min(low, MOST_ROWS) if low >= min(LEAST_ROWS, size.n) else 0

    def _block_work(self, rows: int) -> float:
        size = self.size
        return block_work(size.n, size.d, size.components, rows, kernel=size.kernel)

    @property
    def certificate_passes(self) -> float:
        """The most passes that the certificate takes besides those of the method."""
        if not (self.certificate and self.method.approximates):
            return 0
        if self.size.gap is not None:
            return math.inf
        return bool(self.block_rows) + self.method.judges

    def require_fit(self, problem: Problem) -> None:
        """Raise if the requested method does not fit in memory, and name methods that do.

        The limit is the budget where the user has set one, else all of the machine's memory.
        """
        memory = self.method.cost(self.size).memory
        room = self.budget if get_config().memory is not None else machine_memory()
        if memory <= room:
            return
        instead = self._instead(problem, room)
        enough = format_parameter("memory", enough_memory(self.method, self.size))
        raise MemoryError(
            f"{self.method.label(self.size)} needs {format_bytes(memory)} for {self.size.shape}, "
            f"more than the memory budget of {format_bytes(room)}. "
            f"{enough} is enough{instead and f'; {instead}'}."
        )

    def _instead(self, problem: Problem, room: float) -> str:
        """Name other methods that fit; empty where none does."""
        fitting = [c.method.label(self.size) for c in self.candidates if c.fits]
        if not fitting:
            return alternative(problem, self.size, room)
        automatic = format_parameter("eigen_solver" if self.size.kernel else "svd_solver", "auto")
        return f"{automatic} would choose from {', '.join(fitting)}, which fit"

    def __str__(self) -> str:
        size = self.size
        shape = size.shape
        if not size.strings:
            shape += " float32" if size.itemsize == 4 else " float64"
        if size.nnz is not None:
            shape += f", {size.nnz} entries"
        axes = "number of components set by the rule"
        if size.k is not None:
            axes = counted(size.k, "component")
        wide = max(7, *(len(c.cost.passes_range) + 1 for c in self.candidates))
        lines = [
            f"Plan for {shape}, {axes}, memory {format_bytes(self.budget)}:",
            f"{self.method!r}, {self.reason}.",
            "",
            f"   {'method':<24}{'passes':>{wide}}{'operations':>12}{'memory':>11}{'seconds':>10}",
        ]
        for candidate in self.candidates:
            cost = candidate.cost
            work = cost.products + cost.sparse + cost.factor
            mark = "→" if candidate.method is self.method else " "
            seconds = f"{measured().seconds(cost, size):.2g}" if candidate.fits else "too large"
            passes, memory = f"{cost.passes_range:>{wide}}", format_bytes(cost.memory)
            label = candidate.method.label(size)
            lines.append(f" {mark} {label:<24}{passes}{work:>12.1e}{memory:>11}{seconds:>10}")
        if rows := self.block_rows:
            label, most = f"bound, blocks of {rows}", self.certificate_passes
            passes = "any" if math.isinf(most) else f"0 to {most}"
            work = self._block_work(rows)
            width = rows if size.kernel else min(rows, size.d)
            memory = format_bytes(BLOCK_BYTES * width**2 + 2 * rows * size.d * size.itemsize)
            seconds = f"{work * size.itemsize / 8 / measured().products:.2g}"
            lines.append(f"   {label:<24}{passes:>{wide}}{work:>12.1e}{memory:>11}{seconds:>10}")
        elif self.method.name == "adaptive":
            unknown = "as needed"
            lines.append(f"   {'bound, blocks of rows':<24}{'any':>{wide}}{unknown:>12}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        head, choice, _, *table = str(self).split("\n")
        return as_html(head) + as_html(choice) + f"<pre>{escape(chr(10).join(table))}</pre>"


def make_plan(
    source: Source,
    rule: Rule,
    solver: str | Method,
    randomized: Randomized,
    gap: float | None = None,
    *,
    scale: bool = False,
) -> Plan:
    """Choose a method of linear PCA.

    `solver` is a name, "auto" or the method itself; `randomized` is what the name "randomized"
    stands for.
    """
    n, d = source.shape
    size = Size(
        n=n,
        d=d,
        k=rule.first_guess(n, d),
        itemsize=source.dtype.itemsize,
        nnz=getattr(source, "nnz", None),
        columns=source.by_columns,
        gap=gap,
        first_pass=scale,
    )
    budget = get_config().budget
    candidates = []
    for method in _CANDIDATES:
        if size.columns or not isinstance(method, Dot):
            candidates.append(price(method, size, budget))
    if solver == "auto":
        chosen, reason = _choose(candidates, size, budget)
        return Plan(chosen.method, reason, tuple(candidates), size, budget)
    method = _named(solver, size, budget, randomized) if isinstance(solver, str) else solver
    if not method.for_rows:
        raise ValueError(
            f"svd_solver={method!r} is a method of kernel PCA. Use "
            f"KernelPCA(method={method!r}), or a method of PCA such as Covariance(), SVD() or "
            f"Sketch()."
        )
    others = (c for c in candidates if c.method != method)
    return Plan(method, ASKED, (price(method, size, budget), *others), size, budget)


def _choose(candidates: list[Candidate], size: Size, budget: int) -> tuple[Candidate, str]:
    fitting, room = list(filter(attrgetter("fits"), candidates)), format_bytes(budget)
    if not fitting:
        least = min(candidates, key=attrgetter("cost.memory"))
        return least, f"none fits in {room}: this one needs the least memory"
    if size.n * size.d <= _SMALL and size.nnz is None:
        for candidate in fitting:
            if isinstance(candidate.method, SVD):
                return candidate, "the most accurate method, cheap for data of this size"
    all_fit = len(fitting) == len(candidates)
    reason = "the cheapest" if all_fit else f"the cheapest that fits in {room}"
    return min(fitting, key=attrgetter("nominal")), reason


def _named(name: str, size: Size, budget: int, randomized: Randomized) -> Method:
    """Return the method that a name stands for."""
    if name not in NAMES:
        names = ", ".join(NAMES)
        raise ParameterError("svd_solver", name, f"must be one of {names}, or a method.")
    if name in ("jacobi", "power"):
        small: Method = Covariance(name) if size.d <= size.n or not size.columns else Dot(name)
        formed = small.cost(size).memory <= budget
        return small if formed or name == "jacobi" else Iterative(name)
    return Iterative(randomized) if name == "randomized" else _METHODS[name]


def price(method: Method, size: Size, budget: int) -> Candidate:
    """Return a method with its cost."""
    cost = method.cost(size)
    return Candidate(method, cost, cost.memory <= budget, _NOMINAL.seconds(cost, size))


def largest_subset(size: Size, room: float) -> Method:
    """Return `Subset` on as many points as fit in `room` bytes, at least two per component.

    Where none fits, on the fewest.
    """
    return _shrunk(Subset(), Subset().points(size.n, size.k), size, room)


def _shrunk(method: Subset | RandomFeatures, m: int, size: Size, room: float) -> Method:
    """Return a method on m points or frequencies, or on the most of fewer that fit in `room`."""
    least = min(m, max(_SMALLEST, 2 * (size.k or 0)))
    while m > least and method.cost(size).memory > room:
        m = max(least, int(0.9 * m))
        method = type(method)(m)
    return method


def alternative(problem: Problem, size: Size, room: float) -> str:
    """Name a method on fewer points, or on features, that fits in `room` bytes; empty if none."""
    if not isinstance(problem, KernelProblem):
        return ""
    method = largest_subset(size, room)
    if method.cost(size).memory > room and has_spectrum(problem):
        features = RandomFeatures()
        method = _shrunk(features, features.frequencies(size.n, size.k), size, room)
    fits = method.cost(size).memory <= room
    named = method.name if method == RandomFeatures() else method
    return f"{format_parameter('method', named)} fits" if fits else ""


def enough_memory(method: Method, size: Size) -> str:
    """Return a memory budget under which a method fits: its need may depend on the budget."""
    budget = get_config().budget
    while True:
        with config_context(memory=budget):
            needed = method.cost(size).memory
        if needed <= budget:
            return rounded_up(budget)
        budget = parse_bytes(rounded_up(needed))


@functools.cache
def measured() -> Rates:
    """Measure this machine, in some hundredths of a second, once."""
    A = np.random.default_rng(0).standard_normal((384, 384))
    B = A[:192, :192] + A[:192, :192].T
    return replace(
        _NOMINAL,
        products=2 * 384**3 / _best_time(lambda: A @ A),
        factor=4 * 192**3 / _best_time(lambda: eigh(B)),
        read=A.nbytes / _best_time(lambda: A + 1.0),
    )


def _best_time(f: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)

"""The plan: which methods could do the work, what each costs, and which one is chosen.

The choice depends on shapes, the number of components, the gap and the memory budget only, so it
is the same on every machine; a quick measurement of this one fills the column of seconds.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.arrays import eigh
from mercer.config import (
    config_context,
    format_bytes,
    get_config,
    machine_memory,
    parse_bytes,
    rounded_up,
)
from mercer.messages import format_parameter
from mercer.methods import Cost, Method, Size

ASKED = "as asked for"


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

    def require_fit(self, others: Sequence[Method] = ()) -> None:
        """Refuse a method that was asked for by name and does not fit; say what does.

        The budget where the user has set one, all of the machine's memory where not.

        Parameters
        ----------
        others : sequence of Method
            Methods that may do instead, the best first.
        """
        chosen = next(c for c in self.candidates if c.method is self.method)
        room = self.budget if get_config().memory is not None else machine_memory()
        if chosen.cost.memory <= room or self.reason != ASKED:
            return
        instead = self.method.suggestion(self.size, room) or self._instead(others, room)
        raise MemoryError(
            f"{self.method.label(self.size)} needs {format_bytes(chosen.cost.memory)} for "
            f"{self.size.shape}, more than the memory budget of {format_bytes(room)}. "
            f"{format_parameter('memory', enough(self.method, self.size))} is enough"
            f"{f'; {instead}' if instead else ''}."
        )

    def _instead(self, others: Sequence[Method], room: float) -> str:
        """Name other methods that fit; empty where none does."""
        fitting = [c.method.label(self.size) for c in self.candidates if c.fits]
        if fitting:
            solver = "eigen_solver" if self.size.kernel else "svd_solver"
            automatic = format_parameter(solver, "auto")
            return f"{automatic} would choose from {', '.join(fitting)}, which fit"
        return next((said for one in others if (said := in_room(one, self.size, room))), "")

    def __str__(self) -> str:
        size = self.size
        shape = size.shape
        if not size.strings:
            shape += " float32" if size.itemsize == 4 else " float64"
        if size.nnz is not None:
            shape += f", {size.nnz} entries"
        axes = "as many components as the rule finds"
        if size.k is not None:
            axes = f"{size.k} component" if size.k == 1 else f"{size.k} components"
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
                f" {mark} {candidate.method.label(size):<24}{cost.passes:>7}{work:>12.1e}"
                f"{format_bytes(cost.memory):>11}{seconds:>10}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)


def reckoned(method: Method, size: Size, budget: int) -> Candidate:
    """Return a method with what it costs."""
    cost = method.cost(size)
    return Candidate(method, cost, cost.memory <= budget, _NOMINAL.seconds(cost, size))


def in_room(method: Method, size: Size, room: float) -> str:
    """Say how a method fits into so many bytes, with fewer points or the like; empty if not."""
    if method.cost(size).memory <= room:
        return f"{format_parameter('method', method.name)} fits"
    found = method.shrink(size, room)
    return "" if found is None else f"{format_parameter('method', found)} fits"


def enough(method: Method, size: Size) -> str:
    """Return a memory budget under which a method fits: what it needs may depend on it."""
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

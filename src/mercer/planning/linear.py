"""Which method finds the components of rows."""

from __future__ import annotations

from mercer.config import format_bytes, get_config
from mercer.data import Source
from mercer.linalg.solvers import Randomized
from mercer.messages import ParameterError
from mercer.methods import SVD, Covariance, Dot, Iterative, Method, Size, Sketch
from mercer.planning.base import ASKED, Candidate, Plan, reckoned
from mercer.rules import Rule

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

# Up to this many entries the most accurate method costs next to nothing.
_SMALL = 250_000


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
        How many components.
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
        nnz=getattr(source, "nnz", None),
        columns=source.by_columns,
        gap=gap,
    )
    budget = get_config().budget
    methods = [Covariance(), SVD(), Iterative()]
    if size.columns:
        methods.insert(1, Dot())
    candidates = [reckoned(method, size, budget) for method in methods]
    if solver == "auto":
        chosen, reason = _choose(candidates, size, budget)
        return Plan(chosen.method, reason, tuple(candidates), size, budget)
    method = _named(solver, size, budget, randomized) if isinstance(solver, str) else solver
    if not method.for_rows:
        raise ValueError(
            f"svd_solver={method!r} finds components with a kernel. Use "
            f"KernelPCA(method={method!r}), or a method of PCA such as Covariance(), SVD() or "
            f"Sketch()."
        )
    candidates = [c for c in candidates if c.method != method]
    candidates.insert(0, reckoned(method, size, budget))
    return Plan(method, ASKED, tuple(candidates), size, budget)


def _choose(candidates: list[Candidate], size: Size, budget: int) -> tuple[Candidate, str]:
    fitting = [c for c in candidates if c.fits]
    small = size.n * size.d <= _SMALL and size.nnz is None
    for candidate in fitting:
        if small and isinstance(candidate.method, SVD):
            return candidate, "the most accurate method, at little cost for a table of this size"
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
        raise ParameterError("svd_solver", name, f"is not one of {names}, and not a method.")
    if name in ("jacobi", "power"):
        small: Method = Covariance(name) if size.d <= size.n or not size.columns else Dot(name)
        formed = small.cost(size).memory <= budget
        return small if formed or name == "jacobi" else Iterative(name)
    if name == "randomized":
        return Iterative(randomized)
    return _METHODS[name]

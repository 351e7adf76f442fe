"""Kernel PCA of all rows, from the kernel matrix itself (Schölkopf, Smola & Müller 1998)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, like, orthonormalize
from mercer.certificate import Certificate
from mercer.config import get_config
from mercer.data import ArraySource
from mercer.kernels import Kernel
from mercer.kernels.evaluate import check_magnitude
from mercer.linalg import Gram, Operator
from mercer.linalg.gram import WIDE, strip_rows
from mercer.linalg.solvers import Solver, Spectrum, krylov, power
from mercer.linalg.solvers.spectrum import Warm, settled
from mercer.methods.base import (
    Cost,
    Method,
    Size,
    certify,
    find_solver,
    solve,
)
from mercer.problem import KernelProblem, Problem
from mercer.projection import KernelProjection
from mercer.projection.expansion import combined

# Eigenvalues below this share of the largest are rounding.
_ZERO = 1e-12
# What a pass costs however few rows there are, in operations: a millisecond's.
_PASS = 6e7
_STORES = {"float64": np.float64, "float32": np.float32, "none": None}


class Exact(Method):
    r"""Eigenvectors of the centred kernel matrix, :math:`\tilde K v = \lambda v`.

    Axes :math:`\sum_i \alpha_i(\Phi(x_i)-\bar\Phi)`, :math:`\alpha = v/\sqrt\lambda`. The matrix
    is kept in float64, in float32, or computed anew for every product; each pair of rows once.

    Parameters
    ----------
    solver : str or callable
        "krylov", "dense", "arpack", "randomized", "power", "jacobi" or a solver.
    store : {"float64", "float32", "none"}
        How the kernel matrix is kept. Float32 drives the iteration only: the last product is
        computed in float64, and eigenvalues and residuals come from it. Of rows of a Dask
        collection it is not kept: pairs of chunks meet on the workers for every product, and
        what comes here is as long as the rows, and as wide as the vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Exact
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.1, method=Exact(store="float32"))
    >>> kpca.fit(load_iris().data).explained_variance_ratio_.round(3)
    array([0.681, 0.182])
    """

    name = "exact"
    for_rows = False
    in_pairs = True

    def __init__(self, solver: str | Solver = "krylov", store: str = "float64") -> None:
        self.solver, self.store = solver, store

    def cost(self, size: Size) -> Cost:
        n, k = size.n, size.axes
        kept = self.kept
        item = 0 if kept is None or size.elsewhere else np.dtype(kept).itemsize
        pairs = float(n) * n * size.d  # half of the matrix, two operations a column
        if self.solver == "dense":
            factor = 4 / 3 * n**3 + 2.0 * n * n * k if 4 * k < n else 4.0 * n**3
            # Elsewhere the matrix is made by its product with all unit vectors.
            held = 16.0 if size.elsewhere else item / 2
            return Cost(1, pairs, factor, (8.0 + 16.0 + held) * n * n)
        width = min(n, 16 if item else WIDE)
        basis = min(n, 4 * k + 8 * width)
        passes = -(-basis // width) + 2
        evaluations = passes if item == 0 else 2 if self.store == "float32" else 1
        work = evaluations * pairs + 2.0 * n * n * basis + 4.0 * n * basis**2 + passes * _PASS
        strips = 0.0
        if item != 8 and not size.elsewhere:  # two for each of two workers
            strips = 4 * 8.0 * n * strip_rows(n, 8, on_device=size.on_device)
        held = item * (n * n / 2.0 + n * strip_rows(n, max(4, item), on_device=size.on_device))
        # The rows that are kept, and, where they are needed in both precisions, as float64 too.
        both = 0 if size.itemsize == 8 and item == 8 else 12
        copies = 0.0 if size.elsewhere else float(size.itemsize + both) * n * size.d
        copies *= 3 if size.on_device else 1  # as both sides of a product that makes distances
        # Where nothing is kept, the last product is made with all that was searched.
        vectors = 24.0 * n * width + (16.0 if item else 48.0) * n * basis
        memory = held + strips + copies + vectors
        looks = basis**4 / (3.0 * width)  # decompositions of what is found so far
        return Cost(passes, work, 4 / 3 * basis**3 + looks, memory)

    @property
    def keeps_rows(self) -> bool:
        return True

    def label(self, size: Size) -> str:
        name = self.solver if isinstance(self.solver, str) else type(self.solver).__name__.lower()
        anew = self.store == "none" or size.elsewhere
        return f"exact ({name}, {'not kept' if anew else self.store})"

    @property
    def nearer(self) -> str:
        return 'eigen_solver="dense" is exact.'

    @property
    def kept(self) -> Any:
        """The precision in which the kernel matrix is kept; None where it is not."""
        if self.store not in _STORES:
            raise ValueError(f"store={self.store!r} is not one of {', '.join(_STORES)}.")
        return _STORES[self.store]

    def fit(self, problem: Problem) -> KernelProjection:
        assert isinstance(problem, KernelProblem)
        problem.require_finite_rows()
        problem = in_memory(problem)
        source = problem.source
        solver, kept = find_solver(self.solver), self.kept
        start = _first(problem, kept) if solver is krylov else None
        center = problem.center
        gram = Gram(problem.kernel, source, center=center, store=kept, along=start, scaled=True)
        require_finite_kernel(problem, gram)
        if solver is power and not gram.psd:
            raise ValueError(
                "The power method finds the largest eigenvalues in absolute value, and "
                f"{_named(problem.kernel)} may have negative ones. Use eigen_solver='krylov'."
            )
        warm = None if start is None else Warm(start, gram.first)
        spectrum, k = solve(problem, gram, solver, warm, self._most(gram))
        k = positive(gram, spectrum, k)
        certificate = certify(gram, spectrum, k, problem.rng)
        if not gram.psd:
            certificate = replace(certificate, negative=_negative(gram, spectrum))
        return projected(problem, gram, spectrum, k, certificate)

    def _most(self, gram: Gram) -> int | None:
        """Return how many components may be found by iteration; None where there is no choice."""
        n = gram.size
        formed = (
            self.solver == "krylov" and gram.strips.kept is not None and self.store == "float64"
        )
        return n // 32 if formed and 40.0 * n * n <= get_config().budget else None


def _first(problem: KernelProblem, kept: Any) -> Array:
    """Return vectors to begin with, whose product costs nothing where the matrix is not kept.

    It is made while all pairs are walked for the means; later it would be another walk.
    """
    source = problem.source
    if kept is not None or problem.kernel is None:
        return None
    n = source.shape[0]
    drawn = like(problem.rng.standard_normal((n, min(n, WIDE))), source.reference)
    return orthonormalize(drawn)[0]


def projected(
    problem: KernelProblem, gram: Gram, spectrum: Spectrum, k: int, certificate: Certificate
) -> KernelProjection:
    """Return the map that the first k eigenvectors of the kernel matrix make."""
    if gram.psd and spectrum.coupling is not None:
        spectrum = settled(spectrum, k)
        certificate = replace(
            certificate, eigenvalues=spectrum.values, residuals=spectrum.residuals
        )
    return combined(gram, spectrum.values[:k], spectrum.vectors[:, :k], certificate, problem.shift)


def in_memory(problem: KernelProblem) -> KernelProblem:
    """Return the problem with its rows in memory, moved where that keeps digits.

    Rows that lie elsewhere stay there, and are moved when they are read.
    """
    moved = problem.moved() if problem.shift is None else problem
    if moved.shift is None:
        return problem
    if moved.source.elsewhere is not None:
        return moved
    rows = ArraySource(moved.source.collect()).weighted(problem.source.weights)
    return replace(moved, source=rows)


def require_finite_kernel(problem: KernelProblem, gram: Gram) -> None:
    """Refuse a kernel that makes NaN or infinity of finite rows."""
    bad = np.flatnonzero(~np.isfinite(gram.means + gram.own))
    if len(bad):
        few = ", ".join(str(row) for row in bad[:5]) + (", …" if len(bad) > 5 else "")
        raise ValueError(
            f"{_named(problem.kernel)} gives NaN or infinity between rows: {len(bad)} rows have "
            f"such values ({few}). Scale the rows, or change the kernel's parameters."
        )
    if gram.scale == 1.0:
        check_magnitude(_named(problem.kernel), float(np.max(np.abs(gram.own), initial=0.0)))


def positive(operator: Operator, spectrum: Spectrum, k: int) -> int:
    """Return how many of the first k eigenvalues are more than rounding."""
    values = spectrum.values[:k]
    least = max(_ZERO * float(np.max(values, initial=0.0)), operator.floor)
    return int((values > least).sum())


def _negative(gram: Gram, spectrum: Spectrum) -> Vector:
    """Return the negative eigenvalues that were found for certain, the most negative first."""
    found = spectrum.values if spectrum.ritz is None else spectrum.ritz
    least = max(_ZERO * float(np.max(found, initial=0.0)), gram.floor)
    certain = found < -least
    if spectrum.coupling is not None:  # Ritz values: those that have converged
        certain &= np.sqrt(np.maximum(np.diag(spectrum.coupling), 0.0)) <= 1e-3 * np.abs(found)
    return np.sort(found[certain])


def _named(kernel: Kernel | None) -> str:
    return "a precomputed matrix" if kernel is None else repr(kernel)

"""Kernel PCA of all rows, from the kernel matrix itself (Schölkopf, Smola & Müller 1998)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import like, orthonormalize
from mercer.certificate import Axes, Evidence, spectral_evidence
from mercer.config import get_config
from mercer.data import ArraySource
from mercer.kernels import Kernel
from mercer.kernels.evaluate import check_magnitude
from mercer.linalg import Gram, Operator
from mercer.linalg.gram import WIDE
from mercer.linalg.solvers import Solver, Spectrum, krylov, power
from mercer.linalg.solvers.spectrum import WarmStart, with_score_variances
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.methods.base import Cost, Method, Size, find_solver, solve
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem
from mercer.projection import row_expansion

# Eigenvalues below this share of the largest are rounding.
_ZERO = 1e-12
# Fixed cost of a pass, in operations: about a millisecond.
_PASS = 6e7
_STORES = {"float64": np.float64, "float32": np.float32, "none": None}


class Exact(Method):
    r"""Eigenvectors of the centered kernel matrix, :math:`\tilde K v = \lambda v`.

    Components :math:`\sum_i \alpha_i(\Phi(x_i)-\bar\Phi)`, :math:`\alpha = v/\sqrt\lambda`. The
    matrix is stored in float64 or float32, or computed again for every product; each pair of rows
    once.

    Parameters
    ----------
    solver : str or callable
        "krylov", "dense", "arpack", "randomized", "power", "jacobi" or a solver.
    store : {"float64", "float32", "none"}
        How the kernel matrix is stored. Float32 only drives the iteration: eigenvalues and
        residuals come from a last product in float64. The kernel matrix of a Dask collection is
        never stored: workers compute every product from pairs of chunks.

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
    pairwise = True

    def __init__(self, solver: str | Solver = "krylov", store: str = "float64") -> None:
        self.solver, self.store = solver, store

    def cost(self, size: Size) -> Cost:
        n, k = size.n, size.components
        stored = self.stored
        item = 0 if stored is None or size.remote else np.dtype(stored).itemsize
        pairs = float(n) * n * size.d  # half of the matrix, two operations a column
        if self.solver == "dense":
            factor = 4 / 3 * n**3 + 2.0 * n * n * k if 4 * k < n else 4.0 * n**3
            # The matrix of remote rows is its product with all unit vectors.
            matrix = 16.0 if size.remote else item / 2
            # Passes: the diagonal, the means, and the matrix.
            passes = 3 + size.first_pass
            return Cost(passes, pairs, factor, (8.0 + 16.0 + matrix) * n * n)
        width = min(n, 16 if item else WIDE)
        basis = min(n, 4 * k + 8 * width)
        passes = -(-basis // width) + 2
        evaluations = passes if item == 0 else 2 if self.store == "float32" else 1
        work = evaluations * pairs + 2.0 * n * n * basis + 4.0 * n * basis**2 + passes * _PASS
        blocks = 0.0
        if item != 8 and not size.remote:  # two for each of two workers
            blocks = 4 * 8.0 * n * upper_block_rows(n, 8, on_device=size.on_device)
        rows = upper_block_rows(n, max(4, item), on_device=size.on_device)
        matrix = item * (n * n / 2.0 + n * rows)
        # The rows, and a float64 copy if they are needed in both precisions.
        both = 0 if size.itemsize == 8 and item == 8 else 12
        copies = 0.0 if size.remote else (size.itemsize + both) * n * size.row_size
        if size.on_device and size.nnz is None:  # both factors of the product that gives distances
            copies *= 3
        # If the matrix is not stored, the last product is with the whole search space.
        vectors = 24.0 * n * width + (16.0 if item else 48.0) * n * basis
        memory = matrix + blocks + copies + vectors
        checks = basis**4 / (3.0 * width)  # decompositions for the convergence checks
        return Cost(passes, work, 4 / 3 * basis**3 + checks, memory)

    @property
    def keeps_rows(self) -> bool:
        return True

    def label(self, size: Size) -> str:
        name = self.solver if isinstance(self.solver, str) else type(self.solver).__name__.lower()
        recomputed = self.store == "none" or size.remote
        return f"exact ({name}, {'not kept' if recomputed else self.store})"

    @property
    def remedy(self) -> str:
        return 'eigen_solver="dense" is exact.'

    @property
    def stored(self) -> Any:
        """The precision in which the kernel matrix is stored; None if it is not."""
        if self.store not in _STORES:
            raise ValueError(f"store={self.store!r} is not one of {', '.join(_STORES)}.")
        return _STORES[self.store]

    def fit(self, problem: Problem) -> Axes:
        assert isinstance(problem, KernelProblem)
        problem = rows_in_memory(problem)
        source, center = problem.source, problem.center
        solver, stored, start, n = find_solver(self.solver), self.stored, None, problem.shape[0]
        if solver is krylov and stored is None and problem.kernel is not None:
            # Their product is free in the walk over all pairs for the means: later it would take
            # another walk.
            drawn = like(problem.rng.standard_normal((n, min(n, WIDE))), source.reference)
            start = orthonormalize(drawn)[0]
        gram = Gram(problem.kernel, source, center=center, store=stored, along=start, scaled=True)
        require_finite_gram(problem, gram)
        if solver is power and not gram.psd:
            raise ValueError(
                "The power method finds the eigenvalues of largest magnitude, but those of "
                f"{_named(problem.kernel)} may be negative. Use eigen_solver='krylov'."
            )
        warm = None if start is None else WarmStart(start, gram.first)
        # Beyond so many components a decomposition is faster, if it is possible.
        formed = self.solver == "krylov" and self.store == "float64"
        formed = formed and gram.blocks.stored is not None and 40.0 * n * n <= get_config().budget
        spectrum, k = solve(problem, gram, solver, warm, n // 32 if formed else None)
        k = count_positive(gram, spectrum, k)
        evidence = spectral_evidence(gram, spectrum, k, problem.rng)
        if not gram.psd:  # the negative eigenvalues that have converged
            ritz = spectrum.values if spectrum.ritz is None else spectrum.ritz
            certain = ritz < -max(_ZERO * float(np.max(ritz, initial=0.0)), gram.noise_floor)
            if spectrum.coupling is not None:
                residuals = np.sqrt(np.maximum(np.diag(spectrum.coupling), 0.0))
                certain &= residuals <= 1e-3 * np.abs(ritz)
            evidence = replace(evidence, negative=np.sort(ritz[certain]))
        return exact_axes(problem, gram, spectrum, k, evidence)


def exact_axes(
    problem: KernelProblem, gram: Gram, spectrum: Spectrum, k: int, evidence: Evidence
) -> Axes:
    """Return the components that the first k eigenvectors of the kernel matrix define."""
    if gram.psd and spectrum.coupling is not None:
        spectrum = with_score_variances(spectrum, k)
        evidence = replace(evidence, eigenvalues=spectrum.values, residuals=spectrum.residuals)
    values, vectors = spectrum.values[:k], spectrum.vectors[:, :k]
    projection = row_expansion(gram, values, vectors, problem.shift)
    return Axes(projection, evidence if gram.scale == 1.0 else evidence.scaled(gram.scale))


def rows_in_memory(problem: KernelProblem) -> KernelProblem:
    """Return the problem; if moving its rows toward zero keeps digits, moved and in memory."""
    moved = move_rows(problem) if problem.shift is None else problem
    if moved.shift is None:
        return problem
    if moved.source.remote is not None:
        return moved
    rows = ArraySource(moved.source.collect()).weighted(problem.source.weights)
    return replace(moved, source=rows)


def require_finite_gram(problem: KernelProblem, gram: Gram) -> None:
    """Raise if the kernel is NaN or infinite for finite rows."""
    bad = np.flatnonzero(~np.isfinite(gram.means + gram.diag))
    if len(bad):
        few = ", ".join(str(row) for row in bad[:5]) + (", …" if len(bad) > 5 else "")
        raise ValueError(
            f"{_named(problem.kernel)} gives NaN or infinity for {len(bad)} rows ({few}). Scale "
            f"the rows, or change the kernel's parameters."
        )
    if gram.scale == 1.0:
        check_magnitude(problem.kernel, float(np.max(np.abs(gram.diag), initial=0.0)))


def count_positive(operator: Operator, spectrum: Spectrum, k: int) -> int:
    """Return how many of the first k eigenvalues are above rounding."""
    values = spectrum.values[:k]
    least = max(_ZERO * float(np.max(values, initial=0.0)), operator.noise_floor)
    return int((values > least).sum())


def _named(kernel: Kernel | None) -> str:
    return "a precomputed matrix" if kernel is None else repr(kernel)

"""Pivots of partial Cholesky decompositions of the kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from mercer.arrays import Matrix, Vector
from mercer.checks import check_integer, is_real, require
from mercer.data import Block
from mercer.landmarks.base import (
    Landmarks,
    Rows,
    SelectionCost,
    require_memory,
    row_basis,
    row_weights,
)
from mercer.landmarks.columns import KernelColumns
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

MAX_COLUMNS = 128
"""Columns that one pass computes, at most."""
# Columns that the first pass computes.
_FIRST = 16
# A row whose residual is below this share of k(x, x) adds nothing but rounding.
_ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


class PartialCholesky:
    """G with K ≈ GGᵀ, built column by column; the rows of the pivots are lower triangular.

    `residual_diag` is the diagonal of K − GGᵀ, the squared distance of each row from the span of
    the pivots. A row whose residual is above its `threshold` may become a pivot.
    """

    def __init__(self, problem: KernelProblem, m: int, candidates: Rows = None) -> None:
        n = problem.source.shape[0]
        require_memory(cholesky_bytes(n, m), f"the Cholesky factor of {n} rows and {m} pivots")
        self.columns = KernelColumns(problem)
        self.G: Matrix = np.empty((m, n)).T  # column-major
        self.residual_diag: Vector = self.columns.diag.copy()
        self.pivots: list[int] = []
        allowed = row_weights(problem) > 0
        if candidates is not None:
            allowed &= np.isin(np.arange(n), candidates)
        rounding = _ROUNDING[problem.source.dtype] * self.residual_diag
        self.threshold = np.where(allowed, rounding, np.inf)

    @property
    def size(self) -> int:
        """Number of pivots."""
        return len(self.pivots)

    @property
    def room(self) -> int:
        """Number of pivots that may still be added."""
        return int(self.G.shape[1]) - self.size

    @property
    def eligible(self) -> Vector:
        """Residuals of the rows that may be the next pivot; 0 for others."""
        return np.where(self.residual_diag > self.threshold, self.residual_diag, 0.0)

    def residual(self, rows: Rows) -> Matrix:
        """Return columns of K − GGᵀ, in one pass over the rows."""
        source, G, size, width = self.columns.source, self.G, self.size, len(rows)
        h, right = self.columns.between(rows), self.G[rows, :size].T.copy()

        def subtract(block: Block) -> Matrix:
            product = G[block.start : block.stop, :size] @ right
            return np.subtract(h(block), product, out=product)

        out: Matrix = np.empty((width, source.shape[0])).T
        source.map(subtract, width, np.float64, extra_bytes=16 * width).collect(out, "pivots")
        return out

    def append(self, pivots: Rows, columns: Matrix) -> None:
        """Append columns of G and their pivots."""
        new = slice(self.size, self.size + len(pivots))
        self.G[:, new] = columns
        self.G[self.pivots, new] = 0.0
        self.residual_diag -= np.einsum("ij,ij->i", columns, columns)
        np.maximum(self.residual_diag, 0.0, out=self.residual_diag)
        self.pivots.extend(int(p) for p in pivots)
        self.residual_diag[self.pivots] = 0.0


def cholesky_bytes(n: int, m: int) -> float:
    """Return the bytes of a factor of n rows and m pivots, and of the columns of one pass."""
    return 8.0 * n * (m + 2 * min(m, MAX_COLUMNS))


class CholeskyLandmarks(Landmarks):
    """A rule whose landmarks are pivots."""

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        work = 2.0 * n * m * d + 2.0 * n * m * m
        return SelectionCost(1, work, cholesky_bytes(n, m), extra_passes=m)  # one a pivot, at most


@dataclass(eq=False, repr=False)
class PivotedCholesky(CholeskyLandmarks):
    r"""Pivots of the incomplete Cholesky decomposition :math:`K \approx GG^T`.

    The next landmark is the row farthest from the span of those before, the one with the largest
    :math:`k(x,x) - \sum_j G_{xj}^2`; the first of equals. The choice is not random. It takes
    nm(d + m) operations and holds G, n × m.

    Returns fewer than m landmarks if those span all rows, to rounding or to `tol`.

    Source: S. Fine & K. Scheinberg, Efficient SVM training using low-rank kernel representations,
    JMLR 2 (2001). V. Franc & V. Hlaváč, Greedy algorithm for a training set reduction in the kernel
    methods, CAIP (2003). Washizawa (2012), §5.5.

    Parameters
    ----------
    tol : float
        Stop when tr(K − GGᵀ) is at most this share of tr K.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.PivotedCholesky())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    tol: float = 0.0

    name = "pivoted_cholesky"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        valid = is_real(self.tol) and 0 <= self.tol < 1
        require(self, "tol", valid, "a share of the trace, 0 or more and below 1")
        return row_basis(problem, pivoted_cholesky(problem, m, tol=float(self.tol)).pivots)


def pivoted_cholesky(
    problem: KernelProblem, m: int, *, tol: float = 0.0, candidates: Rows = None
) -> PartialCholesky:
    """Return the decomposition with at most m pivots: candidates of positive weight.

    A pass computes the columns of the rows with the largest residuals. They become pivots as long
    as no other row has a larger one: the pivots are those of one pass for each.
    """
    factor, weights = PartialCholesky(problem, m, candidates), row_weights(problem)
    target = tol * float(weights @ factor.columns.diag)
    start, columns, place = 0, np.empty((0, 0)), dict[int, int]()
    while factor.room:
        residual, eligible = factor.residual_diag, factor.eligible
        pivot = int(np.argmax(eligible))
        if eligible[pivot] <= 0 or float(weights @ residual) <= target:
            break
        if pivot not in place:
            width = min(MAX_COLUMNS, max(_FIRST, 2 * (factor.size - start)), factor.room)
            ahead = np.argsort(-eligible, kind="stable")[:width]
            ahead = ahead[eligible[ahead] > 0]
            start, columns = factor.size, factor.residual(ahead)
            place = {int(row): i for i, row in enumerate(ahead)}
        before, root = factor.G[:, start : factor.size], np.sqrt(residual[pivot])
        column = (columns[:, place[pivot]] - before @ before[pivot]) / root
        column[pivot] = root
        factor.append([pivot], column[:, None])
    factor.G = factor.G[:, : factor.size]
    return factor


@dataclass(eq=False, repr=False)
class RPCholesky(CholeskyLandmarks):
    r"""Pivots of a Cholesky decomposition, drawn in proportion to their residuals.

    The next landmark is row x with probability :math:`(K - GG^T)_{xx}/\mathrm{tr}(K - GG^T)`,
    times its weight: rows far from the span are likely, and outliers are not always chosen. Rows
    are proposed in blocks, and each is accepted with the share of its residual that the accepted
    ones before leave: the distribution of one-by-one sampling, in fewer passes. It takes nm(d + m)
    operations and holds G, n × m.

    Returns fewer than m landmarks if those span all rows, to rounding.

    Source: Y. Chen, E. N. Epperly, J. A. Tropp & R. J. Webber, Randomly pivoted Cholesky, Comm.
    Pure Appl. Math. 78 (2025). E. N. Epperly, J. A. Tropp & R. J. Webber, Embrace rejection: kernel
    matrix approximation by accelerated randomly pivoted Cholesky (2024), Alg. 2.

    Parameters
    ----------
    block : int or None
        Rows proposed at a time. None: twice the number accepted before, at most 128.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.RPCholesky())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    block: int | None = None

    name = "rp_cholesky"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        if self.block is not None:
            check_integer(self, "block")
        factor, size = PartialCholesky(problem, m), int(self.block or _FIRST)
        weights = row_weights(problem)
        while factor.room:
            sizes = factor.eligible * weights
            if not sizes.any():
                break
            proposed = problem.rng.choice(len(sizes), size, p=sizes / sizes.sum())
            accepted, L = _accept(factor, proposed, problem.rng)
            residual = factor.residual(accepted)
            columns = solve_triangular(L, residual.T, lower=True, check_finite=False).T
            factor.append(accepted, columns)
            if self.block is None:
                size = min(MAX_COLUMNS, max(_FIRST, 2 * len(accepted)))
        return row_basis(problem, factor.pivots)


def _accept(
    factor: PartialCholesky, proposed: Rows, rng: np.random.Generator
) -> tuple[Rows, Matrix]:
    """Accept proposals at random; return the accepted rows and the Cholesky factor of theirs.

    The first is always accepted: its residual is still whole.
    """
    part, threshold = factor.G[proposed, : factor.size], factor.threshold[proposed]
    E = factor.columns.submatrix(proposed) - part @ part.T
    diag = factor.residual_diag[proposed]
    np.fill_diagonal(E, diag)
    residual, L, accepted = diag.copy(), np.zeros_like(E), list[int]()
    for j, level in enumerate(rng.random(len(E))):
        i = len(accepted)
        if i == factor.room or residual[j] <= max(level * diag[j], threshold[j]):
            continue
        L[:, i] = (E[:, j] - L[:, :i] @ L[j, :i]) / np.sqrt(residual[j])
        residual -= L[:, i] ** 2
        residual[proposed == proposed[j]] = 0.0
        accepted.append(j)
    return proposed[accepted], L[accepted, : len(accepted)]

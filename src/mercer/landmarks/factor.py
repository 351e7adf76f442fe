"""A Cholesky factor of the kernel matrix that grows column by column."""

from __future__ import annotations

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.data import Block
from mercer.landmarks.base import require_memory
from mercer.landmarks.columns import Columns, Rows
from mercer.problem import KernelProblem

AHEAD = 128
"""Columns that are made in one pass, at most."""
# A row of which less than this share lies beyond the span adds nothing but rounding.
_ROUNDING = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}


class Factor:
    """G with K ≈ GGᵀ, and what it leaves of the diagonal.

    Attributes
    ----------
    G : ndarray of shape (n, m)
        The factor; columns from `size` on are not made yet.
    left : ndarray of shape (n,)
        Diagonal of K − GGᵀ: what of each row lies beyond the span of the pivots.
    least : ndarray of shape (n,)
        What must be left of a row for it to be a pivot; infinite for those that may not be.
    at : list of int
        The pivots. Their rows of G are lower triangular.
    """

    def __init__(self, problem: KernelProblem, m: int, among: Rows = None) -> None:
        n, weights = problem.source.shape[0], problem.source.weights
        require_memory(footprint(n, m), f"the Cholesky factor of {n} rows and {m} pivots")
        self.columns = Columns(problem)
        self.G: Matrix = np.empty((m, n)).T  # a column lies in one piece
        self.left: Vector = self.columns.own.copy()
        self.at: list[int] = []
        free = np.ones(n, bool) if weights is None else weights > 0
        if among is not None:
            free &= np.isin(np.arange(n), among)
        self.least = np.where(free, _ROUNDING[problem.source.dtype] * self.left, np.inf)

    @property
    def size(self) -> int:
        """Number of pivots."""
        return len(self.at)

    @property
    def room(self) -> int:
        """Number of pivots to come."""
        return int(self.G.shape[1]) - self.size

    @property
    def beyond(self) -> Vector:
        """What lies beyond the span, of rows that may be the next pivot; 0 of others."""
        return np.where(self.left > self.least, self.left, 0.0)

    def residual(self, at: Rows) -> Matrix:
        """Return columns of K − GGᵀ: one pass over the rows."""
        source, G, i = self.columns.source, self.G, self.size
        h, those = self.columns.of(at), self.G[at, :i].T.copy()

        def left(block: Block) -> Matrix:
            known = G[block.start : block.stop, :i] @ those
            return np.subtract(h(block), known, out=known)

        out: Matrix = np.empty((len(at), source.shape[0])).T
        width = len(at)
        source.map(left, width, np.float64, extra_bytes=16 * width).collect(out, "pivots")
        return out

    def residual_among(self, at: Rows) -> Matrix:
        """Return rows and columns of K − GGᵀ."""
        those = self.G[at, : self.size]
        H = self.columns.among(at) - those @ those.T
        np.fill_diagonal(H, self.left[at])
        return H

    def append(self, pivots: Rows, columns: Matrix) -> None:
        """Take in new columns of G."""
        new = slice(self.size, self.size + len(pivots))
        self.G[:, new] = columns
        self.G[self.at, new] = 0.0
        self.left -= np.einsum("ij,ij->i", columns, columns)
        np.maximum(self.left, 0.0, out=self.left)
        self.at.extend(int(p) for p in pivots)
        self.left[self.at] = 0.0


def footprint(n: int, m: int) -> float:
    """Return the bytes of a factor, and of the columns that are made ahead."""
    return 8.0 * n * (m + 2 * min(m, AHEAD))

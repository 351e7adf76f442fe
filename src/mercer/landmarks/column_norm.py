"""Rows drawn by the columns of the kernel matrix."""

from __future__ import annotations

from typing import Self

import numpy as np

from mercer.arrays import Array, Vector, to_numpy
from mercer.data import Block, Fold
from mercer.landmarks.base import Landmarks, drawn
from mercer.linalg.span import Basis
from mercer.linalg.upper_blocks import PrecomputedBlocks, UpperBlocks
from mercer.problem import KernelProblem


class ColumnNorm(Landmarks):
    r"""Rows drawn with chances in proportion to :math:`w_i\sum_jw_jk(x_i,x_j)^2`.

    Rows that are like many others are likely. All pairs of rows are walked, n²d operations,
    and no more of them held than a strip.

    References
    ----------
    P. Drineas, R. Kannan & M. W. Mahoney, Fast Monte Carlo algorithms for matrices, SIAM J.
    Comput. 36 (2006). Marukatat (2022), §5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.ColumnNorm())
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "column_norm"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        source, kernel = problem.source, problem.kernel
        strips = (
            PrecomputedBlocks(source.whole(), source.dtype)
            if kernel is None
            else UpperBlocks(kernel, source, source.dtype, keep=False)
        )
        weights = np.ones(source.shape[0]) if source.weights is None else source.weights
        return drawn(problem, weights * strips.fold(Squares(weights)).sums, m)

    @property
    def passes(self) -> int:
        return 1

    def work(self, n: int, d: int, m: int) -> float:
        return float(n) * n * d

    def memory(self, n: int, d: int, m: int) -> float:
        return 24.0 * n + 2.0 * 2**26


class Squares(Fold):
    """Σ_j w_j K_ij² of a symmetric matrix of which strips from the diagonal on come by."""

    label = "kernel matrix"

    def __init__(self, weights: Vector) -> None:
        self.weights, self.sums = weights, np.zeros(len(weights))
        self.nbytes = self.sums.nbytes

    def add(self, block: Block) -> None:
        squares = to_numpy(block.rows) ** 2
        here, on = slice(block.start, block.stop), self.weights[block.start :]
        self.sums[here] += squares @ on.astype(squares.dtype)
        beyond = self.weights[here].astype(squares.dtype) @ squares[:, block.length :]
        self.sums[block.stop :] += beyond

    def merge(self, other: Self) -> None:
        self.sums += other.sums

    def spawn(self) -> Self:
        return type(self)(self.weights)

    def arrays(self) -> dict[str, Array]:
        return {"sums": self.sums}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.sums = arrays["sums"]

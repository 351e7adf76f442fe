"""Rows drawn with known probabilities."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, like, to_numpy
from mercer.data import Block, Source
from mercer.landmarks.base import (
    Landmarks,
    Rows,
    SelectionCost,
    row_weights,
    sample_basis,
    systematic_sample,
    weighted_row_indices,
)
from mercer.landmarks.columns import KernelColumns
from mercer.linalg.span import Basis
from mercer.linalg.upper_blocks import SymmetricProduct, UpperBlocks
from mercer.problem import KernelProblem

# The smallest probability of a row, as a share of the largest.
_LEAST = 1e-6


class Diagonal(Landmarks):
    r"""Rows drawn with probabilities proportional to :math:`w_ik(x_i,x_i)^2`.

    Rows of large norm are likely; for a kernel with k(x,x) = 1 it is a uniform sample. One pass.

    Source: P. Drineas & M. W. Mahoney, On the Nyström method for approximating a Gram matrix, JMLR
    6 (2005). Marukatat (2022), §5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(10, select=landmarks.Diagonal())
    >>> KernelPCA(2, kernel="poly", method=method).fit(load_iris().data).X_fit_.shape
    (10, 4)
    """

    name = "diagonal"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        sizes = row_weights(problem) * KernelColumns(problem).diag ** 2
        return sample_basis(problem, sizes, m)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        return SelectionCost(1, work=2.0 * n * d, memory=24.0 * n)


class ColumnNorm(Landmarks):
    r"""Rows drawn with probabilities proportional to :math:`w_i\sum_jw_jk(x_i,x_j)^2`.

    Rows that resemble many others are likely. Computes the kernel between all pairs of rows, n²d
    operations, a block at a time.

    Source: P. Drineas, R. Kannan & M. W. Mahoney, Fast Monte Carlo algorithms for matrices, SIAM J.
    Comput. 36 (2006). Marukatat (2022), §5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.ColumnNorm())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "column_norm"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        source, kernel = problem.source, problem.kernel
        blocks = UpperBlocks(kernel, source, source.dtype, keep=False)
        weights = row_weights(problem)
        product = SquaredProduct(like(weights[:, None], blocks.reference), source.dtype)
        return sample_basis(problem, weights * to_numpy(blocks.fold(product).result)[:, 0], m)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        return SelectionCost(1, work=float(n) * n * d, memory=24.0 * n + 2.0 * 2**26)


class SquaredProduct(SymmetricProduct):
    """The product of the squared entries of a symmetric matrix with the columns of V."""

    def add(self, block: Block) -> None:
        super().add(Block(block.start, block.rows**2, None))


class Leverage(Landmarks):
    r"""Rows drawn with probabilities proportional to their ridge leverage scores.

    .. math:: \ell_i = (K(K+\lambda W^{-1})^{-1})_{ii}

    measures how much row i matters for the directions of feature space with variance above λ:
    rare rows are likely, rows with many near copies are not. The scores are estimated by
    recursive sampling: m rows are drawn by their scores from half of the rows, whose scores are
    estimated in the same way; then

    .. math:: \ell_i \approx \frac{w_i}{\lambda}\,(k(x_i,x_i) - h_i^T(K_S+\lambda P)^{-1}h_i),

    with h the kernel with the sampled rows and P their probabilities divided by their weights. λ
    is the trace that the best m/(4 log m) components do not explain, divided by their number.
    Takes 2nm(d + m) operations.

    Source: C. Musco & C. Musco, Recursive sampling for the Nyström method, NIPS (2017), Alg. 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.Leverage())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "leverage"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        order = problem.rng.permutation(weighted_row_indices(problem))
        halves = [len(order)]
        while halves[-1] > m:
            halves.append(-(-halves[-1] // 2))
        rows = sample = np.sort(order[: halves.pop()])
        scores = probability = np.ones(len(rows))
        columns, weights = KernelColumns(problem), row_weights(problem)
        while halves:
            rows = np.sort(order[: halves.pop()])
            scores = leverage_scores(columns, weights, rows, sample, probability)
            if halves:
                positions, probability = systematic_sample(problem.rng, scores, m)
                sample = rows[positions]
        sizes = np.zeros(problem.source.shape[0])
        sizes[rows] = scores
        return sample_basis(problem, sizes, m)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        return SelectionCost(2, 4.0 * n * m * d + 4.0 * n * m * m, 64.0 * m * m + 40.0 * n)


def leverage_scores(
    columns: KernelColumns, w: Vector, rows: Rows, sample: Rows, probability: Vector
) -> Vector:
    """Estimate the leverage scores of some rows from a sample drawn with these probabilities."""
    source = columns.source
    root = np.sqrt(w[sample] / probability)
    beta, U = eigh(root[:, None] * columns.submatrix(sample) * root)
    beta = np.maximum(beta, 0.0)
    k = ceil(len(sample) / (4.0 * log(max(len(sample), 3))))
    ridge = max(float(beta[k:].sum()) / k, _LEAST * float(beta.sum()) / len(beta))
    M, h = root[:, None] * U / np.sqrt(beta + ridge), columns.between(sample)

    def explained(block: Block) -> Matrix:
        return np.asarray(((h(block) @ M) ** 2).sum(axis=1)[:, None])

    part = source if len(rows) == source.shape[0] else RowSelection(source, rows)
    out = np.empty((len(rows), 1))
    part.map(explained, 1, np.float64, extra_bytes=24 * len(sample)).collect(out, "leverage scores")
    scores: Vector = w[rows] * np.maximum(columns.diag[rows] - out[:, 0], 0.0) / ridge
    return np.maximum(scores, _LEAST * scores.max()) if scores.any() else w[rows]


class RowSelection(Source):
    """Some rows of a source."""

    def __init__(self, source: Source, rows: Rows) -> None:
        self.source, self.rows, self.reference = source, rows, source.reference
        self.shape = (len(rows), *source.shape[1:])
        self.dtype, self.parallel, self.uneven = source.dtype, source.parallel, source.uneven

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:])) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        return self.source.take(self.rows[start:stop])

"""Rows drawn by ridge leverage scores."""

from __future__ import annotations

from math import ceil, log

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh
from mercer.data import Block, Source
from mercer.landmarks.base import Landmarks, drawn, pool, require_rows, systematic
from mercer.landmarks.columns import Columns, Rows
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# No row's chance is less than this share of the largest.
_LEAST = 1e-6


class Leverage(Landmarks):
    r"""Rows drawn with chances in proportion to their ridge leverage scores.

    .. math:: \ell_i = (K(K+\lambda W^{-1})^{-1})_{ii}

    says how much row i counts among the directions of the kernel's space that hold more than λ:
    a row of a rare kind is likely, one of many alike is not. Scores are estimated by recursive
    sampling: of half of the rows first, which is done in the same way, m are drawn by their
    scores; with them

    .. math:: \ell_i \approx \frac{w_i}{\lambda}\,(k(x_i,x_i) - h_i^T(K_S+\lambda P)^{-1}h_i),

    h the kernel to those drawn and P how likely they were, over their weights. λ is what is left
    of the trace by the best m/(4 log m) axes, over their number. It takes 2nm(d + m) operations.

    References
    ----------
    C. Musco & C. Musco, Recursive sampling for the Nyström method, NIPS (2017), Alg. 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.Leverage())
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "leverage"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        require_rows(problem, m)
        n, rng = problem.source.shape[0], problem.rng
        there = pool(problem, n)
        order, halves = rng.permutation(there), [len(there)]
        while halves[-1] > m:
            halves.append(-(-halves[-1] // 2))
        rows = np.sort(order[: halves.pop()])
        columns, at, chance, found = Columns(problem), rows, np.ones(len(rows)), np.ones(len(rows))
        while halves:
            rows = np.sort(order[: halves.pop()])
            found = scores(columns, rows, at, chance)
            if halves:
                some, chance = systematic(rng, found, m)
                at = rows[some]
        sizes = np.zeros(n)
        sizes[rows] = found
        return drawn(problem, sizes, m)

    @property
    def passes(self) -> int:
        return 2

    def work(self, n: int, d: int, m: int) -> float:
        return 4.0 * n * m * d + 4.0 * n * m * m

    def memory(self, n: int, d: int, m: int) -> float:
        return 64.0 * m * m + 40.0 * n


def scores(columns: Columns, rows: Rows, at: Rows, chance: Vector) -> Vector:
    """Return the leverage scores of some rows by a sample, and how likely each of it was."""
    source = columns.source
    w = np.ones(source.shape[0]) if source.weights is None else source.weights
    root = np.sqrt(w[at] / chance)
    beta, U = eigh(root[:, None] * columns.among(at) * root)
    beta = np.maximum(beta, 0.0)
    k = ceil(len(at) / (4.0 * log(max(len(at), 3))))
    ridge = max(float(beta[k:].sum()) / k, _LEAST * float(beta.sum()) / len(beta))
    M, h = root[:, None] * U / np.sqrt(beta + ridge), columns.of(at)

    def held(block: Block) -> Matrix:
        return np.asarray(((h(block) @ M) ** 2).sum(axis=1)[:, None])

    those = source if len(rows) == source.shape[0] else Some(source, rows)
    out = np.empty((len(rows), 1))
    those.map(held, 1, np.float64, extra_bytes=24 * len(at)).collect(out, "leverage scores")
    found: Vector = w[rows] * np.maximum(columns.own[rows] - out[:, 0], 0.0) / ridge
    return np.maximum(found, _LEAST * found.max()) if found.any() else w[rows]


class Some(Source):
    """Some rows of a source."""

    def __init__(self, source: Source, at: Rows) -> None:
        self.source, self.at = source, at
        self.shape = (len(at), *source.shape[1:])
        self.dtype, self.parallel, self.uneven = source.dtype, source.parallel, source.uneven

    @property
    def reference(self) -> Array:
        return self.source.reference

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:])) * self.dtype.itemsize

    def read(self, start: int, stop: int) -> Array:
        return self.source.take(self.at[start:stop])

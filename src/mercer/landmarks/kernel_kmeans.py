"""Centers of clusters in feature space."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.checks import check_whole
from mercer.kernels.evaluate import check_magnitude
from mercer.landmarks.base import (
    CandidateLandmarks,
    SelectionCost,
    require_enough_rows,
    require_memory,
    row_basis,
)
from mercer.landmarks.columns import KernelColumns
from mercer.landmarks.lloyd import membership
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem


class KernelKMeans(CandidateLandmarks):
    r"""Rows nearest to the centers of k-means clusters in feature space.

    Minimizes :math:`\sum_iw_i\min_j\|\Phi(x_i)-\mu_j\|^2` by Lloyd's algorithm, which needs the
    kernel alone: :math:`\|\Phi(x)-\mu\|^2 = k(x,x) - 2\sum_is_ik(x,x_i) + \sum_{il}s_is_l
    k(x_i,x_l)` for a center μ = Σ sᵢΦ(xᵢ). Rows may be strings or a kernel matrix. Every row is
    taken once.

    Parameters
    ----------
    max_iter : int
        Iterations of Lloyd's algorithm, at most.
    candidates : int or None
        Number of rows that are clustered, drawn with equal probability. None: 2000, or five for
        every landmark if that is more; fewer if their kernel matrix would take more than a quarter
        of the memory budget.

    References
    ----------
    M. Girolami, Mercer kernel-based clustering in feature space, IEEE Trans. Neural Networks 13
    (2002). Washizawa (2012), §4.1.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.KernelKMeans())
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "kernel_kmeans"
    per_landmark = 5

    def __init__(self, max_iter: int = 20, candidates: int | None = None) -> None:
        self.max_iter, self.candidates = max_iter, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_whole(self, "max_iter")
        require_enough_rows(problem, m)
        rows = self._draw_candidates(problem, m)
        require_memory(8.0 * len(rows) * (len(rows) + m), f"the kernel between {len(rows)} rows")
        weights = problem.source.weights
        w = np.ones(len(rows)) if weights is None else weights[rows]
        K = KernelColumns(problem).submatrix(rows)
        check_magnitude(repr(problem.kernel), float(np.max(np.abs(np.diag(K)))))
        distances, labels = kernel_lloyd(K, w, m, int(self.max_iter), problem.rng)
        chosen = rows[_nearest(distances)]
        order = np.argsort(chosen)
        sizes = np.asarray(np.bincount(labels, weights=w, minlength=m)[order], np.float64)
        return replace(row_basis(problem, chosen[order]), sizes=sizes)

    def _most_candidates(self, n: int, nbytes: int) -> int:
        return isqrt(nbytes // 8)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        p = self.n_candidates(n, m)
        work = 2.0 * p * p * d + self.max_iter * 2.0 * p * (p + m)
        return SelectionCost(0, work, 8.0 * p * (p + 3 * m))


def kernel_lloyd(
    K: Matrix, w: Vector, m: int, max_iter: int, rng: np.random.Generator
) -> tuple[Matrix, np.ndarray[Any, Any]]:
    """Return squared distances of rows from m centers, of shape (m, rows), and their clusters."""
    diag, seeds = np.diag(K), _plus_plus(K, w, m, rng)
    distances: Matrix = diag + diag[seeds][:, None] - 2.0 * K[seeds]
    labels = np.argmin(distances, axis=0)
    labels[seeds] = np.arange(m)
    for _ in range(max_iter):
        distances = _distances(K, w, labels, m)
        before, labels = labels, np.argmin(distances, axis=0)
        _fill_empty(labels, distances, m)
        if np.array_equal(before, labels):
            break
    return distances, labels


def _plus_plus(K: Matrix, w: Vector, m: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Draw m different rows, each by its squared distance from those before (k-means++)."""
    diag, free, seeds = np.diag(K), w > 0, list[int]()
    sizes = w.copy()
    for _ in range(m):
        sizes = np.where(free, sizes, 0.0)
        if not sizes.any():  # all others coincide with a seed
            sizes = free.astype(np.float64)
        seed = int(rng.choice(len(diag), p=sizes / sizes.sum()))
        seeds.append(seed)
        free[seed] = False
        distances = w * np.maximum(diag + diag[seed] - 2.0 * K[seed], 0.0)
        sizes = distances if len(seeds) == 1 else np.minimum(sizes, distances)
    return np.array(seeds)


def _distances(K: Matrix, w: Vector, labels: Any, m: int) -> Matrix:
    """Return squared distances from the centers; infinite for clusters without rows."""
    total = np.bincount(labels, weights=w, minlength=m)
    member = membership(labels, w / total[labels], m)
    cross: Matrix = member @ K
    norms = np.asarray(member.multiply(cross).sum(axis=1))
    distances: Matrix = np.diag(K) - 2.0 * cross + norms.reshape(-1, 1)
    distances[total == 0] = np.inf
    return distances


def _fill_empty(labels: Any, distances: Matrix, m: int) -> None:
    """Give clusters without rows the rows that are farthest from their centers."""
    empty = np.setdiff1d(np.arange(m), labels)
    if len(empty):
        own = distances[labels, np.arange(len(labels))]
        labels[np.argsort(-own, kind="stable")[: len(empty)]] = empty


def _nearest(distances: Matrix) -> np.ndarray[Any, Any]:
    """Return the row nearest to each center, every row once; the nearest centers choose first."""
    free, rows = np.ones(distances.shape[1], bool), np.zeros(len(distances), np.intp)
    for cluster in np.argsort(distances.min(axis=1), kind="stable"):
        row = int(np.argmin(np.where(free, distances[cluster], np.inf)))
        row = row if free[row] else int(np.argmax(free))
        free[row], rows[cluster] = False, row
    return rows

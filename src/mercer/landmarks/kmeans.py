"""Centers of clusters of rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse

from mercer.arrays import Array, Matrix, Vector, like, numpy_dtype, to_numpy
from mercer.checks import check_whole
from mercer.config import get_config
from mercer.data import Block, Fold, Source
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points, cast_rows
from mercer.landmarks.base import (
    Landmarks,
    SelectionCost,
    draw_rows,
    require_enough_rows,
    require_memory,
    row_basis,
)
from mercer.landmarks.lloyd import lloyd, membership
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem
from mercer.threads import serial_blas

# Rows that are clustered: at most so many for every landmark, and at least these.
_PER_LANDMARK, _FEWEST = 50, 5000
# If rows × columns × landmarks exceeds this: a random start and few iterations; otherwise a start
# by k-means++ and more iterations.
_LARGE, _FEW_ITERATIONS, _ITERATIONS = 2e8, 5, 100


class KMeans(Landmarks):
    r"""Centers of k-means clusters of the rows, or the rows nearest to them.

    Minimizes :math:`\sum_i w_i\min_j\|x_i-\mu_j\|^2` by Lloyd's algorithm, with the same clusters
    for any block size and any number of threads. It clusters a sample of the rows: at most 50 for
    every landmark and at least 5000, or fewer if those would take more than a quarter of the memory
    budget. The nearest rows are searched among all. Large problems start from random rows and take
    five iterations; others start from k-means++.

    Parameters
    ----------
    nearest : bool
        Take the row nearest to each center, every row once. False: take the centers themselves,
        which are not rows.
    max_iter : int or None
        Iterations of Lloyd's algorithm. None: 100, or 5 for large problems.

    References
    ----------
    K. Zhang, I. W. Tsang & J. T. Kwok, Improved Nyström low-rank approximation and error
    analysis, ICML (2008). Washizawa (2012), §4.1.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.KMeans(nearest=False))
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "kmeans"
    takes = "vectors"

    def __init__(self, nearest: bool = True, max_iter: int | None = None) -> None:
        self.nearest, self.max_iter = nearest, max_iter

    def select(self, problem: KernelProblem, m: int) -> Basis:
        if self.max_iter is not None:
            check_whole(self, "max_iter")
        source = problem.source
        require_enough_rows(problem, m)
        n, d = source.shape
        row_bytes = source.row_bytes if source.sparse else d * source.dtype.itemsize
        sample = draw_rows(problem, max(m, self._sample_size(n, row_bytes, m)))
        weights = None if source.weights is None else source.weights[sample]
        centers, sizes = self._cluster(_read_rows(source, sample), weights, m, problem.rng)
        if self.nearest:
            return replace(row_basis(problem, nearest_rows(source, centers)), sizes=sizes)
        return Basis(like(centers, source.reference, source.dtype), sizes=sizes)

    def _cluster(
        self, rows: Any, weights: Vector | None, m: int, rng: np.random.Generator
    ) -> tuple[Any, Vector]:
        """Return the centers of m clusters, and the weight of each."""
        from sklearn.cluster import kmeans_plusplus

        n, d = rows.shape
        seed = np.random.RandomState(int(rng.integers(2**31)))
        # Distances between centered rows keep more digits.
        mean = 0.0 if hasattr(rows, "tocsr") else rows.mean(axis=0)
        centered: Any = rows if hasattr(rows, "tocsr") else rows - mean
        if float(n) * d * m > _LARGE:
            probability = None if weights is None else weights / weights.sum()
            start = centered[seed.choice(n, m, replace=False, p=probability)]
        else:
            with serial_blas(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fewer different rows than landmarks
                start, _ = kmeans_plusplus(centered, m, sample_weight=weights, random_state=seed)
        start = start.toarray() if hasattr(start, "toarray") else start
        labels, centers = lloyd(centered, weights, start, self._iterations(n, d, m))
        return _cluster_means(rows, labels, weights, centers + mean)

    def _iterations(self, n: int, d: int, m: int) -> int:
        return int(self.max_iter or (_FEW_ITERATIONS if float(n) * d * m > _LARGE else _ITERATIONS))

    @staticmethod
    def _sample_size(n: int, row_bytes: int, m: int) -> int:
        fitting = get_config().budget // 4 // max(1, row_bytes)
        return min(n, max(_FEWEST, _PER_LANDMARK * m), max(1, fitting))

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        sample, nearest = self._sample_size(n, 8 * d, m), int(self.nearest)
        work = 2.0 * d * m * (sample * float(self._iterations(sample, d, m)) + n * nearest)
        return SelectionCost(nearest, work, 8.0 * d * (sample + 2 * m))


def nearest_rows(source: Source, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the row nearest to each point, every row once.

    A row nearest to several points goes to the nearest of them; the others search again. Distances
    are float64: with float32 the choice between near equals would depend on the block size.
    """
    rows, free = np.full(len(points), -1), np.ones(source.shape[0], bool)
    if source.weights is not None:
        free &= source.weights > 0
    while (rows < 0).any():
        missing = np.flatnonzero(rows < 0)
        fold = source.fold(Nearest(like(points[missing], source.reference, np.float64), free))
        for i in np.argsort(fold.distances, kind="stable"):
            row = fold.rows[i] if np.isfinite(fold.distances[i]) else int(np.argmax(free))
            if free[row]:
                rows[missing[i]], free[row] = row, False
    return rows


class Nearest(Fold):
    """The free row nearest to each point; the first of equals."""

    label = "nearest rows"

    def __init__(self, points: Array, free: np.ndarray[Any, Any]) -> None:
        self.points, self.free = points, free
        m = int(points.shape[0])
        self.distances, self.rows = np.full(m, np.inf), np.full(m, -1)
        self._y = Points(points)
        self.row_bytes = 8 * m

    def add(self, block: Block) -> None:
        free = self.free[block.start : block.stop]
        x = Points(cast_rows(block.rows, numpy_dtype(self.points)), block.start)
        for pair in TilePair.tiles(x, self._y):
            distances = _round(to_numpy(pair.sqdist).astype(np.float64))
            distances[~free[pair.rows]] = np.inf
            rows = block.start + pair.rows.start + distances.argmin(axis=0)
            self._update(pair.columns, distances.min(axis=0), rows)

    def _update(self, points: slice, distances: Vector, rows: np.ndarray[Any, Any]) -> None:
        best, best_rows = self.distances[points], self.rows[points]
        nearer = (distances < best) | ((distances == best) & (rows < best_rows))
        best[nearer], best_rows[nearer] = distances[nearer], rows[nearer]

    def merge(self, other: Self) -> None:
        self._update(slice(None), other.distances, other.rows)

    def spawn(self) -> Self:
        return type(self)(self.points, self.free)

    def arrays(self) -> dict[str, Array]:
        return {"distances": self.distances, "rows": self.rows}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.distances, self.rows = arrays["distances"], arrays["rows"]


def _round(distances: Matrix) -> Matrix:
    """Round distances to nine digits: the last ones depend on the block size.

    The mean of two rows stays equally far from both.
    """
    unit = np.int64(2**22)
    return ((distances.view(np.int64) + unit // 2) & -unit).view(np.float64)


def _read_rows(source: Source, rows: np.ndarray[Any, Any]) -> Any:
    """Return rows as scikit-learn takes them: writable NumPy arrays or CSR matrices."""
    if source.sparse:
        return scipy.sparse.csr_matrix(source.whole()[rows])
    require_memory(float(len(rows)) * source.shape[1] * source.dtype.itemsize, f"{len(rows)} rows")
    dense = to_numpy(source.take(rows))
    return dense if dense.flags.writeable else dense.copy()


def _cluster_means(
    rows: Any, labels: Any, weights: Vector | None, centers: Any
) -> tuple[Any, Vector]:
    """Return the means of clusters, and their weights; the center of a cluster without rows."""
    w = np.ones(len(labels)) if weights is None else weights
    member = membership(labels, w.astype(rows.dtype), len(centers))
    sums, total = member @ rows, member.sum(axis=1)[:, None]
    sums = sums.toarray() if hasattr(sums, "toarray") else sums
    means = np.where(total > 0, sums / np.maximum(total, np.finfo(rows.dtype).tiny), centers)
    return means, total[:, 0].astype(np.float64)

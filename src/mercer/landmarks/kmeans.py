"""Centers of clusters of rows, in their own space and in feature space."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse

from mercer.arrays import Array, Matrix, Vector, like, numpy_dtype, to_device_of, to_numpy
from mercer.checks import check_integer
from mercer.config import get_config
from mercer.data import Block, Fold, Source
from mercer.kernels.evaluate import check_magnitude
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points, cast_rows
from mercer.landmarks.base import (
    CandidateLandmarks,
    Landmarks,
    SelectionCost,
    draw_rows,
    require_enough_rows,
    require_memory,
    row_basis,
    row_weights,
)
from mercer.landmarks.columns import KernelColumns
from mercer.landmarks.lloyd import kernel_lloyd, lloyd
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem
from mercer.threads import serial_blas

# Rows to cluster: this many per landmark, but no fewer than this minimum.
_PER_LANDMARK, _FEWEST = 50, 5000
# If rows × columns × landmarks exceeds this: a random start and few iterations; otherwise a start
# by k-means++ and more iterations.
_LARGE, _FEW_ITERATIONS, _ITERATIONS = 2e8, 5, 100


@dataclass(eq=False, repr=False)
class KMeans(Landmarks):
    r"""Centers of k-means clusters of the rows, or the rows nearest to them.

    Minimizes :math:`\sum_i w_i\min_j\|x_i-\mu_j\|^2` by Lloyd's algorithm, with the same clusters
    for any block size and any number of threads, over a sample of the rows: 50 for every landmark
    or 5000, at most a quarter of the memory budget. The nearest rows are searched among all. Large
    problems start from random rows and take five iterations; others start from k-means++.

    Source: K. Zhang, I. W. Tsang & J. T. Kwok, Improved Nyström low-rank approximation and error
    analysis, ICML (2008). Washizawa (2012), §4.1.4.

    Parameters
    ----------
    nearest : bool
        Take the row nearest to each center, every row once. False: take the centers themselves,
        which are not rows.
    max_iter : int or None
        Iterations of Lloyd's algorithm. None: 100, or 5 for large problems.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.KMeans(nearest=False))
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    nearest: bool = True
    max_iter: int | None = None

    name = "kmeans"
    takes = "vectors"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        from sklearn.cluster import kmeans_plusplus

        if self.max_iter is not None:
            check_integer(self, "max_iter")
        require_enough_rows(row_weights(problem), m)
        source, rng = problem.source, problem.rng
        n, d = source.shape
        row_bytes = source.row_bytes if source.sparse else d * source.dtype.itemsize
        sample = draw_rows(problem, max(m, self._sample_size(n, row_bytes, m)))
        weights, state = row_weights(problem)[sample], np.random.RandomState(rng.integers(2**31))
        rows: Any
        mean: Any = 0.0
        if source.sparse:
            rows = scipy.sparse.csr_matrix(to_device_of(source.gather(sample), np.empty(0)))
        else:
            require_memory(float(len(sample)) * row_bytes, f"{len(sample)} rows")
            rows = to_numpy(source.take(sample))
            # Distances between centered rows keep more digits.
            mean = rows.mean(axis=0)
            rows = rows - mean
        if float(len(sample)) * d * m > _LARGE:
            probability = None if source.weights is None else weights / weights.sum()
            start = rows[state.choice(len(sample), m, replace=False, p=probability)]
        else:
            with serial_blas(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fewer different rows than landmarks
                start, _ = kmeans_plusplus(rows, m, sample_weight=weights, random_state=state)
        start = start.toarray() if hasattr(start, "toarray") else start
        centers, sizes = lloyd(rows, weights, start, self._iterations(len(sample), d, m))
        centers = centers + mean
        if self.nearest:
            return replace(row_basis(problem, nearest_rows(source, centers)), sizes=sizes)
        return Basis(like(centers, source.reference, source.dtype), sizes=sizes)

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


@dataclass(eq=False, repr=False)
class KernelKMeans(CandidateLandmarks):
    r"""Rows nearest to the centers of k-means clusters in feature space.

    Minimizes :math:`\sum_iw_i\min_j\|\Phi(x_i)-\mu_j\|^2` by Lloyd's algorithm, which needs the
    kernel alone: :math:`\|\Phi(x)-\mu\|^2 = k(x,x) - 2\sum_is_ik(x,x_i) + \sum_{il}s_is_l
    k(x_i,x_l)` for a center μ = Σ sᵢΦ(xᵢ). Rows may be strings or a kernel matrix. Every row is
    taken once.

    Source: M. Girolami, Mercer kernel-based clustering in feature space, IEEE Trans. Neural
    Networks 13 (2002). Washizawa (2012), §4.1.4.

    Parameters
    ----------
    max_iter : int
        Iterations of Lloyd's algorithm, at most.
    candidates : int or None
        Number of rows that are clustered, drawn with equal probability. None: 2000, or five for
        every landmark if that is more; fewer if their kernel matrix would not fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks, methods
    >>> method = methods.Subset(30, select=landmarks.KernelKMeans())
    >>> KernelPCA(2, kernel="rbf", method=method).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    max_iter: int = 20
    candidates: int | None = None

    name = "kernel_kmeans"
    per_landmark = 5
    among_themselves = True

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_integer(self, "max_iter")
        require_enough_rows(row_weights(problem), m)
        rows = self._draw_candidates(problem, m)
        require_memory(8.0 * len(rows) * (len(rows) + m), f"the kernel between {len(rows)} rows")
        w, K = row_weights(problem)[rows], KernelColumns(problem).submatrix(rows)
        check_magnitude(problem.kernel, float(np.max(np.abs(np.diag(K)))))
        distances, labels = kernel_lloyd(K, w, m, int(self.max_iter), problem.rng)
        # The row nearest to each center, every row once; the nearest centers choose first.
        nearest, free = np.zeros(m, np.intp), np.ones(len(rows), bool)
        for cluster in np.argsort(distances.min(axis=1), kind="stable"):
            row = int(np.argmin(np.where(free, distances[cluster], np.inf)))
            row = row if free[row] else int(np.argmax(free))
            free[row], nearest[cluster] = False, row
        order = np.argsort(nearest)
        sizes = np.asarray(np.bincount(labels, weights=w, minlength=m)[order], np.float64)
        return replace(row_basis(problem, rows[nearest[order]]), sizes=sizes)

    def cost(self, n: int, d: int, m: int) -> SelectionCost:
        p = self.n_candidates(n, m)
        work = 2.0 * p * p * d + self.max_iter * 2.0 * p * (p + m)
        return SelectionCost(0, work, 8.0 * p * (p + 3 * m))


def nearest_rows(source: Source, points: Matrix) -> np.ndarray[Any, Any]:
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
        free, unit = self.free[block.start : block.stop], np.int64(2**22)
        x = Points(cast_rows(block.rows, numpy_dtype(self.points)), block.start)
        for pair in TilePair.tiles(x, self._y):
            distances = to_numpy(pair.sqdist).astype(np.float64)
            # Rounded to nine digits, because the last ones depend on the block size: the mean of
            # two rows stays equally far from both.
            distances = ((distances.view(np.int64) + unit // 2) & -unit).view(np.float64)
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

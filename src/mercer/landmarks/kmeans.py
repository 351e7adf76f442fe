"""Centres of clusters of rows."""

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
from mercer.landmarks.base import Landmarks, pool, require_memory, require_rows, taken
from mercer.landmarks.lloyd import lloyd
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem
from mercer.threads import serial_blas

# Rows that are clustered: so many at most for every point, but no fewer than these.
_EACH, _LEAST = 50, 5000
# With more entries times points than this, a start at random and few rounds; otherwise a start
# by k-means++, and more.
_LARGE, _FEW, _MORE = 2e8, 5, 100


class KMeans(Landmarks):
    r"""Centres of k-means clusters of the rows, or the rows nearest to them.

    Minimises :math:`\sum_i w_i\min_j\|x_i-\mu_j\|^2` by Lloyd's algorithm, with the same clusters
    for any block size and any number of threads. The clusters are
    those of at most 50 rows for every point, and of no fewer than 5000, drawn with equal
    chances; of fewer where those would fill more than a quarter of the memory budget. The
    nearest are looked for among all rows. Where points times entries are many, the clusters start
    at random and five rounds follow; otherwise they start by k-means++.

    Parameters
    ----------
    nearest : bool
        Take the row nearest to each centre, every row once; False: the centres themselves, which
        are no rows.
    max_iter : int or None
        Rounds of Lloyd's algorithm. None: 100, or 5 where there is much to do.

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
        require_rows(problem, m)
        n, d = source.shape
        row_bytes = source.row_bytes if source.sparse else d * source.dtype.itemsize
        at = pool(problem, max(m, self._rows(n, row_bytes, m)))
        weights = None if source.weights is None else source.weights[at]
        centres, sizes = self._centres(_rows(source, at), weights, m, problem.rng)
        if self.nearest:
            return replace(taken(problem, nearest(source, centres)), sizes=sizes)
        return Basis(like(centres, source.reference, source.dtype), sizes=sizes)

    def _centres(
        self, rows: Any, weights: Vector | None, m: int, rng: np.random.Generator
    ) -> tuple[Any, Vector]:
        """Return the centres, and how many rows each has."""
        from sklearn.cluster import kmeans_plusplus

        (n, d), sparse = rows.shape, hasattr(rows, "tocsr")
        large = self._large(n, d, m)
        seed = np.random.RandomState(int(rng.integers(2**31)))
        about = 0.0 if sparse else rows.mean(axis=0)
        moved: Any = rows if sparse else rows - about  # distances keep digits
        if large:
            chances = None if weights is None else weights / weights.sum()
            start = moved[seed.choice(n, m, replace=False, p=chances)]
        else:
            with serial_blas(), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fewer different rows than points
                start, _ = kmeans_plusplus(moved, m, sample_weight=weights, random_state=seed)
        start = start.toarray() if hasattr(start, "toarray") else start
        rounds = int(self.max_iter or (_FEW if large else _MORE))
        labels, centres = lloyd(moved, weights, start, rounds)
        return _means(rows, labels, weights, centres + about)

    @staticmethod
    def _large(n: int, d: int, m: int) -> bool:
        return float(n) * d * m > _LARGE

    @staticmethod
    def _rows(n: int, row_bytes: int, m: int) -> int:
        room = get_config().budget // 4 // max(1, row_bytes)
        return min(n, max(_LEAST, _EACH * m), max(1, room))

    @property
    def passes(self) -> int:
        return int(self.nearest)

    def work(self, n: int, d: int, m: int) -> float:
        some = self._rows(n, 8 * d, m)
        rounds = float(self.max_iter or (_FEW if self._large(some, d, m) else _MORE))
        return 2.0 * d * m * (some * rounds + n * self.nearest)

    def memory(self, n: int, d: int, m: int) -> float:
        return 8.0 * d * (self._rows(n, 8 * d, m) + 2 * m)


def nearest(source: Source, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the row nearest to each point, every row once.

    A row that is nearest to several goes to the nearest of them, and the others look again. In
    float64: of rows nearly as near, float32 would take another for another block size.
    """
    found, free = np.full(len(points), -1), np.ones(source.shape[0], bool)
    if source.weights is not None:
        free &= source.weights > 0
    while (found < 0).any():
        missing = np.flatnonzero(found < 0)
        fold = source.fold(Nearest(like(points[missing], source.reference, np.float64), free))
        for i in np.argsort(fold.apart, kind="stable"):
            row = fold.at[i] if np.isfinite(fold.apart[i]) else int(np.argmax(free))
            if free[row]:
                found[missing[i]], free[row] = row, False
    return found


class Nearest(Fold):
    """Which row is nearest to each point, of those that are free; of equals, the first."""

    label = "nearest rows"

    def __init__(self, points: Array, free: np.ndarray[Any, Any]) -> None:
        self.points, self.free = points, free
        m = int(points.shape[0])
        self.apart, self.at = np.full(m, np.inf), np.full(m, -1)
        self._y = Points(points)
        self.row_bytes = 8 * m

    def add(self, block: Block) -> None:
        free = self.free[block.start : block.stop]
        x = Points(cast_rows(block.rows, numpy_dtype(self.points)), block.start)
        for pair in TilePair.tiles(x, self._y):
            apart = _nine_digits(to_numpy(pair.sqdist).astype(np.float64))
            apart[~free[pair.rows]] = np.inf
            best = apart.argmin(axis=0)
            self._take(pair.columns, apart.min(axis=0), block.start + pair.rows.start + best)

    def _take(self, which: slice, apart: Vector, at: np.ndarray[Any, Any]) -> None:
        here, there = self.apart[which], self.at[which]
        nearer = (apart < here) | ((apart == here) & (at < there))
        here[nearer], there[nearer] = apart[nearer], at[nearer]

    def merge(self, other: Self) -> None:
        self._take(slice(None), other.apart, other.at)

    def spawn(self) -> Self:
        return type(self)(self.points, self.free)

    def arrays(self) -> dict[str, Array]:
        return {"apart": self.apart, "at": self.at}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.apart, self.at = arrays["apart"], arrays["at"]


def _nine_digits(apart: Matrix) -> Matrix:
    """Round numbers that are not negative: equal ones stay so, as the mean of two rows is to both.

    How the last digits of a distance are rounded depends on the block it was computed in.
    """
    spare = np.int64(2**22)
    return ((apart.view(np.int64) + spare // 2) & -spare).view(np.float64)


def _rows(source: Source, at: np.ndarray[Any, Any]) -> Any:
    """Return rows as scikit-learn takes them, which may be written to."""
    if source.sparse:
        return scipy.sparse.csr_matrix(source.whole()[at])
    require_memory(float(len(at)) * source.shape[1] * source.dtype.itemsize, f"{len(at)} rows")
    rows = to_numpy(source.take(at))
    return rows if rows.flags.writeable else rows.copy()


def _means(rows: Any, labels: Any, weights: Vector | None, centres: Any) -> tuple[Any, Vector]:
    """Return the means of clusters, and what their rows weigh."""
    count = np.ones(len(labels)) if weights is None else weights
    place, shape = (labels, np.arange(len(labels))), (len(centres), len(labels))
    member = scipy.sparse.csr_array((count.astype(rows.dtype), place), shape)
    sums, total = member @ rows, member.sum(axis=1)[:, None]
    sums = sums.toarray() if hasattr(sums, "toarray") else sums
    means = np.where(total > 0, sums / np.maximum(total, np.finfo(rows.dtype).tiny), centres)
    return means, total[:, 0].astype(np.float64)

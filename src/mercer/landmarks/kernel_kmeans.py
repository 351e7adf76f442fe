"""Centres of clusters in the kernel's space."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
import scipy.sparse

from mercer.arrays import Matrix, Vector
from mercer.checks import check_whole
from mercer.config import get_config
from mercer.kernels.evaluate import check_magnitude
from mercer.landmarks.base import Landmarks, pool, require_memory, require_rows, taken
from mercer.landmarks.columns import Columns
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# Rows that are clustered, where the user does not say: so many, or so many for every point.
_LEAST, _EACH = 2000, 5


class KernelKMeans(Landmarks):
    r"""Rows nearest to the centres of k-means clusters in the kernel's space.

    Minimises :math:`\sum_iw_i\min_j\|\Phi(x_i)-\mu_j\|^2` by Lloyd's algorithm, which needs the
    kernel alone: :math:`\|\Phi(x)-\mu\|^2 = k(x,x) - 2\sum_is_ik(x,x_i) + \sum_{il}s_is_l
    k(x_i,x_l)` for a centre μ = Σ sᵢΦ(xᵢ). Rows may be strings, or a kernel matrix. Every row
    is taken once.

    Parameters
    ----------
    max_iter : int
        Rounds of Lloyd's algorithm at most.
    candidates : int or None
        Rows that are clustered, drawn with equal chances. None: 2000, or five for every point if
        that is more; fewer where their kernel matrix would fill more than a quarter of the memory
        budget.

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

    def __init__(self, max_iter: int = 20, candidates: int | None = None) -> None:
        self.max_iter, self.candidates = max_iter, candidates

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_whole(self, "max_iter")
        if self.candidates is not None:
            check_whole(self, "candidates")
        require_rows(problem, m)
        at = pool(problem, self.size(problem.source.shape[0], m))
        require_memory(8.0 * len(at) * (len(at) + m), f"the kernel between {len(at)} rows")
        weights = problem.source.weights
        counts = np.ones(len(at)) if weights is None else weights[at]
        K = Columns(problem).among(at)
        check_magnitude(repr(problem.kernel), float(np.max(np.abs(np.diag(K)))))
        apart, labels = clustered(K, counts, m, int(self.max_iter), problem.rng)
        chosen = at[_nearest(apart)]
        order = np.argsort(chosen)
        sizes = np.bincount(labels, weights=counts, minlength=m)
        return replace(taken(problem, chosen[order]), sizes=np.asarray(sizes[order], np.float64))

    def size(self, n: int, m: int) -> int:
        """Return how many rows are clustered."""
        if self.candidates is not None:
            return min(n, max(m, int(self.candidates)))
        room = isqrt(get_config().budget // 4 // 8)
        return min(n, max(m, min(max(_LEAST, _EACH * m), room)))

    def work(self, n: int, d: int, m: int) -> float:
        s = self.size(n, m)
        return 2.0 * s * s * d + self.max_iter * 2.0 * s * (s + m)

    def memory(self, n: int, d: int, m: int) -> float:
        s = self.size(n, m)
        return 8.0 * s * (s + 3 * m)


def clustered(
    K: Matrix, counts: Vector, m: int, rounds: int, rng: np.random.Generator
) -> tuple[Matrix, np.ndarray[Any, Any]]:
    """Return squared distances of rows from the centres of m clusters, of shape (m, rows).

    And the cluster of each row.
    """
    own, seeds = np.diag(K), spread(K, counts, m, rng)
    apart: Matrix = own + own[seeds][:, None] - 2.0 * K[seeds]
    labels = np.argmin(apart, axis=0)
    labels[seeds] = np.arange(m)
    for _ in range(rounds):
        apart = _distances(K, counts, labels, m)
        before, labels = labels, np.argmin(apart, axis=0)
        _fill(labels, apart, m)
        if np.array_equal(before, labels):
            break
    return apart, labels


def spread(K: Matrix, counts: Vector, m: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Draw m different rows, each by its squared distance from those before (k-means++)."""
    own, free, seeds = np.diag(K), counts > 0, list[int]()
    chance = counts.copy()
    for _ in range(m):
        chance = np.where(free, chance, 0.0)
        if not chance.any():  # all others lie on a seed
            chance = free.astype(np.float64)
        seed = int(rng.choice(len(own), p=chance / chance.sum()))
        seeds.append(seed)
        free[seed] = False
        apart = counts * np.maximum(own + own[seed] - 2.0 * K[seed], 0.0)
        chance = apart if len(seeds) == 1 else np.minimum(chance, apart)
    return np.array(seeds)


def _distances(K: Matrix, counts: Vector, labels: Any, m: int) -> Matrix:
    """Return squared distances from the centres; infinite from that of no rows."""
    total = np.bincount(labels, weights=counts, minlength=m)
    shares = counts / total[labels]
    place = (labels, np.arange(len(labels)))
    member = scipy.sparse.csr_array((shares, place), (m, len(labels)))
    across: Matrix = member @ K
    height = np.asarray(member.multiply(across).sum(axis=1))
    apart = np.diag(K) - 2.0 * across + height.reshape(-1, 1)
    apart[total == 0] = np.inf
    return apart


def _fill(labels: Any, apart: Matrix, m: int) -> None:
    """Give clusters without rows the rows that lie farthest from their centres."""
    empty = np.setdiff1d(np.arange(m), labels)
    if len(empty):
        far = np.argsort(-apart[labels, np.arange(len(labels))], kind="stable")[: len(empty)]
        labels[far] = empty


def _nearest(apart: Matrix) -> np.ndarray[Any, Any]:
    """Return the row nearest to each centre, every row once; the nearest choose first."""
    free, found = np.ones(apart.shape[1], bool), np.zeros(len(apart), np.intp)
    for cluster in np.argsort(apart.min(axis=1), kind="stable"):
        row = int(np.argmin(np.where(free, apart[cluster], np.inf)))
        row = row if free[row] else int(np.argmax(free))
        free[row], found[cluster] = False, row
    return found

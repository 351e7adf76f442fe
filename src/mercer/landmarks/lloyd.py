"""Lloyd's algorithm for rows and in feature space, the same for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from mercer import threads
from mercer.arrays import Matrix, Vector

Labels = np.ndarray[Any, Any]

# Rows of a chunk. Fixed: the sums of chunks, added in order, do not depend on the threads.
_CHUNK = 1024
# Stop when the centers move by less than this share of the columns' mean variance.
_TOL = 1e-4


def lloyd(rows: Any, w: Vector, centers: Matrix, max_iter: int) -> tuple[Matrix, Vector]:
    """Return the means of clusters of weighted rows, and the weights of the clusters.

    Rows are a dense or a CSR matrix; products are in their precision, sums in float64.
    """
    if hasattr(rows, "tocsr"):
        norms = np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    else:
        norms = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    total = np.asarray(w @ rows.astype(np.float64)).ravel()
    variance = float((w @ norms - total @ total / w.sum()) / w.sum() / rows.shape[1])
    with threads.serial_blas():
        for _ in range(max_iter):
            distances, means, sizes = _assign(rows, w, norms, centers)
            empty = np.flatnonzero(sizes == 0)
            if len(empty):  # they move to the rows that are farthest from their centers
                distances = np.where(w > 0, distances, -1.0)
                farthest = rows[np.argsort(-distances, kind="stable")[: len(empty)]]
                means[empty[: farthest.shape[0]]] = _dense(farthest)
            before, centers = centers, means.astype(rows.dtype)
            if float(((centers - before) ** 2).sum()) <= _TOL * variance:
                break
        _, means, sizes = _assign(rows, w, norms, centers)
    return means, sizes


def _assign(rows: Any, w: Vector, norms: Vector, centers: Matrix) -> tuple[Vector, Matrix, Vector]:
    """Return each row's squared distance from its center; means and weights of the clusters.

    The mean of a cluster without rows is its center.
    """
    n, m = rows.shape[0], len(centers)
    center_norms, transposed = (centers * centers).sum(axis=1), np.ascontiguousarray(-2 * centers.T)

    def assign_chunk(chunk: slice) -> tuple[Vector, Matrix, Vector]:
        x, weights = rows[chunk], w[chunk]
        distances = np.asarray(x @ transposed)
        distances += center_norms
        labels = np.argmin(distances, axis=1)
        nearest = norms[chunk] + distances[np.arange(len(labels)), labels]
        sums = _dense(_membership(labels, weights, m) @ x.astype(np.float64, copy=False))
        return nearest, sums, np.asarray(np.bincount(labels, weights, m), np.float64)

    chunks = [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    sums, sizes, nearest = np.zeros(centers.shape), np.zeros(m), []
    width = threads.workers()
    for first in range(0, len(chunks), width):
        for part in threads.in_threads(assign_chunk, chunks[first : first + width]):
            nearest.append(part[0])
            sums += part[1]
            sizes += part[2]
    occupied = sizes > 0
    means = np.where(occupied[:, None], sums, centers) / np.where(occupied, sizes, 1.0)[:, None]
    return np.concatenate(nearest), means, sizes


def kernel_lloyd(
    K: Matrix, w: Vector, m: int, max_iter: int, rng: np.random.Generator
) -> tuple[Matrix, Labels]:
    """Return squared distances of rows from m centers, of shape (m, rows), and their clusters."""
    diag, seeds = np.diag(K), _plus_plus(K, w, m, rng)
    distances: Matrix = diag + diag[seeds][:, None] - 2.0 * K[seeds]
    labels = np.argmin(distances, axis=0)
    labels[seeds] = np.arange(m)
    for _ in range(max_iter):
        total = np.bincount(labels, weights=w, minlength=m)
        member = _membership(labels, w / total[labels], m)
        cross: Matrix = member @ K
        norms = np.asarray(member.multiply(cross).sum(axis=1))
        distances = diag - 2.0 * cross + norms.reshape(-1, 1)
        distances[total == 0] = np.inf
        before, labels = labels, np.argmin(distances, axis=0)
        empty = np.setdiff1d(np.arange(m), labels)
        if len(empty):  # they get the rows that are farthest from their centers
            nearest = distances[labels, np.arange(len(labels))]
            labels[np.argsort(-nearest, kind="stable")[: len(empty)]] = empty
        if np.array_equal(before, labels):
            break
    return distances, labels


def _plus_plus(K: Matrix, w: Vector, m: int, rng: np.random.Generator) -> Labels:
    """Draw m distinct rows, by squared distance from those already drawn (k-means++)."""
    diag, free, seeds = np.diag(K), w > 0, list[int]()
    sizes = w
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


def _membership(labels: Labels, weights: Vector, m: int) -> Any:
    """Return the sparse matrix of m clusters and all rows, with a row's weight in its cluster."""
    place = (labels, np.arange(len(labels)))
    return scipy.sparse.csr_array((weights, place), (m, len(labels)))


def _dense(rows: Any) -> Matrix:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)

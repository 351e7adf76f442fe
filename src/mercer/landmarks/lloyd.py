"""Lloyd's algorithm, with the same clusters for any number of threads."""

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


def lloyd(
    rows: Any, weights: Vector | None, centers: Matrix, max_iter: int
) -> tuple[Labels, Matrix]:
    """Return the cluster of each row and the centers.

    Rows are a dense or a CSR matrix; products are in their precision, sums in float64.
    """
    w = np.ones(rows.shape[0]) if weights is None else weights
    norms = _squared_norms(rows)
    sums = np.asarray(w @ rows.astype(np.float64)).ravel()
    total = float(sums @ sums) / float(w.sum())
    variance = float((w @ norms - total) / w.sum() / rows.shape[1])
    labels = np.zeros(0)
    with threads.serial_blas():
        for _ in range(max_iter):
            before, old_labels = centers, labels
            labels, distances, sums, sizes = _assign(rows, w, norms, centers)
            means, occupied = np.array(centers), sizes > 0
            means[occupied] = sums[occupied] / sizes[occupied, None]
            _fill_empty(means, rows, np.where(w > 0, distances, -1.0), ~occupied)
            centers = means.astype(rows.dtype)
            same = np.array_equal(labels, old_labels) and occupied.all()
            if same or float(((centers - before) ** 2).sum()) <= _TOL * variance:
                break
        labels, *_ = _assign(rows, w, norms, centers)
    return labels, centers


def _assign(
    rows: Any, w: Vector, norms: Vector, centers: Matrix
) -> tuple[Labels, Vector, Matrix, Vector]:
    """Return each row's nearest center and squared distance; sums and weights of the clusters."""
    n, m = rows.shape[0], len(centers)
    center_norms, transposed = (centers * centers).sum(axis=1), np.ascontiguousarray(centers.T)

    def assign_chunk(chunk: slice) -> tuple[Labels, Vector, Matrix, Vector]:
        x, weights = rows[chunk], w[chunk]
        distances = np.asarray(x @ transposed)
        distances *= -2
        distances += center_norms
        labels = np.argmin(distances, axis=1)
        nearest = norms[chunk] + distances[np.arange(len(labels)), labels]
        sums = membership(labels, weights, m) @ x.astype(np.float64)
        sums = sums.toarray() if hasattr(sums, "toarray") else sums
        return labels, nearest, sums, np.asarray(np.bincount(labels, weights, m), np.float64)

    chunks = [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    sums, sizes, parts = np.zeros(centers.shape), np.zeros(m), []
    width = threads.workers()
    for first in range(0, len(chunks), width):
        for *part, chunk_sums, chunk_sizes in threads.in_threads(
            assign_chunk, chunks[first : first + width]
        ):
            parts.append(part)
            sums += chunk_sums
            sizes += chunk_sizes
    labels, distances = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return labels, distances, sums, sizes


def membership(labels: Labels, weights: Vector, m: int) -> Any:
    """Return the sparse matrix of m clusters and all rows, with a row's weight in its cluster."""
    place = (labels, np.arange(len(labels)))
    return scipy.sparse.csr_array((weights, place), (m, len(labels)))


def _fill_empty(centers: Matrix, rows: Any, distances: Vector, empty: Labels) -> None:
    """Move centers without rows to the rows that are farthest from theirs."""
    clusters = np.flatnonzero(empty)
    if len(clusters):
        farthest = rows[np.argsort(-distances, kind="stable")[: len(clusters)]]
        farthest = farthest.toarray() if hasattr(farthest, "toarray") else farthest
        centers[clusters[: len(farthest)]] = farthest


def _squared_norms(rows: Any) -> Vector:
    if hasattr(rows, "tocsr"):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))

"""Lloyd's algorithm, with the same clusters for any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from typing import Any

import numpy as np
import scipy.sparse

from mercer import threads
from mercer.arrays import Matrix, Vector

Labels = np.ndarray[Any, Any]

# Rows of a chunk. Fixed: sums of chunks, added in order, round alike whoever computes them.
_CHUNK = 1024
# Rounds end when the centres move by less than this share of the columns' mean variance.
_STILL = 1e-4


def lloyd(rows: Any, weights: Vector | None, centres: Matrix, rounds: int) -> tuple[Labels, Matrix]:
    """Return the cluster of each row and the centres, after so many rounds at most.

    Rows are a dense or a CSR matrix; products are in their precision, sums in float64.
    """
    count = np.ones(rows.shape[0]) if weights is None else weights
    lengths = _lengths(rows)
    spread = float((count @ lengths - _height(rows, count)) / count.sum() / rows.shape[1])
    labels = np.zeros(0)
    with threads.serial_blas():
        for _ in range(rounds):
            found, apart, sums, total = _assigned(rows, count, lengths, centres)
            before, moved = centres, np.array(centres)
            there = total > 0
            moved[there] = sums[there] / total[there, None]
            _fill(moved, rows, np.where(count > 0, apart, -1.0), ~there)
            centres = moved.astype(rows.dtype)
            same = np.array_equal(found, labels) and there.all()
            labels = found
            if same or float(((centres - before) ** 2).sum()) <= _STILL * spread:
                break
        labels, *_ = _assigned(rows, count, lengths, centres)
    return labels, centres


def _assigned(
    rows: Any, count: Vector, lengths: Vector, centres: Matrix
) -> tuple[Labels, Vector, Matrix, Vector]:
    """Return each row's nearest centre and squared distance; sums and weights of the clusters."""
    heights, across = (centres * centres).sum(axis=1), np.ascontiguousarray(centres.T)

    def part(start: int) -> tuple[Labels, Vector, Matrix, Vector]:
        stop = min(start + _CHUNK, rows.shape[0])
        x, w = rows[start:stop], count[start:stop]
        apart = np.asarray(x @ across)
        apart *= -2
        apart += heights
        labels = np.argmin(apart, axis=1)
        nearest = lengths[start:stop] + apart[np.arange(len(labels)), labels]
        place = (labels, np.arange(len(labels)))
        member = scipy.sparse.csr_array((w, place), (len(centres), len(labels)))
        sums = member @ x.astype(np.float64)
        sums = sums.toarray() if hasattr(sums, "toarray") else sums
        total = np.asarray(np.bincount(labels, w, len(centres)), np.float64)
        return labels, nearest, sums, total

    sums, total = np.zeros(centres.shape), np.zeros(len(centres))
    labels, apart = list[Labels](), list[Vector]()
    for found, near, own, weight in _in_order(part, range(0, rows.shape[0], _CHUNK)):
        labels.append(found)
        apart.append(near)
        sums += own
        total += weight
    return np.concatenate(labels), np.concatenate(apart), sums, total


def _in_order(part: Callable[[int], Any], starts: range) -> Any:
    """Yield what chunks give, in their order, computed by as many threads as there may be."""
    workers = threads.workers()

    def work(start: int) -> Any:
        with threads.working():
            return part(start)

    for first in range(0, len(starts), workers):
        batch = starts[first : first + workers]
        others = [threads.pool().submit(work, start) for start in batch[1:]]
        try:
            yield part(batch[0])
        except BaseException:
            wait(others)
            raise
        for other in others:
            yield other.result()


def _fill(centres: Matrix, rows: Any, apart: Vector, empty: Labels) -> None:
    """Move centres without rows to the rows that lie farthest from theirs."""
    at = np.flatnonzero(empty)
    if len(at):
        far = rows[np.argsort(-apart, kind="stable")[: len(at)]]
        centres[at[: far.shape[0]]] = far.toarray() if hasattr(far, "toarray") else far


def _lengths(rows: Any) -> Vector:
    if hasattr(rows, "tocsr"):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))


def _height(rows: Any, count: Vector) -> float:
    """Return n ‖mean‖²."""
    sums = np.asarray(count @ rows.astype(np.float64)).ravel()
    return float(sums @ sums) / float(count.sum())

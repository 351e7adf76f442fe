"""Frequent directions: a few rows that stand for all of them, with a known error."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, like, namespace, to_numpy
from mercer.data import Block, Fold
from mercer.linalg.centering import RunningMean


class DirectionsSketch(Fold):
    r"""Weight, mean, trace and a sketch B of `size` rows of the centred data A.

    .. math:: 0 \preceq A^T A - B^T B \preceq \Delta I

    with :math:`\Delta` = `loss`, the sum of what the shrinking steps took away: a bound, not
    an estimate. The mean is kept as `Triangle` keeps it. Rows are taken in groups of `size`, in
    their order, however blocks cut them: one pass gives the same sketch for any block size and
    any number of threads. Sketches that are merged, of batches or of chunks elsewhere, have
    shrunk on their own: the bound holds, and the sketch depends on where they were cut.

    Source: Ghashami, Liberty, Phillips & Woodruff (2016), Frequent Directions.
    """

    label = "frequent directions"
    ordered = True

    def __init__(self, d: int, size: int, reference: Array, *, center: bool = True) -> None:
        self.d, self.size = d, size
        self.reference = reference
        self.center = center
        self.running = RunningMean(d, reference)
        self._trace = self._loss = 0.0
        self._sketch = like(np.zeros((0, d)), reference)
        # Rows that wait for others to make a group, and their weights.
        self._rows, self._weights = like(np.zeros((0, d)), reference), np.zeros(0)
        self.row_bytes = 32 * d
        self.nbytes = 5 * 8 * size * d

    def add(self, block: Block) -> None:
        rows, counts = block.dense(np.float64), block.count
        at = np.flatnonzero(counts > 0)
        if len(at) < len(counts):
            rows, counts = namespace(rows).take(rows, like(at, rows), axis=0), counts[at]
        rows = namespace(rows).concat([self._rows, rows])
        counts = np.concatenate([self._weights, counts])
        whole = len(counts) - len(counts) % self.size
        for start in range(0, whole, self.size):
            group = slice(start, start + self.size)
            self._group(rows[group, :], counts[group])
        # A copy: the block is not to live as long as what is left of it.
        self._rows, self._weights = rows[whole:, :] + 0.0, counts[whole:]

    def _group(self, rows: Array, counts: Vector) -> None:
        """Take in rows that weigh something."""
        weight, w = float(counts.sum()), like(counts, self.reference)
        if self.center:
            rows, offset, left = self.running.center(rows, w, weight)
            rows = rows - left / weight
            self._join(weight, offset)
        else:
            self.running.weight += weight
        self._absorb(rows * namespace(w).sqrt(w)[:, None])

    def _finish(self) -> None:
        """Take in the rows that wait: no others will come."""
        if len(self._weights):
            rows, counts = self._rows, self._weights
            self._rows, self._weights = rows[:0, :], counts[:0]
            self._group(rows, counts)

    def merge(self, other: Self) -> None:
        if other.weight == 0.0:
            return
        self._finish()
        other._finish()
        if self.center:
            self._join(other.weight, self.running.offset_of(other.running))
        else:
            self.running.weight += other.weight
        lost = other._trace - _square_sum(other._sketch)
        self._absorb(other._sketch)
        self._trace += lost  # what the other's sketch no longer shows
        self._loss += other._loss

    def spawn(self) -> Self:
        return type(self)(self.d, self.size, self.reference, center=self.center)

    def arrays(self) -> dict[str, Array]:
        sums = np.array([self._trace, self._loss])
        waiting = {"rows": self._rows, "weights": self._weights}
        return {"sums": sums, "sketch": self._sketch, **waiting, **self.running.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.running.restore(arrays)
        self._trace, self._loss = (float(x) for x in arrays["sums"])
        self._sketch = like(to_numpy(arrays["sketch"]), self.reference)
        self._rows = like(to_numpy(arrays["rows"]), self.reference)
        self._weights = to_numpy(arrays["weights"]).copy()

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        return self.running.weight + float(self._weights.sum())

    @property
    def mean(self) -> Vector:
        """Mean of the rows, on the host."""
        self._finish()
        return self.running.value

    @property
    def trace(self) -> float:
        """Sum of squares of the centred rows."""
        self._finish()
        return self._trace

    @property
    def loss(self) -> float:
        """What the shrinking steps took away, Δ."""
        self._finish()
        return self._loss

    @property
    def sketch(self) -> Matrix:
        """The rows of B, on the host, longest first."""
        self._finish()
        self._shrink()
        return to_numpy(self._sketch)

    def _join(self, weight: float, offset: Array) -> None:
        before = self.running.weight
        apart = self.running.update(weight, offset)
        if before > 0.0:
            self._absorb((math.sqrt(before * weight / (before + weight)) * apart)[None, :])

    def _absorb(self, rows: Array) -> None:
        self._trace += _square_sum(rows)
        while rows.shape[0]:
            part, rows = rows[: self.size, :], rows[self.size :, :]
            self._sketch = namespace(rows).concat([self._sketch, part])
            if self._sketch.shape[0] >= 2 * self.size:
                self._shrink()

    def _shrink(self) -> None:
        """Rotate the sketch to orthogonal rows, and shrink them where there are too many."""
        if self._sketch.shape[0] == 0 or not math.isfinite(self._trace):
            return
        values, U = eigh(to_numpy(self._sketch @ self._sketch.T))
        cut = float(values[self.size]) if len(values) > self.size else 0.0
        cut = max(cut, 0.0)
        values, U = values[: self.size], U[:, : self.size]
        keep = values > max(cut, 1e-28 * float(values[0]))
        if not keep.any():
            keep[0] = True
        ratio = np.sqrt(
            np.maximum(values[keep] - cut, 0.0) / np.where(values[keep] > 0, values[keep], 1)
        )
        self._sketch = like((U[:, keep] * ratio).T, self._sketch) @ self._sketch
        self._loss += cut


def _square_sum(rows: Array) -> float:
    return float(namespace(rows).sum(rows * rows))

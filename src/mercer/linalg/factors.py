"""Factors of the centered rows: their triangle (TSQR), and a sketch of few rows."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Self

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, like, namespace, squares, to_numpy, triangle
from mercer.data import Block, Fold
from mercer.linalg.moments import RunningMean


class CenteredFactor(Fold):
    r"""Weight, mean, and a factor of the scatter that rows are appended to.

    Two groups of rows with weights :math:`a, b` and means that differ by :math:`\delta` merge as
    the rows of both and the row :math:`\sqrt{ab/(a+b)}\,\delta` (Ross et al. 2008).
    """

    def __init__(self, d: int, reference: Array, *, center: bool = True) -> None:
        self.d, self.reference, self.center = d, reference, center
        self.running = RunningMean(d, reference)
        self.row_bytes = 32 * d  # in float64, centered, stacked, and the copy of LAPACK

    @abstractmethod
    def _append(self, rows: Array) -> None:
        """Add rows to the factor."""

    def _add_rows(self, rows: Array, counts: Vector, *, weighted: bool = True) -> None:
        """Append rows, centered by their mean and weighted."""
        weight, w, offset = float(counts.sum()), like(counts, self.reference), None
        if weight == 0.0:
            return
        if self.center:
            rows, offset, left = self.running.center(rows, w, weight)
            rows = rows - left / weight
        self._join(weight, offset)
        self._append(rows * namespace(w).sqrt(w)[:, None] if weighted else rows)

    def _add_mean(self, other: Self) -> None:
        """Add the weight and the mean of another factor, whose rows are to be appended."""
        offset = self.running.offset_of(other.running) if self.center else None
        self._join(other.running.weight, offset)

    def _join(self, weight: float, offset: Array | None) -> None:
        before = self.running.weight
        if offset is None:  # not centered
            self.running.weight += weight
            return
        difference = self.running.update(weight, offset)
        if before > 0.0:
            self._append((math.sqrt(before * weight / (before + weight)) * difference)[None, :])


class TriangularFactor(CenteredFactor):
    r"""Weight, mean and R with :math:`R^T R = \sum_i w_i (x_i-\mu)(x_i-\mu)^T`, by QR alone.

    The singular values of R are those of the centered rows to the accuracy of a full SVD.

    Source: Demmel, Grigori, Hoemmen & Langou (2012).
    """

    label = "triangular factor"

    def __init__(self, d: int, reference: Array, *, center: bool = True) -> None:
        super().__init__(d, reference, center=center)
        self._factor = like(np.zeros((0, d)), reference)
        self._waiting: list[Array] = []
        self.nbytes = 4 * 8 * d * d

    def add(self, block: Block) -> None:
        self._add_rows(block.dense(np.float64), block.count, weighted=block.weights is not None)

    def merge(self, other: Self) -> None:
        if other.weight == 0.0:
            return
        self._add_mean(other)
        for rows in (other._factor, *other._waiting):
            self._append(rows)

    def spawn(self) -> Self:
        return type(self)(self.d, self.reference, center=self.center)

    def arrays(self) -> dict[str, Array]:
        waiting = {f"waiting {i}": rows for i, rows in enumerate(self._waiting)}
        return {"factor": self._factor, **waiting, **self.running.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        waiting = [f"waiting {i}" for i in range(len(arrays)) if f"waiting {i}" in arrays]
        self._waiting = [like(to_numpy(arrays[name]), self.reference) for name in waiting]
        self.running.restore(arrays)
        self._factor = like(to_numpy(arrays["factor"]), self.reference)

    @property
    def weight(self) -> float:
        return self.running.weight

    @property
    def mean(self) -> Vector:
        return self.running.value

    @property
    def factor(self) -> Matrix:
        """The triangle R, on the host; fewer rows than columns where there were fewer."""
        self.settle()
        return to_numpy(self._factor)

    def _append(self, rows: Array) -> None:
        self._waiting.append(rows)
        if sum(rows.shape[0] for rows in self._waiting) >= max(256, 2 * self.d):
            self.settle()

    def settle(self) -> None:
        if self._waiting:
            stacked = namespace(self._factor).concat([self._factor, *self._waiting])
            self._waiting = []
            self._factor = triangle(stacked)


class DirectionsSketch(CenteredFactor):
    r"""Weight, mean, trace and a sketch B of `size` rows of the centered data A.

    .. math:: 0 \preceq A^T A - B^T B \preceq \Delta I

    with :math:`\Delta` = `loss`, the sum of what the shrinking steps subtracted: a bound, not an
    estimate. Rows are added in groups of `size`, in their order, whatever the blocks: one pass
    gives the same sketch for any block size and any number of threads. Sketches that are merged,
    of batches or of remote chunks, were shrunk separately: the bound holds, and the sketch depends
    on the batches. A is the centered data times `factors`, one for each column.

    Source: Ghashami, Liberty, Phillips & Woodruff (2016), Frequent Directions.
    """

    label = "frequent directions"
    ordered = True

    def __init__(
        self,
        d: int,
        size: int,
        reference: Array,
        *,
        center: bool = True,
        factors: Vector | None = None,
    ) -> None:
        super().__init__(d, reference, center=center)
        self.size, self.factors = size, factors
        self._trace = self._loss = 0.0
        self._sketch = like(np.zeros((0, d)), reference)
        # Rows of an incomplete group, and their weights.
        self._rows, self._weights = like(np.zeros((0, d)), reference), np.zeros(0)
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
            self._add_rows(rows[group, :], counts[group])
        # A copy, which does not keep the block alive.
        self._rows, self._weights = rows[whole:, :] + 0.0, counts[whole:]

    def _finish(self) -> None:
        """Add the rows of the incomplete group: no others follow."""
        if len(self._weights):
            rows, counts = self._rows, self._weights
            self._rows, self._weights = rows[:0, :], counts[:0]
            self._add_rows(rows, counts)

    def merge(self, other: Self) -> None:
        if other.weight == 0.0:
            return
        self._finish()
        other._finish()
        self._add_mean(other)
        lost = other._trace - squares(other._sketch)
        self._extend(other._sketch)
        self._trace += lost  # what the other sketch no longer shows
        self._loss += other._loss

    def spawn(self) -> Self:
        same = self.d, self.size, self.reference
        return type(self)(*same, center=self.center, factors=self.factors)

    def arrays(self) -> dict[str, Array]:
        sums = np.array([self._trace, self._loss])
        waiting = {"rows": self._rows, "weights": self._weights}
        factors = {} if self.factors is None else {"factors": self.factors}
        return {"sums": sums, "sketch": self._sketch, **waiting, **factors, **self.running.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.running.restore(arrays)
        self._trace, self._loss = (float(x) for x in arrays["sums"])
        self._sketch = like(to_numpy(arrays["sketch"]), self.reference)
        self._rows = like(to_numpy(arrays["rows"]), self.reference)
        self._weights = to_numpy(arrays["weights"]).copy()
        self.factors = to_numpy(arrays["factors"]).copy() if "factors" in arrays else None

    @property
    def weight(self) -> float:
        return self.running.weight + float(self._weights.sum())

    @property
    def mean(self) -> Vector:
        self._finish()
        return self.running.value

    @property
    def trace(self) -> float:
        """Sum of squares of the centered rows."""
        self._finish()
        return self._trace

    @property
    def loss(self) -> float:
        """What the shrinking steps subtracted, Δ."""
        self._finish()
        return self._loss

    @property
    def sketch(self) -> Matrix:
        """The rows of B, on the host, longest first."""
        self._finish()
        self._shrink()
        return to_numpy(self._sketch)

    def _append(self, rows: Array) -> None:
        self._extend(rows if self.factors is None else rows * like(self.factors, rows))

    def _extend(self, rows: Array) -> None:
        """Add rows whose columns were multiplied by the factors."""
        self._trace += squares(rows)
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
        cut = max(float(values[self.size]), 0.0) if len(values) > self.size else 0.0
        values, U = values[: self.size], U[:, : self.size]
        keep = values > max(cut, 1e-28 * float(values[0]))
        keep[0] |= not keep.any()
        values = values[keep]
        ratio = np.sqrt(np.maximum(values - cut, 0.0) / np.where(values > 0, values, 1))
        self._sketch = like((U[:, keep] * ratio).T, self._sketch) @ self._sketch
        self._loss += cut

"""Correlations of columns and scores, from one pass over the rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.data import Source

Values = npt.NDArray[np.float64]


class Relation:
    """Sums of products of columns and scores."""

    def __init__(self, source: Source, axes: int, shift: Any = None) -> None:
        d = source.shape[1]
        self.source, self.axes = source, axes
        # Sums of squares of rows far from zero would lose their digits. A sparse row stays one.
        few = np.unique(np.linspace(0, source.shape[0] - 1, 8).astype(int))
        if shift is None:
            shift = np.zeros(d) if source.sparse else to_numpy(source.take(few)).mean(axis=0)
        self.shift = np.asarray(shift, np.float64)
        self.weight = 0.0
        self.x, self.xx = np.zeros(d), np.zeros(d)
        self.y, self.yy, self.xy = np.zeros(axes), np.zeros(axes), np.zeros((d, axes))

    def add(self, rows: Any, scores: Any, weights: Values) -> None:
        """Take in rows and their scores."""
        y = np.asarray(scores[:, : self.axes], np.float64)
        wy = weights[:, None] * y
        if hasattr(rows, "tocsr"):
            x, square = rows.astype(np.float64), rows.astype(np.float64)
            square.data = square.data**2
            self.xx += square.T @ weights
        else:
            x = to_numpy(rows).astype(np.float64) - self.shift
            self.xx += (x * x).T @ weights
        self.weight += float(weights.sum())
        self.x += x.T @ weights
        self.xy += x.T @ wy
        self.y += wy.sum(axis=0)
        self.yy += (wy * y).sum(axis=0)

    def merge(self, other: Self) -> None:
        """Take in what another has seen."""
        for name in ("weight", "x", "xx", "y", "yy", "xy"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def spawn(self) -> Self:
        """Return one that has seen nothing."""
        return type(self)(self.source, self.axes, self.shift)

    @property
    def correlations(self) -> Values:
        """Pearson's r of each column and each score; NaN where one of them does not vary."""
        w = self.weight
        cross = self.xy / w - np.outer(self.x / w, self.y / w)
        vx, vy = self.xx / w - (self.x / w) ** 2, self.yy / w - (self.y / w) ** 2
        still = vx <= 1e-13 * (self.xx / w)
        with np.errstate(all="ignore"):
            r = cross / np.sqrt(np.outer(np.where(still, np.nan, vx), vy))
        return np.asarray(np.clip(r, -1.0, 1.0))

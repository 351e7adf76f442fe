"""The fitted map of linear PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, like, namespace, to_numpy
from mercer.data import Block, Source
from mercer.kernels.feature_map import rounded_mean
from mercer.linalg import Centering
from mercer.projection.base import Projection, finite_rows

# Sparse rows whose squared mean is so many times their variance lose digits when they are
# centred after a product.
_FAR = 100.0


@dataclass(frozen=True)
class LinearProjection(Projection):
    r"""The map :math:`y(x) = ((x - \mu)/s)\, V` of rows themselves.

    Attributes
    ----------
    deviation : ndarray of shape (d,)
        What each column is divided by, s.
    """

    deviation: Vector

    @property
    def _far(self) -> bool:
        """Whether rows lie far from zero beside their spread."""
        total = self.total_variance
        return bool(np.sum((self.mean / self.deviation) ** 2) > _FAR * total)

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        kind = source.dtype if dtype is None else np.dtype(dtype)
        weights = to_numpy(self.components) / self.deviation[:, None]
        weights = weights if divide is None else weights / divide
        V = like(weights, source.reference, kind)
        centre = Centering(self.mean, kind, source.reference)
        # What the mean lost when it was rounded to the rows' precision.
        rest = self.mean - to_numpy(centre.mean).astype(np.float64)
        shift = like(rest @ weights, source.reference, kind)

        # Sparse rows are centred after the product, unless their mean would cost digits.
        early = source.sparse and self._far

        def project(block: Block) -> Array:
            rows = centre(block.dense(kind) if early else block.rows)
            return finite_rows(centre.times(rows, V) - shift, block, source)

        extra = 0 if source.sparse and not early else 2 * source.shape[1] * kind.itemsize
        return source.map(project, int(V.shape[1]), kind, extra_bytes=extra)

    def rows(self, source: Source, multiply: Vector | None = None) -> Source:
        """Return the rows that coordinates stand for: the way back."""
        kind = source.dtype
        lift = to_numpy(self.components).T * self.deviation
        lift = lift if multiply is None else lift * multiply[:, None]
        V, mean = like(lift, source.reference, kind), like(self.mean, source.reference, kind)

        def expand(block: Block) -> Array:
            return finite_rows(block.rows @ V + mean, block, source)

        return source.map(expand, int(V.shape[1]), kind)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: each row's squared distance from the axes' span, columns treated.

        Summed from the residual itself, not taken as a difference of squares.
        """
        kind = source.dtype if dtype is None else np.dtype(dtype)
        scores, where = self.scores(source, kind), source.reference
        V, divide = (like(to_numpy(x), where, kind) for x in (self.components, self.deviation))
        mean, rest = rounded_mean(self.mean, where, kind)

        def measure(block: Block) -> Array:
            y = scores.read(block.start, block.stop)
            apart = (block.dense(kind) - mean - rest) / divide - y @ V.T
            return finite_rows(namespace(apart).sum(apart * apart, axis=1)[:, None], block, source)

        extra = 4 * source.shape[1] * kind.itemsize
        return source.map(measure, 1, kind, extra_bytes=extra)

"""The fitted map: what every method ends in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Vector, is_finite, like, namespace, to_numpy
from mercer.certificate import Certificate
from mercer.folds import Centre
from mercer.sources import Block, Search, Source, not_finite


@dataclass(frozen=True)
class Projection:
    r"""The map :math:`y(x) = ((x - \mu)/s)\, V`, and what is known of it.

    Attributes
    ----------
    mean, deviation : ndarray of shape (d,)
        What is subtracted from each column, and what it is then divided by.
    components : array of shape (d, k)
        Orthonormal axes in the columns, float64.
    eigenvalues : ndarray of shape (k,)
        Variance along each axis.
    total_variance, rest : float
        Variance of the data in all directions, and in those that no axis holds.
    certificate : Certificate
        How far from the best possible axes these can be.
    """

    mean: Vector
    deviation: Vector
    components: Array
    eigenvalues: Vector
    total_variance: float
    rest: float
    certificate: Certificate

    @property
    def depth(self) -> float:
        """The smallest variance as a share of the largest; 0 where there is no variance."""
        values = self.eigenvalues
        if not len(values):
            return 1.0
        return float(values[-1] / values[0]) if values[0] > 0 else 0.0

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        """Return the rows' coordinates along the axes, computed when they are read.

        Parameters
        ----------
        source : Source
            Rows.
        dtype : dtype, optional
            Precision to compute in; the rows' own by default.
        divide : ndarray of shape (k,), optional
            What each coordinate is divided by (whitening).
        """
        kind = source.dtype if dtype is None else np.dtype(dtype)
        weights = to_numpy(self.components) / self.deviation[:, None]
        weights = weights if divide is None else weights / divide
        V = like(weights, source.reference, kind)
        centre = Centre(self.mean, kind, source.reference)
        # What the mean lost when it was rounded to the rows' precision.
        rest = self.mean - to_numpy(centre.mean).astype(np.float64)
        shift = like(rest @ weights, source.reference, kind)

        def project(block: Block) -> Array:
            return _finite(centre.times(centre(block.rows), V) - shift, block, source)

        extra = 0 if source.sparse else source.shape[1] * kind.itemsize
        return source.map(project, int(V.shape[1]), kind, extra_bytes=extra)

    def rows(self, source: Source, multiply: Vector | None = None) -> Source:
        """Return the rows that coordinates stand for: the way back."""
        kind = source.dtype
        lift = to_numpy(self.components).T * self.deviation
        lift = lift if multiply is None else lift * multiply[:, None]
        V, mean = like(lift, source.reference, kind), like(self.mean, source.reference, kind)

        def expand(block: Block) -> Array:
            return _finite(block.rows @ V + mean, block, source)

        return source.map(expand, int(V.shape[1]), kind)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: each row's squared distance from the axes' span, columns treated.

        Summed from the residual itself, not taken as a difference of squares.
        """
        kind = source.dtype if dtype is None else np.dtype(dtype)
        back = self.rows(self.scores(source, kind))
        divide = like(self.deviation, source.reference, kind)

        def measure(block: Block) -> Array:
            apart = (block.dense(kind) - back.read(block.start, block.stop)) / divide
            return namespace(apart).sum(apart * apart, axis=1)[:, None]

        extra = 4 * source.shape[1] * kind.itemsize
        return source.map(measure, 1, kind, extra_bytes=extra)


def _finite(result: Array, block: Block, source: Source) -> Array:
    """Return what was made of a block, or say which of its entries is not finite."""
    if is_finite(result):
        return result
    search = Search()
    search.add(block)
    raise not_finite(search.found, source)

"""Base class of fitted maps, and the map of linear PCA."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    DeviceMatrix,
    Vector,
    like,
    namespace,
    on_accelerator,
    to_device_of,
    to_numpy,
)
from mercer.data import Block, Source, finite_rows
from mercer.kernels.evaluate import rounded_mean
from mercer.linalg import Centering

# Sparse rows whose squared mean is so many times their variance lose digits when they are
# centred after a product.
_FAR = 100.0


@dataclass(frozen=True)
class Projection(ABC):
    r"""The map :math:`y(x) = (f(x) - \mu)\, V`, and the variances along its components."""

    mean: Vector  # of each feature
    components: Array  # m×k float64, one column per component
    eigenvalues: Vector  # variance along each component
    total_variance: float
    rest: float  # variance outside the components

    def to_device_of(self, reference: Array) -> Self:
        """Return the projection with its arrays on the device of another array."""
        arrays = {
            field.name: to_device_of(
                np.asarray(value) if isinstance(value, DeviceMatrix) else value, reference
            )
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), DeviceMatrix) or on_accelerator(value)
        }
        return replace(self, **arrays)

    @abstractmethod
    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        """Return the scores of rows, computed when they are read, divided by `divide` (whitening).

        They are computed in the precision of the rows, or in `dtype`.
        """

    @abstractmethod
    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: the squared distance of each row from the span of the components."""


@dataclass(frozen=True)
class LinearProjection(Projection):
    r"""The map :math:`y(x) = \sqrt w\,((x - \mu)/s)\, V` of rows themselves."""

    deviation: Vector  # s of each column: its standard deviation, or 1
    weights: Vector | None = None  # w of each column; None for 1

    @property
    def divisor(self) -> Vector:
        """What each centered column is divided by, s/√w; infinite where the weight is zero."""
        if self.weights is None:
            return self.deviation
        with np.errstate(divide="ignore"):
            return np.asarray(self.deviation / np.sqrt(self.weights))

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        dtype = source.dtype if dtype is None else np.dtype(dtype)
        divisor = self.divisor
        weights = np.asfortranarray(to_numpy(self.components)) / divisor[:, None]
        weights = weights if divide is None else weights / divide
        V = like(weights, source.reference, dtype)
        center = Centering(self.mean, dtype, source.reference)
        # The part of the mean that rounding to the rows' precision has lost.
        rest = self.mean - to_numpy(center.mean).astype(np.float64)
        shift = like(rest @ weights, source.reference, dtype)
        # Sparse rows are centered after the product, unless their mean would cost digits.
        far = np.sum((self.mean / divisor) ** 2) > _FAR * self.total_variance
        dense = bool(source.sparse and far)

        def project(block: Block) -> Array:
            rows = center(block.dense(dtype) if dense else block.rows)
            return finite_rows(center.times(rows, V) - shift, block, source)

        extra = 0 if source.sparse and not dense else 2 * source.shape[1] * dtype.itemsize
        return source.map(project, int(V.shape[1]), dtype, extra_bytes=extra)

    def rows(self, source: Source, multiply: Vector | None = None) -> Source:
        """Return the rows that have these scores, inverse to `scores`.

        Scores say nothing of a column of weight zero: it is its mean.
        """
        dtype, divisor = source.dtype, self.divisor
        divisor = np.where(np.isfinite(divisor), divisor, 0.0)
        lift = np.ascontiguousarray(to_numpy(self.components).T) * divisor
        lift = lift if multiply is None else lift * multiply[:, None]
        V, mean = like(lift, source.reference, dtype), like(self.mean, source.reference, dtype)

        def expand(block: Block) -> Array:
            return finite_rows(block.rows @ V + mean, block, source)

        return source.map(expand, int(V.shape[1]), dtype)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: the squared distance of each scaled row from the components.

        Summed from the residual itself, not a difference of squares.
        """
        dtype = source.dtype if dtype is None else np.dtype(dtype)
        scores, where = self.scores(source, dtype), source.reference
        V, divide = (like(to_numpy(x), where, dtype) for x in (self.components, self.divisor))
        mean, rest = rounded_mean(self.mean, where, dtype)

        def measure(block: Block) -> Array:
            y = scores.read(block.start, block.stop)
            residual = (block.dense(dtype) - mean - rest) / divide - y @ V.T
            squares = namespace(residual).sum(residual * residual, axis=1)[:, None]
            return finite_rows(squares, block, source)

        extra = 4 * source.shape[1] * dtype.itemsize
        return source.map(measure, 1, dtype, extra_bytes=extra)

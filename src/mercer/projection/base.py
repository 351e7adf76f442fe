"""The fitted map: what every method ends in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from mercer.arrays import Array, Vector, is_finite
from mercer.data import Block, Source, not_finite, require_finite_rows


@dataclass(frozen=True)
class Projection(ABC):
    r"""The map :math:`y(x) = (f(x) - \mu)\, V`, and the variances along its components.

    Attributes
    ----------
    mean : ndarray of shape (m,)
        What is subtracted from each feature.
    components : array of shape (m, k)
        One column per component, float64.
    eigenvalues : ndarray of shape (k,)
        Variance along each component.
    total_variance, rest : float
        Variance of the data in all directions, and outside the components.
    """

    mean: Vector
    components: Array
    eigenvalues: Vector
    total_variance: float
    rest: float

    @property
    def depth(self) -> float:
        """The smallest variance as a share of the largest; 0 where there is no variance."""
        values = self.eigenvalues
        if not len(values):
            return 1.0
        return float(values[-1] / values[0]) if values[0] > 0 else 0.0

    @abstractmethod
    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        """Return the scores of rows, computed when they are read.

        Parameters
        ----------
        source : Source
            Rows.
        dtype : dtype, optional
            Precision to compute in; the rows' own by default.
        divide : ndarray of shape (k,), optional
            Divisor of each score (whitening).
        """

    @abstractmethod
    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: the squared distance of each row from the span of the components."""


def finite_rows(result: Array, block: Block, source: Source) -> Array:
    """Return what was made of a block, or say which of its entries is not finite."""
    if not result.shape[1]:  # no axis has looked at the rows
        require_finite_rows(block, source)
    if is_finite(result):
        return result
    require_finite_rows(block, source)
    raise not_finite(None, source)

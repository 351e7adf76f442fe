"""Maps of rows to features."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from mercer.arrays import Array
from mercer.data.fold import Block


class FeatureMap(Protocol):
    """A map of rows to features: linear, kernel, Fourier or a sketch.

    `Source.map` takes one and computes the features when they are read.
    """

    @property
    def width(self) -> int:
        """Number of features."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the features."""

    @property
    def extra_bytes(self) -> int:
        """Bytes needed for a row, besides the row itself and its features."""

    def __call__(self, block: Block) -> Array:
        """Return the features of the rows of a block."""

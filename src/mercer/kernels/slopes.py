"""What kernels tell of themselves besides their values: slopes and Fourier frequencies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Vector


@dataclass(frozen=True)
class Slopes:
    """Derivatives of a kernel by the dot product, the squared distance and the length of x.

    Attributes
    ----------
    dot, sqdist, norm : array or float
        ∂k/∂(xᵀy), ∂k/∂‖x−y‖² and ∂k/∂‖x‖².
    columns : tuple of int or None
        The columns that they are of; None for all.

    Examples
    --------
    >>> from mercer.kernels import Slopes
    >>> Slopes(dot=2.0).times(3.0)
    Slopes(dot=6.0, sqdist=0.0, norm=0.0, columns=None)
    """

    dot: Any = 0.0
    sqdist: Any = 0.0
    norm: Any = 0.0
    columns: tuple[Any, ...] | None = None

    def times(self, factor: Any) -> Slopes:
        """Return them all multiplied by a factor."""
        return Slopes(
            self.dot * factor, self.sqdist * factor, self.norm * factor, columns=self.columns
        )


@dataclass(frozen=True)
class Frequencies:
    r"""Fourier features of a kernel: :math:`k(x,y) \approx \sum_i a_i^2\cos(\omega_i^T(x-y))`.

    Attributes
    ----------
    omega : ndarray of shape (d, q)
        Frequencies.
    amplitude : ndarray of shape (q,)
        Amplitudes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> drawn = RBF(0.5).spectrum(1, 10_000, np.random.default_rng(0))
    >>> float(np.sum(drawn.amplitude**2 * np.cos(drawn.omega[0] * 1.0)).round(1))
    0.6
    """

    omega: np.ndarray[Any, Any]
    amplitude: Vector

    @classmethod
    def joined(cls, parts: Sequence[Frequencies]) -> Frequencies:
        """Return those of a sum of kernels: one after the other."""
        return cls(
            np.hstack([part.omega for part in parts]),
            np.concatenate([part.amplitude for part in parts]),
        )

"""Noise that rows may have: what a denoiser is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix
from mercer.checks import is_real
from mercer.params import Params


class SaltAndPepper(Params):
    """Entries turned white with chance p/2, and black with chance p/2.

    Source: Washizawa (2012), §6.5.

    Parameters
    ----------
    p : float
        Share of the entries that are lost.
    low, high : float
        Black, and white.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SaltAndPepper
    >>> SaltAndPepper(0.5)(np.full((2, 4), 0.3), np.random.default_rng(0))
    array([[0.3, 0. , 1. , 1. ],
           [0.3, 0.3, 0.3, 0.3]])
    """

    def __init__(self, p: float, low: float = 0.0, high: float = 1.0) -> None:
        self.p, self.low, self.high = p, low, high

    def __call__(self, rows: Any, rng: np.random.Generator) -> Matrix:
        if not (is_real(self.p) and 0 <= self.p <= 1):
            raise ValueError(f"{self!r}: p is a share of the entries, from 0 to 1.")
        clean = np.asarray(rows)
        # Whole numbers become floats where black or white is one: 0.5 would be cut to 0.
        made = clean.astype(np.result_type(clean.dtype, self.low, self.high))
        drawn = rng.random(made.shape)
        made[drawn < self.p] = self.low
        made[drawn < self.p / 2] = self.high
        return made


def noisy_rows(noise: Any, rows: Matrix, rng: np.random.Generator) -> Matrix:
    """Return rows with noise: Gaussian of a standard deviation, or what a function makes.

    Parameters
    ----------
    noise : float or callable
        The deviation; or a function of rows and a Generator.
    rows : ndarray of shape (n, d)
        Clean rows, which are not written to.
    rng : Generator
        Where the noise comes from.
    """
    if not callable(noise):
        return np.asarray(rows + float(noise) * rng.standard_normal(rows.shape))
    made = np.asarray(noise(rows.copy(), rng), dtype=np.float64)
    if made.shape != rows.shape:
        raise ValueError(
            f"noise={noise!r} made rows of shape {made.shape} of those of shape {rows.shape}."
        )
    if not np.isfinite(made).all():
        raise ValueError(f"noise={noise!r} made NaN or infinity of finite rows.")
    return made

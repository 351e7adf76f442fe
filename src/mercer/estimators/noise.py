"""Noise, and the error of a denoiser: measured on clean rows, or estimated from noisy ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.checks import is_real
from mercer.params import Params

# Step of the divergence in Stein's estimate, relative to the noise: well above the tolerance of
# pre-images, well below the curvature of the map.
_STEP = 0.1


class SaltAndPepper(Params):
    """Noise that turns entries white with probability p/2 and black with probability p/2.

    Source: Washizawa (2012), §6.5.

    Parameters
    ----------
    p : float
        Fraction of the entries that are lost.
    low, high : float
        Values of black and white.

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
            raise ValueError(f"{self!r}: p is a fraction of the entries, from 0 to 1.")
        clean = np.asarray(rows)
        # Integers become floats if black or white is one: 0.5 would be cut to 0.
        noisy = clean.astype(np.result_type(clean.dtype, self.low, self.high))
        uniform = rng.random(noisy.shape)
        noisy[uniform < self.p] = self.low
        noisy[uniform < self.p / 2] = self.high
        return noisy


@dataclass(frozen=True)
class Risk:
    """Rows by which denoisers are compared.

    Attributes
    ----------
    rows : ndarray of shape (q, d)
        Noisy rows.
    clean : ndarray of shape (q, d) or None
        The same rows without noise. None: unknown, and Stein's estimate takes their place.
    sigma : float
        Standard deviation of the noise, if the clean rows are unknown.
    signs : ndarray of shape (q, d) or None
        Random signs for the estimate of the divergence.
    weights : ndarray of shape (q,) or None
        Weight of each row.
    """

    rows: Matrix
    clean: Matrix | None
    sigma: float = 0.0
    signs: Matrix | None = None
    weights: Vector | None = None

    def error(self, denoise: Callable[[Matrix], Matrix]) -> float:
        r"""Return the mean squared error of a map, or Stein's unbiased estimate of it.

        .. math:: \|f(x)-x\|^2 - d\sigma^2 + 2\sigma^2\,\mathrm{div} f(x),\qquad
                  \mathrm{div} f(x) \approx b^T(f(x+\epsilon b)-f(x))/\epsilon

        with random signs b: Stein (1981); Ramani, Blu & Unser (2008), "Monte-Carlo SURE",
        (12)–(14).
        """
        denoised = denoise(self.rows)
        if self.clean is not None:
            squares = (denoised - self.clean) ** 2
        else:
            assert self.signs is not None
            step, variance = _STEP * self.sigma, self.sigma**2
            divergence = self.signs * (denoise(self.rows + step * self.signs) - denoised) / step
            squares = (denoised - self.rows) ** 2 - variance + 2.0 * variance * divergence
        return float(np.average(np.mean(squares, axis=1), weights=self.weights))


def make_risk(
    rows: Matrix,
    clean: Matrix | None,
    noise: Any,
    noisy: bool,
    weights: Vector | None,
    rng: np.random.Generator,
) -> Risk:
    """Return the risk by pairs of rows, by noise added to clean rows, or by Stein's estimate."""
    if clean is not None:
        return Risk(rows, clean, weights=weights)
    if noise is None:
        raise ValueError(
            "There are several candidates and nothing to compare them by. Set noise= to the "
            "standard deviation of the noise, or to a function that adds it to clean rows; pass "
            "fit(noisy, clean); or leave one n_components and one gamma."
        )
    if not noisy:
        return Risk(add_noise(noise, rows, rng), rows, weights=weights)
    if callable(noise):
        raise ValueError(
            f"noisy=True uses Stein's estimate, which is for Gaussian noise of a known standard "
            f"deviation, and noise={noise!r}. Set noise= to a number, or pass fit(noisy, clean)."
        )
    signs = rng.choice(np.array([-1.0, 1.0]), rows.shape)
    return Risk(rows, None, float(noise), signs, weights)


def add_noise(noise: Any, rows: Matrix, rng: np.random.Generator) -> Matrix:
    """Return rows with Gaussian noise of a standard deviation, or the result of a function."""
    if not callable(noise):
        return np.asarray(rows + float(noise) * rng.standard_normal(rows.shape))
    noisy = np.asarray(noise(rows.copy(), rng), dtype=np.float64)
    if noisy.shape != rows.shape:
        raise ValueError(
            f"noise={noise!r} returned shape {noisy.shape} for rows of shape {rows.shape}."
        )
    if not np.isfinite(noisy).all():
        raise ValueError(f"noise={noise!r} returned NaN or infinity for finite rows.")
    return noisy

"""How good a denoiser is: by clean rows, by noise added to them, or by noisy rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector
from mercer.estimators.noises import noisy_rows

# The probe of Stein's divergence, as a share of the noise: far above what the pre-images'
# tolerance hides, far below what turns the map.
_PROBE = 0.1


@dataclass(frozen=True)
class Judge:
    """Held-out rows, and what a map must make of them.

    Attributes
    ----------
    rows : ndarray of shape (q, d)
        What is to be denoised.
    truth : ndarray of shape (q, d) or None
        What they were before the noise. None: not known, and Stein's estimate takes its place.
    sigma : float
        Deviation of the noise, where the truth is not known.
    probe : ndarray of shape (q, d) or None
        Signs, the directions that the divergence is probed in.
    weights : ndarray of shape (q,) or None
        How often each row counts.
    """

    rows: Matrix
    truth: Matrix | None
    sigma: float = 0.0
    probe: Matrix | None = None
    weights: Vector | None = None

    def error(self, denoise: Callable[[Matrix], Matrix]) -> float:
        r"""Return the mean squared error of a map, or Stein's unbiased estimate of it.

        .. math:: \|f(x)-x\|^2 - d\sigma^2 + 2\sigma^2\,\mathrm{div} f(x),\qquad
                  \mathrm{div} f(x) \approx b^T(f(x+\epsilon b)-f(x))/\epsilon

        with signs b, one draw a row: Stein (1981); Ramani, Blu & Unser (2008), "Monte-Carlo
        SURE", (12)–(14).
        """
        made = denoise(self.rows)
        if self.truth is not None:
            each = np.mean((made - self.truth) ** 2, axis=1)
        else:
            assert self.probe is not None
            step = _PROBE * self.sigma
            turned = self.probe * (denoise(self.rows + step * self.probe) - made) / step
            apart = (made - self.rows) ** 2 - self.sigma**2 + 2.0 * self.sigma**2 * turned
            each = np.mean(apart, axis=1)
        return float(np.average(each, weights=self.weights))


def judge(
    rows: Matrix,
    truth: Matrix | None,
    noise: Any,
    noisy: bool,
    weights: Vector | None,
    rng: np.random.Generator,
) -> Judge:
    """Return who judges: by pairs, by noise added to clean rows, or by Stein's estimate."""
    if truth is not None:
        return Judge(rows, truth, weights=weights)
    if noise is None:
        raise ValueError(
            "Several candidates, and nothing to judge them by. Set noise=, the deviation of the "
            "noise or a function that adds it to clean rows; pass fit(noisy, clean); or leave one "
            "n_components and one gamma."
        )
    if not noisy:
        return Judge(noisy_rows(noise, rows, rng), rows, weights=weights)
    if callable(noise):
        raise ValueError(
            f"noisy=True judges by Stein's estimate, which is for Gaussian noise of a known "
            f"deviation, and noise={noise!r}. Set noise= to a number, or pass fit(noisy, clean)."
        )
    probe = rng.choice(np.array([-1.0, 1.0]), rows.shape)
    return Judge(rows, None, float(noise), probe, weights)

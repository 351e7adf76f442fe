"""Rules that compare eigenvalues with those of noise, and the laws of noise."""

from functools import cache
from math import cos, log, pi, sin, sqrt
from typing import Any

import numpy as np

from mercer import session
from mercer.checks import is_real
from mercer.messages import ParameterError
from mercer.rules.base import EPS, PartialSpectrum, Rule, Values, is_integer


class BrokenStick(Rule):
    """Keep the leading components whose share exceeds that of a stick broken at random.

    λ_k / Σλ > (1/p) (1/k + … + 1/p) with p = min(d, n - 1) (Jackson 1993).

    Examples
    --------
    >>> BrokenStick().choose(np.array([5.0, 1.5, 0.5]), 7.0, n=10, d=3)
    1
    """

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        p = min(spectrum.d, spectrum.n - 1)
        return spectrum.count_above(
            spectrum.total * np.cumsum(1 / np.arange(p, 0, -1))[::-1] / max(p, 1)
        )


class ParallelAnalysis(Rule):
    """Keep the leading components that exceed those of noise (Horn 1965).

    λ_k must exceed the given quantile, over the trials, of the k-th eigenvalue of spherical
    normal data of the same n, d and total variance. No n by d matrix is drawn: those are the
    eigenvalues of B Bᵀ with B bidiagonal and chi-distributed (Dumitriu & Edelman 2002).

    Examples
    --------
    >>> ParallelAnalysis().choose(np.array([4.0, 1.1, 0.9]), 6.0, n=100, d=3)
    1
    """

    def __init__(self, trials: int = 100, quantile: float = 0.95, random_state: Any = 0) -> None:
        self.trials = trials
        self.quantile = quantile
        self.random_state = random_state

    def check(self, n: int, d: int) -> None:
        self._require(is_integer(self.trials) and self.trials > 0, "trials is an integer > 0")
        self._require(is_real(self.quantile) and 0 <= self.quantile <= 1, "quantile is in [0, 1]")

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        # One seed, also for a Generator: every round below must draw the same noise.
        seed = session.seed(int(np.random.default_rng(self.random_state).integers(2**63)))
        ranks, p = 8, min(spectrum.n - 1, spectrum.d)
        while True:
            rng = np.random.default_rng(seed)
            noise = noise_shares(spectrum.n - 1, spectrum.d, min(ranks, p), self.trials, rng)
            k = spectrum.count_above(spectrum.total * np.quantile(noise, self.quantile, axis=0))
            if k is None or k < ranks or ranks >= p:
                return k
            ranks *= 4


class MLE(Rule):
    """Keep the k of largest evidence for k components plus spherical noise, 1 ≤ k < d (Minka 2000).

    Examples
    --------
    >>> MLE().choose(np.array([9.0, 4.0, 0.11, 0.1, 0.09]), 13.3, n=100, d=5)
    2
    """

    @property
    def whole(self) -> bool:
        return True

    def check(self, n: int, d: int) -> None:
        if n < d:
            raise ParameterError(
                "n_components", "mle", "is only supported if n_samples >= n_features"
            )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        if not spectrum.complete:
            return None
        if spectrum.values[0] <= 0 or spectrum.d == 1:
            return 0
        from scipy.special import gammaln

        n, d, k = spectrum.n, spectrum.d, np.arange(1, spectrum.d)
        values, tiny = spectrum.values / spectrum.values[0], d * EPS
        logs = np.log(np.maximum(values, tiny))
        noise = np.maximum(np.cumsum(values[::-1])[-2::-1] / (d - k), tiny)
        halves = np.arange(d, 1, -1) / 2
        evidence = np.cumsum(gammaln(halves) - halves * log(pi)) - k * log(2)
        evidence += (d * k - k * (k - 1) / 2) / 2 * log(2 * pi) - k / 2 * log(n)
        evidence -= n / 2 * (np.cumsum(logs[:-1]) + (d - k) * np.log(noise))
        evidence -= log_curvatures(values, logs, noise, n, tiny) / 2
        return int(np.argmax(np.where(values[:-1] < tiny, -np.inf, evidence))) + 1


class GavishDonoho(Rule):
    """Keep the singular values σ_i above the optimal hard threshold (Gavish & Donoho 2014).

    σ_i > λ*(β) √q · noise if the standard deviation of the noise is known, otherwise
    σ_i > λ*(β) / √μ_β · median(σ), with β = p/q, p ≤ q the dimensions n - 1 and d in order,
    λ*(β)² = 2(β+1) + 8β / (β+1 + √(β²+14β+1)), and μ_β the median of the Marchenko-Pastur law.

    Examples
    --------
    >>> GavishDonoho().choose(np.array([90.0, 40.0, 1.2, 1.0, 0.8]), 133.0, n=100, d=5)
    2
    """

    def __init__(self, noise: float | None = None) -> None:
        self.noise = noise

    @property
    def whole(self) -> bool:
        return self.noise is None

    def check(self, n: int, d: int) -> None:
        valid = self.noise is None or (is_real(self.noise) and self.noise >= 0)
        self._require(valid, "noise is a standard deviation, or None where it is unknown")

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        if self.whole and not spectrum.complete:
            return None
        p, q = sorted((spectrum.n - 1, spectrum.d))
        if p < 1:
            return 0
        if self.noise is None:
            # Centering leaves p of them; the zero after those would bias the median.
            middle = float(np.median(np.sqrt(np.maximum(spectrum.values[:p], 0))))
            cut = hard_threshold(p / q) * middle / sqrt(marchenko_pastur_median(p / q))
        else:
            cut = hard_threshold(p / q) * sqrt(q / (spectrum.n - 1)) * self.noise
        # Data without noise: values beyond the rank are rounding.
        return spectrum.count_above(max(cut**2, EPS * p * float(spectrum.values[:1].sum())))


def noise_shares(n: int, d: int, ranks: int, trials: int, rng: np.random.Generator) -> Values:
    """Return leading eigenvalues of noise with n degrees of freedom, as shares of their sum."""
    from scipy.linalg import eigh_tridiagonal

    p, q = sorted((n, d))
    # The leading eigenvectors of B Bᵀ fade like Airy functions of width p^(1/3): beyond this
    # corner they are below rounding.
    corner = min(p, int(p ** (1 / 3) * (2.8 * ranks ** (2 / 3) + 12)) + 1)
    shares = np.zeros((trials, ranks))
    for row in shares if ranks else ():
        a = rng.chisquare(q - np.arange(p))
        b = np.append(rng.chisquare(np.arange(p - 1, 0, -1)), 0.0)
        diagonal, off = (a + np.append(0.0, b[:-1]))[:corner], np.sqrt(a * b)[: corner - 1]
        top = (corner - ranks, corner - 1)
        values = eigh_tridiagonal(diagonal, off, eigvals_only=True, select="i", select_range=top)
        row[:] = values[::-1] / (a.sum() + b.sum())
    return shares


def hard_threshold(beta: float) -> float:
    """Return λ*(β): the optimal cut for singular values in noise of unit variance per √q."""
    return sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + sqrt(beta**2 + 14 * beta + 1)))


@cache
def marchenko_pastur_median(beta: float) -> float:
    """Return the median of the Marchenko-Pastur law of aspect 0 < β ≤ 1 and unit variance."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    def point(angle: float) -> float:
        return 1 + beta + 2 * sqrt(beta) * cos(angle)

    def above(angle: float) -> float:
        # In the angle the density has no square roots: smooth up to the ends of the support.
        return float(quad(lambda a: 2 / pi * sin(a) ** 2 / point(a), 0, angle)[0])

    return point(brentq(lambda angle: above(angle) - 0.5, 0.0, 3.0, xtol=1e-12))


def log_curvatures(values: Values, logs: Values, noise: Values, n: int, tiny: float) -> Values:
    """Return Σ_{i≤k, j>i} log(n (λ_i - λ_j) (1/λ̂_j - 1/λ̂_i)), k = 1 … d-1; λ̂_j = noise for j > k.

    Pairs of equal eigenvalues have no curvature and drop out.
    """
    sums = np.zeros(len(noise))
    for i in range(int(np.sum(values[:-1] >= tiny))):
        gaps = values[i] - values[i + 1 :]
        distinct = gaps > tiny
        log_gaps = np.log(np.maximum(gaps, tiny))
        slopes = np.log(np.maximum(1 / noise[i:] - 1 / values[i], tiny))
        within = distinct * (log(n) + 2 * log_gaps - logs[i] - logs[i + 1 :])
        across = distinct * (log(n) + log_gaps)
        sums[i + 1 :] += np.cumsum(within)[:-1]
        sums[i:] += np.cumsum(across[::-1])[::-1] + np.cumsum(distinct[::-1])[::-1] * slopes
    return sums

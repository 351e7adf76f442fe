"""Rules for the number of components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import cos, log, pi, sin, sqrt
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer import progress
from mercer.checks import is_positive_integer, is_real
from mercer.messages import ParameterError, format_parameter
from mercer.params import Params

__all__ = [
    *(
        "MLE",
        "NAMED",
        "BrokenStick",
        "Count",
        "CrossValidation",
        "Fraction",
        "GavishDonoho",
        "Kaiser",
    ),
    *("ParallelAnalysis", "RelativeError", "Rule", "Threshold", "as_rule"),
]

Values: TypeAlias = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


def as_rule(n_components: Any, n: int, d: int) -> Rule:
    """Return the rule for `n_components`, checked for n samples of d features.

    None or "all": every component; an integer: Count; a float in (0, 1): Fraction; "mle",
    "kaiser", "broken-stick", "parallel" or "gavish-donoho": that rule; a Rule: itself.

    Examples
    --------
    >>> as_rule(0.95, n=100, d=5)
    Fraction(0.95)
    """
    rule: Rule
    if isinstance(n_components, Rule):
        rule = n_components
    elif n_components is None or (isinstance(n_components, str) and n_components == "all"):
        rule = Count(min(n, d))
    elif isinstance(n_components, Integral) and not isinstance(n_components, bool):
        rule = Count(int(n_components))
    elif is_real(n_components) and 0 < n_components < 1:
        rule = Fraction(float(n_components))
    elif isinstance(n_components, str) and n_components in NAMED:
        rule = NAMED[n_components]()
    else:
        plausible = is_real(n_components) or isinstance(n_components, str)
        raise (ValueError if plausible else TypeError)(
            f"n_components={n_components!r} must be an int between 0 and {min(n, d)}, a float "
            f"in the range (0.0, 1.0), one of {', '.join(map(repr, ('all', *NAMED)))}, a Rule, or "
            "None for every component"
        )
    rule.check(n, d)
    return rule


class PartialSpectrum(NamedTuple):
    """Leading eigenvalues, total variance, and numbers of samples and features."""

    values: Values
    total: float
    n: int
    d: int
    complete: bool  # whether all eigenvalues are known
    rounding: float  # rounding error of total - Σ values
    rest: float  # variance of the unknown components

    def limit(self, k: int) -> int | None:
        """Return k; if fewer are known, all there are, or None if there are more."""
        return min(k, len(self.values)) if self.complete or k <= len(self.values) else None

    def count_above(self, cuts: Values | float) -> int | None:
        """Return how many leading eigenvalues exceed their cutoffs."""
        upper = self.values
        if not self.complete:  # the largest that the next value can be
            upper = np.append(upper, min([*upper[-1:], self.rest + self.rounding]))
        cuts = np.full(len(upper), cuts) if isinstance(cuts, float) else cuts
        above = upper[: len(cuts)] > cuts[: len(upper)]
        return self.limit(int(np.argmin(np.append(above, False))))


class Rule(Params):
    """A rule for the number of components, given the eigenvalues of the covariance matrix.

    A rule of your own overrides `choose`.

    Examples
    --------
    >>> from mercer import PCA
    >>> from mercer.rules import Rule
    >>> from sklearn.datasets import load_iris
    >>> class AboveHalf(Rule):
    ...     def choose(self, values, total, n, d):
    ...         return None if len(values) < min(n, d) else int((values > total / 2).sum())
    >>> PCA(AboveHalf()).fit(load_iris().data).n_components_
    1
    """

    @property
    def needs_all(self) -> bool:
        """Whether the rule always needs the complete spectrum."""
        return False

    def first_guess(self, n: int, d: int) -> int | None:
        """Return how many components to compute first; None if the rule cannot tell."""
        return None

    def at_most(self, n: int, d: int) -> int | None:
        """Return the most components that the rule can choose; None if there is no limit."""
        return self.first_guess(n, d)

    def check(self, n: int, d: int) -> None:
        """Raise ValueError if the rule cannot be used for n samples of d features."""

    def choose(self, values: Values, total: float, n: int, d: int) -> int | None:
        """Return the number of components to keep.

        Parameters
        ----------
        values : ndarray
            Leading eigenvalues of the covariance matrix (divisor n - 1), descending.
        total : float
            Total variance, the trace of the covariance matrix.
        n, d : int
            Samples and features; there are min(n, d) eigenvalues.

        Returns
        -------
        int or None
            From 0 to len(values). None: the other eigenvalues could change the answer.
        """
        self.check(n, d)
        complete, rounding = len(values) >= min(n, d), EPS * (len(values) + 64) * float(total)
        rest = max(float(total) - float(values.sum()), 0.0)
        rest = 0.0 if complete and rest <= rounding else rest
        return self._choose(PartialSpectrum(values, float(total), n, d, complete, rounding, rest))

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        raise NotImplementedError(f"{type(self).__name__} must define choose.")

    def _require(self, valid: bool, text: str) -> None:
        if not valid:
            raise ValueError(f"{self!r}: {text}")


@dataclass(eq=False, repr=False)
class Count(Rule):
    """Keep k components.

    Examples
    --------
    >>> Count(2).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    """

    k: int

    def first_guess(self, n: int, d: int) -> int | None:
        return self.k

    def check(self, n: int, d: int) -> None:
        integer = isinstance(self.k, Integral) and not isinstance(self.k, bool)
        if not integer or not 0 <= self.k <= min(n, d):
            raise ParameterError(
                "n_components",
                self.k,
                f"must be between 0 and min(n_samples, n_features)={min(n, d)}; "
                f"{format_parameter('n_components', None)} keeps all.",
            )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        return int(self.k) if self.k <= len(spectrum.values) else None


class Fraction(Rule):
    """Keep the smallest k with (λ₁ + … + λ_k) / Σλ > p, strictly, as scikit-learn does.

    At most `most` components, if it is set.

    Examples
    --------
    >>> Fraction(0.8).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    >>> Fraction(0.8, most=1).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    1
    """

    def __init__(self, p: float, most: int | None = None) -> None:
        self.p = p
        self.most = most

    def at_most(self, n: int, d: int) -> int | None:
        return None if self.most is None else min(int(self.most), n, d)

    def check(self, n: int, d: int) -> None:
        valid = is_real(self.p) and 0 < self.p < 1
        self._require(valid, "p must be in (0, 1); use None for all components")
        valid = self.most is None or is_positive_integer(self.most)
        self._require(valid, "most must be an integer > 0, or None for no limit")

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        if spectrum.total <= 0:  # Constant data: one component, as scikit-learn.
            return spectrum.limit(1)
        shares = np.cumsum(spectrum.values / spectrum.total)
        k = int(np.searchsorted(shares, self.p, side="right")) + 1
        return spectrum.limit(k if self.most is None else min(k, int(self.most)))


class RelativeError(Rule):
    """Keep the smallest k with (λ_{k+1} + λ_{k+2} + …) / Σλ ≤ e.

    That is the squared relative error, in Frobenius norm, of the best approximation of the
    centered data by a matrix of rank k (Eckart & Young 1936).

    Examples
    --------
    >>> RelativeError(0.15).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    """

    def __init__(self, e: float) -> None:
        self.e = e

    def check(self, n: int, d: int) -> None:
        self._require(
            is_real(self.e) and 0 <= self.e < 1, "e must be a share of the variance in [0, 1)"
        )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        # Summed from the small end: total - cumsum(values) has no digits left for a small e.
        tails = spectrum.rest + np.append(np.cumsum(spectrum.values[::-1])[::-1], 0.0)
        rounding = 0.0 if spectrum.complete else spectrum.rounding
        fewest, most = (
            int(np.argmax(np.append(tails <= self.e * spectrum.total + error, True)))
            for error in (rounding, -rounding)
        )
        return spectrum.limit(most) if fewest == most else None


class Threshold(Rule):
    """Keep every component with λ_i ≥ eps · λ₁, never one with λ_i = 0.

    Examples
    --------
    >>> Threshold(0.5).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    """

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def check(self, n: int, d: int) -> None:
        self._require(
            is_real(self.eps) and 0 <= self.eps <= 1, "eps must be a share of λ₁ in [0, 1]"
        )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        # x > nextafter(c, 0) is x ≥ c for c > 0, and x > 0 for c = 0.
        largest = float(spectrum.values[:1].sum())
        return spectrum.count_above(float(np.nextafter(self.eps * max(largest, 0.0), 0.0)))


class Kaiser(Rule):
    """Keep every component above the mean eigenvalue, λ_i > Σλ / d: 1 for z-scores (Kaiser 1960).

    Examples
    --------
    >>> Kaiser().choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    1
    """

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        # Equal eigenvalues, as of uncorrelated z-scores, are equal only to rounding.
        return spectrum.count_above(spectrum.total / spectrum.d * (1 + 1e-12))


class BrokenStick(Rule):
    """Keep the leading components whose share exceeds the broken-stick expectation.

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
        self._require(is_positive_integer(self.trials), "trials must be an integer > 0")
        self._require(
            is_real(self.quantile) and 0 <= self.quantile <= 1, "quantile must be in [0, 1]"
        )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        # One seed, also for a Generator: every round below must draw the same noise.
        seed = progress.seed(int(np.random.default_rng(self.random_state).integers(2**63)))
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
    def needs_all(self) -> bool:
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
    def needs_all(self) -> bool:
        return self.noise is None

    def check(self, n: int, d: int) -> None:
        valid = self.noise is None or (is_real(self.noise) and self.noise >= 0)
        self._require(valid, "noise must be a standard deviation, or None if unknown")

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        if self.needs_all and not spectrum.complete:
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


class CrossValidation(Rule):
    """Keep the components that predict held-out entries best, each from the rest of its row.

    The entries are dealt into `folds` parts at random. For every part, EM fits the model to the
    others. The smallest number of components whose error is within 0.1 % of the least is kept.

    Parameters
    ----------
    folds : int
        Number of parts.
    most : int or None
        Maximum number of components.
    rows : int
        Number of rows that are drawn at random, if there are more.

    Examples
    --------
    >>> from mercer import PCA
    >>> from sklearn.datasets import load_wine
    >>> PCA("cv", scale=True, random_state=0).fit(load_wine().data).n_components_
    7
    """

    def __init__(self, folds: int = 10, most: int | None = None, rows: int = 5000) -> None:
        self.folds, self.most, self.rows = folds, most, rows

    def check(self, n: int, d: int) -> None:
        valid = is_positive_integer(self.folds) and self.folds > 1
        self._require(valid, "folds must be an integer > 1")
        valid = self.most is None or is_positive_integer(self.most)
        self._require(valid, "most must be an integer > 0, or None for no limit")
        self._require(is_positive_integer(self.rows), "rows must be an integer > 0")

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        raise ValueError(
            f"{self!r} needs the rows, so it is a rule for PCA.fit only. Set n_components to a "
            f"number, or to another rule."
        )


NAMED: dict[str, type[Rule]] = {
    "cv": CrossValidation,
    "mle": MLE,
    "kaiser": Kaiser,
    "broken-stick": BrokenStick,
    "parallel": ParallelAnalysis,
    "gavish-donoho": GavishDonoho,
}
"""Rules by name."""
KERNEL_NAMED = tuple(name for name in NAMED if name not in ("mle", "cv"))
"""Names of the rules that do not need columns."""


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

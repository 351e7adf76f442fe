"""How many components to keep: a number, a share of the variance, or what stands out of noise."""

from math import log, pi, sqrt
from numbers import Integral, Real
from typing import Any

import numpy as np

from mercer import session
from mercer.messages import ParameterError, format_parameter
from mercer.params import Params
from mercer.rules.noise import (
    hard_threshold,
    log_curvatures,
    marchenko_pastur_median,
    noise_shares,
)
from mercer.rules.shown import EPS, Shown, Values


class Rule(Params):
    """How many components to keep, given the eigenvalues of the covariance matrix.

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
    def whole(self) -> bool:
        """Whether the rule can never answer from a part of the spectrum."""
        return False

    def first_guess(self, n: int, d: int) -> int | None:
        """How many components to compute at first; None where the rule does not know."""
        return None

    def at_most(self, n: int, d: int) -> int | None:
        """Return the most components the rule can choose; None where it has no limit."""
        return self.first_guess(n, d)

    def check(self, n: int, d: int) -> None:
        """Raise ValueError where the rule cannot serve n samples of d features."""

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
            From 0 to len(values). None: those not shown could change the answer, show more.
        """
        self.check(n, d)
        return self._choose(Shown(values, float(total), n, d))

    def _choose(self, shown: Shown) -> int | None:
        raise NotImplementedError(f"{type(self).__name__} must define choose.")

    def _need(self, met: bool, text: str) -> None:
        if not met:
            raise ValueError(f"{self!r}: {text}")


class Count(Rule):
    """Keep k components.

    Examples
    --------
    >>> Count(2).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    """

    def __init__(self, k: int) -> None:
        self.k = k

    def first_guess(self, n: int, d: int) -> int | None:
        return self.k

    def check(self, n: int, d: int) -> None:
        if not _is_count(self.k) or not 0 <= self.k <= min(n, d):
            raise ParameterError(
                "n_components",
                self.k,
                f"must be between 0 and min(n_samples, n_features)={min(n, d)}; "
                f"{format_parameter('n_components', None)} keeps all.",
            )

    def _choose(self, shown: Shown) -> int | None:
        return shown.capped(int(self.k))


class Fraction(Rule):
    """Keep the smallest k with (λ₁ + … + λ_k) / Σλ > p, strictly, as scikit-learn does.

    At most `most` components, where that is given.

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
        met = _is_real(self.p) and 0 < self.p < 1
        self._need(met, "p is in (0, 1); for every component use None")
        met = self.most is None or (_is_count(self.most) and self.most > 0)
        self._need(met, "most is an integer > 0, or None for no limit")

    def _choose(self, shown: Shown) -> int | None:
        if shown.total <= 0:  # Constant data: one axis, as scikit-learn.
            return shown.capped(1)
        shares = np.cumsum(shown.values / shown.total)
        k = int(np.searchsorted(shares, self.p, side="right")) + 1
        return shown.capped(k if self.most is None else min(k, int(self.most)))


class RelativeError(Rule):
    """Keep the smallest k with (λ_{k+1} + λ_{k+2} + …) / Σλ ≤ e.

    That is the squared relative error, in Frobenius norm, of the best approximation of the
    centred data by a matrix of rank k (Eckart & Young 1936).

    Examples
    --------
    >>> RelativeError(0.15).choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    2
    """

    def __init__(self, e: float) -> None:
        self.e = e

    def check(self, n: int, d: int) -> None:
        self._need(_is_real(self.e) and 0 <= self.e < 1, "e is a share of the variance in [0, 1)")

    def _choose(self, shown: Shown) -> int | None:
        # Summed from the small end: total - cumsum(values) has no digits left for a small e.
        tails = shown.rest + np.append(np.cumsum(shown.values[::-1])[::-1], 0.0)
        slack = 0.0 if shown.whole else shown.slack
        first, sure = (
            int(np.argmax(np.append(tails <= self.e * shown.total + s, True)))
            for s in (slack, -slack)
        )
        return shown.capped(sure) if first == sure else None


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
        self._need(_is_real(self.eps) and 0 <= self.eps <= 1, "eps is a share of λ₁ in [0, 1]")

    def _choose(self, shown: Shown) -> int | None:
        # x > nextafter(c, 0) is x ≥ c for c > 0, and x > 0 for c = 0.
        first = float(shown.values[:1].sum())
        return shown.leading(float(np.nextafter(self.eps * max(first, 0.0), 0.0)))


class Kaiser(Rule):
    """Keep every component above the mean eigenvalue, λ_i > Σλ / d: 1 for z-scores (Kaiser 1960).

    Examples
    --------
    >>> Kaiser().choose(np.array([4.0, 2.0, 1.0]), 7.0, n=10, d=3)
    1
    """

    def _choose(self, shown: Shown) -> int | None:
        # Equal eigenvalues, as of uncorrelated z-scores, are equal only to rounding.
        return shown.leading(shown.total / shown.d * (1 + 1e-12))


class BrokenStick(Rule):
    """Keep the leading components whose share exceeds that of a stick broken at random.

    λ_k / Σλ > (1/p) (1/k + … + 1/p) with p = min(d, n - 1) (Jackson 1993).

    Examples
    --------
    >>> BrokenStick().choose(np.array([5.0, 1.5, 0.5]), 7.0, n=10, d=3)
    1
    """

    def _choose(self, shown: Shown) -> int | None:
        p = min(shown.d, shown.n - 1)
        return shown.leading(shown.total * np.cumsum(1 / np.arange(p, 0, -1))[::-1] / max(p, 1))


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
        self._need(_is_count(self.trials) and self.trials > 0, "trials is an integer > 0")
        self._need(_is_real(self.quantile) and 0 <= self.quantile <= 1, "quantile is in [0, 1]")

    def _choose(self, shown: Shown) -> int | None:
        # One seed: with a Generator, too, every round below must see the same noise.
        seed = session.seed(int(np.random.default_rng(self.random_state).integers(2**63)))
        ranks, p = 8, min(shown.n - 1, shown.d)
        while True:
            rng = np.random.default_rng(seed)
            noise = noise_shares(shown.n - 1, shown.d, min(ranks, p), self.trials, rng)
            k = shown.leading(shown.total * np.quantile(noise, self.quantile, axis=0))
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

    def _choose(self, shown: Shown) -> int | None:
        if not shown.whole:
            return None
        if shown.values[0] <= 0 or shown.d == 1:
            return 0
        from scipy.special import gammaln

        n, d, k = shown.n, shown.d, np.arange(1, shown.d)
        values, tiny = shown.values / shown.values[0], d * EPS
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

    σ_i > λ*(β) √q · noise where the standard deviation of the noise is given, otherwise
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
        met = self.noise is None or (_is_real(self.noise) and self.noise >= 0)
        self._need(met, "noise is a standard deviation, or None where it is unknown")

    def _choose(self, shown: Shown) -> int | None:
        if self.whole and not shown.whole:
            return None
        p, q = sorted((shown.n - 1, shown.d))
        if p < 1:
            return 0
        if self.noise is None:
            # Centring leaves p of them; the zero after those would bias the median.
            middle = float(np.median(np.sqrt(np.maximum(shown.values[:p], 0))))
            cut = hard_threshold(p / q) * middle / sqrt(marchenko_pastur_median(p / q))
        else:
            cut = hard_threshold(p / q) * sqrt(q / (shown.n - 1)) * self.noise
        # Data without noise: what is left after the rank is rounding.
        return shown.leading(max(cut**2, EPS * p * float(shown.values[:1].sum())))


NAMED: dict[str, type[Rule]] = {
    "mle": MLE,
    "kaiser": Kaiser,
    "broken-stick": BrokenStick,
    "parallel": ParallelAnalysis,
    "gavish-donoho": GavishDonoho,
}
"""Rules by name."""


def as_rule(n_components: Any, n: int, d: int) -> Rule:
    """Return the rule that `n_components` stands for, checked against n samples of d features.

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
    elif _is_count(n_components):
        rule = Count(int(n_components))
    elif _is_real(n_components) and 0 < n_components < 1:
        rule = Fraction(float(n_components))
    elif isinstance(n_components, str) and n_components in NAMED:
        rule = NAMED[n_components]()
    else:
        known = _is_real(n_components) or isinstance(n_components, str)
        raise (ValueError if known else TypeError)(
            f"n_components={n_components!r} must be an int between 0 and {min(n, d)}, a float "
            f"in the range (0.0, 1.0), one of {', '.join(map(repr, ('all', *NAMED)))}, a Rule, or "
            "None for every component"
        )
    rule.check(n, d)
    return rule


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)

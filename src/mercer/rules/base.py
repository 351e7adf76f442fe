"""Rules for the number of components, and rules by explained variance."""

from numbers import Integral
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mercer.checks import is_real
from mercer.messages import ParameterError, format_parameter
from mercer.params import Params

Values: TypeAlias = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


class PartialSpectrum(NamedTuple):
    """Leading eigenvalues, total variance, samples and features."""

    values: Values
    total: float
    n: int
    d: int

    @property
    def complete(self) -> bool:
        """Whether all eigenvalues are known."""
        return len(self.values) >= min(self.n, self.d)

    @property
    def rounding(self) -> float:
        """Rounding error of total - Σ values."""
        return EPS * (len(self.values) + 64) * self.total

    @property
    def rest(self) -> float:
        """Variance of the unknown components."""
        rest = max(self.total - float(self.values.sum()), 0.0)
        return 0.0 if self.complete and rest <= self.rounding else rest

    def limit(self, k: int) -> int | None:
        """Return k; if fewer are known, all there are, or None if there are more."""
        return min(k, len(self.values)) if self.complete or k <= len(self.values) else None

    def count_above(self, cuts: Values | float) -> int | None:
        """Return how many exceed their cut before the first that does not.

        Values beyond the last cut exceed none.
        """
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
    def whole(self) -> bool:
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
        return self._choose(PartialSpectrum(values, float(total), n, d))

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        raise NotImplementedError(f"{type(self).__name__} must define choose.")

    def _require(self, valid: bool, text: str) -> None:
        if not valid:
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
        if not is_integer(self.k) or not 0 <= self.k <= min(n, d):
            raise ParameterError(
                "n_components",
                self.k,
                f"must be between 0 and min(n_samples, n_features)={min(n, d)}; "
                f"{format_parameter('n_components', None)} keeps all.",
            )

    def _choose(self, spectrum: PartialSpectrum) -> int | None:
        return spectrum.limit(int(self.k))


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
        self._require(valid, "p is in (0, 1); for every component use None")
        valid = self.most is None or (is_integer(self.most) and self.most > 0)
        self._require(valid, "most is an integer > 0, or None for no limit")

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
        self._require(is_real(self.e) and 0 <= self.e < 1, "e is a share of the variance in [0, 1)")

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
        self._require(is_real(self.eps) and 0 <= self.eps <= 1, "eps is a share of λ₁ in [0, 1]")

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


def is_integer(value: object) -> bool:
    """Tell whether a value is an integer; truth values are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)

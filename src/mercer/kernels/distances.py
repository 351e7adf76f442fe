"""Kernels of the distance, the same wherever the two rows lie."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import Array, like, namespace, to_numpy
from mercer.arrays.rounding import FEW
from mercer.kernels.base import Either, Kernel
from mercer.kernels.bessel import bessel
from mercer.kernels.draws import normal, student
from mercer.kernels.median import median_distance
from mercer.kernels.pair import ones
from mercer.kernels.parameters import is_number, positive, require
from mercer.kernels.points import Points
from mercer.kernels.rounding import columns, distances
from mercer.kernels.slopes import Frequencies, Slopes

# Where every Matérn profile has underflowed, for each unit of 1 + ν; how often bisection halves.
_FAR = 800.0
_HALVINGS = 70
# Unit roundoffs that a Bessel function may be off by, with the logarithms around it.
_BESSEL = 4096.0


class Stationary(Kernel):
    """A kernel of x − y, which is 1 at zero."""

    moves = True

    def on_itself(self, points: Points) -> Array:
        return ones(points.norms)

    def height(self, d: int) -> float:
        return 1.0

    def _log(self, apart: Any) -> Any:
        """Return −log k of rows that are so far apart in the kernel's space: 2 − 2k."""
        xp = namespace(apart)
        return -xp.log1p(-xp.minimum(0.5 * apart, 1.0 + 0.0 * apart))

    def _drawn(self, omega: Array) -> Frequencies:
        q = omega.shape[1]
        return Frequencies(omega, np.full(q, 1.0 / math.sqrt(q)))


class RBF(Stationary):
    r"""The Gaussian kernel :math:`\exp(-\gamma\lVert x-y\rVert^2)`.

    Source: marukatat App. B; γ = 1/(2σ²).

    Parameters
    ----------
    gamma : float
        The scale γ.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> RBF(0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @classmethod
    def from_sigma(cls, sigma: float) -> RBF:
        """Return exp(−‖x−y‖²/(2σ²)).

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF.from_sigma(2.0)
        RBF(0.125)
        """
        if not (is_number(sigma) and sigma > 0):
            raise ValueError(f"RBF.from_sigma: sigma={sigma!r} must be a positive number.")
        made = cls(0.5 / float(sigma) / float(sigma))
        made.check()
        return made

    @classmethod
    def from_median(cls, X: Any, *, size: int = 1000, random_state: int = 0) -> RBF:
        """Return the kernel whose σ is the median distance between rows of X.

        Of as many rows as `size`, drawn at random; a row counts as often as its weight says.
        If half of the distances are 0, the median is taken of the others.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF.from_median([[0.0], [1.0], [2.0]])
        RBF(0.5)
        """
        sigma = median_distance(
            cls(), X, lambda pair: np.sqrt(to_numpy(pair.sqdist)), size, random_state
        )
        return cls.from_sigma(sigma)

    def check(self) -> None:
        positive(self, "gamma")

    def on(self, pair: Either) -> Any:
        return namespace(pair.sqdist).exp(-self.gamma * pair.sqdist)

    def apart(self, pair: Either) -> Any:
        return -2.0 * namespace(pair.sqdist).expm1(-self.gamma * pair.sqdist)

    @property
    def steepest(self) -> float:  # type: ignore[override]
        """√(2γ/e), at √(2γ) times the distance = 1."""
        return math.sqrt(2.0 * self.gamma / math.e)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """An error δ of the squared distance s costs γδ e^{−γs}; t e^{−t} ≤ 1/e."""
        relative, absolute = distances(x, y, dtype)
        return np.minimum(self.gamma * absolute, relative / math.e) + FEW

    def sqdist_of(self, apart: Any) -> Any:
        return self._log(apart) / self.gamma

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return (Slopes(sqdist=-self.gamma * self.on(pair)),)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        drawn = normal(d, q, rng, orthogonal=orthogonal)
        return self._drawn(math.sqrt(2.0 * self.gamma) * drawn)


class Laplacian(Stationary):
    r"""The Laplacian kernel :math:`\exp(-\gamma\lVert x-y\rVert)`.

    The norm is Euclidean (marukatat App. B; kernlab) or the city block's (scikit-learn).

    Parameters
    ----------
    gamma : float
        The scale γ.
    norm : {"l2", "l1"}
        Euclidean distance, or the sum of absolute differences.

    Examples
    --------
    >>> from mercer.kernels import Laplacian
    >>> Laplacian(1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0067]])
    >>> Laplacian(1.0, norm="l1")([[0.0, 0.0]], [[3.0, 4.0]]).round(4)
    array([[0.0009]])
    """

    def __init__(self, gamma: float = 1.0, norm: str = "l2") -> None:
        self.gamma, self.norm = gamma, norm

    @classmethod
    def from_median(
        cls, X: Any, norm: str = "l2", *, size: int = 1000, random_state: int = 0
    ) -> Laplacian:
        """Return the kernel that is 1/e at the median distance between rows of X.

        Of as many rows as `size`, drawn at random; a row counts as often as its weight says.
        If half of the distances are 0, the median is taken of the others.

        Examples
        --------
        >>> from mercer.kernels import Laplacian
        >>> Laplacian.from_median([[0.0, 0.0], [3.0, 4.0]], norm="l1").gamma == 1 / 7
        True
        """
        made = cls(1.0, norm)
        made.check()
        return cls(1.0 / median_distance(made, X, made._distance, size, random_state), norm)

    def check(self) -> None:
        positive(self, "gamma")
        require(self, "norm", self.norm in ("l1", "l2"), '"l1" or "l2"')

    def on(self, pair: Either) -> Any:
        apart = self._distance(pair)
        return namespace(apart).exp(-self.gamma * apart)

    def apart(self, pair: Either) -> Any:
        apart = self._distance(pair)
        return -2.0 * namespace(apart).expm1(-self.gamma * apart)

    @property
    def steepest(self) -> float:  # type: ignore[override]
        """γ, at zero; the city block's distance is at most √d times the Euclidean."""
        return math.inf if self.norm == "l1" else float(self.gamma)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        if self.norm == "l1":
            return columns(x) / math.e + FEW  # summed one after the other
        relative, absolute = distances(x, y, dtype)
        # A distance is off by half as much, relatively; absolutely, by δ/(2√s).
        length = np.sqrt(relative * absolute) / 2.0
        return np.minimum(self.gamma * length, relative / (2.0 * math.e)) + FEW

    def sqdist_of(self, apart: Any) -> Any:
        if self.norm == "l1":
            self._has_no("Euclidean distance", 'norm="l2" has one')
        return (self._log(apart) / self.gamma) ** 2

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        if self.norm == "l1":
            self._has_no("gradient", 'norm="l2" has one')
        apart = self._distance(pair)
        xp = namespace(apart)
        safe = xp.where(apart > 0, apart, 1.0)
        return (Slopes(sqdist=xp.where(apart > 0, -0.5 * self.gamma * self.on(pair) / safe, 0.0)),)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        """Cauchy frequencies: one for all columns (l2), or one for each (l1)."""
        self._draws(d, q)
        if self.norm == "l1" and orthogonal:
            self._has_no("orthogonal frequencies", 'norm="l2" has them')
        if self.norm == "l1":
            return self._drawn(self.gamma * rng.standard_cauchy((d, q)))
        return self._drawn(self.gamma * student(d, q, 1.0, rng, orthogonal=orthogonal))

    def _distance(self, pair: Either) -> Any:
        if self.norm == "l1":
            return pair.entrywise(CITY_BLOCK)
        return namespace(pair.sqdist).sqrt(pair.sqdist)


class Matern(Stationary):
    r"""The Matérn kernel of smoothness ν and length ℓ.

    .. math:: \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z),
              \quad z = \sqrt{2\nu}\,\lVert x-y\rVert/\ell

    Source: Rasmussen & Williams (2006), eq. 4.14. ν = 1/2, 3/2, 5/2 have closed forms.

    Parameters
    ----------
    length : float
        The length ℓ.
    nu : float
        The smoothness ν; the larger, the more like the RBF.

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])
    """

    def __init__(self, length: float = 1.0, nu: float = 1.5) -> None:
        self.length, self.nu = length, nu

    def check(self) -> None:
        positive(self, "length", "nu")

    def on(self, pair: Either) -> Any:
        return self._profile(self._distance(pair))

    def _profile(self, z: Any) -> Any:
        xp = namespace(z)
        if self.nu == 0.5:
            return xp.exp(-z)
        if self.nu == 1.5:
            return (1.0 + z) * xp.exp(-z)
        if self.nu == 2.5:
            return (1.0 + z * (1.0 + z / 3.0)) * xp.exp(-z)
        return bessel(z, self.nu)

    @property
    def steepest(self) -> float:  # type: ignore[override]
        """Infinite at zero for ν < 1/2."""
        return math.inf if self.nu < 0.5 else math.sqrt(2.0 * self.nu) / self.length

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """The profile f has z|f′(z)| ≤ 1, and |f′| ≤ 1 for ν ≥ 1/2."""
        relative, absolute = distances(x, y, dtype)
        formula = FEW if self.nu in (0.5, 1.5, 2.5) else _BESSEL
        if self.nu < 0.5:
            return relative / 2.0 + formula
        length = np.sqrt(relative * absolute) / 2.0 * (math.sqrt(2.0 * self.nu) / self.length)
        return np.minimum(length, relative / 2.0) + formula

    def sqdist_of(self, apart: Any) -> Any:
        """By bisection: the profile falls with the distance; on the host."""
        wanted = 1.0 - 0.5 * to_numpy(apart).astype(np.float64)
        low, high = np.zeros_like(wanted), np.full_like(wanted, _FAR * (1.0 + self.nu))
        for _ in range(_HALVINGS):
            z = 0.5 * (low + high)
            near = self._profile(z) > wanted
            low, high = np.where(near, z, low), np.where(near, high, z)
        z = np.where(wanted >= 1, 0.0, np.where(wanted > 0, high, np.inf))
        return like((z * self.length / math.sqrt(2.0 * self.nu)) ** 2, apart)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        """By the squared distance: −ν/(2ℓ²(ν−1)) times the kernel of ν − 1, for ν > 1."""
        scale = -self.nu / self.length / self.length
        if self.nu == 0.5:
            return Laplacian(1.0 / self.length).slopes(pair)
        if self.nu == 1.5:
            z = self._distance(pair)
            return (Slopes(sqdist=scale * namespace(z).exp(-z)),)
        if self.nu == 2.5:
            z = self._distance(pair)
            return (Slopes(sqdist=scale / 3.0 * (1.0 + z) * namespace(z).exp(-z)),)
        if self.nu <= 1:
            self._has_no("gradient at equal rows for nu ≤ 1", "a larger nu has one")
        smoother = bessel(self._distance(pair), self.nu - 1.0)
        return (Slopes(sqdist=0.5 * scale / (self.nu - 1.0) * smoother),)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        drawn = student(d, q, 2.0 * self.nu, rng, orthogonal=orthogonal)
        return self._drawn(drawn / self.length)

    def _distance(self, pair: Either) -> Any:
        return namespace(pair.sqdist).sqrt(pair.sqdist) * (math.sqrt(2.0 * self.nu) / self.length)


class RationalQuadratic(Stationary):
    r"""A mixture of RBFs of all lengths, :math:`(1+\lVert x-y\rVert^2/(2\alpha\ell^2))^{-\alpha}`.

    Source: Rasmussen & Williams (2006), eq. 4.19.

    Parameters
    ----------
    length : float
        The length ℓ.
    alpha : float
        How the lengths are mixed; the larger, the more like the RBF.

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6667]])
    """

    def __init__(self, length: float = 1.0, alpha: float = 1.0) -> None:
        self.length, self.alpha = length, alpha

    def check(self) -> None:
        positive(self, "length", "alpha")

    def on(self, pair: Either) -> Any:
        share = self._share(pair)
        return namespace(share).exp(-self.alpha * namespace(share).log1p(share))

    def apart(self, pair: Either) -> Any:
        share = self._share(pair)
        return -2.0 * namespace(share).expm1(-self.alpha * namespace(share).log1p(share))

    @property
    def steepest(self) -> float:  # type: ignore[override]
        """√(2α/(α + 1)) √e^{-1} / ℓ at most: below 1/ℓ."""
        return 1.0 / self.length

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        relative, absolute = distances(x, y, dtype)
        with np.errstate(over="ignore"):
            slope = absolute / self.length / self.length / 2.0
        return np.minimum(slope, relative / math.e) + FEW

    def sqdist_of(self, apart: Any) -> Any:
        share = namespace(apart).expm1(self._log(apart) / self.alpha)
        return 2.0 * self.alpha * self.length * (self.length * share)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        slope = -0.5 / self.length / self.length * self.on(pair) / (1.0 + self._share(pair))
        return (Slopes(sqdist=slope),)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        """Normal frequencies of a variance that is Gamma distributed."""
        self._draws(d, q)
        deviation = np.sqrt(rng.gamma(self.alpha, 1.0 / self.alpha, q)) / self.length
        return self._drawn(deviation * normal(d, q, rng, orthogonal=orthogonal))

    def _share(self, pair: Either) -> Any:
        with np.errstate(over="ignore"):  # the square of a length may be 0 or infinite, not it
            return pair.sqdist / self.length / self.length / (2.0 * self.alpha)


class _CityBlock:
    """Σ |x − y|."""

    def __repr__(self) -> str:
        return "The city block distance"

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        return xp.abs(x - y)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import city_block

        city_block(x, y, out)


CITY_BLOCK = _CityBlock()

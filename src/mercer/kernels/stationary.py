"""Stationary kernels, functions of x − y, and kernels that decay with a distance."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.polynomial import Polynomial as Series
from numpy.random import Generator

from mercer.arrays import FEW, Array, Vector, like, namespace, to_numpy
from mercer.checks import check_positive, is_real, require
from mercer.data import require_finite_sums
from mercer.kernels.base import Frequencies, Kernel
from mercer.kernels.pair import ColumnSum, Pair, Slopes, TilePair, sqdist_errors
from mercer.kernels.points import Points, inverse_sqrt

__all__ = ["RBF", "Laplacian", "Matern", "RationalQuadratic"]

# The distance, per 1 + ν, at which every Matérn kernel has underflowed; steps of bisection.
_FAR, _HALVINGS = 800.0, 70
# Unit roundoffs of a Bessel function and the logarithms around it.
_BESSEL = 4096.0
# From this order on, this many terms of Debye's expansion are exact to rounding.
_LARGE_ORDER, _TERMS = 50.0, 9

CITY_BLOCK = ColumnSum(lambda xp, x, y: xp.abs(x - y), loop="city_block")


class Exponential(Kernel):
    """A kernel that is given by its logarithm: k = exp(log k), log k ≤ 0."""

    @abstractmethod
    def log(self, pair: Pair) -> Any:
        """Return log k(x, y)."""

    def on(self, pair: Pair) -> Any:
        log = self.log(pair)
        return namespace(log).exp(log)

    def sqdist(self, pair: Pair) -> Any:
        log = self.log(pair)
        return -2.0 * namespace(log).expm1(log)

    def _minus_log(self, sqdist: Any) -> Any:
        """Return −log k, given the squared distance 2 − 2k in feature space."""
        xp = namespace(sqdist)
        return -xp.log1p(-xp.minimum(0.5 * sqdist, 1.0 + 0.0 * sqdist))


class DistanceDecay(Exponential):
    """A kernel that decays with a distance δ(x,y), exp(−γδ) by default; its median can set γ."""

    gamma: float

    @abstractmethod
    def distance(self, pair: Pair) -> Any:
        """Return the distances δ."""

    def check(self) -> None:
        check_positive(self, "gamma")

    def log(self, pair: Pair) -> Any:
        return -self.gamma * self.distance(pair)

    def gamma_from_median(self, X: Any, size: int = 1000, random_state: int = 0) -> float:
        """Return the γ with which the kernel is 1/e at the median distance between rows."""
        return 1.0 / self._median(X, size, random_state)

    @classmethod
    def from_median(
        cls, X: Any, *, size: int = 1000, random_state: int = 0, **parameters: Any
    ) -> Self:
        """Return the kernel with its scale set from the median distance between rows of X.

        An RBF gets σ = the median; other kernels become 1/e there. The median is that of `size`
        rows at most, drawn at random; a row counts as often as its weight says. If half of the
        distances are 0, it is the median of the others. Other parameters are passed on.

        Examples
        --------
        >>> from mercer.kernels import RBF, Laplacian
        >>> RBF.from_median([[0.0], [1.0], [2.0]])
        RBF(0.5)
        >>> Laplacian.from_median([[0.0, 0.0], [3.0, 4.0]])
        Laplacian(0.2)
        """
        kernel = cls(**parameters)
        kernel.check()
        kernel.gamma = kernel.gamma_from_median(X, size, random_state)
        return kernel

    def _median(self, X: Any, size: int, random_state: int) -> float:
        """Return the median distance between some rows, each as often as it counts."""
        source, name = self.source(X), f"{type(self).__name__}.from_median"
        numbers, weights = np.arange(source.shape[0]), source.weights
        rng, count = np.random.default_rng(random_state), source.count
        if weights is not None and count <= size and np.array_equal(weights, np.round(weights)):
            drawn = np.repeat(numbers, weights.astype(int))
        elif weights is None or np.allclose(weights, weights[0], rtol=1e-9, atol=0.0):
            drawn = np.sort(rng.permutation(numbers)[:size])
        else:
            drawn = np.sort(rng.choice(numbers, size, p=weights / count))
        points = Points(source.take(drawn))
        if len(points) < 2:
            raise ValueError(f"{name}: {len(points)} rows are too few for a distance.")
        with np.errstate(invalid="ignore", over="ignore"):
            distances = to_numpy(self.distance(TilePair.between(points, points)))
            distances = distances[np.triu_indices(len(points), 1)]
            median = float(np.median(distances))
            if median == 0 and np.any(distances > 0):
                median = float(np.median(distances[distances > 0]))
        require_finite_sums(source, np.array(median))
        if median == 0:
            raise ValueError(
                f"{name}: all {len(points)} sampled rows are equal, so distances are zero. Pass a "
                f"number as gamma."
            )
        return median


def _euclidean(pair: Pair) -> Any:
    """Return the distances ‖x−y‖."""
    return namespace(pair.sqdist).sqrt(pair.sqdist)


class Stationary(Kernel):
    """A kernel of x − y that is 1 at zero."""

    shift_invariant = True

    def on_diagonal(self, points: Points) -> Array:
        """Return 1, also where the norm overflows; NaN where it is NaN."""
        norms = points.norms
        xp = namespace(norms)
        return xp.where(norms == norms, xp.ones_like(norms), norms)

    def _frequencies(self, omega: Array) -> Frequencies:
        q = omega.shape[1]
        return Frequencies(omega, np.full(q, 1.0 / math.sqrt(q)))


@dataclass(eq=False, repr=False)
class RBF(DistanceDecay, Stationary):
    r"""The Gaussian kernel :math:`\exp(-\gamma\lVert x-y\rVert^2)`, γ = 1/(2σ²).

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> RBF(0.5)([[0.0]], [[1.0]]).round(4)
    array([[0.6065]])
    """

    gamma: float = 1.0
    name = "rbf"
    aliases = ("gaussian",)

    @classmethod
    def from_sigma(cls, sigma: float) -> RBF:
        """Return exp(−‖x−y‖²/(2σ²)).

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF.from_sigma(2.0)
        RBF(0.125)
        """
        if not (is_real(sigma) and sigma > 0):
            raise ValueError(f"RBF.from_sigma: sigma={sigma!r} must be a positive number.")
        kernel = cls(0.5 / float(sigma) / float(sigma))
        kernel.check()
        return kernel

    def gamma_from_median(self, X: Any, size: int = 1000, random_state: int = 0) -> float:
        """Return the γ of σ = the median distance between rows."""
        return RBF.from_sigma(self._median(X, size, random_state)).gamma

    def distance(self, pair: Pair) -> Any:
        return _euclidean(pair)

    def log(self, pair: Pair) -> Any:
        return -self.gamma * pair.sqdist

    @property
    def lipschitz(self) -> float:
        """√(2γ/e), at the distance 1/√(2γ)."""
        return math.sqrt(2.0 * self.gamma / math.e)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """An error δ of the squared distance s changes e^{−γs} by γδ e^{−γs}; t e^{−t} ≤ 1/e."""
        relative, absolute = sqdist_errors(x, y, dtype)
        return np.minimum(self.gamma * absolute, relative / math.e) + FEW

    def input_sqdist(self, sqdist: Any) -> Any:
        return self._minus_log(sqdist) / self.gamma

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return (Slopes(sqdist=-self.gamma * self.on(pair)),)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        omega = math.sqrt(2.0 * self.gamma) * _normal(d, q, rng, orthogonal)
        return self._frequencies(omega)


class Laplacian(DistanceDecay, Stationary):
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

    name = "laplacian"
    name_params = {"norm": "l1"}  # noqa: RUF012 (a ClassVar)

    def __init__(self, gamma: float = 1.0, norm: str = "l2") -> None:
        self.gamma, self.norm = gamma, norm

    def check(self) -> None:
        super().check()
        require(self, "norm", self.norm in ("l1", "l2"), '"l1" or "l2"')

    def distance(self, pair: Pair) -> Any:
        return pair.column_sum(CITY_BLOCK, self) if self.norm == "l1" else _euclidean(pair)

    @classmethod
    def from_median(
        cls, X: Any, norm: str = "l2", *, size: int = 1000, random_state: int = 0, **parameters: Any
    ) -> Self:
        return super().from_median(X, size=size, random_state=random_state, norm=norm, **parameters)

    @property
    def lipschitz(self) -> float:
        """γ, at zero; unbounded for the city block, which grows with the number of columns."""
        return math.inf if self.norm == "l1" else float(self.gamma)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        if self.norm == "l1":
            return x.width / math.e + FEW  # the columns are summed one after the other
        relative, absolute = sqdist_errors(x, y, dtype)
        # Relative errors of √s are half those of s; absolute ones δ/(2√s).
        length = np.sqrt(relative * absolute) / 2.0
        return np.minimum(self.gamma * length, relative / (2.0 * math.e)) + FEW

    def input_sqdist(self, sqdist: Any) -> Any:
        self._require_l2("Euclidean distance")
        return (self._minus_log(sqdist) / self.gamma) ** 2

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        self._require_l2("gradient")
        return (Slopes(sqdist=-0.5 * self.gamma * self.on(pair) * inverse_sqrt(pair.sqdist)),)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        """Draw Cauchy frequencies: one for all columns (l2), or one for each (l1)."""
        if self.norm == "l1":
            if orthogonal:
                self._require_l2("orthogonal frequencies")
            return self._frequencies(self.gamma * rng.standard_cauchy((d, q)))
        return self._frequencies(self.gamma * _student(d, q, 1.0, rng, orthogonal))

    def _require_l2(self, what: str) -> None:
        if self.norm == "l1":
            self._has_no(what, 'use norm="l2"')


class Matern(Stationary):
    r"""The Matérn kernel of smoothness ν and length ℓ.

    .. math:: \frac{2^{1-\nu}}{\Gamma(\nu)} z^\nu K_\nu(z),
              \quad z = \sqrt{2\nu}\,\lVert x-y\rVert/\ell

    Source: Rasmussen & Williams (2006), eq. 4.14. ν = 1/2, 3/2, 5/2 have closed forms.

    Parameters
    ----------
    length, nu : float
        The length ℓ and the smoothness ν; the larger ν, the more like the RBF.

    Examples
    --------
    >>> from mercer.kernels import Matern
    >>> Matern(1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.4834]])
    """

    name = "matern"

    def __init__(self, length: float = 1.0, nu: float = 1.5) -> None:
        self.length, self.nu = length, nu

    def check(self) -> None:
        check_positive(self, "length", "nu")

    def on(self, pair: Pair) -> Any:
        return _matern_profile(self._z(pair), self.nu)

    def _z(self, pair: Pair) -> Any:
        return _euclidean(pair) * (math.sqrt(2.0 * self.nu) / self.length)

    @property
    def lipschitz(self) -> float:
        """Infinite at zero for ν < 1/2."""
        return math.inf if self.nu < 0.5 else math.sqrt(2.0 * self.nu) / self.length

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """The profile f has z|f′(z)| ≤ 1, and |f′| ≤ 1 for ν ≥ 1/2."""
        relative, absolute = sqdist_errors(x, y, dtype)
        formula = FEW if self.nu in (0.5, 1.5, 2.5) else _BESSEL
        if self.nu < 0.5:
            return relative / 2.0 + formula
        length = np.sqrt(relative * absolute) / 2.0 * (math.sqrt(2.0 * self.nu) / self.length)
        return np.minimum(length, relative / 2.0) + formula

    def input_sqdist(self, sqdist: Any) -> Any:
        """By bisection, on the host: the profile decreases with the distance."""
        target = 1.0 - 0.5 * to_numpy(sqdist).astype(np.float64)
        low, high = np.zeros_like(target), np.full_like(target, _FAR * (1.0 + self.nu))
        for _ in range(_HALVINGS):
            z = 0.5 * (low + high)
            above = _matern_profile(z, self.nu) > target
            low, high = np.where(above, z, low), np.where(above, high, z)
        z = np.where(target >= 1, 0.0, np.where(target > 0, high, np.inf))
        return like((z * self.length / math.sqrt(2.0 * self.nu)) ** 2, sqdist)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        """By the squared distance: −ν/(2ℓ²(ν−1)) times the kernel of ν − 1, for ν > 1."""
        if self.nu == 0.5:
            return Laplacian(1.0 / self.length).slopes(pair)
        if self.nu <= 1:
            self._has_no("gradient at equal rows for nu ≤ 1", "a larger nu has one")
        scale = -0.5 * self.nu / self.length / self.length / (self.nu - 1.0)
        return (Slopes(sqdist=scale * _matern_profile(self._z(pair), self.nu - 1.0)),)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        return self._frequencies(_student(d, q, 2.0 * self.nu, rng, orthogonal) / self.length)


class RationalQuadratic(Exponential, Stationary):
    r"""A scale mixture of RBF kernels, :math:`(1+\lVert x-y\rVert^2/(2\alpha\ell^2))^{-\alpha}`.

    Source: Rasmussen & Williams (2006), eq. 4.19.

    Parameters
    ----------
    length, alpha : float
        The length ℓ, and how lengths are mixed; the larger α, the more like the RBF.

    Examples
    --------
    >>> from mercer.kernels import RationalQuadratic
    >>> RationalQuadratic(1.0)([[0.0]], [[1.0]]).round(4)
    array([[0.6667]])
    """

    name = "rationalquadratic"

    def __init__(self, length: float = 1.0, alpha: float = 1.0) -> None:
        self.length, self.alpha = length, alpha

    def check(self) -> None:
        check_positive(self, "length", "alpha")

    def log(self, pair: Pair) -> Any:
        ratio = self._ratio(pair)
        return -self.alpha * namespace(ratio).log1p(ratio)

    def _ratio(self, pair: Pair) -> Any:
        with np.errstate(over="ignore"):  # ℓ² may overflow or vanish where ℓ does not
            return pair.sqdist / self.length / self.length / (2.0 * self.alpha)

    @property
    def lipschitz(self) -> float:
        """At the distance ℓ √(2α/(2α + 1)) the slope is largest, and below 1/ℓ."""
        return 1.0 / self.length

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        relative, absolute = sqdist_errors(x, y, dtype)
        with np.errstate(over="ignore"):
            slope = absolute / self.length / self.length / 2.0
        return np.minimum(slope, relative / math.e) + FEW

    def input_sqdist(self, sqdist: Any) -> Any:
        ratio = namespace(sqdist).expm1(self._minus_log(sqdist) / self.alpha)
        return 2.0 * self.alpha * self.length * (self.length * ratio)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        slope = -0.5 / self.length / self.length * self.on(pair) / (1.0 + self._ratio(pair))
        return (Slopes(sqdist=slope),)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        """Draw normal frequencies whose variance is Gamma distributed."""
        deviation = np.sqrt(rng.gamma(self.alpha, 1.0 / self.alpha, q)) / self.length
        return self._frequencies(deviation * _normal(d, q, rng, orthogonal))


def _normal(d: int, q: int, rng: Generator, orthogonal: bool) -> Array:
    """Draw q standard normal vectors of d entries: independent, or d at a time orthogonal.

    Orthogonal ones are SQ of Yu et al. (2016), Orthogonal random features: Q uniform among the
    orthogonal matrices, with signs as in Mezzadri (2007), and S the norms of independent normal
    vectors. Each vector is still normal: estimates stay unbiased.
    """
    if not orthogonal or d == 0:
        return rng.standard_normal((d, q))
    blocks = []
    for first in range(0, q, d):
        Q, R = np.linalg.qr(rng.standard_normal((d, min(d, q - first))))
        blocks.append(Q * np.where(np.diag(R) < 0.0, -1.0, 1.0))
    return np.hstack(blocks) * np.sqrt(rng.chisquare(d, q))


def _student(d: int, q: int, freedom: float, rng: Generator, orthogonal: bool) -> Array:
    """Draw q vectors of d entries from the multivariate t distribution; always finite."""
    normal = _normal(d, q, rng, orthogonal)
    ratio = rng.chisquare(freedom, q) / freedom
    return normal / np.sqrt(np.maximum(ratio, np.finfo(np.float64).tiny))


def _matern_profile(z: Any, nu: float) -> Any:
    """Return 2^{1−ν}/Γ(ν) z^ν K_ν(z), which is 1 at zero; without a closed form, on the host."""
    xp = namespace(z)
    if nu == 0.5:
        return xp.exp(-z)
    if nu == 1.5:
        return (1.0 + z) * xp.exp(-z)
    if nu == 2.5:
        return (1.0 + z * (1.0 + z / 3.0)) * xp.exp(-z)
    host = to_numpy(z).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        values = _debye_profile(host, nu) if nu > _LARGE_ORDER else _bessel_profile(host, nu)
    values = np.where(np.isinf(host), 0.0, np.clip(values, 0.0, 1.0))
    return like(np.where(host == 0, 1.0, values).astype(to_numpy(z).dtype), z)


def _bessel_profile(z: Vector, nu: float) -> Vector:
    """Return the profile by the Bessel function; where that overflows, by its series."""
    from scipy.special import gammaln, kve

    log = (1.0 - nu) * math.log(2.0) - gammaln(nu) + nu * np.log(z) - z
    values: Vector = np.exp(log) * kve(nu, z)
    overflow = ~np.isfinite(values) & np.isfinite(z)
    values[overflow] = 1.0 - z[overflow] ** 2 / (4.0 * max(nu - 1.0, 1.0))
    return values


def _debye_profile(z: Vector, nu: float) -> Vector:
    """Return the profile by Debye's uniform expansion, in which nothing cancels.

    Source: DLMF 10.41.4 and 10.41.9; the Gamma function is the same expansion at zero.
    """
    x = z / nu
    w = np.hypot(1.0, x)
    y = x * (x / (w + 1.0))  # w − 1
    u, t = Series([1.0]), Series([0.0, 1.0])
    total = u
    for k in range(1, _TERMS):
        u = 0.5 * t**2 * (1 - t**2) * u.deriv() + ((1 - 5 * t**2) * u).integ() / 8
        total += (-1 / nu) ** k * u
    ratio = total(1.0 / w) / total(1.0)
    return np.asarray(np.exp(nu * (np.log1p(0.5 * y) - y)) / np.sqrt(w) * ratio)

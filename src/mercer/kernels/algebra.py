"""What kernels are closed under: products, scales, powers, spaces within spaces."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import namespace, to_numpy
from mercer.arrays.rounding import FEW
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal
from mercer.kernels.parameters import positive, whole
from mercer.kernels.points import Points
from mercer.kernels.rounding import compounded, distances
from mercer.kernels.slopes import Frequencies, Slopes
from mercer.kernels.sums import Composed, Sum, tight


class Product(Composed):
    """k₁(x,y) k₂(x,y).

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> (RBF(1.0) * Linear())([[2.0]])
    array([[4.]])
    """

    made_of = ("k1", "k2")

    def __init__(self, k1: Kernel, k2: Kernel) -> None:
        self.k1, self.k2 = k1, k2

    def on(self, pair: Either) -> Any:
        return self.k1.on(pair) * self.k2.on(pair)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        first, second = (k.roundings(x, y, dtype) for k in (self.k1, self.k2))
        return first + second + first * second * float(np.finfo(dtype).eps) / 2 + 1.0

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        first, second = self.k1.on(pair), self.k2.on(pair)
        return (
            *(slope.times(second) for slope in self.k1.slopes(pair)),
            *(slope.times(first) for slope in self.k2.slopes(pair)),
        )

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        first = self.k1.spectrum(d, q, rng, orthogonal=orthogonal)
        return _product(first, self.k2.spectrum(d, q, rng, orthogonal=orthogonal), rng)

    def height(self, d: int) -> float:
        return self.k1.height(d) * self.k2.height(d)

    def __repr__(self) -> str:
        return f"{tight(self.k1, Sum)} * {tight(self.k2, Sum, Product, Scaled)}"


class Scaled(Composed):
    """c k(x,y), c > 0.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> 2 * RBF(0.5)
    2.0 * RBF(0.5)
    """

    def __init__(self, scale: float, kernel: Kernel) -> None:
        self.scale, self.kernel = scale, kernel

    def check(self) -> None:
        positive(self, "scale")
        super().check()

    def on(self, pair: Either) -> Any:
        return self.kernel.on(pair) * self.scale

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return self.kernel.roundings(x, y, dtype) + 1.0

    def apart(self, pair: Either) -> Any:
        return self.kernel.apart(pair) * self.scale

    def sqdist_of(self, apart: Any) -> Any:
        return self.kernel.sqdist_of(apart / self.scale)

    @property
    def moves(self) -> bool:  # type: ignore[override]
        """Whether the centred matrix stays the same when all rows are shifted."""
        return self.kernel.moves

    @property
    def far(self) -> bool:  # type: ignore[override]
        """Whether rows far from zero cost its values digits."""
        return self.kernel.far

    @property
    def steepest(self) -> float:  # type: ignore[override]
        """Bound on its slope by the distance of two rows, over k(x, x)."""
        return self.kernel.steepest

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return tuple(slope.times(self.scale) for slope in self.kernel.slopes(pair))

    def height(self, d: int) -> float:
        return self.scale * self.kernel.height(d)

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        found = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        return replace(found, amplitude=found.amplitude * math.sqrt(self.scale))

    @property
    def psd(self) -> bool | None:
        return self.kernel.psd

    def __repr__(self) -> str:
        return f"{float(self.scale)!r} * {tight(self.kernel, Sum, Product, Scaled)}"


class Power(Composed):
    """k(x,y)^p for a whole number p ≥ 1.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> ((Linear() + 1) ** 2)([[1.0]])
    array([[4.]])
    """

    def __init__(self, kernel: Kernel, power: int) -> None:
        self.kernel, self.power = kernel, power

    def check(self) -> None:
        whole(self, "power")
        super().check()

    def on(self, pair: Either) -> Any:
        return self.kernel.on(pair) ** int(self.power)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return compounded(self.kernel.roundings(x, y, dtype) + 2.0, int(self.power), dtype)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        outer = self.power * self.kernel.on(pair) ** (int(self.power) - 1)
        return tuple(slope.times(outer) for slope in self.kernel.slopes(pair))

    def height(self, d: int) -> float:
        return float(self.kernel.height(d) ** int(self.power))

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        found = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        for _ in range(int(self.power) - 1):
            other = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
            found = _product(found, other, rng)
        return found

    def __repr__(self) -> str:
        return f"{tight(self.kernel, Sum, Product, Scaled, Power)} ** {int(self.power)}"


class Normalized(Composed):
    r"""The cosine in a kernel's space, :math:`k(x,y)/\sqrt{k(x,x)k(y,y)}`; 0 where a norm is 0.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def on(self, pair: Either) -> Any:
        x, y = (inverse_root(own) for own in pair.diagonals(self.kernel))
        return self.kernel.on(pair) * x * y

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 2.0 * self.kernel.roundings(x, y, dtype) + FEW

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        """The quotient rule; k(x,x) changes with x only, by its own slopes on the diagonal."""
        x, y = (inverse_root(own) for own in pair.diagonals(self.kernel))
        return (
            *(slope.times(x * y) for slope in self.kernel.slopes(pair)),
            *_own(self.kernel, pair, -0.5 * self.kernel.on(pair) * x**3 * y),
        )

    def height(self, d: int) -> float:
        return 1.0 if self.kernel.height(d) > 0 else 0.0

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        found = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        return replace(found, amplitude=found.amplitude / math.sqrt(self.kernel.height(d) or 1.0))

    @property
    def psd(self) -> bool | None:
        return self.kernel.psd or None

    def __repr__(self) -> str:
        return f"{tight(self.kernel, Sum, Product, Scaled, Power)}.normalized()"


class InSpace(Composed):
    r"""An RBF in another kernel's space, :math:`\exp(-\gamma(k(x,x)+k(y,y)-2k(x,y)))`.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2).rbf(0.1)
    Polynomial(2).rbf(0.1)
    """

    def __init__(self, kernel: Kernel, gamma: float = 1.0) -> None:
        self.kernel, self.gamma = kernel, gamma

    def check(self) -> None:
        positive(self, "gamma")
        super().check()

    def on(self, pair: Either) -> Any:
        apart = self.kernel.apart(pair)
        return namespace(apart).exp(-self.gamma * apart)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """A squared distance is off by C + 2 roundings of both k(x,x), four times at most.

        Unless it is the rows' own. No value is off by more than 1, which it cannot exceed.
        """
        most = 2.0 / float(np.finfo(dtype).eps)
        if self.kernel.sqdist_is_own:
            relative, absolute = distances(x, y, dtype)
            return np.minimum(self.gamma * absolute, relative / math.e) + FEW
        own = [to_numpy(self.kernel.on_itself(points)).astype(np.float64) for points in (x, y)]
        spread = own[0] + np.max(own[1], initial=0.0)
        inner = self.kernel.roundings(x, y, dtype) + 2.0
        spread = np.where(np.isnan(spread), np.inf, spread)
        return np.minimum(self.gamma * 2.0 * inner * spread + FEW, most)

    def apart(self, pair: Either) -> Any:
        apart = self.kernel.apart(pair)
        return -2.0 * namespace(apart).expm1(-self.gamma * apart)

    def sqdist_of(self, apart: Any) -> Any:
        xp = namespace(apart)
        return self.kernel.sqdist_of(
            -xp.log1p(-xp.minimum(0.5 * apart, 1.0 + 0.0 * apart)) / self.gamma
        )

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        outer = self.gamma * self.on(pair)
        return (
            *(slope.times(2.0 * outer) for slope in self.kernel.slopes(pair)),
            *_own(self.kernel, pair, -outer),
        )

    @property
    def psd(self) -> bool | None:
        return self.kernel.psd or None

    def __repr__(self) -> str:
        return f"{tight(self.kernel, Sum, Product, Scaled, Power)}.rbf({float(self.gamma)!r})"


def inverse_root(squares: Any) -> Any:
    """Return 1/√s, and 0 where s is not positive."""
    xp = namespace(squares)
    there = squares > 0
    return xp.where(there, 1.0 / xp.sqrt(xp.where(there, squares, 1.0)), 0.0 * squares)


def _product(first: Frequencies, second: Frequencies, rng: np.random.Generator) -> Frequencies:
    """Return the frequencies of a product: they add, drawn independently."""
    mix = rng.permutation(len(second.amplitude))
    return Frequencies(
        first.omega + second.omega[:, mix],
        first.amplitude * second.amplitude[mix] * math.sqrt(len(mix)),
    )


def _own(kernel: Kernel, pair: Either, factor: Any) -> tuple[Slopes, ...]:
    """Return the slopes of k(x, x) by ‖x‖², which dot and both lengths are, times a factor."""
    points = pair.points if isinstance(pair, Diagonal) else pair.left
    found = []
    for slope in kernel.slopes(Diagonal(points)):
        by_norm = slope.dot + 2 * slope.norm
        column = (
            by_norm if np.ndim(by_norm) == 0 or isinstance(pair, Diagonal) else by_norm[:, None]
        )
        found.append(Slopes(norm=column * factor, columns=slope.columns))
    return tuple(found)

"""Kernels of histograms and distributions: rows that are nowhere negative."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import Array, namespace, to_numpy
from mercer.kernels.algebra import require
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal, Pair, Points, require_dense


class Histogram(Kernel):
    """A kernel that is a sum over columns of something of two entries that are not negative."""

    negative = False
    """Whether entries may be negative."""

    def on(self, pair: Either) -> Any:
        if not self.negative:
            refuse_negative(self, pair)
        return self.value(pair.entrywise(self))

    def value(self, total: Any) -> Any:
        """Return the kernel, given the sum over the columns."""
        return total

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        """Return what two entries add to the sum."""
        raise NotImplementedError

    def loop(self, x: Array, y: Array, out: Array) -> None:
        """Write the sums of NumPy rows to `out`, compiled."""
        raise NotImplementedError


class HistogramIntersection(Histogram):
    r"""The common part, :math:`\sum_l \min(x_l, y_l)`.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import HistogramIntersection
    >>> HistogramIntersection()([[0.2, 0.8]], [[0.5, 0.5]])
    array([[0.7]])
    """

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        return xp.minimum(x, y)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import minimum

        minimum(x, y, out)


_COMMON = HistogramIntersection()


class GeneralizedHistogramIntersection(Kernel):
    r"""The intersection of powers, :math:`\sum_l \min(|x_l|^\alpha, |y_l|^\alpha)`.

    Source: marukatat App. B; Boughorbel, Tarel & Boujemaa (2005).

    Parameters
    ----------
    alpha : float
        The power α.

    Examples
    --------
    >>> from mercer.kernels import GeneralizedHistogramIntersection
    >>> GeneralizedHistogramIntersection(2.0)([[-2.0, 1.0]], [[1.0, 3.0]])
    array([[2.]])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def check(self) -> None:
        require(self, "alpha", self.alpha > 0, "must be positive")

    def on(self, pair: Either) -> Any:
        return pair.through(("power", float(self.alpha)), self._powers).entrywise(_COMMON)

    def _powers(self, rows: Any) -> Any:
        require_dense(self, rows)
        return abs(rows) ** self.alpha


class ChiSquare(Histogram):
    r"""The additive chi-square kernel :math:`\sum_l x_l y_l/(x_l+y_l)`, 0/0 = 0.

    Source: marukatat App. B. scikit-learn's `additive_chi2` is `AdditiveChi2`, another thing.

    Examples
    --------
    >>> from mercer.kernels import ChiSquare
    >>> ChiSquare()([[1.0, 0.0]], [[1.0, 0.0]])
    array([[0.5]])
    """

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        both = x + y
        return xp.where(both > 0, x * y / xp.where(both > 0, both, 1.0), 0.0 * both)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import harmonic

        harmonic(x, y, out)


class AdditiveChi2(Histogram):
    r"""Minus the chi-square distance, :math:`-\sum_l (x_l-y_l)^2/(x_l+y_l)`, as in scikit-learn.

    Only conditionally positive definite: centred matrices of it are positive semi-definite.

    Examples
    --------
    >>> from mercer.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 0.0]], [[0.0, 1.0]])
    array([[-2.]])
    """

    @property
    def psd(self) -> bool | None:
        return False

    def value(self, total: Any) -> Any:
        return -total

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        both = x + y
        return xp.where(both > 0, (x - y) ** 2 / xp.where(both > 0, both, 1.0), 0.0 * both)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import chi_square

        chi_square(x, y, out)


class ExponentialChiSquare(AdditiveChi2):
    r"""The exponential form :math:`\exp(-\gamma\sum_l (x_l-y_l)^2/(x_l+y_l))`.

    scikit-learn's `chi2`. Source: Zhang, Marszalek, Lazebnik & Schmid (2007).

    Parameters
    ----------
    gamma : float
        The scale γ.

    Examples
    --------
    >>> from mercer.kernels import ExponentialChiSquare
    >>> ExponentialChiSquare(1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    @property
    def psd(self) -> bool | None:
        return True

    def check(self) -> None:
        require(self, "gamma", self.gamma > 0, "must be positive")

    def value(self, total: Any) -> Any:
        return namespace(total).exp(-self.gamma * total)


class Hellinger(Kernel):
    r"""Bhattacharyya's overlap, :math:`\sum_l \sqrt{x_l y_l}`.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import Hellinger
    >>> Hellinger()([[0.25, 0.75]], [[0.25, 0.75]])
    array([[1.]])
    """

    def on(self, pair: Either) -> Any:
        refuse_negative(self, pair)
        return pair.through("root", lambda rows: namespace(rows).sqrt(rows)).dot


class JensenShannon(Histogram):
    r"""What two distributions share, 2 where they are equal and sum to one.

    .. math:: -\frac{1}{\log 2}\sum_l
              \Big[x_l\log\frac{x_l}{x_l+y_l} + y_l\log\frac{y_l}{x_l+y_l}\Big]

    With 0 log 0 = 0. Source: marukatat App. B, whose print lacks the brackets.

    Examples
    --------
    >>> from mercer.kernels import JensenShannon
    >>> JensenShannon()([[0.5, 0.5]])
    array([[2.]])
    """

    def entries(self, xp: Any, x: Array, y: Array) -> Array:
        both = x + y
        parts = 0.0 * both
        for part in (x, y):
            there = part > 0
            share = xp.where(there, part, 1.0) / xp.where(there, both, 1.0)
            parts = parts - part * xp.log(share)
        return parts / math.log(2.0)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import jensen_shannon

        jensen_shannon(x, y, out)


def refuse_negative(kernel: Kernel, pair: Either) -> None:
    """Refuse rows with negative entries, and say where the first is."""

    def check(points: Points) -> bool:
        xp, rows = namespace(points.rows), points.rows
        require_dense(kernel, rows)
        if bool(xp.any(rows < 0)):
            i, j = np.argwhere(to_numpy(rows) < 0)[0]
            raise ValueError(
                f"{kernel!r} takes histograms, and there is a negative entry: "
                f"{float(rows[i, j])} in row {points.start + i}, column {j}. "
                f"Shift or clip the rows, or use a kernel of vectors."
            )
        return True

    if isinstance(pair, Pair):
        pair.block.x.once("not negative", check)
        pair.block.y.once("not negative", check)
    elif isinstance(pair, Diagonal):
        pair.points.once("not negative", check)

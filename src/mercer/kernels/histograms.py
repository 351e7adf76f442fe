"""Kernels of histograms and distributions: rows that are nowhere negative."""

from __future__ import annotations

import math
from typing import Any

from mercer.arrays import Array, namespace, to_numpy
from mercer.arrays.rounding import FEW
from mercer.kernels.base import Either, Kernel
from mercer.kernels.median import median_distance
from mercer.kernels.pair import Diagonal, Pair, require_dense
from mercer.kernels.parameters import positive
from mercer.kernels.points import Points
from mercer.kernels.rounding import columns


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

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Summed one after the other: roundings of equal terms may drift."""
        return float(columns(x)) + FEW

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
        positive(self, "alpha")

    def on(self, pair: Either) -> Any:
        return pair.through(("power", float(self.alpha)), self._powers).entrywise(_COMMON)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return float(columns(x)) + FEW

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
        return x * (y / xp.where(both > 0, both, 1.0))

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import harmonic

        harmonic(x, y, out)


class AdditiveChi2(Histogram):
    r"""Minus the chi-square distance, :math:`-\sum_l (x_l-y_l)^2/(x_l+y_l)`, as in scikit-learn.

    Only conditionally positive definite: centred matrices of it are positive semi-definite.
    Source: Zhang, Marszalek, Lazebnik & Schmid (2007).

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
        both, apart = x + y, x - y
        return apart * (apart / xp.where(both > 0, both, 1.0))

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

    @classmethod
    def from_median(
        cls, X: Any, *, size: int = 1000, random_state: int = 0
    ) -> ExponentialChiSquare:
        """Return the kernel that is 1/e at the median chi-square distance between rows of X.

        Of as many rows as `size`, drawn at random; a row counts as often as its weight says.
        If half of the distances are 0, the median is taken of the others.

        Examples
        --------
        >>> from mercer.kernels import ExponentialChiSquare
        >>> ExponentialChiSquare.from_median([[1.0, 0.0], [0.0, 1.0]])
        ExponentialChiSquare(0.5)
        """
        made = cls(1.0)
        return cls(1.0 / median_distance(made, X, made._distance, size, random_state))

    @property
    def psd(self) -> bool | None:
        return True

    def check(self) -> None:
        positive(self, "gamma")

    def value(self, total: Any) -> Any:
        return namespace(total).exp(-self.gamma * total)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Terms of one sign: an error relative to the sum, and t e^{−t} ≤ 1/e."""
        return super().roundings(x, y, dtype) / math.e + FEW

    def apart(self, pair: Either) -> Any:
        total = self._distance(pair)
        return -2.0 * namespace(total).expm1(-self.gamma * total)

    def _distance(self, pair: Either) -> Any:
        refuse_negative(self, pair)
        return pair.entrywise(self)


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
        return pair.through("root", _root).dot

    def apart(self, pair: Either) -> Any:
        refuse_negative(self, pair)
        return pair.through("root", _root).sqdist


def _root(rows: Any) -> Any:
    return rows.sqrt() if hasattr(rows, "tocsr") else namespace(rows).sqrt(rows)


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
        low, high = xp.minimum(x, y), xp.maximum(x, y)
        share = low / xp.where(high > 0, high, 1.0)
        ratio = xp.where(share > 0, share, 1.0)  # no term is below 0: nothing cancels
        return ((x + y) * xp.log1p(share) - low * xp.log(ratio)) / math.log(2.0)

    def loop(self, x: Array, y: Array, out: Array) -> None:
        from mercer.kernels.loops import jensen_shannon

        jensen_shannon(x, y, out)


def refuse_negative(kernel: Kernel, pair: Either) -> None:
    """Refuse rows with negative entries, and say where the first is."""

    def check(points: Points) -> bool:
        xp, rows = namespace(points.rows), points.rows
        below = rows < 0
        if below.nnz if points.sparse else bool(xp.any(below)):
            i, j = (int(at[0]) for at in (below if points.sparse else to_numpy(below)).nonzero())
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

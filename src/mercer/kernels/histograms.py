"""Kernels of histograms and distributions: rows without negative entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import FEW, first_entry, namespace, to_numpy, with_data
from mercer.checks import check_positive
from mercer.kernels.base import Kernel
from mercer.kernels.dot_product import MappedKernel
from mercer.kernels.pair import ColumnSum, Pair, require_dense
from mercer.kernels.points import Points
from mercer.kernels.stationary import DistanceDecay

__all__ = [
    "AdditiveChi2",
    "ChiSquare",
    "ExponentialChiSquare",
    "GeneralizedHistogramIntersection",
    "Hellinger",
    "HistogramIntersection",
    "JensenShannon",
]


def _chi_square_term(xp: Any, x: Any, y: Any) -> Any:
    both, difference = x + y, x - y
    return difference * (difference / xp.where(both > 0, both, 1.0))


def _harmonic_term(xp: Any, x: Any, y: Any) -> Any:
    both = x + y
    return x * (y / xp.where(both > 0, both, 1.0))


def _jensen_shannon_term(xp: Any, x: Any, y: Any) -> Any:
    """(x + y) log₂(1 + low/high) + low |log₂ x − log₂ y|: no part is negative, nothing cancels."""
    low, high = xp.minimum(x, y), xp.maximum(x, y)
    ratio = low / xp.where(high > 0, high, 1.0)
    safe = xp.where(ratio > 0, ratio, 1.0)
    return ((x + y) * xp.log1p(ratio) - low * xp.log(safe)) / math.log(2.0)


MINIMUM = ColumnSum(lambda xp, x, y: xp.minimum(x, y), loop="minimum")
HARMONIC = ColumnSum(_harmonic_term, loop="harmonic")
CHI_SQUARE = ColumnSum(_chi_square_term, loop="chi_square")
JENSEN_SHANNON = ColumnSum(_jensen_shannon_term, loop="jensen_shannon")


class Histogram(Kernel):
    """A kernel that is a sum over columns of a function of two entries."""

    terms: ColumnSum

    def on(self, pair: Pair) -> Any:
        refuse_negative(self, pair)
        return pair.column_sum(self.terms, self)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """The columns are summed one after the other: errors of equal terms may add up."""
        return float(x.width) + FEW


class HistogramIntersection(Histogram):
    r"""The histogram intersection, :math:`\sum_l \min(x_l, y_l)`.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import HistogramIntersection
    >>> HistogramIntersection()([[0.2, 0.8]], [[0.5, 0.5]])
    array([[0.7]])
    """

    name = "histogramintersection"
    terms = MINIMUM


class GeneralizedHistogramIntersection(Histogram):
    r"""The intersection of powers, :math:`\sum_l \min(|x_l|^\alpha, |y_l|^\alpha)`.

    Source: marukatat App. B; Boughorbel, Tarel & Boujemaa (2005).

    Examples
    --------
    >>> from mercer.kernels import GeneralizedHistogramIntersection
    >>> GeneralizedHistogramIntersection(2.0)([[-2.0, 1.0]], [[1.0, 3.0]])
    array([[2.]])
    """

    name = "generalizedhistogramintersection"

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def check(self) -> None:
        check_positive(self, "alpha")

    def on(self, pair: Pair) -> Any:
        for points in pair.groups:
            require_dense(self, points.rows)
        key = "power", float(self.alpha)
        return pair.mapped(key, lambda rows: abs(rows) ** self.alpha).column_sum(MINIMUM, self)


class ChiSquare(Histogram):
    r"""The additive chi-square kernel :math:`\sum_l x_l y_l/(x_l+y_l)`, 0/0 = 0.

    Source: marukatat App. B. scikit-learn's `additive_chi2` is `AdditiveChi2`, another kernel.

    Examples
    --------
    >>> from mercer.kernels import ChiSquare
    >>> ChiSquare()([[1.0, 0.0]], [[1.0, 0.0]])
    array([[0.5]])
    """

    name = "chisquare"
    terms = HARMONIC


class AdditiveChi2(Histogram):
    r"""Minus the chi-square distance, :math:`-\sum_l (x_l-y_l)^2/(x_l+y_l)`, as in scikit-learn.

    Only conditionally positive definite: its centered matrices are positive semi-definite.
    Source: Zhang, Marszalek, Lazebnik & Schmid (2007).

    Examples
    --------
    >>> from mercer.kernels import AdditiveChi2
    >>> AdditiveChi2()([[1.0, 0.0]], [[0.0, 1.0]])
    array([[-2.]])
    """

    name = "additive_chi2"
    ignores_gamma = True
    psd = False
    terms = CHI_SQUARE

    def on(self, pair: Pair) -> Any:
        return -super().on(pair)


class ExponentialChiSquare(DistanceDecay):
    r"""The exponential form :math:`\exp(-\gamma\sum_l (x_l-y_l)^2/(x_l+y_l))`.

    scikit-learn's `chi2`. Source: Zhang, Marszalek, Lazebnik & Schmid (2007).

    Examples
    --------
    >>> from mercer.kernels import ExponentialChiSquare
    >>> ExponentialChiSquare(1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(4)
    array([[0.1353]])
    """

    name = "chi2"

    def __init__(self, gamma: float = 1.0) -> None:
        self.gamma = gamma

    def distance(self, pair: Pair) -> Any:
        refuse_negative(self, pair)
        return pair.column_sum(CHI_SQUARE, self)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Terms of one sign have an error relative to their sum, and t e^{−t} ≤ 1/e."""
        return (float(x.width) + FEW) / math.e + FEW


class Hellinger(MappedKernel):
    r"""Bhattacharyya's overlap, :math:`\sum_l \sqrt{x_l y_l}`.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import Hellinger
    >>> Hellinger()([[0.25, 0.75]], [[0.25, 0.75]])
    array([[1.]])
    """

    name = "hellinger"

    def on(self, pair: Pair) -> Any:
        refuse_negative(self, pair)
        return super().on(pair)

    def sqdist(self, pair: Pair) -> Any:
        refuse_negative(self, pair)
        return super().sqdist(pair)

    def features(self, rows: Any) -> Any:
        if hasattr(rows, "tocsr"):
            return with_data(rows, namespace(rows.data).sqrt(rows.data))
        return namespace(rows).sqrt(rows)


class JensenShannon(Histogram):
    r"""The similarity of two distributions, 2 where they are equal and sum to one.

    .. math:: -\frac{1}{\log 2}\sum_l
              \Big[x_l\log\frac{x_l}{x_l+y_l} + y_l\log\frac{y_l}{x_l+y_l}\Big]

    With 0 log 0 = 0. Source: marukatat App. B, whose print lacks the brackets.

    Examples
    --------
    >>> from mercer.kernels import JensenShannon
    >>> JensenShannon()([[0.5, 0.5]])
    array([[2.]])
    """

    name = "jensenshannon"
    terms = JENSEN_SHANNON


def refuse_negative(kernel: Kernel, pair: Pair) -> None:
    """Raise if rows have negative entries, and report the first."""

    def check(points: Points) -> bool:
        rows = points.rows
        if points.sparse:
            place = first_entry(rows, rows.data < 0)
        else:
            at = np.argwhere(to_numpy(rows < 0))[:1].tolist()
            place = (*at[0], float(rows[tuple(at[0])])) if at else None
        if place is not None:
            i, j, value = place
            raise ValueError(
                f"{kernel!r} takes histograms, but X has a negative entry: {value} in row "
                f"{points.start + i}, column {j}. Shift or clip the rows, or use a kernel such as "
                f"RBF."
            )
        return True

    for points in pair.groups:
        points.cached("not negative", check)

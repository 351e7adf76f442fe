"""Kernels of the dot product."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from mercer.arrays import namespace, numpy_dtype, row_maxima, scale_rows
from mercer.checks import check_finite, check_integer, check_nonnegative, check_positive
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair, Slopes, power_error
from mercer.kernels.points import Points, inverse_sqrt

__all__ = ["Cosine", "Linear", "Polynomial", "Tanh"]


class Linear(Kernel):
    r"""The dot product :math:`x^Ty`: kernel PCA with it is PCA.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    name = "linear"
    ignores_gamma = True
    shift_invariant = True
    offset_sensitive = True
    lipschitz = 0.0  # the shift costs it no digits
    is_euclidean = True

    def on(self, pair: Pair) -> Any:
        return pair.dot

    def sqdist(self, pair: Pair) -> Any:
        return pair.sqdist

    def input_sqdist(self, sqdist: Any) -> Any:
        return sqdist

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return (Slopes(dot=1.0),)


class Polynomial(Kernel):
    r"""The polynomial kernel :math:`(\gamma x^Ty + c)^p`, p an integer, c ≥ 0.

    Source: marukatat App. B. Positive semi-definite for integer p only.

    Parameters
    ----------
    degree : int
        The power p.
    coef0, gamma : float
        The constant c and the scale γ.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    name = "poly"

    def __init__(self, degree: int = 3, coef0: float = 1.0, gamma: float = 1.0) -> None:
        self.degree, self.coef0, self.gamma = degree, coef0, gamma

    def check(self) -> None:
        check_integer(self, "degree")
        check_nonnegative(self, "coef0")
        check_positive(self, "gamma")

    def on(self, pair: Pair) -> Any:
        return _power(self.gamma * pair.dot + self.coef0, int(self.degree))

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return power_error(super().roundings(x, y, dtype), int(self.degree), dtype)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        inner = _power(self.gamma * pair.dot + self.coef0, int(self.degree) - 1)
        return (Slopes(dot=self.gamma * self.degree * inner),)


class Tanh(Kernel):
    r"""The sigmoid :math:`\tanh(\gamma x^Ty + c)`, c = `coef0`: not always positive semi-definite.

    Source: marukatat App. B, who lists it among the valid kernels; it is not one.

    Examples
    --------
    >>> from mercer.kernels import Tanh
    >>> Tanh(0.1).psd
    False
    """

    name = "sigmoid"
    psd = False

    def __init__(self, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.gamma, self.coef0 = gamma, coef0

    def check(self) -> None:
        check_positive(self, "gamma")
        check_finite(self, "coef0")

    def on(self, pair: Pair) -> Any:
        inner = self.gamma * pair.dot + self.coef0
        return namespace(inner).tanh(inner)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        return (Slopes(dot=self.gamma * (1.0 - self.on(pair) ** 2)),)


class MappedKernel(Kernel):
    """The dot product of mapped rows."""

    @abstractmethod
    def features(self, rows: Any) -> Any:
        """Return the mapped rows."""

    def on(self, pair: Pair) -> Any:
        return pair.mapped(("features", self), self.features).dot

    def sqdist(self, pair: Pair) -> Any:
        return pair.mapped(("features", self), self.features).sqdist


class Cosine(MappedKernel):
    r"""The cosine of the angle, :math:`x^Ty/(\lVert x\rVert\lVert y\rVert)`; 0 for a zero row.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    name = "cosine"
    ignores_gamma = True

    def features(self, rows: Any) -> Any:
        """Return rows divided by their norms; zero rows stay zero."""
        if rows.shape[1] == 0:
            return rows
        norms = Points(rows).norms
        xp, tiny = namespace(norms), float(np.finfo(numpy_dtype(norms)).tiny)
        # Squares may overflow or vanish where the entries do not: divide by the largest first.
        extreme = ~((norms > tiny**0.75) & (norms < tiny**-0.75))
        if bool(xp.any(extreme)):
            if hasattr(rows, "tocsr"):
                largest = row_maxima(rows)
            else:
                largest = xp.max(xp.abs(rows), axis=1)
            one = xp.ones_like(largest)
            rows = _scale_rows(rows, 1.0 / xp.where(extreme & (largest > 0), largest, one))
            norms = Points(rows).norms
        return _scale_rows(rows, inverse_sqrt(norms))

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 2.0 * super().roundings(x, y, dtype)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        x, y = (inverse_sqrt(norm) for norm in pair.norms)
        return (Slopes(dot=x * y, norm=-0.5 * pair.dot * x**3 * y),)


def _power(values: Any, p: int) -> Any:
    """Return values to the power p by multiplications: faster than `pow`, and as accurate."""
    result = None
    while p:
        if p & 1:
            result = values if result is None else result * values
        p >>= 1
        values = values * values if p else values
    return 1.0 if result is None else result


def _scale_rows(rows: Any, factors: Any) -> Any:
    return scale_rows(rows, factors) if hasattr(rows, "tocsr") else rows * factors[:, None]

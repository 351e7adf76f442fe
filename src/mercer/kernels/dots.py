"""Kernels of the dot product."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import namespace, numpy_dtype
from mercer.kernels.algebra import inverse_root
from mercer.kernels.base import Either, Kernel
from mercer.kernels.parameters import finite, not_negative, positive, whole
from mercer.kernels.points import Points
from mercer.kernels.rounding import compounded
from mercer.kernels.slopes import Slopes


class Linear(Kernel):
    r"""The dot product :math:`x^Ty`: kernel PCA with it is PCA.

    Source: marukatat App. B.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    moves = True
    far = True
    sqdist_is_own = True

    def on(self, pair: Either) -> Any:
        return pair.dot

    def apart(self, pair: Either) -> Any:
        return pair.sqdist

    def sqdist_of(self, apart: Any) -> Any:
        return apart

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return (Slopes(dot=1.0),)


class Polynomial(Kernel):
    r"""The polynomial kernel :math:`(\gamma x^Ty + c)^p`, p a whole number, c ≥ 0.

    Source: marukatat App. B. Positive semi-definite for whole p only.

    Parameters
    ----------
    degree : int
        The power p.
    coef0 : float
        The constant c.
    gamma : float
        The scale γ.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    def __init__(self, degree: int = 3, coef0: float = 1.0, gamma: float = 1.0) -> None:
        self.degree, self.coef0, self.gamma = degree, coef0, gamma

    def check(self) -> None:
        whole(self, "degree")
        not_negative(self, "coef0")
        positive(self, "gamma")

    def on(self, pair: Either) -> Any:
        return _power(self.gamma * pair.dot + self.coef0, int(self.degree))

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return compounded(super().roundings(x, y, dtype), int(self.degree), dtype)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        inner = _power(self.gamma * pair.dot + self.coef0, int(self.degree) - 1)
        return (Slopes(dot=self.gamma * self.degree * inner),)


class Tanh(Kernel):
    r"""The sigmoid :math:`\tanh(\gamma x^Ty + c)`: not positive semi-definite in general.

    Source: marukatat App. B, who lists it among the valid kernels; it is not one.

    Parameters
    ----------
    gamma, coef0 : float
        The scale γ and the constant c.

    Examples
    --------
    >>> from mercer.kernels import Tanh
    >>> Tanh(0.1).psd
    False
    """

    def __init__(self, gamma: float = 1.0, coef0: float = 0.0) -> None:
        self.gamma, self.coef0 = gamma, coef0

    @property
    def psd(self) -> bool | None:
        return False

    def check(self) -> None:
        positive(self, "gamma")
        finite(self, "coef0")

    def on(self, pair: Either) -> Any:
        inner = self.gamma * pair.dot + self.coef0
        return namespace(inner).tanh(inner)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return (Slopes(dot=self.gamma * (1.0 - self.on(pair) ** 2)),)


class Cosine(Kernel):
    r"""The cosine of the angle, :math:`x^Ty/(\lVert x\rVert\lVert y\rVert)`; 0 for a zero row.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    def on(self, pair: Either) -> Any:
        return pair.through("unit", _unit).dot

    def apart(self, pair: Either) -> Any:
        return pair.through("unit", _unit).sqdist

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 2.0 * super().roundings(x, y, dtype)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        x, y = (inverse_root(norm) for norm in pair.lengths)
        return (Slopes(dot=x * y, norm=-0.5 * pair.dot * x**3 * y),)


def _unit(rows: Any) -> Any:
    """Return rows of unit length; zero rows stay zero."""
    if rows.shape[1] == 0:
        return rows
    norms = Points(rows).norms
    xp, tiny = namespace(norms), float(np.finfo(numpy_dtype(norms)).tiny)
    lost = ~((norms > tiny**0.75) & (norms < tiny**-0.75))  # their squares may be, not they
    if bool(xp.any(lost)):
        largest = _largest(rows)
        rows = _times(rows, 1.0 / xp.where(lost & (largest > 0), largest, 1.0 + 0.0 * largest))
        norms = Points(rows).norms
    return _times(rows, inverse_root(norms))


def _largest(rows: Any) -> Any:
    """Return the largest size of an entry of every row."""
    if hasattr(rows, "tocsr"):
        return abs(rows).max(axis=1).toarray().reshape(-1)
    xp = namespace(rows)
    return xp.max(xp.abs(rows), axis=1)


def _times(rows: Any, factors: Any) -> Any:
    """Return every row times its factor."""
    if hasattr(rows, "tocsr"):
        made = rows.tocsr().copy()
        made.data *= np.repeat(factors, np.diff(made.indptr))
        return made
    return rows * factors[:, None]


def _power(values: Any, p: int) -> Any:
    """Return values to the power p by multiplications: faster than `pow`, and as exact."""
    made = None
    while p:
        if p & 1:
            made = values if made is None else made * values
        p >>= 1
        values = values * values if p else values
    return 1.0 if made is None else made

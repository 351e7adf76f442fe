"""Kernels of the dot product."""

from __future__ import annotations

from typing import Any

from mercer.arrays import namespace
from mercer.kernels.algebra import inverse_root, require
from mercer.kernels.base import Either, Kernel, Slopes
from mercer.kernels.pair import Points


class Linear(Kernel):
    r"""The dot product :math:`x^Ty`: kernel PCA with it is PCA.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    def on(self, pair: Either) -> Any:
        return pair.dot

    def apart(self, pair: Either) -> Any:
        return pair.sqdist

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
        whole = self.degree == int(self.degree) and self.degree >= 1
        require(self, "degree", whole, "must be a whole number, 1 or more")
        require(self, "coef0", self.coef0 >= 0, "must not be negative")
        require(self, "gamma", self.gamma > 0, "must be positive")

    def on(self, pair: Either) -> Any:
        return _power(self.gamma * pair.dot + self.coef0, int(self.degree))

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
        require(self, "gamma", self.gamma > 0, "must be positive")

    def on(self, pair: Either) -> Any:
        inner = self.gamma * pair.dot + self.coef0
        return namespace(inner).tanh(inner)

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        return (Slopes(dot=self.gamma * (1.0 - self.on(pair) ** 2)),)


class Cosine(Kernel):
    r"""The cosine of the angle, :math:`x^Ty/(\lVert x\rVert\lVert y\rVert)`; 0 for a zero row.

    Examples
    --------
    >>> from mercer.kernels import Cosine
    >>> Cosine()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    def on(self, pair: Either) -> Any:
        return pair.through("unit", _unit).dot

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        x, y = (inverse_root(norm) for norm in pair.lengths)
        return (Slopes(dot=x * y, norm=-0.5 * pair.dot * x**3 * y),)


def _unit(rows: Any) -> Any:
    """Return rows of unit length; zero rows stay zero."""
    inverse = inverse_root(Points(rows).norms)
    if hasattr(rows, "tocsr"):
        return rows.multiply(inverse[:, None]).tocsr()
    return rows * inverse[:, None]


def _power(values: Any, p: int) -> Any:
    """Return values to the power p by multiplications: faster than `pow`, and as exact."""
    made = None
    while p:
        if p & 1:
            made = values if made is None else made * values
        p >>= 1
        values = values * values if p else values
    return 1.0 if made is None else made

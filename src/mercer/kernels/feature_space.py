"""Kernels in the feature space of another kernel, or on some columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from mercer.arrays import FEW, like, namespace, to_numpy
from mercer.checks import check_positive, is_real, require
from mercer.kernels.algebra import Combination, as_operand, operand_property
from mercer.kernels.base import Frequencies, Kernel
from mercer.kernels.pair import DiagonalPair, Pair, Slopes, sqdist_errors
from mercer.kernels.points import Points, inverse_sqrt
from mercer.kernels.stationary import Exponential

__all__ = ["InSpace", "Normalized", "OnColumns"]


class Normalized(Combination):
    r"""The cosine in feature space, :math:`k(x,y)/\sqrt{k(x,x)k(y,y)}`; 0 where a norm is 0.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> Linear().normalized()([[3.0, 4.0]], [[4.0, 3.0]])
    array([[0.96]])
    """

    operation = "normalized"

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def on(self, pair: Pair) -> Any:
        x, y = (inverse_sqrt(values) for values in pair.diagonals(self.kernel))
        return self.kernel.on(pair) * x * y

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return 2.0 * self.kernel.roundings(x, y, dtype) + FEW

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        """By the quotient rule; k(x, x) depends on x alone, by its slopes on the diagonal."""
        x, y = (inverse_sqrt(values) for values in pair.diagonals(self.kernel))
        return (
            *(slope.times(x * y) for slope in self.kernel.slopes(pair)),
            *_diagonal_slopes(self.kernel, pair, -0.5 * self.kernel.on(pair) * x**3 * y),
        )

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        frequencies = self.kernel.spectrum(d, q, rng, orthogonal=orthogonal)
        scale = math.sqrt(self.kernel.value_at_zero(d) or 1.0)
        return replace(frequencies, amplitude=frequencies.amplitude / scale)

    def __repr__(self) -> str:
        return f"{as_operand(self.kernel)}.normalized()"


class InSpace(Exponential, Combination):
    r"""An RBF in the feature space of a kernel, :math:`\exp(-\gamma(k(x,x)+k(y,y)-2k(x,y)))`.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Examples
    --------
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2).rbf(0.1)
    Polynomial(2).rbf(0.1)
    """

    operation = "rbf"

    def __init__(self, kernel: Kernel, gamma: float = 1.0) -> None:
        self.kernel, self.gamma = kernel, gamma

    def check(self) -> None:
        check_positive(self, "gamma")
        super().check()

    def log(self, pair: Pair) -> Any:
        return -self.gamma * self.kernel.sqdist(pair)

    def input_sqdist(self, sqdist: Any) -> Any:
        return self.kernel.input_sqdist(self._minus_log(sqdist) / self.gamma)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """A squared distance is off by at most 2(C + 2)(k(x,x) + k(y,y)) roundings.

        By less where it is the distance of the rows. No value is off by more than 1.
        """
        if self.kernel.is_euclidean:
            relative, absolute = sqdist_errors(x, y, dtype)
            return np.minimum(self.gamma * absolute, relative / math.e) + FEW
        values = (to_numpy(self.kernel.on_diagonal(side)) for side in (x, y))
        left, right = (value.astype(np.float64) for value in values)
        spread = left + np.max(right, initial=0.0)
        inner = self.kernel.roundings(x, y, dtype) + 2.0
        spread = np.where(np.isnan(spread), np.inf, spread)
        largest = 2.0 / float(np.finfo(dtype).eps)
        return np.minimum(self.gamma * 2.0 * inner * spread + FEW, largest)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        outer = self.gamma * self.on(pair)
        return (
            *(slope.times(2.0 * outer) for slope in self.kernel.slopes(pair)),
            *_diagonal_slopes(self.kernel, pair, -outer),
        )

    def __repr__(self) -> str:
        return f"{as_operand(self.kernel)}.rbf({float(self.gamma)!r})"


class OnColumns(Combination):
    """A kernel on some columns, for tables that need different kernels for different columns.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> k = RBF(1.0).on_columns([0]) + Linear().on_columns([1, 2])
    >>> k([[0.0, 1.0, 2.0]])
    array([[6.]])
    """

    operation = "on_columns"
    psd = operand_property("psd")

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel, self.columns = kernel, columns

    def check(self) -> None:
        columns = self.columns if isinstance(self.columns, (list, tuple, np.ndarray)) else []
        whole = all(isinstance(c, (int, np.integer)) and is_real(c) and c >= 0 for c in columns)
        once = whole and 0 < len(columns) == len(set(columns))
        require(self, "columns", once, "a list of distinct column indices, not a mask")
        super().check()
        if self.kernel.takes == "strings":
            raise ValueError(f"{self!r}: strings have no columns.")

    def on(self, pair: Pair) -> Any:
        return self._inner(self.kernel.on, pair)

    def sqdist(self, pair: Pair) -> Any:
        return self._inner(self.kernel.sqdist, pair)

    def _inner(self, formula: Callable[[Pair], Any], pair: Pair) -> Any:
        """Return a formula of the columns; its errors say which columns are counted."""
        part = self._restricted(pair)
        try:
            return formula(part)
        except ValueError as error:
            if "column" not in str(error):
                raise
            raise ValueError(f"{error} Column indices refer to {self._numbers}.") from None

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        left, right = (self._restricted(DiagonalPair(side)).groups[0] for side in (x, y))
        return self.kernel.roundings(left, right, dtype)

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        own, slopes = tuple(self._numbers), []
        for slope in self.kernel.slopes(self._restricted(pair)):
            columns = own if slope.columns is None else tuple(own[i] for i in slope.columns)
            slopes.append(replace(slope, columns=columns))
        return tuple(slopes)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        self._check_width(d)
        frequencies = self.kernel.spectrum(len(self.columns), q, rng, orthogonal=orthogonal)
        omega = np.zeros((d, q))
        omega[self._numbers] = frequencies.omega
        return replace(frequencies, omega=omega)

    @property
    def _numbers(self) -> list[int]:
        return [int(column) for column in self.columns]

    def _restricted(self, pair: Pair) -> Pair:
        """Return the pair of rows with these columns only."""
        numbers = self._numbers

        def select(rows: Any) -> Any:
            xp = namespace(rows)
            return rows[:, numbers] if xp is np else xp.take(rows, like(numbers, rows), axis=1)

        for points in pair.groups:
            self._check_width(points.width)
        return pair.mapped(("columns", tuple(numbers)), select)

    def _check_width(self, d: int) -> None:
        last = max(self._numbers)
        if last >= d:
            raise ValueError(f"{self!r}: column {last} is out of range for {d} columns.")

    def __repr__(self) -> str:
        columns = list(self.columns) if np.iterable(self.columns) else self.columns
        return f"{as_operand(self.kernel)}.on_columns({columns})"


def _diagonal_slopes(kernel: Kernel, pair: Pair, factor: Any) -> tuple[Slopes, ...]:
    """Return the derivatives of k(x, x) by ‖x‖², times a factor."""
    diagonal = pair.diagonal
    slopes = []
    for slope in kernel.slopes(diagonal):
        by_norm = slope.dot + 2 * slope.norm
        column = by_norm if np.ndim(by_norm) == 0 or pair is diagonal else by_norm[:, None]
        slopes.append(Slopes(norm=column * factor, columns=slope.columns))
    return tuple(slopes)

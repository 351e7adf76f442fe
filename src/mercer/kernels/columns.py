"""Kernels of a part of the rows: some columns, or a function of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import like, namespace
from mercer.kernels.algebra import Power, Product, Scaled
from mercer.kernels.base import Either, Kernel
from mercer.kernels.parameters import is_number, require
from mercer.kernels.points import Points
from mercer.kernels.slopes import Frequencies, Slopes
from mercer.kernels.sums import Composed, Sum, tight


class OnColumns(Composed):
    """A kernel of some of the columns, so that a table of many kinds can have a kernel for each.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> k = RBF(1.0).on_columns([0]) + Linear().on_columns([1, 2])
    >>> k([[0.0, 1.0, 2.0]])
    array([[6.]])
    """

    def __init__(self, kernel: Kernel, columns: Sequence[int]) -> None:
        self.kernel, self.columns = kernel, columns

    def check(self) -> None:
        given = self.columns if isinstance(self.columns, (list, tuple, np.ndarray)) else []
        counts = all(isinstance(c, (int, np.integer)) and is_number(c) and c >= 0 for c in given)
        once = counts and 0 < len(given) == len(set(given))
        require(self, "columns", once, "a list of column numbers from 0, each once (no mask)")
        super().check()
        if self.kernel.takes == "strings":
            raise ValueError(f"{self!r}: strings have no columns.")

    def on(self, pair: Either) -> Any:
        return self._inner(self.kernel.on, pair)

    def apart(self, pair: Either) -> Any:
        return self._inner(self.kernel.apart, pair)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        return self.kernel.roundings(self._columns_of(x), self._columns_of(y), dtype)

    def _inner(self, formula: Callable[[Either], Any], pair: Either) -> Any:
        """Return a formula of the columns; what is wrong with one is said of the whole rows."""
        part = self._part(pair)
        try:
            return formula(part)
        except ValueError as error:
            if "column" not in str(error):
                raise
            columns = [int(c) for c in self.columns]
            raise ValueError(f"{error} Columns are counted among {columns}.") from None

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        own = tuple(int(c) for c in self.columns)

        def named(inner: tuple[Any, ...] | None) -> tuple[Any, ...]:
            return own if inner is None else tuple(own[i] for i in inner)

        found = self.kernel.slopes(self._part(pair))
        return tuple(replace(slope, columns=named(slope.columns)) for slope in found)

    def height(self, d: int) -> float:
        return self.kernel.height(len(self.columns))

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        self._draws(d, q)
        self._refuse_beyond(d)
        found = self.kernel.spectrum(len(self.columns), q, rng, orthogonal=orthogonal)
        omega = np.zeros((d, q))
        omega[[int(c) for c in self.columns]] = found.omega
        return replace(found, omega=omega)

    @property
    def psd(self) -> bool | None:
        return self.kernel.psd

    def _part(self, pair: Either) -> Either:
        part: Either = self._columns_of(pair)
        return part

    def _columns_of(self, whole: Any) -> Any:
        """Return these columns of a pair, or of points."""
        columns = [int(c) for c in self.columns]

        def part(rows: Any) -> Any:
            self._refuse_beyond(int(rows.shape[1]))
            xp = namespace(rows)
            if xp is np:
                return rows[:, columns]
            return xp.take(rows, like(columns, rows), axis=1)

        return whole.through(("columns", tuple(columns)), part)

    def _refuse_beyond(self, d: int) -> None:
        last = int(max(self.columns))
        if last >= d:
            raise ValueError(f"{self!r}: column {last} is not one of the {d} columns.")

    def __repr__(self) -> str:
        columns = list(self.columns) if np.iterable(self.columns) else self.columns
        return f"{tight(self.kernel, Sum, Product, Scaled, Power)}.on_columns({columns})"


class Separable(Kernel):
    """f(x) f(y) for a function of one row.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Parameters
    ----------
    f : callable
        Takes rows of shape (n, d), returns n numbers.

    Examples
    --------
    >>> from mercer.kernels import Separable
    >>> Separable(lambda rows: rows.sum(axis=1))([[1.0, 2.0]], [[3.0, 4.0]])
    array([[21.]])
    """

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f = f

    def on(self, pair: Either) -> Any:
        return self._of_f(pair).dot

    def apart(self, pair: Either) -> Any:
        return self._of_f(pair).sqdist

    def check(self) -> None:
        require(self, "f", callable(self.f), "a function of rows")

    def _of_f(self, pair: Either) -> Either:
        return pair.through(("f", id(self.f)), self._column)

    def _column(self, rows: Any) -> Any:
        values = self.f(rows)
        n = int(rows.shape[0])
        if namespace(rows) is np:  # whole numbers would overflow
            values = np.asarray(values, rows.dtype)
        if tuple(getattr(values, "shape", ())) != (n,):
            raise ValueError(
                f"Separable: f returned shape {tuple(getattr(values, 'shape', ()))} for {n} rows; "
                f"it must return one number a row."
            )
        return values[:, None]

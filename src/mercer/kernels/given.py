"""Kernels that are given: a matrix, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Array, to_numpy
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal


class Precomputed(Kernel):
    """A kernel matrix K; rows are numbers of its rows: k(i, j) = K[i, j].

    Parameters
    ----------
    matrix : array of shape (n, m)
        The kernel between n and m things.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Precomputed
    >>> Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))([[1]], [[0], [1]])
    array([[1., 3.]])
    """

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    @property
    def psd(self) -> bool | None:
        return None

    def on(self, pair: Either) -> Any:
        if isinstance(pair, Diagonal):
            at = self._numbers(pair.points.rows, 0)
            return self.matrix[at, at]
        x = self._numbers(pair.block.x.rows[pair.rows], 0)
        y = self._numbers(pair.block.y.rows[pair.columns], 1)
        return self.matrix[np.ix_(x, y)]

    def _numbers(self, rows: Any, side: int) -> np.ndarray[Any, Any]:
        numbers, size = to_numpy(rows), self.matrix.shape[side]
        at = numbers[:, 0].astype(int)
        bad = (at != numbers[:, 0]) | (at < 0) | (at >= size)
        if numbers.shape[1] != 1 or bad.any():
            raise ValueError(
                f"Precomputed takes one column of row numbers from 0 to {size - 1}, "
                f"and was given {numbers[bad][:1].tolist() or numbers.shape}."
            )
        return at


class FromFunction(Kernel):
    """A kernel that is a function.

    Parameters
    ----------
    f : callable
        f(X, Y) for two groups of rows gives the matrix of all pairs; or f(x, y) for two
        rows gives a number, with `pairwise`.
    pairwise : bool
        Whether f takes two rows.

    Examples
    --------
    >>> from mercer.kernels import FromFunction
    >>> FromFunction(lambda X, Y: X @ Y.T)([[1.0, 2.0]])
    array([[5.]])
    >>> FromFunction(lambda x, y: min(x[0], y[0]), pairwise=True)([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self, f: Callable[[Any, Any], Any], pairwise: bool = False) -> None:
        self.f, self.pairwise = f, pairwise

    @property
    def psd(self) -> bool | None:
        return None

    def __call__(self, X: Any, Y: Any = None) -> Array:
        K = super().__call__(X, Y)
        if Y is None:
            apart = np.abs(to_numpy(K) - to_numpy(K).T)
            worst = float(apart.max(initial=0.0))
            if worst > 1e-8 * float(np.abs(to_numpy(K)).max(initial=0.0)):
                i, j = np.unravel_index(int(apart.argmax()), apart.shape)
                raise ValueError(
                    f"FromFunction: the matrix of {_name(self.f)} is not symmetric: "
                    f"k({i}, {j}) = {K[i, j]!r} and k({j}, {i}) = {K[j, i]!r}. "
                    f"A kernel must be."
                )
        return K

    def on(self, pair: Either) -> Any:
        if isinstance(pair, Diagonal):
            rows = pair.points.rows
            return np.array([self._one(rows, i) for i in range(len(rows))])
        x, y = pair.block.x.rows[pair.rows], pair.block.y.rows[pair.columns]
        if self.pairwise:
            return np.array([[float(self.f(a, b)) for b in y] for a in x])
        made = self.f(x, y)
        if tuple(np.shape(made)) != pair.shape:
            raise ValueError(
                f"FromFunction: {_name(self.f)} returned shape {tuple(np.shape(made))} for "
                f"{len(x)} and {len(y)} rows; it must return {pair.shape}. "
                f"For a function of two rows pass pairwise=True."
            )
        return made

    def _one(self, rows: Any, i: int) -> float:
        if self.pairwise:
            return float(self.f(rows[i], rows[i]))
        return float(np.asarray(self.f(rows[i : i + 1], rows[i : i + 1]))[0, 0])


def _name(f: Any) -> str:
    return getattr(f, "__name__", repr(f))

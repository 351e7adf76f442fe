"""Kernels that are given: a matrix, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import Array, like, namespace, on_accelerator, to_numpy
from mercer.config import get_config
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import Diagonal
from mercer.kernels.points import these

# Of every tile this many rows and columns are tried the other way round.
_TRIED = 8


class Precomputed(Kernel):
    """A kernel matrix K; rows are numbers of its rows: k(i, j) = K[i, j].

    Parameters
    ----------
    matrix : array-like of shape (n, m)
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
        sparse = hasattr(self.matrix, "tocsr")
        K = self.matrix.tocsr() if sparse else to_numpy(self.matrix)
        if len(K.shape) != 2:
            raise ValueError(f"Precomputed: the matrix has shape {K.shape}; it must have two axes.")
        if isinstance(pair, Diagonal):
            rows = pair.points.rows
            own = K[_numbers(rows, K.shape[0]), _numbers(rows, K.shape[1])]
            return _there(
                np.asarray(own.toarray() if hasattr(own, "toarray") else own).ravel(), rows
            )
        x, y = these(pair.block.x.rows, pair.rows), these(pair.block.y.rows, pair.columns)
        at, beside = _numbers(x, K.shape[0]), _numbers(y, K.shape[1])
        return _there(K[at][:, beside].toarray() if sparse else K[np.ix_(at, beside)], x)


def _numbers(rows: Any, size: int) -> np.ndarray[Any, Any]:
    """Return row numbers, checked."""
    numbers = to_numpy(rows.toarray() if hasattr(rows, "toarray") else rows)
    with np.errstate(invalid="ignore"):
        at = numbers.astype(np.int64)
    bad = (at != numbers) | (at < 0) | (at >= size)
    if numbers.shape[1] != 1 or bad.any():
        given = f"{numbers[bad][0]}" if numbers.shape[1] == 1 else f"{numbers.shape[1]} columns"
        raise ValueError(
            f"Precomputed takes one column of row numbers from 0 to {size - 1}, "
            f"and was given {given}."
        )
    return np.asarray(at[:, 0])


class FromFunction(Kernel):
    """A kernel that is a function.

    Of every block some pairs are tried the other way round: a function that is not symmetric
    is refused.

    Parameters
    ----------
    f : callable
        f(X, Y) for two groups of rows gives the matrix of all pairs; or f(x, y) for two
        rows gives a number, with `pairwise`. Rows may be vectors or strings.
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

    takes = "anything"

    def __init__(self, f: Callable[[Any, Any], Any], pairwise: bool = False) -> None:
        self.f, self.pairwise = f, pairwise

    @property
    def psd(self) -> bool | None:
        return None

    def check(self) -> None:
        if not callable(self.f):
            raise ValueError(f"FromFunction: f={self.f!r} must be a function of two arguments.")

    def on(self, pair: Either) -> Any:
        if isinstance(pair, Diagonal):
            rows = _host(pair.points.rows)
            each = [these(rows, slice(i, i + 1)) for i in range(len(pair.points))]
            made = np.array([self._between(x, x).item() for x in each])
            return _there(made, pair.points.rows)
        x, y = these(pair.block.x.rows, pair.rows), these(pair.block.y.rows, pair.columns)
        made = self._between(_host(x), _host(y))
        self._try_symmetry(_host(x), _host(y), made)
        return _there(made, x)

    def _between(self, x: Any, y: Any) -> np.ndarray[Any, Any]:
        """Return the matrix between two groups of rows, on the host."""
        n, m = (len(rows) if isinstance(rows, list) else int(rows.shape[0]) for rows in (x, y))
        if self.pairwise:
            left, right = ([these(r, i) for i in range(k)] for r, k in ((x, n), (y, m)))
            numbers = [self._number(a, b) for a in left for b in right]
            return np.array(numbers, np.float64).reshape(n, m)
        made = to_numpy(self.f(x, y))
        if made.shape != (n, m) or made.dtype.kind not in "fiub":
            raise ValueError(
                f"FromFunction: {_name(self.f)} returned {made.dtype} of shape {made.shape} for "
                f"{n} and {m} rows; it must return numbers of shape {(n, m)}. "
                f"For a function of two rows pass pairwise=True."
            )
        return made

    def _number(self, x: Any, y: Any) -> float:
        made = self.f(x, y)
        try:
            return float(made)
        except (TypeError, ValueError):
            raise ValueError(
                f"FromFunction: {_name(self.f)} returned {made!r} for two rows; it must return "
                f"a number. For a function of two groups of rows pass pairwise=False."
            ) from None

    def _try_symmetry(self, x: Any, y: Any, made: np.ndarray[Any, Any]) -> None:
        """Try rows from all over the tile; NaN tells nothing, and hides nothing."""
        at, beside = (_spread(size) for size in made.shape)
        x, y, made = _named(x, at), _named(y, beside), made[np.ix_(at, beside)]
        apart = np.abs(made - self._between(y, x).T)
        rounding = np.finfo(made.dtype if made.dtype.kind == "f" else np.float64).eps ** 0.5
        finite = np.where(np.isfinite(apart), apart, 0.0)
        size = np.abs(made[np.isfinite(made)]).max(initial=0.0)
        if (finite > rounding * size).any():
            i, j = np.unravel_index(int(np.argmax(finite)), apart.shape)
            raise ValueError(
                f"FromFunction: {_name(self.f)} is not symmetric: k(x, y) and k(y, x) are "
                f"{apart[i, j]:g} apart for x = {these(x, int(i))!r} and "
                f"y = {these(y, int(j))!r}. A kernel must be."
            )


def _spread(size: int) -> np.ndarray[Any, Any]:
    """Return some of the numbers below a size, evenly spaced."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(_TRIED, size)).astype(np.int64))


def _named(rows: Any, at: np.ndarray[Any, Any]) -> Any:
    """Return the named rows."""
    if isinstance(rows, list):
        return [rows[i] for i in at]
    if isinstance(rows, np.ndarray) or hasattr(rows, "tocsr"):
        return rows[at]
    return namespace(rows).take(rows, like(at, rows), axis=0)


def _there(made: np.ndarray[Any, Any], rows: Any) -> Any:
    """Bring a host array to where the rows live."""
    return made if isinstance(rows, list) or hasattr(rows, "tocsr") else like(made, rows)


def _name(f: Any) -> str:
    return getattr(f, "__name__", repr(f))


def _host(rows: Any) -> Any:
    """Return rows as a function takes them: those that are on a device by the settings, at home.

    A function of tensors gets tensors where the user's own rows are.
    """
    return to_numpy(rows) if get_config().device is not None and on_accelerator(rows) else rows

"""What a kernel is: a formula on a pair, and the algebra that kernels are closed under."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from mercer.arrays import (
    Array,
    like,
    moved,
    namespace,
    numpy_dtype,
    to_numpy,
    together,
)
from mercer.data import Source, StringSource, as_source, at_home, placed
from mercer.kernels.evaluate import matrix
from mercer.kernels.pair import Beside, Diagonal, Pair, require_dense
from mercer.kernels.parameters import as_float, is_number
from mercer.kernels.points import Points
from mercer.kernels.rounding import dot
from mercer.kernels.slopes import Frequencies, Slopes
from mercer.params import Params

Either = Pair | Diagonal
"""What a formula is written on: rows beside others, or each beside itself."""

_FOURIER = "Fourier features", "RBF, Laplacian, Matern, RationalQuadratic and their sums have"
_GIVEN = {
    "vectors": ("numbers", "a kernel of vectors, such as RBF"),
    "strings": ("strings", "a string kernel, such as Subsequence"),
}


class Kernel(Params, ABC):
    """A similarity of rows: an inner product in a space of features.

    Kernels add, multiply and scale: ``RBF(0.1) + 2 * Polynomial(5)``. Called with rows they
    give a matrix.
    """

    __array_ufunc__ = None  # NumPy's numbers leave sums and products with kernels to them
    takes = "vectors"
    """What rows must be: "vectors", "strings" or "anything"."""

    moves = False
    """Whether the centred matrix stays the same when all rows are shifted."""
    far = False
    """Whether rows far from zero cost its values digits, so that a shift gains some. Not those
    of a distance: `Pair.sqdist` keeps them, and a shift would round rows that are close."""
    sqdist_is_own = False
    """Whether the squared distance in its space is that of the rows."""
    steepest = 0.0
    """Bound on its slope by the distance of two rows, over k(x, x)."""

    @abstractmethod
    def on(self, pair: Either) -> Any:
        """Return the kernel of a pair: the formula."""

    @property
    def psd(self) -> bool | None:
        """Whether every matrix of it is positive semi-definite; None where that is unknown."""
        return True

    def check(self) -> None:
        """Refuse parameters that make no sense, here and in the kernels it is made of."""
        for value in self.get_params(deep=False).values():
            if isinstance(value, Kernel):
                value.check()

    def slopes(self, pair: Either) -> tuple[Slopes, ...]:
        """Return its derivatives on a pair, for gradients by x; `gradient` puts them together.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> from mercer.kernels.pair import Beside
        >>> from mercer.kernels.points import Points
        >>> pair = next(Beside(Points([[1.0]]), Points([[2.0]])).tiles(whole=True))
        >>> Linear().slopes(pair)
        (Slopes(dot=1.0, sqdist=0.0, norm=0.0, columns=None),)
        """
        self._has_no("gradient", "RBF, Polynomial, Matern and what is made of them have one")

    def spectrum(
        self, d: int, q: int, rng: np.random.Generator, *, orthogonal: bool = False
    ) -> Frequencies:
        """Draw q Fourier frequencies for rows of d columns; `orthogonal`: d at a time (Yu 2016).

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.kernels import RBF
        >>> RBF(0.5).spectrum(3, 100, np.random.default_rng(0)).omega.shape
        (3, 100)
        """
        self._has_no(*_FOURIER)

    def height(self, d: int) -> float:
        """Return k(x, x), the same for every x, of a kernel that has Fourier features."""
        if type(self).spectrum is Kernel.spectrum:
            self._has_no(*_FOURIER)
        return float(self.on_itself(Points(np.zeros((1, d))))[0])

    def _draws(self, d: int, q: int) -> None:
        """Refuse what no frequencies can be drawn for."""
        self.check()
        for name, value, least in (("d", d, 0), ("q", q, 1)):
            if not (is_number(value) and value == value // 1 >= least):
                raise ValueError(
                    f"{self!r}: {name}={value!r} must be a whole number, {least} or more."
                )
        self.height(d)  # which says so where it has no frequencies

    def on_itself(self, points: Points) -> Array:
        """Return k(x, x) of every row."""
        values = self.on(Diagonal(points))
        return points.full(values) if isinstance(values, float) else values

    def apart(self, pair: Either) -> Any:
        """Return the squared distances k(x,x) + k(y,y) − 2k(x,y) in the kernel's space.

        Zero between equal rows, where the difference would be rounding.
        """
        x, y = pair.diagonals(self)
        apart = _positive(x + y - 2.0 * self.on(pair))
        if self.takes != "vectors":
            return apart
        return namespace(apart).where(pair.sqdist == 0, 0.0 * apart, apart)

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Bound the error of computed values, for each row of x or for all of them.

        In unit roundoffs u of the dtype: |k̂(x,y) − k(x,y)| ≤ C u √(k(x,x)k(y,y)) beside any row
        of y. The default is that of a sum over the columns of terms of one sign; a kernel that
        loses more digits must say so, because certificates rest on it.
        """
        return dot(x, dtype)

    def sqdist_of(self, apart: Any) -> Any:
        """Return the squared distances of rows that are so far `apart` in the kernel's space.

        Infinite where no two rows are.
        """
        self._has_no("distance that tells the rows'", "RBF, Matern and Linear have one")

    # What users call.

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return the matrix k(x, y) for all rows x of X and y of Y, or of X and X.

        Examples
        --------
        >>> from mercer.kernels import RBF
        >>> RBF(0.5)([[0.0], [1.0]]).round(3)
        array([[1.   , 0.607],
               [0.607, 1.   ]])
        """
        x, y = self._sides(X, Y)
        return matrix(self.on, x, y)

    def diag(self, X: Any) -> Array:
        """Return k(x, x) of every row.

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> Polynomial(2).diag([[1.0], [2.0]])
        array([ 4., 25.])
        """
        x, _ = self._sides(X, None)
        rows = x.map(lambda block: self.on_itself(Points(block.rows, block.start))[:, None], 1)
        return at_home(rows).collect()[:, 0]

    def distances(self, X: Any, Y: Any = None) -> Array:
        r"""Return the distances :math:`\sqrt{k(x,x)+k(y,y)-2k(x,y)}` in the kernel's space.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear().distances([[0.0, 0.0]], [[3.0, 4.0]])
        array([[5.]])
        """
        x, y = self._sides(X, Y)
        return matrix(lambda pair: _root(self.apart(pair)), x, y)

    def gradient(self, X: Any, Y: Any, weights: Any) -> Array:
        r"""Return :math:`\nabla_x \sum_j a_j k(x, y_j)` at every row x of X.

        Parameters
        ----------
        X, Y : array-like of shape (n, d) and (m, d)
            Rows.
        weights : array-like of shape (m,) or (n, m)
            The a of every y, the same for all x or not.

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> Polynomial(2).gradient([[1.0]], [[2.0]], [1.0])
        array([[12.]])
        """
        sides = self._sides(X, Y)
        x, y = (Points(side.whole()) for side in sides)
        pair = next(Beside(x, y).tiles(whole=True))
        slopes = self.slopes(pair)
        for points in (x, y):
            require_dense(self, points.rows)
        a = to_numpy(weights)
        if a.shape not in (pair.shape, pair.shape[1:]):
            raise ValueError(
                f"{self!r}: weights have shape {a.shape}; it must be {pair.shape[1:]}, one for "
                f"every row of Y, or {pair.shape}."
            )
        xp, dtype = namespace(x.rows), numpy_dtype(x.rows)

        def only(columns: Sequence[int]) -> Array:
            return like(np.isin(np.arange(x.rows.shape[1]), columns), x.rows, dtype)

        a = like(np.broadcast_to(a, pair.shape), x.rows, dtype)
        total = 0.0 * x.rows
        for part in slopes:
            dot, apart, norm = (a * slope for slope in (part.dot, part.sqdist, part.norm))
            own = 2.0 * xp.sum(apart + norm, axis=1)[:, None] * x.rows
            found = own + (dot - 2.0 * apart) @ y.rows
            total = total + (found if part.columns is None else found * only(part.columns))
        return moved(total, sides[0].home)

    def _sides(self, X: Any, Y: Any) -> tuple[Source, Source]:
        """Return both groups of rows, checked: of the same kind, and as wide."""
        self.check()
        x = self._rows(X)
        y = x if Y is None else self._rows(Y)
        if not together(x.reference, y.reference):
            raise ValueError(
                f"{self!r}: X and Y are arrays of two libraries, or live on two devices. Pass both "
                f"as NumPy arrays, or both as the other library's, on one device."
            )
        if x.shape[1:] != y.shape[1:]:
            raise ValueError(
                f"{self!r}: X has {x.shape[1]} columns and Y has {y.shape[1]}. "
                f"Pass rows of the same columns."
            )
        return x, y

    def _rows(self, X: Any) -> Source:
        source = self._strings(X) if self.takes == "strings" else as_source(X)
        given = "strings" if isinstance(source, StringSource) else "vectors"
        if self.takes not in (given, "anything"):
            numbers, remedy = _GIVEN[given]
            raise ValueError(
                f"{self!r} takes rows of {self.takes}, and was given {numbers}. Use {remedy}."
            )
        return placed(source)

    def _strings(self, X: Any) -> Source:
        """Return rows that must be strings; say how to pass them where they are not."""
        flat = getattr(X, "ndim", 1) == 1 and hasattr(X, "__len__") and not isinstance(X, str)
        if flat and len(X) == 0:
            return StringSource([])
        try:
            source = as_source(X)
        except (ValueError, TypeError) as error:
            remedy = "Pass a list of str"
            if hasattr(X, "columns"):
                remedy += ', such as the column of a table, df["name"]'
            raise ValueError(f"{self!r} takes rows of strings: {error} {remedy}.") from None
        return source

    def _has_no(self, what: str, those: str) -> NoReturn:
        raise ValueError(f"{self!r} has no {what}; {those}.")

    # The algebra.

    def __add__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.sums import Constant, Sum

        if isinstance(other, Kernel):
            return Sum(self, other)
        return Sum(self, Constant(as_float(other))) if is_number(other) else NotImplemented

    def __radd__(self, other: float) -> Kernel:
        return self + other

    def __mul__(self, other: Kernel | float) -> Kernel:
        from mercer.kernels.algebra import Product, Scaled

        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(as_float(other), self) if is_number(other) else NotImplemented

    def __rmul__(self, other: float) -> Kernel:
        return self * other

    def __pow__(self, power: int) -> Kernel:
        from mercer.kernels.algebra import Power

        return Power(self, power) if is_number(power) else NotImplemented

    def normalized(self) -> Kernel:
        """Return k(x,y)/√(k(x,x)k(y,y)).

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> Polynomial(2).normalized()([[1.0], [3.0]]).round(2)
        array([[1. , 0.8],
               [0.8, 1. ]])
        """
        from mercer.kernels.algebra import Normalized

        return Normalized(self)

    def rbf(self, gamma: float) -> Kernel:
        """Return exp(−γ‖φ(x)−φ(y)‖²): an RBF in this kernel's space.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear().rbf(0.5)([[0.0]], [[1.0]]).round(4)  # the RBF itself
        array([[0.6065]])
        """
        from mercer.kernels.algebra import InSpace

        return InSpace(self, gamma)

    def on_columns(self, columns: Sequence[int]) -> Kernel:
        """Return this kernel on some of the columns.

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> Linear().on_columns([0, 2])([[1.0, 5.0, 2.0]])
        array([[5.]])
        """
        from mercer.kernels.columns import OnColumns

        plain = np.asarray(columns).tolist() if np.iterable(columns) else columns
        return OnColumns(self, plain)


def _root(squares: Any) -> Any:
    return squares**0.5 if isinstance(squares, float) else namespace(squares).sqrt(squares)


def _positive(values: Any) -> Any:
    return namespace(values).maximum(values, 0.0 * values)

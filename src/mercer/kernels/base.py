"""Base class of kernels: formula, gradients, Fourier features and rounding errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.random import Generator

from mercer.arrays import (
    Array,
    Vector,
    like,
    namespace,
    numpy_dtype,
    reference_of,
    same_device,
    to_device_of,
    to_numpy,
)
from mercer.checks import is_real
from mercer.data import Source, StringSource, as_source, to_configured_device, to_output_device
from mercer.kernels.evaluate import gram_matrix
from mercer.kernels.pair import DiagonalPair, Pair, Slopes, TilePair, dot_error, require_dense
from mercer.kernels.points import Points
from mercer.params import Params


@dataclass(frozen=True)
class Frequencies:
    r"""Fourier features of a kernel: :math:`k(x,y) \approx \sum_i a_i^2\cos(\omega_i^T(x-y))`.

    Attributes
    ----------
    omega : ndarray of shape (d, q)
        Frequencies.
    amplitude : ndarray of shape (q,)
        Amplitudes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> f = RBF(0.5).spectrum(1, 10_000, np.random.default_rng(0))
    >>> float(np.sum(f.amplitude**2 * np.cos(f.omega[0] * 1.0)).round(1))
    0.6
    """

    omega: np.ndarray[Any, Any]
    amplitude: Vector

    @classmethod
    def concat(cls, parts: Sequence[Frequencies]) -> Frequencies:
        """Return the frequencies of a sum of kernels."""
        return cls(
            np.hstack([part.omega for part in parts]),
            np.concatenate([part.amplitude for part in parts]),
        )


KERNELS: dict[str, type[Kernel]] = {}
"""The kernels that have a `name`, by every name that text may call them."""
_OPERATIONS: dict[str, Callable[..., Kernel]] = {}


class Kernel(Params, ABC):
    """Base class of kernels: inner products of rows in a feature space.

    Kernels add, multiply and scale: ``RBF(0.1) + 2 * Polynomial(5)``. A subclass implements `on`,
    its formula, and overrides `roundings` where the default does not hold. It may add `slopes`
    (for gradients), `draw` (for Fourier features), a more accurate `sqdist`, and its inverse
    `input_sqdist`. One with a `name` can be written as text: ``parse("rbf(0.1)")``.

    Examples
    --------
    >>> from mercer.kernels import Linear, Polynomial
    >>> k = Polynomial(2)
    >>> k([[1.0], [3.0]])
    array([[  4.,  16.],
           [ 16., 100.]])
    >>> k.diag([[1.0], [3.0]])
    array([  4., 100.])
    >>> k.normalized()([[1.0]], [[3.0]]), k.on_columns([1])([[5.0, 1.0]])
    (array([[0.8]]), array([[4.]]))
    >>> Linear().distances([[0.0, 0.0]], [[3.0, 4.0]]), k.gradient([[1.0]], [[2.0]], [1.0])
    (array([[5.]]), array([[12.]]))
    """

    __array_ufunc__ = None  # leaves sums and products of NumPy numbers and kernels to kernels

    name: ClassVar[str]
    """Name in text and in ``KernelPCA(kernel=...)``, scikit-learn's if it has one; optional."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Names beside `name` and that of the class, which may be in lower case."""
    name_params: ClassVar[dict[str, Any]] = {}
    """Parameters that `name` alone implies, where scikit-learn's kernel has other defaults."""
    ignores_gamma: ClassVar[bool] = False
    """Whether scikit-learn accepts, and ignores, a gamma for this kernel."""
    operation: ClassVar[str]
    """The operation on kernels that the class is the result of, such as "sum"; optional."""

    # Any: subclasses override these by attributes or, where they depend on others, by properties.
    takes: Any = "vectors"
    """What rows must be: "vectors", "strings" or "anything"."""
    psd: Any = True
    """Whether all kernel matrices are positive semi-definite; None if unknown."""
    shift_invariant: Any = False
    """Whether a shift of all rows leaves the centered kernel matrix unchanged."""
    offset_sensitive: Any = False
    """Whether a common offset of the rows costs digits, which a shift would regain.

    Not for functions of the distance: `Pair.sqdist` keeps their digits, and a shift would round
    close rows.
    """
    is_euclidean: Any = False
    """Whether distances in feature space are those of the rows."""
    lipschitz: Any = math.inf
    """Bound on |∂k/∂‖x−y‖| / k(x, x) of a function of the distance; infinite if unknown.

    A sum that also has a `Linear` needs it: the sum shifts the rows for that, and rounds them.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "operation" in vars(cls):
            _OPERATIONS[cls.operation] = cls
        if "name" in vars(cls):
            aliases = vars(cls).get("aliases", ())
            for name in (cls.__name__, cls.__name__.lower(), *aliases, cls.name):
                other = KERNELS.get(name, cls)
                # A class that is defined again, as in a notebook, replaces the one before.
                if (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
                    raise TypeError(f"{other} and {cls} are both named {name!r}")
                KERNELS[name] = cls

    @abstractmethod
    def on(self, pair: Pair) -> Any:
        """Return the kernel values of a pair: the formula."""

    def check(self) -> None:
        """Raise if parameters are invalid, including those of nested kernels."""
        for value in self.get_params(deep=False).values():
            if isinstance(value, Kernel):
                value.check()

    def slopes(self, pair: Pair) -> tuple[Slopes, ...]:
        """Return the derivatives on a pair; `gradient` puts them together."""
        self._has_no("gradient", "RBF, Polynomial, Matern and combinations of them have one")

    def spectrum(self, d: int, q: int, rng: Generator, *, orthogonal: bool = False) -> Frequencies:
        """Draw q Fourier frequencies for rows of d columns.

        If `orthogonal`, they are orthogonal, d at a time (Yu et al. 2016).
        """
        self.check()
        for name, value, least in (("d", d, 0), ("q", q, 1)):
            if not (is_real(value) and value == value // 1 >= least):
                raise ValueError(
                    f"{self!r}: {name}={value!r} must be an integer of at least {least}."
                )
        self.require_spectrum()
        return self.draw(d, q, rng, orthogonal)

    def draw(self, d: int, q: int, rng: Generator, orthogonal: bool) -> Frequencies:
        """Draw the frequencies of `spectrum`, which checks the parameters."""
        raise NotImplementedError

    def require_spectrum(self) -> None:
        """Raise if the kernel, or a part of it, has no Fourier features."""
        if type(self).draw is Kernel.draw and type(self).spectrum is Kernel.spectrum:
            those = {k.__name__ for k in KERNELS.values() if k.draw is not Kernel.draw}
            self._has_no("Fourier features", f"{', '.join(sorted(those))} and their sums have them")

    def value_at_zero(self, d: int) -> float:
        """Return k(x, x) of a kernel with Fourier features, which is the same for every x."""
        self.require_spectrum()
        return float(self.on_diagonal(Points(np.zeros((1, d))))[0])

    def on_diagonal(self, points: Points) -> Array:
        """Return k(x, x) of every row."""
        values = self.on(DiagonalPair(points))
        if not isinstance(values, float):
            return values
        host, reference = np.full(len(points), values), reference_of(points.rows)
        return (
            host if isinstance(points.rows, list) else like(host, reference, numpy_dtype(reference))
        )

    def sqdist(self, pair: Pair) -> Any:
        """Return the squared distances k(x,x) + k(y,y) − 2k(x,y) in feature space.

        Zero between equal rows, where the difference would be a rounding error.
        """
        x, y = pair.diagonals(self)
        sqdist = x + y - 2.0 * self.on(pair)
        xp = namespace(sqdist)
        sqdist = xp.maximum(sqdist, 0.0 * sqdist)
        if self.takes != "vectors":
            return sqdist
        return xp.where(pair.sqdist == 0, 0.0 * sqdist, sqdist)

    def input_sqdist(self, sqdist: Any) -> Any:
        """Return the squared distances of rows, given those in feature space.

        Infinite where no two rows are that far apart.
        """
        self._has_no("inverse of its distances", "RBF, Matern and Linear have one")

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """Bound the rounding errors of computed kernel values, for each row of x or for all.

        Returns C with |k̂(x,y) − k(x,y)| ≤ C u √(k(x,x)k(y,y)) for every row of y, where k̂ is
        the value that is computed in this dtype and u its unit roundoff. The bounds of a
        certificate add up these errors: a kernel that loses more digits than the default, which
        holds for a sum over the columns of terms of one sign, must override it.
        """
        return dot_error(x, dtype)

    # What users call.

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return the matrix k(x, y) for all rows x of X and y of Y, or of X and X."""
        return gram_matrix(self.on, *self._sides(X, Y))

    def diag(self, X: Any) -> Array:
        """Return k(x, x) of every row."""
        x, _ = self._sides(X, None)
        rows = x.map(lambda block: self.on_diagonal(Points(block.rows, block.start))[:, None], 1)
        return to_output_device(rows).collect()[:, 0]

    def distances(self, X: Any, Y: Any = None) -> Array:
        r"""Return the distances :math:`\sqrt{k(x,x)+k(y,y)-2k(x,y)}` in feature space."""
        return gram_matrix(lambda pair: self.sqdist(pair) ** 0.5, *self._sides(X, Y))

    def gradient(self, X: Any, Y: Any, weights: Any) -> Array:
        r"""Return :math:`\nabla_x \sum_j a_j k(x, y_j)` at every row x of X.

        The weights a have the shape (m,), or (n, m) if they differ between rows of X.
        """
        sides = self._sides(X, Y)
        x, y = (Points(side.load()) for side in sides)
        pair = TilePair.between(x, y)
        slopes = self.slopes(pair)
        for points in (x, y):
            require_dense(self, points.rows)
        a = to_numpy(weights)
        if a.shape not in (pair.shape, pair.shape[1:]):
            raise ValueError(
                f"{self!r}: weights have shape {a.shape}, expected {pair.shape[1:]}, one per row "
                f"of Y, or {pair.shape}."
            )
        xp, dtype = namespace(x.rows), numpy_dtype(x.rows)
        a = like(np.broadcast_to(a, pair.shape), x.rows, dtype)
        total = 0.0 * x.rows
        for part in slopes:
            dot, sqdist, norm = (a * slope for slope in (part.dot, part.sqdist, part.norm))
            gradient = 2.0 * xp.sum(sqdist + norm, axis=1)[:, None] * x.rows
            gradient = gradient + (dot - 2.0 * sqdist) @ y.rows
            if part.columns is not None:
                mask = np.isin(np.arange(x.width), part.columns)
                gradient = gradient * like(mask, x.rows, dtype)
            total = total + gradient
        return to_device_of(total, sides[0].output_reference)

    # The algebra, of which `operation` of a class says what it implements.

    def __add__(self, other: Kernel | float) -> Kernel:
        if is_real(other):
            other = _OPERATIONS["constant"](_as_float(other))
        return _OPERATIONS["sum"](self, other) if isinstance(other, Kernel) else NotImplemented

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return _OPERATIONS["product"](self, other)
        return _OPERATIONS["scaled"](_as_float(other), self) if is_real(other) else NotImplemented

    __rmul__ = __mul__

    def __pow__(self, power: int) -> Kernel:
        return _OPERATIONS["power"](self, power) if is_real(power) else NotImplemented

    def normalized(self) -> Kernel:
        """Return k(x,y)/√(k(x,x)k(y,y)), a `Normalized`."""
        return _OPERATIONS["normalized"](self)

    def rbf(self, gamma: float) -> Kernel:
        """Return exp(−γ‖φ(x)−φ(y)‖²), an RBF in the feature space of this kernel."""
        return _OPERATIONS["rbf"](self, gamma)

    def on_columns(self, columns: Sequence[int]) -> Kernel:
        """Return this kernel restricted to some columns, an `OnColumns`."""
        plain = np.asarray(columns).tolist() if np.iterable(columns) else columns
        return _OPERATIONS["on_columns"](self, plain)

    def source(self, X: Any) -> Source:
        """Return rows as a source of the type that this kernel takes; raise otherwise."""
        try:
            # A list without entries would pass for numbers.
            size = len(X) if hasattr(X, "__len__") and getattr(X, "ndim", 1) == 1 else None
            empty = self.takes == "strings" and size == 0 and not isinstance(X, str)
            source = StringSource([]) if empty else as_source(X)
        except (ValueError, TypeError) as error:
            if self.takes != "strings":
                raise
            table = ', for example a column, df["name"]' if hasattr(X, "columns") else ""
            raise ValueError(
                f"{self!r} takes rows of strings: {error} Pass a list of str{table}."
            ) from None
        strings = isinstance(source, StringSource)
        if self.takes == ("vectors" if strings else "strings"):
            rows, remedy = ("numbers", "a kernel of vectors, such as RBF")
            if strings:
                rows, remedy = ("strings", "a string kernel, such as Subsequence")
            raise ValueError(f"{self!r} takes rows of {self.takes}, but got {rows}. Use {remedy}.")
        return to_configured_device(source)

    def _sides(self, X: Any, Y: Any) -> tuple[Source, Source]:
        """Return both groups of rows, checked: of one library and device, and of one width."""
        self.check()
        x = self.source(X)
        y = x if Y is None else self.source(Y)
        if not same_device(x.reference, y.reference):
            raise ValueError(
                f"{self!r}: X and Y are arrays of different libraries or on different devices. "
                f"Pass arrays of one library on one device."
            )
        if x.shape[1:] != y.shape[1:]:
            raise ValueError(
                f"{self!r}: X has {x.shape[1]} columns, but Y has {y.shape[1]}. "
                f"Pass rows with the same columns."
            )
        return x, y

    def _has_no(self, what: str, those: str) -> NoReturn:
        raise ValueError(f"{self!r} has no {what}; {those}.")


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError("a kernel parameter is too large for a float.") from None

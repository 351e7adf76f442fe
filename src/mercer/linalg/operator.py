"""What an operator is: a symmetric matrix known by its products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, cast, squares
from mercer.certificate import Figure
from mercer.data import ArraySource, checkpoint


class Operator(ABC):
    """A symmetric matrix known by its products.

    Attributes
    ----------
    size : int
        Rows of the matrix, and columns.
    trace : float
        Sum of its eigenvalues.
    psd : bool
        Whether no eigenvalue is negative.
    dtype : numpy.dtype
        The precision that products need to drive an iteration. `matmat` computes in the
        precision of the vectors it is given, so that the last product can be float64.
    rounding : float
        Bound on how far, in Frobenius norm, rounding can have moved the matrix.
    confidence : float
        Probability with which that bound holds.
    """

    size: int
    trace: float
    psd = True
    dtype: np.dtype[Any] = np.dtype(np.float64)
    rounding = 0.0
    confidence = 1.0
    block = 8
    """Vectors that a product is best made with at once."""
    look = 3
    """Products between two looks at what an iteration has found: a look decomposes a matrix."""
    square: Figure | None = None
    """Bound on the sum of the squared eigenvalues, where it is known."""
    probe: np.dtype[Any] | None = np.dtype(np.float64)
    """The precision of products that may be spent on bounds; None where they are too dear."""

    hidden: float | None = None
    """Bound on what the vectors an iteration began with do not see, where it is known."""

    @property
    def floor(self) -> float:
        """What rounding usually amounts to: eigenvalues below it are taken for zero."""
        return self.rounding

    @property
    def coarse(self) -> float:
        """Bound on how far, in Frobenius norm, those products can be from the matrix."""
        return self.rounding

    @property
    def reference(self) -> Array:
        """An array that lives where the vectors must live."""
        return np.empty(0)

    @property
    def rank(self) -> int:
        """The largest rank that it can have."""
        return self.size

    def project(self, V: Array) -> Array:
        """Return the part of V that lies where the operator is defined."""
        return V

    @abstractmethod
    def matmat(self, V: Array) -> Array:
        """Return the product with the columns of V, float64."""

    @abstractmethod
    def dense(self) -> Matrix:
        """Return the matrix, on the host."""


class Dense(Operator):
    """A matrix in memory."""

    def __init__(
        self, matrix: Matrix, *, psd: bool = True, rounding: float = 0.0, confidence: float = 1.0
    ) -> None:
        self.matrix = matrix
        self.size = matrix.shape[0]
        self.trace = float(np.trace(matrix))
        self.square = Figure(squares(matrix), "bound", confidence)
        self.psd = psd
        self.rounding = rounding
        self.confidence = confidence

    def matmat(self, V: Array) -> Array:
        return self.matrix @ V

    def dense(self) -> Matrix:
        return self.matrix


class Deflated(Operator):
    """An operator where an orthonormal basis does not see it: (I − QQᵀ)A(I − QQᵀ).

    Its products are with vectors that are orthogonal to the basis already.
    """

    def __init__(self, operator: Operator, basis: Array) -> None:
        self.operator = operator
        self.basis = cast(basis, np.float64)
        self.size, self.psd = operator.size, operator.psd
        self.trace = np.nan
        self.rounding = operator.rounding
        self.probe = operator.probe

    @property
    def reference(self) -> Array:
        return self.operator.reference

    @property
    def rank(self) -> int:
        return self.size - int(self.basis.shape[1])

    def project(self, V: Array) -> Array:
        return apart(self.basis.T, V)[0]

    def matmat(self, V: Array) -> Array:
        return self.project(self.operator.matmat(V))

    def dense(self) -> Matrix:
        return self.matmat(self.project(np.eye(self.size)))  # type: ignore[no-any-return]


def apart(rows: Array, W: Array) -> tuple[Array, Array]:
    """Return what of W is orthogonal to orthonormal rows, and the overlaps; in threads."""
    width = int(W.shape[1])
    with progress.quiet(), checkpoint.aside():
        part = ArraySource(rows).map(lambda block: block.rows @ W, width).collect()
        less = ArraySource(W).map(
            lambda block: block.rows - rows[:, block.start : block.stop].T @ part, width
        )
        return less.collect(), part

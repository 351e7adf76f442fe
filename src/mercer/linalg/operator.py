"""Symmetric operators, defined by their products, and figures with confidence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, cast, empty, is_foreign, namespace, orthogonalize, squares


class Figure(float):
    """A number that is a bound, a bound at some confidence, or an estimate.

    Its `kind` is "bound" or "estimate", its `confidence` the probability with which a bound holds.

    Examples
    --------
    >>> from mercer.certificate import Figure
    >>> Figure(0.25, "bound", 0.999)
    0.25 (at 99.9 % confidence)
    """

    kind: str
    confidence: float

    def __new__(cls, value: float, kind: str = "bound", confidence: float = 1.0) -> Figure:
        figure = super().__new__(cls, value)
        figure.kind = kind
        figure.confidence = confidence
        return figure

    def __getnewargs__(self) -> tuple[float, str, float]:  # type: ignore[override]
        return float(self), self.kind, self.confidence

    @property
    def label(self) -> str:
        """How certain the figure is: proven, at a confidence, or estimated."""
        if self.kind != "bound":
            return "estimated"
        return "proven" if self.confidence == 1.0 else f"at {100 * self.confidence:g} % confidence"

    def __repr__(self) -> str:
        return f"{float(self)!r} ({self.label})"

    def like(self, value: float) -> Figure:
        """Return another number that is as certain as this one."""
        return Figure(value, self.kind, self.confidence)


def least_certain(*figures: Figure) -> dict[str, Any]:
    """Return the kind and confidence of a number computed from these figures."""
    kind = "bound" if all(figure.kind == "bound" for figure in figures) else "estimate"
    return {"kind": kind, "confidence": min(figure.confidence for figure in figures)}


class Operator(ABC):
    """A symmetric matrix, defined by its products with vectors."""

    size: int
    """Number of rows and of columns."""
    trace: float
    """Sum of the eigenvalues."""
    psd = True
    """Whether no eigenvalue is negative."""
    dtype: np.dtype[Any] = np.dtype(np.float64)
    """Precision that suffices to drive an iteration; `matmat` computes in that of its vectors."""
    rounding = 0.0
    """Bound on how far rounding can have moved the matrix, in Frobenius norm."""
    confidence = 1.0
    """Probability with which that bound holds."""
    block = 8
    """Number of vectors for which a product is most efficient."""
    check_interval = 3
    """Products between two checks of convergence; a check decomposes a small matrix."""
    square: Figure | None = None
    """Bound on the sum of the squared eigenvalues, where it is known."""
    probe_dtype: np.dtype[Any] | None = np.dtype(np.float64)
    """Precision of the products that bounds may cost; None where they are too expensive."""
    unseen_bound: float | None = None
    """Bound on the norm of the part that the start vectors do not see, where it is known."""

    @property
    def noise_floor(self) -> float:
        """Typical rounding error; smaller eigenvalues are treated as zero."""
        return self.rounding

    @property
    def product_error(self) -> float:
        """Bound, in Frobenius norm, on the error of products in the precision `dtype`."""
        return self.rounding

    reference: Array = np.empty(0)
    """An array on the device where the vectors must live."""

    @property
    def rank(self) -> int:
        """The largest rank that it can have."""
        return self.size

    def project(self, V: Array) -> Array:
        """Project V onto the subspace in which the operator acts."""
        return V

    @abstractmethod
    def matmat(self, V: Array) -> Array:
        """Return the product with the columns of V, float64."""

    @abstractmethod
    def dense(self) -> Matrix:
        """Return the matrix, on the host."""


class DenseOperator(Operator):
    """A matrix in memory."""

    def __init__(
        self, matrix: Matrix, *, psd: bool = True, rounding: float = 0.0, confidence: float = 1.0
    ) -> None:
        self.matrix = matrix
        self.size = int(matrix.shape[0])
        if is_foreign(matrix):
            self.reference = empty((0,), matrix, np.float64)
        xp = namespace(matrix)
        self.trace = float(xp.linalg.trace(matrix, dtype=xp.float64))
        self.psd = psd
        self.rounding = rounding
        self.confidence = confidence

    @cached_property
    def square(self) -> Figure:  # type: ignore[override]
        return Figure(squares(self.matrix), "bound", self.confidence)

    def matmat(self, V: Array) -> Array:
        return self.matrix @ V

    def dense(self) -> Matrix:
        return self.matrix


class DeflatedOperator(Operator):
    """The part of an operator orthogonal to an orthonormal basis: (I − QQᵀ)A(I − QQᵀ).

    Its products must be with vectors that are orthogonal to the basis.
    """

    def __init__(self, operator: Operator, basis: Array) -> None:
        self.operator = operator
        self.basis = cast(basis, np.float64)
        self.size, self.psd = operator.size, operator.psd
        self.reference, self.trace = operator.reference, np.nan
        self.rounding = operator.rounding
        self.probe_dtype = operator.probe_dtype

    @property
    def rank(self) -> int:
        return self.size - int(self.basis.shape[1])

    def project(self, V: Array) -> Array:
        return orthogonalize(self.basis.T, V)[0]

    def matmat(self, V: Array) -> Array:
        return self.project(self.operator.matmat(V))

    def dense(self) -> Matrix:
        return self.matmat(self.project(np.eye(self.size)))  # type: ignore[no-any-return]

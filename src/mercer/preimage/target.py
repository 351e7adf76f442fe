"""Points of feature space as combinations of rows, and the distance of rows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    empty,
    held,
    like,
    namespace,
    on_accelerator,
    to_numpy,
)
from mercer.data import Block, as_source, placed
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair, TilePair
from mercer.kernels.points import Points
from mercer.projection import KernelProjection

Index = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True)
class FeatureComponents:
    """The components and the mean of a projection, as combinations Σ γⱼ Φ(yⱼ).

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    basis : Points
        The rows y, float64.
    coefficients : ndarray of shape (m, k + 1)
        γ is this matrix times the scores and a 1; the last column is the mean.
    products : ndarray of shape (m, k + 1)
        ⟨Φ(yⱼ), ·⟩ of the components and of the mean: K times the coefficients.
    reference : array
        An array on the device where kernels with the basis are computed.
    """

    kernel: Kernel
    basis: Points
    coefficients: Matrix
    products: Matrix
    reference: Array

    @cached_property
    def device_basis(self) -> Points:
        """The basis on that device."""
        host = isinstance(self.reference, np.ndarray)
        return self.basis if host else Points(like(self.basis.rows, self.reference))

    @cached_property
    def diag(self) -> Vector:
        """k(y, y) of every row of the basis."""
        return np.asarray(self.kernel.on_diagonal(self.basis), np.float64)

    @cached_property
    def scale(self) -> float:
        """Root mean square distance of the basis from its mean; never zero."""
        rows = self.basis.rows
        deviation = float(np.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))))
        largest = float(np.abs(rows).max(initial=0.0))
        # The deviation of equal rows is rounding.
        return deviation if deviation > 1e-14 * largest else max(largest, 1.0)

    def target(self, scores: Matrix) -> Target:
        """Return the points with these scores."""
        s = np.hstack([scores, np.ones((len(scores), 1))])
        norm_sq = np.einsum("ij,ij->i", s @ (self.coefficients.T @ self.products), s)
        gamma, dots = (
            held(like(s, self.reference) @ like(x.T, self.reference))
            for x in (self.coefficients, self.products)
        )
        return Target(self, gamma, dots, np.maximum(norm_sq, 0.0))


class Slope(NamedTuple):
    """ρ and its gradient at some rows r.

    ρ(r) = k(r,r) − 2Σ γⱼ k(r,yⱼ): aguilera (25) without the terms that do not depend on r. The
    gradient is 2(denominator·r − numerator), so r = numerator/denominator where it vanishes. `size`
    is the sum of the absolute terms of the denominator; 0 in columns that the kernel does not use.
    """

    value: Vector
    gradient: Matrix
    denominator: Matrix
    size: Matrix


@dataclass(frozen=True)
class Target:
    """Points PΦ(x) of feature space, one for every row of scores.

    Attributes
    ----------
    components : FeatureComponents
        The components and the mean.
    gamma : ndarray of shape (q, m)
        Coefficients of the points.
    dots : ndarray of shape (q, m)
        ⟨PΦ(x), Φ(yⱼ)⟩.
    norm_sq : ndarray of shape (q,)
        ‖PΦ(x)‖².
    """

    components: FeatureComponents
    gamma: Matrix
    dots: Matrix
    norm_sq: Vector

    @cached_property
    def basis_distances(self) -> Matrix:
        """Squared distances ‖PΦ(x) − Φ(yⱼ)‖²."""
        return np.maximum(self.norm_sq[:, None] - 2.0 * self.dots + self.components.diag, 0.0)

    def nearest(self, count: int) -> Index:
        """Return the rows of the basis that are nearest in feature space, in order."""
        count = min(count, self.basis_distances.shape[1])
        rows = np.argpartition(self.basis_distances, count - 1, axis=1)[:, :count]
        distances = np.take_along_axis(self.basis_distances, rows, axis=1)
        # Equal distances in the order of the rows: the partition leaves them in any order.
        order = np.lexsort((rows, distances), axis=1)
        return np.take_along_axis(rows, order, axis=1)

    def distance(self, rows: Matrix) -> Vector:
        """Return ‖Φ(r) − PΦ(x)‖²."""
        x = Points(like(rows, self.components.reference))
        gamma = like(self.gamma, self.components.reference)
        return np.maximum(self._value(x, self._pair(x), gamma) + self.norm_sq, 0.0)

    def slope(self, rows: Matrix, points: Index) -> Slope:
        """Return ρ and its gradient at a row for each of these points."""
        reference, kernel = self.components.reference, self.components.kernel
        x, xp = Points(like(rows, reference)), namespace(reference)
        y, pair = self.components.device_basis.rows, self._pair(x)
        gamma = self.gamma if len(points) == len(self.gamma) else self.gamma[points]
        gamma = like(gamma, reference)
        numerator, denominator, size = (np.zeros_like(rows) for _ in range(3))
        for part in kernel.slopes(pair):
            columns = slice(None) if part.columns is None else list(part.columns)
            attraction = _subtract(part.dot, 2.0 * part.sqdist)
            if attraction is not None:
                numerator[:, columns] += to_numpy((gamma * attraction) @ y[:, columns])
            own = _subtract(part.sqdist, -1.0 * part.norm)
            if own is not None:
                terms = gamma * own
                denominator[:, columns] -= 2.0 * to_numpy(xp.sum(terms, axis=1))[:, None]
                size[:, columns] += 2.0 * to_numpy(xp.sum(xp.abs(terms), axis=1))[:, None]
        for part in kernel.slopes(DiagonalPair(x)):
            columns = slice(None) if part.columns is None else list(part.columns)
            diag = np.broadcast_to(to_numpy(part.dot + 2.0 * part.norm), len(rows))[:, None]
            denominator[:, columns] += diag
            size[:, columns] += np.abs(diag)
        gradient = 2.0 * (denominator * rows - numerator)
        return Slope(self._value(x, pair, gamma), gradient, denominator, size)

    def _pair(self, x: Points) -> TilePair:
        return TilePair.between(x, self.components.device_basis)

    def _value(self, x: Points, pair: TilePair, gamma: Array) -> Vector:
        K, kernel = self.components.kernel.on(pair), self.components.kernel
        if isinstance(gamma, np.ndarray):
            cross: Any = np.einsum("ij,ij->i", gamma, np.broadcast_to(K, pair.shape))
        else:
            cross = to_numpy(namespace(gamma).sum(gamma * K, axis=1))
        return np.asarray(to_numpy(kernel.on_diagonal(x)) - 2.0 * cross, np.float64)


def feature_components(
    owner: Any, projection: KernelProjection, products: Matrix | None = None
) -> FeatureComponents:
    """Return the components of a projection; refuse a projection without dense rows."""
    kernel, y = projection.kernel, Points(_dense_basis(owner, projection))
    assert kernel is not None  # _dense_basis has refused it
    coef = np.column_stack([to_numpy(projection.components), projection.mean_coef])
    coef = coef.astype(np.float64, copy=False)
    if products is None:
        products = _products(kernel, y, coef)
    if on_accelerator(projection.basis):
        reference = empty((0,), projection.basis, np.float64)
    else:
        reference = placed(as_source(np.empty((1, 1)))).reference
    return FeatureComponents(kernel, y, coef, products, reference)


def _products(kernel: Kernel, y: Points, coef: Matrix) -> Matrix:
    """Return K times the coefficients, a block of rows of K at a time."""

    def multiply(block: Block) -> Matrix:
        pair = TilePair.between(Points(block.rows, block.start), y)
        return np.asarray(np.broadcast_to(kernel.on(pair), pair.shape) @ coef)

    source = as_source(y.rows).map(multiply, coef.shape[1], np.float64, 4 * 8 * len(y))
    return np.asarray(source.collect(label="components in feature space"))


def _dense_basis(owner: Any, projection: KernelProjection) -> Matrix:
    if projection.kernel is None:
        raise ValueError(
            f"{owner!r}: a precomputed kernel matrix has no rows to return to. Pass the rows, "
            f"and the kernel itself."
        )
    if hasattr(projection.basis, "tocsr"):
        raise ValueError(f"{owner!r} returns dense rows, and was given sparse. Pass X.toarray().")
    if isinstance(projection.basis, list) or projection.kernel.takes == "strings":
        raise ValueError(
            f"{owner!r}: {projection.kernel!r} is a kernel of strings, which have no pre-images. "
            f"Look for the nearest training strings among the scores instead."
        )
    return np.asarray(to_numpy(projection.basis), np.float64)


def _subtract(a: Any, b: Any) -> Any:
    """Return a − b; None if that is the number zero."""
    difference = a - b
    return None if np.ndim(difference) == 0 and difference == 0 else difference

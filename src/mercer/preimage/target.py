"""Points of feature space that are combinations of rows, and how far a row is from them."""

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
class Axes:
    """What all points PΦ(x) = Σ γⱼ Φ(yⱼ) of a projection share.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    basis : Points
        The rows y, float64.
    weights : ndarray of shape (m, k + 1)
        γ is weights times the scores and a 1: the last column is the mean's share.
    products : ndarray of shape (m, k + 1)
        ⟨Φ(yⱼ), ·⟩ of the components and of the mean: K times the weights.
    place : array
        An array that lives where kernels to the basis are computed.
    """

    kernel: Kernel
    basis: Points
    weights: Matrix
    products: Matrix
    place: Array

    @cached_property
    def there(self) -> Points:
        """The basis at that place."""
        host = isinstance(self.place, np.ndarray)
        return self.basis if host else Points(like(self.basis.rows, self.place))

    @cached_property
    def own(self) -> Vector:
        """k(y, y) of every row of the basis."""
        return np.asarray(self.kernel.on_diagonal(self.basis), np.float64)

    @cached_property
    def spread(self) -> float:
        """Root mean square distance of the basis from its mean; never zero."""
        rows = self.basis.rows
        wide = float(np.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))))
        size = float(np.abs(rows).max(initial=0.0))
        # Equal rows: what is left of their spread is rounding.
        return wide if wide > 1e-14 * size else max(size, 1.0)

    def target(self, scores: Matrix) -> Target:
        """Return the points that these scores stand for."""
        s = np.hstack([scores, np.ones((len(scores), 1))])
        length = np.einsum("ij,ij->i", s @ (self.weights.T @ self.products), s)
        gamma, near = (
            held(like(s, self.place) @ like(x.T, self.place)) for x in (self.weights, self.products)
        )
        return Target(self, gamma, near, np.maximum(length, 0.0))


class Slope(NamedTuple):
    """ρ at some rows r, and the two halves of its gradient 2(weight·r − pull).

    ρ(r) = k(r,r) − 2Σ γⱼ k(r,yⱼ), aguilera (25) without what does not depend on r. Where the
    gradient vanishes r = pull/weight; `size` is what the weight would be if nothing in it
    cancelled, and 0 in columns that the kernel does not look at.
    """

    value: Vector
    pull: Matrix
    weight: Matrix
    size: Matrix


@dataclass(frozen=True)
class Target:
    """Some points PΦ(x), one for every row of scores.

    Attributes
    ----------
    components : Components
        What they share.
    gamma : ndarray of shape (q, m)
        Their coefficients.
    near : ndarray of shape (q, m)
        ⟨PΦ(x), Φ(yⱼ)⟩.
    length : ndarray of shape (q,)
        ‖PΦ(x)‖².
    """

    axes: Axes
    gamma: Matrix
    near: Matrix
    length: Vector

    @cached_property
    def apart(self) -> Matrix:
        """Squared distances ‖PΦ(x) − Φ(yⱼ)‖²."""
        return np.maximum(self.length[:, None] - 2.0 * self.near + self.axes.own, 0.0)

    def nearest(self, count: int) -> Index:
        """Return the rows of the basis that are nearest in feature space, in order."""
        many = min(count, self.apart.shape[1])
        some = np.argpartition(self.apart, many - 1, axis=1)[:, :many]
        there = np.take_along_axis(self.apart, some, axis=1)
        # Equal distances in the order of the rows, whatever the partition made of them.
        order = np.lexsort((some, there), axis=1)
        return np.take_along_axis(some, order, axis=1)

    def distance(self, rows: Matrix) -> Vector:
        """Return ‖Φ(r) − PΦ(x)‖²."""
        x = Points(like(rows, self.axes.place))
        gamma = like(self.gamma, self.axes.place)
        return np.maximum(self._value(x, self._beside(x), gamma) + self.length, 0.0)

    def at(self, rows: Matrix, who: Index) -> Slope:
        """Return ρ and its slope at a row for each of the named points."""
        place, kernel = self.axes.place, self.axes.kernel
        x, y, xp = Points(like(rows, place)), self.axes.there.rows, namespace(place)
        pair = self._beside(x)
        gamma = like(self.gamma if len(who) == len(self.gamma) else self.gamma[who], place)
        pull, weight, size = (np.zeros_like(rows) for _ in range(3))
        for part in kernel.slopes(pair):
            at = slice(None) if part.columns is None else list(part.columns)
            toward = _less(part.dot, 2.0 * part.sqdist)
            if toward is not None:
                pull[:, at] += to_numpy((gamma * toward) @ y[:, at])
            away = _less(part.sqdist, -1.0 * part.norm)
            if away is not None:
                each = gamma * away
                weight[:, at] -= 2.0 * to_numpy(xp.sum(each, axis=1))[:, None]
                size[:, at] += 2.0 * to_numpy(xp.sum(xp.abs(each), axis=1))[:, None]
        for part in kernel.slopes(DiagonalPair(x)):
            at = slice(None) if part.columns is None else list(part.columns)
            own = np.broadcast_to(to_numpy(part.dot + 2.0 * part.norm), len(rows))[:, None]
            weight[:, at] += own
            size[:, at] += np.abs(own)
        return Slope(self._value(x, pair, gamma), pull, weight, size)

    def _beside(self, x: Points) -> TilePair:
        return TilePair.between(x, self.axes.there)

    def _value(self, x: Points, pair: TilePair, gamma: Array) -> Vector:
        K = self.axes.kernel.on(pair)
        if isinstance(gamma, np.ndarray):
            toward: Any = np.einsum("ij,ij->i", gamma, np.broadcast_to(K, pair.shape))
        else:
            toward = to_numpy(namespace(gamma).sum(gamma * K, axis=1))
        return np.asarray(to_numpy(self.axes.kernel.on_diagonal(x)) - 2.0 * toward, np.float64)


def as_axes(owner: Any, projection: KernelProjection, products: Matrix | None = None) -> Axes:
    """Return what the points of a projection share; refuse those with no rows to return to."""
    kernel, basis = projection.kernel, _dense(owner, projection)
    assert kernel is not None  # _dense has refused it
    weights = np.column_stack([to_numpy(projection.components), projection.mean_coef])
    y, weights = Points(basis), weights.astype(np.float64, copy=False)
    if products is None:
        products = _products(kernel, y, weights)
    return Axes(kernel, y, weights, products, _place(projection))


def _place(projection: KernelProjection) -> Array:
    """Return where kernels are computed: on the device of the basis, or the settings'."""
    if on_accelerator(projection.basis):
        return empty((0,), projection.basis, np.float64)
    return placed(as_source(np.empty((1, 1)))).reference


def _products(kernel: Kernel, y: Points, weights: Matrix) -> Matrix:
    """Return K times the weights, some rows of K at a time."""

    def times(block: Block) -> Matrix:
        pair = TilePair.between(Points(block.rows, block.start), y)
        return np.asarray(np.broadcast_to(kernel.on(pair), pair.shape) @ weights)

    source = as_source(y.rows).map(times, weights.shape[1], np.float64, 4 * 8 * len(y))
    return np.asarray(source.collect(label="components in feature space"))


def _dense(owner: Any, projection: KernelProjection) -> Matrix:
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


def _less(a: Any, b: Any) -> Any:
    """Return a − b; None where that is zero for all."""
    made = a - b
    return None if np.ndim(made) == 0 and made == 0 else made

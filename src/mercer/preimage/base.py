"""Base class of pre-image methods, their targets in feature space, and their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    dense_remedy,
    empty,
    like,
    namespace,
    on_accelerator,
    small_matrix,
    to_numpy,
    working_dtype,
)
from mercer.data import Block, as_source, to_configured_device
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair, TilePair
from mercer.kernels.points import Points
from mercer.metrics.operators import kernel_product
from mercer.params import Params
from mercer.projection import KernelProjection

Index = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True)
class Preimages:
    """Pre-images: rows whose images are near points of feature space. Print it for a summary.

    `rows`, of shape (q, d), are in the precision of the scores. `converged` tells whether the
    method converged for each, `steps` after how many iterations, 0 for direct methods, and
    `distance` is the squared distance ‖Φ(r) − PΦ(x)‖² in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.preimage import Preimages
    >>> print(Preimages(np.zeros((2, 3)), np.array([True, False]), np.array([4, 9]), np.zeros(2)))
    1 of 2 converged, after 6.5 steps on average; squared distance in feature space 0 (median),
    0 (largest).
    """

    rows: np.ndarray[Any, Any]
    converged: np.ndarray[Any, np.dtype[np.bool_]]
    steps: np.ndarray[Any, np.dtype[np.int64]]
    distance: Vector

    def __str__(self) -> str:
        if not len(self.rows):
            return "No points."
        text = f"{int(self.converged.sum())} of {len(self.rows)} converged"
        if self.steps.any():
            text += f", after {self.steps.mean():.3g} steps on average"
        return (
            f"{text}; squared distance in feature space {np.median(self.distance):.3g} (median), "
            f"{self.distance.max():.3g} (largest)."
        )


Estimate: TypeAlias = tuple[Matrix, np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Pre-images of some points: rows without the shift, whether each converged, iterations."""


class Preimage(Params, ABC):
    r"""A method that finds rows r with :math:`\Phi(r) \approx P\Phi(x)`.

    A projected point is :math:`P\Phi(x) = \sum_j \gamma_j \Phi(y_j)`, mean included. A method
    of your own overrides `seek`, and `begin` if it learns from the training rows.

    Examples
    --------
    >>> from mercer import KernelPCA
    >>> X = [[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]]  # on a line, the only component of the kernel
    >>> kpca = KernelPCA(1, kernel="linear", preimage="fixed_point").fit(X)
    >>> kpca.reconstruct(X).round(6).tolist()
    [[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]]
    """

    work_bytes = 64
    """Bytes that a point needs for every row of the basis."""

    @abstractmethod
    def seek(self, target: Target, scores: Matrix, state: Any) -> Estimate:
        """Return the pre-images of some points."""

    def check(self) -> None:
        """Raise if parameters are invalid."""

    def begin(
        self,
        projection: KernelProjection,
        X: Any,
        scores: Any,
        *,
        products: Matrix | None = None,
        weights: Vector | None = None,
    ) -> Any:
        """Return what `find` needs: ⟨Φ(yⱼ), ·⟩ of components and mean, or `products` if known.

        X are the training rows, and `weights` their counts.
        """
        self.check()
        return feature_components(self, projection, products).products

    def probe(self, kernel: Kernel, rows: Matrix) -> None:
        """Evaluate what the method needs of the kernel, which raises ValueError without it."""

    def find(self, projection: KernelProjection, state: Any, scores: Any) -> Preimages:
        """Return pre-images of scores, given the result of `begin`, or None to compute it again."""
        self.check()
        components = feature_components(self, projection, self.products(state))
        S = check_scores(self, scores, components.coefficients.shape[1] - 1)
        d = int(components.basis.rows.shape[1])

        def seek(block: Block) -> Matrix:
            target = Target(components, block.rows)
            rows, converged, steps = self.seek(target, block.rows, state)
            return np.column_stack([rows, converged, steps, target.distance(rows)])

        extra = self.work_bytes * (len(components.basis) + d)
        table = as_source(S).map(seek, d + 3, np.float64, extra).collect(label="pre-images")
        rows = table[:, :d] if projection.shift is None else table[:, :d] + projection.shift
        return Preimages(
            rows=rows.astype(working_dtype(to_numpy(scores).dtype)),
            converged=table[:, d].astype(bool),
            steps=table[:, d + 1].astype(np.int64),
            distance=table[:, d + 2].copy(),
        )

    def products(self, state: Any) -> Matrix | None:
        """Return ⟨Φ(yⱼ), ·⟩ from the state."""
        return None if state is None else np.asarray(state)


def check_scores(owner: Any, scores: Any, k: int) -> Matrix:
    """Return scores as float64; raise if the shape is wrong or entries are not finite."""
    S = np.asarray(to_numpy(scores), np.float64)
    if S.ndim != 2 or S.shape[1] != k:
        raise ValueError(
            f"{owner!r}: scores have shape {S.shape}; pass {k} columns, one per component, as "
            f"returned by transform."
        )
    wrong = np.argwhere(~np.isfinite(S))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"{owner!r}: the score in row {row}, column {column} is {S[row, column]}. Drop the row."
        )
    return S


@dataclass(frozen=True)
class FeatureComponents:
    """The components and the mean of a projection, as combinations Σ γⱼ Φ(yⱼ).

    The basis are the rows y in float64. The coefficients, (m, k + 1), times the scores and a 1
    give γ: the last column is the mean. The products ⟨Φ(yⱼ), ·⟩ are K times the coefficients. The
    reference is an array on the device where kernels are computed.
    """

    kernel: Kernel
    basis: Points
    coefficients: Matrix
    products: Matrix
    reference: Array

    @cached_property
    def device_basis(self) -> Points:
        """The basis on that device."""
        return Points(like(self.basis.rows, self.reference))

    @cached_property
    def scale(self) -> float:
        """Root mean square distance of the basis from its mean; never zero."""
        rows = self.basis.rows
        deviation = float(np.sqrt(np.mean(np.sum((rows - rows.mean(axis=0)) ** 2, axis=1))))
        largest = float(np.abs(rows).max(initial=0.0))
        # The deviation of equal rows is rounding.
        return deviation if deviation > 1e-14 * largest else max(largest, 1.0)


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


class Target:
    """Points PΦ(x) of feature space, one for every row of scores.

    gamma, (q, m), are their coefficients, norm_sq, (q,), the squared norms ‖PΦ(x)‖², and
    basis_distances, (q, m), the squared distances ‖PΦ(x) − Φ(yⱼ)‖².
    """

    def __init__(self, components: FeatureComponents, scores: Matrix) -> None:
        self.components, reference = components, components.reference
        s = np.hstack([scores, np.ones((len(scores), 1))])
        gram = components.coefficients.T @ components.products
        self.norm_sq: Vector = np.maximum(np.einsum("ij,ij->i", s @ gram, s), 0.0)
        self.gamma, self._dots = (
            small_matrix(like(s, reference) @ like(x.T, reference))
            for x in (components.coefficients, components.products)
        )

    @cached_property
    def basis_distances(self) -> Matrix:
        diag = np.asarray(self.components.kernel.on_diagonal(self.components.basis), np.float64)
        return np.maximum(self.norm_sq[:, None] - 2.0 * self._dots + diag, 0.0)

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
        value, _ = self._value(Points(like(rows, self.components.reference)), self.gamma)
        return np.maximum(value + self.norm_sq, 0.0)

    def slope(self, rows: Matrix, points: Index) -> Slope:
        """Return ρ and its gradient at a row for each of these points."""
        kernel, y = self.components.kernel, self.components.device_basis.rows
        gamma = self.gamma if len(points) == len(self.gamma) else self.gamma[points]
        x = Points(like(rows, self.components.reference))
        value, pair = self._value(x, gamma)
        gamma, xp = like(gamma, self.components.reference), namespace(y)
        numerator, denominator, size = (np.zeros_like(rows) for _ in range(3))
        for part in kernel.slopes(pair):
            columns = slice(None) if part.columns is None else list(part.columns)
            attraction, own = part.dot - 2.0 * part.sqdist, part.sqdist + part.norm
            # A derivative that is the number 0 is left out.
            if np.ndim(attraction) or attraction:
                numerator[:, columns] += to_numpy((gamma * attraction) @ y[:, columns])
            if np.ndim(own) or own:
                terms = gamma * own
                denominator[:, columns] -= 2.0 * to_numpy(xp.sum(terms, axis=1))[:, None]
                size[:, columns] += 2.0 * to_numpy(xp.sum(xp.abs(terms), axis=1))[:, None]
        for part in kernel.slopes(DiagonalPair(x)):
            columns = slice(None) if part.columns is None else list(part.columns)
            diag = np.broadcast_to(to_numpy(part.dot + 2.0 * part.norm), len(rows))[:, None]
            denominator[:, columns] += diag
            size[:, columns] += np.abs(diag)
        return Slope(value, 2.0 * (denominator * rows - numerator), denominator, size)

    def _value(self, x: Points, gamma: Matrix) -> tuple[Vector, TilePair]:
        """Return ρ at some rows, and the pair of these rows and the basis."""
        kernel, reference = self.components.kernel, self.components.reference
        pair = TilePair.between(x, self.components.device_basis)
        K = kernel.on(pair)
        if isinstance(reference, np.ndarray):
            cross: Any = np.einsum("ij,ij->i", gamma, np.broadcast_to(K, pair.shape))
        else:
            cross = to_numpy(namespace(reference).sum(like(gamma, reference) * K, axis=1))
        return np.asarray(to_numpy(kernel.on_diagonal(x)) - 2.0 * cross, np.float64), pair


def feature_components(
    owner: Preimage, projection: KernelProjection, products: Matrix | None = None
) -> FeatureComponents:
    """Return the components of a projection; raise unless the method supports kernel and rows."""
    kernel, basis = projection.kernel, projection.basis
    if kernel is None:
        raise ValueError(
            f"{owner!r}: a precomputed kernel has no rows to map back to. Pass the rows and the "
            f"kernel itself."
        )
    if hasattr(basis, "tocsr"):
        raise ValueError(f"{owner!r} needs dense rows, but X is sparse. {dense_remedy(basis)}")
    if isinstance(basis, list) or kernel.takes == "strings":
        raise ValueError(
            f"{owner!r}: {kernel!r} is a string kernel, which has no pre-images. Use the nearest "
            f"training strings by score instead."
        )
    y = Points(np.asarray(to_numpy(basis), np.float64))
    try:
        owner.probe(kernel, y.rows[:1])
    except ValueError as error:
        remedy = 'Use "ridge", which works with any kernel.'
        raise ValueError(f"{owner!r} does not support this kernel. {error} {remedy}") from None
    coef = np.column_stack([to_numpy(projection.components), projection.mean_coef])
    coef = coef.astype(np.float64, copy=False)
    if products is None:
        products = kernel_product(kernel, y.rows, coef)
    if on_accelerator(basis):
        reference = empty((0,), basis, np.float64)
    else:
        reference = to_configured_device(as_source(np.empty((1, 1)))).reference
    return FeatureComponents(kernel, y, coef, products, reference)

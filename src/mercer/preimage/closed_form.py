"""Pre-images in closed form: ridge regression of rows on scores, and distances to neighbors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Matrix, Vector, dense_remedy, svd, to_numpy
from mercer.checks import check_integer, check_positive
from mercer.config import require_budget
from mercer.kernels import RBF, Kernel, Linear, as_kernel
from mercer.messages import format_parameter
from mercer.preimage.base import (
    Estimate,
    Preimage,
    Target,
    check_scores,
    feature_components,
)
from mercer.projection import KernelProjection

# Singular values of the neighbors below this share of the largest are rounding.
_FLAT = 1e-9


class RidgeState(NamedTuple):
    """A fitted ridge regression: r = mean + k(s, scores) dual, without the shift."""

    products: Matrix
    kernel: Kernel
    scores: Matrix
    dual: Matrix
    mean: Vector


class Ridge(Preimage):
    r"""Kernel ridge regression of the training rows on their scores.

    .. math:: r(s) = \bar x + \kappa(s, S)\,(\kappa(S,S) + \alpha I)^{-1}(X - \bar x)

    Source: Bakır, Weston & Schölkopf (2004), "Learning to find pre-images". Works with any
    kernel of vectors. κ is a kernel of scores with its own width, since scores and rows have
    different scales. With ``kernel="linear"`` and linear kernel PCA it tends to PCA's
    reconstruction as α → 0.

    Parameters
    ----------
    alpha : float
        The penalty α; a larger one shrinks rows to the mean.
    gamma, kernel : float or None, and Kernel, str or None
        The scale of an RBF κ, or another κ. By default 1/(2σ²) with σ the median distance of the
        scores; for linear kernel PCA κ is linear.

    Examples
    --------
    >>> from mercer.preimage import Ridge
    >>> Ridge(0.5, kernel="linear")
    Ridge(0.5, kernel='linear')
    """

    def __init__(
        self, alpha: float = 0.1, gamma: float | None = None, kernel: Kernel | str | None = None
    ) -> None:
        self.alpha, self.gamma, self.kernel = alpha, gamma, kernel

    def check(self) -> None:
        check_positive(self, "alpha")
        if self.gamma is not None:
            check_positive(self, "gamma")
            if self.kernel is not None:
                raise ValueError(
                    f"{self!r}: gamma is the scale of an RBF. Pass it to the kernel instead."
                )

    def begin(
        self,
        projection: KernelProjection,
        X: Any,
        scores: Any,
        *,
        products: Matrix | None = None,
        weights: Vector | None = None,
    ) -> RidgeState:
        self.check()
        products = feature_components(self, projection, products).products
        S = check_scores(self, scores, products.shape[1] - 1)
        if hasattr(X, "tocsr"):
            raise ValueError(f"{self!r} needs dense rows, but X is sparse. {dense_remedy(X)}")
        rows = np.asarray(to_numpy(X), np.float64)
        if rows.ndim != 2 or len(rows) != len(S):
            raise ValueError(
                f"{self!r}: X has shape {rows.shape}, but there are scores for {len(S)} rows."
            )
        mean = np.average(rows, axis=0, weights=weights)
        require_gram_fits(repr(self), len(S))
        kernel = self._kernel(S, projection)
        try:
            dual = solve_ridge(np.asarray(kernel(S)), rows - mean, self.alpha, weights)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"{self!r}: the matrix of {kernel!r} is not positive definite with alpha="
                f"{self.alpha!r}. Increase alpha, or use a positive definite kernel."
            ) from None
        mean = mean if projection.shift is None else mean - projection.shift
        return RidgeState(products, kernel, S, dual, mean)

    def seek(self, target: Target, scores: Matrix, state: RidgeState) -> Estimate:
        rows = state.mean + np.asarray(state.kernel(scores, state.scores)) @ state.dual
        return rows, np.ones(len(rows), bool), np.zeros(len(rows))

    def products(self, state: Any) -> Matrix:
        if not isinstance(state, RidgeState):
            raise ValueError(
                f"{self!r} is learned from training rows. Pass the result of begin(projection, X, "
                f"scores)."
            )
        return state.products

    def _kernel(self, S: Matrix, projection: KernelProjection) -> Kernel:
        if self.kernel is not None:
            return as_kernel(self.kernel)
        if self.gamma is not None:
            return RBF(float(self.gamma))
        if isinstance(projection.kernel, Linear):
            return Linear()
        # Scores that are equal to rounding do not determine the width.
        largest = max(float(np.abs(S).max(initial=0.0)), np.finfo(float).tiny)
        _, first = np.unique(np.round(S / largest, 9), axis=0, return_index=True)
        return RBF.from_median(S[np.sort(first)]) if len(first) > 1 else RBF()


def require_gram_fits(name: str, n: int) -> None:
    """Raise unless the kernel matrix of n scores fits the memory budget."""
    other = f"use {format_parameter('preimage', 'gradient')}"
    require_budget(8 * n * n, f"{name}: the kernel matrix of {n} scores", other)


def solve_ridge(K: Matrix, targets: Matrix, alpha: float, weights: Vector | None) -> Matrix:
    """Return the dual coefficients (K + αW⁻¹)⁻¹T of kernel ridge regression; K is overwritten.

    A sample of weight two is two equations: its penalty is half.
    """
    import scipy.linalg

    K[np.diag_indices_from(K)] += alpha / (1.0 if weights is None else weights)
    dual: Matrix = scipy.linalg.solve(K, targets, assume_a="pos", lower=True, overwrite_a=True)
    return dual


class Distances(Preimage):
    r"""Pre-images from distances to neighbors, computed in feature space.

    For kernels whose distance in feature space determines that of the rows, such as the RBF,
    :math:`\lVert x-y\rVert^2 = -\tfrac1\gamma\log(1-\tfrac12\lVert\Phi(x)-\Phi(y)\rVert^2)`.
    With the neighbors' centered coordinates Y, one row each, their squared lengths
    :math:`\ell` and the squared distances δ from the point,

    .. math:: r = \bar y + \tfrac12 Y^+(\ell - \delta)

    Source: Kwok & Tsang (2004), "The pre-image problem in kernel methods". No iteration, no
    local minima; rows lie in the affine span of their neighbors. With a linear kernel and more
    neighbors than columns it is PCA's reconstruction.

    Parameters
    ----------
    neighbors : int
        Number of rows of the basis, nearest in feature space.

    Examples
    --------
    >>> from mercer.preimage import Distances
    >>> Distances(20)
    Distances(20)
    """

    def __init__(self, neighbors: int = 10) -> None:
        self.neighbors = neighbors

    @property
    def work_bytes(self) -> int:  # type: ignore[override]
        """Bytes that a point needs for every row of the basis, and for its neighbors."""
        return 48 + 40 * int(self.neighbors)

    def check(self) -> None:
        check_integer(self, "neighbors")

    def probe(self, kernel: Kernel, rows: Matrix) -> None:
        kernel.input_sqdist(np.zeros(1))

    def seek(self, target: Target, scores: Matrix, state: Any) -> Estimate:
        components, nearest = target.components, target.nearest(int(self.neighbors))
        with np.errstate(divide="ignore"):
            distances = np.take_along_axis(target.basis_distances, nearest, axis=1)
            delta = np.asarray(components.kernel.input_sqdist(distances), np.float64)
        # No row is that far from those at infinity: the nearest replaces them.
        finite = np.isfinite(delta)
        nearest = np.where(finite, nearest, nearest[:, :1])
        delta = np.where(finite, delta, delta[:, :1])
        converged = np.asarray(np.isfinite(delta).all(axis=1))
        neighbors = components.basis.rows[nearest]
        mean = neighbors.mean(axis=1)
        U, sigma, Vt = _svd_each(neighbors - mean[:, None, :])
        lengths = np.einsum("qpr,qr->qp", U**2, sigma**2)
        significant = sigma > _FLAT * sigma[:, :1]
        inverse = np.where(significant, 0.5 / np.where(significant, sigma, 1.0), 0.0)
        delta = np.where(converged[:, None], delta, 0.0)
        coordinates = inverse * np.einsum("qpr,qp->qr", U, lengths - delta)
        rows = np.asarray(mean + np.einsum("qr,qrd->qd", coordinates, Vt))
        # A point far from every row stays at the nearest.
        rows[~converged] = neighbors[~converged, 0]
        return rows, converged, np.zeros(len(rows))


def _svd_each(matrices: Any) -> list[Any]:
    """Return the singular value decompositions of a stack of matrices."""
    try:
        return list(np.linalg.svd(matrices, full_matrices=False))
    except np.linalg.LinAlgError:  # for at least one matrix: each alone, by another driver
        parts = [svd(np.asarray(x)) for x in matrices]
        return [np.stack(arrays) for arrays in zip(*parts, strict=True)]

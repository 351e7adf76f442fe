"""Pre-images from distances to neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, svd
from mercer.checks import check_whole
from mercer.preimage.base import Estimate, Preimage
from mercer.preimage.target import FeatureComponents, Target

# Singular values of the neighbors below this share of the largest are rounding.
_FLAT = 1e-9


class Distances(Preimage):
    r"""Rows at the distances from their neighbors that follow from feature space.

    For kernels whose distance in feature space determines that of the rows, such as the RBF,
    :math:`\lVert x-y\rVert^2 = -\tfrac1\gamma\log(1-\tfrac12\lVert\Phi(x)-\Phi(y)\rVert^2)`.
    With the neighbors' centered coordinates :math:`Y = U\Sigma V^T`, one row each, their squared
    lengths :math:`\ell` and the squared distances δ from the point,

    .. math:: r = \bar y + \tfrac12 V \Sigma^{-1} U^T(\ell - \delta)

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
        check_whole(self, "neighbors")

    def require(self, components: FeatureComponents) -> None:
        try:
            components.kernel.input_sqdist(np.zeros(1))
        except ValueError as error:
            raise ValueError(
                f"{self!r} needs a kernel that determines distances between rows. {error} Use "
                f'"fixed_point" or "gradient" for kernels with a gradient, or "ridge", which '
                f"works with any."
            ) from None

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
        rows = _trilaterate(neighbors, np.where(converged[:, None], delta, 0.0))
        # A point far from every row stays at the nearest.
        rows[~converged] = neighbors[~converged, 0]
        return Estimate(rows, converged, np.zeros(len(rows)))


def _trilaterate(neighbors: Any, delta: Matrix) -> Matrix:
    """Return the rows at these squared distances from their neighbors, by least squares."""
    mean = neighbors.mean(axis=1)
    centered = neighbors - mean[:, None, :]
    try:
        U, sigma, Vt = np.linalg.svd(centered, full_matrices=False)
    except np.linalg.LinAlgError:  # for at least one point: each alone, by another driver
        parts = [svd(np.asarray(x)) for x in centered]
        U, sigma, Vt = (np.stack(arrays) for arrays in zip(*parts, strict=True))
    lengths = np.einsum("qpr,qr->qp", U**2, sigma**2)
    significant = sigma > _FLAT * sigma[:, :1]
    inverse = np.where(significant, 0.5 / np.where(significant, sigma, 1.0), 0.0)
    coordinates = inverse * np.einsum("qpr,qp->qr", U, lengths - delta)
    return np.asarray(mean + np.einsum("qr,qrd->qd", coordinates, Vt))

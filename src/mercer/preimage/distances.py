"""The row that is as far from its neighbours as the kernel says."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import Matrix, svd
from mercer.checks import check_whole
from mercer.preimage.base import Preimage, Sought
from mercer.preimage.target import Axes, Target

# Directions that the neighbours span less than this share of the widest are rounding.
_FLAT = 1e-9


class Distances(Preimage):
    r"""The rows at the distances from their neighbours that feature space tells.

    For kernels whose distance in feature space tells that of the rows, such as the RBF,
    :math:`\lVert x-y\rVert^2 = -\tfrac1\gamma\log(1-\tfrac12\lVert\Phi(x)-\Phi(y)\rVert^2)`.
    With the neighbours' centred coordinates :math:`Y = U\Sigma V^T`, one row each, their squared
    lengths :math:`\ell` and the squared distances δ from the point,

    .. math:: r = \bar y + \tfrac12 V \Sigma^{-1} U^T(\ell - \delta)

    Source: Kwok & Tsang (2004), "The pre-image problem in kernel methods". No iteration, no
    local minima; rows lie in the plane of their neighbours. With a linear kernel and more
    neighbours than columns it is PCA's reconstruction.

    Parameters
    ----------
    neighbors : int
        How many rows of the basis, nearest in feature space.

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
        """Bytes that a point needs for every row of the basis, and for its neighbours."""
        return 48 + 40 * int(self.neighbors)

    def check(self) -> None:
        check_whole(self, "neighbors")

    def require(self, axes: Axes) -> None:
        try:
            axes.kernel.input_sqdist(np.zeros(1))
        except ValueError as error:
            raise ValueError(
                f"{self!r} asks the kernel how far rows are apart. {error} Use "
                f'"fixed_point" or "gradient" for kernels with a gradient, or "ridge", which '
                f"works with any."
            ) from None

    def seek(self, target: Target, scores: Matrix, state: Any) -> Sought:
        nearest = target.nearest(int(self.neighbors))
        with np.errstate(divide="ignore"):
            apart = np.take_along_axis(target.apart, nearest, axis=1)
            delta = np.asarray(target.axes.kernel.input_sqdist(apart), np.float64)
        # No row is so far from those at infinity: the nearest stands in for them.
        known = np.isfinite(delta)
        nearest = np.where(known, nearest, nearest[:, :1])
        delta = np.where(known, delta, delta[:, :1])
        found = np.asarray(np.isfinite(delta).all(axis=1))
        rows = _placed(target.axes.basis.rows[nearest], np.where(found[:, None], delta, 0.0))
        # A point that is far from every row stays at the nearest.
        rows[~found] = target.axes.basis.rows[nearest[~found, 0]]
        return Sought(rows, found, np.zeros(len(rows)))


def _placed(neighbors: Any, delta: Matrix) -> Matrix:
    """Return the rows that are so far from their neighbours, by least squares."""
    mean = neighbors.mean(axis=1)
    try:
        U, sigma, Vt = np.linalg.svd(neighbors - mean[:, None, :], full_matrices=False)
    except np.linalg.LinAlgError:  # of one point at least: each alone, by another driver
        each = [svd(np.asarray(x)) for x in neighbors - mean[:, None, :]]
        U, sigma, Vt = (np.stack(parts) for parts in zip(*each, strict=True))
    lengths = np.einsum("qpr,qr->qp", U**2, sigma**2)
    wide = sigma > _FLAT * sigma[:, :1]
    inverse = np.where(wide, 0.5 / np.where(wide, sigma, 1.0), 0.0)
    at = inverse * np.einsum("qpr,qp->qr", U, lengths - delta)
    return np.asarray(mean + np.einsum("qr,qrd->qd", at, Vt))

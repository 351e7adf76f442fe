"""What a pre-image method is, and its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Matrix, Vector, to_numpy, working_dtype
from mercer.data import Block, as_source
from mercer.params import Params
from mercer.preimage.target import FeatureComponents, Target, feature_components
from mercer.projection import KernelProjection


@dataclass(frozen=True)
class Found:
    """Pre-images: rows whose images are near points of feature space. Print it for a summary.

    Attributes
    ----------
    rows : ndarray of shape (q, d)
        The rows r, in the precision of the scores.
    converged : ndarray of shape (q,)
        Whether the method converged for each.
    steps : ndarray of shape (q,)
        Number of iterations for each; 0 for direct methods.
    distance : ndarray of shape (q,)
        Squared distance ‖Φ(r) − PΦ(x)‖² in feature space.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.preimage import Found
    >>> print(Found(np.zeros((2, 3)), np.array([True, False]), np.array([4, 9]), np.zeros(2)))
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


class Estimate(NamedTuple):
    """Pre-images of some points: rows without the shift, whether each converged, iterations."""

    rows: Matrix
    converged: np.ndarray[Any, np.dtype[np.bool_]]
    steps: np.ndarray[Any, Any]


class Preimage(Params, ABC):
    r"""A method that finds rows r with :math:`\Phi(r) \approx P\Phi(x)`.

    A projected point is :math:`P\Phi(x) = \sum_j \gamma_j \Phi(y_j)`, mean included. A method
    of your own overrides `seek`, and `begin` if it learns from the training rows.

    Examples
    --------
    Rows on a line, with a kernel whose only component is that line:

    >>> from mercer import KernelPCA
    >>> from mercer.preimage import FixedPoint
    >>> X = [[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]]
    >>> kpca, method = KernelPCA(1, kernel="linear").fit(X), FixedPoint()
    >>> scores, projection = kpca.transform(X), kpca.projection_
    >>> method.find(projection, method.begin(projection, X, scores), scores).rows.round(6) + 0.0
    array([[0., 0.],
           [1., 2.],
           [3., 6.]])
    """

    work_bytes = 64
    """Bytes that a point needs for every row of the basis."""

    @abstractmethod
    def seek(self, target: Target, scores: Matrix, state: Any) -> Estimate:
        """Return the pre-images of some points."""

    def check(self) -> None:
        """Refuse invalid parameters."""

    def begin(
        self,
        projection: KernelProjection,
        X: Any,
        scores: Any,
        *,
        products: Matrix | None = None,
        weights: Vector | None = None,
    ) -> Any:
        """Return the state that `find` needs: ⟨Φ(yⱼ), ·⟩ of the components and of the mean.

        X are the training rows, `weights` their counts, and `products` the result if it is known:
        the kernel matrix of the basis, (m, m), times the components and the mean, (m, k + 1).
        Otherwise it is computed a block at a time, with no more work than the fit.
        """
        self.check()
        components = feature_components(self, projection, products)
        self.require(components)
        return components.products

    def require(self, components: FeatureComponents) -> None:
        """Refuse kernels that the method does not support."""

    def find(self, projection: KernelProjection, state: Any, scores: Any) -> Found:
        """Return the pre-images of points with these scores, of shape (q, k).

        `state` is the result of `begin`; None computes it again, if the method can.
        """
        self.check()
        components = feature_components(self, projection, self.products(state))
        self.require(components)
        S = check_scores(self, scores, components.coefficients.shape[1] - 1)
        d = int(components.basis.rows.shape[1])

        def seek(block: Block) -> Matrix:
            target = components.target(block.rows)
            estimate = self.seek(target, block.rows, state)
            return np.column_stack([*estimate, target.distance(estimate.rows)])

        extra = self.work_bytes * (len(components.basis) + d)
        table = as_source(S).map(seek, d + 3, np.float64, extra).collect(label="pre-images")
        rows = table[:, :d] if projection.shift is None else table[:, :d] + projection.shift
        return Found(
            rows=rows.astype(working_dtype(to_numpy(scores).dtype)),
            converged=table[:, d].astype(bool),
            steps=table[:, d + 1].astype(np.int64),
            distance=table[:, d + 2].copy(),
        )

    def products(self, state: Any) -> Matrix | None:
        """Return ⟨Φ(yⱼ), ·⟩ from the state."""
        return None if state is None else np.asarray(state)


def check_scores(owner: Any, scores: Any, k: int) -> Matrix:
    """Return scores as float64; refuse a wrong shape and non-finite entries."""
    S = np.asarray(to_numpy(scores), np.float64)
    if S.ndim != 2 or S.shape[1] != k:
        raise ValueError(
            f"{owner!r}: scores have shape {S.shape}; pass rows of {k} columns, one for each "
            f"component, as transform returns them."
        )
    wrong = np.argwhere(~np.isfinite(S))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"{owner!r}: the score in row {row}, column {column} is {S[row, column]}. Drop the row."
        )
    return S

"""Pre-images by kernel ridge regression of rows on scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Matrix, Vector, to_numpy
from mercer.checks import check_positive
from mercer.config import format_bytes, get_config
from mercer.kernels import RBF, Kernel, Linear, as_kernel
from mercer.messages import format_parameter
from mercer.preimage.base import Estimate, Preimage, check_scores
from mercer.preimage.target import Target, feature_components
from mercer.projection import KernelProjection


class Learnt(NamedTuple):
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
    gamma : float or None
        The scale of an RBF κ; by default 1/(2σ²) with σ the median distance of the scores. For
        linear kernel PCA κ is linear, unless gamma or kernel is set.
    kernel : Kernel, str or None
        Another κ instead of the RBF.

    Examples
    --------
    >>> from mercer.preimage import Ridge
    >>> Ridge(0.5, kernel="linear")
    Ridge(0.5, kernel='linear')
    """

    def __init__(
        self,
        alpha: float = 0.1,
        gamma: float | None = None,
        kernel: Kernel | str | None = None,
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
    ) -> Learnt:
        self.check()
        products = feature_components(self, projection, products).products
        S = check_scores(self, scores, products.shape[1] - 1)
        rows = _dense_rows(self, X, len(S))
        mean = np.average(rows, axis=0, weights=weights)
        require_gram_fits(repr(self), len(S))
        kernel = self._kernel(S, projection)
        try:
            dual = solve_ridge(np.asarray(kernel(S)), rows - mean, self.alpha, weights)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"{self!r}: {kernel!r} of the scores is not positive definite with alpha="
                f"{self.alpha!r}. Raise alpha, or choose a kernel that is."
            ) from None
        shift = 0.0 if projection.shift is None else projection.shift
        return Learnt(products, kernel, S, dual, mean - shift)

    def seek(self, target: Target, scores: Matrix, state: Learnt) -> Estimate:
        rows = state.mean + np.asarray(state.kernel(scores, state.scores)) @ state.dual
        return Estimate(rows, np.ones(len(rows), bool), np.zeros(len(rows)))

    def products(self, state: Any) -> Matrix:
        if not isinstance(state, Learnt):
            raise ValueError(
                f"{self!r} learns from the training rows. Pass what begin(projection, X, scores) "
                f"returned."
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
    budget = get_config().budget
    if 8 * n * n > budget:
        raise MemoryError(
            f"{name} needs {format_bytes(8 * n * n)} for the kernel matrix of {n} scores, more "
            f"than the memory budget of {format_bytes(budget)}. Raise it with "
            f"{format_parameter('memory')}, or use {format_parameter('preimage', 'gradient')}."
        )


def solve_ridge(K: Matrix, targets: Matrix, alpha: float, weights: Vector | None) -> Matrix:
    """Return the dual coefficients (K + αW⁻¹)⁻¹T of kernel ridge regression; K is overwritten.

    A sample of weight two is two equations: its penalty is half.
    """
    import scipy.linalg

    K[np.diag_indices_from(K)] += alpha / (1.0 if weights is None else weights)
    dual: Matrix = scipy.linalg.solve(K, targets, assume_a="pos", lower=True, overwrite_a=True)
    return dual


def _dense_rows(owner: Any, X: Any, n: int) -> Matrix:
    if hasattr(X, "tocsr"):
        raise ValueError(f"{owner!r} returns dense rows, and was given sparse. Pass X.toarray().")
    rows = np.asarray(to_numpy(X), np.float64)
    if rows.ndim != 2 or len(rows) != n:
        raise ValueError(
            f"{owner!r}: X has shape {rows.shape}, and there are scores of {n} rows. Pass the "
            f"training rows and their scores."
        )
    return rows

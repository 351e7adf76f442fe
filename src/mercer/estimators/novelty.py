"""Novelty detection by the distance to a principal subspace."""

from __future__ import annotations

import math
import os
from dataclasses import KW_ONLY, dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin, _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples, check_is_fitted

from mercer.arrays import Array, Vector, cast, is_foreign, like, namespace, to_numpy
from mercer.checkpoint import check_same
from mercer.data import Source, check_weights, is_lazy, materialize
from mercer.estimators.base import typed
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.wrapper import DelegatingWrapper
from mercer.messages import warn
from mercer.projection import LinearProjection
from mercer.rules import Fraction, Rule


@dataclass(eq=False, repr=False)
class NoveltyDetector(OutlierMixin, DelegatingWrapper):
    r"""Novelty detection by the squared distance to the principal subspace.

    The novelty of a sample is its squared distance to the components, in the feature space of a
    kernel or, for `PCA`, in the space of the samples themselves:

    .. math:: p(x) = \|\tilde\Phi(x)\|^2 - \sum_{j \le k} y_j(x)^2,

    with :math:`\tilde\Phi(x) = \Phi(x) - \bar\Phi` and y the scores: `reconstruction_error` of the
    estimator. Samples beyond a threshold are novel. The training data should be free of
    outliers: components turn toward them and then explain them.

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The estimator whose components are used. None is ``KernelPCA(Fraction(0.95, most=100),
        kernel="rbf", gamma="median")``: 95 % of the variance, but at most 100 components.
        A narrower kernel and more components fit the training data more tightly.
    contamination : float in (0, 0.5]
        Largest fraction of the training samples to call novel; if it is less than one sample, the
        boundary encloses all of them, as in Hoffmann (2007).
    cv : int, splitter, iterable or None
        None takes the threshold from the training samples, as scikit-learn's detectors do, but
        new samples are further from the components, and more of them are called novel. With cv
        the threshold comes from cross-validation and holds for new samples.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The fitted estimator.
    offset_ : float
        Minus the threshold: ``decision_function(X) = score_samples(X) - offset_``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    H. Hoffmann, Kernel PCA for novelty detection, Pattern Recognition 40 (2007), 863–874.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from mercer import KernelPCA, NoveltyDetector
    >>> X, _ = make_moons(300, noise=0.05, random_state=0)
    >>> detector = NoveltyDetector(KernelPCA(20, kernel="rbf", gamma=4), contamination=0.05)
    >>> detector.fit(X).predict([[0.0, 1.0], [0.5, 0.25]])
    array([ 1, -1])
    >>> detector.decision_function([[0.0, 1.0], [0.5, 0.25]]).round(2)
    array([ 0.03, -0.31])
    """

    offset_: float = field(init=False)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "cv": ["cv_object"],
    }

    estimator: Any = None
    _: KW_ONLY
    contamination: float = 0.1
    cv: Any = None

    @typed(_fit_context(prefer_skip_nested_validation=True))
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator and compute the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Training samples, as `estimator` takes them.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the sample twice, for the components and the threshold.
        """
        with self._session():
            check_same(self)
            X = X if self.cv is not None else materialize(X)  # a stream is read once
            model = self._inner("reconstruction_error")
            self.estimator_ = model.fit(X, sample_weight=sample_weight)
            if self.cv is None:
                distances = to_numpy(model.reconstruction_error(X))
            else:
                distances = self._cv_distances(X, sample_weight)
            weights = _sample_counts(sample_weight, X, len(distances))
            distances, weights = distances[weights > 0], weights[weights > 0]
            rounding = _rounding(model, distances)
            self.offset_ = -_threshold(
                distances.astype(np.float64), weights, float(self.contamination), rounding
            )
            if np.all(distances <= np.min(rounding)):
                warn(
                    f"the components of {model!r} reconstruct every row exactly: the distances are "
                    f"rounding errors, and any row outside their span will be novel. Use fewer "
                    f"components, or set cv."
                )
        return self

    def fit_predict(self, X: Any, y: Any = None, **arguments: Any) -> Any:
        """Fit to X and return −1 for novel samples and 1 for the others."""
        X = X if self.cv is not None else materialize(X)
        return super().fit_predict(X, y, **arguments)

    def score_samples(self, X: Any) -> Any:
        """Return the negative squared distance of each sample: the lower, the more novel."""
        check_is_fitted(self)
        distances = self.estimator_.reconstruction_error(X)
        host = isinstance(distances, np.ndarray)
        return -(cast(distances, np.float64) if host else distances)

    def decision_function(self, X: Any) -> Any:
        """Return the score of each sample minus the threshold: negative for novel samples."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """Return −1 for novel samples and 1 for the others."""
        decision = self.decision_function(X)
        sign = np.where(to_numpy(decision) >= 0, 1, -1)
        return sign if namespace(decision) is np else like(sign, decision)

    def _default(self) -> Any:
        return KernelPCA(default_components(), kernel="rbf", gamma="median")

    def _cv_distances(self, X: Any, sample_weight: Any) -> Array:
        """Return the distance of each sample to components that were fitted without it."""
        if isinstance(X, (Source, str, os.PathLike)) or is_lazy(X):
            raise TypeError(
                f"cv={self.cv!r} needs the rows in memory, but X is a {type(X).__name__}. Pass an "
                f"array, or cv=None."
            )
        if get_tags(self._inner()).input_tags.pairwise:
            raise ValueError(
                "kernel='precomputed' does not provide k(x, x) of test rows, which distances to "
                "the components require. Use the kernel itself."
            )
        (X,) = indexable(X)
        n = _num_samples(X)
        weights = None if sample_weight is None else _sample_counts(sample_weight, X, n)
        distances = np.full(n, np.nan)
        try:
            folds = list(check_cv(self.cv).split(np.zeros(n)))
        except TypeError as error:  # stratified splitters need labels
            raise TypeError(
                f"cv={self.cv!r} cannot split rows without labels. Pass a number of folds, or a "
                f"splitter such as KFold."
            ) from error
        for train, test in folds:
            train_weights = None if weights is None else weights[train]
            model = self._inner().fit(_select(X, train), sample_weight=train_weights)
            distances[test] = to_numpy(model.reconstruction_error(_select(X, test)))
        missing = np.isnan(distances)
        if missing.any():
            raise ValueError(
                f"Row {int(np.argmax(missing))} is in no test fold of cv: every row needs a "
                f"distance to components fitted without it. Pass cv=5, or another partition of the "
                f"rows."
            )
        return distances


def default_components() -> Rule:
    """Return the default rule for the number of components: few enough for a fast fit."""
    return Fraction(0.95, most=100)


def _select(X: Any, indices: Any) -> Any:
    """Return some of the rows, of the same type as X."""
    if is_foreign(X):
        return namespace(X).take(X, like(indices, X), axis=0)
    return _safe_indexing(X, indices)


def _sample_counts(sample_weight: Any, X: Any, n: int) -> Vector:
    """Return the weight of each sample, 1 by default."""
    if isinstance(X, Source):
        sample_weight = check_weights(sample_weight, X)
    weights = 1.0 if sample_weight is None else np.asarray(to_numpy(sample_weight), np.float64)
    return np.broadcast_to(weights, (n,))


def _rounding(model: Any, distances: Array) -> Vector:
    """Return an estimate of the rounding error of each distance."""
    eps, projection = float(np.finfo(distances.dtype).eps), getattr(model, "projection_", None)
    if isinstance(projection, LinearProjection):  # a sum of squares, not a difference of squares
        error = 16 * eps * math.sqrt(projection.total_variance)
        return np.asarray(error * (2 * np.sqrt(distances.astype(np.float64)) + error))
    largest = getattr(projection, "total_variance", float(np.max(distances)))
    return np.full(len(distances), 128 * eps * (largest + getattr(projection, "mean_sq", 0.0)))


def _threshold(distances: Vector, weights: Vector, share: float, rounding: Vector) -> float:
    """Return the distance that at most this share of the rows exceeds.

    It is half-way between the distances of two rows, which therefore cannot cross it by rounding,
    and never between two that differ by rounding alone, such as copies of one row.
    """
    order = np.argsort(distances)[::-1]
    values, sums = distances[order], np.cumsum(weights[order])
    count = int(np.searchsorted(sums, share * sums[-1] * (1 + 1e-12), side="right"))
    gaps = np.flatnonzero(values[:count] - values[1 : count + 1] > rounding[order][:count])
    if len(gaps):
        last = int(gaps[-1])
        return float(values[last] + values[last + 1]) / 2
    return float(values[0] + rounding[order[0]])  # encloses all rows

"""Novelty: how far rows are from the principal subspace of others."""

from __future__ import annotations

import math
import os
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _num_samples

from mercer.arrays import Array, Vector, cast, is_foreign, like, namespace, to_numpy
from mercer.checkpoint import check_same
from mercer.data import Source, check_weights
from mercer.estimators.images import no_images
from mercer.estimators.inner import Around
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.session import fit_context
from mercer.messages import warn
from mercer.projection import LinearProjection
from mercer.rules import Fraction, Rule


class NoveltyDetector(OutlierMixin, Around):
    r"""Novelty as the squared distance to the principal subspace.

    In the feature space of a kernel, or for `PCA` in the space of the rows themselves, a row is
    the more novel the less the components keep of it:

    .. math:: p(x) = \|\tilde\Phi(x)\|^2 - \sum_{j \le k} y_j(x)^2,

    with :math:`\tilde\Phi(x) = \Phi(x) - \bar\Phi` and y the scores: `reconstruction_error` of the
    estimator inside. Rows beyond a threshold are novel. The rows of the fit should be ordinary
    ones: components turn towards what is far from the rest, and keep it.

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The model whose components are used. None is ``KernelPCA(Fraction(0.95, most=100),
        kernel="rbf", gamma="median")``: 95 % of the variance, but at most 100 components.
        A narrower kernel and more components follow the rows more tightly.
    contamination : float in (0, 0.5]
        The share of rows that is called novel. Of the rows of the fit it is at most that share,
        and as near it as whole rows come; where it is less than one row, the boundary encloses
        all of them, as in the source.
    cv : int, splitter, iterable or None
        None takes the threshold from the rows of the fit, as scikit-learn's detectors do. The
        components were fitted to these, and are nearer to them than to others: of new rows of the
        same kind many more than the share may be called novel. With cv the threshold comes from
        rows that were held out: about the share of new rows is called novel.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The fitted estimator inside.
    offset_ : float
        Minus the threshold: ``decision_function(X) = score_samples(X) - offset_``.
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
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
    """

    offset_: float
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",
        "contamination": [Interval(Real, 0, 0.5, closed="right")],
        "cv": ["cv_object"],
    }

    def __init__(
        self, estimator: Any = None, *, contamination: float = 0.1, cv: Any = None
    ) -> None:
        self.estimator = estimator
        self.contamination = contamination
        self.cv = cv

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components of rows, and the threshold.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Rows; what the estimator inside takes.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the row twice, for the components and for the threshold.

        Returns
        -------
        NoveltyDetector
            Itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NoveltyDetector
        >>> detector = NoveltyDetector(PCA(2), contamination=0.02).fit(load_iris().data)
        >>> int((detector.predict(load_iris().data) == -1).sum())
        3
        """
        with self._session():
            check_same(self)
            model = self._inner("reconstruction_error")
            self.estimator_ = model.fit(no_images(self, X), sample_weight=sample_weight)
            found = self._held_out(X, sample_weight) if self.cv is not None else _left(model, X)
            w = _counts(sample_weight, X, len(found))
            distances, rounding = found[w > 0], _rounding(model, found[w > 0])
            self.offset_ = -_threshold(
                distances.astype(np.float64), w[w > 0], float(self.contamination), rounding
            )
            if np.all(distances <= np.min(rounding)):
                warn(
                    f"the components of {model!r} reconstruct every row exactly: the distances are "
                    f"rounding errors, and every row outside their span will be novel. Use fewer "
                    f"components, or set cv."
                )
        return self

    def score_samples(self, X: Any) -> Any:
        """Return minus each row's squared distance to the subspace: the lower, the more novel.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NoveltyDetector
        >>> X = load_iris().data
        >>> NoveltyDetector(PCA(2)).fit(X).score_samples(X[:1]).round(4)
        array([-0.0008])
        """
        left = self._fitted().reconstruction_error(no_images(self, X))
        return -(cast(left, np.float64) if isinstance(left, np.ndarray) else left)

    def decision_function(self, X: Any) -> Any:
        """Return how far within the threshold each row is: below zero where it is novel.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NoveltyDetector
        >>> X = load_iris().data
        >>> NoveltyDetector(PCA(2)).fit(X).decision_function(X[:1]).round(3)
        array([0.266])
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Any:
        """Return −1 for each row that is novel, and 1 for each that is not.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NoveltyDetector
        >>> NoveltyDetector(PCA(2)).fit(load_iris().data).predict([[5, 3, 1, 0], [5, 3, 1, 5]])
        array([ 1, -1])
        """
        decision = self.decision_function(X)
        sign = np.where(to_numpy(decision) >= 0, 1, -1)
        return sign if namespace(decision) is np else like(sign, decision)

    def _default(self) -> Any:
        return KernelPCA(usual_components(), kernel="rbf", gamma="median")

    def _held_out(self, X: Any, sample_weight: Any) -> Array:
        """Return the distance of each row to components that were found without it."""
        if isinstance(X, (Source, str, os.PathLike)):
            raise TypeError(
                f"cv={self.cv!r} holds rows out, which takes them in memory, and X is a "
                f"{type(X).__name__}. Pass an array, or cv=None."
            )
        if get_tags(self._inner()).input_tags.pairwise:
            raise ValueError(
                "kernel='precomputed' does not tell k(x, x) of rows held out, which their distance "
                "from the components takes. Use the kernel itself."
            )
        (X,) = indexable(X)
        n = _num_samples(X)
        weights = None if sample_weight is None else _counts(sample_weight, X, n)
        distances, seen = np.zeros(n), np.zeros(n, bool)
        for train, test in self._folds(n):
            given = None if weights is None else weights[train]
            model = self._inner().fit(_taken(X, train), sample_weight=given)
            distances[test] = _left(model, _taken(X, test))
            seen[test] = True
        if not seen.all():
            raise ValueError(
                f"cv never holds out row {int(np.argmin(seen))}: every row needs a distance to "
                f"components found without it. Pass cv=5, or another partition of the rows."
            )
        return distances

    def _folds(self, n: int) -> list[tuple[Any, Any]]:
        try:
            return list(check_cv(self.cv).split(np.zeros(n)))
        except TypeError as error:  # what stratifies takes labels
            raise TypeError(
                f"cv={self.cv!r} cannot split rows without labels. Pass a number of folds, or a "
                f"splitter such as KFold."
            ) from error


def usual_components() -> Rule:
    """Return how many components a kernel has by default: few enough to find them fast."""
    return Fraction(0.95, most=100)


def _left(model: Any, X: Any) -> Array:
    """Return squared distances to a model's components, on the host."""
    return to_numpy(model.reconstruction_error(X))


def _taken(X: Any, at: Any) -> Any:
    """Return some of the rows, as what they were."""
    if is_foreign(X):
        return namespace(X).take(X, like(at, X), axis=0)
    return _safe_indexing(X, at)


def _counts(sample_weight: Any, X: Any, n: int) -> Vector:
    """Return how often each row counts."""
    if sample_weight is None and not isinstance(X, Source):
        return np.ones(n)
    if isinstance(X, Source):
        found = check_weights(sample_weight, X)
        return np.ones(n) if found is None else found
    return np.broadcast_to(np.asarray(to_numpy(sample_weight), np.float64), (n,))


def _rounding(model: Any, distances: Array) -> Vector:
    """Return by how much each distance may differ for no better reason than rounding."""
    eps, fitted = float(np.finfo(distances.dtype).eps), getattr(model, "projection_", None)
    if isinstance(fitted, LinearProjection):  # summed from residuals, not a difference of squares
        error = 16 * eps * math.sqrt(fitted.total_variance)
        return np.asarray(error * (2 * np.sqrt(distances.astype(np.float64)) + error))
    longest = getattr(fitted, "total_variance", float(np.max(distances)))
    return np.full(len(distances), 128 * eps * (longest + getattr(fitted, "mean_sq", 0.0)))


def _threshold(distances: Vector, weights: Vector, share: float, rounding: Vector) -> float:
    """Return the distance beyond which lie at most that share of rows, furthest first.

    Half-way between two rows, so that rounding moves none across; never between two rows
    whose distances differ by rounding alone, such as copies of one row.
    """
    order = np.argsort(distances)[::-1]
    values, sums = distances[order], np.cumsum(weights[order])
    beyond = int(np.searchsorted(sums, share * sums[-1] * (1 + 1e-12), side="right"))
    wide = np.flatnonzero(values[:beyond] - values[1 : beyond + 1] > rounding[order][:beyond])
    if len(wide):
        last = int(wide[-1])
        return float(values[last] + values[last + 1]) / 2
    return float(values[0] + rounding[order[0]])  # encloses all rows

"""Nearest-neighbor classification by scores, as in eigenfaces."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Array, to_numpy
from mercer.estimators.base import typed
from mercer.estimators.pca import PCA
from mercer.estimators.wrapper import DelegatingWrapper, check_labels


@dataclass(eq=False, repr=False)
class NearestProjection(ClassifierMixin, DelegatingWrapper):
    r"""Nearest-neighbor classifier in the space of a few components.

    Training samples are stored as their scores :math:`z_i = U_k^T(x_i - \mu)`; a new sample x has
    the class of the :math:`z_i` nearest to :math:`U_k^T(x - \mu)`. For images of faces the
    components are the eigenfaces. With a `KernelPCA`, distances are those between projections in
    feature space. `sklearn.neighbors.KNeighborsClassifier` finds the neighbors.

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The estimator that computes the scores. None is ``PCA(0.95)``. With
        ``PCA(..., whiten=True)`` distances are Mahalanobis distances.
    n_neighbors : int
        Number of neighbors.
    weights : "uniform", "distance" or callable
        Weights of the neighbors, as in scikit-learn.
    metric : str or callable
        Distance between scores, as in scikit-learn: "euclidean", "cosine", "manhattan", ...
    n_jobs : int or None
        Number of threads of the neighbor search.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The fitted estimator.
    neighbors_ : KNeighborsClassifier
        The neighbor search, fitted to the scores of the training samples.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    References
    ----------
    M. Turk & A. Pentland, Eigenfaces for recognition, Journal of Cognitive Neuroscience 3
    (1991). J. Worrell, Principal Component Analysis (2017), §4.1.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA, NearestProjection
    >>> X, y = load_digits(return_X_y=True)
    >>> model = NearestProjection(PCA(20)).fit(X[:1000], y[:1000])
    >>> round(model.score(X[1000:], y[1000:]), 3)
    0.957
    >>> model.predict(X[:3]), model.predict_proba(X[:1]).argmax()
    (array([0, 1, 2]), np.int64(0))
    >>> model.kneighbors(X[:2], 2, return_distance=False)
    array([[  0, 877],
           [  1,  93]])
    """

    neighbors_: KNeighborsClassifier = field(init=False)
    classes_ = property(attrgetter("neighbors_.classes_"))
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "metric": [str, callable],
        "n_jobs": [Integral, None],
    }

    estimator: Any = None
    n_neighbors: int = 1
    _: KW_ONLY
    weights: Any = "uniform"
    metric: Any = "euclidean"
    n_jobs: int | None = None

    @typed(_fit_context(prefer_skip_nested_validation=True))
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator, and store the scores of the training samples.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Training samples, as `estimator` takes them.
        y : array-like of shape (n,) or (n, outputs)
            Class labels.
        """
        model = self._inner("fit_transform", "transform")
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is not supported: distances are computed from scores. Use a "
                "metric such as 'euclidean'."
            )
        search = KNeighborsClassifier(
            self.n_neighbors, weights=self.weights, metric=self.metric, n_jobs=self.n_jobs
        )
        labels = check_labels(self, y, multi_output=True)  # before time is spent on a fit
        with self._session():
            scores = model.fit_transform(X)
        scores = np.ascontiguousarray(to_numpy(scores))
        n, k = scores.shape
        if k == 0:
            raise ValueError(
                f"{model!r} found no component: X has no variance, or n_components is 0."
            )
        if self.n_neighbors > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors}, but X has {n} rows. Use at most {n}."
            )
        self.estimator_, self.neighbors_ = model, search.fit(scores, labels)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predicted class of each sample."""
        check_is_fitted(self)
        return self.neighbors_.predict(self._scores(X))

    def predict_proba(self, X: Any) -> Any:
        """Return the fraction of each class among the neighbors of each sample."""
        check_is_fitted(self)
        return self.neighbors_.predict_proba(self._scores(X))

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return the distances and indices of the nearest training samples.

        Parameters
        ----------
        X : array-like or None
            Samples. None: the neighbors of each training sample, which is not its own neighbor.
        n_neighbors : int, optional
            Number of neighbors; by default that of the constructor.
        return_distance : bool
            Whether to return the distances, before the indices.
        """
        check_is_fitted(self)
        scores = None if X is None else self._scores(X)
        return self.neighbors_.kneighbors(scores, n_neighbors, return_distance)

    def _scores(self, X: Any) -> Array:
        """Return scores of samples as an array on the host."""
        return np.ascontiguousarray(to_numpy(self.estimator_.transform(X)))

    def _default(self) -> Any:
        return PCA(0.95)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

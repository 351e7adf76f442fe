"""Nearest neighbours among projections: eigenfaces."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array

from mercer.arrays import Array, to_numpy
from mercer.data import require_present
from mercer.estimators.images import no_images
from mercer.estimators.inner import Around
from mercer.estimators.labels import Labelled
from mercer.estimators.pca import PCA
from mercer.estimators.session import fit_context


class NearestProjection(Labelled, Around):
    r"""The class of the nearest training rows, in the space of a few components.

    Training rows are kept as their scores :math:`z_i = U_k^T(x_i - \mu)`; a new row x has the
    class of the :math:`z_i` nearest to :math:`U_k^T(x - \mu)`. Of pictures of faces the components
    are the eigenfaces. With a `KernelPCA` distances are those between projections in feature
    space. The search is `sklearn.neighbors.KNeighborsClassifier`'s.

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        Whose components they are; None is ``PCA(0.95)``. With ``PCA(..., whiten=True)`` distances
        are Mahalanobis'.
    n_neighbors : int
        How many neighbours have a vote.
    weights : "uniform", "distance" or callable
        What a vote counts, as in scikit-learn.
    metric : str or callable
        Distance between scores, as in scikit-learn: "euclidean", "cosine", "manhattan", ...
    n_jobs : int or None
        Threads of the search.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The fitted estimator inside.
    neighbors_ : KNeighborsClassifier
        Fitted to the scores of the training rows.
    classes_ : ndarray of shape (n_classes,)
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
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
    """

    neighbors_: KNeighborsClassifier
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "weights": [StrOptions({"uniform", "distance"}), callable, None],
        "metric": [str, callable],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_neighbors: int = 1,
        *,
        weights: Any = "uniform",
        metric: Any = "euclidean",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.metric = metric
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Find the components of rows, and keep the rows' scores.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Rows; what the estimator inside takes.
        y : array-like of shape (n,) or (n, outputs)
            Their classes.

        Returns
        -------
        NearestProjection
            Itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NearestProjection
        >>> NearestProjection(PCA(2)).fit(*load_iris(return_X_y=True)).predict([[6, 3, 5, 2]])
        array([2])
        """
        model, search = self._inner("fit_transform", "transform"), self._search()
        labels = self._labels(y)
        with self._session():
            scores = _rows(model.fit_transform(no_images(self, X)))
        n, k = scores.shape
        if k == 0:
            raise ValueError(
                f"{model!r} found no component to project on: X has no variance, or no component "
                f"was asked for."
            )
        if self.n_neighbors > n:
            raise ValueError(
                f"n_neighbors={self.n_neighbors}, and X has {n} rows. Ask for {n} at most."
            )
        self.estimator_, self.neighbors_ = model, search.fit(scores, labels)
        return self

    def predict(self, X: Any) -> Any:
        """Return the class of each row: that of most of its neighbours.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import NearestProjection
        >>> NearestProjection().fit(*load_iris(return_X_y=True)).predict([[5, 3, 1, 0]])
        array([0])
        """
        return self._neighbors.predict(self._scores(X))

    def predict_proba(self, X: Any) -> Any:
        """Return the share of each class among the neighbours of each row.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NearestProjection
        >>> model = NearestProjection(PCA(2), 5).fit(*load_iris(return_X_y=True))
        >>> model.predict_proba([[6, 3, 5, 1.6]])
        array([[0. , 0.2, 0.8]])
        """
        return self._neighbors.predict_proba(self._scores(X))

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return distances of the nearest training rows, and their numbers.

        Parameters
        ----------
        X : rows or None
            None: of each training row, which is then not its own neighbour.
        n_neighbors : int, optional
            How many; as many as have a vote by default.
        return_distance : bool
            Whether to return distances before the numbers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NearestProjection
        >>> X, y = load_iris(return_X_y=True)
        >>> NearestProjection(PCA(2)).fit(X, y).kneighbors(return_distance=False)[:3, 0]
        array([17, 45,  6])
        """
        scores = None if X is None else self._scores(X)
        return self._neighbors.kneighbors(scores, n_neighbors, return_distance)

    @property
    def classes_(self) -> Any:
        """The classes."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{type(self).__name__} has no classes_ before its fit.")
        return self.neighbors_.classes_

    @property
    def _neighbors(self) -> KNeighborsClassifier:
        self._fitted()
        return self.neighbors_

    def _scores(self, X: Any) -> Array:
        return _rows(self._fitted().transform(no_images(self, X)))

    def _search(self) -> KNeighborsClassifier:
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed': distances are those between scores, found inside the fit. "
                "Name one, such as 'euclidean'."
            )
        return KNeighborsClassifier(
            self.n_neighbors, weights=self.weights, metric=self.metric, n_jobs=self.n_jobs
        )

    def _labels(self, y: Any) -> Array:
        """Return y as an array of classes, before time is spent on components."""
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        require_present(y, "y")
        y = y.toarray() if hasattr(y, "tocsr") else to_numpy(y)
        labels = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(labels)
        return labels

    def _default(self) -> Any:
        return PCA(0.95)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _rows(scores: Any) -> Array:
    """Return scores as an array on the host, whatever they came as."""
    return np.ascontiguousarray(to_numpy(scores))

"""Classes told apart by their subspaces: CLAFIC, linear and with kernels."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import progress
from mercer.arrays import Array, like, namespace, to_numpy
from mercer.checkpoint import check_same, identify
from mercer.data import (
    Block,
    Source,
    at_home,
    check_weights,
    fingerprint,
    require_present,
)
from mercer.estimators.classwise import (
    Model,
    as_counts,
    fitted_models,
    residuals_of,
    rows_of_classes,
    shared_model,
)
from mercer.estimators.images import no_images
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.labels import Labelled
from mercer.estimators.pca import PCA
from mercer.estimators.session import Sessions, fit_context
from mercer.estimators.validation import check_rows, check_strings


class SubspaceClassifier(Labelled, Sessions, BaseEstimator):
    r"""A subspace for every class; a row belongs to the class whose subspace is nearest.

    CLAFIC, and kernel CLAFIC where the model is a `KernelPCA`. Principal component analysis of
    the rows of class i alone gives a mean :math:`\mu_i` and components, and with :math:`P_i` the
    projector on these a row x is taken for the class

    .. math:: \arg\min_i \|(I-P_i)(\Phi(x)-\mu_i)\|^2,

    with :math:`\mu_i = 0` where the model does not centre. (The largest
    :math:`\|P_i\Phi(x)\|^2` is the same only then; washizawa (48) prints the largest residual,
    which is a slip.)

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The model of every class. A number of components that a class has too few rows for, or too
        small a basis, is lowered for that class, with a warning; a basis may be a share of its
        rows, `Subset(0.1)`. None: ``KernelPCA(0.9, kernel="rbf", gamma="scale")``.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The classes, sorted; those whose rows have no weight are not among them.
    estimators_ : list of PCA or KernelPCA
        A fitted model for each of them.
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has names.

    Notes
    -----
    Distances are compared, so all must be taken in one space: `gamma="median"` and `"scale"` are
    found from all rows, random features are the same for every class, and ``PCA(scale=True)``,
    which would divide every class by deviations of its own, is refused. Put a
    `~sklearn.preprocessing.StandardScaler` in front. Components that span all columns are refused
    too: nothing is far from them; where those of a kernel hold the other classes, a warning says
    so.

    Distances are no probabilities: `sklearn.calibration.CalibratedClassifierCV` makes such of
    them.

    References
    ----------
    S. Watanabe, P. F. Lambert, C. A. Kulikowski, J. L. Buxton & R. Walker, Evaluation and
    selection of variables in pattern recognition, in Computer and Information Sciences II (1967).
    E. Oja, Subspace methods of pattern recognition (1983). E. Maeda & H. Murase, Multi-category
    classification by kernel based nonlinear subspace method, ICASSP (1999). Y. Washizawa, Subset
    basis approximation of kernel principal component analysis (2012), §6.4.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA, KernelPCA, SubspaceClassifier
    >>> from mercer.methods import Subset
    >>> X, y = load_digits(return_X_y=True)
    >>> round(SubspaceClassifier().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 3)
    0.991
    >>> round(SubspaceClassifier(PCA(10)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 3)
    0.989
    >>> few = KernelPCA(10, kernel="rbf", gamma="scale", method=Subset(0.2, "kmeans"))
    >>> few = SubspaceClassifier(few.set_params(random_state=0)).fit(X[::2], y[::2])
    >>> [len(model.X_fit_) for model in few.estimators_[:3]]
    [18, 19, 17]
    """

    classes_: np.ndarray[Any, Any]
    estimators_: list[Model]
    n_features_in_: int
    fingerprint_: str
    _parameter_constraints: ClassVar[dict[str, Any]] = {"estimator": [PCA, KernelPCA, None]}

    def __init__(self, estimator: Model | None = None) -> None:
        self.estimator = estimator

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the subspace of every class.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Rows; with kernels of strings a list of str.
        y : array-like of shape (n,)
            The class of each.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the row twice. Shares, such as those of boosting, do as
            well: weights below one on the average are scaled up, class by class.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, SubspaceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> [model.n_components_ for model in SubspaceClassifier(PCA(2)).fit(X, y).estimators_]
        [2, 2, 2]
        """
        with self._session():
            require_present(y, "y")
            y = np.asarray(validate_data(self, X="no_validation", y=y))
            check_classification_targets(y)
            source = self._rows(X, reset=True)
            if len(y) != source.shape[0]:
                raise ValueError(
                    f"X has {source.shape[0]} rows and y {len(y)} labels: inconsistent numbers of "
                    f"samples. Pass one label a row."
                )
            weights = as_counts(check_weights(sample_weight, source, least=0.0))
            source = source.weighted(weights)
            self.fingerprint_ = fingerprint(source)
            check_same(self, rows=identify(source, self.fingerprint_))
            self.classes_, rows = rows_of_classes(y, source)
            model = shared_model(self.estimator, source)
            self.estimators_ = fitted_models(model, source, self.classes_, rows)
        return self

    def reconstruction_error(self, X: Any) -> Any:
        """Return each row's squared distance from the subspace of every class.

        Returns
        -------
        array of shape (n, c)
            A column for each of `classes_`, in feature space where there is a kernel.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, SubspaceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> SubspaceClassifier(PCA(1)).fit(X, y).reconstruction_error(X[:2]).round(2)
        array([[0.01, 5.03, 8.41],
               [0.05, 3.46, 6.79]])
        """
        check_is_fitted(self)
        source = self._rows(X, reset=False)
        found = residuals_of(self.estimators_, source)
        which, parts = [i for each, _ in found for i in each], [part for _, part in found]
        xp, order = namespace(source.reference), np.argsort(which)
        order = like(order, source.reference, order.dtype)

        def beside(block: Block) -> Array:
            left = xp.concat([part.read(block.start, block.stop) for part in parts], axis=1)
            return xp.take(left, order, axis=1)

        kind = np.result_type(*(part.dtype for part in parts))
        extra = max(part.row_bytes for part in parts) - source.row_bytes
        with progress.session():  # every class while a block is there: one pass over the rows
            rows = source.map(beside, len(which), kind, extra)
            return at_home(rows).collect(label="residuals")

    def decision_function(self, X: Any) -> Any:
        """Return minus the squared distances, so that the nearest class has the most.

        Returns
        -------
        array of shape (n, c), or (n,)
            A column for each of `classes_`. Of two classes the second's less the first's, which
            is above zero for rows of the second.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, SubspaceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> SubspaceClassifier(PCA(1)).fit(X, y == 2).decision_function(X[[0, 149]]).round(2)
        array([-8.36,  0.22])
        """
        left = self.reconstruction_error(X)
        return left[:, 0] - left[:, 1] if len(self.classes_) == 2 else -left

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """Return the class whose subspace is nearest; of equals the first.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, SubspaceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> SubspaceClassifier(PCA(2)).fit(X, y).predict(X[[0, 50, 100]])
        array([0, 1, 2])
        """
        nearest = to_numpy(self.reconstruction_error(X)).argmin(axis=1)
        found: np.ndarray[Any, Any] = self.classes_[nearest]
        return found

    def _rows(self, X: Any, *, reset: bool) -> Source:
        """Return rows; strings where the kernel takes them, as those of the fit were."""
        words = not reset and isinstance(getattr(self.estimators_[0], "X_fit_", None), list)
        if words or (reset and isinstance(self.estimator, KernelPCA)):
            strings = check_strings(self, X, reset=reset, least=1)
            if strings is not None:
                return strings
        if words:
            raise ValueError("X holds no strings, and SubspaceClassifier was fitted to strings.")
        return check_rows(self, no_images(self, X), reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        model = KernelPCA() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(model).input_tags.sparse
        return tags

"""Classes told apart by their subspaces: CLAFIC, linear and with kernels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import progress
from mercer.arrays import Array, namespace, to_numpy
from mercer.estimators.base import all_or_nothing
from mercer.estimators.kernel import resolved
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.estimators.validation import check_rows, check_strings, some
from mercer.kernels import Linear
from mercer.landmarks import Given
from mercer.methods import OnBasis
from mercer.notices import warn
from mercer.sources import Block, Search, Source, StringSource, check_weights, not_finite

Model = PCA | KernelPCA


class SubspaceClassifier(ClassifierMixin, BaseEstimator):
    r"""A subspace for every class; a row belongs to the class whose subspace is nearest.

    CLAFIC, and kernel CLAFIC where the model is a `KernelPCA`. Principal component analysis of
    the rows of class i alone gives a mean :math:`\mu_i` and axes, and with :math:`P_i` the
    projector on these a row x is taken for the class

    .. math:: \arg\min_i \|(I-P_i)(\Phi(x)-\mu_i)\|^2,

    with :math:`\mu_i = 0` where the model does not centre. (The largest
    :math:`\|P_i\Phi(x)\|^2` is the same only then; washizawa (48) prints the largest residual,
    which is a slip.)

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The model of every class. A number of axes that a class has too few rows for, or too
        small a basis, is lowered for that class, with a warning; a basis may be a share of its
        rows, `Subset(0.1)`. None: ``KernelPCA(0.9, kernel="rbf", gamma="scale")``.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The classes, sorted; those whose rows have no weight are not among them.
    estimators_ : list of PCA or KernelPCA
        A fitted model for each of them.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X has names.

    Notes
    -----
    Distances are compared, so all must be taken in one space: `gamma="median"` and `"scale"` are
    found from all rows, random features are the same for every class, and ``PCA(scale=True)``,
    which would divide every class by deviations of its own, is refused. Put a
    `~sklearn.preprocessing.StandardScaler` in front. A subspace that is the whole space is
    refused too: nothing is far from it.

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
    0.987
    >>> round(SubspaceClassifier(PCA(10)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 3)
    0.981
    >>> few = KernelPCA(10, kernel="rbf", gamma="scale", method=Subset(0.2, "kmeans"))
    >>> few = SubspaceClassifier(few.set_params(random_state=0)).fit(X[::2], y[::2])
    >>> [len(model.X_fit_) for model in few.estimators_[:3]]
    [18, 18, 18]
    """

    classes_: np.ndarray[Any, Any]
    estimators_: list[Model]
    n_features_in_: int
    _parameter_constraints: ClassVar[dict[str, Any]] = {"estimator": [PCA, KernelPCA, None]}

    def __init__(self, estimator: Model | None = None) -> None:
        self.estimator = estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the subspace of every class.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a ``.npy`` file or Source
            Rows; with kernels of strings a list of str.
        y : array-like of shape (n,)
            The class of each.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the row twice.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, SubspaceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> [model.n_components_ for model in SubspaceClassifier(PCA(2)).fit(X, y).estimators_]
        [2, 2, 2]
        """
        with all_or_nothing(self), progress.session():
            source = self._rows(X, reset=True)
            y = _labels(self, y, source)
            source = source.weighted(check_weights(sample_weight, source))
            at = np.arange(len(y)) if source.weights is None else np.flatnonzero(source.weights > 0)
            self.classes_, which = np.unique(y[at], return_inverse=True)
            if len(self.classes_) < 2:
                raise ValueError(
                    f"SubspaceClassifier needs 2 classes or more, and y holds 1 class with weight, "
                    f"{_name(self.classes_[0])}."
                )
            model = _shared(self.estimator, source)
            parts = [_part(source, at[which == i], c) for i, c in enumerate(self.classes_)]
            self.estimators_ = _fitted(model, self.classes_, parts)
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
        array([[ 0.01, 12.45, 23.8 ],
               [ 0.06, 11.69, 22.97]])
        """
        check_is_fitted(self)
        source = self._rows(X, reset=False)
        parts = [model._residuals(source) for model in self.estimators_]
        xp = namespace(source.reference)

        def beside(block: Block) -> Array:
            return xp.concat([part.read(block.start, block.stop) for part in parts], axis=1)

        kind = np.result_type(*(part.dtype for part in parts))
        extra = max(part.row_bytes for part in parts) - source.row_bytes
        with progress.session():  # every class while a block is there: one pass over the rows
            return source.map(beside, len(parts), kind, extra).collect(label="residuals")

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
        array([-23.28,   2.53])
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
            strings = check_strings(self, X, least=1)
            if strings is not None:
                return strings
        if words:
            raise ValueError("X holds no strings, and SubspaceClassifier was fitted to strings.")
        return check_rows(self, X, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator or KernelPCA()).input_tags.sparse
        return tags


def _labels(estimator: Any, y: Any, source: Source) -> np.ndarray[Any, Any]:
    """Return the class of every row."""
    y = np.asarray(validate_data(estimator, X="no_validation", y=y))
    check_classification_targets(y)
    if len(y) != source.shape[0]:
        raise ValueError(
            f"X has {source.shape[0]} rows and y {len(y)} labels: inconsistent numbers of "
            f"samples. Pass one label a row."
        )
    return y


def _part(source: Source, at: np.ndarray[Any, Any], label: Any) -> Source:
    """Return the rows of a class, two at least."""
    part = some(source, at)
    if part.count <= 1:
        rows = "one row" if len(at) == 1 else f"rows that weigh {part.count:g} together"
        raise ValueError(
            f"Class {_name(label)} has {rows}, and a subspace takes two or more. Add rows of that "
            f"class, or leave it out."
        )
    if len(at) > 1:
        return part
    # One row of weight w is a row of weight w/2 twice.
    return some(source, at.repeat(2)).weighted(np.full(2, part.count / 2))


def _shared(estimator: Model | None, source: Source) -> Model:
    """Return the model of every class: with what all of them must have in common."""
    if not isinstance(source, StringSource):  # here, where rows have their own numbers still
        found = source.fold(Search()).found
        if found is not None:
            raise not_finite(found, source)
    if estimator is None:
        estimator = KernelPCA(0.9, kernel="rbf", gamma="scale")
    model: Model = clone(estimator)
    if not isinstance(model.random_state, Integral):
        model.random_state = check_random_state(model.random_state).randint(2**31 - 1)
    if isinstance(model, PCA):
        if model.scale:
            raise ValueError(
                "PCA(scale=True) divides the rows of every class by deviations of their own: their "
                "distances cannot be compared. Put a StandardScaler in front instead."
            )
        return model
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of new rows, which their distance from a "
            "subspace takes. Use the kernel itself."
        )
    method = model.method
    if isinstance(method, OnBasis) and isinstance(method.rule, Given):
        points = method.rule.points
        if not isinstance(points, list | tuple) or not any(isinstance(x, str) for x in points):
            if np.ndim(points) == 1:
                raise ValueError(
                    f"method={method!r} names rows by number, and every class has rows of its own. "
                    f"Give the points themselves, or a rule to select them."
                )
    if isinstance(model.gamma, str):
        rest = (model.degree, model.coef0, model.kernel_params)
        model.gamma = resolved(model.kernel, model.gamma, *rest, source)[1]
    return model


def _fitted(model: Model, classes: Sequence[Any], parts: list[Source]) -> list[Model]:
    """Fit a copy of the model to each class; say which have fewer axes than were asked for."""
    models, fewer = [], []
    for label, part in zip(classes, parts, strict=True):
        own, asked = clone(model), model.n_components
        where = f"class {_name(label)} ({part.shape[0]} rows)"
        if isinstance(asked, Integral):
            most = _most_axes(own, part.shape[0])
            if most < asked:
                own.n_components = most
                fewer.append(where)
        try:
            own.fit(part)
        except ValueError as error:
            raise ValueError(f"In {where}: {error}") from error
        if isinstance(own, PCA):
            _shorten(own)
        _require_outside(own, where)
        models.append(own)
    if fewer:
        several = f" and {len(fewer) - 3} more" if len(fewer) > 3 else ""
        warn(
            f"n_components={model.n_components} axes were asked for, and {', '.join(fewer[:3])}"
            f"{several} cannot have as many: as many are taken as there can be."
        )
    return models


def _most_axes(model: Model, n: int) -> int:
    """Return how many axes n rows can have: one fewer where their mean is taken off."""
    most = n - model.center
    if isinstance(model, KernelPCA) and isinstance(model.method, OnBasis):
        most = min(most, model.method.points(n, most))
    return max(1, most)


def _shorten(model: PCA) -> None:
    """Take off axes of no variance: they are arbitrary, and so would be distances from them."""
    values = to_numpy(model.explained_variance_).astype(np.float64)
    eps = float(np.finfo(model._kind).eps) * max(model.n_samples_, model.n_features_in_)
    k = int((values > eps**2 * np.max(values, initial=0.0)).sum())
    model.components_ = model.components_[:k, :]
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        setattr(model, name, getattr(model, name)[:k])
    model.n_components_ = k


def _require_outside(model: Model, where: str) -> None:
    """Refuse axes that span everything."""
    linear = isinstance(model, PCA) or isinstance(model.kernel_, Linear)
    if linear and model.n_components_ >= model.n_features_in_:
        raise ValueError(
            f"In {where}: {model.n_components_} axes span the whole space of n_features="
            f"{model.n_features_in_} columns, so that no row is far from them. Take fewer axes, a "
            f"smaller share of the variance, or a kernel."
        )


def _name(label: Any) -> str:
    """Return a class as the user writes it."""
    return repr(label.item() if isinstance(label, np.generic) else label)

"""Subspace classifiers: CLAFIC and kernel CLAFIC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context, clone
from sklearn.utils.validation import check_is_fitted

from mercer import progress
from mercer.arrays import Array, is_dask, namespace, numpy_dtype, to_numpy
from mercer.checkpoint import CheckpointError, check_same, identify
from mercer.data import (
    Block,
    Source,
    StringSource,
    check_weights,
    require_finite_entries,
    to_output_device,
)
from mercer.estimators.base import draw_seed, typed
from mercer.estimators.kernel_parameters import resolve_kernel
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.estimators.validation import (
    check_rows,
    check_strings,
    load_rows,
    select_rows,
)
from mercer.estimators.wrapper import Wrapper, check_labels
from mercer.kernels import Linear
from mercer.landmarks import Given
from mercer.messages import counted, warn
from mercer.methods import OnBasis
from mercer.projection import KernelProjection, joint_residuals

Model = PCA | KernelPCA
Numbers = np.ndarray[Any, Any]
# Number of rows that show whether a subspace contains other classes, and the share of a class's
# variance that counts as rounding.
_SAMPLE, _ROUNDING = 200, 1e-10
# Most basis points whose kernel is evaluated at once: more would make the blocks of rows short.
_MAX_JOINT_POINTS = 4096


@dataclass(eq=False, repr=False)
class SubspaceClassifier(ClassifierMixin, Wrapper):
    r"""Subspace classifier: predicts the class whose principal subspace is nearest.

    CLAFIC, or kernel CLAFIC if `estimator` is a `KernelPCA`. PCA of the samples of class i alone
    gives a mean :math:`\mu_i` and components; with :math:`P_i` the projector onto these, the
    predicted class of a sample x is

    .. math:: \arg\min_i \|(I-P_i)(\Phi(x)-\mu_i)\|^2,

    with :math:`\mu_i = 0` if the estimator does not center. (Only then is it also the class of
    the largest :math:`\|P_i\Phi(x)\|^2`; Washizawa (48) prints the largest residual by mistake.)

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The model of every class, with fewer components, and a warning, where a class has too few
        rows. A basis may be a fraction of them: `Subset(0.1)`. None is
        ``KernelPCA(0.9, kernel="rbf", gamma="scale")``.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        Class labels, sorted; without classes whose samples all have weight zero.
    estimators_ : list of PCA or KernelPCA
        The fitted model of each class.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X has feature names.

    Notes
    -----
    All classes share one space: `gamma="median"` and `"scale"` use all rows, random features are
    the same for every class, and ``PCA(scale=True)`` is an error. So are components that span the
    whole space, because every distance would be zero. Distances are not probabilities: use
    `sklearn.calibration.CalibratedClassifierCV` for these.

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
    >>> model = SubspaceClassifier(PCA(10)).fit(X[::2], y[::2])
    >>> round(model.score(X[1::2], y[1::2]), 3)
    0.989
    >>> model.predict(X[:3])
    array([0, 1, 2])
    >>> model.reconstruction_error(X[:1]).shape
    (1, 10)
    >>> few = KernelPCA(10, kernel="rbf", gamma="scale", method=Subset(0.2, "kmeans"))
    >>> few = SubspaceClassifier(few.set_params(random_state=0)).fit(X[::2], y[::2])
    >>> [len(model.X_fit_) for model in few.estimators_[:3]]
    [18, 19, 17]
    """

    classes_: Numbers = field(init=False)
    estimators_: list[Model] = field(init=False)
    n_features_in_: int = field(init=False)
    _parameter_constraints: ClassVar[dict[str, Any]] = {"estimator": [PCA, KernelPCA, None]}

    estimator: Model | None = None

    @typed(_fit_context(prefer_skip_nested_validation=False))
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the subspace of every class.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Training samples; for kernels of strings a list of str.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the sample twice. Weights with a mean below one, such as
            those of boosting, are scaled up, class by class.
        """
        with self._session():
            y = check_labels(self, y)
            source = self._rows(X, reset=True)
            if len(y) != source.shape[0]:
                raise ValueError(
                    f"X has {source.shape[0]} rows, but y has {len(y)} labels: inconsistent "
                    f"numbers of samples. Pass one label per row."
                )
            weights = _as_counts(check_weights(sample_weight, source, least=0.0))
            source = source.weighted(weights)
            check_same(self, rows=identify(source))
            self.classes_, rows = _split_classes(y, source)
            model = _shared_model(self._inner(), source)
            self.estimators_ = _fit_models(model, source, self.classes_, rows)
        return self

    def reconstruction_error(self, X: Any) -> Any:
        """Return the squared distance of each sample to the subspace of every class.

        Returns
        -------
        array of shape (n, c)
            A column for each of `classes_`; with a kernel, distances in feature space.
        """
        check_is_fitted(self)
        source = self._rows(X, reset=False)
        xp, parts = namespace(source.reference), _residuals(self.estimators_, source)

        def distances(block: Block) -> Array:
            return xp.concat([part.read(block.start, block.stop) for part in parts], axis=1)

        dtype = np.result_type(*(part.dtype for part in parts))
        extra = max(part.row_bytes for part in parts) - source.row_bytes
        with progress.session():  # all classes of a block before the next: one pass
            rows = source.map(distances, len(self.classes_), dtype, extra)
            return to_output_device(rows).collect(label="residuals")

    def decision_function(self, X: Any) -> Any:
        """Return the negative squared distances: the nearest class has the largest value.

        Returns
        -------
        array of shape (n, c), or (n,)
            A column for each of `classes_`. With two classes the value of the second minus that
            of the first, which is positive for samples of the second.
        """
        distances = self.reconstruction_error(X)
        return distances[:, 0] - distances[:, 1] if len(self.classes_) == 2 else -distances

    def predict(self, X: Any) -> Numbers:
        """Return the class with the nearest subspace; the first one if tied."""
        nearest = to_numpy(self.reconstruction_error(X)).argmin(axis=1)
        labels: Numbers = self.classes_[nearest]
        return labels

    def _rows(self, X: Any, *, reset: bool) -> Source:
        """Return samples as a source: strings if the kernel takes them, as in the fit."""
        fitted = not reset and isinstance(getattr(self.estimators_[0], "X_fit_", None), list)
        if fitted or (reset and isinstance(self.estimator, KernelPCA)):
            strings = check_strings(self, X, reset=reset, least=1)
            if strings is not None:
                return strings
        if fitted:
            raise ValueError("X contains numbers, but SubspaceClassifier was fitted to strings.")
        return check_rows(self, X, reset=reset)

    def _default(self) -> Any:
        return KernelPCA(0.9, kernel="rbf", gamma="scale")


def _split_classes(y: Numbers, source: Source) -> tuple[Numbers, list[Numbers]]:
    """Return the classes, and the row numbers of each; rows of weight zero are left out."""
    rows = np.arange(len(y)) if source.weights is None else np.flatnonzero(source.weights > 0)
    classes, codes = np.unique(y[rows], return_inverse=True)
    members = [rows[codes == i] for i in range(len(classes))]
    if len(classes) < 2:
        raise ValueError(
            f"At least 2 classes are needed, but y has 1 class with weight, {_name(classes[0])}."
        )
    for label, own in zip(classes, members, strict=True):
        if len(own) == 1 and (source.weights is None or source.weights[own[0]] <= 1):
            raise ValueError(
                f"Class {_name(label)} has one row, but a subspace needs at least two. Add rows of "
                f"that class, or drop it."
            )
    return classes, members


def _shared_model(model: Model, source: Source) -> Model:
    """Return the model with everything that all classes must share: the kernel and the seed."""
    if not isinstance(source, StringSource):  # the error names rows of X, not of a class
        require_finite_entries(source)
    if not isinstance(model.random_state, Integral):
        model.random_state = draw_seed(model.random_state)
    if isinstance(model, PCA):
        if model.scale:
            raise ValueError(
                "PCA(scale=True) scales each class differently, so distances cannot be compared. "
                "Use a StandardScaler before the classifier instead."
            )
        return model
    if isinstance(model.kernel, str) and model.kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' does not provide k(x, x) of new rows, which distances to a "
            "subspace require. Use the kernel itself."
        )
    rule = model.method.rule if isinstance(model.method, OnBasis) else None
    points = rule.points if isinstance(rule, Given) else None
    strings = isinstance(points, list) and any(isinstance(x, str) for x in points)
    if points is not None and not strings and len(getattr(points, "shape", np.shape(points))) == 1:
        raise ValueError(
            f"method={model.method!r} selects rows by index, but each class has its own rows. "
            f"Pass the points themselves, or a rule to select them."
        )
    _, gamma = resolve_kernel(model, source)
    if isinstance(model.gamma, str):
        model.gamma = gamma
    return model


def _fit_models(model: Model, source: Source, classes: Numbers, rows: list[Numbers]) -> list[Model]:
    """Fit a copy of the model to each class; warn if classes have too few rows for it."""
    models: list[Model] = []
    small: list[str] = []
    for label, own in zip(classes, rows, strict=True):
        part = _class_rows(source, own)  # one class at a time: rows of a file are then in memory
        name = f"class {_name(label)} ({counted(part.shape[0], 'row')})"
        try:
            fitted = _fit_class(model, part)
        except CheckpointError:
            raise
        except ValueError as error:
            raise ValueError(f"In {name}: {error}") from error
        models.append(fitted)
        small += [name] if fitted.n_components != model.n_components else []
    if small:
        more = f" and {len(small) - 3} more" if len(small) > 3 else ""
        warn(
            f"n_components={model.n_components} is too many for {', '.join(small[:3])}{more}: the "
            f"largest possible number is used."
        )
    _warn_if_indistinct(source, classes, rows, models)
    return models


def _fit_class(model: Model, part: Source) -> Model:
    """Fit a copy of the model to the rows of a class, with as many components as they allow."""
    own: Model = clone(model)
    k = model.n_components
    most = part.shape[0] - own.center  # the mean takes one degree of freedom
    if isinstance(own, KernelPCA) and isinstance(own.method, OnBasis):
        most = min(most, own.method.points(part.shape[0], most))
    if isinstance(k, Integral):
        own.n_components = min(int(k), max(1, most))
    own.fit(part)
    if isinstance(own, PCA):
        _drop_null_components(own)
    d: float = np.inf
    if isinstance(own, PCA):  # columns of weight zero add nothing to a distance
        d = int(np.isfinite(own.projection_.divisor).sum())
    elif isinstance(own.kernel_, Linear):
        d = own.n_features_in_
    if own.n_components_ >= d:
        k = own.n_components_
        raise ValueError(
            f"{counted(k, 'component')} {'spans' if k == 1 else 'span'} the whole space of "
            f"n_features={d}, so every distance would be 0. Use fewer "
            f"components, a smaller share of the variance, or a kernel."
        )
    return own


def _class_rows(source: Source, rows: Numbers) -> Source:
    """Return the rows of a class, at least two."""
    if len(rows) > 1:
        part = select_rows(source, rows)
        return part.weighted(_as_counts(part.weights))
    # One row of weight w is two rows of weight w/2.
    part = load_rows(source, rows.repeat(2))
    return part.weighted(np.asarray(part.weights) / 2)


def _as_counts(weights: Numbers | None) -> Numbers | None:
    """Return weights with a mean of one or more: components do not depend on their scale."""
    if weights is None:
        return None
    return np.asarray(weights * max(1.0, np.count_nonzero(weights) / weights.sum()))


def _drop_null_components(model: PCA) -> None:
    """Remove components without variance: they are arbitrary, and so would be distances."""
    values = model.projection_.eigenvalues
    eps = np.finfo(numpy_dtype(model.components_)).eps
    eps *= max(model.n_samples_, model.n_features_in_)
    k = int((values > eps**2 * np.max(values, initial=0.0)).sum())
    model.components_, model.n_components_ = model.components_[:k, :], k
    model.explained_variance_ratio_ = model.explained_variance_ratio_[:k]
    model.singular_values_ = model.singular_values_[:k]


def _residuals(models: Sequence[Model], source: Source) -> list[Source]:
    """Return the distances to all models; for small bases by one matrix product."""
    projections = [model.projection_ for model in models]
    joint = [p for p in projections if isinstance(p, KernelProjection) and p.shift is None]
    bases = [p.basis for p in joint]
    dense = all(hasattr(x, "shape") and not hasattr(x, "tocsr") and not is_dask(x) for x in bases)
    if dense and len(joint) == len(models) and sum(map(len, bases)) <= _MAX_JOINT_POINTS:
        return [joint_residuals(joint, source)]
    return [model._residuals(source) for model in models]


def _warn_if_indistinct(
    source: Source, classes: Numbers, rows: list[Numbers], models: Sequence[Model]
) -> None:
    """Warn if a subspace contains other classes, based on a sample of rows."""
    most = max(1, _SAMPLE // len(rows))
    samples = [own[:: -(-len(own) // most)] for own in rows]
    codes = np.repeat(range(len(samples)), [*map(len, samples)])
    sample = load_rows(source, np.concatenate(samples))
    names = []
    for i, model in enumerate(models):
        distances = to_numpy(model._residuals(sample).collect(label="residuals"))[codes != i]
        if distances.max() <= _ROUNDING * model.projection_.total_variance:
            names.append(_name(classes[i]))
    if names:
        warn(
            f"Other classes lie in the subspace of class {', '.join(names[:3])}, up to rounding "
            f"error, and cannot be distinguished from it. Use fewer components, or another "
            f"kernel."
        )


def _name(label: Any) -> str:
    """Return a label as Python writes it."""
    return repr(label.item() if isinstance(label, np.generic) else label)

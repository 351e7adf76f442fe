"""Base classes of estimators that are built around a PCA or a KernelPCA."""

from __future__ import annotations

from abc import abstractmethod
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from mercer.arrays import Array, to_numpy
from mercer.data import require_present
from mercer.estimators.base import Sessions


class Wrapper(Sessions, BaseEstimator):
    """Base of estimators that fit copies of another one, `estimator`."""

    estimator: Any

    @abstractmethod
    def _default(self) -> Any:
        """Return the estimator that estimator=None stands for."""

    def _inner(self, *methods: str) -> Any:
        """Return an unfitted copy of the inner estimator; raise if it lacks a method."""
        inner = self._default() if self.estimator is None else self.estimator
        missing = [name for name in ("fit", "get_params", *methods) if not hasattr(inner, name)]
        if missing or isinstance(inner, type):
            what = "is a class" if isinstance(inner, type) else f"has no {', no '.join(missing)}"
            raise TypeError(
                f"estimator={inner!r} {what}. {type(self).__name__} takes a mercer.PCA or a "
                f"mercer.KernelPCA, such as {self._default()!r}."
            )
        return clone(inner)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self) or "estimators_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._default() if self.estimator is None else self.estimator
        if hasattr(inner, "__sklearn_tags__") and not isinstance(inner, type):
            inputs = get_tags(inner).input_tags
            tags.input_tags.sparse, tags.input_tags.string = inputs.sparse, inputs.string
            tags.input_tags.pairwise = inputs.pairwise
        return tags


class DelegatingWrapper(Wrapper):
    """A wrapper that leaves the checks of X, and the attributes about X, to `estimator_`."""

    estimator_: Any
    n_features_in_ = property(attrgetter("estimator_.n_features_in_"))
    feature_names_in_ = property(attrgetter("estimator_.feature_names_in_"))


def check_labels(estimator: Any, y: Any, *, multi_output: bool = False) -> Array:
    """Return y as an array of class labels on the host."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    require_present(y, "y")
    y = y.toarray() if hasattr(y, "tocsr") else to_numpy(y)
    labels = np.asarray(_check_y(y, multi_output=multi_output, estimator=estimator))
    check_classification_targets(labels)
    if labels.dtype.kind in "mM" and np.isnat(labels).any():
        raise ValueError("y has missing dates (NaT). Drop those rows.")
    return labels

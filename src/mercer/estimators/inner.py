"""What estimators share that are built around a PCA or a KernelPCA."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.session import Sessions


class Around(Sessions, BaseEstimator):
    """Base of estimators with another, `estimator`, fitted anew inside their fit."""

    estimator: Any
    estimator_: Any

    @abstractmethod
    def _default(self) -> Any:
        """Return what stands for estimator=None."""

    def _inner(self, *needed: str) -> Any:
        """Return an unfitted copy of the estimator inside, or say what it lacks."""
        inner = self._default() if self.estimator is None else self.estimator
        lacks = [name for name in ("fit", "get_params", *needed) if not hasattr(inner, name)]
        if lacks or isinstance(inner, type):
            what = "is a class" if isinstance(inner, type) else f"has no {', no '.join(lacks)}"
            raise TypeError(
                f"estimator={inner!r} {what}. {type(self).__name__} takes a mercer.PCA or a "
                f"mercer.KernelPCA, such as {self._default()!r}."
            )
        return clone(inner)

    def _fitted(self) -> Any:
        """Return the fitted estimator inside."""
        check_is_fitted(self)
        return self.estimator_

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the rows of the fit."""
        return int(self._attribute("n_features_in_"))

    @property
    def feature_names_in_(self) -> Any:
        """Names of those columns, where they had names."""
        return self._attribute("feature_names_in_")

    @property
    def fingerprint_(self) -> str:
        """By what the rows of the fit are known again."""
        return str(self._attribute("fingerprint_"))

    def _attribute(self, name: str) -> Any:
        try:
            return getattr(vars(self)["estimator_"], name)
        except (KeyError, AttributeError):
            raise AttributeError(f"{type(self).__name__} has no {name}.") from None

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._default() if self.estimator is None else self.estimator
        if hasattr(inner, "__sklearn_tags__") and not isinstance(inner, type):
            theirs = get_tags(inner).input_tags
            tags.input_tags.sparse, tags.input_tags.string = theirs.sparse, theirs.string
            tags.input_tags.pairwise = theirs.pairwise
        return tags

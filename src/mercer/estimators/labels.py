"""Labels that a classifier is judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import to_numpy


class Labelled(ClassifierMixin):
    """A classifier whose score is of labels that its fit has seen."""

    classes_: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is right.

        Labels that the fit has not seen are refused: no row of theirs could be right, and they
        are more often a slip than a test. `sklearn.metrics.accuracy_score` counts them as errors.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA, NearestProjection
        >>> X, y = load_iris(return_X_y=True)
        >>> round(NearestProjection(PCA(2)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 3)
        0.973
        """
        check_is_fitted(self)
        if isinstance(self.classes_, np.ndarray) and not hasattr(y, "tocsr"):
            known = set(self.classes_.tolist())
            given = set(np.asarray(to_numpy(y)).ravel().tolist())
            unseen = sorted((label for label in given if label not in known), key=str)
            if unseen:
                raise ValueError(
                    f"y holds {_listed(unseen)}, which the fit of {type(self).__name__} has not "
                    f"seen; it knows {_listed(sorted(known, key=str))}. Leave such rows out, or "
                    f"fit with rows of that class."
                )
        return float(super().score(X, y, sample_weight))


def _listed(labels: list[Any]) -> str:
    """Return some labels as the user writes them."""
    more = f" and {len(labels) - 10} more" if len(labels) > 10 else ""
    return ", ".join(map(repr, labels[:10])) + more

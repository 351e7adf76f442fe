"""Linear models of rows with missing entries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from mercer import progress
from mercer.certificate import Axes
from mercer.data import (
    FilledSource,
    NonFiniteSearch,
    column_means,
    count_missing,
    not_finite,
    to_output_device,
)
from mercer.estimators.linear_model import LinearModel
from mercer.methods import EM
from mercer.methods.linear.incomplete import require_entries
from mercer.problem import Problem
from mercer.projection import IncompleteProjection


class IncompleteModel(LinearModel):
    """Base of linear models whose parameter `missing` says what missing entries are.

    "error": an error; "mean": the mean of their column; "em" or an `EM` object: unknown.
    """

    missing: str | EM
    entry_weight: Any = None

    @property
    def _em(self) -> EM | None:
        if isinstance(self.missing, EM):
            method: EM = clone(self.missing)
            return method
        return EM() if self.missing == "em" else None

    def _require_complete_batches(self) -> None:
        if self.missing != "error":
            raise ValueError(
                f"partial_fit takes complete batches, and missing={self.missing!r} needs all rows "
                f"at once. Use fit, which also reads files larger than memory, or impute first."
            )

    def _complete_rows(self, problem: Problem) -> tuple[Problem, bool]:
        """Return the problem with means in place of missing entries, and whether some are left."""
        source = problem.source
        if self._em is not None:
            return problem, source.sparse or bool(count_missing(source).any())
        means = column_means(source)
        if np.isinf(means).any():
            raise not_finite(source.fold(NonFiniteSearch(missing=True)).found, source)
        require_entries(source, ~np.isnan(means))
        filled = FilledSource(source, means).weighted(source.weights)
        return replace(problem, source=filled), False

    def _annotated(self, axes: Axes) -> Axes:
        """Return the components with a note of what the fit did with missing entries."""
        if self._em is not None:
            return axes
        note = "All figures are those of the rows with the means of their columns in every gap."
        return replace(axes, evidence=axes.evidence.annotated(note))

    def transform(self, X: Any, out: Any = None, *, return_std: bool = False) -> Any:
        if not return_std:
            return super().transform(X, out)
        projection = self._incomplete_projection("return_std=True", model=True)
        rows = self._rows(X, reset=False)
        spread = projection.score_deviations(rows, self._whitening())
        return super().transform(X, out), self._output(X, spread)

    @available_if(lambda self: self.missing != "error" or self._lacks("impute"))
    def impute(self, X: Any) -> Any:
        """Return rows with their missing entries replaced.

        By what the model expects of them given the other entries of the row; with missing="mean",
        by the means of the columns.
        """
        rows, projection = self._rows(X, reset=False), self._incomplete_projection("impute")
        return self._output(X, projection.filled(rows, self._dtype(rows)))

    def score_samples(self, X: Any) -> Any:
        if self._em is None:
            return super().score_samples(X)
        projection = self._incomplete_projection("score_samples")
        rows = projection.likelihood(self._rows(X, reset=False))
        with progress.session():
            return to_output_device(rows).collect(label="likelihood")[:, 0]

    def _lacks(self, name: str) -> bool:
        raise AttributeError(
            f"{type(self).__name__} has no {name} with missing='error'. Set missing='em'."
        )

    def _incomplete_projection(self, what: str, *, model: bool = False) -> IncompleteProjection:
        """Return the map of incomplete rows; with `model`, one that knows how they vary."""
        self._require_fitted()
        projection = self.projection_
        if not isinstance(projection, IncompleteProjection) or (model and self._em is None):
            raise ValueError(f"{what} needs a model of missing entries. Fit with missing='em'.")
        return projection

"""What estimators share whose fit ends in a projection."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array

from mercer import progress
from mercer.arrays import is_foreign
from mercer.certificate import Certificate
from mercer.methods import ConvergenceWarning
from mercer.notices import warn
from mercer.sources import ArraySource, Source, as_source, write_npy

_CALLBACKS = ("_callback_", "_skl_callbacks")


class Projecting(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of estimators whose fit ends in a projection."""

    n_components_: int
    certificate_: Certificate
    gap: float | None

    def _check_scores(self, X: Any) -> Source:
        if isinstance(X, (Source, str, os.PathLike)) or is_foreign(X):
            source = as_source(X)
        else:
            kinds = [np.float64, np.float32]
            checked = check_array(X, dtype=kinds, ensure_all_finite=False, ensure_min_features=0)
            source = ArraySource(checked)
        if source.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {source.shape[1]} columns, but {type(self).__name__} has "
                f"{self.n_components_} axes. Pass what transform returned."
            )
        return source

    def _written(self, rows: Source, out: Any) -> Source:
        """Write rows to a file, and return them as they lie there."""
        if _get_output_config("transform", self)["dense"] != "default":
            raise ValueError("set_output asks for a table, and out for a file: use one of them.")
        with progress.session():
            return write_npy(rows, out)

    def _handed(self, X: Any, rows: Source) -> Any:
        """Return rows as X came: lazily for a path or a Source, else as an array.

        `set_output` asks for a table, which is never lazy.
        """
        table = _get_output_config("transform", self)["dense"] != "default"
        if isinstance(X, (Source, str, os.PathLike)) and not table:
            return rows
        with progress.session():
            return rows.collect()

    def _warn_quality(self, parameter: str, exact: str) -> None:
        """Say what did not converge, and what could not be certified."""
        found = self.certificate_
        if not found.converged:
            worst = float(np.max(found.residuals) / np.max(found.eigenvalues))
            warn(
                f"the solver stopped before it converged: the largest residual is {worst:.1e} of "
                f"the largest eigenvalue. certificate_ says what that means for each axis; "
                f'{parameter}="auto" converges.',
                ConvergenceWarning,
            )
        if self.gap is not None and found.gap > self.gap:
            warn(
                f"gap={self.gap} was asked for, and gap={float(found.gap):.2g} is what could be "
                f'certified. {parameter}="{exact}" is exact.',
                ConvergenceWarning,
            )

    @contextlib.contextmanager
    def _all_or_nothing(self, *, always: bool = False) -> Iterator[None]:
        """Leave the estimator as it was when something fails inside, or always."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            always = True
            raise
        finally:
            if always:  # what scikit-learn's callbacks still need to be torn down stays
                before |= {k: v for k, v in vars(self).items() if k.startswith(_CALLBACKS)}
                self.__dict__.clear()
                self.__dict__.update(before)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "projection_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags

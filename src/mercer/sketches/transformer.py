"""The scikit-learn face of a map: fit, transform, names, tables.

scikit-learn is looked up when one of its tools is needed; nothing here imports it.
"""

from __future__ import annotations

import importlib
import os
import sys
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from mercer import progress
from mercer.arrays import is_dask, is_foreign
from mercer.data import (
    ArraySource,
    Source,
    SparseSource,
    StringSource,
    as_source,
    lazily,
    require_finite_entries,
    require_present,
)
from mercer.params import Params
from mercer.sketches.drawn import Drawn


class Transformer(Params, ABC):
    """A parameter object whose fit ends in a drawn map."""

    n_features_in_: int
    feature_names_in_: Any
    drawn_: Drawn
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    @abstractmethod
    def drawn_from(self, source: Source, rng: Any = None) -> Drawn:
        """Return the map for the rows of a source."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map for the columns of X, or learn it from its rows; return self.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, array of another library, path or Source
            Rows.
        y : None
            Ignored.
        """
        before = self.__dict__.copy()
        try:
            source = self._rows(X, reset=True)
            if isinstance(source, (ArraySource, SparseSource)):  # a file is not read for this
                require_finite_entries(source)
            with progress.session():
                self.drawn_ = self.drawn_from(source)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows of X through the map: an array, or a `Source` for a path or Source.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, array of another library, path or Source
            Rows.
        """
        self._check_fitted("transform")
        rows = self.drawn_.on(self._rows(X, reset=False))
        # Global settings of scikit-learn exist once it was imported, and ask for tables.
        asked = "sklearn" in sys.modules or hasattr(self, "_sklearn_output_config")
        tables: Any = _sklearn("utils._set_output") if asked else None
        table = tables and tables._get_output_config("transform", self)["dense"] != "default"
        if isinstance(X, (Source, str, os.PathLike)) and not table:
            return rows
        if is_dask(X) and not table:
            return lazily(rows, X)
        with progress.session():
            made = rows.collect()
        return tables._wrap_data_with_container("transform", made, X, self) if table else made

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X, and return its rows through the map."""
        return self.fit(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return the names of the columns that `transform` gives: hashing0, hashing1, ..."""
        self._check_fitted("get_feature_names_out")
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self.drawn_.q)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have `transform` return "pandas" or "polars" tables, or arrays ("default")."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "drawn_")

    def __sklearn_tags__(self) -> Any:
        utils = _sklearn("utils")
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=utils.InputTags(sparse=True),
        )

    def _check_fitted(self, name: str) -> None:
        if not self.__sklearn_is_fitted__():
            raise _sklearn("exceptions").NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet. Call fit before {name}."
            )

    def _rows(self, X: Any, *, reset: bool) -> Source:
        """Return the rows of X; they set the columns, or must have those of the fit."""
        if isinstance(X, (Source, str, os.PathLike)) or is_dask(X) or is_foreign(X):
            source = as_source(X)
            if isinstance(source, StringSource):
                raise ValueError(f"{self!r} takes rows of numbers, and was given strings.")
            self._check_columns(source, reset)
            return source
        require_present(X)
        checked = _sklearn("utils.validation").validate_data(
            self,
            X,
            reset=reset,
            dtype="numeric",
            accept_sparse=("csr", "csc"),
            ensure_all_finite=False,
        )
        names = getattr(self, "feature_names_in_", None)
        if hasattr(checked, "tocsr"):
            return SparseSource(checked, names)
        return ArraySource(checked, names)

    def _check_columns(self, source: Source, reset: bool) -> None:
        if reset:
            self.n_features_in_ = source.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            if source.names is not None:
                self.feature_names_in_ = np.asarray(source.names, dtype=object)
        elif source.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {source.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input. Fit it to rows of those columns."
            )


def _sklearn(module: str) -> Any:
    return importlib.import_module(f"sklearn.{module}")

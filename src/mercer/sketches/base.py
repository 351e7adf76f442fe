"""Sketches: parameter objects that draw or learn a linear map of rows, and transform rows by it.

scikit-learn is looked up when one of its tools is needed; nothing here imports it.
"""

from __future__ import annotations

import copy
import importlib
import os
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mercer import progress
from mercer.arrays import is_dask, is_foreign, reference_of
from mercer.checks import check_integer, require
from mercer.data import (
    ArraySource,
    Source,
    SparseSource,
    StringSource,
    as_source,
    check_features,
    is_frame,
    materialize,
    require_finite_entries,
    require_present,
)
from mercer.params import Params
from mercer.sketches.matrix import IdentityMatrix, SketchMatrix


class SketchMap(Params, ABC):
    r"""A linear map :math:`f: R^d \to R^q` with :math:`f(x)^T f(y) \approx x^T y`.

    Marukatat (2022), §4.3. It is a plain parameter object, and a scikit-learn transformer.
    """

    n_features_in_: int
    feature_names_in_: Any
    matrix_: SketchMatrix
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}

    @abstractmethod
    def check(self) -> None:
        """Raise if parameters are invalid."""

    @abstractmethod
    def matrix_for(self, d: int, rng: np.random.Generator | None = None) -> SketchMatrix:
        """Return the matrix for rows of d columns, drawn with `rng` or with `random_state`.

        The same `random_state` gives the same bits.
        """

    def matrix_from(self, source: Source, rng: np.random.Generator | None = None) -> SketchMatrix:
        """Return the matrix for the rows of a source; some sketches learn it from the rows."""
        return self.matrix_for(source.shape[1], rng)

    def current_matrix(self, source: Source) -> SketchMatrix:
        """Return the fitted matrix, or if there is none, the one for these rows."""
        return self.matrix_ if self.__sklearn_is_fitted__() else self.matrix_from(source)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map for the columns of X, or learn it from the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, array of another library, path or Source
            Rows.
        y : None
            Ignored.
        """
        fitted = copy.copy(self)  # a fit that fails changes nothing
        source = fitted._rows(X, reset=True)
        if isinstance(source, (ArraySource, SparseSource)):  # a file is not read for this
            require_finite_entries(source)
        with progress.session():
            fitted.matrix_ = fitted.matrix_from(source)
        self.__dict__ = fitted.__dict__
        return self

    def transform(self, X: Any) -> Any:
        """Apply the map to X; return an array, or a `Source` for a path or Source.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, array of another library, path or Source
            Rows.
        """
        _sklearn("utils.validation").check_is_fitted(self)
        rows = self.matrix_.on(self._rows(X, reset=False))
        output = _sklearn("utils._set_output")
        table = output._get_output_config("transform", self)["dense"] != "default"
        if isinstance(X, (Source, str, os.PathLike)) and not table:
            return rows
        if is_dask(X) and not table:
            from mercer.data.dask import as_dask_array

            return as_dask_array(rows, X)
        with progress.session():
            result = rows.collect()
        return output._wrap_data_with_container("transform", result, X, self) if table else result

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to X, then transform X."""
        return self.fit(X).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return the names of the output columns: hashing0, hashing1, ..."""
        _sklearn("utils.validation").check_is_fitted(self)
        name = type(self).__name__.lower()
        return np.array([f"{name}{i}" for i in range(self.matrix_.q)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set what `transform` returns: "pandas" or "polars" tables, or arrays ("default")."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "matrix_")

    def __sklearn_tags__(self) -> Any:
        utils = _sklearn("utils")
        return utils.Tags(
            estimator_type=None,
            target_tags=utils.TargetTags(required=False),
            transformer_tags=utils.TransformerTags(preserves_dtype=["float64", "float32"]),
            input_tags=utils.InputTags(sparse=True),
        )

    def _rows(self, X: Any, *, reset: bool) -> Source:
        """Return the rows of X, which set the columns of the fit, or must have them."""
        X, validate_data = materialize(X), _sklearn("utils.validation").validate_data
        ours = isinstance(X, (Source, str, os.PathLike)) or is_dask(X)
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)  # names of columns
        elif not (ours or is_foreign(reference_of(X))):
            require_present(X)
            options = {"accept_sparse": ("csr", "csc"), "ensure_all_finite": False}
            rows = validate_data(self, X, reset=reset, dtype="numeric", **options)
            names = getattr(self, "feature_names_in_", None)
            return (SparseSource if hasattr(rows, "tocsr") else ArraySource)(rows, names)
        source = as_source(X)
        if isinstance(source, StringSource):
            raise ValueError(f"{self!r} needs rows of numbers, but the rows are strings.")
        check_features(self, source, reset)
        return source


@dataclass(eq=False, repr=False)
class RandomMap(SketchMap):
    """A map from any d columns to q, drawn at random.

    Parameters
    ----------
    q : int
        Number of columns of the result.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        Seed; None draws a different map every time.
    identity : bool
        Leave rows of at most q columns unchanged. Otherwise fewer than q columns are an error.
    """

    q: int
    _: KW_ONLY
    random_state: Any = 0
    identity: bool = False

    @abstractmethod
    def draw(self, d: int, seed: int) -> SketchMatrix:
        """Return the matrix for d columns and a seed."""

    def check(self) -> None:
        check_integer(self, "q")
        require(self, "identity", isinstance(self.identity, bool), "True or False")
        seed, generators = self.random_state, (np.random.Generator, np.random.RandomState)
        integer = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and seed >= 0
        valid = seed is None or integer or isinstance(seed, generators)
        expected = "an integer of at least 0, a NumPy generator, or None"
        require(self, "random_state", bool(valid), expected)

    def matrix_for(self, d: int, rng: np.random.Generator | None = None) -> SketchMatrix:
        self.check()
        if self.identity and self.q >= d:
            return IdentityMatrix(d)
        if self.q > d:
            raise ValueError(
                f"{self!r}: q={self.q} is more than n_features={d}, so the map would add columns. "
                f"Use q <= {d}, or identity=True to leave such rows unchanged."
            )
        seed = self.random_state if rng is None else rng
        if seed is None:
            seed = progress.seed(int(np.random.default_rng().integers(2**63)))
        elif isinstance(seed, np.random.Generator):
            seed = seed.integers(2**63)
        elif isinstance(seed, np.random.RandomState):
            seed = progress.seed(int(seed.randint(2**31)))
        return self.draw(d, int(seed))


def _sklearn(module: str) -> Any:
    return importlib.import_module(f"sklearn.{module}")

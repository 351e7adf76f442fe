"""What estimators share whose fit ends in a projection."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import progress, session
from mercer.arrays import Array, is_dask, is_foreign
from mercer.certificate import Certificate
from mercer.checkpoint import check_same, checkpointed, identify
from mercer.data import (
    ArraySource,
    Seen,
    Source,
    as_source,
    at_home,
    check_weights,
    collected,
    fingerprint,
    joint_fingerprint,
    lazily,
    placed,
    require_present,
    resident,
    write_npy,
)
from mercer.data.files import write_table
from mercer.estimators.home import bring_home
from mercer.estimators.session import (
    CallbackSupportMixin,
    Sessions,
    fit_context,
    on_device,
    with_callbacks,
)
from mercer.estimators.stream import (
    add_batch,
    fixed,
    require_fixed,
    warn_if_forgotten,
)
from mercer.estimators.validation import check_rows, from_file, row_names
from mercer.messages import counted, format_parameter, percent, warn
from mercer.methods import ConvergenceWarning
from mercer.planning import Plan
from mercer.problem import Problem


class Projecting(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Sessions, BaseEstimator
):
    """Base of estimators whose fit ends in a projection.

    What differs between them: which rows they take (`_rows`), what is to be solved and how
    (`_prepared`), what is set when it is solved (`_publish`), and what scores are (`_scores`).
    """

    n_components_: int
    n_features_in_: int
    explained_variance_: Array
    explained_variance_ratio_: Array
    certificate_: Certificate
    plan_: Plan
    fingerprint_: str
    gap: float | None
    random_state: Any
    _seen: int
    _begun: Any
    _coarse: Any
    _fold: Any
    _stream: Any

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Dask array, path of a file or Source
            Rows. Of kernel PCA also a list of str, or a precomputed kernel matrix.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the row twice.

        Returns
        -------
        estimator
            Itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> PCA(2).fit(load_iris().data).explained_variance_ratio_.round(3)
        array([0.925, 0.053])
        """
        self._fit(X, sample_weight)
        return self

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the components and return the scores of the same rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import KernelPCA
        >>> KernelPCA(2, kernel="rbf", gamma=0.1).fit_transform(load_iris().data).shape
        (150, 2)
        """
        with checkpointed():
            source = self._fit(X, sample_weight)
            return self._handed(X, self._own_scores(source), source)

    def transform(self, X: Any, out: Any = None) -> Any:
        """Return the scores of rows: an array, for a path or a Source a Source, lazy of Dask.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Dask array, path of a file or Source
            Rows. Of kernel PCA also a list of str, or, where the kernel is precomputed, the
            kernel between them and the rows of the fit.
        out : path of a file, optional
            Where to write the scores, block by block: a ``.npy``, ``.parquet``, ``.arrow``,
            ``.csv`` or ``.tsv`` file. They are returned as a Source. A table gets the names of
            the rows too: the id column of a file and what `read_table` kept of it, the index of
            a DataFrame.

        Returns
        -------
        array of shape (n, k) or Source
            A Source computes its rows when they are read; its `collect` gives the array. A Dask
            array or DataFrame gives a Dask array, computed when it is.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> PCA(2).fit(X).transform(X[:1]).round(2)
        array([[-2.68,  0.32]])
        """
        self._require_fitted()
        if out is None:
            return self._handed(X, self._scores(self._rows(X, reset=False)))
        X = from_file(self, collected(X))
        return self._written(self._scores(self._rows(X, reset=False)), out, row_names(X))

    def plan(self, X: Any) -> Plan:
        """Return what `fit` would do, and what it would cost; runs nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import PCA
        >>> PCA(10).plan(np.zeros((100_000, 300))).method
        Covariance()
        """
        self._validate_params()
        with self._all_or_nothing(always=True):
            self.random_state = 0  # the user's is not drawn from
            source = self._rows(X, reset=True)
            with on_device(source.reference):
                return self._prepared(source)[1]

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows that calls of `partial_fit` have seen; there after the first."""
        if "_seen" not in vars(self):
            raise AttributeError("n_samples_seen_ is there after partial_fit only.")
        return int(self._seen)

    def _rows(self, X: Any, *, reset: bool) -> Source:
        return check_rows(self, X, reset=reset, least=2 if reset else 1)

    @abstractmethod
    def _prepared(self, source: Source) -> tuple[Problem, Plan]:
        """Return what is to be solved, and how."""

    def _readied(self, problem: Any, plan: Plan) -> Any:
        """Return the problem with its rows as the fit needs them: what a plan need not read."""
        return problem

    @property
    @abstractmethod
    def _fixed(self) -> tuple[str, ...]:
        """Names of the parameters that cannot change between batches."""

    @abstractmethod
    def _begin(self, batch: Source) -> None:
        """Set the method that batches go through, `_stream`, and its sums, `_fold`."""

    @abstractmethod
    def _prepared_batches(self, rows: Seen) -> tuple[Problem, Plan]:
        """Return what is to be solved of all batches, and how."""

    def _shifted(self, batch: Source) -> Source:
        """Return the rows of a batch as they are summed."""
        return batch

    def _least_rows(self, d: int) -> int:
        """Return how many rows of d columns must be seen before there are components."""
        return 1

    @abstractmethod
    def _publish(self, problem: Any, projection: Any, plan: Plan) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _scores(self, source: Source) -> Source:
        """Return the scores of rows, computed when they are read."""

    @abstractmethod
    def _residuals(self, source: Source) -> Source:
        """Return one column: squared distances from the components, computed when they are read."""

    def _own_scores(self, source: Source) -> Source:
        """Return the scores of the rows of the fit."""
        return self._scores(source)

    def _fit(self, X: Any, sample_weight: Any) -> Source:
        """Fit, or leave everything as it was; return the rows."""
        with self._session(X):
            source = self._rows(X, reset=True)
            source = source.weighted(check_weights(sample_weight, source))
            self.fingerprint_ = fingerprint(source)
            if session.recorder() is not None:
                rows = identify(source, self.fingerprint_)
                check_same(self, rows=rows, weights=source.weights)
            with on_device(source.reference):
                source = resident(source)
                problem, plan = self._prepared(source)
                plan.require_fit(problem)
                if session.recorder() is not None:
                    check_same(plan=plan.method)
                problem = self._readied(problem, plan)
                self._publish(problem, plan.method.fit(problem), plan)
                bring_home(self, source)
        return source

    def _partial_fit(self, X: Any, sample_weight: Any) -> Self:
        """Add a batch, or leave everything as it was."""
        with self._session(resumable=False):
            first = "_fold" not in vars(self)
            batch = self._rows(X, reset=first)
            batch = batch.weighted(check_weights(sample_weight, batch, least=float(first)))
            if first:
                warn_if_forgotten(self)
                self._begun = fixed(self, self._fixed)
                self._seen, self._coarse = 0, np.dtype(np.float32)
                self._begin(batch)
            else:
                require_fixed(self, self._fixed, self._begun)
            fold = add_batch(self._fold, self._shifted(batch))
            before = None if first else getattr(self, "fingerprint_", None)
            self.fingerprint_ = joint_fingerprint(before, batch)
            rows = Seen(batch, self._seen + batch.shape[0], fold.weight)
            self._coarse = rows.dtype = np.result_type(batch.dtype, self._coarse)
            if rows.shape[0] >= self._least_rows(batch.shape[-1]):
                problem, plan = self._prepared_batches(rows)
                plan = replace(plan, reason="to which batches can be added")
                self._publish(problem, self._stream.finish(problem, fold), plan)
                bring_home(self, batch)
            self._fold, self._seen = fold, rows.shape[0]
        return self

    def _generator(self) -> np.random.Generator:
        """Return where the solvers start from."""
        drawn = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(session.seed(int(drawn)))

    def _check_scores(self, X: Any) -> Source:
        if isinstance(X, (Source, str, os.PathLike)) or is_dask(X) or is_foreign(X):
            source = as_source(X)
        else:
            kinds = [np.float64, np.float32]
            require_present(X)
            checked = check_array(X, dtype=kinds, ensure_all_finite=False, ensure_min_features=0)
            source = ArraySource(checked)
        if source.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {counted(source.shape[1], 'column')}, but {type(self).__name__} has "
                f"{counted(self.n_components_, 'component')}. Pass what transform returned."
            )
        return placed(source)

    def _written(self, rows: Source, out: Any, beside: Mapping[str, Any] | None = None) -> Source:
        """Write rows to a file and return them: as they lie there, or as they are computed."""
        if _get_output_config("transform", self)["dense"] != "default":
            raise ValueError("set_output asks for a table, and out for a file: use one of them.")
        rows = at_home(rows)
        with progress.session():
            if Path(out).suffix.lower() == ".npy":
                return write_npy(rows, out)
            write_table(rows, out, self.get_feature_names_out(), beside)
        return rows  # to read them back would take another pass

    def _handed(self, X: Any, rows: Source, fitted: Source | None = None) -> Any:
        """Return rows as X came: lazily for a path, a Source or of Dask, else as an array.

        `set_output` asks for a table, which is never lazy. Those of a fit know the sizes of their
        chunks, which X may not.
        """
        table, rows = _get_output_config("transform", self)["dense"] != "default", at_home(rows)
        if isinstance(X, (Source, str, os.PathLike)) and not table:
            return rows
        if is_dask(X) and not table:
            counted = fitted is not None and fitted.remote is not None
            return lazily(rows, fitted if counted else X)
        with progress.session():
            return rows.collect()

    def _warn_quality(self, parameter: str, remedy: str) -> None:
        """Say what did not converge, and what could not be certified."""
        found = self.certificate_
        if not found.converged:
            worst = float(np.max(found.residuals, initial=0.0))
            worst /= max(float(np.max(found.eigenvalues, initial=0.0)), 1e-300)
            largest = f": the largest residual is {worst:.1e} of the largest eigenvalue"
            warn(
                f"the solver stopped before it converged{'' if np.isnan(worst) else largest}. "
                f"certificate_ shows what this means for each component; "
                f"{format_parameter(parameter, 'auto')} converges.",
                ConvergenceWarning,
            )
        gap = format_parameter("gap", self.gap)
        if self.gap is not None and self.n_components in (None, "all"):
            warn(
                f"{gap} has no effect: all components are computed, and together they explain all "
                f"of the variance. Set {format_parameter('n_components', 10)}, for example."
            )
        if self.gap is not None and found.gap.kind == "estimate":
            warn(
                f"{gap} was asked for, and {float(found.gap):.2g} is an estimate: no bound is "
                f"known. {remedy}",
                ConvergenceWarning,
            )
        elif self.gap is not None and self._too_few and 1.0 - found.captured > self.gap:
            warn(
                f"{gap} was asked for with {format_parameter('n_components', self.n_components)}, "
                f"and only {len(found.eigenvalues)} could be found, which explain "
                f"{percent(found.captured)} of the variance. {remedy}",
                ConvergenceWarning,
            )
        elif self.gap is not None and found.gap > self.gap:
            warn(
                f"{gap} was asked for, and {float(found.gap):.2g} is what could be certified. "
                f"{remedy}",
                ConvergenceWarning,
            )

    @property
    def _too_few(self) -> bool:
        """Whether there are fewer components than were asked for, and some variance."""
        asked, there = self.n_components, self.projection_.total_variance > 0.0
        return isinstance(asked, Integral) and there and self.n_components_ < int(asked)

    def _require_fitted(self) -> None:
        """Refuse to be used before there are components; say what a stream still needs."""
        seen = vars(self).get("_seen")
        if seen is not None and not self.__sklearn_is_fitted__():
            wanted = self.get_params(deep=False)["n_components"]
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: partial_fit has seen "
                f"{seen} rows, too few for n_components={wanted!r}. Pass more batches."
            )
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "projection_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags

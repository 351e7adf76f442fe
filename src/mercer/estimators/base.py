"""Base class of estimators whose fit ends in a projection, and the session of a fit."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from mercer import progress
from mercer.arrays import Array, Vector, is_dask, is_foreign, like, on_accelerator, to_numpy
from mercer.certificate import Axes, Certificate
from mercer.certificate.block_gram import BlockGram
from mercer.certificate.partition import (
    LEAST_ROWS,
    BlockSums,
    advise,
    largest_block,
    refine,
    with_blocks,
    with_rows,
)
from mercer.checkpoint import check_same, checkpointed, identify
from mercer.config import get_config
from mercer.data import (
    ArraySource,
    PastRows,
    Source,
    as_source,
    cache_on_device,
    check_weights,
    device_context,
    materialize,
    require_finite_sums,
    require_present,
    to_configured_device,
    to_output_device,
    write_npy,
)
from mercer.data.files import write_table
from mercer.estimators.validation import check_rows, columns_of_fit, row_names
from mercer.kernels import Linear
from mercer.messages import counted, format_parameter, percent, warn
from mercer.methods import ConvergenceWarning
from mercer.methods.preparation import shifted
from mercer.params import same
from mercer.planning import ASKED, Plan
from mercer.problem import Problem

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where there are no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


F = TypeVar("F", bound=Callable[..., Any])
# Attributes by which scikit-learn ends its callbacks.
_CALLBACKS = ("_callback_", "_skl_callbacks")
# Attributes of partial_fit, which a fit deletes.
_STREAM = ("_fold", "_blocks", "_stream", "_seen", "_begun", "_coarse", "_kernel", "_shift")


def typed(decorator: Any) -> Callable[[F], F]:
    """Return a decorator of scikit-learn that keeps the type of the method."""
    keep: Callable[[F], F] = decorator
    return keep


def draw_seed(random_state: Any) -> int:
    """Return a seed drawn from scikit-learn's `random_state`; a resumed fit draws the same."""
    return progress.seed(int(check_random_state(random_state).randint(2**31 - 1)))


def fitted_array(x: Any, dtype: np.dtype[Any], reference: Array) -> Array:
    """Return a fitted attribute in the dtype of the rows, or float64 where that cannot hold it.

    Variances of float32 rows of 1e20 are no float32 numbers.
    """
    if dtype != np.float64:
        largest, range_ = float(np.max(np.abs(x), initial=0.0)), np.finfo(dtype)
        if largest and not float(range_.tiny) <= largest <= float(range_.max):
            dtype = np.dtype(np.float64)
    return like(np.ascontiguousarray(x, dtype=dtype), reference)


class PassCallbacks(progress.Listener):
    """Reports passes to the callbacks of an estimator, as subtasks of its fit."""

    def __init__(self, estimator: Any, X: Any) -> None:
        self.estimator, self.X = estimator, X
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=estimator, X=X)

    def begin(self, label: str, total: int) -> Any:
        task = self.root.subcontext(task_name=label)
        return task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)

    def end(self, handle: Any) -> None:
        handle.call_on_fit_task_end(estimator=self.estimator, X=self.X)

    def close(self) -> None:
        """Report the end of the fit."""
        fitted = {k: v for k, v in vars(self.estimator).items() if k.endswith("_")}
        self.root.call_on_fit_task_end(
            estimator=self.estimator, X=self.X, reconstruction_attributes=lambda: fitted
        )


class Sessions:
    """Base of estimators whose fits run in a session."""

    @classmethod
    @functools.cache  # a tenth of the time of a small fit
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()  # type: ignore[misc]
        return names

    @contextlib.contextmanager
    def _session(self, X: Any = None, *, resumable: bool = True) -> Iterator[None]:
        """Run a fit; a failed fit leaves the estimator unchanged, a killed fit can resume.

        Where scikit-learn has callbacks, those of the estimator follow the fit to X.
        """
        followed = X is not None and hasattr(self, "_skl_callbacks")
        callbacks = [PassCallbacks(self, X)] if followed else []
        before = vars(self).copy()
        try:
            settings, nothing = get_config(), contextlib.nullcontext()
            recorded = checkpointed() if resumable and settings.checkpoint is not None else nothing
            shown = progress.session(*callbacks) if settings.progress or callbacks else nothing
            # Overflow, in bounds of variances of 1e160, is checked where it matters.
            with recorded, shown, np.errstate(over="ignore", invalid="ignore"):
                yield
                for each in callbacks:
                    each.close()
        except BaseException:
            before |= {k: v for k, v in vars(self).items() if k.startswith(_CALLBACKS)}
            vars(self).clear()
            vars(self).update(before)
            raise

    def _output(self, X: Any, rows: Source, fitted: Source | None = None) -> Any:
        """Return rows in the form of X: lazy for a path, Source or Dask, else an array.

        `set_output` asks for a table, which is never lazy. Rows of a fit know the sizes of their
        chunks, which X may not.
        """
        rows = to_output_device(rows)
        if _get_output_config("transform", self)["dense"] == "default":
            if isinstance(X, (Source, str, os.PathLike)):
                return rows
            if is_dask(X):
                from mercer.data.dask import as_dask_array

                known = fitted is not None and fitted.remote is not None
                return as_dask_array(rows, fitted if known else X)
        with progress.session():
            return rows.collect()


class ProjectionEstimator(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Sessions, BaseEstimator
):
    """Base of estimators whose fit ends in a projection, `projection_`.

    They differ in the rows they take (`_rows`), the problem and the plan (`_plan_fit`,
    `_plan_stream`), the fitted attributes (`_set_fitted`) and the scores (`_scores`).
    """

    n_components_: int
    n_features_in_: int
    explained_variance_ratio_: Array
    certificate_: Certificate
    plan_: Plan
    projection_: Any
    gap: float | None
    certificate: bool | str
    center: bool
    random_state: Any
    _seen: int
    _begun: Any
    _coarse: Any
    _fold: Any
    _blocks: BlockSums | None
    _stream: Any

    @typed(with_callbacks)
    @typed(_fit_context(prefer_skip_nested_validation=True))
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to X.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, AnnData, Dask array, path of a file or Source
            Samples. For kernel PCA also a list of str, or a precomputed kernel matrix.
        y : None
            Ignored.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the sample twice.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        self._fit(X, sample_weight)
        return self

    @typed(with_callbacks)
    @typed(_fit_context(prefer_skip_nested_validation=True))
    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model to X and return the scores of X."""
        with checkpointed():
            source = self._fit(X, sample_weight)
            return self._output(X, self._training_scores(source), source)

    @typed(available_if(lambda self: self._can_stream()))
    @typed(_fit_context(prefer_skip_nested_validation=True))
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the components with a batch of samples.

        For `PCA` the result equals one fit to all samples, while a d×d matrix fits the memory
        budget. Beyond it a sketch is used, with a warning, and the certificate bounds what is
        lost. The estimator stays unfitted until it has seen as many samples as components are
        requested. `center`, `scale`, `svd_solver` and `feature_weight` cannot change between
        batches.

        For `KernelPCA` the result equals one fit to all samples on a basis, which is given, as
        `method=Subset(select=points)`, or chosen from the first batch, as gamma="median" is;
        `Hebbian` learns from the samples in their order. The parameters of the kernel, `center`
        and `method` cannot change. Samples of an earlier `fit` do not count.
        """
        with self._session(resumable=False):
            first, names = "_fold" not in vars(self), self._constant_parameters()
            batch = self._rows(X, reset=first)
            batch = batch.weighted(check_weights(sample_weight, batch, least=float(first)))
            if first:
                if self.__sklearn_is_fitted__():
                    warn(
                        "partial_fit starts over: fit does not store sums, so the samples of the "
                        "earlier fit are not included. Pass them to partial_fit too, or start with "
                        "a clone."
                    )
                # Copies, which set_params does not change.
                self._begun = clone(self._constants(), safe=False)
                self._seen, self._coarse = 0, np.dtype(np.float32)
                self._start_stream(batch)
                self._blocks = self._start_blocks(batch)
            for name, now, before in zip(names, self._constants(), self._begun, strict=False):
                if not same(now, before):
                    raise ValueError(
                        f"{name}={now!r} was {before!r} at the first batch: "
                        f"{', '.join(names[:-1])} and {names[-1]} cannot change between calls of "
                        f"partial_fit, because samples are not stored. Start with a clone."
                    )
            shift = vars(self).get("_shift")
            moved = batch if shift is None else shifted(batch, shift).weighted(batch.weights)
            fold, blocks = _add_batch(self._fold, moved), vars(self).get("_blocks")
            if blocks is not None:
                blocks = with_rows(blocks, moved)
            rows = PastRows(batch, self._seen + batch.shape[0], fold.weight)
            self._coarse = rows.dtype = np.result_type(batch.dtype, self._coarse)
            if rows.shape[0] >= self._min_samples(batch.shape[-1]):
                problem, plan = self._plan_stream(rows)
                plan = replace(plan, reason="as it supports partial_fit")
                axes = self._stream.finish(problem, fold)
                if blocks is not None and blocks.k == len(axes.evidence.eigenvalues):
                    axes = replace(axes, evidence=with_blocks(problem, axes.evidence, blocks))
                self._set_fitted(problem, axes, plan, batch.output_reference)
            self._fold, self._blocks, self._seen = fold, blocks, rows.shape[0]
        return self

    def transform(self, X: Any, out: Any = None) -> Any:
        """Return the scores of samples: an array, or a Source for a path or a Source.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, AnnData, Dask array, path of a file or Source
            Samples. For kernel PCA also a list of str, or, if the kernel is precomputed, the
            kernel between them and the training samples.
        out : path of a file, optional
            Where to write the scores, block by block: a ``.npy``, ``.parquet``, ``.arrow``,
            ``.csv`` or ``.tsv`` file. A table gets the names of the rows too.

        Returns
        -------
        array of shape (n, k) or Source
            A Source computes its rows when they are read; its `collect` gives the array. A Dask
            array or DataFrame gives a lazy Dask array.
        """
        self._require_fitted()
        if out is None:
            return self._output(X, self._scores(self._rows(X, reset=False)))
        X = materialize(columns_of_fit(self, X))
        return self._write(self._scores(self._rows(X, reset=False)), out, row_names(X))

    def reconstruction_error(self, X: Any) -> Any:
        """Return the squared distance of each sample from its projection.

        For `KernelPCA` in feature space; for `PCA(scale=True)` in units of the standard
        deviations of the columns, and with `feature_weight` in the metric that it defines.
        """
        self._require_fitted()
        residuals = self._residuals(self._rows(X, reset=False))
        with progress.session():
            return to_output_device(residuals).collect(label="residuals")[:, 0]

    def plan(self, X: Any) -> Plan:
        """Return the plan of `fit`: methods, passes, memory and time. Computes nothing."""
        self._validate_params()
        model = copy.copy(self)
        model.random_state = 0  # the user's is not drawn from
        with model._session(resumable=False):
            source = model._rows(X, reset=True)
            with device_context(source.reference):
                return replace(model._plan_fit(source)[1], certificate=bool(self.certificate))

    @property
    def n_samples_seen_(self) -> int:
        """Number of samples that calls of `partial_fit` have seen."""
        if "_seen" not in vars(self):
            raise AttributeError("n_samples_seen_ exists only after partial_fit.")
        return int(self._seen)

    def _rows(self, X: Any, *, reset: bool) -> Source:
        return check_rows(self, X, reset=reset, least=2 if reset else 1)

    @abstractmethod
    def _plan_fit(self, source: Source) -> tuple[Any, Plan]:
        """Return the problem of a fit, and its plan; reads as little as it can."""

    @abstractmethod
    def _load(self, problem: Any, plan: Plan) -> tuple[Any, Plan]:
        """Return the problem with its rows as the fit needs them, and the plan for these."""

    def _can_stream(self) -> bool:
        """Return whether samples may come in batches, or raise an AttributeError."""
        return True

    @abstractmethod
    def _constant_parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters that cannot change between batches."""

    def _constants(self) -> tuple[Any, ...]:
        """Return those parameters; array-likes, which could not be compared, as arrays."""
        values = (getattr(self, name) for name in self._constant_parameters())
        return tuple(to_numpy(x) if getattr(x, "ndim", 0) else x for x in values)

    @abstractmethod
    def _start_stream(self, batch: Source) -> None:
        """Set the method that batches go through, `_stream`, and its sums, `_fold`."""

    def _start_blocks(self, batch: Source) -> BlockSums | None:
        """Return the sums over blocks of rows that certify a stream; None if there are none."""
        k = int(self.n_components) if isinstance(self.n_components, Integral) else 0
        kernel = getattr(self, "_kernel", Linear())
        if not (self.certificate and self._stream.approximates and k and kernel.psd is True):
            return None
        rows = largest_block(batch)
        if self.certificate != "tight":  # as large as cost no more than the batch itself
            _, plan = self._plan_stream(PastRows(batch, batch.shape[0], batch.count))
            rows = min(rows, max(plan.block_rows, LEAST_ROWS))
        if rows <= k:
            return None
        gram = BlockGram(kernel, batch.dtype, bool(self.center), deviation=self._deviation(batch))
        return BlockSums(gram, k, draw_seed(self.random_state), rows)

    def _deviation(self, batch: Source) -> Vector | None:
        """Return what columns are divided by before rows are compared; None for 1."""
        return None

    @abstractmethod
    def _plan_stream(self, rows: PastRows) -> tuple[Problem, Plan]:
        """Return the problem of all batches, and its plan."""

    def _min_samples(self, d: int) -> int:
        """Return how many rows of d columns must be seen before there are components."""
        return 1

    @abstractmethod
    def _set_fitted(self, problem: Any, axes: Axes, plan: Plan, reference: Array) -> None:
        """Set the fitted attributes, with arrays on the device of the user's rows, `reference`."""

    @abstractmethod
    def _scores(self, source: Source) -> Source:
        """Return the scores of rows, computed when they are read."""

    @abstractmethod
    def _residuals(self, source: Source) -> Source:
        """Return one column: squared distances from the components, computed when they are read."""

    def _training_scores(self, source: Source) -> Source:
        """Return the scores of the rows of the fit."""
        return self._scores(source)

    def _fit(self, X: Any, sample_weight: Any) -> Source:
        """Fit and return the rows; a failed fit changes nothing."""
        with self._session(X):
            for name in _STREAM:
                self.__dict__.pop(name, None)
            source = self._rows(X, reset=True)
            if sample_weight is not None or source.weights is not None:
                source = source.weighted(check_weights(sample_weight, source))
            recorded = progress.recorder.get() is not None
            if recorded:
                check_same(self, rows=identify(source), weights=source.weights)
            on_host = isinstance(source.reference, np.ndarray)
            with contextlib.nullcontext() if on_host else device_context(source.reference):
                source = source if on_host else cache_on_device(source)
                problem, plan = self._plan_fit(source)
                if plan.reason == ASKED:
                    plan.require_fit(problem)
                if recorded:
                    check_same(plan=plan.method)
                problem, plan = self._load(problem, plan)
                reference = source.reference if on_host else source.output_reference
                axes, plan = (
                    plan.method.fit(problem),
                    replace(plan, certificate=bool(self.certificate)),
                )
                if plan.certificate and plan.method.approximates:
                    axes = plan.method.judge(problem, axes)
                    gap = 0.0 if self.certificate == "tight" else self.gap
                    axes = refine(problem, axes, plan.block_rows, gap)
                    axes = axes if gap is not None else advise(problem, axes, plan.block_rows)
                self._set_fitted(problem, axes, plan, reference)
        return source

    def _check_scores(self, X: Any) -> Source:
        """Return scores, as `transform` returns them, as a source."""
        if isinstance(X, (Source, str, os.PathLike)) or is_dask(X) or is_foreign(X):
            source = as_source(X)
        else:
            require_present(X)
            X = check_array(X, ensure_all_finite=False, ensure_min_features=0)
            source = ArraySource(X)
        if source.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {counted(source.shape[1], 'column')}, but {type(self).__name__} has "
                f"{counted(self.n_components_, 'component')}. Pass the output of transform."
            )
        return to_configured_device(source)

    def _write(self, rows: Source, out: Any, names: Mapping[str, Any]) -> Source:
        """Write rows to a file; return a source of the .npy file, or the lazy rows."""
        if _get_output_config("transform", self)["dense"] != "default":
            raise ValueError("set_output requests a table, but out a file: use only one of them.")
        rows = to_output_device(rows)
        with progress.session():
            if Path(out).suffix.lower() == ".npy":
                return write_npy(rows, out)
            write_table(rows, out, self.get_feature_names_out(), names)
        return rows  # to read them back would take another pass

    def _warn_quality(self, parameter: str, remedy: str) -> None:
        """Warn if the solver did not converge or the gap was not certified."""
        certificate, wanted = self.certificate_, self.n_components
        if not certificate.converged:
            worst = float(np.max(certificate.residuals, initial=0.0))
            worst /= max(float(np.max(certificate.eigenvalues, initial=0.0)), 1e-300)
            largest = f": the largest residual is {worst:.1e} of the largest eigenvalue"
            warn(
                f"the solver stopped before it converged{'' if np.isnan(worst) else largest}. "
                f"certificate_ shows what this means for each component; "
                f"{format_parameter(parameter, 'auto')} converges.",
                ConvergenceWarning,
            )
        if self.gap is None:
            return
        gap, k = format_parameter("gap", self.gap), self.n_components_
        if wanted in (None, "all"):
            warn(
                f"{gap} has no effect: all components are computed, and they explain all of the "
                f"variance. Set n_components, for example {format_parameter('n_components', 10)}."
            )
        fewer = isinstance(wanted, Integral) and k < int(wanted)
        fewer = fewer and self.projection_.total_variance > 0.0
        if certificate.gap.kind == "estimate":
            problem = f"{float(certificate.gap):.2g} is only an estimate, not a bound"
        elif fewer and 1.0 - certificate.captured > self.gap:
            problem = (
                f"only {k} of {format_parameter('n_components', wanted)} were found; they "
                f"explain {percent(certificate.captured)} of the variance"
            )
        elif certificate.gap > self.gap:
            problem = f"only {float(certificate.gap):.2g} could be certified"
        else:
            return
        warn(f"{gap} was requested, but {problem}. {remedy}", ConvergenceWarning)

    def _require_fitted(self) -> None:
        """Raise a NotFittedError before there are components."""
        seen = vars(self).get("_seen")
        if seen is not None and not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet: partial_fit has seen "
                f"{seen} rows, too few for n_components={self.n_components!r}. Pass more batches."
            )
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return "projection_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


def _add_batch(fold: Any, batch: Source) -> Any:
    """Return a fold that has seen a batch more; the one passed stays as it is."""
    for array in fold.arrays().values():
        if on_accelerator(array) != on_accelerator(batch.reference) and array.ndim > 1:
            raise ValueError(
                "Earlier batches were on a different device than this one. Pass all batches from "
                "the same device, with the same config_context(device=...)."
            )
    part = batch.fold(fold.spawn())
    require_finite_sums(batch, *part.arrays().values())
    both = fold.spawn()
    both.restore(fold.arrays())
    both.merge(part)
    return both

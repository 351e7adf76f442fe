"""Denoising by projection onto principal components."""

from __future__ import annotations

import copy
import math
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Vector, namespace
from mercer.checkpoint import check_same, identify
from mercer.checks import is_positive_integer, is_real
from mercer.data import Source, check_weights, require_finite_entries
from mercer.estimators.base import draw_seed, typed
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.noise import (
    as_candidates,
    candidate_errors,
    error_measure,
    gamma_name,
    split_rows,
    with_parameters,
)
from mercer.estimators.pca import PCA
from mercer.estimators.validation import (
    array_shape,
    check_rows,
    flatten_images,
    load_rows,
)
from mercer.estimators.wrapper import Wrapper
from mercer.rules import GavishDonoho


@dataclass(eq=False, repr=False)
class Denoiser(OneToOneFeatureMixin, TransformerMixin, Wrapper):
    r"""Denoise samples by projecting them onto principal components.

    :math:`\hat x = \arg\min_r \|\Phi(r) - P\Phi(x)\|^2` with P the projector onto the components: a
    plane for `PCA`, a curved manifold for `KernelPCA`. Sources: Mika et al. (1999), "Kernel PCA
    and de-noising in feature space"; Washizawa (2012), §6.5.

    The number of components and the kernel's γ may be lists of candidates: the one of least mean
    squared error on validation rows is fitted again to all rows. The error is measured on pairs,
    if ``fit(X, y)`` gets noisy rows X and the same rows without noise, y; on clean rows to which
    `noise` is added; or, if ``noisy=True``, on noisy rows by Stein's unbiased estimate, which
    needs the standard deviation of Gaussian noise (Ramani, Blu & Unser 2008, "Monte-Carlo SURE").

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        The estimator of the components. None is a `PCA` with the components above the noise
        (`rules.GavishDonoho`) or, with `gamma`, a `KernelPCA` with the RBF kernel. A KernelPCA
        with neither `preimage` nor `fit_inverse_transform` gets ``preimage="auto"``.
    n_components : int, list of int or None
        Number of components, or candidates for it. None keeps that of the estimator.
    gamma : float, list of float or None
        Scale of the kernel, or candidates for it. None keeps that of the estimator.
    noise : float, callable or None
        Noise for the comparison of candidates: the standard deviation of Gaussian noise, or a
        function of rows and a Generator that returns noisy rows, such as `SaltAndPepper(0.1)`.
    noisy : bool
        Whether the training data has that noise already.
    validation : float or int
        Fraction or number of the rows for validation, if there are several candidates.
    limits : tuple of (float, float) or None
        Range to which denoised values are clipped, such as (0, 255).
    image_shape : tuple of int or None
        Shape of an image, if arrays of shape (n, *image_shape) are passed and returned.
    random_state : int, RandomState or None
        Seed of the validation rows and their noise.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The estimator, fitted to all rows.
    n_components_ : int
        Number of components.
    gamma_ : float or None
        The γ of the kernel, if it has one.
    validation_error_ : dict of ndarray
        Columns "n_components", "gamma" and "error" of several candidates. The error is NaN for
        more components than there are.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Denoiser, KernelPCA
    >>> X = load_digits().data
    >>> denoiser = Denoiser(
    ...     KernelPCA(kernel="rbf", preimage="fixed_point"),
    ...     n_components=[10, 30, 90],
    ...     gamma=[1e-4, 1e-3],
    ...     noise=4.0,
    ...     limits=(0, 16),
    ...     random_state=0,
    ... ).fit(X[:1000])
    >>> denoiser.n_components_, denoiser.gamma_
    (90, 0.001)
    >>> noisy = X[1000:] + 4 * np.random.default_rng(0).normal(size=X[1000:].shape)
    >>> denoiser.transform(noisy[:1])[0, :4].round()
    array([ 0.,  0.,  5., 12.])
    >>> round(-denoiser.score(noisy, X[1000:]))  # the noise had 16
    5
    """

    estimator_: Any = field(init=False)
    n_components_: int = field(init=False)
    gamma_: float | None = field(init=False)
    validation_error_: dict[str, Vector] = field(init=False)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [PCA, KernelPCA, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "gamma": [Interval(Real, 0, None, closed="neither"), "array-like", None],
        "noise": [Interval(Real, 0, None, closed="neither"), callable, None],
        "noisy": ["boolean"],
        "validation": [
            Interval(RealNotInt, 0, 1, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "limits": [tuple, list, None],
        "image_shape": [tuple, list, None],
        "random_state": ["random_state"],
    }

    estimator: Any = None
    _: KW_ONLY
    n_components: Any = None
    gamma: Any = None
    noise: Any = None
    noisy: bool = False
    validation: float | int = 0.1
    limits: tuple[float, float] | None = None
    image_shape: tuple[int, ...] | None = None
    random_state: Any = None

    @typed(_fit_context(prefer_skip_nested_validation=False))
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the components; with several candidates, choose one.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Training samples or images; several candidates need them in memory.
        y : array-like of the shape of X, optional
            The same samples without noise, to which the components are fitted. Class labels, one
            per sample, are ignored: in a pipeline they are for another step.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the sample twice.
        """
        with self._session():
            for name in ("validation_error_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            self._check_parameters()
            source = check_rows(self, flatten_images(X, self.image_shape), reset=True, least=2)
            check_same(self, rows=identify(source))
            weights = check_weights(sample_weight, source)
            source, clean = source.weighted(weights), self._clean_rows(y, source)
            counts, gammas = as_candidates(self.n_components), as_candidates(self.gamma)
            model, several = self._inner(), len(counts) * len(gammas) > 1
            if gammas[0] is not None:
                gamma_name(model)
            if clean is not None or several:
                require_finite_entries(source, "X")  # the error names rows of X, not of a subset
            training = source if clean is None else clean.weighted(weights)
            k, gamma = counts[0], gammas[0]
            if several:
                k, gamma = self._choose(model, source, clean, training)
            self.estimator_ = with_parameters(model, k, gamma).fit(training)
            self.n_components_ = self.estimator_.n_components_
            self.gamma_ = gamma if gamma is not None else getattr(self.estimator_, "gamma_", None)
        return self

    def transform(self, X: Any) -> Any:
        """Denoise samples or images.

        With linear components, a path or a Source gives a Source that is computed when read.
        """
        check_is_fitted(self)
        source = check_rows(self, flatten_images(X, self.image_shape), reset=False)
        rows = self.estimator_.reconstruct(source)
        if isinstance(rows, Source):
            rows = rows.map(lambda block: self._clip(block.rows), rows.shape[1], rows.dtype)
            rows = self._output(X, rows)
        else:
            rows = self._clip(rows)
        table = _get_output_config("transform", self)["dense"] != "default"
        shape = array_shape(X)[1:]
        if table or isinstance(rows, Source) or shape in ((), rows.shape[1:]):
            return rows
        return rows.reshape((rows.shape[0], *shape))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the negative mean squared error.

        Parameters
        ----------
        X : array-like
            Samples or images.
        y : array-like of the shape of X, optional
            The same samples without noise. Without them the error is measured as for candidates;
            if `noise` is None, X itself counts as clean.
        sample_weight : array-like of shape (n,), optional
            Counts.
        """
        check_is_fitted(self)
        source = check_rows(self, flatten_images(X, self.image_shape), reset=False)
        weights = check_weights(sample_weight, source, least=0.0)
        clean = self._clean_rows(y, source)
        if clean is None and self.noise is None:
            clean = source
        rng = np.random.default_rng(draw_seed(self.random_state))
        error = error_measure(source.weighted(weights), clean, self.noise, self.noisy, rng)
        return -error(lambda rows: self._clip(self.estimator_.reconstruct(rows)))

    def _choose(
        self, model: Any, source: Source, clean: Source | None, training: Source
    ) -> tuple[int | None, float | None]:
        """Return the candidate of least error on validation rows."""
        counts, gammas = as_candidates(self.n_components), as_candidates(self.gamma)
        rng = np.random.default_rng(draw_seed(self.random_state))
        out, rest = split_rows(self.validation, source, rng)
        truth = None if clean is None else load_rows(clean, out)
        measure = error_measure(load_rows(source, out), truth, self.noise, self.noisy, rng)
        table = candidate_errors(
            model,
            load_rows(training, rest),
            counts,
            gammas,
            lambda denoise: measure(lambda rows: self._clip(denoise(rows))),
        )
        self.validation_error_ = table
        if np.isnan(table["error"]).all():
            raise ValueError(
                f"n_components={self.n_components!r} exceeds the number of components with "
                f"positive variance. Pass smaller numbers."
            )
        best = int(np.nanargmin(table["error"]))
        k, gamma = int(table["n_components"][best]), float(table["gamma"][best])
        return None if counts[0] is None else k, None if math.isnan(gamma) else gamma

    def _default(self) -> Any:
        if self.gamma is None:
            return PCA(GavishDonoho() if self.n_components is None else None)
        return KernelPCA(kernel="rbf", preimage="fixed_point")

    def _inner(self, *methods: str) -> Any:
        """Return an unfitted copy of the estimator that can map scores back to rows."""
        model = super()._inner(*methods)
        if isinstance(model, KernelPCA) and not (model.preimage or model.fit_inverse_transform):
            model.set_params(preimage="auto")
        return model

    def _clip(self, rows: Any) -> Any:
        if self.limits is None:
            return rows
        low, high = (float(limit) for limit in self.limits)
        return namespace(rows).clip(rows, low, high)

    def _clean_rows(self, y: Any, source: Source) -> Source | None:
        """Return y as a source of clean rows; None if it is None, or labels."""
        if y is None or len(array_shape(y)) == 1:
            return None
        # Feature names are those of X: an estimator of its own takes the names of y.
        clean = check_rows(BaseEstimator(), flatten_images(y, self.image_shape), reset=True)
        if clean.shape != source.shape:
            raise ValueError(
                f"y has shape {clean.shape}, but X has {source.shape}: pass the clean rows of X "
                f"as y. Labels, one per row, are ignored."
            )
        require_finite_entries(clean, "y")
        clean = copy.copy(clean)  # a source that was passed keeps its own names
        clean.names = source.names
        return clean

    def _check_parameters(self) -> None:
        """Raise if candidates, limits or the image shape are invalid."""
        for name, valid, expected in (
            ("n_components", is_positive_integer, "an integer of at least 1"),
            ("gamma", lambda gamma: is_real(gamma) and 0 < gamma < math.inf, "a positive number"),
        ):
            value = getattr(self, name)
            candidates = as_candidates(value)
            if not candidates:
                raise ValueError(f"{name}=[] is an empty list of candidates. Pass some, or None.")
            for one in candidates if value is not None else ():
                if not valid(one):
                    raise ValueError(f"{name}={one!r} must be {expected}.")
        limits, shape = self.limits, self.image_shape
        if limits is not None and not (
            len(limits) == 2 and all(map(is_real, limits)) and limits[0] < limits[1]
        ):
            raise ValueError(f"limits={limits!r} must be two numbers, the lower first.")
        if shape is not None and not (len(shape) and all(map(is_positive_integer, shape))):
            raise ValueError(f"image_shape={shape!r} must be positive integers, such as (28, 28).")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self._default() if self.estimator is None else self.estimator
        tags.input_tags.sparse = isinstance(inner, PCA)  # pre-images are dense
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

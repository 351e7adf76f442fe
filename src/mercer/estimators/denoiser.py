"""Noise removed from rows: what the components keep of them."""

from __future__ import annotations

import copy
import math
import os
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, RealNotInt
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from mercer import progress, session
from mercer.arrays import Vector, is_dask, namespace
from mercer.checkpoint import check_same, identify
from mercer.checks import is_real
from mercer.data import (
    Source,
    check_weights,
    fingerprint,
    lazily,
    require_finite_entries,
)
from mercer.estimators.choice import dense, held_out, judged, several
from mercer.estimators.images import as_rows, check_image_shape, shape_of
from mercer.estimators.judge import judge
from mercer.estimators.kernel_pca import KernelPCA
from mercer.estimators.pca import PCA
from mercer.estimators.session import Sessions, fit_context
from mercer.estimators.validation import check_rows, some
from mercer.estimators.variants import changed, gamma_of, with_way_back
from mercer.rules import GavishDonoho


class Denoiser(OneToOneFeatureMixin, TransformerMixin, Sessions, BaseEstimator):
    r"""Rows without their noise: pre-images of what the components keep of them.

    :math:`\hat x = \arg\min_r \|\Phi(r) - P\Phi(x)\|^2` with P the projector on the components that
    `fit` learns: the rows' own plane for `PCA`, a curved one for `KernelPCA`. Sources: Mika et
    al. (1999), "Kernel PCA and de-noising in feature space"; Washizawa (2012), §6.5.

    The number of components and the kernel's γ may be lists of candidates. Then some rows are held
    out, the components are learnt from the others, the candidate of least mean squared error on
    those held out is chosen, and the components are learnt again from all rows. The error is that

    - of pairs, where ``fit(X, y)`` has noisy rows X and the same rows clean, y: components are
      learnt from y;
    - of clean rows to which `noise` was added;
    - of noisy rows, where ``noisy=True``, by Stein's unbiased estimate, which needs no clean
      row but the deviation of Gaussian noise (Ramani, Blu & Unser 2008, "Monte-Carlo SURE").

    Parameters
    ----------
    estimator : PCA, KernelPCA or None
        What learns the components. None is a `PCA` with as many components as exceed the noise
        (`rules.GavishDonoho`), or, with a `gamma`, a `KernelPCA` with the RBF. A KernelPCA with
        neither `preimage` nor `fit_inverse_transform` gets a way back: "fixed_point" for RBF
        and linear kernels, "gradient" for others that have one, "ridge" for the rest;
        random features get fit_inverse_transform.
    n_components : int, list of int or None
        Number of components, or candidates for it. None leaves the estimator's.
    gamma : float, list of float or None
        Scale of the estimator's kernel, or candidates for it. None leaves the estimator's.
    noise : float, callable or None
        What candidates are judged by: the standard deviation of Gaussian noise; or a function
        of rows and a Generator that returns noisy rows, such as `SaltAndPepper(0.1)`.
    noisy : bool
        Whether the rows of the fit have that noise already. They are clean otherwise.
    validation : float or int
        Share of the rows, or number of rows, that are held out where there is a choice.
    limits : tuple of (float, float) or None
        What denoised entries are cut off at, such as (0, 255).
    image_shape : tuple of int or None
        Shape of an image: arrays of images, (n, *image_shape), are taken and returned besides
        tables of n rows.
    random_state : int, RandomState or None
        Which rows are held out, and their noise.

    Attributes
    ----------
    estimator_ : PCA or KernelPCA
        The fitted components, of all rows.
    n_components_ : int
        Number of components.
    gamma_ : float or None
        The γ of the kernel, where it is known by that name.
    validation_error_ : dict of ndarray
        Columns "n_components", "gamma" and "error", a candidate a row; only where there was a
        choice. NaN is the error of more components than there are.
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Denoiser, KernelPCA
    >>> X = load_digits().data
    >>> axes = KernelPCA(kernel="rbf", preimage="fixed_point")
    >>> denoiser = Denoiser(
    ...     axes,
    ...     n_components=[10, 30, 90],
    ...     gamma=[1e-4, 1e-3],
    ...     noise=4.0,
    ...     limits=(0, 16),
    ...     random_state=0,
    ... ).fit(X[:1000])
    >>> denoiser.n_components_, denoiser.gamma_
    (90, 0.001)
    >>> noisy = X[1000:] + 4 * np.random.default_rng(0).normal(size=X[1000:].shape)
    >>> round(-denoiser.score(noisy, X[1000:]))  # the noise had 16
    5
    """

    estimator_: Any
    n_components_: int
    gamma_: float | None
    validation_error_: dict[str, Vector]
    fingerprint_: str
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

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_components: Any = None,
        gamma: Any = None,
        noise: Any = None,
        noisy: bool = False,
        validation: float | int = 0.1,
        limits: tuple[float, float] | None = None,
        image_shape: tuple[int, ...] | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_components = n_components
        self.gamma = gamma
        self.noise = noise
        self.noisy = noisy
        self.validation = validation
        self.limits = limits
        self.image_shape = image_shape
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the components, and choose among candidates where there are several.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, path of a file or Source
            Rows, or images where `image_shape` is given. Where there is a choice, they are
            held in memory.
        y : array-like of the shape of X, optional
            The same rows without noise, which the components are learnt from. Labels, one a row,
            are those of another step of a pipeline, and are ignored.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of two is the row twice.

        Returns
        -------
        Denoiser
            Itself.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import PCA, Denoiser
        >>> line = np.linspace(0, 1, 50)[:, None] * np.ones(3)
        >>> noisy = line + 0.1 * np.random.default_rng(0).normal(size=line.shape)
        >>> denoiser = Denoiser(PCA(), n_components=[1, 2, 3], random_state=0).fit(noisy, line)
        >>> denoiser.n_components_
        1
        """
        with self._session():
            self._fit(X, y, sample_weight)
        return self

    def transform(self, X: Any) -> Any:
        """Return rows, or images, without their noise.

        A path or a Source gives a Source with linear components, computed when it is read.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import PCA, Denoiser
        >>> line = np.linspace(0, 1, 50)[:, None] * np.ones(2)
        >>> Denoiser(PCA(1)).fit(line).transform([[0.6, 0.4]]).round(6)
        array([[0.5, 0.5]])
        """
        check_is_fitted(self)
        made = self._denoised(
            self.estimator_, check_rows(self, as_rows(X, self.image_shape), reset=False)
        )
        table = _get_output_config("transform", self)["dense"] != "default"
        if isinstance(made, Source):
            if isinstance(X, (Source, str, os.PathLike)) and not table:
                return made
            if is_dask(X) and X.ndim == 2 and not table:
                return lazily(made, X)
            with progress.session():
                made = made.collect()
        shape = shape_of(X)[1:] or made.shape[1:]
        return made if table else made.reshape((made.shape[0], *shape))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean squared error, so that the best has the largest score.

        Parameters
        ----------
        X : array-like
            Rows, or images.
        y : array-like of the shape of X, optional
            The same rows without noise. Without them X is judged as in the choice of
            candidates: by `noise` added to it, or by Stein's estimate where it is `noisy`; and
            where no `noise` is known, by how far its rows are moved.
        sample_weight : array-like of shape (n,), optional
            Counts.

        Examples
        --------
        >>> import numpy as np
        >>> from mercer import PCA, Denoiser
        >>> line = np.linspace(0, 1, 50)[:, None] * np.ones(2)
        >>> round(Denoiser(PCA(1)).fit(line).score([[0.6, 0.4]], [[0.5, 0.6]]), 4)
        -0.005
        """
        check_is_fitted(self)
        source = check_rows(self, as_rows(X, self.image_shape), reset=False)
        weights = check_weights(sample_weight, source, least=0.0)
        clean = self._clean(y, source)
        rows, truth = dense(source), None if clean is None else dense(clean)
        if truth is None and self.noise is None:
            truth = rows
        by = judge(rows, truth, self.noise, self.noisy, weights, self._generator())
        return -by.error(lambda x: self._cut(self.estimator_.reconstruct(x)))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        for leftover in ("validation_error_", "feature_names_in_"):
            self.__dict__.pop(leftover, None)
        self._check_parameters()
        source = check_rows(self, as_rows(X, self.image_shape), reset=True, least=2)
        weights = check_weights(sample_weight, source)
        self.fingerprint_ = fingerprint(source)
        check_same(self, rows=identify(source, self.fingerprint_))
        clean = self._clean(y, source)
        model, counts, gammas = self._model(), several(self.n_components), several(self.gamma)
        if gammas[0] is not None:
            gamma_of(model)
        k, gamma = counts[0], gammas[0]
        if clean is not None or len(counts) * len(gammas) > 1:
            require_finite_entries(source, "X")  # here, where rows have their own numbers still
        if len(counts) * len(gammas) > 1:
            chosen = self._choose(model, (source, clean, weights), (counts, gammas))
            k, gamma = chosen[0] if counts[0] is not None else None, chosen[1]
        learnt_from = source if clean is None else clean
        self.estimator_ = changed(model, k, gamma).fit(learnt_from, sample_weight=weights)
        self.n_components_ = self.estimator_.n_components_
        self.gamma_ = gamma if gamma is not None else getattr(self.estimator_, "gamma_", None)

    def _choose(
        self,
        model: Any,
        rows: tuple[Source, Source | None, Vector | None],
        candidates: tuple[list[Any], list[Any]],
    ) -> tuple[int, float | None]:
        """Hold rows out, judge every candidate by them, and return the best."""
        source, clean, weights = rows
        rng = self._generator()
        out, rest = held_out(self.validation, weights, source.shape[0], rng)
        held, truth = (None if x is None else dense(some(x, out)) for x in (source, clean))
        assert held is not None
        of = None if weights is None else weights[out]
        by = judge(held, truth, self.noise, self.noisy, of, rng)
        table = judged(
            model,
            some(source if clean is None else clean, rest),
            None if weights is None else weights[rest],
            candidates,
            lambda denoise: by.error(lambda x: self._cut(denoise(x))),
        )
        self.validation_error_ = table
        if np.isnan(table["error"]).all():
            raise ValueError(
                f"n_components={self.n_components!r}: there are not so many components with a "
                f"variance. Offer fewer."
            )
        at = int(np.nanargmin(table["error"]))
        gamma = float(table["gamma"][at])
        return int(table["n_components"][at]), None if math.isnan(gamma) else gamma

    def _generator(self) -> np.random.Generator:
        drawn = check_random_state(self.random_state).randint(2**31 - 1)
        return np.random.default_rng(session.seed(int(drawn)))

    def _model(self) -> Any:
        """Return what learns the components, unfitted, with a way back to rows."""
        if self.estimator is None:
            if self.gamma is None:
                return PCA(GavishDonoho() if self.n_components is None else None)
            return KernelPCA(kernel="rbf", preimage="fixed_point")
        return with_way_back(self.estimator)

    def _denoised(self, model: Any, rows: Any) -> Any:
        made = model.reconstruct(rows)
        if isinstance(made, Source):
            return made.map(lambda block: self._cut(block.rows), made.shape[1], made.dtype)
        return self._cut(made)

    def _cut(self, rows: Any) -> Any:
        if self.limits is None:
            return rows
        low, high = (float(limit) for limit in self.limits)
        return namespace(rows).clip(rows, low, high)

    def _clean(self, y: Any, source: Source) -> Source | None:
        """Return clean rows as a source; None where y is nothing, or labels."""
        if y is None or len(shape_of(y)) == 1:
            return None
        # Features are those of X: names of y are not looked at.
        clean = check_rows(_Nobody(), as_rows(y, self.image_shape), reset=True)
        if clean.shape != source.shape:
            raise ValueError(
                f"y has shape {clean.shape}, and X has {source.shape}: y holds the rows of X "
                f"without their noise. Labels, one a row, are ignored."
            )
        require_finite_entries(clean, "y")
        clean = copy.copy(clean)  # a source that was passed keeps its own names
        clean.names = source.names
        return clean

    def _check_parameters(self) -> None:
        """Refuse what a list of candidates, limits and shapes cannot be."""
        counts, gammas = several(self.n_components), several(self.gamma)
        for name, found in (("n_components", counts), ("gamma", gammas)):
            if not found:
                raise ValueError(f"{name}=[] is an empty list of candidates. Offer some, or None.")
        for k in counts if self.n_components is not None else ():
            if isinstance(k, bool | np.bool_) or not (isinstance(k, Integral) and int(k) >= 1):
                raise ValueError(f"n_components={k!r} must be a whole number, 1 or more.")
        for gamma in gammas if self.gamma is not None else ():
            if not (is_real(gamma) and 0 < gamma < math.inf):
                raise ValueError(f"gamma={gamma!r} must be a positive number.")
        cut = self.limits
        if cut is not None and not (len(cut) == 2 and all(map(is_real, cut)) and cut[0] < cut[1]):
            raise ValueError(f"limits={cut!r} must be two numbers, the lower first.")
        check_image_shape(self.image_shape)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        linear = self.gamma is None if self.estimator is None else isinstance(self.estimator, PCA)
        tags.input_tags.sparse = linear  # rows of a kernel's way back are dense
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Nobody(BaseEstimator):
    """Whose features are not looked at."""

"""Base class of linear PCA: methods of a fitted linear projection."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, Vector, like, namespace, numpy_dtype, to_numpy
from mercer.data import Block, Source, to_output_device
from mercer.estimators.base import ProjectionEstimator, fitted_array
from mercer.projection import LinearProjection


def _view(field: str, text: str) -> Any:
    """Return a property that shows a float64 field of `projection_` and replaces it when set."""

    def get(self: Any) -> Array:
        values, components = getattr(self.projection_, field), self.projection_.components
        array = fitted_array(values, numpy_dtype(components), components)
        if array is not values and isinstance(array, np.ndarray):
            array.flags.writeable = False  # a copy: what is written to it would have no effect
        return array

    def set_(self: Any, value: Any) -> None:
        values, old = to_numpy(value), getattr(self.projection_, field)
        if not np.array_equal(values, old.astype(values.dtype)):  # else float64 has more digits
            self.projection_ = replace(self.projection_, **{field: values.astype(np.float64)})

    return property(get, set_, doc=text)


class LinearModel(ProjectionEstimator):
    """Base of estimators whose fit ends in a linear projection.

    The attributes that `transform` depends on are views of `projection_`: a user may replace them.
    """

    projection_: LinearProjection
    singular_values_: Array
    noise_variance_: float
    n_samples_: int
    whiten: bool
    explained_variance_ = _view("eigenvalues", "Variance along each component.")
    mean_ = _view("mean", "Mean of each column, which is subtracted.")
    scale_ = _view("deviation", "Standard deviation that divides each column, or 1.")

    @property
    def components_(self) -> Array:
        """The components, by decreasing variance, k×d."""
        return self.projection_.components.T

    @components_.setter
    def components_(self, value: Any) -> None:
        components = value if hasattr(value, "T") else np.asarray(value)
        values = self.projection_.eigenvalues[: len(components)]
        self.projection_ = replace(self.projection_, components=components.T, eigenvalues=values)

    @property
    def loadings_(self) -> Any:
        """Components times standard deviations, d×k, in the metric of the components."""
        self._require_fitted()
        xp = namespace(self.components_)
        return (self.components_ * xp.sqrt(self.explained_variance_)[:, None]).T

    def inverse_transform(self, X: Any) -> Any:
        """Map scores back to rows."""
        self._require_fitted()
        rows = self.projection_.rows(self._check_scores(X), self._whitening())
        return self._output(X, rows)

    def reconstruct(self, X: Any) -> Any:
        """Reconstruct rows from their scores: `inverse_transform` of `transform`."""
        self._require_fitted()
        source = self._rows(X, reset=False)
        scores = self.projection_.scores(source, self._dtype(source))
        return self._output(X, self.projection_.rows(scores))

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row under probabilistic PCA.

        Where no variance is left for noise the model lives on the span of the components: the
        density is that on the span, and rows off it have likelihood zero (-inf). Columns of weight
        zero are not part of the model.

        Source: Tipping & Bishop (1999).
        """
        self._require_fitted()
        source, fitted = self._rows(X, reset=False), self.projection_
        divisor = fitted.divisor[np.isfinite(fitted.divisor)]
        dtype, d = self._dtype(source), len(divisor)
        values, noise = fitted.eigenvalues, float(self.noise_variance_)
        # Eigenvalues are float64; rows and components may be coarser.
        eps = max(float(np.finfo(x).eps) for x in (source.dtype, numpy_dtype(self.components_)))
        largest = float(np.max(values, initial=0.0))
        noise = noise if noise > eps**2 * largest * d else 0.0
        values = np.maximum(values, noise)
        span = values > 8 * d * float(np.finfo(np.float64).eps) * largest
        rank = d if noise else int(span.sum())
        fixed = rank * math.log(2 * math.pi) + 2 * float(np.log(divisor).sum())
        fixed += float(np.log(values[span]).sum())
        fixed += (rank - int(span.sum())) * (math.log(noise) if noise else 0.0)
        scores = fitted.scores(source, dtype, np.where(span, np.sqrt(values), np.inf))
        left = fitted.residuals(source, dtype)
        rounding = eps * float(values.sum()) if rank < d else math.inf  # none lies off them
        xp = namespace(source.reference)

        def likelihood(block: Block) -> Array:
            y = scores.read(block.start, block.stop)
            distance = xp.sum(y * y, axis=1)
            off = left.read(block.start, block.stop)[:, 0]
            off = off / noise if noise else xp.where(off > rounding, xp.inf, 0.0 * off)
            return (-0.5 * (distance + off + fixed))[:, None]

        extra = 6 * source.shape[1] * dtype.itemsize
        rows = source.map(likelihood, 1, dtype, extra_bytes=extra)
        with progress.session():
            return to_output_device(rows).collect(label="likelihood")[:, 0]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of rows."""
        return float(to_numpy(self.score_samples(X)).mean(dtype=np.float64))

    def get_covariance(self) -> Any:
        """Return the covariance of probabilistic PCA, d×d, of columns scaled as in the fit.

        The metric of `feature_weight` is undone. A column of weight zero has infinite variance: the
        model says nothing of it.
        """
        self._require_fitted()
        C, roots = self._metric_covariance(), self._roots()
        out = np.where(roots > 0, 0.0, np.inf)
        C /= roots + out
        C /= (roots + out)[:, None]
        C[np.diag_indices_from(C)] += out
        return like(C, self.components_, numpy_dtype(self.components_))

    def get_precision(self) -> Any:
        """Return the inverse of `get_covariance`, by the matrix inversion lemma."""
        self._require_fitted()
        V, noise = to_numpy(self.components_).astype(np.float64), float(self.noise_variance_)
        values, roots = self.projection_.eigenvalues, self._roots()
        if noise == 0.0:
            C = self._metric_covariance()
            C[np.diag_indices_from(C)] += roots == 0.0  # of columns that are not part of the model
            P = np.linalg.inv(C)
        else:
            P = -(V.T * np.maximum(values - noise, 0.0) / (noise * np.maximum(values, noise))) @ V
            P[np.diag_indices_from(P)] += 1.0 / noise
        P *= roots
        P *= roots[:, None]
        return like(P, self.components_, numpy_dtype(self.components_))

    def _metric_covariance(self) -> Matrix:
        """Return the covariance of probabilistic PCA in the metric of the components."""
        V, noise = to_numpy(self.components_).astype(np.float64), float(self.noise_variance_)
        C = np.asarray((V.T * np.maximum(self.projection_.eigenvalues - noise, 0.0)) @ V)
        C[np.diag_indices_from(C)] += noise
        return C

    def _roots(self) -> Vector:
        """Return the root of the weight of each column."""
        w = self.projection_.weights
        return np.ones(len(self.projection_.mean)) if w is None else np.sqrt(w)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _dtype(self, source: Source) -> np.dtype[Any]:
        """Return the precision of what is computed from rows and the components."""
        return np.result_type(source.dtype, numpy_dtype(self.components_))

    def _scores(self, source: Source) -> Source:
        return self.projection_.scores(source, self._dtype(source), self._whitening())

    def _residuals(self, source: Source) -> Source:
        return self.projection_.residuals(source, self._dtype(source))

    def _whitening(self) -> Vector | None:
        """Return the divisors of the scores for whitening, clipped where there is no variance."""
        if not self.whiten:
            return None
        deviation = np.sqrt(self.projection_.eigenvalues)
        # Relative to the largest, in any unit; 1 where there is no variance at all.
        eps = float(np.finfo(numpy_dtype(self.components_)).eps)
        least = eps * float(np.max(deviation, initial=0.0))
        return np.asarray(np.maximum(deviation, least or 1.0))

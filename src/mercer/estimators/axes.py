"""What can be done with fitted components: project, come back, score; the generative model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, Vector, like, namespace, to_numpy
from mercer.data import Block, Source, at_home
from mercer.estimators.base import Projecting
from mercer.projection import LinearProjection


class LinearModel(Projecting):
    """Base of estimators whose fit ends in a linear projection."""

    projection_: LinearProjection
    components_: Array
    mean_: Array
    scale_: Array
    singular_values_: Array
    noise_variance_: float
    n_samples_: int
    whiten: bool

    def inverse_transform(self, X: Any) -> Any:
        """Return the rows that scores stand for.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> pca = PCA(4).fit(X)
        >>> pca.inverse_transform(pca.transform(X[:1])).round(6)
        array([[5.1, 3.5, 1.4, 0.2]])
        """
        self._require_fitted()
        scores = self._check_scores(X)
        divide = self._whitening()
        return self._handed(X, self._map.rows(scores, divide))

    def reconstruct(self, X: Any) -> Any:
        """Return what the components keep of rows: `inverse_transform` of `transform`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> PCA(2).fit(X).reconstruct(X[:1]).round(2)
        array([[5.08, 3.52, 1.4 , 0.21]])
        """
        self._require_fitted()
        scores = self._map.scores(*self._typed(X))
        return self._handed(X, self._map.rows(scores))

    def reconstruction_error(self, X: Any) -> Any:
        """Return each row's squared distance from what the components keep of it.

        In units of the columns' deviations where `scale` is set.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> PCA(2).fit(X).reconstruction_error(X[:1]).round(4)
        array([0.0008])
        """
        self._require_fitted()
        residuals = self._residuals(self._rows(X, reset=False))
        with progress.session():
            return at_home(residuals).collect(label="residuals")[:, 0]

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row under probabilistic PCA.

        Where no variance is left for noise the model lives on the span of the components: the
        density is that on the span, and rows off it have likelihood zero (-inf).

        Source: Tipping & Bishop (1999).

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> PCA(2).fit(X).score_samples(X[:2]).round(2)
        array([-1.78, -2.18])
        """
        self._require_fitted()
        source, kind = self._typed(X)
        fitted, d = self._map, source.shape[1]
        # Eigenvalues are float64's whatever the data; rows and axes are as coarse as either.
        values, noise = fitted.eigenvalues, float(self.noise_variance_)
        eps = max(float(np.finfo(x).eps) for x in (source.dtype, self._kind))
        largest = float(np.max(values, initial=0.0))
        noise = noise if noise > eps**2 * largest * d else 0.0
        values = np.maximum(values, noise)
        span = values > 8 * d * float(np.finfo(np.float64).eps) * largest
        rank = d if noise else int(span.sum())
        fixed = rank * math.log(2 * math.pi) + 2 * float(np.log(fitted.deviation).sum())
        fixed += float(np.log(values[span]).sum())
        fixed += (rank - int(span.sum())) * (math.log(noise) if noise else 0.0)
        scores = fitted.scores(source, kind, np.where(span, np.sqrt(values), np.inf))
        left = fitted.residuals(source, kind)
        rounding = eps * float(values.sum()) if rank < d else math.inf  # nothing is off all axes
        xp = namespace(source.reference)

        def likelihood(block: Block) -> Array:
            y = scores.read(block.start, block.stop)
            distance = xp.sum(y * y, axis=1)
            off = left.read(block.start, block.stop)[:, 0]
            off = off / noise if noise else xp.where(off > rounding, xp.inf, 0.0 * off)
            return (-0.5 * (distance + off + fixed))[:, None]

        rows = source.map(likelihood, 1, kind, extra_bytes=6 * d * kind.itemsize)
        with progress.session():
            return at_home(rows).collect(label="likelihood")[:, 0]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of rows.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> round(PCA(2).fit(X).score(X), 4)
        -2.6998
        """
        return float(to_numpy(self.score_samples(X)).mean(dtype=np.float64))

    def get_covariance(self) -> Any:
        """Return the covariance of the generative model, d×d, columns treated as in the fit.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> PCA().fit(X).get_covariance()[0].round(3)
        array([ 0.686, -0.042,  1.274,  0.516])
        """
        self._require_fitted()
        V, values, noise = self._model()
        C = (V.T * np.maximum(values - noise, 0.0)) @ V
        C[np.diag_indices_from(C)] += noise
        return self._here(C)

    def get_precision(self) -> Any:
        """Return the inverse of `get_covariance`, by the matrix inversion lemma.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> pca = PCA(2).fit(X)
        >>> (pca.get_precision() @ pca.get_covariance()).trace().round(6)
        np.float64(4.0)
        """
        self._require_fitted()
        V, values, noise = self._model()
        if noise == 0.0:
            return self._here(np.linalg.inv(to_numpy(self.get_covariance()).astype(np.float64)))
        P = -(V.T * np.maximum(values - noise, 0.0) / (noise * np.maximum(values, noise))) @ V
        P[np.diag_indices_from(P)] += 1.0 / noise
        return self._here(P)

    @property
    def loadings_(self) -> Any:
        """Components times standard deviations, d×k."""
        self._require_fitted()
        xp = namespace(self.components_)
        return (self.components_ * xp.sqrt(self.explained_variance_)[:, None]).T

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def _kind(self) -> np.dtype[Any]:
        """Precision of the fitted attributes."""
        return np.dtype(to_numpy(self.components_[:0, :]).dtype)

    @property
    def _map(self) -> LinearProjection:
        """The fitted map with what the public attributes say: users may change those."""
        fitted, mean = self.projection_, to_numpy(self.mean_)
        same = np.array_equal(mean, fitted.mean.astype(mean.dtype))
        return replace(
            fitted,
            components=self.components_.T,
            mean=fitted.mean if same else mean.astype(np.float64),
            eigenvalues=fitted.eigenvalues[: self.components_.shape[0]],
        )

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "projection_" in state:  # the axes are in components_ already
            state["projection_"] = replace(state["projection_"], components=None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "projection_"):
            self.projection_ = replace(self.projection_, components=self.components_.T)

    def _typed(self, X: Any) -> tuple[Source, np.dtype[Any]]:
        """Return rows, and the precision of what is computed with them."""
        source = self._rows(X, reset=False)
        return source, np.result_type(source.dtype, self._kind)

    def _scores(self, source: Source) -> Source:
        kind = np.result_type(source.dtype, self._kind)
        return self._map.scores(source, kind, self._whitening())

    def _residuals(self, source: Source) -> Source:
        return self._map.residuals(source, np.result_type(source.dtype, self._kind))

    def _whitening(self) -> Vector | None:
        """Return what whitening divides by, clipped where there is no variance."""
        if not self.whiten:
            return None
        deviation = np.sqrt(to_numpy(self.explained_variance_).astype(np.float64))
        # Of the largest, whatever the unit; where there is no variance at all, 1 will do.
        least = float(np.finfo(self._kind).eps) * float(np.max(deviation, initial=0.0))
        return np.asarray(np.maximum(deviation, least or 1.0))

    def _model(self) -> tuple[np.ndarray[Any, Any], Vector, float]:
        V = to_numpy(self.components_).astype(np.float64)
        values = to_numpy(self.explained_variance_).astype(np.float64)
        return V, values, float(self.noise_variance_)

    def _here(self, x: np.ndarray[Any, Any]) -> Any:
        return like(x, self.components_, self._kind)

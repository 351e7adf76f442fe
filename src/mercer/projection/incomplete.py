"""The map of probabilistic PCA for rows that may be incomplete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, like, namespace, to_numpy, with_data
from mercer.data import Block, Source, finite_rows
from mercer.linalg.incomplete import FactorModel, observed
from mercer.linalg.posterior import pack_squares, solve_posteriors, unpack_symmetric
from mercer.projection.linear import LinearProjection


@dataclass(frozen=True, kw_only=True)
class IncompleteProjection(LinearProjection):
    r"""The map of rows whose missing entries are replaced by what is expected of them.

    Given the observed entries of a row, those that are missing are normal with mean
    :math:`m + Az` and covariance :math:`\sigma^2(A P^{-1}A^T + I)`; scores and distances are those
    of the mean. Complete rows are mapped as by linear PCA.
    """

    factors: Matrix  # A, of the columns divided by their deviations
    noise: float  # σ²

    def filled(self, source: Source, dtype: Any = None) -> Source:
        """Return the rows with missing entries replaced by their conditional means."""
        dtype = source.dtype if dtype is None else np.dtype(dtype)
        model, d = self._model, source.shape[1]
        scale = np.where(np.isfinite(self.divisor), self.divisor, 0.0)
        mean, scale = (like(x, source.reference) for x in (self.mean, scale))
        factors = like(self.factors, source.reference)

        def fill(block: Block) -> Array:
            rows = _dense(block, dtype)
            xp = namespace(rows)
            missing = xp.isnan(rows)
            incomplete = xp.any(missing, axis=1)
            if not bool(xp.any(incomplete)):
                return rows
            part = Block(0, rows[incomplete, :], None)
            Z, *_ = _posterior(part, model)
            rows = xp.asarray(rows, copy=True)
            expected = cast(mean + scale * (Z @ factors.T), dtype)
            rows[incomplete, :] = xp.where(missing[incomplete, :], expected, part.rows)
            return rows

        triangle = model.k * (model.k + 1) // 2
        rows = source.map(fill, d, dtype, extra_bytes=8 * (6 * d + 2 * triangle))
        rows.names = source.names
        return rows

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        return super().scores(self.filled(source, dtype), dtype, divide)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        return super().residuals(self.filled(source, dtype), dtype)

    def score_deviations(self, source: Source, divide: Vector | None = None) -> Source:
        r"""Return the standard deviations of the scores, given the observed entries.

        The covariance of a score along v is
        :math:`v_M^T(A_M\,\sigma^2P^{-1}A_M^T + \sigma^2 I)\,v_M` over the missing entries M.
        """
        model, V = self._model, to_numpy(self.components).astype(np.float64)
        k, width = model.k, V.shape[1]
        divide = np.ones(width) if divide is None else divide
        pairs = (V[:, :, None] * self.factors[:, None, :]).reshape(len(V), -1)

        def deviations(block: Block) -> Array:
            part = Block(0, _dense(block, np.float64), None)
            xp = namespace(part.rows)
            Z, packed, _, _ = _posterior(part, model)
            covariance = unpack_symmetric(packed - pack_squares(Z), k)
            missing = cast(xp.isnan(part.rows), np.float64)
            H = xp.reshape(missing @ like(pairs, missing), (-1, width, k))
            spread = xp.sum((H @ covariance) * H, axis=2)
            spread = spread + self.noise * (missing @ like(V**2, missing))
            return xp.sqrt(xp.where(spread > 0.0, spread, 0.0 * spread)) / like(divide, missing)

        extra = 8 * (6 * len(V) + 3 * k * max(k, width))
        return source.map(deviations, width, np.float64, extra_bytes=extra)

    def likelihood(self, source: Source) -> Source:
        """Return one column: the log-likelihood of the observed entries of each row."""
        model = self._model
        share = np.isfinite(self.divisor)  # not columns of weight zero
        logs = np.where(share, np.log(self.divisor) + 0.5 * math.log(2 * math.pi), 0.0)
        logs, share = (like(x, source.reference) for x in (logs, share.astype(np.float64)))

        def measure(block: Block) -> Array:
            part = Block(0, _dense(block, np.float64), None)
            W, _, X = observed(part, model)
            _, _, logdet, explained = _posterior(part, model)
            xp = namespace(W)
            count = W @ share
            value = (count - model.k) * math.log(self.noise) + logdet
            value = value + (xp.sum(X * X, axis=1) - explained) / self.noise
            return finite_rows(-(0.5 * value + W @ logs)[:, None], Block(0, X, None), source)

        return source.map(measure, 1, np.float64, extra_bytes=8 * 8 * source.shape[1])

    @property
    def _model(self) -> FactorModel:
        loadings = np.column_stack([self.factors, np.zeros(len(self.factors))])
        return FactorModel(self.mean, self.divisor, loadings, None, self.noise)


def _dense(block: Block, dtype: Any) -> Array:
    """Return rows as a dense array; entries that sparse rows do not store are missing."""
    rows = block.rows
    if not hasattr(rows, "tocsr"):
        return cast(rows, dtype)
    xp, dense = namespace(rows.data), cast(rows.toarray(), dtype)
    stored = with_data(rows, 0.0 * rows.data + 1.0).toarray()
    return xp.where(stored > 0, dense, xp.asarray(np.nan, dtype=dense.dtype))


def _posterior(block: Block, model: FactorModel) -> tuple[Array, Array, Array, Array]:
    """Return means and second moments of the factors of rows, log-determinants and squares."""
    W, R, _ = observed(block, model)
    squares, _ = model.products()
    packed, linear = W @ like(squares, W), R @ like(model.factors, W)
    return solve_posteriors(packed, linear, model.noise)


def with_means(projection: LinearProjection) -> IncompleteProjection:
    """Return the map of rows whose missing entries are replaced by the means of their columns."""
    factors = np.zeros((len(projection.mean), 0))
    return IncompleteProjection(**vars(projection), factors=factors, noise=1.0)


def with_factors(projection: LinearProjection, noise: float) -> IncompleteProjection:
    """Return the map of complete rows with the factor model of probabilistic PCA.

    Its factors are the components times the roots of their variances less the noise.
    """
    if isinstance(projection, IncompleteProjection):
        return projection
    values = projection.eigenvalues
    least = float(np.finfo(np.float64).eps) * float(np.max(values, initial=0.0))
    noise = max(float(noise), least, float(np.finfo(np.float64).tiny))
    lengths = np.sqrt(np.maximum(values - noise, 0.0))
    factors = to_numpy(projection.components).astype(np.float64) * lengths
    return IncompleteProjection(**vars(projection), factors=factors, noise=noise)

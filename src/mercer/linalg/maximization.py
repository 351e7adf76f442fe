"""The steps of EM from the sums over incomplete rows to the next factor model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, svd, to_numpy
from mercer.linalg.incomplete import Expectation, FactorModel
from mercer.linalg.posterior import unpack_symmetric

# Bytes of the systems of columns that are solved at a time.
_ROOM = 64 * 2**20
# Noise below this share of the mean square of the entries is rounding.
_LEAST_NOISE = 1e-12
# A column of few entries keeps its factors from growing without limit by this much weight.
_RIDGE = 1e-9


class Sums(NamedTuple):
    """The sums of an `Expectation` on the host."""

    weight: Vector
    entry: Vector
    square: Vector
    factor: Matrix
    factors: Matrix
    cross: Matrix
    row_factor: Vector
    row_factors: Matrix
    rows: float  # weight of the rows
    logdet: float
    explained: float
    entries: float  # number of observed entries, each times the weight of its row

    @classmethod
    def of(cls, fold: Expectation) -> Sums:
        """Return the sums that a pass has added up."""
        sums = {name: to_numpy(value) for name, value in fold.sums.items()}
        k = fold.model.k
        sums["row factors"] = unpack_symmetric(sums["row factors"], k)
        *arrays, rows = sums.values()
        return cls(*arrays, *map(float, rows))  # type: ignore[arg-type]


def columns_in_parts(d: int, k: int) -> Iterator[slice]:
    """Yield the columns in parts whose systems of k + 1 unknowns fit in little memory."""
    size = max(1, _ROOM // (8 * (k + 1) ** 2))
    for start in range(0, d, size):
        yield slice(start, min(start + size, d))


def systems(sums: Sums, part: slice, k: int) -> tuple[Array, Matrix]:
    """Return the matrices and right sides whose solutions are the factors and means of columns."""
    factors, factor = unpack_symmetric(sums.factors[part], k), sums.factor[part]
    G = np.empty((len(factor), k + 1, k + 1))
    G[:, :k, :k], G[:, k, k] = factors, sums.weight[part]
    G[:, :k, k] = G[:, k, :k] = factor
    return G, np.column_stack([sums.cross[part], sums.entry[part]])


def objective(model: FactorModel, sums: Sums, prior: Vector | None) -> float:
    """Return the log-likelihood of the observed entries, or its variational lower bound."""
    k, noise, mean = model.k, model.noise, model.mean
    squares = sums.square.sum() - 2.0 * float(mean @ sums.entry)
    uncertain = 0.0 if model.spread is None else model.spread[:, k, k]
    squares += float(((mean**2 + uncertain) * sums.weight).sum())
    value = sums.entries * math.log(2.0 * math.pi * noise) - sums.rows * k * math.log(noise)
    value += sums.logdet + (squares - sums.explained) / noise
    if prior is not None:
        assert model.spread is not None
        second = model.factors**2 + np.einsum("jii->ji", model.spread)[:, :k]
        value += float((second / prior + np.log(prior)).sum()) - len(mean) * (k + 1)
        for part in columns_in_parts(len(mean), k):
            value -= float(np.linalg.slogdet(model.spread[part])[1].sum())
    return -0.5 * float(value)


def maximize(
    model: FactorModel, sums: Sums, prior: Vector | None
) -> tuple[FactorModel, Vector | None]:
    """Return the model that maximizes the expected log-likelihood, and the variances of the prior.

    With a prior, the posterior of the factors of every column. The factors of rows then get mean
    zero and covariance I (Liu, Rubin & Wu 1998), and those of columns are rotated to their
    principal directions: both speed up the iteration greatly.
    """
    d, k = model.factors.shape
    ridge = np.zeros(k + 1)
    ridge[:k] = _RIDGE * sums.rows if prior is None else model.noise / prior
    loadings, error = np.empty((d, k + 1)), float(sums.square.sum())
    spread = None if prior is None else np.empty((d, k + 1, k + 1))
    for part in columns_in_parts(d, k):
        G, right = systems(sums, part, k)
        inverse = np.linalg.inv(G + np.diag(ridge))
        solution = np.einsum("jab,jb->ja", inverse, right)
        loadings[part], second = solution, solution[:, :, None] * solution[:, None, :]
        if spread is not None:
            spread[part] = model.noise * inverse
            second = second + spread[part]
        error += float((second * G).sum()) - 2.0 * float((solution * right).sum())
    least = _LEAST_NOISE * float(sums.square.sum()) / max(sums.entries, 1.0)
    new = replace(
        model, loadings=loadings, spread=spread, noise=max(error / max(sums.entries, 1.0), least)
    )
    return _standardized(new, model, sums, prior)


def _standardized(
    new: FactorModel, old: FactorModel, sums: Sums, prior: Vector | None
) -> tuple[FactorModel, Vector | None]:
    """Return the model in coordinates in which factors of rows are uncorrelated, and its prior."""
    k = new.k
    mean = sums.row_factor / sums.rows
    covariance = sums.row_factors / sums.rows - np.outer(mean, mean)
    values, vectors = eigh(covariance)
    change = np.eye(k + 1)
    change[:k, :k], change[:k, k] = vectors * np.sqrt(np.maximum(values, 1e-300)), mean
    new = _changed(new, change)
    second = new.factors.T @ new.factors
    if new.spread is not None:
        second += new.spread[:, :k, :k].sum(axis=0)
    rotation = np.eye(k + 1)
    rotation[:k, :k] = eigh(second)[1]
    overlap = np.einsum("ja,ja->a", new.factors @ rotation[:k, :k], old.factors)
    rotation[:k, :k] *= np.where(overlap < 0.0, -1.0, 1.0)
    new = _changed(new, rotation)
    if prior is None or new.spread is None:
        return new, None
    second = new.factors**2 + np.einsum("jii->ji", new.spread)[:, :k]
    return new, np.maximum(second.mean(axis=0), _LEAST_NOISE * new.noise)


def _changed(model: FactorModel, change: Matrix) -> FactorModel:
    """Return the model in other coordinates of the factors of rows."""
    spread = model.spread
    spread = None if spread is None else change.T @ spread @ change
    return replace(model, loadings=model.loadings @ change, spread=spread)


def iterate_filled(model: FactorModel, sums: Sums) -> FactorModel:
    r"""Return the model after a step of regularized iterative PCA (Josse & Husson 2012).

    The missing entries are filled by the model; the step is one of orthogonal iteration for the
    principal components of the filled rows. Their singular values are shrunk by the noise:
    :math:`A = V(\Lambda - \sigma^2)^{1/2}`.
    """
    A, m, n, (d, k) = model.factors, model.mean, sums.rows, model.factors.shape
    lengths = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    missing, left = n - sums.weight, sums.row_factor - sums.factor
    rest = np.empty((d, k))
    for part in columns_in_parts(d, k):
        beyond = sums.row_factors - unpack_symmetric(sums.factors[part], k)
        rest[part] = np.einsum("jab,jb->ja", beyond, A[part])
    filled = np.einsum("ja,ja->j", A, left)
    mean = (sums.entry + missing * m + filled) / n
    total = sums.square + missing * m**2 + 2.0 * m * filled + np.einsum("ja,ja->j", A, rest)
    total = float((total - n * mean**2).sum()) / n
    product = sums.cross + m[:, None] * left + rest - np.outer(mean, sums.row_factor)
    # Scores of the filled rows along V = A / lengths are z times λ / length.
    values = lengths**2 + model.noise
    V, found, _ = svd(product * (values / lengths) / n)
    freedom = (n - 1.0) * (d - k) - d * k + k * k
    noise = max(total - float(found.sum()), _LEAST_NOISE * total)
    noise *= n * d / min(d, n - 1.0) / max(freedom, 1.0)
    noise = min(noise, float(found[-1]))
    signs = np.where(np.einsum("ja,ja->a", V, A) < 0.0, -1.0, 1.0)
    factors = V * signs * np.sqrt(np.maximum(found - noise, _LEAST_NOISE * found[0]))
    return replace(model, loadings=np.column_stack([factors, mean]), noise=noise)


def slope(model: FactorModel, sums: Sums) -> float:
    """Return the norm of the gradient of the likelihood by the loadings, relative to its terms."""
    square = size = 0.0
    for part in columns_in_parts(*model.factors.shape):
        G, right = systems(sums, part, model.k)
        square += float(((right - np.einsum("jab,jb->ja", G, model.loadings[part])) ** 2).sum())
        size += float((right**2).sum())
    return math.sqrt(square / size) if size > 0.0 else 0.0


def extrapolate(iterates: Sequence[Any], step: float) -> Any:
    """Return the extrapolation of three iterates by SQUAREM (Varadhan & Roland 2008)."""
    first, second, third = iterates
    return first + 2.0 * step * (second - first) + step**2 * (third - 2.0 * second + first)

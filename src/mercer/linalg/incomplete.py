r"""Probabilistic PCA of incomplete rows: the factor model, and the sums that EM takes over rows.

Entry j of row i is :math:`x_{ij} = m_j + a_j^Tz_i + e_{ij}` with factors :math:`z_i \sim N(0, I)`
and noise :math:`e_{ij} \sim N(0, \sigma^2/w_{ij})`; a missing entry has weight zero. Given the
model, the factors of a row are normal with precision :math:`P_i/\sigma^2` and mean :math:`z_i`,

.. math:: P_i = \sigma^2 I + \sum_j w_{ij}(a_ja_j^T + S_j), \qquad
          P_iz_i = \sum_j w_{ij}\,(a_j(x_{ij} - m_j) - c_j),

where S_j and c_j are the covariances of a_j, and of a_j and m_j, if these are uncertain too (Ilin &
Raiko 2010); zero for maximum likelihood (Tipping & Bishop 1999). Packed symmetric matrices make
both sums over j, and those over i that the next model needs, products of two matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, like, namespace, with_data
from mercer.data import Block, SumFold
from mercer.linalg.posterior import packed_places, solve_posteriors


@dataclass(frozen=True)
class FactorModel:
    """Means and factors of the columns, about a fixed base and over fixed deviations."""

    base: Vector  # subtracted from the rows first
    deviation: Vector  # what they are then divided by
    loadings: Matrix  # d×(k+1): a_j, and m_j in the last column
    spread: Array  # d×(k+1)×(k+1), covariances of those; None where they are certain
    noise: float  # σ²

    @property
    def k(self) -> int:
        """Number of factors."""
        return int(self.loadings.shape[1]) - 1

    @property
    def factors(self) -> Matrix:
        """The factors a_j, d×k."""
        return self.loadings[:, :-1]

    @property
    def mean(self) -> Vector:
        """The means m_j, about the base."""
        return self.loadings[:, -1]

    def products(self) -> tuple[Matrix, Matrix]:
        """Return a_j a_jᵀ + S_j, packed, and m_j a_j + c_j."""
        A, (i, j) = self.factors, packed_places(self.k)
        squares, means = A[:, i] * A[:, j], self.mean[:, None] * A
        if self.spread is not None:
            squares, means = squares + self.spread[:, i, j], means + self.spread[:, :-1, -1]
        return squares, means


def observed(block: Block, model: FactorModel) -> tuple[Array, Array, Array]:
    """Return the weights of the entries of a block, entries times weights, and entries.

    Missing entries are zero, and so are those that sparse rows do not store. Rows twice as wide as
    the model hold entries, then their weights.
    """
    rows, d = block.rows, len(model.base)
    if hasattr(rows, "tocsr"):
        return _stored(rows, model)
    xp = namespace(rows)
    X = cast(rows[:, :d], np.float64)
    W = 1.0 - cast(xp.isnan(X), np.float64)
    if rows.shape[1] > d:
        W = W * cast(rows[:, d:], np.float64)
    base, deviation = (like(x, X) for x in (model.base, model.deviation))
    X = xp.where(W > 0, (X - base) / deviation, 0.0 * W)
    return W, W * X if rows.shape[1] > d else X, X


def _stored(rows: Any, model: FactorModel) -> tuple[Any, Any, Any]:
    """Return the same for sparse rows: their pattern, and the entries that they store."""
    xp, at = namespace(rows.data), rows.indices
    data = cast(rows.data, np.float64)
    base, deviation = (xp.take(like(x, data), at) for x in (model.base, model.deviation))
    weights = 1.0 - cast(xp.isnan(data), np.float64)
    W = with_data(rows, weights)
    X = with_data(rows, xp.where(weights > 0, (data - base) / deviation, 0.0 * weights))
    return W, X, X


def times(left: Any, right: Any) -> Any:
    """Return the products of entries; both sparse rows have theirs at the same places."""
    if hasattr(left, "tocsr"):
        return with_data(left, left.data * right.data)
    return left * right


def present(weights: Any) -> Any:
    """Return 1 for entries of positive weight, and 0 for others."""
    if hasattr(weights, "tocsr"):
        return with_data(weights, namespace(weights.data).sign(weights.data))
    return namespace(weights).sign(weights)


class Expectation(SumFold):
    """The sums over rows from which EM takes its next model, and the likelihood of this one.

    By column: weights of the entries, entries, and their squares; sums over its observed entries of
    E[z], E[z zᵀ] and x E[z]. By row: sums of E[z] and E[z zᵀ], log-determinants and squares.
    """

    label = "incomplete rows"

    def __init__(self, model: FactorModel, reference: Array, *, covariance: bool = True) -> None:
        self.model, self.covariance = model, covariance
        d, k = len(model.base), model.k
        t = k * (k + 1) // 2
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("weight", "entry", "square"), (d,)),
            **{"factor": (d, k), "factors": (d, t), "cross": (d, k)},
            **{"row factor": (k,), "row factors": (t,), "rows": (4,)},
        }
        self.sums = {name: like(np.zeros(shape), reference) for name, shape in shapes.items()}
        self.inputs = model.products()
        self.row_bytes = 8 * (5 * d + 3 * t + 4 * k)
        self.nbytes = 8 * d * (t + 2 * k + 3)

    def add(self, block: Block) -> None:
        model, xp = self.model, namespace(self.sums["weight"])
        W, R, X = observed(block, model)
        squares, means = (like(x, self.sums["weight"]) for x in self.inputs)
        packed = W @ squares
        linear = R @ like(model.factors, packed) - W @ means
        Z, packed, logdet, square = solve_posteriors(
            packed, linear, model.noise, covariance=self.covariance
        )
        w = like(block.count, packed)
        if block.weights is not None:
            packed, Z = packed * w[:, None], Z * w[:, None]
        added = {
            "weight": W.T @ w,
            "entry": R.T @ w,
            "square": times(R, X).T @ w,
            "factor": W.T @ Z,
            "factors": W.T @ packed,
            "cross": R.T @ Z,
            "row factor": xp.sum(Z, axis=0),
            "row factors": xp.sum(packed, axis=0),
            "rows": xp.stack([xp.sum(w), w @ logdet, w @ square, xp.sum(present(W).T @ w)]),
        }
        for name, term in added.items():
            self.sums[name] += term


class ObservedMoments(SumFold):
    """Sums over the observed entries of every column, about a base, and rows without any."""

    label = "observed entries"

    def __init__(self, base: Vector, reference: Array) -> None:
        d = len(base)
        self.model = FactorModel(base, np.ones(d), np.zeros((d, 1)), None, 1.0)
        names = ("weight", "entry", "square", "seen")
        self.sums = {name: like(np.zeros(d), reference) for name in names}
        self.sums["rows"] = like(np.zeros(3), reference)  # weights, rows, rows without entries
        self.row_bytes = 40 * d

    def add(self, block: Block) -> None:
        W, R, X = observed(block, self.model)
        xp = namespace(self.sums["weight"])
        w = like(block.count, self.sums["weight"])
        seen = present(W)
        for name, terms in (("weight", W), ("entry", R), ("square", times(R, X))):
            self.sums[name] += terms.T @ w
        self.sums["seen"] += seen.T @ (0.0 * w + 1.0)
        full = seen @ like(np.ones(len(self.model.base)), self.sums["weight"])
        empty = xp.sum(cast(full == 0.0, np.float64))
        self.sums["rows"] += xp.stack([xp.sum(w), xp.sum(0.0 * w + 1.0), empty])

"""Weight, mean and scatter of rows, without ever subtracting large from large."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, empty, held, like, namespace, to_numpy
from mercer.arrays.rounding import LIKELY, confidence, drift
from mercer.data import Block, Fold
from mercer.linalg.centering import (
    RunningMean,
    near_zero,
    seems_near_zero,
    weighted_sum,
)

# Block means wait until there are this many: one product then serves them all, where
# each alone would cost a pass over the d×d scatter.
_WAITING = 64


class Moments(Fold):
    r"""Weight :math:`W`, mean :math:`\mu` and scatter :math:`\sum_i w_i (x_i-\mu)(x_i-\mu)^T`.

    Every block is centred by its own mean before its product is formed, in the precision
    `products`; the blocks' products and means are summed in float64, as in Chan, Golub &
    LeVeque (1983). A common offset of the rows, or one that drifts, costs no digits.

    Parameters
    ----------
    d : int
        Number of columns.
    reference : array
        An array that lives where the rows live.
    products : dtype
        Precision of the products.
    diagonal : bool
        Keep the diagonal of the scatter only.
    center : bool
        False: the scatter about zero.
    """

    label = "moments"

    def __init__(
        self,
        d: int,
        reference: Array,
        products: Any,
        *,
        diagonal: bool = False,
        center: bool = True,
    ) -> None:
        self.d = d
        self.reference = reference
        self.products = np.dtype(products)
        self.diagonal = diagonal
        self.center = center
        self.running = RunningMean(d, reference)
        self.longest = self.blocks = 0
        # What the products of every block amount to, column by column; and its square.
        self._amount, self._amount_squared = np.zeros(d), np.zeros(d)
        self._scatter = like(np.zeros((d,) if diagonal else (d, d)), reference)
        self._waiting: list[tuple[float, Array, Array]] = []
        self._product: Array = None
        self._centred: Array = None
        self.row_bytes = d * (1 + diagonal) * self.products.itemsize
        self.nbytes = 0 if diagonal else d * d * (8 + self.products.itemsize)

    def add(self, block: Block) -> None:
        weight = float(block.count.sum())
        if weight == 0.0:
            return
        self.longest = max(self.longest, int(block.rows.shape[0]))
        self.blocks += 1
        if self.diagonal and hasattr(block.rows, "tocsr"):
            self._add_sparse(block, weight)
            return
        rows = block.dense(self.products)
        w = like(block.count, self.reference, self.products)
        square = self._as_they_are(rows, w, weight, block.weights is None)
        if square is None:
            rows, offset, left = self.running.center(rows, w, weight, self._room(rows))
            self._wait(weight, offset, left)
            square = self._square(_weighed(rows, w, block.weights is None))
        self._scatter += square
        if not self.diagonal:
            own = to_numpy(namespace(square).linalg.diagonal(square)).astype(np.float64)
            self._amount += own
            self._amount_squared += own * own

    def _as_they_are(self, rows: Array, w: Array, weight: float, plain: bool) -> Array:
        """Return the product of rows that need no centring, or are not to be; None of others.

        A few rows tell whether to try, the product and the sum of all whether it was right.
        """
        if not self.center:
            self.running.weight += weight
            return self._square(_weighed(rows, w, plain))
        if not seems_near_zero(rows[::64, :]):
            return None
        left = weighted_sum(w, rows)
        square = self._square(_weighed(rows, w, plain))
        own = square if self.diagonal else namespace(square).linalg.diagonal(square)
        if not near_zero(left**2 / weight, cast(own, np.float64)):
            return None
        self._wait(weight, self.running.offset_from(0.0 * left, left, weight), left)
        return square

    def _add_sparse(self, block: Block, weight: float) -> None:
        """Add the diagonal of sparse rows from their entries alone; zeros are counted."""
        rows = block.rows
        at, entries = rows.indices, rows.data.astype(np.float64)
        w = np.repeat(block.count, np.diff(rows.indptr))

        def summed(values: Vector) -> Vector:
            return np.asarray(np.bincount(at, weights=w * values, minlength=self.d), np.float64)

        full = np.bincount(at, minlength=self.d) == block.length
        absent = np.where(full, 0.0, weight - np.bincount(at, weights=w, minlength=self.d))
        mean = np.zeros(self.d)
        if self.center:
            # Columns without zeros by differences, as dense ones: constants become exactly zero.
            mean = np.where(full, _row(rows, int(np.argmax(block.count))), 0.0)
            mean = mean + summed(entries - mean[at]) / weight
            left = summed(entries - mean[at]) - absent * mean
            self._wait(weight, self.running.offset_from(mean, left, weight), left)
        else:
            self.running.weight += weight
        self._scatter += summed((entries - mean[at]) ** 2) + absent * mean**2

    def merge(self, other: Self) -> None:
        self.settle()
        other.settle()
        if other.weight == 0.0:
            return
        self.longest, self.blocks = max(self.longest, other.longest), self.blocks + other.blocks
        self._amount += other._amount
        self._amount_squared += other._amount_squared
        self._scatter += other._scatter
        if self.center:
            offset = self.running.offset_of(other.running)
            self._wait(other.weight, offset, 0.0 * offset)
        else:
            self.running.weight += other.weight

    def spawn(self) -> Self:
        return type(self)(
            self.d, self.reference, self.products, diagonal=self.diagonal, center=self.center
        )

    def arrays(self) -> dict[str, Array]:
        sums = np.array([self.longest, self.blocks], np.float64)
        amounts = np.concatenate([self._amount, self._amount_squared])
        arrays = {"scatter": self._scatter, "sums": sums, "amounts": amounts}
        arrays |= self.running.arrays()
        if self._waiting:
            weights, *means = zip(*self._waiting, strict=True)
            arrays["waiting"] = np.array(weights)
            for name, rows in zip(("offsets", "left"), means, strict=True):
                arrays[f"waiting {name}"] = namespace(self._scatter).stack(list(rows))
        return arrays

    def restore(self, arrays: dict[str, Array]) -> None:
        self._waiting = []
        self.running.restore(arrays)
        self.longest, self.blocks = (int(x) for x in arrays["sums"])
        self._amount, self._amount_squared = to_numpy(arrays["amounts"]).reshape(2, -1).copy()
        self._scatter = like(to_numpy(arrays["scatter"]).copy(), self.reference)
        if "waiting" in arrays:
            means = (
                like(to_numpy(arrays[f"waiting {x}"]), self.reference) for x in ("offsets", "left")
            )
            self._waiting = list(zip(map(float, arrays["waiting"]), *means, strict=True))
            self.running.base = like(to_numpy(arrays["base"]), self.reference)

    @property
    def weight(self) -> float:
        """Weight of the rows."""
        self.settle()
        return self.running.weight

    @property
    def mean(self) -> Vector:
        """Mean of the rows, on the host."""
        self.settle()
        return self.running.value

    @property
    def scatter(self) -> Matrix:
        """Scatter about the mean, as the small algebra takes it."""
        self.settle()
        return to_numpy(self._scatter) if self.diagonal else held(self._scatter)

    @property
    def rounding(self) -> tuple[float, float]:
        """Bound on the scatter's rounding in Frobenius norm, as a share of its trace.

        And the confidence it holds with: see `error`.
        """
        trace = float(np.trace(self.scatter))
        if not trace > 0.0:
            return 0.0, 1.0
        error, confidence = self.error(np.ones(self.d))
        return error / trace, confidence

    def error(self, deviation: Vector) -> tuple[float, float]:
        """Bound the rounding of the scatter of columns divided by these, in Frobenius norm.

        Products round by what they amount to in each column, which is more than its variance
        where rows were near enough to zero not to be centred. And the confidence it holds with.
        Float64: γ_b of the longest block, always true. Float32, where that would say nothing:
        independent roundings of b rows, blocks added in quadrature, and what roundings of equal
        terms drift by, which is the same in every block (`arrays.rounding`), true at 99.9 %.
        """
        own = np.maximum(np.diag(to_numpy(self.scatter)), 0.0)  # between the blocks too
        share = 1.0 / deviation**2
        u = float(np.finfo(np.float64).eps) / 2
        always = (self.longest + self.blocks + 8) * u * float((self._amount + own) @ share)
        if self.products == np.float64:
            return always, 1.0
        u = float(np.finfo(self.products).eps) / 2
        likely = LIKELY * self.longest**0.5 * float(np.sqrt(self._amount_squared) @ share)
        likely += drift(self.longest, self.reference) * float(self._amount @ share)
        return always + u * likely, confidence(self.products)

    def _room(self, rows: Array) -> Array:
        """Return an array as large as the block, the same for every block; None elsewhere."""
        if not isinstance(rows, np.ndarray):
            return None
        if self._centred is None or len(self._centred) < len(rows):
            self._centred = np.empty(rows.shape, self.products)
        return self._centred[: len(rows)]

    def _square(self, rows: Array) -> Array:
        if self.diagonal:
            ones = like(np.ones(rows.shape[0]), rows, self.products)
            mine = isinstance(rows, np.ndarray) and rows.base is self._centred is not None
            squares = np.square(rows, out=rows) if mine else rows * rows
            return cast(ones @ squares, np.float64)
        if not isinstance(rows, np.ndarray):
            return cast(rows.T @ rows, np.float64)
        if self._product is None:
            self._product = empty((self.d, self.d), rows, self.products)
        return np.matmul(rows.T, rows, out=self._product)

    def _wait(self, weight: float, offset: Array, left: Array) -> None:
        self._waiting.append((weight, offset, left))
        if self.diagonal or len(self._waiting) >= _WAITING:
            self.settle()

    def settle(self) -> None:
        """Take the waiting blocks' means into the mean and the scatter."""
        if not self._waiting:
            return
        xp = namespace(self._scatter)
        counts = np.array([weight for weight, _, _ in self._waiting])
        w = like(counts, self._scatter)[:, None]
        offsets = xp.stack([offset for _, offset, _ in self._waiting])
        left = xp.stack([rest for _, _, rest in self._waiting])
        self._waiting = []
        weight = float(counts.sum())
        middle = xp.sum(w * offsets, axis=0) / weight
        before = self.running.weight
        apart = self.running.update(weight, middle)
        between = (offsets - middle) * xp.sqrt(w)
        joint = math.sqrt(before * weight / self.running.weight) * apart[None, :]
        within = left / xp.sqrt(w)
        if self.diagonal:
            self._scatter += (
                xp.sum(between**2, axis=0) - xp.sum(within**2, axis=0) + joint[0, :] ** 2
            )
        else:
            # One product for all: the scatter is passed over once.
            rows = xp.concat([between, joint, within])
            signs = np.repeat([1.0, -1.0], [len(counts) + 1, len(counts)])
            self._scatter += rows.T @ (rows * like(signs, rows)[:, None])


def _row(rows: Any, i: int) -> Vector:
    """Return one of some sparse rows as an array."""
    row = np.zeros(rows.shape[1])
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    row[rows.indices[part]] = rows.data[part]
    return row


def _weighed(rows: Array, w: Array, plain: bool) -> Array:
    return rows if plain else rows * namespace(w).sqrt(w)[:, None]

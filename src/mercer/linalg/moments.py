"""Weight, mean and scatter of rows, computed without cancellation."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    LIKELY,
    Array,
    Matrix,
    Vector,
    cast,
    confidence,
    drift,
    entry_rows,
    like,
    namespace,
    small_matrix,
    to_numpy,
    with_data,
)
from mercer.data import Block, Fold

# The means of this many blocks are added to the scatter at once: one pass over the d×d matrix.
_WAITING = 64
# Rows of a partial sum.
_PART = 256


class RunningMean:
    """Weight and mean of rows; the mean is a fixed base plus an offset.

    The base is the rounded mean of the first block. Differences from it are exact where the means
    themselves would be rounded: at a mean of 1e8 that alone costs the variance its tenth digit.
    """

    def __init__(self, d: int, reference: Array) -> None:
        self.weight = 0.0
        self.base: Array = None
        self.offset = like(np.zeros(d), reference)

    def center(
        self, rows: Array, w: Array, weight: float, room: Array = None
    ) -> tuple[Array, Array, Array]:
        """Return centered rows, the offset of their mean, and the sum of the centered rows.

        The rows are centered by the mean of every eighth row, which is within √7 standard
        deviations of the mean of all and costs an eighth of a pass; by the mean of all rows where
        those carry little of the weight. The offset is that of the exact mean. `room` is a NumPy
        array for the centered rows.
        """
        xp = namespace(w)
        some = float(xp.sum(w[::8]))
        # Differences from a row of positive weight: a constant column becomes exactly zero.
        row = rows[int(xp.argmax(w)), :]
        if 16.0 * some >= weight:
            middle = row + (w[::8] @ (rows[::8, :] - row)) / some
        else:
            middle = row + (w @ (rows - row)) / weight
        rows = rows - middle if room is None else np.subtract(rows, middle, out=room)
        left = weighted_sum(w, rows)
        return rows, self.offset_from(cast(middle, np.float64), left, weight), left

    def offset_from(self, middle: Array, left: Array, weight: float) -> Array:
        """Return the offset of the mean of rows that sum to `left` after subtracting `middle`."""
        if self.base is None:
            self.base = middle
        return (middle - self.base) + left / weight

    def update(self, weight: float, offset: Array) -> Array:
        """Add rows of this weight and offset; return the difference of the two means."""
        difference = offset - self.offset
        self.weight += weight
        self.offset = self.offset + (weight / self.weight) * difference
        return difference

    def offset_of(self, other: RunningMean) -> Array:
        """Return the offset of another mean from this base."""
        if self.base is None:
            self.base = other.base
        return other.offset + (other.base - self.base)

    @property
    def value(self) -> np.ndarray[Any, Any]:
        offset = to_numpy(self.offset)
        return offset if self.base is None else to_numpy(self.base) + offset

    @property
    def rounding(self) -> np.ndarray[Any, Any]:
        """The exact mean minus `value`, on the host; zero for a constant column."""
        offset = to_numpy(self.offset)
        if self.base is None:
            return 0.0 * offset
        return np.asarray((to_numpy(self.base) - self.value) + offset)

    def arrays(self) -> dict[str, Array]:
        base = self.offset * 0.0 if self.base is None else self.base
        return {"weight": np.array(self.weight), "base": base, "offset": self.offset}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.weight = float(arrays["weight"])
        self.base = like(to_numpy(arrays["base"]), self.offset) if self.weight else None
        self.offset = like(to_numpy(arrays["offset"]), self.offset)


class Moments(Fold):
    r"""Weight :math:`W`, mean :math:`\mu` and scatter :math:`\sum_i w_i (x_i-\mu)(x_i-\mu)^T`.

    Every block is centered by its own mean before its product is formed, in the precision
    `products`; the products and means of the blocks are summed in float64, as in Chan, Golub &
    LeVeque (1983). A common offset of the rows, or one that drifts, costs no digits. `diagonal`
    keeps the diagonal of the scatter only; without `center` the scatter is about zero.
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
        self.d, self.reference, self.products = d, reference, np.dtype(products)
        self.diagonal, self.center = diagonal, center
        self.running = RunningMean(d, reference)
        self.longest = self.blocks = 0
        # Sum over the blocks of the diagonals of their products; and of the squares of these.
        self._amount, self._amount_squared = np.zeros(d), np.zeros(d)
        self._scatter = like(np.zeros((d,) if diagonal else (d, d)), reference)
        self._waiting: list[tuple[float, Array, Array]] = []
        self._centered: Array = None
        self.row_bytes = d * (1 + diagonal) * self.products.itemsize
        self.nbytes = 0 if diagonal else d * d * (8 + self.products.itemsize)

    def add(self, block: Block) -> None:
        count = block.count
        weight = float(count.sum())
        if weight == 0.0:
            return
        self.longest = max(self.longest, len(count))
        self.blocks += 1
        if self.diagonal and hasattr(block.rows, "tocsr"):
            self._add_sparse(block, weight)
            return
        rows = block.dense(self.products)
        w = like(count, self.reference, self.products)
        roots = None if block.weights is None else namespace(w).sqrt(w)[:, None]
        xp, some, square = namespace(rows), rows[::64, :], None
        if not self.center:
            self.running.weight += weight
            square = self._square(rows, roots)
        elif _is_near_zero(xp.mean(some, axis=0) ** 2, xp.mean(some * some, axis=0)):  # a guess
            left = weighted_sum(w, rows)
            square = self._square(rows, roots)
            own = square if self.diagonal else xp.linalg.diagonal(square)
            if _is_near_zero(left**2 / weight, cast(own, np.float64)):
                offset = self.running.offset_from(0.0 * left, left, weight)
                self._waiting.append((weight, offset, left))
            else:
                square = None
        if square is None:
            room = None
            if isinstance(rows, np.ndarray):  # one array for the centered rows of all blocks
                if self._centered is None or len(self._centered) < len(rows):
                    self._centered = np.empty(rows.shape, self.products)
                room = self._centered[: len(rows)]
            rows, offset, left = self.running.center(rows, w, weight, room)
            self._waiting.append((weight, offset, left))
            square = self._square(rows, roots)
        if self.diagonal or len(self._waiting) >= _WAITING:
            self.settle()
        self._scatter += square
        if not self.diagonal:
            own = to_numpy(xp.linalg.diagonal(square)).astype(np.float64)
            self._amount += own
            self._amount_squared += own * own

    def _square(self, rows: Array, roots: Array) -> Array:
        """Return the products of rows times `roots`, summed; or their squares."""
        rows = rows if roots is None else rows * roots
        if self.diagonal:
            ones = like(np.ones(rows.shape[0]), rows, self.products)
            mine = isinstance(rows, np.ndarray) and rows.base is self._centered is not None
            squares = np.square(rows, out=rows) if mine else rows * rows
            return cast(ones @ squares, np.float64)
        product = rows.T @ rows
        return product if isinstance(rows, np.ndarray) else cast(product, np.float64)

    def _add_sparse(self, block: Block, weight: float) -> None:
        """Add the diagonal of sparse rows from their entries alone; zeros are counted."""
        rows, entries = block.rows, cast(block.rows.data, np.float64)
        xp, zero = namespace(entries), like(np.zeros(self.d), entries)
        weights = None
        if block.weights is not None:
            weights = xp.take(like(block.weights, entries), entry_rows(rows), axis=0)

        def column_sums(values: Array, weights: Array | None = weights) -> Array:
            values = values if weights is None else weights * values
            if isinstance(values, np.ndarray):
                sums = np.bincount(rows.indices, weights=values, minlength=self.d)
                return np.asarray(sums, np.float64)
            return with_data(rows, values).T @ like(np.ones(block.length), entries)

        def differences(mean: Array) -> Array:
            return entries - xp.take(mean, rows.indices, axis=0)

        stored = column_sums(xp.ones_like(entries), None)
        full = stored == block.length
        present = stored if weights is None else column_sums(xp.ones_like(entries))
        absent, mean = xp.where(full, zero, weight - present), zero
        if self.center:
            # Columns without zeros by differences, as dense ones: constants become exactly zero.
            i = int(np.argmax(block.count))
            mean = xp.where(full, cast(rows[i : i + 1].toarray()[0, :], np.float64), zero)
            mean = mean + column_sums(differences(mean)) / weight
            left = column_sums(differences(mean)) - absent * mean
            offset = self.running.offset_from(mean, left, weight)
            self._waiting.append((weight, offset, left))
            self.settle()
        else:
            self.running.weight += weight
        self._scatter += column_sums(differences(mean) ** 2) + absent * mean**2

    def merge(self, other: Self) -> None:
        self.settle()
        other.settle()
        weight = other.running.weight
        if weight == 0.0:
            return
        self.longest, self.blocks = max(self.longest, other.longest), self.blocks + other.blocks
        self._amount += other._amount
        self._amount_squared += other._amount_squared
        self._scatter += other._scatter
        if self.center:
            offset = self.running.offset_of(other.running)
            self._waiting.append((weight, offset, 0.0 * offset))
            if self.diagonal:
                self.settle()
        else:
            self.running.weight += weight

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
        self.settle()
        return self.running.weight

    @property
    def mean(self) -> Vector:
        self.settle()
        return self.running.value

    @property
    def scatter(self) -> Matrix:
        """Scatter about the mean; a matrix on a device stays there."""
        self.settle()
        return to_numpy(self._scatter) if self.diagonal else small_matrix(self._scatter)

    @property
    def rounding(self) -> tuple[float, float]:
        """Bound on the rounding of the scatter as a share of its trace, and its confidence."""
        trace = float(np.trace(self.scatter))
        if not trace > 0.0:
            return 0.0, 1.0
        error, confidence = self.error(np.ones(self.d))
        return error / trace, confidence

    def error(self, deviation: Vector) -> tuple[float, float]:
        """Bound the rounding of the scatter of columns divided by `deviation`, in Frobenius norm.

        Also return the confidence with which it holds. Rounding is proportional to the products
        of a column, which exceed its variance where rows were near enough to zero not to be
        centered. Float64: γ_b of the longest block, which always holds. Float32, where that would
        be useless: independent rounding errors of b rows, blocks added in quadrature, and the
        drift of the rounding errors of equal terms, which is the same in every block
        (`arrays.linear`); this holds at 99.9 %.
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

    def settle(self) -> None:
        """Add the means of the waiting blocks to the mean and to the scatter."""
        if not self._waiting:
            return
        xp = namespace(self._scatter)
        columns = zip(*self._waiting, strict=True)
        counts, offsets, left = np.array(next(columns)), *map(xp.stack, columns)
        self._waiting = []
        w = like(counts, self._scatter)[:, None]
        weight = float(counts.sum())
        middle = xp.sum(w * offsets, axis=0) / weight
        before = self.running.weight
        difference = self.running.update(weight, middle)
        between = (offsets - middle) * xp.sqrt(w)
        joint = math.sqrt(before * weight / self.running.weight) * difference[None, :]
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


def _is_near_zero(far: Array, squares: Array) -> bool:
    """Return whether subtracting squared means from squares loses at most one digit.

    Squared means may sum to the variances, and none may exceed thirty times its own variance.
    """
    xp = namespace(far)
    near = squares - far
    return bool(xp.sum(far) <= xp.sum(near)) and bool(xp.all(far <= 30 * near))


def weighted_sum(w: Array, rows: Array) -> Array:
    """Return the weighted sum of rows, float64, from partial sums, which round less."""
    n, d = rows.shape
    whole = n - n % _PART
    if not (isinstance(rows, np.ndarray) and rows.flags.c_contiguous and whole):
        return cast(w @ rows, np.float64)
    parts = rows[:whole].reshape(whole // _PART, _PART, d)
    sums = w[:whole].reshape(-1, 1, _PART) @ parts
    return sums.sum(axis=(0, 1), dtype=np.float64) + w[whole:] @ rows[whole:]

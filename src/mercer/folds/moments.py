"""Weight, mean and scatter of rows, without ever subtracting large from large."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import Array, cast, empty, like, namespace, to_numpy
from mercer.sources import Block, Fold

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
        self.weight = 0.0
        self.longest = self.blocks = 0
        self._traces = self._trace_squares = 0.0
        shape = (d,) if diagonal else (d, d)
        self._mean = like(np.zeros(d), reference)
        self._scatter = like(np.zeros(shape), reference)
        self._waiting: list[tuple[float, Array, Array]] = []
        self._product: Array = None
        self.row_bytes = d * 2 * self.products.itemsize
        self.nbytes = 0 if diagonal else d * d * (8 + self.products.itemsize)

    def add(self, block: Block) -> None:
        if self.diagonal and hasattr(block.rows, "tocsr"):
            self._add_sparse(block)
            return
        weight = float(block.count.sum())
        if weight == 0.0:
            return
        rows = block.dense(self.products)
        w = like(block.count, self.reference, self.products)
        self.longest, self.blocks = max(self.longest, int(rows.shape[0])), self.blocks + 1
        if self.center:
            middle = (w @ rows) / weight
            rows = rows - middle
            left = cast(w @ rows, np.float64)  # what rounding of `middle` left over
            self._waiting.append((weight, cast(middle, np.float64) + left / weight, left))
        if block.weights is not None:
            rows = rows * namespace(w).sqrt(w)[:, None]
        square = self._square(rows)
        self._scatter += square
        if self.products != np.float64 and not self.diagonal:
            trace = float(namespace(square).linalg.trace(square))
            self._traces, self._trace_squares = self._traces + trace, self._trace_squares + trace**2
        if not self.center:
            self.weight += weight
        elif len(self._waiting) >= _WAITING:
            self._settle()

    def _add_sparse(self, block: Block) -> None:
        """Add the diagonal of sparse rows from their entries alone; zeros are counted."""
        rows = block.rows
        weight = float(block.count.sum())
        if weight == 0.0:
            return
        at, entries = rows.indices, rows.data.astype(np.float64)
        w = np.repeat(block.count, np.diff(rows.indptr))
        stored = np.bincount(at, weights=w, minlength=self.d)
        mean = np.zeros(self.d)
        if self.center:
            mean = np.bincount(at, weights=w * entries, minlength=self.d) / weight
            self._waiting.append((weight, mean, np.zeros(self.d)))
        else:
            self.weight += weight
        squares = np.bincount(at, weights=w * (entries - mean[at]) ** 2, minlength=self.d)
        self._scatter += squares + (weight - stored) * mean**2
        self.longest, self.blocks = max(self.longest, int(rows.shape[0])), self.blocks + 1

    def merge(self, other: Self) -> None:
        self._settle()
        other._settle()
        if other.weight == 0.0:
            return
        self.longest, self.blocks = max(self.longest, other.longest), self.blocks + other.blocks
        self._traces += other._traces
        self._trace_squares += other._trace_squares
        self._scatter += other._scatter
        if self.center:
            self._waiting.append((other.weight, other._mean, 0.0 * other._mean))
            self._settle()
        else:
            self.weight += other.weight

    def spawn(self) -> Self:
        return type(self)(
            self.d, self.reference, self.products, diagonal=self.diagonal, center=self.center
        )

    def arrays(self) -> dict[str, Array]:
        self._settle()
        scalars = np.array(
            [self.weight, self.longest, self.blocks, self._traces, self._trace_squares]
        )
        return {"scalars": scalars, "mean": self._mean, "scatter": self._scatter}

    def restore(self, arrays: dict[str, Array]) -> None:
        self._waiting = []
        weight, longest, blocks, traces, squares = (float(x) for x in arrays["scalars"])
        self.weight, self.longest, self.blocks = weight, int(longest), int(blocks)
        self._traces, self._trace_squares = traces, squares
        self._mean = like(to_numpy(arrays["mean"]), self.reference)
        self._scatter = like(to_numpy(arrays["scatter"]), self.reference)

    @property
    def mean(self) -> np.ndarray[Any, Any]:
        """Mean of the rows, on the host."""
        self._settle()
        return to_numpy(self._mean)

    @property
    def scatter(self) -> np.ndarray[Any, Any]:
        """Scatter about the mean, on the host."""
        self._settle()
        return to_numpy(self._scatter)

    @property
    def rounding(self) -> tuple[float, float]:
        """Bound on the scatter's rounding in Frobenius norm, as a share of its trace.

        And the confidence it holds with. Float64: γ_b of the longest block, always true.
        Float32, where that would say nothing: 3.3 u √b of each block, blocks added in
        quadrature, true at 99.9 % where roundings are independent (Higham & Mary 2019).
        """
        u = float(np.finfo(np.float64).eps) / 2
        always = (self.longest + self.blocks + 8) * u
        if self.products == np.float64 or self._traces == 0.0:
            return always, 1.0
        u = float(np.finfo(self.products).eps) / 2
        share = self._trace_squares**0.5 / self._traces
        return always + 3.3 * u * self.longest**0.5 * share, 0.999

    def _square(self, rows: Array) -> Array:
        if self.diagonal:
            ones = like(np.ones(rows.shape[0]), rows, self.products)
            return cast(ones @ (rows * rows), np.float64)
        if not isinstance(rows, np.ndarray):
            return cast(rows.T @ rows, np.float64)
        if self._product is None:
            self._product = empty((self.d, self.d), rows, self.products)
        return np.matmul(rows.T, rows, out=self._product)

    def _settle(self) -> None:
        """Take the waiting blocks' means into the mean and the scatter."""
        if not self._waiting:
            return
        xp = namespace(self._mean)
        counts = np.array([weight for weight, _, _ in self._waiting])
        w = like(counts, self._mean)[:, None]
        means = xp.stack([mean for _, mean, _ in self._waiting])
        left = xp.stack([rest for _, _, rest in self._waiting])
        self._waiting = []
        if self.weight == 0.0:
            self._mean = means[0, :]
        apart = means - self._mean
        total = self.weight + float(counts.sum())
        move = xp.sum(w * apart, axis=0) / total
        between, within = apart * xp.sqrt(w), left / xp.sqrt(w)
        if self.diagonal:
            self._scatter += xp.sum(between**2, axis=0) - xp.sum(within**2, axis=0)
            self._scatter -= total * move**2
        else:
            self._scatter += between.T @ between - within.T @ within
            self._scatter -= (total * move)[:, None] * move[None, :]
        self._mean = self._mean + move
        self.weight = total

"""The centred kernel matrix, in as little memory as there is."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    empty,
    like,
    namespace,
    numpy_dtype,
    on_accelerator,
    product_eps,
    squares,
    to_numpy,
)
from mercer.arrays.rounding import FEW, confidence, summed
from mercer.certificate import Figure
from mercer.config import get_config
from mercer.data import Block, Source
from mercer.data.remote import Paired
from mercer.kernels import Kernel
from mercer.kernels.evaluate import evaluate, evaluate_into
from mercer.kernels.points import Points, cast_rows
from mercer.linalg.gram_rounding import Roundings
from mercer.linalg.operator import Operator
from mercer.linalg.symmetric import Mirror

# A strip fills about this much: enough for a matrix product, on the host and on a device.
_STRIP_BYTES, _DEVICE_BYTES = 32 * 2**20, 4 * 2**30
# There are about so many at least, for the workers to share, of no fewer rows than these.
_STRIPS, _STRIP_ROWS = 8, 64
# Vectors that a product with a matrix that is not kept is made with: more cost little.
WIDE = 32
# Rows of a strip that are squared at a time.
_SQUARED = 64
# Kernel values between this and its inverse have squares that float64 can hold.
_MODERATE = 1e-120
# Columns of a strip that are made by one matrix product on the host; on a device, all.
_ACROSS = 4096


def strip_rows(n: int, itemsize: int, *, on_device: bool = False) -> int:
    """Return the rows of a strip of an n×n matrix; several strips fit the budget."""
    room = min(_DEVICE_BYTES if on_device else _STRIP_BYTES, get_config().budget // 16)
    return max(1, min(n, room // (n * itemsize), max(_STRIP_ROWS, -(-n // _STRIPS))))


class Strips(Source):
    """Rows of a kernel matrix, each from the diagonal on: every pair of rows once.

    The block that starts at row i holds k(x_i, x_j) for j ≥ i. Blocks are computed when they
    are read, and kept where `keep` says so.
    """

    def __init__(self, kernel: Kernel, source: Source, dtype: Any, *, keep: bool) -> None:
        n = source.shape[0]
        self.kernel, self.source = kernel, source
        self.dtype, self.shape = np.dtype(dtype), (n, n)
        self.parallel = source.parallel
        self.on_device = on_accelerator(source.reference)
        self.rows = strip_rows(n, self.dtype.itemsize, on_device=self.on_device)
        self.kept: dict[int, Array] | None = {} if keep else None
        # Rows are not rounded to what is kept: close ones would move.
        self.points = Points(cast_rows(source.whole(), np.result_type(self.dtype, source.dtype)))

    @property
    def reference(self) -> Array:
        return self.source.reference

    def block_rows(self, extra_bytes: int, held: int, parts: int) -> int:
        return self.rows

    def read(self, start: int, stop: int) -> Array:
        if self.kept is not None and start in self.kept:
            return self.kept[start]
        with np.errstate(invalid="ignore", over="ignore"):  # judged when all strips are in
            strip = self._strip(start, stop)
        if self.kept is not None:
            self.kept[start] = strip
        return strip

    def _strip(self, start: int, stop: int) -> Array:
        n = self.shape[0]
        x = self.points.part(slice(start, stop))
        if self.on_device:
            y = self.points.part(slice(start, n))
            return evaluate(self.kernel.on, x, y, self.reference, self.dtype)
        strip = empty((stop - start, n - start), self.reference, self.dtype)
        for first in range(start, n, _ACROSS):
            y = self.points.part(slice(first, min(first + _ACROSS, n)))
            evaluate_into(self.kernel.on, x, y, strip[:, first - start : first - start + len(y)])
        return strip


class Given(Strips):
    """The same of a matrix that is there already."""

    def __init__(self, matrix: Array, dtype: Any) -> None:
        n = int(matrix.shape[0])
        self.matrix, self.dtype, self.shape = matrix, np.dtype(dtype), (n, n)
        self.parallel = isinstance(matrix, np.ndarray)
        self.on_device = on_accelerator(matrix)
        self.rows = strip_rows(n, self.dtype.itemsize, on_device=self.on_device)
        self.kept = None

    @property
    def reference(self) -> Array:
        return empty((0,), self.matrix, np.float64)

    def _strip(self, start: int, stop: int) -> Array:
        return cast(self.matrix[start:stop, start:], self.dtype)


def strips_of(kernel: Kernel, source: Source, dtype: Any, *, keep: bool) -> Strips:
    """Return the strips of a kernel matrix; of rows that lie elsewhere, made where they lie."""
    if source.elsewhere is None:
        return Strips(kernel, source, dtype, keep=keep)
    from mercer.linalg.distributed_gram import Apart

    return Apart(kernel, source, dtype)


class Symmetric(Paired):
    """The product of a symmetric matrix, of which strips come by, with the columns of V.

    Strips are multiplied in their own precision and added in float64. `square` is the sum of
    the squares of the matrix, weighed by `roots` on both sides.
    """

    label = "kernel matrix"

    def __init__(self, V: Array, dtype: Any, roots: Array = None, *, weighed: bool = False) -> None:
        self.V, self.dtype, self.roots, self.weighed = cast(V, dtype), dtype, roots, weighed
        self.inputs = (self.V,)
        self.rough = np.dtype(dtype) == np.float32
        self.result = like(np.zeros(V.shape), V)
        self.square = 0.0
        self.nbytes = 8 * math.prod(V.shape)

    def add(self, block: Block) -> None:
        strip, rows = block.rows, block.length
        here, beyond = slice(block.start, block.stop), slice(block.stop, None)
        self.result[here, :] += strip @ self.V[block.start :, :]
        self.result[beyond, :] += (self.V[here, :].T @ strip[:, rows:]).T  # twice as fast so
        if self.roots is not None:
            self._add_squares(strip, block.start, rows)

    def _add_squares(self, strip: Array, start: int, rows: int) -> None:
        """Add √w K √w squared: what lies right of the diagonal block counts twice."""
        if not self.weighed and on_accelerator(strip):
            self.square += 2.0 * squares(strip) - squares(strip[:, :rows])
            return
        for first in range(0, rows, _SQUARED):  # float64 copies of a few rows at a time
            some = slice(first, min(first + _SQUARED, rows))
            part = cast(strip[some, :], np.float64)
            if self.weighed:
                left = self.roots[start + some.start : start + some.stop, :]
                part = left * part * self.roots[start:, :].T
            self.square += 2.0 * squares(part) - squares(part[:, :rows])

    def merge(self, other: Self) -> None:
        self.result += other.result
        self.square += other.square

    def spawn(self) -> Self:
        return type(self)(self.V, self.dtype, self.roots, weighed=self.weighed)

    def arrays(self) -> dict[str, Array]:
        return {"result": self.result, "square": np.asarray(self.square)}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.result = like(to_numpy(arrays["result"]).copy(), self.V)
        self.square = float(arrays["square"])

    def beside(self, start: int, stop: int) -> tuple[int, Array, Array]:
        roots = None if self.roots is None else self.roots[start:stop, :]
        return start, self.V[start:stop, :], roots

    def gather(self, start: int, stop: int, sums: dict[str, Array]) -> None:
        self.result[start:stop, :] += sums["own"]
        self.square += float(sums.get("square", 0.0))


class Gram(Operator):
    r"""The centred kernel matrix of n rows, weighed, and never formed unless `dense` is asked.

    .. math:: \frac1c\sqrt{w_iw_j}\,\langle\Phi(x_i)-\bar\Phi, \Phi(x_j)-\bar\Phi\rangle

    With u the unit vector along √w it is PKP/c, P = I − uuᵀ and K the weighed matrix: it is
    centred by projecting vectors, never by a copy. Its nonzero eigenvalues are the variances
    along the axes in feature space.

    K is kept as strips in the precision `store`, or computed anew for every product, as it is
    of rows that lie elsewhere. What is kept in float32 only drives an iteration: a product with
    float64 vectors computes K anew.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel; None where the rows are the kernel matrix itself.
    source : Source
        Rows, with weights.
    center : bool
        Whether to centre.
    store : dtype or None
        Precision in which K is kept.
    along : array of shape (n, b) or None
        Vectors whose product is made on the first walk over all pairs.
    dtype : dtype or None
        Precision of that walk where nothing is kept; None is the rows' own.
    scaled : bool
        Divide the matrix by `scale`, where squares of its eigenvalues might overflow or vanish.

    Attributes
    ----------
    means : ndarray of shape (n,)
        Mean of the kernel between each row and all of them.
    height : float
        Mean of the kernel between all rows: the squared length of the mean.
    scale : float
        A power of two that the matrix is divided by, beside c: 1 unless kernel values are extreme.
    first : array of shape (n, b) or None
        The product with `along`, as precise as what is kept.
    """

    def __init__(
        self,
        kernel: Kernel | None,
        source: Source,
        *,
        center: bool = True,
        store: Any = None,
        along: Array = None,
        dtype: Any = None,
        scaled: bool = False,
    ) -> None:
        if store is not None and source.elsewhere is not None and kernel is not None:
            store, dtype = None, store  # where the rows lie it is made anew for every product
        self.kernel, self.source, self.center = kernel, source, center
        self.size = source.shape[0]
        self.divisor = source.count - 1.0
        self.dtype = np.dtype(store if store is not None else dtype or source.dtype)
        self.psd = kernel is not None and kernel.psd is True
        self.strips = self._strips(self.dtype, keep=store is not None)
        weights = np.ones(self.size) if source.weights is None else source.weights
        self.roots = like(np.sqrt(weights), self.reference)[:, None]
        self.unit = self.roots / source.count**0.5
        self.look = 1  # a product costs more than a look
        self.block = 16 if store is not None or kernel is None else WIDE
        self.probe = None if store is None and kernel is not None else self.dtype
        self.sharp = self.dtype == np.float64
        self.own = to_numpy(self._diagonal()).astype(np.float64)
        points = getattr(self.strips, "points", None)
        self._roundings = Roundings(kernel, source, points) if kernel is not None else None
        if scaled:
            self._scale()
        self.first = self._survey(along)

    @property
    def reference(self) -> Array:
        return self.source.reference

    scale = 1.0

    @property
    def floor(self) -> float:
        return self._usual(float(np.finfo(np.float64).eps))

    def _usual(self, eps: float) -> float:
        """Return what products of this precision are off by, unless kernel values are far worse."""
        width = self.source.shape[1] if len(self.source.shape) > 1 else 1
        return 4.0 * eps * (self.size + width) * self.amount / self.divisor

    def _scale(self) -> None:
        largest = float(np.max(np.abs(self.own), initial=0.0))
        if np.isfinite(largest) and largest > 0.0 and not _MODERATE < largest < 1.0 / _MODERATE:
            self.scale = float(np.exp2(np.floor(np.log2(largest))))
            self.divisor *= self.scale

    @property
    def coarse(self) -> float:
        if self.dtype == np.float64:
            return self.rounding
        return self._rounding(self.dtype, self._eps / 2)

    @property
    def _eps(self) -> float:
        """Rounding of the products that drive an iteration."""
        return product_eps(self.dtype, self.reference, coarse=get_config().tf32)

    @property
    def rank(self) -> int:
        return self.size - 1 if self.center else self.size

    def project(self, V: Array) -> Array:
        if not self.center:
            return V
        unit = cast(self.unit, numpy_dtype(V))
        return V - unit @ (unit.T @ V)

    def matmat(self, V: Array) -> Array:
        kind = numpy_dtype(V)
        strips = self.strips if kind == self.dtype else self._strips(kind, keep=False)
        W = cast(self.project(V), np.float64)
        if kind == np.float64 and not self.sharp:
            W = namespace(W).concat([W, self.unit], axis=1)
        product = self._times(strips, W)
        if product.shape[1] > V.shape[1]:
            self._note(product[:, -1:])
            self.sharp, product = True, product[:, :-1]
        return self.project(product) / self.divisor

    def dense(self) -> Matrix:
        A = np.empty((self.size, self.size))
        strips = self.strips if self.dtype == np.float64 else self._strips(np.float64, keep=False)
        strips.fold(Mirror(A))
        roots = to_numpy(self.roots)
        if self.source.weights is not None:
            A *= roots
            A *= roots.T
        unit = to_numpy(self.unit)
        if not self.sharp:
            self._note(like(A @ unit, self.reference))
            self.sharp = True
        if self.center:
            for half in (A, A.T):  # PAP, in place
                half -= unit @ (unit.T @ half)
        A /= self.divisor
        return A

    def _strips(self, dtype: Any, *, keep: bool) -> Strips:
        if self.kernel is None:
            return Given(self.source.whole(), dtype)
        return strips_of(self.kernel, self.source, dtype, keep=keep)

    def _diagonal(self) -> Array:
        if self.kernel is None:
            matrix = self.source.whole()
            return namespace(matrix).linalg.diagonal(matrix)
        own = self.kernel.on_diagonal

        def diagonal(block: Block) -> Array:
            with np.errstate(invalid="ignore", over="ignore"):  # judged when all is known
                return own(Points(cast_rows(block.rows, np.float64), block.start))[:, None]

        return self.source.map(diagonal, 1, np.float64).collect(label="kernel matrix")[:, 0]

    def _survey(self, along: Array) -> Array:
        """Walk all pairs once: means, trace and squares; keeps the strips on the way."""
        # In float32 the sum of squares costs more than it spares, where products are cheap.
        dear = self.psd and self.probe is not None and self.dtype != np.float64
        V = self.unit
        if along is not None:
            V, dear = namespace(V).concat([V, self.project(along)], axis=1), False
        roots, weighed = None if dear else self.roots, self.source.weights is not None
        fold = Symmetric(self.roots * V, self.dtype, roots, weighed=weighed)
        fold = self.strips.fold(fold)
        self._note(fold.result[:, :1] * self.roots)
        if roots is not None:
            g, u = to_numpy(self._along)[:, 0], to_numpy(self.unit)[:, 0]
            with np.errstate(over="ignore", invalid="ignore"):
                less = 2.0 * (g @ g) - (u @ g) ** 2 if self.center else 0.0
                # What is left of a difference may be less than its rounding: K and Ku are off by
                # δ in Frobenius norm, and neither is larger than ‖K‖.
                off = self.coarse * self.divisor
                slack = (8.0 * math.sqrt(fold.square) + 4.0 * off) * off
                square = (fold.square - less + slack) / self.divisor / self.divisor
            if np.isfinite(square) and self.scale == 1.0:  # else squares overflow, or vanish
                self.square = Figure(max(0.0, square), "bound", confidence(self.dtype))
        if along is None:
            return None
        return self.project(fold.result[:, 1:] * self.roots) / self.divisor

    def times(self, V: Array) -> Array:
        """Return the product with the weighed matrix, not centred, nor divided."""
        return self._times(self._strips(np.float64, keep=False), V)

    def _times(self, strips: Strips, V: Array) -> Array:
        """Return that product, of these strips."""
        return strips.fold(Symmetric(V * self.roots, strips.dtype)).result * self.roots

    def _note(self, along: Array) -> None:
        """Take down what the product with u tells."""
        self._along = along
        weights = to_numpy(self.roots)[:, 0] ** 2
        count = self.source.count
        g = to_numpy(along)[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = g / (np.sqrt(weights) * count**0.5)
        self.means: Vector = np.where(weights > 0, means, 0.0)
        self.height = float(weights @ self.means) / count
        self.amount = float(weights @ np.abs(self.own))
        within = float(weights @ self.own)
        within -= self.height * count if self.center else 0.0
        self.trace = within / self.divisor
        self.rounding = self._rounding(np.float64, float(np.finfo(np.float64).eps) / 2)

    def _rounding(self, dtype: Any, u: float) -> float:
        """Bound the rounding of kernel values, and of products with them, in Frobenius norm."""
        weights = to_numpy(self.roots)[:, 0] ** 2
        with np.errstate(over="ignore", invalid="ignore"):
            each = 0.0 if self._roundings is None else self._roundings.of(dtype)
            values = math.sqrt(float(weights @ (np.abs(self.own) * each**2)))
            products = (summed(self.size, dtype, self.reference) + FEW) * math.sqrt(self.amount)
            return 4.0 * u * (values + products) * math.sqrt(self.amount) / self.divisor

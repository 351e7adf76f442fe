"""The fitted map: what every method ends in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    eigh,
    is_dask,
    is_finite,
    like,
    moved,
    namespace,
    to_numpy,
)
from mercer.certificate import Certificate
from mercer.folds import Centre
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import as_precise, filled, holds
from mercer.kernels.far import sums_over
from mercer.kernels.points import Points
from mercer.sources import Block, Mapped, Search, Source, not_finite

# Sparse rows whose squared mean is so many times their variance lose digits when they are
# centred after a product.
_FAR = 100.0


@dataclass(frozen=True)
class Projection(ABC):
    r"""The map :math:`y(x) = (f(x) - \mu)\, V`, and what is known of it.

    Attributes
    ----------
    mean : ndarray of shape (m,)
        What is subtracted from each feature.
    components : array of shape (m, k)
        One column an axis, float64.
    eigenvalues : ndarray of shape (k,)
        Variance along each axis.
    total_variance, rest : float
        Variance of the data in all directions, and in those that no axis holds.
    certificate : Certificate
        How far from the best possible axes these can be.
    """

    mean: Vector
    components: Array
    eigenvalues: Vector
    total_variance: float
    rest: float
    certificate: Certificate

    @property
    def depth(self) -> float:
        """The smallest variance as a share of the largest; 0 where there is no variance."""
        values = self.eigenvalues
        if not len(values):
            return 1.0
        return float(values[-1] / values[0]) if values[0] > 0 else 0.0

    @abstractmethod
    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        """Return the rows' coordinates along the axes, computed when they are read.

        Parameters
        ----------
        source : Source
            Rows.
        dtype : dtype, optional
            Precision to compute in; the rows' own by default.
        divide : ndarray of shape (k,), optional
            What each coordinate is divided by (whitening).
        """

    @abstractmethod
    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: each row's squared distance from the axes' span."""


@dataclass(frozen=True)
class LinearProjection(Projection):
    r"""The map :math:`y(x) = ((x - \mu)/s)\, V` of rows themselves.

    Attributes
    ----------
    deviation : ndarray of shape (d,)
        What each column is divided by, s.
    """

    deviation: Vector

    @property
    def _far(self) -> bool:
        """Whether rows lie far from zero beside their spread."""
        total = self.total_variance
        return bool(np.sum((self.mean / self.deviation) ** 2) > _FAR * total)

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        kind = source.dtype if dtype is None else np.dtype(dtype)
        weights = to_numpy(self.components) / self.deviation[:, None]
        weights = weights if divide is None else weights / divide
        V = like(weights, source.reference, kind)
        centre = Centre(self.mean, kind, source.reference)
        # What the mean lost when it was rounded to the rows' precision.
        rest = self.mean - to_numpy(centre.mean).astype(np.float64)
        shift = like(rest @ weights, source.reference, kind)

        # Sparse rows are centred after the product, unless their mean would cost digits.
        early = source.sparse and self._far

        def project(block: Block) -> Array:
            rows = centre(block.dense(kind) if early else block.rows)
            return _finite(centre.times(rows, V) - shift, block, source)

        extra = 0 if source.sparse and not early else 2 * source.shape[1] * kind.itemsize
        return source.map(project, int(V.shape[1]), kind, extra_bytes=extra)

    def rows(self, source: Source, multiply: Vector | None = None) -> Source:
        """Return the rows that coordinates stand for: the way back."""
        kind = source.dtype
        lift = to_numpy(self.components).T * self.deviation
        lift = lift if multiply is None else lift * multiply[:, None]
        V, mean = like(lift, source.reference, kind), like(self.mean, source.reference, kind)

        def expand(block: Block) -> Array:
            return _finite(block.rows @ V + mean, block, source)

        return source.map(expand, int(V.shape[1]), kind)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: each row's squared distance from the axes' span, columns treated.

        Summed from the residual itself, not taken as a difference of squares.
        """
        kind = source.dtype if dtype is None else np.dtype(dtype)
        scores, where = self.scores(source, kind), source.reference
        V, divide = (like(to_numpy(x), where, kind) for x in (self.components, self.deviation))
        mean, rest = _rounded(self.mean, where, kind)

        def measure(block: Block) -> Array:
            y = scores.read(block.start, block.stop)
            apart = (block.dense(kind) - mean - rest) / divide - y @ V.T
            return _finite(namespace(apart).sum(apart * apart, axis=1)[:, None], block, source)

        extra = 4 * source.shape[1] * kind.itemsize
        return source.map(measure, 1, kind, extra_bytes=extra)


@dataclass(frozen=True)
class KernelMap:
    """The kernel between rows and a basis, h(x).

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None where rows are h(x) already.
    basis : rows or None
        The points that the kernel is taken to.
    shift : ndarray of shape (d,) or None
        What is subtracted from rows first; the basis is shifted already.
    """

    kernel: Kernel | None
    basis: Any
    shift: Vector | None = None

    def of(self, source: Source, dtype: Any = None) -> Mapped:
        """Return h(x) of every row, computed when it is read."""
        kind = source.dtype if dtype is None else np.dtype(dtype)
        if self.kernel is None:
            return Mapped(
                source, lambda block: _dense(block, source, kind), source.shape[1], kind, 0
            )
        kernel, basis = self.kernel, Points(as_precise(self.near(source), kind))

        def between(block: Block) -> Array:
            require_finite_rows(block, source)
            return filled(kernel.on, self.points(block, kind), basis, source.reference, kind)

        return Mapped(source, between, len(basis), kind, 0)

    def points(self, block: Block, kind: Any) -> Points:
        """Return rows as the kernel takes them."""
        rows = as_precise(block.rows, kind)
        if self.shift is not None:
            rows = rows.toarray() if hasattr(rows, "tocsr") else rows
            shift, rest = _rounded(self.shift, rows, kind)
            rows = rows - shift - rest
        return Points(rows, block.start)

    def precision(self, source: Source, kind: np.dtype[Any]) -> np.dtype[Any]:
        """Return the precision of h(x): float32, too, where it holds the basis's values."""
        if self.kernel is None or kind == np.float64:
            return kind
        with np.errstate(over="ignore", invalid="ignore"):
            own = self.kernel.on_itself(Points(as_precise(self.near(source), np.float64)))
        return holds(own, kind)

    def near(self, source: Source) -> Any:
        """Return the basis where the rows live."""
        if isinstance(self.basis, list) or hasattr(self.basis, "tocsr"):
            return self.basis
        return moved(self.basis, source.reference)


@dataclass(frozen=True)
class KernelProjection(Projection):
    r"""The map :math:`y(x) = (h(x) - \bar h)\, A`, with h(x) the kernel between x and a basis.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None where rows are h(x) already.
    basis : rows or None
        The points that the kernel is taken to.
    shift : ndarray of shape (d,) or None
        What is subtracted from rows first; the basis is shifted already.
    shares : ndarray of shape (m,)
        What each basis point counts in the mean, Φ̄ = Σ sᵢ Φ(yᵢ); zeros where there is none.
    height : float
        Squared length of that mean.
    overlaps : ndarray of shape (k, k) or None
        Inner products of the axes; None where they are orthonormal.
    """

    kernel: Kernel | None
    basis: Any
    shift: Vector | None
    shares: Vector
    height: float
    overlaps: Matrix | None = None

    @property
    def map(self) -> KernelMap:
        """The map h."""
        return KernelMap(self.kernel, self.basis, self.shift)

    def features(self, source: Source, dtype: Any = None) -> Mapped:
        """Return h(x) of every row, computed when it is read."""
        return self.map.of(source, dtype)

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        kind = source.dtype if dtype is None else np.dtype(dtype)
        weights = to_numpy(self.components)
        weights = weights if divide is None else weights / divide
        if is_dask(self.basis):
            kernel = self.kernel  # not this map, which would be sent

            def checked(block: Block) -> Array:
                return finite(block.rows[:, :-1], block, kernel)

            return self._sums(source, weights, kind, checked, weights.shape[1])
        made = self.map.precision(source, kind)
        A = like(weights, source.reference, made)
        mean = like(self.mean, source.reference, made)
        features = self.features(source, made)

        def project(block: Block) -> Array:
            h = features.f(block)
            return cast(self.finite((h - mean) @ A, block), kind)

        extra = features.row_bytes - source.row_bytes
        return source.map(project, int(A.shape[1]), kind, extra_bytes=extra)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: k(x,x) − 2⟨Φ(x), Φ̄⟩ + ‖Φ̄‖² − ‖y‖², never below zero.

        Where the axes overlap by G it is yᵀG†y that is taken off.
        """
        if not is_dask(self.basis):
            return joint_residuals([self], source, dtype)
        kernel, s = self.kernel, self.shares
        offset = self.height - 2.0 * float(self.mean @ s)

        def left(block: Block) -> Array:
            y, h, own = block.rows[:, :-2], block.rows[:, -2], block.rows[:, -1]
            apart = own - 2.0 * h + offset - np.sum(y * y, axis=1)
            return finite(np.maximum(apart, 0.0 * apart)[:, None], block, kernel)

        kind = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
        return self._sums(source, np.column_stack([self._orthonormal, s]), kind, left, 1)

    def _sums(
        self, source: Source, W: Matrix, kind: Any, after: Callable[[Block], Array], width: int
    ) -> Source:
        """Return what a function makes of (h(x) − h̄)W and k(x, x), of points of a Dask array."""
        assert self.kernel is not None
        bare = KernelMap(self.kernel, None, self.shift)  # sent with the rows: without points

        def ready(block: Block) -> Array:
            require_finite_rows(block, source)
            rows = bare.points(block, kind).rows
            return rows.toarray() if hasattr(rows, "tocsr") else rows

        d = source.shape[1]
        rows = source.map(ready, d, kind, extra_bytes=d * np.dtype(kind).itemsize)
        return sums_over(self.kernel, self.basis, rows, (self.mean, W), after, width)

    @property
    def _orthonormal(self) -> Matrix:
        """The components of orthonormal axes with the same span."""
        A = to_numpy(self.components)
        if self.overlaps is None:
            return A
        values, U = eigh(self.overlaps)
        there = values > 1e-12 * np.max(values, initial=0.0)
        return np.asarray(A @ (U[:, there] / np.sqrt(values[there])))

    def judge(self, reference: Array, kind: Any) -> Callable[[Array, Array, Block], Array]:
        """Return what makes a column of distances of h(x) and k(x, x) of a block."""
        mean = like(self.mean, reference)
        A, shares = (like(part, reference, kind) for part in (self._orthonormal, self.shares))
        xp = namespace(reference)

        def distances(h: Array, own: Array, block: Block) -> Array:
            y = (h - mean) @ A
            left = own - 2.0 * (h @ shares) + self.height - xp.sum(y * y, axis=1)
            return self.finite(xp.maximum(left, 0.0 * left)[:, None], block)

        return distances

    def finite(self, result: Array, block: Block) -> Array:
        """Return what was made of finite rows, or say for which the kernel is not finite."""
        return finite(result, block, self.kernel)

    def coefficients(self, scores: Array) -> Array:
        """Return γ with PΦ(x) = Σ γᵢ Φ(yᵢ), a row for every row of scores: mean included."""
        A, shares = (like(to_numpy(part), scores) for part in (self.components, self.shares))
        return scores @ A.T + shares


def finite(result: Array, block: Block, kernel: Kernel | None) -> Array:
    """Return what a kernel made of finite rows, or say for which it is not finite."""
    if is_finite(result):
        return result
    bad = block.start + np.flatnonzero(~np.isfinite(to_numpy(result)).all(axis=1))
    raise ValueError(
        f"{kernel!r} gives NaN or infinity for {len(bad)} rows, the first of them row "
        f"{bad[0]}. Scale the rows, or change the kernel's parameters."
    )


def joint_residuals(
    projections: Sequence[KernelProjection], source: Source, dtype: Any = None
) -> Source:
    """Return a column of distances for each of some projections with one kernel and one shift.

    The kernel is taken to the points of all of them at once.
    """
    first, reference = projections[0], source.reference
    kernel, xp = first.kernel, namespace(reference)
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of new rows, which their distance "
            "from the components takes. Use the kernel itself."
        )
    kind = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
    bases = [each.basis for each in projections]
    basis = bases[0] if len(bases) == 1 else namespace(bases[0]).concat(bases, axis=0)
    joint = KernelMap(kernel, basis, first.shift)
    features = joint.of(source, kind)
    judges = [each.judge(reference, kind) for each in projections]
    ends = np.cumsum([0, *(len(each.mean) for each in projections)]).tolist()

    def measure(block: Block) -> Array:
        h, own = features.f(block), kernel.on_itself(joint.points(block, kind))
        parts = (h[:, start:stop] for start, stop in pairwise(ends))
        columns = [judge(part, own, block) for judge, part in zip(judges, parts, strict=True)]
        return columns[0] if len(columns) == 1 else xp.concat(columns, axis=1)

    return source.map(measure, len(judges), kind, extra_bytes=2 * features.row_bytes)


def _finite(result: Array, block: Block, source: Source) -> Array:
    """Return what was made of a block, or say which of its entries is not finite."""
    if not result.shape[1]:  # no axis has looked at the rows
        require_finite_rows(block, source)
    if is_finite(result):
        return result
    require_finite_rows(block, source)
    raise not_finite(None, source)


def _rounded(mean: Vector, reference: Array, kind: Any) -> tuple[Array, Array]:
    """Return a mean in some precision, and what it lost there, to be taken off after it.

    A mean of 1e4 loses 5e-4 in float32, which rows that are near it and given in float32 do not.
    """
    near = like(mean, reference, kind)
    return near, like(mean - to_numpy(near).astype(np.float64), reference, kind)


def _dense(block: Block, source: Source, kind: Any) -> Array:
    require_finite_rows(block, source)
    return block.dense(kind)


def require_finite_rows(block: Block, source: Source) -> None:
    """Refuse rows with NaN or infinity: a kernel may make a number of them."""
    search = Search()
    if not isinstance(block.rows, list):
        search.add(block)
    if search.found is not None:
        raise not_finite(search.found, source)

"""The fitted map of kernel PCA."""

from __future__ import annotations

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
    namespace,
    to_numpy,
)
from mercer.data import Block, Mapped, Source, require_finite_rows
from mercer.kernels import Kernel
from mercer.kernels.far import sums_over
from mercer.kernels.feature_map import KernelMap
from mercer.projection.base import Projection


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
        h, own = features.f(block), kernel.on_diagonal(joint.points(block, kind))
        parts = (h[:, start:stop] for start, stop in pairwise(ends))
        columns = [judge(part, own, block) for judge, part in zip(judges, parts, strict=True)]
        return columns[0] if len(columns) == 1 else xp.concat(columns, axis=1)

    return source.map(measure, len(judges), kind, extra_bytes=2 * features.row_bytes)

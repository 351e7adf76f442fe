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
from mercer.data import Block, Source, require_finite_rows
from mercer.kernels.base import Kernel
from mercer.kernels.evaluate import KernelMap, kernel_sums
from mercer.projection.base import Projection


@dataclass(frozen=True)
class KernelProjection(Projection):
    r"""The map :math:`y(x) = (h(x) - \bar h)\, A`, with h(x) the kernel between x and a basis.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel; None if rows are h(x) already.
    basis : rows or None
        The points of the basis.
    shift : ndarray of shape (d,) or None
        What is subtracted from rows first; the basis is shifted already.
    mean_coef : ndarray of shape (m,)
        Coefficients of the mean in feature space, Φ̄ = Σ sᵢ Φ(yᵢ); zeros without centering.
    mean_sq : float
        Squared norm of that mean.
    overlaps : ndarray of shape (k, k) or None
        Inner products of the components; None if they are orthonormal.
    """

    kernel: Kernel | None
    basis: Any
    shift: Vector | None
    mean_coef: Vector
    mean_sq: float
    overlaps: Matrix | None = None

    @property
    def map(self) -> KernelMap:
        """The map h."""
        return KernelMap(self.kernel, self.basis, self.shift)

    def features(self, source: Source, dtype: Any = None) -> Source:
        """Return h(x) of every row, computed when it is read."""
        return source.map(self.map.on(source, dtype))

    def scores(self, source: Source, dtype: Any = None, divide: Vector | None = None) -> Source:
        dtype = source.dtype if dtype is None else np.dtype(dtype)
        weights = to_numpy(self.components)
        weights = weights if divide is None else weights / divide
        if is_dask(self.basis):
            kernel = self.kernel  # without this map, which would be sent along

            def scores_of(block: Block) -> Array:
                return finite_values(block.rows[:, :-1], block, kernel)

            return self._sums(source, weights, dtype, scores_of, weights.shape[1])
        working = self.map.precision(source, dtype)
        A = like(weights, source.reference, working)
        mean = like(self.mean, source.reference, working)
        features = self.map.on(source, working)

        def project(block: Block) -> Array:
            return cast(self.finite((features(block) - mean) @ A, block), dtype)

        extra = features.width * working.itemsize
        return source.map(project, int(A.shape[1]), dtype, extra_bytes=extra)

    def residuals(self, source: Source, dtype: Any = None) -> Source:
        """Return one column: k(x,x) − 2⟨Φ(x), Φ̄⟩ + ‖Φ̄‖² − ‖y‖², never below zero.

        If the components overlap by G, yᵀG†y is subtracted instead of ‖y‖².
        """
        if not is_dask(self.basis):
            return joint_residuals([self], source, dtype)
        kernel, s = self.kernel, self.mean_coef
        offset = self.mean_sq - 2.0 * float(self.mean @ s)

        def distances(block: Block) -> Array:
            y, h, diag = block.rows[:, :-2], block.rows[:, -2], block.rows[:, -1]
            squares = diag - 2.0 * h + offset - np.sum(y * y, axis=1)
            return finite_values(np.maximum(squares, 0.0 * squares)[:, None], block, kernel)

        dtype = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
        W = np.column_stack([self._orthonormal, s])
        return self._sums(source, W, dtype, distances, 1)

    def _sums(
        self, source: Source, W: Matrix, dtype: Any, after: Callable[[Block], Array], width: int
    ) -> Source:
        """Apply a function to (h(x) − h̄)W and k(x, x), for a basis that is a Dask array."""
        assert self.kernel is not None
        bare = KernelMap(self.kernel, None, self.shift)  # sent with the rows: without points

        def dense_rows(block: Block) -> Array:
            require_finite_rows(block, source)
            rows = bare.points(block, dtype).rows
            return rows.toarray() if hasattr(rows, "tocsr") else rows

        d = source.shape[1]
        rows = source.map(dense_rows, d, dtype, extra_bytes=d * np.dtype(dtype).itemsize)
        return kernel_sums(self.kernel, self.basis, rows, (self.mean, W), after, width)

    @property
    def _orthonormal(self) -> Matrix:
        """Coefficients of orthonormal components with the same span."""
        A = to_numpy(self.components)
        if self.overlaps is None:
            return A
        values, U = eigh(self.overlaps)
        positive = values > 1e-12 * np.max(values, initial=0.0)
        return np.asarray(A @ (U[:, positive] / np.sqrt(values[positive])))

    def distance(self, reference: Array, dtype: Any) -> Callable[[Array, Array, Block], Array]:
        """Return the function that turns h(x) and k(x, x) of a block into distances."""
        mean = like(self.mean, reference)
        A, mean_coef = (
            like(part, reference, dtype) for part in (self._orthonormal, self.mean_coef)
        )
        xp = namespace(reference)

        def distances(h: Array, diag: Array, block: Block) -> Array:
            y = (h - mean) @ A
            squares = diag - 2.0 * (h @ mean_coef) + self.mean_sq - xp.sum(y * y, axis=1)
            return self.finite(xp.maximum(squares, 0.0 * squares)[:, None], block)

        return distances

    def finite(self, values: Array, block: Block) -> Array:
        """Return the values; refuse rows for which the kernel is not finite."""
        return finite_values(values, block, self.kernel)

    def coefficients(self, scores: Array) -> Array:
        """Return γ with PΦ(x) = Σ γᵢ Φ(yᵢ), mean included, one row per row of scores."""
        A, mean_coef = (like(to_numpy(part), scores) for part in (self.components, self.mean_coef))
        return scores @ A.T + mean_coef


def finite_values(values: Array, block: Block, kernel: Kernel | None) -> Array:
    """Return values computed from finite rows; refuse those for which the kernel is not finite."""
    if is_finite(values):
        return values
    bad = block.start + np.flatnonzero(~np.isfinite(to_numpy(values)).all(axis=1))
    raise ValueError(
        f"{kernel!r} gives NaN or infinity for {len(bad)} rows, the first of them row "
        f"{bad[0]}. Scale the rows, or change the kernel's parameters."
    )


def joint_residuals(
    projections: Sequence[KernelProjection], source: Source, dtype: Any = None
) -> Source:
    """Return one column of distances for each projection; they share a kernel and a shift.

    The kernel to the points of all of them is computed at once.
    """
    first, reference = projections[0], source.reference
    kernel, xp = first.kernel, namespace(reference)
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of new rows, which their distance "
            "from the components takes. Use the kernel itself."
        )
    dtype = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
    bases = [each.basis for each in projections]
    basis = bases[0] if len(bases) == 1 else namespace(bases[0]).concat(bases, axis=0)
    joint = KernelMap(kernel, basis, first.shift)
    features = joint.on(source, dtype)
    distances = [each.distance(reference, dtype) for each in projections]
    ends = np.cumsum([0, *(len(each.mean) for each in projections)]).tolist()

    def measure(block: Block) -> Array:
        h, diag = features(block), kernel.on_diagonal(joint.points(block, dtype))
        parts = (h[:, start:stop] for start, stop in pairwise(ends))
        columns = [f(part, diag, block) for f, part in zip(distances, parts, strict=True)]
        return columns[0] if len(columns) == 1 else xp.concat(columns, axis=1)

    extra = 2 * (source.row_bytes + features.width * dtype.itemsize)
    return source.map(measure, len(projections), dtype, extra_bytes=extra)

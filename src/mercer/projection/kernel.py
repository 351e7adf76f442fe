"""The fitted map of kernel PCA, and components that are linear combinations of all rows."""

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
    column_signs,
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
from mercer.linalg.gram import Gram
from mercer.projection.linear import Projection


@dataclass(frozen=True)
class KernelProjection(Projection):
    r"""The map :math:`y(x) = (h(x) - \bar h)\, A`, with h(x) the kernel between x and a basis."""

    kernel: Kernel | None  # None if rows are h(x) already
    basis: Any  # its points
    shift: Vector | None  # what is subtracted from rows first; the basis is shifted already
    mean_coef: Vector  # of the mean in feature space, Φ̄ = Σ sᵢ Φ(yᵢ); zeros without centering
    mean_sq: float  # ‖Φ̄‖²
    overlaps: Matrix | None = None  # inner products of components that are not orthonormal

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

        def distances(block: Block) -> Array:
            return self.distances(block.rows[:, :-1], block.rows[:, -1], block)

        dtype = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
        return self._sums(source, self.distance_weights, dtype, distances, 1)

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
    def distance_weights(self) -> Matrix:
        """Coefficients of orthonormal components with the same span, and of the mean."""
        A = to_numpy(self.components)
        if self.overlaps is not None:
            values, U = eigh(self.overlaps)
            positive = values > 1e-12 * np.max(values, initial=0.0)
            A = A @ (U[:, positive] / np.sqrt(values[positive]))
        return np.column_stack([A, self.mean_coef])

    def distances(self, products: Array, diag: Array, block: Block) -> Array:
        """Return the distances of rows from (h(x) − h̄) times those weights, and k(x, x)."""
        xp, y = namespace(products), products[:, :-1]
        offset = self.mean_sq - 2.0 * float(self.mean @ self.mean_coef)
        squares = diag - 2.0 * products[:, -1] + offset - xp.sum(y * y, axis=1)
        return self.finite(xp.maximum(squares, 0.0 * squares)[:, None], block)

    def finite(self, values: Array, block: Block) -> Array:
        """Return the values; raise if the kernel is not finite."""
        return finite_values(values, block, self.kernel)

    def coefficients(self, scores: Array) -> Array:
        """Return γ with PΦ(x) = Σ γᵢ Φ(yᵢ), mean included, one row per row of scores."""
        A, mean_coef = (like(to_numpy(part), scores) for part in (self.components, self.mean_coef))
        return scores @ A.T + mean_coef


def finite_values(values: Array, block: Block, kernel: Kernel | None) -> Array:
    """Return values computed from finite rows; raise if the kernel is not finite."""
    if is_finite(values):
        return values
    bad = block.start + np.flatnonzero(~np.isfinite(to_numpy(values)).all(axis=1))
    raise ValueError(
        f"{kernel!r} gives NaN or infinity for {len(bad)} rows (first: row {bad[0]}). Scale the "
        f"rows, or change the kernel's parameters."
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
            "kernel='precomputed' does not provide k(x, x) of new rows, which distances from "
            "the components require. Use the kernel itself."
        )
    dtype = np.dtype(np.float64) if dtype is None else np.dtype(dtype)
    bases = [each.basis for each in projections]
    basis = bases[0] if len(bases) == 1 else namespace(bases[0]).concat(bases, axis=0)
    joint = KernelMap(kernel, basis, first.shift)
    features = joint.on(source, dtype)
    means = [like(each.mean, reference) for each in projections]
    weights = [like(each.distance_weights, reference, dtype) for each in projections]
    ends = np.cumsum([0, *map(len, means)]).tolist()

    def measure(block: Block) -> Array:
        h, diag = features(block), kernel.on_diagonal(joint.points(block, dtype))
        columns = [
            each.distances((h[:, start:stop] - mean) @ W, diag, block)
            for each, mean, W, (start, stop) in zip(
                projections, means, weights, pairwise(ends), strict=True
            )
        ]
        return columns[0] if len(columns) == 1 else xp.concat(columns, axis=1)

    extra = 2 * (source.row_bytes + features.width * dtype.itemsize)
    return source.map(measure, len(projections), dtype, extra_bytes=extra)


def row_expansion(
    gram: Gram, values: Vector, vectors: Array, shift: Vector | None = None
) -> KernelProjection:
    r"""Return the map with the components :math:`\sum_i \alpha_i(\Phi(x_i)-\bar\Phi)`.

    :math:`\alpha = v/\sqrt\lambda` for vectors v over the rows and variances λ: of unit norm if
    :math:`v^T\tilde Kv = \lambda`, as for eigenvectors. The rows were moved by `shift`.
    """
    source, total, scale = gram.source, gram.trace, gram.scale
    V = gram.project(cast(vectors, np.float64))
    V = V * weighted_signs(V, gram.roots)
    norms = like(np.sqrt(values * gram.divisor), V)
    mean_coef = (to_numpy(gram.roots)[:, 0] ** 2 / source.count) * gram.center
    return KernelProjection(
        mean=gram.means * gram.center,
        components=gram.roots * V / norms,
        eigenvalues=values * scale,
        total_variance=max(0.0, total) * scale,
        rest=max(0.0, total - float(values.sum())) * scale,
        kernel=gram.kernel,
        basis=None if gram.kernel is None else points_of(source),
        shift=shift,
        mean_coef=mean_coef,
        mean_sq=gram.mean_square * gram.center,
    )


def weighted_signs(V: Array, roots: Array) -> Array:
    """Return the signs of scikit-learn's convention for vectors weighted by `roots`."""
    each, root = to_numpy(V), to_numpy(roots)
    return like(column_signs(np.divide(each, root, where=root > 0, out=np.zeros_like(each))), V)


def points_of(source: Source) -> Any:
    """Return all rows, to compare new ones with; a Dask array if they are remote."""
    return source.load() if source.remote is None else source.remote.as_array(source)


def best_in_span(Q: Array, product: Array, rounding: float) -> tuple[Vector, Array, float]:
    r"""Return the best components in the span of orthonormal vectors Q over the rows.

    The components :math:`\sum_i Q_i\tilde\Phi(x_i)` have the inner products
    :math:`T = Q^T\tilde KQ`, and the rows the scores :math:`\tilde KQ` along them: the best of
    their combinations solve :math:`(\tilde KQ)^T\tilde KQz = \kappa Tz`. `rounding` bounds how far
    rounding can have moved the matrix.

    Returns the variances κ, largest first, fewer than k if components are linearly dependent; the
    vectors Qz√κ, as `row_expansion` takes them; and a lower bound on the variance in the span.
    """
    T = to_numpy(Q.T @ product)
    theta, U = eigh((T + T.T) / 2)
    scores = product @ like(U, Q)
    norms = np.einsum("ij,ij->j", to_numpy(scores), to_numpy(scores))
    positive = theta > max(1e-12 * float(np.max(theta, initial=0.0)), rounding)
    W = U[:, positive] / np.sqrt(theta[positive])
    along = to_numpy(product @ like(W, Q))
    values, Y = eigh(along.T @ along)
    vectors = Q @ like(W @ Y * np.sqrt(np.maximum(values, 0.0)), Q)
    return values, vectors, span_variance(theta, norms, rounding)


def span_variance(values: Vector, squares: Vector, rounding: float) -> float:
    """Bound the variance tr(T⁻¹M) in the span of components from below.

    T, their inner products, has these eigenvalues, and the scores along its eigenvectors have these
    squared norms. T is off by at most the rounding ρ, and tr((T + ρ)⁻¹M) is no larger.
    """
    divide = np.maximum(values, 0.0) + rounding
    parts = squares - 2.0 * rounding * np.sqrt(squares)
    variance = np.divide(parts, divide, where=divide > 0, out=np.zeros_like(parts))
    return max(0.0, float(variance.sum()))

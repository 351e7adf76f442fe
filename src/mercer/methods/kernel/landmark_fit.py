"""Kernel PCA in the span of landmarks: one pass over the rows, and the bounds it gives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    column_signs,
    eigh,
    is_finite,
    like,
    numpy_dtype,
)
from mercer.arrays.rounding import confidence
from mercer.certificate import Axes, Evidence, Figure, spacing_of
from mercer.kernels.evaluate import check_magnitude
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.messages import counted
from mercer.methods.kernel.residual_sample import (
    KernelRounding,
    ResidualSample,
    draw_residual_sample,
    measure_rounding,
)
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Rows drawn to see how the residual outside the span is spread, if no gap is required.
SAMPLE_ROWS = 1024
# Operations that a walk over all pairs of rows may cost if it only serves the certificate.
AFFORDABLE = 5e11
# Components beyond those wanted: products with the kernel matrix start from them.
_EXTRA = 32


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    r"""The best components in the span of landmarks, and what bounds all others.

    With h̄ and S the mean and the scatter of h(x), c the divisor and T the whitener of the span,
    the eigenvalues ξ of TᵀST/c are those of N/c, N = HN₀H, N₀ = K_xy K_y† K_xyᵀ. Because N ⪯ K̃,
    they bound what any components can explain (method of Washizawa 2009, bounds ours).
    """

    problem: KernelProblem
    span: Span
    moments: KernelMoments  # the sums of one pass over the rows
    measured: KernelRounding | None = None  # rounding of kernel values; None: the a-priori bound

    def __post_init__(self) -> None:
        moments, kernel = self.moments, self.problem.kernel
        if not is_finite(moments.scatter) or not np.isfinite(moments.diag_sum):
            raise ValueError(
                f"{kernel!r} gives NaN or infinity between rows. Scale the rows, or change the "
                f"kernel's parameters."
            )
        check_magnitude(repr(kernel or "the kernel matrix"), moments.diag_max)

    @property
    def bounded(self) -> bool:
        """Whether the kernel is positive semi-definite, on which the bounds rest."""
        return self.problem.kernel is not None and self.problem.kernel.psd is True

    @property
    def divisor(self) -> float:
        """The divisor of scatters."""
        return self.problem.divisor

    @cached_property
    def covariance(self) -> Matrix:
        """Covariance of h."""
        return self.moments.scatter / self.divisor

    @cached_property
    def pairs(self) -> tuple[Vector, Matrix]:
        """Variances ξ of the best components in the span, largest first, and the components.

        With zᵀK_yz = 1. Some more than are wanted; all if a rule decides on their number.
        """
        wanted, T = self.problem.n_leading, self.span.whitener
        with serial_blas():
            few = None if wanted is None else min(self.span.rank, wanted + _EXTRA)
            values, W = eigh(self._inner, few)
            return np.maximum(values, 0.0), T @ W

    @cached_property
    def best(self) -> tuple[Vector, Matrix]:
        """The best components in the span with their variances, as many as the rule chooses."""
        values, components = self.pairs
        k = self.choose(values)
        return values[:k], components[:, :k]

    @cached_property
    def _inner(self) -> Matrix:
        """Covariance of f, the coordinates of rows in the span."""
        T = self.span.whitener
        with serial_blas():
            return T.T @ self.covariance @ T

    @cached_property
    def mean_coords(self) -> Vector:
        """Orthonormal coordinates of the projection of the mean on the span."""
        return np.asarray(self.span.whitener.T @ self.moments.mean)

    @cached_property
    def mean_coef(self) -> Vector:
        """Coefficients K_y†h̄ of the projection of the mean on the span."""
        return np.asarray(self.span.whitener @ self.mean_coords)

    @cached_property
    def mean_sq(self) -> float:
        """Squared norm of that projection."""
        return float(self.mean_coords @ self.mean_coords)

    @cached_property
    def diag_total(self) -> float:
        """The most that Σ k(x, x) / c can be."""
        slack = math.sqrt(self.moments.rounding_sum) * math.sqrt(max(self.moments.diag_sum, 0.0))
        return (self.moments.diag_sum + self._unit * slack) / self.divisor

    @cached_property
    def total_upper(self) -> float:
        """The most that the total variance can be: tr K − 1ᵀN₀1/n, plus what rounding may hide.

        Only as many directions of the span are used as make it least.
        """
        least = 0.0
        if self.problem.center:
            share = self.moments.weight / self.divisor
            squares = np.cumsum(share * self.mean_coords**2)[self.span.ranks - 1]
            error = np.sqrt(2.0 * self.span.norm2 / share) * self._noises[0]
            root = np.maximum(np.sqrt(squares) - error, 0.0) * np.maximum(1.0 - self._turned, 0.0)
            least = float(np.max(root, initial=0.0)) ** 2
        return max(0.0, self.diag_total - least)

    @cached_property
    def total_lower(self) -> float:
        """The least that the total variance can be: tr N."""
        span, inside = self.span, np.cumsum(np.diag(self._inner))[self.span.ranks - 1]
        certain = self._certain(inside, self._turned, span.norm2) - self._rounding * span.norm_fro
        return min(float(np.max(certain, initial=0.0)), self.total_upper)

    # Rounding. With h(x) off by δh and K_y by Δ, the coordinates of rows in p directions of the
    # span are off by √2 ‖T_p‖ δh and a share t = ‖Δ‖‖T_p‖² of their norm, if that is below a half:
    # then Tᵀ(K_y + Δ)T has no eigenvalue below a half. The cost is bounded in two ways: by ‖δH‖_F
    # (Cauchy–Schwarz over all rows), and row by row, ‖δh‖ times √k(x,x).

    @property
    def confidence(self) -> float:
        """Probability with which the bounds on rounding hold."""
        return confidence(self.span.dtype)

    @property
    def _unit(self) -> float:
        return float(np.finfo(self.span.dtype).eps) / 2

    @cached_property
    def _noises(self) -> tuple[float, float]:
        """Bounds on Σ w‖δh‖ and Σ w‖δh‖², over c."""
        trace = max(float(np.trace(self.span.matrix)), 0.0)
        second = self.moments.rounding_sum * trace * self._unit**2
        first = math.sqrt(self.moments.weight * second)
        if self.measured is not None:
            first, second = min(first, self.measured.first), min(second, self.measured.second)
        return first / self.divisor, second / self.divisor

    @cached_property
    def _rounding(self) -> float:
        """Bound on the rounding of the covariance, in Frobenius norm."""
        return float(self.moments.rounding[0] * np.trace(self.covariance))

    @cached_property
    def _turned(self) -> Vector:
        """Share by which the error of K_y may stretch coordinates; infinite if unbounded."""
        share = self.span.error * self.span.norm2
        return np.where(share < 0.5, share, np.inf)

    def _certain(self, energy: Any, turned: Any, norm2: Any) -> Any:
        """Bound the energy along directions from below, given the computed one."""
        first, second = self._noises
        size = math.sqrt(8.0 * max(self.moments.diag_max, 0.0))  # √2 times a row's, centered or not
        root = np.sqrt(np.maximum(energy, 0.0)) - np.sqrt(2.0 * norm2 * second)
        rows = energy - 2.0 * size * np.sqrt(norm2) * first - 2.0 * norm2 * second
        kept = np.maximum(1.0 - turned, 0.0)
        return np.maximum(np.maximum(root, 0.0) ** 2, rows) * kept**2

    @cached_property
    def _outside(self) -> Vector:
        """Bound on τ₀ = tr K − tr N₀ over c, for each number of leading directions."""
        span = self.span
        energy = np.diag(self._inner) + self.moments.weight / self.divisor * self.mean_coords**2
        inside = self._certain(np.cumsum(energy)[span.ranks - 1], self._turned, span.norm2)
        return np.asarray(self.diag_total - inside + self._rounding * span.norm_fro)

    @cached_property
    def directions(self) -> int:
        """Number of directions of the span that the bounds use; the others are mostly rounding."""
        return int(self.span.ranks[np.argmin(self._outside)]) if len(self._outside) else 0

    @cached_property
    def outside(self) -> float:
        """Bound on τ₀ over c, the energy of the rows outside those directions."""
        return max(0.0, float(np.min(self._outside, initial=self.diag_total)))

    def inside(self, k: int) -> float:
        """Bound the variance that any k components in those directions explain."""
        if not self.directions:
            return 0.0
        at, explained = int(np.argmin(self._outside)), float(self.pairs[0][:k].sum())
        first, second = self._noises
        norm2, turned = float(self.span.norm2[at]), float(self._turned[at])
        size = math.sqrt(8.0 * max(self.moments.diag_max, 0.0))
        root = math.sqrt(explained) + math.sqrt(2.0 * norm2 * second)
        rows = explained + 2.0 * size * math.sqrt(norm2) * first + 2.0 * norm2 * second
        products = math.sqrt(k) * self._rounding * float(self.span.norm_fro[at])
        return min(root**2, rows) * (1.0 + turned) ** 2 + products

    def outside_first(self, m: int) -> float:
        """Return τ₀ over c of the first m points alone, without the cost of rounding."""
        values, U = eigh(self.span.matrix[:m, :m])
        large = values > 1e-10 * np.max(values, initial=0.0)
        T = U[:, large] / np.sqrt(values[large])
        mean = self.moments.mean[:m]
        mean_sq = self.moments.weight / self.divisor * float(((T.T @ mean) ** 2).sum())
        variance = float(np.einsum("ij,ij->", T, self.covariance[:m, :m] @ T))
        return self.diag_total - variance - mean_sq

    def explained(self, components: Matrix) -> float:
        """Bound the variance in the span of components, orthonormal or not, from below."""
        G = components.T @ self.span.matrix @ components
        norms = np.sqrt(np.maximum(np.diag(G), 0.0))
        nonzero = norms > 0
        A, G = components[:, nonzero] / norms[nonzero], G[nonzero][:, nonzero]
        values, U = eigh(G / norms[nonzero] / norms[nonzero][:, None])
        independent = values > 1e-12
        A = A @ (U[:, independent] / np.sqrt(values[independent]))
        # Orthonormal components, those of the smallest coefficients first: rounding costs them
        # least. The span explains no less than any number of them.
        width, turn = eigh(A.T @ A) if A.size else (np.zeros(0), np.zeros((0, 0)))
        width, A = np.maximum(width[::-1], 0.0), A @ turn[:, ::-1]
        energy = np.cumsum(np.einsum("ij,ij->j", A, self.covariance @ A))
        share = self.span.error * width
        share = np.where(share < 0.5, share, np.inf)
        certain = self._certain(energy, share, width) - self._rounding * np.cumsum(width)
        return float(np.max(certain, initial=0.0))

    def optimum(self, k: int, sample: ResidualSample | None = None) -> Figure:
        """Bound the variance that any k components explain."""
        inside = self.inside(k)
        most = inside + self.outside if k else 0.0
        if sample is not None:
            norm = sample.norm(self.outside)
            tighter = inside + k**0.5 * norm
            if tighter < most:
                return Figure(tighter, "bound", min(norm.confidence, self.confidence))
        return Figure(most, "bound", self.confidence)

    def evidence(
        self, values: Vector, components: Matrix, sample: ResidualSample | None = None
    ) -> Evidence:
        """Return the evidence about components in the span."""
        k, xi = len(values), self.pairs[0]
        explained, optimum = self.explained(components), self.optimum(k, sample)
        likely = None
        if sample is not None:
            likely = float(xi[:k].sum()) + sample.gain + sample.error
            weight = self.moments.weight / self.divisor
            if sample.accepted * self.moments.diag_max * weight < self.outside / 2:
                likely = float(optimum)  # few rows hold most of the residual, and were not drawn
            likely = min(max(likely, explained), float(optimum))
        kind = "bound" if self.bounded else "estimate"

        def figure(value: float) -> Figure:
            return Figure(value, kind, self.confidence)

        return Evidence(
            explained=figure(explained),
            bounds=(Figure(float(optimum), kind, optimum.confidence),),
            total=(figure(self.total_lower), figure(self.total_upper)),
            eigenvalues=values,
            residuals=np.full(k, np.nan),
            spacing=spacing_of(values, xi[k:]),
            likely=likely,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        span, total = self.span, self.total_upper
        least = 100.0 * self.total_lower / total if total > 0 else 100.0
        notes = [
            f"Components in the span of {counted(span.size, 'point')}. Explained shares are of the "
            f"most that the total variance can be; it is at least {least:.4g} % of that."
        ]
        if span.rank < span.size:
            others = "repeat what the others hold, to the precision of the kernel"
            if not self.bounded:
                others += ", or are not longer than those of negative length"
            directions = "1 direction" if span.rank == 1 else f"{span.rank} directions"
            notes.append(f"The points span {directions}: {span.size - span.rank} of them {others}.")
        if not self.bounded:
            notes.append("The kernel may have negative eigenvalues: figures are estimates.")
        return tuple(notes)

    def sample(self, k: int, rows: int) -> ResidualSample | None:
        """Draw rows to see how the residual outside the span is spread."""
        rows = min(rows, self.problem.source.shape[0])
        if not self.bounded or k == 0 or rows == 0:
            return None
        xi, Z = self.pairs
        positive = xi[:k] > 0.0
        V = Z[:, :k][:, positive] / np.sqrt(xi[:k][positive])
        T = self.span.whitener[:, : self.directions]
        moments = self.moments
        return draw_residual_sample(
            self.problem, self.span, T, V, moments.mean, moments.diag_max, rows
        )

    def choose(self, values: Vector) -> int:
        """Return the number of components, of those whose variance is above rounding."""
        problem, total = self.problem, self.total_upper
        rank = int((values > 1e-12 * np.max(values, initial=0.0)).sum())
        wanted = problem.n_leading
        if wanted is not None or problem.n_components is not None:
            return min(rank, rank if wanted is None else wanted)
        chosen = problem.rule.choose(values, total, *problem.counts)
        if chosen is None or chosen > rank:
            explained = 100.0 * float(values.sum()) / total if total > 0 else 100.0
            raise ValueError(
                f"{problem.rule!r} cannot be met: all components in the span of {self.span.size} "
                f"points hold {explained:.4g} % of the variance. Take a larger n_basis."
            )
        return chosen

    def projection(
        self, values: Vector, components: Matrix, mean_coef: Vector | None = None
    ) -> KernelProjection:
        """Return the fitted map, centered at the projection of the mean or at `mean_coef`."""
        problem = self.problem
        mean, mean_sq = self.moments.mean * problem.center, self.mean_sq
        if mean_coef is not None:
            mean = self.span.matrix @ mean_coef
            mean_sq = float(mean_coef @ mean)
        mean_coef = self.mean_coef if mean_coef is None else mean_coef
        scores = self.span.matrix @ components - mean @ components
        components = components * column_signs(scores)
        if problem.kernel is None:  # rows are kernels to all rows, of which these are some
            components, mean, mean_coef = map(self._among_all, (components, mean, mean_coef))
        total = self.total_upper
        return KernelProjection(
            mean=mean,
            components=like(components, problem.source.reference),
            eigenvalues=values,
            total_variance=total,
            rest=max(0.0, total - float(values.sum())),
            kernel=problem.kernel,
            basis=self.span.basis.points,
            shift=problem.shift,
            mean_coef=mean_coef * problem.center,
            mean_sq=mean_sq * problem.center,
        )

    def axes(
        self,
        values: Vector,
        components: Matrix,
        sample: ResidualSample | None = None,
        mean_coef: Vector | None = None,
    ) -> Axes:
        """Return components in the span, with the evidence about them."""
        projection = self.projection(values, components, mean_coef)
        return Axes(projection, self.evidence(values, components, sample))

    def _among_all(self, part: Any) -> Any:
        at = self.span.basis.at
        assert at is not None  # columns of a kernel matrix
        full = np.zeros((self.problem.source.shape[0], *part.shape[1:]))
        np.add.at(full, at, part)
        return full


def fit_landmarks(
    problem: KernelProblem, basis: Basis, known: Array = None, dtype: Any = None
) -> LandmarkFit:
    """Pass over the rows once, with a basis; `known` are kernel values to it, if they exist."""
    span = Span(problem.kernel, basis, problem.source, dtype)
    if known is not None and numpy_dtype(known) != span.dtype:
        known = None
    moments = KernelMoments(span, problem.source, center=problem.center, known=known)
    moments = problem.source.fold(moments)
    measured = measure_rounding(problem, span, moments)
    if measured is not None and math.isinf(measured.first):
        return fit_landmarks(problem, basis, dtype=np.float64)
    return LandmarkFit(problem, span, moments, measured)

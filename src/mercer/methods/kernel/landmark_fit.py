"""Kernel PCA in the span of landmarks: one pass over the rows, and the bounds it gives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    column_signs,
    confidence,
    eigh,
    is_finite,
    like,
    namespace,
    to_numpy,
)
from mercer.certificate import Axes, Evidence, Figure, spacing_of
from mercer.data import Block
from mercer.kernels.evaluate import check_magnitude
from mercer.linalg.span import Basis, Beside, KernelMoments, Span
from mercer.messages import counted
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Operations that a walk over all pairs of rows may cost if it only serves the certificate.
AFFORDABLE = 5e11
# Eigenvalues beyond those wanted: they tell how far the last one is from the next.
_EXTRA = 32
# Rounding of a mean of kernel values, as a share of it.
_SUMS = 1e-13
CONFIDENCE = 0.999
# Rows that measure the rounding of float32 values: so many at least, or one in so many.
_ROWS, _PART = 1024, 64


class LandmarkFit:
    r"""The best components in the span of landmarks, and bounds on all others.

    With h̄ and S the mean and the scatter of h(x), c the divisor and T the whitener of the span,
    the eigenvalues ξ of TᵀST/c are those of N/c, N = HN₀H, N₀ = K_xy K_y† K_xyᵀ. Because N ⪯ K̃,
    they bound what any components can explain (method of Washizawa 2009, bounds ours).

    Attributes
    ----------
    bounded : bool
        Whether the kernel is positive semi-definite, on which the bounds rest.
    pairs : ndarray of shape (p,), ndarray of shape (m, p)
        Variances ξ and components z, zᵀK_yz = 1: some more than are wanted, all for a rule.
    mean_coef, mean_sq : ndarray of shape (m,), float
        Coefficients K_y†h̄ of the projection of the mean on the span, and its squared norm.
    diag_total, total_lower, total_upper : float
        The most that Σ k(x, x)/c can be, and bounds on the total variance.
    directions, outside : int, float
        Directions of the span that the bounds use, the others being mostly rounding; and a bound on
        τ₀/c, τ₀ = tr K − tr N₀, the energy of the rows outside those directions.
    """

    def __init__(
        self,
        problem: KernelProblem,
        span: Span,
        moments: KernelMoments,
        measured: tuple[float, float] | None = None,
    ) -> None:
        kernel, wanted, T = problem.kernel, problem.n_leading, span.whitener
        scatter, m = moments.scatter, span.size
        require_finite_kernel(problem, scatter, np.asarray(moments.diag_sum))
        check_magnitude(kernel, moments.diag_max)
        self.problem, self.span, self.moments = problem, span, moments
        self.divisor, self.confidence = problem.divisor, confidence(span.dtype)
        self.bounded = kernel is not None and kernel.psd is True
        self.scatter, self.mean = scatter[:m, :m], moments.mean[:m]
        self.across, self.beside = scatter[:m, m:], scatter[m:, m:]
        self.covariance = self.scatter / self.divisor
        with serial_blas():
            inner = T.T @ self.covariance @ T
            few = None if wanted is None else min(span.rank, wanted + _EXTRA)
            values, W = eigh(inner, few)
            self.pairs = np.maximum(values, 0.0), T @ W
        f = np.asarray(T.T @ self.mean)
        self.mean_coef, self.mean_sq = np.asarray(T @ f), float(f @ f)
        self._bound(np.diag(inner), f, measured)

    def _bound(self, variances: Vector, f: Vector, measured: tuple[float, float] | None) -> None:
        """Bound the total variance and the energy outside the span.

        From the variance along each direction of the span, and the coordinates f of the mean;
        `measured` bounds Σ w‖δh‖ and Σ w‖δh‖², if that is sharper than the a-priori bound.

        With h(x) off by δh and K_y by Δ, the coordinates of rows in p directions of the span are
        off by √2 ‖T_p‖ δh and a share t = ‖Δ‖‖T_p‖² of their norm, if that is below a half: then
        Tᵀ(K_y + Δ)T has no eigenvalue below a half.
        """
        span, moments, c = self.span, self.moments, self.divisor
        unit, weight = float(np.finfo(span.dtype).eps) / 2, moments.weight / c
        slack = math.sqrt(moments.rounding_sum) * math.sqrt(max(moments.diag_sum, 0.0))
        self.diag_total = (moments.diag_sum + unit * slack) / c
        second = moments.rounding_sum * max(float(np.trace(span.matrix)), 0.0) * unit**2
        first = math.sqrt(moments.weight * second)
        if measured is not None:
            first, second = min(first, measured[0]), min(second, measured[1])
        self._first, self._second = first / c, second / c
        # Of the covariance, in Frobenius norm.
        self._rounding = float(moments.rounding[0] * np.trace(moments.scatter)) / c
        turned = span.error * span.norm2
        turned = np.where(turned < 0.5, turned, np.inf)
        least, products = 0.0, self._rounding * span.norm_fro
        if self.problem.center:  # ‖m‖ ≥ ⟨m, v⟩/‖v‖ for the projection v of the mean on the span
            s = self.mean_coef
            inner, length = weight * float(s @ self.mean), float(np.linalg.norm(s))
            inner -= (self._first + weight * _SUMS * float(np.linalg.norm(self.mean))) * length
            norm = self.mean_sq + span.error * length**2
            least = max(0.0, inner) ** 2 / (weight * norm) if norm > 0.0 else 0.0
        self.total_upper = max(0.0, self.diag_total - least)
        inside = self._certain(np.cumsum(variances)[span.ranks - 1], turned, span.norm2) - products
        self.total_lower = min(float(np.max(inside, initial=0.0)), self.total_upper)
        energy = np.cumsum(variances + weight * f**2)[span.ranks - 1]
        outside = self.diag_total - self._certain(energy, turned, span.norm2) + products
        self.outside = max(0.0, float(np.min(outside, initial=self.diag_total)))
        self.directions, self._used = 0, (0.0, 0.0, 0.0)
        if len(outside):
            at = int(np.argmin(outside))
            self.directions = int(span.ranks[at])
            self._used = float(turned[at]), float(span.norm2[at]), float(span.norm_fro[at])

    def _certain(self, energy: Vector, turned: Vector, norm2: Vector) -> Vector:
        """Bound the energy along directions from below, given the computed one.

        In two ways: by ‖δH‖_F (Cauchy–Schwarz over all rows), and row by row, ‖δh‖ times √k(x,x).
        """
        size = math.sqrt(8.0 * max(self.moments.diag_max, 0.0))  # √2 times a row's, centered or not
        root = np.sqrt(np.maximum(energy, 0.0)) - np.sqrt(2.0 * norm2 * self._second)
        rows = energy - 2.0 * size * np.sqrt(norm2) * self._first - 2.0 * norm2 * self._second
        kept = np.maximum(1.0 - turned, 0.0)
        return np.asarray(np.maximum(np.maximum(root, 0.0) ** 2, rows) * kept**2)

    def explained(self, components: Matrix, covariance: Matrix | None = None) -> float:
        """Bound the variance in the span of components, orthonormal or not, from below."""
        covariance = self.covariance if covariance is None else covariance
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
        energy = np.cumsum(np.einsum("ij,ij->j", A, covariance @ A))
        share = self.span.error * width
        share = np.where(share < 0.5, share, np.inf)
        certain = self._certain(energy, share, width) - self._rounding * np.cumsum(width)
        return float(np.max(certain, initial=0.0))

    def inside(self, k: int) -> float:
        """Bound the variance that any k components in the directions of the bounds explain."""
        if not self.directions:
            return 0.0
        explained, (turned, norm2, norm_fro) = float(self.pairs[0][:k].sum()), self._used
        size = math.sqrt(8.0 * max(self.moments.diag_max, 0.0))
        root = math.sqrt(explained) + math.sqrt(2.0 * norm2 * self._second)
        rows = explained + 2.0 * size * math.sqrt(norm2) * self._first + 2.0 * norm2 * self._second
        products = math.sqrt(k) * self._rounding * norm_fro
        return min(root**2, rows) * (1.0 + turned) ** 2 + products

    def optimum(self, k: int) -> float:
        """Bound the variance that any k components explain."""
        return self.inside(k) + self.outside if k else 0.0

    def evidence(
        self, values: Vector, components: Matrix, covariance: Matrix | None = None
    ) -> Evidence:
        """Return the evidence about components in the span.

        `covariance` is the part of the covariance of h(x) that counts as explained.
        """
        k, xi, span = len(values), self.pairs[0], self.span
        place = f"the span of {span.size} point{'s' * (span.size != 1)}"
        notes = [f"Components in {place}."]
        if span.rank < span.size:
            negative = ", or belong to eigenvalues no larger than the negative ones"
            notes.append(
                f"The points span {counted(span.rank, 'direction')}: {span.size - span.rank} of "
                f"them are linear combinations of the others, up to rounding"
                f"{'' if self.bounded else negative}."
            )
        if not self.bounded:
            notes.append("The kernel may have negative eigenvalues: all figures are estimates.")
        certain = Figure(0.0, "bound" if self.bounded else "estimate", self.confidence)
        return Evidence(
            explained=certain.like(self.explained(components, covariance)),
            bounds={place: certain.like(self.optimum(k))},
            total=(certain.like(self.total_lower), certain.like(self.total_upper)),
            eigenvalues=values,
            residuals=np.full(k, np.nan),
            spacing=spacing_of(values, xi[k:]),
            notes=tuple(notes),
        )

    def choose(self, values: Vector) -> int:
        """Return the number of components, of those whose variance is above rounding."""
        problem, total, wanted = self.problem, self.total_upper, self.problem.n_leading
        # Kernel values are off by a few units in the last place, whatever the variances are.
        rounding = (4.0 * float(np.finfo(self.span.dtype).eps)) ** 2 * self.diag_total
        rank = int((values > max(1e-12 * np.max(values, initial=0.0), rounding)).sum())
        if rank == 0:
            return 0
        if problem.n_components is not None:
            return rank if wanted is None else min(rank, wanted)
        chosen = problem.rule.choose(values, total, *problem.counts)
        if chosen is None or chosen > rank:
            explained = 100.0 * float(values.sum()) / total if total > 0 else 100.0
            raise ValueError(
                f"{problem.rule!r} cannot be met: all components in the span of {self.span.size} "
                f"points explain {explained:.4g} % of the variance. Use a larger n_basis."
            )
        return chosen

    @property
    def best(self) -> tuple[Vector, Matrix]:
        """The best components in the span with their variances, as many as the rule chooses."""
        values, components = self.pairs
        k = self.choose(values)
        return values[:k], components[:, :k]

    def best_axes(self) -> Axes:
        """Return the best components in the span."""
        return self.axes(*self.best)

    def projection(
        self, values: Vector, components: Matrix, mean_coef: Vector | None = None
    ) -> KernelProjection:
        """Return the fitted map, centered at the projection of the mean or at `mean_coef`."""
        problem, total = self.problem, self.total_upper
        mean, mean_sq = self.mean * problem.center, self.mean_sq
        if mean_coef is None:
            mean_coef = self.mean_coef
        else:
            mean = self.span.matrix @ mean_coef
            mean_sq = float(mean_coef @ mean)
        scores = self.span.matrix @ components - mean @ components
        components = components * column_signs(scores)
        if problem.kernel is None:  # rows are kernels to all rows, of which these are some
            n, at = problem.source.shape[0], self.span.basis.at
            components, mean, mean_coef = (
                add_rows(np.zeros((n, *part.shape[1:])), at, part)
                for part in (components, mean, mean_coef)
            )
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

    def axes(self, values: Vector, components: Matrix, mean_coef: Vector | None = None) -> Axes:
        """Return components in the span, with their evidence."""
        evidence = self.evidence(values, components)
        return Axes(self.projection(values, components, mean_coef), evidence)

    def along_scores(self) -> Matrix:
        """Return K_yxHQ for an orthonormal basis Q of the columns beside the rows."""
        values, U = eigh(self.beside)
        positive = values > 1e-12 * np.max(values, initial=0.0)
        return np.asarray(self.across @ (U[:, positive] / np.sqrt(values[positive])))

    def explained_by(self, G: Matrix) -> tuple[Matrix, Matrix]:
        """Return what bounds the variance that scores explain, as `explained` takes it.

        For orthonormal vectors Q over the rows, G = K_yxHQ: of the variance of the rows, QQᵀ keeps
        GGᵀ/c along the span, which is that along K_y†G.
        """
        return self.span.inverse @ G, G @ G.T / self.divisor


def require_finite_kernel(problem: KernelProblem, *sums: Array) -> None:
    """Raise if sums of kernel values of finite rows are NaN or infinite."""
    if not all(map(is_finite, sums)):
        raise ValueError(
            f"{problem.kernel!r} gives NaN or infinity between rows. Scale the rows, or change the "
            f"kernel's parameters."
        )


def add_rows(total: Any, at: Any, part: Any) -> Any:
    """Add parts to the rows `at`, which may repeat; return the total."""
    np.add.at(total, at, part)
    return total


def fit_landmarks(
    problem: KernelProblem, basis: Basis, dtype: Any = None, beside: Beside | None = None
) -> LandmarkFit:
    """Pass over the rows once, with a basis; `beside` are columns for every row, such as scores."""
    span, measured = Span(problem.kernel, basis, problem.source, dtype), None
    fold = KernelMoments(span, problem.source, center=problem.center, beside=beside)
    fold.label = fold.label if beside is None else "certificate"
    moments = problem.source.fold(fold)
    if span.dtype != np.float64 and span.kernel is not None:
        measured = measure_rounding(problem, span, moments)
        if measured is not None and math.isinf(measured[0]):
            return fit_landmarks(problem, basis, np.float64, beside)
    return LandmarkFit(problem, span, moments, measured)


def mean_bound(x: Vector, confidence: float = CONFIDENCE) -> float:
    """Bound the mean of a distribution on [0, 1] from independent draws.

    The empirical Bernstein inequality of Maurer & Pontil (2009), Thm 4.
    """
    s = len(x)
    if s < 2:
        return 1.0
    log = math.log(2.0 / (1.0 - confidence))
    spread = math.sqrt(2.0 * float(np.var(x, ddof=1)) * log / s)
    return min(1.0, float(np.mean(x)) + spread + 7.0 * log / (3.0 * (s - 1)))


def measure_rounding(
    problem: KernelProblem, span: Span, moments: KernelMoments
) -> tuple[float, float] | None:
    """Bound Σ w‖δh‖ and Σ w‖δh‖², the rounding of float32 kernel values, from some random rows.

    At 99.95 % confidence: no row can be off by more than its a-priori bound, so the empirical
    Bernstein inequality applies. Infinite if a row is.
    """
    source, n = problem.source, problem.source.shape[0]
    at = _draw_rows(problem, min(n, max(_ROWS, n // _PART)))
    block = Block(0, source.take(at), None)
    rounded, exact = (
        cast(span.feature_map(source, dtype)(block), np.float64)
        for dtype in (np.float32, np.float64)
    )
    off = exact - rounded
    unit = float(np.finfo(np.float32).eps) / 2
    most = moments.rounding_max * float(np.trace(span.matrix)) * unit**2
    if not 0.0 < most < math.inf:
        return None
    share = to_numpy(namespace(off).sum(off * off, axis=1)) / most
    if np.max(share) > 1.0:  # more than the a-priori bound: nothing is known of the others
        return math.inf, math.inf
    likely = 1.0 - (1.0 - CONFIDENCE) / 4  # two bounds
    first, second = (mean_bound(x, likely) for x in (np.sqrt(share), share))
    return moments.weight * math.sqrt(most) * first, moments.weight * most * second


def _draw_rows(problem: KernelProblem, size: int) -> Any:
    """Draw rows in proportion to their weights, with replacement; return their indices in order."""
    n, weights = problem.source.shape[0], problem.source.weights
    chance = None if weights is None else weights / weights.sum()
    return np.sort(problem.rng.choice(n, size, p=chance))

"""What one pass over the rows tells of axes in the span of a basis, and of all others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.arrays import Matrix, Vector, eigh, is_finite, like
from mercer.arrays.rounding import confidence
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.data import Source
from mercer.kernels.evaluate import check_magnitude
from mercer.landmarks.objective import axes_asked
from mercer.linalg.span import Basis, KernelMoments, Span
from mercer.messages import counted
from mercer.methods.kernel.sampled import Noise, Sample, measured, sampled
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection
from mercer.threads import serial_blas

# Rows that tell how what lies beyond the span is spread, where no gap is asked for.
DRAWN = 1024
# Operations that a walk over all pairs of rows may cost where it is only to judge axes.
AFFORDABLE = 5e11
# Components beyond those asked for that are found: products with the kernel matrix start from them.
_BEYOND = 32


@dataclass(frozen=True, eq=False)
class Spanned:
    r"""What one pass over the rows tells of the best axes in the span of a basis.

    With h̄ and S the mean and the scatter of h(x), c the divisor and T the span's `white` axes,
    the eigenvalues ξ of TᵀST/c are those of N/c, N = HN₀H, N₀ = K_xy K_y† K_xyᵀ; and as
    N ⪯ K̃, what no axes can exceed is known too (methods of Washizawa 2009, bounds ours).

    Attributes
    ----------
    problem : KernelProblem
    span : Span
    seen : KernelMoments
        The pass.
    noise : Noise or None
        Rounding of kernel values, where it was measured; None: what holds for any.
    """

    problem: KernelProblem
    span: Span
    seen: KernelMoments
    noise: Noise | None = None

    def __post_init__(self) -> None:
        seen = self.seen
        if not is_finite(seen.scatter) or not np.isfinite(seen.within):
            raise overflowed(self.problem)
        check_magnitude(repr(self.problem.kernel or "the kernel matrix"), seen.largest)

    @property
    def bounded(self) -> bool:
        """Whether no kernel matrix has negative eigenvalues, which the bounds rest on."""
        return self.problem.kernel is not None and self.problem.kernel.psd is True

    @property
    def divisor(self) -> float:
        """What scatters are divided by."""
        return self.problem.divisor

    @cached_property
    def covariance(self) -> Matrix:
        """Covariance of h."""
        return self.seen.scatter / self.divisor

    @cached_property
    def pairs(self) -> tuple[Vector, Matrix]:
        """Variances ξ of the best axes in the span, largest first, and the axes: zᵀK_yz = 1.

        Some more than are asked for; all, where it is a rule's to say how many.
        """
        asked, T = axes_asked(self.problem), self.span.white
        with serial_blas():
            few = None if asked is None else min(self.span.rank, asked + _BEYOND)
            values, W = eigh(self._inner, few)
            return np.maximum(values, 0.0), T @ W

    @cached_property
    def _inner(self) -> Matrix:
        """Covariance of f, the rows' coordinates in the span."""
        T = self.span.white
        with serial_blas():
            return T.T @ self.covariance @ T

    @cached_property
    def middle(self) -> Vector:
        """Coordinates of the mean's projection on the span, in its orthonormal axes."""
        return np.asarray(self.span.white.T @ self.seen.mean)

    @cached_property
    def shares(self) -> Vector:
        """What each point counts in the mean's projection on the span, K_y†h̄."""
        return np.asarray(self.span.white @ self.middle)

    @cached_property
    def height(self) -> float:
        """Squared length of that projection."""
        return float(self.middle @ self.middle)

    @cached_property
    def own(self) -> float:
        """The most that Σ k(x, x) / c can be."""
        slack = math.sqrt(self.seen.noise) * math.sqrt(max(self.seen.within, 0.0))
        return (self.seen.within + self._unit * slack) / self.divisor

    @cached_property
    def total(self) -> Figure:
        """The most that the total variance can be: tr K − 1ᵀN₀1/n, and what rounding may hide.

        Of the directions of the span only as many as make it least.
        """
        least = 0.0
        if self.problem.center:
            share = self.seen.weight / self.divisor
            heights = np.cumsum(share * self.middle**2)[self.span.parts - 1]
            off = np.sqrt(2.0 * self.span.longest / share) * self._noises[0]
            root = np.maximum(np.sqrt(heights) - off, 0.0) * np.maximum(1.0 - self._turned, 0.0)
            least = float(np.max(root, initial=0.0)) ** 2
        return Figure(max(0.0, self.own - least), "bound", self.confidence)

    @cached_property
    def least_total(self) -> float:
        """The least it can be: tr N."""
        span, held = self.span, np.cumsum(np.diag(self._inner))[self.span.parts - 1]
        certain = self._certain(held, self._turned, span.longest) - self._rounding * span.spread
        return min(float(np.max(certain, initial=0.0)), float(self.total))

    # Rounding. With h(x) off by δh and K_y by Δ, the coordinates of rows in p directions of the
    # span are off by √2 ‖T_p‖ δh and a share t = ‖Δ‖‖T_p‖² of their length, where that is below a
    # half: then Tᵀ(K_y + Δ)T has no eigenvalue below a half. What this costs is bounded in two
    # ways: by ‖δH‖_F (Cauchy–Schwarz over all rows), and row by row, ‖δh‖ times √k(x,x).

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
        second = self.seen.noise * trace * self._unit**2
        first = math.sqrt(self.seen.weight * second)
        if self.noise is not None:
            first, second = min(first, self.noise.first), min(second, self.noise.second)
        return first / self.divisor, second / self.divisor

    @cached_property
    def _rounding(self) -> float:
        """Bound on the rounding of the covariance, in Frobenius norm."""
        return float(self.seen.moments.rounding[0] * np.trace(self.covariance))

    @cached_property
    def _turned(self) -> Vector:
        """Share by which the error of K_y may stretch coordinates; inf where it may be any."""
        share = self.span.error * self.span.longest
        return np.where(share < 0.5, share, np.inf)

    def _certain(self, energy: Any, turned: Any, longest: Any) -> Any:
        """Bound energy along axes of this length and error from below, given what was computed."""
        first, second = self._noises
        length = math.sqrt(8.0 * max(self.seen.largest, 0.0))  # √2 times a row's, centred or not
        root = np.sqrt(np.maximum(energy, 0.0)) - np.sqrt(2.0 * longest * second)
        rows = energy - 2.0 * length * np.sqrt(longest) * first - 2.0 * longest * second
        kept = np.maximum(1.0 - turned, 0.0)
        return np.maximum(np.maximum(root, 0.0) ** 2, rows) * kept**2

    @cached_property
    def _left(self) -> Vector:
        """Bound on τ₀ = tr K − tr N₀ over c, for each number of first directions of the span."""
        span = self.span
        energy = np.diag(self._inner) + self.seen.weight / self.divisor * self.middle**2
        held = self._certain(np.cumsum(energy)[span.parts - 1], self._turned, span.longest)
        return np.asarray(self.own - held + self._rounding * span.spread)

    @cached_property
    def directions(self) -> int:
        """How many directions of the span the bounds take: the others are mostly rounding."""
        return int(self.span.parts[np.argmin(self._left)]) if len(self._left) else 0

    @cached_property
    def beyond(self) -> float:
        """Bound on τ₀ over c, what of the rows lies beyond those directions."""
        return max(0.0, float(np.min(self._left, initial=self.own)))

    def inside(self, k: int) -> float:
        """Bound what any k axes in those directions hold."""
        if not self.directions:
            return 0.0
        at, found = int(np.argmin(self._left)), float(self.pairs[0][:k].sum())
        first, second = self._noises
        longest, turned = float(self.span.longest[at]), float(self._turned[at])
        length = math.sqrt(8.0 * max(self.seen.largest, 0.0))
        root = math.sqrt(found) + math.sqrt(2.0 * longest * second)
        rows = found + 2.0 * length * math.sqrt(longest) * first + 2.0 * longest * second
        products = math.sqrt(k) * self._rounding * float(self.span.spread[at])
        return min(root**2, rows) * (1.0 + turned) ** 2 + products

    def part(self, m: int) -> float:
        """Return the same of the first m points alone, without what rounding may add."""
        values, U = eigh(self.span.matrix[:m, :m])
        there = values > 1e-10 * np.max(values, initial=0.0)
        T = U[:, there] / np.sqrt(values[there])
        middle = self.seen.weight / self.divisor * float(((T.T @ self.seen.mean[:m]) ** 2).sum())
        return self.own - float(np.einsum("ij,ij->", T, self.covariance[:m, :m] @ T)) - middle

    def captured(self, axes: Matrix) -> float:
        """Bound the variance in the span of axes, which need not be orthonormal, from below."""
        G = axes.T @ self.span.matrix @ axes
        lengths = np.sqrt(np.maximum(np.diag(G), 0.0))
        there = lengths > 0
        A, G = axes[:, there] / lengths[there], G[there][:, there]
        values, U = eigh(G / lengths[there] / lengths[there][:, None])
        apart = values > 1e-12
        A = A @ (U[:, apart] / np.sqrt(values[apart]))
        # Orthonormal axes, those of the smallest coefficients first: rounding costs them least.
        # The span holds no less than any number of them.
        width, turn = eigh(A.T @ A) if A.size else (np.zeros(0), np.zeros((0, 0)))
        width, A = np.maximum(width[::-1], 0.0), A @ turn[:, ::-1]
        held = np.cumsum(np.einsum("ij,ij->j", A, self.covariance @ A))
        share = self.span.error * width
        share = np.where(share < 0.5, share, np.inf)
        certain = self._certain(held, share, width) - self._rounding * np.cumsum(width)
        return float(np.max(certain, initial=0.0))

    def optimum(self, k: int, sample: Sample | None = None) -> Figure:
        """Return the most variance that any k axes can hold."""
        inside = self.inside(k)
        most = min(inside + self.beyond, float(self.total)) if k else 0.0
        if sample is not None:
            norm = sample.norm(self.beyond)
            tighter = inside + k**0.5 * norm
            if tighter < most:
                return Figure(tighter, "bound", min(norm.confidence, self.confidence))
        return Figure(most, "bound", self.confidence)

    def certificate(
        self, values: Vector, axes: Matrix, sample: Sample | None = None
    ) -> Certificate:
        """Say what axes in the span hold, and what none can exceed."""
        k, total = len(values), max(float(self.total), 1e-300)
        xi, held, upper = self.pairs[0], self.captured(axes), self.optimum(k, sample)
        likely = None
        if sample is not None:
            likely = float(xi[:k].sum()) + sample.gain + sample.error
            drawn = sample.accepted * self.seen.largest * self.seen.weight / self.divisor
            if drawn < self.beyond / 2:  # a few rows hold most of it, and were not drawn
                likely = float(upper)
            likely = min(max(likely, held), float(upper)) / total
        kind = "bound" if self.bounded else "estimate"
        # Shares are of a total that is known within a bracket: each of the end that makes it true.
        least = self.least_total
        best = min(1.0, upper / least) if least > 0.0 else float(upper > 0.0)
        ratio = min(1.0, held / upper) if upper > 0.0 else 1.0
        return Certificate(
            captured=Figure(min(1.0, held / total), kind, self.confidence),
            optimum_upper=Figure(best, kind, upper.confidence),
            ratio=Figure(ratio, kind, upper.confidence),
            residuals=np.full(k, np.nan),
            eigenvalues=values,
            spacing=spacing_of(values, xi[k:]),
            likely=likely,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        span, total = self.span, float(self.total)
        least = 100.0 * self.least_total / total if total > 0 else 100.0
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

    def sample(self, k: int, rows: int) -> Sample | None:
        """Draw rows that tell how what lies beyond the span is spread."""
        rows = min(rows, self.problem.source.shape[0])
        if not self.bounded or k == 0 or rows == 0:
            return None
        xi, Z = self.pairs
        there = xi[:k] > 0.0
        V = Z[:, :k][:, there] / np.sqrt(xi[:k][there])
        T = self.span.white[:, : self.directions]
        return sampled(self.problem, self.span, T, V, self.seen.mean, self.seen.largest, rows)

    def chosen(self, values: Vector) -> int:
        """Return how many axes are wanted, of those that hold more than rounding."""
        problem, total = self.problem, float(self.total)
        there = int((values > 1e-12 * np.max(values, initial=0.0)).sum())
        asked = axes_asked(problem)
        everything = problem.rule.first_guess(*problem.sides) is not None
        if asked is not None or everything:
            return min(there, there if asked is None else asked)
        found = problem.rule.choose(values, total, *problem.seen)
        if found is None or found > there:
            held = 100.0 * float(values.sum()) / total if total > 0 else 100.0
            raise ValueError(
                f"{problem.rule!r} cannot be met: all components in the span of {self.span.size} "
                f"points hold {held:.4g} % of the variance. Take a larger n_basis."
            )
        return found

    def projection(
        self,
        values: Vector,
        axes: Matrix,
        certificate: Certificate,
        shares: Vector | None = None,
    ) -> KernelProjection:
        """Return the fitted map: about the mean's projection on the span, or what shares make."""
        problem = self.problem
        mean, height = self.seen.mean * problem.center, self.height
        if shares is not None:
            mean = self.span.matrix @ shares
            height = float(shares @ mean)
        shares = self.shares if shares is None else shares
        axes = axes * signs(self.span.matrix @ axes - mean @ axes)
        if problem.kernel is None:  # rows are kernels to all rows: those to others count nothing
            axes, mean, shares = (self._among_all(part) for part in (axes, mean, shares))
        total = float(self.total)
        return KernelProjection(
            mean=mean,
            components=like(axes, problem.source.reference),
            eigenvalues=values,
            total_variance=total,
            rest=max(0.0, total - float(values.sum())),
            certificate=certificate,
            kernel=problem.kernel,
            basis=self.span.basis.points,
            shift=problem.shift,
            shares=shares * problem.center,
            height=height * problem.center,
        )

    def _among_all(self, part: Any) -> Any:
        at = self.span.basis.at
        assert at is not None  # columns of a kernel matrix
        full = np.zeros((self.problem.source.shape[0], *part.shape[1:]))
        np.add.at(full, at, part)
        return full


def spanned(
    problem: KernelProblem, basis: Basis, known: Source | None = None, dtype: Any = None
) -> Spanned:
    """Walk the rows once, beside a basis; `known` are kernels to it, where they are there."""
    span = Span(problem.kernel, basis, problem.source, dtype)
    known = None if known is None or known.dtype != span.dtype else known
    fold = KernelMoments(span, problem.source, center=problem.center, known=known)
    seen = problem.source.fold(fold)
    noise = measured(problem, span, seen)
    if noise is not None and math.isinf(noise.first):
        return spanned(problem, basis, dtype=np.float64)
    return Spanned(problem, span, seen, noise)


def overflowed(problem: KernelProblem) -> ValueError:
    """Return the error of a kernel that makes NaN or infinity of finite rows."""
    return ValueError(
        f"{problem.kernel!r} gives NaN or infinity between rows. Scale the rows, or change the "
        f"kernel's parameters."
    )


def signs(scores: Matrix) -> Vector:
    """Return the signs that make each column's largest entry positive, as in scikit-learn."""
    if not scores.size:
        return np.ones(scores.shape[1])
    largest = np.argmax(np.abs(scores), axis=0)
    found = np.sign(scores[largest, np.arange(scores.shape[1])])
    return np.where(found == 0.0, 1.0, found)


def with_notes(certificate: Certificate, *notes: str) -> Certificate:
    """Return the certificate with more notes."""
    return replace(certificate, notes=(*certificate.notes, *notes))

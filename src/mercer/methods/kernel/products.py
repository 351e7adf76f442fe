"""What rows and products with the kernel matrix tell of axes in the span of a basis."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, like, orthonormalize
from mercer.arrays.rounding import summed
from mercer.certificate import Certificate, Figure, spacing_of, weakest
from mercer.config import get_config
from mercer.data import ArraySource, StringSource
from mercer.kernels.points import Points, cast_rows
from mercer.landmarks.objective import axes_asked
from mercer.linalg import Coarse, Gram
from mercer.linalg.solvers import Spectrum, krylov
from mercer.linalg.solvers.spectrum import Warm, lengths
from mercer.methods.base import certify, within_gap
from mercer.methods.kernel.exact import Exact, in_memory, positive, projected
from mercer.methods.kernel.expansion import score_residuals
from mercer.methods.kernel.landmark_fit import AFFORDABLE, DRAWN, Spanned
from mercer.methods.kernel.sampled import Sample, pairs_needed
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection

# Axes beyond those wanted that products with the kernel matrix start from.
MORE = 24


def best(found: Spanned, rows: int = DRAWN) -> KernelProjection:
    """Return the best axes in the span, judged as closely as the gap asks for.

    By a sample of so many rows; where a gap is asked for and missed by more rows, then by one
    product with the kernel matrix, where it is affordable.
    """
    xi, Z = found.pairs
    k, gap = found.chosen(xi), found.problem.gap
    sample = found.sample(k, rows)
    certificate = found.certificate(xi[:k], Z[:, :k], sample)
    if gap is not None and certificate.gap > gap:
        sample, certificate = sharper(found, k, gap, sample, certificate)
    fitted = found.projection(xi[:k], Z[:, :k], certificate)
    if gap is None or certificate.gap <= gap or not rows or not _affordable(found):
        return fitted
    return by_products(found, fitted, "none", sample, go_on=False)


def _affordable(found: Spanned) -> bool:
    shape = found.problem.source.shape
    n, d = shape[0], shape[1] if len(shape) > 1 else 1
    fits = 16.0 * n * (d + 2 * MORE) <= get_config().budget / 2
    return found.bounded and fits and float(n) * n * d <= AFFORDABLE


def sharper(
    found: Spanned, k: int, gap: float, sample: Sample | None, certificate: Certificate
) -> tuple[Sample | None, Certificate]:
    """Draw as many rows as the bound at 99.9 % needs, where that is no more than a quarter."""
    xi, Z = found.pairs
    if sample is None or not len(sample.shares):
        return sample, certificate
    inside, held = float(xi[:k].sum()), found.captured(Z[:, :k])
    allowed = held / (1.0 - gap) - max(inside, found.inside(k))
    mean = (allowed / (found.beyond * math.sqrt(k))) ** 2 if allowed > 0 else 0.0
    if mean <= 1.5 * float(np.mean(sample.shares)):
        return sample, certificate
    rows = int(3.0 * 2.0 * pairs_needed(mean) / max(sample.accepted, 1e-12))
    if not DRAWN < rows <= found.problem.source.shape[0] // 4:
        return sample, certificate
    sample = found.sample(k, rows)
    return sample, found.certificate(xi[:k], Z[:, :k], sample)


def by_products(
    found: Spanned,
    fitted: KernelProjection,
    store: str,
    sample: Sample | None,
    *,
    go_on: bool = True,
) -> KernelProjection:
    """Judge the axes of a basis by a product with the kernel matrix; go on to better ones."""
    problem = found.problem
    k = len(fitted.eigenvalues)
    xi, Z = found.pairs
    wide = min(k + MORE, max(k, int((xi > 1e-9 * xi[0]).sum())))
    Q, R = _eigenvectors(problem, found, Z[:, :wide])
    held, kept = _precise(found, in_memory(problem), Exact("krylov", store).kept)
    gram = Gram(held.kernel, held.source, center=held.center, store=kept, along=Q)
    operator = Coarse(gram, _hidden(found, wide, sample))
    start = Warm(Q, gram.first)
    variance = float(fitted.certificate.captured) * float(found.total)
    certificate: Certificate | None = None
    gap, gaps = problem.gap or 0.0, []

    def enough(seen: Spectrum) -> bool:
        """The axes of the basis, or those found by now, are within the gap."""
        nonlocal certificate
        now = certify(operator, seen, k, problem.rng, probe=False)
        certificate = _judged(now, gram, variance, fitted)
        if certificate.gap <= gap:
            return True
        certificate = None
        gaps.append(float(now.gap))
        if not go_on:
            return True
        if len(gaps) > 3 and gaps[-1] > 0.95 * gaps[-4]:
            return True  # more products would tell no more
        return within_gap(replace(problem, source=held.source), operator, seen)

    spectrum = krylov(operator, k, tol=problem.tol, rng=problem.rng, start=start, enough=enough)
    if certificate is None and go_on:
        k = positive(operator, spectrum, k)
        judged = certify(operator, spectrum, k, problem.rng)
        return projected(held, gram, spectrum, k, judged)
    if certificate is None:  # the gap was missed: say by how much
        now = certify(operator, spectrum, k, problem.rng, probe=False)
        certificate = _judged(now, gram, variance, fitted)
    residuals = score_residuals(Q, gram.first, R, xi[:wide])[:k] + operator.rounding
    residuals += _rounding_of_scores(found, gram, xi[:k], Z[:, :k])
    spacing = spacing_of(xi[:k], xi[k:])
    certificate = replace(certificate, residuals=residuals, spacing=spacing, quotients=False)
    total = max(gram.trace, 0.0)
    rest = max(0.0, total - float(xi[:k].sum()))
    return replace(fitted, certificate=certificate, total_variance=total, rest=rest)


def _precise(found: Spanned, problem: KernelProblem, kept: Any) -> tuple[KernelProblem, Any]:
    """Return the problem and what is kept of its matrix, in float64 where float32 loses digits."""
    source = problem.source
    coarse = np.dtype(source.dtype if kept is None else kept) == np.float32
    strings = isinstance(source, StringSource)
    # Float64 rows are not rounded, only what is kept of their kernel.
    suits = source.dtype == np.float64 or found.span.suits_float32(found.problem.source)
    if strings or not coarse or (suits and _within_reach(found)):
        return problem, kept
    n = source.shape[0]
    if kept is not None:
        kept = np.float64 if 4.0 * n * (n + source.shape[1]) <= get_config().budget else None
    if source.dtype == np.float32 and source.elsewhere is not None:
        rows = source.map(lambda block: cast(block.rows, np.float64), source.shape[1], np.float64)
        problem = replace(problem, source=rows)
    elif source.dtype == np.float32:
        rows = ArraySource(cast(source.collect(), np.float64)).weighted(source.weights)
        problem = replace(problem, source=rows)
    return problem, kept


def _within_reach(found: Spanned) -> bool:
    """Tell whether float32 products would leave most of the gap that is asked for.

    By the roundings of kernel values between points of the basis.
    """
    problem, span = found.problem, found.span
    assert problem.kernel is not None
    y, n = Points(cast_rows(span.basis.points, np.float64)), problem.source.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        values = float(np.max(problem.kernel.roundings(y, y, np.float32), initial=0.0))
    roundings = values + summed(n, np.float32, problem.source.reference)
    coarse = float(np.finfo(np.float32).eps) * roundings * found.own
    k = axes_asked(problem) or found.span.rank
    held = float(found.pairs[0][:k].sum())
    return math.sqrt(k) * coarse <= (problem.gap or 0.0) * held / 4


def _rounding_of_scores(found: Spanned, gram: Gram, values: Vector, Z: Matrix) -> Vector:
    """Return what rounding of scores v = HZ adds to ‖Kv − λv‖/‖v‖: 2 λ₁ ‖δv‖/‖v‖.

    A row of H is off by no more than the kernel values of its row of K, which has all points.
    """
    among = math.sqrt(float(np.trace(found.span.matrix)) / gram.amount)
    sizes = np.sqrt(np.maximum(values, 1e-300) / gram.divisor)
    return np.asarray(values[0] * gram.rounding * among * lengths(Z) / sizes)


def _judged(now: Certificate, gram: Gram, variance: float, fitted: KernelProjection) -> Certificate:
    """Return what products say of the basis's axes, which hold this variance."""
    confidence = fitted.certificate.captured.confidence
    captured = Figure(variance / (gram.trace + gram.coarse), "bound", confidence)
    note = "Components in the span of a basis, judged by products with the kernel matrix."
    return replace(
        now,
        captured=Figure(float(captured), **weakest(captured, now.captured)),
        eigenvalues=fitted.eigenvalues,
        notes=(note,),
    )


def _hidden(found: Spanned, wide: int, sample: Sample | None) -> Figure | None:
    """Bound what the best axes of a basis do not see: ξ_{ℓ+1} + ‖E‖_F."""
    if sample is None:
        return None
    xi = found.pairs[0]
    next_one = float(xi[wide]) if wide < len(xi) else 0.0
    norm = sample.norm(found.beyond)
    return Figure(next_one + float(norm), "bound", norm.confidence)


def _eigenvectors(problem: KernelProblem, found: Spanned, axes: Matrix) -> tuple[Array, Matrix]:
    """Return Q and R of the components' scores over the rows, each times √w."""
    source = problem.source
    A = like(axes, source.reference)
    mean = like(found.seen.mean * problem.center, source.reference)
    features = found.span.features(source, np.float64)
    rows = features.map(lambda block: (block.rows - mean) @ A, axes.shape[1]).collect()
    if source.weights is not None:
        rows = rows * like(np.sqrt(source.weights), rows)[:, None]
    return orthonormalize(cast(rows, np.float64))

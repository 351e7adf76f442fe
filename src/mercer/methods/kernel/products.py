"""Evidence about components in the span of landmarks from products with the kernel matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import Array, Matrix, Vector, cast, like, orthonormalize
from mercer.arrays.rounding import summed
from mercer.certificate import Axes, Evidence, Figure, spacing_of, spectral_evidence
from mercer.config import get_config
from mercer.data import ArraySource, StringSource
from mercer.kernels.points import Points, cast_rows
from mercer.linalg import Gram, LowPrecisionGram
from mercer.linalg.operator import least_certain
from mercer.linalg.solvers import Spectrum, krylov
from mercer.linalg.solvers.spectrum import WarmStart, column_norms
from mercer.methods.kernel.exact import Exact, count_positive, exact_axes, rows_in_memory
from mercer.methods.kernel.expansion import score_residuals
from mercer.methods.kernel.landmark_fit import AFFORDABLE, SAMPLE_ROWS, LandmarkFit
from mercer.methods.kernel.residual_sample import ResidualSample, pairs_needed
from mercer.methods.solving import within_gap
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection

# Components beyond those wanted from which products with the kernel matrix start.
EXTRA = 24


def best_axes(fit: LandmarkFit, rows: int = SAMPLE_ROWS) -> Axes:
    """Return the best components in the span, judged as closely as the gap requires.

    By a sample of rows; if the required gap is missed, by a larger sample; then, if affordable, by
    one product with the kernel matrix.
    """
    (values, components), gap = fit.best, fit.problem.gap
    k = len(values)
    sample = fit.sample(k, rows)
    axes = fit.axes(values, components, sample)
    if gap is None or axes.evidence.gap <= gap:
        return axes
    sample, evidence = sharpen(fit, k, gap, sample, axes.evidence)
    axes = replace(axes, evidence=evidence)
    if evidence.gap <= gap or not rows or not _affordable(fit):
        return axes
    return judge_by_products(fit, axes, "none", sample, improve=False)


def _affordable(fit: LandmarkFit) -> bool:
    shape = fit.problem.source.shape
    n, d = shape[0], shape[1] if len(shape) > 1 else 1
    fits = 16.0 * n * (d + 2 * EXTRA) <= get_config().budget / 2
    return fit.bounded and fits and float(n) * n * d <= AFFORDABLE


def sharpen(
    fit: LandmarkFit, k: int, gap: float, sample: ResidualSample | None, evidence: Evidence
) -> tuple[ResidualSample | None, Evidence]:
    """Draw as many rows as the bound at 99.9 % needs, if that is at most a quarter of them."""
    values, components = fit.pairs
    if sample is None or not len(sample.shares):
        return sample, evidence
    explained = fit.explained(components[:, :k])
    allowed = explained / (1.0 - gap) - max(float(values[:k].sum()), fit.inside(k))
    mean = (allowed / (fit.outside * math.sqrt(k))) ** 2 if allowed > 0 else 0.0
    if mean <= 1.5 * float(np.mean(sample.shares)):
        return sample, evidence
    rows = int(3.0 * 2.0 * pairs_needed(mean) / max(sample.accepted, 1e-12))
    if not SAMPLE_ROWS < rows <= fit.problem.source.shape[0] // 4:
        return sample, evidence
    sample = fit.sample(k, rows)
    return sample, fit.evidence(values[:k], components[:, :k], sample)


def judge_by_products(
    fit: LandmarkFit,
    axes: Axes,
    store: str,
    sample: ResidualSample | None,
    *,
    improve: bool = True,
) -> Axes:
    """Judge components by a product with the kernel matrix; if need be, go on to better ones."""
    problem, k = fit.problem, len(axes.evidence.eigenvalues)
    values, components = fit.pairs
    wide = min(k + EXTRA, max(k, int((values > 1e-9 * values[0]).sum())))
    Q, R = _score_basis(problem, fit, components[:, :wide])
    loaded, stored = _precise(fit, rows_in_memory(problem), Exact("krylov", store).stored)
    gram = Gram(loaded.kernel, loaded.source, center=loaded.center, store=stored, along=Q)
    operator = LowPrecisionGram(gram, _unseen(fit, wide, sample))
    start = WarmStart(Q, gram.first)
    judged: Evidence | None = None
    gap, gaps = problem.gap or 0.0, []

    def enough(spectrum: Spectrum) -> bool:
        """The components of the landmarks, or the current ones, are within the gap."""
        nonlocal judged
        current = spectral_evidence(operator, spectrum, k, problem.rng, probe=False)
        judged = _about_landmarks(current, axes.evidence)
        if judged.gap <= gap:
            return True
        judged = None
        gaps.append(float(current.gap))
        if not improve:
            return True
        if len(gaps) > 3 and gaps[-1] > 0.95 * gaps[-4]:
            return True  # more products would not help
        return within_gap(replace(problem, source=loaded.source), operator, spectrum)

    spectrum = krylov(operator, k, tol=problem.tol, rng=problem.rng, start=start, enough=enough)
    if judged is None and improve:
        k = count_positive(operator, spectrum, k)
        evidence = spectral_evidence(operator, spectrum, k, problem.rng)
        return exact_axes(loaded, gram, spectrum, k, evidence)
    if judged is None:  # the gap was missed: say by how much
        current = spectral_evidence(operator, spectrum, k, problem.rng, probe=False)
        judged = _about_landmarks(current, axes.evidence)
    residuals = score_residuals(Q, gram.first, R, values[:wide])[:k] + operator.rounding
    residuals += _score_rounding(fit, gram, values[:k], components[:, :k])
    spacing = spacing_of(values[:k], values[k:])
    judged = replace(judged, residuals=residuals, spacing=spacing, rayleigh=False)
    total = max(gram.trace, 0.0)
    rest = max(0.0, total - float(values[:k].sum()))
    assert isinstance(axes.projection, KernelProjection)
    return Axes(replace(axes.projection, total_variance=total, rest=rest), judged)


def _about_landmarks(current: Evidence, before: Evidence) -> Evidence:
    """Return what products say about the components of the landmarks."""
    certain = least_certain(before.explained, current.explained)
    return replace(
        current,
        explained=Figure(float(before.explained), **certain),
        eigenvalues=before.eigenvalues,
        notes=("Components in the span of a basis, judged by products with the kernel matrix.",),
    )


def _precise(fit: LandmarkFit, problem: KernelProblem, stored: Any) -> tuple[KernelProblem, Any]:
    """Return the problem, and the precision of its stored matrix: float64 if float32 is lossy."""
    source = problem.source
    coarse = np.dtype(source.dtype if stored is None else stored) == np.float32
    strings = isinstance(source, StringSource)
    # Float64 rows are not rounded, only their stored kernel values.
    suits = source.dtype == np.float64 or fit.span.suits_float32(fit.problem.source)
    if strings or not coarse or (suits and _float32_suffices(fit)):
        return problem, stored
    n = source.shape[0]
    if stored is not None:
        stored = np.float64 if 4.0 * n * (n + source.shape[1]) <= get_config().budget else None
    if source.dtype == np.float32 and source.remote is not None:
        rows = source.map(lambda block: cast(block.rows, np.float64), source.shape[1], np.float64)
        problem = replace(problem, source=rows)
    elif source.dtype == np.float32:
        rows = ArraySource(cast(source.collect(), np.float64)).weighted(source.weights)
        problem = replace(problem, source=rows)
    return problem, stored


def _float32_suffices(fit: LandmarkFit) -> bool:
    """Tell whether the rounding of float32 products would leave most of the required gap.

    Judged by the roundings of kernel values between landmarks.
    """
    problem, span = fit.problem, fit.span
    assert problem.kernel is not None
    y, n = Points(cast_rows(span.basis.points, np.float64)), problem.source.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        errors = float(np.max(problem.kernel.roundings(y, y, np.float32), initial=0.0))
    errors += summed(n, np.float32, problem.source.reference)
    rounding = float(np.finfo(np.float32).eps) * errors * fit.diag_total
    k = problem.n_leading or fit.span.rank
    explained = float(fit.pairs[0][:k].sum())
    return math.sqrt(k) * rounding <= (problem.gap or 0.0) * explained / 4


def _score_rounding(fit: LandmarkFit, gram: Gram, values: Vector, Z: Matrix) -> Vector:
    """Return what the rounding of scores v = HZ adds to ‖Kv − λv‖/‖v‖: 2 λ₁ ‖δv‖/‖v‖.

    A row of H is off by no more than the kernel values of its row of K, which has all points.
    """
    among = math.sqrt(float(np.trace(fit.span.matrix)) / gram.amount)
    sizes = np.sqrt(np.maximum(values, 1e-300) / gram.divisor)
    return np.asarray(values[0] * gram.rounding * among * column_norms(Z) / sizes)


def _unseen(fit: LandmarkFit, wide: int, sample: ResidualSample | None) -> Figure | None:
    """Bound what the leading components of the landmarks do not see: ξ_{ℓ+1} + ‖E‖_F."""
    if sample is None:
        return None
    values, norm = fit.pairs[0], sample.norm(fit.outside)
    following = float(values[wide]) if wide < len(values) else 0.0
    return norm.like(following + float(norm))


def _score_basis(
    problem: KernelProblem, fit: LandmarkFit, components: Matrix
) -> tuple[Array, Matrix]:
    """Return Q and R of the scores over the rows, weighted by √w."""
    source = problem.source
    A = like(components, source.reference)
    mean = like(fit.moments.mean * problem.center, source.reference)
    features = fit.span.features(source, np.float64)
    rows = features.map(lambda block: (block.rows - mean) @ A, components.shape[1]).collect()
    if source.weights is not None:
        rows = rows * like(np.sqrt(source.weights), rows)[:, None]
    return orthonormalize(cast(rows, np.float64))

"""Evidence about components in the span of landmarks from products with the kernel matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import cast, column_norms, like, orthonormalize
from mercer.arrays.linear import summed
from mercer.certificate import Axes, Evidence, Figure, spacing_of, spectral_evidence
from mercer.config import get_config
from mercer.data import ArraySource, StringSource
from mercer.kernels.points import Points, cast_rows
from mercer.linalg import Gram, LowPrecisionGram
from mercer.linalg.operator import least_certain
from mercer.linalg.solvers import Spectrum, krylov
from mercer.linalg.solvers.spectrum import WarmStart
from mercer.methods.base import within_gap
from mercer.methods.kernel.exact import Exact, count_positive, exact_axes, rows_in_memory
from mercer.methods.kernel.expansion import score_residuals
from mercer.methods.kernel.landmark_fit import LandmarkFit, ResidualSample
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection

# Components beyond those wanted from which products with the kernel matrix start.
EXTRA = 24
_BY_PRODUCTS = "Components in the span of a basis, certified by kernel matrix products."


def judge_by_products(
    fit: LandmarkFit,
    axes: Axes,
    store: str,
    sample: ResidualSample | None,
    *,
    improve: bool = True,
) -> Axes:
    """Certify components by a product with the kernel matrix; improve them if needed."""
    problem, before = fit.problem, axes.evidence
    k, (values, components) = len(before.eigenvalues), fit.pairs
    wide = min(k + EXTRA, max(k, int((values > 1e-9 * values[0]).sum())))
    source = problem.source
    A = like(components[:, :wide], source.reference)
    mean = like(fit.moments.mean * problem.center, source.reference)
    features = fit.span.features(source, np.float64)
    scores = features.map(lambda block: (block.rows - mean) @ A, wide).collect()
    if source.weights is not None:
        scores = scores * like(np.sqrt(source.weights), scores)[:, None]
    Q, R = orthonormalize(cast(scores, np.float64))
    loaded, stored = _precise(fit, rows_in_memory(problem), Exact("krylov", store).stored)
    gram = Gram(loaded.kernel, loaded.source, center=loaded.center, store=stored, along=Q)
    unseen = None
    if sample is not None:  # what the leading components of the landmarks do not see: ξ + ‖E‖_F
        norm = sample.norm(fit.outside)
        following = float(values[wide]) if wide < len(values) else 0.0
        unseen = norm.like(following + float(norm))
    operator = LowPrecisionGram(gram, unseen)
    start = WarmStart(Q, gram.first)
    judged: Evidence | None = None
    gap, gaps = problem.gap or 0.0, []

    def judge(spectrum: Spectrum) -> Evidence:
        """Return the evidence of products about the components of the landmarks."""
        current = spectral_evidence(operator, spectrum, k, problem.rng, probe=False)
        gaps.append(float(current.gap))
        certain = least_certain(before.explained, current.explained)
        return replace(
            current,
            explained=Figure(float(before.explained), **certain),
            eigenvalues=before.eigenvalues,
            notes=(_BY_PRODUCTS,),
        )

    def enough(spectrum: Spectrum) -> bool:
        """The components of the landmarks, or the current ones, are within the gap."""
        nonlocal judged
        judged = judge(spectrum)
        if judged.gap <= gap:
            return True
        judged = None
        if not improve or (len(gaps) > 3 and gaps[-1] > 0.95 * gaps[-4]):
            return True  # more products would not help
        return within_gap(replace(problem, source=loaded.source), operator, spectrum)

    spectrum = krylov(operator, k, tol=problem.tol, rng=problem.rng, start=start, enough=enough)
    if judged is None and improve:
        k = count_positive(operator, spectrum, k)
        evidence = spectral_evidence(operator, spectrum, k, problem.rng)
        return exact_axes(loaded, gram, spectrum, k, evidence)
    if judged is None:  # the gap was missed: say by how much
        judged = judge(spectrum)
    residuals = score_residuals(Q, gram.first, R, values[:wide])[:k] + operator.rounding
    # The rounding of scores v = HZ adds 2 λ₁ ‖δv‖/‖v‖: a row of H is off by no more than the kernel
    # values of its row of K, which has all points.
    among = math.sqrt(float(np.trace(fit.span.matrix)) / gram.amount)
    sizes = np.sqrt(np.maximum(values[:k], 1e-300) / gram.divisor)
    residuals += values[0] * gram.rounding * among * column_norms(components[:, :k]) / sizes
    spacing = spacing_of(values[:k], values[k:])
    judged = replace(
        judged, residuals=residuals, residuals_kind="bound", spacing=spacing, rayleigh=False
    )
    total = max(gram.trace, 0.0)
    rest = max(0.0, total - float(values[:k].sum()))
    assert isinstance(axes.projection, KernelProjection)
    return Axes(replace(axes.projection, total_variance=total, rest=rest), judged)


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
        source = source.map(lambda block: cast(block.rows, np.float64), source.shape[1], np.float64)
    elif source.dtype == np.float32:
        source = ArraySource(cast(source.collect(), np.float64)).weighted(source.weights)
    return replace(problem, source=source), stored


def _float32_suffices(fit: LandmarkFit) -> bool:
    """Return whether rounding of float32 products, as between landmarks, leaves most of the gap."""
    problem, span = fit.problem, fit.span
    assert problem.kernel is not None
    y, n = Points(cast_rows(span.basis.points, np.float64)), problem.source.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        errors = float(np.max(problem.kernel.roundings(y, y, np.float32), initial=0.0))
    errors += summed(n, np.float32, problem.source.reference)
    rounding = float(np.finfo(np.float32).eps) * errors * fit.diag_total
    k = problem.n_leading or span.rank
    explained = float(fit.pairs[0][:k].sum())
    return math.sqrt(k) * rounding <= (problem.gap or 0.0) * explained / 4

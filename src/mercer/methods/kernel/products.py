"""Components over all rows, and evidence from products with the kernel matrix."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    column_norms,
    column_signs,
    eigh,
    like,
    namespace,
    orthonormalize,
    summed,
    to_numpy,
)
from mercer.certificate import Axes, Evidence, Figure, spacing_of, spectral_evidence
from mercer.config import get_config
from mercer.data import ArraySource, StringSource
from mercer.kernels.points import Points, cast_rows
from mercer.linalg import Gram, LowPrecisionGram, Operator
from mercer.linalg.operator import least_certain
from mercer.linalg.solvers import Spectrum, krylov, rayleigh_ritz, ritz_pairs
from mercer.linalg.solvers.spectrum import WarmStart, random_basis
from mercer.methods.base import within_gap
from mercer.methods.kernel.exact import Exact, count_positive, exact_axes, rows_in_memory
from mercer.methods.kernel.landmark_fit import (
    AFFORDABLE,
    SAMPLE_ROWS,
    LandmarkFit,
    ResidualSample,
    add_rows,
)
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection, span_variance

# Components beyond those wanted from which products with the kernel matrix start.
EXTRA = 24
_BY_PRODUCTS = "Components in the span of a basis, certified by kernel matrix products."
# Random directions that show what components learned from all rows leave out.
_PROBES = 4
# Components that explain less than others by more than this share have not been learned.
BETTER = 1e-4


def expand_over_rows(
    fit: LandmarkFit, values: Vector, components: Matrix, mean_coef: Vector
) -> Axes:
    """Return Σ_i a_i (Φ(x_i) − c), a_i = w_i (h_i − K_y s)·components, about c = Σ s_j Φ(y_j)."""
    problem, k = fit.problem, len(values)
    source, center = problem.source, fit.span.matrix @ mean_coef
    A = like(np.column_stack([components, mean_coef]), source.reference)
    offset, mean_sq = like(center, source.reference), float(mean_coef @ center)
    features = fit.span.features(source, np.float64)
    products = features.map(lambda block: (block.rows - offset) @ A, k + 1).collect()
    rows, means = products[:, :k], to_numpy(products[:, k]) + mean_sq
    signs = column_signs(to_numpy(rows))
    if source.weights is not None:  # as if each row stood there as often as it counts
        signs = column_signs(to_numpy(rows) * (source.weights > 0)[:, None])
        rows = rows * like(source.weights, rows)[:, None]
    rows = rows * like(signs, rows)
    projection = KernelProjection(
        mean=means,
        components=rows,
        eigenvalues=values,
        total_variance=fit.total_upper,
        rest=max(0.0, fit.total_upper - float(values.sum())),
        kernel=problem.kernel,
        basis=None if problem.kernel is None else source.load(),
        shift=problem.shift,
        mean_coef=np.zeros(source.shape[0]),
        mean_sq=mean_sq,
    )
    sums = to_numpy(rows).sum(axis=0) if problem.center else np.zeros(k)
    width = source.shape[1] if len(source.shape) > 1 else 1
    if float(source.shape[0]) ** 2 * width <= AFFORDABLE:
        projection, evidence = _judge_expansion(fit, sums, projection)
    else:
        projection, evidence = _judge_in_span(fit, components * signs, mean_coef, projection)
    # The center is subtracted from components as often as their coefficients sum to. Its points
    # are rows, or are added to the rows.
    at, points, shares = fit.span.basis.at, fit.span.basis.points, -np.outer(mean_coef, sums)
    if at is not None:
        add_rows(projection.mean_coef, at, mean_coef)
        rows = rows + like(add_rows(np.zeros(rows.shape), at, shares), rows)
        return Axes(replace(projection, components=rows), evidence)
    projection = replace(
        projection,
        basis=stack_points(points, projection.basis),
        components=namespace(rows).concat([like(shares, rows), rows]),
        mean=np.concatenate([center, projection.mean]),
        mean_coef=np.concatenate([mean_coef, projection.mean_coef]),
    )
    return Axes(projection, evidence)


def stack_points(points: Any, rows: Any) -> Any:
    """Return points with rows below them."""
    if isinstance(points, list):
        return [*points, *rows]
    if hasattr(points, "tocsr") or hasattr(rows, "tocsr"):
        return scipy.sparse.vstack([points, rows], format="csr")
    return namespace(points).concat([points, rows])


def _judge_expansion(
    fit: LandmarkFit, sums: Vector, projection: KernelProjection
) -> tuple[KernelProjection, Evidence]:
    """Certify the components by a product with the kernel matrix.

    They are sums over the rows, minus as many centers as their coefficients sum to: the center is
    one more row.
    """
    problem, k, values = fit.problem, len(sums), projection.eigenvalues
    gram = Gram(problem.kernel, problem.source, center=problem.center)
    roots = to_numpy(gram.roots)
    b = projection.components / like(np.where(roots > 0, roots, 1.0), gram.reference)
    center = projection.mean * roots[:, 0]
    Q, R = np.linalg.qr(np.vstack([to_numpy(b), -sums]))
    product = to_numpy(gram.times(like(Q[:-1], gram.reference))) + np.outer(center, Q[-1])
    T = Q.T @ np.vstack([product, center @ Q[:-1] + projection.mean_sq * Q[-1:]])
    centered = to_numpy(gram.project(like(product, gram.reference)))
    explained = variance_in_span(T, centered, gram.rounding * gram.divisor) / gram.divisor
    overlaps, scores = R.T @ T @ R, like(centered @ R, gram.reference)
    Q, R = orthonormalize(scores)
    evidence = score_evidence(
        gram,
        (Q, gram.matmat(Q), R),
        values,
        Figure(explained, "bound" if fit.bounded else "estimate"),
        problem.rng,
        others=fit.pairs[0][k:],
        bounds=(fit.optimum(k),) if fit.bounded else (),
        note="Components are sums over all rows, certified by kernel matrix products.",
    )
    total = max(gram.trace, 0.0)
    rest = max(0.0, total - float(values.sum()))
    return replace(projection, total_variance=total, rest=rest, overlaps=overlaps), evidence


def _judge_in_span(
    fit: LandmarkFit, components: Matrix, mean_coef: Vector, projection: KernelProjection
) -> tuple[KernelProjection, Evidence]:
    """Certify the components by their projection on the span of the landmarks."""
    moments, span = fit.moments, fit.span
    difference = moments.mean - span.matrix @ mean_coef
    cross = moments.scatter + moments.weight * np.outer(moments.mean, difference)
    sums = moments.weight * (difference @ components)
    near = span.inverse @ cross @ components - np.outer(mean_coef, sums)
    evidence = fit.evidence(projection.eigenvalues, near, fit.sample(near.shape[1], SAMPLE_ROWS))
    evidence = replace(evidence, explained=Figure(evidence.explained, "estimate")).annotated(
        "Components are sums over all rows, certified within the span of the basis."
    )
    return replace(projection, overlaps=near.T @ span.matrix @ near), evidence


def score_evidence(
    gram: Gram,
    scores: tuple[Array, Array, Matrix],
    values: Vector,
    explained: Figure,
    rng: np.random.Generator,
    *,
    note: str,
    others: Vector | None = None,
    bounds: tuple[Figure, ...] = (),
) -> Evidence:
    """Return evidence about components whose scores are WR, given orthonormal W, KW and R.

    W may have further columns. `others` are the eigenvalues that follow, by default Ritz values.
    """
    W, product, R = scores
    k = len(values)
    spectrum = ritz_pairs(gram, W, product, k)
    evidence = spectral_evidence(gram, spectrum, k, rng, probe=False)
    assert spectrum.ritz is not None
    others = spectrum.ritz[k:] if others is None else others
    bounds = (*evidence.bounds, *bounds)
    evidence = replace(
        evidence,
        explained=explained,
        bounds=tuple(Figure(bound, explained.kind, bound.confidence) for bound in bounds),
        residuals=score_residuals(W[:, :k], product[:, :k], R, values) + gram.rounding,
        eigenvalues=values,
        rayleigh=False,
        spacing=spacing_of(values, others),
        notes=(note,),
    )
    likely = max(likely_optimum(spectrum, others, k), float(explained))
    return replace(evidence, likely=min(likely, float(evidence.optimum)))


def likely_optimum(spectrum: Spectrum, others: Vector, k: int) -> float:
    """Estimate the most that k components explain: θ + ‖r‖²/s.

    s is the distance to the next eigenvalue, which is known for the landmarks, not the matrix.
    """
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    spacing = values - (float(others[0]) if len(others) else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(spacing > residuals, residuals**2 / spacing, residuals)
    return float((values + more).sum())


def score_residuals(Q: Array, product: Array, R: Matrix, values: Vector) -> Vector:
    """Return ‖Kv − λv‖ of normalized scores v = QR, given KQ."""
    unit = R / np.maximum(column_norms(R), 1e-300)
    return column_norms(to_numpy(product) @ unit - (to_numpy(Q) @ unit) * values)


def variance_in_span(T: Matrix, product: Matrix, rounding: float) -> float:
    """Bound tr(T⁻¹M) from below: T = QᵀKQ and M = QᵀK²Q, of the product KQ, Q orthonormal."""
    values, U = eigh((T + T.T) / 2)
    rotated = product @ U
    return span_variance(values, np.einsum("ij,ij->j", rotated, rotated), rounding)


def expansion_evidence(
    operator: Operator,
    A: Array,
    rng: np.random.Generator,
    *,
    converged: bool,
    notes: tuple[str, ...],
) -> tuple[Evidence, Matrix]:
    """Certify components Σ_i a_i Φ̃(x_i), the columns of A, by products with the kernel matrix.

    What their span explains; what no others can exceed, from the space of their scores KA; and the
    residual of each component w in feature space, ‖Cw − λw‖² = dᵀKd, d = Ka − λa. Also returns
    their inner products, over the operator's divisor.
    """
    k = int(A.shape[1])
    Q, R = orthonormalize(operator.project(A))
    product, R = operator.matmat(Q), to_numpy(R)
    T, V = to_numpy(Q.T @ product), product @ like(R, product)
    overlaps = R.T @ T @ R
    explained = variance_in_span(T, to_numpy(product), operator.rounding)
    squares = np.maximum(np.diag(overlaps), 1e-300)
    values = np.einsum("ij,ij->j", to_numpy(V), to_numpy(V)) / squares
    others = random_basis(operator, min(_PROBES, operator.size), rng)
    for _ in range(2):  # two steps of the power method show what the components leave out
        others = operator.matmat(orthonormalize(others)[0])
    basis = namespace(V).concat([V, others], axis=1)[:, : operator.rank]
    spectrum = rayleigh_ritz(operator, orthonormalize(basis)[0], k)
    evidence = spectral_evidence(operator, spectrum, k, rng)
    assert spectrum.ritz is not None
    difference, size, error = V - A * like(values, V), column_norms(to_numpy(A)), operator.rounding
    residuals = column_norms(to_numpy(difference)) / size + error  # of a as a vector
    if operator.psd:  # in feature space; K and d are off by at most ρ and ρ‖a‖
        product = to_numpy(operator.matmat(difference))
        energy = np.einsum("ij,ij->j", to_numpy(difference), product)
        energy = np.maximum(energy, 0.0) + error * column_norms(to_numpy(difference)) ** 2
        largest = np.sqrt(max(float(evidence.optimum), 0.0))
        residuals = (np.sqrt(energy) + largest * error * size) / np.sqrt(squares) + error
    kind = "bound" if operator.psd else "estimate"
    evidence = replace(
        evidence,
        explained=Figure(explained, kind, evidence.explained.confidence),
        bounds=tuple(Figure(bound, kind, bound.confidence) for bound in evidence.bounds),
        residuals=residuals,
        eigenvalues=values,
        spacing=spacing_of(values, spectrum.ritz[k:]),
        # Components that no longer change may not be the leading ones.
        converged=converged and float(spectrum.values[:k].sum()) <= (1.0 + BETTER) * explained,
        notes=notes,
    )
    return evidence, overlaps


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

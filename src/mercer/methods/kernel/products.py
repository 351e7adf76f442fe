"""Components over all rows, and evidence from products with the kernel matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    column_norms,
    column_signs,
    eigh,
    like,
    namespace,
    orthonormalize,
    stack_rows,
    to_numpy,
)
from mercer.certificate import Axes, Evidence, Figure, spacing_of, spectral_evidence
from mercer.linalg import Gram, Operator
from mercer.linalg.solvers import rayleigh_ritz
from mercer.linalg.solvers.spectrum import random_basis
from mercer.methods.kernel.landmark_fit import (
    AFFORDABLE,
    LandmarkFit,
    add_rows,
)
from mercer.projection import KernelProjection, span_variance

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
        return stack_rows([points, rows])
    return namespace(points).concat([points, rows])


def _judge_expansion(
    fit: LandmarkFit, sums: Vector, projection: KernelProjection
) -> tuple[KernelProjection, Evidence]:
    """Certify the components by a product with the kernel matrix.

    They are sums over the rows, minus as many centers as their coefficients sum to: the center is
    one more row.
    """
    problem, k, values = fit.problem, len(sums), projection.eigenvalues
    gram = Gram(problem.kernel, problem.source, center=problem.center, dtype=np.float64)
    roots = to_numpy(gram.roots)
    b = projection.components / like(np.where(roots > 0, roots, 1.0), gram.reference)
    center = projection.mean * roots[:, 0]
    Q, R = np.linalg.qr(np.vstack([to_numpy(b), -sums]))
    product = to_numpy(gram.times(like(Q[:-1], gram.reference))) + np.outer(center, Q[-1])
    T = Q.T @ np.vstack([product, center @ Q[:-1] + projection.mean_sq * Q[-1:]])
    centered = to_numpy(gram.project(like(product, gram.reference)))
    explained = variance_in_span(T, centered, gram.rounding * gram.divisor) / gram.divisor
    evidence = fit.evidence(values, np.zeros((fit.span.size, k)))
    total = max(gram.trace, 0.0)
    certain = evidence.explained
    evidence = replace(
        evidence,
        explained=certain.like(explained),
        total=(
            certain.like(max(0.0, total - gram.rounding)),
            certain.like(total + gram.rounding),
        ),
        notes=("Components are sums over all rows, judged by a kernel matrix product.",),
    )
    rest = max(0.0, total - float(values.sum()))
    overlaps = R.T @ T @ R
    return replace(projection, total_variance=total, rest=rest, overlaps=overlaps), evidence


def _judge_in_span(
    fit: LandmarkFit, components: Matrix, mean_coef: Vector, projection: KernelProjection
) -> tuple[KernelProjection, Evidence]:
    """Certify the components by the scores of the rows, along the span of the landmarks.

    Components Σ a_i Φ̃(x_i) explain no less than the part of the rows along orthonormal vectors of
    the span of a: tr((aᵀK̃a)⁻¹aᵀK̃²a) ≥ tr((aᵀa)⁻¹aᵀK̃a). An estimate if they are not centered at
    the mean of the rows.
    """
    moments, span, values = fit.moments, fit.span, projection.eigenvalues
    difference = fit.mean - span.matrix @ mean_coef
    cross = fit.scatter + moments.weight * np.outer(fit.mean, difference)
    sums = moments.weight * (difference @ components)
    near = span.inverse @ cross @ components - np.outer(mean_coef, sums)
    width, U = eigh(components.T @ fit.scatter @ components)
    positive = width > 1e-12 * np.max(width, initial=0.0)
    G = fit.scatter @ components @ (U[:, positive] / np.sqrt(width[positive]))
    evidence = fit.evidence(values, *fit.explained_by(G))
    evidence = evidence.annotated("Components are sums over all rows, judged in that span.")
    if np.any(np.abs(sums) > 1e-9 * moments.weight):
        evidence = replace(evidence, explained=Figure(evidence.explained, "estimate"))
    return replace(projection, overlaps=near.T @ span.matrix @ near), evidence


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
        bounds={name: Figure(b, kind, b.confidence) for name, b in evidence.bounds.items()},
        residuals=residuals,
        eigenvalues=values,
        spacing=spacing_of(values, spectrum.ritz[k:]),
        # Components that no longer change may not be the leading ones.
        converged=converged and float(spectrum.values[:k].sum()) <= (1.0 + BETTER) * explained,
        notes=notes,
    )
    return evidence, overlaps

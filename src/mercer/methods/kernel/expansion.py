"""Axes that are sums over all rows, with coefficients that a basis gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    eigh,
    like,
    namespace,
    orthonormalize,
    to_numpy,
)
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.linalg import Gram, Operator
from mercer.linalg.gram import strip_rows
from mercer.linalg.solvers import Spectrum, rayleigh_ritz, ritz_pairs
from mercer.linalg.solvers.spectrum import lengths as spread
from mercer.linalg.solvers.spectrum import random_basis
from mercer.methods.base import Cost, Size, certify
from mercer.methods.kernel.basis import OnBasis
from mercer.methods.kernel.landmark_fit import AFFORDABLE, DRAWN, Spanned, signs, with_notes
from mercer.projection import KernelProjection
from mercer.projection.expansion import held_by

# Random directions that tell what axes learnt from all rows leave out.
_BESIDE = 4
# Axes that hold less than others by more than this share have not been learnt.
BETTER = 1e-4


class OverRows(OnBasis):
    """A method on a basis whose axes may be sums over all rows, which new rows are compared to."""

    on: str

    @property
    def keeps_rows(self) -> bool:
        return self.on == "rows"

    def cost(self, size: Size) -> Cost:
        cost = super().cost(size)
        if not self.keeps_rows:
            return cost
        pairs = float(size.n) * size.n * size.d
        held = 8.0 * size.n * (size.d + 4 * size.axes)
        more = 3 * pairs if pairs <= AFFORDABLE else 0.0  # the certificate's products
        held += 2 * 8.0 * size.n * strip_rows(size.n, 8, on_device=size.on_device) if more else 0.0
        return Cost(cost.passes + 2, cost.products + more, cost.factor, cost.memory + held)

    def require_form(self) -> None:
        """Refuse what new rows cannot be compared to."""
        if self.on not in ("rows", "basis"):
            raise ValueError(f"{self!r}: on={self.on!r} is not one of 'rows', 'basis'.")


def over_rows(found: Spanned, values: Vector, axes: Matrix, shares: Vector) -> KernelProjection:
    """Return the map whose axis is Σ_i a_i (Φ(x_i) − c), a_i = w_i (h_i − K_y s)·axes.

    About the centre c = Σ s_j Φ(y_j), of points of the basis.
    """
    problem = found.problem
    source, middle = problem.source, found.span.matrix @ shares
    A, s = like(axes, source.reference), like(shares, source.reference)
    features = found.span.features(source, np.float64)
    means = features.map(lambda block: (block.rows @ s)[:, None], 1).collect()
    less = like(middle, source.reference)
    rows = features.map(lambda block: (block.rows - less) @ A, axes.shape[1]).collect()
    turned = signs(to_numpy(rows))
    if source.weights is not None:  # as if each stood there as often as it counts
        turned = signs(to_numpy(rows) * (source.weights > 0)[:, None])
        rows = rows * like(source.weights, rows)[:, None]
    rows = rows * like(turned, rows)
    projection = KernelProjection(
        mean=to_numpy(means)[:, 0],
        components=rows,
        eigenvalues=values,
        total_variance=float(found.total),
        rest=0.0,
        certificate=found.certificate(values, axes),
        kernel=problem.kernel,
        basis=None if problem.kernel is None else source.whole(),
        shift=problem.shift,
        shares=np.zeros(source.shape[0]),
        height=float(shares @ middle),
    )
    sums = to_numpy(rows).sum(axis=0) if problem.center else np.zeros(len(values))
    projection = _certified(found, axes * turned, shares, sums, projection)
    return _placed(found, projection, shares, sums)


def _placed(
    found: Spanned, projection: KernelProjection, shares: Vector, sums: Vector
) -> KernelProjection:
    """Return the map with its centre: points that are rows, or others beside the rows.

    The centre is taken off axes as often as their coefficients sum to.
    """
    at, points = found.span.basis.at, found.span.basis.points
    rows, centre = projection.components, -np.outer(shares, sums)
    if at is not None:
        np.add.at(projection.shares, at, shares)
        full = np.zeros(rows.shape)
        np.add.at(full, at, centre)
        return replace(projection, components=rows + like(full, rows))
    return replace(
        projection,
        basis=joined(points, projection.basis),
        components=namespace(rows).concat([like(centre, rows), rows]),
        mean=np.concatenate([found.span.matrix @ shares, projection.mean]),
        shares=np.concatenate([shares, projection.shares]),
    )


def joined(points: Any, rows: Any) -> Any:
    """Return points, and rows below them."""
    if isinstance(points, list):
        return [*points, *rows]
    if hasattr(points, "tocsr") or hasattr(rows, "tocsr"):
        return scipy.sparse.vstack([points, rows], format="csr")
    return namespace(points).concat([points, rows])


def _certified(
    found: Spanned, axes: Matrix, shares: Vector, sums: Vector, projection: KernelProjection
) -> KernelProjection:
    """Return the map with what its axes hold: by a product with the kernel matrix, or nearly."""
    problem, n = found.problem, found.problem.source.shape[0]
    width = problem.source.shape[1] if len(problem.source.shape) > 1 else 1
    if float(n) * n * width > AFFORDABLE:
        return _estimated(found, axes, shares, projection)
    gram = Gram(problem.kernel, problem.source, center=problem.center)
    k = len(sums)
    roots = to_numpy(gram.roots)
    b = projection.components / like(np.where(roots > 0, roots, 1.0), gram.reference)
    overlaps, held, scores = _held(gram, b, sums, projection)
    Q, R = orthonormalize(scores)
    product = gram.matmat(Q)
    spectrum = ritz_pairs(gram, Q, product, k)
    certificate = certify(gram, spectrum, k, problem.rng, probe=False)
    residuals = score_residuals(Q, product, R, projection.eigenvalues) + gram.rounding
    captured = min(held / (gram.trace + gram.rounding) if gram.trace > 0 else 0.0, 1.0)
    total = max(gram.trace, 0.0)
    upper, most = certificate.optimum_upper, found.optimum(k)
    spanned = float(most) / max(gram.trace - gram.rounding, 1e-300)
    if found.bounded and spanned < upper:
        upper = Figure(spanned, "bound", most.confidence)
    kind = "bound" if found.bounded else "estimate"
    likely = likely_optimum(spectrum, found.pairs[0][k:], k) / total if total > 0 else 0.0
    return replace(
        projection,
        total_variance=total,
        rest=max(0.0, total - float(projection.eigenvalues.sum())),
        certificate=replace(
            certificate,
            captured=Figure(captured, kind),
            optimum_upper=Figure(upper, kind, upper.confidence),
            residuals=residuals,
            eigenvalues=projection.eigenvalues,
            quotients=False,
            ratio=None,
            spacing=spacing_of(projection.eigenvalues, found.pairs[0][k:]),
            likely=min(max(likely, captured), float(upper)),
            notes=(
                "Components are sums over all rows; what they explain took products with the "
                "matrix.",
            ),
        ),
        overlaps=overlaps,
    )


def likely_optimum(spectrum: Spectrum, others: Vector, k: int) -> float:
    """Estimate the most that k axes hold: θ + ‖r‖²/s, s the distance to what was left out.

    That is not known of the matrix itself; on the basis it is.
    """
    values, residuals = spectrum.values[:k], spectrum.residuals[:k]
    apart = values - (float(others[0]) if len(others) else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = np.where(apart > residuals, residuals**2 / apart, residuals)
    return float((values + more).sum())


def score_residuals(Q: Array, product: Array, R: Matrix, values: Vector) -> Vector:
    """Return ‖Kv − λv‖ of scores v = QR made of length one, given KQ."""
    unit = R / np.maximum(spread(R), 1e-300)
    return spread(to_numpy(product) @ unit - (to_numpy(Q) @ unit) * values)


def _held(
    gram: Gram, b: Array, sums: Vector, projection: KernelProjection
) -> tuple[Matrix, float, Array]:
    """Return the inner products of axes, a bound on the variance in their span, and their scores.

    The axes are sums over the rows, less as many centres as their coefficients sum to: the
    centre is one more row.
    """
    less, height = projection.mean * to_numpy(gram.roots)[:, 0], projection.height
    B = np.vstack([to_numpy(b), -sums])
    Q, R = np.linalg.qr(B)
    product = to_numpy(gram.times(like(Q[:-1], gram.reference))) + np.outer(less, Q[-1])
    T = Q.T @ np.vstack([product, less @ Q[:-1] + height * Q[-1:]])
    moved = to_numpy(gram.project(like(product, gram.reference)))
    held = _within(T, moved, gram.rounding * gram.divisor) / gram.divisor
    return R.T @ T @ R, held, like(moved @ R, gram.reference)


def _within(T: Matrix, product: Matrix, rounding: float) -> float:
    """Bound tr(T⁻¹M) from below: T = QᵀKQ and M = QᵀK²Q, of the product KQ, Q orthonormal."""
    values, U = eigh((T + T.T) / 2)
    moved = product @ U
    lengths = np.einsum("ij,ij->j", moved, moved)
    return held_by(values, lengths, rounding)


def judged_sums(
    operator: Operator,
    A: Array,
    rng: np.random.Generator,
    *,
    converged: bool,
    notes: tuple[str, ...],
) -> tuple[Certificate, Matrix]:
    """Judge axes Σ_i a_i Φ̃(x_i), the columns of A, by some products with the kernel matrix.

    What their span holds; what no others can exceed, from the space of their scores KA; and how
    far each axis w is from an eigenvector in feature space, ‖Cw − λw‖² = dᵀKd, d = Ka − λa. Also
    returns their inner products, over the operator's divisor.
    """
    k = int(A.shape[1])
    Q, R = orthonormalize(operator.project(A))
    product, R = operator.matmat(Q), to_numpy(R)
    T, V = to_numpy(Q.T @ product), product @ like(R, product)
    overlaps = R.T @ T @ R
    held = _within(T, to_numpy(product), operator.rounding)
    lengths = np.maximum(np.diag(overlaps), 1e-300)
    values = np.einsum("ij,ij->j", to_numpy(V), to_numpy(V)) / lengths
    others = random_basis(operator, min(_BESIDE, operator.size), rng)
    for _ in range(2):  # two steps of the power method: what the axes leave out
        others = operator.matmat(orthonormalize(others)[0])
    basis = namespace(V).concat([V, others], axis=1)[:, : operator.rank]
    spectrum = rayleigh_ritz(operator, orthonormalize(basis)[0], k)
    certificate = certify(operator, spectrum, k, rng)
    # Axes that stand still may be others than the first: better ones were found just now.
    converged = converged and float(spectrum.values[:k].sum()) <= (1.0 + BETTER) * held
    assert spectrum.ritz is not None
    most = operator.trace + operator.rounding
    apart, size, off = V - A * like(values, V), spread(to_numpy(A)), operator.rounding
    residuals = spread(to_numpy(apart)) / size + off  # of a as a vector
    if operator.psd:  # in feature space; K and d are off by no more than ρ and ρ‖a‖
        squares = np.einsum("ij,ij->j", to_numpy(apart), to_numpy(operator.matmat(apart)))
        squares = np.maximum(squares, 0.0) + off * spread(to_numpy(apart)) ** 2
        largest = max(float(certificate.optimum_upper) * most, 0.0)
        residuals = (np.sqrt(squares) + np.sqrt(largest) * off * size) / np.sqrt(lengths) + off
    captured = held / most if most > 0 else 0.0
    kind = "bound" if operator.psd else "estimate"
    upper = certificate.optimum_upper
    certificate = replace(
        certificate,
        captured=Figure(min(captured, float(upper)), kind, certificate.captured.confidence),
        optimum_upper=Figure(float(upper), upper.kind if operator.psd else kind, upper.confidence),
        residuals=residuals,
        eigenvalues=values,
        spacing=spacing_of(values, spectrum.ritz[k:]),
        converged=converged,
        ratio=None,
        notes=notes,
    )
    return certificate, overlaps


def _estimated(
    found: Spanned, axes: Matrix, shares: Vector, projection: KernelProjection
) -> KernelProjection:
    """Judge the axes by what of them lies in the span of the basis."""
    seen, span = found.seen, found.span
    apart = seen.mean - span.matrix @ shares
    cross = seen.scatter + seen.weight * np.outer(seen.mean, apart)
    near = span.inverse @ cross @ axes - np.outer(shares, seen.weight * (apart @ axes))
    certificate = found.certificate(projection.eigenvalues, near, found.sample(len(near.T), DRAWN))
    assert certificate.ratio is not None
    captured, ratio = (Figure(x, "estimate") for x in (certificate.captured, certificate.ratio))
    note = "Components are sums over all rows; what they explain is judged within the span."
    return replace(
        projection,
        rest=max(0.0, projection.total_variance - float(projection.eigenvalues.sum())),
        certificate=with_notes(replace(certificate, captured=captured, ratio=ratio), note),
        overlaps=near.T @ span.matrix @ near,
    )

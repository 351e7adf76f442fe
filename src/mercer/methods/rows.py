"""Axes that are sums over all rows, with coefficients that a basis gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from mercer.arrays import Matrix, Vector, like, namespace, orthonormalize, to_numpy
from mercer.certificate import Figure
from mercer.eigen import rayleigh_ritz
from mercer.methods.base import Cost, Size, certify
from mercer.methods.basis import AFFORDABLE, DRAWN, Spanned, signs, with_notes
from mercer.operators import Gram
from mercer.projection import KernelProjection


def gram_cost(cost: Cost, size: Size) -> Cost:
    """Return the cost with that of keeping all rows, and of the certificate's product."""
    pairs = float(size.n) * size.n * size.d
    held = 8.0 * size.n * (size.d + 4 * size.axes)
    more = 3 * pairs if pairs <= AFFORDABLE else 0.0
    return Cost(cost.passes + 2, cost.products + more, cost.factor, cost.memory + held)


def over_rows(found: Spanned, values: Vector, axes: Matrix, shares: Vector) -> KernelProjection:
    """Return the map whose axis is Σ_i a_i Φ(x_i), a_i = w_i (h_i − K_y s)·axes.

    Centred by Σ s_j Φ(y_j), of points of the basis.
    """
    problem = found.problem
    source, middle = problem.source, found.span.matrix @ shares
    A, s = like(axes, source.reference), like(shares, source.reference)
    features = found.span.features(source, np.float64)
    means = features.map(lambda block: (block.rows @ s)[:, None], 1).collect()
    less = like(middle, source.reference)
    rows = features.map(lambda block: (block.rows - less) @ A, axes.shape[1]).collect()
    if source.weights is not None:
        rows = rows * like(source.weights, rows)[:, None]
    turned = signs(to_numpy(rows))
    projection = KernelProjection(
        mean=to_numpy(means)[:, 0],
        components=rows * like(turned, rows),
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
    return _certified(found, axes * turned, _placed(found, projection, shares))


def _placed(found: Spanned, projection: KernelProjection, shares: Vector) -> KernelProjection:
    """Return the map with its centre: points that are rows, or others beside the rows."""
    at, points = found.span.basis.at, found.span.basis.points
    if at is not None:
        np.add.at(projection.shares, at, shares)
        return projection
    k, m = projection.components.shape[1], len(shares)
    none = like(np.zeros((m, k)), projection.components)
    return replace(
        projection,
        basis=joined(points, projection.basis),
        components=namespace(none).concat([none, projection.components]),
        mean=np.concatenate([found.span.matrix @ shares, projection.mean]),
        shares=np.concatenate([shares, projection.shares]),
    )


def joined(points: Any, rows: Any) -> Any:
    """Return points, and rows below them."""
    if isinstance(points, list):
        return [*points, *rows]
    if hasattr(points, "tocsr"):
        return scipy.sparse.vstack([points, rows], format="csr")
    return namespace(points).concat([points, rows])


def _certified(found: Spanned, axes: Matrix, projection: KernelProjection) -> KernelProjection:
    """Return the map with what its axes hold: by a product with the kernel matrix, or nearly."""
    problem, n = found.problem, found.problem.source.shape[0]
    width = problem.source.shape[1] if len(problem.source.shape) > 1 else 1
    if float(n) * n * width > AFFORDABLE:
        return _estimated(found, axes, projection)
    gram = Gram(problem.kernel, problem.source, center=problem.center)
    weights = like(to_numpy(gram.roots)[:, 0] ** 2, gram.reference)[:, None]
    b = projection.components[-n:, :] / namespace(weights).where(weights > 0, gram.roots, 1.0)
    product = gram.times(b)
    overlaps, k = to_numpy(b.T @ product), int(b.shape[1])
    moved = to_numpy(gram.project(product))
    held = float(np.trace(_inverse(overlaps) @ (moved.T @ moved))) / gram.divisor
    spectrum = rayleigh_ritz(gram, orthonormalize(gram.project(b))[0], k)
    certificate = certify(gram, spectrum, k, problem.rng, probe=False)
    slack = gram.rounding * k**0.5
    captured = max(float(certificate.captured), (held - slack) / (gram.trace + gram.rounding))
    total = max(gram.trace, 0.0)
    upper, before = certificate.optimum_upper, projection.certificate.optimum_upper
    spanned = float(before) * float(found.total) / max(gram.trace - gram.rounding, 1e-300)
    if found.bounded and spanned < upper:
        upper = Figure(spanned, before.kind, before.confidence)
    return replace(
        projection,
        total_variance=total,
        rest=max(0.0, total - float(projection.eigenvalues.sum())),
        certificate=replace(
            certificate,
            captured=Figure(captured, "bound"),
            optimum_upper=upper,
            eigenvalues=projection.eigenvalues,
            notes=("Axes are sums over all rows; what they hold took products with the matrix.",),
        ),
        overlaps=overlaps,
    )


def _estimated(found: Spanned, axes: Matrix, projection: KernelProjection) -> KernelProjection:
    """Judge the axes by what of them lies in the span of the basis."""
    seen, span = found.seen, found.span
    middle = span.matrix @ found.shares if found.problem.center else 0.0 * seen.mean
    cross = seen.scatter + seen.weight * np.outer(seen.mean, seen.mean - middle)
    near = span.inverse @ cross @ axes
    certificate = found.certificate(projection.eigenvalues, near, found.sample(len(near.T), DRAWN))
    captured = Figure(float(certificate.captured), "estimate")
    note = "Axes are sums over all rows; what they hold is judged by their part in the span."
    return replace(
        projection,
        rest=max(0.0, projection.total_variance - float(projection.eigenvalues.sum())),
        certificate=with_notes(replace(certificate, captured=captured), note),
        overlaps=near.T @ span.matrix @ near,
    )


def _inverse(overlaps: Matrix) -> Matrix:
    return np.asarray(np.linalg.pinv(overlaps, rcond=1e-12, hermitian=True))

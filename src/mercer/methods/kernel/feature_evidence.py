"""Evidence about components of random features from products with the kernel matrix."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Array, Vector, eigh, like, namespace, orthonormalize, to_numpy
from mercer.arrays.rounding import FEW
from mercer.certificate import Axes, Evidence, Figure, spacing_of, spectral_evidence
from mercer.config import get_config
from mercer.data import Block
from mercer.linalg import Gram
from mercer.linalg.solvers import Spectrum, ritz_pairs
from mercer.methods.kernel.exact import rows_in_memory
from mercer.methods.kernel.expansion import likely_optimum, score_residuals
from mercer.methods.kernel.landmark_fit import AFFORDABLE
from mercer.methods.kernel.products import EXTRA
from mercer.metrics.kernel_axes import scores_over
from mercer.problem import KernelProblem
from mercer.projection.expansion import best_in_span
from mercer.projection.fourier import FourierProjection

# A kernel value costs as much as the products of so many columns.
_VALUE = 300
# Directions below this share of a product, squared, are rounding.
_NEW = 1e-16
# A bound this close to the explained variance, as a share of it, needs no better one.
_CLOSE = 1e-6
# Steps towards the best components that certifying a gap may take.
_STEPS = 6
_BY_PRODUCTS = (
    "Components of random features, judged by products with the kernel matrix: what the span of "
    "their scores over the rows holds in the kernel's space. Variances are those of the features."
)
_BY_FEATURES = (
    "Components of random features. What they hold is a share of the features' variance, which is "
    "nearer to the kernel's the more there are; no product with the kernel matrix was made."
)


def affordable(n: int, d: int, k: int) -> bool:
    """Tell whether k components may be judged by two walks over all pairs of rows."""
    fits = 16.0 * n * (d + 6 * (k + EXTRA)) <= get_config().budget / 2
    return fits and walk_cost(n, d, k) <= AFFORDABLE


def walk_cost(n: int, d: int, k: int) -> float:
    """Return the operations of those walks."""
    return 2.0 * n * n * (d + _VALUE + 2 * (k + EXTRA))


def judge_features(
    problem: KernelProblem, projection: FourierProjection, *, converged: bool
) -> Axes:
    """Return the components with their evidence, from products with the kernel matrix if cheap."""
    (n, d), values = problem.source.shape, projection.eigenvalues
    k = len(values)
    if k == 0 or not affordable(n, d, k):
        return estimate_by_features(projection, converged=converged)
    # The rows are moved already.
    plain = replace(projection, map=replace(projection.map, shift=None))
    Q, R = scores_over(plain, problem.source)
    # The mean is no direction of the centered matrix; the rest is made orthonormal again.
    Q, turn = orthonormalize(_center(Q, problem))
    R = turn @ R
    problem = rows_in_memory(problem)
    W = _widen(Q, problem)
    gram = Gram(problem.kernel, problem.source, center=problem.center, along=W)
    W = gram.project(W)
    product = gram.first if gram.dtype == np.float64 else gram.matmat(W)
    Q, along = W[:, :k], product[:, :k]
    explained = best_in_span(Q, along, gram.rounding)[2]
    spectrum, evidence = _bound(problem, gram, W, product, k, explained)
    assert spectrum.ritz is not None
    most = float(evidence.optimum)
    residuals = score_residuals(Q, along, R, values) + gram.rounding
    residuals += most * _score_rounding(plain, problem)
    likely = likely_optimum(spectrum, spectrum.ritz[k:], k)
    evidence = replace(
        evidence,
        explained=Figure(explained, "bound" if gram.psd else "estimate"),
        residuals=residuals,
        eigenvalues=values,
        rayleigh=False,
        spacing=spacing_of(values, spectrum.ritz[k:]),
        converged=converged,
        likely=min(max(likely, explained), most),
        notes=(_BY_PRODUCTS,),
    )
    return Axes(projection, evidence)


def estimate_by_features(projection: FourierProjection, *, converged: bool) -> Axes:
    """Return the components with what the features alone say: an estimate."""
    values, total = projection.eigenvalues, Figure(projection.total_variance)
    evidence = Evidence(
        explained=Figure(min(total, float(values.sum())), "estimate"),
        bounds=(),
        total=(total, total),
        residuals=np.full(len(values), np.nan),
        eigenvalues=values,
        spacing=spacing_of(values, np.zeros(0)),
        converged=converged,
        notes=(_BY_FEATURES,),
    )
    return Axes(projection, evidence)


def _score_rounding(projection: FourierProjection, problem: KernelProblem) -> Vector:
    """Return twice what rounding of the angles may do to scores, as a share of their norms.

    An angle is a sum of d terms, and no larger than ‖x‖‖ω‖.
    """
    source, drawn = problem.source, projection.map.frequencies

    def squares(block: Block) -> Array:
        rows = block.dense(np.float64)
        return namespace(rows).sum(rows * rows, axis=1)[:, None]

    largest = float(np.max(to_numpy(source.map(squares, 1, np.float64).collect(label="scores"))))
    turns = np.sqrt(largest * np.max(np.sum(np.square(to_numpy(drawn.omega)), axis=0)))
    error = (source.shape[1] + FEW) * float(np.finfo(np.float64).eps) / 2 * turns
    diag = float(np.sum(np.square(to_numpy(drawn.amplitude))))
    values = np.maximum(projection.eigenvalues, 1e-300) * problem.divisor
    return np.asarray(2.0 * error * np.sqrt(source.count * diag / values))


def _widen(Q: Array, problem: KernelProblem) -> Array:
    """Add random orthonormal columns, which see what the others have missed."""
    n, k = (int(size) for size in Q.shape)
    more = max(0, min(EXTRA, n - 1 - k))
    if not more:
        return Q
    random = like(problem.rng.standard_normal((n, more)), Q)
    added = _new_directions(Q, _center(random, problem))
    return Q if added is None else namespace(Q).concat([Q, added], axis=1)


def _center(V: Array, problem: KernelProblem) -> Array:
    """Project √w out of vectors over the rows, if the problem is centered."""
    if not problem.center:
        return V
    weights = problem.source.weights
    u = np.ones(int(V.shape[0])) if weights is None else np.sqrt(weights)
    unit = like(u / np.linalg.norm(u), V)[:, None]
    return V - unit @ (unit.T @ V)


def _bound(
    problem: KernelProblem, gram: Gram, Q: Array, product: Array, k: int, explained: float
) -> tuple[Spectrum, Evidence]:
    """Bound the optimum by a step of block Krylov, or several if a gap requires it."""
    xp, last, close = namespace(Q), product, 1.0 - max(problem.gap or 0.0, _CLOSE)
    spectrum = ritz_pairs(gram, Q, product, k)
    evidence = spectral_evidence(gram, spectrum, k, problem.rng, probe=False)
    for _ in range(1 if problem.gap is None else _STEPS):
        new = None if explained >= close * evidence.optimum else _new_directions(Q, last)
        if new is None:
            break
        last = gram.matmat(new)
        Q, product = xp.concat([Q, new], axis=1), xp.concat([product, last], axis=1)
        spectrum = ritz_pairs(gram, Q, product, k)
        evidence = spectral_evidence(gram, spectrum, k, problem.rng, probe=False)
    return spectrum, evidence


def _new_directions(Q: Array, product: Array) -> Array:
    """Return orthonormal directions that a product adds to those of Q; None if it adds none."""
    rest = product - Q @ (Q.T @ product)
    values, U = eigh(to_numpy(rest.T @ rest))
    large = values > _NEW * float(np.trace(to_numpy(product.T @ product)))
    if not large.any():
        return None
    rest = rest @ like(U[:, large] / np.sqrt(values[large]), Q)
    return orthonormalize(rest - Q @ (Q.T @ rest))[0]

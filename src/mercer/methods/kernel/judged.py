"""What products with the kernel matrix tell of axes that were found without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import Array, Vector, eigh, like, namespace, orthonormalize, to_numpy
from mercer.arrays.rounding import FEW
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.config import get_config
from mercer.data import Block
from mercer.linalg import Gram
from mercer.linalg.solvers import Spectrum, ritz_pairs
from mercer.methods.base import certify
from mercer.methods.kernel.exact import in_memory
from mercer.methods.kernel.expansion import likely_optimum, score_residuals
from mercer.methods.kernel.landmark_fit import AFFORDABLE
from mercer.methods.kernel.products import MORE
from mercer.metrics.kernel_axes import scores_over
from mercer.problem import KernelProblem
from mercer.projection.expansion import best_in_span
from mercer.projection.fourier import FourierProjection

# A kernel value costs as much as the products of so many columns.
_VALUE = 300
# Directions below this share of a product, squared, are rounding.
_NEW = 1e-16
# A bound so near to what is held, as a share of it, needs no other.
_NEAR = 1e-6
# Steps towards the best axes that are made at most to certify a gap.
_STEPS = 6
_BY_SPAN = (
    "Components of random features, judged by products with the kernel matrix: what the span of "
    "their scores over the rows holds in the kernel's space. Variances are those of the features."
)
_BY_FEATURES = (
    "Components of random features. What they hold is a share of the features' variance, which is "
    "nearer to the kernel's the more there are; no product with the kernel matrix was made."
)


def affordable(n: int, d: int, k: int) -> bool:
    """Tell whether k axes may be judged by two walks over all pairs of rows."""
    fits = 16.0 * n * (d + 6 * (k + MORE)) <= get_config().budget / 2
    return fits and walks(n, d, k) <= AFFORDABLE


def walks(n: int, d: int, k: int) -> float:
    """Return the operations of those."""
    return 2.0 * n * n * (d + _VALUE + 2 * (k + MORE))


def judged(problem: KernelProblem, fitted: FourierProjection) -> FourierProjection:
    """Return the map with its certificate: by products with the kernel matrix, or supposed."""
    (n, d), k = problem.source.shape, len(fitted.eigenvalues)
    if k == 0 or not affordable(n, d, k):
        return supposed(fitted)
    plain = replace(fitted, map=replace(fitted.map, shift=None))  # the rows are moved already
    Q, R = scores_over(plain, problem.source)
    # The mean is no direction of the centred matrix; and what is left is made orthonormal again.
    Q, turn = orthonormalize(_centred(Q, problem))
    R = turn @ R
    problem = in_memory(problem)
    W = _widened(Q, problem)
    gram = Gram(problem.kernel, problem.source, center=problem.center, along=W)
    W = gram.project(W)
    product = gram.first if gram.dtype == np.float64 else gram.matmat(W)
    Q, along = W[:, :k], product[:, :k]
    held, total = best_in_span(Q, along, gram.rounding)[2], max(gram.trace, 0.0)
    captured = min(held / (total + gram.rounding) if total > 0 else 0.0, 1.0)
    spectrum, certificate = _bounded(problem, gram, W, product, k, captured)
    assert spectrum.ritz is not None
    likely = likely_optimum(spectrum, spectrum.ritz[k:], k) / total if total > 0 else 0.0
    upper = float(certificate.optimum_upper)
    residuals = score_residuals(Q, along, R, fitted.eigenvalues) + gram.rounding
    residuals += upper * total * _rounding_of_scores(plain, problem)
    return replace(
        fitted,
        certificate=replace(
            certificate,
            captured=Figure(captured, "bound" if gram.psd else "estimate"),
            residuals=residuals,
            eigenvalues=fitted.eigenvalues,
            quotients=False,
            spacing=spacing_of(fitted.eigenvalues, spectrum.ritz[k:]),
            converged=fitted.certificate.converged,
            likely=min(max(likely, captured), upper),
            notes=(_BY_SPAN,),
        ),
    )


def _rounding_of_scores(fitted: FourierProjection, problem: KernelProblem) -> Vector:
    """Return twice what rounding of the waves' angles may do to scores, as a share of each length.

    An angle is a sum of d terms, and no larger than ‖x‖‖ω‖.
    """
    source, drawn = problem.source, fitted.map.frequencies

    def squares(block: Block) -> Array:
        rows = block.dense(np.float64)
        return namespace(rows).sum(rows * rows, axis=1)[:, None]

    largest = float(np.max(to_numpy(source.map(squares, 1, np.float64).collect(label="scores"))))
    turns = np.sqrt(largest * np.max(np.sum(np.square(to_numpy(drawn.omega)), axis=0)))
    off = (source.shape[1] + FEW) * float(np.finfo(np.float64).eps) / 2 * turns
    height = float(np.sum(np.square(to_numpy(drawn.amplitude))))
    values = np.maximum(fitted.eigenvalues, 1e-300) * problem.divisor
    return np.asarray(2.0 * off * np.sqrt(source.count * height / values))


def _widened(Q: Array, problem: KernelProblem) -> Array:
    """Return orthonormal columns, and random ones beside them, which see what those have missed."""
    n, k = (int(size) for size in Q.shape)
    more = max(0, min(MORE, n - 1 - k))
    if not more:
        return Q
    random = like(problem.rng.standard_normal((n, more)), Q)
    added = _added(Q, _centred(random, problem))
    return Q if added is None else namespace(Q).concat([Q, added], axis=1)


def _centred(V: Array, problem: KernelProblem) -> Array:
    """Return vectors over the rows less their part along √w, where the problem is centred."""
    if not problem.center:
        return V
    weights = problem.source.weights
    u = np.ones(int(V.shape[0])) if weights is None else np.sqrt(weights)
    unit = like(u / np.linalg.norm(u), V)[:, None]
    return V - unit @ (unit.T @ V)


def _bounded(
    problem: KernelProblem, gram: Gram, Q: Array, product: Array, k: int, captured: float
) -> tuple[Spectrum, Certificate]:
    """Return what is known of the best axes: by a step towards them, by some where a gap asks.

    The steps are those of a block Krylov space.
    """
    xp, last, near = namespace(Q), product, 1.0 - max(problem.gap or 0.0, _NEAR)
    spectrum = ritz_pairs(gram, Q, product, k)
    certificate = certify(gram, spectrum, k, problem.rng, probe=False)
    for _ in range(1 if problem.gap is None else _STEPS):
        new = None if captured >= near * certificate.optimum_upper else _added(Q, last)
        if new is None:
            break
        last = gram.matmat(new)
        Q, product = xp.concat([Q, new], axis=1), xp.concat([product, last], axis=1)
        spectrum = ritz_pairs(gram, Q, product, k)
        certificate = certify(gram, spectrum, k, problem.rng, probe=False)
    return spectrum, certificate


def _added(Q: Array, product: Array) -> Array:
    """Return orthonormal directions that a product adds to those of Q; None where it adds none."""
    rest = product - Q @ (Q.T @ product)
    values, U = eigh(to_numpy(rest.T @ rest))
    there = values > _NEW * float(np.trace(to_numpy(product.T @ product)))
    if not there.any():
        return None
    rest = rest @ like(U[:, there] / np.sqrt(values[there]), Q)
    return orthonormalize(rest - Q @ (Q.T @ rest))[0]


def supposed(fitted: FourierProjection) -> FourierProjection:
    """Return the map with what the features alone tell: an estimate, and no bound but all."""
    k, total = len(fitted.eigenvalues), fitted.total_variance
    share = float(fitted.eigenvalues.sum()) / total if total > 0 else 0.0
    found = Certificate(
        captured=Figure(min(1.0, share), "estimate"),
        optimum_upper=Figure(1.0 if k else 0.0),
        residuals=np.full(k, np.nan),
        eigenvalues=fitted.eigenvalues,
        spacing=spacing_of(fitted.eigenvalues, np.zeros(0)),
        converged=fitted.certificate.converged,
        notes=(_BY_FEATURES,),
    )
    return replace(fitted, certificate=found)

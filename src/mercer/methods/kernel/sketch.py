"""Kernel PCA from a sketch of the kernel matrix (marukatat Alg. 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    column_norms,
    eigh,
    like,
    orthonormalize,
    svd,
    to_numpy,
)
from mercer.certificate import Axes, Figure, spacing_of, spectral_evidence
from mercer.linalg import Gram
from mercer.linalg.solvers import Spectrum, ritz_pairs
from mercer.linalg.upper_blocks import upper_block_rows
from mercer.methods.base import Cost, Size
from mercer.methods.kernel.exact import (
    Exact,
    count_positive,
    exact_axes,
    require_finite_gram,
    rows_in_memory,
)
from mercer.methods.linear.sketch import NOT_POLISHED, require_columns
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection, span_variance, weighted_signs
from mercer.sketches import FeatureGrouping, RandomMap, SketchMap, SketchMatrix
from mercer.sketches.images import ImageMap
from mercer.sketches.matrix import IdentityMatrix

# Singular values of a sketch below this share of the largest are rounding.
_RANK = 1e-12
# Copies of the sketch that are in memory at once, at most.
_COPIES = 8
_INSTEAD = "Use Gaussian, Hashing, SparseSign or Hadamard."


def fit_kernel_sketch(
    problem: KernelProblem, sketch: SketchMap, rng: np.random.Generator | None, *, polish: bool
) -> Axes | None:
    """Return components from a sketch; None if it has too few for the rule to decide."""
    problem = rows_in_memory(problem)
    require_kernel_map(sketch)
    n = problem.shape[0]
    if isinstance(sketch, RandomMap) and not sketch.identity and sketch.q > n:
        raise ValueError(
            f"{sketch!r}: q={sketch.q} is more than the {n} columns of the kernel matrix. Use "
            f"q <= {n}, or identity=True, which is then equivalent to method='exact'."
        )
    matrix = sketch.matrix_for(n, rng)
    if isinstance(matrix, IdentityMatrix):  # Z is the matrix itself
        return Exact("dense").fit(problem)
    require_columns(sketch, matrix.q, problem.n_leading or 0)
    products = _multiply_twice(problem, matrix)
    return _polish(products) if polish else _unpolished(products)


def kernel_sketch_cost(size: Size, q: int, *, polish: bool) -> Cost:
    """Return the cost of a sketch of q columns."""
    if q >= size.n:
        return Exact("dense").cost(size)
    n, passes = float(size.n), 3 if polish else 2
    products = passes * (n * n * size.d + 2.0 * n * n * q) + 12.0 * n * q * q
    memory = 8.0 * n * q * _COPIES + 64.0 * q * q
    if not size.remote:  # blocks of the kernel matrix, and float64 rows
        rows = upper_block_rows(size.n, 8, on_device=size.on_device)
        memory += 4 * 8.0 * n * rows + 20.0 * n * size.row_size
    return Cost(passes + 1 + size.first_pass, products, 12.0 * q**3, memory)


def require_kernel_map(sketch: SketchMap | None) -> None:
    """Raise if the map is not applicable to a kernel matrix."""
    if isinstance(sketch, ImageMap):
        raise ValueError(
            f"{sketch!r} resizes images, but this method sketches the kernel matrix, whose columns "
            f"are rows, not pixels. {_INSTEAD}"
        )
    if isinstance(sketch, FeatureGrouping) and not sketch.__sklearn_is_fitted__():
        raise ValueError(
            f"{sketch!r} learns its groups from the kernel matrix of all rows, which is never "
            f"formed here. Fit it to that matrix first. {_INSTEAD}"
        )


@dataclass(frozen=True, eq=False)
class SketchProducts:
    """Two products with the kernel matrix A: Z = AW, and A times the left vectors of Z."""

    problem: KernelProblem
    gram: Gram  # the centered, weighted matrix K̃/c
    left: Array  # (n, p) Zu/√λ, orthonormal
    product: Array  # (n, p) A Zu/√λ, proportional to the eigenvectors that Algorithm 6 returns
    inner: Matrix  # (p, p) (Zu)ᵀA(Zu)/√λ√λ′
    positive: Any  # indices of the positive eigenvalues: √λ has lost the sign, uᵀZᵀAZu has it
    values: Vector  # √λ of those
    whole: bool  # whether the sketch has shown all nonzero eigenvalues


def _multiply_twice(problem: KernelProblem, matrix: SketchMatrix) -> SketchProducts:
    """Pass over all pairs of rows twice."""
    source, center, W = problem.source, problem.center, matrix.toarray()
    # In float64: centered float32 values may be nothing but rounding.
    along = like(W, source.reference)
    gram = Gram(problem.kernel, source, center=center, along=along, dtype=np.float64, scaled=True)
    require_finite_gram(problem, gram)
    # How many eigenvalues the map can show, and how many there can be: some maps leave columns
    # empty, and rows of zero weight do not count.
    unit = to_numpy(gram.unit)
    weighted, mean = unit > 0, unit.T @ W
    shown, _ = eigh((W * weighted).T @ W - center * (mean.T @ mean))
    free, most = int((shown > _RANK * shown[0]).sum()), int(weighted.sum()) - center
    del W, along
    # The eigenpairs (λ, u) of ZᵀZ, from an SVD of Z, which squares nothing.
    Q, R = orthonormalize(gram.first)
    gram.first = None
    turn, roots, _ = svd(R)
    p = max(1, int((roots > _least(gram, roots)).sum()))
    left, roots = Q @ like(turn[:, :p], Q), roots[:p]
    del Q
    product = gram.matmat(left)
    T = to_numpy(left.T @ product)
    inner = (T + T.T) / 2
    positive = np.flatnonzero((roots > _least(gram, roots)) & (np.diag(inner) > 0.0))
    whole = p < free or p >= most
    return SketchProducts(problem, gram, left, product, inner, positive, roots[positive], whole)


def _least(gram: Gram, values: Vector) -> float:
    """Return the eigenvalue below which all are rounding."""
    return max(_RANK * float(np.max(np.abs(values), initial=0.0)), gram.noise_floor)


def _choose(problem: KernelProblem, gram: Gram, values: Vector, *, whole: bool) -> int | None:
    """Return the number of components of these variances; None if there are too few."""
    rank, wanted = int((values > _least(gram, values)).sum()), problem.n_leading
    if wanted is not None:
        return None if rank < wanted and not whole else min(rank, wanted)
    if problem.n_components is not None:
        return rank
    others = problem.limit - len(values) if whole else 0  # the eigenvalues not shown are zero
    chosen = problem.choose(np.pad(values, (0, others)), gram.trace)
    return None if chosen is None else min(chosen, rank)


def _polish(products: SketchProducts) -> Axes | None:
    """Return the best components of the span, by a third product."""
    problem, gram, whole = products.problem, products.gram, products.whole
    norms = column_norms(to_numpy(products.product))
    Y = products.product / like(np.where(norms > 0, norms, 1.0), gram.reference)
    del products  # its vectors
    spectrum = _ritz(gram, orthonormalize(Y)[0], len(norms))
    k = _choose(problem, gram, spectrum.values, whole=whole)
    if k is None:
        return None
    k = count_positive(gram, spectrum, k)
    evidence = spectral_evidence(gram, spectrum, k, problem.rng, probe=problem.gap is not None)
    evidence = replace(evidence, negative=_negative(gram, spectrum))
    if gram.psd:
        assert spectrum.coupling is not None
        outside = np.sqrt(np.diag(spectrum.coupling)[:k])
        norms = np.hypot(spectrum.values[:k], outside)
        evidence = replace(evidence, explained=_explained(gram, spectrum.values[:k], norms))
    return exact_axes(problem, gram, spectrum, k, evidence)


def _unpolished(products: SketchProducts) -> Axes | None:
    """Return the components of Algorithm 6, judged without another product.

    For a positive semi-definite A, the span of AU explains no less than the span of U: for any j,
    by Cauchy–Schwarz, tr((UᵀAʲ⁺¹U)⁻¹UᵀAʲ⁺²U) ≥ tr((UᵀAʲU)⁻¹UᵀAʲ⁺¹U).
    """
    problem, gram = products.problem, products.gram
    product, inner = products.product, products.inner
    k = _choose(problem, gram, products.values, whole=products.whole)
    if k is None:
        return None
    at, values, others = products.positive[:k], products.values[:k], products.values[k:]
    Y = product[:, like(at, gram.reference)]
    sizes = column_norms(to_numpy(Y))
    V = Y / like(np.where(sizes > 0, sizes, 1.0), Y)
    V = V * weighted_signs(V, gram.roots)
    spectrum = _ritz(gram, products.left, k, product)
    assert spectrum.ritz is not None
    evidence = spectral_evidence(gram, spectrum, k, problem.rng, probe=False)
    explained = Figure(float(np.diag(inner)[at].sum()), "estimate")
    if gram.psd:
        theta, S = eigh(inner[np.ix_(at, at)]) if k else (np.zeros(0), np.zeros((0, 0)))
        explained = _explained(gram, theta, column_norms(to_numpy(product)[:, at] @ S))
    evidence = replace(
        evidence,
        explained=explained,
        residuals=np.full(k, np.nan),
        eigenvalues=values,
        spacing=spacing_of(values, others),
        notes=(NOT_POLISHED,),
        negative=_negative(gram, spectrum),
    )
    axes = exact_axes(problem, gram, Spectrum(values, V, np.full(k, np.nan)), k, evidence)
    assert isinstance(axes.projection, KernelProjection)
    # Inner products of components, VᵀAV over the roots of variances, estimated by
    # A ≈ Y(UᵀY)†Yᵀ with Y = AU.
    m, S = eigh(inner)
    large = np.abs(m) > 1e-10 * np.max(np.abs(m), initial=0.0)
    C = to_numpy(V.T @ product) @ S[:, large]
    overlaps = np.asarray((C / m[large]) @ C.T / np.sqrt(np.outer(values, values)))
    return replace(axes, projection=replace(axes.projection, overlaps=overlaps))


def _ritz(gram: Gram, Q: Array, k: int, product: Array = None) -> Spectrum:
    """Return the Ritz pairs of the span of Q; raise if squared values overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        spectrum = ritz_pairs(gram, Q, gram.matmat(Q) if product is None else product, k)
    assert spectrum.coupling is not None
    if not np.isfinite(spectrum.coupling).all():
        raise ValueError(
            "The kernel's values are too large: their squares overflow. Scale the rows, or change "
            "the kernel's parameters."
        )
    return spectrum


def _explained(gram: Gram, values: Vector, norms: Vector) -> Figure:
    """Bound the variance in the span of components with these inner products and norms of AV."""
    unit = float(np.max(np.abs(values), initial=0.0)) or 1.0  # squares may overflow
    rounding = gram.rounding / unit
    return Figure(unit * span_variance(values / unit, (norms / unit) ** 2, rounding))


def _negative(gram: Gram, spectrum: Spectrum) -> Vector:
    """Return the negative Ritz values, lowest first: the eigenvalues are no less negative."""
    assert spectrum.ritz is not None
    ritz = spectrum.ritz
    return np.zeros(0) if gram.psd else np.sort(ritz[ritz < -_least(gram, ritz)])

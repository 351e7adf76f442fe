"""Axes in a kernel's space from a sketch of the kernel matrix (marukatat Alg. 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mercer.arrays import Array, Matrix, Vector, eigh, like, orthonormalize, svd, to_numpy
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.landmarks.objective import axes_asked
from mercer.linalg import Gram
from mercer.linalg.gram import strip_rows
from mercer.linalg.solvers import Spectrum, rayleigh_ritz, ritz_pairs
from mercer.linalg.solvers.spectrum import lengths
from mercer.methods.base import Cost, Size, certify
from mercer.methods.kernel.exact import (
    Exact,
    in_memory,
    positive,
    projected,
    require_finite_kernel,
)
from mercer.methods.kernel.expansion import likely_optimum
from mercer.methods.kernel.landmark_fit import with_notes
from mercer.methods.linear.polish import changed
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection
from mercer.projection.expansion import facing, held_by
from mercer.sketches import Drawn, FeatureGrouping, RandomMap, SketchMap
from mercer.sketches.drawn import Same
from mercer.sketches.images import ImageMap

# Singular values of a sketch below this share of the largest are rounding.
_RANK = 1e-12
# Vectors of a sketch that are there at once, at most.
_COPIES = 8
_INSTEAD = "Take Gaussian, Hashing, SparseSign or Hadamard."


def fitted(
    problem: KernelProblem, sketch: SketchMap, rng: np.random.Generator | None, *, polish: bool
) -> KernelProjection | None:
    """Return axes from a sketch; None where it has too few for the rule to tell."""
    problem.require_finite_rows()
    problem = in_memory(problem)
    drawn = _drawn(sketch, problem.sides[0], rng)
    if isinstance(drawn, Same):  # Z is the matrix itself
        whole = Exact("dense").fit(problem)
        note = "The sketch has as many columns as there are rows: it is the matrix itself."
        return replace(whole, certificate=with_notes(whole.certificate, note))
    require_columns(sketch, drawn.q, axes_asked(problem) or 0)
    return (_polished if polish else _plain)(_twice(problem, drawn))


def cost(size: Size, q: int, *, polish: bool) -> Cost:
    """Say what `fitted` needs with a sketch of q columns."""
    if q >= size.n:
        return Exact("dense").cost(size)
    n, passes = float(size.n), 3 if polish else 2
    products = passes * (n * n * size.d + 2.0 * n * n * q) + 12.0 * n * q * q
    return Cost(passes, products, 12.0 * q**3, memory(size, q))


def memory(size: Size, q: int) -> float:
    """Return the bytes of vectors, strips of the kernel matrix, and rows in float64."""
    if q >= size.n:
        return Exact("dense").cost(size).memory
    vectors = 8.0 * size.n * q * _COPIES + 64.0 * q * q
    if size.elsewhere:
        return vectors
    strips = 4 * 8.0 * size.n * strip_rows(size.n, 8, on_device=size.on_device)
    return vectors + strips + 20.0 * size.n * size.d


def require_columns(sketch: SketchMap, q: int, wanted: int) -> None:
    """Refuse a sketch that has fewer columns than there are to be axes."""
    if wanted > q:
        raise ValueError(
            f"{sketch!r} makes {q} columns, too few for {wanted} components. Take a q of at least "
            f"{wanted}; a few times that is better."
        )


def require_kernel_map(sketch: SketchMap | None) -> None:
    """Refuse maps that mean nothing to kernels between rows."""
    if isinstance(sketch, ImageMap):
        raise ValueError(
            f"{sketch!r} makes images smaller, and what is sketched here is the kernel between a "
            f"row and all others, whose columns are rows, not pixels. {_INSTEAD}"
        )
    if isinstance(sketch, FeatureGrouping) and not sketch.__sklearn_is_fitted__():
        raise ValueError(
            f"{sketch!r} learns its groups from the kernel matrix of all rows, which is never "
            f"formed here. Fit it to that matrix first, or take Gaussian, Hashing, SparseSign or "
            f"Hadamard."
        )


def _drawn(sketch: SketchMap, n: int, rng: np.random.Generator | None) -> Drawn:
    """Return the map of n kernel values, one to every row."""
    require_kernel_map(sketch)
    if isinstance(sketch, RandomMap) and not sketch.identity and sketch.q > n:
        raise ValueError(
            f"{sketch!r}: q={sketch.q} is more than the {n} rows, which have as many kernel values "
            f"each. Take a q of at most {n}, or pass identity=True, which is method='exact' then."
        )
    return sketch.drawn(n, rng)


@dataclass(frozen=True, eq=False)
class Twice:
    r"""What two products with the kernel matrix A tell: Z = AW, and A times its left vectors.

    The eigenpairs (λ, u) of ZᵀZ come from an SVD of Z, which squares nothing: √λ are its
    singular values, Zu/√λ its left vectors.

    Attributes
    ----------
    problem : KernelProblem
    gram : Gram
        The matrix, centred, weighed and divided: K̃/c.
    roots : ndarray of shape (p,)
        √λ of all that are more than rounding.
    left : array of shape (n, p)
        Zu/√λ, orthonormal.
    product : array of shape (n, p)
        A Zu/√λ: in proportion to the eigenvectors of A that Algorithm 6 returns.
    whole : bool
        Whether the sketch has shown all eigenvalues but zeros.
    """

    problem: KernelProblem
    gram: Gram
    roots: Vector
    left: Array
    product: Array
    whole: bool

    @cached_property
    def inner(self) -> Matrix:
        """(Zu)ᵀA(Zu)/√λ√λ′."""
        T = to_numpy(self.left.T @ self.product)
        return np.asarray((T + T.T) / 2)

    @cached_property
    def above(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Which eigenvalues are positive: √λ has lost the sign, uᵀZᵀAZu has it."""
        there = self.roots > _least(self.gram, self.roots)
        return np.flatnonzero(there & (np.diag(self.inner) > 0.0))

    @cached_property
    def values(self) -> Vector:
        """√λ of those."""
        return self.roots[self.above]

    def axes(self, k: int) -> Array:
        """Return the first k eigenvectors of positive eigenvalues, of unit length."""
        Y = self.product[:, like(self.above[:k], self.gram.reference)]
        sizes = lengths(to_numpy(Y))
        return Y / like(np.where(sizes > 0, sizes, 1.0), Y)


def _twice(problem: KernelProblem, drawn: Drawn) -> Twice:
    """Walk all pairs of rows twice."""
    source = problem.source
    W = drawn.matrix()
    # In float64: what is left of float32 values when their mean is taken off may be rounding.
    gram = Gram(
        problem.kernel,
        source,
        center=problem.center,
        along=like(W, source.reference),
        dtype=np.float64,
        scaled=True,
    )
    require_finite_kernel(problem, gram)
    free, most = _ranks(W, to_numpy(gram.unit), center=problem.center)
    del W
    Q, R = orthonormalize(gram.first)
    gram.first = None
    turn, roots, _ = svd(R)
    p = max(1, int((roots > _least(gram, roots)).sum()))
    left = Q @ like(turn[:, :p], Q)
    del Q
    whole = p < free or p >= most
    return Twice(problem, gram, roots[:p], left, gram.matmat(left), whole)


def _ranks(W: Matrix, unit: Matrix, *, center: bool) -> tuple[int, int]:
    """Return how many eigenvalues a map can show, and how many there can be.

    Some maps send nothing to some of their columns; rows of no weight count for nothing.
    """
    there = unit > 0
    seen = unit.T @ W
    values, _ = eigh((W * there).T @ W - center * (seen.T @ seen))
    return int((values > _RANK * values[0]).sum()), int(there.sum()) - center


def _least(gram: Gram, values: Vector) -> float:
    """Return what eigenvalues are no more than rounding below."""
    return max(_RANK * float(np.max(np.abs(values), initial=0.0)), gram.floor)


def _chosen(problem: KernelProblem, gram: Gram, values: Vector, *, whole: bool) -> int | None:
    """Return how many axes of these variances to keep; None where there are too few.

    Where the sketch has shown all, the other eigenvalues are zero.
    """
    there, asked = int((values > _least(gram, values)).sum()), axes_asked(problem)
    if asked is not None:
        return None if there < asked and not whole else min(there, asked)
    if problem.rule.first_guess(*problem.sides) is not None:
        return there
    others = problem.limit - len(values) if whole else 0
    found = problem.choose(np.pad(values, (0, others)), gram.trace)
    return None if found is None else min(found, there)


def _polished(found: Twice) -> KernelProjection | None:
    """Return the best axes of the span, by a third product."""
    problem, gram, before, whole = found.problem, found.gram, found.values, found.whole
    sizes = lengths(to_numpy(found.product))
    Y = found.product / like(np.where(sizes > 0, sizes, 1.0), gram.reference)
    overlaps = to_numpy(Y.T @ Y)[np.ix_(found.above, found.above)]
    del found  # its vectors
    Y = orthonormalize(Y)[0]
    spectrum = _ritz(gram, Y, len(sizes))
    k = _chosen(problem, gram, spectrum.values, whole=whole)
    if k is None:
        return None
    k = positive(gram, spectrum, k)
    certificate = certify(gram, spectrum, k, problem.rng, probe=problem.gap is not None)
    certificate = replace(certificate, negative=_below(gram, spectrum))
    if gram.psd:
        assert spectrum.coupling is not None
        beside = np.sqrt(np.diag(spectrum.coupling)[:k])
        sizes = np.hypot(spectrum.values[:k], beside)
        certificate = replace(certificate, captured=_held(gram, spectrum.values[:k], sizes))
    both = min(k, len(before))
    note = changed(before[:both], spectrum.values[:both], overlaps[:both, :both])
    return projected(problem, gram, spectrum, k, with_notes(certificate, note))


def _plain(found: Twice) -> KernelProjection | None:
    """Return the axes as Algorithm 6 has them: the variances are the sketch's."""
    problem, gram, values = found.problem, found.gram, found.values
    k = _chosen(problem, gram, values, whole=found.whole)
    if k is None:
        return None
    V = found.axes(k)
    V = V * facing(V, gram.roots)
    nothing = np.full(k, np.nan)
    certificate = _judged(found, k)
    projection = projected(problem, gram, Spectrum(values[:k], V, nothing), k, certificate)
    return replace(projection, overlaps=_overlaps(found, V, values[:k]))


def _judged(found: Twice, k: int) -> Certificate:
    """Say what axes that no product was made with hold: no less than those they came from.

    Of a positive semi-definite A the span of AU holds no less than the span of U: for any j,
    by Cauchy and Schwarz, tr((UᵀAʲ⁺¹U)⁻¹UᵀAʲ⁺²U) ≥ tr((UᵀAʲU)⁻¹UᵀAʲ⁺¹U). Of others tr UᵀAU
    is an estimate.
    """
    gram, values = found.gram, found.values
    spectrum = _ritz(gram, found.left, k, found.product)
    certificate = certify(gram, spectrum, k, found.problem.rng, probe=False)
    at = found.above[:k]
    captured = _share(gram, float(np.diag(found.inner)[at].sum()), "estimate")
    if gram.psd:
        theta, S = eigh(found.inner[np.ix_(at, at)]) if k else (np.zeros(0), np.zeros((0, 0)))
        captured = _held(gram, theta, lengths(to_numpy(found.product)[:, at] @ S))
    upper, total = certificate.optimum_upper, gram.trace
    assert spectrum.ritz is not None
    likely = likely_optimum(spectrum, spectrum.ritz[k:], k) / total if total > 0 else 0.0
    return replace(
        certificate,
        captured=captured,
        residuals=np.full(k, np.nan),
        eigenvalues=values[:k],
        spacing=spacing_of(values[:k], values[k:]),
        likely=max(float(captured), min(likely, float(upper))),
        ratio=None,
        notes=("Components from a sketch, not polished: variances are the sketch's.",),
        negative=_below(gram, spectrum),
    )


def _ritz(gram: Gram, Q: Array, k: int, product: Array = None) -> Spectrum:
    """Return what the span of Q holds; refuse what float64 cannot square."""
    with np.errstate(over="ignore", invalid="ignore"):
        if product is None:
            spectrum = rayleigh_ritz(gram, Q, k)
        else:
            spectrum = ritz_pairs(gram, Q, product, k)
    assert spectrum.coupling is not None
    if not np.isfinite(spectrum.coupling).all():
        raise ValueError(
            "The kernel's values are too large: their squares overflow. Scale the rows, or change "
            "the kernel's parameters."
        )
    return spectrum


def _held(gram: Gram, values: Vector, sizes: Vector) -> Figure:
    """Bound the share in the span of axes, of these inner products and lengths of AV.

    In units of the largest: squares may overflow.
    """
    unit = float(np.max(np.abs(values), initial=0.0)) or 1.0
    return _share(gram, unit * held_by(values / unit, (sizes / unit) ** 2, gram.rounding / unit))


def _share(gram: Gram, held: float, kind: str = "bound") -> Figure:
    """Return a variance as a share of the most that the total can be."""
    most = gram.trace + gram.rounding
    share = held / most if most > 0 else 0.0
    return Figure(min(share, 1.0) if gram.psd else share, kind)


def _below(gram: Gram, spectrum: Spectrum) -> Vector:
    """Return the negative Ritz values, the least first: eigenvalues are no less negative."""
    assert spectrum.ritz is not None
    ritz = spectrum.ritz
    return np.zeros(0) if gram.psd else np.sort(ritz[ritz < -_least(gram, ritz)])


def _overlaps(found: Twice, V: Array, values: Vector) -> Matrix:
    """Estimate the inner products of axes, VᵀAV over the roots of variances.

    By A ≈ Y(UᵀY)†Yᵀ, Y = AU: what the second product tells of it.
    """
    m, S = eigh(found.inner)
    there = np.abs(m) > 1e-10 * np.max(np.abs(m), initial=0.0)
    seen = to_numpy(V.T @ found.product) @ S[:, there]
    return np.asarray((seen / m[there]) @ seen.T / np.sqrt(np.outer(values, values)))

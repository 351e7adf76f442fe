"""Axes from a sketch of the rows that keeps their dot products (marukatat Alg. 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.arrays import (
    Array,
    Matrix,
    Vector,
    cast,
    eigh,
    like,
    namespace,
    orthonormalize,
    to_numpy,
)
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.eigen import rayleigh_ritz
from mercer.folds import Centre, Moments
from mercer.methods.base import Cost, Method, Size, certify
from mercer.methods.svd import SVD
from mercer.operators import Covariance
from mercer.problem import Problem
from mercer.projection import LinearProjection, Projection
from mercer.sketches import Gaussian, SketchMap
from mercer.sketches.folds import Lifted, Shifted, Sketched

# Axes beyond those wanted that the polish has to choose from.
_MORE = 8
# Eigenvalues of a sketch below this share of the largest are rounding.
_RANK = 1e-12
# Columns of a sketch of no given size: so many, or so many for every axis.
_LEAST, _EACH = 200, 5


class Sketch(Method):
    r"""Axes from eigenvectors of a sketch: :math:`v = X^T\tilde X u/\lambda`, normalised.

    The rows go through a map f that keeps dot products, :math:`\tilde x = f(x) \in R^q`; the q×q
    scatter of :math:`\tilde X` has the eigenpairs (λ, u). Two passes over the rows, q² memory.
    The axes so found are not orthogonal: a Rayleigh–Ritz step on the rows themselves, one more
    pass, makes them the best of their span, with true variances and a certificate.

    Parameters
    ----------
    sketch : SketchMap or None
        The map, such as `mercer.sketches.Gaussian(500)`; None is a Gaussian one, of a size
        that suits the number of axes.
    polish : bool
        Whether to make that last step.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.methods import Sketch
    >>> from mercer.sketches import Gaussian
    >>> X = load_digits().data
    >>> PCA(2, svd_solver=Sketch(Gaussian(40))).fit(X).explained_variance_ratio_.round(2)
    array([0.15, 0.13])
    """

    name = "sketch"

    def __init__(self, sketch: SketchMap | None = None, polish: bool = True) -> None:
        self.sketch, self.polish = sketch, polish

    def cost(self, size: Size) -> Cost:
        q, k = self._size(size.d, size.k), size.axes
        entries = float(size.n * size.d if size.nnz is None else size.nnz)
        sketching = 2.0 * entries * q if isinstance(self._map(size.d, size.k), Gaussian) else 0.0
        lift = 2.0 * entries * (k + _MORE) * (3 if self.polish else 1)
        work = 2 * sketching + float(size.n) * q * q + lift
        memory = 24.0 * q * q + 32.0 * size.d * (k + _MORE) + min(8.0 * size.d * q, 2.0**28)
        passes = 3 if self.polish else 2
        sparse, dense = (0.0, work) if size.nnz is None else (work, 0.0)
        return Cost(passes, dense, 4 / 3 * q**3, memory, sparse)

    def fit(self, problem: Problem) -> Projection:
        n, d = problem.source.shape
        wanted = problem.rule.first_guess(n, d)
        sketch = self._map(d, wanted)
        while True:
            found = self._fit(problem, sketch)
            enough = problem.gap is None or found.certificate.gap <= problem.gap
            q = getattr(sketch, "q", d)
            if enough or not self.polish or q >= min(n, d):
                return found
            sketch = _larger(sketch, min(2 * q, min(n, d)))

    def _map(self, d: int, k: int | None) -> SketchMap:
        if self.sketch is not None:
            return self.sketch
        return Gaussian(self._size(d, k), identity=True)

    def _size(self, d: int, k: int | None) -> int:
        q = getattr(self.sketch, "q", None)
        return min(d, int(q) if q else max(_LEAST, _EACH * (k or 0)))

    def _fit(self, problem: Problem, sketch: SketchMap) -> Projection:
        source, d = problem.source, problem.source.shape[1]
        deviation = problem.standard[1] if problem.scale else np.ones(d)
        drawn = sketch.drawn_from(source)
        shifted = Shifted(drawn, _shift(problem), deviation)
        fold = Sketched(
            shifted,
            Moments(d, source.reference, np.float64, diagonal=True, center=problem.center),
            Moments(drawn.q, source.reference, np.float64, center=problem.center),
        )
        fold = source.fold(fold)
        mean, scatter = fold.rows.mean, fold.rows.scatter
        problem.require_finite(mean, scatter, fold.small.scatter)
        total = float((scatter / deviation**2).sum()) / problem.divisor
        if problem.is_constant(mean, deviation, total):
            return SVD().fit(problem)
        values, U = eigh(to_numpy(fold.small.scatter) / problem.divisor)
        p = self._axes(problem, sketch, values)
        lift = Lifted(
            Centre(mean, source.dtype, source.reference),
            like(U[:, :p] / values[:p], source.reference),
            (d, p),
            shifted,
            fold.small.mean,
        )
        axes = cast(source.fold(lift).result, np.float64)
        axes = axes / like(deviation, axes)[:, None]
        axes = _padded(axes / like(np.linalg.norm(to_numpy(axes), axis=0), axes), problem)
        if not self.polish:
            k = _chosen(problem, sketch, values, total)
            certificate = _estimated(values, k, total)
            return problem.projection(mean, deviation, axes[:, :k], values[:k], total, certificate)
        operator = Covariance(source, mean, deviation, problem.divisor, total)
        return _polished(problem, sketch, operator, axes, values)

    def _axes(self, problem: Problem, sketch: SketchMap, values: Vector) -> int:
        """Return how many axes to make: some more than wanted, or all, for a rule to see."""
        wanted = problem.rule.first_guess(*problem.sides)
        if wanted is not None and wanted > len(values):
            raise ValueError(
                f"{sketch!r} makes {len(values)} columns, too few for {wanted} axes. "
                f"Take a q of at least {wanted}; a few times that is better."
            )
        there = int((values > _RANK * values[0]).sum())
        return there if wanted is None else min(there, wanted + _MORE)


def _chosen(problem: Problem, sketch: SketchMap, values: Vector, total: float) -> int:
    wanted = problem.rule.first_guess(*problem.sides)
    chosen = wanted if wanted is not None else problem.choose(values, total)
    if chosen is None:
        raise ValueError(
            f"{problem.rule!r} cannot tell from the {len(values)} axes of {sketch!r} how many to "
            f"keep. Take a larger q."
        )
    return min(chosen, len(values))


def _polished(
    problem: Problem,
    sketch: SketchMap,
    operator: Covariance,
    axes: Array,
    before: Vector,
) -> LinearProjection:
    """Return the best axes of the span, by one product with the covariance."""
    p = int(axes.shape[1])
    spectrum = rayleigh_ritz(operator, orthonormalize(axes)[0], p)
    k = min(p, _chosen(problem, sketch, spectrum.values, operator.trace))
    spectrum = spectrum.head(k)
    certificate = certify(operator, spectrum, k, problem.rng, probe=problem.gap is not None)
    note = _note(before[:k], spectrum.values, to_numpy(axes[:, :k]))
    return problem.projection(
        operator.mean,
        operator.deviation,
        spectrum.vectors,
        spectrum.values,
        operator.trace,
        replace(certificate, notes=(note,)),
    )


def _padded(axes: Array, problem: Problem) -> Array:
    """Return axes, and beside them random ones where the rows do not have as many as wanted."""
    wanted = problem.rule.first_guess(*problem.sides) or 0
    d, there = (int(size) for size in axes.shape)
    if there >= wanted:
        return axes
    others = like(problem.rng.standard_normal((d, wanted - there)), axes) / d**0.5
    return namespace(axes).concat([axes, others], axis=1)


def _shift(problem: Problem) -> Vector:
    """Return the mean of some rows, which the others are near to; zeros where none is wanted."""
    source = problem.source
    if source.sparse or not problem.center:
        return np.zeros(source.shape[1])
    rows = to_numpy(source.read(0, min(256, source.shape[0]))).astype(np.float64)
    return np.asarray(rows.mean(axis=0))


def _larger(sketch: SketchMap, q: int) -> SketchMap:
    """Return the same map with more columns."""
    grown = type(sketch)(**{**sketch.get_params(deep=False), "q": q, "identity": True})
    return grown


def _estimated(values: Vector, k: int, total: float) -> Certificate:
    """Return what the sketch alone tells: estimates, no bounds."""
    share = float(values[:k].sum()) / total if total > 0 else 0.0
    figure = Figure(min(1.0, share), "estimate")
    return Certificate(
        captured=figure,
        optimum_upper=figure,
        residuals=np.full(k, np.nan),
        eigenvalues=values[:k],
        spacing=spacing_of(values[:k], values[k:]),
        notes=("Axes from a sketch, not polished: variances are the sketch's.",),
    )


def _note(before: Vector, after: Vector, axes: Matrix) -> str:
    """Say what the polish changed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        off = float(np.max(np.abs(before / after - 1.0), initial=0.0))
    overlap = np.abs(axes.T @ axes - np.eye(axes.shape[1])).max(initial=0.0)
    return (
        f"Before the polish the sketch's variances were off by up to {100 * off:.2g} %, and its "
        f"axes overlapped by up to {overlap:.2g}."
    )

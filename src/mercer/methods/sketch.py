"""Axes from a sketch that keeps dot products: of rows (marukatat Alg. 4) or kernels (Alg. 6)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from mercer.arrays import (
    Array,
    Vector,
    cast,
    eigh,
    like,
    namespace,
    orthonormalize,
    to_numpy,
)
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.checks import require
from mercer.config import get_config
from mercer.data import Block, Source
from mercer.linalg import Centre, Covariance, Moments
from mercer.linalg.solvers import rayleigh_ritz
from mercer.messages import counted
from mercer.methods.base import FLOOR, Cost, Method, Size, certify, largest
from mercer.methods.kernel import sketch as kernel_sketch
from mercer.methods.linear.iterative import BLIND, from_scores
from mercer.methods.linear.polish import changed
from mercer.methods.linear.svd import SVD
from mercer.problem import KernelProblem, Problem
from mercer.projection import Projection
from mercer.sketches import Gaussian, RandomMap, SketchMap
from mercer.sketches.folds import Lifted, Shifted, Sketched
from mercer.sketches.images import ImageMap

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

    For kernel PCA the rows that are sketched are those of the centred kernel matrix,
    :math:`Z = \tilde KW` with the map's n×q matrix W, :math:`E[WW^T] = I`. From the eigenpairs
    (λ, u) of :math:`Z^TZ` the eigenvalues of :math:`\tilde K` are :math:`\pm\sqrt\lambda`, with
    the sign of :math:`(Zu)^T\tilde K(Zu)`, and the eigenvectors are in proportion to
    :math:`\tilde KZu`. Two products with the kernel matrix, which is never formed, three with the
    polish; nq memory.

    Parameters
    ----------
    sketch : SketchMap or None
        The map, such as `mercer.sketches.Gaussian(500)`, with its own `random_state`. None is
        a Gaussian one of a size that suits the number of axes, or that grows until a share of
        the variance is reached, drawn by the `random_state` of the estimator.
    polish : bool
        Whether to make that last step. Without it the variances are the sketch's, estimates,
        and nothing is certified, but what the two products of a kernel tell.

    References
    ----------
    S. Marukatat, Tutorial on PCA and approximate PCA and approximate kernel PCA, Artificial
    Intelligence Review 56 (2023), Algorithms 4 and 6.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.methods import Sketch
    >>> from mercer.sketches import Gaussian
    >>> X = load_digits().data
    >>> PCA(2, svd_solver=Sketch(Gaussian(40))).fit(X).explained_variance_ratio_.round(2)
    array([0.15, 0.13])
    >>> from mercer import KernelPCA
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.001, method=Sketch(Gaussian(100))).fit(X)
    >>> kpca.explained_variance_ratio_.round(2)
    array([0.05, 0.05])
    """

    name = "sketch"
    in_pairs = True

    def __init__(self, sketch: SketchMap | None = None, polish: bool = True) -> None:
        self.sketch, self.polish = sketch, polish

    @property
    def keeps_rows(self) -> bool:
        return True  # of a kernel: what new rows are compared to

    def cost(self, size: Size) -> Cost:
        self.check()
        if size.square:
            kernel_sketch.require_kernel_map(self.sketch)
            return kernel_sketch.cost(size, self.columns(size.n, size.k), polish=self.polish)
        q = self.columns(size.d, size.k)
        p = _count(size.n, size.d, q, size.k)
        entries = float(size.n * size.d if size.nnz is None else size.nnz)
        sketching = 2.0 * entries * q if isinstance(self._map(size.d, size.k), Gaussian) else 0.0
        lift = 2.0 * entries * p * (3 if self.polish else 1)
        work = 2 * sketching + float(size.n) * q * q + lift
        passes = 3 if self.polish else 2
        sparse, dense = (0.0, work) if size.nnz is None else (work, 0.0)
        return Cost(passes, dense, 4 / 3 * q**3, _memory(size.d, q, p), sparse)

    def fit(self, problem: Problem) -> Projection:
        self.check()
        sketch = self._map(problem.sides[1], problem.rule.first_guess(*problem.sides))
        while True:
            found = self._fit(problem, sketch)
            if found is not None and self._is_enough(problem, found):
                return found
            grows = self.sketch is None or problem.gap is not None
            larger = self._larger(problem, sketch) if grows else None
            if larger is None and found is not None:
                return found
            if larger is None:
                raise ValueError(
                    f"{problem.rule!r} cannot be met: the components of {sketch!r} are too few, or "
                    f"too few of positive variance. Take a larger q."
                )
            sketch = larger

    def label(self, size: Size) -> str:
        q = self.columns(size.n, size.k) if size.square else 0
        return f"{self.name} ({counted(q, 'column')})" if q else self.name

    def shrunk(self, size: Size, room: float) -> Self | None:
        if not size.square or not isinstance(self.sketch, RandomMap | None):
            return None

        def map(q: int) -> SketchMap:
            return Gaussian(q) if self.sketch is None else copy.copy(self.sketch).set_params(q=q)

        def fits(q: int) -> bool:
            return self.changed(sketch=map(q)).cost(size).memory <= room

        q = largest(fits, max(1, size.k or 1), self.columns(size.n, size.k))
        return None if q is None else self.changed(sketch=map(q))

    @property
    def nearer(self) -> str:
        return super().nearer if self.polish else "polish=True certifies far more."

    def require_room(self, n: int, k: int) -> None:
        if self.sketch is not None:
            kernel_sketch.require_columns(self.sketch, self.columns(n, k), k)

    def check(self) -> None:
        """Refuse parameters that make no sense."""
        fine = self.sketch is None or isinstance(self.sketch, SketchMap)
        require(self, "sketch", fine, "a map such as mercer.sketches.Gaussian(500), or None")
        require(self, "polish", isinstance(self.polish, bool), "True or False")
        if self.sketch is not None:
            self.sketch.check()

    def _is_enough(self, problem: Problem, found: Projection) -> bool:
        # Without the polish nothing is certified, however large the sketch.
        wanted = problem.gap if self.polish else None
        return wanted is None or found.certificate.gap <= wanted

    def _map(self, d: int, k: int | None) -> SketchMap:
        if self.sketch is not None:
            return self.sketch
        return Gaussian(self.columns(d, k), identity=True)

    def columns(self, d: int, k: int | None) -> int:
        """Return how many columns the sketch of d columns has, for k axes."""
        if isinstance(self.sketch, ImageMap):
            return self.sketch.drawn(d).q
        q = getattr(self.sketch, "q", None)
        return min(d, int(q) if q else max(_LEAST, _EACH * (k or 0)))

    def _fit(self, problem: Problem, sketch: SketchMap) -> Projection | None:
        """Return axes from a sketch; None where it has too few for the rule to tell."""
        rng = problem.rng if self.sketch is None else None
        if isinstance(problem, KernelProblem):
            return kernel_sketch.fitted(problem, sketch, rng, polish=self.polish)
        source, d = problem.source, problem.source.shape[1]
        deviation = problem.standard[1] if problem.scale else np.ones(d)
        drawn = sketch.drawn_from(_treated(problem, deviation), rng)
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
        if total == 0.0:
            return SVD().fit(problem)
        level = problem.levelled(fold.rows)
        if level is not problem:
            return self._fit(level, sketch)
        small, small_mean = to_numpy(fold.small.scatter) / problem.divisor, fold.small.mean
        del fold  # it holds the room of a block
        values, U = eigh(small)
        p = self._axes(problem, sketch, values)
        lift = Lifted(
            Centre(mean, source.dtype, source.reference),
            like(U[:, :p] / values[:p], source.reference),
            (d, p),
            shifted,
            small_mean,
        )
        axes = cast(source.fold(lift).result, np.float64)
        del lift, shifted, drawn  # and the matrix of the map
        axes = axes / like(deviation, axes)[:, None]
        axes = _padded(axes / like(np.linalg.norm(to_numpy(axes), axis=0), axes), problem)
        if not self.polish:
            k = _chosen(problem, values, total)
            if k is None:
                return None
            certificate = _estimated(values, k, total)
            return problem.projection(mean, deviation, axes[:, :k], values[:k], total, certificate)
        operator = Covariance(source, mean, deviation, problem.divisor, total)
        return _polished(problem, operator, axes, values)

    def _larger(self, problem: Problem, sketch: SketchMap) -> SketchMap | None:
        """Return the map with twice the columns; None where more do not serve, or do not fit."""
        q = getattr(sketch, "q", None)
        kernel = isinstance(problem, KernelProblem)
        # Images and groups by their bound have their size; groups of rows are learnt already.
        if q is None or (kernel and not isinstance(sketch, RandomMap)):
            return None
        n, d = problem.sides
        more, wanted = min(2 * int(q), d), problem.rule.first_guess(n, d)
        if kernel:
            width = problem.source.shape[1] if len(problem.source.shape) > 1 else 1
            needed = kernel_sketch.memory(Size(n, width, wanted, square=True), more)
        else:
            needed = _memory(d, more, _count(n, d, more, wanted))
        if more <= q or needed > get_config().budget:
            return None
        settings: dict[str, Any] = {"q": more}
        if isinstance(sketch, RandomMap):
            settings["identity"] = True
        return type(sketch)(**(sketch.get_params(deep=False) | settings))

    def _axes(self, problem: Problem, sketch: SketchMap, values: Vector) -> int:
        """Return how many axes to make of those that the sketch tells from rounding."""
        wanted = problem.rule.first_guess(*problem.sides)
        if wanted is not None and wanted > len(values):
            raise ValueError(
                f"{sketch!r} makes {len(values)} columns, too few for {wanted} components. "
                f"Take a q of at least {wanted}; a few times that is better."
            )
        there = int((values > _RANK * values[0]).sum())
        return min(there, _count(*problem.sides, len(values), wanted))


def _count(n: int, d: int, q: int, k: int | None) -> int:
    """Return how many axes of a sketch to make: some more than the k wanted, or all.

    All where a rule must see them first, and of so few rows that they lose nothing.
    """
    every = min(n, q)
    if k is None or (n <= q and _memory(d, q, every) <= get_config().budget):
        return every
    return min(every, k + _MORE)


def _memory(d: int, q: int, axes: int) -> float:
    """Return the bytes of the scatter, the axes and the map."""
    return 24.0 * q * q + 32.0 * d * axes + min(8.0 * d * q, get_config().budget / 4)


def _chosen(problem: Problem, values: Vector, total: float) -> int | None:
    wanted = problem.rule.first_guess(*problem.sides)
    chosen = wanted if wanted is not None else problem.choose(values, total)
    return None if chosen is None else min(chosen, len(values))


def _treated(problem: Problem, deviation: Vector) -> Source:
    """Return the rows as a map that learns should see them: divided by the deviations."""
    source = problem.source
    if not problem.scale:
        return source

    def divided(block: Block) -> Array:
        rows = block.dense(np.float64)
        return rows / like(deviation, rows)

    d = source.shape[1]
    return source.map(divided, d, np.float64, 8 * d)


def _polished(
    problem: Problem,
    operator: Covariance,
    axes: Array,
    before: Vector,
) -> Projection | None:
    """Return the best axes of the span, by one product with the covariance.

    Where that squares away the smallest of them, by a QR decomposition of their scores, or of
    the rows.
    """
    p = int(axes.shape[1])
    spectrum = rayleigh_ritz(operator, orthonormalize(axes)[0], p)
    # Axes that were rounding to the sketch were not made: to a rule they hold nothing.
    hidden = max(0, min(len(before), problem.limit) - p)
    k = _chosen(problem, np.pad(spectrum.values, (0, hidden)), operator.trace)
    if k is None:
        return None
    k = min(k, p)
    spectrum = spectrum.head(k)
    certificate = certify(operator, spectrum, k, problem.rng, probe=problem.gap is not None)
    note = changed(before[:k], spectrum.values, to_numpy(axes[:, :k].T @ axes[:, :k]))
    certificate = replace(certificate, notes=(note,))
    values, vectors = spectrum.values, spectrum.vectors
    depth = spectrum.depth(k)
    if depth < BLIND:
        if SVD().cost(Size(*problem.sides, k)).memory <= get_config().budget:
            return SVD().fit(problem)
        certificate = replace(certificate, converged=False)
    if depth < FLOOR[np.dtype(np.float64)]:
        values, vectors = from_scores(problem, vectors)
    return problem.projection(
        operator.mean, operator.deviation, vectors, values, operator.trace, certificate
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
    n, d = source.shape
    if source.sparse or not problem.center:
        return np.zeros(d)
    room = get_config().budget // 8 // (source.row_bytes + 8 * d)
    rows = to_numpy(source.read(0, min(256, n, max(1, room)))).astype(np.float64)
    return np.asarray(rows.mean(axis=0))


def _estimated(values: Vector, k: int, total: float) -> Certificate:
    """Return what the sketch alone tells: an estimate of what is held, and no bound but all."""
    share = float(values[:k].sum()) / total if total > 0 else 0.0
    return Certificate(
        captured=Figure(min(1.0, share), "estimate"),
        optimum_upper=Figure(1.0),
        residuals=np.full(k, np.nan),
        eigenvalues=values[:k],
        spacing=spacing_of(values[:k], values[k:]),
        notes=("Components from a sketch, not polished: variances are the sketch's.",),
    )

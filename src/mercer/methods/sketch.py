"""PCA from a sketch that preserves dot products, of rows (marukatat Alg. 4) or kernels (Alg. 6)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mercer.certificate import Axes, Evidence
from mercer.certificate.partition import explained_by_scores, refine
from mercer.checks import require
from mercer.config import get_config
from mercer.messages import counted
from mercer.methods.base import Cost, Method, Size
from mercer.methods.kernel.sketch import (
    fit_kernel_sketch,
    kernel_sketch_cost,
    require_kernel_map,
)
from mercer.methods.linear.sketch import fit_linear_sketch, linear_sketch_cost, require_columns
from mercer.problem import KernelProblem, Problem
from mercer.sketches import Gaussian, RandomMap, SketchMap
from mercer.sketches.images import ImageMap

# Columns of a sketch whose size is not set: at least this many, and this many per component.
_LEAST, _EACH = 200, 5
# Rows of the first blocks that certify a gap.
_ROWS = 1024


class Sketch(Method):
    r"""Components from eigenvectors of a sketch: :math:`v = X^T\tilde X u/\lambda`, normalized.

    The rows go through a map f that preserves dot products, :math:`\tilde x = f(x) \in R^q`; the
    q×q scatter of :math:`\tilde X` has the eigenpairs (λ, u). Two passes over the rows, q² memory.
    A Rayleigh–Ritz step, one more pass, turns these components, which are not orthogonal, into the
    best of their span, with true variances and a certificate.

    For kernel PCA, :math:`Z = \tilde KW` with the map's n×q matrix W, :math:`E[WW^T] = I`. From the
    eigenpairs (λ, u) of :math:`Z^TZ` the eigenvalues of :math:`\tilde K` are
    :math:`\pm\sqrt\lambda`, with the sign of :math:`(Zu)^T\tilde K(Zu)`, and the eigenvectors are
    proportional to :math:`\tilde KZu`. Two products with the kernel matrix, which is never formed,
    three with the polish; nq memory.

    Parameters
    ----------
    sketch : SketchMap or None
        The map, such as `mercer.sketches.Gaussian(500)`, with its own `random_state`. None: a
        Gaussian map that grows until it suits the number of components.
    polish : bool
        Whether to make the Rayleigh–Ritz step. Without it the variances are estimates.

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
    approximates = judges = True
    pairwise = True

    def __init__(self, sketch: SketchMap | None = None, polish: bool = True) -> None:
        self.sketch, self.polish = sketch, polish

    @property
    def keeps_rows(self) -> bool:
        return True  # of a kernel: new rows are compared with them

    def cost(self, size: Size) -> Cost:
        self.check()
        if size.kernel:
            require_kernel_map(self.sketch)
            cost = kernel_sketch_cost(size, self.columns(size.n, size.k), polish=self.polish)
        else:
            dense = isinstance(self._map(size.d, size.k), Gaussian)
            q = self.columns(size.d, size.k)
            cost = linear_sketch_cost(size, q, polish=self.polish, dense=dense)
        grows = size.gap is not None or (self.sketch is None and size.k is None)
        return cost._replace(extra_passes=math.inf) if grows else cost

    def fit(self, problem: Problem) -> Axes:
        self.check()
        sketch = self._map(problem.shape[1], problem.n_components)
        rng, gap = problem.rng if self.sketch is None else None, problem.gap
        known: Evidence | None = None
        while True:
            if isinstance(problem, KernelProblem):
                axes = fit_kernel_sketch(problem, sketch, rng, polish=self.polish)
            else:
                axes = fit_linear_sketch(problem, sketch, rng, polish=self.polish)
            if axes is not None and gap is None:
                return axes
            if axes is not None and gap is not None:
                axes = self.judge(problem, axes)
                axes = replace(axes, evidence=axes.evidence.bounded_by(known))
                if axes.evidence.gap > gap:
                    axes = refine(problem, axes, _ROWS, gap)
                if axes.evidence.gap <= gap:
                    return axes
                known = axes.evidence
            grows = self.sketch is None or problem.gap is not None
            larger = self._larger(problem, sketch) if grows else None
            if larger is None and axes is not None:
                return axes
            if larger is None:
                raise ValueError(
                    f"{problem.rule!r} cannot be met: {sketch!r} has too few components of "
                    f"positive variance. Use a larger q."
                )
            sketch = larger

    def judge(self, problem: Problem, axes: Axes) -> Axes:
        """Measure the variance that components explain which were not polished."""
        if axes.evidence.explained.kind == "bound" or isinstance(problem, KernelProblem):
            return axes
        explained = explained_by_scores(problem, axes)
        return replace(axes, evidence=replace(axes.evidence, explained=explained))

    def label(self, size: Size) -> str:
        q = self.columns(size.n, size.k) if size.kernel else 0
        return f"{self.name} ({counted(q, 'column')})" if q else self.name

    @property
    def remedy(self) -> str:
        return super().remedy if self.polish else "polish=True finds better components."

    def check_size(self, n: int, k: int) -> None:
        if self.sketch is not None:
            require_columns(self.sketch, self.columns(n, k), k)

    def check(self) -> None:
        """Raise if parameters are invalid."""
        valid = self.sketch is None or isinstance(self.sketch, SketchMap)
        require(self, "sketch", valid, "a map such as mercer.sketches.Gaussian(500), or None")
        require(self, "polish", isinstance(self.polish, bool), "True or False")
        if self.sketch is not None:
            self.sketch.check()

    def columns(self, d: int, k: int | None) -> int:
        """Return the number of columns of a sketch of d columns, for k components."""
        if isinstance(self.sketch, ImageMap):
            return self.sketch.matrix_for(d).q
        q = getattr(self.sketch, "q", None)
        return min(d, int(q) if q else max(_LEAST, _EACH * (k or 0)))

    def _map(self, d: int, k: int | None) -> SketchMap:
        if self.sketch is not None:
            return self.sketch
        return Gaussian(self.columns(d, k), identity=True)

    def _larger(self, problem: Problem, sketch: SketchMap) -> SketchMap | None:
        """Return the map with twice the columns; None if more do not help, or do not fit."""
        q = getattr(sketch, "q", None)
        kernel = isinstance(problem, KernelProblem)
        # The size of image maps and of groupings by a bound is fixed.
        if q is None or (kernel and not isinstance(sketch, RandomMap)):
            return None
        (n, d), k = problem.shape, problem.n_components
        params: dict[str, Any] = {"q": min(2 * int(q), d)}
        if isinstance(sketch, RandomMap):
            params["identity"] = True
        larger = type(sketch)(**(sketch.get_params(deep=False) | params))
        width = problem.source.shape[-1] if kernel else d
        memory = Sketch(larger, self.polish).cost(Size(n, width, k, kernel=kernel)).memory
        return None if params["q"] <= q or memory > get_config().budget else larger

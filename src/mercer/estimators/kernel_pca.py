"""Kernel principal component analysis behind scikit-learn's interface."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from mercer.arrays import Array, cast, is_finite, like, numpy_dtype, to_numpy
from mercer.certificate import Axes, certify
from mercer.data import ArraySource, Source
from mercer.estimators.batches import LEFT_OVER, Batches
from mercer.estimators.home import wide_enough
from mercer.estimators.kernel import resolved
from mercer.estimators.kernel_scale import warn_of_scale
from mercer.estimators.validation import (
    check_matrix,
    check_rows,
    check_strings,
    counted,
    held,
)
from mercer.kernels import Kernel
from mercer.linalg.solvers import Randomized, arpack
from mercer.messages import format_parameter, percent, warn
from mercer.methods import (
    ConvergenceWarning,
    Exact,
    Method,
    OnBasis,
    RandomFeatures,
    Sketch,
)
from mercer.methods.kernel.adaptive import NEEDED
from mercer.planning import METHODS, Plan, make_kernel_plan
from mercer.preimage import PREIMAGES, Preimage
from mercer.problem import KernelProblem
from mercer.projection import KernelProjection
from mercer.projection.expansion import points_of
from mercer.projection.fourier import FourierProjection
from mercer.rules import NAMED, Count, Rule, as_rule

SOLVERS = ("auto", "dense", "arpack", "randomized", "krylov", "power", "jacobi")


class KernelPCA(Batches):
    r"""Kernel principal component analysis, exact or on a basis, and certified.

    Principal components in a kernel's feature space: eigenvectors of the centred kernel matrix,
    :math:`\tilde K v = \lambda v`; a row x has the score :math:`\sum_i \alpha_i \tilde k(x, x_i)`
    with :math:`\alpha = v/\sqrt\lambda`. A superset of `sklearn.decomposition.KernelPCA`: the same
    parameters, attributes, dtypes and signs, and what stands below them.

    Parameters
    ----------
    n_components : int, float, str, Rule or None
        Number of components; share of the variance to explain; the name of a rule: "kaiser",
        "broken-stick", "parallel" or "gavish-donoho"; a rule of `mercer.rules`; None or "all" for
        all of positive variance.
    kernel : str, Kernel or callable
        scikit-learn's names, with `gamma`, `degree` and `coef0`; "precomputed"; a text such as
        "rbf(0.1) + 2*poly(5)"; a kernel of `mercer.kernels`, of vectors or of strings; or a
        function of two rows.
    gamma : float, "median", "scale" or None
        For kernels by name. None is 1/d, as in scikit-learn. "median" is found from the median
        distance m between rows: 1/(2m²) for "rbf", "poly" and "sigmoid"; 1/m for "laplacian" and
        "chi2", by the distance of the kernel. "scale" is 1/(d · variance). A kernel that has no
        gamma ignores it: "linear", "cosine", "additive_chi2", "precomputed".
    degree, coef0, kernel_params
        As in scikit-learn.
    alpha, fit_inverse_transform
        As in scikit-learn: kernel ridge regression from scores back to rows, with the
        kernel's own width.
    eigen_solver : str
        "auto" plans; scikit-learn's "dense", "arpack", "randomized"; "krylov", "power",
        "jacobi".
    tol : float
        Residual asked of an iterative solver, relative to the eigenvalue; 0 is working
        precision.
    max_iter : int or None
        For "arpack".
    iterated_power : int or "auto"
        For "randomized".
    copy_X : bool
        Keep a copy of the rows, so that X may change after the fit; X is never written to.
    remove_zero_eig, n_jobs
        Accepted for compatibility: components of no variance are never handed out, and threads are
        as many as BLAS may use.
    random_state : int, RandomState or None
        Where the iterative solvers start.
    method : str or Method
        "exact" solves the problem of all rows. "subset", "reduced", "improved", "nystrom",
        "cholesky" and "greedy" find components in the span of a basis, "adaptive" the cheapest that
        are certified within `gap`; "sketch" finds them from a sketch of the kernel matrix,
        which is never formed, "features" from random Fourier features instead of the kernel,
        "sparse" and "sparse_l1" make them of few rows, "hebbian" learns them from one row after
        another; or a method of `mercer.methods`, such as `Subset(1000)`.
        "auto" is exact where that fits the memory, else a basis, with a warning; within a
        gap it is what is cheapest.
    center : bool
        Subtract the mean in feature space. With False every variance is about the origin of
        feature space instead of about the mean.
    gap : float, optional
        How far below the optimum the captured variance may be, as a share of it: the cheapest
        way to components that are certified so. Where they cannot be, a warning says what they are.
    preimage : str, Preimage or None
        The way back to rows: "fixed_point", "gradient", "ridge", "distances", "auto" for the one
        that suits the kernel, or a method of `mercer.preimage`. None is scikit-learn's.

    Attributes
    ----------
    eigenvalues_ : array of shape (k,)
        Eigenvalues of the centred kernel matrix; with center=False, of the kernel matrix itself.
    eigenvectors_ : array of shape (n, k)
        Its eigenvectors; there where the method is exact.
    explained_variance_, explained_variance_ratio_ : array of shape (k,)
        Variance along each component, λ/(n−1), and its share of the total, the trace of the matrix
        over n−1. With center=False both are about the origin of feature space, not the mean.
    X_fit_ : rows or None
        What the kernel of new rows is taken to; None where that is no rows. All rows of a Dask
        collection stay where they lie, as a Dask array.
    kernel_ : Kernel or None
        The kernel, with what was found inside the fit.
    gamma_ : float
    n_components_, n_features_in_ : int
    certificate_ : Certificate
        What the components hold, and what no others can exceed; negative eigenvalues of a kernel
        that is not positive semi-definite.
    plan_ : Plan
        What was done, what else could have been.
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
    projection_ : Projection
        The fitted map.

    References
    ----------
    B. Schölkopf, A. Smola & K.-R. Müller, Nonlinear component analysis as a kernel eigenvalue
    problem, Neural Computation 10 (1998). S. Marukatat, Artificial Intelligence Review 56
    (2023), §5.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> X, y = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    >>> scores = KernelPCA(2, kernel="rbf", gamma=10).fit_transform(X)
    >>> scores.shape
    (400, 2)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"all", *NAMED} - {"mle"}),  # which counts columns
            Rule,
            None,
        ],
        "kernel": [str, Kernel, callable],
        "gamma": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"median", "scale"}),
            None,
        ],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "kernel_params": [dict, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_inverse_transform": ["boolean"],
        "eigen_solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "remove_zero_eig": ["boolean"],
        "random_state": ["random_state"],
        "copy_X": ["boolean"],
        "n_jobs": [None, Integral],
        "method": [StrOptions(set(METHODS)), Method],
        "center": ["boolean"],
        "gap": [Interval(Real, 0, 1, closed="left"), None],
        "preimage": [StrOptions({"auto", *PREIMAGES}), Preimage, None],
    }

    def __init__(
        self,
        n_components: int | float | str | Rule | None = None,
        *,
        kernel: Any = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: Any = None,
        copy_X: bool = True,
        n_jobs: int | None = None,
        method: str | Method = "auto",
        center: bool = True,
        gap: float | None = None,
        preimage: str | Preimage | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.n_jobs = n_jobs
        self.method = method
        self.center = center
        self.gap = gap
        self.preimage = preimage

    def _rows(self, X: Any, *, reset: bool) -> Source:
        least = 2 if reset else 1
        if self.kernel == "precomputed":
            if self.fit_inverse_transform:
                raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
            return check_matrix(self, X, reset=reset, least=least)
        strings = check_strings(self, X, reset=reset, least=least)
        source = strings or check_rows(self, X, reset=reset, least=least)
        if not reset and (strings is None) == isinstance(self.X_fit_, list):
            fitted, now = ("strings", "numbers") if strings is None else ("numbers", "strings")
            raise ValueError(f"X holds {now}, and KernelPCA was fitted to {fitted}.")
        return source

    def _prepared(self, source: Source) -> tuple[KernelProblem, Plan]:
        for leftover in LEFT_OVER:
            self.__dict__.pop(leftover, None)
        # Landmarks may be given as numbers of rows: those of no weight must stay in their places.
        whole = self.kernel == "precomputed" or isinstance(self.method, OnBasis)
        problem = self._problem(source if whole else counted(source))
        plan = make_kernel_plan(problem, self._solver(), self.method)
        n, asked = problem.shape[0], self.n_components
        if isinstance(asked, Integral):
            plan.method.check_size(n, min(int(asked), n))
        if isinstance(plan.method, RandomFeatures):
            self._refuse_preimage()
        return problem, plan

    def _readied(self, problem: KernelProblem, plan: Plan) -> KernelProblem:
        apart = problem.source.remote is not None and problem.kernel is not None
        if not plan.method.keeps_rows or (apart and plan.method.pairwise):
            return problem
        copied = self.copy_X and self.kernel != "precomputed"
        return replace(problem, source=held(problem.source, copy_rows=copied))

    def _solver(self) -> Any:
        if self.eigen_solver == "randomized":
            return Randomized(10, self.iterated_power, products=2)
        if self.eigen_solver == "arpack" and self.max_iter is not None:
            return partial(arpack, max_iter=self.max_iter)
        return self.eigen_solver

    def _problem(self, source: Source, kernel: Kernel | None = None) -> KernelProblem:
        n = source.shape[0]
        options = (self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        if kernel is None:
            kernel, self.gamma_ = resolved(*options, source)
        asked = self.n_components
        rule = Count(min(int(asked), n)) if isinstance(asked, Integral) else as_rule(asked, n, n)
        return KernelProblem(
            source=source,
            rule=rule,
            center=self.center,
            tol=float(self.tol),
            gap=self.gap,
            rng=self._generator(),
            kernel=kernel,
        )

    def _publish(self, problem: KernelProblem, axes: Axes, plan: Plan) -> None:
        """Set the fitted attributes."""
        fitted: Any = axes.projection
        source, values, total = problem.source, fitted.eigenvalues, fitted.total_variance
        kind = source.dtype

        def here(x: Any) -> Array:
            x = to_numpy(x)
            return like(np.ascontiguousarray(x, dtype=wide_enough(x, kind)), source.reference)

        if not is_finite(fitted.components) or not np.all(np.isfinite(values)):
            name = "the kernel matrix" if problem.kernel is None else repr(problem.kernel)
            raise ValueError(
                f"The values of {name} are so large that sums of their squares overflow. Scale the "
                f"rows, or change the kernel's parameters."
            )
        values = np.maximum(values, 0.0)  # but for rounding
        fitted = replace(fitted, eigenvalues=values)
        if problem.kernel is not None and problem.kernel.psd:
            total = max(total, float(np.sum(values)))
        self.certificate_ = certify(problem, axes).rounded(kind)
        self.projection_ = fitted
        self.kernel_ = problem.kernel
        self.eigenvalues_ = here(values * problem.divisor)
        self.explained_variance_ = here(values)
        self.explained_variance_ratio_ = here(values / total if total > 0 else 0.0 * values)
        self.n_components_ = len(values)
        self.__dict__.pop("eigenvectors_", None)
        if isinstance(plan.method, Exact):
            self.eigenvectors_ = here(_eigenvectors(problem, fitted))
        every = isinstance(plan.method, (Exact, Sketch))
        self.X_fit_ = points_of(source) if every else _points(fitted, source)
        self.plan_ = plan
        self._fit_back(problem)
        self._warn(problem)

    def _own_scores(self, source: Source) -> Source:
        """Return the scores of the rows of the fit: √λ v/√w where the eigenvectors are there."""
        weights = source.weights
        rough = np.any(self.certificate_.residuals > 1e-6 * self.certificate_.eigenvalues)
        unweighed = weights is not None and not np.all(weights > 0)
        if not hasattr(self, "eigenvectors_") or rough or unweighed:
            return self._scores(source)
        # In float64: eigenvalues of float32 rows may be too large, or too small, for float32.
        lengths = np.sqrt(self.projection_.eigenvalues * (source.count - 1.0))
        scores = to_numpy(self.eigenvectors_) * lengths
        scores = scores if weights is None else scores / np.sqrt(weights)[:, None]
        return ArraySource(like(scores, self.eigenvectors_, numpy_dtype(self.eigenvectors_)))

    def _scores(self, source: Source) -> Source:
        kind = np.result_type(source.dtype, to_numpy(self.eigenvalues_[:0]).dtype)
        return self.projection_.scores(source, kind)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _warn(self, problem: KernelProblem) -> None:
        asked, method, found = self.n_components, self.plan_.method, self.certificate_
        if isinstance(asked, Integral) and self.n_components_ < min(asked, problem.shape[0]):
            k = self.n_components_
            some = {0: "no component has", 1: "only 1 component has"}
            larger = format_parameter("n_basis")
            where = f" in the span of the basis. A larger {larger} may find more"
            warn(
                f"{format_parameter('n_components', asked)}, but "
                f"{some.get(k, f'only {k} components have')} a variance above rounding error"
                f"{where if isinstance(method, OnBasis) else ''}."
            )
        batches = hasattr(self, "_stream")  # a basis is what partial_fit is for
        if (
            self.method == "auto"
            and self.gap is None
            and isinstance(method, OnBasis)
            and not batches
        ):
            warn(
                f"kernel PCA of all {problem.shape[0]} rows would take too much memory or time, so "
                f"{method!r} was used: within {percent(found.gap, up=True)} of optimal "
                f"({found.gap.label}), probably within {percent(found.gap_estimate, up=True)}. "
                f"Set {format_parameter('gap', 0.01)} for components certified within 1 %, or "
                f"{format_parameter('method', 'exact')} for all rows.",
                ConvergenceWarning,
            )
        if not batches:
            warn_of_scale(self, problem)
        if batches and self.gap is None:  # a stream has not ended: certificate_ says where it is
            return
        solver = "eigen_solver" if isinstance(method, Exact) else "method"
        self._warn_quality(solver, self._nearer())

    def _nearer(self) -> str:
        """Say what would come nearer to a gap that was missed."""
        needed = [note for note in self.certificate_.notes if note.startswith(NEEDED)]
        return " ".join([*needed, self.plan_.method.remedy])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        back = self.preimage is not None or self.fit_inverse_transform
        tags.input_tags.sparse = self.kernel != "precomputed" and not back
        return tags


def _points(fitted: KernelProjection | FourierProjection, source: Source) -> Any:
    """Return the points of the basis as the user's rows are; None where there is none."""
    if isinstance(fitted, FourierProjection):
        return None
    points = fitted.basis
    if points is None or fitted.shift is None:
        return source.whole() if points is None else points
    return cast(points + like(fitted.shift, points), source.dtype)


def _unit(V: Array) -> Array:
    """Return vectors of unit length: those that have not converged are not."""
    lengths = np.linalg.norm(V, axis=0)
    return V / np.where((lengths > 0) & (np.abs(lengths - 1.0) > 1e-9), lengths, 1.0)


def _eigenvectors(problem: KernelProblem, fitted: KernelProjection) -> Array:
    """Return unit eigenvectors of the weighed matrix: √w α √λ without the weights of α."""
    V = to_numpy(fitted.components) * np.sqrt(fitted.eigenvalues * problem.divisor)
    weights = problem.source.weights
    if weights is None:
        return _unit(V)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _unit(np.where(weights[:, None] > 0, V / np.sqrt(weights)[:, None], 0.0))

"""Kernel principal component analysis with scikit-learn's API."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from mercer.arrays import CSR, Array, cast, is_finite, like, same_device, to_device_of, to_numpy
from mercer.certificate import Axes, certify
from mercer.data import PastRows, Source
from mercer.estimators.base import draw_seed, fitted_array
from mercer.estimators.kernel_model import KernelModel
from mercer.estimators.kernel_parameters import resolve_kernel, warn_of_scale
from mercer.estimators.validation import (
    check_matrix,
    check_rows,
    check_strings,
    rows_of_model,
    select_rows,
)
from mercer.kernels import Kernel
from mercer.linalg.solvers import Randomized, arpack
from mercer.messages import ParameterError, format_parameter, percent, warn
from mercer.methods import (
    ConvergenceWarning,
    Exact,
    Method,
    OnBasis,
    RandomFeatures,
    Sketch,
    Streaming,
    Subset,
)
from mercer.methods.kernel.adaptive import NEEDED
from mercer.methods.preparation import move_rows, require_finite_vectors
from mercer.planning import METHODS, Plan, make_kernel_plan
from mercer.preimage import PREIMAGES, Preimage
from mercer.problem import KernelProblem, Problem
from mercer.projection import FourierProjection
from mercer.projection.kernel import points_of
from mercer.rules import KERNEL_NAMED, Count, Rule, as_rule

SOLVERS = ("auto", "dense", "arpack", "randomized", "krylov", "power", "jacobi")


@dataclass(eq=False, repr=False)
class KernelPCA(KernelModel):
    r"""Kernel principal component analysis, exact or on a basis, with a certificate.

    Principal components in a kernel's feature space: eigenvectors of the centered kernel matrix,
    :math:`\tilde K v = \lambda v`; a row x has the score :math:`\sum_i \alpha_i \tilde k(x, x_i)`
    with :math:`\alpha = v/\sqrt\lambda`. A superset of `sklearn.decomposition.KernelPCA`: the same
    parameters, attributes, dtypes and signs, and the additions below.

    Parameters
    ----------
    n_components : int, float, str, Rule or None
        Number of components; share of the variance to explain; the name of a rule: "kaiser",
        "broken-stick", "parallel" or "gavish-donoho"; a rule of `mercer.rules`; None or "all" for
        all of positive variance.
    kernel : str, Kernel or callable
        One of scikit-learn's names, with `gamma`, `degree` and `coef0`; "precomputed"; an
        expression such as "rbf(0.1) + 2*poly(5)"; a kernel of `mercer.kernels`, for vectors or
        strings; or a function of two rows.
    gamma : float, "median", "scale" or None
        For kernels given by name that have a gamma. None is 1/d, as in scikit-learn. "median" uses
        the median distance m between rows: 1/(2m²) for "rbf", "poly" and "sigmoid"; 1/m for
        "laplacian" and "chi2", by the distance of the kernel. "scale" is 1/(d · variance).
    degree, coef0, kernel_params
        As in scikit-learn.
    alpha, fit_inverse_transform
        As in scikit-learn: kernel ridge regression from scores back to rows, with the
        kernel's own width.
    eigen_solver : str
        "auto" chooses a solver; scikit-learn's "dense", "arpack", "randomized"; "krylov",
        "power", "jacobi".
    tol : float
        Tolerance of an iterative solver for the residual relative to the eigenvalue; 0 is
        machine precision.
    max_iter : int or None
        For "arpack".
    iterated_power : int or "auto"
        For "randomized".
    copy_X : bool
        Store a copy of X, so that X may be changed after the fit. X is never modified.
    remove_zero_eig, n_jobs
        Accepted for compatibility and ignored: components without variance are never returned,
        and the number of threads is set by BLAS.
    random_state : int, RandomState or None
        Seed of the iterative solvers' starting vectors and of random choices.
    method : str or Method
        "exact" decomposes the kernel matrix of all rows. "subset", "reduced", "improved",
        "nystrom", "cholesky" and "greedy" restrict the components to the span of a basis;
        "adaptive" uses the smallest basis that is certified within `gap`. "sketch" works on a
        sketch of the kernel matrix, which is never formed; "features" on random Fourier features
        instead of the kernel. "sparse" and "sparse_l1" compute components from few rows, "hebbian"
        learns them from one row after another. Or a method of `mercer.methods`, such as
        `Subset(1000)`. "auto" is exact if that fits in memory, else uses a basis, with a
        warning; with `gap` it is the cheapest method that reaches the gap.
    center : bool
        Subtract the mean in feature space. If False, all variances are about the origin of
        feature space.
    gap : float, optional
        Largest allowed gap between the explained variance and the optimum, as a fraction of the
        optimum. The cheapest method that can be certified is used; if there is none, there is a
        warning.
    certificate : bool or "tight"
        Whether to bound what any components can explain by random blocks of rows, if the method
        does not find the best. True takes at most about as long as the fit; "tight" enlarges the
        blocks until the bound stops moving; False leaves what the method itself proves.
    preimage : str, Preimage or None
        Method of the inverse transform: "fixed_point", "gradient", "ridge", "distances", "auto"
        to choose by the kernel, or a method of `mercer.preimage`. None is scikit-learn's.

    Attributes
    ----------
    eigenvalues_ : array of shape (k,)
        Eigenvalues of the centered kernel matrix; with center=False, of the kernel matrix itself.
    eigenvectors_ : array of shape (n, k)
        Eigenvectors of that matrix; only if the method is exact.
    explained_variance_, explained_variance_ratio_ : array of shape (k,)
        Variance along each component, λ/(n−1), and its fraction of the total, the trace of the
        matrix over n−1: of its upper bound if only bounds are known, `certificate_.total`. With
        center=False both are about the origin of feature space.
    X_fit_ : rows or None
        Rows or basis points that new rows are compared with; None for random features. A Dask
        array if X is one and all rows are stored.
    kernel_ : Kernel or None
        The kernel with all parameters resolved.
    gamma_ : float
    n_components_, n_features_in_ : int
    certificate_ : Certificate
        Explained variance, a bound on the optimum, residuals, and negative eigenvalues of a kernel
        that is not positive semi-definite.
    plan_ : Plan
        The method used, its cost and the alternatives.
    projection_ : Projection
        The fitted projection.

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
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=10, preimage="fixed_point")
    >>> scores = kpca.fit_transform(X)
    >>> scores.shape, kpca.transform(X[:1]).shape
    ((400, 2), (1, 2))
    >>> kpca.reconstruction_error(X[:1]).round(2)
    array([0.9])
    >>> kpca.inverse_transform(scores[:1]).round(2)  # the same as kpca.reconstruct(X[:1])
    array([[0.96, 0.13]])
    >>> kpca.preimages(scores).converged.all()
    np.True_

    A basis is chosen from the first batch, or given:

    >>> from mercer.methods import Subset
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=10, method=Subset(select=X[:50]))
    >>> for batch in (X[:200], X[200:]):
    ...     kpca.partial_fit(batch).n_samples_seen_
    200
    400
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"all", *KERNEL_NAMED}),
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
        "fit_inverse_transform": [bool, np.bool_],
        "eigen_solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "remove_zero_eig": [bool, np.bool_],
        "random_state": ["random_state"],
        "copy_X": [bool, np.bool_],
        "n_jobs": [None, Integral],
        "method": [StrOptions(set(METHODS)), Method],
        "center": [bool, np.bool_],
        "gap": [Interval(Real, 0, 1, closed="left"), None],
        "certificate": [bool, np.bool_, StrOptions({"tight"})],
        "preimage": [StrOptions({"auto", *PREIMAGES}), Preimage, None],
    }

    n_components: int | float | str | Rule | None = None
    _: KW_ONLY
    kernel: Any = "linear"
    gamma: float | str | None = None
    degree: float = 3
    coef0: float = 1
    kernel_params: dict[str, Any] | None = None
    alpha: float = 1.0
    fit_inverse_transform: bool = False
    eigen_solver: str = "auto"
    tol: float = 0
    max_iter: int | None = None
    iterated_power: int | str = "auto"
    remove_zero_eig: bool = False
    random_state: Any = None
    copy_X: bool = True  # noqa: N815 (as in scikit-learn)
    n_jobs: int | None = None
    method: str | Method = "auto"
    center: bool = True
    gap: float | None = None
    certificate: bool | str = True
    preimage: str | Preimage | None = None

    def _rows(self, X: Any, *, reset: bool) -> Source:
        least = 2 if reset else 1
        if self.kernel == "precomputed":
            if self.fit_inverse_transform:
                raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
            return check_matrix(self, X, reset=reset, least=least)
        table = getattr(X, "ndim", 1) == 2
        if isinstance(X, (str, os.PathLike)):
            table = not os.fspath(X).lower().endswith(".txt")
        strings = None if table else check_strings(self, X, reset=reset, least=least)
        source = strings or check_rows(self, X, reset=reset, least=least)
        if not reset and (strings is None) == isinstance(self.X_fit_, list):
            fitted, now = ("strings", "numbers") if strings is None else ("numbers", "strings")
            raise ValueError(f"X contains {now}, but KernelPCA was fitted to {fitted}.")
        return source

    def _plan_fit(self, source: Source) -> tuple[KernelProblem, Plan]:
        # Landmarks may be row numbers: rows of weight zero must keep their places.
        numbered = self.kernel == "precomputed" or isinstance(self.method, OnBasis)
        if source.weights is not None and not numbered and not np.all(source.weights > 0):
            source = select_rows(source, np.flatnonzero(source.weights > 0))
        problem = self._problem(source)
        solver: Any = self.eigen_solver
        if solver == "randomized":
            solver = Randomized(10, self.iterated_power, products=2)
        elif solver == "arpack" and self.max_iter is not None:
            solver = partial(arpack, max_iter=self.max_iter)
        plan = make_kernel_plan(problem, solver, self.method)
        n, k = problem.shape[0], self.n_components
        if isinstance(k, Integral):
            plan.method.check_size(n, min(int(k), n))
        if isinstance(plan.method, RandomFeatures) and self.preimage not in (None, "auto"):
            raise ParameterError(
                "preimage",
                self.preimage,
                f"needs components in the kernel's feature space, but random features have none. "
                f"Use fit_inverse_transform=True, which learns from scores, or "
                f"{format_parameter('method', 'subset')}.",
            )
        return problem, plan

    def _load(self, problem: KernelProblem, plan: Plan) -> tuple[KernelProblem, Plan]:
        on_cluster = problem.source.remote is not None and problem.kernel is not None
        if plan.method.keeps_rows and not (on_cluster and plan.method.pairwise):
            copy_rows = self.copy_X and self.kernel != "precomputed"
            rows = rows_of_model(problem.source, copy_rows=copy_rows)
            problem = replace(problem, source=rows)
        return problem, plan

    def _problem(self, source: Source, kernel: Kernel | None = None) -> KernelProblem:
        n, k = source.shape[0], self.n_components
        if kernel is None:
            kernel, self.gamma_ = resolve_kernel(self, source)
        return KernelProblem(
            source=source,
            rule=Count(min(int(k), n)) if isinstance(k, Integral) else as_rule(k, n, n),
            center=self.center,
            tol=float(self.tol),
            gap=self.gap,
            rng=np.random.default_rng(draw_seed(self.random_state)),
            kernel=kernel,
        )

    def _can_stream(self) -> bool:
        method, reason = self.method, None
        named = isinstance(method, str) and method in ("auto", "subset", "features")
        streams = isinstance(method, Streaming) and not method.keeps_rows
        if not named and not (streams and getattr(method, "streams", True)):
            reason = (
                f"method={method!r} needs all rows at once. partial_fit supports method='subset', "
                f"method='features', Subset with centroid='span' or 'basis', RandomFeatures with "
                f"linear=Covariance(), SVD() or FrequentDirections(), and Hebbian with n_basis or "
                f"select."
            )
        elif isinstance(self.kernel, str) and self.kernel == "precomputed":
            reason = (
                "partial_fit does not support kernel='precomputed': a batch has no columns for "
                "later rows. Pass the kernel itself."
            )
        elif self.preimage is not None or self.fit_inverse_transform:
            reason = (
                "partial_fit: the inverse transform is learned from all rows, but batches are not "
                "stored. Omit preimage and fit_inverse_transform."
            )
        if reason is not None:
            raise AttributeError(reason)
        return True

    def _constant_parameters(self) -> tuple[str, ...]:
        names = ("center", "kernel", "method", "gamma", "degree", "coef0", "kernel_params")
        fixed = isinstance(self.method, Streaming) and self.method.fixes_components
        return (*names, "n_components") if fixed else names

    def _start_stream(self, batch: Source) -> None:
        named = RandomFeatures() if self.method == "features" else Subset()
        self._stream = clone(self.method) if isinstance(self.method, Streaming) else named
        problem = self._problem(batch)
        require_finite_vectors(problem)
        problem = move_rows(problem)
        self._kernel, self._shift = problem.kernel, problem.shift
        self._fold = self._stream.begin(problem)

    def _plan_stream(self, rows: PastRows) -> tuple[Problem, Plan]:
        problem = replace(self._problem(rows, self._kernel), gap=None, shift=self._shift)
        return problem, make_kernel_plan(problem, "auto", self._stream)

    def _set_fitted(self, problem: KernelProblem, axes: Axes, plan: Plan, reference: Array) -> None:
        projection: Any = axes.projection
        source, values = problem.source, projection.eigenvalues
        total, dtype = projection.total_variance, source.dtype
        if not is_finite(projection.components) or not np.all(np.isfinite(values)):
            name = "the kernel matrix" if problem.kernel is None else repr(problem.kernel)
            raise ValueError(
                f"The values of {name} are so large that sums of their squares overflow. Scale the "
                f"rows, or change the kernel's parameters."
            )
        values = np.maximum(values, 0.0)  # negative by rounding only
        projection = self.projection_ = replace(projection, eigenvalues=values)
        if problem.kernel is not None and problem.kernel.psd:
            total = max(total, float(np.sum(values)))
        ratio = values / total if total > 0 else 0.0 * values
        self.certificate_ = certify(problem, axes)
        self.kernel_, self.plan_, self.n_components_ = problem.kernel, plan, len(values)
        # Past the setters, by which a user changes the projection.
        self.__dict__["eigenvalues_"] = fitted_array(values * problem.divisor, dtype, reference)
        self.__dict__.pop("eigenvectors_", None)
        self.explained_variance_ = fitted_array(values, dtype, reference)
        self.explained_variance_ratio_ = fitted_array(ratio, dtype, reference)
        if isinstance(plan.method, Exact):
            vectors = _eigenvectors(problem, projection)
            self.__dict__["eigenvectors_"] = fitted_array(vectors, dtype, reference)
        points: Any = None  # random features have none
        if isinstance(plan.method, (Exact, Sketch)):
            points = points_of(source)
        elif not isinstance(projection, FourierProjection):
            points = source.load() if projection.basis is None else projection.basis
            if projection.basis is not None and projection.shift is not None:
                points = cast(points + like(projection.shift, points), dtype)
        self.X_fit_ = points
        for name in ("_way", "preimage_", "dual_coef_", "X_transformed_fit_"):
            self.__dict__.pop(name, None)
        if self.preimage is not None or self.fit_inverse_transform:
            self._fit_inverse(problem, reference)
        if reference is not source.reference and not same_device(source.reference, reference):
            self.projection_ = projection.to_device_of(reference)
            self.X_fit_ = None if points is None else to_device_of(points, reference)
        if isinstance(self.X_fit_, CSR):
            self.X_fit_ = self.X_fit_.native
        self._warn(problem)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _warn(self, problem: KernelProblem) -> None:
        n, k, certificate = problem.shape[0], self.n_components_, self.certificate_
        method, streams = self.plan_.method, hasattr(self, "_stream")
        on_basis = isinstance(method, OnBasis)
        if isinstance(self.n_components, Integral) and k < min(self.n_components, n):
            count = {0: "no component has", 1: "only 1 component has"}
            larger = f"A larger {format_parameter('n_basis')} may find more."
            warn(
                f"{format_parameter('n_components', self.n_components)}, but "
                f"{count.get(k, f'only {k} components have')} variance above rounding error"
                f"{f' in the span of the basis. {larger}' if on_basis else '.'}"
            )
        # With partial_fit a basis is what the user chose.
        automatic = isinstance(self.method, str) and self.method == "auto"
        if automatic and self.gap is None and on_basis and not streams:
            warn(
                f"kernel PCA of all {n} rows would take too much memory or time, so {method!r} was "
                f"used: within {percent(certificate.gap, up=True)} of optimal "
                f"({certificate.gap.label}), probably within "
                f"{percent(certificate.gap_estimate, up=True)}. Set "
                f"{format_parameter('gap', 0.01)} for components certified within 1 %, or "
                f"{format_parameter('method', 'exact')} for all rows.",
                ConvergenceWarning,
            )
        if not streams:
            warn_of_scale(self, problem)
        if streams and self.gap is None:  # more batches may come: certificate_ has the state
            return
        if self.gap is not None or not certificate.converged:
            remedies = [note for note in certificate.notes if note.startswith(NEEDED)]
            solver = "eigen_solver" if isinstance(method, Exact) else "method"
            self._warn_quality(solver, " ".join([*remedies, method.remedy]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        invertible = self.preimage is not None or self.fit_inverse_transform
        tags.input_tags.sparse = self.kernel != "precomputed" and not invertible
        return tags


def _eigenvectors(problem: KernelProblem, projection: Any) -> Array:
    """Return unit eigenvectors of the weighted matrix, √λ α/√w; 0 where the weight is 0."""
    V = to_numpy(projection.components) * np.sqrt(projection.eigenvalues * problem.divisor)
    weights = problem.source.weights
    if weights is not None:
        with np.errstate(divide="ignore", invalid="ignore"):
            V = np.where(weights[:, None] > 0, V / np.sqrt(weights)[:, None], 0.0)
    norms = np.linalg.norm(V, axis=0)  # not 1 for vectors that have not converged
    return V / np.where((norms > 0) & (np.abs(norms - 1.0) > 1e-9), norms, 1.0)

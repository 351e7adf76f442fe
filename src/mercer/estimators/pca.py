"""Principal component analysis with scikit-learn's API."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from mercer.arrays import Array, Vector, like, to_numpy
from mercer.certificate import Axes, certify
from mercer.config import format_bytes, get_config
from mercer.data import PastRows, Source
from mercer.estimators.base import draw_seed, fitted_array
from mercer.estimators.feature_weight import check_feature_weight
from mercer.estimators.incomplete import IncompleteModel
from mercer.estimators.validation import rescale_rows
from mercer.linalg.solvers import Randomized
from mercer.messages import ParameterError, format_parameter, warn
from mercer.methods import (
    EM,
    SVD,
    ConvergenceWarning,
    Covariance,
    FrequentDirections,
    Method,
    Size,
    Streaming,
)
from mercer.methods.linear.cross_validation import choose_components
from mercer.methods.preparation import metric_deviation
from mercer.planning import NAMES, Plan, make_plan
from mercer.problem import Problem
from mercer.projection import IncompleteProjection, LinearProjection, with_factors, with_means
from mercer.rules import NAMED, Count, CrossValidation, Rule, as_rule

SOLVERS = NAMES


@dataclass(eq=False, repr=False)
class PCA(IncompleteModel):
    r"""Principal component analysis, exact and certified.

    The components :math:`v_1, …, v_k` that explain the most variance of the centered samples:
    eigenvectors of the covariance matrix :math:`C = \frac{1}{n-1}\sum_i (x_i-\mu)(x_i-\mu)^T`.
    A superset of `sklearn.decomposition.PCA`: the same parameters, attributes, dtypes and
    signs, and the additions below.

    Parameters
    ----------
    n_components : int, float, str, Rule or None
        Number of components; share of the variance to explain; the name of a rule: "mle",
        "kaiser", "broken-stick", "parallel" or "gavish-donoho"; a rule of `mercer.rules`; None or
        "all" for all. A share works with every solver.
    copy : bool
        Accepted for compatibility and ignored: X is never modified.
    whiten : bool
        Divide the scores by their standard deviation.
    svd_solver : str or Method
        "auto" chooses by the shape and the memory budget; `plan_` shows the choice and its
        reason. scikit-learn's "full", "covariance_eigh", "arpack", "randomized"; Mercer's
        "dot", "krylov", "jacobi", "power", "sketch"; or a method of `mercer.methods`, such as
        `Sketch(Gaussian(500))`.
    tol : float
        Tolerance of an iterative solver for the residual relative to the eigenvalue; 0 is
        machine precision.
    iterated_power, n_oversamples, power_iteration_normalizer
        For "randomized" only, as in scikit-learn.
    random_state : int, RandomState or None
        Seed of the iterative solvers' starting vectors.
    gap : float, optional
        Largest allowed gap between the explained variance and the optimum, as a fraction of the
        optimum. Iterative solvers stop when it is certified; if it is not, there is a warning.
    certificate : bool or "tight"
        Whether to bound what any components can explain by random blocks of rows, if the method
        does not find the best. True takes at most about as long as the fit; "tight" enlarges the
        blocks until the bound stops moving; False leaves what the method itself proves.
    center : bool
        Subtract the mean of every column. If False, the components are those of
        `sklearn.decomposition.TruncatedSVD`, and variances are mean squares about zero.
    scale : bool
        Divide every column by its standard deviation, with the divisor n − 1 of R's `prcomp`
        (`StandardScaler` divides by n: after it, scores are √(n/(n−1)) times as large), or, if
        `center` is False, by its root mean square. A column whose standard deviation is within
        8 ε of its mean (ε of float64) is constant: it has `scale_` 1 and no share in the
        components.
    feature_weight : array-like of shape (d,) or dict, optional
        Weights :math:`w_j \ge 0` of the columns, which define the metric: squared distances are
        :math:`\sum_j w_j (x_j - y_j)^2 / s_j^2`, with s the `scale_`. The result is that of PCA of
        the columns divided by s and multiplied by :math:`\sqrt{w_j}`; a weight of two is the
        column twice. A dict, or a pandas Series with an index of names, has a weight for each
        column name. Weights are used as they are: they need not sum to a particular number. Those
        of a field on a grid are the areas of its cells, ``np.cos(np.radians(latitude))`` on
        a regular grid of latitudes, not their roots; one over the variance of each column is the
        metric of `scale`. A column of weight zero must be finite, but has no share in the
        components, and its reconstruction is its mean.

    Attributes
    ----------
    components_ : array of shape (k, d)
        The components, by decreasing variance; orthonormal for columns as they are scaled and
        weighted. Scores are :math:`\sum_j \sqrt{w_j} (x_j - \mu_j) / s_j \, v_j`. Variances and
        the certificate are those of such columns; `inverse_transform` returns the data's units.
    explained_variance_, explained_variance_ratio_, singular_values_ : array of shape (k,)
        Variance along each component; its share of the total; singular values of the centered rows.
        With center=False all three are about zero (`TruncatedSVD` reports the variance of the
        scores about their mean instead).
    mean_, scale_ : array of shape (d,)
        Mean of each column, which is subtracted, and its standard deviation with `scale`, else 1.
    noise_variance_ : float
        Mean variance of the components left out (probabilistic PCA).
    n_components_, n_samples_, n_features_in_ : int
    loadings_ : array of shape (d, k)
        Components times standard deviations: covariance of each column with each whitened score;
        with `scale` their correlation; with `feature_weight` times the root of the weight.
    certificate_ : Certificate
        Explained variance, a bound on the optimum, and residuals.
    plan_ : Plan
        The method used, its cost and the alternatives.
    projection_ : LinearProjection
        The fitted projection. components_, explained_variance_, mean_ and scale_ are views of
        it: if they are set, transform uses the new values. Its `weights` are those of the columns.

    References
    ----------
    S. Marukatat, Tutorial on PCA and approximate PCA and approximate kernel PCA, Artificial
    Intelligence Review 56 (2023), §2–3. J. Worrell, Principal Component Analysis (2017), §2–5.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> X = load_wine().data
    >>> pca = PCA(0.6, scale=True).fit(X)
    >>> pca.n_components_
    3
    >>> print(pca.certificate_.sentence)
    3 components explain 66.52 % of the variance. No 3 components can explain noticeably more:
    this is within 0.0001 % of optimal (proven).
    >>> scores = pca.transform(X)
    >>> scores[:1].round(2)
    array([[ 3.31,  1.44, -0.17]])
    >>> pca.inverse_transform(scores)[:1, :5].round(2)  # the same as pca.reconstruct(X)
    array([[ 13.98,   1.78,   2.46,  16.46, 112.3 ]])
    >>> pca.reconstruction_error(X[:1]).round(2)
    array([2.88])
    >>> round(pca.score(X), 2), pca.score_samples(X[:2]).round(2)
    (-19.8, array([-18.23, -17.98]))
    >>> (pca.get_covariance() @ pca.get_precision()).trace().round(6)
    np.float64(13.0)
    >>> PCA(10).plan(X).method
    SVD()
    >>> weights = 1 / X.var(axis=0, ddof=1)
    >>> PCA(3, feature_weight=weights).fit(X).explained_variance_.round(2)  # that of scale=True
    array([4.71, 2.5 , 1.45])
    >>> pca = PCA(3)
    >>> for batch in (X[:60], X[60:120], X[120:]):
    ...     pca.partial_fit(batch).n_samples_seen_
    60
    120
    178
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"all", *NAMED}),
            Rule,
            None,
        ],
        "copy": [bool, np.bool_],
        "whiten": [bool, np.bool_],
        "svd_solver": [StrOptions(set(SOLVERS)), Method],
        "tol": [Interval(Real, 0, None, closed="left")],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
        "random_state": ["random_state"],
        "gap": [Interval(Real, 0, 1, closed="left"), None],
        "certificate": [bool, np.bool_, StrOptions({"tight"})],
        "center": [bool, np.bool_],
        "scale": [bool, np.bool_],
        "feature_weight": ["array-like", dict, None],
        "missing": [StrOptions({"error", "mean", "em"}), EM],
    }

    n_components: int | float | str | Rule | None = None
    _: KW_ONLY
    copy: bool = True
    whiten: bool = False
    svd_solver: str | Method = "auto"
    tol: float = 0.0
    iterated_power: int | str = "auto"
    n_oversamples: int = 10
    power_iteration_normalizer: str = "auto"
    random_state: Any = None
    gap: float | None = None
    certificate: bool | str = True
    center: bool = True
    scale: bool = False
    feature_weight: Any = None
    missing: str | EM = "error"

    def _plan_fit(
        self, source: Source, problem: Problem | None = None, solver: str | Method | None = None
    ) -> tuple[Problem, Plan]:
        problem = self._problem(source) if problem is None else problem
        if solver is None:
            em = None if self.missing == "error" else self._em
            solver = self.svd_solver if em is None else em
        normalizer = self.power_iteration_normalizer
        randomized = Randomized(self.n_oversamples, self.iterated_power, normalizer)
        how = (problem.rule, solver, randomized, self.gap)
        return problem, make_plan(source, *how, scale=self.scale)

    def _load(self, problem: Problem, plan: Plan) -> tuple[Problem, Plan]:
        problem, solver = rescale_rows(problem), None
        if self.missing != "error":
            problem, incomplete = self._complete_rows(problem)
            solver = None if incomplete else self.svd_solver
        if isinstance(problem.rule, CrossValidation):
            k = choose_components(problem, self._em or EM(), problem.rule)
            problem = replace(problem, rule=Count(k))
        elif solver is None:
            return problem, plan
        return self._plan_fit(problem.source, problem, solver)

    def _problem(self, source: Source) -> Problem:
        """Return the problem; raise if the solver or the shape does not allow n_components."""
        n, d = source.shape
        asked, solver = self.n_components, self.svd_solver
        least = int(solver in ("arpack", "randomized"))  # these compute a part of the spectrum
        if asked == "mle" and least:
            raise ParameterError(
                "n_components",
                asked,
                f"cannot be a string with {format_parameter('svd_solver', solver)}: it needs the "
                f"whole spectrum. Use "
                f"{format_parameter('svd_solver', 'auto')}.",
            )
        if isinstance(asked, Integral) and not least <= int(asked) <= min(n, d):
            raise ParameterError(
                "n_components",
                asked,
                f"must be between {least} and min(n_samples, n_features)={min(n, d)} with "
                f"{format_parameter('svd_solver', 'full' if solver == 'auto' else solver)}",
            )
        weights = self.feature_weight
        if weights is not None:
            weights = check_feature_weight(weights, source)
        rule = Count(asked) if type(asked) is int else as_rule(asked, n, d)
        if asked in (None, "all") and solver == "arpack":
            rule = Count(max(1, min(n, d) - 1))  # as in scikit-learn
        return Problem(
            source=source,
            rule=rule,
            center=self.center,
            scale=self.scale,
            feature_weight=weights,
            tol=float(self.tol),
            gap=self.gap,
            rng=np.random.default_rng(draw_seed(self.random_state)),
        )

    def _constant_parameters(self) -> tuple[str, ...]:
        return ("center", "scale", "svd_solver", "feature_weight")

    def _start_stream(self, batch: Source) -> None:
        self._require_complete_batches()
        n, d = batch.shape
        self._stream = _stream_method(self.svd_solver, d)
        rows = PastRows(batch, max(self._min_samples(d), n), batch.count)
        self._fold = self._stream.begin(self._problem(rows))

    def _deviation(self, batch: Source) -> Vector | None:
        if self.feature_weight is None:
            return None
        w = check_feature_weight(self.feature_weight, batch)
        return metric_deviation(Problem(batch, Count(1), feature_weight=w))

    def _plan_stream(self, rows: PastRows) -> tuple[Problem, Plan]:
        problem = self._problem(rows)
        return problem, make_plan(rows, problem.rule, self._stream, Randomized())

    def _min_samples(self, d: int) -> int:
        if isinstance(self.n_components, Integral):
            return max(2, int(self.n_components))
        return d if self.n_components == "mle" else 2

    def _set_fitted(self, problem: Problem, axes: Axes, plan: Plan, reference: Array) -> None:
        if self.missing != "error":
            axes = self._annotated(axes)
        projection = axes.projection
        assert isinstance(projection, LinearProjection)
        source, dtype = problem.source, problem.source.dtype
        values, total = projection.eigenvalues, projection.total_variance
        components = np.ascontiguousarray(to_numpy(projection.components).T, dtype=dtype)
        projection = replace(projection, components=like(components, reference).T)
        self.certificate_ = certify(problem, axes)
        ratio = values / total if total > 0 else 0.0 * values
        self.explained_variance_ratio_ = fitted_array(ratio, dtype, reference)
        self.singular_values_ = fitted_array(np.sqrt(values * problem.divisor), dtype, reference)
        self.n_components_, self.n_samples_ = len(values), source.shape[0]
        d = source.shape[1] if problem.metric is None else np.count_nonzero(problem.metric)
        others = min(round(source.count), d) - len(values)
        noise = np.array([projection.rest / others if others > 0 else 0.0])
        if isinstance(projection, IncompleteProjection):
            noise = np.array([projection.noise])
        self.noise_variance_ = fitted_array(noise, dtype, noise)[0] if others > 0 else 0.0
        if self.missing != "error":
            projection = with_factors(projection, noise[0]) if self._em else with_means(projection)
        self.projection_ = projection
        self.plan_ = plan
        if total == 0.0:
            warn(
                "X has no variance: all rows are equal. The components are arbitrary, and "
                "explained_variance_ratio_ is 0."
            )
        if isinstance(plan.method, EM) and not self.certificate_.converged:
            warn(
                f"EM stopped before it converged. Raise max_iter with "
                f"missing={replace(plan.method, max_iter=2 * plan.method.max_iter)!r}.",
                ConvergenceWarning,
            )
        elif self.gap is not None or not self.certificate_.converged:
            self._warn_quality("svd_solver", f"{format_parameter('svd_solver', 'full')} is exact.")


def _stream_method(solver: str | Method, d: int) -> Streaming:
    """Return the method for batches of d columns: the most accurate that fits the memory."""
    if isinstance(solver, Streaming):
        method: Streaming = clone(solver)  # set_params would change the user's
        return method
    needed, budget = 0.0, get_config().budget
    for method in (SVD(), Covariance()):
        needed = method.cost(Size(n=d, d=d, k=1)).memory
        if needed <= budget:
            return method
    warn(
        f"partial_fit is not exact: decomposing a {d}×{d} matrix takes {format_bytes(needed)}, "
        f"more than the memory budget of {format_bytes(budget)}. certificate_ bounds the loss. "
        f"Raise the budget with config_context(memory=...).",
        ConvergenceWarning,
    )
    return FrequentDirections()

"""Principal component analysis behind scikit-learn's interface."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from mercer.arrays import like, to_numpy
from mercer.certificate import Axes, certify
from mercer.data import Seen, Source
from mercer.estimators.axes import LinearModel
from mercer.estimators.home import wide_enough
from mercer.estimators.session import fit_context
from mercer.estimators.stream import stream_method
from mercer.estimators.validation import rescale_rows
from mercer.linalg.solvers import Randomized
from mercer.messages import ParameterError, format_parameter, warn
from mercer.methods import Method
from mercer.planning import NAMES, Plan, make_plan
from mercer.problem import Problem
from mercer.projection import LinearProjection
from mercer.rules import NAMED, Count, Rule, as_rule

SOLVERS = NAMES


class PCA(LinearModel):
    r"""Principal component analysis, exact and certified.

    The components :math:`v_1, …, v_k` that hold the most variance of the centred rows:
    eigenvectors of the covariance matrix :math:`C = \frac{1}{n-1}\sum_i (x_i-\mu)(x_i-\mu)^T`.
    A superset of `sklearn.decomposition.PCA`: the same parameters, attributes, dtypes and
    signs, and what stands below them.

    Parameters
    ----------
    n_components : int, float, str, Rule or None
        Number of components; share of the variance to explain; the name of a rule: "mle",
        "kaiser", "broken-stick", "parallel" or "gavish-donoho"; a rule of `mercer.rules`; None or
        "all" for all. A share works with every solver.
    copy : bool
        Accepted for compatibility: X is never written to.
    whiten : bool
        Divide the scores by their standard deviation.
    svd_solver : str or Method
        "auto" plans from the shape and the memory budget; `plan_` tells the choice and its
        reason. scikit-learn's "full", "covariance_eigh", "arpack", "randomized"; Mercer's
        "dot", "krylov", "jacobi", "power", "sketch"; or a method of `mercer.methods`, such as
        `Sketch(Gaussian(500))`.
    tol : float
        Residual asked of an iterative solver, relative to the eigenvalue; 0 is working
        precision.
    iterated_power, n_oversamples, power_iteration_normalizer
        For "randomized" only, as in scikit-learn.
    random_state : int, RandomState or None
        Where the iterative solvers start.
    gap : float, optional
        How far below the optimum the captured variance may be: an iterative solver stops as
        soon as the certificate says so; where it cannot, a warning says how far it came.
    center : bool
        Subtract the mean of every column. With False the components are those of the rows as
        they are (as in `sklearn.decomposition.TruncatedSVD`), and every variance is the mean
        square about zero instead of about the mean; see `explained_variance_`.
    scale : bool
        Divide every column by its standard deviation inside the fit, with the divisor n − 1 of
        the variances, as R's `prcomp(scale.=TRUE)`: the total variance is the number of columns
        that vary. `StandardScaler` divides by n: after it, scores are √(n/(n−1)) times as large.
        A column whose standard deviation is within 8 ε of its mean (ε of float64) is constant:
        it has `scale_` 1 and no share in the components. Where `center` is False, columns are
        divided by their root mean square, with the same divisor.

    Attributes
    ----------
    components_ : array of shape (k, d)
        The components, by decreasing variance.
    explained_variance_, explained_variance_ratio_, singular_values_ : array of shape (k,)
        Variance along each component; its share of the total; singular values of the centred rows.
        With center=False all three are about zero: σ²/(n−1) of the singular values σ of the rows
        as they are, and its share of their sum of squares, so that the ratios of all components
        add up to 1. `sklearn.decomposition.TruncatedSVD` reports the variance of the scores
        about their mean instead: for that, take ``scores.var(axis=0)`` of
        ``scores = pca.transform(X)``, and divide it by ``X.var(axis=0).sum()`` for the ratio.
    mean_, scale_ : array of shape (d,)
        What was subtracted from each column, and what it was divided by.
    noise_variance_ : float
        Mean variance of the components left out (probabilistic PCA).
    n_components_, n_samples_, n_features_in_ : int
    loadings_ : array of shape (d, k)
        Components times standard deviations: covariance of each column with each whitened score;
        with `scale` their correlation.
    certificate_ : Certificate
        What the components hold, and what no others can exceed.
    plan_ : Plan
        What was done, what else could have been.
    fingerprint_ : str
        By what the rows of the fit are known again: shape, precision, and a hash of some rows.
    projection_ : LinearProjection
        The fitted map.

    References
    ----------
    S. Marukatat, Tutorial on PCA and approximate PCA and approximate kernel PCA, Artificial
    Intelligence Review 56 (2023), §2–3. J. Worrell, Principal Component Analysis (2017), §2–5.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> pca = PCA(0.6, scale=True).fit(load_wine().data)
    >>> pca.n_components_
    3
    >>> print(pca.certificate_.sentence)
    3 components explain 66.52 % of the variance. No 3 components can explain noticeably more:
    this is within 0.0001 % of optimal (proven).
    """

    _coarse: np.dtype[Any]
    """The precision of what batches have in common."""
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [
            Interval(Integral, 0, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
            StrOptions({"all", *NAMED}),
            Rule,
            None,
        ],
        "copy": ["boolean"],
        "whiten": ["boolean"],
        "svd_solver": [StrOptions(set(SOLVERS)), Method],
        "tol": [Interval(Real, 0, None, closed="left")],
        "iterated_power": [StrOptions({"auto"}), Interval(Integral, 0, None, closed="left")],
        "n_oversamples": [Interval(Integral, 1, None, closed="left")],
        "power_iteration_normalizer": [StrOptions({"auto", "QR", "LU", "none"})],
        "random_state": ["random_state"],
        "gap": [Interval(Real, 0, 1, closed="left"), None],
        "center": ["boolean"],
        "scale": ["boolean"],
    }

    def __init__(
        self,
        n_components: int | float | str | Rule | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str | Method = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        gap: float | None = None,
        center: bool = True,
        scale: bool = False,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.gap = gap
        self.center = center
        self.scale = scale

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to those seen so far, and find the components of all of them.

        Exact, the same as one fit of all rows, while a d×d matrix fits the memory budget.
        Beyond it the rows go through a sketch that fits, a warning says so, and the
        certificate bounds what was lost. Rows of an earlier `fit` are not among those seen, and a
        warning says so. The estimator stays unfitted until it has seen as many rows as it is to
        have components; `n_samples_seen_` counts them. Between batches every parameter may
        change except `center`, `scale` and `svd_solver`; n_components too, since all components
        are found anew from the sums.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from mercer import PCA
        >>> X = load_iris().data
        >>> pca = PCA(2)
        >>> for batch in (X[:50], X[50:60], X[60:]):
        ...     pca = pca.partial_fit(batch)
        >>> pca.explained_variance_.round(3)
        array([4.228, 0.243])
        """
        return self._partial_fit(X, sample_weight)

    @property
    def _fixed(self) -> tuple[str, ...]:
        return ("center", "scale", "svd_solver")

    def _begin(self, batch: Source) -> None:
        n, d = batch.shape
        self._stream = stream_method(self.svd_solver, d)
        rows = Seen(batch, max(self._least_rows(d), n), batch.count)
        self._fold = self._stream.begin(self._problem(rows))

    def _prepared_batches(self, rows: Seen) -> tuple[Problem, Plan]:
        problem = self._problem(rows)
        return problem, make_plan(rows, problem.rule, self._stream, self._randomized())

    def _least_rows(self, d: int) -> int:
        """Return how many rows must be seen before there are components to publish."""
        if isinstance(self.n_components, Integral):
            return max(2, int(self.n_components))
        return d if self.n_components == "mle" else 2

    def _prepared(self, source: Source) -> tuple[Problem, Plan]:
        for leftover in ("_fold", "_stream", "_seen", "_begun", "_coarse"):
            self.__dict__.pop(leftover, None)
        problem = self._problem(source)
        how = (problem.rule, self.svd_solver, self._randomized(), self.gap)
        plan = make_plan(source, *how, scale=self.scale)
        return problem, plan

    def _readied(self, problem: Problem, plan: Plan) -> Problem:
        source, exponent = rescale_rows(problem.source, center=problem.center)
        return replace(problem, source=source, exponent=exponent)

    def _problem(self, source: Source) -> Problem:
        n, d = source.shape
        self._check_axes(n, d)
        rule = as_rule(self.n_components, n, d)
        if self.n_components in (None, "all") and self.svd_solver == "arpack":
            rule = Count(max(1, min(n, d) - 1))  # as scikit-learn has it
        return Problem(
            source=source,
            rule=rule,
            center=self.center,
            scale=self.scale,
            tol=float(self.tol),
            gap=self.gap,
            rng=self._generator(),
        )

    def _check_axes(self, n: int, d: int) -> None:
        """Refuse what the solver, or the shape, cannot give."""
        solver = "full" if self.svd_solver == "auto" else self.svd_solver
        asked, most = self.n_components, min(n, d)
        part = solver in ("arpack", "randomized")
        if asked == "mle" and part:
            raise ParameterError(
                "n_components",
                asked,
                f"cannot be a string with {format_parameter('svd_solver', solver)}: it needs the "
                f"whole spectrum. Use {format_parameter('svd_solver', 'auto')}.",
            )
        if isinstance(asked, Integral) and not int(part) <= int(asked) <= most:
            raise ParameterError(
                "n_components",
                asked,
                f"must be between {int(part)} and min(n_samples, n_features)={most} with "
                f"{format_parameter('svd_solver', solver)}",
            )

    def _randomized(self) -> Randomized:
        return Randomized(self.n_oversamples, self.iterated_power, self.power_iteration_normalizer)

    def _publish(self, problem: Problem, axes: Axes, plan: Plan) -> None:
        """Set the fitted attributes."""
        projection = axes.projection
        assert isinstance(projection, LinearProjection)
        source, k = problem.source, len(projection.eigenvalues)
        kind, total = source.dtype, projection.total_variance
        values = projection.eigenvalues

        def here(x: Any) -> Any:
            return like(np.ascontiguousarray(x, dtype=wide_enough(x, kind)), source.reference)

        components = np.ascontiguousarray(to_numpy(projection.components).T, dtype=kind)
        self.components_ = like(components, source.reference)
        self.certificate_ = certify(problem, axes).rounded(kind)
        # One copy of the components: the projection looks at the attribute.
        self.projection_ = replace(projection, components=self.components_.T)
        self.explained_variance_ = here(values)
        self.explained_variance_ratio_ = here(values / total if total > 0 else 0.0 * values)
        self.singular_values_ = here(np.sqrt(values * problem.divisor))
        self.mean_ = here(projection.mean)
        self.scale_ = here(projection.deviation)
        self.n_components_ = k
        self.n_samples_ = source.shape[0]
        left = min(round(source.count), source.shape[1]) - k
        noise = projection.rest / left if left > 0 else 0.0
        self.noise_variance_ = wide_enough(noise, kind).type(noise) if left > 0 else 0.0
        self.plan_ = plan
        self._warn(total)

    def _warn(self, total: float) -> None:
        if total == 0.0:
            warn(
                "X has no variance: every row is the same. The components are arbitrary and all "
                "explained_variance_ratio_ are 0."
            )
        self._warn_quality("svd_solver", f"{format_parameter('svd_solver', 'full')} is exact.")

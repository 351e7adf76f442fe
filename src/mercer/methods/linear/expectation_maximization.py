"""Probabilistic PCA of incomplete rows by EM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import svds

from mercer.arrays import Matrix, Vector, svd
from mercer.certificate import Axes
from mercer.checks import check_integer, check_positive, require
from mercer.data import Source
from mercer.linalg.incomplete import Expectation, FactorModel
from mercer.linalg.maximization import Sums, extrapolate, iterate_filled, maximize, objective
from mercer.methods.base import Cost, Method, Size
from mercer.methods.linear.incomplete import Columns, Components, observed_columns, sample
from mercer.problem import Problem
from mercer.rules import Count

# Rows that EM starts with: this many, or as many for each component.
_ROWS, _ROWS_EACH = 2000, 100
# The longest step of an extrapolation.
_LONGEST = 256.0
# Logarithms of variances change by this much at most.
_MOST_CHANGE = 3.0
# Passes that a plan assumes.
_PLANNED = 40
# Components to begin with if a rule chooses their number.
_FIRST_COMPONENTS = 8


class Iterate(NamedTuple):
    """The model that EM has reached, the variances of its prior, and how it got there."""

    model: FactorModel
    prior: Vector | None
    passes: int = 0
    change: float = 0.0
    objective: float = -np.inf
    converged: bool = False


@dataclass(eq=False, repr=False)
class EM(Method):
    r"""Probabilistic PCA of rows with missing entries, fitted by EM.

    Entry j of row i is :math:`x_{ij} = m_j + a_j^Tz_i + e_{ij}` with factors z ~ N(0, I) and noise
    of variance σ². EM maximizes the likelihood of the observed entries: missing ones are left out,
    not replaced. A pass over the rows is one iteration; SQUAREM extrapolates from two of them. Rows
    without missing entries give ordinary PCA.

    Parameters
    ----------
    regularization : {"bayes", "none", "missmda"}
        "bayes": normal priors of the factors of the columns, with variances that are learned, so
        that factors the entries do not support vanish. "none": maximum likelihood, which overfits
        if many entries are missing. "missmda": iterative PCA with shrunk singular values, the
        method of the R package missMDA, which does not count how uncertain missing entries are.
    max_iter : int
        Maximum number of passes over the rows.
    tol : float
        Iterations end when the factors change by less than this share.
    n_init : int
        Number of starts. The first is from column means, the others are random. The best is kept,
        and the certificate says how much they differ.

    References
    ----------
    M. E. Tipping & C. M. Bishop, Probabilistic principal component analysis, JRSS B 61 (1999).
    A. Ilin & T. Raiko, Practical approaches to principal component analysis in the presence of
    missing values, JMLR 11 (2010). J. Josse & F. Husson, Handling missing values in exploratory
    multivariate data analysis methods, J. SFdS 153 (2012). C. Liu, D. B. Rubin & Y. N. Wu,
    Parameter expansion to accelerate EM, Biometrika 85 (1998). R. Varadhan & C. Roland, Simple and
    globally convergent methods for accelerating the convergence of any EM algorithm, Scand. J.
    Statist. 35 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> X = load_wine().data
    >>> X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    >>> PCA(2, scale=True, missing="em").fit(X).explained_variance_ratio_.round(2)
    array([0.34, 0.2 ])
    """

    name = "em"
    for_kernels = False

    regularization: str = "bayes"
    max_iter: int = 500
    tol: float = 1e-5
    n_init: int = 1

    def cost(self, size: Size) -> Cost:
        n, d, k = size.n, size.d, min(size.components, max(1, min(size.n, size.d) - 1))
        triangle = k * (k + 1) / 2
        entries = n * d if size.nnz is None else size.nnz
        work = _PLANNED * (4.0 * entries * (triangle + 2 * k))
        factor = _PLANNED * (n * (k**3 + 2.0 * k**2) + d * 2.0 * (k + 1) ** 3)
        memory = 8.0 * d * (2 * triangle + 3 * (k + 1) ** 2 + 6 * k)
        if size.nnz is None:
            products, sparse = work, 0.0
        else:
            products, sparse = 0.0, work
        return Cost(3, products, factor, memory, sparse, extra_passes=float(self.max_iter))

    def fit(self, problem: Problem) -> Axes:
        self._check(problem)
        columns = observed_columns(problem)
        wanted, most = problem.n_components, min(problem.shape) - 1
        k = max(1, min(most, _FIRST_COMPONENTS if wanted is None else wanted))
        while True:
            runs = [self.run(problem, columns, k, start) for start in range(self.n_init)]
            best = max(runs, key=lambda run: run.objective)
            found = Components.of(problem, columns, best.model)
            chosen = problem.choose(found.values, found.total)
            if chosen == k or k >= most:
                break
            k = min(most, 2 * k) if chosen is None else max(1, chosen)
            problem = problem if chosen is None else replace(problem, rule=Count(k))
        notes = (*columns.notes, *self._notes(best, runs))
        return found.axes(problem, columns, notes, converged=best.converged)

    def _check(self, problem: Problem) -> None:
        kinds = ("bayes", "none", "missmda")
        require(self, "regularization", self.regularization in kinds, f"one of {kinds}")
        check_integer(self, "max_iter", "n_init")
        check_positive(self, "tol")
        if not problem.center:
            raise ValueError(
                "Missing entries need center=True: the model has a mean. Impute the entries, or "
                "omit center=False."
            )
        if min(problem.shape) < 2:
            n, d = problem.shape
            raise ValueError(
                f"X has shape {(n, d)}, but a model of missing entries needs at least two columns."
            )

    def run(self, problem: Problem, columns: Columns, k: int, start: int = 0) -> Iterate:
        """Return what EM finds from a start: first from some of the rows, then from all."""
        source = problem.source
        some = sample(source, max(_ROWS, _ROWS_EACH * k), problem.rng)
        run = self._start(problem, some, columns, k, random=start > 0)
        if 2 * some.shape[0] < source.shape[0]:
            run = self._iterate(some, run)._replace(passes=0)
        return self._iterate(source, run)

    def _start(
        self, problem: Problem, some: Source, columns: Columns, k: int, *, random: bool
    ) -> Iterate:
        """Return factors of rows filled with column means, or random ones."""
        d, n = len(columns.base), some.shape[0]
        model = FactorModel(columns.base, columns.deviation, np.zeros((d, k + 1)), None, 1.0)
        variance = columns.variance / d
        if random:
            factors = problem.rng.standard_normal((d, k)) * np.sqrt(variance / k)
            noise = variance
        else:
            seed = int(problem.rng.integers(2**31))
            share, X = columns.filled(some, model)
            factors = np.zeros((d, k))
            values, V = _leading(X, k, seed)
            factors[:, : len(values)] = V.T * (values / np.sqrt(n * share))
            noise = max(variance - float((factors**2).sum()) / d, 1e-3 * variance)
        loadings = np.column_stack([factors, np.zeros(d)])
        model = replace(model, loadings=loadings, noise=max(noise, 1e-300))
        if self.regularization != "bayes":
            return Iterate(model, None)
        prior = (factors**2).mean(axis=0) + 1e-6 * noise
        spread = np.broadcast_to(1e-3 * noise * np.eye(k + 1), (d, k + 1, k + 1))
        return Iterate(replace(model, spread=spread.copy()), prior)

    def _step(self, source: Source, run: Iterate) -> tuple[Iterate, float]:
        """Return the run after a pass, and the objective of the model before it."""
        model, filled = run.model, self.regularization == "missmda"
        fold = source.fold(Expectation(model, source.reference, covariance=not filled))
        sums = Sums.of(fold)
        if filled:
            new, prior, value = iterate_filled(model, sums), None, -np.inf
        else:
            new, prior = maximize(model, sums, run.prior)
            value = objective(model, sums, run.prior)
        size = float((new.factors**2).mean()) + new.noise / new.k
        change = float(((new.loadings - model.loadings) ** 2).mean())
        return Iterate(new, prior, run.passes + 1, np.sqrt(change / size), value), value

    def _iterate(self, source: Source, run: Iterate) -> Iterate:
        """Iterate until the factors stop changing; extrapolate, unless the objective falls."""
        while True:
            first, _ = self._step(source, run)
            second, value = self._step(source, first)
            if second.change < self.tol or second.passes >= self.max_iter:
                return second._replace(converged=second.change < self.tol)
            length = _length(run.model, first.model, second.model)
            if self.regularization == "missmda" or length <= 1.0:
                run = second
                continue
            third, far = self._step(source, _extrapolated(run, first, second, length))
            third = third._replace(passes=second.passes + 1)
            better = np.isfinite(far) and far >= value
            run = third if better else second._replace(passes=third.passes)

    def _notes(self, best: Iterate, runs: list[Iterate]) -> list[str]:
        kind = {
            "bayes": "variational Bayes (the lower bound of the likelihood never fell)",
            "none": "maximum likelihood, which never fell",
            "missmda": "regularized iterative PCA",
        }[self.regularization]
        notes = [f"Missing entries: {kind}, {best.passes} passes, last change {best.change:.1e}."]
        if len(runs) > 1:
            values = [run.objective for run in runs]
            spread = (max(values) - min(values)) / max(abs(max(values)), 1e-300)
            notes.append(f"The objectives of {len(runs)} starts differ by {spread:.1e} of it.")
        return notes


def _leading(X: Any, k: int, seed: int) -> tuple[Vector, Matrix]:
    """Return the k largest singular values of rows, dense or sparse, and their right vectors."""
    if k < min(X.shape) // 2:
        _, values, V = svds(X, k, random_state=seed)
        return np.asarray(values[::-1], np.float64), V[::-1]
    _, values, V = svd(X.toarray() if hasattr(X, "toarray") else X)
    return values[:k], V[:k]


def _length(zero: FactorModel, one: FactorModel, two: FactorModel) -> float:
    """Return the length of SQUAREM's step; 1 does not extrapolate."""
    first = one.loadings - zero.loadings
    bend = two.loadings - one.loadings - first
    length = float(np.linalg.norm(first)) / max(float(np.linalg.norm(bend)), 1e-300)
    return min(_LONGEST, length)


def _extrapolated(zero: Iterate, one: Iterate, two: Iterate, length: float) -> Iterate:
    """Return the extrapolation of three iterates, in the logarithms of variances."""
    runs = (zero, one, two)

    def variances(values: list[Any]) -> Any:
        logs = [np.log(value) for value in values]
        change = extrapolate(logs, length) - logs[-1]
        return np.exp(logs[-1] + np.clip(change, -_MOST_CHANGE, _MOST_CHANGE))

    loadings = extrapolate([run.model.loadings for run in runs], length)
    noise = float(variances([run.model.noise for run in runs]))
    prior = None if two.prior is None else variances([run.prior for run in runs])
    return two._replace(model=replace(two.model, loadings=loadings, noise=noise), prior=prior)

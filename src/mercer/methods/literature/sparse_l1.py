"""Sparse kernel feature analysis (Smola, Mangasarian & Schölkopf 1999)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg

from mercer.arrays import Matrix, Vector, is_finite
from mercer.certificate import Axes
from mercer.checks import check_whole, require
from mercer.config import get_config
from mercer.landmarks.base import pool, taken
from mercer.landmarks.columns import Rows
from mercer.landmarks.factor import AHEAD, Factor, footprint
from mercer.landmarks.objective import centred
from mercer.methods.base import Cost, Method, Size, largest
from mercer.methods.kernel.landmark_fit import AFFORDABLE, SAMPLE_ROWS, LandmarkFit, fit_landmarks
from mercer.methods.kernel.landmark_method import prepare
from mercer.problem import KernelProblem, Problem

# Of so many drawn with equal chances the best is among the best 5 % of all, in 95 of 100 cases.
_DRAWN = 59
_NORMS = ("l1", "none", "length")
# A pair of strings costs about as much as one of rows with so many columns: see the plan.
_STRING = 10_000
# The terms of an axis, added up, are no longer than the root of this: of longer ones not much but
# rounding is left, in variances along the axis.
_LONG = 1e9
# A function of which no value differs by more roundings than this from its mean is constant.
_ROUNDINGS = 64.0


class SparseL1(Method):
    r"""Axes made of few rows each: of all functions of bounded l1 norm the one that varies most.

    Among the functions :math:`f = \sum_i\alpha_ik(x_i, \cdot)` with :math:`\sum_i|\alpha_i|\le1`
    the variance over the rows is largest at an extreme point: at the kernel function of a single
    row. That row is taken; from all other rows' functions, what lies along it in feature space is
    taken off, :math:`f_j \leftarrow f_j - \langle f_j, v\rangle v/\|v\|^2`, they are divided by
    the l1 norm of their coefficients, and the one that varies most is taken next. The axes are
    orthonormal, the i-th is made of the first i rows taken; scores along them are not
    uncorrelated, and variances need not fall.

    An axis costs the kernel between all pairs of rows; of a few rows drawn for each axis, the
    kernel to those. The memory is n numbers for every axis.

    Parameters
    ----------
    candidates : int or None
        Rows that are looked at for each axis, drawn anew with equal chances. The best of 59 is
        with probability 0.95 among the best 5 % of all. None: all rows where the kernel between
        them, for every axis, takes no more than 5e11 operations; else 59.
    normalize : {"l1", "none", "length"}
        What functions are divided by, when that which varies most is sought: the l1 norm of their
        coefficients, as in the source; nothing; or their length in feature space, which makes
        it the variance along the axis.

    References
    ----------
    A. J. Smola, O. L. Mangasarian & B. Schölkopf, Sparse kernel feature analysis, Technical
    Report 99-04, Data Mining Institute, University of Wisconsin (1999). B. Schölkopf & A. J.
    Smola, Learning with Kernels (2002), §14.5.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.methods import SparseL1
    >>> X = load_iris().data
    >>> kpca = KernelPCA(3, kernel="rbf", gamma=0.3, method=SparseL1()).fit(X)
    >>> kpca.X_fit_.shape
    (3, 4)
    >>> (kpca.projection_.components != 0).sum(axis=0)
    array([1, 2, 3])
    """

    name = "sparse_l1"
    for_rows = False

    def __init__(self, candidates: int | None = None, normalize: str = "l1") -> None:
        self.candidates, self.normalize = candidates, normalize

    def cost(self, size: Size) -> Cost:
        n, d, k = size.n, size.d, size.components
        looked = self.looked(n, d, k)
        products = 2.0 * n * k * looked * (d + k / 2.0) + 2.0 * n * k * (d + k)
        memory = footprint(n, k) + 64.0 * k * k + 2.0 * 2**25
        return Cost(k * -(-looked // AHEAD) + 1, products, 12.0 * k**3, memory)

    def suggestion(self, size: Size, room: float) -> str | None:
        k = largest(lambda k: self.cost(replace(size, k=k)).memory <= room, 1, size.components)
        return None if k is None else f"n_components={k} fits"

    def looked(self, n: int, d: int, k: int) -> int:
        """Return how many rows are looked at for each of k axes, of n rows of d columns."""
        if self.candidates is not None:
            check_whole(self, "candidates")
            return min(n, int(self.candidates))
        return n if 2.0 * n * n * k * (d + k / 2.0) <= AFFORDABLE else min(n, _DRAWN)

    def fit(self, problem: Problem) -> Axes:
        require(self, "normalize", self.normalize in _NORMS, f"one of {', '.join(_NORMS)}")
        problem = prepare(problem)
        shape, asked = problem.source.shape, problem.n_leading
        n, d = shape[0], shape[1] if len(shape) > 1 else _STRING
        looked = self.looked(n, d, n if asked is None else asked)
        pursuit = Pursuit(problem, _most(n) if asked is None else asked, looked, self.normalize)
        while not pursuit.enough() and pursuit.grow():
            pass
        at = pursuit.factor.at
        fit = fit_landmarks(problem, taken(problem, at or pool(problem, 1)))
        components = _orthonormal(fit, pursuit.factor)
        values = np.einsum("ij,ij->j", components, fit.covariance @ components)
        axes = fit.axes(values, components, fit.sample(len(values), SAMPLE_ROWS))
        note = _note(looked, n, self.normalize)
        return replace(axes, evidence=axes.evidence.annotated(note))


class Pursuit:
    """Functions of rows, less what lies along those taken: columns of K − GGᵀ.

    Attributes
    ----------
    factor : Factor
        G, whose columns are the scores of all rows along the axes, and the rows taken.
    values : list of float
        Variance along each axis.
    """

    def __init__(self, problem: KernelProblem, most: int, looked: int, normalize: str) -> None:
        self.problem, self.looked, self.normalize = problem, looked, normalize
        self.factor = Factor(problem, most)
        own, weights = self.factor.columns.own, problem.source.weights
        self.weights = np.ones(len(own)) if weights is None else weights
        self.values: list[float] = []
        eps = float(np.finfo(problem.source.dtype).eps)
        largest = float(np.max(np.abs(own), initial=0.0))
        with np.errstate(over="ignore"):
            self.least = problem.source.count * np.square(_ROUNDINGS * eps * largest)
        self.total = float(self.weights @ own)

    def enough(self) -> bool:
        """Tell whether there are as many axes as are wanted."""
        if not self.factor.room:
            return True
        rule, divisor = self.problem.rule, self.problem.divisor
        if rule.first_guess(*self.problem.shape) is not None or not self.values:
            return False
        shown = np.array(self.values) / divisor
        found = rule.choose(shown, self.total / divisor, *self.problem.counts)
        return found is not None and found <= len(shown)

    def grow(self) -> bool:
        """Take the row whose function varies most; False where none varies."""
        factor, pick = self.factor, None
        while pick is None:
            there = np.flatnonzero(factor.beyond > 0)
            if not len(there):
                return False
            pick = self._best(self._drawn(there))
        column = factor.residual([pick]) / np.sqrt(factor.left[pick])
        column[pick] = np.sqrt(factor.left[pick])
        factor.append([pick], column)
        if self.problem.center:  # the mean's part along the axis is none of the variance
            self.total -= float(self.weights @ column[:, 0]) ** 2 / self.problem.source.count
        self.values.append(_scatter(self.problem, column)[0])
        return True

    def _best(self, among: Rows) -> int | None:
        """Return that which varies most; those that do not are not looked at again."""
        best, pick = 0.0, None
        for first in range(0, len(among), AHEAD):
            some = among[first : first + AHEAD]
            scores = self.scores(some)
            self.factor.least[some[scores == 0]] = np.inf
            i = int(np.argmax(scores))
            if scores[i] > best:
                best, pick = float(scores[i]), int(some[i])
        return pick

    def scores(self, at: Rows) -> Vector:
        """Return how much the functions of rows vary, divided by their norms; 0 if they do not."""
        varies = _scatter(self.problem, self.factor.residual(at))
        if not is_finite(varies):
            raise ValueError(
                f"{self.problem.kernel!r} gives NaN or infinity between rows. Scale the rows, or "
                f"change the kernel's parameters."
            )
        varies[(varies <= self.least) | ~self.told(at)] = 0.0
        return np.asarray(varies / self.norms(at) ** 2)

    def told(self, at: Rows) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell which functions are more than rounding of the terms they are made of."""
        lengths = np.sqrt(self.factor.columns.own)
        terms = lengths[at] + np.abs(self.coefficients(at)).T @ lengths[self.factor.at]
        return np.asarray(terms**2 <= _LONG * self.factor.left[at])

    def norms(self, at: Rows) -> Vector:
        """Return what the functions are divided by."""
        factor = self.factor
        if self.normalize == "none":
            return np.ones(len(at))
        if self.normalize == "length":
            return np.sqrt(factor.left[at])
        return np.asarray(1.0 + np.abs(self.coefficients(at)).sum(axis=0))

    def coefficients(self, at: Rows) -> Matrix:
        """Return c = L⁻ᵀG_j of rows j: Φ_j − Σ_p c_p Φ_p, with L the rows of G of those taken."""
        factor, size = self.factor, self.factor.size
        L = factor.G[factor.at, :size]
        c = scipy.linalg.solve_triangular(L, factor.G[at, :size].T, lower=True, trans=1)
        return np.asarray(c)

    def _drawn(self, there: Rows) -> Rows:
        """Draw the rows that are looked at, in order; as often as they count."""
        if self.looked >= len(there):
            return there
        chance = self.weights[there] / self.weights[there].sum()
        return np.sort(self.problem.rng.choice(there, self.looked, replace=False, p=chance))


def _scatter(problem: KernelProblem, columns: Matrix) -> Vector:
    """Return the weighed sum of squares of each column about its mean; columns are used up."""
    columns = centred(problem, columns)
    return np.asarray(np.einsum("ij,ij->j", columns, columns))


def _orthonormal(found: LandmarkFit, factor: Factor) -> Matrix:
    """Return the axes in the rows taken: L⁻ᵀ with K_y = LLᵀ, an upper triangle."""
    size = factor.size
    if not size:
        return np.zeros((found.span.size, 0))
    try:
        L = scipy.linalg.cholesky(found.span.matrix, lower=True)
    except scipy.linalg.LinAlgError:  # rows that hold each other, to the precision of kernels
        L = np.tril(factor.G[factor.at, :size])
    axes: Matrix = scipy.linalg.solve_triangular(L, np.eye(size), lower=True, trans=1)
    return axes


def _most(n: int) -> int:
    """Return the most axes of n rows that half the memory holds."""
    room = int(get_config().budget / 2 / (8.0 * n)) - 2 * AHEAD
    return max(1, min(n, room))


def _note(looked: int, n: int, normalize: str) -> str:
    among = "all rows" if looked >= n else f"{looked} rows drawn for each"
    return (
        f"The i-th component is made of i rows, chosen among {among}; "
        f"functions are compared by normalize={normalize!r}."
    )

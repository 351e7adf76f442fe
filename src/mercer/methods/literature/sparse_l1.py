"""Sparse kernel feature analysis (Smola, Mangasarian & Schölkopf 1999)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from mercer.arrays import Matrix, Vector
from mercer.certificate import Axes
from mercer.checks import check_integer, require
from mercer.config import get_config
from mercer.landmarks.base import Rows, draw_rows, row_basis, row_weights
from mercer.landmarks.cholesky import MAX_COLUMNS, PartialCholesky, cholesky_bytes
from mercer.landmarks.objective import center_features
from mercer.methods.base import Cost, Method, Size
from mercer.methods.kernel.landmark_fit import AFFORDABLE, fit_landmarks, require_finite_kernel
from mercer.methods.preparation import move_rows
from mercer.problem import KernelProblem, Problem

# The best of this many rows drawn at random is among the best 5 % with probability 0.95.
_DRAWN = 59
_NORMS = ("l1", "none", "length")
# A pair of strings costs about as much as a pair of rows with this many columns: see the plan.
_STRING = 10_000
# A function is rounding if the sum of its terms exceeds its squared norm by more than this factor.
_CANCELLATION = 1e9
# A function is constant if no value differs from its mean by more unit roundoffs than this.
_ROUNDINGS = 64.0


@dataclass(eq=False, repr=False)
class SparseL1(Method):
    r"""Sparse components: kernel functions of bounded l1 norm with the largest variance.

    Among the functions :math:`f = \sum_i\alpha_ik(x_i, \cdot)` with :math:`\sum_i|\alpha_i|\le1`
    the variance over the rows is largest at an extreme point: the kernel function of a single row.
    That row is chosen, its direction in feature space is removed from the functions of all other
    rows, :math:`f_j \leftarrow f_j - \langle f_j, v\rangle v/\|v\|^2`, they are divided by the l1
    norm of their coefficients, and the one that varies most is chosen next. The components are
    orthonormal, and the i-th is made of the first i rows chosen. Their scores may be correlated,
    and their variances need not decrease.

    A component costs the kernel between all pairs of rows, or between all rows and a few candidates
    drawn for each component. The memory is n numbers per component.

    Parameters
    ----------
    candidates : int or None
        Number of rows drawn at random for each component, among which it is chosen. None: all rows
        if the kernel between them, for every component, takes at most 5e11 operations; otherwise
        59, the best of which is among the best 5 % of all rows with probability 0.95.
    normalize : {"l1", "none", "length"}
        Divide functions by the l1 norm of their coefficients before they are compared, as in the
        paper; by nothing; or by their norm in feature space.

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
    approximates = True
    for_rows = False

    candidates: int | None = None
    normalize: str = "l1"

    def cost(self, size: Size) -> Cost:
        n, d, k = size.n, size.d, size.components
        candidates = self.n_candidates(n, d, k)
        products = 2.0 * n * k * candidates * (d + k / 2.0) + 2.0 * n * k * (d + k)
        memory = cholesky_bytes(n, k) + 64.0 * k * k + 2.0 * 2**25
        # The diagonal, the candidates of each component and its own column, and the fit; the
        # candidates again if all that were drawn are constant.
        batches, passes = -(-candidates // MAX_COLUMNS), 3 + size.first_pass
        most = k * (batches + 1) + n // candidates * batches
        factor = 12.0 * k**3
        return Cost(passes, products, factor, memory, extra_passes=most - 1)

    def n_candidates(self, n: int, d: int, k: int) -> int:
        """Return the number of candidates for each of k components, of n rows with d columns."""
        if self.candidates is not None:
            check_integer(self, "candidates")
            return min(n, int(self.candidates))
        return n if 2.0 * n * n * k * (d + k / 2.0) <= AFFORDABLE else min(n, _DRAWN)

    def fit(self, problem: Problem) -> Axes:
        require(self, "normalize", self.normalize in _NORMS, f"one of {', '.join(_NORMS)}")
        assert isinstance(problem, KernelProblem)
        problem = move_rows(problem)
        shape, wanted = problem.source.shape, problem.n_leading
        n, d = shape[0], shape[1] if len(shape) > 1 else _STRING
        candidates = self.n_candidates(n, d, n if wanted is None else wanted)
        if wanted is None:  # as many as half of the memory holds
            wanted = max(1, min(n, int(get_config().budget / 2 / (8.0 * n)) - 2 * MAX_COLUMNS))
        pursuit = _Pursuit(problem, wanted, candidates, self.normalize)
        while not pursuit.met() and pursuit.grow():
            pass
        fit = fit_landmarks(problem, row_basis(problem, pursuit.pivots or draw_rows(problem, 1)))
        components = np.zeros((fit.span.size, 0))
        if pursuit.size:  # coefficients L⁻ᵀ with K = LLᵀ, an upper triangle
            try:
                L = scipy.linalg.cholesky(fit.span.matrix, lower=True)
            except scipy.linalg.LinAlgError:  # dependent rows, to the precision of the kernel
                L = np.tril(pursuit.G[pursuit.pivots, : pursuit.size])
            components = scipy.linalg.solve_triangular(L, np.eye(len(L)), lower=True, trans=1)
        values = np.einsum("ij,ij->j", components, fit.covariance @ components)
        axes = fit.axes(values, components)
        among = "all rows" if candidates >= n else f"{candidates} rows drawn for each"
        note = (
            f"Component i combines i rows, chosen among {among}; "
            f"functions are normalized by normalize={self.normalize!r}."
        )
        return replace(axes, evidence=axes.evidence.annotated(note))


class _Pursuit(PartialCholesky):
    """Kernel functions of rows without the components so far: columns of K − GGᵀ.

    G contains the scores of all rows; the pivots are the rows chosen.
    """

    def __init__(
        self, problem: KernelProblem, n_components: int, candidates: int, normalize: str
    ) -> None:
        super().__init__(problem, n_components)
        self.problem, self.candidates, self.normalize = problem, candidates, normalize
        self.weights, diag = row_weights(problem), self.columns.diag
        self.values: list[float] = []  # scatter of each component
        self.total = float(self.weights @ diag)
        eps = float(np.finfo(problem.source.dtype).eps)
        with np.errstate(over="ignore"):
            rounding = np.square(_ROUNDINGS * eps * float(np.max(np.abs(diag), initial=0.0)))
            self.least = problem.source.count * rounding

    def met(self) -> bool:
        """Return whether there are as many components as wanted."""
        if not self.room:
            return True
        rule, divisor = self.problem.rule, self.problem.divisor
        if rule.first_guess(*self.problem.shape) is not None or not self.values:
            return False
        variances = np.array(self.values) / divisor
        k = rule.choose(variances, self.total / divisor, *self.problem.counts)
        return k is not None and k <= len(variances)

    def grow(self) -> bool:
        """Choose the row whose function varies most; False if none varies.

        Among candidates drawn in proportion to their weights; constant ones are excluded from now
        on.
        """
        pick, best = None, 0.0
        while pick is None:
            rows = np.flatnonzero(self.eligible > 0)
            if not len(rows):
                return False
            if self.candidates < len(rows):
                p = self.weights[rows] / self.weights[rows].sum()
                drawn = self.problem.rng.choice(rows, self.candidates, replace=False, p=p)
                rows = np.sort(drawn)
            for first in range(0, len(rows), MAX_COLUMNS):
                some = rows[first : first + MAX_COLUMNS]
                variation = self._variation(some)
                self.threshold[some[variation == 0]] = np.inf
                i = int(np.argmax(variation))
                if variation[i] > best:
                    best, pick = float(variation[i]), int(some[i])
        column = self.residual([pick]) / np.sqrt(self.residual_diag[pick])
        column[pick] = np.sqrt(self.residual_diag[pick])
        self.append([pick], column)
        if self.problem.center:  # the part of the mean along the component is not variance
            self.total -= float(self.weights @ column[:, 0]) ** 2 / self.problem.source.count
        self.values.append(self._scatter(column)[0])
        return True

    def _variation(self, at: Rows) -> Vector:
        """Return the scatter of the normalized functions of rows; 0 for those that are rounding."""
        scatter = self._scatter(self.residual(at))
        require_finite_kernel(self.problem, scatter)
        # The function of row j is Φ_j − Σ_p c_p Φ_p over the pivots p: c = L⁻ᵀG_j.
        L = self.G[self.pivots, : self.size]
        c = np.abs(scipy.linalg.solve_triangular(L, self.G[at, : self.size].T, lower=True, trans=1))
        norms = np.sqrt(self.columns.diag)
        terms = norms[at] + c.T @ norms[self.pivots]
        reliable = terms**2 <= _CANCELLATION * self.residual_diag[at]
        scatter[(scatter <= self.least) | ~reliable] = 0.0
        if self.normalize == "l1":
            return np.asarray(scatter / (1.0 + c.sum(axis=0)) ** 2)
        if self.normalize == "length":
            return np.asarray(scatter / np.sqrt(self.residual_diag[at]) ** 2)
        return scatter

    def _scatter(self, columns: Matrix) -> Vector:
        """Return the weighted sum of squares of each column about its mean, in place."""
        columns = center_features(self.problem, columns)
        return np.asarray(np.einsum("ij,ij->j", columns, columns))

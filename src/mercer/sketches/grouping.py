"""Groups of correlated features, each replaced by one, learned from rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from mercer.arrays import Matrix, Vector
from mercer.checks import check_integer, check_positive, require
from mercer.config import require_budget
from mercer.data import Source, require_finite_sums
from mercer.linalg import Moments
from mercer.sketches.base import SketchMap
from mercer.sketches.matrix import FixedMatrix

Groups = list[npt.NDArray[np.int64]]


class FeatureGrouping(SketchMap):
    r"""Groups of similar features, replaced by one: m of them become :math:`\sqrt m` times it.

    Replacing feature a by b changes the dot matrix by a matrix D of rank two, and each of its
    eigenvalues, which are the scatter's, by at most

    .. math:: \|D\|_2 = \tfrac12\bigl(|A-B| + \sqrt{(A+B)^2 - 4C^2}\bigr) \le \|D\|_F,
              \quad \|D\|_F^2 = A^2 + B^2 - 2C^2,

    where A, B and C are the entries aa, bb and ab of the scatter; Marukatat (2022), (30) and
    (35) uses the larger norm. Two features merge well if they are correlated, with either sign,
    and have similar variances. Groups are merged greedily, the smallest increase of the sum of
    norms first, with the norm of each member to the feature that replaces it. Needs the d×d
    scatter.

    Parameters
    ----------
    q : int, optional
        Number of groups: columns of the result.
    bound : float, optional
        Largest sum of norms, as a fraction of the scatter's trace. With q, merging stops at
        whichever comes first.
    center : bool
        Whether the scatter is about the mean, or about zero.

    Attributes
    ----------
    groups_ : list of ndarray
        Features of every group; the first one replaces the others.
    bound_ : float
        Sum of norms: no eigenvalue of the scatter changes by more.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import FeatureGrouping
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(100, 3)), [2, 1, 3], axis=1)
    >>> grouping = FeatureGrouping(3).fit(X)
    >>> [sorted(group.tolist()) for group in grouping.groups_]
    [[0, 1], [2], [3, 4, 5]]
    """

    matrix_: GroupingMatrix

    def __init__(
        self, q: int | None = None, bound: float | None = None, *, center: bool = True
    ) -> None:
        self.q, self.bound, self.center = q, bound, center

    def check(self) -> None:
        valid = self.q is not None or self.bound is not None
        require(self, "q", valid, "the number of groups if bound is None")
        if self.q is not None:
            check_integer(self, "q")
        if self.bound is not None:
            check_positive(self, "bound")
        require(self, "center", isinstance(self.center, bool), "True or False")

    def fit_scatter(self, C: Any) -> Self:
        """Learn the groups from a scatter or covariance matrix.

        Parameters
        ----------
        C : array-like of shape (d, d)
            Symmetric, positive semi-definite matrix; `bound_` is then in its units.
        """
        C = np.array(C, np.float64)
        if C.ndim != 2 or C.shape[0] != C.shape[1]:
            raise ValueError(f"C has shape {C.shape}; it must be square and symmetric.")
        if not np.isfinite(C).all():
            i, j = np.argwhere(~np.isfinite(C))[0]
            raise ValueError(f"C has {C[i, j]} in row {i}, column {j}. Pass finite numbers.")
        diag, tolerance = np.diag(C), 1e-8 * np.abs(C).max(initial=0.0)
        if np.abs(C - C.T).max(initial=0.0) > tolerance:
            raise ValueError("C is not symmetric. Pass (C + C.T) / 2.")
        roots = np.sqrt(np.maximum(diag, 0.0))
        wrong = np.argwhere(np.abs(C) > np.outer(roots, roots) + tolerance)
        if len(wrong):
            i, j = wrong[0]
            raise ValueError(
                f"C is not positive semi-definite: the entry {C[i, j]:g} in row {i}, column {j} is "
                f"too large for {diag[i]:g} and {diag[j]:g} on the diagonal."
            )
        self.matrix_ = self._learn(C)
        self.n_features_in_ = len(C)
        self.__dict__.pop("feature_names_in_", None)
        return self

    @property
    def groups_(self) -> Groups:
        return self.matrix_.groups

    @property
    def bound_(self) -> float:
        return self.matrix_.bound

    def matrix_for(self, d: int, rng: np.random.Generator | None = None) -> GroupingMatrix:
        if not self.__sklearn_is_fitted__():
            raise ValueError(f"{self!r} learns its groups from rows: call fit(X) first.")
        if self.matrix_.d != d:
            raise ValueError(
                f"{self!r} was fitted to {self.matrix_.d} columns, but the rows have {d}."
            )
        return self.matrix_

    def matrix_from(self, source: Source, rng: np.random.Generator | None = None) -> GroupingMatrix:
        self.check()
        d = source.shape[1]
        # The scatter, a block's product, and the norms.
        other = "use Hashing, SparseSign or Hadamard, or PixelGrouping for images"
        require_budget(24 * d * d, f"{self!r}: the {d}×{d} scatter matrix", other)
        moments = Moments(d, source.reference, np.float64, center=self.center)
        C = source.fold(moments).scatter
        require_finite_sums(source, C)
        return self._learn(C)

    def _learn(self, C: Matrix) -> GroupingMatrix:
        """Merge groups until there are q, or until the next would exceed the bound."""
        self.check()
        d, trace = len(C), float(np.trace(C))
        if self.q is not None and self.q > d:
            raise ValueError(
                f"{self!r}: q={self.q} is more than n_features={d}. Use at most {d} groups."
            )
        fewest = 1 if self.q is None else int(self.q)
        most = np.inf if self.bound is None else self.bound * trace
        return GroupingMatrix(d, *_merge(_norms(C), fewest, most))


class GroupingMatrix(FixedMatrix):
    """Groups of features, each times the root of its size, and the bound that they keep."""

    def __init__(self, d: int, groups: Groups, bound: float) -> None:
        self.groups, self.bound = groups, bound
        first = np.array([group[0] for group in groups])
        weight = np.sqrt([len(group) for group in groups])
        super().__init__(sp.csr_array((weight, (first, np.arange(len(first)))), (d, len(first))))


def _merge(norms: Matrix, fewest: int, most: float) -> tuple[Groups, float]:
    """Merge groups until `fewest` are left, or the next would cost more than `most` in all.

    Return the groups and their cost. Group i is represented by feature i. Row i of `norms` holds,
    for every feature, the sum of its norms to the members: the cost of having it represent them.
    """
    d = len(norms)
    members, nearest = [[i] for i in range(d)], np.zeros(d, np.int64)
    cost, increase = np.zeros(d), np.zeros(d)
    absent = np.zeros(d)  # infinite for groups that were merged into others
    changed: Iterable[int] = range(d)
    for _ in range(d - fewest):
        for i in changed:
            row: Vector = norms[i] + absent
            row[i] = np.inf
            nearest[i] = np.argmin(row)
            increase[i] = row[nearest[i]] - cost[i]
        a = int(np.argmin(increase))
        if cost.sum() + increase[a] > most:
            break
        b = int(nearest[a])
        cost[b] += cost[a] + increase[a]
        norms[b] += norms[a]
        members[b] += members[a]
        members[a] = []
        cost[a], absent[a], increase[a] = 0.0, np.inf, np.inf
        # Only the row of b has changed, and the groups nearest to a need another.
        changed = {b, *np.flatnonzero((nearest == a) & (absent == 0.0)).tolist()}
    return [np.array(group) for group in members if group], float(cost.sum())


def _norms(C: Matrix) -> Matrix:
    """Return ‖D‖₂ of replacing one feature by another, for all pairs."""
    # Scaled, because the squares of entries might overflow or underflow.
    unit = float(np.abs(C).max(initial=0.0)) or 1.0
    diag = np.diag(C) / unit
    norms = np.empty_like(C)
    for i, row in enumerate(C):
        row = row / unit
        difference = diag[i] - diag
        # (A+B)² − 4C² as a sum of terms that only rounding makes negative.
        root = np.sqrt(difference**2 + 4.0 * np.maximum(diag[i] * diag - row**2, 0.0))
        norms[i] = unit * ((np.abs(difference) + root) / 2)
    return norms

"""Randomly pivoted Cholesky."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from mercer.arrays import Matrix, Vector
from mercer.checks import check_whole
from mercer.landmarks.base import Landmarks, taken
from mercer.landmarks.columns import Rows
from mercer.landmarks.factor import AHEAD, Factor, footprint
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# Rows that are proposed in the first pass.
_FIRST = 16


class RPCholesky(Landmarks):
    r"""Pivots of a Cholesky decomposition, each drawn in proportion to what is left of it.

    The next point is row x with the probability :math:`(K - GG^T)_{xx}/\mathrm{tr}(K - GG^T)`,
    times its weight: rows that the span holds badly are likely, and an outlier is no more than
    that. Some rows are proposed at a time, and each is accepted with the share of it that those
    accepted before have left: the same distribution as one by one, in fewer passes. It takes
    nm(d + m) operations and holds G, n × m.

    Fewer than m points are returned where those already hold all rows, to rounding.

    Parameters
    ----------
    block : int or None
        Rows proposed at a time. None: twice as many as were accepted before, 128 at most.

    References
    ----------
    Y. Chen, E. N. Epperly, J. A. Tropp & R. J. Webber, Randomly pivoted Cholesky, Comm. Pure
    Appl. Math. 78 (2025). E. N. Epperly, J. A. Tropp & R. J. Webber, Embrace rejection: kernel
    matrix approximation by accelerated randomly pivoted Cholesky (2024), Alg. 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.RPCholesky())
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "rp_cholesky"

    def __init__(self, block: int | None = None) -> None:
        self.block = block

    def select(self, problem: KernelProblem, m: int) -> Basis:
        if self.block is not None:
            check_whole(self, "block")
        factor, many = Factor(problem, m), int(self.block or _FIRST)
        weights = problem.source.weights
        while factor.room:
            sizes = factor.beyond if weights is None else factor.beyond * weights
            if not sizes.any():
                break
            accepted = _extend(factor, sizes, many, problem.rng)
            if self.block is None:
                many = min(AHEAD, max(_FIRST, 2 * accepted))
        return taken(problem, factor.at)

    @property
    def passes(self) -> int:
        return 1

    def work(self, n: int, d: int, m: int) -> float:
        return 2.0 * n * m * d + 2.0 * n * m * m

    def memory(self, n: int, d: int, m: int) -> float:
        return footprint(n, m)


def _extend(factor: Factor, sizes: Vector, many: int, rng: np.random.Generator) -> int:
    """Propose pivots, append those that are accepted, and return how many."""
    proposed = rng.choice(len(sizes), many, p=sizes / sizes.sum())
    kept, L = _accepted(factor, proposed, rng)
    columns = solve_triangular(L, factor.residual(kept).T, lower=True, check_finite=False).T
    factor.append(kept, columns)
    return len(kept)


def _accepted(factor: Factor, proposed: Rows, rng: np.random.Generator) -> tuple[Rows, Matrix]:
    """Accept each proposal with the share of it that is left; return rows and their factor.

    The first is always accepted: nothing is taken of it yet.
    """
    H, least = factor.residual_among(proposed), factor.least[proposed]
    own, left = np.diag(H).copy(), np.diag(H).copy()
    L, kept = np.zeros_like(H), list[int]()
    for j, level in enumerate(rng.random(len(H))):
        if len(kept) == factor.room or left[j] <= max(level * own[j], least[j]):
            continue
        i = len(kept)
        L[:, i] = (H[:, j] - L[:, :i] @ L[j, :i]) / np.sqrt(left[j])
        left -= L[:, i] ** 2
        left[proposed == proposed[j]] = 0.0
        kept.append(j)
    return proposed[kept], L[kept, : len(kept)]

"""The nearest row, by L-BFGS."""

from __future__ import annotations

from typing import Any

from mercer.arrays import Matrix
from mercer.checks import check_positive, check_whole, require
from mercer.preimage.base import Preimage, Sought
from mercer.preimage.descent import Way, search
from mercer.preimage.slopes import require_slopes
from mercer.preimage.target import Axes, Target


class Gradient(Preimage):
    r"""The rows where :math:`\rho(r) = k(r,r) - 2\sum_j\gamma_j k(r,y_j)` is least, by L-BFGS.

    Source: aguilera (25); Nocedal & Wright (2006), alg. 7.4. For every kernel that has a
    gradient, also where the fixed point has no denominator. All points descend in step, each
    with its own memory and its own line search: one L-BFGS over all of them would share both,
    and a loop over them would give up the matrix products.

    Parameters
    ----------
    max_iter : int
        Evaluations at most, from each start.
    tol : float
        Step at which a point has arrived, as a share of the basis' spread.
    restarts : int
        Further starts where the first fails, as those of `FixedPoint`.
    memory : int
        Steps that the curvature is learnt from.

    Examples
    --------
    >>> from mercer.preimage import Gradient
    >>> Gradient(tol=1e-6)
    Gradient(tol=1e-06)
    """

    def __init__(
        self, max_iter: int = 300, tol: float = 1e-8, restarts: int = 3, memory: int = 6
    ) -> None:
        self.max_iter, self.tol, self.restarts, self.memory = max_iter, tol, restarts, memory

    def check(self) -> None:
        check_whole(self, "max_iter", "memory")
        check_positive(self, "tol")
        require(self, "restarts", self.restarts in range(11), "a whole number from 0 to 10")

    def require(self, axes: Axes) -> None:
        require_slopes(self, axes)

    def seek(self, target: Target, scores: Matrix, state: Any) -> Sought:
        return search(target, Way(self.max_iter, self.tol, int(self.memory), self.restarts))

"""The fixed point of Mika et al."""

from __future__ import annotations

from typing import Any

from mercer.arrays import Matrix
from mercer.checks import check_positive, check_whole, require
from mercer.preimage.base import Preimage, Sought
from mercer.preimage.descent import Way, search
from mercer.preimage.slopes import require_slopes
from mercer.preimage.target import Axes, Target


class FixedPoint(Preimage):
    r"""The rows where :math:`\rho(r) = k(r,r) - 2\sum_j\gamma_j k(r,y_j)` is stationary.

    .. math:: r \leftarrow \frac{\sum_j \gamma_j (a_j - 2b_j)\, y_j}
                                {a_r + 2c_r - 2\sum_j \gamma_j (b_j + c_j)}

    with a, b, c the derivatives of k(r, yⱼ) by the dot product, the squared distance and ‖r‖²,
    and :math:`a_r, c_r` those of k(r, r). For the RBF this is the rule
    :math:`\sum\gamma_j k_j y_j / \sum\gamma_j k_j` of Mika et al. (1999), for kernels of the
    dot product their form :math:`\sum\gamma_j a_j y_j / a_r`, for the linear kernel PCA's
    reconstruction in one step. A step that would climb is halved.

    Starts from the row of the basis that is nearest in feature space. Points whose
    denominator vanishes, or that take too long, start again from the mean of the 2, 4, 8, …
    nearest, and keep the row that is nearest of all.

    Parameters
    ----------
    max_iter : int
        Steps at most, from each start.
    tol : float
        Step at which a point has arrived, as a share of the basis' spread.
    restarts : int
        Further starts where the first fails.

    Examples
    --------
    >>> from mercer.preimage import FixedPoint
    >>> FixedPoint(max_iter=50)
    FixedPoint(50)
    """

    def __init__(self, max_iter: int = 300, tol: float = 1e-6, restarts: int = 3) -> None:
        self.max_iter, self.tol, self.restarts = max_iter, tol, restarts

    def check(self) -> None:
        check_whole(self, "max_iter")
        check_positive(self, "tol")
        require(self, "restarts", self.restarts in range(11), "a whole number from 0 to 10")

    def require(self, axes: Axes) -> None:
        require_slopes(self, axes)

    def seek(self, target: Target, scores: Matrix, state: Any) -> Sought:
        return search(target, Way(self.max_iter, self.tol, 0, self.restarts))

"""Rows drawn by the diagonal of the kernel matrix."""

from __future__ import annotations

from mercer.landmarks.base import Landmarks, drawn
from mercer.landmarks.columns import Columns
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem


class Diagonal(Landmarks):
    r"""Rows drawn with chances in proportion to :math:`w_ik(x_i,x_i)^2`.

    Long rows are likely; of a kernel with k(x,x) = 1 it is a uniform sample. One pass.

    References
    ----------
    P. Drineas & M. W. Mahoney, On the Nyström method for approximating a Gram matrix, JMLR 6
    (2005). Marukatat (2022), §5.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.Diagonal())
    >>> kpca = KernelPCA(2, kernel="poly", method=method, random_state=0).fit(load_iris().data)
    >>> kpca.X_fit_.shape
    (10, 4)
    """

    name = "diagonal"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        sizes = Columns(problem).own ** 2
        weights = problem.source.weights
        return drawn(problem, sizes if weights is None else sizes * weights, m)

    @property
    def passes(self) -> int:
        return 1

    def work(self, n: int, d: int, m: int) -> float:
        return 2.0 * n * d

    def memory(self, n: int, d: int, m: int) -> float:
        return 24.0 * n

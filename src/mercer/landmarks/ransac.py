"""The best of several draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.checks import check_whole
from mercer.landmarks.base import Landmarks
from mercer.landmarks.objective import captured
from mercer.landmarks.uniform import Uniform
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem

# A later draw must be better by this share: which of two equals rounding makes larger depends on
# the blocks.
_EQUAL = 1e-5


class Ransac(Landmarks):
    r"""The best of several random draws, by the captured variance :math:`\sum_{i\le r}\xi_i`.

    Each trial costs a pass over the rows, as a fit does. What is drawn is chosen among draws: how
    many rows each point stands for is not known.

    Parameters
    ----------
    trials : int
        Number of draws.

    References
    ----------
    Washizawa (2012), §4.1.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(10, select=landmarks.Ransac(trials=5))
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (10, 4)
    """

    name = "ransac"

    def __init__(self, trials: int = 20) -> None:
        self.trials = trials

    def select(self, problem: KernelProblem, m: int) -> Basis:
        check_whole(self, "trials")
        best, most = Uniform().select(problem, m), -np.inf
        for trial in range(int(self.trials)):
            basis = Uniform().select(problem, m) if trial else best
            variance = captured(problem, basis)
            if trial == 0 or variance > (1.0 + _EQUAL) * most:
                best, most = basis, variance
        return replace(best, counts=None)

    @property
    def passes(self) -> int:
        return int(self.trials)

    def work(self, n: int, d: int, m: int) -> float:
        return self.trials * (2.0 * n * m * d + float(n) * m * m + 12.0 * m**3)

    def memory(self, n: int, d: int, m: int) -> float:
        return 64.0 * m * m

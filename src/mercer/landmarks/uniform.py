"""Rows drawn with equal chances."""

from __future__ import annotations

import numpy as np

from mercer.landmarks.base import Landmarks, drawn, taken
from mercer.linalg.span import Basis
from mercer.problem import KernelProblem


class Uniform(Landmarks):
    """Rows drawn with equal chances, or in proportion to their weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA, landmarks
    >>> from mercer.methods import Subset
    >>> method = Subset(30, select=landmarks.Uniform())
    >>> KernelPCA(2, kernel="rbf", method=method, random_state=0).fit(load_iris().data).X_fit_.shape
    (30, 4)
    """

    name = "uniform"

    def select(self, problem: KernelProblem, m: int) -> Basis:
        n, weights = problem.source.shape[0], problem.source.weights
        if weights is not None:
            return drawn(problem, weights, m)
        # No number for every row: there may be more of them than memory.
        at = np.sort(problem.rng.choice(n, m, replace=False, shuffle=False))
        return taken(problem, at, np.full(m, n / m))

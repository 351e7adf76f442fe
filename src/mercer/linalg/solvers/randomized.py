"""Randomised subspace iteration (Halko, Martinsson & Tropp 2011), as scikit-learn offers it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Array, like, orthonormalize, to_numpy
from mercer.linalg.operator import Operator
from mercer.linalg.solvers.spectrum import Spectrum, rayleigh_ritz


@dataclass(frozen=True)
class Randomized:
    """Subspace iteration with a fixed number of steps; it measures what it has not reached.

    Parameters
    ----------
    n_oversamples : int
        Random vectors beyond the k wanted.
    iterated_power : int or "auto"
        Steps; "auto" takes 7 where k is less than a tenth of the rank there can be, else 4.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}
        How the vectors are kept apart between steps; "auto" is LU, or none for two steps or
        fewer.
    products : int
        Products in a step. A covariance is the product of the rows and their transpose; of a
        kernel matrix scikit-learn takes two.
    """

    n_oversamples: int = 10
    iterated_power: int | str = "auto"
    power_iteration_normalizer: str = "auto"
    products: int = 1

    def __call__(
        self,
        operator: Operator,
        k: int,
        *,
        tol: float,
        rng: np.random.Generator,
        start: Spectrum | None = None,
    ) -> Spectrum:
        """Iterate, then take the best k pairs of the subspace."""
        N = operator.size
        steps = self.iterated_power
        if steps == "auto":
            steps = 7 if k < 0.1 * operator.rank else 4
        width = min(N, k + self.n_oversamples)
        Q = like(rng.standard_normal((N, width)), operator.reference)
        for _ in range(int(steps) * self.products):
            Q = self._normalized(operator.matmat(Q), int(steps))
        # Orthonormal before the last product too: it squares the condition of what it is given.
        Q, _ = orthonormalize(operator.matmat(orthonormalize(Q)[0]))
        return rayleigh_ritz(operator, Q, k)

    def _normalized(self, Y: Array, steps: int) -> Array:
        how = self.power_iteration_normalizer
        if how == "auto":
            how = "none" if steps <= 2 else "LU"
        if how == "none":
            return Y
        if how == "LU" and isinstance(Y, np.ndarray):
            import scipy.linalg

            return scipy.linalg.lu(to_numpy(Y), permute_l=True)[0]
        return orthonormalize(Y)[0]

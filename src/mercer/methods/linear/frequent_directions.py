"""Streaming axes in little memory, with a bound on what the stream lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import eigh, like
from mercer.certificate import Certificate, Figure, spacing_of
from mercer.linalg import Directions
from mercer.methods.base import Cost, Size, Streaming
from mercer.problem import Problem
from mercer.projection import Projection


class FrequentDirections(Streaming):
    r"""Axes of a sketch of `size` rows that follows a stream of any length.

    For rows so wide that a d×d matrix does not fit. What the sketch B lost is known:
    :math:`B^TB \preceq A^TA \preceq B^TB + \Delta I`, so the certificate is a bound. Block size and
    threads do not change the sketch; the batches of `partial_fit` and the chunks of a Dask array
    do, since each has a sketch of its own before they are merged.

    Parameters
    ----------
    size : int or None
        Rows of the sketch; by default as many as half of the memory budget holds.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA
    >>> from mercer.methods import FrequentDirections
    >>> X = np.random.default_rng(0).normal(size=(500, 300))
    >>> pca = PCA(2, svd_solver=FrequentDirections(50)).fit(X)
    >>> pca.certificate_.optimum_upper.kind
    'bound'
    """

    name = "frequent directions"
    for_kernels = False

    def __init__(self, size: int | None = None) -> None:
        self.size = size

    def rows(self, d: int, k: int) -> int:
        """Return how many rows the sketch has."""
        if self.size is not None:
            if self.size < k:
                raise ValueError(f"size={self.size} rows cannot hold n_components={k}.")
            return self.size
        from mercer.config import get_config

        return max(k + 1, min(d, get_config().budget // 2 // (64 * d)))

    def cost(self, size: Size) -> Cost:
        rows = self.rows(size.d, size.axes)
        work = 8.0 * size.n * size.d * rows
        return Cost(1, work, 10.0 * size.n * rows**2, 64.0 * rows * size.d)

    def begin(self, problem: Problem) -> Directions:
        n, d = problem.source.shape
        wanted = problem.rule.first_guess(n, d) or 1
        source = problem.source
        rows = self.rows(d, min(wanted, problem.limit))
        return Directions(d, rows, source.reference, center=problem.center)

    def fit(self, problem: Problem) -> Projection:
        return self.finish(problem, problem.source.fold(self.begin(problem)))

    def finish(self, problem: Problem, fold: Any) -> Projection:
        if problem.scale:
            raise ValueError(
                "scale=True needs every column's deviation before the first row; "
                "frequent directions sees each row once. Scale the rows first."
            )
        problem.require_finite(fold.mean, np.array(fold.trace))
        B, divisor = fold.sketch, problem.divisor
        values, U = eigh(B @ B.T / divisor)
        total = fold.trace / divisor
        rank = int((values > np.finfo(float).eps * values[0]).sum())
        values = np.pad(np.maximum(values, 0.0), (0, max(0, problem.limit - len(values))))
        chosen = problem.choose(values[: problem.limit], total)
        k = min(problem.limit, fold.size) if chosen is None else chosen
        rank = min(rank, k)
        roots = np.sqrt(values[:rank] * divisor)
        # Axes beyond the sketch's rank hold nothing; they must still be orthonormal.
        spans = np.hstack([B.T @ (U[:, :rank] / roots), np.eye(fold.d, k)])
        axes = np.linalg.qr(spans)[0][:, :k]
        # Every shrinking step rounds the sketch by what LAPACK rounds a matrix of its size.
        rounding = float(np.finfo(np.float64).eps) * (sum(problem.source.shape) + 8.0) * total
        lost = fold.loss / divisor + rounding
        found = float(values[:k].sum())
        held, best = max(0.0, found - k * rounding), found + k * lost
        share = 1.0 / total if total > 0 else 0.0
        certificate = Certificate(
            captured=Figure(held * share),
            optimum_upper=Figure(min(1.0, best * share)),
            residuals=np.full(k, lost),
            quotients=False,
            eigenvalues=values[:k],
            spacing=spacing_of(values[:k], values[k:]),
            notes=(f"Rows were seen once, in a sketch of {fold.size} rows.",),
        )
        reference = problem.source.reference
        return problem.projection(
            fold.mean, np.ones(fold.d), like(axes, reference), values[:k], total, certificate
        )

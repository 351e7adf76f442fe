"""PCA of a stream in little memory, with a bound on the error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.arrays import eigh, like
from mercer.certificate import Axes, Evidence, Figure, spacing_of
from mercer.certificate.partition import explained_by_scores
from mercer.config import get_config
from mercer.data import require_finite_sums
from mercer.linalg import DirectionsSketch
from mercer.methods.base import Cost, Size, Streaming
from mercer.methods.linear.direct import linear_axes
from mercer.methods.preparation import metric_deviation, with_shares
from mercer.problem import Problem


class FrequentDirections(Streaming):
    r"""Components of a sketch of `size` rows that follows a stream of any length.

    For rows so wide that a d×d matrix does not fit in memory. The loss of the sketch B is known:
    :math:`B^TB \preceq A^TA \preceq B^TB + \Delta I`, so the certificate is a bound. Each batch of
    `partial_fit`, and each chunk of a Dask array, is sketched on its own.

    Parameters
    ----------
    size : int or None
        Number of rows of the sketch; by default as many as fit in half of the memory budget.

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
    approximates = judges = True

    def __init__(self, size: int | None = None) -> None:
        self.size = size

    def rows(self, d: int, k: int) -> int:
        """Return the number of rows of the sketch."""
        if self.size is None:
            return max(k + 1, min(d, get_config().budget // 2 // (64 * d)))
        if self.size < k:
            raise ValueError(f"size={self.size} is too small for n_components={k}.")
        return self.size

    def cost(self, size: Size) -> Cost:
        rows = self.rows(size.d, size.components)
        work = 8.0 * size.n * size.d * rows
        return Cost(1, work, 10.0 * size.n * rows**2, 64.0 * rows * size.d)

    def begin(self, problem: Problem) -> DirectionsSketch:
        source, d = problem.source, problem.source.shape[1]
        rows = self.rows(d, min(problem.n_components or 1, problem.limit))
        factors = None if problem.metric is None else np.sqrt(problem.metric)
        return DirectionsSketch(d, rows, source.reference, center=problem.center, factors=factors)

    def fit(self, problem: Problem) -> Axes:
        return self.finish(problem, problem.source.fold(self.begin(problem)))

    def judge(self, problem: Problem, axes: Axes) -> Axes:
        """Measure the variance that components explain: the sketch knows little of it."""
        explained = max(axes.evidence.explained, explained_by_scores(problem, axes), key=float)
        return replace(axes, evidence=replace(axes.evidence, explained=explained))

    def finish(self, problem: Problem, fold: Any) -> Axes:
        if problem.scale:
            raise ValueError(
                "scale=True needs all standard deviations before the first row, but "
                "frequent directions reads each row once. Scale the rows first."
            )
        require_finite_sums(problem.source, fold.mean, np.array(fold.trace))
        problem = with_shares(problem, metric_deviation(problem))
        B, divisor = fold.sketch, problem.divisor
        values, U = eigh(B @ B.T / divisor)
        total = fold.trace / divisor
        rank = int((values > np.finfo(float).eps * values[0]).sum())
        values = np.pad(np.maximum(values, 0.0), (0, max(0, problem.limit - len(values))))
        chosen = problem.choose(values[: problem.limit], total)
        k = min(problem.limit, fold.size) if chosen is None else chosen
        rank = min(rank, k)
        roots = np.sqrt(values[:rank] * divisor)
        # Components beyond the rank of the sketch have no variance, but must be orthonormal.
        spans = np.hstack([B.T @ (U[:, :rank] / roots), np.eye(fold.d, k)])
        vectors = like(np.linalg.qr(spans)[0][:, :k], problem.source.reference)
        # Every shrinking step rounds the sketch as LAPACK rounds a matrix of its size.
        rounding = float(np.finfo(np.float64).eps) * (sum(problem.source.shape) + 8.0) * total
        lost, explained = fold.loss / divisor + rounding, float(values[:k].sum())
        evidence = Evidence(
            explained=Figure(max(0.0, explained - k * rounding)),
            bounds={"what the sketch lost": Figure(explained + k * lost)},
            total=(Figure(max(0.0, total - rounding)), Figure(total + rounding)),
            eigenvalues=values[:k],
            residuals=np.full(k, lost),
            spacing=spacing_of(values[:k], values[k:]),
            notes=(f"Rows were read once, into a sketch of {fold.size} rows.",),
            rayleigh=False,
        )
        return linear_axes(
            problem, fold.mean, np.ones(fold.d), vectors, values[:k], evidence, total=total
        )

"""Components of random features in feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, cast, like, orthonormalize
from mercer.data import ArraySource, Source, as_source, check_weights
from mercer.linalg import Gram
from mercer.projection import KernelProjection, best_in_span, row_expansion
from mercer.projection.fourier import FourierProjection


def kernel_axes(model: Any, X: Any, sample_weight: Any = None) -> KernelProjection:
    r"""Return components of random features as sums over rows, in the kernel's feature space.

    Random features approximate the kernel but do not lie in its feature space. The combinations
    :math:`\sum_i Q_i\tilde\Phi(x_i)` of rows do, with Q the orthonormalized scores; the result are
    the best orthonormal components in their span, with their variances. This makes the model
    comparable with others by `empirical_error`, `validation_error`, `operator_distance` and
    `subspace_angles`.

    Parameters
    ----------
    model : KernelPCA or FourierProjection
        Fitted with `mercer.methods.RandomFeatures`.
    X : array-like, sparse matrix, DataFrame, path of a file or Source
        The rows of the fit.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of two is the row twice.

    Returns
    -------
    KernelProjection

    Notes
    -----
    Computes the kernel between all rows twice, a block at a time, and keeps the rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.metrics import kernel_axes, operator_distance
    >>> from mercer.methods import RandomFeatures
    >>> X = load_iris().data
    >>> exact = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.1, method=RandomFeatures(1000), random_state=0)
    >>> bool(operator_distance(kernel_axes(kpca.fit(X), X), exact) < 0.1)
    True
    """
    fitted = getattr(model, "projection_", model)
    if not isinstance(fitted, FourierProjection):
        raise TypeError(
            f"a KernelPCA fitted with RandomFeatures is needed, or its projection_, and not "
            f"{type(model).__name__}: other models have components in the kernel's space already."
        )
    source, d = as_source(X), len(fitted.map.frequencies.omega)
    if len(source.shape) < 2 or source.shape[1] != d:
        raise ValueError(f"X has shape {source.shape}, and the model was fitted to {d} columns.")
    source = source.weighted(check_weights(sample_weight, source))
    with progress.session():
        return _best_components(fitted, source)


def _best_components(fitted: FourierProjection, source: Source) -> KernelProjection:
    Q, _ = scores_over(fitted, source)
    rows, shift = source.whole(), fitted.shift
    if shift is not None and not source.sparse:
        source = ArraySource(cast(rows, np.float64) - like(shift, rows)).weighted(source.weights)
    else:
        shift = None
    gram = Gram(fitted.kernel, source, center=fitted.centred)
    Q = gram.project(Q)
    values, vectors, _ = best_in_span(Q, gram.matmat(Q), gram.noise_floor)
    return row_expansion(gram, values, vectors, shift)


def scores_over(fitted: FourierProjection, source: Source) -> tuple[Array, Matrix]:
    """Return the QR factors of the scores, each row times the root of its weight."""
    scores = fitted.scores(source, np.float64).collect(label="scores")
    if source.weights is not None:
        scores = scores * like(np.sqrt(source.weights), scores)[:, None]
    return orthonormalize(scores)

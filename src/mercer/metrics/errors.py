"""Reconstruction errors of rows in feature space, and random features as components there."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, Matrix, cast, like, namespace, orthonormalize
from mercer.data import ArraySource, Block, Source, StringSource, as_source, check_weights
from mercer.linalg import Gram, Moments
from mercer.metrics.operators import coefficients, kernel_product, projection_of, row_type
from mercer.projection import KernelProjection, best_in_span, row_expansion
from mercer.projection.fourier import FourierProjection


def empirical_error(model: Any, X: Any, sample_weight: Any = None) -> float:
    r"""Return the mean squared reconstruction error in feature space, E_emp.

    .. math:: E = \frac1n \sum_i \|\Phi(x_i) - P\Phi(x_i)\|^2,\qquad
              P\Phi(x) = c + \sum_{jk} y_k(x) A_{jk} \Phi(b_j)

    with the model's own operator P and mean c: washizawa (46). P need not be a projector: with
    :math:`G = A^TK_bA` the error of a row is :math:`\|\Phi(x) - c\|^2 - 2\|y\|^2 + y^TGy`. For
    exact kernel PCA and its own rows it is (n−1)/n times the variance that the components do not
    explain, and no operator of as many components has less. For random features the components
    are those of `kernel_axes`; for linear PCA it is the mean squared distance of rows from their
    reconstructions, with `scale` in standard deviations of the columns, and with `feature_weight`
    in the metric that it defines.

    Parameters
    ----------
    model : PCA, KernelPCA or Projection
        Fitted.
    X : array-like, sparse matrix, DataFrame, list of str, path of a file or Source
        The rows of the fit.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of two is the row twice.

    Notes
    -----
    A difference of squares: an error below 1e-15 of the mean of k(x,x) is rounding. It may be
    negative if the kernel is not positive semi-definite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import KernelPCA
    >>> from mercer.metrics import empirical_error
    >>> X = load_iris().data
    >>> kpca = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    >>> round(empirical_error(kpca, X), 4)
    0.0606
    """
    if isinstance(getattr(model, "projection_", model), FourierProjection):
        model = kernel_axes(model, X, sample_weight)
    return _mean_error(model, X, sample_weight)


def validation_error(model: Any, X: Any, sample_weight: Any = None) -> float:
    r"""Return the mean squared error of rows that were not in the fit, E_val.

    `empirical_error` of other rows, with the same parameters, washizawa §6.1: it shows whether the
    components generalize.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.metrics import empirical_error, validation_error
    >>> X = load_digits().data
    >>> pca = PCA(20).fit(X[:200])
    >>> round(empirical_error(pca, X[:200]), 1), round(validation_error(pca, X[200:]), 1)
    (83.2, 182.0)
    """
    return _mean_error(model, X, sample_weight)


def _mean_error(model: Any, X: Any, sample_weight: Any) -> float:
    projection = projection_of(model)
    source = _rows(model, X, sample_weight)
    with progress.session():
        if isinstance(projection, KernelProjection):
            errors = _kernel_errors(projection, source)
        else:
            errors = projection.residuals(source, np.float64)
        moments = errors.fold(Moments(1, source.reference, np.float64, diagonal=True))
    mean = float(moments.mean[0])
    kernel = getattr(projection, "kernel", None)
    return mean if kernel is not None and kernel.psd is not True else max(0.0, mean)


def _rows(model: Any, X: Any, sample_weight: Any, least: float = 0.0) -> Source:
    """Return rows with their weights as a source; raise if they do not match the model."""
    source, fitted = as_source(X), row_type(getattr(model, "projection_", model))
    strings = isinstance(source, StringSource)
    rows = "strings" if strings else f"rows of {source.shape[1]} columns"
    if rows != fitted:
        raise ValueError(f"X contains {rows}, but the model was fitted to {fitted}.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and source.names is not None and list(names) != list(source.names):
        raise ValueError(
            f"X has columns {list(source.names)}, but the model was fitted to {list(names)}."
        )
    if source.shape[0] == 0:
        raise ValueError("X has no rows. Pass at least one.")
    return source.weighted(check_weights(sample_weight, source, least=least))


def _kernel_errors(projection: KernelProjection, source: Source) -> Source:
    """Return one column: ‖Φ(x) − c‖² − yᵀ(2I − G)y."""
    kernel, dtype, where = projection.kernel, np.dtype(np.float64), source.reference
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' does not provide k(x, x), which the error requires. Fit with "
            "the kernel itself, or to row indices with kernels.Precomputed(matrix)."
        )
    coef = coefficients(projection)
    form = 2.0 * np.eye(coef.shape[1]) - coef.T @ kernel_product(kernel, projection.basis, coef)
    A, mean, mean_coef, F = (
        like(part, where, dtype) for part in (coef, projection.mean, projection.mean_coef, form)
    )
    features, xp = projection.map.on(source, dtype), namespace(where)

    def measure(block: Block) -> Array:
        h = features(block)
        y = (h - mean) @ A
        diag = kernel.on_diagonal(projection.map.points(block, dtype))
        squares = diag - 2.0 * (h @ mean_coef) + projection.mean_sq
        errors = squares - xp.sum((y @ F) * y, axis=1)
        return projection.finite(errors[:, None], block)

    extra = 2 * (source.row_bytes + features.width * dtype.itemsize)
    return source.map(measure, 1, dtype, extra_bytes=extra)


def kernel_axes(model: Any, X: Any, sample_weight: Any = None) -> KernelProjection:
    r"""Return components of random features as sums over rows, in the kernel's feature space.

    Random features approximate the kernel but do not lie in its feature space. The combinations
    :math:`\sum_i Q_i\tilde\Phi(x_i)` of rows do, with Q the orthonormalized scores; the result are
    the best orthonormal components in their span, with their variances. This makes the model
    comparable with others by the metrics of this module. It computes the kernel between all rows
    twice, a block at a time.

    Parameters
    ----------
    model : KernelPCA or FourierProjection
        Fitted with `mercer.methods.RandomFeatures` to the rows X.
    X, sample_weight
        As in `empirical_error`.

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
            f"Expected a KernelPCA fitted with RandomFeatures, or its projection_, but got "
            f"{type(model).__name__}. Other models already have components in feature space."
        )
    source, shift = _rows(model, X, sample_weight, least=1.0), fitted.shift
    with progress.session():
        Q, _ = scores_over(fitted, source)
        if shift is None or source.sparse:
            shift = None
        else:
            rows = cast(source.load(), np.float64)
            source = ArraySource(rows - like(shift, rows)).weighted(source.weights)
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

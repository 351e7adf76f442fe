"""What a model's operator leaves of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, like, namespace
from mercer.data import Block, Source, check_weights
from mercer.linalg import Moments
from mercer.metrics.kernel_axes import kernel_axes
from mercer.metrics.models import coefficients, projection_of, rows_of
from mercer.metrics.shared import lengths
from mercer.projection import KernelProjection
from mercer.projection.fourier import FourierProjection


def empirical_error(model: Any, X: Any, sample_weight: Any = None) -> float:
    r"""Return the mean squared error of rows in feature space, E_emp.

    .. math:: E = \frac1n \sum_i \|\Phi(x_i) - P\Phi(x_i)\|^2,\qquad
              P\Phi(x) = c + \sum_{jk} y_k(x) A_{jk} \Phi(b_j)

    with the model's own operator P, about its own centre c: washizawa (46). P need not be a
    projector: with :math:`G = A^TK_bA` a row's error is
    :math:`\|\Phi(x) - c\|^2 - 2\|y\|^2 + y^TGy`, which is the squared distance from the span of
    the components where they are orthonormal. Of exact kernel PCA and its own rows it is
    (n−1)/n times the variance that no component holds, and no operator of as many components has
    less.

    Of random features the components are those that `kernel_axes` makes of the rows.

    Of linear PCA it is the mean squared distance between a row and its reconstruction, in the
    units of the treated columns: in deviations of each where `scale` is set.

    Parameters
    ----------
    model : PCA, KernelPCA or Projection
        Fitted.
    X : array-like, sparse matrix, DataFrame, list of str, path of a file or Source
        The rows of the fit.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of two is the row twice.

    Returns
    -------
    float
        Of a kernel that is not positive semi-definite it may be negative.

    Notes
    -----
    Computed in float64, a block of rows at a time: one kernel row each, and once the kernel
    between all points of the basis. It is a difference of squares: an error below 1e-15 of the
    mean of k(x,x) is rounding.

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

    `empirical_error` of other rows, washizawa §6.1: it tells whether the components hold for more
    than the rows that they were found from.

    Parameters
    ----------
    model : PCA, KernelPCA or Projection
        Fitted.
    X : array-like, sparse matrix, DataFrame, list of str, path of a file or Source
        Rows that were held out.
    sample_weight : array-like of shape (n,), optional
        Counts: a weight of two is the row twice.

    Returns
    -------
    float

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
    projection, source = projection_of(model), rows_of(model, X)
    source = source.weighted(check_weights(sample_weight, source, least=0.0))
    with progress.session():
        if isinstance(projection, KernelProjection):
            errors = _kernel_errors(projection, source)
        else:
            errors = projection.residuals(source, np.float64)
        moments = errors.fold(Moments(1, source.reference, np.float64, diagonal=True))
    mean = float(moments.mean[0])
    kernel = getattr(projection, "kernel", None)
    return mean if kernel is not None and kernel.psd is not True else max(0.0, mean)


def _kernel_errors(projection: KernelProjection, source: Source) -> Source:
    """Return one column: ‖Φ(x) − c‖² − yᵀ(2I − G)y."""
    kernel, dtype, where = projection.kernel, np.dtype(np.float64), source.reference
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of rows, which their error takes. Fit "
            "with the kernel itself, or to row numbers with kernels.Precomputed(matrix)."
        )
    weights = coefficients(projection)
    twice = 2.0 * np.eye(weights.shape[1]) - lengths(projection)
    A, mean, mean_coef, fall = (
        like(part, where, dtype) for part in (weights, projection.mean, projection.mean_coef, twice)
    )
    features, xp = projection.map.on(source, dtype), namespace(where)

    def measure(block: Block) -> Array:
        h = features(block)
        y = (h - mean) @ A
        diag = kernel.on_diagonal(projection.map.points(block, dtype))
        squares = diag - 2.0 * (h @ mean_coef) + projection.mean_sq
        left = squares - xp.sum((y @ fall) * y, axis=1)
        return projection.finite(left[:, None], block)

    extra = 2 * (source.row_bytes + features.width * dtype.itemsize)
    return source.map(measure, 1, dtype, extra_bytes=extra)

"""Reconstruction errors of rows in feature space."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import progress
from mercer.arrays import Array, like, namespace
from mercer.data import Block, Source, StringSource, as_source, check_weights
from mercer.linalg import Moments
from mercer.metrics.joint import coefficients, component_gram, n_columns, projection_of
from mercer.metrics.kernel_axes import kernel_axes
from mercer.projection import KernelProjection
from mercer.projection.fourier import FourierProjection


def empirical_error(model: Any, X: Any, sample_weight: Any = None) -> float:
    r"""Return the mean squared error of rows in feature space, E_emp.

    .. math:: E = \frac1n \sum_i \|\Phi(x_i) - P\Phi(x_i)\|^2,\qquad
              P\Phi(x) = c + \sum_{jk} y_k(x) A_{jk} \Phi(b_j)

    with the model's own operator P and mean c: washizawa (46). P need not be a projector: with
    :math:`G = A^TK_bA` the error of a row is :math:`\|\Phi(x) - c\|^2 - 2\|y\|^2 + y^TGy`, the
    squared distance from the span of the components if they are orthonormal. For exact kernel PCA
    and its own rows it is (n−1)/n times the variance that the components do not explain, and no
    operator of as many components has less.

    For random features the components are those of `kernel_axes`. For linear PCA it is the mean
    squared distance between a row and its reconstruction; with `scale`, in standard deviations of
    the columns.

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
        It may be negative if the kernel is not positive semi-definite.

    Notes
    -----
    Computed in float64, a block of rows at a time, with the kernel between all points of the
    basis. It is a difference of squares: an error below 1e-15 of the mean of k(x,x) is rounding.

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

    `empirical_error` of other rows, washizawa §6.1: it shows whether the components generalize.

    Parameters
    ----------
    model : PCA, KernelPCA or Projection
        Fitted.
    X : array-like, sparse matrix, DataFrame, list of str, path of a file or Source
        Held-out rows.
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
    projection, source = projection_of(model), _check_rows(model, X)
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


def _check_rows(model: Any, X: Any) -> Source:
    """Return rows as a source; refuse rows that do not match the model."""
    source, columns = as_source(X), n_columns(projection_of(model))
    strings = isinstance(source, StringSource)
    if strings != (columns is None):
        rows, fitted = ("strings", "numbers") if strings else ("numbers", "strings")
        raise ValueError(f"X holds {rows}, and the model was fitted to {fitted}.")
    if not strings and source.shape[1] != columns:
        raise ValueError(f"X has {source.shape[1]} columns, and the model was fitted to {columns}.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and source.names is not None and list(names) != list(source.names):
        raise ValueError(
            f"the columns of X are {list(source.names)}, and those of the fit {list(names)}."
        )
    if source.shape[0] == 0:
        raise ValueError("X has no rows, and a mean needs one.")
    return source


def _kernel_errors(projection: KernelProjection, source: Source) -> Source:
    """Return one column: ‖Φ(x) − c‖² − yᵀ(2I − G)y."""
    kernel, dtype, where = projection.kernel, np.dtype(np.float64), source.reference
    if kernel is None:
        raise ValueError(
            "kernel='precomputed' does not tell k(x, x) of rows, which their error takes. Fit "
            "with the kernel itself, or to row numbers with kernels.Precomputed(matrix)."
        )
    coef = coefficients(projection)
    form = 2.0 * np.eye(coef.shape[1]) - component_gram(projection)
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

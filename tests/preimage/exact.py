"""Exact kernel PCA in a few lines of NumPy."""

import numpy as np

from mercer.arrays import to_numpy
from mercer.data import as_source
from mercer.projection import KernelProjection


def kernel_pca(kernel, X, k=None, center=True, shift=None):
    """Return the projection and the training scores."""
    basis = X if shift is None else X - shift
    n = len(basis)
    K = np.asarray(kernel(np.asarray(basis, np.float64)))
    H = np.eye(n) - center / n
    values, V = np.linalg.eigh(H @ K @ H)
    values, V = values[::-1], V[:, ::-1]
    most = int((values > 1e-11 * values[0]).sum())
    k = most if k is None else min(k, most)
    projection = KernelProjection(
        mean=K.mean(axis=0) * center,
        components=V[:, :k] / np.sqrt(values[:k]),
        eigenvalues=values[:k] / n,
        total_variance=float(values.sum()) / n,
        rest=float(values[k:].sum()) / n,
        kernel=kernel,
        basis=basis,
        shift=shift,
        mean_coef=np.full(n, center / n),
        mean_sq=float(K.mean()) * center,
    )
    return projection, scores_of(projection, X)


def scores_of(projection, X):
    return to_numpy(projection.scores(as_source(np.asarray(X, np.float64))).collect())


def pca_rows(X, k, new=None):
    """Return PCA's reconstruction, of new rows or the same."""
    mean = X.mean(axis=0)
    V = np.linalg.svd(X - mean, full_matrices=False)[2][:k].T
    return mean + ((X if new is None else new) - mean) @ V @ V.T

"""How near components and eigenvalues are, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import to_numpy


def similarity(V: Any, W: Any) -> Any:
    r"""Return Sim :math:`= |v^Tw|/(\|v\|\|w\|)` of components: 1 if parallel, 0 if orthogonal.

    Marukatat (2022), (66).

    Parameters
    ----------
    V, W : array-like of shape (k, d), or (d,)
        Components as rows, such as `components_`; each of V is compared to that of W in its place.

    Returns
    -------
    ndarray of shape (k,), or float

    Examples
    --------
    >>> from mercer.metrics import similarity
    >>> similarity([[1.0, 0.0], [0.0, 1.0]], [[-2.0, 0.0], [1.0, 1.0]]).round(3)
    array([1.   , 0.707])
    """
    v, w = (np.asarray(to_numpy(x), np.float64) for x in (V, W))
    if v.shape != w.shape or v.ndim not in (1, 2):
        raise ValueError(f"V has shape {v.shape} and W {w.shape}: they must have the same shape.")
    # Each is scaled first: the square of a tiny axis would vanish.
    v, w = (x / np.maximum(np.abs(x).max(axis=-1, keepdims=True), 1e-300) for x in (v, w))
    lengths = np.linalg.norm(v, axis=-1) * np.linalg.norm(w, axis=-1)
    if np.any(lengths == 0.0):
        raise ValueError("a component is zero and has no direction. Leave it out.")
    found = np.minimum(np.abs(np.sum(v * w, axis=-1)) / lengths, 1.0)
    return float(found) if found.ndim == 0 else found


def eigenvalue_difference(exact: Any, found: Any) -> Any:
    r"""Return Diff :math:`= |\lambda - \lambda'|/\lambda` of eigenvalues; Marukatat (2022), (67).

    Parameters
    ----------
    exact, found : array-like of shape (k,), or float
        Eigenvalues λ, and those that approximate them, λ′.

    Returns
    -------
    ndarray of shape (k,), or float
        Infinite where λ is zero and λ′ is not.

    Examples
    --------
    >>> from mercer.metrics import eigenvalue_difference
    >>> eigenvalue_difference([4.0, 2.0], [3.0, 2.0])
    array([0.25, 0.  ])
    """
    a, b = (np.asarray(to_numpy(x), np.float64) for x in (exact, found))
    if a.shape != b.shape:
        raise ValueError(f"the eigenvalues have shapes {a.shape} and {b.shape}: pass as many.")
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(a == b, 0.0, np.abs(a - b) / np.abs(a))
    return float(share) if share.ndim == 0 else share

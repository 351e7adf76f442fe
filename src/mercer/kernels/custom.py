"""Kernels from a matrix, a function or a probabilistic model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.arrays import (
    CSR,
    Array,
    eigh,
    like,
    namespace,
    on_accelerator,
    reference_of,
    to_device_of,
    to_numpy,
)
from mercer.checks import require
from mercer.config import get_config
from mercer.kernels.base import Kernel
from mercer.kernels.dot_product import MappedKernel
from mercer.kernels.pair import DiagonalPair, Pair, dot_error, require_dense
from mercer.kernels.points import Points, slice_rows

__all__ = ["Fisher", "FromFunction", "Precomputed", "Separable"]

HostArray = np.ndarray[Any, Any]
# At most this many rows and columns of every tile show whether a function is symmetric.
_CHECKED = 8


class Precomputed(Kernel):
    """A precomputed kernel matrix K, evaluated at row indices: k(i, j) = K[i, j].

    Parameters
    ----------
    matrix : array-like of shape (n, m)
        The kernel between n and m things.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Precomputed
    >>> Precomputed(np.array([[2.0, 1.0], [1.0, 3.0]]))([[1]], [[0], [1]])
    array([[1., 3.]])
    """

    psd = None

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def on(self, pair: Pair) -> Any:
        sparse = hasattr(self.matrix, "tocsr")
        K: Any = self.matrix.tocsr() if sparse else to_numpy(self.matrix)
        if len(K.shape) != 2:
            raise ValueError(f"Precomputed: the matrix has shape {K.shape}, expected 2D.")
        x, y = pair.sides
        i, j = _row_numbers(x, K.shape[0]), _row_numbers(y, K.shape[1])
        values = K[i, j] if isinstance(pair, DiagonalPair) else K[i[:, None], j]
        values = values.toarray() if hasattr(values, "toarray") else np.asarray(values)
        return _on_device(values.ravel() if isinstance(pair, DiagonalPair) else values, x)


def _row_numbers(rows: Any, size: int) -> HostArray:
    """Return rows of one column as integers, checked."""
    numbers = to_numpy(rows.toarray() if hasattr(rows, "toarray") else rows)
    with np.errstate(invalid="ignore"):
        at = numbers.astype(np.int64)
    bad = (at != numbers) | (at < 0) | (at >= size)
    if numbers.shape[1] != 1 or bad.any():
        value = f"{numbers[bad][0]}" if numbers.shape[1] == 1 else f"{numbers.shape[1]} columns"
        raise ValueError(
            f"Precomputed takes one column of row indices from 0 to {size - 1}, but got {value}."
        )
    return np.asarray(at[:, 0])


class FromFunction(Kernel):
    """A kernel defined by a Python function.

    For some pairs of every block the arguments are swapped: a function that is not symmetric is
    refused.

    Parameters
    ----------
    f : callable
        f(X, Y) of two groups of rows returns the matrix of all pairs; or f(x, y) of two rows
        returns a number, with `pairwise`. Rows may be vectors or strings.
    pairwise : bool
        Whether f takes two rows.

    Examples
    --------
    >>> from mercer.kernels import FromFunction
    >>> FromFunction(lambda X, Y: X @ Y.T)([[1.0, 2.0]])
    array([[5.]])
    >>> FromFunction(lambda x, y: min(x[0], y[0]), pairwise=True)([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    takes = "anything"
    psd = None

    def __init__(self, f: Callable[[Any, Any], Any], pairwise: bool = False) -> None:
        self.f, self.pairwise = f, pairwise

    def check(self) -> None:
        require(self, "f", callable(self.f), "a function of two arguments")

    def on(self, pair: Pair) -> Any:
        x, y = pair.sides
        rows = x
        if isinstance(rows, CSR):  # functions take SciPy's
            x, y = (to_device_of(each, np.empty(0)) for each in (x, y))
        elif get_config().device is not None and on_accelerator(rows):
            # The settings moved the rows to a device; a user's own tensors stay where they are.
            x, y = to_numpy(x), to_numpy(y)
        if isinstance(pair, DiagonalPair):
            single = [slice_rows(x, slice(i, i + 1)) for i in range(len(pair.points))]
            return _on_device(np.array([self._between(a, a).item() for a in single]), rows)
        values = self._between(x, y)
        self._check_symmetry(x, y, values)
        return _on_device(values, rows)

    def _between(self, x: Any, y: Any) -> HostArray:
        """Return the matrix between two groups of rows, on the host."""
        n, m = len(Points(x)), len(Points(y))
        name = getattr(self.f, "__name__", repr(self.f))
        if not self.pairwise:
            values = to_numpy(self.f(x, y))
            if values.shape != (n, m) or values.dtype.kind not in "fiub":
                raise ValueError(
                    f"FromFunction: {name} returned {values.dtype} of shape {values.shape} for "
                    f"{n} and {m} rows; it must return numbers of shape {(n, m)}. For a function "
                    f"of two rows pass pairwise=True."
                )
            return values
        out = np.empty((n, m))
        for i in range(n):
            for j in range(m):
                value = self.f(slice_rows(x, i), slice_rows(y, j))
                try:
                    out[i, j] = float(value)
                except (TypeError, ValueError):
                    raise ValueError(
                        f"FromFunction: {name} returned {value!r} for two rows; it must return a "
                        f"number. For a function of two groups of rows pass pairwise=False."
                    ) from None
        return out

    def _check_symmetry(self, x: Any, y: Any, values: HostArray) -> None:
        """Compare k(x, y) with k(y, x) for rows from all over the tile; NaN is left out."""
        i, j = (slice(None, None, 1 + size // _CHECKED) for size in values.shape)
        x, y, values = slice_rows(x, i), slice_rows(y, j), values[i, j]
        difference = np.abs(values - self._between(y, x).T)
        tolerance = np.finfo(values.dtype if values.dtype.kind == "f" else np.float64).eps ** 0.5
        finite = np.where(np.isfinite(difference), difference, 0.0)
        largest = np.abs(values[np.isfinite(values)]).max(initial=0.0)
        if (finite > tolerance * largest).any():
            row, column = np.unravel_index(int(np.argmax(finite)), difference.shape)
            raise ValueError(
                f"FromFunction: {getattr(self.f, '__name__', repr(self.f))} is not symmetric: "
                f"k(x, y) and k(y, x) differ by {difference[row, column]:g} for "
                f"x = {slice_rows(x, int(row))!r} and y = {slice_rows(y, int(column))!r}. "
                f"Pass a symmetric function."
            )


def _on_device(values: HostArray, rows: Any) -> Any:
    """Return a host array on the device of the rows."""
    return values if isinstance(rows, list) else like(values, reference_of(rows))


class Separable(MappedKernel):
    """f(x) f(y) for a function of one row.

    Source: Schölkopf & Smola (2002), Learning with Kernels.

    Parameters
    ----------
    f : callable
        Takes rows of shape (n, d), returns n numbers.

    Examples
    --------
    >>> from mercer.kernels import Separable
    >>> Separable(lambda rows: rows.sum(axis=1))([[1.0, 2.0]], [[3.0, 4.0]])
    array([[21.]])
    """

    def __init__(self, f: Callable[[Any], Any]) -> None:
        self.f = f

    def check(self) -> None:
        require(self, "f", callable(self.f), "a function of rows")

    def features(self, rows: Any) -> Any:
        if isinstance(rows, CSR):  # functions take SciPy's
            host = to_device_of(rows, np.empty(0))
            return like(self.features(host), rows.data)
        values = self.f(rows)
        n = int(rows.shape[0])
        if namespace(rows) is np:  # small integers would overflow
            values = np.asarray(values, rows.dtype)
        if tuple(getattr(values, "shape", ())) != (n,):
            raise ValueError(
                f"Separable: f returned shape {tuple(getattr(values, 'shape', ()))} for {n} rows; "
                f"it must return one number per row."
            )
        return values[:, None]


class Fisher(MappedKernel):
    r"""The dot product :math:`u_x^T I^{-1} u_y` of scores :math:`u_x = \nabla_\theta\log p(x)`.

    Source: Jaakkola & Haussler (1999); marukatat App. B.

    Parameters
    ----------
    model : object
        A fitted `sklearn.mixture.GaussianMixture`; or any object with a method
        `score_vectors(X)` that returns one row of derivatives for each row of X.
    information : array of shape (p, p) or None
        The information matrix I; None for the identity. `Fisher.from_rows` estimates it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.mixture import GaussianMixture
    >>> from mercer.kernels import Fisher
    >>> X = np.array([[-1.0], [1.0], [0.5], [-0.5]])
    >>> Fisher(GaussianMixture(1).fit(X))(X).shape
    (4, 4)
    """

    def __init__(self, model: Any, information: Array | None = None) -> None:
        self.model, self.information = model, information

    def __sklearn_clone__(self) -> Fisher:
        """Keep the model: a clone of it would not be fitted."""
        return Fisher(self.model, self.information)

    @classmethod
    def from_rows(cls, model: Any, X: Any) -> Fisher:
        """Return the kernel with the information matrix estimated from rows, the mean of u uᵀ.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.mixture import GaussianMixture
        >>> from mercer.kernels import Fisher
        >>> X = np.array([[-1.0], [1.0], [0.5], [-0.5]])
        >>> Fisher.from_rows(GaussianMixture(1).fit(X), X).information.shape
        (2, 2)
        """
        require_dense(cls(model), X)
        scores = _score_vectors(model, np.asarray(X, np.float64))
        return cls(model, scores.T @ scores / len(scores))

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """The errors of a dot product over the parameters; the scores count as exact."""
        return dot_error(x.mapped(("features", self), self.features), dtype)

    def features(self, rows: Any) -> Array:
        """Return L⁺u with I = LLᵀ: their dot products are the kernel."""
        require_dense(self, rows)
        scores = _score_vectors(self.model, to_numpy(rows))
        if self.information is None:
            return like(scores, rows)
        information = np.asarray(self.information, np.float64)
        p = scores.shape[1]
        if information.shape != (p, p):
            raise ValueError(
                f"Fisher: information has shape {information.shape}, but the model has {p} "
                f"parameters. Fisher.from_rows estimates it."
            )
        if not np.isfinite(information).all():
            raise ValueError("Fisher: information contains NaN or infinity.")
        values, V = eigh((information + information.T) / 2)
        if not (values[0] > 0 and values[-1] >= -1e-8 * values[0]):
            raise ValueError(
                f"Fisher: information has eigenvalues from {values[-1]:g} to {values[0]:g}; it "
                f"must be positive semi-definite. Fisher.from_rows estimates it."
            )
        large = values > 1e-10 * values[0]
        return like(scores @ (V[:, large] / np.sqrt(values[large])), rows)


def _score_vectors(model: Any, X: Array) -> HostArray:
    """Return the derivatives of log p(x) by the parameters of the model, one row per row of X."""
    if hasattr(model, "score_vectors"):
        scores = np.asarray(model.score_vectors(X), np.float64)
        if scores.ndim != 2 or len(scores) != len(X):
            raise ValueError(
                f"Fisher: score_vectors of {model!r} returned shape {scores.shape} for {len(X)} "
                f"rows; it must return one row of derivatives per row."
            )
        return scores
    if not hasattr(model, "precisions_cholesky_"):
        raise ValueError(
            f"Fisher: {model!r} is neither a fitted GaussianMixture nor an object with "
            f"score_vectors(X). Fit it first, or define that method."
        )
    return _mixture_scores(model, np.asarray(X, np.float64))


def _mixture_scores(model: Any, X: HostArray) -> HostArray:
    """Return the scores of a Gaussian mixture by weights, means and covariances.

    The last weight is one minus the others; covariances have the parameters of their type.
    """
    nameless = copy.copy(model)
    vars(nameless).pop("feature_names_in_", None)  # rows without names would raise a warning
    shares, weights, form = nameless.predict_proba(X), model.weights_, model.covariance_type
    parts = [shares[:, :-1] / weights[:-1] - shares[:, -1:] / weights[-1]]
    slopes = []
    for c, (mean, share) in enumerate(zip(model.means_, shares.T, strict=True)):
        P = model.precisions_ if form == "tied" else model.precisions_[c]
        P = P if np.ndim(P) == 2 else np.diag(np.broadcast_to(P, len(mean)))
        z = (X - mean) @ P
        parts.append(share[:, None] * z)
        # By the covariance: (P d dᵀ P − P)/2 for d = x − mean.
        slopes.append(share[:, None, None] * (z[:, :, None] * z[:, None, :] - P) / 2)
    i, j = np.tril_indices(X.shape[1], -1)
    for slope in [sum(slopes)] if form == "tied" else slopes:
        diagonal = np.einsum("nii->ni", slope)
        parts.append(diagonal.sum(axis=1, keepdims=True) if form == "spherical" else diagonal)
        if form in ("full", "tied"):
            parts.append(2 * slope[:, i, j])  # symmetric entries change together
    return np.hstack(parts)

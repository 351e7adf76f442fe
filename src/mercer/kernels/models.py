"""The Fisher kernel: how a probabilistic model would change for each of two rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from mercer.arrays import Array, eigh, like, to_numpy
from mercer.kernels.base import Either, Kernel
from mercer.kernels.pair import require_dense
from mercer.kernels.points import Points
from mercer.kernels.rounding import dot


class Fisher(Kernel):
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
        """Return the kernel with the information matrix that rows show: the mean of u uᵀ.

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
        scores = score_vectors(model, np.asarray(X, np.float64))
        return cls(model, scores.T @ scores / len(scores))

    def on(self, pair: Either) -> Any:
        return self._scores(pair).dot

    def apart(self, pair: Either) -> Any:
        return self._scores(pair).sqdist

    def roundings(self, x: Points, y: Points, dtype: Any) -> Any:
        """A dot product over the parameters; the scores themselves are taken as they are."""
        return dot(x.through(("scores", id(self)), self._features), dtype)

    def _scores(self, pair: Either) -> Either:
        return pair.through(("scores", id(self)), self._features)

    def _features(self, rows: Any) -> Array:
        """Return L⁺u with I = LLᵀ: their dot products are the kernel."""
        require_dense(self, rows)
        scores = score_vectors(self.model, to_numpy(rows))
        if self.information is None:
            return like(scores, rows)
        information = np.asarray(self.information, np.float64)
        p = scores.shape[1]
        if information.shape != (p, p):
            raise ValueError(
                f"Fisher: information has shape {information.shape}, and the model has {p} "
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


def score_vectors(model: Any, X: Array) -> np.ndarray[Any, Any]:
    """Return the derivatives of log p(x) by the model's parameters, a row for each row of X."""
    if hasattr(model, "score_vectors"):
        scores = np.asarray(model.score_vectors(X), np.float64)
        if scores.ndim != 2 or len(scores) != len(X):
            raise ValueError(
                f"Fisher: score_vectors of {model!r} returned shape {scores.shape} for {len(X)} "
                f"rows; it must return one row of derivatives for each."
            )
        return scores
    if not hasattr(model, "precisions_cholesky_"):
        raise ValueError(
            f"Fisher: {model!r} is neither a fitted GaussianMixture nor an object with "
            f"score_vectors(X). Fit it first, or give it that method."
        )
    return _mixture(model, np.asarray(X, np.float64))


def _mixture(model: Any, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    r"""Return the scores of a Gaussian mixture by weights, means and covariances.

    By the weights on the simplex, whose last is one less the others; by every entry of a mean;
    by the covariances as they are parameterised: the entries on and below the diagonal for
    "full" and "tied", the variances for "diag" and "spherical".
    """
    plain = copy.copy(model)
    vars(plain).pop("feature_names_in_", None)  # rows come without names, and it would warn
    shares, weights = plain.predict_proba(X), model.weights_
    parts = [shares[:, :-1] / weights[:-1] - shares[:, -1:] / weights[-1]]
    covariances = []
    for c, (mean, share) in enumerate(zip(model.means_, shares.T, strict=True)):
        P = _precision(model, c)
        z = (X - mean) @ P
        parts.append(share[:, None] * z)
        # By the covariance: (P d dᵀ P − P)/2 for d = x − mean.
        covariances.append(share[:, None, None] * (z[:, :, None] * z[:, None, :] - P) / 2)
    if model.covariance_type == "tied":
        covariances = [sum(covariances)]
    for slope in covariances:
        parts.append(_parameters(slope, model.covariance_type))
    return np.hstack(parts)


def _precision(model: Any, c: int) -> np.ndarray[Any, Any]:
    d = model.means_.shape[1]
    if model.covariance_type == "full":
        return np.asarray(model.precisions_[c])
    if model.covariance_type == "tied":
        return np.asarray(model.precisions_)
    return np.diag(np.broadcast_to(model.precisions_[c], d))


def _parameters(slope: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    """Return the derivatives by the parameters that a covariance has."""
    diagonal: np.ndarray[Any, Any] = np.einsum("nii->ni", slope)
    if kind == "spherical":
        return np.asarray(diagonal.sum(axis=1, keepdims=True))
    if kind == "diag":
        return diagonal
    i, j = np.tril_indices(slope.shape[1], -1)
    return np.hstack([diagonal, 2 * slope[:, i, j]])  # both entries of a pair move together

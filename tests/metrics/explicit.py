"""Models in explicit feature spaces, where operators are matrices."""

import numpy as np

from mercer.kernels import Linear, Polynomial


def linear(X):
    return np.asarray(X, np.float64)


def quadratic(X):
    """Features of (xᵀy + 1)²."""
    X = np.asarray(X, np.float64)
    products = np.einsum("ij,ik->ijk", X, X).reshape(len(X), -1)
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2) * X, products])


FEATURES = {"linear": (Linear(), linear), "quadratic": (Polynomial(2), quadratic)}


class Explicit:
    """A model's axes and centre as vectors."""

    def __init__(self, model, features):
        fitted = getattr(model, "projection_", model)
        self.shift = 0.0 if fitted.shift is None else fitted.shift
        self.features = features
        basis = features(np.asarray(fitted.basis))
        self.axes = basis.T @ np.asarray(fitted.components)
        self.centre = basis.T @ fitted.mean_coef

    @property
    def operator(self):
        return self.axes @ self.axes.T

    def error(self, X, weights=None):
        apart = self.features(np.asarray(X, np.float64) - self.shift) - self.centre
        left = apart - apart @ self.operator
        return np.average(np.sum(left**2, axis=1), weights=weights)

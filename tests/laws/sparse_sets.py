"""Rows and kernels that the sparse methods are tried on."""

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.preprocessing import scale

from mercer import KernelPCA
from mercer.kernels import RBF, Laplacian, Polynomial

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((40, 3)), RNG.standard_normal((9, 3))
WEIGHTS = RNG.integers(0, 3, len(X)).astype(float)
SETS = {
    "iris": (load_iris().data, RBF(0.3)),
    "wine": (scale(load_wine().data), RBF(0.05)),
    "plane": (RNG.normal(0.0, 2.2, (150, 2)), RBF(0.1)),
    "laplacian": (RNG.standard_normal((80, 3)), Laplacian(0.5)),
    "quadratic": (RNG.standard_normal((60, 4)), Polynomial(2)),
}


def fit(k, method, X=X, weights=None, kernel=RBF(0.2), **settings):  # noqa: B008
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)

"""Marukatat (2023), Table 2: axes that hold 90, 95 and 99 % of the variance of z-scores."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from mercer import PCA
from mercer.estimators.pca import SOLVERS
from mercer.rules import Fraction

DATA = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
SHARES = (0.90, 0.95, 0.99)
TABLE = {
    load_diabetes: (7, 8, 8),
    load_breast_cancer: (7, 10, 17),
    load_iris: (2, 2, 3),
}
MNIST = (236, 331, 543)


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != "power"])  # it takes seconds
@pytest.mark.parametrize(("load", "axes"), TABLE.items(), ids=lambda x: getattr(x, "__name__", ""))
def test_table(load, axes, solver):
    X = load().data
    found = [
        PCA(p, scale=True, svd_solver=solver, random_state=0).fit(X).n_components_ for p in SHARES
    ]
    assert tuple(found) == axes


@pytest.fixture(scope="module")
def digits():
    path = DATA / "mnist.npz"
    if not path.exists():
        pytest.skip(f"{path} is not here; MERCER_DATA names its folder")
    return np.load(path)["X"]


def test_mnist(digits):
    n, d = digits.shape
    assert (n, d) == (60_000, 784)
    pca = PCA(600, scale=True).fit(digits)
    values, total = pca.explained_variance_, pca.projection_.total_variance
    assert tuple(Fraction(p).choose(values, total, n, d) for p in SHARES) == MNIST


@pytest.mark.slow
def test_mnist_by_a_share(digits):
    pca = PCA(0.9, scale=True).fit(digits)
    assert pca.n_components_ == MNIST[0]
    assert pca.explained_variance_ratio_.sum() >= 0.9
    assert pca.certificate_.gap < 1e-6

"""Distances: kernels that tell how far rows are apart, and where that puts a row."""

import numpy as np
import pytest

from mercer.kernels import RBF, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from mercer.preimage import Distances
from tests.preimage.exact import kernel_pca, pca_rows

ISOTROPIC = [
    RBF(0.3),
    Laplacian(0.4),
    Matern(2.0, 0.5),
    Matern(2.0),
    Matern(2.0, 2.5),
    Matern(2.0, 1.8),
    RationalQuadratic(2.0, 0.7),
    Linear(),
    3 * RBF(0.3),
    RBF(0.3) + 2,
    2 * Linear() + 1,
    Matern(2.0).rbf(0.5),
    Linear().rbf(0.2),
]


def rows(n=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) * [2, 1, 0.5]


@pytest.mark.parametrize("kernel", ISOTROPIC, ids=repr)
def test_kernels_tell_the_distance(kernel):
    X = rows()
    apart = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    told = kernel.input_sqdist(kernel.distances(X) ** 2)
    np.testing.assert_allclose(told, apart, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kernel", ISOTROPIC[:7], ids=repr)
def test_beyond_reach_is_infinite(kernel):
    with np.errstate(divide="ignore"):
        assert np.isinf(kernel.input_sqdist(np.array([2.0, 2.5]))).all()


@pytest.mark.parametrize(
    "kernel",
    [Polynomial(3), Laplacian(1.0, norm="l1"), RBF(0.2) + Linear(), RBF(0.2).on_columns([0])],
    ids=repr,
)
def test_kernels_that_do_not(kernel):
    projection, scores = kernel_pca(kernel, rows(), 3)
    with pytest.raises(ValueError, match='Use "ridge"'):
        Distances().begin(projection, rows(), scores)


def test_two_neighbours_give_the_foot_on_their_line():
    X = rows()
    projection, scores = kernel_pca(Linear(), X, 1)
    result = Distances(2).find(projection, None, scores)
    for r, wanted in zip(result.rows, pca_rows(X, 1), strict=True):
        a, b = X[np.argsort(((X - wanted) ** 2).sum(axis=1))[:2]]
        foot = a + (b - a) * ((wanted - a) @ (b - a)) / ((b - a) @ (b - a))
        np.testing.assert_allclose(r, foot, atol=1e-9)


def test_more_neighbours_than_rows():
    X = rows(8)
    projection, scores = kernel_pca(Linear(), X, 2)
    result = Distances(100).find(projection, None, scores)
    np.testing.assert_allclose(result.rows, pca_rows(X, 2), atol=1e-9)


def test_a_point_far_from_all_is_reported():
    X = rows()
    projection, _ = kernel_pca(RBF(5.0), X, 3)
    result = Distances().find(projection, None, np.array([[50.0, 0.0, 0.0]]))
    assert not result.converged.any()
    assert np.isin(result.rows, X).all()


def test_bad_parameters():
    projection, scores = kernel_pca(RBF(0.2), rows(), 3)
    with pytest.raises(ValueError, match="integer"):
        Distances(0).find(projection, None, scores)

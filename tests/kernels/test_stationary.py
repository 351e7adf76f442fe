"""Matérn of large order, and parameters whose squares overflow."""

import warnings

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    Laplacian,
    Matern,
    RationalQuadratic,
)

# By mpmath, 40 digits: 2^{1-nu}/Gamma(nu) z^nu K_nu(z) at z = sqrt(2 nu) r, length 1.
MATERN = [
    (51, 1e-06, 0.99999999999949),
    (51, 0.5, 0.8804389364609361),
    (51, 8, 3.4890609188880395e-12),
    (100, 0.5, 0.88145491073088486),
    (100, 3, 0.011724215420302649),
    (100, 20, 1.0116570703994379e-57),
    (500, 1, 0.6060757316287829),
    (500, 8, 3.0799735896522223e-14),
    (1000, 8, 2.008585953981486e-14),
    (2000, 0.001, 0.99999949975000013),
    (2000, 20, 9.0677321422730951e-84),
    (10000.0, 0.5, 0.882486560045749),
    (10000.0, 30, 5.0483701200448885e-192),
]


@pytest.mark.parametrize(("nu", "r", "value"), MATERN)
def test_matern_of_large_order(nu, r, value):
    assert Matern(1.0, nu)([[0.0]], [[r]])[0, 0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("nu", [50.5, 51.0, 51.5, 800.0])
def test_slopes_of_matern_of_large_order(nu):
    X, Y, h = np.array([[0.7]]), np.array([[0.0], [2.0]]), 1e-5
    kernel, a = Matern(1.0, nu), np.array([1.0, -0.5])
    slope = (kernel(X + h, Y) - kernel(X - h, Y)) @ a / (2 * h)
    assert kernel.gradient(X, Y, a)[0] == pytest.approx(slope, rel=1e-8)


def test_matern_is_between_zero_and_one():
    r = np.concatenate([[0.0], np.geomspace(1e-200, 1e200, 200)])[:, None]
    for nu in (0.3, 7.1, 50.0, 51.0, 1e4, 1e8):
        K = Matern(1.0, nu)([[0.0]], r)[0]
        assert K[0] == 1
        assert ((K >= 0) & (K <= 1)).all()
        assert (np.diff(K) <= 1e-13).all()


def test_lengths_that_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (RBF(), Laplacian(), Matern(), Matern(1.0, 1.8)):
            diagonal = kernel.diag([[1e200], [np.nan], [1.0]])
            assert np.array_equal(diagonal, [1.0, np.nan, 1.0], equal_nan=True)
    with np.errstate(all="ignore"):
        assert np.array_equal(RBF()([[1e200], [-1e200]]), np.eye(2))


@pytest.mark.parametrize("length", [1e-170, 1e200])
def test_lengths_whose_squares_overflow(length):
    kernel = RationalQuadratic(length)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = kernel([[0.0], [1.0]])
        assert np.array_equal(np.diag(K), [1.0, 1.0])
        assert K[0, 1] == (1.0 if length > 1 else 0.0)
        assert np.isfinite(kernel.spectrum(2, 5, np.random.default_rng(0)).omega).all()
        assert np.isfinite(Matern(1e200).gradient(np.eye(2), np.eye(2), np.ones(2))).all()

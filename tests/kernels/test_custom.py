"""Kernels of a matrix, a function or a model."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.mixture import GaussianMixture

from mercer import KernelPCA
from mercer.kernels import RBF, Fisher, FromFunction, Kernel, Precomputed, base, parse
from mercer.kernels.stationary import Stationary
from mercer.methods import RandomFeatures


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_rows_of_other_libraries(library):
    xp = pytest.importorskip(library)
    host = np.array([[2.0], [0.0], [1.0]])
    K = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])
    for kernel in (
        Precomputed(K),
        FromFunction(lambda X, Y: X @ Y.T),
        FromFunction(lambda x, y: float(x[0]) * float(y[0]), pairwise=True),
    ):
        for call in (kernel, kernel.diag, kernel.distances):
            assert np.asarray(call(xp.asarray(host))) == pytest.approx(call(host))


def test_asymmetry_anywhere_in_a_tile():
    X = np.arange(200.0)[:, None]

    def late(X, Y):
        K = X @ Y.T
        K[(X[:, :1] > 100) & (Y[:, 0] < 90)] += 1e5
        return K

    def hidden(X, Y):
        K = late(X, Y)
        K[(X[:, :1] == 0) | (Y[:, 0] == 0)] = np.nan
        return K

    for f in (late, hidden):
        with pytest.raises(ValueError, match="not symmetric"):
            FromFunction(f)(X)


def test_a_mixture_of_named_columns_is_silent():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 2)), columns=["a", "b"])
    model = GaussianMixture(2, random_state=0).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Fisher.from_rows(model, table)(table).shape == (30, 30)
    assert list(model.feature_names_in_) == ["a", "b"]


def test_sparse_precomputed():
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        assert np.array_equal(Precomputed(form(K))([[1], [0]]), K[::-1, ::-1])
        assert np.array_equal(Precomputed(form(K)).diag([[1], [0]]), [3.0, 2.0])


class SpectrumOnly(Stationary):
    """A kernel as a user writes it, whose frequencies come from `spectrum`."""

    def on(self, pair):
        return RBF(0.5).on(pair)

    def spectrum(self, d, q, rng, *, orthogonal=False):
        return RBF(0.5).spectrum(d, q, rng, orthogonal=orthogonal)


class Doubled(RBF):
    """A kernel with another spectrum than the class that it extends."""

    def on(self, pair):
        return RBF(2.0 * self.gamma).on(pair)

    def spectrum(self, d, q, rng, *, orthogonal=False):
        return RBF(2.0 * self.gamma).spectrum(d, q, rng, orthogonal=orthogonal)


def test_a_kernel_that_overrides_spectrum_has_features():
    X = np.random.default_rng(0).standard_normal((60, 3))
    for kernel, same in (
        (SpectrumOnly(), RBF(0.5)),
        (2.0 * SpectrumOnly() + RBF(0.1), 2.0 * RBF(0.5) + RBF(0.1)),
        (Doubled(0.5) * RBF(0.1) + Doubled(1.0), RBF(1.0) * RBF(0.1) + RBF(2.0)),
    ):
        found, expected = (
            KernelPCA(2, kernel=k, method=RandomFeatures(50), random_state=0).fit(X).transform(X)
            for k in (kernel, same)
        )
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_a_kernel_that_is_defined_again_replaces_the_one_before():
    """As when a cell of a notebook runs twice; a different class must not take its name."""

    def define(power, where):
        class Again(Kernel):
            name = "defined again"
            __module__ = where

            def on(self, pair):
                return pair.dot**power

        return Again

    try:
        define(1, "notebook")
        second = define(2, "notebook")
        assert type(parse("Again()")) is second
        with pytest.raises(TypeError, match="both named"):
            define(1, "elsewhere")
    finally:
        for name in ("Again", "again", "defined again"):
            base.KERNELS.pop(name, None)

"""Requests that a device cannot serve."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import PCA, KernelPCA, config_context
from mercer.kernels import RBF, Subsequence
from mercer.methods import Subset
from tests.device.conftest import there

X = np.random.default_rng(0).normal(size=(50, 4))


def test_strings(device):
    with config_context(device=device), pytest.raises(TypeError, match="string rows"):
        KernelPCA(1, kernel=Subsequence(2)).fit(["ab", "ba", "bb"])


def test_rows_of_dask(device):
    array = pytest.importorskip("dask.array")
    with config_context(device=device), pytest.raises(TypeError, match="X has Dask rows"):
        PCA(1).fit(array.from_array(X))


def test_rows_on_two_devices():
    with pytest.raises(ValueError, match="on different devices"):
        RBF(1.0)(there(X), X)


def test_nan_is_found_where_it_is(device):
    bad = X.copy()
    bad[17, 3] = np.nan
    for model in (PCA(1), KernelPCA(1, kernel="rbf", gamma=0.1, method=Subset(10))):
        with config_context(device=device), pytest.raises(ValueError, match=r"row 17, column 3"):
            model.fit(bad)


def test_batches_of_two_places(device):
    model = PCA(2)
    with config_context(device=device):
        model.partial_fit(X)
    before = model.explained_variance_.copy()
    with pytest.raises(ValueError, match="Earlier batches"):
        model.partial_fit(X)
    np.testing.assert_array_equal(model.explained_variance_, before)


def test_a_given_basis_of_the_host(device):
    points = X[:10]
    how = {"kernel": "rbf", "gamma": 0.1, "method": Subset(select=points)}
    plain = KernelPCA(2, **how).fit(X).explained_variance_
    with config_context(device=device):
        made = KernelPCA(2, **how).fit(X).explained_variance_
    np.testing.assert_allclose(made, plain, rtol=1e-10)
    made = KernelPCA(2, **how).fit(there(X)).explained_variance_
    np.testing.assert_allclose(made.cpu().numpy(), plain, rtol=1e-10)

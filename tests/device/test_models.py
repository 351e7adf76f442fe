"""Models that a device has fitted are models like any other."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import mercer
from mercer import PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, config_context
from mercer.kernels import FromFunction
from mercer.methods import Sparse, Subset
from tests.device.conftest import torch

RBF = {"kernel": "rbf", "gamma": 0.05, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(200, 6)) * 0.7 ** np.arange(6)


@pytest.mark.parametrize(
    "model",
    [PCA(2), KernelPCA(2, **RBF), KernelPCA(2, **RBF, method=Subset(50), preimage="fixed_point")],
    ids=str,
)
def test_saved_and_loaded(rows, model, device, tmp_path):
    plain = mercer.PCA(2).fit(rows) if isinstance(model, PCA) else None
    with config_context(device=device):
        model.fit(rows)
    if plain is not None:
        assert vars(plain).keys() == vars(model).keys()
        assert vars(plain.plan_).keys() == vars(model.plan_).keys()
    mercer.save(model, tmp_path / "m.mercer")
    scores = model.transform(rows)
    for again in (mercer.load(tmp_path / "m.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.transform(rows), scores)


def test_estimators_around_others(rows, device):
    y = (rows[:, 0] > 0).astype(int)
    for make in (lambda: PCA(2), lambda: KernelPCA(2, **RBF)):
        plain = SubspaceClassifier(make()).fit(rows, y)
        with config_context(device=device):
            made = SubspaceClassifier(make()).fit(rows, y)
            found = made.decision_function(rows)
            far = NoveltyDetector(make()).fit(rows).score_samples(rows)
        assert type(found) is type(far) is np.ndarray
        for inner in made.estimators_:
            assert not torch.is_tensor(inner.explained_variance_)
            assert not torch.is_tensor(inner.projection_.components)
        np.testing.assert_allclose(found, plain.decision_function(rows), rtol=1e-8, atol=1e-10)


def test_the_way_back_by_regression(rows, device):
    model = KernelPCA(3, **RBF, fit_inverse_transform=True).fit(rows)
    back = model.inverse_transform(model.transform(rows))
    with config_context(device=device):
        found = model.inverse_transform(model.transform(rows))
        own = KernelPCA(3, **RBF, fit_inverse_transform=True).fit(rows)
        again = own.inverse_transform(own.transform(rows))
    for made in (found, again):
        np.testing.assert_allclose(made, back, rtol=1e-7, atol=1e-9)


def test_sparse_axes(rows, device):
    model = KernelPCA(2, **RBF, method=Sparse(20))
    plain = model.fit(rows).explained_variance_
    with config_context(device=device):
        made = KernelPCA(2, **RBF, method=Sparse(20)).fit(rows).explained_variance_
    np.testing.assert_allclose(made, plain, rtol=1e-6)


def test_functions_take_arrays_of_the_host(rows, device):
    def product(x, y):
        assert type(x) is type(y) is np.ndarray
        return x @ y.T

    with config_context(device=device):
        made = KernelPCA(2, kernel=FromFunction(product)).fit(rows)
    np.testing.assert_allclose(made.explained_variance_, PCA(2).fit(rows).explained_variance_)


def test_a_row_that_is_read_backwards(rows, device):
    model = PCA(2).fit(rows)
    with config_context(device=device):
        found = model.transform(rows[::-2][:1])
    np.testing.assert_allclose(found, model.transform(rows[-1:]))


def test_streams_on_a_device_are_not_saved(rows, device, tmp_path):
    with config_context(device=device):
        for model in (PCA(2), KernelPCA(2, **RBF, method=Subset(40))):
            model.partial_fit(rows)
            with pytest.raises(mercer.modelfile.ModelFileError, match="holds sums on a device"):
                mercer.save(model, tmp_path / "m.mercer")

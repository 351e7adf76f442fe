"""What a device computes is what the CPU does, and comes home."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from mercer import PCA, KernelPCA, config_context, kernels
from mercer.methods import (
    Cholesky,
    Exact,
    FrequentDirections,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Subset,
)
from tests.catalogue import cycled
from tests.device.conftest import there, torch

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-6}
RBF = {"kernel": "rbf", "gamma": 0.01, "random_state": 0}
LINEAR = [
    PCA(3),
    PCA(3, svd_solver="dot"),
    PCA(3, svd_solver="full"),
    PCA(3, svd_solver="krylov", random_state=0),
    PCA(3, svd_solver="sketch", random_state=0),
    PCA(3, scale=True, whiten=True),
    PCA(3, feature_weight=np.arange(20) / 4),
    PCA(3, svd_solver=FrequentDirections(20), feature_weight=np.arange(20) / 4),
    PCA(0.9),
]
KERNEL = [
    KernelPCA(3, **RBF),
    KernelPCA(3, **RBF, method=Exact(store="none")),
    KernelPCA(3, **RBF, method=Exact(store="float32")),
    KernelPCA(3, **RBF, method=Exact("dense")),
    KernelPCA(3, **RBF, method=Subset(300)),
    KernelPCA(3, kernel="poly", method=Subset(100), random_state=0),
    KernelPCA(3, **RBF, method=Nystrom(100)),
    KernelPCA(3, **RBF, method=Cholesky(100)),
    KernelPCA(3, **RBF, method=Reduced(100)),
    KernelPCA(3, **RBF, method=RandomFeatures(200)),
    KernelPCA(3, **RBF, method=Sketch()),
    KernelPCA(3, kernel=kernels.Matern(4.0) + 0.5 * kernels.Polynomial(2), random_state=0),
    KernelPCA(3, kernel=kernels.Laplacian(0.05, norm="l1"), random_state=0),
    KernelPCA(3, **RBF, gap=0.05),
]


@pytest.fixture(scope="module")
def rows():
    """Rows of falling variances, far from zero."""
    rng = np.random.default_rng(0)
    turn, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    X = rng.normal(size=(400, 20)) * 0.8 ** np.arange(20) @ turn * 6.0 + 3.0
    X[1::50] = X[::50]
    return X


def apart(a, b):
    """Return how far scores are apart, as a share of the largest; signs may differ."""
    turned = np.sign((a * b).sum(axis=0))
    return np.abs(a - turned * b).max() / np.abs(a).max()


@cycled(estimator=LINEAR + KERNEL, kind=TOLERANCE)
def test_same_as_on_the_cpu(rows, estimator, kind, device):
    X = rows.astype(kind)
    here = clone(estimator).fit(X)
    with config_context(device=device):
        made = clone(estimator)
        own = made.fit_transform(X)
        scores = made.transform(X)
    assert type(own) is type(scores) is np.ndarray
    assert scores.dtype == kind
    for name, value in vars(made).items():
        assert not torch.is_tensor(value), name
    for name, value in vars(made.projection_).items():
        assert not torch.is_tensor(value), name
    tolerance = TOLERANCE[kind] * (1 if isinstance(estimator, PCA) else 4)
    if getattr(getattr(estimator, "method", None), "store", None) == "float32":
        tolerance = max(tolerance, 1e-6)  # as near as what drives the iteration comes
    assert apart(here.transform(X), scores) < tolerance
    if getattr(estimator, "gap", None) is None:  # else as near as the residuals that it stops at
        assert apart(own, scores) < 4 * tolerance
    values = here.explained_variance_
    # Float32 dot products leave the CPU's values 7e-7 from the true ones, too.
    near = (2 if getattr(estimator, "svd_solver", "") == "dot" else 1) * TOLERANCE[kind]
    assert np.abs(made.explained_variance_ - values).max() <= near * values[0]
    # Without the device the model goes on as any other.
    assert apart(made.transform(X), scores) < tolerance


@pytest.mark.parametrize("estimator", [PCA(3), KernelPCA(3, **RBF, method=Subset(100))], ids=str)
def test_arrays_of_the_device_stay_there(rows, estimator):
    X = there(rows)
    made = clone(estimator).fit(X)
    scores = made.transform(X)
    assert scores.device == X.device
    assert made.explained_variance_.device == X.device
    assert apart(clone(estimator).fit(rows).transform(rows), scores.cpu().numpy()) < 1e-10


@pytest.mark.parametrize("estimator", [PCA(3), KernelPCA(3, **RBF)], ids=str)
def test_a_model_of_the_cpu_takes_rows_of_the_device(rows, estimator):
    made = clone(estimator).fit(rows)
    scores = made.transform(there(rows))
    assert torch.is_tensor(scores)
    assert scores.device == there(rows[:1]).device
    assert apart(made.transform(rows), scores.cpu().numpy()) < 1e-12
    back = clone(estimator).fit(there(rows)).transform(rows)
    assert apart(made.transform(rows), np.asarray(back)) < 1e-12


@pytest.mark.parametrize("way", ["fixed_point", "gradient", "ridge", "distances"])
def test_pre_images(rows, way, device):
    fitted = KernelPCA(5, **RBF, method=Subset(300), preimage=way).fit(rows)
    scores = fitted.transform(rows[:80])
    here = fitted.inverse_transform(scores)
    with config_context(device=device):
        found = fitted.inverse_transform(scores)
    assert type(found) is np.ndarray
    assert np.abs(found - here).max() < 1e-5 * np.abs(here).max()


def test_other_ways_out(rows, device, tmp_path):
    pca, kpca = PCA(3).fit(rows), KernelPCA(3, **RBF).fit(rows)
    np.save(tmp_path / "rows.npy", rows)
    with config_context(device=device):
        made = {
            "back": pca.inverse_transform(pca.transform(rows)),
            "error": pca.reconstruction_error(rows),
            "likelihood": pca.score_samples(rows),
            "kernel error": kpca.reconstruction_error(rows),
            "lazily": pca.transform(tmp_path / "rows.npy").collect(),
            "written": pca.transform(rows, out=tmp_path / "scores.npy").collect(),
            "kernel": kernels.RBF(0.01)(rows, rows[:5]),
            "diagonal": kernels.Polynomial(2).diag(rows),
            "distances": kernels.RBF(0.01).distances(rows, rows[:5]),
            "gradient": kernels.RBF(0.01).gradient(rows[:5], rows, np.ones(len(rows))),
        }
    plain = {
        "back": pca.inverse_transform(pca.transform(rows)),
        "error": pca.reconstruction_error(rows),
        "likelihood": pca.score_samples(rows),
        "kernel error": kpca.reconstruction_error(rows),
        "lazily": pca.transform(rows),
        "written": pca.transform(rows),
        "kernel": kernels.RBF(0.01)(rows, rows[:5]),
        "diagonal": kernels.Polynomial(2).diag(rows),
        "distances": kernels.RBF(0.01).distances(rows, rows[:5]),
        "gradient": kernels.RBF(0.01).gradient(rows[:5], rows, np.ones(len(rows))),
    }
    for name, found in made.items():
        assert type(found) is np.ndarray, name
        np.testing.assert_allclose(found, plain[name], rtol=1e-9, atol=1e-9, err_msg=name)


def test_rows_that_do_not_fit_the_device_come_in_blocks(rows, device):
    with config_context(device=device, memory=8 * rows.nbytes // 5, block_rows=64):
        made = PCA(3).fit(rows)
    np.testing.assert_allclose(
        made.explained_variance_, PCA(3).fit(rows).explained_variance_, rtol=1e-12
    )


@pytest.mark.parametrize("estimator", [PCA(3), KernelPCA(3, **RBF, method=Subset(100))], ids=str)
def test_batches(rows, estimator, device):
    here, made = clone(estimator), clone(estimator)
    for batch in np.array_split(rows, 3):
        here.partial_fit(batch)
        with config_context(device=device):
            made.partial_fit(batch)
    assert type(made.explained_variance_) is np.ndarray
    np.testing.assert_allclose(made.explained_variance_, here.explained_variance_, rtol=1e-10)

"""Fitted attributes are views of the projection: replacing them acts as it does in scikit-learn."""

import copy
import pickle

import numpy as np
import pytest
import sklearn.decomposition as sk
from sklearn.datasets import load_iris

import mercer
from mercer import PCA, KernelPCA

X = load_iris().data
CHANGES = {
    "components": lambda pca: setattr(pca, "components_", -pca.components_[::-1]),
    "fewer components": lambda pca: setattr(pca, "components_", pca.components_[:1]),
    "a list": lambda pca: setattr(pca, "components_", np.eye(4)[:2].tolist()),
    "mean": lambda pca: setattr(pca, "mean_", np.zeros(4, pca.mean_.dtype)),
    "mean in place": lambda pca: pca.mean_.__iadd__(1.0),
    "components in place": lambda pca: pca.components_.__imul__(-2.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_transform_uses_the_new_values(change):
    ours, theirs = PCA(2).fit(X), sk.PCA(2).fit(X)
    before = ours.transform(X)
    for pca in (ours, theirs):
        CHANGES[change](pca)
    if change == "a list":
        theirs.components_ = np.asarray(theirs.components_)
    scores = ours.transform(X)
    assert scores.shape != before.shape or not np.allclose(scores, before)
    np.testing.assert_allclose(scores, theirs.transform(X), atol=1e-12)
    if change != "fewer components":
        rows = theirs.inverse_transform(scores)
        np.testing.assert_allclose(ours.inverse_transform(scores), rows, atol=1e-12)


def test_whitening_and_the_noise_model_use_new_variances():
    ours, theirs = PCA(2, whiten=True).fit(X), sk.PCA(2, whiten=True).fit(X)
    for pca in (ours, theirs):
        pca.explained_variance_ = np.array([9.0, 4.0])
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-12)
    ours.whiten = theirs.whiten = False  # scikit-learn's model has the variances twice with it
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-12)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-9)


KERNEL_CHANGES = {
    "eigenvalues": {"eigenvalues_": lambda values, V: values * np.array([4.0, 0.25, 1.0])},
    "zero eigenvalue": {"eigenvalues_": lambda values, V: values * np.array([1.0, 1.0, 0.0])},
    "eigenvectors": {"eigenvectors_": lambda values, V: -V[:, ::-1]},
    "fewer": {
        "eigenvectors_": lambda values, V: V[:, :2],
        "eigenvalues_": lambda values, V: values[:2],
    },
}


@pytest.mark.parametrize("change", KERNEL_CHANGES)
def test_kernel_pca_uses_new_eigenvalues_and_eigenvectors(change):
    ours, theirs = (model(3, kernel="rbf", gamma=0.1).fit(X) for model in (KernelPCA, sk.KernelPCA))
    for kpca in (ours, theirs):
        for name, new in KERNEL_CHANGES[change].items():
            setattr(kpca, name, new(kpca.eigenvalues_, kpca.eigenvectors_))
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), atol=1e-10)
    ours.fit(X)  # a fit forgets the change
    np.testing.assert_array_equal(
        ours.eigenvalues_, KernelPCA(3, kernel="rbf", gamma=0.1).fit(X).eigenvalues_
    )


def test_eigenvectors_of_a_weighted_fit():
    weights = np.arange(len(X)) % 3 + 1.0
    kpca = KernelPCA(3, kernel="rbf", gamma=0.1).fit(X, sample_weight=weights)
    before = kpca.transform(X)
    kpca.eigenvectors_ = -kpca.eigenvectors_
    np.testing.assert_allclose(kpca.transform(X), -before, atol=1e-12)


def test_other_models_keep_theirs():
    pca = PCA(2).fit(X)
    other, before = copy.copy(pca), pca.transform(X)
    other.components_ = np.eye(4)[:2]
    np.testing.assert_array_equal(pca.transform(X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(other)).components_, np.eye(4)[:2])


def test_a_saved_model_has_the_new_values(tmp_path):
    pca = PCA(2).fit(X)
    pca.mean_, pca.components_ = np.zeros(4), np.eye(4)[:2]
    mercer.save(pca, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").transform(X), X[:, :2])


def test_a_rounded_mean_keeps_its_digits():
    rows = (X + 1e4).astype(np.float32)
    pca = PCA(2).fit(rows)
    before, mean = pca.transform(rows), pca.projection_.mean
    pca.mean_ = pca.mean_
    assert pca.mean_.dtype == np.float32
    np.testing.assert_array_equal(pca.projection_.mean, mean)
    np.testing.assert_array_equal(pca.transform(rows), before)
    with pytest.raises(ValueError, match="read-only"):  # a copy: it would have no effect
        pca.mean_[0] = 0.0
    pca.mean_ = pca.mean_ + np.float32(1.0)
    assert not np.allclose(pca.transform(rows), before, atol=0.1)

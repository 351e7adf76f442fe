"""Kernels whose scale does not suit the rows are noted, and others are not."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

from mercer import KernelPCA, KernelScaleWarning, NoveltyDetector
from mercer.kernels import RBF, Laplacian, Matern, RationalQuadratic

TABLES = {
    "iris": load_iris().data,
    "wine": load_wine().data,
    "cancer": load_breast_cancer().data,
    "digits": load_digits().data[:600],
}
METHODS = ("exact", "subset", "nystrom", "greedy", "cholesky", "sketch", "features")


def notes(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return [str(one.message) for one in caught if issubclass(one.category, KernelScaleWarning)]


@functools.cache
def near_the_median(table, kernel):
    X = StandardScaler().fit_transform(TABLES[table])
    return X, KernelPCA(2, kernel=kernel, gamma="median", method="subset").fit(X).gamma_


PAIRS = [(table, method) for i, table in enumerate(TABLES) for method in METHODS[i % 2 :: 2]]
"""Half of the products: every table with every other method."""


@pytest.mark.parametrize(("table", "method"), PAIRS)
def test_a_kernel_far_too_narrow_or_wide_is_noted(table, method):
    X = TABLES[table]
    median = RBF.from_median(X).gamma
    (note,) = notes(KernelPCA(5, kernel="rbf", gamma=1e5 * median, method=method), X)
    assert "close to the identity" in note
    assert "try gamma='median'" in note
    for factor in (1e-6, 1e-14):
        (note,) = notes(KernelPCA(2, kernel="rbf", gamma=factor * median, method=method), X)
        assert "close to constant" in note
        assert "try gamma='median'" in note


@pytest.mark.parametrize(
    ("table", "method", "kernel", "factor"),
    [
        (table, method, ("rbf", "laplacian")[(i + j) % 2], (0.1, 1, 5)[(i + 2 * j) % 3])
        for i, table in enumerate(TABLES)
        for j, method in enumerate(METHODS)
        if (i + j // 2) % 2 == 0
    ],
)
def test_kernels_near_the_median_are_not(table, method, kernel, factor):
    X, gamma = near_the_median(table, kernel)
    assert not notes(KernelPCA(5, kernel=kernel, gamma=factor * gamma, method=method), X)


def test_many_tight_clusters_are_no_identity():
    X, _ = make_blobs(2000, n_features=5, centers=100, cluster_std=0.01, random_state=0)
    assert not notes(KernelPCA(5, kernel=RBF(10.0)), X)


def test_noise_in_many_columns_is_not_blamed_on_the_kernel():
    X = np.random.default_rng(0).normal(size=(300, 1000))
    found = KernelPCA(5, kernel="rbf", gamma=0.5 / 2000)
    assert not notes(found, X)
    assert found.explained_variance_ratio_[0] < 0.01  # though the centred matrix has no structure


def test_few_rows_equal_rows_and_other_kernels_are_not_judged():
    rng = np.random.default_rng(0)
    assert not notes(KernelPCA(2, kernel="rbf", gamma=1e9), rng.normal(size=(10, 2)))
    assert not notes(KernelPCA(2, kernel="rbf"), np.ones((50, 2)))
    assert not notes(KernelPCA(2, kernel="poly"), 1e-6 * rng.normal(size=(50, 2)))


@pytest.mark.parametrize(
    ("kernel", "remedy"),
    [
        (RBF(1e6), r"RBF.from_median(X)"),
        (Laplacian(1e6), r"Laplacian.from_median(X)"),
        ("rbf(1e6)", "kernel='rbf' with gamma='median'"),
        (Matern(1e-6), "choose a larger one"),
        (RationalQuadratic(1e-6, alpha=5.0), "choose a larger one"),
    ],
)
def test_the_remedy_is_that_of_the_kernel_as_it_was_given(kernel, remedy):
    (note,) = notes(KernelPCA(2, kernel=kernel), TABLES["wine"])
    assert remedy in note


def test_sparse_rows_and_models_around():
    X = TABLES["digits"]
    assert notes(KernelPCA(2, kernel="rbf"), scipy.sparse.csr_array(X))
    assert notes(NoveltyDetector(KernelPCA(2, kernel="rbf")), X)
    assert not notes(NoveltyDetector(), X)

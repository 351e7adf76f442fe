"""Centres of clusters, and the rows nearest to them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.cluster import KMeans as Clusters

from mercer import as_source, config_context, landmarks
from mercer.kernels import RBF, Linear
from mercer.landmarks.kmeans import nearest_rows
from mercer.landmarks.lloyd import kernel_lloyd
from tests.landmarks.catalogue import points, problem


def distances(X, Y):
    return ((X[:, None] - Y) ** 2).sum(axis=-1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rows_are_those_nearest_to_the_centres(dtype):
    X = points(300, dtype=dtype) + 100
    centres = landmarks.KMeans(nearest=False).select(problem(X), 12)
    assert centres.at is None
    assert centres.points.dtype == dtype
    found = landmarks.KMeans().select(problem(X), 12)
    np.testing.assert_array_equal(found.at, distances(X, centres.points).argmin(axis=0))


def test_centres_are_the_means_of_their_rows():
    X = points(400, 2)
    w = np.random.default_rng(0).integers(1, 4, 400)
    Y = landmarks.KMeans(nearest=False).select(problem(X, weights=w), 5).points
    labels = distances(X, Y).argmin(axis=1)
    for j in range(5):
        here = labels == j
        np.testing.assert_allclose(Y[j], np.average(X[here], axis=0, weights=w[here]), atol=1e-3)


def test_clusters_are_as_good_as_the_peer():
    X = points(600, 4)
    peer = Clusters(20, n_init=1, random_state=0).fit(X).inertia_
    Y = landmarks.KMeans(nearest=False).select(problem(X), 20).points
    assert distances(X, Y).min(axis=1).sum() < 1.1 * peer


def test_a_row_that_is_nearest_twice_is_taken_once():
    X = np.array([[0.0], [1.0], [5.0], [9.0]])
    np.testing.assert_array_equal(
        nearest_rows(as_source(X), np.array([[0.1], [0.0], [0.2]])), [2, 0, 1]
    )
    weights = np.array([0.0, 1.0, 1.0, 1.0])
    found = nearest_rows(as_source(X).weighted(weights), np.array([[0.0], [0.1]]))
    np.testing.assert_array_equal(found, [2, 1])


@pytest.mark.parametrize("block", [1, 2, 6])
def test_the_first_of_equally_near_rows_is_taken(block):
    X = np.array([[9.0], [1.0], [9.0], [1.0], [1.0], [9.0]])
    with config_context(block_rows=block):
        found = nearest_rows(as_source(X), np.array([[1.0], [9.0]]))
    np.testing.assert_array_equal(found, [1, 0])


@pytest.mark.parametrize("rule", [landmarks.KMeans(), landmarks.KernelKMeans()], ids=repr)
def test_fewer_different_rows_than_points(rule):
    X = np.repeat(points(4), 5, axis=0)
    assert len(set(rule.select(problem(X), 9).at)) == 9


def test_a_large_problem_is_sampled():
    rule = landmarks.KMeans()
    assert rule.cost(10**7, 50, 100).memory == 8 * 50 * (5000 + 200)
    assert rule.cost(10**7, 50, 1000).memory == 8 * 50 * (50000 + 2000)
    X = points(6000, 2)
    found = rule.select(problem(X), 10)
    assert len(set(found.at)) == 10


def test_sparse_rows_are_clustered_as_they_are():
    X = scipy.sparse.random_array((200, 10**6), density=1e-4, rng=np.random.default_rng(0))
    found = landmarks.KMeans().select(problem(X.tocsr(), kernel=Linear()), 3)
    assert len(set(found.at)) == 3


def test_clusters_in_the_kernels_space_of_a_linear_kernel_are_those_of_the_rows():
    X = np.concatenate([points(30, 2, s) + 10 * s for s in range(4)])
    apart, _ = kernel_lloyd(X @ X.T, np.ones(120), 4, 20, np.random.default_rng(1))
    labels = apart.argmin(axis=0).reshape(4, 30)
    assert (labels == labels[:, :1]).all()
    assert len(set(labels[:, 0])) == 4
    for i in range(4):
        here = X[30 * i : 30 * i + 30]
        expected = distances(X, here.mean(axis=0, keepdims=True))[:, 0]
        np.testing.assert_allclose(apart[labels[i, 0]], expected, atol=1e-10)


def test_landmarks_in_the_kernels_space_are_nearest_to_their_centres():
    """Two rings, which no means of rows can tell apart."""
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    X = np.concatenate([ring, 5 * ring])
    found = landmarks.KernelKMeans().select(problem(X, kernel=RBF(0.5)), 12)
    assert (found.at < 60).any()
    assert (found.at >= 60).sum() >= 6


def test_weights_pull_the_centres():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    w = np.array([1.0, 1.0, 50.0, 50.0, 1.0, 1.0])
    for rule in (landmarks.KMeans(), landmarks.KernelKMeans()):
        kernel = Linear()
        found = rule.select(problem(X, kernel=kernel, weights=w), 2)
        assert sorted(found.at) == [2, 3]


def test_scikit_learn_is_not_imported_before_it_is_needed():
    code = (
        "import sys, mercer.landmarks; assert not any(m.startswith('sklearn') for m in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

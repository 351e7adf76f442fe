"""Kernel PCA on a basis where it was once wrong or misleading."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_blobs

from mercer import ConvergenceWarning, KernelPCA, config_context, landmarks
from mercer.kernels import RBF, Polynomial
from mercer.methods import Adaptive, Cholesky, Nystrom, Subset

IRIS = load_iris().data


def _spectrum(X, gamma, center=True):
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    H = np.eye(len(X)) - center / len(X)
    return np.linalg.eigvalsh(H @ K @ H)[::-1]


def _true_gap(kpca, X, gamma, center=True):
    """1 − what the span of the axes holds / the most, by the formula."""
    Y, A = np.asarray(kpca.X_fit_, float), np.asarray(kpca.projection_.components)
    h = np.exp(-gamma * cdist(X, Y, "sqeuclidean"))
    h = h - center * h.mean(axis=0)
    G = A.T @ np.exp(-gamma * cdist(Y, Y, "sqeuclidean")) @ A
    held = np.trace(np.linalg.pinv(G) @ (A.T @ (h.T @ h) @ A))
    return 1.0 - held / _spectrum(X, gamma, center)[: A.shape[1]].sum()


@pytest.mark.parametrize("far", [1e4, 1e6])
@pytest.mark.parametrize(
    "method", [Subset(150), Adaptive(60), Nystrom(150), Cholesky(150)], ids=lambda m: m.name
)
def test_float32_rows_far_apart_keep_their_digits(rng, far, method):
    """Distances within a cluster are small beside the rows' lengths: float32 lost them."""
    X = rng.standard_normal((600, 4))
    X[:300] += far
    X[300:] -= far
    X = X.astype(np.float32)
    gap = 0.01 if isinstance(method, Adaptive) else None
    kpca = KernelPCA(5, kernel=RBF(0.2), method=method, gap=gap, random_state=0).fit(X)
    exact, rows = _true_gap(kpca, X.astype(float), 0.2), X.astype(float)
    assert exact - 1e-6 <= kpca.certificate_.gap
    bound = float(kpca.certificate_.optimum_upper) * kpca.projection_.total_variance * 599
    assert bound >= (1 - 1e-6) * _spectrum(rows, 0.2)[:5].sum()


def test_a_large_mean_that_stays_is_not_lost_to_float32_products(rng):
    X = rng.standard_normal((300, 4)) + 1e6
    kpca = KernelPCA(
        3, kernel=RBF(1.0), method=Adaptive(60), center=False, gap=0.01, random_state=0
    )
    kpca.fit(X)
    np.testing.assert_allclose(kpca.eigenvalues_, _spectrum(X, 1.0, False)[:3], rtol=1e-3)
    assert _true_gap(kpca, X, 1.0, False) <= kpca.certificate_.gap


@pytest.mark.parametrize("method", [Nystrom(60), Cholesky(60, on="rows")], ids=lambda m: m.name)
def test_one_axis_over_all_rows_is_not_said_to_be_the_best(rng, method):
    """With one axis there was no spacing to estimate the gap from, and it was zero."""
    X = rng.standard_normal((400, 6))
    kpca = KernelPCA(1, kernel=RBF(1.0), method=method, random_state=0).fit(X)
    exact, found = _true_gap(kpca, X, 1.0), kpca.certificate_
    assert exact > 0.05
    assert exact / 4 < found.gap_estimate <= found.gap


def test_a_sample_that_tells_nothing_does_not_say_that_nothing_is_missing(rng):
    X = np.r_[rng.standard_normal((3000, 4)), [[40.0, 0, 0, 0]]]
    method = Subset(select=X[:30])
    kpca = KernelPCA(1, kernel=Polynomial(3), method=method, random_state=0).fit(X)
    found, K = kpca.certificate_, Polynomial(3)(X, X)
    best = np.linalg.eigvalsh(K - K.mean(0) - K.mean(0)[:, None] + K.mean())[-1]
    share = float(found.captured) * kpca.projection_.total_variance * 3000 / best
    assert found.gap_estimate >= (1 - share) / 4


def test_no_axes_hold_nothing():
    for method in ("subset", "reduced", "nystrom", "cholesky", "exact"):
        with pytest.warns(UserWarning, match="no component has"):
            kpca = KernelPCA(2, kernel="rbf", method=method).fit(np.ones((30, 3)))
        assert kpca.certificate_.optimum_upper == kpca.certificate_.gap == 0.0


def test_of_an_indefinite_kernel_directions_shorter_than_negative_ones_are_left_out(rng):
    """Divided by their lengths, they made variances out of nothing: twice the exact ones."""
    X = rng.standard_normal((500, 5))
    basis = KernelPCA(2, kernel="sigmoid", method=Subset(50), random_state=0).fit(X)
    exact = KernelPCA(2, kernel="sigmoid", method="exact").fit(X)
    np.testing.assert_allclose(basis.eigenvalues_, exact.eigenvalues_, rtol=0.3)
    assert "negative length" in str(basis.certificate_)


def test_batches_are_not_said_to_lack_memory(rng, recwarn):
    KernelPCA(2, kernel="rbf").partial_fit(rng.standard_normal((50, 3)))
    assert not recwarn.list


def test_a_gap_that_was_missed_says_what_comes_nearer(rng):
    X = rng.standard_normal((300, 5))
    with pytest.warns(ConvergenceWarning, match="larger n_basis"):
        KernelPCA(2, kernel=RBF(5.0), gap=0.001, method=Subset(20)).fit(X)


def test_rank_and_the_mean_of_the_basis_are_not_silently_mixed(rng):
    method = Subset(20, centroid="basis", rank=10)
    with pytest.raises(ValueError, match="Leave one of them out"):
        KernelPCA(2, kernel="rbf", method=method).fit(rng.standard_normal((60, 3)))


def test_auto_takes_a_smaller_basis_where_the_usual_one_does_not_fit():
    X = np.broadcast_to(np.float64(0.0), (50000, 100))
    with config_context(memory="100MiB"):
        plan = KernelPCA(5, kernel="rbf").plan(X)
        assert isinstance(plan.method, Subset)
        assert 100 <= plan.method.n_basis < 1000
        assert KernelPCA(5, kernel="rbf", gap=0.01).plan(X).method.name == "adaptive"
        with pytest.raises(MemoryError, match=r"n_basis=\d+ fits"):
            KernelPCA(5, kernel="rbf", method=Subset(1000)).fit(X)


def test_axes_over_all_rows_stay_within_the_memory_of_the_plan(rng):
    X = rng.standard_normal((6000, 10))
    kpca = KernelPCA(5, kernel=RBF(0.01), method=Nystrom(200), random_state=0)
    planned = kpca.plan(X).candidates[0].cost.memory
    tracemalloc.start()
    kpca.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= planned


@pytest.mark.parametrize("rule", [landmarks.KMeans(), landmarks.KernelKMeans()])
def test_nystrom_counts_the_rows_of_clusters(rule):
    X, _ = make_blobs([250, 30, 20], cluster_std=0.7, random_state=0)
    exact = KernelPCA(3, kernel="rbf", gamma=0.1).fit(X).explained_variance_
    off = {}
    for weigh in (True, False):
        method = Nystrom(30, select=rule, weigh=weigh)
        found = KernelPCA(3, kernel="rbf", gamma=0.1, method=method, random_state=0).fit(X)
        off[weigh] = np.abs(found.explained_variance_ / exact - 1).max()
    assert off[True] < 0.1 < 0.5 < off[False]


def test_a_mask_is_no_landmark():
    with pytest.raises(ValueError, match="flatnonzero"):
        KernelPCA(2, kernel="rbf", method=Subset(select=IRIS[:, 0] > 5)).fit(IRIS)


def test_a_solver_beside_a_basis_is_refused():
    with pytest.raises(ValueError, match="eigen_solver='dense'"):
        KernelPCA(2, kernel="rbf", method="subset", eigen_solver="dense").fit(IRIS)


@pytest.mark.parametrize("method", [Subset(select=np.arange(0, 60, 2)), Subset(20)], ids=repr)
def test_a_stream_can_be_pickled_and_goes_on(method):
    parts = IRIS[:60], IRIS[60:]
    kpca = KernelPCA(3, kernel="rbf", method=method, random_state=0).partial_fit(parts[0])
    text = pickle.dumps(kpca)
    assert len(text) < 40_000 + 8 * 4 * 20**2  # not the rows of the batch, nor their kernels
    loaded = pickle.loads(text).partial_fit(parts[1])
    kpca.partial_fit(parts[1])
    np.testing.assert_array_equal(loaded.explained_variance_, kpca.explained_variance_)


@pytest.mark.parametrize("method", ["exact", "subset", "sketch", "features"])
def test_sparse_rows_for_a_model_of_dense_ones_that_were_moved(rng, method):
    X = rng.normal(size=(60, 5)) + 10
    kpca = KernelPCA(2, kernel=RBF(0.1), method=method, random_state=0).fit(X)
    scores = kpca.transform(X)
    np.testing.assert_allclose(kpca.transform(scipy.sparse.csr_array(X)), scores, atol=1e-9)
    errors = kpca.reconstruction_error(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(errors, kpca.reconstruction_error(X), atol=1e-9)


def test_sparse_rows_of_no_weight_are_left_out_without_the_others_becoming_dense(rng):
    X, w = scipy.sparse.random_array((60, 30), density=0.1, rng=rng).tocsr(), np.ones(60)
    w[:5] = 0
    kpca = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(X, sample_weight=w)
    assert scipy.sparse.issparse(kpca.X_fit_)
    dense = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(X.toarray(), sample_weight=w)
    np.testing.assert_allclose(kpca.transform(X), dense.transform(X.toarray()), atol=1e-9)

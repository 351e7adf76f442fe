"""The same answer for any block size and any number of threads: every method, every rule."""

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer import PCA, KernelPCA, config_context, landmarks
from mercer.kernels import RBF
from mercer.methods import (
    Adaptive,
    Cholesky,
    Exact,
    FrequentDirections,
    Greedy,
    Hebbian,
    Improved,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
)
from tests.catalogue import WAYS, cycled, pairwise, rows
from tests.landmarks.catalogue import ROWS

RTOL = {"float32": 1e-5, "float64": 1e-9}
# Rows of a block, and threads.
CUTS = [(None, 1), (13, 2), (64, 1), (None, 2)]
KERNEL_METHODS = [
    *(Exact(name) for name in ("dense", "krylov", "arpack")),
    *(Subset(20), Subset(20, centroid="rows"), Reduced(20), Improved(20), Nystrom(20)),
    *(Nystrom(20, on="basis"), Cholesky(20), Cholesky(20, on="rows"), Greedy(10), Adaptive(20)),
    *(Sketch(), RandomFeatures(40), RandomFeatures(40, linear=FrequentDirections(10))),
    *(Sparse(), SparseL1(5), Hebbian()),
]


def clusters(dtype="float64", offset=0.0, n=160, d=5):
    rng = np.random.default_rng(3)
    means = 3.0 * rng.standard_normal((4, d))
    X = means[rng.integers(0, 4, n)] + rng.standard_normal((n, d)) * np.linspace(1, 0.4, d)
    return (X + offset).astype(dtype)


def assert_alike(fit, rtol):
    """Fit once for every way to cut the rows; what comes out is the same to rounding."""
    first = None
    for block, threads in CUTS:
        cut = config_context(block_rows=block)
        with cut, threadpool_limits(threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(fit().explained_variance_, np.float64)
        first = found if first is None else first
        assert found.shape == first.shape
        assert np.abs(found - first).max() <= rtol * first[0], (block, threads)


@pytest.mark.parametrize("way", rows(WAYS))
@pytest.mark.parametrize("dtype", RTOL)
def test_linear_methods(dtype, way):
    X = clusters(dtype, 50.0)
    assert_alike(lambda: PCA(3, svd_solver=way.solver, random_state=0).fit(X), RTOL[dtype])


@pairwise(dtype=RTOL, center=[True, False], size=[3, 7, 50])
def test_frequent_directions(size, center, dtype):
    """Rows go in groups of their own; to shrink where blocks end moved eigenvalues by 4 %."""
    X = np.random.default_rng(4).standard_normal((500, 12)).astype(dtype) + np.float32(center)
    weights = np.arange(500) % 3 * 1.0
    for w in (None, weights):
        way = PCA(3, svd_solver=FrequentDirections(size), center=center)
        assert_alike(lambda way=way, w=w: way.fit(X, sample_weight=w), 1e-12)


@cycled(method=KERNEL_METHODS, offset=[1e3, 0.0])
def test_kernel_methods(offset, method):
    X = clusters(offset=offset)
    model = KernelPCA(3, kernel=RBF(0.05), method=method, random_state=0)
    # Hebbian and Sparse end in a search, which stops where its tolerance says.
    rtol = 1e-3 if isinstance(method, (Hebbian, Sparse)) else 1e-7
    assert_alike(lambda: model.fit(X), rtol)


@pairwise(row=ROWS, offset=[0.0, 50.0], dtype=RTOL)
def test_landmark_rules(dtype, offset, row):
    X = clusters(dtype, offset, n=70)
    model = KernelPCA(3, kernel=RBF(0.05), method=Subset(15, select=row.rule), random_state=0)
    assert_alike(lambda: model.fit(X), RTOL[dtype])


@pytest.mark.parametrize("nearest", [True, False])
@pytest.mark.parametrize("max_iter", [None, 3])
def test_k_means_are_the_same_bits(nearest, max_iter):
    """Of rows on a grid, whose ties would fall otherwise with every rounding."""
    rng = np.random.default_rng(5)
    X = (np.round(2 * rng.standard_normal((3000, 3))) / 2).astype(np.float32)
    found = []
    for block, threads in ((64, 2), (500, 1), (None, 2)):
        with config_context(block_rows=block), threadpool_limits(threads):
            method = Subset(25, select=landmarks.KMeans(nearest, max_iter))
            found.append(KernelPCA(2, kernel=RBF(0.1), method=method, random_state=0).fit(X).X_fit_)
    for points in found[1:]:
        assert np.array_equal(points, found[0])

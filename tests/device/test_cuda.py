"""What only a GPU can show: memory, TF32, copies that overlap, CuPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mercer import PCA, KernelPCA, config_context
from mercer.arrays import device_memory, device_reference, like, to_numpy
from mercer.methods import Exact, Subset
from tests.device.conftest import CUDA, torch

pytestmark = pytest.mark.skipif(not CUDA, reason="torch finds no CUDA device")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    return rng.normal(size=(30_000, 64)).astype(np.float32) * 0.9 ** np.arange(64, dtype="f")


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, bool])
@pytest.mark.parametrize("size", [10, 2**18 - 1, 40 * 2**20 // 8 + 3])
def test_copies_are_exact(size, kind):
    x = np.random.default_rng(0).integers(0, 2**20, size).astype(kind)
    there = like(x, device_reference("cuda"))
    assert there.is_cuda
    np.testing.assert_array_equal(to_numpy(there), x)
    np.testing.assert_array_equal(to_numpy(there[::3]), x[::3])


def test_there_is_no_such_device():
    with pytest.raises(RuntimeError, match="the GPUs are"), config_context(device="cuda:99"):
        PCA(1).fit(np.eye(5))


def test_the_budget_is_half_of_the_device(rows):
    plan = KernelPCA(3, kernel="rbf", gamma=0.01).plan(torch.from_numpy(rows).cuda())
    assert plan.budget == device_memory(device_reference("cuda")) // 2


def test_memory_stays_inside_the_budget(rows):
    X, budget = torch.from_numpy(rows).cuda(), 2**30  # the kernel matrix has 3.6 GB
    for method in (Exact(store="none"), Subset(1000)):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with config_context(memory=budget):
            KernelPCA(5, kernel="rbf", gamma=0.01, tol=1e-4, method=method).fit(X)
        assert torch.cuda.max_memory_allocated() - before <= budget


def test_memory_of_sparse_rows_stays_inside_the_budget():
    X = scipy.sparse.random_array((400_000, 10_000), density=1e-3, format="csr", rng=1)  # 48 MB
    X = scipy.sparse.csr_array(X * np.geomspace(30.0, 1.0, 10_000))
    expected = PCA(3, svd_solver="krylov", tol=1e-3, random_state=0).fit(X)
    for budget in (2**30, 2**27):  # kept on the device, and copied in blocks
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        with config_context(device="cuda", memory=budget):
            made = PCA(3, svd_solver="krylov", tol=1e-3, random_state=0).fit(X)
        assert torch.cuda.max_memory_allocated() <= budget
        values = made.explained_variance_
        np.testing.assert_allclose(values, expected.explained_variance_, rtol=1e-8)


def test_blocks_from_the_host_are_the_rows(rows):
    whole = PCA(5).fit(rows)
    with config_context(device="cuda", memory=rows.nbytes // 2, block_rows=1000):
        blocks = PCA(5).fit(rows)
    np.testing.assert_allclose(
        blocks.projection_.eigenvalues, whole.projection_.eigenvalues, rtol=1e-6
    )


def test_tf32_is_by_request_only(rows):
    X = torch.from_numpy(rows[:8000]).cuda()
    how = {"kernel": "rbf", "gamma": 0.05, "method": Exact(store="none"), "random_state": 0}
    exact = KernelPCA(3, **how).fit(X.double()).projection_.eigenvalues
    torch.set_float32_matmul_precision("high")  # as some programs set it for good
    try:
        plain = KernelPCA(3, **how).fit(X)
        with config_context(tf32=True):
            coarse = KernelPCA(3, **how).fit(X)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
    for made in (plain, coarse):  # the last product is float64's
        np.testing.assert_allclose(made.projection_.eigenvalues, exact, rtol=1e-6)
        assert made.certificate_.converged
        assert float(made.certificate_.optimum_upper) >= float(made.certificate_.captured)


def test_cupy(rows):
    cupy = pytest.importorskip("cupy")
    X = cupy.asarray(rows[:4000].astype(np.float64))
    for make in (
        lambda: PCA(3),
        lambda: KernelPCA(3, kernel="rbf", gamma=0.05, random_state=0),
        lambda: KernelPCA(3, kernel="rbf", gamma=0.05, method=Subset(600), random_state=0),
    ):
        made = make().fit(X)
        scores = made.transform(X)
        assert isinstance(scores, cupy.ndarray)
        plain = make().fit(X.get())
        values = plain.projection_.eigenvalues
        np.testing.assert_allclose(made.projection_.eigenvalues, values, rtol=1e-10)


def test_sparse_matrices_of_cupy():
    cupyx = pytest.importorskip("cupyx.scipy.sparse")
    X = scipy.sparse.random_array((3000, 400), density=0.05, format="csr", rng=1)
    for make in (
        lambda: PCA(3, svd_solver="krylov", random_state=0),
        lambda: KernelPCA(3, kernel="rbf", gamma=0.05, method=Subset(200), random_state=0),
    ):
        plain = make().fit(X).projection_.eigenvalues
        for kind in (cupyx.csr_matrix, cupyx.csc_matrix):
            made = make().fit(kind(scipy.sparse.csr_matrix(X)))
            np.testing.assert_allclose(made.projection_.eigenvalues, plain, rtol=1e-10)

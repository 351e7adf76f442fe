"""Products and distances of rows: accurate, sparse, of any library."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from mercer.kernels import (
    RBF,
    Cosine,
    ExponentialChiSquare,
    Fisher,
    Hellinger,
    Linear,
    Separable,
)
from tests.kernel_catalogue import Bell


def exact_rbf(X, gamma):
    X = X.astype(np.longdouble)
    return np.exp(-gamma * np.array([((x - X) ** 2).sum(axis=1) for x in X]))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("form", ["C", "F", "sparse"])
def test_rows_with_outliers_and_clusters(dtype, error, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    outlier, lost, clusters = X + 1000, X + 1000, X + 100 * rng.choice([-1, 1], (200, 1))
    outlier[0] = -1e6
    lost[0], lost[7] = np.nan, np.inf
    for rows in (outlier, lost, clusters):
        rows = np.asarray(rows, dtype, order="F" if form == "F" else "C")
        with np.errstate(invalid="ignore"):
            K = RBF(0.01)(scipy.sparse.csr_array(rows) if form == "sparse" else rows)
            truth = exact_rbf(rows, 0.01)
        assert np.array_equal(np.isnan(K), np.isnan(truth))
        assert np.nanmax(np.abs(K - truth)) <= error


def test_plain_rows_do_not_import_numba():
    code = (
        "import sys, numpy as np; from mercer.kernels import RBF;"
        "RBF()(np.random.default_rng(0).standard_normal((1500, 20)));"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Cosine()])
def test_products_of_sparse_rows(kernel):
    rng = np.random.default_rng(0)
    X, Y = (scipy.sparse.random_array((n, 300), density=0.05, rng=rng) for n in (90, 70))
    Y = Y.tocsr().astype(np.float32)
    Y.indices = Y.indices.astype(np.int64)
    Y.indptr = Y.indptr.astype(np.int64)
    for x, y in ((X, Y), (X, X), (Y, X), (X.tocsr()[:0], Y), (X.tocsr()[:, :0], Y[:, :0])):
        expected = kernel(x.toarray(), y.toarray())
        assert kernel(x, y) == pytest.approx(expected, abs=1e-13)
    near = X.tocsr()[[3, 3]]
    near.data[-1] += 1e-9
    assert kernel.distances(near)[0, 1] <= 1e-8
    assert RBF(1.0).distances(near)[0, 1] == pytest.approx(np.sqrt(2) * 1e-9, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "slope"),
    [
        (Cosine(), 1.6),
        (Hellinger(), 0.5 / np.sqrt(0.3)),
        (Separable(lambda rows: 2 * rows[:, 0]), 2.0),
        (Fisher(Bell()), 1.0),
        (Linear().rbf(0.5), 1.0),
        (Cosine().rbf(2.0), 3.2),
        (ExponentialChiSquare(3.0), np.sqrt(2 * 3.0 / 0.6)),
    ],
)
def test_distances_of_near_rows(kernel, slope):
    X = np.array([[0.3, 0.4], [0.3 + 1e-9, 0.4]])
    step = X[1, 0] - X[0, 0]
    assert kernel.distances(X)[0, 1] == pytest.approx(slope * step, rel=1e-6)


def test_columns_of_rows_on_another_device():
    xp = pytest.importorskip("array_api_strict")
    X = xp.asarray(np.eye(3), device=xp.Device("device1"))
    assert RBF().on_columns([0, 2])(X).device == X.device
    assert RBF().on_columns([0, 2]).diag(X).device == X.device

"""Products with sparse rows, summed over rows or over columns, are those with dense rows."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from mercer import config_context
from mercer.data import SparseSource
from mercer.linalg import DotOperator, standardized

N, D, B = 40, 130, 5


@pytest.mark.parametrize("block_rows", [7, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [0, 2**20], ids=["by rows", "by columns"])
def test_dot_products(most, dtype, block_rows, monkeypatch):
    for name in ("_LIFT_BYTES", "_PRODUCT_BYTES"):
        monkeypatch.setattr(standardized, name, most)
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(N, D)) < 0.2, rng.standard_normal((N, D)) + 2, 0.0).astype(dtype)
    w, deviation = rng.integers(0, 4, N).astype(float), rng.uniform(0.5, 2.0, D)
    mean = w @ X / w.sum()
    Z = np.sqrt(w)[:, None] * (X.astype(np.float64) - mean) / deviation
    source = SparseSource(scipy.sparse.csr_array(X)).weighted(w)
    operator = DotOperator(source, mean, deviation, 9.0, float((Z**2).sum() / 9))
    V = rng.standard_normal((N, B)).astype(dtype)
    tolerance = {"rtol": 0, "atol": 2e-4 if dtype == np.float32 else 1e-12}
    with config_context(block_rows=block_rows):
        lifted, product = operator.lift(V), operator.matmat(V)
    assert lifted.dtype == dtype
    assert product.dtype == np.float64
    assert_allclose(lifted, Z.T @ V, **tolerance)
    assert_allclose(product, Z @ (Z.T @ V) / 9, **tolerance)


def test_transposes_share_their_entries():
    rows = SparseSource(scipy.sparse.random_array((50, 30), density=0.2, format="csr", rng=0))
    block = rows.read(10, 30)
    columns = standardized.transpose(block)
    assert np.shares_memory(columns.data, rows.csr.data)
    assert np.array_equal(columns.toarray(), block.toarray().T)

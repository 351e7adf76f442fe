"""Sparse rows with arrays of any library compute what SciPy's do."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from mercer import PCA, KernelPCA, arrays
from mercer.arrays import (
    as_csr,
    first_entry,
    row_maxima,
    row_products,
    scale_columns,
    scale_rows,
    sparse_like,
    squared_norms,
    stack_rows,
    to_numpy,
)
from mercer.methods import Subset

LIBRARIES = ["array_api_strict", "torch"]


def array_in(library, x):
    return pytest.importorskip(library).asarray(x)


def matrix(dtype=np.float64):
    """A matrix with an empty row, an empty column, a long row and an explicit zero."""
    X = scipy.sparse.random_array((57, 40), density=0.2, rng=np.random.default_rng(0)).toarray()
    X[3], X[:, 5], X[8] = 0.0, 0.0, 1.0 + np.arange(40)
    csr = scipy.sparse.csr_array(X.astype(dtype))
    csr.data[2] = 0.0
    return csr


@pytest.fixture(params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture(params=[np.float64, np.float32])
def both(request, library, monkeypatch):
    """The matrix of SciPy, and the same in the library; rows of it are cut into parts."""
    monkeypatch.setattr("mercer.arrays.csr._LONG", 16)
    monkeypatch.setattr("mercer.arrays.csr._ENTRIES", 100)
    monkeypatch.setattr("mercer.arrays.csr._TERMS", 300)
    X = matrix(request.param)
    return X, sparse_like(X, array_in(library, np.zeros(0)))


def same(found, expected):
    dense = found.toarray() if hasattr(found, "toarray") else found
    single = expected.dtype == np.float32
    assert tuple(found.shape) == expected.shape
    assert to_numpy(dense).dtype == expected.dtype
    np.testing.assert_allclose(to_numpy(dense), expected, rtol=2e-6 if single else 1e-13)


def test_products(both, library):
    X, C = both
    rng, kind = np.random.default_rng(1), X.dtype
    V, W = (rng.random((size, 3)).astype(kind) for size in X.shape[::-1])
    same(C @ array_in(library, V), X @ V)
    same(C.T @ array_in(library, W), X.T @ W)
    same(C @ array_in(library, V[:, 0]), X @ V[:, 0])
    same(C @ array_in(library, V.astype(np.float64)), X @ V.astype(np.float64))
    D = X.toarray()
    for x, y in ((C, C), (C, array_in(library, D)), (array_in(library, D), C)):
        same(row_products(x, y), D @ D.T)


def test_products_of_no_rows_or_columns(both, library):
    X, C = both
    V, W = np.ones((40, 2), X.dtype), np.ones((0, 2), X.dtype)
    same(C[:0] @ array_in(library, V), W)
    same(C[:0].T @ array_in(library, W), 0 * V)
    same(C[3:4] @ array_in(library, V), 0 * V[:1])
    same(C[:, :0] @ array_in(library, W), np.zeros((57, 2), X.dtype))


def test_rows_without_entries(library):
    C = sparse_like(scipy.sparse.csr_array((3, 4)), array_in(library, np.zeros(0)))
    none = np.zeros((3, 4))
    for found in (C, C[[2, 0, 1]], C * 2.0):
        same(found, none)
    same(C.T, none.T)
    same(row_products(C, C), none @ none.T)
    same(row_maxima(C), none[:, 0])
    same(squared_norms(C), none[:, 0])


def test_parts(both):
    X, C = both
    D = X.toarray()
    for key in (slice(5, 20), slice(None), slice(20, 5), slice(3, 40, 4), np.array([9, 9, 3, 0])):
        same(C[key], D[key])
        same(C[key, :].T, D[key].T)
    same(C[5:30, [7, 1, 1]], D[5:30][:, [7, 1, 1]])


def test_transposed_products_reuse_the_order(both, library, monkeypatch):
    X, C = both
    C.T  # noqa: B018 (sorts)
    xp = arrays.namespace(C.data)
    monkeypatch.setattr(xp, "argsort", None)
    squares = C.with_data(C.data * C.data)
    same(squares.T @ array_in(library, np.ones(57, X.dtype)), (X**2).sum(axis=0))


def test_entrywise(both, library):
    X, C = both
    D, rng = X.toarray(), np.random.default_rng(2)
    rows, columns = (rng.random(size) for size in X.shape)
    same(squared_norms(C), (D**2).sum(axis=1))
    same(row_maxima(C * -1.0), np.abs(D).max(axis=1))
    same(C * 0.5, D * X.dtype.type(0.5))
    same(scale_rows(C, array_in(library, rows.astype(X.dtype))), D * rows.astype(X.dtype)[:, None])
    same(scale_columns(C, columns, np.float64), D * columns)
    assert C.count_nonzero() == X.nnz - 1


def test_stacked(both, library):
    X, C = both
    D = X.toarray()
    same(stack_rows([C, array_in(library, D[:9]), C[:0]]), np.vstack([D, D[:9]]))


def test_there_and_back(both):
    X, C = both
    home = sparse_like(C, np.empty(0))
    assert isinstance(home, scipy.sparse.csr_array)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(home, name), getattr(X, name))


def test_first_entry(both):
    X, C = both
    for rows in (X, C):
        assert first_entry(rows, rows.data > 100) is None
        assert first_entry(rows, rows.data > 3) == (8, 3, 4.0)


class OfLibrary:
    """A sparse matrix of CuPy, in form: SciPy's interface with arrays of another library."""

    ndim = 2

    def __init__(self, library, data, indices, indptr, shape):
        self.data, self.indices, self.indptr = (
            array_in(library, np.asarray(x)) for x in (data, indices, indptr)
        )
        self.shape, self.dtype = shape, self.data.dtype

    def tocsr(self):
        return self


def test_unsorted_and_repeated_entries(library):
    # Row 1 is out of order and has column 2 twice.
    data, indices = [5.0, 1.0, 2.0, 4.0, -3.0], [0, 3, 2, 2, 1]
    found = as_csr(OfLibrary(library, data, indices, [0, 1, 4, 4, 5], (4, 4)))
    same(found, np.array([[5.0, 0, 0, 0], [0, 0, 6.0, 1.0], [0, 0, 0, 0], [0, -3.0, 0, 0]]))
    assert found.nnz == 4
    np.testing.assert_array_equal(to_numpy(found.indices), [0, 2, 3, 1])


def test_integers_become_floats(library):
    found = as_csr(OfLibrary(library, [1, 2], [1, 0], [0, 1, 2], (2, 3)))
    same(found, np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]))


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [([0, 4], [0, 1, 2]), ([-1, 0], [0, 1, 2]), ([0, 1], [0, 2, 1]), ([0, 1], [0, 1, 3])],
)
def test_places_outside_the_shape(library, indices, indptr):
    with pytest.raises(ValueError, match="sparse matrix"):
        as_csr(OfLibrary(library, [1.0, 2.0], indices, indptr, (2, 4)))


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_coo", "uncoalesced"])
def test_tensors(layout):
    torch = pytest.importorskip("torch")
    X = matrix()
    tensor = torch.from_numpy(X.toarray())
    if layout == "uncoalesced":
        coo = X.tocoo()
        at = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        halves = torch.cat([at, at.flip(1)], dim=1)
        data = torch.from_numpy(0.5 * np.concatenate([coo.data, coo.data[::-1]]))
        tensor = torch.sparse_coo_tensor(halves, data, X.shape)
    else:
        tensor = tensor.to_sparse(layout=getattr(torch, layout))
    found = as_csr(tensor.requires_grad_())
    same(found, X.toarray())
    assert torch.equal(found.native.to_dense(), torch.from_numpy(X.toarray()))
    assert not found.data.requires_grad


def test_blocked_tensors_are_refused():
    torch = pytest.importorskip("torch")
    tensor = torch.eye(4).to_sparse_bsr((2, 2))
    with pytest.raises(TypeError, match=r"sparse_bsr.*to_sparse_csr\(\)"):
        as_csr(tensor)
    same(as_csr(tensor.to_dense().to_sparse_csr()), np.eye(4, dtype=np.float32))


def test_pointers_of_more_than_31_bits(library):
    """Where rows begin is int64; columns are int32 if they fit."""
    X = matrix()
    C = sparse_like(X, array_in(library, np.zeros(0)))
    assert (to_numpy(C.indptr).dtype, to_numpy(C.indices).dtype) == (np.int64, np.int32)
    wide = scipy.sparse.csr_array(([1.0], [2**31 + 5], [0, 1]), shape=(1, 2**31 + 9))
    C = sparse_like(wide, array_in(library, np.zeros(0)))
    assert to_numpy(C.indices).tolist() == [2**31 + 5]
    assert to_numpy((C * 3.0).data).tolist() == [3.0]


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_coo"])
def test_fits_of_tensors_on_the_host(layout):
    torch = pytest.importorskip("torch")
    X, kernel = matrix(), {"kernel": "rbf", "gamma": 0.05}
    tensor = torch.from_numpy(X.toarray()).to_sparse(layout=getattr(torch, layout))
    for make in (
        lambda: PCA(3, svd_solver="krylov", random_state=0),
        lambda: KernelPCA(3, **kernel),
        lambda: KernelPCA(3, **kernel, method=Subset(20), random_state=0),
    ):
        scores, expected = make().fit_transform(tensor), make().fit_transform(X)
        assert torch.is_tensor(scores)
        np.testing.assert_allclose(abs(scores.numpy()), abs(expected), rtol=1e-8, atol=1e-10)

"""Fingerprints of rows: the same rows have the same one, wherever they lie."""

import os

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import PCA, KernelPCA
from mercer.data import as_source, fingerprint

X = np.random.default_rng(0).standard_normal((50, 4))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((7, 3), "float32"), ((2000, 5), "int64"), ((3, 40_000), "float64"), ((2, 1), "float64")],
)
def test_the_same_rows_have_the_same_fingerprint(shape, dtype, tmp_path):
    pd = pytest.importorskip("pandas")
    rows = (100 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    rows[rows < 0] = 0
    np.save(tmp_path / "c.npy", rows)
    np.save(tmp_path / "f.npy", np.asfortranarray(rows))
    wanted = fingerprint(as_source(rows))
    for other in (
        np.asfortranarray(rows),
        pd.DataFrame(rows),
        sp.csr_array(rows),
        tmp_path / "c.npy",
        tmp_path / "f.npy",
        as_source(rows).map(lambda block: block.rows, shape[1]),
    ):
        assert fingerprint(as_source(other)) == wanted, other


def test_tensors_have_the_fingerprint_of_their_rows():
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "float64", "int64"):
        rows = (100 * X).astype(dtype)
        assert fingerprint(as_source(torch.asarray(rows))) == fingerprint(as_source(rows))


def test_other_rows_have_another():
    rows = np.random.default_rng(0).standard_normal((300, 4))
    first = fingerprint(as_source(rows))
    changed = rows.copy()
    changed[-1, -1] += 1e-9
    others = [rows[:-1], rows[::-1], rows[:, ::-1], 2 * rows, rows.astype("f4"), changed, rows.T]
    found = [fingerprint(as_source(np.ascontiguousarray(other))) for other in others]
    assert first not in found
    assert len(set(found)) == len(found)


def test_zero_is_zero():
    assert fingerprint(as_source([[0.0, 1.0]])) == fingerprint(as_source([[-0.0, 1.0]]))


@pytest.mark.filterwarnings("ignore")
def test_fingerprints_of_strings():
    words = ["ab", "c", ""]
    first = fingerprint(as_source(words))
    assert first == KernelPCA(1, kernel="substring").fit(words).fingerprint_
    assert len({first, *(fingerprint(as_source(w)) for w in (["a", "bc", ""], ["ab", "c"]))}) == 3


def test_fingerprints_of_batches():
    one, two, other = PCA(2), PCA(2), PCA(2)
    assert one.partial_fit(X[:20]).fingerprint_ == PCA(2).fit(X[:20]).fingerprint_
    first = one.partial_fit(X[20:]).fingerprint_
    assert first == two.partial_fit(X[:20]).partial_fit(X[20:]).fingerprint_
    assert first != other.partial_fit(X[20:]).partial_fit(X[:20]).fingerprint_
    assert one.fit(X).fingerprint_ == fingerprint(as_source(X))
    kernel = KernelPCA(2, kernel="rbf").partial_fit(X[:20]).partial_fit(X[20:])
    assert kernel.fingerprint_ == first


def test_a_failed_fit_leaves_the_fingerprint():
    model = PCA(2).fit(X)
    before = model.fingerprint_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((5, 4), np.nan))
    assert model.fingerprint_ == before


def test_a_file_of_many_rows_is_not_read_for_it(tmp_path):
    path = tmp_path / "rows.npy"
    with path.open("wb") as file:  # 40 GB that are not on the disk
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**8, 50)}
        np.lib.format.write_array_header_1_0(file, header)
        os.truncate(path, file.tell() + 10**8 * 50 * 8)
    assert fingerprint(as_source(path)).startswith("100000000x50 float64 ")

"""Dask collections whose chunks have unknown sizes: counted, and then like all others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from mercer import PCA, KernelPCA
from mercer.methods import Exact, Subset
from mercer.sketches import Hashing

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask.array is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")

N, D = 300, 9
ROWS = np.random.default_rng(0).normal(size=(N, D)) * np.linspace(5, 0.3, D) + 2.0
ROWS[60:140, 0] = -50.0  # all rows of one chunk, and more
TABLE = dd.from_pandas(pd.DataFrame(ROWS[ROWS[:, 0] > 0]), npartitions=4)


def some(chunks):
    X = da.from_array(ROWS, chunks=chunks)
    return X[X[:, 0] > 0]


KINDS = {
    "array": lambda: some((60, D)),
    "split along columns": lambda: some((60, 4)),
    "values of a table": lambda: TABLE.to_dask_array(),
    "table": lambda: TABLE,
}


def kernel_pca(method):
    return KernelPCA(4, kernel="rbf", gamma=0.01, method=method, random_state=0)


MODELS = [
    PCA(3),
    PCA(3, svd_solver="randomized", random_state=0),
    *(kernel_pca(method) for method in ("exact", Exact(store="none"), Subset(60), "features")),
    Hashing(4),
]


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


CASES = [
    *((MODELS[0], kind) for kind in KINDS),
    *zip(
        MODELS[1:], ["table", "array", "table", "values of a table", "array", "table"], strict=True
    ),
    (MODELS[2], "split along columns"),
]


@pytest.mark.parametrize(("model", "kind"), CASES, ids=str)
@pytest.mark.filterwarnings("ignore:X is split along its columns")
def test_fit_and_fit_transform_treat_them_alike(model, kind):
    """The same scores as in memory, in the same chunks as of sizes that are known."""
    X, rows = KINDS[kind](), ROWS[ROWS[:, 0] > 0]
    known = (X.to_dask_array() if kind == "table" else X.copy()).compute_chunk_sizes()
    wanted = clone(model).fit_transform(rows)
    fitted = clone(model).fit(X)
    together = clone(model).fit_transform(X)
    assert together.chunks == clone(model).fit_transform(known).chunks
    for scores in (together, fitted.transform(X), clone(model).fit(known).transform(X)):
        assert isinstance(scores, da.Array)
        np.testing.assert_allclose(scores.compute(), wanted, atol=1e-8 * np.abs(wanted).max())
    assert np.isnan(X.shape[0]) or kind == "table"  # the user's own array stays as it was


@pytest.mark.parametrize("call", ["fit", "fit_transform", "transform"])
def test_they_are_counted_once(call):
    seen = []

    def count(chunk):
        seen.append(len(chunk))
        return chunk

    X = da.from_array(ROWS, chunks=(50, D)).map_blocks(count, dtype=float, meta=ROWS[:0])
    known = X[:, :]
    unknown = X[da.from_array(np.ones(N, bool), chunks=50)]
    computed = {}
    pca = PCA(3).fit(ROWS)
    for name, rows in (("known", known), ("unknown", unknown)):
        seen.clear()
        getattr(pca, call)(rows)
        computed[name] = sum(seen)
    assert computed["unknown"] == computed["known"] + N

"""What is written to AnnData objects is what scanpy writes, and scanpy goes on with it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import cells
from mercer import PCA, KernelPCA, NoveltyDetector, as_source, from_anndata, to_anndata
from tests.annotated import MAKERS, real, stand_in
from tests.data.test_formats import write_h5ad

N, D, K = 120, 60, 5
FLAGS = np.arange(D) % 3 != 0


def data(make=stand_in, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    X = np.log1p(rng.poisson(np.exp(rng.standard_normal((N, 8)) @ rng.standard_normal((8, D)) / 3)))
    X = X.astype(dtype)
    obsm = {"Z": X[:, :12].astype(np.float64)}
    var = {"highly_variable": FLAGS, "mine": ~FLAGS}
    return make(scipy.sparse.csr_matrix(X), layers={"log": X + 1}, obsm=obsm, var=var)


def snapshot(adata):
    return {group: dict(getattr(adata, group)) for group in ("obsm", "varm", "uns")}


def assert_same_fields(ours, theirs):
    """The same keys, types, dtypes and shapes, and nearly the same numbers."""
    assert ours.keys() == theirs.keys()
    for key, expected in theirs.items():
        found = ours[key]
        if isinstance(expected, dict):
            assert_same_fields(found, expected)
        elif isinstance(expected, np.ndarray):
            assert type(found) is np.ndarray
            assert found.dtype == expected.dtype
            assert_allclose(found.astype(float), expected.astype(float), atol=2e-4)
        else:
            assert type(found) is type(expected), key
            assert found == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layer": "log"},
        {"mask_var": "highly_variable"},
        {"mask_var": "mine", "layer": "log"},
        {"mask_var": np.arange(D) < 30},
        {"mask_var": None, "key_added": "pca_again"},
    ],
    ids=["X", "layer", "highly variable", "column", "array", "key"],
)
def test_the_same_entries_as_scanpy(options, dtype):
    scanpy = pytest.importorskip("scanpy")
    ours, theirs = data(real, dtype), data(real, dtype)
    scanpy.pp.pca(theirs, n_comps=K, **{"mask_var": None, **options})
    if isinstance(options.get("mask_var"), np.ndarray):  # scanpy 1.12 compares it with a text
        theirs.uns["pca"]["params"]["use_highly_variable"] = False
    matrix = {name: value for name, value in options.items() if name != "key_added"}
    to_anndata(PCA(K).fit(from_anndata(ours, **matrix)), ours, **options)
    assert_same_fields(snapshot(ours), snapshot(theirs))


def test_scanpy_goes_on():
    scanpy = pytest.importorskip("scanpy")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    adata = data(real)
    to_anndata(PCA(K).fit(from_anndata(adata, mask_var="highly_variable")), adata)
    scanpy.pp.neighbors(adata, n_neighbors=10)
    assert adata.obsp["distances"].shape == (N, N)
    scanpy.pl.pca(adata, annotate_var_explained=True, show=False)
    scanpy.pl.pca_variance_ratio(adata, n_pcs=K, show=False)
    scanpy.pl.pca_loadings(adata, components="1,2", show=False)
    plt.close("all")


@pytest.mark.parametrize("make", MAKERS)
def test_every_variable_has_its_row(make):
    adata = data(make)
    X = adata.X.toarray().astype(np.float64)
    order = np.random.default_rng(1).permutation(D)[:40]
    rows = as_source(pd.DataFrame(X[:, order], columns=[f"g{j}" for j in order]))
    to_anndata(PCA(K).fit(rows), adata)
    peer = decomposition.PCA(K, svd_solver="full").fit(X[:, order])
    expected = np.zeros((D, K))
    expected[order] = peer.components_.T
    assert_allclose(adata.varm["PCs"], expected, atol=1e-6)
    assert_allclose(adata.obsm["X_pca"], peer.transform(X[:, order]), atol=1e-5)
    assert_allclose(adata.uns["pca"]["variance"], peer.explained_variance_, rtol=1e-6)
    ratio = adata.uns["pca"]["variance_ratio"]
    assert_allclose(ratio, peer.explained_variance_ratio_, rtol=1e-6)
    assert_array_equal(adata.uns["pca"]["params"]["mask_var"], np.isin(np.arange(D), order))


@pytest.mark.parametrize("make", MAKERS)
def test_columns_without_names_go_by_their_order(make):
    adata = data(make)
    X = adata.X.toarray()
    to_anndata(PCA(K).fit(X), adata)
    whole = adata.varm["PCs"].copy()
    assert_allclose(adata.obsm["X_pca"], PCA(K).fit_transform(X), atol=1e-5)
    model = PCA(K).fit(X[:, FLAGS])
    with pytest.raises(ValueError, match=r"40 columns without names, but adata has 60 variables"):
        to_anndata(model, adata)
    assert_array_equal(adata.varm["PCs"], whole)
    to_anndata(model, adata, mask_var="highly_variable")
    assert_array_equal(adata.varm["PCs"][FLAGS], model.components_.T.astype(np.float64))
    assert not adata.varm["PCs"][~FLAGS].any()
    assert adata.uns["pca"]["params"]["use_highly_variable"] is True


@pytest.mark.parametrize("make", MAKERS)
def test_columns_of_a_representation(make):
    adata = data(make)
    adata.varm["PCs"] = np.ones((D, 2))
    model = PCA(3).fit(from_anndata(adata, use_rep="Z"))
    to_anndata(model, adata, use_rep="Z")
    assert_array_equal(adata.uns["pca"]["components"], model.components_.T)
    assert adata.uns["pca"]["params"]["obsm"] == "Z"
    assert_allclose(adata.obsm["X_pca"], model.transform(adata.obsm["Z"]), atol=1e-5)
    assert "PCs" not in adata.varm  # of another model


@pytest.mark.parametrize("make", MAKERS)
def test_kernel_pca_has_no_loadings(make):
    adata = data(make)
    to_anndata(PCA(K).fit(adata), adata)
    model = KernelPCA(3, kernel="rbf", gamma=0.02).fit(adata)
    to_anndata(model, adata)
    assert "PCs" not in adata.varm
    assert_allclose(adata.obsm["X_pca"], model.transform(adata), atol=1e-6)
    assert_array_equal(adata.uns["pca"]["variance"], model.explained_variance_)
    assert adata.uns["pca"]["params"]["kernel"] == "RBF(0.02)"
    X = adata.X.toarray()
    precomputed = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    to_anndata(precomputed, adata, precomputed.transform(X @ X.T), key_added="dot")
    assert adata.obsm["dot"].shape == (N, 3)


@pytest.mark.parametrize("make", MAKERS)
def test_pipelines_and_backed_objects(make, tmp_path):
    X = data().X.toarray()
    model = make_pipeline(StandardScaler(), PCA(K)).fit(
        pd.DataFrame(X, columns=[f"g{j}" for j in range(D)])
    )
    write_h5ad(tmp_path / "x.h5ad", X)
    before = (tmp_path / "x.h5ad").read_bytes()
    adata = make(filename=tmp_path / "x.h5ad", **({"shape": X.shape} if make is stand_in else {}))
    to_anndata(model, adata)
    assert_allclose(adata.obsm["X_pca"], model.transform(pd.DataFrame(X).to_numpy()), atol=1e-4)
    assert_array_equal(adata.varm["PCs"], model[-1].components_.T)
    assert (tmp_path / "x.h5ad").read_bytes() == before


def test_scores_that_were_computed_before():
    adata = data()
    model = PCA(K).fit(adata)
    scores = model.transform(adata)
    to_anndata(model, adata)
    expected = adata.obsm["X_pca"]
    adata._X = None  # not read again
    dask = pytest.importorskip("dask.array")
    for known in (scores, as_source(scores), dask.from_array(scores, chunks=(50, -1))):
        to_anndata(model, adata, known, key_added="known")
        assert_array_equal(adata.obsm["known"], expected)
        assert adata.obsm["known"].dtype == np.float32


def test_scores_beyond_float32_keep_their_digits():
    adata = data(dtype=np.float64)
    adata._X = adata._X * 1e60
    to_anndata(PCA(K).fit(adata), adata)
    assert adata.obsm["X_pca"].dtype == np.float64
    assert np.isfinite(adata.obsm["X_pca"]).all()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (lambda X: PCA(K), {}, NotFittedError, "not fitted"),
        (
            lambda X: decomposition.PCA(K).fit(X),
            {},
            TypeError,
            "A PCA cannot be written",
        ),
        (lambda X: NoveltyDetector(PCA(K)), {}, TypeError, "A NoveltyDetector cannot"),
        (lambda X: PCA(K).fit(named(X, "h")), {}, ValueError, "lacks 60 variables of the model: "),
        (
            lambda X: PCA(K).fit(named(X, "g")),
            {"mask_var": "mine"},
            ValueError,
            "mask_var selects 20 variables, but not those that the model was fitted to, .* 60",
        ),
        (lambda X: PCA(K).fit(X), {"layer": "none"}, ValueError, r"no layers\['none'\]"),
        (lambda X: PCA(K).fit(X), {"use_rep": "Z"}, ValueError, "X has 12 features, but PCA"),
        (lambda X: PCA(K).fit(X), {"use_rep": "Z", "layer": "log"}, ValueError, "exclude each"),
        (
            lambda X: PCA(K).fit(X),
            {"scores": np.ones((N, 2))},
            ValueError,
            r"scores have shape \(120, 2\), expected \(120, 5\): 120 observations and 5 components",
        ),
        (
            lambda X: make_pipeline(decomposition.PCA(9), PCA(K)).fit(X),
            {},
            ValueError,
            "PCA and the steps after it turn 60 columns into 9",
        ),
    ],
)
def test_nothing_is_written_if_anything_is_wrong(make, model, options, error, message):
    adata = data(make)
    adata.varm["PCs"] = np.ones((D, 2))
    before = snapshot(adata)
    with pytest.raises(error, match=message):
        to_anndata(model(adata.X.toarray()), adata, **options)
    after = snapshot(adata)
    assert {group: [*members] for group, members in after.items()} == {
        group: [*members] for group, members in before.items()
    }
    assert_array_equal(adata.varm["PCs"], 1.0)


def named(X, letter):
    return pd.DataFrame(X, columns=[f"{letter}{j}" for j in range(D)])


def test_other_objects_are_refused(tmp_path):
    model = PCA(K).fit(data())
    with pytest.raises(TypeError, match="adata is a csr_matrix, expected an AnnData object"):
        to_anndata(model, data().X)
    write_h5ad(tmp_path / "x.h5ad", data().X.toarray())
    view = real(filename=tmp_path / "x.h5ad")[:, :30]
    with pytest.raises(ValueError, match="view of a backed AnnData object, to which nothing can"):
        to_anndata(PCA(K).fit(view), view)


def test_views_become_objects_of_their_own():
    adata = data(real)
    view = adata[:50, FLAGS]
    with pytest.warns(UserWarning, match="view"):
        to_anndata(PCA(K).fit(view), view)
    assert view.obsm["X_pca"].shape == (50, K)
    assert not adata.obsm.keys() & {"X_pca"}


@pytest.mark.slow
def test_neighbors_of_cells_are_those_of_an_exact_svd():
    scanpy = pytest.importorskip("scanpy")
    try:
        adata = cells()
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    to_anndata(PCA(50, random_state=0).fit(adata), adata)
    X = adata.X.toarray().astype(np.float64)
    X -= X.mean(axis=0)
    values, U = np.linalg.eigh(X @ X.T)
    adata.obsm["exact"] = U[:, :-51:-1] * np.sqrt(values[:-51:-1])
    for name in ("X_pca", "exact"):
        scanpy.pp.neighbors(adata, n_neighbors=15, use_rep=name, key_added=name)
    ours, exact = (adata.obsp[f"{name}_distances"] > 0 for name in ("X_pca", "exact"))
    assert ours.nnz == exact.nnz
    assert ours.multiply(exact).nnz >= 0.999 * exact.nnz

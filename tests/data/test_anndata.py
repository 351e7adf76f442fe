"""AnnData objects as rows: the same numbers and names from memory, from a file and on Dask."""

import os

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, as_source, config_context, from_anndata
from mercer.data.anndata import unique_names
from mercer.data.errors import FileError
from mercer.data.files.anndata import CSRRows
from mercer.estimators.inspection import selected_scores
from tests.annotated import MAKERS, real, stand_in
from tests.data.test_formats import write_h5ad

N, D = 200, 12
FLAGS = np.arange(D) % 3 == 0
FORMS = {
    "dense": np.asarray,
    "csr": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(70, -1)),
}


def counts(seed=0, n=N):
    return np.random.default_rng(seed).poisson(0.7, (n, D)).astype(np.float32)


def host(rows):
    rows = rows.collect() if hasattr(rows, "collect") else rows
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("form", FORMS)
def test_matrices(make, form):
    X, Y = counts(), counts(1)
    adata = make(FORMS[form](X), layers={"log": FORMS[form](Y)}, var={"hv": FLAGS})
    names = [f"g{j}" for j in range(D)]
    for rows, truth, columns in (
        (as_source(adata), X, names),
        (from_anndata(adata, layer="log"), Y, names),
        (from_anndata(adata, mask_var="hv"), X[:, FLAGS], names[::3]),
        (from_anndata(adata, layer="log", mask_var=~FLAGS), Y[:, ~FLAGS], None),
        (from_anndata(adata, mask_var=pd.Series(FLAGS, adata.var_names)), X[:, FLAGS], None),
        (from_anndata(adata, mask_var=FLAGS.astype(object)), X[:, FLAGS], None),
    ):
        assert_array_equal(host(rows), truth)
        assert columns is None or list(rows.names) == columns
        assert list(rows.extra_columns[rows.id][:2]) == ["cell0", "cell1"]
        assert rows.sparse == (form in ("csr", "csc"))


@pytest.mark.parametrize("make", MAKERS)
def test_representations_have_the_names_that_they_know(make):
    Z = counts(2)[:, :3]
    table = pd.DataFrame(Z, columns=list("uvw"), index=[f"cell{i}" for i in range(N)])
    adata = make(counts(), obsm={"X_scvi": Z, "scores": table})
    for key, names in (("X_scvi", None), ("scores", ["u", "v", "w"])):
        rows = from_anndata(adata, use_rep=key)
        assert_array_equal(host(rows), Z)
        assert rows.names == names


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("estimator", [PCA(3), KernelPCA(3, kernel="rbf", gamma=0.1)])
def test_estimators_give_arrays(estimator, form):
    X = counts()
    expected = estimator.fit(X.astype(np.float64)).transform(X.astype(np.float64))
    adata = stand_in(FORMS[form](X))
    scores = estimator.fit_transform(adata)
    assert type(scores) is np.ndarray
    assert_allclose(np.abs(scores), np.abs(expected), atol=1e-4)
    assert_allclose(estimator.fit(adata).transform(adata), scores, atol=1e-5)
    assert list(estimator.feature_names_in_[:2]) == ["g0", "g1"]


@pytest.mark.parametrize("make", MAKERS)
def test_a_model_takes_its_variables_by_name(make, tmp_path):
    X = counts()
    adata = make(X, var={"hv": FLAGS})
    model = PCA(2).fit(from_anndata(adata, mask_var="hv"))
    expected = model.transform(as_source(X[:, FLAGS])).collect()
    assert_array_equal(model.transform(adata), expected)
    assert_array_equal(selected_scores(model, adata, None, 2)[0], expected)  # of displays
    model.transform(adata, out=tmp_path / "s.csv")
    assert pd.read_csv(tmp_path / "s.csv")["obs_names"].tolist()[:2] == ["cell0", "cell1"]
    write_h5ad(tmp_path / "x.h5ad", X, names=[f"g{j}" for j in range(D)])
    assert_allclose(model.transform(make(filename=tmp_path / "x.h5ad", **shape(make))), expected)
    other = make(X[:, :5])
    with pytest.raises(ValueError, match="missing: 'g6', 'g9'"):
        model.transform(other)


def shape(make):
    """The stand-in does not read the file to know its shape."""
    return {"shape": (N, D)} if make is stand_in else {}


def test_views():
    X = counts()
    dask = pytest.importorskip("dask.array")
    for matrix in (X, scipy.sparse.csr_matrix(X), dask.from_array(X, chunks=(70, -1))):
        view = real(matrix)[10:50, [4, 2]]
        rows = as_source(view)
        assert_array_equal(host(rows), X[10:50][:, [4, 2]])
        assert list(rows.names) == ["g4", "g2"]
        assert PCA(1).fit_transform(view).shape == (40, 1)


def test_repeated_names_are_made_unique_as_in_a_file(tmp_path):
    names = ["a", "b", "a", "a-1", "b", "a"]
    adata = stand_in(counts()[:, :6])
    adata.var_names = pd.Index(names)
    with pytest.warns(UserWarning, match="2 names in var_names are not unique"):
        ours = as_source(adata).names
    write_h5ad(tmp_path / "x.h5ad", counts()[:, :6], names=names)
    with pytest.warns(UserWarning, match="2 names in var are not unique"):
        assert as_source(tmp_path / "x.h5ad").names == ours
    assert ours == ["a", "b", "a-2", "a-1", "b-1", "a-3"]


def test_unique_names_are_those_of_anndata():
    utils = pytest.importorskip("anndata.utils")
    rng = np.random.default_rng(0)
    for _ in range(50):
        names = [f"{'ab'[i % 2]}{'-1' * (i // 2)}" for i in rng.integers(0, 6, 15)]
        expected = list(utils.make_index_unique(pd.Index(names)))
        unique, repeated = unique_names(names)
        assert unique == expected
        assert repeated == sum(names.count(name) > 1 for name in set(names))


X_ = "The AnnData object has no "


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "lgo"}, X_ + r"layers\['lgo'\]. Its layers: 'log'."),
        ({"use_rep": "pca"}, X_ + r"obsm\['pca'\]. Its obsm: 'X_scvi'."),
        (
            {"mask_var": "name"},
            r"mask_var='name' must contain only True and False, .* contains 'x'",
        ),
        ({"mask_var": "hvg"}, "'hvg' is not a column of var. Its boolean columns: 'hv'."),
        ({"mask_var": FLAGS[1:]}, r"has shape \(11,\), but there are 12 variables"),
        ({"mask_var": np.zeros(D, bool)}, "is False for all variables"),
        ({"mask_var": FLAGS.astype(int)}, "only True and False, but contains 1"),
        ({"mask_var": pd.array([None, *FLAGS[1:]], "boolean")}, "but contains <NA>"),
        ({"mask_var": pd.Series(FLAGS)}, "index differs from var_names"),
        ({"layer": "log", "use_rep": "X_scvi"}, "layer and use_rep='X_scvi' exclude each other"),
        ({"mask_var": FLAGS, "use_rep": "X_scvi"}, "mask_var and use_rep='X_scvi' exclude"),
    ],
)
def test_refusals(make, options, message):
    X, var = counts(), {"hv": FLAGS, "name": ["x"] * D}
    adata = make(X, layers={"log": X}, obsm={"X_scvi": X[:, :2]}, var=var)
    with pytest.raises(ValueError, match=message):
        from_anndata(adata, **options)


def test_what_is_not_in_memory_is_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    for adata, message in (
        (stand_in(zarr.ones((4, 3))), "X of the AnnData object is a Array, which is not in memory"),
        (stand_in(layers={"log": counts()}), "has no X. Its layers: 'log'"),
    ):
        with pytest.raises(ValueError, match=message):
            as_source(adata)
    with pytest.raises(TypeError, match="adata is a ndarray, expected an AnnData object"):
        from_anndata(counts())


# Backed by a file.


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
def test_a_backed_matrix_is_read_block_by_block(make, dense, tmp_path):
    X = counts(n=20_000)
    write_h5ad(tmp_path / "x.h5ad", X, dense)
    adata = make(filename=tmp_path / "x.h5ad", **({"shape": X.shape} if make is stand_in else {}))
    adata.var_names = [f"h{j}" for j in range(D)]  # in memory only
    if make is real:
        adata.var["hv"] = FLAGS
    with config_context(memory="1.5MiB"):
        rows = as_source(adata)
        assert rows.waits  # for the disk
        assert dense or isinstance(rows, CSRRows)
        assert rows.names[:2] == ["h0", "h1"]
        assert list(rows.extra_columns["obs_names"][:2]) == ["cell0", "cell1"]
        some = from_anndata(adata, mask_var="hv" if make is real else FLAGS)
        model = PCA(3).fit(adata)
        assert model.transform(adata).shape == (len(X), 3)
    assert_array_equal(host(some), X[:, FLAGS])
    expected = PCA(3).fit(X)
    assert_allclose(model.explained_variance_, expected.explained_variance_, rtol=1e-5)
    if dense:  # unpacked once, to a temporary file
        return
    os.utime(tmp_path / "x.h5ad", ns=(0, 10**18))
    with pytest.raises(FileError, match="changed while it was being read"):
        PCA(3).fit(rows)


@pytest.mark.parametrize("make", MAKERS)
def test_a_backed_file_of_another_shape(make, tmp_path):
    path = tmp_path / "x.h5ad"
    write_h5ad(path, counts())
    adata = make(filename=path, **shape(make))
    if make is real:
        adata.file.close()
    write_h5ad(path, counts(n=30))
    with pytest.raises(FileError, match=r"shape \(30, 12\), but .* shape \(200, 12\).*Open it"):
        PCA(1).fit(adata)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        PCA(1).fit(adata)


def test_views_of_a_backed_object(tmp_path):
    X = counts()
    write_h5ad(tmp_path / "x.h5ad", X, False)
    adata = real(filename=tmp_path / "x.h5ad")
    view = adata[:, ["g5", "g0", "g7"]]
    assert_array_equal(host(as_source(view)), X[:, [5, 0, 7]])
    rows = from_anndata(view, mask_var=[True, False, True])
    assert_array_equal(host(rows), X[:, [5, 7]])
    assert list(rows.names) == ["g5", "g7"]
    for other in (adata[:50], adata[np.roll(np.arange(N), 1)]):
        with pytest.raises(ValueError, match=r"view of observations .* Pass adata.to_memory"):
            PCA(1).fit(other)
        assert_array_equal(host(as_source(other.to_memory())), other.to_memory().X.toarray())
    adata.var_names = [f"g{j}" for j in range(D)][::-1]  # in memory only, and of other columns
    assert_array_equal(host(as_source(adata[:, "g0"])), X[:, -1:])


def test_a_backed_object_that_may_be_written(tmp_path):
    anndata = pytest.importorskip("anndata")
    X = counts()
    write_h5ad(tmp_path / "x.h5ad", X)
    adata = anndata.read_h5ad(tmp_path / "x.h5ad", backed="r+")
    adata.X[3] = 5.0
    X[3] = 5.0
    assert_array_equal(host(as_source(adata)), X)


def test_names_as_pandas_3_writes_them(tmp_path):
    """Nullable strings are a group of values and a mask."""
    path = tmp_path / "x.h5ad"
    write_h5ad(path, counts(n=3))
    with h5py.File(path, "a") as file:
        for table, index in (("var", "gene"), ("obs", "_index")):
            names = file[table][index][:]
            del file[table][index]
            group = file[table].create_group(index)
            group["values"], group["mask"] = names, np.zeros(len(names), bool)
    rows = as_source(path)
    assert rows.names[:2] == ["g0", "g1"]
    assert list(rows.extra_columns["_index"]) == ["cell0", "cell1", "cell2"]

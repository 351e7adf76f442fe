"""mercer fit --obsm: the result of scanpy's PCA in a copy of an .h5ad file."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from mercer import PCA, KernelPCA, as_source, load
from mercer.cli import annotate
from tests.data.test_formats import encode, write_h5ad

h5py = pytest.importorskip("h5py", reason=".h5ad files need h5py: mercer[files]")
N, D, K = 40, 9, 3


@pytest.fixture
def path(tmp_path):
    """A file with X, a layer, a representation, and results of an earlier model."""
    X = np.random.default_rng(0).poisson(1.0, (N, D)).astype(np.float32)
    write_h5ad(tmp_path / "cells.h5ad", X, False)
    with h5py.File(tmp_path / "cells.h5ad", "a") as file:
        for name in ("layers", "obsm", "varm", "uns"):
            encode(file.create_group(name), "dict", "0.1.0")
        file["layers/log"], file["obsm/X_pca"] = np.log1p(X), np.ones((N, 2))
        file["varm/PCs"], file["obsm/Z"] = np.ones((D, 2)), X[:, :4] + 1
        for name in ("layers/log", "obsm/X_pca", "varm/PCs", "obsm/Z"):
            encode(file[name], "array")
    return tmp_path / "cells.h5ad"


def entries(path):
    """All members of obsm, varm and uns: values of arrays and texts, and how they are encoded."""
    found = {}

    def visit(name, member):
        kind = (member.attrs["encoding-type"], member.attrs["encoding-version"])
        value = member[()] if hasattr(member, "shape") else None
        found[name] = (value.decode() if isinstance(value, bytes) else value, kind)

    with h5py.File(path) as file:
        for group in ("obsm", "varm", "uns"):
            file[group].visititems(lambda name, x, group=group: visit(f"{group}/{name}", x))
    return found


ARRAY, DICT, NUMBER = ("array", "0.2.0"), ("dict", "0.1.0"), ("numeric-scalar", "0.2.0")


def test_a_copy_with_the_result(mercer, path):
    before = path.read_bytes()
    done = mercer("fit", path, "--components", K, "--obsm", "--json").json
    assert path.read_bytes() == before
    assert {each.name for each in Path().iterdir()} == {"cells.h5ad", "cells_pca.h5ad"}
    assert done["annotated"] == str(path.with_name("cells_pca.h5ad"))
    assert done["model"] is None
    found = entries("cells_pca.h5ad")
    model = PCA(K, random_state=0).fit(as_source(path))
    for name, value, kind in (
        ("obsm/X_pca", model.transform(path).collect(), ARRAY),
        ("obsm/Z", entries(path)["obsm/Z"][0], ARRAY),
        ("varm/PCs", model.components_.T, ARRAY),
        ("uns/pca", None, DICT),
        ("uns/pca/variance", model.explained_variance_, ARRAY),
        ("uns/pca/variance_ratio", model.explained_variance_ratio_, ARRAY),
        ("uns/pca/params", None, DICT),
        ("uns/pca/params/zero_center", True, NUMBER),
        ("uns/pca/params/use_highly_variable", False, NUMBER),
    ):
        stored, encoding = found.pop(name)
        assert encoding == kind
        assert stored is value or np.array_equal(stored, value)
        assert getattr(stored, "dtype", bool) != np.float64 or name == "obsm/Z"
    assert not found
    shutil.copy("cells_pca.h5ad", "again.h5ad")
    again = mercer("fit", "again.h5ad", "--components", K, "--obsm", "-o", "b.h5ad", "--json").json
    assert again["explained_variance"] == done["explained_variance"]  # X is as it was


def test_the_copy_opens_in_anndata_and_scanpy(mercer, path):
    anndata = pytest.importorskip("anndata")
    mercer("fit", f"{path}::layers/log", "--columns", "g1,g3,g5,g7", "--obsm", "-o", "b.h5ad")
    adata = anndata.read_h5ad("b.h5ad")
    model = PCA(0.95).fit(as_source(f"{path}::layers/log").map(lambda b: b.rows[:, 1:8:2], 4))
    assert np.allclose(adata.varm["PCs"][1:8:2], model.components_.T, atol=1e-6)
    assert not adata.varm["PCs"][::2].any()
    params = adata.uns["pca"]["params"]
    assert params["layer"] == "log"
    assert params["mask_var"].tolist() == [j in (1, 3, 5, 7) for j in range(D)]
    scanpy = pytest.importorskip("scanpy")
    scanpy.pp.neighbors(adata, n_neighbors=5, use_rep="X_pca")
    scanpy.pl.pca_loadings(adata, components="1,2", n_points=4, show=False)


def test_other_files_beside_the_copy(mercer, path):
    outputs = ("-o", "m.mercer", "--scores", "s.csv")
    mercer("fit", path, "--kernel", "rbf", "--components", K, "--obsm", *outputs)
    model = load("m.mercer")
    assert isinstance(model, KernelPCA)
    found = entries("cells_pca.h5ad")
    assert found["uns/pca/params/kernel"] == (repr(model.kernel_), ("string", "0.2.0"))
    assert not any(name.startswith("varm") for name in found)
    scores = np.loadtxt("s.csv", delimiter=",", skiprows=1, usecols=range(1, K + 1))
    assert np.allclose(found["obsm/X_pca"][0], scores, atol=1e-6)


def test_a_representation_and_steps(mercer, path):
    done = mercer("fit", f"{path}::obsm/Z", "--components", 2, "--obsm", "-o", "b.h5ad", "--json")
    found = entries("b.h5ad")
    assert found["uns/pca/components"][0].shape == (4, 2)
    assert found["uns/pca/params/obsm"][0] == "Z"
    assert "varm/PCs" not in found
    assert done.json["annotated"] == "b.h5ad"
    mercer("fit", path, "--kernel", "linear", "--scale", "zscore", "--obsm", "-o", "c.h5ad")
    assert entries("c.h5ad")["obsm/X_pca"][0].shape[0] == N


def test_groups_that_the_file_lacks_are_made(mercer, tmp_path):
    write_h5ad(tmp_path / "x.h5ad", np.random.default_rng(0).normal(size=(N, D)))
    mercer("fit", "x.h5ad", "--obsm", "--components", 2)
    assert entries("x_pca.h5ad")["varm/PCs"][0].shape == (D, 2)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["cells.h5ad"], 2, "Missing option '--output' / '-o'."),
        (["x.csv", "--obsm"], 2, "--obsm writes into a copy of an .h5ad file, but the data is x."),
        (["-", "--obsm"], 2, "--obsm writes into a copy of an .h5ad file, but the data is -."),
        (["cells.h5ad::raw/X", "--obsm"], 2, "X, layers/NAME or obsm/NAME of the file, not raw/X"),
        (["cells.h5ad", "--obsm", "-o", "cells.h5ad"], 1, "is an input of this command"),
        (["cells.h5ad::layers/log", "--obsm", "-o", "cells.h5ad"], 1, "is an input of this"),
        (["cells.h5ad", "--obsm", "-o", "old.h5ad"], 1, "old.h5ad already exists; use --force"),
        (["cells.h5ad", "--obsm", "-o", "x.csv"], 2, "use a name that ends in .mercer"),
        (["none.h5ad", "--obsm"], 1, "none.h5ad"),
        (["cells.h5ad", "-o", "b.h5ad"], 2, "use a name that ends in .mercer"),
    ],
)
def test_refusals(mercer, path, arguments, code, said):
    Path("old.h5ad").write_text("mine")
    files = {each: each.read_bytes() for each in Path().iterdir()}
    assert said in mercer("fit", *arguments, code=code).err
    assert {each: each.read_bytes() for each in Path().iterdir()} == files


@pytest.mark.parametrize("group", ["obsm", "uns"])
def test_links_are_not_followed(mercer, path, group):
    other = path.with_name("other.h5")
    with h5py.File(other, "w") as file:
        file.create_group(group)
    with h5py.File(path, "a") as file:
        del file[group]
        file[group] = h5py.ExternalLink("other.h5", group)
    before = other.read_bytes()
    done = mercer("fit", path, "--components", K, "--obsm", code=1)
    assert f"{group} is a link. Rewrite the file" in done.err
    assert other.read_bytes() == before
    assert not Path("cells_pca.h5ad").exists()


def test_tables_of_old_files_are_refused(mercer, path):
    with h5py.File(path, "a") as file:
        del file["obsm"]
        file["obsm"] = np.zeros(N, [("X_pca", "f4", 2)])
    done = mercer("fit", path, "--components", K, "--obsm", code=1)
    assert "obsm is a table, as AnnData wrote it before version 0.7" in done.err


def test_a_file_that_changes_after_it_was_read(mercer, path, monkeypatch):
    write = annotate.AnnotatedCopy.write

    def late(self, *arguments):
        os.utime(path, ns=(0, 10**18))
        return write(self, *arguments)

    monkeypatch.setattr(annotate.AnnotatedCopy, "write", late)
    done = mercer("fit", path, "--components", K, "--obsm", "-o", "b.h5ad", "--json", code=1)
    assert "changed while it was being read" in json.loads(done.out)["error"]
    assert {each.name for each in Path().iterdir()} == {"cells.h5ad"}

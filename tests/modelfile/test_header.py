"""What a file tells of its model; files of old formats; fingerprints."""

import builtins
import importlib.metadata
import json
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, Denoiser, KernelPCA, NearestProjection, NoveltyDetector, SubspaceClassifier
from mercer.data import as_source, fingerprint
from mercer.kernels import RBF, Linear, parse
from mercer.modelfile import container, read_header
from tests.modelfile import frozen

X = np.random.default_rng(0).standard_normal((50, 4))
Y = np.repeat([0, 1], 25)


def header_of(model, folder, **how):
    mercer.save(model, folder / "model.mercer", **how)
    return read_header(folder / "model.mercer")


def test_everything_is_told(tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = KernelPCA(3, kernel=RBF(0.1) + 2 * Linear(), random_state=7).fit(table)
    header = header_of(model, tmp_path, origin={"command": "mercer fit"})
    assert header.format == 1
    assert header.estimator == "KernelPCA"
    assert parse(header.kernel) == model.kernel_
    assert header.method == repr(model.plan_.method)
    assert header.parameters.keys() == model.get_params(deep=False).keys()
    assert header.parameters["random_state"] == "7"
    assert header.preprocessing == []
    assert header.feature_names == list("abcd")
    assert header.n_features == 4
    assert header.certificate["sentence"] == model.certificate_.sentence
    assert header.certificate["gap"]["value"] == float(model.certificate_.gap)
    assert header.spectrum["eigenvalues"] == model.explained_variance_.tolist()
    assert header.spectrum["shares"] == model.explained_variance_ratio_.tolist()
    assert header.versions["mercer"] == mercer.__version__
    assert header.versions["numpy"] == importlib.metadata.version("numpy")
    assert header.fingerprint == model.fingerprint_ == fingerprint(as_source(X))
    assert header.origin == {"command": "mercer fit"}
    assert header.created.endswith("+00:00")
    assert header.checksum == container.read_contents(tmp_path / "model.mercer").texts["checksum"]
    json.dumps(vars(header))  # plain


def test_models_around_others(tmp_path):
    for model in (NoveltyDetector(PCA(2)), Denoiser(PCA(2))):
        header = header_of(model.fit(X), tmp_path)
        assert header.estimator == type(model).__name__
        assert header.certificate["sentence"] == model.estimator_.certificate_.sentence
        assert header.fingerprint == fingerprint(as_source(X))
    header = header_of(SubspaceClassifier(PCA(2)).fit(X, Y), tmp_path)
    assert "of 2 classes" in header.certificate["of"]
    assert header.fingerprint == fingerprint(as_source(X))
    header = header_of(NearestProjection(PCA(2)).fit(X, Y), tmp_path)
    assert header.fingerprint == fingerprint(as_source(X))
    header = header_of(make_pipeline(StandardScaler(), PCA(2)).fit(X), tmp_path)
    assert (header.estimator, header.preprocessing) == ("PCA", ["StandardScaler()"])
    header = header_of(KernelPCA(1, kernel="substring").fit(["ab", "b", "ba"]), tmp_path)
    assert (header.n_features, header.feature_names) == (None, None)
    header = header_of(KernelPCA(1, kernel="precomputed").fit(X @ X.T), tmp_path)
    assert header.kernel == "precomputed"
    header = header_of(mercer.sketches.Gaussian(2).fit(X), tmp_path)
    assert (header.estimator, header.certificate) == ("Gaussian", None)


def test_no_array_is_read(tmp_path, monkeypatch):
    path = tmp_path / "model.mercer"
    mercer.save(KernelPCA(2, kernel="rbf").fit(np.random.default_rng(0).random((300, 200))), path)
    held = container.read_contents(path)
    with path.open("r+b") as file:  # arrays gone, the file as long as before
        file.truncate(held.begin)
        file.truncate(held.places[-1].stop + held.begin)
    assert read_header(path).n_features == 200
    with pytest.raises(mercer.modelfile.ModelFileError, match="was changed"):
        mercer.load(path)


def test_loading_does_not_open_anything_else(tmp_path, monkeypatch):
    path = tmp_path / "model.mercer"
    mercer.save(PCA(2).fit(X), path)
    mercer.load(path)
    monkeypatch.setattr(builtins, "__import__", forbidden(builtins.__import__))
    mercer.load(path)


def forbidden(real):
    def look(name, *rest, **more):
        assert name.split(".")[0] not in ("pickle", "marshal", "dill", "cloudpickle", "subprocess")
        return real(name, *rest, **more)

    return look


@pytest.mark.parametrize("name", sorted(frozen.models()))
def test_files_of_format_1_are_read(name):
    path, now = frozen.FOLDER / f"{name}.mercer", frozen.models()[name]
    assert read_header(path).format == 1
    assert read_header(path).origin == {"command": "tests.modelfile.frozen"}
    then = mercer.load(path)
    assert type(then) is type(now)
    rows = ["ab", "bab"] if name == "strings" else frozen.rows()
    # The sign of an axis is fixed, so that the two are the same to rounding.
    np.testing.assert_allclose(then.transform(rows), now.transform(rows), rtol=1e-6, atol=1e-8)


def test_the_scale_of_a_file_is_the_one_in_it():
    """Older files divided by n where it is n − 1 now: their scores stay what they were."""
    then, X = mercer.load(frozen.FOLDER / "pca.mercer"), frozen.rows()
    np.testing.assert_allclose(then.scale_, X.std(axis=0))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scores = Z @ then.components_.T / np.sqrt(then.explained_variance_)
    np.testing.assert_allclose(then.transform(X), scores, atol=1e-12)
    np.testing.assert_allclose(then.inverse_transform(then.transform(X)), then.reconstruct(X))


# Fingerprints.


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(7, 3), (2000, 5), (3, 40_000), (2, 1)])
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
    torch = pytest.importorskip("torch")
    assert fingerprint(as_source(torch.asarray(rows))) == wanted


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

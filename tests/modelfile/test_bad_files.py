"""Files that are no whole model files, and models that cannot become one."""

import json
import os
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer import PCA, Denoiser, KernelPCA, NearestProjection, NoveltyDetector
from mercer.kernels import RBF, Fisher, FromFunction, Linear, Separable
from mercer.linalg.solvers import dense
from mercer.methods import Exact, Subset
from mercer.modelfile import ModelFileError, container, read_header
from tests.modelfile.bits import saved
from tests.modelfile.fuzz import resealed

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.repeat([0, 1], 20)


@pytest.fixture(name="path")
def file_of_a_model(tmp_path):
    mercer.save(PCA(2).fit(X), tmp_path / "model.mercer")
    return tmp_path / "model.mercer"


def refused(path, *words):
    """Assert that a file is refused, that the error names it, and says these words."""
    with pytest.raises(ModelFileError) as caught:
        mercer.load(path)
    assert str(path) in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert str(caught.value).endswith(".")  # a sentence, and a remedy in it
    return str(caught.value)


def with_tree(path, change, **texts):
    """Write a file anew, its tree or its texts changed, and its checksum right."""
    contents, arrays = container.read(path)
    old = {name: text for name, text in contents.texts.items() if name != "checksum"}
    tree = json.loads(old["tree"])
    tree = change(tree) or tree
    container.write(path, {**old, "tree": json.dumps(tree), **texts}, arrays)


def test_the_safetensors_library_reads_it(path):
    model = mercer.load(path)
    with safe_open(path, "np") as file:
        assert file.metadata()["format"] == "mercer"
        np.testing.assert_array_equal(file.get_tensor("components_"), model.components_)
        told = json.loads(file.metadata()["header"])
    assert told["estimator"] == "PCA"


def test_every_cut_is_refused(path):
    raw = path.read_bytes()
    for stop in {*range(0, 200), *range(0, len(raw), 37), len(raw) - 1}:
        path.write_bytes(raw[:stop])
        refused(path)
    path.write_bytes(raw[:-1])
    refused(path, "truncated", "Get the file again")
    path.write_bytes(raw + b"\0")
    refused(path, "goes on behind its arrays")


def test_every_flipped_bit_is_refused(path):
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in {*range(120), *rng.integers(len(raw), size=600).tolist()}:
        bent = bytearray(raw)
        bent[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(bent)
        refused(path)
    bent = bytearray(raw)
    bent[-1] ^= 1
    path.write_bytes(bent)
    refused(path, "was changed after it was written")


def test_what_is_no_file_of_ours(tmp_path):
    path = tmp_path / "x.mercer"
    with pytest.raises(FileNotFoundError):
        mercer.load(path)
    path.write_bytes(b"")
    refused(path, "it is empty", "mercer.save")
    path.write_bytes(pickle.dumps(PCA(2).fit(X)))
    refused(path, "does not begin as one")
    path.write_text("a,b\n1,2\n" * 100)
    refused(path, "does not begin as one")
    refused(tmp_path, "it is a folder")
    save_file({"x": np.zeros(3)}, path)
    refused(path)
    save_file({"x": np.zeros(3)}, path, {"format": "pt"})
    refused(path)
    container.write(path, {"format": "pt"}, {"x": np.zeros(3)})
    refused(path, "is a safetensors file")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "no ordinary file")


def test_an_oversized_header_is_not_read(path):
    raw = path.read_bytes()
    for length in (2**63, 10**12, container.MOST_HEADER + 1, 0, 10):
        path.write_bytes(length.to_bytes(8, "little") + raw[8:])
        refused(path, "does not begin as one")
    path.write_bytes(len(raw).to_bytes(8, "little") + raw[8:])
    refused(path, "truncated")


def test_sizes_are_checked_before_anything_is_made(path):
    raw = path.read_bytes()
    for old, new in (
        (b'"shape":[2,3]', b'"shape":[2,9]'),
        (b'"shape":[2,3]', b'"shape":[9,9]'),
        (b'"shape":[2,3]', b'"shape":[-2]'),
        (b'"dtype":"F64"', b'"dtype":"F32"'),
        (b'"dtype":"F64"', b'"dtype":"F99"'),
    ):
        assert old in raw
        made = raw.replace(old, new.ljust(len(old)), 1) if len(new) <= len(old) else None
        path.write_bytes(resealed(made))
        refused(path)


def test_a_later_format_says_what_to_do(path):
    header = json.loads(container.read_contents(path).texts["header"])
    header["versions"]["mercer"] = "9.1"
    with_tree(path, lambda tree: None, version="2", header=json.dumps(header))
    told = refused(path, "format 2", "Mercer 9.1", "pip install -U mercer")
    with pytest.raises(ModelFileError, match=re.escape(told)):
        read_header(path)


ATTACKS = {
    "a method in place of its own": lambda tree: tree["parts"].update(transform="x"),
    "its class": lambda tree: tree["parts"].update(__class__="x"),
    "its dict": lambda tree: tree["parts"].update(__dict__={"dict": []}),
    "a class of Python's": lambda tree: {"class": "builtins.eval", "parts": {"x": "1"}},
    "a class by its module": lambda tree: {"class": "mercer.estimators.pca.PCA", "parts": {}},
    "a function": lambda tree: {"class": "kernels.FromFunction", "parts": {"f": "print"}},
    "no class": lambda tree: {"class": None, "parts": {}},
    "a part of a model": lambda tree: tree["parts"]["certificate_"],
    "a kernel": lambda tree: {"class": "kernels.RBF", "parts": {"gamma": 1.0}},
    "no model": lambda tree: [1, 2],
    "not fitted": lambda tree: {"class": "estimators.PCA", "parts": {}},
    "an unknown name": lambda tree: {"eval": "1"},
    "itself": lambda tree: {"same": 0},
    "a solver that is none": lambda tree: tree["parts"].update(svd_solver="os.system"),
    "a wrong number": lambda tree: tree["parts"].update(n_components=-3),
    "axes of another shape": lambda tree: tree["parts"].update(
        components_=tree["parts"]["singular_values_"]
    ),
    "a negative number of columns": lambda tree: tree["parts"].update(n_features_in_=-1),
    "a fold of many columns": lambda tree: tree["parts"].update(
        _fold={
            "class": "folds.Moments",
            "parts": {
                "d": 10**5,
                "reference": tree["parts"]["singular_values_"],
                "products": {"dtype": "<f8"},
                "diagonal": False,
                "center": True,
                "arrays": {"dict": []},
            },
        }
    ),
    "a range that fills the memory": lambda tree: tree["parts"].update(
        tol={"range": [0, 2**61, 1]}
    ),
    "words that fill the memory": lambda tree: tree["parts"].update(
        feature_names_in_={"words": [f"U{10**9}", [0], []]}
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_file_made_to_harm_is_refused(name, path):
    with_tree(path, ATTACKS[name])
    refused(path, "does not hold a model that makes sense")


def test_what_stands_for_itself_many_times_is_refused(tmp_path):
    """A kernel of 2⁶⁰ terms in a file of a few kilobytes."""
    path = tmp_path / "model.mercer"
    mercer.save(KernelPCA(1, kernel=Linear()).fit(X), path)

    def laugh(tree):
        node = tree["parts"]["kernel"]
        for i in range(60):
            node = {"class": "kernels.Product", "parts": {"k1": node, "k2": {"same": i}}}
        tree["parts"]["kernel"] = node

    with_tree(path, laugh)
    refused(path, "repeated too often")


@pytest.mark.parametrize("depth", [200, 5000, 10**6])
def test_a_deep_tree_is_refused(depth, path):
    contents, arrays = container.read(path)
    texts = {name: text for name, text in contents.texts.items() if name != "checksum"}
    container.write(path, {**texts, "tree": "[" * depth + "]" * depth}, arrays)
    refused(path)
    raw = path.read_bytes()
    deep = b"[" * depth
    made = b'{"__metadata__":{"checksum":"' + b"0" * 64 + b'"},"x":' + deep + b"}"
    path.write_bytes(resealed(len(made).to_bytes(8, "little") + made))
    assert raw
    refused(path)


def test_arrays_that_no_part_is_are_refused(path):
    contents, arrays = container.read(path)
    texts = {name: text for name, text in contents.texts.items() if name != "checksum"}
    container.write(path, texts, {**arrays, "more": np.zeros(9)})
    refused(path, "'more' is no part of the model")


@pytest.mark.parametrize(
    ("at", "value"), [(-1, -(2**63)), (-1, 2**40), (1, 50), (0, 1), (0, -1)], ids=str
)
@pytest.mark.parametrize("which", ["indptr", "indices"])
def test_sparse_entries_beyond_the_shape_are_refused(which, at, value, tmp_path):
    path = tmp_path / "model.mercer"
    rows = sp.csr_array(np.where(X > 0, X, 0))
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    mercer.save(KernelPCA(1, kernel="rbf").fit(rows), path)
    contents, arrays = container.read(path)
    texts = {name: text for name, text in contents.texts.items() if name != "checksum"}
    name = next(name for name in arrays if name.endswith(which))
    arrays[name] = arrays[name].astype(np.int64)
    arrays[name][at] = 3 if which == "indices" and value == 1 else value
    container.write(path, texts, arrays)
    refused(path, "sparse")


# Models that cannot be saved.


class Mine(PCA):
    """A class of the user's."""


class Bell:
    def score_vectors(self, rows):
        return np.asarray(rows)


def mixture():
    return GaussianMixture(1).fit(X)


REFUSED = {
    "a function": (lambda: KernelPCA(1, kernel=np.dot), "kernel is a function"),
    "a kernel of a function": (
        lambda: KernelPCA(1, kernel=RBF() + 2 * FromFunction(np.inner)),
        r"^kernel\.terms\[1\]\.kernel\.f is a function, inner",
    ),
    "a separable kernel": (
        lambda: KernelPCA(1, kernel=Separable(total)),
        r"kernel\.f is a function, total",
    ),
    "a Fisher kernel": (
        lambda: KernelPCA(1, kernel=Fisher(mixture())),
        r"^kernel\.model is a GaussianM",
    ),
    "a model with scores": (
        lambda: KernelPCA(1, kernel=RBF() + Fisher(Bell())),
        r"terms\[1\]\.model is a Bell",
    ),
    "a class of the user's": (lambda: Mine(1), "derived from PCA"),
    "one inside": (lambda: NoveltyDetector(Mine(1)), r"^estimator is a Mine"),
    "a splitter": (lambda: NoveltyDetector(PCA(1), cv=KFold(3)), r"^cv is a KFold"),
    "a noise": (lambda: Denoiser(PCA(1), noise=lambda rows, rng: rows), "^noise is a function"),
    "a metric": (
        lambda: NearestProjection(PCA(1), metric=lambda a, b: float(abs(a - b).sum())),
        "^metric is a function",
    ),
    "a solver of the user's": (
        lambda: KernelPCA(1, method=Exact(lambda *a, **k: dense(*a, **k))),
        r"^method\.solver is a function",
    ),
    "another scaler": (lambda: make_pipeline(MinMaxScaler(), PCA(1)), "MinMaxScaler"),
    # These could be written, and no one could load them.
    "no step": (lambda: make_pipeline("passthrough", PCA(1)), r"^steps\['passthrough'\] is 'pass"),
    "a pipeline inside": (
        lambda: make_pipeline(make_pipeline(StandardScaler()), PCA(1)),
        r"^steps\['pipeline'\] is a Pipeline",
    ),
    "two models": (lambda: make_pipeline(PCA(2), KernelPCA(1)), r"^steps\['pca'\] is a PCA"),
    "a cache": (lambda: make_pipeline(PCA(1), memory="unused"), "^memory is a cache"),
    "other means": (lambda: make_pipeline(SimpleImputer(strategy="median"), PCA(1)), "mean"),
    "another model": (lambda: sklearn.decomposition.PCA(1), "PCA is no model of Mercer's"),
    "a pipeline of others": (
        lambda: make_pipeline(StandardScaler(), sklearn.decomposition.PCA(1)),
        "no model",
    ),
}


def total(rows):
    return rows.sum(axis=1)


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_says_why_and_writes_nothing(name, tmp_path):
    make, why = REFUSED[name]
    model = make()
    model.fit(X, Y) if isinstance(model, NearestProjection) else model.fit(X)
    path = tmp_path / "model.mercer"
    path.write_text("what stood there before")
    with pytest.raises(ModelFileError, match=why):
        mercer.save(model, path)
    assert path.read_text() == "what stood there before"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_path_to_what_cannot_be_saved(tmp_path):
    model = NoveltyDetector(KernelPCA(2, kernel=RBF() * Fisher(mixture()))).fit(X)
    model.estimator = None
    model.estimator_.kernel = "rbf"
    with pytest.raises(
        ModelFileError, match=r"^estimator_\.(projection_\.)?kernel_?\.k2\.model is"
    ):
        mercer.save(model, tmp_path / "model.mercer")
    kept = KernelPCA(2, kernel="rbf").fit(X)
    kept.note = "mine"
    with pytest.raises(ModelFileError, match="note is not something that Mercer knows of"):
        mercer.save(kept, tmp_path / "model.mercer")
    del kept.note
    kept.kernel_params = {"when": np.datetime64("2020-01-01")}
    with pytest.raises(ModelFileError, match=r"kernel_params\['when'\] has dtype datetime64"):
        mercer.save(kept, tmp_path / "model.mercer")
    kept.kernel_params = {"self": None}
    kept.kernel_params["self"] = kept.kernel_params
    with pytest.raises(ModelFileError, match="lies too deep"):
        mercer.save(kept, tmp_path / "model.mercer")


def test_what_only_the_fit_needed_can_be_left_out(tmp_path):
    model = Denoiser(PCA(1), noise=lambda rows, rng: rows).fit(X).set_params(noise=None)
    np.testing.assert_array_equal(saved(model, tmp_path).transform(X), model.transform(X))


@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2), NoveltyDetector(), Subset(3)], ids=str)
def test_what_is_not_fitted(model, tmp_path):
    with pytest.raises((NotFittedError, ModelFileError)):
        mercer.save(model, tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())


def test_a_pipeline_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        mercer.save(make_pipeline(StandardScaler(), PCA(2)), tmp_path / "model.mercer")


def test_origin_is_text_and_numbers(tmp_path):
    model, path = PCA(1).fit(X), tmp_path / "model.mercer"
    origin = {"command": "mercer fit", "seed": 0, "share": 0.5, "columns": ["a"], "label": None}
    mercer.save(model, path, origin=origin)
    assert read_header(path).origin == origin
    for value in ({"a": 1}, [1], object(), float("nan")):
        with pytest.raises(ValueError, match="origin"):
            mercer.save(model, path, origin={"x": value})
    assert read_header(path).origin == origin

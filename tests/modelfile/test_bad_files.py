"""Files that are not intact model files, and models that cannot become one."""

import json
import os
import pickle
import re
import resource
import stat

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
from mercer.config import machine_memory
from mercer.kernels import RBF, Fisher, FromFunction, Linear, Separable
from mercer.linalg.solvers import dense
from mercer.methods import Exact, Hebbian, Subset
from mercer.modelfile import ModelFileError, container, read_header
from mercer.sketches import Hadamard, Hashing
from tests.modelfile.bits import saved
from tests.modelfile.fuzz import places, resealed

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


def forge(path, change=lambda tree, arrays: None, **texts):
    """Write a file again, its tree, arrays or texts changed, and its checksum right."""
    old, arrays = container.read_contents(path)
    del old["checksum"]
    tree = json.loads(old["tree"])
    tree = change(tree, arrays) or tree
    container.write_contents(path, {**old, "tree": json.dumps(tree), **texts}, arrays)


def test_the_file_is_one_of_safetensors(path):
    model = mercer.load(path)
    with safe_open(path, "np") as file:
        assert file.metadata()["format"] == "mercer"
        mean = file.get_tensor("projection_.mean")
        np.testing.assert_array_equal(mean, model.projection_.mean)
        assert file.get_tensor("projection_.components").size == model.components_.size
        assert json.loads(file.metadata()["header"])["estimator"] == "PCA"


def test_a_file_has_the_permissions_of_any_new_file(path):
    other = path.with_name("other")
    other.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


def test_a_full_disk_leaves_the_old_file(path):
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="no room to write the file"):
            mercer.save(KernelPCA(2, kernel="rbf").fit(np.tile(X, (50, 1))), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_every_cut_is_refused(path):
    raw = path.read_bytes()
    for stop in {*range(0, 120, 7), *range(0, len(raw), 97), len(raw) - 1}:
        path.write_bytes(raw[:stop])
        refused(path)
    path.write_bytes(raw[:-1])
    refused(path, "truncated", "Download or copy the file again")
    path.write_bytes(raw + b"\0")
    refused(path, "has trailing bytes")


def test_every_flipped_bit_is_refused(path):
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    for at in {*range(0, 120, 3), *rng.integers(len(raw), size=150).tolist()}:
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
    refused(path, "its first bytes are wrong")
    path.write_text("a,b\n1,2\n" * 100)
    refused(path, "its first bytes are wrong")
    refused(tmp_path, "it is a folder")
    save_file({"x": np.zeros(3)}, path)
    refused(path, "has no checksum")
    save_file({"x": np.zeros(3)}, path, {"format": "pt"})
    refused(path, "has no checksum")
    container.write_contents(path, {"format": "pt"}, {"x": np.zeros(3)})
    refused(path, "its format is 'pt'")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        refused(tmp_path / "pipe", "not a regular file")


def test_an_oversized_header_is_not_read(path):
    raw = path.read_bytes()
    for length in (2**63, 10**12, 100_000_001, 0):
        path.write_bytes(length.to_bytes(8, "little") + raw[8:])
        refused(path, "its first bytes are wrong")
    path.write_bytes((10).to_bytes(8, "little") + raw[8:])
    refused(path, "not a valid model file")
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
        path.write_bytes(resealed(raw.replace(old, new.ljust(len(old)), 1)))
        refused(path)


def test_more_than_the_memory_is_not_read(path):
    n = machine_memory() // 8 + 1
    table = {"__metadata__": {"checksum": "0" * 64}}
    table["x"] = {"dtype": "F64", "shape": [n], "data_offsets": [0, 8 * n]}
    header = json.dumps(table, separators=(",", ":")).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + 8 * n)  # nothing of it is on the disk
    refused(path, "more than the memory of this machine")


@pytest.mark.parametrize("shape", [(0, 2**40), (2**40, 0)], ids=str)
def test_an_empty_array_is_no_larger_than_the_file(shape, path):
    forge(path, lambda tree, arrays: arrays.update(components_=np.zeros(shape)))
    refused(path, "components_")


def test_numbers_that_numpy_has_not_are_refused(path):
    raw = path.read_bytes()
    for dtype in (b"BF16", b"C64"):
        path.write_bytes(
            resealed(raw.replace(b'"F64","shape":[2,3]', b'"%s","shape":[2,3]' % dtype))
        )
        refused(path)
    forge_complex = {"x": np.zeros(3, np.complex64)}
    save_file(forge_complex, path, {"checksum": "0" * 64, "format": "mercer", "version": "1"})
    refused(path, "complex64")


def test_a_later_format_says_what_to_do(path):
    header = json.loads(container.read_texts(path)["header"])
    header["versions"]["mercer"] = "9.1"
    forge(path, version="3", header=json.dumps(header))
    told = refused(path, "format 3", "Mercer 9.1", "pip install -U mercer")
    with pytest.raises(ModelFileError, match=re.escape(told)):
        read_header(path)


def parts(**new):
    """A change of some parts of the model."""
    return lambda tree, arrays: tree["parts"].update(new)


def instead(node):
    """A change of the whole model."""
    return lambda tree, arrays: node


ATTACKS = {
    "a method in place of its own": parts(transform="x"),
    "a private method": parts(_scores="x"),
    "its class": parts(__class__="x"),
    "its dict": parts(__dict__={"dict": []}),
    "a hook of Python's": parts(__deepcopy__="x"),
    "callbacks": parts(_skl_callbacks=["x"]),
    "a class of Python's": instead({"class": "builtins.eval", "parts": {"x": "1"}}),
    "a class by its module": instead({"class": "mercer.estimators.pca.PCA", "parts": {}}),
    "a source of rows": instead({"class": "data.FileSource", "parts": {"path": "/etc/passwd"}}),
    "a base class": instead({"class": "kernels.Kernel", "parts": {}}),
    "a function": instead({"class": "kernels.FromFunction", "parts": {"f": "print"}}),
    "a model of a Fisher kernel": instead({"class": "kernels.Fisher", "parts": {"model": 1}}),
    "no class": instead({"class": None, "parts": {}}),
    "a part of a model": lambda tree, arrays: tree["parts"]["certificate_"],
    "a kernel": instead({"class": "kernels.RBF", "parts": {"gamma": 1.0}}),
    "no model": instead([1, 2]),
    "not fitted": instead({"class": "estimators.PCA", "parts": {}}),
    "an unknown kind": instead({"eval": "1"}),
    "itself": instead({"same": 0}),
    "a solver that is none": parts(svd_solver="os.system"),
    "a solver by its module": parts(svd_solver={"solver": "os.system"}),
    "a wrong number": parts(n_components=-3),
    "a negative number of columns": parts(n_features_in_=-1),
    "more names than memory": parts(n_components_=10**15),
    "a fold of many columns": parts(
        _fold={
            "class": "folds.Moments",
            "parts": {
                "d": 10**5,
                "reference": {"array": "singular_values_"},
                "products": {"dtype": "<f8"},
                "diagonal": False,
                "center": True,
                "arrays": {"dict": [["offset", {"array": "singular_values_"}]]},
            },
        }
    ),
    "a range that fills the memory": parts(tol={"range": [0, 2**61, 1]}),
    "words that fill the memory": parts(feature_names_in_={"words": [f"U{10**9}", [0], []]}),
    "an object of many objects": parts(feature_names_in_={"objects": [[1], [{"same": 0}]]}),
    "a generator without a state": parts(
        random_state={
            "random": [
                "RandomState",
                {
                    "dict": [
                        ["bit_generator", "MT19937"],
                        ["state", {"dict": [["key", {"array": "mean_"}], ["pos", 700]]}],
                    ]
                },
            ]
        }
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_file_made_to_harm_is_refused(name, path):
    forge(path, ATTACKS[name])
    refused(path, "is not a valid model file")


def bomb(tree, arrays):
    """A kernel of 2⁶⁰ terms in a file of a few kilobytes."""
    node = tree["parts"]["kernel"]
    for i in range(60):
        node = {"class": "kernels.Product", "parts": {"k1": node, "k2": {"same": i}}}
    tree["parts"]["kernel"] = node


def repeat(tree, arrays):
    """The largest array, 300 times."""
    name = max(arrays, key=lambda each: arrays[each].nbytes)
    tree["parts"]["kernel_params"] = {"dict": [[i, {"array": name}] for i in range(300)]}


def test_objects_and_arrays_repeated_too_often_are_refused(tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(KernelPCA(1, kernel=Linear()).fit(X), path)
    forge(path, bomb)
    refused(path, "objects are repeated too often")
    mercer.save(KernelPCA(1, kernel="rbf").fit(np.eye(3, 50_000)), path)
    forge(path, repeat)
    refused(path, "arrays are repeated too often")


@pytest.mark.parametrize("depth", [400, 5000, 10**6])
def test_a_deep_tree_is_refused(depth, path):
    forge(path, tree="[" * depth + "]" * depth)
    refused(path)
    deep = b'{"__metadata__":{"checksum":"' + b"0" * 64 + b'"},"x":' + b"[" * depth + b"}"
    path.write_bytes(resealed(len(deep).to_bytes(8, "little") + deep))
    refused(path)


def test_unused_arrays_are_refused(path):
    forge(path, lambda tree, arrays: arrays.update(more=np.zeros(9)))
    refused(path, "'more' is not part of it")


# What compiled code relies on.


def write_sparse(path):
    """A model whose basis is sparse."""
    rows = sp.csr_array(np.where(X > 0, X, 0))
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    mercer.save(KernelPCA(1, kernel="rbf").fit(rows), path)
    return rows


@pytest.mark.parametrize("which", ["indptr", "indices"])
def test_sparse_entries_beyond_the_shape_are_refused(which, tmp_path):
    path = tmp_path / "model.mercer"
    write_sparse(path)
    intact = path.read_bytes()
    for at, value in ((-1, -(2**63)), (-1, 2**40), (1, 50), (0, 3), (0, -1)):

        def change(tree, arrays, at=at, value=value):
            name = next(name for name in arrays if name.endswith(which))
            arrays[name] = arrays[name].astype(np.int64)
            arrays[name][at] = value

        path.write_bytes(intact)
        forge(path, change)
        refused(path, "sparse")


def test_a_sparse_basis_of_other_columns_is_an_error(tmp_path):
    path = tmp_path / "model.mercer"
    rows = write_sparse(path)

    def widen(tree, arrays):
        for owner, key in places(tree):
            if key == "sparse" and isinstance(owner[key], list):
                owner[key][1][1] = 2**30

    forge(path, widen)
    model = mercer.load(path)
    with pytest.raises(ValueError, match="columns"):
        model.transform(rows)


def test_maps_that_write_elsewhere_are_refused(tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(Hadamard(2).fit(X), path)
    intact = path.read_bytes()
    for sample in ([0, 4], [-1, 0], [0.0, 1.0], [[0, 1]], []):
        path.write_bytes(intact)
        forge(path, lambda tree, arrays, s=sample: arrays.update({"matrix_.sample": np.array(s)}))
        refused(path, "a map")
    mercer.save(Hashing(2, hashes=2).fit(X), path)
    intact = path.read_bytes()
    for wrong in ({"q": 2**50}, {"d": 2**50}, {"q": 0}, {"each": 3}, {"each": 2**40}, {"q": True}):
        path.write_bytes(intact)
        forge(path, lambda tree, arrays, w=wrong: tree["parts"]["matrix_"]["parts"].update(w))
        refused(path, "map")


def test_learners_of_other_shapes_are_refused(tmp_path):
    path = tmp_path / "model.mercer"
    model = KernelPCA(2, kernel="rbf", method=Hebbian(n_basis=5), random_state=0)
    mercer.save(model.partial_fit(X), path)
    intact = path.read_bytes()
    for name in ("axes", "slopes", "log-gains", "spent"):

        def shorten(tree, arrays, name=name):
            (key,) = (key for key in arrays if key.endswith(f"['learner {name}']"))
            arrays[key] = arrays[key][:1]

        path.write_bytes(intact)
        forge(path, shorten)
        refused(path, "learner")

    def widen(tree, arrays):
        for key in [key for key in arrays if key.endswith(("axes']", "slopes']", "before']"))]:
            arrays[key] = np.pad(arrays[key], ((0, 0), (0, 99)))

    path.write_bytes(intact)
    forge(path, widen)
    refused(path, "learner")


def test_matrices_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "model.mercer"
    model = KernelPCA(2, kernel="rbf", method=Subset(5), random_state=0).partial_fit(X)
    mercer.save(model, path)
    intact = path.read_bytes()
    for name in ("_fold.span.whitener", "_fold.arrays['scatter']", "projection_.components"):

        def spoil(tree, arrays, name=name):
            arrays[name] = arrays[name].copy()
            arrays[name].reshape(-1)[0] = np.nan

        path.write_bytes(intact)
        forge(path, spoil)
        refused(path, "not finite")


def test_threads_beyond_any_machine_are_refused(tmp_path):
    path = tmp_path / "model.mercer"
    mercer.save(NearestProjection(PCA(1)).fit(X, Y), path)
    forge(path, parts(n_jobs=10**6))
    refused(path, "n_jobs")


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
    "a class of the user's": (lambda: Mine(1), "Mine is not a Mercer model|is a Mine"),
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
    "another model": (lambda: sklearn.decomposition.PCA(1), "PCA is not a Mercer model"),
    "a pipeline of others": (
        lambda: make_pipeline(StandardScaler(), sklearn.decomposition.PCA(1)),
        "not a Mercer model",
    ),
}


def total(rows):
    return rows.sum(axis=1)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_models_say_why_and_write_nothing(name, tmp_path):
    make, why = REFUSED[name]
    model = make()
    model.fit(X, Y) if isinstance(model, NearestProjection) else model.fit(X)
    path = tmp_path / "model.mercer"
    path.write_text("what stood there before")
    with pytest.raises(ModelFileError, match=why):
        mercer.save(model, path)
    assert path.read_text() == "what stood there before"
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_name_the_path_of_the_part(tmp_path):
    model = NoveltyDetector(KernelPCA(2, kernel=RBF() * Fisher(mixture()))).fit(X)
    model.estimator = None
    model.estimator_.kernel = "rbf"
    with pytest.raises(
        ModelFileError, match=r"^estimator_\.(projection_\.)?kernel_?\.k2\.model is"
    ):
        mercer.save(model, tmp_path / "model.mercer")
    kept = KernelPCA(2, kernel="rbf").fit(X)
    kept.note = "mine"
    with pytest.raises(ModelFileError, match="note was not set by Mercer"):
        mercer.save(kept, tmp_path / "model.mercer")
    del kept.note
    kept.kernel_params = {"when": np.datetime64("2020-01-01")}
    with pytest.raises(ModelFileError, match=r"kernel_params\['when'\] has dtype datetime64"):
        mercer.save(kept, tmp_path / "model.mercer")
    kept.kernel_params = {"self": None}
    kept.kernel_params["self"] = kept.kernel_params
    with pytest.raises(ModelFileError, match="nested too deeply"):
        mercer.save(kept, tmp_path / "model.mercer")


def test_parameters_of_the_fit_can_be_set_to_none(tmp_path):
    model = Denoiser(PCA(1), noise=lambda rows, rng: rows).fit(X).set_params(noise=None)
    np.testing.assert_array_equal(saved(model, tmp_path).transform(X), model.transform(X))


@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2), NoveltyDetector(), Subset(3)], ids=str)
def test_unfitted_models(model, tmp_path):
    with pytest.raises((NotFittedError, ModelFileError)):
        mercer.save(model, tmp_path / "model.mercer")
    assert not list(tmp_path.iterdir())


def test_a_pipeline_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        mercer.save(make_pipeline(StandardScaler(), PCA(2)), tmp_path / "model.mercer")


def test_origin_is_plain_json(tmp_path):
    model, path = PCA(1).fit(X), tmp_path / "model.mercer"
    origin = {"command": "mercer fit", "seed": 0, "share": 0.5, "columns": ["a"], "label": None}
    mercer.save(model, path, origin=origin)
    assert read_header(path)["origin"] == origin
    for value in ({1, 2}, [float("inf")], object(), float("nan"), {("a",): 1}):
        with pytest.raises(ModelFileError, match=r"origin\['x'\] is .*plain JSON"):
            mercer.save(model, path, origin={"x": value})
    assert read_header(path)["origin"] == origin

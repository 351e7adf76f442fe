"""Models as ONNX graphs: onnxruntime agrees with `transform`."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import mercer
from mercer import PCA, KernelPCA, NoveltyDetector, methods
from mercer.kernels import (
    RBF,
    ChiSquare,
    Constant,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Subsequence,
    Tanh,
)
from tests.kernel_catalogue import KERNELS, ROWS

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((80, 6)) * [3, 2, 1, 1, 0.5, 0.1]).astype(np.float32)
NEW = (RNG.standard_normal((50, 6)) * [3, 2, 1, 1, 0.5, 0.1]).astype(np.float32)


def run(model, rows):
    """What onnxruntime makes of rows."""
    made = mercer.to_onnx(model)
    onnx.checker.check_model(made, full_check=True)
    session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    (scores,) = session.run(["scores"], {"X": np.asarray(rows, np.float32)})
    return scores


def agrees(model, rows, tol=1e-5):
    """Assert that both give the same scores, to a share of their scale."""
    wanted = np.asarray(model.transform(rows), np.float64)
    scores = run(model, rows)
    assert scores.dtype == np.float32
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=tol * np.abs(wanted).max())


def moved(offset, dtype):
    """Rows of the fit, and new ones, about an offset."""
    return ((rows + np.float32(offset)).astype(dtype) for rows in (X, NEW))


@pytest.mark.parametrize(
    ("how", "offset", "dtype"),
    [
        ({}, 0.0, "f4"),
        ({}, 1e4, "f8"),
        ({"whiten": True}, 1e4, "f4"),
        ({"whiten": True}, 0.0, "f8"),
        ({"scale": True}, 1e4, "f4"),
        ({"feature_weight": [0, 1, 2, 3, 4, 5]}, 1e4, "f8"),
        ({"center": False}, 1e4, "f8"),
        ({"center": False}, 0.0, "f4"),
        ({"n_components": 0.9}, 1e4, "f4"),
    ],
    ids=str,
)
def test_pca(how, offset, dtype):
    rows, new = moved(offset, dtype)
    agrees(PCA(**{"n_components": 4, **how}).fit(rows), new)


@pytest.mark.parametrize(
    ("kernel", "method", "offset", "dtype"),
    [
        (RBF(0.05), "exact", 1e3, "f4"),
        (RBF(0.05), methods.Subset(30), 1e3, "f8"),
        (RBF(0.05), methods.Nystrom(30), 0.0, "f4"),
        (Laplacian(0.2), "exact", 1e3, "f8"),
        (Laplacian(0.2), methods.Subset(30), 1e3, "f4"),
        (Matern(3.0, 1.5), methods.Nystrom(30), 1e3, "f4"),
        (RationalQuadratic(3.0, 0.7), methods.Subset(30), 1e3, "f4"),
        (RationalQuadratic(3.0, 0.7), "exact", 1e3, "f8"),
        (Linear(), "exact", 1e3, "f4"),
        (Linear(), methods.Nystrom(30), 1e3, "f8"),
    ],
    ids=str,
)
def test_distances_with_a_large_mean(kernel, method, offset, dtype):
    rows, new = moved(offset, dtype)
    agrees(KernelPCA(4, kernel=kernel, method=method, random_state=0).fit(rows), new)


TRACED = [
    Polynomial(3, 0.5, 0.1),
    Polynomial(1),
    Tanh(0.05, 0.1),
    Cosine(),
    Matern(3.0, 0.5),
    Matern(3.0, 2.5),
    RBF(0.05) + 0.5 * Polynomial(2) + Tanh(0.1) + 3,
    RBF(0.05) * Matern(3.0) * 2,
    (RBF(0.05) + 1) ** 2 * (Linear() + 1),
    Polynomial(3).normalized(),
    Linear().normalized().normalized(),
    Polynomial(2).rbf(0.001),
    RBF(0.05).on_columns([0, 2]) + 3 * Linear().on_columns([1]) + Cosine().on_columns([5, 3, 4]),
    RBF(0.05).on_columns([1]).on_columns([0, 3]).normalized(),
    Constant(2.0) * RBF(0.05),
]


@pytest.mark.parametrize(("i", "kernel"), list(enumerate(TRACED)), ids=str)
def test_kernels(i, kernel):
    dtype = (np.float32, np.float64)[i % 2]
    agrees(KernelPCA(3, kernel=kernel).fit(X.astype(dtype)), NEW.astype(dtype))


class Gate(Kernel):
    """A kernel of the user's: its formula is all that a graph needs."""

    def on(self, pair):
        return 1.0 / (1.0 + pair.sqdist) + 0.1 * pair.dot**2


def test_a_kernel_that_onnx_has_never_heard_of():
    agrees(KernelPCA(3, kernel=Gate()).fit(X), NEW)


def test_zero_rows_have_no_direction():
    rows = np.vstack([X, np.zeros((3, 6), np.float32)])
    for kernel in (Cosine(), Linear().normalized()):
        agrees(KernelPCA(3, kernel=kernel).fit(rows), np.zeros((2, 6), np.float32))


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_every_kernel_agrees_or_says_which_do(row):
    rows = ROWS[row.rows](np.random.default_rng(0), 40)
    model = KernelPCA(2, kernel=row.kernel).fit(rows)
    try:
        mercer.to_onnx(model)
    except ValueError as error:
        assert "Kernels of dot products" in str(error) or "strings" in str(error)  # noqa: PT017
        assert not row.smooth or row.name == "matern 1.8"
    else:
        agrees(model, rows.astype(np.float32))


@pytest.mark.parametrize(("offset", "orthogonal"), [(0.0, True), (1e3, False)])
def test_random_features(offset, orthogonal):
    rows, new = moved(offset, "f4")
    method = methods.RandomFeatures(50, orthogonal=orthogonal)
    agrees(KernelPCA(3, kernel="rbf", gamma=0.05, method=method, random_state=0).fit(rows), new)


@pytest.mark.parametrize(
    "method", ["reduced", "improved", "cholesky", "greedy", "sketch", "sparse"]
)
def test_other_methods(method):
    agrees(KernelPCA(2, kernel="rbf", gamma=0.05, method=method, random_state=0).fit(X), NEW)


def test_precomputed():
    K, new = X @ X.T, NEW @ X.T
    agrees(KernelPCA(3, kernel="precomputed").fit(K.astype(np.float64)), new)


def test_sparse_rows():
    model = KernelPCA(3, kernel="rbf", gamma=0.05).fit(sp.csr_array(X))
    np.testing.assert_allclose(run(model, NEW), model.transform(sp.csr_array(NEW)), atol=1e-5)
    with (
        mercer.config_context(memory="1KiB"),
        pytest.raises(MemoryError, match=r"a dense copy of the sparse rows takes 3\.8 KiB.*Subset"),
    ):
        mercer.to_onnx(model)


def test_torch():
    torch = pytest.importorskip("torch")
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.05)):
        model.fit(torch.asarray(X))
        agrees(model, torch.asarray(NEW))


@pytest.mark.parametrize(
    ("last", "offset"), [(PCA(3), 1e4), (KernelPCA(3, kernel="rbf", gamma=0.1), 1e4)], ids=str
)
def test_pipelines(last, offset):
    rows, new = moved(offset, "f4")
    rows[::5, 1] = new[::3, 2] = np.nan
    agrees(make_pipeline(SimpleImputer(), StandardScaler(), last).fit(rows), new)
    rows[:, 4] = np.nan  # a column without a mean is dropped
    agrees(make_pipeline(SimpleImputer(), StandardScaler(with_std=False), last).fit(rows), new)


def test_rows_of_any_number():
    model = PCA(2).fit(X)
    for n in (1, 7, 50):
        assert run(model, NEW[:n]).shape == (n, 2)


def test_metadata():
    model = KernelPCA(2, kernel="rbf", gamma=0.05).fit(X)
    made = mercer.to_onnx(model)
    texts = {entry.key: entry.value for entry in made.metadata_props}
    assert (made.producer_name, made.producer_version) == ("mercer", mercer.__version__)
    assert texts["certificate"] == model.certificate_.sentence
    assert texts["kernel"] == repr(model.kernel_)


def test_float32_constants_are_stored_as_such():
    model = KernelPCA(2, kernel="linear").fit(X)
    double = KernelPCA(2, kernel="linear").fit(X + 1e-12 * NEW[:1].astype(np.float64))
    a, b = (mercer.to_onnx(each).ByteSize() for each in (model, double))
    assert a < b - 0.9 * 4 * X.size


def test_what_has_no_graph():
    with pytest.raises(NotFittedError):
        mercer.to_onnx(PCA(2))
    with pytest.raises(TypeError, match=r"NoveltyDetector.*Its estimator_ can\."):
        mercer.to_onnx(NoveltyDetector(PCA(2)).fit(X))
    with pytest.raises(TypeError, match=r"MinMaxScaler"):
        mercer.to_onnx(make_pipeline(MinMaxScaler(), PCA(2)).fit(X))
    with pytest.raises(ValueError, match=r"ChiSquare.*Kernels of dot products"):
        mercer.to_onnx(KernelPCA(2, kernel=RBF() + ChiSquare()).fit(abs(X)))
    with pytest.raises(ValueError, match=r"norm='l1'.*norm='l2'"):
        mercer.to_onnx(KernelPCA(2, kernel=Laplacian(0.1, norm="l1")).fit(X))
    with pytest.raises(ValueError, match=r"models fitted to strings cannot be exported"):
        mercer.to_onnx(KernelPCA(1, kernel=Subsequence(1, 0.5)).fit(["ab", "b", "a"]))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"mercer\[onnx\]"):
        mercer.to_onnx(PCA(2).fit(X))


@pytest.mark.parametrize("method", ["exact", methods.Subset(30)], ids=str)
def test_float64_is_what_it_agrees_with(method):
    """At a mean of 1e4 float32 itself loses digits; the graph does not."""
    rows, new = moved(1e4, "f4")
    model = KernelPCA(4, kernel="rbf", gamma=0.05, method=method, random_state=0).fit(rows)
    source = mercer.as_source(new.astype(np.float64))
    exact = model.projection_.scores(source, np.float64).collect()
    np.testing.assert_allclose(run(model, new), exact, rtol=0, atol=1e-6 * np.abs(exact).max())

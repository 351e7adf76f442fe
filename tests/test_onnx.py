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
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Subsequence,
    Tanh,
)
from tests.kernel_catalogue import KERNELS

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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize(
    "how",
    [{}, {"whiten": True}, {"scale": True}, {"center": False}, {"n_components": 0.9}],
    ids=str,
)
def test_pca(how, offset, dtype):
    rows, new = ((part + np.float32(offset)).astype(dtype) for part in (X, NEW))
    agrees(PCA(**{"n_components": 4, **how}).fit(rows), new)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("method", ["exact", methods.Subset(30), methods.Nystrom(30)], ids=str)
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.05), Laplacian(0.2), Matern(3.0, 1.5), RationalQuadratic(3.0, 0.7), Linear()],
    ids=str,
)
def test_distances_with_a_large_mean(kernel, method, offset, dtype):
    rows, new = ((part + np.float32(offset)).astype(dtype) for part in (X, NEW))
    agrees(KernelPCA(4, kernel=kernel, method=method, random_state=0).fit(rows), new)


GEMM = [
    Linear(),
    Polynomial(3, 0.5, 0.1),
    Polynomial(1),
    Tanh(0.05, 0.1),
    Cosine(),
    RBF(0.05),
    Laplacian(0.2),
    Matern(3.0, 0.5),
    Matern(3.0, 1.5),
    Matern(3.0, 2.5),
    RationalQuadratic(3.0, 0.7),
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", GEMM, ids=str)
def test_kernels(kernel, dtype):
    agrees(KernelPCA(3, kernel=kernel).fit(X.astype(dtype)), NEW.astype(dtype))


def test_zero_rows_have_no_direction():
    rows = np.vstack([X, np.zeros((3, 6), np.float32)])
    for kernel in (Cosine(), Linear().normalized()):
        agrees(KernelPCA(3, kernel=kernel).fit(rows), np.zeros((2, 6), np.float32))


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_every_kernel_agrees_or_says_which_do(row):
    rng = np.random.default_rng(0)
    from tests.kernel_catalogue import ROWS

    rows = ROWS[row.rows](rng, 40)
    model = KernelPCA(2, kernel=row.kernel).fit(rows)
    try:
        mercer.to_onnx(model)
    except ValueError as error:
        assert "Kernels that are: Linear, Polynomial" in str(error) or "strings" in str(error)  # noqa: PT017
        assert not row.smooth or row.name == "matern 1.8"
    else:
        agrees(model, rows.astype(np.float32))


@pytest.mark.parametrize("orthogonal", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_random_features(offset, orthogonal):
    rows, new = (part + np.float32(offset) for part in (X, NEW))
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


def test_torch():
    torch = pytest.importorskip("torch")
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.05)):
        model.fit(torch.asarray(X))
        agrees(model, torch.asarray(NEW))


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("last", [PCA(3), KernelPCA(3, kernel="rbf", gamma=0.1)], ids=str)
def test_pipelines(last, offset):
    rows, new = (part + np.float32(offset) for part in (X, NEW))
    rows, new = rows.copy(), new.copy()
    rows[::5, 1] = new[::3, 2] = np.nan
    agrees(make_pipeline(SimpleImputer(), StandardScaler(), last).fit(rows), new)
    rows[:, 4] = np.nan  # a column of which no mean is known is dropped
    agrees(make_pipeline(SimpleImputer(), StandardScaler(with_std=False), last).fit(rows), new)


def test_rows_of_any_number():
    model = PCA(2).fit(X)
    for n in (1, 7, 50):
        assert run(model, NEW[:n]).shape == (n, 2)


def test_what_it_tells_of_itself():
    model = KernelPCA(2, kernel="rbf", gamma=0.05).fit(X)
    made = mercer.to_onnx(model)
    told = {entry.key: entry.value for entry in made.metadata_props}
    assert (made.producer_name, made.producer_version) == ("mercer", mercer.__version__)
    assert told["certificate"] == model.certificate_.sentence
    assert told["kernel"] == repr(model.kernel_)
    assert told["fingerprint"] == model.fingerprint_


def test_float32_constants_are_stored_as_such():
    model = KernelPCA(2, kernel="linear").fit(X)
    double = KernelPCA(2, kernel="linear").fit(X + 1e-12 * NEW[:1].astype(np.float64))
    a, b = (mercer.to_onnx(each).ByteSize() for each in (model, double))
    assert a < b - 0.9 * 4 * X.size


def test_what_has_no_graph():
    with pytest.raises(NotFittedError):
        mercer.to_onnx(PCA(2))
    with pytest.raises(TypeError, match=r"NoveltyDetector.*Its estimator_ can be"):
        mercer.to_onnx(NoveltyDetector(PCA(2)).fit(X))
    with pytest.raises(TypeError, match=r"MinMaxScaler"):
        mercer.to_onnx(make_pipeline(MinMaxScaler(), PCA(2)).fit(X))
    with pytest.raises(ValueError, match=r"ChiSquare.*Kernels that are: Linear, Polynomial"):
        mercer.to_onnx(KernelPCA(2, kernel=RBF() + ChiSquare()).fit(abs(X)))
    with pytest.raises(ValueError, match=r"norm='l1'.*norm='l2'"):
        mercer.to_onnx(KernelPCA(2, kernel=Laplacian(0.1, norm="l1")).fit(X))
    with pytest.raises(ValueError, match=r"strings|Subsequence"):
        mercer.to_onnx(KernelPCA(1, kernel=Subsequence(1, 0.5)).fit(["ab", "b", "a"]))


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ImportError, match=r"mercer\[onnx\]"):
        mercer.to_onnx(PCA(2).fit(X))


@pytest.mark.parametrize("method", ["exact", methods.Subset(30)], ids=str)
def test_float64_is_what_it_agrees_with(method):
    """At a mean of 1e4 float32 itself loses digits; the graph does not."""
    rows, new = (part + np.float32(1e4) for part in (X, NEW))
    model = KernelPCA(4, kernel="rbf", gamma=0.05, method=method, random_state=0).fit(rows)
    source = mercer.as_source(new.astype(np.float64))
    exact = model.projection_.scores(source, np.float64).collect()
    np.testing.assert_allclose(run(model, new), exact, rtol=0, atol=1e-6 * np.abs(exact).max())

"""Sparse rows on a device: SciPy's that are copied there, and sparse tensors that live there."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import mercer
from mercer import PCA, KernelPCA, NoveltyDetector, SubspaceClassifier, config_context, kernels
from mercer import landmarks as rules
from mercer.methods import (
    Cholesky,
    Exact,
    FrequentDirections,
    Greedy,
    Hebbian,
    Improved,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
)
from mercer.sketches import Gaussian, Hadamard, Hashing, SparseSign
from tests.catalogue import cycled
from tests.device.conftest import there, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about sparse tensors

TOLERANCE = {np.float64: 1e-10, np.float32: 1e-6}
SEED = {"random_state": 0}
RBF = {"kernel": "rbf", "gamma": 0.05, **SEED}
LINEAR = [
    *(PCA(3, svd_solver=name, **SEED) for name in ("auto", "covariance_eigh", "dot", "full")),
    *(PCA(3, svd_solver=name, **SEED) for name in ("krylov", "arpack", "randomized", "power")),
    PCA(3, svd_solver="jacobi"),
    *(PCA(3, svd_solver=Sketch(map), **SEED) for map in (Hashing(20), SparseSign(20))),
    *(PCA(3, svd_solver=Sketch(map), **SEED) for map in (Gaussian(20), Hadamard(20))),
    PCA(3, svd_solver=FrequentDirections(10)),
    PCA(3, svd_solver="krylov", scale=True, whiten=True, **SEED),
    PCA(3, svd_solver="sketch", scale=True, **SEED),
    PCA(3, svd_solver="krylov", center=False, **SEED),
    PCA(0.6),
    PCA(3, svd_solver="krylov", gap=0.05, **SEED),
]
METHODS = [
    KernelPCA(3, **RBF, method=method)
    for method in (
        *("exact", Exact(store="none"), Exact(store="float32"), Exact("dense")),
        *(Subset(60), Subset(60, centroid="rows"), Nystrom(60), Cholesky(60, on="rows")),
        *(Greedy(20), Reduced(60), RandomFeatures(100), Sketch(), Sparse(20), SparseL1(50)),
        *(Hebbian(n_basis=50), Improved(60)),
    )
]
METHODS.append(KernelPCA(3, **RBF, gap=0.1))
KERNELS = [
    KernelPCA(3, kernel=kernel, method=method, **SEED)
    for kernel, method in (
        (kernels.Linear(), "exact"),
        (kernels.Polynomial(2), "exact"),
        (kernels.Cosine(), "exact"),
        (kernels.Tanh(0.1), "exact"),
        (kernels.Hellinger(), Subset(60)),
        (kernels.Matern(4.0) + 0.5 * kernels.Polynomial(2), "exact"),
        (kernels.RBF(0.1).on_columns([7, 1, 5]), "exact"),
        (kernels.Cosine().rbf(0.5), Subset(60)),
    )
]
RULES = [KernelPCA(3, **RBF, method=Subset(20, select=rule)) for rule in sorted(rules.RULES)]
RULES.append(KernelPCA(3, **RBF, method=Subset(20, select=rules.KMeans(nearest=False))))
FORMS = {
    "device": None,
    "csr": lambda tensor: tensor.to_sparse_csr(),
    "coo": lambda tensor: tensor.to_sparse(),
    "csc": lambda tensor: tensor.to_sparse_csc(),
}


def rows(kind=np.float64):
    """Rows of falling variances, with an empty row and an empty column."""
    X = scipy.sparse.random_array((250, 40), density=0.2, rng=np.random.default_rng(0)).toarray()
    X[7], X[:, 3] = 0.0, 0.0
    return scipy.sparse.csr_array((X * np.geomspace(3.0, 0.3, 40)).astype(kind))


X = rows()
WEIGHTS = np.random.default_rng(1).integers(0, 4, len(X.toarray())).astype(float)


def tensor(X, form="csr"):
    return FORMS[form](there(X.toarray()))


def host(x):
    return x.cpu().numpy() if torch.is_tensor(x) else np.asarray(x)


def on_device(form, device, use, X=X):
    """Return what `use` makes of the rows, on a device."""
    if form != "device":
        return use(tensor(X, form))
    with config_context(device=device):
        return use(X)


def apart(a, b):
    """Return how far scores are apart, as a share of the largest; signs may differ."""
    a, b = host(a), host(b)
    turned = np.sign((a * b).sum(axis=0))
    return np.abs(a - turned * b).max() / np.abs(a).max()


@cycled(estimator=LINEAR + METHODS + KERNELS + RULES, form=FORMS, kind=TOLERANCE)
def test_same_as_on_the_cpu(estimator, form, kind, device):
    X, made = rows(kind), clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = clone(estimator).fit(X)
        own = on_device(form, device, made.fit_transform, X)
        scores = on_device(form, device, made.transform, X)
    tolerance = TOLERANCE[kind] * (1 if isinstance(estimator, PCA) else 4)
    if getattr(getattr(estimator, "method", None), "store", None) == "float32":
        tolerance = max(tolerance, 1e-6)  # as near as what drives the iteration comes
    assert host(scores).dtype == kind
    assert apart(here.transform(X), scores) < tolerance
    if getattr(estimator, "gap", None) is None:  # else as near as the residuals that it stops at
        assert apart(own, scores) < 4 * tolerance
    values = here.explained_variance_
    assert np.abs(host(made.explained_variance_) - values).max() <= 2 * tolerance * values[0]
    found, expected = made.certificate_, here.certificate_
    assert found.notes == expected.notes
    assert abs(found.gap - expected.gap) <= max(1e-6, 100 * TOLERANCE[kind])
    for owner in (made, made.projection_) if form == "device" else ():
        for name, value in vars(owner).items():
            assert not torch.is_tensor(value), name
            assert not isinstance(value, mercer.arrays.CSR), name


@pytest.mark.parametrize("form", FORMS)
def test_against_a_dense_svd(form, device):
    D = X.toarray()
    values = np.linalg.svd(D - D.mean(axis=0), compute_uv=False) ** 2 / (len(D) - 1)
    for solver in ("krylov", "dot", "covariance_eigh", "full"):
        made = on_device(form, device, PCA(3, svd_solver=solver, **SEED).fit)
        np.testing.assert_allclose(host(made.explained_variance_), values[:3], rtol=1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "estimator",
    [PCA(3), PCA(3, svd_solver="krylov", **SEED), KernelPCA(3, **RBF)]
    + [KernelPCA(3, **RBF, method=method) for method in (Subset(50), RandomFeatures(50))],
    ids=str,
)
def test_models(estimator, form, device, tmp_path):
    def use(f):
        return on_device(form, device, f)

    here = clone(estimator).fit(X, sample_weight=WEIGHTS)
    made = use(lambda X: clone(estimator).fit(X, sample_weight=WEIGHTS))
    weights = there(WEIGHTS)  # wherever they live
    again = use(lambda X: clone(estimator).fit(X, sample_weight=weights))
    np.testing.assert_array_equal(host(made.explained_variance_), host(again.explained_variance_))
    expected = here.transform(X)
    # A model takes rows of any form, wherever it was fitted.
    for model in (here, made):
        for other in (
            X,
            X.toarray(),
            there(X.toarray()),
            *(tensor(X, each) for each in ("csr", "coo")),
        ):
            assert apart(expected, model.transform(other)) < 1e-10
    errors = use(made.reconstruction_error)
    np.testing.assert_allclose(host(errors), here.reconstruction_error(X), rtol=1e-8, atol=1e-10)
    mercer.save(made, tmp_path / "model.mercer")
    for model in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(made))):
        np.testing.assert_array_equal(host(model.transform(X)), host(made.transform(X)))
        assert apart(expected, model.transform(tensor(X))) < 1e-10
    points = getattr(made, "X_fit_", None)
    if isinstance(estimator, KernelPCA) and estimator.method == "auto" and form != "device":
        assert points.layout == torch.sparse_csr
        np.testing.assert_array_equal(host(points.to_dense()), X[WEIGHTS > 0].toarray())
    if isinstance(estimator, PCA):
        for name in ("score_samples", "reconstruct"):
            found = use(getattr(made, name))
            np.testing.assert_allclose(host(found), getattr(here, name)(X), rtol=1e-8, atol=1e-10)
    if estimator.get_params().get("method") == "auto" or not hasattr(estimator, "partial_fit"):
        return
    batched, here = clone(estimator), clone(estimator)
    for part in (slice(0, 100), slice(100, 250)):
        on_device(form, device, batched.partial_fit, X[part])
        here.partial_fit(X[part])
    assert apart(here.transform(X), batched.transform(X)) < 1e-10


@pytest.mark.parametrize("form", ["device", "csr"])
@pytest.mark.parametrize("memory", [None, 150_000])
def test_any_block_size(form, memory, device):
    """Whether the rows are kept on the device, their blocks' order too, or not."""
    expected = PCA(3, svd_solver="krylov", **SEED).fit(X)
    with config_context(block_rows=16 if memory is None else None, memory=memory):
        made = on_device(form, device, PCA(3, svd_solver="krylov", **SEED).fit)
    np.testing.assert_allclose(
        host(made.explained_variance_), expected.explained_variance_, rtol=1e-11
    )


@pytest.mark.parametrize("form", FORMS)
def test_only_a_few_rows_become_dense(form, device, monkeypatch):
    sizes, toarray, most = [], mercer.arrays.CSR.toarray, 50 * 40

    def measured(rows):
        sizes.append(math.prod(rows.shape))
        return toarray(rows)

    monkeypatch.setattr(mercer.arrays.CSR, "toarray", measured)
    monkeypatch.setattr("mercer.arrays.sparse._DENSE", most)
    for estimator in (
        PCA(3, svd_solver="krylov", **SEED),
        PCA(3, svd_solver="sketch", **SEED),
        KernelPCA(3, **RBF, method=Subset(20), certificate=False),
        KernelPCA(3, kernel="poly", method=Exact(store="none"), certificate=False),
    ):
        on_device(form, device, clone(estimator).fit_transform)
        assert max(sizes) <= most < math.prod(X.shape), estimator


def test_blocks_are_kept_as_long_as_they_fit():
    source = mercer.as_source(tensor(X))
    first = source.read(0, 100)
    assert source.read(0, 100) is first
    for start in range(0, 250, 50):
        source.read(start, start + 50)
    kept = [source.read(start, start + 50) for start in range(0, 250, 50)]
    assert all(source.read(50 * i, 50 * i + 50) is block for i, block in enumerate(kept))
    assert source.read(0, 100) is not first
    with config_context(memory=4 * source.nbytes - 4):
        source = mercer.as_source(tensor(X))
        assert source.read(0, 100) is not source.read(0, 100)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_every_time(form, device):
    for estimator in (PCA(3, svd_solver="krylov", **SEED), KernelPCA(3, **RBF)):
        first, second = (
            on_device(form, device, lambda X, e=estimator: clone(e).fit_transform(X))
            for _ in range(2)
        )
        np.testing.assert_array_equal(host(first), host(second))


@pytest.mark.parametrize("form", FORMS)
def test_nan_is_found_where_it_is(form, device):
    bad = X.copy()
    i = int(bad.indptr[17])
    bad.data[i] = np.nan
    place = f"row 17, column {bad.indices[i]}"
    for model in (PCA(1), PCA(1, svd_solver="krylov"), KernelPCA(1, **RBF)):
        with pytest.raises(ValueError, match=place):
            on_device(form, device, model.fit, bad)


def test_negative_entries_are_found_where_they_are():
    bad = X.copy()
    bad.data[bad.indptr[17] + 1] = -2.0
    place = rf"negative entry: -2.0 in row 17, column {bad.indices[bad.indptr[17] + 1]}"
    with pytest.raises(ValueError, match=place):
        KernelPCA(1, kernel=kernels.Hellinger()).fit(tensor(bad))


def test_repeated_entries_are_added(device):
    twice = scipy.sparse.coo_array(X)
    at = torch.from_numpy(np.stack([np.r_[twice.row, twice.row], np.r_[twice.col, twice.col]]))
    data = torch.from_numpy(np.r_[twice.data, twice.data])
    coo = torch.sparse_coo_tensor(at.long(), data, X.shape).to(there(np.zeros(1)).device)
    expected = PCA(3).fit(2 * X).explained_variance_
    np.testing.assert_allclose(host(PCA(3).fit(coo).explained_variance_), expected, rtol=1e-12)
    unsorted = X[:, ::-1]
    unsorted.has_sorted_indices = unsorted.has_canonical_format = False
    with config_context(device=device):
        found = PCA(3).fit(unsorted)
    np.testing.assert_allclose(4 * found.explained_variance_, expected, rtol=1e-12)


def test_kernels(device):
    near = X[:9]
    for kernel in (kernels.RBF(0.1), kernels.Cosine(), kernels.Polynomial(2)):
        expected = [kernel(X, near), kernel.diag(X), kernel.distances(X, near)]
        a, b = tensor(X), tensor(near, "coo")
        found = [kernel(a, b), kernel.diag(a), kernel.distances(a, b)]
        with config_context(device=device):
            found += [kernel(X, near), kernel.diag(X), kernel.distances(X, near)]
        for one, other in zip(found, 2 * expected, strict=True):
            np.testing.assert_allclose(host(one), other, rtol=1e-12, atol=1e-14)


def test_functions_take_rows_of_scipy(device):
    def product(x, y):
        assert isinstance(x, scipy.sparse.csr_array)
        return (x @ y.T).toarray()

    for kernel in (kernels.FromFunction(product), kernels.Separable(lambda x: x.sum(axis=1))):
        expected = KernelPCA(1, kernel=kernel).fit(X).explained_variance_
        for form in ("device", "csr"):
            made = on_device(form, device, KernelPCA(1, kernel=kernel).fit)
            np.testing.assert_allclose(host(made.explained_variance_), expected, rtol=1e-10)


def test_equal_and_near_rows_have_exact_distances():
    near = X[[5, 5, 6]].toarray() + 100.0
    near[1, 0] += 1e-7
    points = tensor(scipy.sparse.csr_array(near))
    distances = host(kernels.Linear().distances(points))
    assert distances[0, 0] == 0.0
    np.testing.assert_allclose(distances[0, 1], 1e-7, rtol=1e-6)


def test_landmarks_of_any_place(device):
    near = X[:30]
    expected = KernelPCA(2, **RBF, method=Subset(select=near.toarray())).fit(X)
    for points in (near, near.toarray(), tensor(near, "coo"), there(near.toarray()), range(30)):
        for form in ("device", "csr"):
            made = KernelPCA(2, **RBF, method=Subset(select=points))
            made = on_device(form, device, made.fit)
            values = host(made.explained_variance_)
            np.testing.assert_allclose(values, expected.explained_variance_, rtol=1e-10)


def test_sparse_landmarks_of_rows_far_from_zero():
    """The rows are moved toward zero: so must be the landmarks."""
    far = scipy.sparse.csr_array(X.toarray() + 1e4)
    values = [
        KernelPCA(2, kernel="linear", method=Subset(select=near)).fit(far).explained_variance_
        for near in (far[:60], far[:60].toarray())
    ]
    np.testing.assert_allclose(*values, rtol=1e-8)
    np.testing.assert_allclose(values[0], PCA(2).fit(X).explained_variance_, rtol=1e-8)


def test_rows_of_two_places():
    with pytest.raises(ValueError, match="on different devices"):
        kernels.RBF(1.0)(tensor(X), X)
    model = PCA(2).partial_fit(tensor(X))
    before = host(model.explained_variance_)
    with pytest.raises(ValueError, match="Earlier batches were on a different device"):
        model.partial_fit(X)
    np.testing.assert_array_equal(host(model.explained_variance_), before)


def test_what_needs_dense_rows_says_so(device):
    with pytest.raises(ValueError, match=r"needs dense rows.*X\.toarray\(\).*X\.to_dense\(\)"):
        KernelPCA(1, kernel=kernels.ChiSquare()).fit(tensor(X))
    with config_context(device=device), pytest.raises(ValueError, match=r"X\.toarray\(\)"):
        KernelPCA(1, kernel=kernels.Laplacian(0.1, norm="l1")).fit(X)
    with pytest.raises(ValueError, match=r"X is sparse.*X\.to_dense\(\)"):
        KernelPCA(1, **RBF, preimage="fixed_point").fit(tensor(X))
    with pytest.raises(TypeError, match=r"dense matrix.*X\.to_dense\(\)"):
        KernelPCA(1, kernel="precomputed").fit(tensor(X[:40]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        PCA(1).fit(tensor(X).to_dense().to(torch.complex128).to_sparse_csr())


def test_what_is_built_on_models(device):
    y = np.arange(250) % 3
    for make in (lambda: PCA(2), lambda: KernelPCA(2, **RBF)):
        classes = SubspaceClassifier(make()).fit(X, y).decision_function(X)
        far = NoveltyDetector(make()).fit(X).score_samples(X)
        for form in ("device", "csr"):
            found = on_device(
                form,
                device,
                lambda X, make=make: (
                    SubspaceClassifier(make()).fit(X, y).decision_function(X),
                    NoveltyDetector(make()).fit(X).score_samples(X),
                ),
            )
            for one, other in zip(found, (classes, far), strict=True):
                np.testing.assert_allclose(host(one), other, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("sketch", [Gaussian(10), Hashing(10), SparseSign(10), Hadamard(10)])
def test_sketches(sketch):
    expected, found = sketch.fit_transform(X), sketch.fit_transform(tensor(X))
    assert torch.is_tensor(found)
    np.testing.assert_allclose(host(found), expected, rtol=1e-12, atol=1e-14)
    with config_context(memory=40 * 10 * 8):  # computed again in parts
        parts = sketch.matrix_.apply(mercer.as_source(tensor(X)).load())
    np.testing.assert_allclose(host(parts), expected, rtol=1e-12, atol=1e-14)


def test_files(device, tmp_path):
    scipy.sparse.save_npz(tmp_path / "rows.npz", X)
    expected = PCA(3).fit(X).transform(X)
    with config_context(device=device):
        scores = PCA(3).fit(tmp_path / "rows.npz").transform(tmp_path / "rows.npz")
    assert apart(expected, scores.collect()) < 1e-10


def test_rows_in_a_file_are_copied_in_blocks(device, tmp_path):
    h5py = pytest.importorskip("h5py")
    path, memory = tmp_path / "rows.h5ad", 70_000
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "shape": X.shape})
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(X, name)
        for name, size in zip(("obs", "var"), X.shape, strict=True):
            file.create_group(name).attrs["_index"] = "_index"
            file[name]["_index"] = [str(i) for i in range(size)]
    expected = PCA(2, svd_solver="krylov", **SEED).fit(X).explained_variance_
    with config_context(device=device, memory=memory):
        source = mercer.data.to_configured_device(mercer.as_source(path))
        assert source.sparse
        assert type(source.source).__name__ == "CSRRows"
        made = PCA(2, svd_solver="krylov", tol=1e-9, **SEED).fit(path)
    np.testing.assert_allclose(made.explained_variance_, expected, rtol=1e-9)


def test_plans_count_the_entries(device):
    with config_context(device=device):
        plans = [PCA(3).plan(X), KernelPCA(3, **RBF).plan(X)]
    for plan in plans:
        assert f"{X.nnz} entries" in str(plan)


class Matrix:
    """A sparse matrix of CuPy, in form: SciPy's interface with arrays of another library."""

    ndim = 2

    def __init__(self, X):
        xp = pytest.importorskip("array_api_strict")
        self.data, self.indices, self.indptr = map(xp.asarray, (X.data, X.indices, X.indptr))
        self.shape, self.dtype = X.shape, X.dtype

    def tocsr(self):
        return self


@pytest.mark.parametrize(
    "estimator",
    [
        PCA(3),
        PCA(3, svd_solver="krylov", scale=True, **SEED),
        PCA(3, svd_solver="dot"),
        KernelPCA(3, **RBF),
        KernelPCA(3, **RBF, method=Subset(50)),
    ],
    ids=str,
)
def test_matrices_of_other_libraries(estimator):
    made = clone(estimator).fit(Matrix(X))
    scores = made.transform(Matrix(X))
    assert type(scores).__module__.startswith("array_api_strict")
    assert apart(clone(estimator).fit(X).transform(X), np.asarray(scores)) < 1e-10

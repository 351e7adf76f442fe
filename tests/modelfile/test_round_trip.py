"""What was saved is what is loaded, to the bit: every solver, kernel, method and estimator."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SaltAndPepper,
    SubspaceClassifier,
    landmarks,
    methods,
    rules,
    sketches,
)
from mercer.kernels import RBF, Linear, Precomputed, Subsequence
from mercer.linalg.solvers import krylov
from mercer.preimage import PREIMAGES, Distances, FixedPoint, Gradient, Ridge
from tests import kernel_catalogue
from tests.catalogue import WAYS, rows
from tests.landmarks.catalogue import ROWS as RULES
from tests.modelfile.bits import same, same_model, saved
from tests.sketches import catalogue as maps

pytestmark = pytest.mark.filterwarnings("ignore")

FLOATS = ("float64", "float32")
Y = np.repeat([0, 1, 2], 20)


@pytest.fixture(scope="module", name="X")
def rows_of_numbers():
    return np.random.default_rng(0).standard_normal((60, 6)) + 3


def alternating(cases):
    """Cases as parameters, each with one of the two precisions in turn."""
    # Addresses in names would tell the workers of a parallel run apart.
    return [
        pytest.param(case, FLOATS[i % 2], id=f"{str(case).split(' at 0x')[0]}-{FLOATS[i % 2]}")
        for i, case in enumerate(cases)
    ]


@pytest.mark.parametrize("way", rows(WAYS))
def test_every_solver(way, X, tmp_path):
    model = PCA(3, svd_solver=way.solver, random_state=0).fit(X)
    done = same_model(model, saved(model, tmp_path), X)
    assert {"transform", "score_samples", "reconstruction_error", "reconstruct"} <= set(done)


@pytest.mark.parametrize(
    ("how", "dtype"),
    alternating(
        [
            {"whiten": True},
            {"whiten": True, "scale": True},
            {"scale": True},
            {"center": False},
            {"n_components": "mle"},
            {"n_components": 0.9},
            {"n_components": rules.GavishDonoho()},
            {"n_components": np.int64(2), "tol": np.float32(0.1)},
            {"gap": 0.1, "svd_solver": "krylov"},
            {"svd_solver": methods.Sketch(sketches.Hashing(6, random_state=1)), "n_components": 2},
            {"svd_solver": methods.Iterative(krylov), "n_components": 2},
        ]
    ),
)
def test_every_parameter_of_pca(how, dtype, X, tmp_path):
    X = X.astype(dtype)
    model = PCA(**how).fit(X)
    again = saved(model, tmp_path)
    same_model(model, again, X)
    scores = model.transform(X)
    same(model.inverse_transform(scores), again.inverse_transform(scores))
    same(model.get_covariance(), again.get_covariance())
    same(model.loadings_, again.loadings_)


@pytest.mark.parametrize("row", rows(kernel_catalogue.KERNELS))
def test_every_kernel(row, tmp_path):
    rng = np.random.default_rng(0)
    X = kernel_catalogue.ROWS[row.rows](rng, 40)
    model = KernelPCA(2, kernel=row.kernel).fit(X)
    if row.name in ("fisher", "separable", "function"):
        with pytest.raises(mercer.modelfile.ModelFileError, match="kernel"):
            mercer.save(model, tmp_path / "model.mercer")
        assert not list(tmp_path.iterdir())
        return
    done = same_model(model, saved(model, tmp_path), kernel_catalogue.ROWS[row.rows](rng, 30))
    assert {"transform", "reconstruction_error"} <= set(done)


KERNEL_METHODS = [
    methods.Exact("dense"),
    methods.Exact(store="float32"),
    methods.Subset(20),
    methods.Subset(0.3, centroid="basis"),
    methods.Reduced(20),
    methods.Improved(20),
    methods.Nystrom(20),
    methods.Cholesky(20),
    methods.Greedy(10),
    methods.Adaptive(20),
    methods.Sketch(),
    methods.RandomFeatures(30),
    methods.RandomFeatures(30, orthogonal=True),
    methods.Sparse(10),
    methods.SparseL1(),
    methods.Hebbian(n_basis=20, max_passes=3),
]


@pytest.mark.parametrize(("method", "dtype"), alternating(KERNEL_METHODS))
def test_every_method(method, dtype, X, tmp_path):
    X = X.astype(dtype)
    weights = np.random.default_rng(1).integers(1, 4, len(X))
    model = KernelPCA(2, kernel="rbf", gamma="median", method=method, random_state=0)
    model.fit(X, sample_weight=weights)
    same_model(model, saved(model, tmp_path), X)


def test_the_methods_are_all_there():
    tried = {type(method) for method in KERNEL_METHODS}
    tried |= {type(row.solver) for row in WAYS} | {methods.Dot, methods.SVD}
    known = {getattr(methods, name) for name in methods.__all__}
    left = {cls.__name__ for cls in known - tried if issubclass(cls, methods.Method)}
    assert left == {"EM", "Method", "OnBasis", "Streaming"}  # EM is a value of PCA(missing=...)


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.name)
def test_every_landmark_rule(row, X, tmp_path):
    method = methods.Subset(10, row.rule)
    model = KernelPCA(2, kernel="rbf", gamma=0.1, method=method, random_state=0).fit(X)
    same_model(model, saved(model, tmp_path), X)


@pytest.mark.parametrize("eigen_solver", ["auto", "dense", "arpack", "randomized"])
def test_every_eigensolver(eigen_solver, X, tmp_path):
    model = KernelPCA(2, kernel="rbf", eigen_solver=eigen_solver, max_iter=500, random_state=0)
    same_model(model.fit(X), saved(model, tmp_path), X)


WAYS_BACK = [*PREIMAGES, FixedPoint(tol=1e-3), Gradient(), Ridge(kernel=Linear()), Distances(7)]


@pytest.mark.parametrize(("i", "preimage"), list(enumerate(WAYS_BACK)), ids=str)
def test_every_way_back(i, preimage, X, tmp_path):
    method = ("exact", methods.Subset(20))[i % 2]
    model = KernelPCA(2, kernel="rbf", gamma=0.05, preimage=preimage, method=method).fit(X)
    again = saved(model, tmp_path)
    assert "reconstruct" in same_model(model, again, X)
    a, b = (each.preimages(model.transform(X)) for each in (model, again))
    for name in ("rows", "converged", "steps", "distance"):
        same(getattr(a, name), getattr(b, name))


def test_the_way_back_of_scikit_learn(X, tmp_path):
    model = KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(X)
    assert "reconstruct" in same_model(model, saved(model, tmp_path), X)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.csr_matrix, sp.csc_array])
def test_sparse_rows(make, X, tmp_path):
    X = make(np.where(X > 3, X, 0.0))
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)):
        again = saved(model.fit(X), tmp_path)
        same(model.transform(X), again.transform(X))
        same(model.reconstruction_error(X), again.reconstruction_error(X))
    assert type(again.X_fit_) is type(model.X_fit_)


def test_points_that_are_given(X, tmp_path):
    for points in (X[:9], X[:9].tolist(), [0, 5, 7], range(0, 60, 7), sp.csr_array(X[:9])):
        rows = sp.csr_array(X) if sp.issparse(points) else X
        model = KernelPCA(2, kernel="rbf", method=methods.Subset(select=landmarks.Given(points)))
        model.fit(rows)
        again = saved(model, tmp_path)
        kind = list if isinstance(points, range) else type(points)
        assert type(again.method.select.points) is kind
        same(model.transform(rows), again.transform(rows))


def test_precomputed(X, tmp_path):
    model = KernelPCA(3, kernel="precomputed").fit(X @ X.T)
    same_model(model, saved(model, tmp_path), X @ X.T)
    model = KernelPCA(3, kernel=Precomputed(X @ X.T)).fit(np.arange(60.0)[:, None])
    same_model(model, saved(model, tmp_path), np.arange(60.0)[:, None])


def test_strings_of_any_kind(tmp_path):
    words = ["", "ß", "a\x00b", "\ud800", "日本", "'\"\\</script>", "x" * 50] * 3
    model = KernelPCA(2, kernel=Subsequence(2, 0.5).normalized()).fit(words)
    again = saved(model, tmp_path)
    assert again.X_fit_ == words
    same(model.transform(words), again.transform(words))


def test_tables(X, tmp_path):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "é", "</script>", "\n", " ", "x" * 10_000])
    for model in (PCA(2), KernelPCA(2, kernel="rbf"), NoveltyDetector()):
        model.fit(table)
        if hasattr(model, "set_output"):
            model.set_output(transform="pandas")
        again = saved(model, tmp_path)
        same(model.feature_names_in_, again.feature_names_in_)
        use = again.transform if hasattr(model, "transform") else again.score_samples
        if hasattr(model, "transform"):
            pd.testing.assert_frame_equal(model.transform(table), use(table))
        with pytest.raises(ValueError, match="feature names"):
            use(table[table.columns[::-1]])
    model = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(model.transform(table), saved(model, tmp_path).transform(table))
    names = mercer.modelfile.read_header(tmp_path / "model.mercer")["feature_names"]
    assert names == list(table.columns)


def test_torch(X, tmp_path):
    torch = pytest.importorskip("torch")
    basis = {"kernel": "rbf", "method": "subset"}
    for model, dtype in (
        (PCA(2, whiten=True), "float32"),
        (KernelPCA(2, kernel="rbf"), "float64"),
        (KernelPCA(2, kernel="rbf"), "float32"),
        (KernelPCA(2, **basis), "float32"),
    ):
        rows = torch.asarray(X.astype(dtype))
        again = saved(model.fit(rows), tmp_path)
        same_model(model, again, rows)
        assert isinstance(again.explained_variance_, torch.Tensor)
    rows = torch.asarray(X)
    for model in (PCA(2), KernelPCA(2, **basis)):
        model.partial_fit(rows[:30])
        again = saved(model, tmp_path).partial_fit(rows[30:])
        same_model(model.partial_fit(rows[30:]), again, rows)


@pytest.mark.parametrize("labels", [Y, Y.astype(str), Y.astype(str).astype(object), Y == 1])
def test_classifiers(labels, X, tmp_path):
    inside = KernelPCA(3, kernel="rbf", gamma=0.1) if labels.dtype.kind in "iO" else PCA(2)
    model = SubspaceClassifier(inside).fit(X, labels)
    assert "predict" in same_model(model, saved(model, tmp_path), X)
    model = NearestProjection(inside, 3, weights="distance").fit(X, labels)
    again = saved(model, tmp_path)
    assert "predict_proba" in same_model(model, again, X)
    for a, b in zip(model.kneighbors(X), again.kneighbors(X), strict=True):
        same(a, b)


def test_several_labels_a_row(X, tmp_path):
    model = NearestProjection(PCA(2)).fit(X, np.column_stack([Y, Y[::-1]]))
    again = saved(model, tmp_path)
    same(model.predict(X), again.predict(X))


def test_strings_by_class(tmp_path):
    words = ["aab", "aba", "baa", "xyx", "xxy", "yxx"]
    model = SubspaceClassifier(KernelPCA(1, kernel=Subsequence(2, 0.5)))
    model.fit(words, [0] * 3 + [1] * 3)
    same(model.predict(words), saved(model, tmp_path).predict(words))


@pytest.mark.parametrize("inside", [None, PCA(2), KernelPCA(9, kernel="laplacian")], ids=str)
def test_novelty(inside, X, tmp_path):
    model = NoveltyDetector(inside, contamination=0.2, cv=3).fit(X)
    done = same_model(model, saved(model, tmp_path), X)
    assert {"predict", "decision_function", "score_samples"} <= set(done)


@pytest.mark.parametrize(
    "model",
    [
        Denoiser(),
        Denoiser(gamma=0.05, n_components=3),
        Denoiser(PCA(), n_components=[1, 2], noise=SaltAndPepper(0.1), random_state=0),
        Denoiser(KernelPCA(2, kernel="rbf"), gamma=[0.1, 0.01], noise=0.1, limits=(0, 5)),
        Denoiser(PCA(2), image_shape=(2, 3)),
    ],
    ids=str,
)
def test_denoiser(model, X, tmp_path):
    model = copy.deepcopy(model).fit(X)
    again = saved(model, tmp_path)
    same_model(model, again, X)
    for name, column in getattr(model, "validation_error_", {}).items():
        same(column, again.validation_error_[name])


@pytest.mark.parametrize("name", [name for name in maps.MAPS if name != "groups"])
def test_sketches(name, tmp_path):
    X = maps.rows()
    model = copy.deepcopy(maps.MAPS[name]).fit(X)
    again = saved(model, tmp_path)
    assert repr(again) == repr(model)
    same(model.transform(X), again.transform(X))
    same(model.get_feature_names_out(), again.get_feature_names_out())


def test_groups_of_features(X, tmp_path):
    model = sketches.FeatureGrouping(3).fit(X)
    again = saved(model, tmp_path)
    same(model.transform(X), again.transform(X))
    assert again.bound_ == model.bound_
    for a, b in zip(model.groups_, again.groups_, strict=True):
        same(a, b)


@pytest.mark.parametrize(
    ("steps", "last", "dtype"),
    [
        ((SimpleImputer(),), PCA(2), "float32"),
        ((SimpleImputer(),), NoveltyDetector(), "float64"),
        ((StandardScaler(),), KernelPCA(2, kernel="rbf"), "float64"),
        ((StandardScaler(with_mean=False),), NoveltyDetector(), "float32"),
        ((SimpleImputer(), StandardScaler()), PCA(2), "float64"),
        ((SimpleImputer(), StandardScaler()), KernelPCA(2, kernel="rbf"), "float32"),
    ],
    ids=str,
)
def test_pipelines(steps, last, dtype, X, tmp_path):
    X = X.astype(dtype)
    if isinstance(steps[0], SimpleImputer):
        X[::7, 2] = np.nan
    model = make_pipeline(*steps, copy.deepcopy(last)).fit(X)
    again = saved(model, tmp_path)
    assert isinstance(again, Pipeline)
    assert [name for name, _ in again.steps] == [name for name, _ in model.steps]
    method = "predict" if isinstance(last, NoveltyDetector) else "transform"
    same(getattr(model, method)(X), getattr(again, method)(X))


STREAMS = [
    PCA(2),
    PCA(2, scale=True),
    PCA(2, svd_solver=methods.Covariance()),
    PCA(2, svd_solver=methods.FrequentDirections(4)),
    KernelPCA(2, kernel="rbf"),
    KernelPCA(2, kernel="rbf", method=methods.Subset(15, "kmeans"), random_state=0),
    KernelPCA(2, kernel="rbf", method=methods.RandomFeatures(20), random_state=0),
    KernelPCA(2, kernel="rbf", method=methods.Hebbian(n_basis=15), random_state=0),
    KernelPCA(2, kernel="linear", method="subset"),
]


@pytest.mark.parametrize(("model", "dtype"), alternating(STREAMS))
def test_batches_go_on(model, dtype, X, tmp_path):
    X, model = X.astype(dtype), copy.deepcopy(model)
    model.partial_fit(X[:30]).partial_fit(X[30:40])
    again = saved(model, tmp_path)
    same_model(model, again, X)
    model.partial_fit(X[40:])
    again.partial_fit(X[40:])
    same_model(model, again, X)
    same(model.explained_variance_, again.explained_variance_)
    with pytest.raises(ValueError, match="cannot change"):
        again.set_params(center=False).partial_fit(X)


def test_generators_go_on(X, tmp_path):
    model = PCA(2, random_state=np.random.RandomState(5)).fit(X)
    again = saved(model, tmp_path)
    assert model.random_state.standard_normal() == again.random_state.standard_normal()
    model.random_state.standard_normal()  # leaves the second of a pair behind
    again = saved(model, tmp_path)
    assert model.random_state.standard_normal() == again.random_state.standard_normal()
    sketch = sketches.Gaussian(2, random_state=np.random.default_rng(5)).fit(X)
    again = saved(sketch, tmp_path)
    assert sketch.random_state.standard_normal() == again.random_state.standard_normal()


def test_a_sum_of_many_kernels_is_not_deep(X, tmp_path):
    kernel = RBF(0.001)
    for i in range(2, 200):
        kernel = kernel + RBF(i * 0.001)
    model = KernelPCA(2, kernel=kernel).fit(X)
    same(model.transform(X[:5]), saved(model, tmp_path).transform(X[:5]))


def test_twice_is_the_same(X, tmp_path):
    model = NoveltyDetector(KernelPCA(2, kernel="rbf", preimage="ridge")).fit(X)
    again = saved(saved(model, tmp_path), tmp_path)
    same_model(model, again, X)


def test_shared_arrays_are_stored_once(X, tmp_path):
    wide = np.random.default_rng(0).standard_normal((20, 50_000))
    mercer.save(PCA(5).fit(wide), tmp_path / "wide.mercer")
    # Components, mean, deviations, scale: d × (5 + 1 + 1) entries and no more.
    assert (tmp_path / "wide.mercer").stat().st_size < 8 * 50_000 * 7.5
    X = np.random.default_rng(0).standard_normal((500, 400))
    model = KernelPCA(2, kernel="rbf").fit(X)
    mercer.save(model, tmp_path / "rows.mercer")
    assert (tmp_path / "rows.mercer").stat().st_size < 1.2 * X.nbytes
    again = mercer.load(tmp_path / "rows.mercer")
    assert np.shares_memory(again.X_fit_, again.projection_.basis)
    again = mercer.load(tmp_path / "wide.mercer")
    assert np.shares_memory(again.components_, again.projection_.components)


def test_sparse_rows_with_room_to_spare(tmp_path):
    """SciPy allows more entries to be stored than are used."""
    rows = sp.csr_array(np.eye(4))
    spare = sp.csr_array((4, 4))
    spare.data = np.append(rows.data, 7.0)
    spare.indices = np.append(rows.indices, 0).astype(rows.indices.dtype)
    spare.indptr = rows.indptr
    model = KernelPCA(2, kernel="rbf", copy_X=False).fit(spare)
    same_model(model, saved(model, tmp_path), rows)

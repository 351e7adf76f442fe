"""What PCA does beyond scikit-learn's: rules, sparse rows, weights, scale, batches, files."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, config_context, rules
from mercer.data import Source, as_source
from mercer.estimators.pca import SOLVERS
from mercer.methods import SVD, Covariance, Dot, FrequentDirections, Iterative

METHODS = {
    "full": SVD(),
    "covariance_eigh": Covariance(),
    "dot": Dot(),
    "krylov": Iterative("krylov"),
    "arpack": Iterative("arpack"),
    "jacobi": Covariance("jacobi"),
    "power": Covariance("power"),
}
Theirs = sklearn.decomposition.PCA
RULES = [
    rules.Count(3),
    rules.Fraction(0.9),
    rules.RelativeError(0.2),
    rules.Threshold(0.1),
    rules.Kaiser(),
    rules.BrokenStick(),
    rules.ParallelAnalysis(20),
    rules.MLE(),
    rules.GavishDonoho(),
]

RNG = np.random.default_rng(0)
MIXED = RNG.normal(size=(60, 8)) @ RNG.normal(size=(8, 8)) + 3


def rows(shape=(90, 7), seed=0, dtype=np.float64):
    """Rows with a mean and a spectrum that falls by 0.6."""
    n, d = shape
    rng = np.random.default_rng(seed)
    r = min(n, d)
    left, _ = np.linalg.qr(rng.normal(size=(n, r)))
    right, _ = np.linalg.qr(rng.normal(size=(d, r)))
    return ((left * 10 * 0.6 ** np.arange(r)) @ right.T + rng.normal(size=d)).astype(dtype)


def sparse_rows(shape, seed=0):
    """Sparse rows with a mean that counts and columns of falling size."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array(shape, density=0.2, rng=rng, format="csr")
    X.data += 1.0
    return (X * (10 * 0.7 ** np.arange(shape[1]))).tocsr()


def same_fit(a, b, rtol=1e-8):
    """Compare two fits by variances and by what their axes project on."""
    assert_allclose(a.mean_, b.mean_, rtol=rtol, atol=rtol)
    assert_allclose(a.scale_, b.scale_, rtol=rtol)
    assert_allclose(a.explained_variance_, b.explained_variance_, rtol=rtol)
    assert_allclose(a.explained_variance_ratio_, b.explained_variance_ratio_, rtol=rtol)
    assert_allclose(a.singular_values_, b.singular_values_, rtol=rtol)
    assert_allclose(a.components_, b.components_, atol=100 * rtol)
    assert_allclose(a.noise_variance_, b.noise_variance_, rtol=1e-6, atol=1e-12)


# Solvers.


@pytest.mark.parametrize("name", METHODS)
def test_a_name_runs_the_method_it_stands_for(name):
    X = rows()
    assert PCA(2, svd_solver=name).fit(X).plan_.method == METHODS[name]


@pytest.mark.parametrize("method", [*METHODS.values(), FrequentDirections(7)], ids=repr)
def test_a_method_may_be_given_itself(method):
    X = rows()
    pca = PCA(2, svd_solver=method, random_state=0).fit(X)
    assert pca.plan_.method is method
    same_fit(pca, PCA(2, svd_solver="full").fit(X))


@pytest.mark.parametrize("solver", ["jacobi", "power"])
def test_few_rows_are_decomposed_by_their_dot_products(solver):
    assert PCA(2, svd_solver=solver).fit(rows((7, 90))).plan_.method == Dot(solver)


@pytest.mark.parametrize("solver", SOLVERS)
def test_plan_tells_the_reason(solver):
    plan = PCA(2, svd_solver=solver).fit(rows()).plan_
    assert plan.reason == (
        "the most accurate method, cheap for data of this size"
        if solver == "auto"
        else "as requested"
    )


def test_tol_is_met_by_the_residuals():
    X = np.random.default_rng(0).normal(size=(400, 60))
    certificate = PCA(3, svd_solver="krylov", tol=1e-3, random_state=0).fit(X).certificate_
    assert np.all(certificate.residuals <= 1e-3 * certificate.eigenvalues)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(60, 9), (9, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != "power"])
def test_more_axes_than_the_rank(solver, shape, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(shape[0], 2)) @ rng.normal(size=(2, shape[1]))).astype(dtype)
    pca = PCA(4, svd_solver=solver, random_state=0).fit(X)
    expected = Theirs(4, svd_solver="full").fit(X.astype(np.float64)).explained_variance_
    assert_allclose(pca.explained_variance_, expected, rtol=1e-5, atol=1e-5)
    assert_allclose(pca.components_ @ pca.components_.T, np.eye(4), atol=1e-5)


# How many axes.


def test_the_rules_tested_are_all_there_are():
    ours = [
        kind for kind in rules.Rule.__subclasses__() if kind.__module__.startswith(rules.__name__)
    ]
    assert {type(rule) for rule in RULES} == {*ours} - {rules.CrossValidation}  # it needs the rows


@pytest.mark.parametrize("solver", ["auto", "covariance_eigh", "krylov"])
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_chooses_from_the_spectrum(rule, solver):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40)) + 3 * rng.normal(size=(300, 4)) @ rng.normal(size=(4, 40))
    whole = PCA().fit(X)
    expected = rule.choose(whole.explained_variance_, whole.explained_variance_.sum(), 300, 40)
    assert PCA(rule, svd_solver=solver, random_state=0).fit(X).n_components_ == expected


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_share_of_the_variance_with_every_solver(solver, container):
    X = sparse_rows((80, 12)).toarray()
    expected = Theirs(0.9, svd_solver="full").fit(X)
    pca = PCA(0.9, svd_solver=solver, random_state=0).fit(container(X))
    assert pca.n_components_ == expected.n_components_
    assert_allclose(pca.explained_variance_ratio_, expected.explained_variance_ratio_, rtol=1e-6)


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s not in ("arpack", "randomized")])
def test_mle_with_every_solver_that_finds_all(solver):
    X = rows((200, 6)) + 0.3 * np.random.default_rng(0).normal(size=(200, 6))
    expected = Theirs("mle").fit(X).n_components_
    assert PCA("mle", svd_solver=solver, random_state=0).fit(X).n_components_ == expected


# Sparse rows.


@pytest.mark.parametrize("shape", [(80, 12), (12, 80)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_give_what_dense_rows_give(solver, shape):
    X = sparse_rows(shape)
    sparse, dense = (PCA(3, svd_solver=solver, random_state=0) for _ in range(2))
    same_fit(sparse.fit(X), dense.fit(X.toarray()))


@pytest.mark.parametrize(
    "method", ["transform", "reconstruct", "reconstruction_error", "score_samples"]
)
def test_sparse_rows_through_a_fit(method):
    X = sparse_rows((80, 12))
    pca = PCA(3).fit(X)
    assert_allclose(
        getattr(pca, method)(X), getattr(pca, method)(X.toarray()), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_formats(form, kind):
    X = getattr(scipy.sparse, f"{form}_{kind}")(sparse_rows((40, 6)))
    same_fit(PCA(2).fit(X), PCA(2).fit(X.toarray()))


@pytest.mark.parametrize("solver", ["krylov", "arpack", "randomized"])
def test_sparse_rows_are_not_made_dense(solver):
    shape = (1000, 20_000)
    X = scipy.sparse.random_array(shape, density=1e-3, rng=np.random.default_rng(0), format="csr")
    pca = PCA(2, svd_solver=solver, random_state=0, tol=0.1)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        pca.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * shape[0] * shape[1] / 4


# Weights.


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_weight_is_a_count(solver):
    X, w = rows((40, 6)), np.random.default_rng(0).integers(0, 4, size=40)
    weighted = PCA(3, svd_solver=solver, random_state=0).fit(X, sample_weight=w)
    same_fit(weighted, PCA(3, svd_solver="full").fit(np.repeat(X, w, axis=0)), rtol=1e-7)


def test_weights_of_sparse_rows():
    X, w = sparse_rows((60, 8)), np.random.default_rng(0).uniform(size=60)
    same_fit(PCA(3).fit(X, sample_weight=w), PCA(3).fit(X.toarray(), sample_weight=w))


def test_fit_transform_takes_weights():
    X, w = rows(), np.arange(90)
    expected = PCA(2).fit(X, sample_weight=w).transform(X)
    assert_allclose(PCA(2).fit_transform(X, sample_weight=w), expected, atol=1e-9)


def test_weights_may_be_fractions():
    X, w = rows(), np.random.default_rng(0).uniform(size=90)
    mean = w @ X / w.sum()
    C = ((X - mean).T * w) @ (X - mean) / (w.sum() - 1)
    values = PCA(3).fit(X, sample_weight=w).explained_variance_
    assert_allclose(values, np.linalg.eigvalsh(C)[::-1][:3])


# Centre and scale.


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_centring_the_axes_are_singular_vectors_of_the_rows(solver):
    X = rows() + 3.0
    pca = PCA(2, center=False, svd_solver=solver, random_state=0).fit(X)
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    assert_allclose(np.abs(pca.components_), np.abs(Vt[:2]), atol=1e-7)
    assert_allclose(pca.singular_values_, s[:2], rtol=1e-7)
    assert not np.any(pca.mean_)
    assert_allclose(pca.transform(X), X @ pca.components_.T, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_scale_is_a_standard_scaler_inside(solver, container):
    X = sparse_rows((80, 7)).toarray()
    pca = PCA(3, scale=True, svd_solver=solver, random_state=0).fit(container(X))
    pipe = make_pipeline(StandardScaler(), Theirs(3, svd_solver="full")).fit(X)
    factor = (len(X) - 1) / len(X)  # StandardScaler divides by n
    assert_allclose(pca.scale_, pipe[0].scale_ / factor**0.5)
    assert_allclose(pca.explained_variance_, factor * pipe[1].explained_variance_, rtol=1e-7)
    scores = factor**0.5 * pipe.transform(X)
    assert_allclose(pca.transform(container(X)), scores, atol=1e-6)


# R 4: p <- prcomp(read.csv(text="a,b,c\n1,2,3\n2,4,5\n3,6,1\n4,8,7"), scale. = TRUE) is an SVD of
# the columns over sd(x), whose divisor is n − 1.
R_TABLE = np.array([[1.0, 2, 3], [2, 4, 5], [3, 6, 1], [4, 8, 7]])


@pytest.mark.parametrize("container", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_scale_has_the_convention_of_prcomp(solver, container):
    Z = (R_TABLE - R_TABLE.mean(axis=0)) / R_TABLE.std(axis=0, ddof=1)
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    pca = PCA(2, scale=True, svd_solver=solver, random_state=0).fit(container(R_TABLE))
    assert_allclose(pca.scale_, R_TABLE.std(axis=0, ddof=1))
    assert_allclose(pca.explained_variance_, s[:2] ** 2 / 3, rtol=1e-9)
    assert_allclose(np.abs(pca.transform(container(R_TABLE))), np.abs(Z @ Vt[:2].T), atol=1e-9)
    assert pca.projection_.total_variance == pytest.approx(3.0)
    # Correlations of columns and scores: of a and the first, 0.968.
    scores = pca.transform(R_TABLE)
    expected = [[np.corrcoef(x, y)[0, 1] for y in scores.T] for x in R_TABLE.T]
    assert_allclose(pca.loadings_, expected, atol=1e-9)
    assert abs(pca.loadings_[0, 0]) == pytest.approx(0.968, abs=5e-4)


@pytest.mark.parametrize("seed", range(20))
def test_loadings_of_scaled_columns_never_exceed_one(seed):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 12), rng.integers(2, 6)
    X = rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) * 10.0 ** rng.integers(-3, 4, d)
    weights = rng.integers(1, 4, n) * 1.0
    X[:, 0] = 5.0  # does not vary
    for w in (None, weights):
        pca = PCA(scale=True).fit(X, sample_weight=w)
        assert np.abs(pca.loadings_).max() <= 1 + 1e-12
        assert pca.projection_.total_variance == pytest.approx(d - 1)
        # All components together hold each column that varies.
        assert_allclose((pca.loadings_**2).sum(axis=1), [0.0] + [1.0] * (d - 1), atol=1e-10)
        batches = PCA(scale=True).partial_fit(X, sample_weight=w)
        assert_allclose(batches.scale_, pca.scale_)


def test_scale_comes_back_in_the_units_of_the_rows():
    X = rows()
    pca = PCA(scale=True).fit(X)
    assert_allclose(pca.inverse_transform(pca.transform(X)), X)


def test_scale_leaves_a_constant_column_alone():
    X = rows()
    X[:, 2] = 0.1
    pca = PCA(2, scale=True).fit(X)
    assert pca.scale_[2] == 1.0
    assert_allclose(pca.components_[:, 2], 0.0, atol=1e-12)


def test_unscaled_rows_have_scale_one():
    assert np.all(PCA(2).fit(rows()).scale_ == 1.0)


@pytest.mark.parametrize("scale", [False, True])
def test_loadings_are_covariances_of_columns_and_whitened_scores(scale):
    X = rows()
    pca = PCA(3, whiten=True, scale=scale).fit(X)
    preprocessed = (X - pca.mean_) / pca.scale_
    expected = preprocessed.T @ pca.transform(X) / (len(X) - 1)
    assert_allclose(pca.loadings_, expected, atol=1e-10)


# What the axes keep.


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
def test_reconstruct_is_there_and_back(whiten, scale):
    X = rows()
    pca = PCA(3, whiten=whiten, scale=scale).fit(X)
    assert_allclose(pca.reconstruct(X), pca.inverse_transform(pca.transform(X)))


@pytest.mark.parametrize("whiten", [False, True])
def test_reconstruction_error_is_the_squared_distance(whiten):
    X = rows()
    pca = PCA(3, whiten=whiten).fit(X)
    apart = X - pca.inverse_transform(pca.transform(X))
    assert_allclose(pca.reconstruction_error(X), (apart**2).sum(axis=1))


def test_reconstruction_error_with_scale_is_in_deviations():
    X = rows()
    pca = PCA(3, scale=True).fit(X)
    apart = (X - pca.reconstruct(X)) / pca.scale_
    assert_allclose(pca.reconstruction_error(X), (apart**2).sum(axis=1))


def test_reconstruction_errors_sum_to_the_variance_left_out():
    X = rows()
    pca = PCA(3).fit(X)
    left = X.var(axis=0, ddof=1).sum() - pca.explained_variance_.sum()
    assert_allclose(pca.reconstruction_error(X).sum() / (len(X) - 1), left)


def test_no_axes_keep_the_mean_alone():
    X = rows()
    pca = PCA(0).fit(X)
    assert pca.transform(X).shape == (90, 0)
    assert_allclose(pca.reconstruct(X), np.broadcast_to(X.mean(axis=0), X.shape))


def test_likelihood_without_noise_is_that_on_the_span():
    X = rows()
    X[:, 3] = X[:, 1] + X[:, 2]
    pca = PCA(6).fit(X)
    normal = np.append(np.array([0.0, 1, 1, -1]), np.zeros(3))
    on, off = pca.score_samples(X), pca.score_samples(X + normal)
    assert np.all(np.isfinite(on))
    assert np.all(np.isneginf(off))


# Batches.


def batches(X, *cuts):
    return np.split(X, cuts)


@pytest.mark.parametrize(
    "change", [{}, {"scale": True}, {"whiten": True}, {"center": False}], ids=str
)
@pytest.mark.parametrize("solver", ["auto", "full", Covariance()], ids=str)
def test_batches_are_one_fit(solver, change):
    X = rows()
    pca = PCA(3, svd_solver=solver, **change)
    for batch in batches(X, 10, 15, 60):
        pca.partial_fit(batch)
    once = PCA(3, svd_solver="full", **change).fit(X)
    same_fit(pca, once)
    assert pca.n_samples_ == 90
    assert_allclose(pca.transform(X), once.transform(X), atol=1e-8)


def test_batches_of_weighted_rows():
    X, w = rows(), np.random.default_rng(0).integers(0, 4, size=90)
    pca = PCA(3)
    for part in (slice(0, 20), slice(20, 90)):
        pca.partial_fit(X[part], sample_weight=w[part])
    same_fit(pca, PCA(3).fit(X, sample_weight=w))


def test_batches_with_a_drifting_mean():
    X = rows() + 1e6 * np.linspace(0, 1, 90)[:, None]
    pca = PCA(3)
    for batch in batches(X, 30, 60):
        pca.partial_fit(batch)
    once = PCA(3, svd_solver="full").fit(X)
    assert_allclose(pca.explained_variance_, once.explained_variance_, rtol=1e-7)
    assert_allclose(pca.components_, once.components_, atol=1e-6)


@pytest.mark.parametrize("container", [scipy.sparse.csr_array, as_source], ids=["sparse", "Source"])
def test_batches_of_any_kind(container):
    X = sparse_rows((60, 8)).toarray()
    pca = PCA(3)
    for batch in batches(X, 20):
        pca.partial_fit(container(batch))
    same_fit(pca, PCA(3).fit(X))


@pytest.mark.parametrize("weights", [None, np.ones(1)])
def test_a_single_row_may_be_a_later_batch(weights):
    X = rows()
    pca = PCA(3).partial_fit(X[:89]).partial_fit(X[89:], sample_weight=weights)
    same_fit(pca, PCA(3).fit(X))


def test_fit_after_batches_starts_anew():
    X, Y = rows(seed=1), rows(seed=2)
    pca = PCA(3).partial_fit(X).fit(Y)
    same_fit(pca, PCA(3).fit(Y))


def test_rows_so_wide_that_batches_are_sketched():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [9, 7, 5, 3] @ rng.normal(size=(4, 2000))
    X += rng.normal(size=X.shape)
    pca = PCA(3)
    with config_context(memory="2MiB"):
        with pytest.warns(mercer.ConvergenceWarning, match="2000×2000"):
            pca.partial_fit(X[:100])
        for batch in batches(X[100:], 80):
            pca.partial_fit(batch)
    centred = X - X.mean(axis=0)
    total = (centred**2).sum()
    held = ((centred @ pca.components_.T) ** 2).sum() / total
    best = (np.linalg.svd(centred, compute_uv=False)[:3] ** 2).sum() / total
    certificate = pca.certificate_
    assert certificate.captured <= held <= best <= certificate.optimum_upper
    assert certificate.captured.label == certificate.optimum_upper.label == "proven"
    assert certificate.gap < 0.3
    assert_allclose(pca.mean_, X.mean(axis=0), atol=1e-12)


def test_wide_batches_warn_once():
    X = rows((60, 2000))
    with config_context(memory="2MiB"):
        with pytest.warns(mercer.ConvergenceWarning, match="partial_fit"):
            pca = PCA(2).partial_fit(X[:30])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pca.partial_fit(X[30:])


# Files and sources.


@pytest.fixture(params=["C", "F"])
def path(request, tmp_path):
    np.save(tmp_path / "rows.npy", np.asarray(rows(), order=request.param))
    return tmp_path / "rows.npy"


@pytest.mark.parametrize("kind", [str, lambda p: p, as_source], ids=["str", "Path", "Source"])
def test_fit_of_a_file(path, kind):
    same_fit(PCA(3).fit(kind(path)), PCA(3).fit(rows()))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(90, 7), (7, 90)], ids=["tall", "wide"])
def test_fit_of_a_file_with_every_solver(solver, shape, tmp_path):
    np.save(tmp_path / "x.npy", rows(shape))
    pca = PCA(3, svd_solver=solver, random_state=0)
    same_fit(pca.fit(tmp_path / "x.npy"), PCA(3).fit(rows(shape)), rtol=1e-7)


@pytest.mark.parametrize("kind", [str, as_source], ids=["path", "Source"])
@pytest.mark.parametrize("method", ["transform", "reconstruct", "fit_transform"])
def test_a_file_in_a_source_out(path, kind, method):
    pca = PCA(3).fit(rows())
    out = getattr(pca, method)(kind(path))
    assert isinstance(out, Source)
    assert_allclose(out.collect(), getattr(pca, method)(rows()), atol=1e-9)


@pytest.mark.parametrize("kind", [str, as_source], ids=["path", "Source"])
@pytest.mark.parametrize("method", ["score_samples", "reconstruction_error", "score"])
def test_figures_of_the_rows_of_a_file(path, kind, method):
    pca = PCA(3).fit(rows())
    assert_allclose(getattr(pca, method)(kind(path)), getattr(pca, method)(rows()))


def test_there_and_back_through_files(path, tmp_path):
    pca = PCA(3).fit(path)
    np.save(tmp_path / "scores.npy", pca.transform(path).collect())
    back = pca.inverse_transform(tmp_path / "scores.npy")
    assert isinstance(back, Source)
    assert_allclose(back.collect(), pca.reconstruct(rows()))


def test_back_from_a_source_of_scores(path):
    pca = PCA(3).fit(path)
    assert_allclose(pca.inverse_transform(pca.transform(path)).collect(), pca.reconstruct(rows()))


@pytest.mark.parametrize("dtype", ["f4", "u1", "i8", ">f8", "f2"])
def test_what_a_file_may_hold(dtype, tmp_path):
    X = np.clip(rows() * 10 + 100, 0, 255).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    pca = PCA(2).fit(tmp_path / "x.npy")
    assert pca.components_.dtype == (np.float32 if dtype == "f4" else np.float64)
    assert_allclose(pca.components_, PCA(2).fit(X).components_, atol=1e-5)


def test_weights_of_the_rows_of_a_file(path):
    w = np.arange(90)
    same_fit(PCA(3).fit(path, sample_weight=w), PCA(3).fit(rows(), sample_weight=w))


def test_a_file_in_batches(path):
    same_fit(PCA(3).partial_fit(path).partial_fit(path), PCA(3).fit(np.tile(rows(), (2, 1))))


def test_set_output_makes_tables_of_sources_too(path):
    pca = PCA(3).fit(rows()).set_output(transform="pandas")
    for lazy in (as_source(rows()), path):
        scores = pca.transform(lazy)
        assert list(scores.columns) == ["pca0", "pca1", "pca2"]
        assert_allclose(scores, PCA(3).fit_transform(rows()), atol=1e-9)


# Likelihood, rules, progress, attributes and pickles.


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_likelihood_of_float32_rows_is_that_of_float64(load):
    B = load().data
    single = PCA().fit(B.astype(np.float32))
    expected = sklearn.decomposition.PCA().fit(B).score(B)
    assert single.score(B.astype(np.float32)) == pytest.approx(expected, abs=2e-2)
    assert single.score(B) == pytest.approx(expected, abs=2e-2)
    assert PCA().fit(B).score(B.astype(np.float32)) == pytest.approx(expected, abs=2e-2)


def test_weights_that_sum_to_less_than_the_columns():
    light = PCA().fit(MIXED, sample_weight=np.full(60, 0.1))
    assert light.n_components_ == 8
    assert np.allclose(np.abs(light.components_), np.abs(PCA().fit(MIXED).components_))
    few = PCA().fit(MIXED[:6], sample_weight=[1, 1, 0, 0, 0, 0])
    assert few.n_components_ == 6
    assert few.explained_variance_ratio_[0] == pytest.approx(1.0)


class Never(rules.Rule):
    def choose(self, values, total, n, d):
        return None


@pytest.mark.parametrize("solver", ["auto", "full", "krylov", "covariance_eigh", "dot"])
def test_a_rule_that_never_chooses(solver):
    with pytest.raises(ValueError, match=r"Never\(\) did not choose a number from all 8"):
        PCA(Never(), svd_solver=solver).fit(MIXED)


def test_progress_is_a_line_a_kind_of_pass(capsys):
    wide = np.random.default_rng(0).normal(size=(200, 900))
    with config_context(progress=True):
        PCA(3, svd_solver="krylov", random_state=0).fit(wide)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 4
    assert any("product" in line for line in lines)


def test_attributes_that_users_change_are_used():
    pca = PCA(4).fit(MIXED)
    expected = pca.transform(MIXED)
    pca.components_ = pca.components_[:2]
    assert np.allclose(pca.transform(MIXED), expected[:, :2])
    pca.mean_ = np.zeros(8)
    assert np.allclose(pca.transform(MIXED), MIXED @ pca.components_.T)


def test_a_pickle_holds_the_axes_once():
    pca = PCA(20).fit(np.random.default_rng(0).normal(size=(100, 4000)))
    stored = pickle.dumps(pca)
    assert len(stored) <= 1.3 * pca.components_.nbytes
    again = pickle.loads(stored)
    again.components_ *= -1
    assert np.allclose(again.projection_.components, -pca.projection_.components)


def test_a_lazy_result_says_what_it_is(tmp_path):
    np.save(tmp_path / "rows.npy", MIXED)
    scores = PCA(2).fit(MIXED).transform(tmp_path / "rows.npy")
    assert repr(scores) == "<Mapped of 60 × 2 float64; collect() gives the rows>"


def test_the_likelihood_of_scaled_columns_is_that_of_the_original_units():
    X = np.random.default_rng(40).normal(size=(60, 4)) * [1.0, 10.0, 0.1, 3.0] + 5.0
    pca = PCA(2, scale=True).fit(X)
    deviation = X.std(axis=0, ddof=1)
    Z = (X - X.mean(axis=0)) / deviation
    expected = PCA(2).fit(Z).score_samples(Z) - np.log(deviation).sum()
    np.testing.assert_allclose(pca.score_samples(X), expected, rtol=1e-10)

"""KernelPCA as users meet it."""

import contextlib
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, ConvergenceWarning, KernelPCA, config_context
from mercer.kernels import (
    RBF,
    FromFunction,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Subsequence,
    Tanh,
)
from mercer.methods import Adaptive, Exact
from mercer.preimage import Distances, FixedPoint, Gradient, Ridge
from mercer.rules import BrokenStick, Kaiser, Threshold
from tests.catalogue import cycled

X = load_iris().data
RNG = np.random.default_rng(0)
Z, NEW = RNG.standard_normal((60, 4)), RNG.standard_normal((20, 4))
WORDS = ["banana", "bandana", "ananas", "cat", "car", "cart", "bananas", "ant"]


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "cosine"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_drop_in_for_scikit_learn(kernel, dtype):
    """Parameters, attributes, signs and dtypes."""
    rows = X.astype(dtype) / 10
    theirs = sklearn.decomposition.KernelPCA(
        3, kernel=kernel, gamma=0.3, fit_inverse_transform=True
    )
    ours = KernelPCA(3, kernel=kernel, gamma=0.3, fit_inverse_transform=True)
    expected, found = theirs.fit_transform(rows), ours.fit_transform(rows)
    error = 1e-9 if dtype == "float64" else 2e-3  # theirs rounds the kernel matrix
    assert found.dtype == expected.dtype == dtype
    assert np.abs(found - expected).max() <= error
    assert np.abs(ours.transform(rows) - theirs.transform(rows)).max() <= error
    assert np.abs(ours.inverse_transform(found) - theirs.inverse_transform(expected)).max() <= error
    names = "eigenvalues_ eigenvectors_ X_fit_ dual_coef_ X_transformed_fit_"
    for name in names.split():
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype, name
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    assert ours.gamma_ == theirs.gamma_
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    theirs_only = set(theirs.get_params()) - set(ours.get_params())
    assert not theirs_only
    assert all(ours.get_params()[k] == v for k, v in theirs.get_params().items())


def test_gamma_by_default_and_from_the_rows():
    assert KernelPCA(2, kernel="rbf").fit(X).gamma_ == 0.25
    distances = pairwise.euclidean_distances(X)[np.triu_indices(len(X), 1)]
    median = KernelPCA(2, kernel="rbf", gamma="median").fit(X)
    assert median.gamma_ == pytest.approx(0.5 / np.median(distances) ** 2)
    assert median.kernel_ == RBF(median.gamma_)
    blocks = pairwise.manhattan_distances(X)[np.triu_indices(len(X), 1)]
    median = KernelPCA(2, kernel="laplacian", gamma="median").fit(X)
    assert median.gamma_ == pytest.approx(1 / np.median(blocks))
    assert median.kernel_ == Laplacian(median.gamma_, "l1")
    scale = KernelPCA(2, kernel="poly", gamma="scale").fit(X)
    assert scale.gamma_ == pytest.approx(1 / (4 * X.var()))
    for kernel in ("poly", "sigmoid", "gaussian"):
        found = KernelPCA(2, kernel=kernel, gamma="median").fit(X)
        assert found.gamma_ == pytest.approx(0.5 / np.median(distances) ** 2)
    chi2 = -pairwise.additive_chi2_kernel(X)[np.triu_indices(len(X), 1)]
    found = KernelPCA(2, kernel="chi2", gamma="median").fit(X)
    assert found.gamma_ == pytest.approx(1 / np.median(chi2))
    for kernel in (RBF(1.0), "rbf(1)", "matern"):
        for gamma in ("median", 0.3):
            with pytest.raises(ValueError, match="gamma"):
                KernelPCA(2, kernel=kernel, gamma=gamma).fit(X)


@pytest.mark.parametrize("kernel", ["linear", "cosine", "additive_chi2", "precomputed"])
def test_kernels_without_a_gamma_ignore_it_in_words_as_in_numbers(kernel):
    rows = X[:40] @ X[:40].T if kernel == "precomputed" else X
    fits = [
        KernelPCA(2, kernel=kernel, gamma=gamma).fit(rows)
        for gamma in (None, 0.3, "median", "scale")
    ]
    for fit in fits[1:]:
        assert np.array_equal(fit.eigenvalues_, fits[0].eigenvalues_)


def test_a_grid_over_kernels_and_gamma():
    names = ["linear", "poly", "rbf", "gaussian", "sigmoid", "cosine", "laplacian", "chi2"]
    grid = {"kernelpca__kernel": names, "kernelpca__gamma": ["median", "scale", 0.1, None]}
    model = make_pipeline(KernelPCA(2), LogisticRegression())
    found = GridSearchCV(model, grid, cv=2, error_score="raise").fit(X, load_iris().target)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("kernel", "matrix"),
    [
        ("rbf(0.1) + 2*poly(2)", lambda A: RBF(0.1)(A) + 2 * Polynomial(2)(A)),
        (RBF(0.1), RBF(0.1)),
        (lambda x, y: float(x @ y) ** 2, lambda A: (A @ A.T) ** 2),
        (FromFunction(lambda A, B: (A @ B.T) ** 2), lambda A: (A @ A.T) ** 2),
    ],
)
def test_kernels_of_every_kind(kernel, matrix):
    found = KernelPCA(2, kernel=kernel).fit(X)
    expected = sklearn.decomposition.KernelPCA(2, kernel="precomputed").fit(matrix(X))
    assert np.allclose(found.eigenvalues_, expected.eigenvalues_)


def test_parameters_of_a_function():
    def power(x, y, p=1):
        return float(x @ y) ** p

    found = KernelPCA(2, kernel=power, kernel_params={"p": 2}).fit(X[:40])
    expected = KernelPCA(2, kernel=Polynomial(2, 0.0)).fit(X[:40])
    assert np.allclose(found.eigenvalues_, expected.eigenvalues_)


def test_strings():
    kpca = KernelPCA(2, kernel=Subsequence(2, 0.5).normalized()).fit(WORDS)
    assert np.allclose(kpca.transform(WORDS), kpca.fit_transform(WORDS))
    assert kpca.transform(pd.Series(["cab"])).shape == (1, 2)
    with pytest.raises(ValueError, match="takes strings, but X contains numbers"):
        clone(kpca).fit(X)
    with pytest.raises(ValueError, match="takes vectors, but X contains strings"):
        KernelPCA(2, kernel="rbf").fit(WORDS)


def test_fractions_and_rules():
    full = KernelPCA(kernel=RBF(0.1)).fit(X)
    shares = np.cumsum(full.explained_variance_ratio_)
    assert shares[-1] == pytest.approx(1.0)
    some = KernelPCA(0.95, kernel=RBF(0.1)).fit(X)
    assert some.n_components_ == np.searchsorted(shares, 0.95) + 1
    large = KernelPCA(Threshold(0.05), kernel=RBF(0.1)).fit(X)
    assert large.n_components_ == (full.eigenvalues_ >= 0.05 * full.eigenvalues_[0]).sum()


def test_in_a_pipeline_and_a_grid():
    rows, y = make_circles(120, factor=0.3, noise=0.05, random_state=0)
    model = make_pipeline(KernelPCA(2, kernel=RBF(0.01)), LogisticRegression())
    search = GridSearchCV(model, {"kernelpca__kernel__gamma": [0.001, 5.0]}, cv=3).fit(rows, y)
    assert search.best_params_["kernelpca__kernel__gamma"] == 5.0
    assert search.best_score_ == 1.0
    method = GridSearchCV(
        make_pipeline(KernelPCA(2, method=Exact()), LogisticRegression()),
        {"kernelpca__method__store": ["float64", "float32"]},
        cv=3,
    )
    method.fit(rows, y)


def test_pickle_clone_and_output():
    kpca = KernelPCA(2, kernel=RBF(0.1), preimage="gradient").set_output(transform="pandas")
    frame = kpca.fit_transform(pd.DataFrame(X, columns=list("abcd")))
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]
    assert list(kpca.feature_names_in_) == list("abcd")
    again = pickle.loads(pickle.dumps(kpca))
    rows = pd.DataFrame(X[:5], columns=list("abcd"))
    assert np.array_equal(again.transform(rows), kpca.transform(rows))
    assert np.array_equal(again.reconstruct(rows), kpca.reconstruct(rows))
    with pytest.raises(NotFittedError):
        clone(kpca).transform(rows)
    with pytest.raises(ValueError, match="feature names"):
        kpca.transform(rows[["b", "a", "c", "d"]])


def test_the_plan():
    rows = np.zeros((60_000, 784), np.float32)
    with config_context(memory="12GiB"):
        plan = KernelPCA(10, kernel="rbf").plan(rows)
        assert plan.method == Exact(store="float32")
    with config_context(memory="24GiB"):
        assert KernelPCA(10, kernel="rbf").plan(rows).method == Exact()
    with config_context(memory="2GiB"):
        plan = KernelPCA(10, kernel="rbf").plan(rows)
        assert plan.method == Exact(store="none")
        assert "not kept" in str(plan)
        with pytest.raises(MemoryError, match=r"exact \(dense.*needs 93.* which fit"):
            KernelPCA(10, kernel="rbf", eigen_solver="dense").fit(rows)
    with (
        config_context(memory="8MiB"),
        pytest.raises(MemoryError, match=r"60000 rows needs .* a sample of \d+ rows fits"),
    ):
        KernelPCA(10, kernel="rbf").plan(rows)
    assert not hasattr(KernelPCA(10).plan(X), "eigenvalues_")


def test_few_axes_never_cost_a_decomposition():
    rows = np.zeros((5000, 3))
    assert KernelPCA(10, kernel="rbf").plan(rows).method.solver == "krylov"
    assert KernelPCA(5000, kernel="rbf").plan(rows).method.solver == "dense"


def bad_matrix():
    K = X @ X.T
    K[3, 5] += 1
    return K


def with_infinity():
    rows = X.copy()
    rows[7, 2] = np.inf
    return rows


@pytest.mark.parametrize(
    ("settings", "rows", "error"),
    [
        ({"kernel": "precomputed"}, X, r"must be square, but X has shape \(150, 4\)"),
        ({"kernel": "precomputed"}, bad_matrix(), r"not symmetric: entry \(3, 5\)"),
        ({"kernel": "precomputed", "fit_inverse_transform": True}, X @ X.T, "precomputed"),
        ({"kernel": "precomputed", "preimage": "ridge"}, X @ X.T, "no rows to map back to"),
        ({"kernel": "rbff"}, X, "did you mean 'rbf'"),
        ({"kernel": RBF(-1)}, X, "gamma=-1 must be a positive number"),
        ({"kernel": "chi2"}, X - 5, "negative entry"),
        ({"kernel": Polynomial(300)}, X, r"Polynomial\(300\) gives NaN or infinity for \d+ rows"),
        ({"n_components": 0}, X, "n_components"),
        ({"eigen_solver": "full"}, X, "eigen_solver"),
        ({"method": "nystroem"}, X, "method"),
        ({"preimage": "magic"}, X, "preimage"),
        ({}, X[:1], "at least 2 rows"),
        ({}, np.full((5, 2), np.nan), "NaN: the first is in row 0, column 0"),
        ({"kernel": "rbf"}, with_infinity(), "infinity .* row 7, column 2"),
        ({"kernel": "sigmoid"}, with_infinity(), "infinity .* row 7, column 2"),
        ({"method": Exact(store="half")}, X, "store='half'"),
    ],
)
def test_bad_input(settings, rows, error):
    kpca = KernelPCA(**{"n_components": 2, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=error):
            kpca.fit(rows)
    assert not hasattr(kpca, "projection_")
    assert not hasattr(kpca, "gamma_")


def test_bad_rows_at_transform():
    kpca = KernelPCA(2, kernel="rbf").fit(X)
    bad = X.copy()
    bad[7, 2] = np.nan
    for call in (kpca.transform, kpca.reconstruction_error):
        with pytest.raises(ValueError, match="NaN: the first is in row 7, column 2"):
            call(bad)
    with pytest.raises(ValueError, match="X has 3 features, but KernelPCA is expecting 4"):
        kpca.transform(X[:, :3])
    given = KernelPCA(2, kernel="precomputed").fit(X @ X.T)
    with pytest.raises(ValueError, match="X has 4 features, but KernelPCA is expecting 150"):
        given.transform(X)
    with pytest.raises(ValueError, match=r"does not provide k\(x, x\)"):
        given.reconstruction_error(X @ X.T)


def test_fewer_positive_eigenvalues_than_asked_for():
    with pytest.warns(UserWarning, match="n_components=10, but only 4 components have variance"):
        kpca = KernelPCA(10).fit(X)
    assert kpca.n_components_ == 4
    assert kpca.transform(X).shape == (150, 4)
    constant = np.ones((6, 3))
    with pytest.warns(UserWarning, match="no component has"):
        assert KernelPCA(1, kernel="rbf").fit_transform(constant).shape == (6, 0)


def test_x_may_change_after_the_fit_and_is_not_written_to():
    rows = X.copy()
    kpca = KernelPCA(2, kernel="rbf").fit(rows)
    assert np.array_equal(rows, X)
    before = kpca.transform(X[:3])
    rows[:] = 0
    assert np.array_equal(kpca.transform(X[:3]), before)
    K = RBF(0.1)(X)
    copy = K.copy()
    KernelPCA(2, kernel="precomputed", copy_X=False).fit(K)
    assert np.array_equal(K, copy)


def test_reconstruction_error_is_the_distance_in_feature_space():
    kpca = KernelPCA(3, kernel=RBF(0.1)).fit(X)
    K = RBF(0.1)(X)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    expected = np.diag(centred) - (kpca.transform(X) ** 2).sum(axis=1)
    assert np.abs(kpca.reconstruction_error(X) - expected).max() <= 1e-12
    left = kpca.reconstruction_error(X).sum() / (len(X) - 1)
    assert left == pytest.approx(kpca.projection_.rest)


@pytest.mark.parametrize(
    "preimage", ["fixed_point", "gradient", "ridge", "distances", FixedPoint(50), Gradient(60)]
)
def test_pre_images_denoise_digits(preimage):
    digits = load_digits().data / 16
    rng = np.random.default_rng(0)
    noisy = digits[1000:1060] + 0.3 * rng.standard_normal((60, 64))
    kpca = KernelPCA(60, kernel=RBF(0.05), preimage=preimage).fit(digits[:1000])
    found = kpca.reconstruct(noisy)
    before = ((noisy - digits[1000:1060]) ** 2).sum(axis=1).mean()
    after = ((found - digits[1000:1060]) ** 2).sum(axis=1).mean()
    assert after < 0.5 * before


def test_pre_images_come_with_a_report():
    kpca = KernelPCA(3, kernel=RBF(0.1), preimage=Gradient()).fit(X)
    report = kpca.preimages(kpca.transform(X[:20]))
    assert report.converged.all()
    assert re.match("20 of 20 converged", str(report))
    hasty = KernelPCA(3, kernel=RBF(0.1), preimage=FixedPoint(1, tol=1e-12, restarts=0)).fit(X)
    with pytest.warns(UserWarning, match=r"of 20 pre-images did not converge"):
        hasty.inverse_transform(hasty.transform(X[:20]))
    with pytest.raises(ValueError, match="preimage=None"):
        KernelPCA(3).fit(X).preimages(X[:, :3])
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        KernelPCA(3).fit(X).inverse_transform(X[:, :3])


@pytest.mark.parametrize("weights", [None, "some"])
def test_products_that_an_exact_fit_knows_are_those_that_pre_images_compute(weights):
    w, known = None if weights is None else np.random.default_rng(0).integers(1, 4, 150), []

    class Watched(Gradient):
        def begin(self, *args, products=None, **options):
            known.append(products)
            return super().begin(*args, products=products, **options)

    kpca = KernelPCA(3, kernel=RBF(0.1), preimage=Watched()).fit(X, sample_weight=w)
    own = Gradient().begin(kpca.projection_, X, kpca.transform(X))
    assert np.abs(known[0] - own).max() <= 1e-12


def test_pre_images_that_cannot_be():
    with pytest.raises(ValueError, match="is a string kernel"):
        KernelPCA(2, kernel=Subsequence(2), preimage="gradient").fit(WORDS)
    with pytest.raises(ValueError, match="needs dense rows, but X is sparse"):
        KernelPCA(2, kernel="rbf", preimage="ridge").fit(scipy.sparse.csr_array(X))
    with pytest.raises(ValueError, match="has no gradient"):
        KernelPCA(2, kernel="chi2", preimage="gradient").fit(X)
    with pytest.raises(ValueError, match="does not support this kernel"):
        KernelPCA(2, kernel=Tanh(), preimage=Distances()).fit(X)
    assert KernelPCA(2, kernel="chi2", preimage=Ridge()).fit(X).reconstruct(X[:3]).shape == (3, 4)


def test_a_gap_ends_the_iteration_early():
    rows = np.random.default_rng(0).standard_normal((1500, 30))
    exact = KernelPCA(5, kernel=RBF(0.02), random_state=0).fit(rows)
    near = KernelPCA(5, kernel=RBF(0.02), gap=0.05, random_state=0).fit(rows)
    assert near.certificate_.gap <= 0.05
    assert near.explained_variance_.sum() >= 0.95 * exact.explained_variance_.sum()
    assert near.certificate_.residuals.max() > 10 * exact.certificate_.residuals.max()


@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("asked", [{}, {"preimage": "ridge"}, {"fit_inverse_transform": True}])
def test_the_way_back_is_there_where_it_was_asked_for(asked, fitted):
    kpca = KernelPCA(2, **asked)
    pipeline = make_pipeline(StandardScaler(), kpca)
    if fitted:
        pipeline.fit(X)
    assert hasattr(kpca, "inverse_transform") == bool(asked)
    assert hasattr(pipeline, "inverse_transform") == bool(asked)
    with contextlib.nullcontext() if asked and fitted else pytest.raises(NotFittedError):
        assert kpca.inverse_transform(np.zeros((3, 2))).shape == (3, 4)
    kpca.set_params(preimage=None, fit_inverse_transform=False)
    assert hasattr(kpca, "inverse_transform") == bool(asked and fitted)  # what was learnt stays


@pytest.mark.parametrize("asked", [None, "all"])
@pytest.mark.parametrize(
    "model", [PCA(gap=0.05), KernelPCA(kernel="rbf", gap=0.05), PCA(gap=0.05, svd_solver="krylov")]
)
def test_a_gap_of_all_components_is_said_to_have_no_effect(model, asked):
    with pytest.warns(UserWarning, match=r"gap=0.05 has no effect.*Set n_components"):
        clone(model).set_params(n_components=asked).fit(X[:30])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).set_params(n_components=2).fit(X[:30])


def test_a_kernel_that_changes_after_the_fit_changes_nothing():
    kpca = KernelPCA(2, kernel=RBF(0.1), preimage=Ridge()).fit(Z)
    scores, rows = kpca.transform(NEW), kpca.reconstruct(NEW)
    kpca.set_params(kernel__gamma=5.0, preimage__alpha=9.0)
    assert np.array_equal(kpca.transform(NEW), scores)
    assert np.array_equal(kpca.reconstruct(NEW), rows)


@pytest.mark.parametrize(
    "back", [{"preimage": "ridge"}, {"preimage": "gradient"}, {"fit_inverse_transform": True}]
)
def test_weights_count_on_the_way_back(back):
    settings = {"kernel": RBF(0.1), "random_state": 0, **back}
    weights = RNG.integers(1, 4, 60)
    weighed = KernelPCA(3, **settings).fit(Z, sample_weight=weights)
    twice = KernelPCA(3, **settings).fit(np.repeat(Z, weights, axis=0))
    assert np.abs(weighed.reconstruct(NEW) - twice.reconstruct(NEW)).max() <= 1e-5
    others = np.vstack([Z, Z[:20] + 100])
    none = np.r_[np.ones(60), np.zeros(20)]
    without = KernelPCA(3, **settings).fit(others, sample_weight=none)
    assert (
        np.abs(without.reconstruct(NEW) - KernelPCA(3, **settings).fit(Z).reconstruct(NEW)).max()
        <= 1e-5
    )
    assert without.X_fit_.shape == (60, 4)
    assert without.fit_transform(others, sample_weight=none).shape == (80, 3)


def test_the_power_method_is_not_for_kernels_with_negative_eigenvalues():
    with pytest.raises(ValueError, match=r"those of Tanh\(0.5, coef0=-1\) may be negative"):
        KernelPCA(2, kernel=Tanh(0.5, -1), eigen_solver="power").fit(Z)


def test_a_tolerance_is_met_however_the_matrix_is_kept():
    rows = RNG.standard_normal((400, 6))
    for store in ("float32", "none"):
        kpca = KernelPCA(3, kernel=RBF(0.05), method=Exact(store=store), tol=1e-9).fit(rows)
        certificate = kpca.certificate_
        assert certificate.converged
        assert (certificate.residuals <= 2e-9 * certificate.eigenvalues).all()


@cycled(solver=["dense", "jacobi", "krylov"], kernel=[Matern(), RBF(0.3), Linear()])
def test_bounds_hold_where_float32_is_kept(kernel, solver):
    rows = np.random.default_rng(3).standard_normal((200, 8))
    K = kernel(rows)
    values = np.linalg.eigvalsh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())[::-1]
    best = values[:3].sum() / values.sum()
    found = KernelPCA(3, kernel=kernel, method=Exact(solver, "float32"), random_state=0).fit(rows)
    assert float(found.certificate_.captured) <= best * (1 + 1e-13)
    assert float(found.certificate_.optimum_upper) >= best * (1 - 1e-13)


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e140])
def test_very_large_and_very_small_rows(scale):
    with np.errstate(over="ignore"):
        kpca = KernelPCA(2).fit(Z * scale)
    assert (
        np.abs(kpca.explained_variance_ / scale**2 - PCA(2).fit(Z).explained_variance_).max()
        <= 1e-12
    )
    scores = kpca.transform(Z * scale) / scale
    assert np.abs(np.abs(scores) - np.abs(PCA(2).fit_transform(Z))).max() <= 1e-12


@pytest.mark.parametrize("scale", [1e-25, 1e18])
def test_scores_of_float32_rows_whose_eigenvalues_are_beyond_it(scale):
    rows = (Z * scale).astype(np.float32)
    with np.errstate(over="ignore"):
        scores = KernelPCA(2).fit_transform(rows) / np.float32(scale)
    assert np.abs(np.abs(scores) - np.abs(PCA(2).fit_transform(Z))).max() <= 1e-5


@pytest.mark.parametrize("rule", [BrokenStick(), Kaiser()])
def test_rules_count_weights(rule):
    settings = {"kernel": RBF(0.3), "eigen_solver": "dense"}
    weighed = KernelPCA(rule, **settings).fit(Z, sample_weight=np.full(60, 2))
    twice = KernelPCA(rule, **settings).fit(np.repeat(Z, 2, axis=0))
    assert weighed.n_components_ == twice.n_components_


def test_memory_that_is_not_there():
    rows = RNG.standard_normal((1500, 5))
    with config_context(memory="2MiB"):
        with pytest.raises(MemoryError, match=r"exact .* needs"):
            KernelPCA(2, kernel="rbf", eigen_solver="dense").fit(rows)
        with pytest.raises(MemoryError, match=r"exact .* needs"):
            KernelPCA(2, kernel="rbf", method=Exact()).fit(rows)
    many = np.zeros((20_000, 50), np.float32)
    with config_context(memory="1MiB"):
        with pytest.raises(MemoryError, match=r"a sample of \d+ rows fits") as error:
            KernelPCA(3, kernel="rbf").plan(many)
        fits = int(str(error.value).split("a sample of ")[1].split()[0])
        KernelPCA(3, kernel="rbf").plan(many[:fits])
    with (
        config_context(memory="16MiB"),
        pytest.raises(
            MemoryError, match="fit_inverse_transform: the kernel matrix of 1500 scores takes"
        ),
    ):
        KernelPCA(2, kernel="rbf", fit_inverse_transform=True).fit(rows)


def test_rows_of_another_library_than_the_fits():
    torch = pytest.importorskip("torch")
    kpca, other = (
        KernelPCA(2, kernel="rbf").fit(Z),
        KernelPCA(2, kernel="rbf").fit(torch.asarray(Z)),
    )
    expected = kpca.transform(NEW)
    assert np.abs(kpca.transform(torch.asarray(NEW)).numpy() - expected).max() <= 1e-13
    assert np.abs(other.transform(NEW) - expected).max() <= 1e-13


def test_missing_values_are_named_before_a_basis_is_chosen():
    rows = np.random.default_rng(0).standard_normal((300, 3))
    G = RBF(0.3)(rows)
    G[7, 9] = G[9, 7] = np.nan
    with pytest.raises(ValueError, match="NaN: the first is in row 7, column 9"):
        KernelPCA(2, kernel="precomputed", method=Adaptive(50), random_state=0).fit(G)
    rows[::20, 2] = np.nan
    with pytest.raises(ValueError, match="NaN: the first is in row 0, column 2"):
        KernelPCA(2, kernel="rbf", method=Adaptive(50), gap=0.01, random_state=0).fit(rows)


def test_kernels_that_are_not_finite():
    bad = FromFunction(
        lambda A, B: np.where((A[:, :1] > 1) | (B[:, :1].T > 1), np.nan, 1.0 + A @ B.T)
    )
    rows = np.vstack([np.zeros((5, 2)), np.full((2, 2), 2.0)])
    with pytest.raises(ValueError, match="NaN or infinity for 7 rows"):
        KernelPCA(1, kernel=bad).fit(rows)
    kpca = KernelPCA(2, kernel=Polynomial(9)).fit(Z)
    with pytest.raises(ValueError, match=r"Polynomial\(9\) gives NaN .*\(first: row 1"):
        kpca.transform(np.vstack([NEW[:1], NEW[1:2] * 1e150]))


def test_strings_and_numbers_do_not_mix():
    words = KernelPCA(1, kernel=Subsequence(2)).fit(["banana", "ananas", "nab"])
    with pytest.raises(ValueError, match="X contains numbers, but KernelPCA was fitted to strings"):
        words.transform(Z)
    with pytest.raises(ValueError, match="X contains strings, but KernelPCA was fitted to numbers"):
        KernelPCA(1, kernel="rbf").fit(Z).transform(["a", "b"])
    with pytest.raises(ValueError, match="at least 2 strings"):
        KernelPCA(1, kernel=Subsequence(2)).fit(["abc"])
    with pytest.raises(ValueError, match="scores cannot be mapped back to strings"):
        KernelPCA(1, kernel=Subsequence(2), fit_inverse_transform=True).fit(["ab", "abc"])
    both = KernelPCA(1, kernel=FromFunction(lambda a, b: 1.0 + len(a) * len(b), pairwise=True))
    assert not hasattr(both.fit(Z).fit(["a", "bcd", "ef"]), "n_features_in_")


def test_what_changes_after_the_fit_needs_a_fit():
    kpca = KernelPCA(2, kernel="rbf").fit(Z)
    kpca.set_params(preimage="gradient")
    with pytest.raises(ValueError, match="fit again"):
        kpca.preimages(kpca.transform(NEW))
    kpca.set_params(fit_inverse_transform=True)
    with pytest.raises(ValueError, match="not available"):
        kpca.inverse_transform(kpca.transform(NEW))
    kpca.set_params(preimage=None).fit(Z).set_params(fit_inverse_transform=False).fit(Z)
    assert not hasattr(kpca, "dual_coef_")


def test_a_table_and_a_file_at_once(tmp_path):
    kpca = KernelPCA(2, kernel="rbf").set_output(transform="pandas").fit(Z)
    with pytest.raises(ValueError, match="use only one of them"):
        kpca.transform(NEW, out=tmp_path / "scores.npy")


def test_no_axes_still_have_a_mean():
    with pytest.warns(UserWarning, match="no component has"):
        kpca = KernelPCA(1, kernel=RBF(), preimage="gradient").fit(np.ones((6, 3)))
    assert np.allclose(kpca.reconstruct(np.ones((2, 3))), 1.0)


def test_ridge_of_linear_kernel_pca_is_pca():
    rows = Z + 5
    found = KernelPCA(2, preimage=Ridge(1e-7)).fit(rows).reconstruct(NEW)
    assert np.abs(found - PCA(2).fit(rows).reconstruct(NEW)).max() <= 1e-5


def test_a_gap_that_is_missed_warns():
    rows = RNG.standard_normal((300, 30))
    with pytest.warns(ConvergenceWarning, match="gap=1e-06 was requested"):
        KernelPCA(3, kernel=RBF(0.05), eigen_solver="randomized", iterated_power=1, gap=1e-6).fit(
            rows
        )


def test_strings_that_are_refused_leave_the_model_as_it_was():
    model = KernelPCA(2, kernel="rbf").fit(np.random.default_rng(0).normal(size=(20, 3)))
    with pytest.raises(ValueError, match="fitted to numbers"):
        model.transform(["a", "b"])
    assert model.n_features_in_ == 3

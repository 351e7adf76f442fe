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

from mercer import PCA, KernelPCA, config_context
from mercer.kernels import RBF, FromFunction, Laplacian, Polynomial, Subsequence, Tanh
from mercer.methods import Exact
from mercer.preimage import Distances, FixedPoint, Gradient, Ridge
from mercer.rules import Threshold

X = load_iris().data
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
    with pytest.raises(ValueError, match="takes strings, and X holds numbers"):
        clone(kpca).fit(X)
    with pytest.raises(ValueError, match="takes vectors, and X holds strings"):
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
        ({"kernel": "precomputed"}, X, r"is square, and X has shape \(150, 4\)"),
        ({"kernel": "precomputed"}, bad_matrix(), r"not symmetric: entry \(3, 5\)"),
        ({"kernel": "precomputed", "fit_inverse_transform": True}, X @ X.T, "precomputed"),
        ({"kernel": "precomputed", "preimage": "ridge"}, X @ X.T, "no rows to return to"),
        ({"kernel": "rbff"}, X, "did you mean 'rbf'"),
        ({"kernel": RBF(-1)}, X, "gamma=-1 must be a positive number"),
        ({"kernel": "chi2"}, X - 5, "negative entry"),
        ({"kernel": Polynomial(300)}, X, r"Polynomial\(300\) gives NaN or infinity between row"),
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
    with pytest.raises(ValueError, match=r"does not tell k\(x, x\)"):
        given.reconstruction_error(X @ X.T)


def test_fewer_positive_eigenvalues_than_asked_for():
    with pytest.warns(UserWarning, match="n_components=10, but only 4 components have a variance"):
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
def test_what_the_fit_tells_the_way_back(weights):
    """The products that an exact fit hands over are those that pre-images would compute."""
    w = None if weights is None else np.random.default_rng(0).integers(1, 4, 150)
    kpca = KernelPCA(3, kernel=RBF(0.1), preimage="gradient").fit(X, sample_weight=w)
    own = Gradient().begin(kpca.projection_, X, kpca.transform(X))
    assert np.abs(kpca._way - own).max() <= 1e-12


def test_pre_images_that_cannot_be():
    with pytest.raises(ValueError, match="kernel of strings"):
        KernelPCA(2, kernel=Subsequence(2), preimage="gradient").fit(WORDS)
    with pytest.raises(ValueError, match="given sparse"):
        KernelPCA(2, kernel="rbf", preimage="ridge").fit(scipy.sparse.csr_array(X))
    with pytest.raises(ValueError, match="has no gradient"):
        KernelPCA(2, kernel="chi2", preimage="gradient").fit(X)
    with pytest.raises(ValueError, match="asks the kernel how far"):
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

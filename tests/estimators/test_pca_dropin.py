"""PCA in the place of scikit-learn's: the same names, shapes, dtypes, signs and errors."""

import inspect
import warnings

import numpy as np
import pytest
import sklearn.decomposition
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from mercer import PCA
from mercer.estimators.pca import SOLVERS

Theirs = sklearn.decomposition.PCA
SHAPES = {"tall": (90, 7), "wide": (7, 90), "square": (12, 12)}


def rows(shape=(90, 7), seed=0, dtype=np.float64):
    """Rows with a mean and a spectrum that falls by 0.6."""
    n, d = shape
    rng = np.random.default_rng(seed)
    r = min(n, d)
    left, _ = np.linalg.qr(rng.normal(size=(n, r)))
    right, _ = np.linalg.qr(rng.normal(size=(d, r)))
    return ((left * 10 * 0.6 ** np.arange(r)) @ right.T + rng.normal(size=d)).astype(dtype)


def parameters(function):
    return inspect.signature(function).parameters


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def test_every_parameter_with_its_default():
    ours, theirs = parameters(PCA), parameters(Theirs)
    assert {name: ours[name].default for name in theirs} == {
        name: p.default for name, p in theirs.items()
    }


def test_parameters_stand_in_the_same_order_and_may_be_named_only():
    ours, theirs = parameters(PCA), parameters(Theirs)
    assert list(ours)[: len(theirs)] == list(theirs)
    assert [ours[name].kind for name in theirs] == [p.kind for p in theirs.values()]


def test_what_is_new_is_keyword_only():
    ours, theirs = parameters(PCA), parameters(Theirs)
    assert {ours[name].kind for name in set(ours) - set(theirs)} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_public_name():
    assert public(Theirs) <= public(PCA)


@pytest.mark.parametrize("name", sorted(n for n in public(Theirs) if callable(getattr(Theirs, n))))
def test_every_method_takes_the_same_arguments(name):
    ours, theirs = parameters(getattr(PCA, name)), parameters(getattr(Theirs, name))
    assert list(ours)[: len(theirs)] == list(theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_fitted_attribute_with_its_shape_and_dtype(dtype):
    X = rows(dtype=dtype)
    ours, theirs = PCA(3).fit(X), Theirs(3).fit(X)
    for name in [n for n in vars(theirs) if n.endswith("_")]:
        mine, expected = getattr(ours, name), getattr(theirs, name)
        assert np.shape(mine) == np.shape(expected), name
        assert np.asarray(mine).dtype == np.asarray(expected).dtype, name


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_answer_for_every_solver(solver, shape):
    X = rows(shape)
    ours = PCA(3, svd_solver=solver, random_state=0).fit(X)
    theirs = Theirs(3, svd_solver="full").fit(X)
    for name in ("components_", "explained_variance_", "explained_variance_ratio_"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8)
    assert_allclose(ours.singular_values_, theirs.singular_values_, rtol=1e-6)
    assert_allclose(ours.mean_, theirs.mean_, rtol=1e-12)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-5)
    assert (ours.n_components_, ours.n_samples_, ours.n_features_in_) == (3, *shape)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("method", ["fit_transform", "transform", "score_samples"])
def test_the_same_result_of_every_method(method, shape, whiten):
    X = rows(shape)
    ours, theirs = PCA(3, whiten=whiten).fit(X), Theirs(3).fit(X)
    if method != "score_samples":  # scikit-learn's likelihood depends on whiten
        theirs.set_params(whiten=whiten)
    expected = getattr(theirs, method)(X)
    assert_allclose(getattr(ours, method)(X), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["get_covariance", "get_precision"])
def test_the_same_generative_model(method):
    X = rows()
    expected = getattr(Theirs(3).fit(X), method)()
    assert_allclose(getattr(PCA(3).fit(X), method)(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("whiten", [False, True])
def test_the_same_way_back(whiten):
    X = rows()
    ours, theirs = PCA(3, whiten=whiten).fit(X), Theirs(3, whiten=whiten).fit(X)
    scores = theirs.transform(X)
    assert_allclose(ours.inverse_transform(scores), theirs.inverse_transform(scores), rtol=1e-9)


def test_noise_far_below_the_largest_variance():
    # A difference of sums would lose it: the largest variance is 1e18 times as large.
    X = np.random.default_rng(0).normal(size=(200, 5)) * [1e9, 1e2, 1, 1, 1]
    ours, theirs = PCA(2).fit(X), Theirs(2, svd_solver="full").fit(X)
    assert_allclose(ours.noise_variance_, theirs.noise_variance_, rtol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_largest_entry_of_every_axis_is_positive(solver):
    axes = PCA(3, svd_solver=solver, random_state=0).fit(rows()).components_
    assert np.all(axes[np.arange(3), np.abs(axes).argmax(axis=1)] > 0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4", "u1", "?", ">f8", ">f4"])
def test_dtype_rule(solver, dtype):
    X = rows()
    X = (X.mean() < X if dtype == "?" else np.clip(X * 10 + 100, 0, 255)).astype(dtype)
    ours, theirs = PCA(1, svd_solver=solver, random_state=0).fit(X), Theirs(1).fit(X)
    for name in ("components_", "explained_variance_", "mean_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype, name
    assert ours.transform(X).dtype == theirs.transform(X).dtype


@pytest.mark.parametrize("n_components", [None, 0, 1, 4, 0.5, 0.999, "mle"])
def test_the_same_number_of_axes(n_components):
    X = load_iris().data
    assert PCA(n_components).fit(X).n_components_ == Theirs(n_components).fit(X).n_components_


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_axes(solver):
    X = rows()
    k = 6 if solver == "arpack" else 7  # scikit-learn's arpack leaves one out
    assert PCA(svd_solver=solver, random_state=0).fit(X).n_components_ == k


def test_arpack_finds_as_many_axes_as_there_are():
    X = rows()
    found = PCA(7, svd_solver="arpack").fit(X)
    assert_allclose(found.components_, Theirs(7).fit(X).components_, atol=1e-9)


@pytest.mark.parametrize("solver", ["krylov", "arpack", "randomized", "power"])
def test_no_warning_of_an_axis_without_variance(solver):
    # All axes of four rows: the last has no variance, and a residual that is rounding.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PCA(4, svd_solver=solver, random_state=0).fit(load_iris().data.T)


def test_randomized_variances_are_those_of_the_scores():
    # Flat spectrum, wide: not converged, and still what it says of its own axes is true.
    X = np.random.default_rng(0).normal(size=(100, 110))
    pca = PCA(3, svd_solver="randomized", random_state=0)
    covariance = np.cov(pca.fit_transform(X), rowvar=False)
    assert_allclose(covariance, np.diag(pca.explained_variance_), atol=1e-9)


@pytest.mark.parametrize(
    "change",
    [
        {"n_components": -1},
        {"n_components": 1.5},
        {"n_components": "many"},
        {"copy": 3},
        {"whiten": "yes"},
        {"svd_solver": "lanczos"},
        {"tol": -1.0},
        {"iterated_power": -1},
        {"n_oversamples": 0},
        {"power_iteration_normalizer": "SVD"},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_the_same_error_for_a_bad_parameter(change):
    X = rows()
    with pytest.raises(ValueError, match=next(iter(change))) as theirs:
        Theirs(**change).fit(X)
    with pytest.raises(type(theirs.value), match=next(iter(change))):
        PCA(**change).fit(X)


@pytest.mark.parametrize("change", [{"gap": -0.1}, {"gap": 1.5}, {"center": "no"}, {"scale": 2}])
def test_a_bad_new_parameter(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        PCA(**change).fit(rows())


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_are_never_written_to(solver, copy):
    X = rows()
    before = X.copy()
    PCA(3, svd_solver=solver, copy=copy, random_state=0, scale=True).fit_transform(X)
    np.testing.assert_array_equal(X, before)


def test_read_only_rows():
    X = rows()
    X.setflags(write=False)
    assert_allclose(PCA(2).fit_transform(X), Theirs(2).fit_transform(X), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_random_state_gives_the_same_bits(solver):
    X = rows()
    first, second = (PCA(3, svd_solver=solver, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)


def test_fitting_again_forgets_the_first_fit():
    pca = PCA(2).fit(rows(seed=1)).fit(rows((40, 5)))
    assert_allclose(pca.components_, PCA(2).fit(rows((40, 5))).components_)

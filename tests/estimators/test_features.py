"""KernelPCA of random features: what users call, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercer import KernelPCA, config_context, metrics
from mercer.kernels import RBF, Constant, Laplacian, Linear, Matern, Polynomial, Subsequence
from mercer.methods import SVD, Dot, Iterative, RandomFeatures, SparseL1, Subset
from tests.laws import plain

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((80, 3)), RNG.standard_normal((9, 3))
KERNEL = RBF(0.2)


def model(k=2, method=None, kernel=KERNEL, **settings):
    method = RandomFeatures(30) if method is None else method
    return KernelPCA(k, kernel=kernel, method=method, **{"random_state": 0, **settings})


# What users call.


def test_what_a_fit_sets():
    found = model().fit(X)
    assert found.X_fit_ is None
    assert not hasattr(found, "eigenvectors_")
    assert found.kernel_ == KERNEL
    assert found.n_components_ == 2
    assert list(found.get_feature_names_out()) == ["kernelpca0", "kernelpca1"]
    assert np.allclose(found.eigenvalues_, found.explained_variance_ * 79)
    assert np.allclose((found.fit_transform(X) ** 2).sum(axis=0), found.eigenvalues_)
    assert np.array_equal(found.fit_transform(X), found.transform(X))
    assert "features (30 waves)" in repr(found.plan_)


def test_by_name():
    found = KernelPCA(2, kernel="rbf", gamma="median", method="features", random_state=0).fit(X)
    assert found.projection_.map.width == 1000
    assert (
        KernelPCA(150, kernel=Laplacian(1.0), method="features")
        .fit(RNG.standard_normal((400, 3)))
        .projection_.map.width
        == 1200
    )


def test_copies_and_files():
    found = model(method=RandomFeatures(30, linear=SVD())).fit(X)
    for other in (pickle.loads(pickle.dumps(found)), clone(found).fit(X)):
        assert np.array_equal(other.transform(NEW), found.transform(NEW))
    assert found.get_params()["method__linear"] == SVD()
    assert repr(found.method) == "RandomFeatures(30, linear=SVD())"
    batches = pickle.loads(pickle.dumps(model().partial_fit(X[:40]))).partial_fit(X[40:])
    assert np.allclose(np.abs(batches.transform(NEW)), np.abs(model().fit(X).transform(NEW)))


def test_in_a_grid_search():
    y = X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5
    pipe = make_pipeline(model(4), SVC())
    grid = {"kernelpca__method__q": [2, 60], "kernelpca__method__orthogonal": [True, False]}
    assert GridSearchCV(pipe, grid, cv=3).fit(X, y).best_params_["kernelpca__method__q"] == 60


def test_the_way_back_is_learnt_from_scores():
    found = model(8, fit_inverse_transform=True, alpha=1e-3).fit(X)
    back = found.inverse_transform(found.transform(X))
    assert ((back - X) ** 2).sum() < 0.1 * (X**2).sum()
    with pytest.raises(
        ValueError, match=r"preimage='gradient' needs components.*fit_inverse_transform"
    ):
        model(preimage="gradient").fit(X)


def test_torch():
    torch = pytest.importorskip("torch")
    found, expected = model().fit(torch.tensor(X)), model().fit(X)
    scores = found.transform(torch.tensor(NEW))
    assert isinstance(scores, torch.Tensor)
    assert np.abs(scores.numpy() - expected.transform(NEW)).max() <= 1e-10
    assert abs(found.certificate_.gap - expected.certificate_.gap) <= 1e-9


# Metrics.


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, RNG.integers(1, 4, 80).astype(float)])
@pytest.mark.parametrize("kernel", [KERNEL, RBF(0.1) * Matern(2.0)], ids=repr)
def test_axes_in_the_kernels_space(kernel, weights, center):
    rows = X + (100.0 if weights is None else 0.0)
    found = model(kernel=kernel, center=center).fit(rows, sample_weight=weights)
    axes = metrics.kernel_axes(found, rows, weights)
    A = np.asarray(axes.components)
    assert np.abs(A.T @ kernel(axes.basis) @ A - np.eye(2)).max() <= 1e-10
    values = plain.variances(kernel, rows, weights, center)
    explained = float(found.certificate_.explained)
    assert 0.9 * axes.eigenvalues.sum() <= explained <= axes.eigenvalues.sum() * (1 + 1e-9)
    assert axes.eigenvalues.sum() <= values[:2].sum() * (1 + 1e-9)
    w = plain.counts(rows, weights)
    error = (values.sum() - axes.eigenvalues.sum()) * (w.sum() - 1) / w.sum()
    assert metrics.empirical_error(found, rows, weights) == pytest.approx(error)
    assert metrics.empirical_error(axes, rows, weights) == pytest.approx(error)
    exact = model(method="exact", kernel=kernel, center=center).fit(rows, sample_weight=weights)
    assert 0 < metrics.operator_distance(axes, exact) < 2
    assert metrics.validation_error(axes, NEW + (100.0 if weights is None else 0.0)) > 0


def test_axes_over_sparse_rows():
    found = model().fit(X)
    dense, sparse = (metrics.kernel_axes(found, rows) for rows in (X, scipy.sparse.csr_array(X)))
    assert np.abs(dense.eigenvalues - sparse.eigenvalues).max() <= 1e-12


def test_metrics_that_need_rows_say_so():
    found, exact = model().fit(X), model(method="exact").fit(X)
    for measure in (
        lambda: metrics.operator_distance(found, exact),
        lambda: metrics.subspace_angles(exact, found),
        lambda: metrics.validation_error(found, NEW),
    ):
        with pytest.raises(ValueError, match="kernel_axes"):
            measure()
    with pytest.raises(TypeError, match="RandomFeatures"):
        metrics.kernel_axes(exact, X)
    with pytest.raises(ValueError, match="fitted to rows of 3 columns"):
        metrics.kernel_axes(found, X[:, :2])


# Few rows, equal rows, few axes.


@pytest.mark.filterwarnings("ignore:.*above rounding error")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_axis_without_variance(dtype):
    assert model(3).fit(np.ones((20, 3), dtype)).transform(NEW.astype(dtype)).shape == (9, 0)
    assert model(5).fit(np.repeat(X[:3], 10, axis=0).astype(dtype)).n_components_ == 2
    assert model(1).fit(X[:2].astype(dtype)).n_components_ == 1
    assert model(10).fit(X[:3].astype(dtype)).n_components_ == 2
    assert model(None).fit(X[:3].astype(dtype)).n_components_ == 2
    assert model(2, kernel=RBF(1.0) * 0.5 + 3).fit(X[:2].astype(dtype)).n_components_ == 1


def test_as_many_axes_as_a_rule_says():
    found = model(0.9).fit(X)
    shares = found.explained_variance_ratio_
    everything = model(None).fit(X)
    total = everything.explained_variance_.sum()
    k = found.n_components_
    assert found.explained_variance_.sum() > 0.9 * total >= found.explained_variance_[:-1].sum()
    assert np.allclose(found.explained_variance_, everything.explained_variance_[:k])
    assert shares.sum() > 0.9 >= shares[:-1].sum()
    assert model(None, RandomFeatures(4)).fit(X).n_components_ == 8


def test_only_constants_have_no_axes():
    with pytest.warns(match="above rounding error"):
        assert model(kernel=Constant(2.0)).fit(X).n_components_ == 0


# What is refused.

OTHERS = 'method="exact", "subset" and "nystrom" take'


@pytest.mark.parametrize(
    "kernel", ["poly", "sigmoid", "linear", Polynomial(2), Linear() + RBF(), lambda x, y: x @ y]
)
def test_kernels_without_fourier_features(kernel):
    with pytest.raises(ValueError, match=rf"no Fourier features.*{OTHERS}"):
        model(kernel=kernel).fit(X)
    with pytest.raises(ValueError, match="no Fourier features"):
        model(kernel=kernel).partial_fit(X)


@pytest.mark.parametrize("kernel", [Subsequence(2), Constant(1.0)], ids=repr)
def test_strings(kernel):
    with pytest.raises(ValueError, match=rf"on strings has no Fourier features.*{OTHERS}"):
        model(kernel=kernel).fit(["ab", "abc", "bcd", "cde"])


def test_a_kernel_matrix():
    with pytest.raises(ValueError, match=rf"precomputed.*Pass the rows.*{OTHERS}"):
        model(kernel="precomputed").fit(KERNEL(X))


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (RandomFeatures(0), "q=0 must be an integer"),
        (RandomFeatures(2.5), r"q=2\.5 must be"),
        (RandomFeatures("many"), "q='many' must be"),
        (RandomFeatures(5, orthogonal=1), "orthogonal=1 must be True or False"),
        (RandomFeatures(5, linear="svd"), "linear='svd' must be a method of linear PCA"),
        (RandomFeatures(5, linear=Subset(3)), "must be a method of linear PCA"),
        (RandomFeatures(5, linear=SparseL1()), "must be a method of linear PCA"),
        (RandomFeatures(5, linear=RandomFeatures(3)), "must be a method of linear PCA"),
    ],
)
def test_parameters(method, said):
    with pytest.raises(ValueError, match=said):
        model(method=method).fit(X)


@pytest.mark.parametrize("k", [20, 80, 1000])
def test_more_axes_than_features(k):
    with pytest.raises(ValueError, match=r"is more than the 10 features.*Use q >="):
        model(k, RandomFeatures(5)).fit(X)


def test_fewer_frequencies_than_kernels():
    with pytest.raises(ValueError, match="1 frequencies are too few for 2 kernels"):
        model(1, RandomFeatures(1), RBF(1.0) + RBF(2.0)).fit(X)


def test_the_city_block_has_no_orthogonal_frequencies():
    with pytest.raises(ValueError, match='use norm="l2"'):
        model(method=RandomFeatures(5, orthogonal=True), kernel=Laplacian(norm="l1")).fit(X)


def test_rows_that_are_not_finite_or_too_large():
    bad = X.copy()
    bad[4, 1] = np.nan
    found = model().fit(X)
    for use in (model().fit, found.transform, model().partial_fit):
        with pytest.raises(ValueError, match="row 4, column 1"):
            use(bad)
    with pytest.raises(ValueError, match="angles overflow"):
        model(kernel=RBF(1e10)).fit(X).transform(X * 1e307)


def test_what_does_not_fit_the_memory():
    with config_context(memory="1MiB"):
        with pytest.raises(MemoryError, match=r"config_context\(memory=.*is enough"):
            model(method=RandomFeatures(2000, linear=SVD())).fit(X)
        with pytest.raises(MemoryError, match=r"by columns.*Use linear=Covariance"):
            model(method=RandomFeatures(1000, linear=Dot())).fit(X)


def test_batches_need_a_method_that_takes_them():
    assert hasattr(model(method=RandomFeatures(5)), "partial_fit")
    for method, said in (
        (RandomFeatures(5, linear=Iterative()), "needs all rows at once"),
        ("exact", "method='features'"),
    ):
        with pytest.raises(AttributeError) as raised:
            _ = model(method=method).partial_fit
        assert said in str(raised.value.__cause__)

"""Batches: scikit-learn's own tests of IncrementalPCA, and what may change between batches."""

import types
import warnings

import numpy as np
import pytest
import sklearn.decomposition
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import gen_batches

from mercer import PCA, KernelPCA, config_context
from mercer.methods import Covariance, FrequentDirections, Hebbian, RandomFeatures, Subset
from tests.estimators.upstream import adapted, cases_in, load

NOT_OURS = {
    "test_incremental_pca_sparse": "asserts that sparse batches are refused; Mercer takes them",
    "test_incremental_pca_validation": (
        "asserts that a first batch of too few rows is refused; Mercer waits for more"
    ),
    "test_incremental_pca_set_params": (
        "asserts that n_components cannot change; Mercer's sums hold all components"
    ),
    "test_incremental_pca_partial_fit_float_division": (
        "writes to n_samples_seen_, which Mercer only tells"
    ),
}


class IncrementalPCA(PCA):
    """Mercer's PCA that is fitted in batches."""

    def __init__(self, n_components=None, *, whiten=False, batch_size=None):
        super().__init__(n_components, whiten=whiten)
        self.batch_size = batch_size

    def fit(self, X, y=None):
        fitted = [name for name in vars(self) if name.startswith("_") or name.endswith("_")]
        for name in fitted:
            delattr(self, name)
        size = self.batch_size or 5 * X.shape[1]
        for batch in gen_batches(len(X), size, min_batch_size=self.n_components or 0):
            self.partial_fit(X[batch])
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)


upstream = load("test_incremental_pca", "IncrementalPCA", IncrementalPCA)
globals().update({name: adapted(test, NOT_OURS) for name, test in cases_in(upstream).items()})
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 6)) * np.arange(1, 7) + 5


@pytest.fixture
def global_random_seed():
    return 42


def test_what_is_left_out_exists():
    for name in NOT_OURS:
        assert isinstance(getattr(upstream, name), types.FunctionType)


def streams():
    """Return models that take batches, each with parameters that its sums depend on."""
    linear = {"center": False, "scale": True, "svd_solver": "full"}
    kernel = {
        "center": False,
        "kernel": "laplacian",
        "gamma": 0.5,
        "degree": 2,
        "coef0": 3.0,
        "kernel_params": {"a": np.zeros(2)},
        "method": Subset(6),
    }
    yield PCA(2), linear
    yield PCA(2, svd_solver=FrequentDirections(4)), {**linear, "svd_solver__size": 5}
    for method, changes in (
        (Subset(8), {"method__n_basis": 5}),
        (RandomFeatures(8), {"method__q": 9}),
        (Hebbian(n_basis=5), {"method__n_basis": 6, "n_components": 3}),
    ):
        model = KernelPCA(2, kernel="rbf", gamma=0.01, method=method, random_state=0)
        yield model, {**kernel, **changes}


@pytest.mark.parametrize(
    ("model", "change"),
    [(model, {name: value}) for model, changes in streams() for name, value in changes.items()],
    ids=str,
)
def test_what_the_sums_depend_on_cannot_change(model, change):
    """A change between batches is refused by name, or it is as if it had been there before."""
    stream = clone(model).partial_fit(X[:30])
    name = next(iter(change)).partition("__")[0]
    stream.set_params(**change)
    with pytest.raises(ValueError, match=rf"{name}=.* at the first batch: .*clone"):
        stream.partial_fit(X[30:])
    stream.set_params(**model.get_params())  # as it was: the stream goes on
    again = clone(model).partial_fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_array_equal(stream.partial_fit(X[30:]).transform(X), again.transform(X))


@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2, method=Subset(10), random_state=0)])
@pytest.mark.parametrize("n_components", [1, 2, 4, None])
def test_the_number_of_components_may_change(model, n_components):
    stream = clone(model).partial_fit(X[:30]).set_params(n_components=n_components)
    other = clone(model).set_params(n_components=n_components).partial_fit(X[:30])
    found, wanted = (each.partial_fit(X[30:]).transform(X) for each in (stream, other))
    np.testing.assert_array_equal(found, wanted)


def test_more_components_than_can_be():
    with pytest.raises(ValueError, match=r"n_components=7 .*n_features\)=6"):
        PCA(7).partial_fit(X)
    with pytest.raises(ValueError, match=r"n_components=7 .*n_features\)=6"):
        PCA(2).partial_fit(X).set_params(n_components=7).partial_fit(X)
    stream = KernelPCA(2, kernel="rbf", method=Subset(4)).partial_fit(X)
    with pytest.raises(ValueError, match="n_components=5 is too many for n_basis=4"):
        stream.set_params(n_components=5).partial_fit(X)


def test_rows_that_were_seen_are_counted():
    pca = PCA(3)
    assert not hasattr(pca, "n_samples_seen_")
    with pytest.raises(NotFittedError, match="seen 2 rows, too few for n_components=3"):
        pca.partial_fit(X[:2]).transform(X)
    assert pca.n_samples_seen_ == 2
    assert pca.partial_fit(X[2:]).n_samples_seen_ == len(X)
    theirs = sklearn.decomposition.IncrementalPCA(3).partial_fit(X)
    assert type(pca.n_samples_seen_) is int
    assert pca.n_samples_seen_ == theirs.n_samples_seen_
    assert not hasattr(pca.fit(X), "n_samples_seen_")
    kpca = KernelPCA(2, kernel="rbf", method=Subset(4)).partial_fit(X[:20]).partial_fit(X[20:])
    assert kpca.n_samples_seen_ == len(X)


@pytest.mark.parametrize("model", [PCA(2), KernelPCA(2, kernel="rbf", method=Subset(select=X[:9]))])
def test_a_stream_begins_without_the_rows_of_an_earlier_fit(model):
    fitted = clone(model).fit(X[:40])
    with pytest.warns(UserWarning, match="samples of the earlier fit are not included"):
        fitted.partial_fit(X[20:])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        only = clone(model).partial_fit(X[20:])
        fitted.partial_fit(X[:5])  # once is enough
    np.testing.assert_array_equal(fitted.transform(X), only.partial_fit(X[:5]).transform(X))


def test_variances_without_a_centre_are_about_zero():
    """What the docstrings of `center` and `explained_variance_` say, beside TruncatedSVD."""
    values = np.linalg.svd(X, compute_uv=False) ** 2
    pca, kpca = PCA(center=False).fit(X), KernelPCA(center=False).fit(X)
    for model in (pca, kpca):
        np.testing.assert_allclose(model.explained_variance_, values / (len(X) - 1))
        np.testing.assert_allclose(model.explained_variance_ratio_, values / (X**2).sum())
    np.testing.assert_allclose(pca.singular_values_**2, values)
    np.testing.assert_allclose(kpca.eigenvalues_, values)
    theirs = sklearn.decomposition.TruncatedSVD(5, algorithm="arpack").fit(X)
    variances = pca.transform(X)[:, :5].var(axis=0)
    np.testing.assert_allclose(theirs.explained_variance_, variances)
    shares = variances / X.var(axis=0).sum()
    np.testing.assert_allclose(theirs.explained_variance_ratio_, shares)


def test_a_stream_goes_on_as_it_began():
    pca = PCA(3).partial_fit(X[:30])
    with pytest.raises(
        ValueError, match="center, scale, svd_solver and feature_weight cannot change"
    ):
        pca.set_params(center=False).partial_fit(X[30:])
    mixed = PCA(3).partial_fit(X[:30]).partial_fit(X[30:].astype(np.float32))
    assert mixed.components_.dtype == np.float64
    assert "supports partial_fit" in mixed.plan_.reason


def test_batches_are_exact_as_long_as_they_can_be():
    W = rng.normal(size=(300, 600))
    with config_context(memory="16MiB"):
        pca = PCA(5).partial_fit(W[:150]).partial_fit(W[150:])
    assert isinstance(pca.plan_.method, Covariance)
    assert np.allclose(pca.explained_variance_, PCA(5).fit(W).explained_variance_)

"""scikit-learn's own tests of its PCA, run against Mercer's."""

import types

import numpy as np
import pytest

import mercer
from tests.estimators.upstream import adapted, cases_in, load

NOT_OURS = {
    "test_pca_svd_solver_auto": "asserts the private attribute _fit_svd_solver",
    "test_sparse_pca_solver_error": "asserts that sparse rows are refused; Mercer takes them",
    "test_pca_score": "its last line wants a likelihood that depends on whiten; ours is below",
    "test_array_api_error_and_warnings_on_unsupported_params": (
        "asserts that arpack and LU refuse the arrays of other libraries; Mercer takes them"
    ),
}
ALL_AXES = "asserts that arpack refuses to find all axes; Mercer finds them"
# Of the 216 combinations of test_pca_sparse, those that differ most; 216 take a minute.
FEWER = {"density": [0.01, 0.30], "n_components": [10], "scale": [100]}


def cases(test, mark):
    """Return the cases of a parametrisation that apply to Mercer."""
    names, values = mark.args[0], list(mark.args[1])
    if test.__name__ == "test_pca_sparse":
        return FEWER.get(names, values)
    if test.__name__ == "test_pca_validation" and "svd_solver" in names:
        skip = pytest.mark.skip(reason=ALL_AXES)
        return [pytest.param(*v, marks=skip) if v[0] == "arpack" else v for v in values]
    return values


upstream = load("test_pca", "PCA", mercer.PCA)
globals().update(
    {name: adapted(test, NOT_OURS, cases) for name, test in cases_in(upstream).items()}
)


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    return request.param


@pytest.fixture(autouse=True)
def _array_api(monkeypatch):
    """Without it scikit-learn's tests with arrays of other libraries skip themselves."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


def test_what_is_left_out_exists():
    for name in NOT_OURS:
        assert isinstance(getattr(upstream, name), types.FunctionType)


@pytest.mark.parametrize("svd_solver", upstream.PCA_SOLVERS)
def test_likelihood(svd_solver):
    """What `test_pca_score` asserts, except that whitening does not change the model."""
    n, p = 1000, 3
    rng = np.random.RandomState(0)
    X = rng.randn(n, p) * 0.1 + np.array([3, 4, 5])
    pca = mercer.PCA(2, svd_solver=svd_solver).fit(X)
    entropy = -0.5 * np.log(2 * np.pi * np.exp(1) * 0.1**2) * p
    np.testing.assert_allclose(pca.score(X), entropy, rtol=5e-2)
    assert pca.score(X) > pca.score(rng.randn(n, p) * 0.2 + np.array([3, 4, 5]))
    whitened = mercer.PCA(2, whiten=True, svd_solver=svd_solver).fit(X)
    np.testing.assert_allclose(whitened.score(X), pca.score(X), rtol=1e-10)

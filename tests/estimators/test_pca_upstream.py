"""scikit-learn's own tests of its PCA, run against Mercer's."""

import importlib.util
import sys

import numpy as np
import pytest
import sklearn.decomposition

import mercer

spec = importlib.util.find_spec("sklearn.decomposition.tests.test_pca")
if spec is None:
    pytest.skip("scikit-learn was installed without its tests", allow_module_level=True)

THEIRS = {
    "test_pca_svd_solver_auto": "asserts the private attribute _fit_svd_solver",
    "test_sparse_pca_solver_error": "asserts that sparse input is refused; Mercer takes it",
    "test_pca_score": "its last line asserts that the likelihood depends on whiten; see below",
    "test_array_api_error_and_warnings_on_unsupported_params": (
        "asserts that arpack and LU are refused for other libraries' arrays; Mercer takes them"
    ),
}
ALL_AXES = "asserts that arpack refuses to find all axes; Mercer's finds them"
# Of 216 combinations of test_pca_sparse, those that differ in more than a unit.
FEWER = {"density": [0.01, 0.30], "n_components": [1, 10], "scale": [1, 100]}


def load():
    """Return a private copy of scikit-learn's module that imported Mercer's PCA."""
    module = importlib.util.module_from_spec(spec)
    original = sklearn.decomposition.PCA
    sklearn.decomposition.PCA = mercer.PCA
    try:
        spec.loader.exec_module(module)
    finally:
        sklearn.decomposition.PCA = original
    return module


def adapted(name, test):
    """Return a test marked by what of it does not apply."""
    if name in THEIRS:
        return pytest.mark.skip(reason=THEIRS[name])(test)
    marks = getattr(test, "pytestmark", [])
    if name == "test_pca_sparse":
        marks = [
            pytest.mark.parametrize(mark.args[0], FEWER.get(mark.args[0], mark.args[1])).mark
            for mark in marks
        ]
    if name == "test_pca_validation":
        cases = marks[0].args[1]
        assert any(case[0] == "arpack" for case in cases)
        skip = pytest.mark.skip(reason=ALL_AXES)
        cases = [pytest.param(*c, marks=skip) if c[0] == "arpack" else c for c in cases]
        marks = [pytest.mark.parametrize(marks[0].args[0], cases).mark, *marks[1:]]
    test.pytestmark = marks
    return test


upstream = load()
for name, test in vars(upstream).items():
    if name.startswith("test_"):
        globals()[name] = adapted(name, test)


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=[np.float64])
def global_dtype(request):
    return request.param

"""scikit-learn's own tests of an estimator, loaded with Mercer's in its place."""

import importlib.util

import pytest
import sklearn.decomposition


def load(module: str, name: str, ours: type):
    """Return a private copy of a test module that imported our estimator under its own name."""
    path = f"sklearn.decomposition.tests.{module}"
    try:
        spec = importlib.util.find_spec(path)
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        pytest.skip("scikit-learn was installed without its tests", allow_module_level=True)
    copy = importlib.util.module_from_spec(spec)
    original = getattr(sklearn.decomposition, name)
    setattr(sklearn.decomposition, name, ours)
    try:
        spec.loader.exec_module(copy)
    finally:
        setattr(sklearn.decomposition, name, original)
    return copy


def adapted(test, left_out, cases=lambda test, mark: list(mark.args[1])):
    """Return a test without what does not apply to Mercer."""
    if test.__name__ in left_out:
        return pytest.mark.skip(reason=left_out[test.__name__])(test)
    marks = getattr(test, "pytestmark", [])
    test.pytestmark = [
        pytest.mark.parametrize(mark.args[0], cases(test, mark), **mark.kwargs).mark
        if mark.name == "parametrize"
        else mark
        for mark in marks
    ]
    return test


def cases_in(module):
    """Return the tests of a module by name."""
    return {k: v for k, v in vars(module).items() if k.startswith("test_")}

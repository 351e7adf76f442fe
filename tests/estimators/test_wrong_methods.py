"""Methods of the other estimator, and gaps that too few components cannot meet."""

import inspect

import numpy as np
import pytest

from mercer import PCA, ConvergenceWarning, KernelPCA, methods
from mercer.kernels import RBF
from mercer.methods import Method, Nystrom, Reduced, Subset

X = np.random.default_rng(0).standard_normal((50, 3))
METHODS = [
    found
    for name in methods.__all__
    if inspect.isclass(found := getattr(methods, name))
    and issubclass(found, Method)
    and not inspect.isabstract(found)
]


def test_there_are_methods_of_either_kind():
    assert sum(method.for_rows for method in METHODS) >= 5
    assert sum(method.for_kernels for method in METHODS) >= 10
    assert all(method.for_rows or method.for_kernels for method in METHODS)


@pytest.mark.parametrize("method", [m for m in METHODS if not m.for_kernels])
def test_kernel_pca_refuses_methods_without_a_kernel(method):
    with pytest.raises(ValueError, match=r"Use PCA\(svd_solver="):
        KernelPCA(2, kernel="rbf", method=method()).fit(X)


@pytest.mark.parametrize("method", [m for m in METHODS if not m.for_rows])
def test_pca_refuses_methods_with_a_kernel(method):
    with pytest.raises(ValueError, match=r"Use KernelPCA\(method="):
        PCA(2, svd_solver=method()).fit(X)


@pytest.mark.parametrize("method", [Nystrom(1), Reduced(1)])
def test_a_gap_is_not_met_by_fewer_components(method):
    with pytest.warns(ConvergenceWarning, match="only 0 of n_components=1 were found"):
        KernelPCA(1, kernel="linear", method=method, gap=0.01, random_state=0).fit(X)


@pytest.mark.filterwarnings("ignore:.*above rounding error")
def test_a_gap_is_met_by_all_components_there_are(recwarn):
    KernelPCA(5, kernel="linear", method=Subset(20), gap=0.01, random_state=0).fit(X)
    assert not [w for w in recwarn if issubclass(w.category, ConvergenceWarning)]


@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning")
def test_the_angle_of_an_only_component_is_not_zero():
    rows = np.repeat([[0.0], [1.0]], 100, axis=0)
    found = KernelPCA(1, kernel=RBF(1.0), method=Subset(2), random_state=0, gap=0.01).fit(rows)
    assert np.isnan(found.certificate_.angles[0])  # nothing has measured it

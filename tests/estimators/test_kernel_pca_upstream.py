"""scikit-learn's own tests of its KernelPCA, run against Mercer's."""

import types

import pytest

import mercer
from tests.estimators.upstream import adapted, cases_in, load

NOT_OURS = {
    "test_remove_zero_eig": "asserts axes of no variance; Mercer hands out none, and warns",
    "test_kernel_conditioning": "asserts an axis of no variance; Mercer hands out none",
    "test_kernel_pca_precomputed_non_symmetric": "Mercer refuses a matrix that is not symmetric",
    "test_precomputed_kernel_not_psd": (
        "asserts that a kernel that is not positive semi-definite is refused; Mercer's certificate "
        "tells its negative eigenvalues"
    ),
}

upstream = load("test_kernel_pca", "KernelPCA", mercer.KernelPCA)
globals().update({name: adapted(test, NOT_OURS) for name, test in cases_in(upstream).items()})
pytestmark = pytest.mark.filterwarnings("ignore:.*above rounding error")


@pytest.fixture
def global_random_seed():
    return 42


def test_what_is_left_out_exists():
    for name in NOT_OURS:
        assert isinstance(getattr(upstream, name), types.FunctionType)

"""Names that the command line accepts are names that Python accepts, and mean the same."""

import numpy as np
import pytest

from mercer import PCA, KernelPCA, load
from mercer.kernels.base import KERNELS as KERNELS
from mercer.landmarks import RULES
from mercer.methods import Subset
from mercer.planning import METHODS, NAMES
from mercer.preimage import PREIMAGES
from mercer.rules import KERNEL_NAMED, NAMED

LINEAR_ONLY = {*NAMED} - {*KERNEL_NAMED}


def same(left, right):
    names = ("n_components_", "eigenvalues_", "components_", "dual_coef_", "_way")
    for name in names:
        a, b = getattr(left, name, None), getattr(right, name, None)
        assert (a is None) == (b is None), name
        if isinstance(a, np.ndarray):
            assert np.allclose(a, b), name


@pytest.mark.parametrize("name", ["all", *NAMED])
def test_components(mercer, iris, X, name):
    mercer("fit", iris, "--components", name, "-o", "m.mercer")
    same(load("m.mercer"), PCA(name, random_state=0).fit(X))
    if name in LINEAR_ONLY:
        with pytest.raises(ValueError, match="n_components"):
            KernelPCA(name).fit(X)
        return
    mercer("fit", iris, "--components", name, "--kernel", "rbf", "-o", "k.mercer")
    found = KernelPCA(name, kernel="rbf", gamma="median", random_state=0).fit(X)
    same(load("k.mercer"), found)


def test_a_percentage_is_a_share(mercer, iris, X):
    mercer("fit", iris, "--components", "95%", "-o", "m.mercer")
    same(load("m.mercer"), PCA(0.95).fit(X))
    assert "95.5" not in mercer("fit", iris, "--components", "101%", "-o", "x.mercer", code=2).err


@pytest.mark.parametrize("name", ["auto", *PREIMAGES])
def test_preimages(mercer, iris, X, name):
    options = ("--kernel", "rbf", "--components", 3, "--preimage", name)
    mercer("fit", iris, *options, "-o", "m.mercer")
    made = KernelPCA(3, kernel="rbf", gamma="median", preimage=name, random_state=0).fit(X)
    found = load("m.mercer")
    same(found, made)
    assert found.preimage == name
    scores = made.transform(X[:5])
    assert np.allclose(found.inverse_transform(scores), made.inverse_transform(scores))


@pytest.mark.parametrize(
    ("kernel", "chosen"),
    [
        ("rbf", "FixedPoint"),
        ("linear", "FixedPoint"),
        ("poly", "Gradient"),
        ("laplacian", "Ridge"),
        ("matern(1.0, nu=1.5)", "Gradient"),
    ],
)
def test_the_preimage_that_suits_a_kernel(X, kernel, chosen):
    made = KernelPCA(2, kernel=kernel, preimage="auto").fit(X)
    assert type(made.preimage_).__name__ == chosen
    assert made.inverse_transform(made.transform(X)).shape == X.shape


def test_random_features_find_their_way_back_by_themselves(X):
    given = {"kernel": "rbf", "gamma": 0.1, "method": "features", "random_state": 0}
    made = KernelPCA(2, preimage="auto", **given).fit(X)
    same = KernelPCA(2, fit_inverse_transform=True, **given).fit(X)
    scores = made.transform(X)
    assert np.allclose(made.inverse_transform(scores), same.inverse_transform(scores))


def test_every_name_of_a_method_a_solver_a_basis_rule_and_a_kernel_is_a_parameter():
    """Constructors store and `fit` validates: the names are those that validation knows."""
    for model, names in (
        (PCA, {"svd_solver": NAMES}),
        (KernelPCA, {"method": METHODS, "gamma": ("median", "scale")}),
    ):
        for parameter, known in names.items():
            for name in known:
                model(**{parameter: name})._validate_params()
    for name in RULES:
        Subset(5, select=name)
    for name in KERNELS:
        KernelPCA(kernel=name)._validate_params()

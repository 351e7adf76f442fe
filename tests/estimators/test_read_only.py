"""Arrays of libraries that hand out memory to read only, as JAX does and old NumPy assumes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import PCA, KernelPCA
from mercer.estimators.kernel_pca import SOLVERS as KERNEL_SOLVERS
from mercer.estimators.pca import SOLVERS
from mercer.landmarks import RULES
from mercer.methods import Subset
from mercer.planning import METHODS

xp = pytest.importorskip("array_api_strict")


@pytest.fixture(autouse=True)
def _read_only(monkeypatch):
    given = np.from_dlpack

    def read_only(x, **options):
        array = given(x, **options).view()
        array.flags.writeable = False
        return array

    monkeypatch.setattr(np, "from_dlpack", read_only)


def rows(shape):
    return np.random.default_rng(0).normal(size=shape) * np.linspace(3, 1, shape[1]) + 1.0


@pytest.mark.parametrize("shape", [(90, 7), (7, 90)], ids=["tall", "wide"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_pca(solver, shape):
    X = rows(shape)
    model = PCA(3, svd_solver=solver, random_state=0, scale=True)
    scores = model.fit_transform(xp.asarray(X))
    assert_allclose(np.asarray(scores), model.fit_transform(X), atol=1e-8)


@pytest.mark.parametrize(
    ("method", "solver"),
    [("exact", solver) for solver in KERNEL_SOLVERS]
    + [(name, "auto") for name in METHODS if name not in ("exact", "auto")]
    + [(Subset(10, select=rule), "auto") for rule in RULES],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::mercer.ConvergenceWarning", "ignore:.*above rounding error")
def test_kernel_pca(method, solver):
    X = rows((60, 5))
    settings = {
        "eigen_solver": solver,
        "method": method,
        "gap": 0.5 * (method == "adaptive") or None,
    }
    model = KernelPCA(2, kernel="rbf", gamma=0.02, random_state=0, **settings)
    scores = model.fit_transform(xp.asarray(X))
    assert_allclose(np.asarray(scores), model.fit_transform(X), atol=1e-7)

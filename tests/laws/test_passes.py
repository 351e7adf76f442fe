"""A plan states the passes over the rows that a fit makes."""

import warnings

import numpy as np
import pytest
import scipy.sparse

from mercer import PCA, KernelPCA
from mercer.data import Source
from mercer.data.fold import Collect
from mercer.methods import (
    Adaptive,
    Cholesky,
    Exact,
    Greedy,
    Hebbian,
    Improved,
    Iterative,
    Nystrom,
    RandomFeatures,
    Reduced,
    Sketch,
    Sparse,
    SparseL1,
    Subset,
)
from tests.catalogue import WAYS, pairwise, rows, separated

N, D = 600, 12
# What these solvers multiply depends on the spectrum: the plan estimates it.
CONVERGE = ("arpack", "power")


def _csv(X, folder):
    np.savetxt(folder / "rows.csv", X, delimiter=",")
    return folder / "rows.csv"


def _npy(X, folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def _dask(X, _):
    return pytest.importorskip("dask.array").from_array(X, chunks=(200, D))


SOURCES = {
    "array": lambda X, _: X,
    "float32": lambda X, _: X.astype(np.float32),
    "sparse": lambda X, _: scipy.sparse.csr_array(X),
    "npy": _npy,
    "csv": _csv,
    "Dask": _dask,
}


@pytest.fixture
def passes(monkeypatch):
    """The labels of the passes over all rows, or over all their columns, and over all pairs.

    Reading rows into memory, where the model keeps them, is not counted.
    """
    labels, fold, depth = [], Source.fold, [0]

    def counted(self, state):
        root, stores = self, isinstance(state, Collect) and not hasattr(self, "source")
        while hasattr(root, "source"):
            root = root.source
        if not (depth[0] or stores) and {N, D} == set(root.shape):
            labels.append(state.label)
        depth[0] += 1
        try:
            return fold(self, state)
        finally:
            depth[0] -= 1

    monkeypatch.setattr(Source, "fold", counted)
    return labels


def planned(model):
    return cost(model).passes


def of_the_fit(passes, model):
    """The passes of the method; those of the certificate, which the plan states, may be none."""
    if np.isinf(cost(model).extra_passes):  # they are among these
        return passes
    most = model.plan_.certificate_passes
    assert passes.count("certificate") <= most
    return [label for label in passes if label != "certificate"]


def cost(model):
    plan = model.plan_
    return next(c.cost for c in plan.candidates if c.method is plan.method)


def fitted(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


@pairwise(source=SOURCES, way=WAYS, scale=[False, True], weighted=[False, True])
def test_linear(way, source, scale, weighted, passes, tmp_path):
    if way.name in CONVERGE or (scale and way.name.startswith("Frequent")):
        pytest.skip("the number is not known before, or the method does not scale")
    if source == "Dask" and way.name in ("dot", "Dot()"):
        pytest.skip("needs columns")
    X = SOURCES[source](separated(np.random.default_rng(0), N, D), tmp_path)
    weights = 0.5 + np.arange(D) if weighted else None
    pca = PCA(3, svd_solver=way.solver, scale=scale, feature_weight=weights, random_state=0)
    model = fitted(pca, X)
    if isinstance(model.plan_.method, Iterative):  # it may converge earlier
        assert len(of_the_fit(passes, model)) <= planned(model), passes
    else:
        assert len(of_the_fit(passes, model)) == planned(model), passes


@pytest.mark.parametrize("way", rows(WAYS))
def test_wide(way, passes):
    if way.name in CONVERGE:
        pytest.skip("the number is not known before")
    X = np.random.default_rng(0).standard_normal((D, N))
    model = fitted(PCA(3, svd_solver=way.solver, random_state=0), X)
    if isinstance(model.plan_.method, Iterative):
        assert len(of_the_fit(passes, model)) <= planned(model), passes
    else:
        assert len(of_the_fit(passes, model)) == planned(model), passes


LANDMARKS = [
    Subset(50),
    Subset(50, select="kmeans"),
    Subset(50, centroid="rows"),
    Improved(50),
    Reduced(50),
    Nystrom(50),
    Nystrom(50, on="basis"),
    Sparse(50),
]


@pairwise(source=SOURCES, method=LANDMARKS, kernel=["rbf", "poly", "linear"])
def test_landmarks(method, kernel, source, passes, tmp_path):
    X = SOURCES[source](separated(np.random.default_rng(0), N, D), tmp_path)
    model = fitted(KernelPCA(3, kernel=kernel, gamma=0.1, method=method, random_state=0), X)
    assert len(of_the_fit(passes, model)) == planned(model), passes


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "method",
    [Exact("dense"), Exact(), Exact(store="none"), RandomFeatures(100), Sketch()],
    ids=repr,
)
def test_all_rows(method, source, passes, tmp_path):
    X = SOURCES[source](separated(np.random.default_rng(0), N, D), tmp_path)
    model = fitted(KernelPCA(3, kernel="rbf", gamma=0.1, method=method, random_state=0), X)
    if getattr(method, "solver", "") == "krylov":  # it may converge earlier
        assert len(of_the_fit(passes, model)) <= planned(model), passes
    else:
        assert len(of_the_fit(passes, model)) == planned(model), passes


DEPEND = [
    Cholesky(50),
    Cholesky(50, tol=0.05),
    Cholesky(50, on="rows"),
    Greedy(50),
    Subset(50, select="rp_cholesky"),
    Subset(50, select="backward"),
    Subset(50, select="forward_backward"),
    SparseL1(),
    SparseL1(candidates=30),
    Adaptive(50),
    Adaptive(50, store=None),
]


@pairwise(source=SOURCES, method=DEPEND, kernel=["rbf", "poly", "linear"], k=[3, 0.5])
def test_a_number_that_depends_on_the_data(method, kernel, k, source, passes, tmp_path):
    """The plan states the fewest and the most, and says so."""
    X = SOURCES[source](separated(np.random.default_rng(0), N, D), tmp_path)
    model = fitted(KernelPCA(k, kernel=kernel, gamma=0.1, method=method, random_state=0), X)
    known = cost(model)
    assert known.passes <= len(of_the_fit(passes, model)) <= known.passes + known.extra_passes, (
        passes
    )
    assert known.passes_range in str(model.plan_)
    assert " to " in known.passes_range or " or more" in known.passes_range


@pytest.mark.parametrize("gap", [0.5, 1e-6])
@pytest.mark.parametrize(
    "method", [Adaptive(50), Adaptive(50, store=None), Subset(50), RandomFeatures(100), Sketch()]
)
def test_a_gap_may_take_more_passes(method, gap, passes):
    X = separated(np.random.default_rng(0), N, D)
    model = fitted(KernelPCA(3, kernel="rbf", gap=gap, method=method, random_state=0), X)
    known = cost(model)
    assert known.passes <= len(of_the_fit(passes, model)) <= known.passes + known.extra_passes, (
        passes
    )


@pairwise(
    source=SOURCES,
    method=[Hebbian(), Hebbian(n_basis=50), Hebbian(n_basis=50, polish=False)],
    kernel=["rbf", "linear"],
)
def test_hebbian(method, kernel, source, passes, tmp_path):
    """It learns from rows in memory."""
    X = SOURCES[source](separated(np.random.default_rng(0), N, D), tmp_path)
    model = fitted(KernelPCA(3, kernel=kernel, gamma=0.1, method=method, random_state=0), X)
    assert len(of_the_fit(passes, model)) == planned(model), passes

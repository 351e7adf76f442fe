"""The plan: told before anything runs, from shapes and the budget alone."""

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from mercer import PCA, KernelPCA, Plan, config_context, threads
from mercer.data import ArraySource, Source
from mercer.estimators.pca import SOLVERS
from mercer.kernels import RBF
from mercer.methods import SVD, Covariance, Dot, Improved, Iterative, Reduced, Subset
from tests.catalogue import pairwise

MEMORY = "8GiB"  # so that no choice here depends on the machine
SHAPES = [(10**7, 50), (10**6, 3000), (3000, 10**6), (5 * 10**4, 5 * 10**4), (10**4, 700)]


def huge(n, d, dtype=np.float64):
    """Rows that take no memory."""
    return np.broadcast_to(np.zeros((), dtype), (n, d))


def plan(shape, k=10, memory=MEMORY, solver="auto"):
    with config_context(memory=memory):
        return PCA(k, svd_solver=solver).plan(huge(*shape))


@pytest.fixture
def _nothing_is_read(monkeypatch):
    def refuse(*args):
        raise AssertionError("a plan reads no rows")

    monkeypatch.setattr(Source, "fold", refuse)
    monkeypatch.setattr("mercer.data.ArraySource.read", refuse)
    monkeypatch.setattr("mercer.data.NpySource.read", refuse)


@pytest.mark.usefixtures("_nothing_is_read")
def test_a_plan_runs_nothing():
    assert isinstance(PCA(10).plan(huge(10**9, 10**4)), Plan)


@pytest.mark.usefixtures("_nothing_is_read")
def test_a_plan_of_a_file_reads_its_header(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((100, 5)))
    assert PCA(2).plan(tmp_path / "x.npy").size.d == 5


def test_a_plan_leaves_the_estimator_unfitted():
    pca = PCA(10)
    before = dict(vars(pca))
    pca.plan(huge(1000, 50))
    assert vars(pca) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(pca)


def test_a_plan_leaves_a_fit_as_it_was():
    pca = PCA(2).fit(np.random.default_rng(0).normal(size=(30, 4)))
    before = dict(vars(pca))
    pca.plan(huge(1000, 50))
    assert vars(pca) == before


@pytest.mark.parametrize(
    ("shape", "k", "memory", "method"),
    [
        ((100, 20), 5, MEMORY, SVD()),
        ((10**7, 50), 10, MEMORY, Covariance()),
        ((200, 10**6), 10, MEMORY, Dot()),
        ((10**5, 5 * 10**4), 10, MEMORY, Iterative()),
        ((1000, 1200), 1000, MEMORY, Dot()),  # a basis of the whole space saves nothing
        ((10**6, 2000), 10, "64MiB", Iterative()),  # holds vectors of 2000, nothing of 10**6
    ],
)
def test_the_choice(shape, k, memory, method):
    assert plan(shape, k, memory).method == method


def test_sparse_rows_are_multiplied():
    X = scipy.sparse.random_array((10**4, 10**5), density=1e-5, rng=np.random.default_rng(0))
    assert PCA(5).plan(X).method == Iterative()


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s != "auto"])
def test_what_is_asked_for_by_name_is_what_runs(solver):
    told = plan((1000, 50), solver=solver)
    assert told.reason == "as requested"
    assert told.candidates[0].method is told.method


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_choice_is_among_the_candidates(shape):
    told = plan(shape)
    assert any(candidate.method is told.method for candidate in told.candidates)


@pytest.mark.parametrize("memory", ["64MiB", "1GiB", "64GiB"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_choice_fits_the_budget_where_any_does(shape, memory):
    told = plan(shape, memory=memory)
    chosen = next(c for c in told.candidates if c.method is told.method)
    assert chosen.fits == any(c.fits for c in told.candidates)


@pytest.mark.parametrize("memory", ["64MiB", "256MiB", "1GiB", "8GiB"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_choice_does_not_depend_on_the_machine(shape, memory, monkeypatch):
    choices = []
    for cores in (1, 2, 64):
        monkeypatch.setattr(threads, "workers", lambda cores=cores: cores)
        choices.append(plan(shape, memory=memory).method)
    assert choices[0] == choices[1] == choices[2]


def test_the_choice_does_not_depend_on_the_entries():
    X = np.random.default_rng(0).normal(size=(5000, 60))
    assert PCA(5).plan(X).method == PCA(5).plan(huge(5000, 60)).method


@pytest.mark.parametrize("shape", [(3000, 100), (100, 3000), (300, 20)], ids=str)
def test_fit_does_what_the_plan_says(shape):
    X = np.random.default_rng(0).normal(size=shape)
    assert PCA(5).fit(X).plan_.method == PCA(5).plan(X).method


def test_a_plan_is_a_table():
    lines = str(plan((10**6, 300))).splitlines()
    assert lines[0] == "Plan for 1000000 × 300 float64, 10 components, memory 8.0 GiB:"
    assert lines[1] == "Covariance(), the cheapest that fits in 8.0 GiB."
    assert lines[3].split() == ["method", "passes", "operations", "memory", "seconds"]
    assert [line.split()[0] for line in lines[4:]] == ["→", "dot", "svd", "iterative"]


def test_the_table_marks_the_choice_once():
    told = plan((10**6, 300))
    marked = [line for line in str(told).splitlines() if "→" in line]
    assert len(marked) == 1
    assert re.match(r" → covariance +1 +[\d.e+]+ +[\d.]+ [KMG]iB +[\d.e+-]+$", marked[0])


def test_the_table_says_what_is_too_large():
    dot = next(line for line in str(plan((10**7, 50))).splitlines() if "dot" in line)
    assert dot.endswith("too large")


def test_the_table_of_a_rule():
    assert "number of components set by the rule" in str(plan((1000, 50), k=0.9))


def test_the_table_of_sparse_rows():
    X = scipy.sparse.random_array((100, 50), density=0.1, rng=np.random.default_rng(0))
    assert "100 × 50 float64, 500 entries" in str(PCA(5).plan(X))


def test_repr_is_the_table():
    told = plan((1000, 50))
    assert repr(told) == str(told)


def test_when_nothing_fits_the_plan_says_so():
    told = plan((10**5, 10**5), memory="1MiB")
    assert "none fits in 1.0 MiB" in told.reason


def test_a_plan_refuses_what_a_fit_refuses():
    with pytest.raises(ValueError, match="n_components=80"):
        PCA(80).plan(huge(1000, 50))


def test_a_plan_refuses_an_unknown_solver():
    with pytest.raises(ValueError, match="svd_solver"):
        PCA(2, svd_solver="lanczos").plan(huge(1000, 50))


def test_a_method_asked_for_is_refused_where_it_does_not_fit():
    """Before a pass over the rows, and with what would fit."""
    X = np.random.default_rng(0).normal(size=(300, 2000))
    pca = PCA(2, svd_solver="covariance_eigh")
    with config_context(memory="32MiB"):
        assert "too large" in str(pca.plan(X))
        with pytest.raises(MemoryError, match=r"covariance needs .* budget of 32.0 MiB.* dot"):
            pca.fit(X)
        assert not hasattr(pca, "components_")
        PCA(2).fit(X)


def test_a_plan_for_strings_counts_them():
    plan = KernelPCA(2, kernel="substring").plan(["abc", "abd", "xyz"])
    assert str(plan).startswith("Plan for 3 strings, 2 components")


class Counted(ArraySource):
    """Counts how often its rows are read, as a share of all."""

    def __init__(self, array):
        super().__init__(array)
        self.seen = [0]  # shared by copies
        self.parallel = False

    def read(self, start, stop):
        self.seen[0] += stop - start
        return super().read(start, stop)


FIXED = ("uniform", "diagonal", "column_norm", "leverage", "kmeans", "kernel_kmeans", "forward")


@pairwise(
    rule=[*FIXED, "pivoted_cholesky", "rp_cholesky", "backward"],
    center=[True, False],
    make=[Subset, Reduced, Improved],
)
def test_passes_of_a_plan_are_those_that_are_made(make, center, rule):
    """For rules whose number of steps depends on the data, the plan states the minimum."""
    rows = Counted(np.random.default_rng(0).standard_normal((120, 3)))
    method = make(12, select=rule)
    model = KernelPCA(2, kernel=RBF(0.1), method=method, center=center, random_state=0)
    planned = model.plan(rows).candidates[0].cost.passes
    rows.seen[0] = 0
    with config_context(block_rows=32):
        model.fit(rows)
    made = rows.seen[0] / rows.shape[0]
    assert made == planned if rule in FIXED else made >= planned


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "sketch"])
def test_passes_of_linear_plans(solver):
    rows = Counted(np.random.default_rng(0).standard_normal((300, 4)))
    model = PCA(2, svd_solver=solver, random_state=0)
    planned = model.plan(rows).candidates[0].cost.passes
    rows.seen[0] = 0
    model.fit(rows)
    assert int(rows.seen[0] / rows.shape[0]) == planned  # and a look at some rows

"""What holds for every rule."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from mercer import KernelPCA, config_context, landmarks
from mercer.kernels import RBF, Linear, Subsequence
from mercer.landmarks import as_landmarks
from mercer.methods import Subset
from tests.catalogue import cycled, rows
from tests.landmarks.catalogue import ROWS, points, problem

WORDS = [a + b + c for a in "abcd" for b in "efgh" for c in "ijk"]
ANYTHING = [row for row in ROWS if not row.vectors]


@pytest.mark.parametrize("row", rows(ROWS))
@pytest.mark.parametrize("m", [1, 7, 25])
def test_as_many_different_rows_as_asked(row, m):
    basis = row.rule.select(problem(points()), m)
    assert len(basis) == len(set(basis.at)) == m
    np.testing.assert_array_equal(basis.points, points()[basis.at])
    assert (basis.counts is not None) == row.drawn


@pytest.mark.parametrize("row", rows(ROWS))
def test_the_same_generator_gives_the_same_rows(row):
    first, again, other = (row.rule.select(problem(points(), seed=s), 9).at for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (set(first) != set(other)) == row.random


@pytest.mark.parametrize("row", rows(ROWS))
def test_any_block_size_gives_the_same_rows(row):
    expected = row.rule.select(problem(points()), 9).at
    for size in (1, 7, 64):
        with config_context(block_rows=size):
            np.testing.assert_array_equal(row.rule.select(problem(points()), 9).at, expected)


@pytest.mark.parametrize("row", rows(ROWS))
def test_all_rows(row):
    X = points(30)
    basis = row.rule.select(problem(X, kernel=RBF(3.0)), 30)
    assert sorted(basis.at) == list(range(30))
    if row.drawn:
        np.testing.assert_allclose(basis.counts, 1.0)


@pytest.mark.parametrize("row", rows(ROWS))
def test_rows_without_weight_are_never_chosen(row):
    weights = np.random.default_rng(5).integers(0, 3, 80)
    for seed in range(5):
        basis = row.rule.select(problem(points(), weights=weights, seed=seed), 20)
        assert len(basis) == 20
        assert (weights[basis.at] > 0).all()


@pytest.mark.parametrize("row", rows(ROWS))
def test_fewer_rows_with_a_weight_than_points_asked_for(row):
    """A rule that does not stop early calls `require_enough_rows`, or draws by `sample_basis`."""
    given = problem(points(20), weights=[1.0] * 5 + [0.0] * 15, kernel=RBF(3.0))
    if row.greedy:
        assert sorted(row.rule.select(given, 6).at) == list(range(5))
    else:
        with pytest.raises(ValueError, match=r"only 5 rows .* n_basis=6"):
            row.rule.select(given, 6)


@pytest.mark.parametrize("row", rows([row for row in ROWS if row.greedy]))
def test_rows_that_span_few_directions_give_few_points(row):
    X = points(60, 4)
    X[30:] = X[:30]
    basis = row.rule.select(problem(X, r=2, kernel=Linear()), 10)
    assert len(basis) == 4


@pytest.mark.parametrize("row", rows(ANYTHING))
def test_a_kernel_matrix_gives_the_rows_that_its_kernel_gives(row):
    expected = row.rule.select(problem(points()), 9)
    found = row.rule.select(problem(RBF(0.3)(points()), kernel=None), 9)
    np.testing.assert_array_equal(found.at, expected.at)
    assert found.points is None


@pytest.mark.parametrize("row", rows(ANYTHING))
def test_strings(row):
    basis = row.rule.select(problem(WORDS, kernel=Subsequence(2).normalized()), 6)
    assert len(set(basis.at)) == 6
    assert basis.points == [WORDS[i] for i in basis.at]


@pytest.mark.parametrize("row", rows([row for row in ROWS if row.vectors]))
@pytest.mark.parametrize("what", ["strings", "matrix"])
def test_a_rule_that_needs_vectors_names_those_that_do_not(row, what):
    kernel = Subsequence(2) if what == "strings" else None
    given = problem(WORDS if what == "strings" else np.eye(9), kernel=kernel)
    with pytest.raises(ValueError, match=what) as error:
        row.rule.check(given)
    assert all(name in str(error.value) for name in ("kernel_kmeans", "rp_cholesky", "uniform"))
    assert " kmeans" not in str(error.value)


@cycled(row=ROWS, dtype=["float32", "float64"])
def test_sparse_rows_give_the_rows_that_dense_ones_give(row, dtype):
    X = points(60, 5, dtype=dtype)
    X[np.abs(X) < 0.5] = 0
    expected = row.rule.select(problem(X), 8)
    found = row.rule.select(problem(scipy.sparse.csr_array(X)), 8)
    np.testing.assert_array_equal(found.at, expected.at)


@pytest.mark.parametrize("row", rows(ROWS))
def test_float32_rows_and_many_points(row):
    basis = row.rule.select(problem(points(400, 2, dtype=np.float32), kernel=RBF(0.1)), 60)
    assert len(set(basis.at)) == len(basis) >= (20 if row.greedy else 60)


@pytest.mark.parametrize("row", rows(ROWS))
def test_rows_in_a_file(row, tmp_path):
    np.save(tmp_path / "rows.npy", points())
    found = row.rule.select(problem(tmp_path / "rows.npy"), 9)
    np.testing.assert_array_equal(found.at, row.rule.select(problem(points()), 9).at)


@cycled(row=ROWS, library=["torch", "array_api_strict"])
def test_arrays_of_other_libraries(row, library):
    xp = pytest.importorskip(library)
    found = row.rule.select(problem(xp.asarray(points())), 9)
    np.testing.assert_array_equal(found.at, row.rule.select(problem(points()), 9).at)


@pytest.mark.parametrize("row", rows(ROWS))
def test_an_indefinite_kernel(row):
    from mercer.kernels import Tanh

    basis = row.rule.select(problem(points(), kernel=Tanh(0.5, 0.1)), 9)
    assert len(set(basis.at)) == len(basis) >= 1


@pytest.mark.parametrize("row", rows(ROWS))
def test_through_the_estimator_and_clone(row):
    kpca = KernelPCA(2, kernel="rbf", method=Subset(9, select=row.rule), random_state=0)
    kpca = clone(kpca).fit(points())
    assert kpca.X_fit_.shape == (9, 3)
    assert kpca.method.select == row.rule


@pytest.mark.parametrize("row", rows(ROWS))
def test_cost_grows_with_the_rows(row):
    few, many = row.rule.cost(1000, 10, 20), row.rule.cost(4000, 10, 20)
    assert 0 <= few.work <= many.work
    assert 0 <= few.memory <= many.memory


def test_names():
    for name, rule in landmarks.RULES.items():
        assert as_landmarks(name) == rule()
    with pytest.raises(ValueError, match="'best' is not one of backward, column_norm"):
        as_landmarks("best")


@pytest.mark.parametrize(
    "rule",
    [
        landmarks.Forward(step=0),
        landmarks.Forward(candidates=0),
        landmarks.Backward(step=-1),
        landmarks.Backward(candidates=2.5),
        landmarks.ForwardBackward(beyond=0.0),
        landmarks.Ransac(trials=0),
        landmarks.PivotedCholesky(tol=1.0),
        landmarks.RPCholesky(block=0),
        landmarks.KMeans(max_iter=0),
        landmarks.KernelKMeans(max_iter="many"),
        landmarks.KernelKMeans(candidates=0),
    ],
    ids=repr,
)
def test_bad_arguments_are_named(rule):
    name = next(n for n, v in rule.get_params().items() if v != type(rule)().get_params()[n])
    with pytest.raises(ValueError, match=f"{name}="):
        rule.select(problem(points()), 5)


@pytest.mark.parametrize(
    "rule",
    [
        landmarks.Forward(candidates=2000),
        landmarks.Backward(candidates=2000),
        landmarks.PivotedCholesky(),
        landmarks.RPCholesky(),
        landmarks.KernelKMeans(candidates=2000),
    ],
    ids=repr,
)
def test_what_does_not_fit_names_the_budget(rule):
    with config_context(memory="1MiB"), pytest.raises(MemoryError, match=r"budget of 1.0 MiB"):
        rule.select(problem(points(2000)), 200)


@pytest.mark.parametrize("name", ["forward", "backward", "kernel_kmeans"])
def test_a_small_budget_leaves_few_candidates(name):
    rule = as_landmarks(name)
    with config_context(memory="4MiB"):
        assert 10 <= rule.n_candidates(10**5, 10) <= rule.n_candidates(10**3, 10) < 400
        assert rule.n_candidates(10**5, 40) >= 40
    assert rule.n_candidates(500, 10) == 500

"""Kernel PCA on a basis as users meet it: forms of rows, bad input, the plan."""

import functools
import pickle
import re
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import KernelPCA, config_context, landmarks
from mercer.kernels import RBF, FromFunction, Linear, Polynomial, Subsequence
from mercer.messages import percent
from mercer.methods import (
    Adaptive,
    Cholesky,
    ConvergenceWarning,
    Exact,
    Greedy,
    Improved,
    Nystrom,
    Reduced,
    Sparse,
    SparseL1,
    Subset,
)

IRIS = load_iris().data
RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((60, 4)), RNG.standard_normal((10, 4))
WORDS = ["".join(RNG.choice(list("abc"), 5)) for _ in range(40)]
METHODS = [
    Subset(10),
    Subset(10, centroid="rows"),
    Subset(10, centroid="basis"),
    Subset(10, rank=6),
    Reduced(10),
    Improved(10),
    Nystrom(10),
    Nystrom(10, on="basis"),
    Nystrom(10, "kmeans"),
    Cholesky(10),
    Cholesky(10, on="rows"),
    Greedy(10),
    Adaptive(10),
    Sparse(10),
    SparseL1(),
]
NAMES = ["subset", "reduced", "improved", "nystrom", "cholesky", "greedy", "adaptive"]
ANYTHING = sorted(name for name, rule in landmarks.RULES.items() if rule.takes == "anything")


def fit(method, X=X, k=2, weights=None, kernel=RBF(0.1), **settings):  # noqa: B008
    settings = {"random_state": 0, **settings}
    return KernelPCA(k, kernel=kernel, method=method, **settings).fit(X, sample_weight=weights)


@functools.cache
def scores_of_new(i):
    return fit(METHODS[i]).transform(NEW)


def told(f):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f()
    return [str(w.message) for w in caught]


# Rows of every form.


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize(
    "form", ["csr", "fortran", "pandas", "npy", "torch", "array_api_strict", "source"]
)
def test_forms_of_rows(method, form, tmp_path):
    expected = scores_of_new(METHODS.index(method))
    rows, new = X, NEW
    if form == "csr":
        rows, new = scipy.sparse.csr_array(X), scipy.sparse.csr_array(NEW)
    elif form == "fortran":
        rows = np.asfortranarray(X)
    elif form == "pandas":
        pandas = pytest.importorskip("pandas")
        rows, new = (pandas.DataFrame(A, columns=list("abcd")) for A in (X, NEW))
    elif form == "npy":
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "new.npy", NEW)
        rows, new = tmp_path / "x.npy", str(tmp_path / "new.npy")
    elif form == "source":
        from mercer import as_source

        rows, new = as_source(X), as_source(NEW)
    else:
        xp = pytest.importorskip(form)
        rows, new = xp.asarray(X), xp.asarray(NEW)
    found = fit(method, rows)
    scores = found.transform(new)
    scores = scores.collect() if hasattr(scores, "collect") else np.asarray(scores)
    error = 1e-9 if not isinstance(method, Adaptive) else 1e-3  # it stops where the bound is met
    assert np.abs(scores - expected).max() <= error
    if form in ("torch", "array_api_strict"):
        assert type(found.eigenvalues_) is type(rows)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_float32_rows(method):
    found, expected = fit(method, X.astype(np.float32)), fit(method)
    assert found.eigenvalues_.dtype == found.transform(NEW.astype(np.float32)).dtype == np.float32
    error = np.abs(found.eigenvalues_ - expected.eigenvalues_).max()
    assert error <= 1e-5 * expected.eigenvalues_[0]
    apart = np.abs(found.transform(NEW.astype(np.float32)) - expected.transform(NEW)).max()
    assert apart <= (1e-4 if not isinstance(method, Adaptive) else 1e-3)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_strings(method):
    if getattr(method, "select", None) == "kmeans":
        method = Nystrom(10, "kernel_kmeans")
    kernel = Subsequence(2, 0.5)
    found = fit(method, WORDS, kernel=kernel)
    matrix = FromFunction(
        lambda A, B: (
            A[:, :1] * 0
            + kernel([WORDS[int(i)] for i in A[:, 0]], [WORDS[int(i)] for i in B[:, 0]])
        )
    )
    numbers = fit(method, np.arange(40.0)[:, None], kernel=matrix)
    error = 1e-9 if not isinstance(method, Adaptive) else 1e-5
    assert np.abs(found.eigenvalues_ - numbers.eigenvalues_).max() <= error * found.eigenvalues_[0]
    assert np.abs(found.transform(["abc", "bca"])).max() > 0
    assert np.isfinite(found.reconstruction_error(["abc", ""])).all()
    assert isinstance(found.X_fit_, list)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_precomputed_matrix(method):
    if getattr(method, "select", None) == "kmeans":
        method = Nystrom(10, "kernel_kmeans")
    kernel = RBF(0.1)
    weights = np.arange(60) % 3 + 1.0
    for w in (None, weights):
        expected = fit(method, weights=w)
        found = fit(method, kernel(X), kernel="precomputed", weights=w)
        assert found.certificate_.gap.kind == "estimate"  # of a matrix no bound is known
        if not isinstance(method, Adaptive):
            assert np.abs(found.eigenvalues_ - expected.eigenvalues_).max() <= 1e-9
            apart = np.abs(found.transform(kernel(NEW, X)) - expected.transform(NEW)).max()
            assert apart <= 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_by_name(name):
    """A basis of all rows, where there are few."""
    found = fit(name, gap=0.05 if name == "adaptive" else None)
    assert found.plan_.method.name == name
    exact = fit("exact")
    assert np.allclose(
        found.eigenvalues_, exact.eigenvalues_, rtol=0.05 if name == "adaptive" else 1e-8
    )


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_clone_pickle_and_repr(method):
    kpca = KernelPCA(2, kernel=RBF(0.1), method=method, random_state=0)
    again = clone(kpca)
    assert again.method == method
    assert again.method is not method
    kpca.fit(X)
    loaded = pickle.loads(pickle.dumps(kpca))
    assert np.array_equal(loaded.transform(NEW), kpca.transform(NEW))
    assert loaded.certificate_.gap == kpca.certificate_.gap
    assert loaded.certificate_.gap.kind == kpca.certificate_.gap.kind
    assert repr(method) in repr(kpca)
    assert eval(repr(method)) == method


def test_a_grid_over_the_basis():
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5).astype(int)
    model = make_pipeline(KernelPCA(2, kernel=RBF(0.3), method=Subset(2)), LogisticRegression())
    grid = {
        "kernelpca__method__n_basis": [2, 20],
        "kernelpca__method__select": ["uniform", "kmeans", landmarks.Forward()],
    }
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_params_["kernelpca__method__n_basis"] in (2, 20)
    rule = KernelPCA(method=Subset(9, select=landmarks.Ransac(3)))
    assert clone(rule).set_params(method__select__trials=7).method.select.trials == 7


@pytest.mark.parametrize("kernel", [RBF(0.1), Polynomial(2)])
@pytest.mark.parametrize("preimage", ["fixed_point", "gradient", "ridge"])
def test_the_way_back(kernel, preimage):
    """From all rows as the basis it is that of exact kernel PCA."""
    expected = fit("exact", k=3, kernel=kernel, preimage=preimage).reconstruct(X[:5])
    found = fit(Subset(60), k=3, kernel=kernel, preimage=preimage).reconstruct(X[:5])
    assert np.abs(found - expected).max() <= 1e-5


def test_the_fitted_object_stays_as_it_was_when_a_fit_fails():
    kpca = fit(Subset(10))
    before, expected = dict(vars(kpca)), kpca.transform(NEW)
    bad = X.copy()
    bad[7, 1] = np.nan
    for broken in (lambda: kpca.fit(bad), lambda: kpca.set_params(method__n_basis=99).fit(X)):
        with pytest.raises(ValueError, match=r"row 7, column 1|n_basis=99"):
            broken()
        kpca.set_params(method__n_basis=10)
        assert vars(kpca) == before
    stream = KernelPCA(2, kernel=RBF(0.1), method=Subset(select=X[:8])).partial_fit(X[:30])
    scores = stream.transform(NEW)
    with pytest.raises(ValueError, match="NaN"):
        stream.partial_fit(np.where(np.arange(120).reshape(30, 4) == 5, np.nan, X[30:]))
    assert np.array_equal(stream.transform(NEW), scores)
    stream.partial_fit(X[30:])
    whole = fit(Subset(select=X[:8]))
    assert np.abs(stream.transform(NEW) - whole.transform(NEW)).max() <= 1e-12
    assert np.array_equal(kpca.transform(NEW), expected)


def test_rows_of_no_weight_are_not_in_the_basis():
    weights = np.where(np.arange(60) % 4 == 0, 1.0, 0.0)
    for method in (*METHODS, Subset(), Subset(select="kmeans"), "subset"):
        basis = fit(method, weights=weights)
        if isinstance(method, Subset) and method.centroid != "rows":
            assert len(basis.X_fit_) <= 15
            assert all((point == X[weights > 0]).all(axis=1).any() for point in basis.X_fit_)
    with pytest.raises(ValueError, match="n_basis=16 is more than the 15 rows"):
        fit(Subset(16), weights=weights)


def test_batches():
    """Strings, and what cannot go on."""
    method = Subset(select=WORDS[:9])
    kernel = Subsequence(2, 0.5)
    stream = KernelPCA(2, kernel=kernel, method=method)
    stream.partial_fit(WORDS[:20]).partial_fit(WORDS[20:])
    whole = fit(method, WORDS, kernel=kernel)
    assert np.abs(stream.transform(WORDS) - whole.transform(WORDS)).max() <= 1e-9
    assert stream.certificate_.gap == pytest.approx(whole.certificate_.gap, abs=1e-4)
    with pytest.raises(ValueError, match="X contains numbers, but KernelPCA was fitted to strings"):
        stream.partial_fit(X)
    with pytest.raises(ValueError, match="cannot change between calls"):
        stream.set_params(method__select=WORDS[:8]).partial_fit(WORDS)
    for model in (
        KernelPCA(method=Nystrom(5)),
        KernelPCA(method=Subset(5, centroid="rows")),
        KernelPCA(kernel="precomputed"),
    ):
        assert not hasattr(model, "partial_fit")
        with pytest.raises(AttributeError):
            model.partial_fit(X)
    # A fit of all rows forgets the batches.
    stream = KernelPCA(2, kernel=RBF(0.1), method=Subset(select=X[:8])).partial_fit(X[:30]).fit(X)
    stream.partial_fit(X[:20])
    assert stream.projection_.total_variance != fit(Subset(select=X[:8])).projection_.total_variance


# Bad input.


@pytest.mark.parametrize(
    "method", [Subset, Reduced, Improved, Nystrom, Cholesky, Greedy, Adaptive], ids=lambda m: m.name
)
@pytest.mark.parametrize(
    ("n_basis", "words"),
    [
        (61, "n_basis=61 is more than the 60 rows to choose from"),
        (1, "n_components=2 is too many for n_basis=1"),
        (0, "n_basis=0 must be an integer of at least 1"),
        (-3, "n_basis=-3 must be an integer"),
        (2.5, "n_basis=2.5 must be an integer"),
        (np.inf, "n_basis=inf must be an integer"),
        (np.nan, "n_basis=nan must be an integer"),
        ("ten", "n_basis='ten' must be an integer"),
        (True, "n_basis=True must be an integer"),
        (1.0, "n_basis=1.0 must be an integer of at least 1, or a share of the rows"),
        (-0.1, "n_basis=-0.1 must be an integer of at least 1, or a share of the rows"),
        (0.02, "n_components=2 is too many for n_basis=1"),
    ],
)
def test_sizes_that_no_basis_has(method, n_basis, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(method(n_basis), gap=0.1)
    with pytest.raises(ValueError, match=re.escape(words)):
        KernelPCA(2, kernel=RBF(0.1), method=method(n_basis), gap=0.1).fit(X)


SHARED = [Subset, Reduced, Improved, Nystrom, Cholesky, Greedy, Sparse]


@pytest.mark.parametrize("method", SHARED, ids=lambda m: m.name)
@pytest.mark.parametrize(("share", "points"), [(0.2, 12), (np.float32(0.21), 13), (0.05, 3)])
def test_a_share_of_the_rows(method, share, points):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no noise may leave as many
        shared, counted = fit(method(share), k=1), fit(method(points), k=1)
    np.testing.assert_array_equal(shared.transform(NEW), counted.transform(NEW))
    assert shared.method.n_basis == share
    assert method(share).points(60, 1) == points
    assert f"({points} points)" in str(KernelPCA(1, kernel="rbf", method=method(share)).plan(X))
    assert fit(clone(method(0.5)), X[:20], k=1).method == method(0.5)


def test_a_share_is_of_the_rows_that_weigh():
    weights = np.repeat([0.0, 2.0], 30)
    for method in (Subset(0.2), Sparse(0.2)):
        assert method.points(30, 2) == 6
        shared = fit(method, weights=weights)
        same = fit(clone(method).set_params(n_basis=6), weights=weights)
        np.testing.assert_array_equal(shared.transform(NEW), same.transform(NEW))
    assert fit(Subset(0.001), k=1).X_fit_.shape == (1, 4)


def test_a_share_of_the_first_batch():
    kpca = KernelPCA(2, kernel=RBF(0.1), method=Subset(0.25), random_state=0)
    kpca.partial_fit(X[:20]).partial_fit(X[20:])
    assert kpca.X_fit_.shape == (5, 4)
    assert Adaptive(0.2).cost(fit("exact").plan_.size) == Adaptive(12).cost(fit("exact").plan_.size)


def test_a_share_of_points_that_are_given():
    with pytest.raises(ValueError, match=r"n_basis=0.5 must be an integer"):
        fit(Subset(0.5, select=X[:30]))


@pytest.mark.parametrize("size", [np.int64(10), 10.0, np.float32(10)])
def test_sizes_that_are_whole_numbers(size):
    assert len(fit(Subset(size)).X_fit_) == 10
    assert fit(Adaptive(size), gap=0.1).certificate_.gap <= 0.1


@pytest.mark.parametrize("k", [11, 59, 60, 70])
def test_more_axes_than_points(k):
    with pytest.raises(ValueError, match=f"n_components={min(k, 60)} is too many for n_basis=10"):
        fit(Subset(10), k=k)
    assert fit(Subset(10), k=None).n_components_ == 10
    with pytest.raises(ValueError, match="n_components=7 must be at most rank=6"):
        fit(Subset(10, rank=6), k=7)


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("nope", "select='nope' is not one of backward, column_norm, diagonal, forward"),
        (None, "select=None must be a rule of mercer.landmarks"),
        (5, "select=5 must be a rule of mercer.landmarks"),
        ([], "is too many for n_basis=0"),
        (X[:5, :3], "The landmarks have 3 columns, but X has 4"),
        (np.full((3, 4), np.nan), "contain NaN or infinity"),
        (np.full((3, 4), np.inf), "contain NaN or infinity"),
        ([0, 1, 99], "Landmark index 99 is out of range: X has 60 rows"),
        ([-1, 0, 1], "Landmark index -1 is out of range"),
        (["a", "b"], "must both be numbers, or both strings"),
        (np.array([1.5, 2.5]), "Expected 2D array"),
        (np.zeros((3, 4, 2)), "Expected 2D array"),
        (X[:1], "n_components=2 is too many for n_basis=1"),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", [Subset, Reduced, Nystrom], ids=lambda m: m.name)
def test_landmarks_that_are_none(method, select, words):
    with pytest.raises(ValueError, match=words):
        fit(method(select=select))


def test_landmarks_and_rows_of_different_kinds():
    with pytest.raises(ValueError, match="must both be numbers, or both strings"):
        fit(Subset(select=X[:5]), WORDS, kernel=Subsequence(2, 0.5))
    with pytest.raises(ValueError, match="Pass row indices"):
        fit(Subset(select=X[:5]), RBF(0.1)(X), kernel="precomputed")
    with pytest.raises(ValueError, match="n_basis=4, but 3 points were passed"):
        fit(Subset(4, select=[0, 1, 2]))
    assert len(fit(Subset(select=[0, 3, 5]), WORDS, kernel=Subsequence(2, 0.5)).X_fit_) == 3


@pytest.mark.parametrize("rule", [landmarks.KMeans(), landmarks.KMeans(nearest=False), "kmeans"])
def test_rules_that_need_vectors_say_which_do_not(rule):
    for rows, kernel, given in (
        (WORDS, Subsequence(2, 0.5), "strings"),
        (RBF(0.1)(X), "precomputed", "a precomputed kernel matrix"),
    ):
        with pytest.raises(ValueError, match=f"but got {given}.*'uniform', 'rp_cholesky'"):
            fit(Subset(8, select=rule), rows, kernel=kernel)


@pytest.mark.parametrize("rule", ANYTHING)
def test_rules_that_take_anything(rule):
    for rows, kernel in ((WORDS, Subsequence(2, 0.5)), (RBF(0.1)(X), "precomputed")):
        assert fit(Subset(8, select=rule), rows, kernel=kernel).n_components_ == 2


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (Subset(10, centroid="mean"), "centroid='mean' is not one of span, rows, basis"),
        (Subset(10, rank=0), "rank=0 must be an integer from 1 to 10, the basis size"),
        (Subset(10, rank=11), "rank=11 must be an integer from 1 to 10"),
        (Subset(10, rank=2.5), "rank=2.5 must be an integer from 1 to 10"),
        (Subset(10, rank="a"), "rank='a' must be an integer from 1 to 10"),
        (Nystrom(10, on="all"), "on='all' must be 'rows' or 'basis'"),
        (Cholesky(10, on="all"), "on='all' must be 'rows' or 'basis'"),
        (Cholesky(10, tol=2), "tol=2 must be a share"),
        (Greedy(10, tol=-1), "tol=-1 must be a share"),
        (Adaptive(10, store="float16"), "store='float16' is not one of float64, float32, none"),
    ],
    ids=repr,
)
def test_words_that_no_method_knows(method, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(method, gap=1e-6)


def test_names_that_no_method_has():
    with pytest.raises(ValueError, match=r"'method' parameter.*subset"):
        fit("nearest")


def test_duplicate_landmarks_are_handled_and_told():
    twice = fit(Subset(select=[0, 0, 1, 2, 2, 7]))
    once = fit(Subset(select=[0, 1, 2, 7]))
    assert np.abs(twice.transform(NEW) - once.transform(NEW)).max() <= 1e-9
    assert "span 4 directions: 2 of them are linear combinations" in str(twice.certificate_)
    assert "repeat" not in str(once.certificate_)
    for method in (Reduced, Improved, Nystrom):
        found = fit(method(select=[0, 0, 1, 2, 2, 7]))
        assert np.isfinite(found.transform(NEW)).all()


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_rows_without_variance(method):
    for rows, kernel in ((np.ones((30, 3)), RBF(0.1)), (np.zeros((30, 3)), Linear())):
        with pytest.warns(UserWarning, match="no component has variance"):
            found = fit(method, rows, kernel=kernel)
        assert found.transform(rows).shape == (30, 0)
        assert np.abs(found.reconstruction_error(rows)).max() <= 1e-12


def test_two_rows():
    for method in (Subset(2), Reduced(2), Nystrom(2), Cholesky(2), Greedy(2), Improved(2)):
        found, exact = fit(method, X[:2], k=1), fit("exact", X[:2], k=1)
        assert found.eigenvalues_ == pytest.approx(exact.eigenvalues_)
    with pytest.raises(ValueError, match="at least 2 rows"):
        fit(Subset(1), X[:1], k=1)
    assert fit(Adaptive(1), X, k=1, gap=0.5).certificate_.gap <= 0.5


def test_kernels_that_overflow():
    for method in (Subset(5), Nystrom(5), Adaptive(5)):
        with pytest.raises(ValueError, match=r"Polynomial.* gives NaN or infinity between"):
            fit(method, X * 1e200, kernel=Polynomial(3))
    with pytest.raises(ValueError, match=r"Polynomial.* gives NaN or infinity between"):
        fit(Subset(select=X[:5]), X * 1e200, kernel=Polynomial(3))


def test_a_share_that_the_basis_cannot_hold():
    with pytest.raises(
        ValueError, match=r"Fraction\(0.99\) cannot be met.*3 points.*larger n_basis"
    ):
        fit(Subset(3), k=0.99)
    found = fit(Subset(50), k=0.5)
    shares = found.explained_variance_ratio_
    assert shares.sum() > 0.5 >= shares[:-1].sum()


# The plan.


class Rows:
    """An array of many rows that takes no memory."""

    def __new__(cls, n, d, dtype=np.float64):
        return np.broadcast_to(np.zeros(1, dtype), (n, d))


def test_all_rows_where_they_fit():
    plan = KernelPCA(5, kernel="rbf").plan(Rows(3000, 20))
    assert isinstance(plan.method, Exact)
    assert "exact (dense" in str(plan)


def test_a_basis_where_they_do_not_fit_and_a_warning_that_names_it():
    rows = np.random.default_rng(1).standard_normal((12_000, 3))
    with config_context(memory="140MiB"):
        kpca = KernelPCA(3, kernel=RBF(0.1), random_state=0)
        plan = kpca.plan(rows)
        assert plan.method == Subset()
        assert "as all rows take too much memory or time" in plan.reason
        assert re.search(r"exact .* too large", str(plan))
        assert re.search(r"→ subset \(1000 points\)", str(plan))
        (message,) = told(lambda: kpca.fit(rows))
    gap = percent(kpca.certificate_.gap, up=True)
    assert "kernel PCA of all 12000 rows would take too much" in message
    assert f"Subset() was used: within {gap} of optimal" in message
    assert "gap=0.01" in message
    assert not told(lambda: fit(Subset(50), rows))  # what is asked for by name is what runs


def test_the_least_that_fits():
    kpca = KernelPCA(3, kernel=RBF(0.1))
    with config_context(memory="8MiB"):
        with pytest.raises(MemoryError, match=r"6000 rows needs .* budget is 8.0 MiB.*a sample of"):
            kpca.plan(Rows(6000, 3))
        with pytest.raises(MemoryError, match=r"subset \(50 points\) needs .*budget of 8.0 MiB"):
            fit(Subset(50), np.zeros((6000, 3)))
    exact = KernelPCA(3, kernel=RBF(0.1), method="exact")
    fits = r"method=Subset\(\) fits"
    with config_context(memory="180MiB"), pytest.raises(MemoryError, match=fits):
        exact.plan(Rows(60_000, 3))


def test_a_gap_takes_what_is_cheapest():
    few = KernelPCA(5, kernel="rbf", gap=0.01).plan(Rows(1500, 50))
    assert isinstance(few.method, Exact)
    many = KernelPCA(5, kernel="rbf", gap=0.01).plan(Rows(20_000, 50))
    assert isinstance(many.method, Adaptive)
    assert "adaptive" in str(many)
    kernels = KernelPCA(5, kernel="sigmoid", gap=0.01).plan(Rows(20_000, 50))
    assert not isinstance(kernels.method, Adaptive)  # no bound is known
    with config_context(memory="180MiB"):
        small = KernelPCA(5, kernel="rbf", gap=0.01).plan(Rows(60_000, 50))
    assert small.method == Adaptive(store=None) or small.method.store == "none"


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_every_method_has_a_plan(method):
    plan = KernelPCA(5, kernel="rbf", method=method).plan(Rows(5000, 20))
    assert plan.method is method
    assert plan.reason == "as requested"
    assert str(plan).count("→") == 1
    assert len(plan.candidates) == 1
    larger = KernelPCA(5, kernel="rbf", method=method).plan(Rows(50_000, 20))
    cost, more = plan.candidates[0].cost, larger.candidates[0].cost
    if isinstance(method, SparseL1):  # of many rows it looks at 59 for each axis, not at all
        few, many = (SparseL1(59).cost(each.size) for each in (plan, larger))
        assert more.products == many.products > 5 * few.products
    else:  # Sparse: as many candidates, whatever n
        assert more.products > (1 if isinstance(method, Sparse) else 5) * cost.products
    if isinstance(method, Subset) and method.centroid == "span":
        assert more.memory == cost.memory  # whatever n


def test_what_a_plan_does_not_depend_on():
    rows = np.random.default_rng(2).standard_normal((3000, 4))
    for gap in (None, 0.05):
        kpca = KernelPCA(3, kernel="rbf", gap=gap)
        assert kpca.plan(rows).method == kpca.plan(Rows(3000, 4)).method


def test_a_missed_gap_is_told():
    with pytest.warns(ConvergenceWarning, match=r"gap=1e-06 was requested, but .* certified"):
        fit(Reduced(5), gap=1e-6)
    with pytest.warns(ConvergenceWarning, match=r"gap=0.9 was requested, .* is only an estimate"):
        fit(Subset(5), RBF(0.1)(X), kernel="precomputed", gap=0.9)


# Gaps, float32, batches and sparse rows.


def spectrum(X, gamma, center=True):
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
    H = np.eye(len(X)) - center / len(X)
    return np.linalg.eigvalsh(H @ K @ H)[::-1]


def true_gap(kpca, X, gamma, center=True):
    """1 − what the span of the axes holds / the most, by the formula."""
    Y, A = np.asarray(kpca.X_fit_, float), np.asarray(kpca.projection_.components)
    h = np.exp(-gamma * cdist(X, Y, "sqeuclidean"))
    h = h - center * h.mean(axis=0)
    G = A.T @ np.exp(-gamma * cdist(Y, Y, "sqeuclidean")) @ A
    held = np.trace(np.linalg.pinv(G) @ (A.T @ (h.T @ h) @ A))
    return 1.0 - held / spectrum(X, gamma, center)[: A.shape[1]].sum()


@pytest.mark.parametrize("far", [1e4, 1e6])
@pytest.mark.parametrize(
    "method", [Subset(150), Adaptive(60), Nystrom(150), Cholesky(150)], ids=lambda m: m.name
)
def test_float32_rows_far_apart_keep_their_digits(rng, far, method):
    """Distances within a cluster are small beside the rows' lengths: float32 lost them."""
    X = rng.standard_normal((600, 4))
    X[:300] += far
    X[300:] -= far
    X = X.astype(np.float32)
    gap = 0.01 if isinstance(method, Adaptive) else None
    kpca = KernelPCA(5, kernel=RBF(0.2), method=method, gap=gap, random_state=0).fit(X)
    exact, rows = true_gap(kpca, X.astype(float), 0.2), X.astype(float)
    assert exact - 1e-6 <= kpca.certificate_.gap
    bound = float(kpca.certificate_.optimum_upper) * kpca.projection_.total_variance * 599
    assert bound >= (1 - 1e-6) * spectrum(rows, 0.2)[:5].sum()


def test_a_large_mean_that_stays_is_not_lost_to_float32_products(rng):
    X = rng.standard_normal((300, 4)) + 1e6
    kpca = KernelPCA(
        3, kernel=RBF(1.0), method=Adaptive(60), center=False, gap=0.01, random_state=0
    )
    kpca.fit(X)
    np.testing.assert_allclose(kpca.eigenvalues_, spectrum(X, 1.0, False)[:3], rtol=1e-3)
    assert true_gap(kpca, X, 1.0, False) <= kpca.certificate_.gap


@pytest.mark.parametrize("method", [Nystrom(60), Cholesky(60, on="rows")], ids=lambda m: m.name)
def test_one_axis_over_all_rows_is_not_said_to_be_the_best(rng, method):
    """With one axis there was no spacing to estimate the gap from, and it was zero."""
    X = rng.standard_normal((400, 6))
    kpca = KernelPCA(1, kernel=RBF(1.0), method=method, random_state=0).fit(X)
    exact, found = true_gap(kpca, X, 1.0), kpca.certificate_
    assert exact > 0.05
    assert exact / 4 < found.gap_estimate <= found.gap


def test_a_sample_that_tells_nothing_does_not_say_that_nothing_is_missing(rng):
    X = np.r_[rng.standard_normal((1200, 4)), [[40.0, 0, 0, 0]]]
    method = Subset(select=X[:30])
    kpca = KernelPCA(1, kernel=Polynomial(3), method=method, random_state=0).fit(X)
    found, K = kpca.certificate_, Polynomial(3)(X, X)
    best = np.linalg.eigvalsh(K - K.mean(0) - K.mean(0)[:, None] + K.mean())[-1]
    share = float(found.captured) * kpca.projection_.total_variance * 1200 / best
    assert found.gap_estimate >= (1 - share) / 4


def test_no_axes_hold_nothing():
    for method in ("subset", "reduced", "nystrom", "cholesky", "exact"):
        with pytest.warns(UserWarning, match="no component has"):
            kpca = KernelPCA(2, kernel="rbf", method=method).fit(np.ones((30, 3)))
        assert kpca.certificate_.optimum_upper == kpca.certificate_.gap == 0.0


def test_of_an_indefinite_kernel_directions_shorter_than_negative_ones_are_left_out(rng):
    """Divided by their lengths, they made variances out of nothing: twice the exact ones."""
    X = rng.standard_normal((500, 5))
    basis = KernelPCA(2, kernel="sigmoid", method=Subset(50), random_state=0).fit(X)
    exact = KernelPCA(2, kernel="sigmoid", method="exact").fit(X)
    np.testing.assert_allclose(basis.eigenvalues_, exact.eigenvalues_, rtol=0.3)
    assert "no larger than the negative ones" in str(basis.certificate_)


def test_batches_are_not_said_to_lack_memory(rng, recwarn):
    KernelPCA(2, kernel="rbf").partial_fit(rng.standard_normal((50, 3)))
    assert not recwarn.list


def test_a_gap_that_was_missed_says_what_comes_nearer(rng):
    X = rng.standard_normal((300, 5))
    with pytest.warns(ConvergenceWarning, match="Increase n_basis"):
        KernelPCA(2, kernel=RBF(5.0), gap=0.001, method=Subset(20)).fit(X)


def test_rank_and_the_mean_of_the_basis_are_not_silently_mixed(rng):
    method = Subset(20, centroid="basis", rank=10)
    with pytest.raises(ValueError, match="Omit one of them"):
        KernelPCA(2, kernel="rbf", method=method).fit(rng.standard_normal((60, 3)))


def test_auto_takes_a_smaller_basis_where_the_usual_one_does_not_fit():
    X = np.broadcast_to(np.float64(0.0), (50000, 100))
    with config_context(memory="100MiB"):
        plan = KernelPCA(5, kernel="rbf").plan(X)
        assert isinstance(plan.method, Subset)
        assert 100 <= plan.method.n_basis < 1000
        assert KernelPCA(5, kernel="rbf", gap=0.01).plan(X).method.name == "adaptive"
        with pytest.raises(MemoryError, match=r"method=Subset\(\d+\) fits"):
            KernelPCA(5, kernel="rbf", method=Subset(1000)).fit(X)


def test_axes_over_all_rows_stay_within_the_memory_of_the_plan(rng):
    X = rng.standard_normal((6000, 10))
    kpca = KernelPCA(5, kernel=RBF(0.01), method=Nystrom(200), random_state=0)
    planned = kpca.plan(X).candidates[0].cost.memory
    tracemalloc.start()
    kpca.fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= planned


@pytest.mark.parametrize("rule", [landmarks.KMeans(), landmarks.KernelKMeans()])
def test_nystrom_counts_the_rows_of_clusters(rule):
    X, _ = make_blobs([250, 30, 20], cluster_std=0.7, random_state=0)
    exact = KernelPCA(3, kernel="rbf", gamma=0.1).fit(X).explained_variance_
    off = {}
    for weigh in (True, False):
        method = Nystrom(30, select=rule, weigh=weigh)
        found = KernelPCA(3, kernel="rbf", gamma=0.1, method=method, random_state=0).fit(X)
        off[weigh] = np.abs(found.explained_variance_ / exact - 1).max()
    assert off[True] < 0.1 < 0.5 < off[False]


def test_a_mask_is_no_landmark():
    with pytest.raises(ValueError, match="flatnonzero"):
        KernelPCA(2, kernel="rbf", method=Subset(select=IRIS[:, 0] > 5)).fit(IRIS)


def test_a_solver_beside_a_basis_is_refused():
    with pytest.raises(ValueError, match="eigen_solver='dense'"):
        KernelPCA(2, kernel="rbf", method="subset", eigen_solver="dense").fit(IRIS)


@pytest.mark.parametrize("method", [Subset(select=np.arange(0, 60, 2)), Subset(20)], ids=repr)
def test_a_stream_can_be_pickled_and_goes_on(method):
    parts = IRIS[:60], IRIS[60:]
    kpca = KernelPCA(3, kernel="rbf", method=method, random_state=0).partial_fit(parts[0])
    text = pickle.dumps(kpca)
    assert len(text) < 40_000 + 8 * 4 * 20**2  # not the rows of the batch, nor their kernels
    loaded = pickle.loads(text).partial_fit(parts[1])
    kpca.partial_fit(parts[1])
    np.testing.assert_array_equal(loaded.explained_variance_, kpca.explained_variance_)


@pytest.mark.parametrize("method", ["exact", "subset", "sketch", "features"])
def test_sparse_rows_for_a_model_of_dense_ones_that_were_moved(rng, method):
    X = rng.normal(size=(60, 5)) + 10
    kpca = KernelPCA(2, kernel=RBF(0.1), method=method, random_state=0).fit(X)
    scores = kpca.transform(X)
    np.testing.assert_allclose(kpca.transform(scipy.sparse.csr_array(X)), scores, atol=1e-9)
    errors = kpca.reconstruction_error(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(errors, kpca.reconstruction_error(X), atol=1e-9)


def test_sparse_rows_of_no_weight_are_left_out_without_the_others_becoming_dense(rng):
    X, w = scipy.sparse.random_array((60, 30), density=0.1, rng=rng).tocsr(), np.ones(60)
    w[:5] = 0
    kpca = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(X, sample_weight=w)
    assert scipy.sparse.issparse(kpca.X_fit_)
    dense = KernelPCA(2, kernel=RBF(0.1), random_state=0).fit(X.toarray(), sample_weight=w)
    np.testing.assert_allclose(kpca.transform(X), dense.transform(X.toarray()), atol=1e-9)

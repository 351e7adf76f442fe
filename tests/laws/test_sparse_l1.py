"""Sparse kernel feature analysis: against Gram–Schmidt of dense features, and brute force."""

import re

import numpy as np
import pytest

from mercer import KernelPCA, config_context
from mercer.kernels import RBF, Laplacian, Linear, Polynomial, Subsequence
from mercer.methods import SparseL1
from mercer.metrics import subspace_angles
from tests.laws import plain
from tests.laws.sparse_sets import NEW, RNG, WEIGHTS, X, fit
from tests.laws.truth import same

NORMS = ("l1", "none", "length")


def picks(model, X=X):
    return [int(np.flatnonzero((np.asarray(row) == X).all(axis=1))[0]) for row in model.X_fit_]


def spread(values, weights=None, center=True):
    """Weighed sum of squares of columns about their mean."""
    w = plain.counts(values, weights)
    values = values - center * (w @ values / w.sum())
    return w @ values**2


def pursued(F, k, normalize, weights=None, center=True):
    """Rows taken, and unit axes: functions as dense features, with coefficients of all rows."""
    n, w = len(F), plain.counts(F, weights)
    functions, alpha, taken, axes = F.copy(), np.eye(n), [], []
    for _ in range(k):
        score = spread(F @ functions.T, weights, center)
        if normalize == "l1":
            score = score / np.maximum(np.abs(alpha).sum(axis=1), 1e-12) ** 2
        if normalize == "length":
            score = score / np.maximum((functions**2).sum(axis=1), 1e-12)
        score[taken] = -np.inf
        score[w == 0] = -np.inf
        i = int(np.argmax(score))
        v, c = functions[i], alpha[i]
        along = functions @ v / (v @ v)
        taken.append(i)
        axes.append(v / np.linalg.norm(v))
        functions = functions - np.outer(along, v)
        alpha = alpha - np.outer(along, c)
    return taken, np.array(axes).T


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighed"])
@pytest.mark.parametrize("normalize", NORMS)
@pytest.mark.parametrize(
    ("kernel", "features", "k"),
    [(*plain.FEATURES[0], 2), (*plain.FEATURES[1], 8)],
    ids=["linear", "quadratic"],
)
def test_gram_schmidt_of_dense_features(kernel, features, k, normalize, weights, center):
    method, F = SparseL1(normalize=normalize), features(X)
    taken, axes = pursued(F, k, normalize, weights, center)
    found = fit(k, method, weights=weights, kernel=kernel, center=center)
    assert picks(found) == taken
    w = plain.counts(X, weights)
    mean = center * (w @ F / w.sum())
    assert same(found.transform(NEW), (features(NEW) - mean) @ axes) <= 1e-7
    variances = spread(F @ axes, weights, center) / (w.sum() - 1)
    assert np.allclose(found.explained_variance_, variances, rtol=1e-8)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", [RBF(0.2), RBF(5.0), Laplacian(1.0), Polynomial(3), Linear()])
def test_the_first_is_the_row_whose_function_varies_most(kernel, center):
    K = kernel(X)
    assert picks(fit(1, SparseL1(), kernel=kernel, center=center)) == [
        int(np.argmax(spread(K, center=center)))
    ]
    along = spread(K, center=center) / np.diag(K)
    first = fit(1, SparseL1(normalize="length"), kernel=kernel, center=center)
    assert picks(first) == [int(np.argmax(along))]
    assert first.explained_variance_[0] == pytest.approx(along.max() / (len(X) - 1), rel=1e-9)


@pytest.mark.parametrize("normalize", NORMS)
def test_no_function_of_bounded_l1_norm_varies_more(normalize):
    """Of random coefficients, of few rows and of many."""
    K, rng = RBF(0.2)(X), np.random.default_rng(3)
    best = spread(K).max()
    for few in (2, 5, 40):
        for _ in range(50):
            alpha = np.zeros(len(X))
            alpha[rng.permutation(len(X))[:few]] = rng.standard_normal(few)
            assert spread(K @ (alpha / np.abs(alpha).sum())[:, None])[0] <= best


@pytest.mark.parametrize("normalize", NORMS)
def test_axes_are_orthonormal_and_sparse(normalize):
    found = fit(6, SparseL1(normalize=normalize))
    A, K = found.projection_.components, RBF(0.2)(found.X_fit_)
    assert np.abs(A.T @ K @ A - np.eye(6)).max() <= 1e-9
    assert np.array_equal((A != 0).sum(axis=0), np.arange(1, 7))  # the i-th of i rows
    y = found.transform(X)
    assert np.allclose(found.explained_variance_, y.var(axis=0, ddof=1), rtol=1e-9)
    fewer = fit(4, SparseL1(normalize=normalize))
    assert same(fewer.transform(NEW), found.transform(NEW)[:, :4]) <= 1e-9  # one after the other


@pytest.mark.parametrize("kernel", [RBF(1.0), Laplacian(1.0), Polynomial(2), Linear()])
@pytest.mark.parametrize("normalize", NORMS)
def test_all_rows_span_what_exact_spans(kernel, normalize):
    found = fit(None, SparseL1(normalize=normalize), kernel=kernel)
    exact = fit(None, "exact", kernel=kernel)
    # The axes of exact lie in the span: their angles to it are none.
    assert found.n_components_ >= exact.n_components_
    assert np.max(subspace_angles(exact, found)) <= 1e-4
    assert found.certificate_.captured == pytest.approx(1.0, abs=1e-6)
    assert np.abs(found.reconstruction_error(X)).max() <= 1e-6 * np.diag(kernel(X)).max()


def test_a_share_of_the_variance():
    found = fit(0.8, SparseL1())
    shares = found.explained_variance_ratio_
    assert shares.sum() > 0.8
    assert len(found.X_fit_) == found.n_components_
    fewer = fit(found.n_components_ - 1, SparseL1())
    assert fewer.explained_variance_ratio_.sum() <= 0.8


def test_the_certificate_holds():
    for kernel in (RBF(0.2), Laplacian(1.0), Polynomial(2)):
        for k in (1, 3, 10):
            found = fit(k, SparseL1(), kernel=kernel)
            total, certificate = found.projection_.total_variance, found.certificate_
            held = plain.held(found, kernel, X)
            assert held * (1 - 1e-6) <= certificate.captured * total <= held * (1 + 1e-9)
            best = plain.variances(kernel, X)[:k].sum()
            assert certificate.optimum_upper * total >= best * (1 - 1e-9)


# Rows drawn for each axis.


def test_rows_drawn_for_each_axis():
    rows = np.random.default_rng(1).standard_normal((400, 3))
    K = RBF(0.2)(rows)
    order = np.argsort(-spread(K))
    among = [
        int(
            np.flatnonzero(order == picks(fit(1, SparseL1(59), rows, random_state=seed), rows)[0])[
                0
            ]
        )
        for seed in range(60)
    ]
    assert sum(place < 20 for place in among) >= 0.85 * 60  # 95 of 100 among the best 5 %
    assert len(set(among)) > 5
    same_seed = [fit(4, SparseL1(20), rows, random_state=3).X_fit_ for _ in range(2)]
    assert np.array_equal(*same_seed)
    note = fit(2, SparseL1(20), rows).certificate_.notes[-1]
    assert "chosen among 20 rows drawn for each" in note
    assert np.array_equal(fit(4, SparseL1(400), rows).X_fit_, fit(4, SparseL1(), rows).X_fit_)


def test_rows_are_drawn_as_often_as_they_count():
    weights = np.where(np.arange(len(X)) == 5, 1000.0, 1.0)
    first = [
        picks(fit(1, SparseL1(1), weights=weights, random_state=seed))[0] for seed in range(20)
    ]
    assert first.count(5) >= 15


def test_of_many_rows_some_are_drawn():
    method = SparseL1()
    assert method.n_candidates(5000, 20, 5) == 5000
    assert method.n_candidates(200_000, 100, 10) == 59
    many = np.broadcast_to(np.zeros(1), (200_000, 100))
    plan = KernelPCA(10, kernel="rbf", method=method).plan(many)
    assert plan.candidates[0].cost.memory < 8 * 200_000 * 400  # n numbers for an axis, not n²


# Forms of rows.


def test_weights_are_counts():
    many = np.repeat(X, WEIGHTS.astype(int), axis=0)
    for center in (True, False):
        weighed = fit(4, SparseL1(), weights=WEIGHTS, center=center)
        plainly = fit(4, SparseL1(), many, center=center)
        assert np.array_equal(weighed.X_fit_, plainly.X_fit_)
        assert same(weighed.transform(NEW), plainly.transform(NEW)) <= 1e-9
        assert np.allclose(weighed.explained_variance_, plainly.explained_variance_)


@pytest.mark.parametrize("block_rows", [1, 7, 1000])
def test_any_block(block_rows):
    expected = fit(5, SparseL1(), weights=WEIGHTS)
    with config_context(block_rows=block_rows):
        found = fit(5, SparseL1(), weights=WEIGHTS)
    assert np.array_equal(found.X_fit_, expected.X_fit_)
    assert same(found.transform(NEW), expected.transform(NEW)) <= 1e-10


def test_other_forms_of_rows():
    kernel = RBF(0.2)
    expected = fit(3, SparseL1())
    given = fit(3, SparseL1(), kernel(X), kernel="precomputed")
    assert same(given.transform(kernel(NEW, X)), expected.transform(NEW)) <= 1e-9
    coarse = fit(3, SparseL1(), X.astype(np.float32))
    assert picks(coarse, X.astype(np.float32)) == picks(expected)
    assert same(coarse.transform(NEW), expected.transform(NEW)) <= 1e-4
    words = ["".join(RNG.choice(list("abc"), 5)) for _ in range(30)]
    assert len(fit(3, SparseL1(), words, kernel=Subsequence(2, 0.5)).X_fit_) == 3
    assert fit(3, SparseL1(), kernel="sigmoid").certificate_.captured.kind == "estimate"


def test_rows_that_stand_there_often():
    found = fit(None, SparseL1(), np.repeat(X[:6], 4, axis=0))
    assert len(found.X_fit_) == len(np.unique(found.X_fit_, axis=0)) == 6
    with pytest.warns(UserWarning, match="no component has variance"):
        none = fit(2, SparseL1(), np.ones((20, 3)))
    assert none.transform(np.ones((4, 3))).shape == (4, 0)
    two = fit(2, SparseL1(), X[:2])
    assert two.certificate_.captured == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (SparseL1(0), "candidates=0 must be an integer of at least 1"),
        (SparseL1(2.5), "candidates=2.5 must be an integer"),
        (SparseL1("all"), "candidates='all' must be an integer"),
        (SparseL1(normalize="l2"), "normalize='l2' must be one of l1, none, length"),
    ],
    ids=repr,
)
def test_bad_input(method, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        fit(2, method)


def test_a_kernel_that_overflows():
    with pytest.raises(ValueError, match="gives NaN or infinity between rows"):
        fit(2, SparseL1(), X * 1e100, kernel=Linear())


@pytest.mark.parametrize("normalize", NORMS)
@pytest.mark.parametrize("candidates", [None, 3])
def test_no_axis_is_rounding(normalize, candidates):
    """Axes of all rows were far from orthonormal, and variances along them a quarter off."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((120, 3)) * rng.standard_cauchy((120, 1))
    kernel = RBF(0.1)
    found = fit(None, SparseL1(candidates, normalize), rows, kernel=kernel)
    A = np.asarray(found.projection_.components)
    assert np.abs(A.T @ kernel(found.X_fit_) @ A - np.eye(A.shape[1])).max() <= 1e-5
    variances = found.transform(rows).var(axis=0, ddof=1)
    assert np.abs(variances - found.explained_variance_).max() <= 1e-5 * variances.max()
    assert 0.98 < found.certificate_.captured <= 1.0


def test_too_little_memory():
    with (
        config_context(memory="16MiB"),
        pytest.raises(MemoryError, match=r"memory='65MiB'\) is enough; method='features' fits\."),
    ):
        fit(2, SparseL1())

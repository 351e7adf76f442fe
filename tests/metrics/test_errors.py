"""Errors of operators, against explicit features and what exact kernel PCA must give."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import PCA, KernelPCA, as_source, config_context
from mercer.kernels import Precomputed, Substring
from mercer.metrics import empirical_error, validation_error
from tests.metrics.explicit import FEATURES, Explicit


@pytest.fixture(name="X")
def some_rows(rng):
    return rng.standard_normal((60, 4)) * [3.0, 2.0, 1.0, 0.5] + [1.0, 0.0, 2.0, 0.0]


def mixed(model, rng):
    """A map whose axes are neither of length one nor at right angles."""
    fitted = model.projection_
    k = fitted.components.shape[1]
    mixing = rng.standard_normal((k, k))
    return replace(fitted, components=fitted.components @ mixing)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", FEATURES)
def test_explicit_features(name, center, X, rng):
    kernel, features = FEATURES[name]
    model = KernelPCA(3, kernel=kernel, center=center).fit(X)
    new, weights = rng.standard_normal((40, 4)), rng.random(40)
    for each in (model, model.projection_, mixed(model, rng)):
        truth = Explicit(each, features)
        assert empirical_error(each, X) == pytest.approx(truth.error(X), rel=1e-11)
        assert validation_error(each, new) == pytest.approx(truth.error(new), rel=1e-11)
        found = empirical_error(each, new, sample_weight=weights)
        assert found == pytest.approx(truth.error(new, weights), rel=1e-11)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "cosine"])
def test_exact_leaves_the_variance_that_no_axis_holds(kernel, X):
    model, n = KernelPCA(3, kernel=kernel, gamma=0.1).fit(X), len(X)
    left = model.projection_.total_variance - model.explained_variance_.sum()
    assert empirical_error(model, X) == pytest.approx((n - 1) / n * left, rel=1e-9)


def test_all_axes_leave_nothing(X):
    assert 0.0 <= empirical_error(KernelPCA(kernel="rbf", gamma=0.1).fit(X), X) < 1e-14
    assert 0.0 <= empirical_error(PCA().fit(X), X) < 1e-28


def test_any_source_and_block_size(X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    sparse = np.where(np.abs(X) < 1, 0.0, X)
    weights = np.arange(len(X)) % 3 + 0.5
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)):
        model.fit(X)
        truth = empirical_error(model, X)
        for rows in (tmp_path / "rows.npy", as_source(X), X.tolist()):
            assert empirical_error(model, rows) == pytest.approx(truth, rel=1e-12)
        given = empirical_error(model, sparse)
        assert empirical_error(model, sp.csr_array(sparse)) == pytest.approx(given, rel=1e-12)
        heavy = empirical_error(model, X, weights)
        assert heavy == pytest.approx(empirical_error(model, as_source(X).weighted(weights)))
        for rows in (1, 7, 1000):
            with config_context(block_rows=rows):
                assert empirical_error(model, X) == pytest.approx(truth, rel=1e-12)
                assert empirical_error(model, X, weights) == pytest.approx(heavy, rel=1e-12)


def test_a_weight_of_two_is_the_row_twice(X):
    counts = np.arange(len(X)) % 4
    for model in (PCA(2).fit(X), KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)):
        twice = empirical_error(model, np.repeat(X, counts, axis=0))
        assert empirical_error(model, X, counts) == pytest.approx(twice, rel=1e-12)


def test_linear_pca_is_linear_kernel_pca(X):
    for rows in (X, X + 1e6):  # far from zero the kernel's rows are shifted
        linear, kernel = PCA(2).fit(rows), KernelPCA(2, kernel="linear").fit(rows)
        found = empirical_error(linear, rows)
        assert found == pytest.approx(empirical_error(kernel, rows), rel=1e-8)
        assert found == pytest.approx(np.mean(linear.reconstruction_error(rows)), rel=1e-8)
    assert kernel.projection_.shift is not None


def test_scaled_columns_are_measured_in_deviations(X):
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    assert empirical_error(PCA(2, scale=True).fit(X), X) == pytest.approx(
        empirical_error(PCA(2).fit(Z), Z), rel=1e-10
    )


def test_float32(X):
    rows = X.astype(np.float32)
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)):
        truth = empirical_error(model.fit(X), X)
        assert empirical_error(model.fit(rows), rows) == pytest.approx(truth, rel=1e-5)


def test_a_large_mean_costs_no_digits(rng):
    noise = rng.standard_normal((500, 5))
    for kind, offset, least in ((np.float64, 1e8, 1e-12), (np.float32, 1e4, 1e-6)):
        X = (noise + offset).astype(kind)
        Z = X.astype(np.float64) - offset
        V = PCA(3).fit(Z).components_
        Z = Z - Z.mean(axis=0)
        truth = np.mean(np.sum((Z - Z @ V.T @ V) ** 2, axis=1))
        model = PCA(3).fit(X)
        assert empirical_error(model, X) == pytest.approx(truth, rel=least)
        each = model.reconstruction_error(X)
        assert np.mean(each, dtype=np.float64) == pytest.approx(truth, rel=10 * least)


def test_torch(X):
    torch = pytest.importorskip("torch")
    for model in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.1)):
        truth = empirical_error(model.fit(X), X)
        rows = torch.asarray(X)
        assert empirical_error(model.fit(rows), rows) == pytest.approx(truth, rel=1e-10)


def test_strings():
    words = ["banana", "bandana", "cabana", "havana", "nirvana", "ananas"]
    model = KernelPCA(2, kernel=Substring(2)).fit(words)
    left = model.projection_.total_variance - model.explained_variance_.sum()
    assert empirical_error(model, words) == pytest.approx(5 / 6 * left)
    with pytest.raises(ValueError, match="fitted to strings"):
        empirical_error(model, np.ones((2, 3)))


def test_a_matrix_by_its_row_numbers(X):
    kernel = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    K, numbers = kernel.kernel_(X), np.arange(len(X))[:, None]
    model = KernelPCA(2, kernel=Precomputed(K)).fit(numbers)
    assert empirical_error(model, numbers) == pytest.approx(empirical_error(kernel, X))
    with pytest.raises(ValueError, match="Precomputed"):
        empirical_error(KernelPCA(2, kernel="precomputed").fit(K), K)


def test_an_indefinite_kernel_may_have_a_negative_error(X):
    model = KernelPCA(kernel="sigmoid", gamma=0.1).fit(X)
    n, kept = len(X), model.explained_variance_.sum()
    left = (n - 1) / n * (np.trace(_centred(model.kernel_(X))) / (n - 1) - kept)
    assert left < -1e-3
    assert empirical_error(model, X) == pytest.approx(left, rel=1e-9)


def _centred(K):
    K = K - K.mean(axis=0)
    return K - K.mean(axis=1)[:, None]


def test_memory(rng):
    """Of 4000 points: 128 MB for the kernel between them, and a budget of 8."""
    n = 4000
    model = KernelPCA(2, kernel="rbf", gamma=0.1).fit(rng.standard_normal((10, 3)))
    components, zeros = rng.standard_normal((n, 3)) / n, np.zeros(n)
    points = rng.standard_normal((n, 3))
    large = replace(
        model.projection_,
        basis=points,
        components=components,
        mean=zeros,
        mean_coef=zeros,
        shift=None,
    )
    empirical_error(model, points)
    tracemalloc.start()
    with config_context(memory="8MiB"):
        found = empirical_error(large, points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * 2**20
    assert found == pytest.approx(empirical_error(large, points), rel=1e-10)


def test_what_it_refuses(X):
    model = PCA(2).fit(X)
    with pytest.raises(TypeError, match="not fitted"):
        empirical_error(KernelPCA(2), X)
    with pytest.raises(TypeError, match="this ndarray is not one"):
        empirical_error(X, X)
    with pytest.raises(
        ValueError, match="rows of 3 columns, but the model was fitted to rows of 4"
    ):
        empirical_error(model, X[:, :3])
    with pytest.raises(ValueError, match="no rows"):
        empirical_error(model, X[:0])
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        empirical_error(model, X, np.ones(3))
    with pytest.raises(ValueError, match="entries of sample_weight are zero"):
        empirical_error(model, X, np.zeros(len(X)))
    X[4, 2] = np.nan
    for fitted in (model, KernelPCA(2, kernel="rbf").fit(X[:4])):
        with pytest.raises(ValueError, match="row 4, column 2"):
            empirical_error(fitted, X)


def test_columns_in_another_order(X):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = KernelPCA(2, kernel="rbf").fit(table)
    assert empirical_error(model, table) == pytest.approx(empirical_error(model, X))
    with pytest.raises(ValueError, match=r"X has columns .* but the model was fitted to"):
        empirical_error(model, table[list("bacd")])

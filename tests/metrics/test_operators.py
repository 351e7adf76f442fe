"""Distances of operators and angles of spans, against explicit features."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone

from mercer import PCA, KernelPCA, config_context
from mercer.kernels import RBF, Linear, Substring
from mercer.metrics import operator_distance, subspace_angles
from tests.metrics.explicit import FEATURES, Explicit


@pytest.fixture(name="X")
def some_rows(rng):
    return rng.standard_normal((60, 4)) * [3.0, 2.0, 1.0, 0.5] + [1.0, 0.0, 2.0, 0.0]


def turned(model, angles):
    """The map with its first axes turned by these angles, each towards one of its last."""
    fitted = model.projection_
    A, k = np.array(fitted.components), len(angles)
    first = A[:, :k] * np.cos(angles) + A[:, -k:] * np.sin(angles)
    return replace(fitted, components=A[:, :k]), replace(fitted, components=first)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_explicit_features(name, center, k, X, rng):
    kernel, features = FEATURES[name]
    model = KernelPCA(2, kernel=kernel, center=center).fit(X)
    other = KernelPCA(k, kernel=kernel, center=center).fit(X[::2]).projection_
    mixing = rng.standard_normal((k, k))
    for each in (other, replace(other, components=other.components @ mixing)):
        first, second = Explicit(model, features), Explicit(each, features)
        truth = np.linalg.norm(first.operator - second.operator)
        assert operator_distance(model, each) == pytest.approx(truth, rel=1e-10)
        assert operator_distance(each, model) == pytest.approx(truth, rel=1e-10)
        angles = scipy.linalg.subspace_angles(first.axes, second.axes)
        close = {"atol": 2 * np.finfo(float).eps ** 0.5}  # angles are roots of rounded values
        np.testing.assert_allclose(subspace_angles(model, each), angles, **close)
        np.testing.assert_allclose(subspace_angles(each, model), angles, **close)


def test_the_formula_of_washizawa(X):
    model, other = (KernelPCA(3, kernel=RBF(0.1)).fit(rows) for rows in (X, X[:40]))
    A, B = (each.projection_.components for each in (model, other))
    kernel = RBF(0.1)
    own = [np.linalg.norm(a.T @ kernel(b) @ a) ** 2 for a, b in ((A, X), (B, X[:40]))]
    square = sum(own) - 2 * np.linalg.norm(A.T @ kernel(X, X[:40]) @ B) ** 2
    assert operator_distance(model, other) == pytest.approx(np.sqrt(square), rel=1e-10)
    sines = np.sin(subspace_angles(model, other))
    assert operator_distance(model, other) == pytest.approx(np.sqrt(2 * sines @ sines), rel=1e-10)


def test_linear_pca_is_linear_kernel_pca(X):
    for offset in (0.0, 1e6):  # far from zero each kernel model shifts its rows by its own mean
        rows = X + offset
        linear = PCA(2).fit(rows), PCA(3).fit(rows[:30])
        kernel = KernelPCA(2).fit(rows), KernelPCA(3).fit(rows[:30])
        found, truth = operator_distance(*kernel), operator_distance(*linear)
        assert found == pytest.approx(truth, rel=1e-8)
        np.testing.assert_allclose(subspace_angles(*kernel), subspace_angles(*linear), atol=1e-7)
        V = [model.components_.T for model in linear]
        np.testing.assert_allclose(
            subspace_angles(*linear), scipy.linalg.subspace_angles(*V), rtol=1e-8, atol=1e-14
        )
        assert truth == pytest.approx(np.linalg.norm(V[0] @ V[0].T - V[1] @ V[1].T), rel=1e-10)
    assert not np.array_equal(*(model.projection_.shift for model in kernel))


def test_rows_far_from_zero_and_a_kernel_of_distances(X):
    far = X + 1e4
    near = [KernelPCA(3, kernel=RBF(0.1)).fit(rows) for rows in (X, X[:30])]
    moved = [KernelPCA(3, kernel=RBF(0.1)).fit(rows) for rows in (far, far[:30])]
    assert operator_distance(*moved) == pytest.approx(operator_distance(*near), rel=1e-7)
    # The same components over shifted rows: coefficients need not sum to zero here.
    fitted = moved[0].projection_
    shifted = replace(fitted, basis=far - 1e4, shift=np.full(X.shape[1], 1e4))
    assert operator_distance(fitted, shifted) < 1e-6
    part = [replace(each, components=each.components + 0.01) for each in (fitted, shifted)]
    assert operator_distance(*part) < 1e-6


def test_axes_that_depend_on_the_shift_are_refused(X):
    models = [KernelPCA(2).fit(rows).projection_ for rows in (X + 1e3, X[:30] + 1e3)]
    lopsided = [replace(each, components=each.components + 0.01) for each in models]
    for one in (lopsided[0], models[0]):
        assert operator_distance(one, lopsided[0]) >= 0.0
    with pytest.raises(ValueError, match="different means"):
        operator_distance(*lopsided)
    # One of them can be moved to where the other is.
    assert operator_distance(models[0], lopsided[1]) > 0.0
    open_, raw = KernelPCA(2, center=False).fit(X + 1e3), X + 1e3
    found = operator_distance(models[0], open_)
    axes = raw.T @ open_.projection_.components, raw.T @ models[0].components
    truth = np.linalg.norm(axes[0] @ axes[0].T - axes[1] @ axes[1].T)
    assert found == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize(
    "angles", [[1e-9], [1e-12], [0.3, 1e-9], [1.5, 1e-4, 1e-10], [np.pi / 2, 1e-9]]
)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_small_angles(kernel, angles, rng):
    X = rng.standard_normal((80, 6)) * np.linspace(2, 1, 6)
    expected = np.sort(angles)[::-1]
    distance = np.sqrt(2 * np.sum(np.sin(angles) ** 2))
    for model in (KernelPCA(6, kernel=kernel, gamma=0.1).fit(X), PCA(6).fit(X)):
        first, second = turned(model, np.array(angles))
        for a, b in ((first, second), (second, first)):
            np.testing.assert_allclose(subspace_angles(a, b), expected, atol=1e-14, rtol=1e-5)
            assert operator_distance(a, b) == pytest.approx(distance, abs=1e-13, rel=1e-5)
        mixing = rng.standard_normal((len(angles), len(angles)))
        mixed = replace(second, components=second.components @ mixing)
        np.testing.assert_allclose(subspace_angles(first, mixed), expected, atol=1e-13, rtol=1e-4)


def test_the_same_points_in_another_order_and_some_more(X, rng):
    fitted = KernelPCA(3, kernel=RBF(0.1)).fit(X).projection_
    order = rng.permutation(len(X))
    more, twice = rng.standard_normal((5, 4)), X[order[:7]]
    half = np.array(fitted.components[order])
    half[:7] /= 2
    other = replace(
        fitted,
        basis=np.vstack([X[order], more, twice]),
        components=np.vstack([half, np.zeros((5, 3)), half[:7]]),
    )
    for rows in (np.asarray, sp.csr_array):
        pair = replace(fitted, basis=rows(X)), replace(other, basis=rows(other.basis))
        assert operator_distance(*pair) < 1e-13
        assert operator_distance(pair[1], pair[0]) < 1e-13
        assert np.all(subspace_angles(*pair) < 1e-13)
    assert operator_distance(fitted, pair[1]) < 1e-13


def test_a_model_and_itself(X):
    for model in (PCA(3).fit(X), KernelPCA(3, kernel="rbf").fit(X), KernelPCA(2).fit(X + 1e5)):
        assert operator_distance(model, model) < 1e-12
        assert np.all(subspace_angles(model, model) < 1e-12)


def test_axes_that_depend_on_each_other_span_fewer_dimensions(X):
    fitted = PCA(3).fit(X).projection_
    V = fitted.components
    doubled = replace(fitted, components=np.column_stack([V[:, 0], 2 * V[:, 0], 0 * V[:, 0]]))
    np.testing.assert_allclose(subspace_angles(doubled, fitted), [0.0], atol=1e-13)
    assert subspace_angles(replace(fitted, components=V[:, :0]), fitted).shape == (0,)
    none = replace(fitted, components=V[:, :0])
    assert operator_distance(none, fitted) == pytest.approx(np.sqrt(3))
    assert operator_distance(none, none) == 0.0


def test_blocks_sources_and_precision(X):
    model, other = (KernelPCA(3, kernel=RBF(0.1)).fit(rows) for rows in (X, X[20:]))
    truth, angles = operator_distance(model, other), subspace_angles(model, other)
    for rows in (1, 7):
        with config_context(block_rows=rows):
            assert operator_distance(model, other) == pytest.approx(truth, rel=1e-12)
    with config_context(memory="16kB"):
        np.testing.assert_allclose(subspace_angles(model, other), angles, rtol=1e-10)
    coarse = KernelPCA(3, kernel=RBF(0.1)).fit(X[20:].astype(np.float32))
    assert operator_distance(model, coarse) == pytest.approx(truth, rel=1e-4)


def test_torch(X):
    torch = pytest.importorskip("torch")
    for model in (PCA(2), KernelPCA(2, kernel=RBF(0.1))):
        there = [clone(model).fit(torch.asarray(rows)) for rows in (X, X[20:])]
        here = [clone(model).fit(rows) for rows in (X, X[20:])]
        truth = operator_distance(*here)
        for pair in (there, (here[0], there[1]), (there[0], here[1])):
            assert operator_distance(*pair) == pytest.approx(truth, rel=1e-10)
            assert isinstance(subspace_angles(*pair), np.ndarray)


def test_strings_and_functions(X):
    words = ["banana", "bandana", "cabana", "havana", "nirvana", "ananas"]
    model, other = (KernelPCA(2, kernel=Substring(2)).fit(some) for some in (words, words[::-1]))
    assert operator_distance(model, other) < 1e-10
    assert operator_distance(model, KernelPCA(2, kernel=Substring(2)).fit(words[1:])) > 0.01

    def product(x, y):
        return x @ y

    model, other = (KernelPCA(2, kernel=product).fit(rows) for rows in (X, X[:30]))
    truth = operator_distance(PCA(2).fit(X), PCA(2).fit(X[:30]))
    assert operator_distance(model, other) == pytest.approx(truth, rel=1e-8)


def test_memory(rng):
    """Of 5000 points: 200 MB for the kernel between them, and a budget of 8."""
    n = 5000
    fitted = KernelPCA(2, kernel=RBF(0.1)).fit(rng.standard_normal((10, 3))).projection_
    first, second = (
        replace(fitted, basis=rng.standard_normal((n // 2, 3)), components=rng.random((n // 2, 2)))
        for _ in range(2)
    )
    operator_distance(fitted, fitted)
    tracemalloc.start()
    with config_context(memory="8MiB"):
        operator_distance(first, second)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * 2**20


def test_what_they_refuse(X):
    model = KernelPCA(2, kernel=RBF(0.1)).fit(X)
    K = RBF(0.1)(X)
    matrix = KernelPCA(2, kernel="precomputed").fit(K)
    for measure in (operator_distance, subspace_angles):
        with pytest.raises(ValueError, match=r"RBF\(0\.1\) and of .* Linear\(\)"):
            measure(model, KernelPCA(2, kernel=Linear()).fit(X))
        with pytest.raises(ValueError, match=r"4 columns.* and of rows of 3"):
            measure(model, KernelPCA(2, kernel=RBF(0.1)).fit(X[:, :3]))
        with pytest.raises(ValueError, match=r"4 columns.* and of rows of 3"):
            measure(PCA(2).fit(X), PCA(2).fit(X[:, :3]))
        with pytest.raises(ValueError, match="precomputed"):
            measure(matrix, matrix)
        with pytest.raises(ValueError, match="different spaces"):
            measure(PCA(2).fit(X), model)
        with pytest.raises(ValueError, match="and of scaled rows"):
            measure(PCA(2).fit(X), PCA(2, scale=True).fit(X))
        with pytest.raises(TypeError, match="not fitted"):
            measure(model, PCA(2))

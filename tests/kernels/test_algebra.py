"""Sums and products: constants, long sums, spectra, columns."""

import copy
import pickle

import numpy as np
import pytest

from mercer.kernels import (
    RBF,
    Constant,
    Cosine,
    FromFunction,
    Hellinger,
    Laplacian,
    Linear,
    Matern,
    parse,
)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
def test_constants_of_other_libraries(library):
    xp = pytest.importorskip(library)
    X = xp.ones((3, 2), dtype=xp.float32)
    for kernel, value in (
        (Constant(2.0), 2.0),
        (2 * Constant(), 2.0),
        (Constant(2.0) ** 3, 8.0),
        (Constant().rbf(0.1), 1.0),
        ((Constant() + 0.5).on_columns([0]), 1.5),
        (Constant(3.0).normalized(), 1.0),
    ):
        diagonal, K = kernel.diag(X), kernel(X)
        assert type(diagonal) is type(K) is type(X)
        assert np.asarray(diagonal) == pytest.approx(np.full(3, value))
        assert np.asarray(K) == pytest.approx(np.full((3, 3), value))
        assert np.array_equal(np.asarray(kernel.distances(X)), np.zeros((3, 3)))


def test_spectra_of_nested_kernels():
    rng, kernel, many = np.random.default_rng(0), RBF(), RBF()
    for i in range(40):  # drawing one to learn whether there is one would double with each
        kernel = kernel * RBF() + RBF()
        many = many + RBF(1.0 + i) + RBF(0.5)
    drawn = kernel.spectrum(3, 1000, rng)
    assert (drawn.amplitude**2).sum() == pytest.approx(kernel.diag([[0.0] * 3])[0])
    assert (many.normalized().spectrum(3, 1000, rng).amplitude ** 2).sum() == pytest.approx(1.0)
    nothing = Constant(0.0) + Constant(0.0)
    assert not nothing.normalized().spectrum(3, 10, rng).amplitude.any()


@pytest.mark.parametrize(
    ("kernel", "q", "words"),
    [
        (RBF(), 0, "q=0 must be an integer"),
        (RBF(), 2.5, "q=2.5 must be an integer"),
        (RBF() + Laplacian(), "5", "q='5' must be an integer"),
        (RBF(-1.0), 5, "gamma=-1.0 must be"),
        (2 * Matern(-1.0), 5, "length=-1.0 must be"),
        (RBF().on_columns([7]), 5, "column 7 is out of range for 3 columns"),
        (RBF() + Linear(), 5, r"Linear\(\) has no Fourier features"),
    ],
)
def test_spectra_that_are_refused(kernel, q, words):
    with pytest.raises(ValueError, match=words):
        kernel.spectrum(3, q, np.random.default_rng(0))


def test_a_sum_of_many():
    kernel = RBF(0.1).on_columns([0])
    for j in range(1, 784):
        kernel = kernel + RBF(0.1).on_columns([j])
    X = np.random.default_rng(0).standard_normal((4, 784))
    expected = np.exp(-0.1 * (X[:, None] - X) ** 2).sum(axis=2)
    assert kernel(X) == pytest.approx(expected)
    assert kernel.distances(X)[0, 1] ** 2 == pytest.approx(2 * (784 - expected[0, 1]))
    assert kernel.gradient(X, X, np.ones(4)).shape == X.shape
    assert kernel.psd
    assert kernel.takes == "vectors"
    assert parse(repr(kernel)) == kernel
    assert hash(parse(repr(kernel))) == hash(kernel)
    assert kernel != kernel + 1
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert copy.deepcopy(kernel) == kernel
    assert "k1__k2" in kernel.get_params()


def test_sums_keep_their_order():
    kernel = RBF() + (Linear() + (Cosine() + 1)) + 2
    assert repr(kernel) == "RBF() + (Linear() + (Cosine() + 1.0)) + 2.0"
    assert parse(repr(kernel)) == kernel
    assert kernel != RBF() + Linear() + Cosine() + 1 + 2
    assert [repr(term) for term in kernel.terms[:3]] == ["RBF()", "Linear()", "Cosine()"]


def test_errors_within_columns():
    with pytest.raises(ValueError, match=r"column 0. .* refer to \[1\]") as caught:
        Hellinger().on_columns([1])([[1.0, -1.0]])
    assert str(caught.value).count("Column indices") == 1
    inner = FromFunction(lambda X, Y: X).on_columns([0, 1])
    with pytest.raises(ValueError, match="must return numbers of shape") as caught:
        inner(np.ones((3, 2)))
    assert "Column indices" not in str(caught.value)

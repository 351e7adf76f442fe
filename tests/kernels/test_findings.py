"""What reviews found: each is here once, so that it is not found again."""

import copy
import pickle
import subprocess
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from sklearn.mixture import GaussianMixture

from mercer.kernels import (
    RBF,
    ChiSquare,
    Constant,
    Cosine,
    ExponentialChiSquare,
    Fisher,
    FromFunction,
    Hellinger,
    Laplacian,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
    Separable,
    Substring,
    as_kernel,
    check_psd,
    parse,
)
from mercer.kernels.pair import TilePair
from mercer.kernels.points import Points
from tests.kernel_catalogue import Bell

# By mpmath, 40 digits: 2^{1-nu}/Gamma(nu) z^nu K_nu(z) at z = sqrt(2 nu) r, length 1.
MATERN = [
    (51, 1e-06, 0.99999999999949),
    (51, 0.5, 0.8804389364609361),
    (51, 8, 3.4890609188880395e-12),
    (100, 0.5, 0.88145491073088486),
    (100, 3, 0.011724215420302649),
    (100, 20, 1.0116570703994379e-57),
    (500, 1, 0.6060757316287829),
    (500, 8, 3.0799735896522223e-14),
    (1000, 8, 2.008585953981486e-14),
    (2000, 0.001, 0.99999949975000013),
    (2000, 20, 9.0677321422730951e-84),
    (10000.0, 0.5, 0.882486560045749),
    (10000.0, 30, 5.0483701200448885e-192),
]


@pytest.mark.parametrize(("nu", "r", "value"), MATERN)
def test_matern_of_large_order(nu, r, value):
    assert Matern(1.0, nu)([[0.0]], [[r]])[0, 0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("nu", [50.5, 51.0, 51.5, 800.0])
def test_slopes_of_matern_of_large_order(nu):
    X, Y, h = np.array([[0.7]]), np.array([[0.0], [2.0]]), 1e-5
    kernel, a = Matern(1.0, nu), np.array([1.0, -0.5])
    slope = (kernel(X + h, Y) - kernel(X - h, Y)) @ a / (2 * h)
    assert kernel.gradient(X, Y, a)[0] == pytest.approx(slope, rel=1e-8)


def test_matern_is_between_zero_and_one():
    r = np.concatenate([[0.0], np.geomspace(1e-200, 1e200, 200)])[:, None]
    for nu in (0.3, 7.1, 50.0, 51.0, 1e4, 1e8):
        K = Matern(1.0, nu)([[0.0]], r)[0]
        assert K[0] == 1
        assert ((K >= 0) & (K <= 1)).all()
        assert (np.diff(K) <= 1e-13).all()


def test_lengths_that_overflow():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kernel in (RBF(), Laplacian(), Matern(), Matern(1.0, 1.8)):
            diagonal = kernel.diag([[1e200], [np.nan], [1.0]])
            assert np.array_equal(diagonal, [1.0, np.nan, 1.0], equal_nan=True)
    with np.errstate(all="ignore"):
        assert np.array_equal(RBF()([[1e200], [-1e200]]), np.eye(2))


def exact(X, gamma):
    X = X.astype(np.longdouble)
    return np.exp(-gamma * np.array([((x - X) ** 2).sum(axis=1) for x in X]))


@pytest.mark.parametrize(("dtype", "error"), [("float32", 2e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("form", ["C", "F", "sparse"])
def test_rows_with_outliers_and_clusters(dtype, error, form):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    outlier, lost, clusters = X + 1000, X + 1000, X + 100 * rng.choice([-1, 1], (200, 1))
    outlier[0] = -1e6
    lost[0], lost[7] = np.nan, np.inf
    for rows in (outlier, lost, clusters):
        rows = np.asarray(rows, dtype, order="F" if form == "F" else "C")
        with np.errstate(invalid="ignore"):
            K = RBF(0.01)(scipy.sparse.csr_array(rows) if form == "sparse" else rows)
            truth = exact(rows, 0.01)
        assert np.array_equal(np.isnan(K), np.isnan(truth))
        assert np.nanmax(np.abs(K - truth)) <= error


def test_plain_rows_do_not_import_numba():
    code = (
        "import sys, numpy as np; from mercer.kernels import RBF;"
        "RBF()(np.random.default_rng(0).standard_normal((1500, 20)));"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kernel", [RBF(0.1), Linear(), Cosine()])
def test_products_of_sparse_rows(kernel):
    rng = np.random.default_rng(0)
    X, Y = (scipy.sparse.random_array((n, 300), density=0.05, rng=rng) for n in (90, 70))
    Y = Y.tocsr().astype(np.float32)
    Y.indices = Y.indices.astype(np.int64)
    Y.indptr = Y.indptr.astype(np.int64)
    for x, y in ((X, Y), (X, X), (Y, X), (X.tocsr()[:0], Y), (X.tocsr()[:, :0], Y[:, :0])):
        expected = kernel(x.toarray(), y.toarray())
        assert kernel(x, y) == pytest.approx(expected, abs=1e-13)
    near = X.tocsr()[[3, 3]]
    near.data[-1] += 1e-9
    assert kernel.distances(near)[0, 1] <= 1e-8
    assert RBF(1.0).distances(near)[0, 1] == pytest.approx(np.sqrt(2) * 1e-9, rel=1e-6)


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


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_given_kernels_of_other_libraries(library):
    xp = pytest.importorskip(library)
    host = np.array([[2.0], [0.0], [1.0]])
    K = np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 1.0]])
    for kernel in (
        Precomputed(K),
        FromFunction(lambda X, Y: X @ Y.T),
        FromFunction(lambda x, y: float(x[0]) * float(y[0]), pairwise=True),
    ):
        for call in (kernel, kernel.diag, kernel.distances):
            assert np.asarray(call(xp.asarray(host))) == pytest.approx(call(host))


def test_columns_of_rows_on_another_device():
    xp = pytest.importorskip("array_api_strict")
    X = xp.asarray(np.eye(3), device=xp.Device("device1"))
    assert RBF().on_columns([0, 2])(X).device == X.device
    assert RBF().on_columns([0, 2]).diag(X).device == X.device


@pytest.mark.parametrize(
    ("kernel", "slope"),
    [
        (Cosine(), 1.6),
        (Hellinger(), 0.5 / np.sqrt(0.3)),
        (Separable(lambda rows: 2 * rows[:, 0]), 2.0),
        (Fisher(Bell()), 1.0),
        (Linear().rbf(0.5), 1.0),
        (Cosine().rbf(2.0), 3.2),
        (ExponentialChiSquare(3.0), np.sqrt(2 * 3.0 / 0.6)),
    ],
)
def test_distances_of_near_rows(kernel, slope):
    X = np.array([[0.3, 0.4], [0.3 + 1e-9, 0.4]])
    step = X[1, 0] - X[0, 0]
    assert kernel.distances(X)[0, 1] == pytest.approx(slope * step, rel=1e-6)


def test_asymmetry_anywhere_in_a_tile():
    X = np.arange(200.0)[:, None]

    def late(X, Y):
        K = X @ Y.T
        K[(X[:, :1] > 100) & (Y[:, 0] < 90)] += 1e5
        return K

    def hidden(X, Y):
        K = late(X, Y)
        K[(X[:, :1] == 0) | (Y[:, 0] == 0)] = np.nan
        return K

    for f in (late, hidden):
        with pytest.raises(ValueError, match="not symmetric"):
            FromFunction(f)(X)


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
        (RBF(), 0, "q=0 must be a whole number"),
        (RBF(), 2.5, "q=2.5 must be a whole number"),
        (RBF() + Laplacian(), "5", "q='5' must be a whole number"),
        (RBF(-1.0), 5, "gamma=-1.0 must be"),
        (2 * Matern(-1.0), 5, "length=-1.0 must be"),
        (RBF().on_columns([7]), 5, "column 7 is not one of the 3 columns"),
        (RBF() + Linear(), 5, r"Linear\(\) has no Fourier features"),
    ],
)
def test_spectra_that_cannot_be(kernel, q, words):
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


ROWS = [[0.2, 0.8], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ChiSquare().diag(scipy.sparse.csr_array(ROWS)), r"ChiSquare\(\) needs dense"),
        (lambda: RBF().on_columns([0, np.nan])(ROWS), "columns=.* must be a list of column"),
        (lambda: RBF().on_columns([0.5])(ROWS), "columns=.* must be a list of column"),
        (lambda: Separable(None)(ROWS), "f=None must be a function"),
        (lambda: Fisher(Bell(), np.full((2, 2), np.nan))(ROWS), "contains NaN"),
        (lambda: Fisher.from_rows(Bell(), scipy.sparse.csr_array(ROWS)), "needs dense rows"),
        (lambda: check_psd(RBF(), ROWS, size=0), "size=0 must be"),
        (lambda: check_psd("rbf", [[np.nan]]), "contains NaN"),
        (lambda: check_psd("rfb", ROWS), "did you mean 'rbf'"),
        (lambda: Substring()([1, 2]), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()(np.array([["a", "b"]])), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()(np.array("abc")), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()("abc"), r"^Substring\(\).* Pass a list of str"),
        (lambda: 10**400 * RBF(), "too large for a float"),
        (lambda: RBF() + 10**400, "too large for a float"),
        (lambda: parse("9" * 400 + "*rbf"), "too large for a float"),
        (lambda: RBF(Fraction(1, 3))(ROWS), "gamma=.* as an int or a float"),
        (lambda: parse("rbf # (2)"), "'#' at character 5"),
        (lambda: parse("rbf(gama=2)"), "'gama' at character 5 is not known; did you mean 'gamma'"),
        (lambda: parse("linear().rbf(gama=2)"), "'gama' at character 14 .* mean 'gamma'"),
        (lambda: parse("linear(gamma=2)"), "'gamma' at character 8"),
        (lambda: parse("rbf(**2)"), "is not an argument"),
        (lambda: parse('laplacian(1, "\\d")'), "norm="),
        (lambda: as_kernel(RBF(0.1), gamma=5), "gamma=5"),
        (lambda: as_kernel(lambda x, y: 1.0, gamma=5), "gamma=5"),
    ],
)
def test_what_is_refused_says_why(call, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=words):
            call()


def test_errors_within_columns():
    with pytest.raises(ValueError, match=r"column 0. .* among \[1\]") as caught:
        Hellinger().on_columns([1])([[1.0, -1.0]])
    assert str(caught.value).count("counted") == 1
    inner = FromFunction(lambda X, Y: X).on_columns([0, 1])
    with pytest.raises(ValueError, match="must return numbers of shape") as caught:
        inner(np.ones((3, 2)))
    assert "counted" not in str(caught.value)


def test_rows_of_strings_from_tables():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"name": ["abcd", "bcde"]})
    with pytest.raises(ValueError, match=r'^Substring\(\).* Pass a list of str.* df\["name"\]'):
        Substring()(table)
    assert Substring()(table["name"])[0, 1] == 1
    assert Substring()(table["name"][:0]).shape == (0, 0)
    assert Substring()(table["name"], table["name"][:0]).shape == (2, 0)


def test_what_works():
    assert Cosine()(np.empty((3, 0))).shape == (3, 3)
    assert check_psd("rbf(2) + 1", ROWS)
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix):
        assert np.array_equal(Precomputed(form(K))([[1], [0]]), K[::-1, ::-1])
        assert np.array_equal(Precomputed(form(K)).diag([[1], [0]]), [3.0, 2.0])
    assert parse("rbf(1)\r\n\t+ linear") == RBF(1) + Linear()


@pytest.mark.parametrize("length", [1e-170, 1e200])
def test_lengths_whose_squares_are_no_numbers(length):
    kernel = RationalQuadratic(length)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        K = kernel([[0.0], [1.0]])
        assert np.array_equal(np.diag(K), [1.0, 1.0])
        assert K[0, 1] == (1.0 if length > 1 else 0.0)
        assert np.isfinite(kernel.spectrum(2, 5, np.random.default_rng(0)).omega).all()
        assert np.isfinite(Matern(1e200).slopes(_pair())[0].sqdist).all()


def _pair():
    return TilePair.between(Points(np.eye(2)), Points(np.eye(2)))


def test_a_mixture_of_named_columns_is_silent():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 2)), columns=["a", "b"])
    model = GaussianMixture(2, random_state=0).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Fisher.from_rows(model, table)(table).shape == (30, 30)
    assert list(model.feature_names_in_) == ["a", "b"]

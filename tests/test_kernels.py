"""Kernels as users meet them: text, errors, grids, scikit-learn's own."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.base
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from mercer import as_source
from mercer.kernels import (
    RBF,
    AdditiveChi2,
    ChiSquare,
    Constant,
    Cosine,
    Fisher,
    FromFunction,
    GeneralizedHistogramIntersection,
    Hellinger,
    HistogramIntersection,
    JensenShannon,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Scaled,
    Separable,
    Subsequence,
    Substring,
    Sum,
    Tanh,
    as_kernel,
    parse,
)
from mercer.kernels.base import KERNELS
from tests.kernel_catalogue import Bell

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 4)), RNG.standard_normal((15, 4))
H = RNG.dirichlet(np.ones(4), 20)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("linear", X),
        ("poly", X),
        ("polynomial", X),
        ("rbf", X),
        ("laplacian", X),
        ("sigmoid", X),
        ("cosine", X),
        ("chi2", H),
        ("additive_chi2", H),
    ],
)
def test_the_names_of_scikit_learn(name, rows):
    params = {"gamma": 0.3, "degree": 2, "coef0": 0.7}
    expected = pairwise.pairwise_kernels(rows, metric=name, filter_params=True, **params)
    assert np.abs(as_kernel(name, **params)(rows) - expected).max() <= 1e-12


def test_a_kernel_from_anything():
    kernel = RBF(0.1)
    assert as_kernel(kernel) is kernel
    assert as_kernel("rbf(0.1) + 2*poly(5)") == RBF(0.1) + 2 * Polynomial(5)
    assert np.allclose(as_kernel(lambda x, y: x @ y)(X), X @ X.T)
    with pytest.raises(ValueError, match="kernel=3 must be a kernel"):
        as_kernel(3)


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf", RBF()),
        ("  rbf( 0.1 )", RBF(0.1)),
        ("RBF(gamma=1e-3)", RBF(0.001)),
        ("2*poly(5) + 1", 2 * Polynomial(5) + 1),
        ("laplacian(0.5, norm='l1')", Laplacian(0.5, norm="l1")),
        ("(linear + 1)**2", (Linear() + 1) ** 2),
        ("poly(2).rbf(0.1).normalized()", Polynomial(2).rbf(0.1).normalized()),
        (
            "rbf(1).on_columns([0, 3]) * tanh(0.1, coef0=-1)",
            RBF(1).on_columns([0, 3]) * Tanh(0.1, -1),
        ),
        ("matern(2, nu=0.5)", Matern(2, 0.5)),
        ("rbf(1)\r\n\t+ linear", RBF(1) + Linear()),
        ("subsequence(5, decay=0.8)", Subsequence(5, 0.8)),
    ],
)
def test_parse(text, kernel):
    assert parse(text) == kernel


def test_parse_reads_constants_back():
    for kernel in (Constant(2.0) + RBF(1.0), 2 * Constant(1.0), RBF(1.0) * Constant(3.0)):
        assert parse(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rbff(1)", ("'rbff'", "character 1", "did you mean 'rbf'")),
        ("linear + quantum(1)", ("'quantum'", "character 10")),
        ("poly(2).normalised()", ("'normalised'", "did you mean 'normalized'")),
        ("rbf(1", ("invalid syntax at character 4",)),
        ("rbf(0.1) - linear", ("uses an unsupported operator",)),
        ("rbf(a)", ("'a' at character 5",)),
        ("__import__('os')", ("'__import__'", "is unknown")),
        ("rbf(1).__class__()", ("'__class__'", "is unknown")),
        ("rbf(1)(2)", ("is not a kernel",)),
        ("(lambda: 1)()", ("is not a kernel",)),
        ("3", ("is a number, not a kernel",)),
        ("rbf(1, 2, 3)", ("has invalid arguments",)),
        ("rbf(-1)", ("RBF", "gamma=-1", "positive")),
        ("linear ** 0.5", ("Power", "power=0.5", "integer")),
        ("-2 * rbf", ("Scaled", "scale=-2.0", "positive")),
        ("", ("invalid syntax",)),
        ("'a' + rbf", ("\"'a'\" at character 1", "not a kernel or a number")),
        ("'a' * 200000000", ("not a kernel or a number",)),
        ("rbf(None)", ("gamma=None", "positive number")),
        ("rbf('a')", ("gamma='a'", "positive number")),
        ("poly(1e999)", ("degree=inf", "integer")),
        ("1e999 * rbf", ("scale=inf",)),
        ("rbf(gamma=1, gamma=2)", ("names an argument twice",)),
        ("rbf ** linear", ("unsupported operator",)),
        ("+".join(["rbf"] * 3000), ("nested too deeply",)),
        ("(" * 300 + "rbf" + ")" * 300, ("invalid syntax",)),
        ("   rbff(1)", ("'rbff' at character 4",)),
        ("linear\n + rbff(1)", ("'rbff' at character 11",)),
        ("  poly(2).norm()", ("'norm' at character 11",)),
        ("laplacian(norm='ß') + rbff", ("'rbff' at character 23",)),
        ("rbf.on_columns(2)", ("columns=2", "list of distinct column indices")),
        (123, ("123 is not a kernel expression",)),
    ],
)
def test_parse_says_what_is_wrong_and_where(text, words):
    with pytest.raises(ValueError, match=r".") as error:
        parse(text)
    for word in words:
        assert word in str(error.value)


def test_an_unknown_kernel_lists_each_kernel_once():
    with pytest.raises(ValueError, match="choose from") as caught:
        parse("xyzzy")
    listed = str(caught.value).rsplit("choose from ", 1)[1].rstrip(".").split(", ")
    kinds = [KERNELS[name] for name in listed]
    assert len(kinds) == len(set(kinds)) == len(set(KERNELS.values()))
    assert {"rbf", "poly", "sigmoid", "chi2", "linear", "laplacian"} <= set(listed)


def test_gaussian_is_another_name_of_rbf():
    assert parse("gaussian(0.1) + gaussian") == parse("rbf(0.1) + rbf")
    assert as_kernel("gaussian", 0.3) == RBF(0.3)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(0), ("RBF", "gamma=0", "positive")),
        (RBF(-0.5), ("RBF", "gamma=-0.5")),
        (Laplacian(1, norm="l3"), ("Laplacian", "norm='l3'", '"l1" or "l2"')),
        (Polynomial(1.5), ("Polynomial", "degree=1.5", "integer")),
        (Polynomial(2, -1.0), ("Polynomial", "coef0=-1.0")),
        (Matern(1, 0), ("Matern", "nu=0")),
        (RationalQuadratic(0), ("RationalQuadratic", "length=0")),
        (Scaled(-1.0, RBF()), ("Scaled", "scale=-1.0")),
        (RBF() + -1, ("Constant", "value=-1.0", "0 or more")),
        (2 * (RBF(-1) + Linear()), ("RBF", "gamma=-1")),
        (RBF().on_columns([0, 9]), ("on_columns", "column 9", "4 columns")),
        (RBF().on_columns([]), ("columns=[]",)),
        (RBF().on_columns(2), ("columns=2", "list of distinct column indices")),
        (RBF().on_columns("a"), ("columns='a'",)),
        (Subsequence().on_columns([0]), ("strings have no columns",)),
        (RBF("a"), ("RBF", "gamma='a'", "positive number")),
        (RBF(None), ("gamma=None",)),
        (RBF(np.inf), ("gamma=inf",)),
        (RBF(np.nan), ("gamma=nan",)),
        (RBF(True), ("gamma=True",)),
        (RBF(10**400), ("gamma=1000",)),
        (Polynomial(np.inf), ("degree=inf",)),
        (Polynomial(2, np.nan), ("coef0=nan",)),
        (Tanh(1.0, np.inf), ("coef0=inf",)),
        (Sum(RBF(), 2.0), ("Sum", "k2=2.0", "a kernel")),
        (0 * RBF(), ("Scaled", "scale=0.0", "positive")),
        (FromFunction(3), ("f=3", "function")),
        (Precomputed([1.0, 2.0]), ("shape (2,)", "expected 2D")),
        (Subsequence(3).normalized(), ("takes rows of strings", "got numbers")),
    ],
)
def test_bad_parameters(kernel, words):
    with pytest.raises(ValueError, match=r".") as error:
        kernel(X)
    for word in words:
        assert word in str(error.value)


def test_bad_rows():
    bad = H.copy()
    bad[7, 2] = -0.5
    with pytest.raises(ValueError, match=r"HistogramIntersection.*-0.5 in row 7, column 2.*clip"):
        HistogramIntersection()(bad)
    with pytest.raises(ValueError, match=r"ChiSquare.*negative"):
        (ChiSquare() + RBF())(H, bad)
    dense_only = [ChiSquare(), Laplacian(norm="l1"), GeneralizedHistogramIntersection(1.5)]
    for kernel in dense_only:
        with pytest.raises(ValueError, match=r"needs dense rows\. Pass X\.toarray\(\)"):
            kernel(scipy.sparse.csr_array(H))
    with pytest.raises(ValueError, match=r"RBF.*takes rows of vectors, but got strings"):
        RBF()(["ab", "c"])
    with pytest.raises(ValueError, match=r"Entry 1 is 3 \(int\)"):
        Substring(2)(["ab", 3])
    with pytest.raises(ValueError, match="strings and of vectors"):
        (Substring(2) + RBF())(["ab"])
    with pytest.raises(ValueError, match="X has 4 columns, but Y has 3"):
        RBF()(X, Y[:, :3])
    with pytest.raises(ValueError, match=r"abc: there is no such file or folder.*\.npy"):
        Substring(2)("abc")


def test_functions_that_are_no_kernels():
    with pytest.raises(ValueError, match=r"of shape \(\) for \d+ and 20 rows.*pairwise"):
        FromFunction(lambda x, y: 1.0)(X)
    with pytest.raises(ValueError, match=r"not symmetric: k\(x, y\) and k\(y, x\) differ"):
        FromFunction(lambda x, y: x[0] - y[0], pairwise=True)(X)
    with pytest.raises(ValueError, match=r"f returned shape \(\d+, 4\) for \d+ rows"):
        Separable(lambda rows: rows)(X)


def test_precomputed():
    K = X @ X.T
    numbers = np.arange(20)[:, None]
    kernel = Precomputed(K)
    assert np.array_equal(kernel(numbers), K)
    assert np.array_equal(kernel(numbers[[3, 1]], numbers[2:4]), K[[3, 1], 2:4])
    assert np.array_equal(kernel.diag(numbers), np.diag(K))
    with pytest.raises(ValueError, match="row indices from 0 to 19"):
        kernel([[20]])


def test_sigma_and_median():
    assert RBF.from_sigma(2.0) == RBF(0.125)
    distances = pairwise.euclidean_distances(X)[np.triu_indices(20, 1)]
    assert RBF.from_median(X).gamma == pytest.approx(0.5 / np.median(distances) ** 2)
    with pytest.raises(ValueError, match="sampled rows are equal"):
        RBF.from_median(np.ones((5, 2)))
    for found in (Laplacian.from_median(X, "l1"), Laplacian.from_median(X, norm="l1")):
        assert found == Laplacian(found.gamma, "l1") != Laplacian.from_median(X)
    # Where more than half of the distances are 0, the others have a median.
    assert RBF.from_median([[0.0], [0.0], [0.0], [0.0], [2.0]]) == RBF.from_sigma(2.0)
    with pytest.raises(ValueError, match="sigma=0"):
        RBF.from_sigma(0)
    with pytest.raises(ValueError, match="gamma=inf"):
        RBF.from_sigma(1e-200)
    with pytest.raises(ValueError, match="1 rows are too few for a distance"):
        RBF.from_median(X[:1])
    with pytest.raises(ValueError, match="contains NaN: the first is in row 0, column 0"):
        RBF.from_median(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="too large"):
        RBF.from_median(np.array([[1e200], [-1e200]]))
    with pytest.raises(ValueError, match="but got strings"):
        RBF.from_median(["a", "b"])


@pytest.mark.parametrize("kernel", [RBF, Laplacian])
def test_equal_weights_do_not_move_the_median(kernel):
    X = np.random.default_rng(0).normal(size=(5, 3))
    weighted = as_source(X).weighted(np.full(5, 0.3))
    assert kernel.from_median(weighted) == kernel.from_median(X)


def test_psd_through_the_algebra():
    assert (RBF() + 2 * Linear()).psd is True
    assert Tanh().psd is False
    assert (RBF() + Tanh()).psd is None
    assert (Tanh() ** 2).psd is None
    assert Polynomial(2).rbf(0.1).normalized().psd is True
    assert FromFunction(np.dot).psd is None
    assert AdditiveChi2().rbf(0.5).psd is None


class Ridge(BaseEstimator):
    """Kernel ridge regression, as short as it can be."""

    def __init__(self, kernel=None):
        self.kernel = kernel

    def fit(self, X, y):
        self.X_ = X
        self.a_ = np.linalg.solve(self.kernel(X) + 0.1 * np.eye(len(X)), y)
        return self

    def score(self, X, y):
        return -float(((self.kernel(X, self.X_) @ self.a_ - y) ** 2).mean())


def test_a_grid_search_reaches_every_parameter():
    grid = {"kernel__k1__gamma": [0.01, 0.3], "kernel__k2__kernel__degree": [1, 2]}
    search = GridSearchCV(Ridge(RBF(1.0) + 0.5 * Polynomial(3)), grid, cv=2)
    search.fit(X, np.sin(X[:, 0]))
    assert search.best_params_["kernel__k1__gamma"] in (0.01, 0.3)
    assert search.best_estimator_.kernel.k2.kernel.degree in (1, 2)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_fisher_scores_of_a_mixture_are_derivatives(kind):
    """Against finite differences of the log density by every parameter."""
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X[:, :2])
    found = Fisher(model).features(X[:, :2])
    columns = []
    h = 1e-6

    def density(weights, means, covariances):
        total = 0.0
        for c in range(2):
            C = covariances if kind == "tied" else covariances[c]
            C = C if np.ndim(C) == 2 else np.diag(np.broadcast_to(C, 2))
            z = X[:, :2] - means[c]
            power = np.einsum("ni,ij,nj->n", z, np.linalg.inv(C), z)
            total = total + weights[c] * np.exp(-0.5 * power) / np.sqrt(
                np.linalg.det(2 * np.pi * C)
            )
        return np.log(total)

    here = (model.weights_, model.means_, model.covariances_)

    def slope(which, step):
        up, down = list(here), list(here)
        up[which], down[which] = here[which] + step, here[which] - step
        columns.append((density(*up) - density(*down)) / (2 * h))

    slope(0, h * np.array([1.0, -1.0]))
    for c in range(2):
        for i in range(2):
            step = np.zeros((2, 2))
            step[c, i] = h
            slope(1, step)
    shape = np.shape(here[2])
    for index in np.ndindex(*shape):
        if kind in ("full", "tied") and index[-1] > index[-2]:
            continue
        step = np.zeros(shape)
        step[index] = h
        if kind in ("full", "tied"):
            step[(*index[:-2], index[-1], index[-2])] = h
        slope(2, step)
    expected = np.stack(columns, axis=1)
    assert found.shape == expected.shape
    # The order of a covariance's entries does not matter to a dot product.
    assert (
        np.abs(found @ found.T - expected @ expected.T).max()
        <= 1e-4 * np.abs(found @ found.T).max()
    )


def test_fisher_with_the_information_matrix():
    model = GaussianMixture(2, random_state=0).fit(X)
    kernel = Fisher.from_rows(model, X)
    U = Fisher(model).features(X)
    expected = U @ np.linalg.pinv(U.T @ U / len(X), rcond=1e-10) @ U.T
    assert np.abs(kernel(X) - expected).max() <= 1e-8 * np.abs(expected).max()
    with pytest.raises(ValueError, match=r"information has shape \(2, 2\)"):
        Fisher(model, np.eye(2))(X)
    with pytest.raises(ValueError, match="fitted GaussianMixture"):
        Fisher(GaussianMixture())(X)


def test_constants_are_kernels():
    assert Linear() + 1 == Linear() + Constant(1.0)
    assert repr(1 + Linear()) == "Linear() + 1.0"
    assert np.float64(2) * Linear() == 2 * Linear()
    assert np.float32(0.5) + Linear() == Linear() + 0.5
    with pytest.raises(TypeError):
        Linear() + "a"


def test_fisher_is_cloned_with_its_model():
    model = GaussianMixture(2, random_state=0).fit(X)
    kernel = sklearn.base.clone(2 * Fisher(model))
    assert np.isfinite(kernel(X)).all()


def test_columns_are_a_list_of_numbers():
    with pytest.raises(ValueError, match="distinct column indices"):
        RBF().on_columns([0, 0])(X)
    with pytest.raises(ValueError, match="not a mask"):
        RBF().on_columns([True, False])(X)
    assert RBF().on_columns(np.array([0, 2])) == RBF().on_columns((0, 2))


def test_values_at_the_limits():
    assert Separable(lambda rows: np.full(len(rows), 200, np.uint8))(X)[0, 0] == 40000.0
    assert Matern(1.0, 1000)([[0.0]], [[1.0]])[0, 0] == pytest.approx(0.6063, abs=1e-4)
    assert RationalQuadratic(1.0, 1e17)([[0.0]], [[1.3]])[0, 0] == pytest.approx(np.exp(-0.845))
    assert Cosine()(np.empty((3, 0))).shape == (3, 3)


def test_sums_of_sums_have_spectra_if_all_terms_do():
    with pytest.raises(ValueError, match="has no Fourier features"):
        (Linear() + Linear()).spectrum(3, 10, np.random.default_rng(0))
    sums = (0.01 * RBF(1.0) + 0.01 * RBF(2.0)) + 100 * RBF(3.0)
    assert sums.spectrum(3, 10, np.random.default_rng(0)).omega.shape == (3, 10)


def test_names_take_the_parameters_they_have():
    assert as_kernel("Polynomial", degree=2, coef0=0.5) == Polynomial(2, 0.5)
    assert as_kernel("Laplacian", gamma=0.5) == Laplacian(0.5)
    assert as_kernel("laplacian", gamma=0.5) == Laplacian(0.5, norm="l1")
    assert as_kernel("linear", gamma=0.5) == Linear()
    for kernel, gamma, words in (
        ("matern", 0.5, "'matern' has no gamma; it takes length, nu"),
        ("rbf(0.1)", 0.5, "set gamma in the expression"),
        (RBF, None, r"pass RBF\(\)"),
        ("precomputed", None, r"Precomputed\(matrix\)"),
    ):
        with pytest.raises(ValueError, match=words):
            as_kernel(kernel, gamma=gamma)


def test_rows_that_are_strings():
    kernel, words = Substring(2), ["abab", "ba", "ab"]
    expected = kernel(words)
    for rows in (pd.Series(words), pd.Index(words), tuple(words), np.array(words)):
        assert np.array_equal(kernel(rows), expected)
    assert kernel([]).shape == (0, 0)
    assert kernel(words, []).shape == (3, 0)
    assert np.array_equal((kernel + 2 * Constant())(words), expected + 2)
    assert np.array_equal(Constant(3.0)(words), np.full((3, 3), 3.0))
    assert np.array_equal(Constant(3.0).distances(words), np.zeros((3, 3)))
    lengths = FromFunction(lambda s, t: len(s) * len(t), pairwise=True)
    assert np.array_equal(lengths(words), np.outer([4, 2, 2], [4, 2, 2]))
    assert np.array_equal(lengths.diag(words), [16, 4, 4])
    with pytest.raises(ValueError, match=r"Entry 0 is b'ab' \(bytes\).*Decode it"):
        kernel([b"ab"])
    with pytest.raises(ValueError, match=r"Entry 1 is nan"):
        kernel(pd.Series(["ab", None], dtype=object).where([True, False], np.nan))


def test_functions_in_sums_and_elsewhere():
    skew = FromFunction(lambda A, B: A[:, :1] - B[:, :1].T)
    with pytest.raises(ValueError, match="not symmetric"):
        (skew + RBF())(X)
    with pytest.raises(ValueError, match=r"returned array.*must return a number"):
        FromFunction(lambda x, y: x - y, pairwise=True)(X)
    with pytest.raises(ValueError, match=r"of shape \(\) for 1 and 1 rows"):
        FromFunction(lambda x, y: 1.0).diag(X)
    torch = pytest.importorskip("torch")
    tensor = torch.asarray(X)
    for f, by_pairs in ((lambda a, b: a @ b.T, False), (lambda a, b: a @ b, True)):
        kernel = FromFunction(f, by_pairs) + Linear()
        assert np.allclose(kernel(tensor).numpy(), 2 * X @ X.T)
        assert np.allclose(kernel.diag(tensor).numpy(), np.diag(2 * X @ X.T))
    K = Precomputed(tensor @ tensor.T)
    numbers = np.arange(20)[:, None]
    assert np.allclose(K(numbers), X @ X.T)
    assert np.allclose(K(torch.asarray(numbers)).numpy(), X @ X.T)
    assert np.allclose(Precomputed(pd.DataFrame(X @ X.T))(numbers), X @ X.T)
    with pytest.raises(ValueError, match="but got nan"):
        K(np.full((1, 1), np.nan))
    with pytest.raises(ValueError, match="but got 4 columns"):
        K(X)


def test_negative_entries_are_named_where_they_are():
    bad = np.abs(X)
    bad[17, 3] = -1.0
    with pytest.raises(ValueError, match=r"-1.0 in row 17, column 1\..* refer to \[0, 3\]"):
        ChiSquare().on_columns([0, 3])(bad)
    with pytest.raises(ValueError, match=r"-1\.0 in row 17, column 3"):
        Hellinger()(scipy.sparse.csr_array(bad))


def test_hellinger_of_sparse_rows():
    sparse = np.where(H > 0.2, H, 0.0)
    expected = Hellinger()(sparse)
    assert np.abs(Hellinger()(scipy.sparse.csr_matrix(sparse)) - expected).max() <= 1e-15


@pytest.mark.parametrize("scale", [1e-200, 1e-150, 1e150, 1e200])
def test_cosines_at_the_ends_of_the_range(scale):
    rows = np.vstack([X, np.zeros(4)])
    expected = Cosine()(rows)
    assert np.abs(Cosine()(scale * rows, rows) - expected).max() <= 1e-15
    sparse = Cosine()(scipy.sparse.csr_array(scale * rows), rows)
    assert np.abs(sparse - expected).max() <= 1e-15


@pytest.mark.parametrize("kernel", [ChiSquare(), AdditiveChi2()])
@pytest.mark.parametrize(("scale", "dtype"), [(1e160, "float64"), (1e-25, "float32")])
def test_chi_square_at_the_ends_of_the_range(kernel, scale, dtype):
    K = kernel((scale * H).astype(dtype)) / scale
    assert np.abs(K - kernel(H)).max() <= (1e-14 if dtype == "float64" else 1e-6)


def test_torch_rows():
    torch = pytest.importorskip("torch")
    tensor, weights = torch.asarray(X), RNG.standard_normal(15)
    for kernel in (RBF(0.3), Laplacian(0.3, norm="l1"), RBF(0.3) + Linear()):
        assert kernel(tensor, torch.empty((0, 4), dtype=torch.float64)).shape == (20, 0)
        assert kernel(torch.empty((3, 0), dtype=torch.float64)).shape == (3, 3)
    with pytest.raises(ValueError, match="arrays of different libraries"):
        RBF()(tensor, Y)
    mixed = RBF(0.3).on_columns([0, 2]) + Polynomial(2) + Linear().on_columns([1])
    expected = mixed.gradient(X, Y, weights)
    assert np.allclose(mixed.gradient(tensor, torch.asarray(Y), weights).numpy(), expected)
    with pytest.raises(ValueError, match=r"weights have shape \(3,\), expected \(15,\)"):
        mixed.gradient(X, Y, np.ones(3))
    P = torch.asarray(RNG.dirichlet(np.ones(4) * 0.01, 20))
    assert np.abs(JensenShannon()(P).numpy() - JensenShannon()(P.numpy())).max() <= 1e-15


def test_fisher_of_what_is_no_information():
    model = GaussianMixture(1, covariance_type="spherical", random_state=0).fit(X)
    p = Fisher(model).features(X).shape[1]
    with pytest.raises(ValueError, match=r"eigenvalues from -1 to -1.*semi-definite"):
        Fisher(model, -np.eye(p))(X)
    with pytest.raises(ValueError, match="needs dense rows"):
        Fisher(model)(scipy.sparse.csr_array(X))
    assert "<array of 5 × 5>" in repr(Fisher(model, np.eye(5)))


def test_a_function_that_cannot_be_hashed():
    class Sums:
        __hash__ = None

        def __call__(self, rows):
            return rows.sum(axis=1)

    assert np.allclose(Separable(Sums())(X), np.outer(X.sum(axis=1), X.sum(axis=1)))


ROWS = [[0.2, 0.8], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ChiSquare().diag(scipy.sparse.csr_array(ROWS)), r"ChiSquare\(\) needs dense"),
        (lambda: RBF().on_columns([0, np.nan])(ROWS), "columns=.* must be a list of distinct"),
        (lambda: RBF().on_columns([0.5])(ROWS), "columns=.* must be a list of distinct"),
        (lambda: Separable(None)(ROWS), "f=None must be a function"),
        (lambda: Fisher(Bell(), np.full((2, 2), np.nan))(ROWS), "contains NaN"),
        (lambda: Fisher.from_rows(Bell(), scipy.sparse.csr_array(ROWS)), "needs dense rows"),
        (lambda: as_kernel("rfb"), "did you mean 'rbf'"),
        (lambda: Substring()([1, 2]), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()(np.array([["a", "b"]])), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()(np.array("abc")), r"^Substring\(\).* Pass a list of str"),
        (lambda: Substring()("abc"), r"^Substring\(\).* Pass a list of str"),
        (lambda: 10**400 * RBF(), "too large for a float"),
        (lambda: RBF() + 10**400, "too large for a float"),
        (lambda: parse("9" * 400 + "*rbf"), "too large for a float"),
        (lambda: RBF(Fraction(1, 3))(ROWS), "gamma=.* as an int or a float"),
        (lambda: parse("rbf(gama=2)"), "has no argument 'gama'; it takes gamma"),
        (lambda: parse("linear().rbf(gama=2)"), "has no argument 'gama'; it takes gamma"),
        (lambda: parse("linear(gamma=2)"), r"'linear\(gamma=2\)' at character 1 has no arg"),
        (lambda: parse("rbf(**2)"), "invalid arguments"),
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


def test_rows_of_strings_from_tables():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"name": ["abcd", "bcde"]})
    with pytest.raises(ValueError, match=r'^Substring\(\).* Pass a list of str.* df\["name"\]'):
        Substring()(table)
    assert Substring()(table["name"])[0, 1] == 1
    assert Substring()(table["name"][:0]).shape == (0, 0)
    assert Substring()(table["name"], table["name"][:0]).shape == (2, 0)

"""What cannot be done is refused: by scikit-learn's exception, naming what and where, undone."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn.decomposition
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info

import mercer
from mercer import PCA, config_context, rules
from mercer.data import as_source
from mercer.estimators.pca import SOLVERS
from mercer.linalg import CovarianceProduct, Moments, TriangularFactor
from mercer.methods import Covariance, FrequentDirections, Iterative

Theirs = sklearn.decomposition.PCA


def rows(shape=(40, 5), seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 0.7 ** np.arange(shape[1]) + 1.0


def saved(X, tmp_path):
    np.save(tmp_path / "bad.npy", X)
    return tmp_path / "bad.npy"


def tensor(X, tmp_path):
    return pytest.importorskip("torch").asarray(X)


def strict(X, tmp_path):
    return pytest.importorskip("array_api_strict").asarray(X)


def frame(X, tmp_path):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


KINDS = {
    "array": lambda X, tmp_path: X,
    "list": lambda X, tmp_path: X.tolist(),
    "csr": lambda X, tmp_path: scipy.sparse.csr_array(X),
    "csc": lambda X, tmp_path: scipy.sparse.csc_matrix(X),
    "pandas": frame,
    "polars": lambda X, tmp_path: pl.DataFrame(X),
    "npy": saved,
    "Source": lambda X, tmp_path: as_source(X),
    "torch": tensor,
    "strict": strict,
}


@pytest.fixture(params=KINDS)
def kind(request, tmp_path):
    return lambda X: KINDS[request.param](X, tmp_path)


def refused(X, *text, pca=None, error=ValueError, **arguments):
    """Fit, and see that it is refused with this text and that nothing remains of it."""
    pca = PCA(2) if pca is None else pca
    before = dict(vars(pca))
    with pytest.raises(error) as raised:
        pca.fit(X, **arguments)
    for part in text:
        assert part in str(raised.value)
    assert vars(pca) == before
    with pytest.raises(NotFittedError):
        check_is_fitted(pca)


# Not finite.


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-inf")]
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_not_finite_with_every_solver(solver, value, name):
    X = rows()
    X[17, 3] = value
    before = X.copy()
    refused(X, name, "row 17", "column 3", "PCA(missing='em')", pca=PCA(2, svd_solver=solver))
    assert_array_equal(X, before)


@pytest.mark.parametrize("shape", [(40, 5), (5, 40)], ids=["tall", "wide"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_not_finite_in_rows_of_any_kind(kind, dtype, shape):
    X = rows(shape).astype(dtype)
    X[3, 4] = np.nan
    refused(kind(X), "NaN", "row 3", "column 4")


@pytest.mark.parametrize(
    "method", [Covariance(), Iterative("arpack"), FrequentDirections(4)], ids=repr
)
def test_not_finite_with_a_method(method):
    X = rows()
    X[39, 0] = np.inf
    refused(X, "infinity", "row 39", "column 0", pca=PCA(2, svd_solver=method))


def test_the_first_entry_is_named_whatever_the_blocks():
    X = rows()
    X[[12, 30], [4, 1]] = np.nan
    with config_context(block_rows=5):
        refused(X, "row 12, column 4")


def test_a_named_column_is_named():
    X = frame(rows(), None)
    X.iloc[7, 2] = np.nan
    refused(X, "row 7", "column 2", "'x2'")


def test_a_missing_value_of_pandas():
    X = frame(rows(), None).round().astype("Int64")
    X.iloc[7, 2] = pd.NA
    refused(X, "NaN", "row 7", "column 2")


@pytest.mark.parametrize(
    "method", ["transform", "reconstruct", "reconstruction_error", "score_samples"]
)
def test_not_finite_after_a_fit(kind, method):
    pca, X = PCA(2).fit(kind(rows())), rows()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN: the first is in row 3, column 4"):
        np.asarray(getattr(pca, method)(kind(X)))  # which reads the rows of a Source


def test_not_finite_scores():
    pca = PCA(2).fit(rows())
    scores = pca.transform(rows())
    scores[5, 1] = np.nan
    with pytest.raises(ValueError, match="row 5, column 1"):
        pca.inverse_transform(scores)


def test_not_finite_batch_leaves_the_state(kind):
    X = rows()
    pca = PCA(2).partial_fit(kind(X[:20]))
    before = dict(vars(pca))
    bad = X[20:].copy()
    bad[3, 4] = np.nan
    with pytest.raises(ValueError, match="row 3, column 4"):
        pca.partial_fit(kind(bad))
    assert vars(pca) == before
    whole = PCA(2).partial_fit(X[:20]).partial_fit(X[20:])
    after = pca.partial_fit(kind(X[20:]))
    np.testing.assert_allclose(np.asarray(after.components_), whole.components_, atol=1e-12)


def test_not_finite_first_batch_leaves_nothing():
    pca, X = PCA(2), rows()
    before = dict(vars(pca))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="row 0, column 0"):
        pca.partial_fit(X)
    assert vars(pca) == before


def test_a_failed_fit_keeps_the_fit_before(kind):
    pca = PCA(2).fit(rows())
    before = dict(vars(pca))
    X = rows((30, 7))
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        pca.fit(kind(X))
    assert vars(pca) == before


def test_a_failed_fit_keeps_the_batches_before():
    X = rows()
    pca = PCA(2).partial_fit(X[:20])
    with pytest.raises(ValueError, match="NaN"):
        pca.fit(np.full((5, 5), np.nan))
    assert_array_equal(
        pca.partial_fit(X[20:]).components_,
        PCA(2).partial_fit(X[:20]).partial_fit(X[20:]).components_,
    )


# Not numbers.


@pytest.mark.parametrize("kind", ["array", "csr", "npy", "torch", "strict"])
def test_complex(kind, tmp_path):
    refused(KINDS[kind](rows() + 1j, tmp_path), "omplex")


def test_complex_is_refused_as_scikit_learn_does():
    with pytest.raises(ValueError, match="Complex data not supported"):
        Theirs(2).fit(rows() + 1j)
    refused(rows() + 1j, "Complex data not supported")


@pytest.mark.parametrize("entry", ["red", [1, 2], {}], ids=str)
def test_an_entry_that_is_not_a_number(entry):
    X = rows().astype(object)
    X[6, 2] = entry
    with pytest.raises((ValueError, TypeError)) as theirs:
        Theirs(2).fit(X)
    refused(X, "row 6", "column 2", str(entry), "Encode", error=type(theirs.value))


def test_an_entry_of_a_dataframe_that_is_not_a_number():
    X = frame(rows(), None)
    X["x1"] = "red"
    refused(X, "row 0", "'x1'", "red")


def test_objects_that_are_numbers():
    found = PCA(2).fit(rows().astype(object))
    np.testing.assert_allclose(found.components_, PCA(2).fit(rows()).components_)


@pytest.mark.parametrize("X", [np.array([["1", "b"], ["c", "2"]]), [["1", "b"], ["c", "d"]]])
def test_strings(X):
    with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
        Theirs(1).fit(X)
    refused(X, "row 0", "column 1", "'b'", pca=PCA(1))


# Shapes.


@pytest.mark.parametrize(
    "X", [rows()[0], rows()[None], 3.0, []], ids=["1D", "3D", "0D", "empty list"]
)
def test_not_a_table(X):
    with pytest.raises(ValueError):  # noqa: PT011 (whatever it says)
        Theirs(1).fit(X)
    refused(X, "array")


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("kind", ["array", "csr", "npy", "torch", "strict"])
def test_empty(kind, shape, tmp_path):
    refused(KINDS[kind](np.zeros(shape), tmp_path), str(shape), "required", pca=PCA())


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_row(solver):
    refused(rows((1, 5)), "n_samples=1", "(1, 5)", pca=PCA(1, svd_solver=solver))


def test_one_row_of_any_kind(kind):
    refused(kind(rows((1, 5))), "n_samples=1")


def test_one_row_as_the_first_batch_has_no_variance_yet():
    pca = PCA(1)
    with pytest.raises(ValueError, match="n_samples=1"):
        pca.partial_fit(rows((1, 5)))
    assert not hasattr(pca, "components_")


@pytest.mark.parametrize("dims", [1, 3])
@pytest.mark.parametrize("kind", ["npy", "torch", "strict"])
def test_rows_of_other_dimensions(kind, dims, tmp_path):
    X = rows()[0] if dims == 1 else rows()[None]
    refused(KINDS[kind](X, tmp_path), "2D", str(X.shape), "eshape")


# Axes.


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(40, 5), (5, 40)], ids=["tall", "wide"])
def test_more_axes_than_there_are(solver, shape):
    refused(rows(shape), "n_components=6", "=5", pca=PCA(6, svd_solver=solver))


@pytest.mark.parametrize("solver", ["auto", "krylov", "covariance_eigh"])
def test_a_rule_that_asks_for_more_axes_than_there_are(solver):
    refused(rows(), "6", "5", pca=PCA(rules.Count(6), svd_solver=solver))


def test_a_sketch_too_small_for_the_axes():
    refused(rows(), "size=2", "n_components=3", pca=PCA(3, svd_solver=FrequentDirections(2)))


def test_an_unknown_solver():
    refused(rows(), "svd_solver", "'lanczos'", "'krylov'", pca=PCA(svd_solver="lanczos"))


def test_an_unknown_solver_of_a_method():
    refused(rows(), "'lanczos'", "krylov", pca=PCA(2, svd_solver=Covariance("lanczos")))


def test_mle_needs_more_rows_than_columns():
    refused(
        rows((5, 40)),
        "n_components='mle' is only supported if n_samples >= n_features",
        pca=PCA("mle"),
    )


@pytest.mark.parametrize("memory", [None, "64KiB"])
def test_a_sketch_cannot_scale(memory):
    # Where the budget is small, batches go through a sketch without being asked to.
    solver = FrequentDirections(5) if memory is None else "auto"
    pca = PCA(2, scale=True, svd_solver=solver)
    with config_context(memory=memory), warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        with pytest.raises(ValueError, match=r"scale=True.*Scale the rows first"):
            pca.partial_fit(rows((20, 60)))
    assert not hasattr(pca, "components_")


def test_a_sketch_cannot_scale_in_one_fit_either():
    refused(rows(), "scale=True", pca=PCA(2, scale=True, svd_solver=FrequentDirections(5)))


# No variance.


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e8 + 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_variance(solver, dtype, value):
    X = np.full((40, 5), value, dtype)
    pca = PCA(2, svd_solver=solver, random_state=0)
    with pytest.warns(UserWarning, match="no variance") as warned:
        pca.fit(X)
    assert len(warned) == 1  # in particular, none says that the solver did not converge
    assert_array_equal(pca.explained_variance_ratio_, 0.0)
    assert np.all(np.isfinite(pca.components_))
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(2), atol=1e-5)
    np.testing.assert_allclose(pca.transform(X), 0.0, atol=1e-6 * abs(value))


@pytest.mark.parametrize("kind", ["csr", "npy", "torch"])
def test_no_variance_in_rows_of_any_kind(kind, tmp_path):
    with pytest.warns(UserWarning, match="no variance"):
        pca = PCA(2).fit(KINDS[kind](np.full((40, 5), 3.0), tmp_path))
    assert_array_equal(np.asarray(pca.explained_variance_ratio_), 0.0)


def test_no_variance_of_z_scores():
    with pytest.warns(UserWarning, match="no variance"):
        pca = PCA(2, scale=True).fit(np.full((40, 5), 0.1))
    assert_array_equal(pca.scale_, 1.0)


# Weights.


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({3: -1.0}, ("sample_weight[3]", "-1.0", "not negative")),
        ({3: np.nan}, ("sample_weight[3]", "nan", "finite")),
        ({3: np.inf}, ("sample_weight[3]", "inf", "finite")),
        (dict.fromkeys(range(40), 0.0), ("zero", "sample_weight")),
        (dict.fromkeys(range(1, 40), 0.0), ("sample_weight sums to 1", "more than one row")),
        # Sums to one from above: the variance would be divided by rounding.
        (dict.fromkeys(range(40), (1 + 1e-12) / 40), ("sample_weight sums to 1", "Multiply")),
    ],
    ids=["negative", "NaN", "infinite", "all zero", "one row", "shares"],
)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_bad_weights(method, change, text):
    w = np.ones(40)
    for at, value in change.items():
        w[at] = value
    pca = PCA(2)
    before = dict(vars(pca))
    with pytest.raises(ValueError, match="sample_weight") as raised:
        getattr(pca, method)(rows(), sample_weight=w)
    for part in text:
        assert part in str(raised.value)
    assert vars(pca) == before


@pytest.mark.parametrize("shape", [(39,), (40, 1), (0,)], ids=str)
def test_weights_of_another_shape(shape):
    refused(rows(), "sample_weight", str(shape), "(40,)", sample_weight=np.ones(shape))


def test_weights_that_are_not_numbers():
    refused(rows(), sample_weight=["heavy"] * 40)
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        PCA(1).fit(rows(), sample_weight=["heavy"] * 40)


def test_weights_are_not_written_to():
    w = np.arange(40.0)
    w.setflags(write=False)
    PCA(2).fit(rows(), sample_weight=w)


# Files.


def test_a_missing_file(tmp_path):
    refused(tmp_path / "nowhere.npy", "nowhere.npy", error=FileNotFoundError)


def test_a_file_that_is_not_an_array(tmp_path):
    (tmp_path / "x.npy").write_text("1 2 3")
    refused(tmp_path / "x.npy", "x.npy", "not a .npy file", "numpy.save")


def test_a_file_of_another_kind(tmp_path):
    refused(str(tmp_path / "x.xlsx"), "x.xlsx", error=FileNotFoundError)
    (tmp_path / "x.xlsx").touch()
    refused(str(tmp_path / "x.xlsx"), "x.xlsx could not be read as a spreadsheet")
    refused(str(tmp_path / "x.abc"), "x.abc", "there is no such file", ".parquet")
    (tmp_path / "x.abc").touch()
    refused(str(tmp_path / "x.abc"), "x.abc", "is not known. Supported formats", ".parquet")


def test_a_truncated_file(tmp_path):
    path = saved(rows(), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    refused(path, "bad.npy", "truncated")


@pytest.mark.parametrize("dtype", ["complex128", "object"])
def test_a_file_of_another_dtype(tmp_path, dtype):
    refused(saved(rows().astype(dtype), tmp_path), "bad.npy", dtype, "float32 or float64")


def test_a_missing_file_to_transform(tmp_path):
    with pytest.raises(FileNotFoundError):
        PCA(2).fit(rows()).transform(tmp_path / "nowhere.npy")


# After a fit.


@pytest.mark.parametrize(
    "method", ["transform", "reconstruct", "reconstruction_error", "score_samples", "score"]
)
def test_another_number_of_columns(kind, method):
    X = rows((10, 4))
    pca = PCA(2).fit(rows())
    with pytest.raises(
        ValueError, match="X has 4 features, but PCA is expecting 5 features as input"
    ):
        getattr(pca, method)(kind(X))


def test_another_number_of_columns_in_a_batch(kind):
    pca = PCA(2).partial_fit(rows())
    before = pca.projection_
    with pytest.raises(ValueError, match="X has 4 features, but PCA is expecting 5"):
        pca.partial_fit(kind(rows((10, 4))))
    assert pca.projection_ is before


@pytest.mark.parametrize("n", [1, 3])
def test_another_number_of_scores(n):
    with pytest.raises(ValueError, match=f"X has {n} columns?, but PCA has 2 components"):
        PCA(2).fit(rows()).inverse_transform(np.zeros((4, n)))


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_renamed_columns(library):
    table = dict(zip("abcde", rows().T, strict=True))
    renamed = dict(zip("abXde", rows().T, strict=True))
    pca = PCA(2).fit(library.DataFrame(table))
    with pytest.raises(ValueError, match=r"feature names should match(.|\n)*X(.|\n)*c"):
        pca.transform(library.DataFrame(renamed))


def test_reordered_columns():
    X = frame(rows(), None)
    with pytest.raises(ValueError, match="same order"):
        PCA(2).fit(X).transform(X[X.columns[::-1]])


def test_lost_names_warn():
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        PCA(2).fit(frame(rows(), None)).transform(rows())


@pytest.mark.parametrize(
    "method",
    [
        "transform",
        "inverse_transform",
        "reconstruct",
        "reconstruction_error",
        "score_samples",
        "score",
    ],
)
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        getattr(PCA(2), method)(rows())


@pytest.mark.parametrize("method", ["get_covariance", "get_precision", "get_feature_names_out"])
def test_not_fitted_without_rows(method):
    with pytest.raises(NotFittedError):
        getattr(PCA(2), method)()


def test_loadings_of_nothing():
    assert not hasattr(PCA(2), "loadings_")


# Ctrl-C.


def blas():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.parametrize(
    ("solver", "fold"),
    [("full", TriangularFactor), ("covariance_eigh", Moments), ("krylov", CovarianceProduct)],
)
@pytest.mark.parametrize("fitted", [False, True])
def test_interrupted(monkeypatch, solver, fold, fitted):
    pca = PCA(2, svd_solver=solver)
    if fitted:
        pca.fit(rows())
    before, threads, add, calls = dict(vars(pca)), blas(), fold.add, []

    def interrupted(self, block):
        calls.append(block)
        if len(calls) == 4:
            raise KeyboardInterrupt
        add(self, block)

    monkeypatch.setattr(fold, "add", interrupted)
    with config_context(block_rows=5), pytest.raises(KeyboardInterrupt):
        pca.fit(rows(seed=1))
    assert vars(pca) == before
    assert blas() == threads


def test_interrupted_batch_leaves_the_state(monkeypatch):
    X = rows()
    pca = PCA(2).partial_fit(X[:20])
    expected = PCA(2).partial_fit(X[:20]).partial_fit(X[20:]).components_

    def interrupted(self, block):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(TriangularFactor, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pca.partial_fit(X[20:])
    assert_array_equal(pca.partial_fit(X[20:]).components_, expected)


def test_out_of_memory_says_what_would_do(tmp_path):
    path = saved(rows((20, 2000)), tmp_path)
    with config_context(memory="4KiB"):
        refused(path, "budget of 4.0 KiB", "config_context(memory=", error=MemoryError)


@pytest.mark.filterwarnings("ignore:overflow")
def test_distances_that_overflow():
    X = 1e20 * np.random.default_rng(0).standard_normal((30, 4))
    pca = PCA(2).fit(X.astype(np.float32))
    with pytest.raises(ValueError, match="squares overflow"):
        pca.reconstruction_error(X.astype(np.float32))
    assert np.isfinite(pca.reconstruction_error(X)).all()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (rows() + 1j, ("Complex data not supported", "complex128", "X.real")),
        (pd.DataFrame({"a": [1.0, 2.0], "t": pd.date_range("2020", periods=2)}), ("row 0", "'t'")),
        (
            pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}),
            ("'x'", "'name'", "Encode"),
        ),
    ],
)
def test_what_is_no_number_is_named(bad, words):
    with pytest.raises((ValueError, TypeError)) as error:
        PCA(1).fit(bad)
    for word in words:
        assert word in str(error.value)

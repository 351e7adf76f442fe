"""PCA among its neighbours: DataFrames, pipelines, searches, pickles, callbacks, other arrays."""

import io
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import PCA, config_context, rules
from mercer.estimators.pca import SOLVERS
from mercer.methods import Covariance, FrequentDirections, Iterative

FIGURES = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")
ATTRIBUTES = (*FIGURES, "mean_", "scale_", "loadings_")


def rows(shape=(90, 7), seed=0, dtype=np.float64):
    """Rows with a mean and a spectrum that falls by 0.6."""
    n, d = shape
    rng = np.random.default_rng(seed)
    r = min(n, d)
    left, _ = np.linalg.qr(rng.normal(size=(n, r)))
    right, _ = np.linalg.qr(rng.normal(size=(d, r)))
    return ((left * 10 * 0.6 ** np.arange(r)) @ right.T + rng.normal(size=d)).astype(dtype)


def same_fit(a, b):
    for name in ATTRIBUTES:
        assert_array_equal(getattr(a, name), getattr(b, name))


# DataFrames.

LIBRARIES = {"pandas": pd.DataFrame, "polars": lambda X, columns: pl.DataFrame(X, schema=columns)}
COLUMNS = list("abcdefg")


def test_names_of_the_scores():
    assert list(PCA(3).fit(rows()).get_feature_names_out()) == ["pca0", "pca1", "pca2"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_of_the_columns_are_kept(library):
    pca = PCA(3).fit(LIBRARIES[library](rows(), columns=COLUMNS))
    assert list(pca.feature_names_in_) == COLUMNS


@pytest.mark.parametrize("library", LIBRARIES)
def test_dataframes_give_what_arrays_give(library):
    X = LIBRARIES[library](rows(), columns=COLUMNS)
    assert_allclose(PCA(3).fit_transform(X), PCA(3).fit_transform(rows()), atol=1e-12)


@pytest.mark.parametrize("method", ["transform", "fit_transform"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_set_output(library, method):
    pca = PCA(3).fit(rows()).set_output(transform=library)
    out = getattr(pca, method)(rows())
    assert type(out).__module__.startswith(library)
    assert list(out.columns) == ["pca0", "pca1", "pca2"]
    assert_allclose(out.to_numpy(), PCA(3).fit_transform(rows()), atol=1e-12)


def test_set_output_keeps_the_index():
    X = pd.DataFrame(rows(), columns=COLUMNS, index=np.arange(90) + 1000)
    assert_array_equal(PCA(2).set_output(transform="pandas").fit_transform(X).index, X.index)


def test_names_are_forgotten_by_a_fit_without_them():
    pca = PCA(2).fit(pd.DataFrame(rows(), columns=COLUMNS)).fit(rows())
    assert not hasattr(pca, "feature_names_in_")


# Copies.


@pytest.mark.parametrize("solver", [*SOLVERS, Covariance("jacobi"), FrequentDirections(5)], ids=str)
def test_clone(solver):
    pca = PCA(rules.Fraction(0.9), svd_solver=solver, gap=0.1, scale=True, random_state=3)
    copy = clone(pca.fit(rows()) if solver == "full" else pca)
    assert copy.get_params() == pca.get_params()
    assert not hasattr(copy, "components_")


def through_joblib(x):
    file = io.BytesIO()
    joblib.dump(x, file)
    file.seek(0)
    return joblib.load(file)


COPIES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "joblib": through_joblib}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_goes_through_a_pickle(solver, copy):
    X = rows()
    pca = PCA(3, svd_solver=solver, random_state=0, scale=True, whiten=True).fit(X)
    other = copy(pca)
    same_fit(other, pca)
    assert_array_equal(other.transform(X), pca.transform(X))
    assert str(other.certificate_) == str(pca.certificate_)
    assert other.certificate_.gap.label == pca.certificate_.gap.label
    assert other.plan_.method == pca.plan_.method


@pytest.mark.parametrize("solver", ["auto", Covariance(), FrequentDirections(5)], ids=str)
def test_batches_go_on_after_a_pickle(solver):
    X = rows()
    pca = PCA(3, svd_solver=solver).partial_fit(X[:40])
    other = COPIES["pickle"](pca)
    same_fit(other, pca)
    same_fit(other.partial_fit(X[40:]), pca.partial_fit(X[40:]))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_pickle_does_not_hold_the_rows(method):
    X = rows((20_000, 7))
    assert len(pickle.dumps(getattr(PCA(3), method)(X))) < X.nbytes / 10


def test_a_pickle_of_a_fit_of_a_file_stands_alone(tmp_path):
    np.save(tmp_path / "x.npy", rows())
    dump = pickle.dumps(PCA(3).fit(tmp_path / "x.npy"))
    (tmp_path / "x.npy").unlink()
    assert_allclose(pickle.loads(dump).transform(rows()), PCA(3).fit_transform(rows()), atol=1e-9)


@pytest.mark.parametrize(
    ("pca", "text"),
    [
        (PCA(), "PCA()"),
        (PCA(0.9, gap=0.01), "PCA(gap=0.01, n_components=0.9)"),
        (PCA(svd_solver=Iterative("arpack")), "PCA(svd_solver=Iterative('arpack'))"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_repr(pca, text):
    assert repr(pca) == text


def test_repr_in_a_notebook():
    assert "PCA" in PCA(2).fit(rows())._repr_html_()


# Pipelines and searches.


class Weigher(BaseEstimator):
    """An estimator that takes no weights, to stand at the end of a pipeline."""

    def fit(self, X, y=None):
        self.X_ = X
        return self


@pytest.mark.parametrize("last", [False, True])
def test_weights_find_their_way_through_a_pipeline(last):
    X, w = rows(), np.arange(90)
    with sklearn.config_context(enable_metadata_routing=True):
        pca = PCA(3).set_fit_request(sample_weight=True)
        steps = [FunctionTransformer(), pca] if last else [pca, Weigher()]
        fitted = make_pipeline(*steps).fit(X, sample_weight=w).named_steps["pca"]
    assert_allclose(fitted.components_, PCA(3).fit(X, sample_weight=w).components_)


def test_weights_are_not_routed_unasked():
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(PCA(3), Weigher())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
            pipe.fit(rows(), sample_weight=np.ones(90))


def test_grid_search_over_axes_and_solvers():
    X = rows() + np.random.default_rng(0).normal(size=(90, 7))
    grid = {"n_components": [1, 3, 5], "svd_solver": ["full", "krylov", Covariance()]}
    search = GridSearchCV(PCA(random_state=0), grid, cv=KFold(3)).fit(X)
    scores = search.cv_results_["mean_test_score"].reshape(3, 3)
    assert_allclose(scores, np.broadcast_to(scores[:, :1], (3, 3)), rtol=1e-6)
    best = [cross_val_score(PCA(k), X, cv=KFold(3)).mean() for k in (1, 3, 5)]
    assert search.best_params_["n_components"] == [1, 3, 5][int(np.argmax(best))]


def test_grid_search_reaches_into_a_method():
    grid = {"svd_solver__size": [4, 6]}
    search = GridSearchCV(PCA(2, svd_solver=FrequentDirections(3)), grid, cv=2).fit(rows())
    assert search.best_estimator_.svd_solver.size in (4, 6)


def test_a_step_of_a_classifier():
    X, y = rows(), np.arange(90) % 2
    X[:, 0] += 3 * y
    pipe = Pipeline([("pca", PCA(0.99)), ("classify", LogisticRegression())]).fit(X, y)
    assert pipe.score(X, y) > 0.7


# Progress.


def test_progress_is_shown_when_asked_for(capsys):
    with config_context(progress=True):
        PCA(2).fit(rows())
    captured = capsys.readouterr()
    assert "triangular factor" in captured.err
    assert "100 %" in captured.err
    assert captured.out == ""


def test_progress_is_silent_by_default(capsys):
    PCA(2).fit(rows())
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


@pytest.mark.parametrize("act", ["transform", "partial_fit"])
def test_progress_of_other_passes(capsys, act):
    pca = PCA(2).fit(rows())
    with config_context(progress=True):
        getattr(pca, act)(rows())
    assert "100 %" in capsys.readouterr().err


class Recorder:
    """A callback that keeps what it heard."""

    def __init__(self):
        self.heard = []

    def setup(self, estimator, context):
        self.heard.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.heard.append(("end", context.task_name))

    def teardown(self, estimator, context):
        self.heard.append(("teardown", context.task_name))


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


@pytest.mark.usefixtures("callback")
def test_callbacks_hear_of_every_pass():
    recorder = Recorder()
    PCA(2, svd_solver="full").set_callbacks(recorder).fit(rows())
    assert recorder.heard == [
        ("setup", "fit"),
        ("begin", "fit"),
        ("begin", "triangular factor"),
        ("end", "triangular factor"),
        ("end", "fit"),
        ("teardown", "fit"),
    ]


@pytest.mark.usefixtures("callback")
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_what_begins_ends(method):
    recorder = Recorder()
    pca = PCA(2, svd_solver="krylov", random_state=0).set_callbacks(recorder)
    getattr(pca, method)(np.random.default_rng(0).normal(size=(200, 90)))
    begun = [name for event, name in recorder.heard if event == "begin"]
    assert begun.count("product") > 1
    assert sorted(begun) == sorted(name for event, name in recorder.heard if event == "end")


@pytest.mark.usefixtures("callback")
def test_callbacks_are_torn_down_when_a_fit_fails():
    recorder, X = Recorder(), rows()
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3"):
        PCA(2).set_callbacks(recorder).fit(X)
    assert recorder.heard[-1] == ("teardown", "fit")


def test_progress_bar_of_scikit_learn(callback, capsys):
    PCA(2).set_callbacks(callback.ProgressBar()).fit(rows())
    captured = capsys.readouterr()
    assert "PCA - fit" in captured.out + captured.err


@pytest.mark.usefixtures("callback")
def test_callbacks_leave_no_trace():
    pca = PCA(2).set_callbacks(Recorder()).fit(rows())
    assert {name for name in vars(pca) if "callback" in name} == {"_skl_callbacks"}


# Arrays of other libraries.


@pytest.fixture(params=["torch", "array_api_strict"])
def xp(request):
    return pytest.importorskip(request.param)


def is_of(array, xp):
    return type(array).__module__.split(".")[0] == xp.__name__


@pytest.mark.parametrize("shape", [(90, 7), (7, 90)], ids=["tall", "wide"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_fitted_attributes_live_where_the_rows_live(xp, solver, dtype, shape):
    X = rows(shape, dtype=dtype)
    pca = PCA(3, svd_solver=solver, random_state=0, scale=True).fit(xp.asarray(X))
    host = PCA(3, svd_solver=solver, random_state=0, scale=True).fit(X)
    tol = 1e-8 if dtype == "float64" else 2e-4
    for name in ATTRIBUTES:
        array = getattr(pca, name)
        assert is_of(array, xp), name
        assert array.dtype == getattr(xp, dtype), name
        assert_allclose(np.asarray(array), getattr(host, name), rtol=tol, atol=tol)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize(
    "method", ["transform", "fit_transform", "reconstruct", "reconstruction_error", "score_samples"]
)
def test_results_live_where_the_rows_live(xp, method, whiten):
    X = rows()
    out = getattr(PCA(3, whiten=whiten).fit(xp.asarray(X)), method)(xp.asarray(X))
    assert is_of(out, xp)
    expected = getattr(PCA(3, whiten=whiten).fit(X), method)(X)
    assert_allclose(np.asarray(out), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", ["get_covariance", "get_precision"])
def test_the_generative_model_lives_where_the_rows_live(xp, method):
    out = getattr(PCA(3).fit(xp.asarray(rows())), method)()
    assert is_of(out, xp)
    assert_allclose(np.asarray(out), getattr(PCA(3).fit(rows()), method)(), atol=1e-8)


def test_the_way_back_in_another_library(xp):
    X = rows()
    pca = PCA(3, whiten=True).fit(xp.asarray(X))
    back = pca.inverse_transform(pca.transform(xp.asarray(X)))
    assert is_of(back, xp)
    assert_allclose(np.asarray(back), PCA(3).fit(X).reconstruct(X), atol=1e-9)


def test_score_is_a_number_in_any_library(xp):
    X = rows()
    score = PCA(3).fit(xp.asarray(X)).score(xp.asarray(X))
    assert isinstance(score, float)
    assert score == pytest.approx(PCA(3).fit(X).score(X))


def test_batches_in_another_library(xp):
    X = rows()
    pca = PCA(3).partial_fit(xp.asarray(X[:40])).partial_fit(xp.asarray(X[40:]))
    assert is_of(pca.components_, xp)
    assert_allclose(np.asarray(pca.components_), PCA(3).fit(X).components_, atol=1e-9)


def test_weights_in_another_library(xp):
    X, w = rows(), np.arange(90.0)
    pca = PCA(3).fit(xp.asarray(X), sample_weight=xp.asarray(w))
    assert_allclose(
        np.asarray(pca.components_), PCA(3).fit(X, sample_weight=w).components_, atol=1e-9
    )


def test_integers_of_another_library(xp):
    X = np.round(rows() * 10).astype(np.int64)
    pca = PCA(3).fit(xp.asarray(X))
    assert pca.components_.dtype == xp.float64
    assert_allclose(np.asarray(pca.components_), PCA(3).fit(X).components_, atol=1e-9)


def test_a_fit_of_another_library_goes_through_a_pickle(xp):
    pca = PCA(3).fit(xp.asarray(rows()))
    other = pickle.loads(pickle.dumps(pca))
    assert_array_equal(np.asarray(other.components_), np.asarray(pca.components_))


def test_a_fit_of_arrays_projects_tensors(xp):
    pca = PCA(3).fit(rows())
    out = pca.transform(xp.asarray(rows()))
    assert_allclose(np.asarray(out), pca.transform(rows()), atol=1e-9)


def test_rows_that_need_gradients():
    torch = pytest.importorskip("torch")
    X = torch.asarray(rows()).requires_grad_()
    assert not PCA(2).fit(X).components_.requires_grad


def test_torch_is_not_imported_for_arrays():
    code = "import sys, mercer; mercer.PCA(1).fit([[1.0], [2.0]]); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

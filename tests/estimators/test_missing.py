"""PCA of rows with missing entries: `missing="em"` and "mean"."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from mercer import PCA, KernelPCA, NoveltyDetector, as_source, config_context, load, save
from mercer.methods import EM

COMPLETE = load_wine().data
MISSING = np.random.default_rng(0).random(COMPLETE.shape) < 0.2
X = np.where(MISSING, np.nan, COMPLETE)


def fit(rows=X, k=3, **settings):
    return PCA(k, scale=True, random_state=0, **{"missing": "em", **settings}).fit(rows)


MODEL = fit()


def test_complete_rows_are_fitted_and_certified_as_ever():
    plain, model = fit(COMPLETE, missing="error"), fit(COMPLETE)
    for name in ("components_", "explained_variance_", "mean_", "scale_", "noise_variance_"):
        np.testing.assert_allclose(getattr(model, name), getattr(plain, name), rtol=1e-12)
    assert model.certificate_.optimum_upper.kind == "bound"
    assert type(model.plan_.method) is type(plain.plan_.method)
    np.testing.assert_allclose(model.transform(COMPLETE), plain.transform(COMPLETE))
    np.testing.assert_allclose(model.score_samples(COMPLETE), plain.score_samples(COMPLETE))


def test_incomplete_rows_are_mapped_by_a_model_of_complete_ones():
    model = fit(COMPLETE)
    scores, spread = model.transform(X, return_std=True)
    true = model.transform(COMPLETE)
    whole = ~MISSING.any(axis=1)
    np.testing.assert_allclose(scores[whole], true[whole])
    assert (spread[whole] < 1e-6).all()
    assert (spread[~whole] > 0).all()
    within = np.abs(scores - true)[~whole] <= 2 * spread[~whole]
    assert 0.9 < within.mean() < 0.99  # 95 % of normal data


def test_variances_come_close_to_those_of_the_complete_rows():
    complete = fit(COMPLETE, missing="error").explained_variance_
    em = np.abs(MODEL.explained_variance_ / complete - 1)
    mean = np.abs(fit(missing="mean").explained_variance_ / complete - 1)
    assert (em[:2] < 0.06).all()
    assert (mean[:2] > 0.1).all()


def test_missing_entries_are_imputed_better_than_by_means():
    def error(filled):
        return (((filled - COMPLETE) / COMPLETE.std(axis=0))[MISSING] ** 2).mean()

    filled = MODEL.impute(X)
    np.testing.assert_array_equal(filled[~MISSING], X[~MISSING])
    assert error(filled) < 0.7 * error(fit(missing="mean").impute(X))


def test_means_are_those_of_an_imputer():
    model = fit(missing="mean")
    steps = make_pipeline(SimpleImputer(), PCA(3, scale=True)).fit(X)
    np.testing.assert_allclose(model.components_, steps[-1].components_, atol=1e-12)
    np.testing.assert_allclose(model.transform(X), steps.transform(X), atol=1e-9)
    np.testing.assert_allclose(model.fit_transform(X), steps.transform(X), atol=1e-9)
    np.testing.assert_allclose(model.impute(X), steps[0].transform(X))
    assert any("means of their columns" in note for note in model.certificate_.notes)


def test_the_certificate_calls_estimates_what_they_are():
    certificate = MODEL.certificate_
    assert certificate.captured.kind == certificate.gap.kind == "estimate"
    assert "(estimated)" in certificate.sentence
    assert "21.1 % of the entries are missing" in str(certificate)


FORMS = {
    "float32": lambda: X.astype(np.float32),
    "masked": lambda: np.ma.masked_array(COMPLETE, MISSING),
    "pandas": lambda: pd.DataFrame(X, columns=[f"x{i}" for i in range(13)]),
    "nullable": lambda: pd.DataFrame(X, columns=[f"x{i}" for i in range(13)]).astype("Float64"),
    "polars": lambda: pl.DataFrame(X, schema=[f"x{i}" for i in range(13)]).fill_nan(None),
    "source": lambda: as_source(X),
    "sparse": lambda: scipy.sparse.csr_array((COMPLETE[~MISSING], np.nonzero(~MISSING)), X.shape),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_missing_entries(form):
    rows = FORMS[form]()
    model = fit(rows)
    rough = 1e-4 if form == "float32" else 1e-9
    np.testing.assert_allclose(model.explained_variance_, MODEL.explained_variance_, rtol=rough)
    scores = model.transform(rows)
    scores = scores.collect() if form == "source" else scores
    np.testing.assert_allclose(scores, MODEL.transform(X), atol=100 * rough)


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_files(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    names = [f"x{i}" for i in range(13)]
    if suffix == "npy":
        np.save(path, X)
    elif suffix == "csv":
        pd.DataFrame(X, columns=names).to_csv(path, index=False)
    else:
        pd.DataFrame(X, columns=names).to_parquet(path)
    model = fit(path)
    np.testing.assert_allclose(model.explained_variance_, MODEL.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.transform(path).collect(), MODEL.transform(X), atol=1e-7)


def test_dask():
    array = pytest.importorskip("dask.array")
    model = fit(array.from_array(X, chunks=(60, -1)))
    np.testing.assert_allclose(model.explained_variance_, MODEL.explained_variance_, rtol=1e-6)
    scores = model.transform(array.from_array(X, chunks=(50, -1)))
    np.testing.assert_allclose(scores.compute(), MODEL.transform(X), atol=1e-3)


def test_it_is_saved_and_cloned(tmp_path):
    save(MODEL, tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.transform(X), MODEL.transform(X))
    np.testing.assert_array_equal(again.impute(X), MODEL.impute(X))
    model = clone(PCA(missing=EM("none", max_iter=7))).set_params(missing__tol=0.1)
    assert model.missing.max_iter == 7
    assert model.missing.tol == 0.1


def test_a_memory_limit_is_kept():
    rows = np.tile(X, (100, 1))
    free = fit(rows)
    with config_context(memory="1MiB"):
        model = fit(rows)
    np.testing.assert_allclose(model.explained_variance_, free.explained_variance_, rtol=1e-3)


def test_cross_validation_chooses_the_number():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 3)) * (4, 3, 2) @ rng.standard_normal((3, 12))
    rows += 0.5 * rng.standard_normal(rows.shape)
    assert PCA("cv", random_state=0).fit(rows).n_components_ == 3
    rows[rng.random(rows.shape) < 0.3] = np.nan
    assert PCA("cv", missing="em", random_state=0).fit(rows).n_components_ == 3


def test_a_share_of_the_variance_chooses_the_number():
    model = fit(k=0.8)
    shares = model.explained_variance_ratio_.cumsum()
    assert shares[-1] > 0.8 >= shares[-2]


def test_rows_without_entries_have_the_mean_as_their_score():
    rows = X.copy()
    rows[5] = np.nan
    model = fit(rows)
    scores, spread = model.transform(rows[5:6], return_std=True)
    np.testing.assert_allclose(scores, 0.0, atol=1e-9)
    np.testing.assert_allclose(spread[0] ** 2, model.explained_variance_, rtol=0.15)
    assert any("1 row has no entries" in note for note in model.certificate_.notes)


def test_refusals():
    empty = X.copy()
    empty[:, 4] = np.nan
    frame = pd.DataFrame(empty, columns=[f"x{i}" for i in range(13)])
    for missing in ("em", "mean"):
        with pytest.raises(ValueError, match=r"1 column of X \('x4'\) has no entries"):
            fit(frame, missing=missing)
    infinite = X.copy()
    infinite[3, 2] = np.inf
    for missing in ("em", "mean"):
        with pytest.raises(ValueError, match=r"infinity .* row 3, column 2"):
            fit(infinite, missing=missing)
        with pytest.raises(ValueError, match=r"infinity .* row 3, column 2"):
            fit(missing=missing).transform(infinite)
    with pytest.raises(ValueError, match="center=True"):
        PCA(2, center=False, missing="em").fit(X)
    with pytest.raises(ValueError, match=r"NaN.*row 0.*missing='em'"):
        PCA(2).fit(X)
    with pytest.raises(ValueError, match=r"NaN.*PCA\(missing='em'\)"):
        KernelPCA(2).fit(X)
    with pytest.raises(ValueError, match=r"partial_fit.*missing"):
        PCA(2, missing="em").partial_fit(X)
    with pytest.raises(AttributeError, match="no attribute 'impute'"):
        PCA(2).fit(COMPLETE).impute(X)
    with pytest.raises(ValueError, match="return_std"):
        fit(COMPLETE, missing="error").transform(COMPLETE, return_std=True)


def test_iterations_that_stop_early_warn():
    with pytest.warns(UserWarning, match="max_iter"):
        fit(missing=EM(max_iter=2))


def test_novelty_of_incomplete_rows():
    detector = NoveltyDetector(PCA(3, scale=True, missing="em", random_state=0)).fit(X)
    assert np.isfinite(detector.score_samples(X)).all()

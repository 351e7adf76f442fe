"""`feature_weight`: what it takes, what it refuses, and the estimators built on PCA."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

from mercer import (
    PCA,
    Denoiser,
    KernelPCA,
    NearestProjection,
    NoveltyDetector,
    SubspaceClassifier,
    as_source,
    config_context,
    load,
    metrics,
    save,
)
from mercer.estimators.inspection import FittedSpectrum
from mercer.methods import FrequentDirections
from mercer.rules import MLE, BrokenStick, GavishDonoho, Kaiser
from tests.modelfile.bits import same_model, saved

WINE = load_wine(as_frame=True)
TABLE, CULTIVAR = WINE.data.iloc[:, :6], WINE.target.to_numpy()
X, NAMES = TABLE.to_numpy(), list(TABLE.columns)
W = np.array([1.0, 0.5, 0.0, 0.01, 2.0, 3.0])
ROOTED = X * np.sqrt(W)


def weights_of(weights, rows=TABLE):
    return PCA(2, feature_weight=weights).fit(rows).projection_.weights


# What it takes.


@pytest.mark.parametrize(
    "weights",
    [
        W.tolist(),
        tuple(W),
        W.astype(np.float32),
        pd.Series(W),
        pd.Series(W[::-1], index=NAMES[::-1]),
        dict(zip(reversed(NAMES), reversed(W), strict=True)),
        np.ma.array(W),
    ],
    ids=lambda w: type(w).__name__,
)
def test_arrays_and_names(weights):
    np.testing.assert_allclose(weights_of(weights), W, rtol=1e-7)


def test_integers_and_tensors():
    torch = pytest.importorskip("torch")
    assert np.array_equal(weights_of(np.arange(6)), np.arange(6))
    model = PCA(2, feature_weight=torch.tensor(W))
    assert torch.is_tensor(model.fit(torch.tensor(X)).components_)
    model = clone(model)
    for start in (0, 90):
        model.partial_fit(torch.tensor(X[start : start + 90]))
    np.testing.assert_allclose(model.transform(X), PCA(2, feature_weight=W).fit_transform(X))


def test_names_of_a_file(tmp_path):
    TABLE.to_csv(tmp_path / "wine.csv", index=False)
    weights = dict(zip(NAMES, W, strict=True))
    assert np.array_equal(weights_of(weights, tmp_path / "wine.csv"), W)
    assert np.array_equal(weights_of(weights, as_source(TABLE)), W)


def test_the_model_does_not_follow_an_array_that_changes():
    mine = W.copy()
    model = PCA(2, feature_weight=mine).fit(X)
    before = model.transform(X)
    mine[:] = 1.0
    assert np.array_equal(model.transform(X), before)


def test_weights_of_one_change_nothing():
    plain, ones = PCA(3).fit(X), PCA(3, feature_weight=np.ones(6)).fit(X)
    assert np.array_equal(plain.transform(X), ones.transform(X))
    assert np.array_equal(plain.get_covariance(), ones.get_covariance())


# What it refuses.


@pytest.mark.parametrize(
    ("weights", "rows", "message"),
    [
        ([1.0, 2.0], X, r"shape \(2,\), but X has 6 columns. Pass one weight for each"),
        (W[None, :], X, r"shape \(1, 6\), but X has 6 columns"),
        ([1, 1, -0.5, 1, 1, 1], X, r"feature_weight\[2\] is -0.5.*not negative; 0 leaves"),
        ([1, 1, 1, np.nan, 1, 1], X, r"feature_weight\[3\] is nan"),
        ([1, 1, 1, np.inf, 1, 1], X, r"feature_weight\[3\] is inf"),
        (np.zeros(6), X, r"All entries of feature_weight are zero.*Pass a positive weight"),
        (["a"] * 6, X, r"feature_weight must be numbers, one for each of 6 columns"),
        (W * 1j, X, r"must be numbers.*complex"),
        (np.ma.masked_less(W, 0.1), X, r"masked entries. Fill them; feature_weight.filled\(0\)"),
        (2.0, X, r"The 'feature_weight' parameter of PCA must be an array-like"),
        ("ash", X, r"The 'feature_weight' parameter of PCA must be an array-like"),
        (dict.fromkeys(NAMES, 1.0), X, r"has names, but the columns of X have none"),
        (pd.Series(W, index=NAMES), X, r"has names, but the columns of X have none"),
        (dict.fromkeys(NAMES[1:], 1.0), TABLE, r"no weight for 'alcohol'"),
        (dict.fromkeys([*NAMES, "x"], 1.0), TABLE, r"weights for 'x', which X does not have"),
        ({**dict.fromkeys(NAMES, 1.0), "ash": -2.0}, TABLE, r"feature_weight\['ash'\] is -2.0"),
        (pd.Series(np.r_[W, 1], index=[*NAMES, "ash"]), TABLE, r"two weights of one name"),
    ],
)
@pytest.mark.parametrize("do", ["fit", "plan", "partial_fit"])
def test_refusals(do, weights, rows, message):
    model = PCA(2, feature_weight=weights)
    with pytest.raises(ValueError, match=message):
        getattr(model, do)(rows)
    assert not hasattr(model, "components_")


def test_entries_of_a_column_of_weight_zero_must_be_numbers():
    rows = X.copy()
    rows[5, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        PCA(2, feature_weight=W).fit(rows)


@pytest.mark.parametrize("first", [None, W, W.tolist(), pd.Series(W)], ids=str)
def test_batches_have_the_same_weights(first):
    model = PCA(2, feature_weight=first).partial_fit(X[:90])
    assert model.partial_fit(X[90:]).n_samples_seen_ == len(X)
    with pytest.raises(ValueError, match="svd_solver and feature_weight cannot change"):
        model.set_params(feature_weight=W + 1.0).partial_fit(X)


# Model files.


@pytest.mark.parametrize("weights", [W, W.tolist(), dict(zip(NAMES, W, strict=True))], ids=str)
def test_model_files(weights, tmp_path):
    model = PCA(3, scale=True, feature_weight=weights).fit(TABLE)
    again = saved(model, tmp_path)
    same_model(model, again, TABLE)
    assert np.array_equal(again.scale_, model.scale_)


@pytest.mark.parametrize("solver", ["auto", FrequentDirections(4)])
def test_a_saved_stream_goes_on(solver, tmp_path):
    whole, half = (PCA(2, svd_solver=solver, feature_weight=W, random_state=0) for _ in "ab")
    for rows in (X[:90], X[90:]):
        whole.partial_fit(rows)
    save(half.partial_fit(X[:90]), tmp_path / "m.mercer")
    half = load(tmp_path / "m.mercer").partial_fit(X[90:])
    assert np.array_equal(half.transform(X), whole.transform(X))
    assert half.certificate_.optimum_upper == whole.certificate_.optimum_upper


def test_a_checkpoint_is_of_its_weights(tmp_path):
    class StopError(Exception):
        pass

    with config_context(checkpoint=tmp_path / "run", checkpoint_seconds=1e-9, block_rows=50):
        with pytest.MonkeyPatch.context() as patch:

            def stop(*_, **__):
                raise StopError

            patch.setattr("mercer.methods.linear.direct.linear_axes", stop)
            with pytest.raises(StopError):
                PCA(2, feature_weight=W, random_state=0).fit(X)
        with pytest.raises(ValueError, match="feature_weight"):
            PCA(2, feature_weight=W + 1, random_state=0).fit(X)
        model = PCA(2, feature_weight=W, random_state=0).fit(X)
    expected = PCA(2, feature_weight=W).fit_transform(X)
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-12)


# The fitted model, and what is built on it.


def test_scale_can_be_replaced():
    model = PCA(2, scale=True, feature_weight=W).fit(X)
    model.scale_ = 2.0 * model.scale_
    expected = PCA(2, scale=True, feature_weight=W).fit(X).transform(X) / 2.0
    np.testing.assert_allclose(model.transform(X), expected)


def test_a_classifier_compares_weighted_distances():
    weights = dict(zip(NAMES, W, strict=True))
    model = SubspaceClassifier(PCA(2, feature_weight=weights)).fit(TABLE, CULTIVAR)
    other = SubspaceClassifier(PCA(2)).fit(ROOTED, CULTIVAR)
    expected = other.reconstruction_error(ROOTED)
    np.testing.assert_allclose(model.reconstruction_error(TABLE), expected, rtol=1e-8)
    with pytest.raises(ValueError, match="5 components span the whole space of n_features=5"):
        SubspaceClassifier(PCA(5, feature_weight=W)).fit(X, CULTIVAR)


@pytest.mark.parametrize("cv", [None, 5])
def test_a_detector_scores_weighted_distances(cv):
    model = NoveltyDetector(PCA(2, feature_weight=pd.Series(W, index=NAMES)), cv=cv).fit(TABLE)
    other = NoveltyDetector(PCA(2), cv=cv).fit(ROOTED)
    decision = other.decision_function(ROOTED)
    np.testing.assert_allclose(model.decision_function(TABLE), decision, rtol=1e-7, atol=1e-9)


def test_a_denoiser_returns_units_of_the_data():
    weights = dict(zip(NAMES, W, strict=True))
    model = Denoiser(PCA(feature_weight=weights), n_components=[1, 3], noise=0.1, random_state=0)
    rows = np.asarray(model.fit(TABLE).transform(TABLE))
    k = model.n_components_
    Z = ROOTED - ROOTED.mean(axis=0)
    V = np.linalg.svd(Z)[2][:k].T
    some = W > 0
    expected = X.mean(axis=0) + np.where(some, Z @ V @ V.T / np.sqrt(np.where(some, W, 1.0)), 0.0)
    np.testing.assert_allclose(rows, expected, atol=1e-9)


def test_neighbors_are_those_of_weighted_projections():
    model = NearestProjection(PCA(2, feature_weight=W)).fit(X[::2], CULTIVAR[::2])
    other = NearestProjection(PCA(2)).fit(ROOTED[::2], CULTIVAR[::2])
    assert np.array_equal(model.predict(X), other.predict(ROOTED))


def test_metrics():
    model, other = PCA(2, feature_weight=W).fit(X), PCA(2).fit(ROOTED)
    error = metrics.empirical_error(other, ROOTED)
    assert metrics.empirical_error(model, X) == pytest.approx(error, rel=1e-10)
    assert metrics.operator_distance(model, clone(model).fit(X[::-1])) <= 1e-10
    for different in (other, PCA(2, feature_weight=2.0 * W).fit(X)):
        with pytest.raises(ValueError, match="different spaces, of weighted rows of 6 columns"):
            metrics.operator_distance(model, different)


def test_rules_of_reports_do_not_count_columns_of_weight_zero():
    model, other = PCA(feature_weight=W).fit(X), PCA().fit(np.delete(ROOTED, 2, axis=1))
    for rule in (Kaiser(), BrokenStick(), MLE(), GavishDonoho()):
        assert FittedSpectrum(model).cut(rule) == FittedSpectrum(other).cut(rule)


def test_a_kernel_has_no_such_parameter():
    with pytest.raises(TypeError):
        KernelPCA(feature_weight=W)

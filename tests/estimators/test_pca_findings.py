"""What reviews found once: each stays mended."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import sklearn.decomposition
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import mercer
from mercer import PCA, config_context, rules
from mercer.methods import Covariance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) @ RNG.normal(size=(8, 8)) + 3


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_likelihood_of_float32_rows_is_that_of_float64(load):
    B = load().data
    single = PCA().fit(B.astype(np.float32))
    expected = sklearn.decomposition.PCA().fit(B).score(B)
    assert single.score(B.astype(np.float32)) == pytest.approx(expected, abs=2e-2)
    assert single.score(B) == pytest.approx(expected, abs=2e-2)
    assert PCA().fit(B).score(B.astype(np.float32)) == pytest.approx(expected, abs=2e-2)


def test_weights_that_sum_to_less_than_the_columns():
    light = PCA().fit(X, sample_weight=np.full(60, 0.1))
    assert light.n_components_ == 8
    assert np.allclose(np.abs(light.components_), np.abs(PCA().fit(X).components_))
    few = PCA().fit(X[:6], sample_weight=[1, 1, 0, 0, 0, 0])
    assert few.n_components_ == 6
    assert few.explained_variance_ratio_[0] == pytest.approx(1.0)


class Never(rules.Rule):
    def choose(self, values, total, n, d):
        return None


@pytest.mark.parametrize("solver", ["auto", "full", "krylov", "covariance_eigh", "dot"])
def test_a_rule_that_never_chooses(solver):
    with pytest.raises(ValueError, match=r"Never\(\) was shown all 8 eigenvalues"):
        PCA(Never(), svd_solver=solver).fit(X)


def test_progress_is_a_line_a_kind_of_pass(capsys):
    wide = RNG.normal(size=(200, 900))
    with config_context(progress=True):
        PCA(3, svd_solver="krylov", random_state=0).fit(wide)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert 1 <= len(lines) <= 4
    assert any("product" in line for line in lines)


def test_attributes_that_users_change_are_used():
    pca = PCA(4).fit(X)
    expected = pca.transform(X)
    pca.components_ = pca.components_[:2]
    assert np.allclose(pca.transform(X), expected[:, :2])
    pca.mean_ = np.zeros(8)
    assert np.allclose(pca.transform(X), X @ pca.components_.T)


def test_a_pickle_holds_the_axes_once():
    pca = PCA(20).fit(RNG.normal(size=(100, 4000)))
    stored = pickle.dumps(pca)
    assert len(stored) <= 1.3 * pca.components_.nbytes
    again = pickle.loads(stored)
    again.components_ *= -1
    assert np.allclose(again.projection_.components, -pca.projection_.components)


def test_a_stream_goes_on_as_it_began():
    pca = PCA(3).partial_fit(X[:30])
    with pytest.raises(ValueError, match="center, scale and svd_solver cannot change"):
        pca.set_params(center=False).partial_fit(X[30:])
    mixed = PCA(3).partial_fit(X[:30]).partial_fit(X[30:].astype(np.float32))
    assert mixed.components_.dtype == np.float64
    assert "batches" in mixed.plan_.reason


def test_batches_are_exact_as_long_as_they_can_be():
    W = RNG.normal(size=(300, 600))
    with config_context(memory="16MiB"):
        pca = PCA(5).partial_fit(W[:150]).partial_fit(W[150:])
    assert isinstance(pca.plan_.method, Covariance)
    assert np.allclose(pca.explained_variance_, PCA(5).fit(W).explained_variance_)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (X + 1j, ("Complex data not supported", "complex128", "X.real")),
        (pd.DataFrame({"a": [1.0, 2.0], "t": pd.date_range("2020", periods=2)}), ("row 0", "'t'")),
        (
            pd.DataFrame({"a": [1.0, 2.0], "name": ["x", "y"]}),
            ("'x'", "column 1 ('name')", "Encode"),
        ),
    ],
)
def test_what_is_no_number_is_named(bad, words):
    with pytest.raises((ValueError, TypeError)) as error:
        PCA(1).fit(bad)
    for word in words:
        assert word in str(error.value)


def test_words_for_weights():
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        PCA(1).fit(X, sample_weight=["a"] * 60)


def test_settings_hold_in_every_thread():
    seen = []
    mercer.set_config(memory="1GiB")
    try:
        thread = threading.Thread(target=lambda: seen.append(mercer.get_config().memory))
        thread.start()
        thread.join()
    finally:
        mercer.set_config(memory=None)
    assert seen == ["1GiB"]


def test_a_lazy_result_says_what_it_is(tmp_path):
    np.save(tmp_path / "rows.npy", X)
    scores = PCA(2).fit(X).transform(tmp_path / "rows.npy")
    assert repr(scores) == "<Mapped of 60 × 2 float64; collect() gives the rows>"

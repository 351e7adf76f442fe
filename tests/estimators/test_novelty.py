"""NoveltyDetector: distances and thresholds against plain NumPy; what it composes with."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.decomposition
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, NoveltyDetector, as_source, config_context
from mercer.kernels import Substring


def feature_distances(X, rows, k, gamma):
    """Squared distances to k axes of the centred kernel matrix, after Hoffmann (2007)."""
    K = rbf_kernel(X, gamma=gamma)
    H = np.eye(len(X)) - 1 / len(X)
    values, V = np.linalg.eigh(H @ K @ H)
    A = V[:, ::-1][:, :k] / np.sqrt(values[::-1][:k])
    h = rbf_kernel(rows, X, gamma=gamma)
    spherical = 1 - 2 * h.mean(axis=1) + K.mean()
    y = (h - h.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()) @ A
    return spherical - (y**2).sum(axis=1)


def linear_distances(X, rows, k):
    model = sklearn.decomposition.PCA(k, svd_solver="full").fit(X)
    return ((rows - model.inverse_transform(model.transform(rows))) ** 2).sum(axis=1)


def outliers(detector, X):
    return int((detector.predict(X) == -1).sum())


@pytest.fixture(name="X")
def rows(rng):
    return rng.normal(size=(80, 4)) * [3, 2, 1, 0.5]


def test_the_distance_in_feature_space(X, rng):
    new = rng.normal(size=(30, 4)) * 3
    detector = NoveltyDetector(KernelPCA(12, kernel="rbf", gamma=0.1)).fit(X)
    np.testing.assert_allclose(
        detector.score_samples(new), -feature_distances(X, new, 12, 0.1), rtol=0, atol=1e-12
    )


def test_of_pca_it_is_the_reconstruction_error(X, rng):
    new = rng.normal(size=(30, 4))
    detector = NoveltyDetector(PCA(2)).fit(X)
    np.testing.assert_allclose(detector.score_samples(new), -linear_distances(X, new, 2))


@pytest.mark.parametrize("contamination", [0.01, 0.05, 0.1, 1 / 3, 0.5])
@pytest.mark.parametrize("estimator", [None, PCA(2)])
def test_the_share_of_the_rows_of_the_fit(X, estimator, contamination):
    detector = NoveltyDetector(estimator, contamination=contamination).fit(X)
    assert outliers(detector, X) == int(80 * contamination)
    scores = detector.score_samples(X)
    np.testing.assert_array_equal(detector.decision_function(X), scores - detector.offset_)
    np.testing.assert_array_equal(detector.predict(X), np.where(scores < detector.offset_, -1, 1))


def test_less_than_one_row_encloses_all_of_them(X):
    detector = NoveltyDetector(PCA(2), contamination=1e-9).fit(X)
    assert outliers(detector, X) == 0
    assert detector.offset_ == pytest.approx(-linear_distances(X, X, 2).max(), rel=1e-12)


def test_the_threshold_is_half_way_between_two_rows(X):
    distances = np.sort(linear_distances(X, X, 2))[::-1]
    detector = NoveltyDetector(PCA(2), contamination=0.1).fit(X)
    assert detector.offset_ == pytest.approx(-(distances[7] + distances[8]) / 2)


def test_weights_are_counts(X, rng):
    w = rng.integers(0, 4, len(X))
    for estimator in (PCA(2), KernelPCA(5, kernel="rbf", gamma=0.1), None):
        weighed = NoveltyDetector(estimator).fit(X, sample_weight=w)
        repeated = NoveltyDetector(estimator).fit(np.repeat(X, w, axis=0))
        assert weighed.offset_ == pytest.approx(repeated.offset_, rel=1e-9)
        np.testing.assert_array_equal(weighed.predict(X), repeated.predict(X))


@pytest.mark.parametrize("copies", [3, 7])
def test_copies_of_a_row_are_on_one_side(X, copies):
    """7 copies of 80 rows: a tenth would cut through the copies of one of them."""
    X = np.repeat(X[:76], copies, axis=0)
    for estimator in (PCA(2), None):
        found = NoveltyDetector(estimator).fit_predict(X).reshape(76, copies)
        assert (found == found[:, :1]).all()
        assert (found[:, 0] == -1).sum() == 7


@pytest.mark.parametrize("estimator", [PCA(), KernelPCA(kernel="rbf", gamma=1.0)])
def test_distances_that_are_rounding(X, estimator):
    """With all axes nothing of a row of the fit is left: none may be novel by chance."""
    with pytest.warns(UserWarning, match="reconstruct every row exactly.*fewer components"):
        detector = NoveltyDetector(estimator).fit(X)
    assert outliers(detector, X) == 0
    assert outliers(detector, X[::-1]) == 0
    assert outliers(detector, X[:1]) == 0


def test_rounding_of_a_kernel_far_from_zero(X):
    """Rounding errors are those of the length of Φ(x), not of its variance."""
    far = X[:30] + 1000
    with pytest.warns(UserWarning, match="reconstruct every row exactly"):
        assert outliers(NoveltyDetector(KernelPCA(kernel="poly")).fit(far), far) == 0


@pytest.mark.filterwarnings("ignore")
def test_rows_that_are_all_the_same():
    detector = NoveltyDetector(PCA(0)).fit(np.ones((9, 2)))
    np.testing.assert_array_equal(detector.predict([[1, 1], [1, 2]]), [1, -1])


def test_small_distances_of_pca_are_no_rounding(rng):
    X = rng.normal(size=(100, 1)) @ rng.normal(size=(1, 5)) + 1e-9 * rng.normal(size=(100, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert outliers(NoveltyDetector(PCA(1)).fit(X), X) == 10


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_the_default_suits_rows_of_any_scale(X, scale):
    usual, scaled = NoveltyDetector().fit(X), NoveltyDetector().fit(scale * X)
    np.testing.assert_array_equal(usual.predict(X), scaled.predict(scale * X))


def test_held_out_rows_give_an_honest_threshold(rng):
    """Axes are nearer to the rows that they were fitted to: the false alarms of new rows."""
    X, new = rng.normal(size=(2, 300, 20))
    own, held = NoveltyDetector().fit(X), NoveltyDetector(cv=5).fit(X)
    assert outliers(own, X) == 30
    assert outliers(own, new) / 300 > 0.25
    assert outliers(held, new) / 300 == pytest.approx(0.1, abs=0.05)


def test_the_threshold_of_held_out_rows(X):
    cv = KFold(4, shuffle=True, random_state=0)
    truth = np.empty(80)
    for train, test in cv.split(X):
        truth[test] = linear_distances(X[train], X[test], 2)
    truth = np.sort(truth)[::-1]
    for rows in (X, X.tolist(), scipy.sparse.coo_array(X), pd.DataFrame(X, columns=list("abcd"))):
        detector = NoveltyDetector(PCA(2), cv=cv).fit(rows)
        assert detector.offset_ == pytest.approx(-(truth[7] + truth[8]) / 2)


@pytest.mark.parametrize("estimator", [None, PCA(2)])
def test_the_same_for_any_block_size_and_source(X, tmp_path, estimator):
    np.save(tmp_path / "X.npy", X)
    truth = NoveltyDetector(estimator).fit(X)
    with config_context(memory="256KiB"):
        others = [NoveltyDetector(estimator).fit(x) for x in (tmp_path / "X.npy", as_source(X))]
    for other in others:
        assert other.offset_ == pytest.approx(truth.offset_, rel=1e-10)
        np.testing.assert_array_equal(other.predict(tmp_path / "X.npy"), truth.predict(X))


def test_weights_of_a_source(X, rng):
    w = rng.integers(1, 4, len(X)).astype(float)
    given = NoveltyDetector(PCA(2)).fit(X, sample_weight=w)
    own = NoveltyDetector(PCA(2)).fit(as_source(X).weighted(w))
    assert own.offset_ == given.offset_


def test_float32_sparse_and_strings(X):
    truth = NoveltyDetector(PCA(2)).fit(X)
    coarse = NoveltyDetector(PCA(2)).fit(X.astype(np.float32))
    assert coarse.score_samples(X.astype(np.float32)).dtype == np.float64
    assert coarse.offset_ == pytest.approx(truth.offset_, rel=1e-5)
    sparse = NoveltyDetector(PCA(2)).fit(scipy.sparse.csr_array(X))
    assert sparse.offset_ == pytest.approx(truth.offset_)
    words = ["kernel", "kernels", "kernal", "colonel", "kennel"]
    detector = NoveltyDetector(KernelPCA(2, kernel=Substring(2)), contamination=0.01).fit(words)
    np.testing.assert_array_equal(detector.predict(["kernel", "xyzxyz"]), [1, -1])


def test_arrays_of_another_library_stay_there(X):
    xp = pytest.importorskip("array_api_strict")
    truth, there = NoveltyDetector(PCA(2)).fit(X), xp.asarray(X)
    detector = NoveltyDetector(PCA(2)).fit(there)
    assert isinstance(detector.score_samples(there), type(there))
    np.testing.assert_array_equal(np.from_dlpack(detector.predict(there)), truth.predict(X))
    assert NoveltyDetector(PCA(2), cv=3).fit(there).offset_ < 0


def test_composition(X):
    y = np.r_[np.zeros(60), np.ones(20)]
    X = X + 4 * y[:, None]
    piped = make_pipeline(StandardScaler(), NoveltyDetector(contamination=0.05)).fit(X)
    assert outliers(piped, X) == 4
    table = pd.DataFrame(X, columns=list("abcd"))
    detector = NoveltyDetector(PCA(2)).fit(table)
    assert list(detector.feature_names_in_) == list("abcd")
    assert detector.n_features_in_ == 4
    again = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(again.decision_function(table), detector.decision_function(table))
    assert not hasattr(clone(detector), "offset_")

    def separation(model, X, y):
        return roc_auc_score(y, -model.score_samples(X))

    grid = {"estimator__gamma": [0.01, 0.1], "estimator__n_components": [2, 5]}
    search = GridSearchCV(NoveltyDetector(KernelPCA(kernel="rbf")), grid, scoring=separation, cv=2)
    search.fit(X[np.argsort(np.arange(80) % 2)], y[np.argsort(np.arange(80) % 2)])
    assert search.best_params_["estimator__gamma"] in (0.01, 0.1)
    more = NoveltyDetector(PCA(2)).set_params(estimator__n_components=3).fit(X)
    assert more.estimator_.n_components_ == 3


def test_the_estimator_given_is_not_touched(X):
    model = PCA(2)
    detector = NoveltyDetector(model).fit(X)
    assert not hasattr(model, "components_")
    assert detector.estimator_ is not model


def test_a_failed_fit_changes_nothing(X):
    detector = NoveltyDetector(PCA(2)).fit(X)
    before = dict(vars(detector))
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3, column 1"):
        detector.fit(bad)
    with pytest.raises(ValueError, match="one per row"):
        detector.fit(X, sample_weight=[1, 2])
    assert vars(detector) == before
    fresh = NoveltyDetector(KernelPCA(2, kernel="precomputed"))
    with pytest.raises(ValueError, match="Use the kernel itself"):
        fresh.fit(X @ X.T)
    assert not hasattr(fresh, "estimator_")


@pytest.mark.parametrize("contamination", [0, -0.1, 0.51, 1, np.nan, None, "auto"])
def test_contamination_out_of_range(X, contamination):
    with pytest.raises(ValueError, match=r"contamination.*\(0.0, 0.5\]"):
        NoveltyDetector(contamination=contamination).fit(X)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (
            sklearn.decomposition.PCA(2),
            "has no reconstruction_error. NoveltyDetector takes a mercer.PCA",
        ),
        ("rbf", "'rbf' has no fit"),
        (PCA, "is a class"),
    ],
)
def test_what_cannot_be_inside(X, estimator, match):
    with pytest.raises(TypeError, match=match):
        NoveltyDetector(estimator).fit(X)


def test_nan_is_named_by_the_default_too(X):
    X = X.copy()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="row 3, column 1"):
        NoveltyDetector().fit(X)


def test_bad_rows(X, tmp_path):
    detector = NoveltyDetector(PCA(2)).fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but PCA is expecting 4"):
        detector.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"shape \(5, 4, 4\).*X.reshape\(5, -1\)"):
        NoveltyDetector().fit(np.zeros((5, 4, 4)))
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(TypeError, match=r"cv=3 needs the rows in memory.*cv=None"):
        NoveltyDetector(cv=3).fit(tmp_path / "X.npy")
    with pytest.raises(TypeError, match="cannot split rows without labels"):
        NoveltyDetector(PCA(2), cv=StratifiedKFold(3)).fit(X)
    with pytest.raises(ValueError, match=r"does not provide k\(x, x\) of test rows"):
        NoveltyDetector(KernelPCA(2, kernel="precomputed"), cv=3).fit(X @ X.T)
    with pytest.raises(ValueError, match="Row 40 is in no test fold"):
        NoveltyDetector(PCA(2), cv=[(np.arange(40, 80), np.arange(40))]).fit(X)


def test_a_share_that_is_a_whole_number_of_rows_but_for_rounding():
    assert 0.29 * 100 < 29
    rows = np.random.default_rng(0).normal(size=(100, 4))
    found = NoveltyDetector(PCA(2), contamination=0.29).fit_predict(rows)
    assert (found == -1).sum() == 29


def test_held_out_distances_are_to_axes_of_weighted_rows():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(60, 4)), rng.integers(1, 5, 60).astype(float)
    fold = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
    found = NoveltyDetector(PCA(2), contamination=0.1, cv=fold).fit(rows, sample_weight=weights)
    left = np.zeros(60)
    for train, test in fold:
        model = PCA(2).fit(rows[train], sample_weight=weights[train])
        left[test] = model.reconstruction_error(rows[test])
    beyond = weights[left > -found.offset_].sum() / weights.sum()
    furthest = np.sort(left)[::-1]
    last = int((left > -found.offset_).sum())
    assert beyond <= 0.1
    assert found.offset_ == pytest.approx(-(furthest[last - 1] + furthest[last]) / 2)

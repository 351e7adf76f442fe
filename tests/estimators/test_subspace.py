"""Subspace classifiers: distances against plain NumPy, forms of rows, bad input, composition."""

import gc
import pickle
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    PCA,
    KernelPCA,
    SubspaceClassifier,
    as_source,
    config_context,
    landmarks,
)
from mercer.kernels import RBF, Polynomial, Substring
from mercer.methods import RandomFeatures, Reduced, Subset

X, Y = load_iris(return_X_y=True)
NEW = X[::7] + 0.1
NAMES = np.array(["setosa", "versicolor", "virginica"], dtype=object)
DEFAULT = KernelPCA(0.9, kernel="rbf", gamma="scale")


def fit(estimator=None, X=X, y=Y, weights=None):
    return SubspaceClassifier(estimator).fit(X, y, sample_weight=weights)


def plain(rows, new, k, center):
    """Squared distances from the first k axes, by an SVD."""
    mean = rows.mean(axis=0) if center else np.zeros(rows.shape[1])
    axes = np.linalg.svd(rows - mean, full_matrices=False)[2][:k]
    apart = new - mean
    return ((apart - apart @ axes.T @ axes) ** 2).sum(axis=1)


def plain_kernel(kernel, rows, new, k, center):
    """The same in a kernel's space, by the eigenvectors of the kernel matrix."""
    K, h, own = kernel(rows), kernel(new, rows), np.array([kernel(x[None])[0, 0] for x in new])
    share = np.full(len(rows), center / len(rows))
    H = np.eye(len(rows)) - share
    values, V = np.linalg.eigh(H.T @ K @ H)
    A = H @ V[:, ::-1][:, :k] / np.sqrt(values[::-1][:k])
    y = (h - share @ K) @ A
    return own - 2 * h @ share + share @ K @ share - (y**2).sum(axis=1)


# Laws.


@pytest.mark.parametrize("center", [True, False])
def test_distances_are_those_of_an_svd(center):
    found = fit(PCA(2, center=center))
    truth = np.column_stack([plain(X[c == Y], NEW, 2, center) for c in range(3)])
    assert_allclose(found.reconstruction_error(NEW), truth, rtol=1e-9, atol=1e-12)
    assert_allclose(found.decision_function(NEW), -truth, rtol=1e-9, atol=1e-12)
    assert_array_equal(found.predict(NEW), truth.argmin(axis=1))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", [RBF(0.3), Polynomial(2)], ids=str)
def test_distances_are_those_of_the_kernel_matrix(kernel, center):
    found = fit(KernelPCA(4, kernel=kernel, center=center))
    truth = np.column_stack([plain_kernel(kernel, X[c == Y], NEW, 4, center) for c in range(3)])
    assert_allclose(found.reconstruction_error(NEW), truth, rtol=1e-7, atol=1e-9)


def test_it_is_the_least_residual_not_the_most():
    assert fit(KernelPCA(5, kernel="rbf", gamma=0.5)).score(X, Y) > 0.95
    assert fit(PCA(2)).score(X, Y) > 0.95


def test_the_longest_projection_wins_only_where_nothing_is_centred():
    found = fit(KernelPCA(5, kernel=RBF(0.5), center=False))
    lengths = [(model.transform(NEW) ** 2).sum(axis=1) for model in found.estimators_]
    assert_array_equal(found.predict(NEW), np.argmax(lengths, axis=0))
    found = fit(KernelPCA(5, kernel=RBF(0.5)))
    lengths = [(model.transform(NEW) ** 2).sum(axis=1) for model in found.estimators_]
    assert (found.predict(NEW) != np.argmax(lengths, axis=0)).any()


def test_two_classes():
    found = fit(PCA(1), y=Y == 1)
    left = found.reconstruction_error(NEW)
    score = found.decision_function(NEW)
    assert score.shape == (len(NEW),)
    assert_array_equal(score, left[:, 0] - left[:, 1])
    assert_array_equal(found.predict(NEW), score > 0)
    assert found.classes_.dtype == bool


@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_what_the_rows_tell_of_the_kernel_is_told_by_all_of_them(gamma):
    found = fit(KernelPCA(3, kernel="rbf", gamma=gamma))
    whole = KernelPCA(3, kernel="rbf", gamma=gamma).fit(X).gamma_
    assert [model.gamma_ for model in found.estimators_] == [whole] * 3
    assert fit(KernelPCA(3, kernel="rbf")).estimators_[1].gamma_ == 1 / 4
    assert found.estimator.gamma == gamma


@pytest.mark.parametrize("random_state", [None, 3, np.random.RandomState(0)])
def test_features_are_the_same_for_every_class(random_state):
    method = RandomFeatures(60)
    found = fit(KernelPCA(3, kernel="rbf", method=method, random_state=random_state))
    first, *others = [model.projection_.map.frequencies for model in found.estimators_]
    for other in others:
        assert_array_equal(other.omega, first.omega)


def test_the_same_for_any_block_and_any_source(tmp_path):
    model = KernelPCA(4, kernel="rbf", method=Subset(0.4, "kmeans"), random_state=0)
    found = fit(model)
    truth = found.decision_function(NEW)
    for rows in (1, 7, 1000):
        with config_context(block_rows=rows):
            assert_allclose(fit(model).decision_function(NEW), truth, rtol=1e-9)
            assert_allclose(found.decision_function(NEW), truth, rtol=1e-12)
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "new.npy", NEW)
    from_file = fit(model, str(tmp_path / "rows.npy"))
    assert_allclose(from_file.decision_function(tmp_path / "new.npy"), truth, rtol=1e-9)
    assert_array_equal(fit(model, as_source(X)).predict(as_source(NEW)), found.predict(NEW))


@pytest.mark.parametrize("model", [DEFAULT, KernelPCA(3, kernel="rbf", method=Subset(0.3))])
def test_distances_of_all_classes_are_those_of_each_model(model):
    centres = np.array([X[c == Y].mean(axis=0) for c in range(3)])
    centres += np.array([[1e3], [0.1], [-0.1]])  # the first class is far from zero
    rows = X - centres[Y]
    found = fit(clone(model).set_params(random_state=0), rows)
    alone = np.column_stack([each.reconstruction_error(rows) for each in found.estimators_])
    assert_allclose(found.reconstruction_error(rows), alone, rtol=1e-9, atol=1e-12)


def test_distances_to_more_points_than_are_joined():
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((4200, 2)), np.repeat([0, 1], 2100)
    found = fit(KernelPCA(1, kernel="rbf", eigen_solver="krylov", random_state=0), rows, y)
    alone = np.column_stack([each.reconstruction_error(NEW[:, :2]) for each in found.estimators_])
    assert_allclose(found.reconstruction_error(NEW[:, :2]), alone, rtol=1e-9, atol=1e-12)


def test_rows_are_read_once():
    found, passes = fit(DEFAULT), []

    class Counted(type(as_source(NEW))):
        def __init__(self, rows):
            super().__init__(rows)
            self.parallel = False

        def read(self, start, stop):
            passes.append(start)
            return super().read(start, stop)

    with config_context(block_rows=5):
        found.predict(Counted(NEW))
    # Every class while a block is there; never back to an earlier one.
    assert passes == sorted(passes)
    assert set(passes) == set(range(0, len(NEW), 5))


@pytest.mark.parametrize("estimator", [None, PCA(2), KernelPCA(3, kernel="rbf", center=False)])
def test_weights_are_counts(estimator):
    counts = np.random.default_rng(0).integers(0, 4, len(X))
    weighed = fit(estimator, weights=counts)
    repeated = fit(estimator, X.repeat(counts, axis=0), Y.repeat(counts))
    tolerance = {"rtol": 1e-6, "atol": 1e-9}
    assert_allclose(weighed.decision_function(NEW), repeated.decision_function(NEW), **tolerance)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("model", [PCA(1), KernelPCA(2, kernel="rbf")])
def test_a_row_of_weight_two_is_two_rows(model, center):
    model = clone(model).set_params(center=center)
    rows, y = np.vstack([X[:1], X[100:]]), np.repeat([0, 1], [1, 50])
    twice, labels = np.vstack([X[:1], rows]), np.append(0, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class without variance
        weighed = fit(model, rows, y, np.append(2.0, np.ones(50)))
        repeated = fit(model, twice, labels)
    assert_allclose(weighed.decision_function(NEW), repeated.decision_function(NEW), rtol=1e-9)
    assert weighed.predict(X[:1]) == [0]


@pytest.mark.parametrize("gamma", ["scale", "median", 0.3])
@pytest.mark.parametrize("total", [1.0, 1e-9, 1.000001, 100.0])
def test_weights_below_one_have_no_scale(gamma, total):
    model = KernelPCA(0.9, kernel="rbf", gamma=gamma)
    shares = np.full(len(Y), total / len(Y))
    expected = fit(model).decision_function(NEW)
    assert_allclose(fit(model, weights=shares).decision_function(NEW), expected, atol=1e-9)
    small = np.where(Y == 0, 1e-3, 1.0)  # one class alone
    if gamma == 0.3:
        found = fit(model, weights=small).decision_function(NEW)
        assert_allclose(found, expected, atol=1e-9)


def test_boosting():
    boosted = AdaBoostClassifier(SubspaceClassifier(PCA(1)), n_estimators=5, random_state=0)
    assert boosted.fit(X, Y).score(X, Y) > 0.9


def test_one_class_is_in_memory_at_a_time():
    parts, alive = [], []

    class Watched(type(as_source(X))):
        def take(self, at):
            rows = super().take(at).copy()
            if len(at) == 50:
                gc.collect()
                alive.append(sum(part() is not None for part in parts))
                parts.append(weakref.ref(rows))
            return rows

    fit(PCA(2), Watched(X))
    assert len(alive) == 3
    assert max(alive) <= 1


def test_classes_without_weight_are_not_there():
    weights = np.where(Y == 1, 0.0, 1.0)
    found = fit(PCA(2), weights=weights)
    assert_array_equal(found.classes_, [0, 2])
    assert found.decision_function(NEW).shape == (len(NEW),)
    with pytest.raises(ValueError, match=r"At least 2 classes are needed, but y has 1 class"):
        fit(PCA(2), weights=np.where(Y == 1, 1.0, 0.0))


# More axes than there can be.


@pytest.mark.parametrize("model", [PCA(20), KernelPCA(20, kernel="linear")])
def test_a_small_class_takes_the_axes_it_has(model):
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((64, 30)), np.repeat(["few", "many"], [4, 60])
    with pytest.warns(UserWarning, match=r"n_components=20 is too many for class 'few' \(4 rows\)"):
        found = fit(model, rows, y)
    assert [one.n_components_ for one in found.estimators_] == [3, 20]
    left = found.reconstruction_error(rows)
    # A kernel's distance is a difference of squares.
    assert_allclose(left[:4, 0], 0, atol=1e-20 if isinstance(model, PCA) else 1e-13)
    assert_allclose(left[4:, 0], plain(rows[:4], rows[4:], 3, True), rtol=1e-9)
    assert found.score(rows, y) > 0.9


def test_a_small_basis_takes_the_axes_it_has():
    method = Reduced(0.1)
    y = np.repeat(["a", "b"], [130, 20])
    with pytest.warns(UserWarning, match=r"n_components=4 is too many for class 'b' \(20 rows\)"):
        found = fit(KernelPCA(4, kernel="rbf", method=method, random_state=0), y=y)
    assert [len(model.X_fit_) for model in found.estimators_] == [13, 2]
    assert found.estimators_[1].n_components_ <= 2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_axes_without_variance_are_none(dtype):
    rng = np.random.default_rng(1)
    flat = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 8)) + 3
    rows = np.vstack([flat, rng.standard_normal((40, 8))]).astype(dtype)
    y = np.repeat([0, 1], 40)
    found = fit(PCA(5), rows, y)
    assert [model.n_components_ for model in found.estimators_] == [2, 5]
    truth = plain(rows[:40].astype(float), rows[40:].astype(float), 2, True)
    assert_allclose(found.reconstruction_error(rows[40:])[:, 0], truth, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_classes_of_rows_that_are_all_the_same():
    rows, y = np.repeat(np.eye(3), 4, axis=0), np.repeat([0, 1, 2], 4)
    found = fit(PCA(2), rows, y)
    assert_allclose(found.reconstruction_error(np.eye(3)), 2 * (1 - np.eye(3)), atol=1e-12)


def test_a_subspace_that_holds_the_other_classes_too():
    quadric = KernelPCA(kernel=Polynomial(2), center=False)  # all 15 axes of the space
    with pytest.warns(UserWarning, match=r"Other classes lie in the subspace of class 0, 1, 2"):
        fit(quadric)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(clone(quadric).set_params(n_components=6))
        fit(DEFAULT)
        fit(KernelPCA(kernel=RBF(1.0)))


# Forms of rows.


def test_labels_of_any_kind():
    for labels in (NAMES, NAMES.astype(str), np.array([-1, 7, 100]), np.array([0.0, 1.0, 5.0])):
        found = fit(PCA(2), y=labels[Y])
        assert_array_equal(found.classes_, labels)
        assert_array_equal(found.predict(NEW), labels[fit(PCA(2)).predict(NEW)])


def test_tables_with_names():
    table = pd.DataFrame(X, columns=list("abcd"))
    found = fit(None, table, pd.Series(NAMES[Y]))
    assert list(found.feature_names_in_) == list("abcd")
    assert_allclose(found.decision_function(table), fit().decision_function(X))
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(table[list("dcba")])
    with pytest.warns(UserWarning, match="valid feature names"):
        found.predict(X)


@pytest.mark.parametrize("model", [PCA(2), DEFAULT], ids=["PCA", "KernelPCA"])
def test_sparse_rows(model):
    found = fit(model, scipy.sparse.csr_array(X))
    dense = fit(model)
    assert_allclose(
        found.decision_function(scipy.sparse.csc_array(NEW)), dense.decision_function(NEW)
    )
    assert_allclose(
        dense.decision_function(scipy.sparse.csr_array(NEW)), dense.decision_function(NEW)
    )


def test_strings():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list(ab), 12)) for ab in ("aaab", "abbb") for _ in range(30)]
    y = np.repeat(["more a", "more b"], 30)
    found = fit(KernelPCA(2, kernel=Substring(2)), words, y)
    assert found.score(words, y) > 0.8
    assert not hasattr(found, "n_features_in_")
    with pytest.raises(ValueError, match="fitted to strings"):
        found.predict(X)
    numbers = fit(DEFAULT)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        numbers.predict(words)
    assert numbers.n_features_in_ == 4


def test_single_precision():
    found = fit(None, X.astype(np.float32))
    assert_allclose(
        found.decision_function(NEW.astype(np.float32)), fit().decision_function(NEW), atol=1e-4
    )


def test_rows_are_not_written_to():
    rows, y, weights = X.copy(), Y.copy(), np.ones(len(Y))
    for part in (rows, y, weights):
        part.flags.writeable = False
    fit(None, rows, y, weights).predict(rows)


# Chance.


def test_a_random_state_settles_everything():
    method = Subset(0.2)
    for state in (0, np.random.RandomState(0)):
        model = KernelPCA(3, kernel="rbf", method=method, random_state=state)
        first, second = fit(model), fit(clone(model))
        assert_array_equal(first.decision_function(NEW), second.decision_function(NEW))
    seed = fit(KernelPCA(3, kernel="rbf", method=method, random_state=4)).estimators_[2]
    alone = KernelPCA(3, kernel="rbf", method=method, random_state=4).fit(X[Y == 2])
    assert_array_equal(seed.transform(NEW), alone.transform(NEW))


# Bad input.

ONE = np.where(np.arange(150) == 17, "alone", NAMES[Y].astype(str))
HOLE = X.copy()
HOLE[143, 2] = np.nan


@pytest.mark.parametrize(
    ("estimator", "rows", "y", "words"),
    [
        (None, X, ONE, r"Class 'alone' has one row, but a subspace needs at least two"),
        (PCA(2, center=False), X, ONE, r"Class 'alone' has one row"),
        (
            None,
            X,
            np.zeros(150),
            r"At least 2 classes are needed.* 1 class with weight, 0.0",
        ),
        (None, X, np.linspace(0, 1, 150), r"Unknown label type: continuous"),
        (None, X, Y[:-1], r"X has 150 rows, but y has 149 labels"),
        (None, X, None, r"requires y to be passed"),
        (None, X, np.where(Y == 0, np.nan, Y), r"Input y contains NaN"),
        (None, HOLE, Y, r"row 143, column 2"),
        (PCA(2), HOLE, Y, r"row 143, column 2"),
        (PCA(2, scale=True), X, Y, r"scale=True.*StandardScaler"),
        (PCA(), X, Y, r"In class 0 \(50 rows\): 4 components span the whole space of n_features=4"),
        (PCA(4), X, Y, r"whole space"),
        (PCA(0.999), X, Y, r"whole space"),
        (KernelPCA(), X, Y, r"whole space"),
        (PCA(5), X, Y, r"In class 0 \(50 rows\): n_components=5 must be between"),
        (KernelPCA(2, kernel="precomputed"), X @ X.T, Y, r"precomputed.*Use the kernel itself"),
        (KernelPCA(2, kernel="rbf", gamma=-1.0), X, Y, r"^RBF: gamma=-1.0"),
        (KernelPCA(2, kernel="chi"), X, Y, r"^'chi': 'chi' at character 1 is unknown"),
        (KernelPCA(2, method=Subset(60)), X, Y, r"In class 0 \(50 rows\): n_basis=60 is more"),
        (KernelPCA(2, method=Subset(select=[0, 9])), X, Y, r"selects rows by index"),
        (decomposition.PCA(2), X, Y, r"must be an instance of 'mercer.estimators.pca.PCA'"),
        (LogisticRegression(), X, Y, r"instance of 'mercer.*KernelPCA' or None"),
        (make_pipeline(PCA(2)), X, Y, r"must be an instance"),
    ],
)
def test_bad_input_leaves_nothing_half_fitted(estimator, rows, y, words):
    fresh = SubspaceClassifier(estimator)
    before = dict(vars(fresh))
    fitted = fit(PCA(1)).set_params(estimator=estimator)
    known, scores = dict(vars(fitted)), fitted.decision_function(NEW)
    for model, state in ((fresh, before), (fitted, known)):
        with pytest.raises(ValueError, match=words):
            model.fit(rows, y)
        assert vars(model) == state
    assert_array_equal(fitted.decision_function(NEW), scores)


def test_rows_that_cannot_be_judged():
    found = fit(DEFAULT)
    with pytest.raises(ValueError, match=r"3 features, but SubspaceClassifier is expecting 4"):
        found.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"row 143, column 2"):
        found.predict(HOLE)
    with pytest.raises(ValueError, match=r"shape \(5, 2, 2\).*X.reshape\(5, -1\)"):
        found.predict(X[:5].reshape(5, 2, 2))


def test_points_may_be_given():
    points = X[::5]
    found = fit(KernelPCA(3, kernel="rbf", method=Subset(select=points)))
    assert [len(model.X_fit_) for model in found.estimators_] == [len(points)] * 3
    assert found.score(X, Y) > 0.9


# Composition.


def test_searches_reach_into_the_model():
    grid = {"estimator__gamma": [1e-6, 0.5], "estimator__method__n_basis": [0.1, 0.5]}
    model = KernelPCA(3, kernel="rbf", method=Subset(0.1), random_state=0)
    search = GridSearchCV(SubspaceClassifier(model), grid, cv=3).fit(X, Y)
    assert search.best_params_["estimator__gamma"] == 0.5
    assert search.best_score_ > 0.9


def test_pipelines_and_calibration():
    steps = make_pipeline(StandardScaler(), SubspaceClassifier(PCA(2)))
    assert cross_val_score(steps, X, Y, cv=3).mean() > 0.85
    for y in (Y, Y == 1):
        sure = CalibratedClassifierCV(SubspaceClassifier(), cv=3).fit(X, y, np.ones(len(y)))
        chances = sure.predict_proba(X)
        assert_allclose(chances.sum(axis=1), 1)
        assert (sure.classes_[chances.argmax(axis=1)] == y).mean() > 0.9


def test_several_labels_a_row():
    several = np.column_stack([Y == 0, Y > 0, X[:, 0] > 6])
    for wrapper in (OneVsRestClassifier, MultiOutputClassifier, ClassifierChain):
        found = wrapper(SubspaceClassifier(KernelPCA(0.95, kernel="rbf"))).fit(X, several)
        assert (found.predict(X) == several).mean() > 0.9
    assert OneVsRestClassifier(SubspaceClassifier()).fit(X, Y).score(X, Y) > 0.9


def test_bags():
    bags = BaggingClassifier(SubspaceClassifier(), 5, random_state=0).fit(X, NAMES[Y])
    assert bags.score(X, NAMES[Y]) > 0.9


def test_copies():
    found = fit(KernelPCA(3, kernel="rbf", method=Subset(0.3), random_state=0))
    other = pickle.loads(pickle.dumps(found))
    assert_array_equal(other.decision_function(NEW), found.decision_function(NEW))
    copy = clone(found)
    assert copy.estimator.method == Subset(0.3)
    assert not hasattr(copy, "estimators_")
    assert "KMeans" in repr(SubspaceClassifier(KernelPCA(method=Subset(9, landmarks.KMeans()))))

"""Denoiser against models fitted by hand, and among its neighbours."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mercer import PCA, Denoiser, KernelPCA, SaltAndPepper
from mercer.data import Source, as_source
from mercer.kernels import RBF, Polynomial
from mercer.methods import Reduced, Subset
from mercer.preimage import PREIMAGES, FixedPoint

RBF_AXES = KernelPCA(4, kernel="rbf", gamma=0.5, preimage="fixed_point")


def ring(n=150, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    return clean, clean + noise * rng.normal(size=clean.shape)


def plane(n=400, d=20, rank=5, sigma=1.0, seed=0):
    """Rows of a plane, and the same with noise."""
    rng = np.random.default_rng(seed)
    clean = 3 * rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    return clean, clean + sigma * rng.normal(size=clean.shape)


def validation_rows(n, validation=0.1, weights=None):
    """Return the rows by which a denoiser with random_state=0 compares candidates, and the rest."""
    numbered = np.column_stack([np.arange(n), np.random.default_rng(0).normal(size=(n, 2))])
    numbers = []

    def noise(rows, rng):
        numbers.extend(rows[:, 0].astype(int))
        return rows

    denoiser = Denoiser(PCA(), n_components=[1, 2], noise=noise, random_state=0)
    denoiser.set_params(validation=validation).fit(numbered, sample_weight=weights)
    return np.array(numbers), np.setdiff1d(np.arange(n), numbers)


# Denoised rows.


def test_linear_axes_reconstruct():
    _, X = plane()
    made = Denoiser(PCA(3)).fit(X).transform(X)
    assert_array_equal(made, PCA(3).fit(X).reconstruct(X))
    peer = decomposition.PCA(3).fit(X)
    assert_allclose(made, peer.inverse_transform(peer.transform(X)), atol=1e-10)


def test_rbf_axes_end_at_mikas_fixed_point():
    _, X = ring(noise=0.1)
    axes = clone(RBF_AXES).set_params(preimage=FixedPoint(tol=1e-10))
    made = Denoiser(axes).fit(X).transform(X[:20])
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    n = len(X)
    H = np.eye(n) - 1 / n
    values, V = np.linalg.eigh(H @ K @ H)
    A = V[:, -4:] / np.sqrt(values[-4:])
    scores = (K[:20] - K.mean(axis=0)) @ H @ A
    gamma = scores @ (H @ A).T + 1 / n
    weights = gamma * np.exp(-0.5 * ((made[:, None] - X) ** 2).sum(axis=2))
    assert_allclose(weights @ X / weights.sum(axis=1)[:, None], made, atol=1e-7)


def test_a_ring_is_found_again():
    clean, noisy = ring(400, noise=0.15)
    unseen, rough = ring(100, noise=0.15, seed=1)
    denoiser = Denoiser(n_components=[2, 4, 6, 8], gamma=[0.1, 0.5, 2.0], random_state=0)
    kernel = -denoiser.fit(noisy, clean).score(rough, unseen)
    linear = -Denoiser(PCA(1)).fit(clean).score(rough, unseen)
    assert kernel < 0.65 * np.mean((rough - unseen) ** 2) < linear
    radius = np.linalg.norm(denoiser.transform(rough), axis=1)
    assert radius.std() < 0.2 * np.linalg.norm(rough, axis=1).std()


def test_limits_cut_off():
    _, X = plane()
    made = Denoiser(PCA(3), limits=(-1, 2)).fit(X).transform(X)
    assert_array_equal(made, np.clip(PCA(3).fit(X).reconstruct(X), -1, 2))


@pytest.mark.parametrize(
    ("kernel", "way"),
    [
        ("rbf", "fixed_point"),
        (RBF(0.1), "fixed_point"),
        ("linear", "fixed_point"),
        ("poly", "gradient"),
        (Polynomial(2), "gradient"),
        ("rbf(0.1) + linear", "gradient"),
        (lambda x, y: float(x @ y), "ridge"),
    ],
)
def test_the_way_back_suits_the_kernel(kernel, way):
    X = np.abs(plane(40, 5)[1])
    denoiser = Denoiser(KernelPCA(2, kernel=kernel)).fit(X)
    assert isinstance(denoiser.estimator_.preimage_, PREIMAGES[way])
    assert np.isfinite(denoiser.transform(X)).all()
    assert denoiser.estimator.preimage is None


def test_random_features_learn_the_way_back_from_scores():
    X = np.random.default_rng(0).normal(size=(60, 3))
    axes = KernelPCA(5, kernel="rbf", method="features", random_state=0)
    denoiser = Denoiser(axes).fit(X)
    assert not axes.fit_inverse_transform
    model = clone(axes).set_params(fit_inverse_transform=True).fit(X)
    np.testing.assert_allclose(denoiser.transform(X), model.reconstruct(X))


def test_the_way_back_of_the_user_is_kept():
    X = plane(40, 5)[1]
    kept = Denoiser(KernelPCA(2, kernel="rbf", gamma=0.01, fit_inverse_transform=True)).fit(X)
    assert kept.estimator_.preimage is None
    peer = KernelPCA(2, kernel="rbf", gamma=0.01, fit_inverse_transform=True).fit(X)
    assert_array_equal(kept.transform(X), peer.inverse_transform(peer.transform(X)))


def test_without_an_estimator_the_axes_are_those_above_the_noise():
    _, X = plane(sigma=1.0)
    denoiser = Denoiser().fit(X)
    assert denoiser.n_components_ == 5
    assert denoiser.gamma_ is None
    assert isinstance(Denoiser(gamma=0.1).fit(X).estimator_, KernelPCA)


# The choice.

MODELS = {
    "linear": PCA(),
    "exact": KernelPCA(kernel="rbf", gamma=0.01, preimage="fixed_point"),
    "subset": KernelPCA(kernel=RBF(0.01), method=Subset(select=range(30)), preimage="distances"),
    "reduced": KernelPCA(
        kernel=RBF(0.01), method=Reduced(select=range(30)), preimage="fixed_point"
    ),
    "ridge": KernelPCA(kernel="rbf", gamma=0.01, preimage="ridge"),  # fitted again for fewer
}


@pytest.mark.parametrize("name", MODELS)
def test_errors_of_candidates_are_those_of_their_own_fits(name):
    X = plane(60, 6, rank=2)[int(name in ("subset", "reduced", "ridge"))]
    calls, model = [], MODELS[name]

    def noise(rows, rng):
        calls.append(rows.copy())
        return rows + np.sin(100 * rows)

    gammas = [0.001, 0.01] if name == "exact" else [None]
    denoiser = Denoiser(model, n_components=[3, 1, 2], noise=noise, validation=20, limits=(-9, 9))
    denoiser.set_params(gamma=gammas if name == "exact" else None).fit(X)
    (out,) = calls
    assert out.shape == (20, 6)
    rest = np.array([row for row in X if not (row == out).all(axis=1).any()])
    assert len(rest) == 40

    def fit(k, gamma, rows):
        own = clone(model).set_params(n_components=k)
        return (own if gamma is None else own.set_params(gamma=gamma)).fit(rows)

    errors = []
    for gamma in gammas:
        for k in (3, 1, 2):
            rows = fit(k, gamma, rest).reconstruct(out + np.sin(100 * out))
            errors.append(np.mean((np.clip(rows, -9, 9) - out) ** 2))
    table = denoiser.validation_error_
    assert_allclose(table["error"], errors, rtol=1e-5)
    best = int(np.argmin(errors))
    assert denoiser.n_components_ == table["n_components"][best] == [3, 1, 2][best % 3]
    if name == "exact":
        assert denoiser.gamma_ == table["gamma"][best] == gammas[best // 3]
    whole = fit(denoiser.n_components_, denoiser.gamma_ if name == "exact" else None, X)
    assert_allclose(denoiser.transform(X), np.clip(whole.reconstruct(X), -9, 9), atol=1e-9)


def test_gamma_of_a_kernel_object():
    X = plane(60, 6)[0]
    axes = KernelPCA(3, kernel=RBF(7.0))
    denoiser = Denoiser(axes, gamma=[0.001, 100.0], noise=0.1, random_state=0).fit(X)
    assert denoiser.estimator_.kernel_ == RBF(0.001)
    assert denoiser.gamma_ == 0.001
    assert axes.kernel == RBF(7.0)


def test_pairs_teach_the_axes_of_clean_rows():
    clean, noisy = plane(200, 8, rank=2, sigma=2.0)
    denoiser = Denoiser(PCA(), n_components=[1, 2, 5, 8], random_state=0).fit(noisy, clean)
    assert denoiser.n_components_ == 2
    assert_allclose(denoiser.transform(noisy), PCA(2).fit(clean).reconstruct(noisy))


@pytest.mark.parametrize("sigma", [0.5, 2.0, 6.0])
def test_steins_estimate_chooses_axes_of_digits_by_noisy_rows_alone(sigma):
    X = load_digits().data
    noisy = X + sigma * np.random.default_rng(1).normal(size=X.shape)
    many = list(range(1, 60, 2))
    denoiser = Denoiser(PCA(), n_components=many, noise=sigma, noisy=True, random_state=0)
    chosen = denoiser.fit(noisy).n_components_
    truth = [np.mean((PCA(k).fit(noisy).reconstruct(noisy) - X) ** 2) for k in many]
    assert truth[many.index(chosen)] < 1.06 * min(truth)
    assert max(truth[0], truth[-1]) > 1.5 * min(truth)


def test_steins_estimate_is_the_error():
    X = load_digits().data / 16
    noisy = X + 0.3 * np.random.default_rng(1).normal(size=X.shape)
    few = Subset(select=X[:100])
    axes = KernelPCA(kernel="rbf", method=few, preimage="fixed_point")
    blind = Denoiser(
        axes,
        n_components=[10, 40],
        gamma=0.1,
        noise=0.3,
        noisy=True,
        validation=800,
        limits=(0, 1),
        random_state=0,
    ).fit(noisy)
    out, rest = validation_rows(len(X), 800)
    for k, gamma, found in zip(*blind.validation_error_.values(), strict=True):
        model = clone(axes).set_params(n_components=int(k), gamma=gamma).fit(noisy[rest])
        error = np.mean((np.clip(model.reconstruct(noisy[out]), 0, 1) - X[out]) ** 2)
        assert found == pytest.approx(error, rel=0.05)


def test_more_axes_than_there_are():
    X = plane(60, 6, rank=2)[0]
    axes = KernelPCA(kernel="linear", preimage="fixed_point")
    denoiser = Denoiser(axes, n_components=[2, 5], noise=0.1, random_state=0).fit(X)
    assert denoiser.n_components_ == 2
    assert_array_equal(np.isnan(denoiser.validation_error_["error"]), [False, True])
    with pytest.raises(ValueError, match="exceeds the number of components with positive variance"):
        Denoiser(axes, n_components=[4, 5], noise=0.1).fit(X)


def test_more_linear_axes_than_there_are():
    X = plane(42, 64)[1]
    for most in (40, 200):  # more than the rows that are left, or than all
        denoiser = Denoiser(PCA(), n_components=[5, most], noise=1.0, random_state=0).fit(X)
        assert denoiser.n_components_ == 5
        assert_array_equal(np.isnan(denoiser.validation_error_["error"]), [False, True])
    with pytest.raises(ValueError, match="exceeds the number of components with positive variance"):
        Denoiser(PCA(), n_components=[100, 200], noise=1.0).fit(X)


def test_rows_of_no_weight_judge_nothing():
    clean, _ = plane(60, 6, rank=2)
    weights = np.repeat([1.0, 0.0], [10, 50])
    denoiser = Denoiser(PCA(), n_components=[1, 2, 3], noise=0.1, validation=8, random_state=0)
    assert np.isfinite(denoiser.fit(clean, sample_weight=weights).validation_error_["error"][0])
    with pytest.raises(ValueError, match="uses 9 of 10 rows"):
        denoiser.set_params(validation=9).fit(clean, sample_weight=weights)


def test_arrays_of_another_library():
    torch = pytest.importorskip("torch", reason="arrays of torch")
    _, X = plane(80, 6)
    given = {"n_components": [1, 3], "noise": 1.0, "random_state": 0, "limits": (-5, 5)}
    for axes in (PCA(), KernelPCA(kernel="rbf", gamma=0.01)):
        made = Denoiser(axes, **given).fit(torch.asarray(X)).transform(torch.asarray(X))
        assert isinstance(made, torch.Tensor)
        assert_allclose(made.numpy(), Denoiser(axes, **given).fit(X).transform(X), atol=1e-6)


def test_the_same_again():
    X = plane(80, 6)[0]
    denoiser = Denoiser(
        PCA(), n_components=[1, 2, 3], noise=SaltAndPepper(0.2, -5, 5), random_state=3
    )
    first, again = clone(denoiser).fit(X), clone(denoiser).fit(X)
    assert_array_equal(first.validation_error_["error"], again.validation_error_["error"])
    assert first.score(X) == again.score(X) < 0


def test_salt_and_pepper():
    rows = np.full((300, 300), 0.4)
    made = SaltAndPepper(0.2, 0, 9)(rows, np.random.default_rng(0))
    assert np.mean(made == 0) == pytest.approx(0.1, abs=0.005)
    assert np.mean(made == 9) == pytest.approx(0.1, abs=0.005)
    assert np.mean(made == 0.4) == pytest.approx(0.8, abs=0.005)
    assert (rows == 0.4).all()
    with pytest.raises(ValueError, match="from 0 to 1"):
        SaltAndPepper(2)(rows, np.random.default_rng(0))


def test_salt_of_whole_numbers():
    rng = np.random.default_rng(0)
    made = SaltAndPepper(1.0, 0.25, 0.75)(np.ones((20, 20), int), rng)
    assert_array_equal(np.unique(made), [0.25, 0.75])
    assert SaltAndPepper(0.5, 0, 255)(np.ones((2, 2), np.uint8), rng).dtype == np.uint8
    assert SaltAndPepper(0.5)(np.ones((2, 2), np.float32), rng).dtype == np.float32


def test_weights_are_counts():
    _, X = plane(60, 6)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    for axes in (PCA(2), KernelPCA(2, kernel="rbf", gamma=0.01)):
        weighed = Denoiser(axes).fit(X, sample_weight=counts)
        repeated = Denoiser(axes).fit(np.repeat(X, counts, axis=0))
        assert_allclose(weighed.transform(X), repeated.transform(X), atol=1e-5)
        assert weighed.score(X, 0 * X, sample_weight=counts) == pytest.approx(
            repeated.score(np.repeat(X, counts, axis=0), 0 * np.repeat(X, counts, axis=0))
        )


def test_rows_held_out_are_drawn():
    out, rest = validation_rows(100, 0.3)
    assert len(np.unique(out)) == 30
    assert len(rest) == 70
    assert out.max() > 60  # not the first of sorted rows
    assert len(validation_rows(5, 0.01)[0]) == 1


def test_pairs_are_judged_on_axes_of_clean_rows():
    clean, X = plane(80, 6, rank=2, sigma=2.0)
    denoiser = Denoiser(PCA(), n_components=[1, 2], random_state=0).fit(X, clean)
    out, rest = validation_rows(80)
    made = PCA(2).fit(clean[rest]).reconstruct(X[out])
    assert denoiser.validation_error_["error"][1] == pytest.approx(
        np.mean((made - clean[out]) ** 2)
    )


def test_weights_of_rows_held_out():
    clean, X = plane(80, 6, rank=2, sigma=2.0)
    weights = np.random.default_rng(1).integers(1, 9, 80)
    denoiser = Denoiser(PCA(), n_components=[1, 2], random_state=0)
    denoiser.fit(X, clean, sample_weight=weights)
    out, rest = validation_rows(80, weights=weights)
    model = PCA(2).fit(clean[rest], sample_weight=weights[rest])
    each = np.mean((model.reconstruct(X[out]) - clean[out]) ** 2, axis=1)
    error = np.average(each, weights=weights[out])
    assert denoiser.validation_error_["error"][1] == pytest.approx(error)


def test_scores_are_of_what_is_cut_off():
    _, X = plane(60, 6)
    denoiser = Denoiser(PCA(2), limits=(-1, 1)).fit(X)
    made = denoiser.transform(X)
    assert denoiser.score(X, 0 * X) == pytest.approx(-np.mean(made**2))
    assert denoiser.score(X) == pytest.approx(-np.mean((made - X) ** 2))  # no noise is known


def test_weights_in_the_choice():
    clean, _ = plane(100, 6, rank=2)
    odd = np.vstack([clean, 50 * np.random.default_rng(5).normal(size=(100, 6))])
    weights = np.repeat([1.0, 0.0], 100)
    denoiser = Denoiser(PCA(), n_components=[1, 2, 6], noise=1.0, validation=0.5, random_state=0)
    assert denoiser.fit(odd, sample_weight=weights).n_components_ == 2
    assert denoiser.fit(odd).n_components_ == 6


# Images and tables.


def test_images():
    X = load_digits().images
    denoiser = Denoiser(PCA(10), image_shape=(8, 8)).fit(X)
    made = denoiser.transform(X[:5])
    assert made.shape == (5, 8, 8)
    flat = X.reshape(-1, 64)
    assert_array_equal(made.reshape(5, 64), PCA(10).fit(flat).reconstruct(flat[:5]))
    assert denoiser.transform(flat[:5]).shape == (5, 64)
    assert denoiser.score(X[:5], made) == 0
    table = clone(denoiser).set_output(transform="pandas").fit(X).transform(X[:5])
    assert table.shape == (5, 64)


@pytest.mark.parametrize("shape", [(5, 4, 16), (5, 8, 8, 1), (5, 63), (5, 9, 9)])
def test_images_of_another_shape(shape):
    denoiser = Denoiser(PCA(3), image_shape=(8, 8))
    with pytest.raises(ValueError, match=r"images have shape \(8, 8\)"):
        denoiser.fit(np.ones(shape))
    assert not hasattr(denoiser, "estimator_")
    denoiser.fit(load_digits().images)
    with pytest.raises(ValueError, match=r"images have shape \(8, 8\)"):
        denoiser.transform(np.ones(shape))


def test_one_image():
    X = load_digits().images
    denoiser = Denoiser(PCA(3), image_shape=(8, 8)).fit(X)
    with pytest.raises(ValueError, match=r"a single image\. Pass X\[None\]"):
        denoiser.transform(X[0])
    # As many rows as columns are rows, where images have one axis.
    rows = X.reshape(-1, 64)[:64]
    assert Denoiser(PCA(3), image_shape=(64,)).fit(rows).transform(rows).shape == (64, 64)


def test_images_without_their_shape():
    with pytest.raises(ValueError, match=r"set image_shape=\(8, 8\)"):
        Denoiser().fit(load_digits().images)


def test_tables_keep_their_names():
    _, X = plane(60, 3)
    table = pd.DataFrame(X, columns=list("abc"))
    denoiser = Denoiser(PCA(2)).set_output(transform="pandas").fit(table)
    made = denoiser.transform(table)
    assert list(made.columns) == list("abc")
    assert_array_equal(made.to_numpy(), PCA(2).fit(table).reconstruct(table))
    with pytest.raises(ValueError, match="feature names should match"):
        denoiser.transform(table[["b", "a", "c"]])
    assert_array_equal(
        Denoiser(PCA(2)).fit(table, table + 1).estimator_.feature_names_in_, list("abc")
    )


def test_float32_and_integers():
    X = load_digits().data[:200]
    for axes in (PCA(5), KernelPCA(5, kernel="rbf", gamma=0.001)):
        denoiser = Denoiser(axes, limits=(0, 16)).fit(X.astype(np.float32))
        assert denoiser.transform(X.astype(np.float32)).dtype == np.float32
        assert Denoiser(axes, limits=(0, 16)).fit(X.astype(np.uint8)).transform(X).dtype == float


def test_sparse_rows_of_linear_axes():
    X = load_digits().data
    sparse = scipy.sparse.csr_matrix(X)
    given = {"n_components": [5, 20], "noise": 2.0, "random_state": 0}
    denoiser = Denoiser(PCA(), **given).fit(sparse)
    dense = Denoiser(PCA(), **given).fit(X)
    assert_allclose(denoiser.validation_error_["error"], dense.validation_error_["error"])
    assert_allclose(denoiser.transform(sparse), dense.transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="toarray"):
        Denoiser(KernelPCA(2, kernel="rbf")).fit(sparse)


def test_rows_of_a_file(tmp_path):
    _, X = plane(80, 6)
    path = tmp_path / "rows.npy"
    np.save(path, X)
    for axes, kind in ((PCA(), Source), (KernelPCA(kernel="rbf", gamma=0.01), np.ndarray)):
        given = {"n_components": [1, 3], "noise": 1.0, "random_state": 0, "limits": (-5, 5)}
        denoiser, peer = Denoiser(axes, **given).fit(path), Denoiser(axes, **given).fit(X)
        made = denoiser.transform(path)
        assert isinstance(made, kind)
        assert_allclose(np.asarray(made), peer.transform(X), atol=1e-9)


# Neighbours.


def test_labels_of_a_pipeline_are_ignored():
    X, y = load_digits(return_X_y=True)
    steps = make_pipeline(Denoiser(PCA(20)), LogisticRegression(max_iter=300)).fit(X[:500], y[:500])
    assert steps.score(X[500:900], y[500:900]) > 0.8
    assert_array_equal(steps[0].transform(X), Denoiser(PCA(20)).fit(X[:500]).transform(X))
    last = make_pipeline(FunctionTransformer(), Denoiser(PCA(20))).fit(X)
    assert last.transform(X[:3]).shape == (3, 64)


def test_grid_search():
    clean, noisy = plane(200, 8, rank=2, sigma=2.0)
    search = GridSearchCV(Denoiser(PCA()), {"estimator__n_components": [1, 2, 5, 8]}, cv=3)
    assert search.fit(noisy, clean).best_params_ == {"estimator__n_components": 2}
    blind = GridSearchCV(
        Denoiser(PCA(), noise=2.0, noisy=True, random_state=0), {"n_components": [1, 2, 8]}
    )
    assert blind.fit(noisy).best_params_ == {"n_components": 2}


def test_pickles():
    _, X = plane(60, 6)
    denoiser = Denoiser(gamma=[0.001, 0.01], n_components=2, noise=1.0, random_state=0).fit(X)
    again = pickle.loads(pickle.dumps(denoiser))
    assert_array_equal(again.transform(X), denoiser.transform(X))


def test_a_single_choice_leaves_no_table():
    _, X = plane(60, 6)
    denoiser = Denoiser(PCA(), n_components=[1, 2], noise=1.0).fit(X)
    assert set(denoiser.validation_error_) == {"n_components", "gamma", "error"}
    assert not hasattr(denoiser.set_params(n_components=2).fit(X), "validation_error_")


# Refusals.

SEVERAL = {"n_components": [1, 2]}


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"estimator": decomposition.PCA(2)}, "'estimator' parameter"),
        ({"estimator": PCA(), "gamma": 0.1}, "has none"),
        ({"estimator": PCA(), "gamma": [0.1, 1.0], "noise": 1.0}, "has none"),
        ({"estimator": KernelPCA(kernel="linear"), "gamma": 0.1}, "has none"),
        ({"estimator": KernelPCA(kernel="precomputed")}, "Precomputed|precomputed"),
        (SEVERAL, "no way to compare them"),
        (SEVERAL | {"noise": SaltAndPepper(0.1), "noisy": True}, "Stein"),
        (SEVERAL | {"noise": 1.0, "validation": 39}, "leaves 1 for the fit"),
        (SEVERAL | {"noise": lambda rows, rng: rows[:1]}, r"shape \(1, 6\)"),
        (SEVERAL | {"noise": lambda rows, rng: rows * np.nan}, "returned NaN"),
        ({"n_components": []}, r"n_components=\[\] is an empty list"),
        ({"gamma": []}, r"gamma=\[\] is an empty list"),
        ({"n_components": [None, 1], "noise": 1.0}, "n_components=None"),
        ({"n_components": [1, None], "noise": 1.0}, "n_components=None"),
        ({"n_components": [True, 2], "noise": 1.0}, "n_components=True"),
        ({"gamma": [None, 1.0], "noise": 1.0}, "gamma=None"),
        ({"n_components": [1.5]}, "must be an integer"),
        ({"n_components": [0, 1], "noise": 1.0}, "must be an integer"),
        ({"gamma": [-1.0]}, "positive"),
        ({"noise": -1.0}, "'noise' parameter"),
        ({"validation": 1.5}, "'validation' parameter"),
        ({"limits": (1, 0)}, "the lower first"),
        ({"limits": (1,)}, "two numbers"),
        ({"image_shape": (2.5, 2)}, "positive integers"),
        ({"image_shape": ()}, "positive integers"),
    ],
)
def test_refused(given, match):
    X = plane(40, 6)[1]
    denoiser = Denoiser(PCA(2)).fit(X)
    before = denoiser.transform(X)
    with pytest.raises((ValueError, TypeError), match=match):
        denoiser.set_params(estimator=None).set_params(**given).fit(X)
    assert denoiser.estimator_.n_components_ == 2
    clone_of = Denoiser(PCA(2)).fit(X)
    assert_array_equal(before, clone_of.transform(X))


def test_a_fit_that_fails_leaves_everything():
    _, X = plane(40, 6)
    denoiser = Denoiser(PCA(2)).fit(pd.DataFrame(X, columns=list("abcdef")))
    kept = dict(vars(denoiser))
    for wrong, clean in ((np.full((40, 3), np.nan), None), (X[:, :3], X), (X[:1], None)):
        with pytest.raises(ValueError, match=r"NaN|shape"):
            denoiser.fit(wrong, clean)
        assert vars(denoiser) == kept


def test_nan_is_named_where_it_is():
    _, X = plane(60, 6)
    hole = X.copy()
    hole[41, 3] = np.nan
    chosen = {"n_components": [1, 2], "noise": 1.0, "validation": 0.5}
    for seed in (0, 1, 2, 3):  # held out, or learnt from
        with pytest.raises(ValueError, match="X contains NaN: the first is in row 41, column 3"):
            Denoiser(PCA(), **chosen, random_state=seed).fit(hole)
    denoiser = Denoiser(PCA(2)).fit(X)
    with pytest.raises(ValueError, match="X contains NaN: the first is in row 41"):
        Denoiser(PCA(2)).fit(hole, X)
    for refused in (Denoiser(PCA(2)).fit, denoiser.score):
        with pytest.raises(ValueError, match="y contains NaN: the first is in row 41"):
            refused(X, hole)


def test_a_source_of_clean_rows_keeps_its_names():
    _, X = plane(40, 3)
    clean = as_source(pd.DataFrame(X, columns=list("abc")))
    Denoiser(PCA(2)).fit(X, clean)
    assert list(clean.names) == ["a", "b", "c"]


def test_clean_rows_of_another_shape():
    _, X = plane(40, 6)
    with pytest.raises(ValueError, match=r"y has shape \(40, 5\)"):
        Denoiser(PCA(2)).fit(X, X[:, :5])
    with pytest.raises(ValueError, match=r"y has shape \(39, 6\)"):
        Denoiser(PCA(2)).fit(X).score(X, X[1:])


def test_no_axes_look_for_nan():
    X = plane(40, 6)[1]
    with pytest.raises(ValueError, match="NaN"):
        PCA(0).fit(X).transform(X * np.nan)


def test_rows_are_not_written_to():
    _, X = plane(60, 6)
    kept = X.copy()
    X.flags.writeable = False
    Denoiser(gamma=[0.001, 0.01], noise=SaltAndPepper(0.3), limits=(0, 1)).fit(X).transform(X)

    def spoils(rows, rng):
        rows[:] = 0
        return rows

    Denoiser(PCA(), n_components=[1, 2], noise=spoils).fit(kept)
    assert_array_equal(X, kept)

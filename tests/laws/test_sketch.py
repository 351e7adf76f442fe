"""Axes from a sketch: Algorithm 4 as it is written, and what the polish makes of them."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from mercer import PCA, config_context
from mercer.methods import Sketch
from mercer.methods.base import ConvergenceWarning
from mercer.sketches import FeatureGrouping, Gaussian, Hadamard, Hashing, Resize, SparseSign
from tests.laws.truth import same

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 60)) * np.arange(60, 0, -1) ** 1.5 / 100 + 3.0
MAPS = [Gaussian(40), Hashing(40), Hashing(40, hashes=4), SparseSign(40), Hadamard(40)]


@pytest.mark.parametrize("sketch", MAPS, ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_algorithm_4(sketch, offset):
    rows = X + offset
    centred = rows - rows.mean(axis=0)
    small = sketch.matrix_for(60).apply(centred)
    values, U = np.linalg.eigh(small.T @ small)
    values, U = values[::-1][:5], U[:, ::-1][:, :5]
    axes = centred.T @ small @ U / values
    axes /= np.linalg.norm(axes, axis=0)
    pca = PCA(5, svd_solver=Sketch(sketch, polish=False)).fit(rows)
    assert np.abs(pca.explained_variance_ * 299 / values - 1).max() <= 1e-7
    assert same(pca.components_.T, axes) <= 1e-6
    V = np.linalg.qr(axes)[0]
    explained = np.linalg.norm(centred @ V) ** 2 / 299
    assert pca.certificate_.explained == pytest.approx(explained, rel=1e-7)
    assert pca.certificate_.gap.kind == "bound"


@pytest.mark.parametrize("sketch", MAPS, ids=repr)
def test_the_polish_is_exact_where_the_sketch_holds_the_axes(sketch):
    """Rows of rank 12 and a sketch of 40 columns lose nothing."""
    rows = RNG.standard_normal((200, 12)) @ RNG.standard_normal((12, 60)) + 5.0
    exact, found = PCA(6).fit(rows), PCA(6, svd_solver=Sketch(sketch)).fit(rows)
    assert np.abs(found.explained_variance_ / exact.explained_variance_ - 1).max() <= 1e-10
    assert np.abs(np.abs((found.components_ * exact.components_).sum(axis=1)) - 1).max() <= 1e-9
    assert found.certificate_.gap <= 1e-6
    assert np.abs(found.components_ @ found.components_.T - np.eye(6)).max() <= 1e-12


def test_the_certificate_bounds_the_variance():
    found = PCA(5, svd_solver=Sketch(Gaussian(30))).fit(X)
    truth = PCA(5).fit(X).explained_variance_ratio_.sum()
    assert float(found.certificate_.captured) <= truth <= float(found.certificate_.optimum_upper)
    assert found.explained_variance_ratio_.sum() <= truth * (1 + 1e-12)


GROWING = [Gaussian(12), Hashing(12, hashes=3), SparseSign(12), Hadamard(12), FeatureGrouping(12)]


@pytest.mark.parametrize("sketch", [None, *GROWING], ids=repr)
@pytest.mark.parametrize("rows", [X, RNG.standard_normal((50, 300))], ids=["tall", "wide"])
def test_a_gap_grows_the_sketch(sketch, rows):
    found = PCA(5, svd_solver=Sketch(sketch), gap=0.01, random_state=0).fit(rows)
    truth = PCA(5).fit(rows).explained_variance_ratio_.sum()
    assert found.certificate_.gap <= 0.01
    assert found.explained_variance_ratio_.sum() >= 0.99 * truth


def test_a_gap_that_cannot_be_met():
    unable = [
        Sketch(Resize((6, 10), (3, 5))),  # images have the size they are given
        Sketch(FeatureGrouping(bound=0.5)),
    ]
    for solver in unable:
        with pytest.warns(ConvergenceWarning, match=r"gap=0\.001 was requested"):
            PCA(5, svd_solver=solver, gap=0.001).fit(X)


def test_a_sketch_does_not_grow_beyond_the_budget():
    rows = np.random.default_rng(1).standard_normal((400, 400))
    with config_context(memory="600kB"), pytest.warns(ConvergenceWarning, match="gap"):
        found = PCA(3, svd_solver=Sketch(Gaussian(20)), gap=1e-9).fit(rows)
    assert found.certificate_.gap > 0.01
    assert PCA(3, svd_solver=Sketch(Gaussian(20)), gap=1e-9).fit(rows).certificate_.gap <= 1e-9


def test_a_file_stays_inside_the_budget(tmp_path):
    d, budget = 8000, 20 * 2**20
    np.save(tmp_path / "x.npy", np.random.default_rng(2).standard_normal((400, d)))
    PCA(3, svd_solver=Sketch(Gaussian(20))).fit(X)  # what is loaded once
    with config_context(memory=budget):
        tracemalloc.start()
        PCA(5, svd_solver=Sketch(Gaussian(100))).fit(tmp_path / "x.npy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < budget


@pytest.mark.parametrize("solver", ["sketch", Sketch(Hashing(20))])
def test_a_share_grows_the_sketch(solver):
    """By name the size is ours to choose; with a gap we may change it."""
    rows = RNG.standard_normal((400, 450))
    settings = {} if solver == "sketch" else {"gap": 0.01}
    exact = PCA(0.95).fit(rows)
    found = PCA(0.95, svd_solver=solver, **settings).fit(rows)
    assert found.n_components_ == exact.n_components_ > 200


def test_a_rule_of_all_eigenvalues_sees_the_zeros():
    rows = RNG.standard_normal((200, 8)) @ RNG.standard_normal((8, 60))
    found = PCA("mle", svd_solver="sketch").fit(rows)
    assert found.n_components_ == PCA("mle").fit(rows).n_components_


def test_few_rows_lose_nothing():
    rows = X[:30]
    exact, found = PCA(4).fit(rows), PCA(4, svd_solver=Sketch(Gaussian(40))).fit(rows)
    assert np.abs(found.explained_variance_ / exact.explained_variance_ - 1).max() <= 1e-10
    assert found.certificate_.gap <= 1e-10


@pytest.mark.parametrize("solver", ["sketch", Sketch(Hadamard(40))])
def test_variances_that_squares_would_lose(solver):
    left = np.linalg.qr(RNG.standard_normal((200, 30)))[0]
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(RNG.standard_normal((60, 30)))[0].T
    roots = 10.0 ** -np.arange(30)
    found = PCA(10, svd_solver=solver).fit(left * roots @ right)
    assert np.abs(np.sqrt(found.explained_variance_ * 199) / roots[:10] - 1).max() <= 1e-6
    assert np.abs((found.components_ * right[:10]).sum(axis=1)).min() >= 1 - 1e-6


def test_the_seed_of_the_estimator_draws_the_map_of_the_name():
    rows = RNG.standard_normal((300, 400))
    a, b, c = (
        PCA(3, svd_solver="sketch", random_state=seed).fit(rows).components_ for seed in (0, 0, 1)
    )
    assert np.array_equal(a, b)
    assert not np.allclose(a, c)
    a, b = (
        PCA(3, svd_solver=Sketch(Gaussian(40)), random_state=seed).fit(X).components_
        for seed in (0, 1)
    )
    assert np.array_equal(a, b)


def test_groups_are_learnt_from_scaled_rows():
    causes = np.repeat(RNG.standard_normal((200, 6)), 4, axis=1)
    rows = causes + 0.3 * RNG.standard_normal((200, 24))
    rows *= np.repeat([1e3, 1e-3], 12)  # the small ones would all be one group
    solver = Sketch(FeatureGrouping(6))
    expected = PCA(5, svd_solver=solver).fit(rows / rows.std(axis=0, ddof=1))
    for made in (np.asarray, scipy.sparse.csr_array):
        found = PCA(5, svd_solver=solver, scale=True).fit(made(rows))
        assert np.abs(found.explained_variance_ / expected.explained_variance_ - 1).max() <= 1e-9


def test_what_a_plan_reckons_with():
    rows = np.zeros((2000, 1200))
    few, share = (
        PCA(k, svd_solver=Sketch(Gaussian(100))).plan(rows).candidates[0].cost.memory
        for k in (100, 0.9)
    )
    assert few == share  # no more axes than the sketch has
    images = PCA(5, svd_solver=Sketch(Resize((40, 30), (20, 15)))).plan(rows)
    assert images.candidates[0].cost.memory >= 8 * 300**2


def test_rows_from_anywhere(tmp_path):
    solver = Sketch(Hashing(40))
    expected = PCA(4, svd_solver=solver).fit(X)
    np.save(tmp_path / "x.npy", X)
    sparse = scipy.sparse.csr_array(X)
    torch = pytest.importorskip("torch")
    for rows in (tmp_path / "x.npy", np.asfortranarray(X), sparse, torch.asarray(X)):
        found = PCA(4, svd_solver=solver).fit(rows)
        assert (
            np.abs(np.asarray(found.explained_variance_) / expected.explained_variance_ - 1).max()
            <= 1e-8
        )
        assert same(np.asarray(found.components_).T, expected.components_.T) <= 1e-7
    for size in (1, 7, 64):
        with config_context(block_rows=size):
            found = PCA(4, svd_solver=solver).fit(X)
        assert same(found.components_.T, expected.components_.T) <= 1e-9
    single = PCA(4, svd_solver=solver).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    assert np.abs(single.explained_variance_ / expected.explained_variance_ - 1).max() <= 1e-5


@pytest.mark.parametrize("sketch", MAPS, ids=repr)
@pytest.mark.parametrize("polish", [False, True])
def test_a_large_mean_costs_no_digits_of_float32(sketch, polish):
    rows = (X + 1e4).astype(np.float32)
    found, expected = (
        PCA(5, svd_solver=Sketch(sketch, polish=polish)).fit(made)
        for made in (rows, rows.astype(np.float64))
    )
    assert np.abs(found.explained_variance_ / expected.explained_variance_ - 1).max() <= 1e-6
    assert same(found.components_.T, expected.components_.T) <= 1e-4


@pytest.mark.parametrize("settings", [{}, {"center": False}, {"scale": True}])
def test_weights_are_counts(settings):
    weights = RNG.integers(1, 4, len(X))
    solver = Sketch(Gaussian(40))
    found = PCA(4, svd_solver=solver, **settings).fit(X, sample_weight=weights)
    twice = PCA(4, svd_solver=solver, **settings).fit(np.repeat(X, weights, axis=0))
    assert np.abs(found.explained_variance_ / twice.explained_variance_ - 1).max() <= 1e-9
    assert same(found.components_.T, twice.components_.T) <= 1e-7


def test_images_may_be_shrunk():
    from sklearn.datasets import load_digits

    images = load_digits().data
    exact = PCA(3).fit(images)
    found = PCA(3, svd_solver=Sketch(Resize((8, 8), (4, 4)))).fit(images)
    assert np.abs((found.components_ * exact.components_).sum(axis=1)).min() >= 0.95


def test_too_small_a_sketch():
    with pytest.raises(ValueError, match=r"Gaussian\(3\) has 3 columns, too few for 5 components"):
        PCA(5, svd_solver=Sketch(Gaussian(3))).fit(X)
    with pytest.raises(ValueError, match="q=100 is more than n_features=60"):
        PCA(5, svd_solver=Sketch(Gaussian(100))).fit(X)
    with pytest.raises(ValueError, match="Use a larger q"):
        PCA(0.999, svd_solver=Sketch(Gaussian(3))).fit(RNG.standard_normal((100, 60)))


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        (Sketch("gaussian"), "Sketch: sketch='gaussian' must be a map such as"),
        (Sketch(Gaussian), "must be a map such as"),
        (Sketch(Gaussian(40), polish="no"), "polish='no' must be True or False"),
        (Sketch(Gaussian("many")), "q='many' must be an integer"),
        (Sketch(Gaussian(-3)), "q=-3"),
        (Sketch(Resize((5, 5), (2, 2))), "25 pixels, but the rows have 60 columns"),
    ],
)
def test_bad_parameters(solver, said):
    for method in ("fit", "plan"):
        with pytest.raises(ValueError, match=said):
            getattr(PCA(2, svd_solver=solver), method)(X)

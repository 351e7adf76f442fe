"""Images: components, reconstructions, several states."""

import numpy as np
import pytest
import scipy.sparse
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, Denoiser, KernelPCA
from mercer.messages import percent
from mercer.plotting import GalleryDisplay
from tests.plotting.artists import apart, lay_out


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:200]


def tiles(display):
    return [np.asarray(tile.get_array()) for line in display.images_ for tile in line]


def test_components_are_images(digits):
    for model in (PCA(12), peers.PCA(12), make_pipeline(StandardScaler(), PCA(12))):
        model.fit(digits)
        pca = model[-1] if hasattr(model, "steps") else model
        display = GalleryDisplay.from_estimator(model, (8, 8), components=[3, 0])
        for tile, j in zip(display.images_[0], (3, 0), strict=True):
            np.testing.assert_allclose(tile.get_array(), pca.components_[j].reshape(8, 8))
            low, high = tile.get_clim()
            assert -low == high == np.abs(pca.components_[j]).max()
        share = percent(pca.explained_variance_ratio_[3], 1)
        assert display.captions_[0].get_text() == f"4 ({share})"


def test_rows_are_even(digits):
    pca = PCA(25).fit(digits)
    lengths = {16: [8, 8], 10: [10], 11: [6, 5], 25: [9, 9, 7], 1: [1]}
    for count, expected in lengths.items():
        display = GalleryDisplay.from_estimator(pca, components=count)
        assert [len(line) for line in display.images_] == expected
    display = GalleryDisplay.from_estimator(pca, components=6, across=4)
    assert [len(line) for line in display.images_] == [4, 2]
    assert len(GalleryDisplay.from_estimator(pca).images_[0]) == 10


def test_images_do_not_overlap_and_are_upright(digits):
    display = GalleryDisplay.from_estimator(PCA(12).fit(digits), components=12)
    lay_out(display)
    boxes = [tile.get_window_extent() for line in display.images_ for tile in line]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert apart(display.captions_)
    first = display.images_[0][0].get_extent()
    assert first[3] < first[2]  # the top of an image is up
    assert boxes[0].y0 > boxes[-1].y1


@pytest.mark.parametrize("size", [(2.5, 1.5), (12, 4)])
def test_captions_are_apart_at_any_size(digits, size):
    ax = Figure(size, layout="constrained").subplots()
    display = GalleryDisplay.from_estimator(PCA(10).fit(digits), ax=ax)
    assert display.ax_ is ax
    lay_out(display)
    assert apart(display.captions_)


def test_reconstructions(digits):
    pca = PCA(10).fit(digits)
    sparse = scipy.sparse.csr_array(digits)
    table = pytest.importorskip("pandas").DataFrame(digits)
    expected = pca.reconstruct(digits[[4, 2]])
    for rows in (digits, sparse, table, digits.tolist()):
        display = GalleryDisplay.from_reconstructions(pca, rows, rows=[4, 2])
        images = tiles(display)
        np.testing.assert_allclose(images[0], digits[4].reshape(8, 8))
        np.testing.assert_allclose(np.reshape(images[2:], (2, 64)), expected)
        assert [text.get_text() for text in display.titles_] == ["original", "10 components"]
    # Both rows are on the scale of the first.
    assert {tile.get_clim() for line in display.images_ for tile in line} == {(0.0, 16.0)}


def test_reconstructions_of_other_models(digits):
    X = digits
    kernel = KernelPCA(20, kernel="rbf", gamma=1e-3, preimage="fixed_point").fit(X)
    pipe = make_pipeline(StandardScaler(), PCA(10)).fit(X)
    for model in (kernel, pipe, peers.PCA(10).fit(X)):
        display = GalleryDisplay.from_reconstructions(model, X, rows=2)
        expected = model.inverse_transform(model.transform(X[:2]))
        np.testing.assert_allclose(np.reshape(tiles(display)[2:], (2, 64)), expected, atol=1e-9)
    with pytest.raises(TypeError, match="cannot reconstruct rows"):
        GalleryDisplay.from_reconstructions(StandardLike(), X)


class StandardLike:
    def transform(self, X):
        return X


def test_original_noisy_denoised(digits, rng):
    noisy = digits[:5] + rng.normal(size=(5, 64))
    denoised = Denoiser(PCA(10), image_shape=(8, 8)).fit(digits).transform(noisy)
    states = {"original": digits[:5], "noisy": noisy, "denoised": denoised}
    display = GalleryDisplay.from_images(states, (8, 8), cmap="gray_r")
    assert [text.get_text() for text in display.titles_] == [*states]
    np.testing.assert_allclose(
        np.reshape(tiles(display), (15, 64)), np.concatenate([*states.values()])
    )
    lay_out(display)
    denoiser = Denoiser(PCA(3), image_shape=(4, 16)).fit(digits)
    assert GalleryDisplay.from_estimator(denoiser).images[""].shape == (3, 4, 16)


def test_colours(rng):
    X = rng.uniform(0, 255, size=(6, 4 * 5 * 3))
    display = GalleryDisplay.from_images(X, (4, 5, 3))
    low, high = X.min(), X.max()
    np.testing.assert_allclose(tiles(display)[0], (X[0].reshape(4, 5, 3) - low) / (high - low))
    GalleryDisplay.from_estimator(PCA(2).fit(X), (4, 5, 3))
    bright = GalleryDisplay.from_images(X.reshape(6, 4, 5, 3), limits=(0, 100))
    assert tiles(bright)[0].max() == 1
    one = GalleryDisplay.from_images(X[:, :20].reshape(6, 4, 5, 1))
    assert tiles(one)[0].shape == (4, 5)
    lay_out(one)


def test_equal_pixels_and_names_that_are_no_formulas():
    display = GalleryDisplay.from_images({"$a_": np.ones((2, 9)), "_": np.ones((1, 9))})
    lay_out(display)
    captions = {"a": ["$x", "_" * 90]}
    lay_out(GalleryDisplay.from_images({"a": np.ones((2, 9))}, captions=captions))


def test_errors(digits):
    pca = PCA(3).fit(digits)
    calls = [
        (
            lambda: GalleryDisplay.from_estimator(pca, (8, 9)),
            r"image_shape=\(8, 9\) has 72 pixels",
        ),
        (lambda: GalleryDisplay.from_images(digits[:, :60]), "60 numbers is not a square"),
        (lambda: GalleryDisplay.from_images({}), "images is empty"),
        (lambda: GalleryDisplay.from_images({"a": digits[:2], "b": digits[:0]}), "images is empty"),
        (lambda: GalleryDisplay.from_images(np.zeros((2, 3, 4, 4))), r"width, 3\) for color"),
        (lambda: GalleryDisplay.from_images(np.zeros(9)), r"images have shape \(9,\)"),
        (lambda: GalleryDisplay.from_reconstructions(pca, digits, rows=[200]), "from 0 to 199"),
        (lambda: GalleryDisplay.from_reconstructions(pca, digits, rows=0), "from 0 to 199"),
        (lambda: GalleryDisplay.from_reconstructions(pca, digits[:0]), "no rows to draw"),
        (lambda: GalleryDisplay.from_estimator(pca, components=4), "from 0 to 2"),
        (lambda: GalleryDisplay.from_images(digits[:2], captions={"": ["one"]}), "1 captions"),
        (
            lambda: GalleryDisplay.from_images({"a": np.ones((1, 4)), "b": np.ones((1, 9))}),
            "of one shape",
        ),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="KernelPCA has no components_"):
        GalleryDisplay.from_estimator(KernelPCA(3).fit(digits[:50]))

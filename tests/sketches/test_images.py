"""Images made smaller."""

import numpy as np
import pytest

from mercer.sketches import PixelGrouping, Resize


def smooth(n, height, width, seed=0):
    """Images of a few wide waves, about as smooth as faces."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / max(height, width)
    waves = [np.cos(np.pi * (a * y + b * x)) for a in range(4) for b in range(4)]
    return 3.0 + np.tensordot(rng.standard_normal((n, 16)) / 4, np.stack(waves), axes=1)


SHAPES = [(12, 18), (12, 18, 3), (7, 5), (7, 5, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("to", [(1, 1), (3, 4), (5, 5), (7, 5)])
def test_constant_images_keep_their_dot_products(shape, to):
    if to[0] > shape[0] or to[1] > shape[1]:
        pytest.skip("larger")
    d = int(np.prod(shape))
    X = np.array([[2.0], [-3.0], [0.5]]) * np.ones(d)
    Y = Resize(shape, to).fit_transform(X)
    assert Y.shape[1] == to[0] * to[1] * (shape[2] if len(shape) == 3 else 1)
    np.testing.assert_allclose(Y @ Y.T, X @ X.T, rtol=1e-13)


def test_resizing_to_the_same_size_changes_nothing():
    X = np.random.default_rng(0).random((3, 35))
    np.testing.assert_allclose(Resize((7, 5), (7, 5)).fit_transform(X), X, rtol=1e-15)


def test_whole_blocks_are_their_means():
    X = np.random.default_rng(0).random((2, 6, 8))
    means = X.reshape(2, 3, 2, 2, 4).mean(axis=(2, 4)).reshape(2, -1)
    flat = X.reshape(2, -1)
    found = Resize((6, 8), (3, 2)).fit_transform(flat)
    np.testing.assert_allclose(found, means * 8**0.5, rtol=1e-14)
    grouped = PixelGrouping((6, 8), (2, 4)).fit_transform(flat)
    np.testing.assert_allclose(grouped, found, rtol=1e-14)


def test_a_border_pixel_counts_by_its_part():
    found = Resize((1, 3), (1, 2)).fit_transform([[1.0, 10.0, 100.0]])
    np.testing.assert_allclose(found, [[4.0 * 1.5**0.5, 70.0 * 1.5**0.5]])


def blocky(n, height, width, block, colours):
    """Images that are constant on blocks, with smaller ones at the edges."""
    rng = np.random.default_rng(1)
    few = rng.standard_normal((n, -(-height // block), -(-width // block), colours))
    return few.repeat(block, axis=1).repeat(block, axis=2)[:, :height, :width]


@pytest.mark.parametrize("by", ["mean", "corner"])
@pytest.mark.parametrize("channels", ["last", "first"])
@pytest.mark.parametrize("block", [1, 2, 3, 5, 20])
def test_images_constant_on_blocks_keep_their_dot_products(block, by, channels):
    images = blocky(4, 11, 13, block, 3)
    if channels == "first":
        images = np.moveaxis(images, 3, 1)
    X = images.reshape(4, -1)
    Y = PixelGrouping((11, 13, 3), block, by=by, channels=channels).fit_transform(X)
    np.testing.assert_allclose(Y @ Y.T, X @ X.T, rtol=1e-12, atol=1e-12)


def test_the_corner_is_the_top_left_pixel():
    X = np.arange(16.0).reshape(1, 16)
    found = PixelGrouping((4, 4), 2, by="corner").fit_transform(X)
    np.testing.assert_allclose(found, [[0.0, 4.0, 16.0, 20.0]])


@pytest.mark.parametrize(
    "sketch",
    [Resize((112, 92), (56, 46)), Resize((112, 92), (39, 31)), PixelGrouping((112, 92), 2)],
)
def test_smooth_images_nearly_keep_their_eigenvalues(sketch):
    X = smooth(30, 112, 92).reshape(30, -1)
    X -= X.mean(axis=0)
    Y = sketch.fit_transform(X)
    exact, found = (np.linalg.svd(Z, compute_uv=False)[:10] ** 2 for Z in (X, Y))
    np.testing.assert_allclose(found, exact, rtol=0.02)


def test_colours_are_resized_each_alone():
    images = np.random.default_rng(0).random((2, 8, 6, 3))
    found = Resize((8, 6, 3), (3, 4)).fit_transform(images.reshape(2, -1)).reshape(2, 3, 4, 3)
    first = Resize((8, 6, 3), (3, 4), channels="first")
    planes = first.fit_transform(np.moveaxis(images, 3, 1).reshape(2, -1)).reshape(2, 3, 3, 4)
    np.testing.assert_allclose(np.moveaxis(planes, 1, 3), found)
    for c in range(3):
        alone = Resize((8, 6), (3, 4)).fit_transform(images[..., c].reshape(2, -1))
        np.testing.assert_allclose(found[..., c].reshape(2, -1), alone)

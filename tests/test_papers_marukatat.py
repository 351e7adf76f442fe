"""Marukatat's table and figures in their quick form: what they must show, they show."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from mercer import PCA
from mercer.methods import Sketch
from mercer.metrics import similarity
from mercer.sketches import Resize
from papers import dot_products, grouping, outlier, resolutions, results, spectra
from papers.panels import Case
from papers.results import Line
from tests.papers_quick import offline, quick  # noqa: F401 (a fixture)


def test_table_2_of_the_tables_that_are_always_at_hand():
    for name, rows in spectra.tables().items():
        assert all(line.met for line in spectra.counts(Case(name, *rows), same=True))


@pytest.mark.slow
def test_spectra():
    found = quick("spectra")
    assert found["Iris: axes for 99 %"].met
    assert found["MNIST: axes for 90 %"].ours < 236  # fewer images, fewer axes
    assert found["MNIST: axes of any variance"].ours < 784


def test_a_case_counts_axes_and_finds_its_rank():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 90))
    case = Case("low rank", X, np.zeros(60))
    assert case.rank == 4
    assert case.axes_for(0.999999) == 4
    shares = np.cumsum(case.values) / case.values.sum()
    k = case.axes_for(0.9)
    assert shares[k - 1] >= 0.9 > np.append(0.0, shares)[k - 1]


def test_axes_without_variance_and_who_is_furthest_on_them():
    """On the first two such axes rows 2 and 0 are; on the third all are at zero, and none is."""
    X = np.zeros((3, 4), np.float32)
    X[:, 1], X[:, 2] = (1e-6, 0, -2e-6), (3e-6, 0, 1e-6)
    model = SimpleNamespace(mean_=np.zeros(4), scale_=np.ones(4), components_=np.eye(4))
    case = SimpleNamespace(X=X, model=model, rank=1)
    axes, rows = spectra.rounded(case)
    assert axes.tolist() == [2, 3]
    assert rows.tolist() == [2, 0]
    line = spectra.apart(case, axes[rows == 2])
    assert (line.ours, line.met, line.note) == (1, True, "of 3: 2")
    assert not spectra.apart(case, axes[rows == 1]).met


def test_outlier():
    found = quick("outlier")
    assert found["50 axes: dot left, %"].met
    assert (
        found["100 axes: speckle on the dark"].least == found["50 axes: speckle on the dark"].ours
    )
    assert found["200 axes: dot left, %"].ours > 90
    assert found["200 axes: error, all pixels"].ours < found["50 axes: error, all pixels"].ours


def test_the_dot_and_what_is_dark():
    image = np.zeros((28, 28))
    image[14, 0], image[5:20, 10:18] = 113, 255
    dot, dark = outlier.parts(image)
    assert dot == (14, 0)
    assert not dark[14, 1]
    assert dark[27, 27]
    assert outlier.steepest(image) > outlier.steepest((image + np.roll(image, 1, axis=1)) / 2)


@pytest.mark.slow
def test_small_samples():
    found = quick("small_samples")
    assert all(line.met for line in found.values() if line.met is not None)
    assert found["ORL: axes of any variance"].ours == 399


def test_resolutions():
    found = quick("resolutions")
    assert found["46 × 56: least Sim of dot-matrix eigenvectors 1 to 10"].met
    printed = found["46 × 56: mean ratio of eigenvalues, as printed"].ours
    right = found["46 × 56: mean ratio of eigenvalues, with √(d/q)"]
    assert right.met
    assert printed == pytest.approx(right.ours / 4)


def test_axes_of_small_images_are_those_of_the_library():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(30, 12, 10)), axis=2).reshape(30, -1)
    sketch = Resize((12, 10), (6, 5))
    small = sketch.fit_transform(X)
    ours = resolutions.lifted(X, PCA(4).fit(small).transform(small))
    found = PCA(4, svd_solver=Sketch(sketch, polish=False)).fit(X)
    np.testing.assert_allclose(similarity(ours, found.components_), 1, atol=1e-9)


def test_grouping():
    found = quick("grouping")
    assert all(line.met for line in found.values())


def test_a_bound_that_is_reached():
    """A pixel replaced by one that is nearly dark: all of its square is lost."""
    X = np.zeros((6, 2))
    X[0, 0], X[1, 1] = 3.0, 1e-3
    for line in grouping.bounds(X, 8, width=2):
        assert line.ours == pytest.approx(1.0, abs=1e-5)
        assert line.met


@pytest.mark.slow
def test_dot_products():
    found = quick("dot_products")
    for q in (100, 400):
        assert found[f"hashing, 10 q columns, as printed, q = {q}"].ours == pytest.approx(90, abs=2)
        assert found[f"hashing, 10 q columns, q = {q}"].ours < 15
    assert found["Gaussian, q = 400"].ours < found["Gaussian, q = 100"].ours


def test_predicted_errors_are_those_of_gaussian_maps():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 800)) + 1.0
    expected = dot_products.predicted(X, (100, 400))
    assert expected[0] == pytest.approx(2 * expected[1])
    found = [
        100 * dot_products.dot_product_error(dot_products.maps(100, 800, seed)["Gaussian"], X).mean
        for seed in range(20)
    ]
    assert np.mean(found) == pytest.approx(expected[0], rel=0.1)


@pytest.mark.slow
def test_approximate():
    found = quick("approximate")
    raw, better = (found[f"{name}: mean Diff of 10 eigenvalues"] for name in ("sketch", "polished"))
    assert better.ours < raw.ours / 2
    assert found["sketch: Diff of the first eigenvalue, largest of the draws"].met
    assert found["axes for 99 %, of the sketch's own sum"].met
    assert found["sketch: largest |vᵀv′|"].ours > 1e-3 > found["polished: largest |vᵀv′|"].ours


@pytest.mark.slow
def test_kernel_sketches():
    found = quick("kernel_sketches")
    for kernel in ("tanh", "RBF", "polynomial", "sum"):
        printed = found[f"{kernel}, Approx-KPCA (f), as printed: Diff"].ours
        assert printed == pytest.approx(1 - 1 / np.sqrt(5), abs=0.05)
        assert found[f"{kernel}, Approx-KPCA (f), 1/√l: Diff"].ours < 0.1
    assert found["polynomial, Nyström (d), as printed: Diff"].ours > 0.9
    assert found["polynomial, Nyström (d), by chances: Diff"].ours < 0.01


def test_what_must_be_exact_is_written_so():
    line = Line("a", 7, most=7, least=7, form=".0f")
    assert line.cells()[3:5] == ("= 7", "yes")
    assert Line("a", 8, most=7, least=7).met is False


def test_pictures_are_written_in_few_colours(tmp_path):
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure((2, 2))
    figure.subplots().imshow(np.random.default_rng(0).random((50, 50)), cmap="gray")
    results.save(figure, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.mode == "P"
        assert picture.size == (220, 220)

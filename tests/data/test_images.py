"""Images in files as rows."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import PCA, KernelPCA, as_source, config_context
from mercer.data import NpySource
from mercer.data.files import FileError, read_table
from mercer.data.files.images import Images

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(0).integers(0, 255, (12, 8, 6), dtype=np.uint8)
COLORS = np.random.default_rng(1).integers(0, 255, (12, 8, 6, 3), dtype=np.uint8)
NAMES = [f"face{i:02}.png" for i in range(12)]


def save(folder, images, names=NAMES):
    for name, pixels in zip(names, images, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return folder


@pytest.mark.parametrize("pattern", ["", "*.png", "face*"])
def test_every_image_is_a_row(tmp_path, pattern):
    save(tmp_path, PIXELS)
    table = read_table(tmp_path / pattern)
    assert_array_equal(table.source.collect(), PIXELS.reshape(12, 48))
    assert table.source.image_shape == (8, 6)
    assert table.row_names.tolist() == NAMES
    expected = PCA(3).fit_transform(PIXELS.reshape(12, 48))
    assert_allclose(PCA(3).fit_transform(tmp_path / pattern).collect(), expected, atol=1e-9)
    model = KernelPCA(2, kernel="rbf", gamma=1e-6).fit(tmp_path / pattern)
    assert model.transform(str(tmp_path / NAMES[3])).shape == (1, 2)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK"])
def test_images_are_in_color_if_one_of_them_is(tmp_path, mode):
    save(tmp_path, PIXELS)
    suffix = "tif" if mode == "CMYK" else "png"
    color = Image.fromarray(COLORS[0]).convert(mode)
    color.save(tmp_path / f"one.{suffix}")
    source = read_table(tmp_path).source
    assert source.image_shape == (8, 6, 3)
    rows = source.collect().reshape(13, 8, 6, 3)
    assert_array_equal(rows[:12], np.repeat(PIXELS[..., None], 3, axis=-1))
    assert_array_equal(rows[12], np.asarray(color.convert("RGB")))


@pytest.mark.parametrize("mode", ["1", "LA"])
def test_kinds_of_gray(tmp_path, mode):
    Image.fromarray(PIXELS[0]).convert(mode).save(tmp_path / "x.png")
    found = read_table(tmp_path / "x.png").source.collect().reshape(8, 6)
    assert_array_equal(found, np.asarray(Image.fromarray(PIXELS[0]).convert(mode).convert("L")))


@pytest.mark.parametrize(
    ("dtype", "suffix"), [("u2", "png"), (">u2", "tif"), ("i4", "tif"), ("f4", "tif")]
)
def test_pixels_that_are_no_bytes_keep_their_digits(tmp_path, dtype, suffix):
    pixels = (np.random.default_rng(0).uniform(0, 60000, (5, 8, 6))).astype(dtype)
    save(tmp_path, pixels, [f"x{i}.{suffix}" for i in range(5)])
    assert_array_equal(read_table(tmp_path).source.collect(), pixels.reshape(5, 48))
    small = read_table(tmp_path, resize=(4, 3)).source
    assert small.shape == (5, 12)
    assert_allclose(small.collect().mean(), pixels.mean(), rtol=0.05)
    with pytest.raises(FileError, match="cannot be read in color"):
        read_table(tmp_path, resize=(4, 3, 3))
    save(tmp_path, PIXELS[:1], ["y.png"])
    with pytest.raises(FileError, match=r"x0.* is .*, but .*y\.png is 8-bit gray: .*Convert"):
        read_table(tmp_path)


def test_sizes_that_differ_are_named_and_resized(tmp_path):
    save(tmp_path, PIXELS)
    save(tmp_path, [PIXELS[0][:5]], ["short.png"])
    with pytest.raises(
        FileError, match=r"short\.png has 5 × 6 pixels, but .*face00\.png has 8 × 6"
    ):
        read_table(tmp_path)
    with pytest.raises(FileError) as error:
        PCA(2).fit(tmp_path)
    call = re.search(r"resize them with (read_table\(.*\)\.source), with", str(error.value))[1]
    source = eval(call, {"read_table": read_table})
    assert_array_equal(source.collect()[:12], PIXELS.reshape(12, 48))
    assert read_table(tmp_path, resize=(4, 4, 3)).source.image_shape == (4, 4, 3)
    smooth = read_table(tmp_path, resize=(2, 2)).source.collect()
    expected = [np.asarray(Image.fromarray(x).resize((2, 2))).ravel() for x in PIXELS]
    assert_array_equal(smooth[:12], expected)
    with pytest.raises(ValueError, match=r"resize=\(4,\) must be"):
        read_table(tmp_path, resize=(4,))


def test_color_read_in_gray(tmp_path):
    save(tmp_path, COLORS)
    gray = [np.asarray(Image.fromarray(x).convert("L")).ravel() for x in COLORS]
    assert_array_equal(read_table(tmp_path, resize=(8, 6, 1)).source.collect(), gray)


def test_folders_of_classes(tmp_path):
    names = [f"{'cats' if i % 2 else 'dogs'}/x{i:02}.png" for i in range(12)]
    table = read_table(save(tmp_path, PIXELS, names), label="folder")
    assert table.row_names.tolist() == sorted(names)
    assert table.extra["folder"].tolist() == ["cats"] * 6 + ["dogs"] * 6
    with pytest.raises(FileError, match=r"no column 'species': there are 'file', 'folder'"):
        read_table(tmp_path, label="species")


def test_rows_beyond_the_budget(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 255, (420, 64, 64), dtype=np.uint8)
    names = [f"{i:03}.ppm" for i in range(420)]
    save(tmp_path, pixels, names)
    X = pixels.reshape(420, -1)
    with config_context(memory="6MB"):  # the pixels are 1.7 MB
        source = as_source(tmp_path)
        assert isinstance(source, NpySource)
        assert source.stored == np.uint8
        assert_array_equal(source.collect(), X)
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=0))
        source = as_source(tmp_path)
        assert isinstance(source, Images)
        assert source.image_shape == (64, 64)
        assert_array_equal(source.collect(), X)
        assert_array_equal(source.take([7, 2]), X[[7, 2]])
        save(tmp_path, PIXELS[:1], names[:1])
        with pytest.raises(FileError, match=r"000\.ppm changed"):
            source.collect()


@pytest.mark.parametrize("damage", ["truncated", "empty", "text"])
def test_damaged_images_are_named(tmp_path, damage):
    save(tmp_path, PIXELS)
    data = (tmp_path / NAMES[4]).read_bytes()
    content = {"truncated": data[: len(data) // 2], "empty": b"", "text": b"not an image"}
    (tmp_path / NAMES[4]).write_bytes(content[damage])
    with pytest.raises(FileError, match=r"face04\.png could not be read as an image"):
        PCA(2).fit(tmp_path)


def test_what_is_refused(tmp_path):
    save(tmp_path, PIXELS)
    Image.fromarray(PIXELS[0]).save(
        tmp_path / "many.tif", save_all=True, append_images=[Image.fromarray(PIXELS[1])]
    )
    with pytest.raises(FileError, match=r"many\.tif holds 2 images"):
        read_table(tmp_path)
    (tmp_path / "many.tif").unlink()
    (tmp_path / "labels.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match=r"2 formats \(\.csv, \.png\)"):
        read_table(tmp_path)
    assert read_table(tmp_path, format="png").source.shape == (12, 48)
    with pytest.raises(FileError, match="images have no columns"):
        read_table(tmp_path / "*.png", columns=["0"])
    with pytest.raises(FileError, match="only images can be resized"):
        read_table(tmp_path / "labels.csv", resize=(4, 4))

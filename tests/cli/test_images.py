"""Folders of images on the command line."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer import PCA, load
from mercer.data.files import read_table

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(0).integers(0, 255, (12, 8, 6), dtype=np.uint8)


def test_the_report_shows_images_without_being_told(tmp_path, mercer):
    pytest.importorskip("plotly")
    faces = tmp_path / "faces"
    faces.mkdir()
    for i, pixels in enumerate(PIXELS):
        Image.fromarray(pixels).save(faces / f"face{i:02}.png")
    Image.fromarray(np.tile(PIXELS[0], (2, 2))).save(faces / "large.png")
    done = mercer("fit", faces, "-o", "m.mercer", code=1)
    assert "resize them with --resize 8x6" in done.err.replace("\n", " ")
    command = ("--components", 2, "--resize", "8x6", "--scores", "s.csv", "--report", "r.html")
    done = mercer("fit", faces, *command, "-o", "m.mercer")
    assert "row names" not in done.err
    assert "data:image/png" in (tmp_path / "r.html").read_text("utf-8")
    assert (tmp_path / "s.csv").read_text().splitlines()[13].startswith("large.png,")
    # New images are resized as those of the fit.
    mercer("transform", "m.mercer", faces, "-o", "t.csv")
    assert (tmp_path / "t.csv").read_text() == (tmp_path / "s.csv").read_text()
    np.save(tmp_path / "rows.npy", PIXELS.reshape(12, 48))
    mercer("transform", "m.mercer", "rows.npy", "-o", "rows.csv")
    mercer("report", "m.mercer", "-o", "only.html")
    assert "data:image/png" in (tmp_path / "only.html").read_text("utf-8")
    expected = PCA(2).fit(read_table(faces, resize=(8, 6)).source)
    assert_allclose(load(tmp_path / "m.mercer").components_, expected.components_, atol=1e-9)
    assert "--resize 'x'" in mercer("fit", faces, "--resize", "x", "-o", "n.mercer", code=2).err

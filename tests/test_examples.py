"""Examples run: what they print, what they write, what they refuse."""

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from compare_methods import main as compare
from compare_pictures import Result, runtimes

from mercer import KernelPCA
from tests.catalogue import others_slow

FEW = ["--axes", "2", "--basis", "12"]


@pytest.fixture(name="plane")
def rows(tmp_path, rng):
    path = tmp_path / "plane.csv"
    np.savetxt(path, rng.normal(size=(60, 2)), delimiter=",", header="width,height", comments="")
    return path


@pytest.mark.slow
def test_compare_methods_of_a_table_with_text(plane, tmp_path, capsys):
    lines = plane.read_text().splitlines()
    rows = ["id,kind," + lines[0], *(f"{i},k{i % 3},{row}" for i, row in enumerate(lines[1:]))]
    plane.write_text("\n".join(rows))
    compare([str(plane), *FEW, "--rules", "uniform", "-o", str(tmp_path / "out.png")])
    assert "60 rows of 2 columns" in capsys.readouterr().out


@pytest.mark.slow
def test_compare_methods_of_a_plane(plane, tmp_path, capsys):
    picture = tmp_path / "out.png"
    compare([str(plane), *FEW, "--rules", "uniform", "kmeans", "-o", str(picture)])
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "60 rows of 2 columns" in lines[0]
    names = [tuple(line.split()[:2]) for line in lines[3:-2] if line.strip()]
    methods = ["Subset", "Reduced", "Nyström", "Improved"]
    on = [(method, rule) for rule in ("uniform", "kmeans") for method in methods]
    others = ["Cholesky", "Sparse", "Sketch", "Features", "SparseL1"]
    others += 5 * ["Hebbian"]
    assert names[: len(on) + 1] == [("exact", "all"), *on]
    assert [name for name, _ in names[len(on) + 1 :]] == others
    ratios = {name: float(line.split()[3]) for name, line in zip(on, lines[4:], strict=False)}
    for rule in ("uniform", "kmeans"):
        assert 1 <= ratios["Subset", rule] == min(ratios[method, rule] for method in methods)
    assert "Contours" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_methods_by_their_times(tmp_path, rng, capsys):
    path, picture = tmp_path / "rows.npy", tmp_path / "out.png"
    np.save(path, rng.normal(size=(40, 3)))
    kernel = ["--kernel", "poly(2)", "--center", "--methods", "Subset", "Cholesky"]
    rest = ["--axes", "2", "--rules", "uniform", "-o", str(picture)]
    compare([str(path), str(path), *kernel, *rest, "--basis", "0.2", "20"])
    out = capsys.readouterr().out
    sizes = [line.split()[2] for line in out.splitlines() if line.startswith("Subset")]
    assert sizes == ["8", "20", "8", "20"]
    assert "D²/r against seconds" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_no_timing_pays_for_a_first_fit(plane, tmp_path, monkeypatch):
    fits, fit = [], KernelPCA.fit

    def noted(model, X, *rest):
        fits.append((type(model.method), len(X)))
        return fit(model, X, *rest)

    monkeypatch.setattr(KernelPCA, "fit", noted)
    compare([str(plane), *FEW, "--rules", "uniform", "-o", str(tmp_path / "out.png")])
    begun = {kind: next(n for other, n in fits if other is kind) for kind, _ in fits}
    assert set(begun.values()) == {40}


@pytest.mark.parametrize("tables", others_slow([1, 2, 3], 3))
def test_the_words_of_a_picture_fit(tables):
    methods = ["Nyström", "Reduced", "Improved", "Sketch", "Hebbian", "Features"]
    results = [Result("exact", "all rows", 9, None, 1.0, 0.0, 1.0, None)]
    results += [Result(name, "uniform", 9, None, 1.0, 0.1, 1.0, None) for name in methods]
    figure = runtimes({f"table {i}": results for i in range(tables)})
    figure.savefig(io.BytesIO())  # lays it out
    parts = [figure.legends[0], figure.axes[0].yaxis.label]
    wide, high = figure.bbox.size
    for box in (part.get_window_extent() for part in parts):
        assert 0 <= box.x0 <= box.x1 <= wide
        assert 0 <= box.y0 <= box.y1 <= high


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["none"], "'none' is none of normal, circles"),
        (["none.csv"], "there is no file none.csv"),
        (["{plane}", "--axes", "20", "--basis", "10"], "must be in this order"),
        (["{plane}", "--basis", "100"], "60 rows must be in this order"),
        (["{line}"], "rows and columns are needed"),
        (["{plane}", "--kernel", "rbf("], r"rbf\("),
        (["{plane}", "-o", "nowhere/out.png"], "there is no folder nowhere"),
        (["{words}"], "has no numeric column"),
    ],
)
def test_compare_methods_refuses(plane, tmp_path, arguments, match):
    words = tmp_path / "words.csv"
    words.write_text("a,b\nc,d\n")
    line = tmp_path / "line.npy"
    np.save(line, np.arange(9.0))
    with pytest.raises(SystemExit, match=match):
        compare([text.format(plane=plane, words=words, line=line) for text in arguments])

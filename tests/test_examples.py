"""Examples run: what they print, what they write, what they refuse."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from examples.compare_methods import main as compare

FEW = ["--axes", "2", "--basis", "12"]


@pytest.fixture(name="plane")
def rows(tmp_path, rng):
    path = tmp_path / "plane.csv"
    np.savetxt(path, rng.normal(size=(60, 2)), delimiter=",", header="width,height", comments="")
    return path


def test_compare_methods_of_a_plane(plane, tmp_path, capsys):
    picture = tmp_path / "out.png"
    compare([str(plane), *FEW, "--rules", "uniform", "kmeans", "-o", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    assert "60 rows of 2 columns" in lines[0]
    names = [tuple(line.split()[:2]) for line in lines[3:-2]]
    methods = ["Subset", "Reduced", "Nyström", "Improved"]
    on = [(method, rule) for rule in ("uniform", "kmeans") for method in methods]
    assert names == [("exact", "all"), *on, ("Cholesky", "its")]
    ratios = {name: float(line.split()[2]) for name, line in zip(on, lines[4:], strict=False)}
    for rule in ("uniform", "kmeans"):
        assert 1 <= ratios["Subset", rule] == min(ratios[method, rule] for method in methods)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_methods_of_more_columns(tmp_path, rng, capsys):
    path = tmp_path / "rows.npy"
    np.save(path, rng.normal(size=(40, 3)))
    compare([str(path), *FEW, "--rules", "uniform", "--kernel", "poly(2)", "--center"])
    assert "No picture: contours need rows of two columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["none"], "'none' is none of normal, circles"),
        (["none.csv"], "there is no file none.csv"),
        (["{plane}", "--axes", "20", "--basis", "10"], "must be in this order"),
        (["{plane}", "--basis", "100"], "60 rows must be in this order"),
        (["{plane}", "--kernel", "rbf("], r"rbf\("),
        (["{plane}", "-o", "nowhere/out.png"], "there is no folder nowhere"),
        (["{words}"], "should hold numbers between commas"),
    ],
)
def test_compare_methods_refuses(plane, tmp_path, arguments, match):
    words = tmp_path / "words.csv"
    words.write_text("a,b\nc,d\n")
    with pytest.raises(SystemExit, match=match):
        compare([text.format(plane=plane, words=words) for text in arguments])

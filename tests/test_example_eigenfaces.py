"""examples/eigenfaces.py: what it prints, draws and refuses, with faces and without."""

import re

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the picture needs matplotlib: mercer[plot]")

import eigenfaces


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(eigenfaces, "AXES", (2, 10, 40))
    monkeypatch.setattr(eigenfaces, "SHOWN", (10, 40))


def rates(out):
    found = re.findall(r"^ *(\d+) +([\d.]+) % +([\d.]+) %$", out, flags=re.MULTILINE)
    return {int(k): (float(linear), float(kernel)) for k, linear, kernel in found}


def test_digits_where_there_are_no_faces(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    eigenfaces.main(["--splits", "1", "-o", str(tmp_path / "out.png")])
    out = capsys.readouterr().out
    assert "digits stand in for faces" in out
    found = rates(out)
    assert set(found) == {2, 10, 40}
    assert min(found[40]) > 90 > max(found[2])
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_faces(tmp_path, monkeypatch, capsys, rng):
    people = np.repeat(np.arange(40), 10)
    rows = rng.uniform(0, 160, (40, 112 * 92))[people] + rng.normal(0, 20, (400, 112 * 92))
    np.savez(tmp_path / "orl_faces.npz", X=np.clip(rows, 0, 255).astype(np.uint8), y=people)
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    eigenfaces.main(["--splits", "1", "-o", str(tmp_path / "out.png")])
    out = capsys.readouterr().out
    assert "400 photographs of 40 people" in out
    assert rates(out)[40] == (100.0, 100.0)  # nobody is taken for another: no such row is drawn
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_it_refuses(capsys):
    for arguments, match in (
        (["--splits", "0"], "at least one"),
        (["-o", "no/x.png"], "no folder"),
    ):
        with pytest.raises(SystemExit):
            eigenfaces.main(arguments)
        assert match in capsys.readouterr().err

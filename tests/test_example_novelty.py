"""examples/novelty.py: what it prints, draws and refuses."""

import re

import pytest

pytest.importorskip("matplotlib", reason="the picture needs matplotlib: mercer[plot]")

from novelty import main


@pytest.mark.slow
def test_it_runs(tmp_path, capsys):
    main(["--points", "300", "-o", str(tmp_path / "out.png")])
    out = capsys.readouterr().out
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    found = {}
    for line in out.splitlines():
        row = re.match(
            r"(.+?)  +(kernel PCA|linear PCA|one-class SVM) +([\d.]+) % +([\d.]+) %", line
        )
        if row:
            found[row[1], row[2]] = float(row[3]), float(row[4])
    assert len(found) == 9
    for shape in ("frame", "ring, line and square", "spiral"):
        assert found[shape, "kernel PCA"][0] > 80
        assert found[shape, "kernel PCA"][1] < found[shape, "linear PCA"][1] - 15


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--points", "3"], "at least 80"),
        (["--contamination", "0.7"], "at most 0.5"),
        (["-o", "nowhere/out.png"], "no folder nowhere"),
    ],
)
def test_it_refuses(arguments, match, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert match in capsys.readouterr().err

"""The example of denoising: what it prints, what it draws, what it refuses."""

import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from denoise import main


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*above rounding error")
def test_kernel_pca_removes_more_noise_than_pca(tmp_path, capsys):
    picture = tmp_path / "out.png"
    main(["--rows", "500", "-o", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    errors = [(line.split()[0], line[12:25]) for line in lines if line[12:25].strip()[:1].isdigit()]
    found = [float(error) for name, error in errors if name in ("noisy", "kernel", "PCA")]
    for noisy, kernel, linear in (found[:3], found[3:]):
        assert kernel < linear < noisy
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_refuses(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    for arguments, match in ((["--mnist"], "no mnist.npz"), (["-o", "none/x.png"], "no folder")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert match in capsys.readouterr().err

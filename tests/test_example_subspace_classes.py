"""The example of subspace classifiers runs: what it prints, what it draws, what it refuses."""

import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

import subspace_classes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_errors_and_a_picture(tmp_path, capsys):
    picture = tmp_path / "out.png"
    subspace_classes.main(["--rows", "300", "-o", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    errors = {line[:36].strip(): float(line[36:44].strip(" %")) for line in lines if " ms " in line}
    assert list(errors) == list(subspace_classes.classifiers())
    assert max(errors.values()) < 20
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_is_not_there():
    with pytest.raises(SystemExit, match="there is no folder nowhere"):
        subspace_classes.main(["-o", "nowhere/out.png"])

"""Results of the sources in their quick form: what they find must make sense."""

import importlib

import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")


def result(name):
    try:
        return importlib.import_module(f"papers.{name}").run(quick=True)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))


@pytest.mark.slow
def test_denoising():
    found = result("denoising")
    errors = {line.what: line.ours for line in found.lines}
    for noise, before in (("σ = 50", 19.6), ("p = 0.2", 40.0)):
        for basis in ("centroids", "nearest"):
            subset, reduced = (errors[f"{noise}: {way} (60), {basis}"] for way in ("SubKp", "RKp"))
            assert subset < 1.01 * reduced < before
        assert errors[f"{noise}: Wiener"] < errors[f"{noise}: linear PCA"] < before
    assert found.figure is not None

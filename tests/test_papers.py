"""Results of the sources in their quick form: they run, and say something sensible."""

import importlib
import os
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

FOLDER = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))


def quick(name, data):
    """Return the figures of a quick run by what they are of; skip where data are absent."""
    if not (FOLDER / f"{data}.npz").is_file():
        pytest.skip(f"{data}.npz is not in MERCER_DATA")
    result = importlib.import_module(f"papers.{name}").run(quick=True)
    assert result.figure is not None
    return {line.what: line.ours for line in result.lines}


def test_novelty():
    found = quick("novelty", "breast_cancer_wisconsin_original")
    linear = max(area for what, area in found.items() if what.startswith("linear PCA"))
    for what in ("kernel PCA, γ and k chosen", "kernel PCA, default"):
        assert found[what] >= max(0.98, linear)


def test_eigenfaces():
    found = quick("eigenfaces", "orl_faces")
    assert found["linear PCA, 40 axes"] > found["linear PCA, 10 axes"] > 80
    assert found["linear PCA, 40 axes"] > found["1-NN of the pixels"] - 5
    assert found["kernel PCA, k chosen"] > 85

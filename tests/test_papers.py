"""Results of the sources, in a hurry: they run, and what must be is judged rightly."""

import numpy as np
import pytest

from papers import lsa, segmentation


def lines_of(module):
    """Return the figures of a quick run by their names; skip where the data are absent."""
    try:
        result = module.run(quick=True)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    assert result.figure is not None
    return {line.what: line for line in result.lines}


def test_lsa():
    found = lines_of(lsa)
    assert found["tf-idf of key words: variance, percent"].met
    assert found["shares of key words: variance, percent"].met
    # Of shares, so few documents and axes are no gain.
    assert found["tf-idf of key words, 20 axes, mercer.PCA: average precision"].met


def test_segmentation():
    found = lines_of(segmentation)
    errors = {what: line.ours for what, line in found.items()}
    assert errors["linear, all 14 axes"] < 0.08
    assert errors["Laplace, all 697 axes"] < errors["linear, all 14 axes"]
    assert errors["without copies: Laplace, all 617 axes"] < 0.05
    assert errors["RBF, 50 axes"] > 0.4


def test_segmentation_of_all_rows():
    """Two lines of Table I that take no time, and rows that are tested with and not learned."""
    try:
        split = segmentation.rows()
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    found = {
        name: segmentation.extracted(split, segmentation.KERNELS[name][0])
        for name in ("linear", "polynomial")
    }
    assert found["linear"].error(found["linear"].axes) == pytest.approx(0.0380, abs=2e-4)
    assert found["polynomial"].error(50) == pytest.approx(0.0238, abs=1e-4)
    apart = split.without_copies()
    assert len(apart.X) == 1888
    both = np.concatenate([np.unique(apart.X, axis=0), np.unique(apart.X_test, axis=0)])
    assert len(np.unique(both, axis=0)) == len(both)

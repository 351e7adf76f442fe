"""Results of the sources in their quick form: they run, and say something sensible."""

import importlib

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the pictures need matplotlib: mercer[plot]")

from sklearn.datasets import load_digits

from mercer import KernelPCA, SubspaceClassifier
from mercer.kernels import RBF
from papers import results, segmentation, usps
from papers.__main__ import NAMES, main
from papers.data import load
from papers.results import Line, Result


def quick(name):
    """Return the lines of a quick run by what they are of; skip where data are absent."""
    try:
        result = importlib.import_module(f"papers.{name}").run(quick=True)
    except FileNotFoundError as absent:
        pytest.skip(str(absent))
    assert result.figure is not None
    assert all(np.isfinite(line.ours) for line in result.lines)
    return {line.what: line for line in result.lines}


def figures(name):
    """Return what a quick run found."""
    return {what: line.ours for what, line in quick(name).items()}


def test_novelty():
    found = figures("novelty")
    linear = max(area for what, area in found.items() if what.startswith("linear PCA"))
    for what in ("kernel PCA, γ and k chosen", "kernel PCA, default"):
        assert found[what] >= max(0.98, linear)


def test_eigenfaces():
    found = figures("eigenfaces")
    assert found["linear PCA, 40 axes"] > found["linear PCA, 10 axes"] > 80
    assert found["linear PCA, 40 axes"] > found["1-NN of the pixels"] - 5
    assert found["kernel PCA, k chosen"] > 85


def test_lsa():
    found = quick("lsa")
    assert found["tf-idf of key words: variance, percent"].met
    assert found["shares of key words: variance, percent"].met
    # Of shares, so few documents and axes are no gain.
    assert found["tf-idf of key words, 20 axes, mercer.PCA: average precision"].met


def test_segmentation():
    errors = figures("segmentation")
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


@pytest.mark.slow
def test_usps():
    errors = figures("usps")
    few, more = "SubKp (c), 10%, random", "SubKp (c), 10%, k-means centres"
    assert errors["kernel CLAFIC (c), all rows"] < errors[more] < errors[few]
    assert errors["kernel CLAFIC (c), all rows"] < 15


def test_fewer_axes_from_one_fit():
    X, y = load_digits(return_X_y=True)

    def fitted(k):
        return SubspaceClassifier(KernelPCA(k, kernel=RBF(1e-3))).fit(X[:600], y[:600])

    left = usps.all_residuals(fitted(40), X[:50])
    for r in (10, 30):
        found = left[:, :, usps.AXES.index(r)]
        np.testing.assert_allclose(found, fitted(r).reconstruction_error(X[:50]), atol=1e-7)


@pytest.mark.slow
def test_denoising():
    errors = figures("denoising")
    for noise, before in (("σ = 50", 19.6), ("p = 0.2", 40.0)):
        for basis in ("centroids", "nearest"):
            subset, reduced = (errors[f"{noise}: {way} (60), {basis}"] for way in ("SubKp", "RKp"))
            assert subset < 1.01 * reduced < before
        assert errors[f"{noise}: Wiener"] < errors[f"{noise}: linear PCA"] < before


def test_what_must_be_is_judged():
    assert Line("a", 1.0).met is None
    assert Line("a", 1.0, most=1.0, least=0.5).met is True
    assert Line("a", 1.1, most=1.0).met is False
    assert Line("a", 0.4, least=0.5).met is False
    assert Line("a", float("nan"), most=1.0).met is False
    assert not Result("title", [Line("a", 1.0), Line("b", 2.0, most=1.0)]).met
    assert Line("a", 2.0, "1.9", most=2.5, spread=0.1).cells()[1:4] == (
        "1.9",
        "2.00 ± 0.10",
        "≤ 2.50",
    )


def test_the_page_keeps_each_result_once(tmp_path):
    page = tmp_path / "RESULTS.md"
    for name, figure in (("b", 1.0), ("a", 2.0), ("b", 3.0)):
        results.keep(name, Result(f"title of {name}", [Line("x", figure)]), 1.0, page)
    text = page.read_text()
    assert text.count("## a\n") == text.count("## b\n") == 1
    assert text.index("## a") < text.index("## b")
    assert "| 3.00 |" in text
    assert "| 1.00 |" not in text
    assert text.startswith("# Results of the sources")


def test_what_is_named_and_has_no_data_is_no_success(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    load.cache_clear()
    assert main(["segmentation", "--quick"]) == 1
    assert "segmentation: skipped" in capsys.readouterr().out


def test_the_command_names_what_there_is(capsys):
    assert {"novelty", "eigenfaces", "lsa", "segmentation"} <= set(NAMES)
    with pytest.raises(SystemExit, match="2"):
        main(["nothing"])
    assert "nothing" in capsys.readouterr().err

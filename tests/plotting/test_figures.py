"""Figures and memory: where figures come from, and what is left behind."""

import gc
import subprocess
import sys
import tracemalloc
import types
import weakref

import numpy as np
import pytest
import sklearn.decomposition as peers
from matplotlib import pyplot
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import PCA, config_context
from mercer.plotting import ReconstructionErrorDisplay, ScoresDisplay


def test_a_figure_goes_with_its_axes(X):
    ax = ScoresDisplay.from_scores(X).ax_
    figure = weakref.ref(ax.figure)
    del ax
    gc.collect()
    assert figure() is None


def test_a_notebook_gets_a_figure_it_displays(X, monkeypatch):
    pyplot.figure(1)  # the display hook is in place before the stand-in comes
    pyplot.close(1)
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    ax = ScoresDisplay.from_scores(X).ax_
    assert [pyplot.figure(n) for n in pyplot.get_fignums()] == [ax.figure]
    pyplot.close(ax.figure)


def test_without_matplotlib(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for module in ("figure", "colors", "ticker"):
        monkeypatch.delitem(sys.modules, f"matplotlib.{module}", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[plot\]'"):
        ScoresDisplay.from_scores(X)


def test_matplotlib_comes_with_the_first_figure_and_pyplot_never():
    code = (
        "import io, sys, mercer; from mercer.plotting import BiplotDisplay, SpectrumDisplay;"
        "assert 'matplotlib' not in sys.modules;"
        "X = [[1.0, 2, 3], [2, 1, 1], [0, 4, 2], [3, 3, 7]]; pca = mercer.PCA().fit(X);"
        "BiplotDisplay.from_estimator(pca, X).figure_.savefig(io.BytesIO());"
        "SpectrumDisplay.from_estimator(pca).figure_.savefig(io.BytesIO(), format='svg');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "plotting" in dir(mercer)


@pytest.fixture(scope="module")
def large():
    return np.random.default_rng(0).standard_normal((12_000, 200))


MODELS = {
    "ours": PCA(5),
    "pipeline": make_pipeline(StandardScaler(), PCA(5)),
    "theirs": peers.PCA(5),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ScoresDisplay, "ours"),
        (ScoresDisplay, "pipeline"),
        (ScoresDisplay, "theirs"),
        (ReconstructionErrorDisplay, "ours"),
        (ReconstructionErrorDisplay, "pipeline"),
        (ReconstructionErrorDisplay, "theirs"),
    ],
)
def test_no_copy_of_the_rows(large, kind, name):
    model = MODELS[name].fit(large)
    kind.from_estimator(model, large[:100])  # first imports are not counted
    tracemalloc.start()
    with config_context(block_rows=300):
        display = kind.from_estimator(model, large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    display.figure_.clear()
    assert peak < 0.4 * large.nbytes

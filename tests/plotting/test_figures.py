"""Figures: where they come from, and what is left behind."""

import gc
import subprocess
import sys
import types
import weakref

import pytest
from matplotlib import pyplot

import mercer
from mercer.plotting import ScoresDisplay


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


def test_matplotlib_comes_with_the_first_figure():
    code = "import sys, mercer; mercer.plotting.SpectrumDisplay;"
    code += "assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "plotting" in dir(mercer)


def test_figures_need_no_pyplot():
    code = (
        "import io, sys; from sklearn.datasets import load_iris; from mercer import PCA;"
        "from mercer.plotting import BiplotDisplay, SpectrumDisplay;"
        "X = load_iris().data; pca = PCA().fit(X);"
        "BiplotDisplay.from_estimator(pca, X).figure_.savefig(io.BytesIO());"
        "SpectrumDisplay.from_estimator(pca).figure_.savefig(io.BytesIO(), format='svg');"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

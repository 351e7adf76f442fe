"""Certificates: explained variance, the bound on the optimum, and how certain they are."""

import numpy as np
import pytest
import sklearn.decomposition as peers
from matplotlib.figure import Figure as Picture
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, Certificate, ConvergenceWarning, KernelPCA, NoveltyDetector
from mercer.certificate import Figure
from mercer.messages import percent
from mercer.methods import Subset
from mercer.plotting import CertificateDisplay
from tests.plotting.artists import apart, lay_out


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:300]


@pytest.fixture(scope="module")
def subset(digits):
    return KernelPCA(5, kernel="rbf", gamma="median", method=Subset(60), random_state=0).fit(digits)


def certificate(captured, upper, **options):
    values, total = np.array([2.0, 1.0]), (Figure(1.0), Figure(1.0))
    return Certificate(captured, {"": upper}, total, values, 0.01 * values, np.ones(2), **options)


def words(text):
    return " ".join(text.get_text().split())


def test_bars_are_the_figures(digits, subset):
    known = subset.certificate_
    display = CertificateDisplay.from_estimator(subset)
    (explained,), (gap,) = display.captured_, display.gaps_
    assert explained.get_width() == float(known.captured)
    assert gap.get_x() == float(known.captured)
    assert gap.get_x() + gap.get_width() == pytest.approx(float(known.optimum_upper))
    assert set(display.optima_[0].get_xdata()) == {float(known.optimum_upper)}
    (mark,) = (line for line in display.ax_.lines if line.get_marker() == "v")
    likely = float(known.captured) / (1 - float(known.gap_estimate))
    assert mark.get_xdata() == pytest.approx([likely])
    # Independent of the certificate: what exact kernel PCA explains lies in the gap.
    exact = KernelPCA(5, kernel="rbf", gamma=subset.gamma_).fit(digits)
    best = float(exact.explained_variance_ratio_.sum())
    assert explained.get_width() <= best <= gap.get_x() + gap.get_width()
    text = words(display.texts_[0])
    assert f"explained {percent(known.captured)}" in text
    assert f"optimum ≤ {percent(known.optimum_upper, up=True)}" in text
    assert f"gap ≤ {percent(known.gap, up=True)} ({known.gap.label})" in text
    assert f"probably {percent(known.gap_estimate, up=True)}" in text
    assert display.ax_.get_xlabel() == "Share of the variance"


def test_bounds_estimates_and_convergence():
    proven = certificate(Figure(0.5), Figure(0.6, "bound", 0.999))
    guess = certificate(Figure(0.5, "estimate"), Figure(0.6, "estimate"), converged=False)
    display = CertificateDisplay({"proven": proven, "guess": guess}).plot()
    assert [line.get_linestyle() for line in display.optima_] == ["-", ":"]
    first, second = map(words, display.texts_)
    assert "optimum ≤ 60.00 % (at 99.9 % confidence)" in first
    assert first.endswith("converged")
    assert "not converged" not in first
    assert "optimum about 60.00 % (estimated)" in second
    assert "gap about 16.67 % (estimated)" in second
    assert second.endswith("not converged")
    assert display.texts_[0].get_color() != display.texts_[1].get_color()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["proven", "guess"]
    ends = display.ax_.get_ylim()
    assert ends[0] > ends[1]  # the first is the highest


def test_a_bound_is_never_rounded_down():
    one = certificate(Figure(0.43871), Figure(0.438711))
    assert "optimum ≤ 43.88 %" in words(CertificateDisplay({"": one}).plot().texts_[0])


@pytest.mark.parametrize("size", [(3, 2.4), (4, 2.6), (8, 4)])
def test_texts_are_in_the_frame_and_off_the_bars(subset, size):
    ax = Picture(size, layout="constrained").subplots()
    display = CertificateDisplay.from_estimators({"a": subset, "b": subset, "c": subset}, ax=ax)
    assert display.ax_ is ax
    lay_out(display)
    assert apart([*display.texts_, *display.captured_])
    for text in display.texts_:
        box = text.get_window_extent()
        assert box.x1 <= ax.get_window_extent().x1 + 3
        assert box.y0 >= ax.get_window_extent().y0 - 3


@pytest.mark.parametrize("count", [1, 4])
def test_there_is_no_blank_band_below_the_last_text(subset, count):
    models = {str(i) if count > 1 else "": subset for i in range(count)}
    display = CertificateDisplay.from_estimators(models)
    lay_out(display)
    last, axis = display.texts_[-1].get_window_extent().y0, display.ax_.get_window_extent().y0
    assert 0 <= last - axis <= 2.5 * display.texts_[-1].get_fontsize() * display.figure_.dpi / 72


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_no_variance():
    lay_out(CertificateDisplay.from_estimator(PCA(2).fit(np.ones((5, 3)))))


def test_models_around_models(digits):
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(digits)
    detector = NoveltyDetector(PCA(3)).fit(digits)
    for model, inner in ((pipe, pipe[-1]), (detector, detector.estimator_)):
        display = CertificateDisplay.from_estimator(model)
        assert display.captured_[0].get_width() == float(inner.certificate_.captured)


def test_a_fit_that_did_not_converge(digits):
    with pytest.warns(ConvergenceWarning):
        pca = PCA(5, svd_solver="randomized", iterated_power=0, random_state=0).fit(digits)
    assert "not converged" in CertificateDisplay.from_estimator(pca).texts_[0].get_text()


def test_errors(digits):
    with pytest.raises(TypeError, match="This PCA has no certificate_"):
        CertificateDisplay.from_estimator(peers.PCA(2).fit(digits))
    with pytest.raises(TypeError, match="not fitted"):
        CertificateDisplay.from_estimator(PCA())
    with pytest.raises(ValueError, match="certificates is empty"):
        CertificateDisplay.from_estimators({})

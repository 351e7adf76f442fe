"""Certificates: what is held, what no others can exceed, how sure that is."""

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
from tests.plotting.drawn import apart, rendered


@pytest.fixture(scope="module")
def digits():
    return load_digits().data[:600]


@pytest.fixture(scope="module")
def subset(digits):
    return KernelPCA(5, kernel="rbf", gamma="median", method=Subset(60), random_state=0).fit(digits)


def made(captured, upper, **options):
    values = np.array([2.0, 1.0])
    return Certificate(captured, upper, 0.01 * values, values, np.ones(2), **options)


def test_bars_are_the_figures(digits, subset):
    found = subset.certificate_
    display = CertificateDisplay.from_estimator(subset)
    (held,), (gap,) = display.captured_, display.gaps_
    assert held.get_width() == float(found.captured)
    assert gap.get_x() == float(found.captured)
    assert gap.get_x() + gap.get_width() == pytest.approx(float(found.optimum_upper))
    assert set(display.optima_[0].get_xdata()) == {float(found.optimum_upper)}
    # Independent of the certificate: what exact kernel PCA holds lies in the gap.
    exact = KernelPCA(5, kernel="rbf", gamma=subset.gamma_).fit(digits)
    best = float(exact.explained_variance_ratio_.sum())
    assert held.get_width() <= best <= gap.get_x() + gap.get_width()
    text = " ".join(display.texts_[0].get_text().split())
    assert f"explained {percent(found.captured)}" in text
    assert f"gap ≤ {percent(found.gap, up=True)} ({found.gap.label})" in text
    assert f"probably {percent(found.gap_estimate, up=True)}" in text
    assert display.ax_.get_xlabel() == "Share of the variance"


def test_bounds_estimates_and_convergence():
    sure = made(Figure(0.5), Figure(0.6, "bound", 0.999))
    guess = made(Figure(0.5, "estimate"), Figure(0.6, "estimate"), converged=False)
    display = CertificateDisplay({"sure": sure, "guess": guess}).plot()
    assert [line.get_linestyle() for line in display.optima_] == ["-", ":"]
    first, second = (" ".join(text.get_text().split()) for text in display.texts_)
    assert "optimum ≤ 60.00 % (at 99.9 % confidence)" in first
    assert first.endswith("converged")
    assert "not converged" not in first
    assert "optimum about 60.00 % (estimated)" in second
    assert "gap about 16.67 % (estimated)" in second
    assert second.endswith("not converged")
    assert display.texts_[0].get_color() != display.texts_[1].get_color()
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["sure", "guess"]
    ends = display.ax_.get_ylim()
    assert ends[0] > ends[1]  # the first is the highest


@pytest.mark.parametrize("size", [(3, 2.4), (4, 2.6), (8, 4)])
def test_words_stay_in_the_frame_and_off_the_bars(subset, size):
    ax = Picture(size, layout="constrained").subplots()
    display = CertificateDisplay.from_estimators({"a": subset, "b": subset, "c": subset}, ax=ax)
    assert display.ax_ is ax
    rendered(display)
    assert apart([*display.texts_, *display.captured_])
    for text in display.texts_:
        box = text.get_window_extent()
        assert box.x1 <= ax.get_window_extent().x1 + 3
        assert box.y0 >= ax.get_window_extent().y0 - 3


def test_each_axis(digits):
    pca = PCA(6).fit(digits)
    found = pca.certificate_
    display = CertificateDisplay.from_estimators({"first": pca, "$_": pca}, kind="components")
    np.testing.assert_allclose(
        display.residuals_[0].get_ydata(), found.residuals / found.eigenvalues
    )
    np.testing.assert_allclose(
        display.errors_[1].get_ydata(), found.eigenvalue_errors / found.eigenvalues
    )
    assert list(display.residuals_[0].get_xdata()) == [1, 2, 3, 4, 5, 6]
    assert display.ax_.get_yscale() == "log"
    assert display.ax_.get_ylabel() == "As a share of the eigenvalue"
    rendered(display)


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_axes_without_variance(digits):
    X = np.c_[digits[:, 10:13], np.zeros(len(digits))]
    display = CertificateDisplay.from_estimator(PCA(4).fit(X), kind="components")
    assert np.isnan(display.residuals_[0].get_ydata()[3])
    still = PCA(2).fit(np.ones((5, 3)))
    rendered(CertificateDisplay.from_estimator(still))
    rendered(CertificateDisplay.from_estimator(still, kind="components"))


def test_models_around_models(digits):
    pipe = make_pipeline(StandardScaler(), PCA(3)).fit(digits)
    detector = NoveltyDetector(PCA(3)).fit(digits)
    for model, inner in ((pipe, pipe[-1]), (detector, detector.estimator_)):
        display = CertificateDisplay.from_estimator(model)
        assert display.captured_[0].get_width() == float(inner.certificate_.captured)


def test_what_did_not_converge(digits):
    with pytest.warns(ConvergenceWarning):
        pca = PCA(5, svd_solver="randomized", iterated_power=0, random_state=0).fit(digits)
    assert "not converged" in CertificateDisplay.from_estimator(pca).texts_[0].get_text()


def test_what_is_refused(digits):
    with pytest.raises(TypeError, match="This PCA has no certificate_"):
        CertificateDisplay.from_estimator(peers.PCA(2).fit(digits))
    with pytest.raises(TypeError, match="not fitted"):
        CertificateDisplay.from_estimator(PCA())
    with pytest.raises(ValueError, match="certificates is empty"):
        CertificateDisplay.from_estimators({})
    with pytest.raises(ValueError, match='must be "bar" or "components"'):
        CertificateDisplay.from_estimator(PCA(2).fit(digits), kind="pie")
    silent = made(Figure(0.5), Figure(0.6))
    object.__setattr__(silent, "residuals", np.full(2, np.nan))
    with pytest.raises(ValueError, match="'basis' has no residuals of single components"):
        CertificateDisplay({"basis": silent}).plot(kind="components")


@pytest.mark.parametrize("count", [1, 2, 4])
def test_there_is_no_blank_band_below_the_last_text(X, count):
    pca = PCA(2).fit(X)
    display = CertificateDisplay({"": pca.certificate_}).plot()
    if count > 1:
        display = CertificateDisplay.from_estimators({str(i): pca for i in range(count)})
    display.figure_.draw_without_rendering()
    last = display.texts_[-1].get_window_extent().y0
    axis = display.ax_.get_window_extent().y0
    assert 0 <= last - axis <= 2.2 * display.texts_[-1].get_fontsize() * display.figure_.dpi / 72

"""The certificate of a fit: what it says is true, and says what kind of truth it is."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import mercer
from mercer import PCA, Certificate, linalg
from mercer.certificate import SPECTRUM, Figure, spacing_of
from mercer.estimators.pca import SOLVERS
from mercer.linalg.operator import least_certain
from mercer.messages import percent
from mercer.methods import FrequentDirections, Iterative
from tests.catalogue import pairwise

ITERATIVE = ("krylov", "arpack", "randomized", "power")


def flat(shape=(300, 80), seed=0):
    """Noise: the spectrum falls so slowly that few steps find little of it."""
    return np.random.default_rng(seed).normal(size=shape)


def steep(shape=(200, 30), seed=0, dtype=np.float64):
    return (flat(shape, seed) * 0.7 ** np.arange(shape[1]) + 1.0).astype(dtype)


class Truth:
    """What a full decomposition says of the axes of a fit."""

    def __init__(self, X, pca):
        X = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
        total = (X**2).sum()
        V = np.linalg.qr(pca.components_.T.astype(np.float64))[0]
        values, axes = np.linalg.eigh(X.T @ X)
        values, self.axes = values[::-1], axes.T[::-1]
        self.values = values / (len(X) - 1)
        self.held = ((X @ V) ** 2).sum() / total
        self.best = values[: V.shape[1]].sum() / total
        self.gap = 1 - self.held / self.best


def fit(X, *args, **parameters):
    """Fit, whether or not the solver converges."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        return PCA(*args, random_state=0, **parameters).fit(X)


# What it says is true.


@pairwise(dtype=["float32", "float64"], data=[flat, steep], solver=SOLVERS)
def test_shares_are_bounds(solver, data, dtype):
    X = data().astype(dtype)
    pca = fit(X, 4, svd_solver=solver)
    truth, certificate = Truth(X, pca), pca.certificate_
    # float32 axes are themselves rounded: the share they hold is theirs to a few eps.
    slack = 10 * np.finfo(dtype).eps
    assert certificate.captured <= truth.held + slack
    assert truth.best <= certificate.optimum_upper + 1e-14
    assert truth.gap <= certificate.gap + slack


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_shares_are_bounds_where_the_solver_stopped_early(steps):
    X = flat()
    pca = fit(X, 4, svd_solver="randomized", iterated_power=steps)
    truth, certificate = Truth(X, pca), pca.certificate_
    assert certificate.captured <= truth.held <= truth.best <= certificate.optimum_upper
    assert certificate.gap > 1e-4  # it has not converged, and says so


@pytest.mark.parametrize("size", [5, 20, 60])
def test_shares_are_bounds_of_a_sketch(size):
    X = flat()
    pca = fit(X, 4, svd_solver=FrequentDirections(size))
    truth, certificate = Truth(X, pca), pca.certificate_
    assert certificate.captured <= truth.held <= truth.best <= certificate.optimum_upper


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "dot", "jacobi"])
def test_exact_methods_leave_rounding(solver):
    assert fit(steep(), 3, svd_solver=solver).certificate_.gap < 1e-10


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("solver", ITERATIVE)
def test_an_eigenvalue_lies_within_the_residual(solver, tol):
    X = flat()
    pca = fit(X, 4, svd_solver=solver, tol=tol)
    apart = np.abs(pca.certificate_.eigenvalues[:, None] - Truth(X, pca).values).min(axis=1)
    assert np.all(apart <= pca.certificate_.residuals)


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_errors_of_eigenvalues_are_near_the_truth(tol):
    X = steep()
    pca = fit(X, 3, svd_solver="krylov", tol=tol)
    apart = np.abs(pca.certificate_.eigenvalues - Truth(X, pca).values[:3])
    assert np.all(apart <= 3 * pca.certificate_.eigenvalue_errors + 1e-12)
    assert np.all(pca.certificate_.eigenvalue_errors <= pca.certificate_.residuals)


@pytest.mark.parametrize("solver", ITERATIVE)
def test_residuals_are_those_of_the_axes(solver):
    X = flat()
    pca = fit(X, 3, svd_solver=solver, tol=1e-2)
    V = pca.components_.T
    C = np.cov(X, rowvar=False)
    actual = np.linalg.norm(C @ V - V * pca.explained_variance_, axis=0)
    assert np.all(actual <= 1.01 * pca.certificate_.residuals + 1e-10)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 0.0])
def test_angles_are_near_the_truth(tol):
    X = steep()
    pca = fit(X, 3, svd_solver="krylov", tol=tol)
    cosines = np.abs((pca.components_ * Truth(X, pca).axes[:3]).sum(axis=1))
    angles = np.arccos(np.minimum(1.0, cosines))
    assert np.all(angles <= 2 * pca.certificate_.angles + 1e-7)


def test_equal_eigenvalues_have_no_angle_of_their_own():
    X = np.vstack([np.eye(4), -np.eye(4)])
    angles = fit(X, 2, svd_solver="covariance_eigh").certificate_.angles
    assert np.all(angles[1:] > 1.0)


@pytest.mark.parametrize("exponent", [-490, 490])
def test_units_do_not_matter(exponent):
    X = steep()
    one, other = fit(X, 3).certificate_, fit(X * 2.0**exponent, 3).certificate_
    assert (one.captured, one.gap) == pytest.approx((other.captured, other.gap), abs=1e-12)
    assert_allclose(one.angles, other.angles, rtol=0.5, atol=1e-10)


# Its shape.


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_figure_an_axis(solver):
    certificate = fit(steep(), 5, svd_solver=solver).certificate_
    for name in ("residuals", "eigenvalues", "spacing", "eigenvalue_errors", "angles"):
        figures = getattr(certificate, name)
        assert figures.shape == (5,), name
        assert np.all(figures >= 0), name
    assert_allclose(certificate.eigenvalues, fit(steep(), 5).explained_variance_, rtol=1e-6)


def test_gap_is_what_is_left_to_the_optimum():
    certificate = fit(flat(), 4, svd_solver="randomized", iterated_power=1).certificate_
    assert certificate.gap == pytest.approx(1 - certificate.captured / certificate.optimum_upper)


def test_no_axes():
    certificate = fit(steep(), 0).certificate_
    assert certificate.captured == certificate.gap == 0.0


def test_spacing():
    assert_allclose(spacing_of(np.array([5.0, 3.0]), np.array([2.5, 0.0])), [2.0, 0.5])


def test_spacing_of_the_only_eigenvalue():
    assert spacing_of(np.array([5.0]), np.array([])) == [5.0]


# Its kinds.


@pytest.mark.parametrize(
    ("solver", "dtype", "label"),
    [
        ("full", np.float64, "proven"),
        ("full", np.float32, "proven"),
        ("covariance_eigh", np.float64, "proven"),
        ("covariance_eigh", np.float32, "at 99.9 % confidence"),
        (FrequentDirections(20), np.float64, "proven"),
    ],
    ids=str,
)
def test_kinds(solver, dtype, label):
    X = (flat((600, 20)) + 1.0).astype(dtype)
    assert fit(X, 4, svd_solver=solver).certificate_.gap.label == label


def test_a_bound_that_took_random_vectors_says_how_sure_it_is():
    upper = fit(flat(), 4, svd_solver="randomized").certificate_.optimum_upper
    assert upper.kind == "bound"
    assert 0.99 < upper.confidence < 1.0


def test_what_is_computed_from_figures_is_as_weak_as_the_least_certain():
    sure, likely, guess = Figure(1.0), Figure(1.0, "bound", 0.999), Figure(1.0, "estimate")
    assert least_certain(sure, sure) == {"kind": "bound", "confidence": 1.0}
    assert least_certain(sure, likely)["confidence"] == pytest.approx(0.999)
    assert least_certain(sure, guess)["kind"] == "estimate"


def test_figures_are_numbers():
    assert Figure(0.25) + 0.5 == 0.75
    assert repr(Figure(0.25, "bound", 0.999)) == "0.25 (at 99.9 % confidence)"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_figures_keep_their_kind(copied):
    figure = copied(Figure(0.25, "estimate", 0.9))
    assert (figure, figure.kind, figure.confidence) == (0.25, "estimate", 0.9)


# How it reads.


def certificate(k, captured=None, optimum=None, **changes):
    figures = {
        "explained": Figure(0.8) if captured is None else captured,
        "bounds": {SPECTRUM: Figure(0.81, "bound", 0.999) if optimum is None else optimum},
        "total": (Figure(1.0), Figure(1.0)),
        "residuals": np.full(k, 1e-3),
        "eigenvalues": np.arange(k, 0.0, -1.0),
        "spacing": np.ones(k),
    }
    return Certificate(**{**figures, **changes})


def test_a_sentence():
    assert certificate(3).sentence == (
        "3 components explain 80.00 % of the variance. No 3 components can explain more than "
        "81.00 % (at 99.9 % confidence), so this is within 1.24 % of optimal."
    )


def test_a_sentence_of_one_axis():
    sentence = "1 component explains 80.00 % of the variance. No component can explain more than"
    assert certificate(1).sentence.startswith(sentence)


@given(held=st.floats(0, 1), more=st.floats(0, 0.01), scale=st.floats(0, 1))
def test_no_limit_is_shown_that_is_too_low(held, more, scale):
    """A share is shown rounded down, a limit rounded up or not at all."""
    upper = min(1.0, held + more * scale**8)
    found = certificate(2, captured=Figure(held), optimum=Figure(upper))
    shown = [float(x) for x in re.findall(r"(\d+\.\d+) % (?:of the|\()", found.sentence)]
    assert shown[0] <= 100 * held + 1e-7
    if "more than" in found.sentence:
        assert shown[1] >= 100 * upper - 1e-7
    else:
        assert found.gap < 1e-4


def test_kinds_in_words():
    proven = certificate(2, optimum=Figure(0.81)).sentence
    assert "more than 81.00 % (proven), so this" in proven
    guess = certificate(2, optimum=Figure(0.81, "estimate")).sentence
    assert "more than 81.00 % (estimated), so this" in guess


@pytest.mark.parametrize("digits", [0, 1, 2, 4])
@given(share=st.floats(0, 1))
def test_shares_are_rounded_down_and_limits_up(share, digits):
    """99.998 % is never 100 %, and nothing that is shown as a limit lies below it."""
    low, high = (float(percent(share, digits, up=up).removesuffix(" %")) for up in (False, True))
    step = 10.0**-digits
    assert low <= 100 * share * (1 + 1e-12) + 1e-6 * step
    assert 100 * share <= high * (1 + 1e-12) + 1e-6 * step
    assert high - low <= step * (1 + 1e-9)
    assert (low == 100) == (share >= 1 - 1e-12)  # whatever the digits
    assert percent(low / 100, digits) == percent(share, digits)  # what is shown stays as it is


def test_printing_gives_the_sentence_and_the_table_is_asked_for():
    assert str(certificate(3)) == certificate(3).sentence
    lines = certificate(3).table.splitlines()
    assert lines[0].split() == ["component", "variance", "residual", "error", "angle"]
    assert lines[1].split() == ["proven", "estimated", "estimated"]
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3"]
    assert lines[2].split() == ["1", "3", "1.0e-03", "1.0e-06", "0.057°"]


def test_a_long_table_is_cut():
    axes = [line.split()[0] for line in certificate(40).table.splitlines()[2:]]
    assert axes == ["1", "2", "3", "4", "5", "6", "…", "40"]


def test_a_table_of_what_is_not_known_is_empty():
    assert certificate(3, residuals=np.full(3, np.nan)).table == ""
    assert certificate(0, captured=Figure(0.0)).table == ""


def test_the_best_bound_is_named():
    bounds = {"the span of 9 points": Figure(0.95), "random blocks of 50 rows": Figure(0.9)}
    found = certificate(2, bounds=bounds)
    assert float(found.optimum) == 0.9
    assert found.optimum_from == "random blocks of 50 rows"
    assert "The bound comes from random blocks of 50 rows." in str(found)
    assert certificate(2, bounds={}).optimum_from == "the total variance"


def test_a_notebook_shows_a_bar():
    """Explained, not excluded and impossible parts add up to the whole; texts are escaped."""
    html = certificate(2, notes=("<b> & co",))._repr_html_()
    widths = [float(x) for x in re.findall(r"width:([\d.]+)%", html)]
    assert widths == pytest.approx([80.0, 1.0, 19.0])
    assert "&lt;b&gt; &amp; co" in html
    assert "<b>" not in html
    assert "<details><summary>Components</summary>" in html
    assert html.count("<div") == html.count("</div>")
    gone = certificate(1, captured=Figure(0.0), optimum=Figure(0.0), total=(Figure(0.0),) * 2)
    assert "width:0.0000%" in gone._repr_html_()


def test_printing_tells_of_a_solver_that_stopped():
    text = str(certificate(2, converged=False, notes=("Seen once.",)))
    assert "did not meet its tolerance" in text
    assert "Seen once." in text


def test_a_certificate_without_axes_is_a_sentence():
    assert len(str(certificate(0, captured=Figure(0.0))).splitlines()) == 1


def test_repr_is_what_is_printed():
    assert repr(certificate(3)) == str(certificate(3))


def test_printing_a_fit():
    assert str(fit(steep(), 2).certificate_).startswith("2 components explain ")


# A gap that is asked for.


@pytest.fixture
def products(monkeypatch):
    """Count the vectors that the covariance is multiplied with."""
    counted = []
    original = linalg.CovarianceOperator.matmat

    def matmat(self, V):
        counted.append(V.shape[1])
        return original(self, V)

    monkeypatch.setattr(linalg.CovarianceOperator, "matmat", matmat)
    return counted


@pytest.mark.parametrize("gap", [0.3, 0.05, 0.01, 1e-3])
@pytest.mark.parametrize("data", [flat, steep])
def test_a_gap_is_honoured(data, gap):
    X = data((1000, 150))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pca = PCA(4, svd_solver="krylov", gap=gap, random_state=0).fit(X)
    assert Truth(X, pca).gap <= pca.certificate_.gap <= gap


def test_a_gap_stops_early(products):
    X = flat((1000, 150))
    PCA(4, svd_solver="krylov", random_state=0).fit(X)
    full = sum(products)
    products.clear()
    PCA(4, svd_solver="krylov", gap=0.2, random_state=0).fit(X)
    assert sum(products) < full


def test_a_gap_and_a_share_of_the_variance():
    X = steep((2000, 100))
    pca = PCA(0.9, svd_solver="krylov", gap=0.01, random_state=0).fit(X)
    assert pca.certificate_.gap <= 0.01
    assert pca.explained_variance_ratio_.sum() >= 0.9


def test_a_gap_of_float32_rows():
    X = steep((2000, 100), dtype=np.float32)
    pca = PCA(4, svd_solver="krylov", gap=0.01, random_state=0).fit(X)
    assert Truth(X, pca).gap <= pca.certificate_.gap <= 0.01


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "dot", "auto"])
def test_exact_methods_meet_any_gap(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PCA(4, svd_solver=solver, gap=1e-6).fit(steep())


@pytest.mark.parametrize(
    "parameters",
    [
        {"svd_solver": "randomized", "iterated_power": 0},
        {"svd_solver": FrequentDirections(6)},
        {"svd_solver": Iterative("power"), "tol": 0.5},
    ],
    ids=str,
)
def test_a_gap_that_is_missed_warns(parameters):
    with pytest.warns(
        mercer.ConvergenceWarning, match=r"gap=1e-05 was requested, but only \d.*could be"
    ):
        pca = PCA(4, gap=1e-5, random_state=0, **parameters).fit(flat())
    assert pca.certificate_.gap > 1e-5


def test_a_solver_that_does_not_converge_warns():
    with pytest.warns(mercer.ConvergenceWarning, match="largest residual"):
        PCA(4, svd_solver="randomized", iterated_power=0, random_state=0).fit(flat())

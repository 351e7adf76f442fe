import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import ks_2samp
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.decomposition._pca import _infer_dimension

import mercer
from mercer.rules import (
    MLE,
    BrokenStick,
    Count,
    Fraction,
    GavishDonoho,
    Kaiser,
    ParallelAnalysis,
    RelativeError,
    Rule,
    Threshold,
    as_rule,
    hard_threshold,
    marchenko_pastur_median,
    noise_shares,
)
from tests.catalogue import cycled

RULES = [
    Count(2),
    Fraction(0.7),
    Fraction(0.999),
    RelativeError(0.25),
    RelativeError(1e-9),
    RelativeError(0.0),
    Threshold(0.0),
    Threshold(0.3),
    Threshold(1.0),
    Kaiser(),
    BrokenStick(),
    ParallelAnalysis(trials=10),
    MLE(),
    GavishDonoho(),
    GavishDonoho(noise=3.0),
]


def spectrum(X):
    """Whole spectrum of the covariance of X, its sum, and the shape of X."""
    s = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    values = s**2 / (len(X) - 1)
    return values, values.sum(), *X.shape


def low_rank(n, d, rank, seed, strength=3.0):
    """Unit noise and `rank` singular values well above its largest."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((n, rank)))
    V, _ = np.linalg.qr(rng.standard_normal((d, rank)))
    sizes = strength * (np.sqrt(n) + np.sqrt(d)) * np.linspace(1.3, 1.0, rank)
    return U * sizes @ V.T + rng.standard_normal((n, d))


@st.composite
def spectra(draw):
    """Descending values, with ties and zeros, exact in float64, and a shape n, d that has them."""
    values = draw(st.lists(st.integers(0, 1000), min_size=1, max_size=12))
    more, wide = draw(st.integers(0, 30)), draw(st.booleans())
    n, d = len(values) + (not wide) * more, len(values) + wide * more
    return np.sort(np.array(values, dtype=float))[::-1] / 64, n, d


# Laws of every rule


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(deadline=None, max_examples=50)
@given(whole=spectra())
def test_a_part_of_the_spectrum_never_misleads(rule, whole):
    values, n, d = whole
    assume(n >= d or rule != MLE())
    assume(not isinstance(rule, Count) or rule.k <= min(n, d))
    k = rule.choose(values, values.sum(), n, d)
    assert isinstance(k, int)
    assert 0 <= k <= len(values)
    for m in range(len(values)):
        part = rule.choose(values[:m], values.sum(), n, d)
        assert part is None or part == k
        assert part is None or part <= m
        assert part is None or not rule.needs_all


@pytest.mark.parametrize("rule", [r for r in RULES if not r.needs_all], ids=repr)
@settings(deadline=None, max_examples=50)
@given(whole=spectra())
def test_more_is_asked_for_only_where_it_matters(rule, whole):
    values, n, d = whole
    total = values.sum()
    assume(not isinstance(rule, Count) or rule.k <= min(n, d))
    for m in range(len(values)):
        rest = total - values[:m].sum()
        if rest < 1e-6 * total or rule.choose(values[:m], total, n, d) is not None:
            continue
        tails = rest + np.append(np.cumsum(values[:m][::-1])[::-1], 0.0)
        if isinstance(rule, RelativeError) and np.isclose(tails, rule.e * total, rtol=1e-9).any():
            continue  # Rounding of the total could decide: more is asked for, rightly.
        # The spectrum that goes on as high as it can must give more than the m axes shown.
        high = np.zeros(len(values))
        high[:m] = values[:m]
        high[m] = min([*values[:m][-1:], rest * (1 + 1e-9)])
        assert rule.choose(high, total, n, d) > m


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("power", [-290, -100, 100, 290])
def test_the_unit_does_not_matter(rule, power):
    X = low_rank(60, 12, 3, seed=0)
    values, total, n, d = spectrum(X)
    if rule == GavishDonoho(noise=3.0):
        scaled = GavishDonoho(noise=3.0 * 2.0 ** (power / 2))
    else:
        scaled = rule
    k = rule.choose(values, total, n, d)
    assert scaled.choose(values * 2.0**power, total * 2.0**power, n, d) == k


@pytest.mark.parametrize("rule", [r for r in RULES if not isinstance(r, Count)], ids=repr)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (5, 1), (5, 3)])
def test_constant_data_has_no_axes(rule, n, d):
    # scikit-learn's PCA(0.7) keeps one axis of constant data.
    expected = 1 if isinstance(rule, Fraction) else 0
    assert rule.choose(np.zeros(min(n, d)), 0.0, n, d) == expected


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_parameters(rule):
    assert clone(rule) == rule
    assert eval(repr(rule)) == rule
    assert rule.first_guess(10, 5) == (2 if rule == Count(2) else None)
    assert rule.needs_all == (rule in (MLE(), GavishDonoho()))
    assert as_rule(rule, 10, 5) is rule


# Each rule against its definition


@given(whole=spectra(), p=st.floats(0.01, 0.99))
def test_fraction_is_that_of_scikit_learn(whole, p):
    values, n, d = whole
    assume(values[0] > 0)
    shares = np.cumsum(values / values.sum())
    expected = min(np.searchsorted(shares, p, side="right") + 1, len(values))
    assert Fraction(p).choose(values, values.sum(), n, d) == expected


@pytest.mark.parametrize("p", [0.3, 0.9, 0.95, 0.99, 0.9999999])
@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_fraction_on_data(data, p):
    X = data().data
    assert Fraction(p).choose(*spectrum(X)) == PCA(p, svd_solver="full").fit(X).n_components_


def test_fraction_and_relative_error_differ_at_equality():
    values = np.array([4.0, 2.0, 1.0, 1.0])
    assert Fraction(0.75).choose(values, 8.0, 9, 4) == 3
    assert RelativeError(0.25).choose(values, 8.0, 9, 4) == 2


@given(whole=spectra(), e=st.floats(0, 0.99))
def test_relative_error_is_the_smallest_that_serves(whole, e):
    values, n, d = whole
    total = values.sum()
    k = RelativeError(e).choose(values, total, n, d)
    assert values[k:].sum() <= e * total
    assert k == 0 or values[k - 1 :].sum() > e * total


def test_relative_error_below_rounding_of_the_total():
    values = 10.0 ** -np.arange(0, 40, 2)
    total = values.sum()
    for e, k in [(1e-9, 5), (1e-19, 10), (1e-29, 15), (0.0, 20)]:
        assert RelativeError(e).choose(values, total, 50, 20) == k
    # A part answers as long as the rounding of the total leaves no doubt.
    assert RelativeError(1e-9).choose(values[:7], total, 50, 20) == 5
    assert RelativeError(1e-19).choose(values[:15], total, 50, 20) is None


def test_relative_error_is_that_of_the_approximation():
    X = low_rank(50, 20, 4, seed=1, strength=1.5)
    X -= X.mean(axis=0)
    k = RelativeError(0.2).choose(*spectrum(X))
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    errors = [np.linalg.norm(X - U[:, :j] * s[:j] @ Vt[:j]) ** 2 for j in range(21)]
    assert k == np.argmax(np.array(errors) <= 0.2 * np.linalg.norm(X) ** 2)
    assert 0 < k < 20


def test_total_may_exceed_the_sum_of_a_whole_spectrum():
    # An upper bound of the total, as an approximation has: the share is out of reach.
    values = np.array([4.0, 2.0])
    assert Fraction(0.95).choose(values, 10.0, 9, 2) == 2
    assert RelativeError(0.05).choose(values, 10.0, 9, 2) == 2
    assert RelativeError(0.5).choose(values, 10.0, 9, 2) == 2
    assert RelativeError(0.6).choose(values, 10.0, 9, 2) == 1


def test_threshold_includes_equality_but_not_zero():
    values = np.array([4.0, 2.0, 1.0, 0.0])
    assert Threshold(0.5).choose(values, 7.0, 9, 4) == 2
    assert Threshold(0.25).choose(values, 7.0, 9, 4) == 3
    assert Threshold(0.0).choose(values, 7.0, 9, 4) == 3
    # 0.25 shown of 4: the next is at most 0.25, below the cut; no more is needed.
    assert Threshold(0.1).choose(np.array([4.0, 0.25]), 5.0, 9, 4) == 1
    assert Threshold(0.1).choose(np.array([4.0, 1.0]), 5.25, 9, 4) == 2
    assert Threshold(0.1).choose(np.array([4.0, 1.0]), 5.5, 9, 4) is None


def test_rounding_of_the_total_does_not_hide_the_next_value():
    rng = np.random.default_rng(0)
    for _ in range(500):
        values = np.sort(rng.uniform(size=3))[::-1]
        rule = Threshold(values[2] / values[0])
        whole = rule.choose(values, values.sum(), 9, 3)
        assert rule.choose(values[:2], values.sum(), 9, 3) in (None, whole)


@pytest.mark.parametrize("d", [2, 3, 7, 10, 49])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1.0])
def test_kaiser_keeps_none_of_equal_eigenvalues(d, value):
    rng = np.random.default_rng(d)
    values = np.sort(value * (1 + 4e-16 * rng.standard_normal(d)))[::-1]
    assert Kaiser().choose(values, value * d, 100, d) == 0


def test_kaiser_on_z_scores():
    X = load_wine().data
    correlations = np.linalg.eigvalsh(np.corrcoef(X.T))[::-1]
    assert Kaiser().choose(correlations, 13.0, *X.shape) == np.sum(correlations > 1) == 3


def test_broken_stick():
    # Expected pieces of a stick broken in four: 0.5208, 0.2708, 0.1458, 0.0625.
    for shares, k in [
        ([0.53, 0.28, 0.15, 0.04], 3),
        ([0.53, 0.27, 0.15, 0.05], 1),
        ([0.52, 0.30, 0.15, 0.03], 0),
    ]:
        assert BrokenStick().choose(np.array(shares), 1.0, 100, 4) == k
    # n - 1 = 4 pieces, although there are 5 values.
    assert BrokenStick().choose(np.array([0.53, 0.28, 0.15, 0.04, 0.0]), 1.0, 5, 90) == 3
    pieces = np.random.default_rng(0).dirichlet(np.ones(4), 200_000)
    mean = np.sort(pieces, axis=1)[:, ::-1].mean(axis=0)
    np.testing.assert_allclose(mean, [25 / 48, 13 / 48, 7 / 48, 3 / 48], atol=2e-3)
    assert BrokenStick().choose(mean + np.array([0.01, 0.01, 0.01, -0.03]), 1.0, 100, 4) == 3
    assert BrokenStick().choose(mean - np.array([0.01, 0, 0, -0.01]), 1.0, 100, 4) == 0


# Parallel analysis


@pytest.mark.parametrize(
    ("n", "d"),
    [(12, 5), (6, 20), (9, 8), (40, 1), (2, 7), pytest.param(30, 29, marks=pytest.mark.slow)],
)
def test_noise_has_the_spectra_of_random_matrices(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, n, d))
    s = np.linalg.svd(X - X.mean(axis=1, keepdims=True), compute_uv=False)[:, : min(n - 1, d)] ** 2
    drawn = s / s.sum(axis=1, keepdims=True)
    ours = noise_shares(n - 1, d, min(n - 1, d), 3000, rng)
    np.testing.assert_allclose(ours.sum(axis=1), 1)
    for rank in range(1, drawn.shape[1]):
        assert ks_2samp(drawn[:, rank], ours[:, rank]).pvalue > 1e-4
        assert ks_2samp(drawn[:, rank], ours[:, rank - 1]).pvalue < 1e-12


@cycled(ranks=[1, 8, 40], shape=[(600, 600), (400, 100_000), (100_000, 400)])
def test_the_corner_is_enough(shape, ranks):
    n, d = shape
    # Ranks of all p: no corner is cut.
    every = noise_shares(n, d, min(n, d), 3, np.random.default_rng(5))
    few = noise_shares(n, d, ranks, 3, np.random.default_rng(5))
    np.testing.assert_allclose(few, every[:, :ranks], rtol=1e-12)


@pytest.mark.parametrize(("n", "d", "quantile"), [(100, 10, 0.05), (30, 60, 0.5), (100, 10, 0.95)])
def test_parallel_analysis_has_its_level_on_noise(n, d, quantile):
    rng = np.random.default_rng(1)
    kept = [
        ParallelAnalysis(60, quantile, seed).choose(*spectrum(rng.standard_normal((n, d)))) > 0
        for seed in range(120)
    ]
    assert np.mean(kept) == pytest.approx(1 - quantile, abs=0.12)


def test_parallel_analysis_of_many_axes():
    # More axes than the first round of ranks looks at.
    values, total, n, d = spectrum(low_rank(200, 500, 40, seed=3))
    rule = ParallelAnalysis(trials=20)
    assert rule.choose(values, total, n, d) == 40
    assert rule.choose(values[:45], total, n, d) == 40
    assert rule.choose(values[:40], total, n, d) in (None, 40)
    assert rule.choose(values[:39], total, n, d) is None
    assert rule.choose(values[:32], total, n, d) is None


def test_parallel_analysis_random_state():
    values, total, n, d = spectrum(np.random.default_rng(2).standard_normal((50, 30)))
    states = [None, 3, np.random.default_rng(3)]
    assert all(
        ParallelAnalysis(quantile=1.0, random_state=s).choose(3 * values, total, n, d) > 0
        for s in states
    )
    close = [ParallelAnalysis(2, 0.5, s).choose(values, total, n, d) for s in range(40)]
    again = [ParallelAnalysis(2, 0.5, s).choose(values, total, n, d) for s in range(40)]
    assert close == again
    assert len(set(close)) > 1


def test_parallel_analysis_of_a_large_shape():
    # The largest eigenvalue of this noise is near (1 + sqrt(2))^2 = 5.83.
    n, d = 100_000, 200_000
    for first, k in [(5.9, 1), (5.75, 0)]:
        values = np.array([first, 1.0])
        assert ParallelAnalysis(trials=5).choose(values, float(d), n, d) == k


# Minka's evidence


@pytest.mark.parametrize("seed", range(40))
def test_mle_is_that_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 30))
    n = d + int(rng.choice([0, 1, 5, 50, 1000]))
    kind = seed % 5
    if kind == 0:
        values = rng.uniform(size=d)
    elif kind == 1:
        values = 10.0 ** -rng.uniform(0, 10, size=d)
    elif kind == 2:
        values = spectrum(rng.standard_normal((n, d)))[0]
    elif kind == 3:
        values = spectrum(low_rank(n, d, max(1, d // 3), seed))[0]
    else:  # Rank below d: zeros to rounding.
        rank = max(1, d // 2)
        X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
        values = spectrum(X)[0]
    values = np.sort(values)[::-1].copy()
    assert MLE().choose(values, values.sum(), n, d) == _infer_dimension(values, n)


@pytest.mark.parametrize("data", [load_iris, load_wine])
def test_mle_on_data(data):
    X = data().data
    assert MLE().choose(*spectrum(X)) == PCA("mle").fit(X).n_components_


@pytest.mark.parametrize(
    ("values", "n", "k"),
    [
        ([10.0, 10.0, 1.0, 1.0, 1.0, 1.0], 100, 2),
        ([10.0, 10.0, 1.0, 1.0, 1.0, 1.0], 10_000, 2),
        ([10.0, 10.0, 10.0, 1.1, 1.0, 0.9], 100, 3),
        ([10.0, 5.0, 1.0, 1.0, 1.0, 1.0], 100, 2),
        ([10.0, 5.0, 5.0, 0.0, 0.0, 0.0], 100, 3),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 100, 1),
    ],
)
@pytest.mark.parametrize("rounding", [0.0, 1e-16])
def test_mle_with_equal_eigenvalues(values, n, k, rounding):
    # scikit-learn 1.9 stops with a math domain error at the exact ones.
    exact = np.array(values)
    values = np.sort(exact + rounding * exact[0] * np.arange(6) * (exact > 0))[::-1].copy()
    assert MLE().choose(values, values.sum(), n, 6) == k


def test_mle_of_many_features():
    values = spectrum(low_rank(1000, 500, 20, seed=0))[0]
    assert MLE().choose(values, values.sum(), 1000, 500) == 20


# Gavish and Donoho's threshold


def test_threshold_of_singular_values_is_the_published_one():
    assert hard_threshold(1.0) == pytest.approx(4 / np.sqrt(3), rel=1e-14)
    assert hard_threshold(1e-12) == pytest.approx(np.sqrt(2), rel=1e-9)
    assert omega(1.0) == pytest.approx(2.858, abs=5e-4)
    for b in np.linspace(0.01, 1, 34):
        assert omega(b) == pytest.approx(0.56 * b**3 - 0.95 * b**2 + 1.82 * b + 1.43, abs=0.02)


def omega(beta):
    return hard_threshold(beta) / np.sqrt(marchenko_pastur_median(beta))


@pytest.mark.parametrize("beta", [0.001, 0.3, 0.999, 1.0])
def test_marchenko_pastur_median(beta):
    low, high = (1 - np.sqrt(beta)) ** 2, (1 + np.sqrt(beta)) ** 2

    def density(t):
        return np.sqrt((high - t) * (t - low)) / (2 * np.pi * beta * t)

    below, _ = quad(density, low, marchenko_pastur_median(beta), limit=200)
    assert below == pytest.approx(0.5, abs=1e-7)


def test_marchenko_pastur_median_of_a_random_matrix():
    X = np.random.default_rng(0).standard_normal((1200, 600))
    values = np.linalg.svd(X, compute_uv=False) ** 2 / 1200
    assert marchenko_pastur_median(0.5) == pytest.approx(np.median(values), rel=0.01)


@pytest.mark.parametrize(("n", "d"), [(300, 40), (40, 300), (101, 100), (100, 101)])
def test_gavish_donoho_cuts_where_it_says(n, d):
    p, q = sorted((n - 1, d))
    noise = 0.7
    cut = hard_threshold(p / q) * np.sqrt(q) * noise
    s = np.append(cut * np.array([1.5, 1.0001, 0.9999]), np.linspace(0.5, 0.1, p - 3))
    values = np.append(s, np.zeros(min(n, d) - p)) ** 2 / (n - 1)
    assert GavishDonoho(noise).choose(values, values.sum(), n, d) == 2
    assert GavishDonoho(noise).choose(values[:3], values.sum(), n, d) == 2
    # Unknown noise: the same cut follows from the median of the p values that are not zero.
    s[3:] *= cut / omega(p / q) / np.median(s)
    values = np.append(np.sort(s)[::-1], np.zeros(min(n, d) - p)) ** 2 / (n - 1)
    assert GavishDonoho().choose(values, values.sum(), n, d) == 2


def test_gavish_donoho_without_noise_is_the_rank():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 20))
    assert GavishDonoho().choose(*spectrum(X)) == 4
    assert GavishDonoho(0.0).choose(*spectrum(X)) == 4


# Signal in noise


@pytest.mark.parametrize(
    ("rule", "n", "d"),
    [
        (rule, n, d)
        for rule in (ParallelAnalysis(), GavishDonoho(), GavishDonoho(1.0), MLE(), BrokenStick())
        for n, d in [(400, 30), (120, 120), (60, 200)]
        if n >= d or rule != MLE()
    ],
)
@pytest.mark.parametrize("rank", [1, 4])
def test_rank_of_signal_plus_noise(rule, n, d, rank):
    for seed in range(5):
        assert rule.choose(*spectrum(low_rank(n, d, rank, seed))) == rank


@pytest.mark.parametrize("rule", [GavishDonoho(), GavishDonoho(1.0), BrokenStick()], ids=repr)
@pytest.mark.parametrize(("n", "d"), [(400, 60), (200, 200), (60, 400)])
def test_no_axes_in_noise(rule, n, d):
    X = np.random.default_rng(0).standard_normal((n, d))
    assert rule.choose(*spectrum(X)) == 0


# n_components


def test_as_rule():
    assert as_rule(None, 7, 4) == Count(4)
    assert as_rule(0, 7, 4) == Count(0)
    assert as_rule(4, 7, 4) == Count(4)
    assert as_rule(np.int32(3), 7, 4) == Count(3)
    assert type(as_rule(np.int32(3), 7, 4).k) is int
    assert as_rule(0.5, 7, 4) == as_rule(np.float32(0.5), 7, 4) == Fraction(0.5)
    assert as_rule("mle", 7, 4) == MLE()
    assert as_rule("mle", 4, 4) == MLE()


@pytest.mark.parametrize("n_components", [1.0, 0.0, 2.0, -0.5, np.nan, -1, 5, "every", [2], "mle"])
def test_what_scikit_learn_refuses_is_refused(n_components):
    n, d = (3, 4) if n_components == "mle" else (7, 4)
    X = np.random.default_rng(0).standard_normal((n, d))
    with pytest.raises(ValueError):  # noqa: PT011
        PCA(n_components, svd_solver="full").fit(X)
    with pytest.raises((ValueError, TypeError), match="n_components="):
        as_rule(n_components, n, d)


@pytest.mark.parametrize(
    ("n_components", "error", "text"),
    [
        (-1, ValueError, r"n_components=-1 must be between 0 and min\(n_samples, n_features\)=4"),
        (5, ValueError, "n_components=5 must be between 0 and .*=4; n_components=None keeps all"),
        (Count(5), ValueError, "n_components=5 must be between 0 and .*=4"),
        (Count(2.0), ValueError, r"n_components=2.0 must be between"),
        (
            1.0,
            ValueError,
            r"n_components=1.0 must be .* range \(0.0, 1.0\).* None for every component",
        ),
        ("every", ValueError, "n_components='every' must be .*'mle'"),
        (True, TypeError, "n_components=True must be"),
        (np.True_, TypeError, "n_components=np.True_ must be"),
        ([2], TypeError, r"n_components=\[2\] must be"),
        (Rule, TypeError, "must be .* a Rule"),
        (
            Fraction(1.0),
            ValueError,
            r"Fraction\(1.0\): p must be in \(0, 1\); use None for all components",
        ),
        (Fraction("a"), ValueError, r"Fraction\('a'\)"),
        (RelativeError(1.0), ValueError, r"RelativeError\(1.0\): e must be"),
        (RelativeError(-0.1), ValueError, r"RelativeError\(-0.1\): e must be"),
        (Threshold(2), ValueError, r"Threshold\(2\): eps must be"),
        (GavishDonoho(-1.0), ValueError, r"GavishDonoho\(-1.0\): noise must be"),
        (ParallelAnalysis(0), ValueError, r"ParallelAnalysis\(0\): trials must be"),
        (ParallelAnalysis(quantile=95), ValueError, r"ParallelAnalysis\(quantile=95\): quantile"),
    ],
)
def test_errors(n_components, error, text):
    with pytest.raises(error, match=text):
        as_rule(n_components, 7, 4)
    if isinstance(n_components, Rule):
        with pytest.raises(error, match=text):
            n_components.choose(np.array([4.0, 2.0, 1.0, 1.0]), 8.0, 7, 4)


def test_mle_needs_as_many_samples_as_features():
    text = "n_components='mle' is only supported if n_samples >= n_features"
    for n_components in ("mle", MLE()):
        with pytest.raises(ValueError, match=text):
            as_rule(n_components, 3, 4)
    with pytest.raises(ValueError, match=text):
        MLE().choose(np.ones(3), 3.0, 3, 4)


@pytest.mark.parametrize("rule", ["kaiser", "broken-stick"])
@pytest.mark.parametrize("solver", ["auto", "full", "krylov"])
def test_constant_columns_do_not_count_where_columns_are_scaled(rule, solver):
    X = np.random.default_rng(0).standard_normal((200, 5)) @ np.diag([3.0, 2.0, 1.0, 1.0, 1.0])
    X[:, 1] += X[:, 0]
    wide = np.c_[X, np.full((200, 15), 7.0)]
    plain, wider = (mercer.PCA(rule, scale=True, svd_solver=solver).fit(rows) for rows in (X, wide))
    assert wider.n_components_ == plain.n_components_

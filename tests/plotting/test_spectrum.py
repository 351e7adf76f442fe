"""Scree: shares, their sum, and the rules' cut-offs."""

import numpy as np
import pytest
import sklearn.decomposition as peers
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import PCA, KernelPCA, NoveltyDetector, rules
from mercer.plotting import SpectrumDisplay
from tests.plotting.artists import Powers, apart, boxes, lay_out, plain_axes

RULES = {
    "90 % of the variance": rules.Fraction(0.9),
    "Kaiser": rules.Kaiser(),
    "broken stick": rules.BrokenStick(),
    "parallel analysis": rules.ParallelAnalysis(),
    "Gavish–Donoho": rules.GavishDonoho(),
    "Minka": rules.MLE(),
}


@pytest.fixture(scope="module")
def wine():
    return load_wine().data


def draw(model, **options):
    return SpectrumDisplay.from_estimator(model, **{"ax": plain_axes(), **options})


@pytest.fixture(scope="module")
def whole(wine):
    return draw(PCA(scale=True).fit(wine))


def test_shares_and_their_sum(rng):
    X = rng.normal(size=(20, 5)) * [5, 4, 3, 2, 1]
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    given = Figure().add_subplot()
    display = draw(PCA(3).fit(X), ax=given)
    assert display.ax_ is given
    assert display.figure_ is given.figure
    shares = values[:3] / values.sum()
    np.testing.assert_allclose([bar.get_height() for bar in display.bars_], shares)
    np.testing.assert_allclose(display.line_.get_xydata(), np.c_[1:4, np.cumsum(shares)])
    assert given.get_xlabel() == "Component"
    assert given.get_ylabel() == "Explained variance"
    lay_out(display)
    assert "100 %" in [text.get_text() for text in display.sum_ax_.get_yticklabels()]
    assert [tick for tick in given.get_xticks() if not 1 <= tick <= 3] == []
    # No number beside the names of the rules, where no share can be.
    assert max(given.get_yticks()) <= 1.05 * shares[0]


@pytest.mark.parametrize("scale", [False, True])
def test_cutoffs_are_those_of_a_fit_with_the_rule(wine, whole, scale):
    display = whole if scale else draw(PCA().fit(wine))
    assert set(display.cutoffs) == set(RULES)
    for name, rule in RULES.items():
        k = PCA(rule, scale=scale).fit(wine).n_components_
        assert display.cutoffs[name] == k
        line, note = display.cutoffs_[name]
        assert list(line.get_xdata()) == [k + 0.5, k + 0.5]
        assert note.get_text() == f"{name}: {k}"
    lay_out(display)
    assert apart([note for _, note in display.cutoffs_.values()])


def test_cutoffs_with_weights_are_those_of_a_fit_with_them(wine):
    w = np.arange(len(wine)) % 4 + 1.0
    display = draw(PCA(scale=True).fit(wine, sample_weight=w))
    for name, rule in RULES.items():
        fitted = PCA(rule, scale=True).fit(wine, sample_weight=w)
        assert display.cutoffs[name] == fitted.n_components_
    repeated = draw(PCA(scale=True).fit(np.repeat(wine, w.astype(int), 0)))
    assert repeated.cutoffs == display.cutoffs


def test_part_of_a_spectrum_leaves_rules_undecided(wine, whole):
    part = draw(PCA(4, scale=True).fit(wine))
    assert part.cutoffs == {n: whole.cutoffs[n] for n in part.cutoffs}
    assert set(part.cutoffs) == {"Kaiser", "broken stick", "parallel analysis"}


def test_rules_of_ones_own(wine):
    class Two(rules.Rule):
        def choose(self, values, total, n, d):
            return 2

    pca = PCA(scale=True).fit(wine)
    display = draw(pca, rules={"mine": Two(), "half": 0.5})
    assert display.cutoffs == {
        "mine": 2,
        "half": int(np.searchsorted(display.shares.cumsum(), 0.5)) + 1,
    }
    named = draw(pca, rules=[rules.Threshold(0.1), Two(), 3, "mle"])
    assert list(named.cutoffs) == ["≥ 0.1 λ₁", "Two()", "3", "Minka"]
    assert draw(pca, rules=[]).cutoffs == {}


def test_more_columns_than_rows_has_no_minka(wine):
    pca = PCA().fit(wine[:8])
    display = draw(pca)
    assert "Minka" not in display.cutoffs
    assert len(display.bars_) == 8
    with pytest.raises(ValueError, match="n_samples >= n_features"):
        draw(pca, rules=["mle"])


def test_kernels_have_no_noise_of_columns(wine):
    X = StandardScaler().fit_transform(wine)
    display = draw(KernelPCA(kernel="rbf", gamma=0.05).fit(X))
    assert set(display.cutoffs) == {"90 % of the variance", "Kaiser", "broken stick"}
    for name in display.cutoffs:
        fitted = KernelPCA(RULES[name], kernel="rbf", gamma=0.05).fit(X)
        assert display.cutoffs[name] == fitted.n_components_


def test_other_models(wine, whole):
    pipe = make_pipeline(StandardScaler(), PCA()).fit(wine)
    theirs = peers.PCA().fit(StandardScaler().fit_transform(wine))
    for model in (pipe, theirs):
        display = draw(model)
        np.testing.assert_allclose(display.shares, whole.shares)
        assert display.cutoffs == whole.cutoffs
    detector = draw(NoveltyDetector(PCA(4, scale=True)).fit(wine))
    np.testing.assert_allclose(detector.shares, whole.shares[:4])


def test_their_kernel_pca_knows_the_total_only_of_all_components(wine):
    X = StandardScaler().fit_transform(wine)
    whole = draw(peers.KernelPCA(kernel="rbf").fit(X))
    assert whole.shares.sum() == pytest.approx(1)
    part = draw(peers.KernelPCA(3, kernel="rbf").fit(X))
    assert part.shares is None
    assert part.line_ is part.sum_ax_ is None
    assert part.ax_.get_ylabel() == "Eigenvalue"
    assert part.cutoffs == {}
    np.testing.assert_allclose(
        [bar.get_height() for bar in part.bars_], whole.eigenvalues[:3], rtol=1e-6
    )


def test_many_components_are_one_patch(rng):
    display = SpectrumDisplay(np.linspace(2, 0, 1000), 1000.0).plot(plain_axes())
    np.testing.assert_allclose(display.bars_.get_data().values, np.linspace(2, 0, 1000) / 1000)
    assert len(display.ax_.patches) == 1


def test_without_the_sum(wine):
    display = draw(PCA().fit(wine), cumulative=False)
    assert display.line_ is None
    assert display.figure_.axes == [display.ax_]


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_one_component_none_and_no_variance(wine):
    one = draw(PCA(1).fit(wine))
    assert len(one.bars_) == 1
    lay_out(one)
    with pytest.raises(ValueError, match="no component to draw"):
        draw(PCA(0).fit(wine))
    flat = draw(PCA(2).fit(np.ones((9, 3))))
    assert (flat.shares == 0).all()
    lay_out(flat)


def test_what_has_no_spectrum():
    with pytest.raises(ValueError, match="This Powers has neither explained_variance_ nor"):
        draw(Powers())
    with pytest.raises(ValueError, match=r"This PCA has neither .* not fitted"):
        draw(PCA())


@pytest.mark.parametrize("size", [(2.2, 1.8), (3.4, 2.4), (9, 6)])
def test_names_of_rules_stay_in_the_frame_at_any_size(size):
    ax = Figure(size, layout="constrained").subplots()
    display = draw(PCA().fit(load_digits().data), ax=ax)
    lay_out(display)
    notes = [note for _, note in display.cutoffs_.values()]
    assert len(notes) == 6
    assert apart(notes)
    frame = ax.get_window_extent().padded(2)
    for note in notes if size[0] > 3 else []:
        text = boxes([note])[0]
        assert frame.x0 <= text.x0
        assert text.x1 <= frame.x1

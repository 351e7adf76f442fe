"""Approximate PCA with Gaussian projection to 500 columns: marukatat §4.5, Fig. 7."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from mercer import PCA
from mercer.methods import Dot, Sketch
from mercer.metrics import eigenvalue_difference, similarity
from mercer.plotting import ScoresDisplay
from mercer.sketches import Gaussian
from papers.data import Array, load
from papers.panels import SHARES, draw_shares, draw_values, dress
from papers.results import Line, Result

Q, K, REPEATS = 500, 10, 5
TEXT = """{n} photographs of cats and dogs, {d} pixels each, centred, stand in for the features that
four deep networks make of 25 000 of them, which are not at hand. Algorithm 4 with Gaussian
projection to {q} columns, {repeats} draws (the first is drawn), beside PCA of the pixels
themselves. The figure has no numbers; the source says of it that the sum rises fast for some
networks, and that two axes part the classes for some and not for others. Of pixels two axes hold
much, and part cats from dogs no better than chance (ten folds of a logistic regression on the two
scores).

What the figure does not show is how far the spectrum of a sketch is from the true one. The first
eigenvalue must be near: its relative deviation is √(2/q) for one draw, and three of those are the
bound. But the {q} eigenvalues of the sketch hold all of the variance, so that those after the first
come out too large, the last too small, and the sum rises faster than the true one, which the lines
of 90, 95 and 99 % must show; and the axes are not orthogonal. One more pass
(`Sketch(polish=True)`) mends both for the first {k}."""


def run(quick: bool = False) -> Result:
    """Return how near the sketch's axes are, and Fig. 7."""
    data = load("cats_dogs_64")
    step = 8 if quick else 1
    X, y = data["X"][::step].astype(np.float32), data["y"][::step]
    q, repeats = (50, 2) if quick else (Q, REPEATS)
    exact = PCA(svd_solver=Dot()).fit(X)
    raw = [fitted(X, q, seed, polish=False) for seed in range(repeats)]
    polished = [fitted(X, K, seed, polish=True, columns=q) for seed in range(repeats)]
    lines = []
    for name, models in (("sketch", raw), ("polished", polished)):
        near = np.array([compared(model, exact) for model in models])
        musts: list[dict[str, Any]] = [{}, {}, {}]
        if name == "polished" and not quick:
            musts = [{"most": 0.02}, {"least": 0.95}, {"most": 1e-4}]
        what = (f"mean Diff of {K} eigenvalues", f"mean Sim of {K} axes", "largest |vᵀv′|")
        for text, column, must in zip(what, near.T, musts, strict=True):
            mean, spread = float(column.mean()), float(column.std())
            lines.append(Line(f"{name}: {text}", mean, spread=spread, form=".4f", **must))
    firsts = np.array(
        [abs(m.explained_variance_[0] / exact.explained_variance_[0] - 1) for m in raw]
    )
    what, most = "sketch: Diff of the first eigenvalue, largest of the draws", 3 * np.sqrt(2 / q)
    lines.insert(0, Line(what, float(firsts.max()), most=float(most), form=".4f"))
    values = np.asarray(raw[0].explained_variance_, np.float64)
    truth = np.asarray(exact.explained_variance_, np.float64)
    for share in SHARES:
        what = f"axes for {100 * share:.0f} %, of the sketch's own sum"
        k = reached(values, share)
        own = reached(truth, share)
        printed = "rises fast"
        lines.append(Line(what, k, printed, most=own, form=".0f", note=f"exact PCA: {own}"))
    scores = raw[0].transform(X)[:, :2]
    rates = cross_val_score(LogisticRegression(), scores / scores.std(axis=0), y, cv=10)
    lines.append(Line("classes told by two axes, %", 100 * float(rates.mean()), form=".1f"))
    facts = {"n": len(X), "d": X.shape[1], "q": q, "k": K, "repeats": repeats, "last": repeats - 1}
    title = f"Approximate PCA with {q} columns of Gaussian projection (marukatat Fig. 7)"
    text = TEXT.format(**facts)
    return Result(
        title,
        lines,
        picture(values, truth, scores, y),
        text,
        seeds=f"projections 0 to {repeats - 1}",
    )


def fitted(X: Array, k: int, seed: int, polish: bool, columns: int | None = None) -> PCA:
    """Return the axes that one draw gives."""
    sketch = Gaussian(columns or k, random_state=seed)
    return PCA(k, svd_solver=Sketch(sketch, polish=polish)).fit(X)


def compared(model: PCA, exact: PCA) -> tuple[float, float, float]:
    """Return mean Diff, mean Sim, and the largest dot product of two axes."""
    V, W = model.components_[:K], exact.components_[:K]
    diffs = eigenvalue_difference(exact.explained_variance_[:K], model.explained_variance_[:K])
    overlaps = np.abs(V @ V.T - np.eye(K))
    return float(np.mean(diffs)), float(np.mean(similarity(V, W))), float(overlaps.max())


def reached(values: Array, share: float) -> int:
    """Return how many eigenvalues sum up to this share of all."""
    return int(np.searchsorted(np.cumsum(values), share * values.sum()) + 1)


def picture(values: Array, truth: Array, scores: Array, y: Array) -> Any:
    """Draw eigenvalues and running sums, of the sketch and exact, and the scatter."""
    from matplotlib.figure import Figure

    figure = Figure((11.0, 3.5), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    grey = {"color": "#8c8c8c", "linestyle": "--"}
    kept = truth[truth > 1e-6 * truth[0]]
    draw_values(left, kept, label="PCA of the pixels", **grey)
    draw_values(left, values, label=f"sketch, q = {len(values)}")
    draw_shares(middle, truth, {}, **grey)
    draw_shares(middle, values, {share: reached(values, share) for share in SHARES})
    made = ScoresDisplay.from_scores(scores, labels=np.where(y == 1, "dog", "cat"), ax=right)
    dress(made, 6.0)
    for points, colour in zip(made.points_, ("#0072b2", "#d55e00"), strict=False):
        points.set_color(colour)
    right.legend(made.points_, ["cat", "dog"], fontsize=8, markerscale=2, frameon=False)
    left.legend(frameon=False, fontsize=8.5, loc="lower left")
    left.set(xlabel="axis", ylim=(kept[-1] / 2, None))
    middle.set(xlabel="number of axes")
    for ax, title in zip(
        (left, middle, right),
        ("eigenvalues", "share of the variance, %", "first two axes of the sketch"),
        strict=True,
    ):
        ax.set_title(title, fontsize=10, fontweight="bold")
    return figure

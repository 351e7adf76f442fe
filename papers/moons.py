"""Half moons: linear axes, kernel scores with two widths, and a scree (aguilera Fig. 4)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA, KernelPCA
from papers.drawing import BLUE, GREY, arrows, open_frames, points
from papers.results import Line, Result, fill
from papers.shapes import Array, one_cut, waves

TITLE = "Half moons, linear axes, kernel scores and scree (aguilera Fig. 4)"
TEXT = """A sine wave and a cosine wave with normal noise; linear PCA, and the RBF kernel with σ =
0.01 and σ = 2, which are γ. Not stated: the waves, sin x from 0 to π and cos x from π/2 to 3π/2,
the noise, of deviation 0.1, and the number of points, 300.

The figure has no numbers; its text says that with σ = 0.01 few components explain the data almost
perfectly, with the elbow of the scree at the second, that the scores keep the shape of the waves,
and that another σ can separate the moons better. Measured, mean and deviation over {draws} draws:
the variance that two components hold; the component at which the scree bends most (the largest
second difference); and the points told apart by one cut of the first component.

The shape that the text credits to kernel PCA with σ = 0.01 is linear PCA's too: so wide a kernel is
nearly linear on these data, as the correlation of its two scores with the linear ones says."""
POINTS, NOISE, WIDTHS = 300, 0.1, (0.01, 2.0)


def run(quick: bool = False) -> Result:
    """Return what the components do, over some draws, and the picture of the first."""
    draws = 3 if quick else 50
    found = np.array([measured(*drawn(seed)) for seed in range(draws)])
    lines = [
        Line("σ = 0.01: variance held by two components", 0.0, least=0.95, form=".3f"),
        Line("σ = 0.01: component where the scree bends most", 0.0, "2", 2.0, 2.0, form=".2f"),
        Line("σ = 0.01: correlation with linear scores, lesser", 0.0, form=".4f"),
        Line("linear PCA: moons told by component 1", 0.0, form=".3f"),
        Line("σ = 0.01: moons told by component 1", 0.0, form=".3f"),
        Line("σ = 2: moons told by component 1", 0.0, form=".3f"),
    ]
    fill(lines, found)
    lines[-1].least, lines[-1].note = lines[-2].ours, "better than with σ = 0.01"
    seeds = f"points 0 to {draws - 1}, the picture 0"
    return Result(TITLE, lines, picture(*drawn(0)), TEXT.format(draws=draws), seeds=seeds)


def drawn(seed: int) -> tuple[Array, Array]:
    return waves(np.random.default_rng(seed), POINTS, NOISE)


def measured(X: Array, moon: Array) -> list[float]:
    """Return the figures of one draw, in the order of the lines."""
    wide, narrow = (KernelPCA(10, kernel="rbf", gamma=width).fit(X) for width in WIDTHS)
    linear = PCA(2).fit_transform(X)
    scores = wide.transform(X)
    same = [abs(np.corrcoef(scores[:, j], linear[:, j])[0, 1]) for j in range(2)]
    return [
        wide.explained_variance_ratio_[:2].sum(),
        int(np.diff(wide.eigenvalues_, 2).argmax()) + 2,
        min(same),
        *(one_cut(Z[:, 0], moon == "sine") for Z in (linear, scores, narrow.transform(X))),
    ]


def picture(X: Array, moon: Array) -> Any:
    """Draw the data with their axes, the scores of both widths, and the scree between them."""
    from matplotlib.figure import Figure

    figure = Figure((11.6, 3.1), layout="constrained")
    panels = figure.subplots(1, 4)
    points(panels[0], X, moon, "Data and linear axes")
    arrows(panels[0], PCA(2).fit(X))
    panels[0].set(aspect="equal", adjustable="datalim", xlabel="x₁", ylabel="x₂")
    wide, narrow = (KernelPCA(10, kernel="rbf", gamma=width).fit(X) for width in WIDTHS)
    points(panels[1], wide.transform(X)[:, :2], moon, "Scores, σ = 0.01")
    for model, colour, name in ((wide, BLUE, "σ = 0.01"), (narrow, GREY, "σ = 2")):
        shares = 100 * model.explained_variance_ratio_
        panels[2].plot(range(1, 11), shares, "o-", color=colour, markersize=4, label=name)
    panels[2].set(xlabel="component", ylabel="variance, %", xticks=range(1, 11), ylim=(0, None))
    panels[2].set_title("Scree", fontsize=9)
    panels[2].legend(frameon=False)
    points(panels[3], narrow.transform(X)[:, :2], moon, "Scores, σ = 2")
    open_frames(panels)
    return figure

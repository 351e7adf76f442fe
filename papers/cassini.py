"""Cassini's problem: linear axes, and contours of eight components (aguilera Fig. 2 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA, KernelPCA
from mercer.plotting import ContoursDisplay
from papers.drawing import arrows, plane, points
from papers.results import Line, Result, fill
from papers.shapes import Array, beans, one_cut

TITLE = "Cassini's problem, linear axes and contours of eight components (aguilera Fig. 2 and 3)"
TEXT = """Two beans and a disc between them, uniform, in the shares 2, 2 and 1 of R's mlbench;
linear kernel, and RBF with σ = 0.2, which is γ. The number of points is not stated: 1000.

The figures have no numbers. Of Fig. 2 the text says that kernel PCA with the linear kernel is
linear PCA, and that its contours are orthogonal to the axes: measured, the largest difference of
the scores and the largest angle between an axis and the direction in which its score rises. Of Fig.
3, that all components cut the data symmetrically: the smallest correlation, without its sign,
between the scores of x and of −x; that the first separates the beans from the disc (it puts the
disc between the beans: rows nearest to the mean of their own body), that the second divides left
from right, that the third identifies the disc (one cut), and that the fourth splits the data in
four (the sign of its score and of x₁x₂).

Mean and deviation over {draws} draws. The third and the fourth eigenvalue are near to each other,
and mix in some of them."""
POINTS = 1000


def run(quick: bool = False) -> Result:
    """Return what the components do, over some draws, and the picture of the first."""
    draws = 2 if quick else 20
    found = np.array([measured(*drawn(seed)) for seed in range(draws)])
    lines = [
        Line("Fig. 2: scores, linear kernel − linear PCA", 0.0, most=1e-10, form=".0e"),
        Line("Fig. 2: angle of axis and rise, degrees", 0.0, most=1e-5, form=".0e"),
        Line("Fig. 3: correlation of mirrored scores, least of 8", 0.0, least=0.9, form=".3f"),
        Line("Fig. 3: bodies told by component 1", 0.0, least=0.9, form=".3f"),
        Line("Fig. 3: left and right told by component 2", 0.0, least=0.9, form=".3f"),
        Line("Fig. 3: the disc told by component 3", 0.0, least=0.9, form=".3f"),
        Line("Fig. 3: quarters told by component 4", 0.0, least=0.9, form=".3f"),
    ]
    fill(lines, found)
    seeds = f"points 0 to {draws - 1}, the picture 0"
    return Result(TITLE, lines, picture(*drawn(0)), TEXT.format(draws=draws), seeds=seeds)


def drawn(seed: int) -> tuple[Array, Array]:
    return beans(np.random.default_rng(seed), POINTS)


def measured(X: Array, body: Array) -> list[float]:
    """Return the figures of one draw, in the order of the lines."""
    pca, linear = PCA(2).fit(X), KernelPCA(2, kernel="linear").fit(X)
    signs = np.sign(np.sum(pca.transform(X) * linear.transform(X), axis=0))
    apart = np.abs(pca.transform(X) - signs * linear.transform(X)).max()
    rise = (linear.transform(np.eye(2)) - linear.transform(np.zeros((2, 2)))).T
    turned = [a[0] * b[1] - a[1] * b[0] for a, b in zip(pca.components_, rise, strict=True)]
    angle = np.degrees(np.arcsin(np.abs(turned) / np.linalg.norm(rise, axis=1))).max()

    model = KernelPCA(8, kernel="rbf", gamma=0.2).fit(X)
    Z, mirrored = model.transform(X), model.transform(-X)
    same = [abs(np.corrcoef(Z[:, j], mirrored[:, j])[0, 1]) for j in range(8)]
    names = np.unique(body)
    means = np.array([Z[body == name, 0].mean() for name in names])
    nearest = names[np.abs(Z[:, :1] - means).argmin(axis=1)]
    quarter = np.mean((Z[:, 3] > 0) == (X.prod(axis=1) > 0))
    return [
        apart,
        angle,
        min(same),
        np.mean(nearest == body),
        one_cut(Z[:, 1], X[:, 0] > 0),
        one_cut(Z[:, 2], body == "disc"),
        max(quarter, 1 - quarter),
    ]


def picture(X: Array, body: Array) -> Any:
    """Draw the data with their axes, and contours of both kernels."""
    from matplotlib.figure import Figure

    figure = Figure((9.4, 9.6), layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1.0, 1.72))
    first, *rest = upper.subplots(1, 3)
    upper.suptitle("Fig. 2: linear PCA, and kernel PCA with the linear kernel", fontsize=10)
    points(first, X, body)
    arrows(first, PCA(2).fit(X))
    plane(first, "Data and linear axes")
    linear = KernelPCA(2, kernel="linear").fit(X)
    for ax in ContoursDisplay.from_estimator(linear, X, labels=body, ax=rest).axes_:
        plane(ax)
        first.set(xlim=ax.get_xlim(), ylim=ax.get_ylim())
    lower.suptitle("Fig. 3: kernel PCA with the RBF kernel, γ = 0.2", fontsize=10)
    model = KernelPCA(8, kernel="rbf", gamma=0.2).fit(X)
    panels = lower.subplots(2, 4)
    for ax in ContoursDisplay.from_estimator(model, X, labels=body, ax=panels).axes_:
        plane(ax)
    return figure

"""Three clusters: contours of the first eight kernel principal components (aguilera Fig. 1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import KernelPCA
from mercer.plotting import ContoursDisplay
from papers.drawing import plane
from papers.results import Line, Result, fill
from papers.shapes import Array, clusters

TITLE = "Three clusters, contours of the first eight kernel principal components (aguilera Fig. 1)"
TEXT = """Three Gaussian clusters of deviation 0.8, their centres on a circle of radius 4; RBF
kernel with σ = 0.3, which is γ. The number of points is not stated: 150.

The figure has no numbers; its text says that components 1 and 2 separate the clusters, 3 to 5
divide one cluster each into halves, and 6 to 8 split them again, orthogonally. Measured, mean and
deviation over {draws} draws: the share of a score's variance that lies between the clusters; the
share of a score's squares that lies in one cluster; which of the clusters those are; the smaller
part of that cluster's points on one side of zero; and the angle between the directions in which the
first and the second split of the same cluster rise.

The three halvings have nearly equal eigenvalues, so that two of them, or a halving and a second
split, mix in some draws: therefore less than 1, less than three clusters, and less than 90°."""
POINTS = 150
OPTIONS = {"kernel": "rbf", "gamma": 0.3}


def run(quick: bool = False) -> Result:
    """Return what the components do, over some draws, and the picture of the first."""
    draws = 3 if quick else 50
    found = np.array([measured(*drawn(seed)) for seed in range(draws)])
    lines = [
        Line("1, 2: variance between clusters, lesser of the two", 0.0, least=0.9, form=".3f"),
        Line("3–5: squares in one cluster, mean", 0.0, least=0.8, form=".3f"),
        Line("3–5: different clusters", 0.0, least=2.5, form=".2f"),
        Line("3–5: smaller side of the cluster", 0.0, least=0.35, form=".3f"),
        Line("6–8: angle to the first split, degrees, mean", 0.0, least=70.0, form=".1f"),
    ]
    fill(lines, found)
    seeds = f"points 0 to {draws - 1}, the picture 0"
    return Result(TITLE, lines, picture(*drawn(0)), TEXT.format(draws=draws), seeds=seeds)


def drawn(seed: int) -> tuple[Array, Array]:
    return clusters(np.random.default_rng(seed), POINTS)


def measured(X: Array, cluster: Array) -> list[float]:
    """Return the figures of one draw, in the order of the lines."""
    Z = KernelPCA(8, **OPTIONS).fit_transform(X)
    inside = cluster == np.arange(3)[:, None]
    squares = np.array([(Z[own] ** 2).sum(axis=0) for own in inside]) / (Z**2).sum(axis=0)
    means = np.array([len(Z[own]) * Z[own].mean(axis=0) ** 2 for own in inside])
    between = means.sum(axis=0) / (Z**2).sum(axis=0)
    where = squares.argmax(axis=0)
    sides = [np.mean(Z[inside[where[j]], j] > 0) for j in (2, 3, 4)]
    angles = []
    for j in (5, 6, 7):
        first = [i for i in (2, 3, 4) if where[i] == where[j]]
        rise = [slope(X[inside[where[j]]], Z[inside[where[j]], i]) for i in (*first[:1], j)]
        if len(rise) == 2:
            angles.append(np.degrees(np.arccos(abs(rise[0] @ rise[1]))))
    return [
        between[:2].min(),
        squares.max(axis=0)[2:5].mean(),
        len(set(where[2:5])),
        min(min(side, 1 - side) for side in sides),
        float(np.mean(angles)),
    ]


def slope(X: Array, scores: Array) -> Array:
    """Return the direction in which scores rise, by least squares."""
    rise = np.linalg.lstsq(X - X.mean(axis=0), scores - scores.mean(), rcond=None)[0]
    return rise / np.linalg.norm(rise)


def picture(X: Array, cluster: Array) -> Any:
    """Draw the contours of eight components."""
    from matplotlib.figure import Figure

    figure = Figure((9.4, 4.7), layout="constrained")
    panels = figure.subplots(2, 4)
    model = KernelPCA(8, **OPTIONS).fit(X)
    for ax in ContoursDisplay.from_estimator(model, X, labels=cluster, ax=panels).axes_:
        plane(ax)
    return figure

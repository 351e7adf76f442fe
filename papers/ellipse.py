"""An ellipse in the plane is a plane in feature space: the explicit map (notes Fig. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC

from mercer import PCA, KernelPCA
from mercer.kernels import Polynomial
from papers.drawing import BLUE, INK, ORANGE
from papers.results import Line, Result, fill
from papers.shapes import Array

TITLE = "The ellipse and its explicit map (notes Fig. 2 and Example 1)"
TEXT = """Dots inside an ellipse about the origin and crosses outside it, and the map Φ(x) = (x₁²,
x₂², √2x₁x₂), with Φ(x)ᵀΦ(z) = (xᵀz)². Not stated: the ellipse, of half-axes 2 and 1, turned by 30°,
and {points} points, uniform inside 1.6 times the ellipse except from 0.9 to 1.1 times.

The figure has no numbers; its text says that no line separates the classes in the plane and that a
plane does in feature space. Measured: the rows that a linear SVM gets wrong in the plane (C = 1)
and in feature space (C = 10⁶, as good as a hard margin); how far the dot products of mapped rows
are from the kernel, and the scores of kernel PCA from those of linear PCA after the map, relative
to the largest; the components that have variance; and what the separating plane is back in the
plane of the data, an ellipse again: its half-axes and its turn. Mean and deviation over {draws}
draws."""
HALVES, TURN, GAP, WIDEST, POINTS = (2.0, 1.0), 30.0, 0.1, 1.6, 300
# Of the plane's area what is seen: 0 from its edge, 1 from above.
SLANT = 0.4
KERNEL = Polynomial(2, coef0=0.0)


def run(quick: bool = False) -> Result:
    """Return how far plane and feature space are what the notes say, and the picture."""
    draws = 2 if quick else 20
    found = np.array([measured(*drawn(seed)) for seed in range(draws)])
    lines = [
        Line("in the plane: rows on the wrong side, %", 0.0, least=5.0, form=".1f"),
        Line("in feature space: rows on the wrong side, %", 0.0, "0", 0.0, form=".1f"),
        Line("ΦΦᵀ − (xᵀz)²", 0.0, "0", 1e-12, form=".0e"),
        Line("scores: kernel PCA − PCA after Φ", 0.0, most=1e-10, form=".0e"),
        Line("components of any variance", 0.0, "3", 3.0, 3.0, form=".0f"),
        Line("half-axis of the boundary, 2 drawn", 0.0, most=2.1, least=1.9, form=".3f"),
        Line("half-axis of the boundary, 1 drawn", 0.0, most=1.1, least=0.9, form=".3f"),
        Line("turn of the boundary, 30° drawn", 0.0, most=33.0, least=27.0, form=".1f"),
    ]
    fill(lines, found)
    text = TEXT.format(points=POINTS, draws=draws)
    return Result(
        TITLE, lines, picture(*drawn(0)), text, seeds=f"points 0 to {draws - 1}, the picture 0"
    )


def drawn(seed: int) -> tuple[Array, Array]:
    """Return points of a larger ellipse that are not too near to ours, and which are inside."""
    unit = np.random.default_rng(seed).uniform(-WIDEST, WIDEST, (3 * POINTS, 2))
    far = np.linalg.norm(unit, axis=1)
    kept = np.flatnonzero((np.abs(far - 1) > GAP) & (far < WIDEST))[:POINTS]
    return turned(unit[kept] * HALVES), far[kept] < 1


def turned(X: Array) -> Array:
    angle = np.radians(TURN)
    return X @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


def mapped(X: Array) -> Array:
    """Return Φ(x) as printed."""
    x, y = X.T
    return np.stack([x**2, y**2, np.sqrt(2) * x * y], axis=1)


def separated(features: Array, inside: Array, C: float = 1e6) -> SVC:
    return SVC(kernel="linear", C=C).fit(features, inside)


def measured(X: Array, inside: Array) -> list[float]:
    """Return the figures of one draw, in the order of the lines."""
    F, dots = mapped(X), KERNEL(X, X)
    line, plane = separated(X, inside, C=1.0), separated(F, inside)
    Z, explicit = KernelPCA(kernel=KERNEL).fit_transform(X), PCA(3).fit_transform(F)
    signs = np.sign((Z[:, :3] * explicit).sum(axis=0))
    halves, turn = boundary(plane)
    return [
        100 * (1 - line.score(X, inside)),
        100 * (1 - plane.score(F, inside)),
        np.abs(F @ F.T - dots).max() / dots.max(),
        np.abs(Z[:, :3] - signs * explicit).max() / np.abs(Z).max(),
        Z.shape[1],
        *halves,
        turn,
    ]


def boundary(plane: SVC) -> tuple[Array, float]:
    """Return half-axes and turn of wᵀΦ(x) = −b, that is of xᵀMx = 1."""
    a, b, c = plane.coef_[0] / -plane.intercept_[0]
    M = np.array([[a, c / np.sqrt(2)], [c / np.sqrt(2), b]])
    values, vectors = np.linalg.eigh(M)
    turn = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0])) % 180
    return 1 / np.sqrt(values), float(turn)


def picture(X: Array, inside: Array) -> Any:
    """Draw the classes in the plane with the boundary found, and in feature space."""
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = Figure((9.8, 4.6))
    plane = separated(mapped(X), inside)
    left = figure.add_axes((0.05, 0.11, 0.42, 0.8))
    grid = np.linspace(-1.1, 1.1, 201) * np.abs(X).max()
    spots = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    heights = plane.decision_function(mapped(spots)).reshape(201, 201)
    left.contourf(grid, grid, heights, levels=[0, np.inf], colors=[BLUE], alpha=0.1)
    left.contour(grid, grid, heights, levels=[0], colors=INK, linewidths=1.2)
    right = figure.add_axes((0.5, 0.02, 0.48, 0.89), projection="3d")
    for ax, places in ((left, X), (right, mapped(X))):
        ax.plot(*places[inside].T, "o", color=BLUE, markersize=3.5, label="inside")
        ax.plot(*places[~inside].T, "x", color=ORANGE, markersize=4, label="outside")
    left.set(aspect="equal", xlabel="x₁", ylabel="x₂")
    left.set_title("In the plane: an ellipse", fontsize=10)
    left.legend(frameon=False, loc="lower right")
    corners = square(plane, 5.0)
    right.add_collection3d(Poly3DCollection([corners], color=INK, alpha=0.18))
    right.set(xlabel="x₁²", ylabel="x₂²", zlabel="√2 x₁x₂")
    right.tick_params(labelsize=7, pad=-2)
    right.set_title("In feature space: a plane", fontsize=10)
    right.set_box_aspect((1, 1, 1), zoom=0.95)
    right.view_init(*along(plane.coef_[0] * np.ptp(mapped(X), axis=0)))
    return figure


def square(plane: SVC, side: float) -> Array:
    """Return the corners of a square of the separating plane, about its point next to zero."""
    w, b = plane.coef_[0], float(plane.intercept_[0])
    across = np.linalg.svd(w[None])[2][1:]
    signs = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    return -b * w / (w @ w) + side / 2 * signs @ across


def along(w: Array, elevation: float = 15.0) -> tuple[float, float]:
    """Return from where a plane with that normal is seen aslant, the classes on its sides."""
    angles = np.radians(np.arange(-90, 90))
    up = np.radians(elevation)
    looks = np.cos(up) * np.cos(angles) * w[0] + np.cos(up) * np.sin(angles) * w[1]
    slant = np.abs(looks + np.sin(up) * w[2]) / np.linalg.norm(w)
    return elevation, float(np.degrees(angles[np.abs(slant - SLANT).argmin()]))

"""Rings: the polynomial kernel's first component is the radius (worrell Fig. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA, KernelPCA
from mercer.kernels import Polynomial
from papers.drawing import open_frames, points
from papers.results import Line, Result, fill
from papers.shapes import Array, one_cut, rings

TITLE = "Rings, kernel PCA with the polynomial kernel (worrell Fig. 2)"
TEXT = """Kernel (xᵀy + 1)², whose feature map is (1, √2x₁, √2x₂, √2x₁x₂, x₁², x₂²). Not stated: the
points, {points} around circles of radius 1, 2.5 and 7, evenly in angle, with normal noise of
deviation 0.2 in the radius. The figure has no numbers; its text says that the top component is the
radius. Measured: the correlation of the first score with the squared radius, the rows told by one
cut between neighbouring rings, the difference from linear PCA of the mapped points, and the
components of any variance, of which the map allows five (mean and deviation over {draws} draws).

The text holds because the radii are far apart: on points that lie evenly around the origin the
squared radius has the variance var(r²)/2, and x₁² − x₂² and x₁x₂ have E r⁴/4 each, so that the
radius comes first only where E r⁴ > 2 (E r²)² (and r is well above 1, for the kernel's linear
part). Two rings with equally many points never satisfy it, and radii of 1, 3 and 5 do not: there
the radius is the third component, as two lines show.

Where points lie at random angles rather than evenly, x₁² − x₂² and x₁x₂ mix into the first
component even with our radii: the last line."""
RADII, NEAR, NOISE, POINTS = (1.0, 2.5, 7.0), (1.0, 3.0, 5.0), 0.2, 450
KERNEL = Polynomial(2, coef0=1.0)


def run(quick: bool = False) -> Result:
    """Return what the components are, over some draws, and the picture of the first."""
    draws = 2 if quick else 20
    found = np.array([measured(seed) for seed in range(draws)])
    lines = [
        Line("correlation of component 1 and r²", 0.0, least=0.99, form=".4f"),
        Line("rings told by component 1, lesser of two cuts", 0.0, least=0.99, form=".4f"),
        Line("scores − those of the mapped points", 0.0, most=1e-9, form=".0e"),
        Line("components of any variance", 0.0, "5", 5.0, 5.0, form=".0f"),
        Line("E r⁴ / (E r²)²", 0.0, least=2.0, form=".2f"),
        Line("radii 1, 3, 5: E r⁴ / (E r²)²", 0.0, most=2.0, form=".2f"),
        Line(
            "radii 1, 3, 5: component most like r²",
            0.0,
            least=2.0,
            form=".1f",
            note="not the first",
        ),
        Line("random angles: correlation of component 1 and r²", 0.0, form=".3f"),
    ]
    fill(lines, found)
    text = TEXT.format(points=POINTS, draws=draws)
    return Result(TITLE, lines, picture(), text, seeds=f"points 0 to {draws - 1}, the picture 0")


def drawn(seed: int, radii: tuple[float, ...] = RADII) -> tuple[Array, Array]:
    return rings(np.random.default_rng(seed), POINTS, radii, NOISE)


def mapped(X: Array) -> Array:
    """Return Φ(x) as printed."""
    x, y = X.T
    root = np.sqrt(2)
    return np.stack([np.ones(len(X)), root * x, root * y, root * x * y, x**2, y**2], axis=1)


def measured(seed: int) -> list[float]:
    """Return the figures of one draw, in the order of the lines."""
    (X, ring), (near, _) = drawn(seed), drawn(seed, NEAR)
    loose, _ = rings(np.random.default_rng(seed), POINTS, RADII, NOISE, even=False)
    Z = KernelPCA(kernel=KERNEL).fit_transform(X)
    explicit = PCA(5).fit_transform(mapped(X))
    signs = np.sign((Z[:, :5] * explicit).sum(axis=0))
    like = alike(near, KernelPCA(kernel=KERNEL).fit_transform(near))
    return [
        alike(X, Z)[0],
        min(one_cut(Z[:, 0], ring >= cut) for cut in (1, 2)),
        np.abs(Z[:, :5] - signs * explicit).max(),
        Z.shape[1],
        kurtosis(X),
        kurtosis(near),
        int(np.argmax(like)) + 1,
        alike(loose, KernelPCA(1, kernel=KERNEL).fit_transform(loose))[0],
    ]


def alike(X: Array, Z: Array) -> list[float]:
    """Return the correlations, without their signs, of scores and squared radii."""
    radii = (X**2).sum(axis=1)
    return [abs(np.corrcoef(Z[:, j], radii)[0, 1]) for j in range(Z.shape[1])]


def kurtosis(X: Array) -> float:
    radii = (X**2).sum(axis=1)
    return float((radii**2).mean() / radii.mean() ** 2)


def picture() -> Any:
    """Draw the points before and after, and the first score against the radius."""
    from matplotlib.figure import Figure

    X, ring = drawn(0)
    Z = KernelPCA(2, kernel=KERNEL).fit_transform(X)
    figure = Figure((10.6, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    names = np.array(["inner", "middle", "outer"])[ring]
    points(panels[0], X, names, "Before")
    panels[0].set(aspect="equal", xlabel="x₁", ylabel="x₂")
    points(panels[1], Z, names, "After: kernel (xᵀy + 1)²")
    radius = np.linalg.norm(X, axis=1)
    points(panels[2], np.stack([radius, Z[:, 0]], axis=1), names, "The first component is r²")
    panels[2].set(xlabel="radius r", ylabel="Component 1")
    open_frames(panels)
    return figure

"""Resizing and pixel grouping, and what replacing a pixel may change: marukatat §4.2, Fig. 5."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer import PCA
from mercer.metrics import eigenvalue_difference, similarity
from mercer.sketches import FeatureGrouping, PixelGrouping, Resize, SketchMap
from papers.data import Array, load
from papers.resolutions import lifted
from papers.results import Line, Result

K, FULL, HALF, SHOWN, PAIRS = 10, (112, 92), (56, 46), 0, 40
MAPS: dict[str, SketchMap] = {
    "downscale + upsample": Resize(FULL, HALF),
    "pixel grouping": PixelGrouping(FULL, 2, by="corner"),
}
TEXT = """400 faces; row {shown} is shown (the source does not say which it has). Downscale: by area
to 46 × 56, upsample: every pixel four times; grouping: the top-left pixel stands for its 2 × 2
neighbours.

The figure has no numbers; the source says that the three are alike: correlations of the pixels,
mean over all images, and root mean square differences as a share of the deviation of the images
about their mean, by which a third of the detail is lost to grouping.

Below it: ten axes from either, centred, and the bound of (30), the largest change of an eigenvalue
of the dot matrix when pixel a is replaced by b against ‖D‖₂, for {pairs} pairs drawn by seed 0,
neighbours and any two. (35) bounds it by ‖D‖_F, which is never smaller. The conclusion drawn there,
that high correlation is enough, needs one thing more: equal variances, since D is not zero where
they differ."""


def run(quick: bool = False) -> Result:
    """Return how alike the images, their axes and their eigenvalues are, and Fig. 5."""
    X = load("orl_faces")["X"][:: 4 if quick else 1].astype(np.float64)
    exact = PCA(K, random_state=0).fit(X)
    made = {name: back(sketch, X) for name, sketch in MAPS.items()}
    pairs = {f"{name} and original": (images, X) for name, images in made.items()}
    pairs["the two"] = tuple(made.values())
    lines = []
    for name, (one, other) in pairs.items():
        what, note = f"{name}: mean correlation", f"difference {100 * apart(one, other, X):.0f} %"
        lines.append(Line(what, alike(one, other), "similar", least=0.95, form=".3f", note=note))
    for name, sketch in MAPS.items():
        lines += near(name, sketch, X, exact)
    lines += bounds(X - X.mean(axis=0), PAIRS // 4 if quick else PAIRS)
    text = TEXT.format(shown=SHOWN, pairs=PAIRS)
    title = "Images resized and grouped (marukatat Fig. 5 and eq. 30)"
    return Result(title, lines, gallery(X, made), text, seeds="pairs of pixels 0, the solver's 0")


def back(sketch: SketchMap, X: Array) -> Array:
    """Return images of the full size, each small pixel in the place of four."""
    small = sketch.fit_transform(X) / 2  # √(d/q), which keeps dot products
    blocks = small.reshape(-1, *HALF).repeat(2, axis=1).repeat(2, axis=2)
    return blocks.reshape(len(X), -1)


def alike(one: Array, other: Array) -> float:
    """Return the mean correlation of images, pixel by pixel."""
    one, other = (rows - rows.mean(axis=1, keepdims=True) for rows in (one, other))
    return float(np.mean(np.sum(one * other, axis=1) / norms(one) / norms(other)))


def apart(one: Array, other: Array, X: Array) -> float:
    """Return the difference of images as a share of the deviation of X about its mean image."""
    return float(np.sqrt(np.mean((one - other) ** 2)) / (X - X.mean(axis=0)).std())


def norms(rows: Array) -> Array:
    """Return the norm of every row."""
    return np.linalg.norm(rows, axis=1)


def near(name: str, sketch: SketchMap, X: Array, exact: PCA) -> list[Line]:
    """Return Sim and Diff of the axes found from small images."""
    small = sketch.fit_transform(X)
    found = PCA(K, random_state=0).fit(small)
    sims = similarity(lifted(X, found.transform(small)), exact.components_)
    diffs = eigenvalue_difference(exact.explained_variance_, found.explained_variance_)
    note = f"mean {sims.mean():.4f}"
    return [
        Line(f"{name}: least Sim of 10 axes", float(sims.min()), least=0.9, form=".4f", note=note),
        Line(f"{name}: mean Diff of 10 eigenvalues", float(diffs.mean()), most=0.1, form=".4f"),
    ]


def bounds(X: Array, pairs: int, width: int = FULL[1]) -> list[Line]:
    """Return the largest change of an eigenvalue as a share of its bound, and its usual size."""
    rng = np.random.default_rng(0)
    K0 = X @ X.T
    before = np.linalg.eigvalsh(K0)
    lines = []
    for kind in ("neighbours", "any two pixels"):
        shares, sizes, looser, together = [], [], [], []
        for _ in range(pairs):
            a, b = rng.choice(X.shape[1], 2, replace=False)
            if kind == "neighbours":
                b = a + 1 if (a + 1) % width else a - 1  # in the same line of the image
            C = X[:, [a, b]].T @ X[:, [a, b]]
            bound = FeatureGrouping(1).fit_scatter(C).bound_
            D = np.outer(X[:, a], X[:, a]) - np.outer(X[:, b], X[:, b])
            change = float(np.abs(np.linalg.eigvalsh(K0 - D) - before).max())
            shares.append(change / bound)
            sizes.append(change / before[-1])
            looser.append(float(np.linalg.norm(D)) / bound)
            together.append(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]))
        what = f"{kind} replaced: largest change / ‖D‖₂"
        note = (
            f"mean change {np.mean(sizes):.1e} λ₁, correlation {np.mean(together):.2f}; "
            f"‖D‖_F / ‖D‖₂ {min(looser):.2f} to {max(looser):.2f}"
        )
        lines.append(Line(what, max(shares), "≤ 1", most=1.0 + 1e-9, form=".3f", note=note))
    return lines


def gallery(X: Array, made: dict[str, Array]) -> Any:
    """Draw one image, and what either way makes of it."""
    from matplotlib.figure import Figure

    figure = Figure((8.6, 4.0), layout="constrained")
    shown = {"original": X} | made
    for letter, ax, (name, images) in zip("abc", figure.subplots(1, 3), shown.items(), strict=True):
        ax.imshow(images[SHOWN].reshape(FULL), cmap="gray", vmin=0, vmax=255)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        ax.set_title(f"({letter}) {name}", fontsize=10, fontweight="bold")
    return figure

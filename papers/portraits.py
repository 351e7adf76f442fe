"""Images on the plane of two kernel principal components (notes Fig. 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from mercer import PCA, KernelPCA
from papers.data import Array, load
from papers.drawing import INK, open_frames
from papers.results import Line, Result

TITLE = "Kernel PCA of images, with samples of them on the scatter (notes Fig. 1)"
TEXT = """Gaussian kernel, two components, and a sample of the images drawn beside their points. The
figure says "the same data set", and the copy at hand has lost which: the {rows} Frey faces, 20 × 28
pixels, one face in a film, stand in. σ is not stated either: the median rule.

There are no numbers; what the figure shows is that images which lie near to one another look alike.
Measured: the distance in pixels of an image and the nearest to it on the plane, against that of two
images at random, and against the nearest of all in pixels, which no plane can beat; linear PCA's
two components likewise, which do a little better by pixels, the measure they are made for; and the
distance on the plane of frames that follow one another in the film, which kernel PCA is not told
of, against two at random.

The images drawn are far from one another on the plane, each the next furthest from those before."""
SHOWN = 44


def run(quick: bool = False) -> Result:
    """Return how like neighbours on the plane are, and the picture."""
    X = load("frey_faces")["X"].astype(np.float64)[: 500 if quick else None]
    models = {
        "kernel PCA": KernelPCA(2, kernel="rbf", gamma="median").fit(X),
        "linear PCA": PCA(2).fit(X),
    }
    order = np.random.default_rng(0).permutation(len(X))
    apart, best = distance(X, X[order]), distance(X, X[nearest(X)])
    lines = list[Line]()
    for name, model in models.items():
        Z = model.transform(X)
        like, near = (0.8, 0.5) if name == "kernel PCA" else (None, None)
        alike = distance(X, X[nearest(Z)]) / apart
        follow = distance(Z[1:], Z[:-1]) / distance(Z, Z[order])
        lines += [
            Line(f"{name}: pixels, nearest on the plane / random", alike, most=like, form=".3f"),
            Line(f"{name}: plane, next frame / random", follow, most=near, form=".3f"),
            Line(f"{name}: variance, %", 100 * share(model), form=".1f"),
        ]
    lines.append(Line("pixels, nearest of all / random", best / apart, form=".3f"))
    shape = tuple(int(side) for side in load("frey_faces")["shape"])
    figure = picture(models["kernel PCA"].transform(X), X, shape)
    return Result(TITLE, lines, figure, TEXT.format(rows=len(X)), seeds="pairs at random 0")


def share(model: Any) -> float:
    return float(model.explained_variance_ratio_.sum())


def distance(one: Array, other: Array) -> float:
    """Return the mean distance of rows side by side."""
    return float(np.linalg.norm(one - other, axis=1).mean())


def nearest(rows: Array) -> Array:
    """Return the nearest other row of each."""
    return NearestNeighbors(n_neighbors=2).fit(rows).kneighbors(rows)[1][:, 1]


def spread(Z: Array, count: int) -> list[int]:
    """Return rows far from one another: the first furthest from the mean, then from those taken."""
    chosen = [int(np.linalg.norm(Z, axis=1).argmax())]
    left = np.linalg.norm(Z - Z[chosen[0]], axis=1)
    while len(chosen) < count:
        chosen.append(int(left.argmax()))
        left = np.minimum(left, np.linalg.norm(Z - Z[chosen[-1]], axis=1))
    return chosen


def picture(Z: Array, images: Array, shape: tuple[int, ...]) -> Any:
    """Draw the scatter, with images at some of its points."""
    from matplotlib.figure import Figure
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    figure = Figure((8.6, 7.0), layout="constrained")
    ax = figure.subplots()
    ax.plot(*Z.T, ".", color="#9dbcd4", markersize=3, zorder=1)
    for row in spread(Z, SHOWN):
        image = OffsetImage(images[row].reshape(shape), zoom=1.15, cmap="gray")
        frame = {"edgecolor": INK, "linewidth": 0.5}
        box = AnnotationBbox(image, Z[row], pad=0.08, bboxprops=frame, zorder=3)
        ax.add_artist(box)
    ax.set(xlabel="Component 1", ylabel="Component 2")
    ax.margins(0.07)
    ax.set_title(f"{len(Z)} faces, Gaussian kernel", fontsize=10)
    open_frames([ax])
    return figure

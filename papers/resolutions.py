"""Eigenfaces of images at three resolutions: marukatat §4.1, Fig. 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import PCA
from mercer.metrics import eigenvalue_difference, similarity
from mercer.sketches import Resize
from papers.data import Array, load
from papers.results import Line, Result

K, FULL = 10, (112, 92)
SIZES = ((89, 77), (56, 46))
TEXT = """400 faces, resized by area (the source does not say how) and centred, not divided by
deviations; ten eigenfaces at each size.

The figure has no numbers; the source says that they look alike. Sim compares the eigenvectors of
the dot matrices, 400 entries each, which is what the text explains the likeness by; and the axes
that Algorithm 3 makes of the small images for the large ones (line 7 needs the full images on the
left, as in Algorithm 4).

Eigenvalues of images with d/q times fewer pixels are that much smaller: their mean ratio is near
q/d as printed, and near 1 with the factor √(d/q), which `mercer.sketches.Resize` has. The full size
is 92 × 112 (the figure says 96 × 112). Signs are turned to those of the top row; an eigenface and
its negative are one axis."""


@dataclass
class Faces:
    """Eigenfaces at one size, and how near they are to those of the full size."""

    size: tuple[int, int]
    images: Array
    near: Array
    lifted: Array
    ratio: float
    diff: float


def run(quick: bool = False) -> Result:
    """Return how alike eigenfaces of three sizes are, and Fig. 4."""
    X = load("orl_faces")["X"][:: 4 if quick else 1].astype(np.float64)
    exact = PCA(K, random_state=0).fit(X)
    full = Faces(FULL, exact.components_.reshape(K, *FULL), np.ones(K), np.ones(K), 1.0, 0.0)
    found = [resized(X, exact, size) for size in SIZES]
    lines = []
    for faces in found:
        h, w = faces.size
        q, d = h * w, FULL[0] * FULL[1]
        lines += [
            Line(
                f"{w} × {h}: least Sim of dot-matrix eigenvectors 1 to {K}",
                float(faces.near.min()),
                "similar",
                least=0.99,
                form=".4f",
            ),
            Line(
                f"{w} × {h}: least Sim of axes by Algorithm 3",
                float(faces.lifted.min()),
                "similar",
                least=0.99,
                form=".4f",
            ),
            Line(
                f"{w} × {h}: mean ratio of eigenvalues, as printed",
                faces.ratio * q / d,
                form=".3f",
                note=f"q/d = {q / d:.3f}",
            ),
            Line(
                f"{w} × {h}: mean ratio of eigenvalues, with √(d/q)",
                faces.ratio,
                least=0.97,
                most=1.03,
                form=".3f",
                note=f"mean Diff {faces.diff:.4f}",
            ),
        ]
    title = f"The first {K} eigenfaces at three resolutions (marukatat Fig. 4)"
    return Result(title, lines, gallery([full, *found]), TEXT, seeds="the solver's 0")


def resized(X: Array, exact: PCA, size: tuple[int, int]) -> Faces:
    """Return the eigenfaces of small images, beside those of the large ones."""
    sketch = Resize(FULL, size)
    small = sketch.fit_transform(X)
    own = PCA(K, random_state=0).fit(small)
    scores, truth = own.transform(small), exact.transform(X)
    sign = np.sign((scores * truth).sum(axis=0))
    return Faces(
        size,
        (own.components_ * sign[:, None]).reshape(K, *size),
        similarity(scores.T, truth.T),
        similarity(lifted(X, scores), exact.components_),
        float(np.mean(own.explained_variance_ / exact.explained_variance_)),
        float(eigenvalue_difference(exact.explained_variance_, own.explained_variance_).mean()),
    )


def lifted(X: Array, scores: Array) -> Array:
    """Return axes of the full images from the dot-matrix eigenvectors of small ones.

    `PCA(svd_solver=Sketch(Resize(…), polish=False))` has the same axes, but decomposes a matrix of
    as many rows as small images have pixels, far more than there are images here.
    """
    made = scores.T @ (X - X.mean(axis=0))
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def gallery(rows: list[Faces]) -> Any:
    """Draw the eigenfaces, a row for every size."""
    from matplotlib.figure import Figure

    figure = Figure((9.6, 4.15), layout="constrained")
    for letter, line, faces in zip("abc", figure.subplots(len(rows), K), rows, strict=True):
        for i, (ax, image) in enumerate(zip(line, faces.images, strict=True)):
            most = float(np.abs(image).max())
            ax.imshow(image, cmap="gray", vmin=-most, vmax=most)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            title = str(i + 1) if letter == "a" else f"{faces.near[i]:.4f}"
            ax.set_title(title, fontsize=8.5)
        h, w = faces.size
        line[0].set_ylabel(f"({letter}) {w} × {h}", fontsize=9.5, fontweight="bold")
    figure.supxlabel("above (b) and (c): Sim with (a)", fontsize=9)
    return figure

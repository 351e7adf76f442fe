"""One picture of every display of `mercer.plotting`, for the documentation."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits, load_wine

from mercer import PCA, Denoiser, KernelPCA, NoveltyDetector
from mercer.methods import RandomFeatures, Subset
from mercer.plotting import (
    BiplotDisplay,
    CertificateDisplay,
    ContoursDisplay,
    GalleryDisplay,
    NormsDisplay,
    PairsDisplay,
    ReconstructionErrorDisplay,
    ScoresDisplay,
    SpectrumDisplay,
)

WIDTH, HEIGHT = 11.4, 9.6


def displays() -> Figure:
    """Every display once: wine, handwritten digits, and two half circles."""
    figure = Figure((WIDTH, HEIGHT))
    wine, digits = load_wine(as_frame=True), load_digits()
    cultivar = np.array(["Barolo", "Grignolino", "Barbera"])[wine.target]
    pca = PCA(scale=True).fit(wine.data)
    whole = PCA().fit(digits.data)

    SpectrumDisplay.from_estimator(pca, ax=cell(figure, 0, 0, "Spectrum", left=0.14, right=0.2))
    drawn = ScoresDisplay.from_estimator(
        whole, digits.data, labels=digits.target, ax=cell(figure, 0, 1, "Scores")
    )
    drawn.key_.set_loc("upper right")
    drawn.ax_.set_xlim(-35, 45)
    BiplotDisplay.from_estimator(
        pca, wine.data, labels=cultivar, top=8, ax=cell(figure, 0, 2, "Biplot")
    )
    corner = cell(figure, 1, 0, "Pairs", left=0.16)
    PairsDisplay.from_estimator(
        pca, wine.data, labels=cultivar, components=3, ax=split(corner, 3, 3, 0.015)
    )
    planes(figure)
    gallery(cell(figure, 2, 0, "Gallery", left=0.22, bottom=0.06), digits.data)
    certificates(cell(figure, 2, 1, "Certificate", left=0.24), digits.data)
    detector = NoveltyDetector(PCA(10), contamination=0.02).fit(digits.data)
    ax = cell(figure, 2, 2, "ReconstructionError")
    ReconstructionErrorDisplay.from_estimator(detector, digits.data, furthest=4, ax=ax)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=7)
    return figure


def planes(figure: Figure) -> None:
    """Draw contours, and norms of a basis beside those of all rows."""
    rng = np.random.default_rng(0)
    X, moon = moons(rng, 240)
    model = KernelPCA(4, kernel="rbf", gamma=2.0, random_state=0).fit(X)
    panels = split(cell(figure, 1, 1, "Contours", bottom=0.05, top=0.86), 2, 2, 0.02, 0.04)
    drawn = ContoursDisplay.from_estimator(model, X, labels=moon, ax=panels)
    options = {"kernel": "rbf", "gamma": 2.0, "center": False, "random_state": 0}
    models = {"all rows": KernelPCA(4, **options).fit(X)}
    models["a basis of 12"] = KernelPCA(4, method=Subset(12), **options).fit(X)
    panels = split(
        cell(figure, 1, 2, "Norms", left=0.2, bottom=0.05, right=0.11, top=0.86), 2, 1, 0.02, 0.04
    )
    basis = models["a basis of 12"].X_fit_
    norms = NormsDisplay.from_estimators(models, X, basis=basis, ax=panels)
    for ax in [*drawn.axes_, *norms.axes_]:
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
        ax.title.set(fontsize=7, y=0.95)


def gallery(ax: Axes, X: np.ndarray) -> None:
    """Draw digits, noise on them, and what is left without it."""
    noisy = X[:6] + np.random.default_rng(0).normal(0, 4, X[:6].shape)
    model = KernelPCA(60, kernel="rbf", gamma="median", preimage="fixed_point", random_state=0)
    clean = Denoiser(model).fit(X[6:]).transform(noisy)
    kept = PCA(20).fit(X[6:]).reconstruct(noisy)
    images = {"original": X[:6], "noisy": noisy, "kernel PCA": clean, "linear PCA": kept}
    GalleryDisplay.from_images(images, (8, 8), cmap="gray_r", ax=ax)


def certificates(ax: Axes, X: np.ndarray) -> None:
    """Draw what three ways to five axes are certified to hold."""
    options = {"kernel": "rbf", "gamma": "median", "random_state": 0}
    models = {
        "exact": KernelPCA(5, **options),
        "400 rows": KernelPCA(5, method=Subset(400, select="kmeans"), **options),
        "features": KernelPCA(5, method=RandomFeatures(200), **options),
    }
    CertificateDisplay.from_estimators(
        {name: model.fit(X) for name, model in models.items()}, ax=ax
    )


def cell(
    figure: Figure,
    row: int,
    column: int,
    title: str,
    left: float = 0.12,
    bottom: float = 0.13,
    right: float = 0.03,
    top: float = 0.91,
) -> Axes:
    """Return the Axes of one of nine cells, and write its title; margins are shares of the cell."""
    x, y = column / 3, 1 - (row + 1) / 3
    style = {"ha": "center", "va": "top", "fontsize": 9.5, "fontweight": "bold"}
    figure.text(x + (0.5 + (left - right) / 2) / 3, y + 0.985 / 3, f"{title}Display", **style)
    place = (x + left / 3, y + bottom / 3, (1 - left - right) / 3, (top - bottom) / 3)
    return figure.add_axes(place)


def split(ax: Axes, down: int, across: int, gap: float, between: float | None = None) -> np.ndarray:
    """Return Axes in the place of one, with gaps that are shares of the figure."""
    figure, box = ax.figure, ax.get_position()
    ax.remove()
    up = gap if between is None else between
    width, height = (box.width + gap) / across, (box.height + up) / down
    axes = np.empty((down, across), dtype=object)
    for i in range(down):
        for j in range(across):
            y = box.y0 + (down - 1 - i) * height
            axes[i, j] = figure.add_axes((box.x0 + j * width, y, width - gap, height - up))
    return axes


def moons(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points around two half circles, one in the other, and which each is of."""
    angle, upper = rng.uniform(0, np.pi, n), np.arange(n) % 2 == 0
    arc = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.where(upper[:, None], arc, np.array([1.0, 0.5]) - arc)
    return X + rng.normal(0, 0.1, (n, 2)), np.where(upper, "upper", "lower")

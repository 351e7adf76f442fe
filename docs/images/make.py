"""The pictures of the documentation; one set of versions gives the same bytes every time.

Run with ``make images``; the files go beside this script. The data sets are those on which the
literature shows kernel PCA: Schölkopf, Smola & Müller (1998), Washizawa (2012), Worrell (2017),
Aguilera & Antoñanzas (2019).
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from certificates import certificates
from displays import displays
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from mercer import PCA, KernelPCA
from mercer.methods import Nystrom, Reduced, Sketch, Subset
from mercer.metrics import empirical_error, similarity
from mercer.plotting import ContoursDisplay, NormsDisplay, ScoresDisplay
from mercer.sketches import Resize

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1]))  # papers/, which draws two of the data sets
DATA = Path(os.environ.get("MERCER_DATA", HERE.parents[2] / "shared/data"))
FACES = DATA / "orl_faces.npz"
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "axes.edgecolor": "#8c8c8c",
    "axes.labelcolor": "#404040",
    "axes.linewidth": 0.7,
    "savefig.dpi": 150,
}


def main() -> None:
    """Make every picture."""
    with mpl.rc_context(STYLE):
        for picture in (
            two_circles,
            three_clusters,
            cassini,
            basis,
            displays,
            eigenfaces,
            certified_gaps,
        ):
            path = HERE / f"{picture.__name__}.png"
            if picture in (eigenfaces, certified_gaps) and not FACES.exists():
                print(f"{path}: left as it is, {DATA} has no data")
                continue
            write(picture(), path)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def certified_gaps() -> Figure:
    """Certified gaps and true distances of four data sets."""
    return certificates(DATA)


def write(figure: Figure, path: Path) -> None:
    """Write a figure in 256 colours, a third of the size, and without date or version."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    colours = Image.open(buffer).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours.save(path, optimize=True, dpi=(150, 150))


def two_circles() -> Figure:
    """Two circles: linear PCA leaves one in the other, kernel PCA takes them apart."""
    X, circle = circles(np.random.default_rng(0), 300)
    models = {
        "Linear PCA": PCA(2),
        "Kernel PCA, RBF kernel with γ = 4": KernelPCA(2, kernel="rbf", gamma=4.0, random_state=0),
    }
    figure = Figure((9.3, 5.2))
    data = figure.add_axes((0.01, 0.2, 0.26, 0.5))
    points(data, X, circle)
    plain(data, "")
    heading([data], "Two circles", 0.1)
    data.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)
    rows = panels(figure, 2, 3, left=0.3, bottom=0.06, hspace=0.4)
    for axes, (title, model) in zip(rows, models.items(), strict=True):
        heading(axes, title)
        drawn = ContoursDisplay.from_estimator(model.fit(X), X, labels=circle, ax=axes[:2])
        for ax in drawn.axes_:
            plain(ax, ax.get_title())
        points(axes[2], model.transform(X), circle)
        bare(axes[2], "Scores", X)
    return figure


def eigenfaces() -> Figure:
    """Eigenfaces of ORL, and those found from smaller images: marukatat Fig. 4."""
    shape = (112, 92)
    with np.load(FACES) as archive:
        X = archive["X"].astype(np.float64)
    exact = PCA(10, random_state=0).fit(X)
    found = {"92 × 112, exact": exact}
    for to in ((89, 77), (56, 46)):
        solver = Sketch(Resize(shape, to), polish=False)
        found[f"from {to[1]} × {to[0]}"] = PCA(10, svd_solver=solver).fit(X)
    figure = Figure((8.0, 3.36))
    for row, (name, pca) in enumerate(found.items()):
        near = similarity(pca.components_, exact.components_)
        signs = np.sign((pca.components_ * exact.components_).sum(axis=1))
        for column in range(10):
            place = (0.055 + 0.0945 * column, 0.68 - 0.325 * row, 0.088, 0.27)
            panel = figure.add_axes(place, xticks=[], yticks=[])
            face = (signs[column] * pca.components_[column]).reshape(shape)
            limit = np.abs(face).max()
            panel.imshow(face, cmap="gray", vmin=-limit, vmax=limit)
            title = f"{column + 1}" if row == 0 else f"Sim {near[column]:.4f}"
            panel.set_title(title, fontsize=7, pad=2)
        figure.text(0.02, 0.815 - 0.325 * row, name, rotation=90, va="center", fontsize=8)
    return figure


def three_clusters() -> Figure:
    """Three clusters: two components part them, the next ones cut them in halves."""
    from papers.shapes import clusters

    X, cluster = clusters(np.random.default_rng(1), 150)
    model = KernelPCA(8, kernel="rbf", gamma=0.3, random_state=0).fit(X)
    figure = Figure((9.3, 4.5))
    axes = panels(figure, 2, 4)
    heading(axes[0], "Three clusters: the first eight components, RBF kernel with γ = 0.3")
    for ax in ContoursDisplay.from_estimator(model, X, labels=cluster, ax=axes).axes_:
        plain(ax, ax.get_title())
    return figure


def cassini() -> Figure:
    """Cassini's problem: scores under four kernels, and the contours of one of them."""
    from papers.shapes import beans

    X, part = beans(np.random.default_rng(2), 500)
    square = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    models = {
        "Linear PCA": PCA(2),
        "Polynomial, degree 2": KernelPCA(2, **square, random_state=0),
        "RBF, γ = 0.2": KernelPCA(5, kernel="rbf", gamma=0.2, random_state=0),
        "RBF, γ = 2": KernelPCA(2, kernel="rbf", gamma=2.0, random_state=0),
    }
    figure = Figure((9.3, 6.0))
    upper, lower = panels(figure, 2, 5, wspace=0.13, hspace=0.32)
    heading(upper, "Cassini: the data, and their scores under four kernels")
    points(upper[0], X, part)
    plain(upper[0], "Data")
    for ax, (title, model) in zip(upper[1:], models.items(), strict=True):
        points(ax, model.fit(X).transform(X), part)
        bare(ax, title, X)
    heading(lower, "Contours of the first five components, RBF kernel with γ = 0.2")
    model = models["RBF, γ = 0.2"]
    for ax in ContoursDisplay.from_estimator(model, X, labels=part, ax=lower).axes_:
        plain(ax, ax.get_title())
    return figure


def basis() -> Figure:
    """Norms of projections by 20 of 1000 points: washizawa Fig. 2, on two moons."""
    X = moons(np.random.default_rng(0), 1000)
    options = {"kernel": "rbf", "gamma": 2.0, "center": False, "random_state": 0}
    exact = KernelPCA(5, **options).fit(X)
    least = empirical_error(exact, X)
    figure = Figure((9.3, 3.5))
    rows = panels(figure, 2, 4, right=0.93, hspace=0.24)
    heading(rows[0], "Length of the projection on five axes: of all 1000 rows, and of 20 points")
    for axes, rule in zip(rows, ("uniform", "kmeans"), strict=True):
        models = {f"All rows, and 20 by “{rule}”": exact}
        for method in (Subset, Reduced, Nystrom):
            model = KernelPCA(5, method=method(20, select=rule), **options).fit(X)
            more = 100 * (empirical_error(model, X) / least - 1)
            models[f"{method.__name__}: error {more:+.3g} %"] = model
        points = list(models.values())[1].X_fit_
        for ax in NormsDisplay.from_estimators(models, X, basis=points, ax=axes).axes_:
            plain(ax, ax.get_title())
    low, high = rows[1, 0].get_position(), rows[0, 0].get_position()
    bar = figure.add_axes((0.945, low.y0, 0.01, high.y1 - low.y0))
    figure.colorbar(rows[0, 0].collections[0], cax=bar).ax.tick_params(labelsize=7)
    return figure


def panels(figure: Figure, down: int, across: int, **places: float) -> np.ndarray:
    """Return panels at fixed places: a layout engine rounds differently from run to run."""
    height = figure.get_figheight()
    frame = {"left": 0.008, "right": 0.992, "bottom": 0.015, "top": 1 - 0.5 / height}
    return figure.subplots(
        down, across, gridspec_kw=frame | {"wspace": 0.05, "hspace": 0.2} | places
    )


def heading(axes: Sequence[Axes], title: str, above: float = 0.3) -> None:
    """Write a heading over the middle of a row of panels, so many inches above it."""
    figure = axes[0].figure
    left, right = axes[0].get_position(), axes[-1].get_position()
    y = left.y1 + above / figure.get_figheight()
    style = {"ha": "center", "va": "bottom", "fontsize": 9.5, "fontweight": "bold"}
    figure.text((left.x0 + right.x1) / 2, y, title, **style)


def points(ax: Axes, rows: np.ndarray, labels: np.ndarray) -> None:
    """Draw rows or scores without a legend, as far from the frame as contours do."""
    ScoresDisplay.from_scores(rows, labels=labels, ax=ax)
    ax.get_legend().remove()
    low, high = rows[:, :2].min(axis=0), rows[:, :2].max(axis=0)
    (left, bottom), (right, top) = low - 0.12 * (high - low), high + 0.12 * (high - low)
    ax.set(xlim=(left, right), ylim=(bottom, top))


def plain(ax: Axes, title: str) -> None:
    """Leave out numbers and names of the plane; one unit is as long as the other."""
    ax.set(title=title, xlabel="", ylabel="", xticks=[], yticks=[], aspect="equal")


def bare(ax: Axes, title: str, X: np.ndarray) -> None:
    """Leave out the numbers of scores, in a panel of the shape of the data's."""
    width, height = np.ptp(X, axis=0)
    ax.set(title=title, xticks=[], yticks=[], box_aspect=height / width)


def circles(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points around circles of radius 0.3 and 1, with a deviation of 0.06."""
    inner = np.arange(n) % 2 == 0
    angle = rng.uniform(0, 2 * np.pi, n)
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.where(inner, 0.3, 1.0)[:, None] * around + rng.normal(0, 0.06, (n, 2))
    return X, np.where(inner, "inner", "outer")


def moons(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return points around two half circles of radius 1, one in the other, deviation 0.1."""
    angle = rng.uniform(0, np.pi, n)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = np.where((np.arange(n) % 2 == 0)[:, None], upper, np.array([1.0, 0.5]) - upper)
    return X + rng.normal(0, 0.1, (n, 2))


if __name__ == "__main__":
    main()

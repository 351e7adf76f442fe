"""Eigenfaces: recognition rate on ORL against the number of axes (worrell §4.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier

from mercer import PCA, KernelPCA, NearestProjection
from papers.data import Array, load
from papers.results import Line, Result

AXES, SPLITS, LEFT_OUT = (1, 2, 5, 10, 20, 40, 80, 120, 199), 10, 40
CHOICE = [10, 20, 40, 80, 120]
METHODS = {
    "linear PCA": NearestProjection(PCA()),
    "linear PCA, cosine": NearestProjection(PCA(), metric="cosine"),
    "kernel PCA": NearestProjection(KernelPCA(kernel="rbf", gamma="median")),
}
TEXT = """400 photographs of 40 people, 92 × 112 pixels; nearest neighbour among the projections of
the training images. Ten random splits, each with five training and five test images a person: mean
rate and standard deviation. k chosen: of 10, 20, 40, 80 and 120 axes those that do best in five
folds of the training images. Kernel PCA is with the RBF kernel, γ by the median rule. Worrell
prints no rate; the one beside ours is of S. Lawrence, C. Giles, A. Tsoi & A. Back, Face
recognition: a convolutional neural-network approach, IEEE Transactions on Neural Networks 8 (1997),
for eigenfaces with five images a person of the same photographs: 10.5 % error."""


def run(quick: bool = False) -> Result:
    """Return recognition rates in per cent, and the picture."""
    data = load("orl_faces")
    X, y = data["X"].astype(np.float32), data["y"]
    if quick:
        X = X.reshape(-1, 112, 92)[:, ::4, ::4].reshape(400, -1)
    axes, splits = ((10, 40), 1) if quick else (AXES, SPLITS)
    shuffled = StratifiedShuffleSplit(splits, test_size=200, random_state=0)
    rates = {name: np.zeros((splits, len(axes))) for name in METHODS}
    pixels, chosen = np.zeros(splits), {name: np.zeros(splits) for name in METHODS}
    for i, (train, test) in enumerate(shuffled.split(X, y)):
        faces = X[train], y[train], X[test], y[test]
        pixels[i] = rate(KNeighborsClassifier(1), faces)
        for name, model in METHODS.items():
            for j, k in enumerate(axes):
                rates[name][i, j] = rate(model.set_params(estimator__n_components=k), faces)
            grid = {"estimator__n_components": CHOICE[1::2] if quick else CHOICE}
            folds = StratifiedKFold(5, shuffle=True, random_state=i)
            chosen[name][i] = rate(GridSearchCV(model, grid, cv=folds), faces)
    lines = [line("1-NN of the pixels", pixels)]
    lines += [
        line(f"linear PCA, {k} ax{'is' if k == 1 else 'es'}", rates["linear PCA"][:, j])
        for j, k in enumerate(axes)
    ]
    for name, found in chosen.items():
        printed = "89.5" if name == "linear PCA" else "–"
        lines.append(line(f"{name}, k chosen", found, printed))
    if not quick:
        alone = cross_val_score(NearestProjection(PCA(LEFT_OUT)), X, y, cv=LeaveOneOut())
        what = f"linear PCA, {LEFT_OUT} axes, each image left out once"
        lines.append(Line(what, 100 * float(alone.mean()), form=".1f"))
    title = "Eigenfaces: recognition rate on ORL in per cent (worrell §4.1)"
    return Result(title, lines, picture(axes, rates, pixels), " ".join(TEXT.split()))


def rate(model: Any, faces: tuple[Array, Array, Array, Array]) -> float:
    """Return the share of test images that are recognised, in per cent."""
    X, y, new, truth = faces
    return 100 * float(model.fit(X, y).score(new, truth))


def line(what: str, found: Array, printed: str = "–") -> Line:
    """Return mean and deviation over the splits as a line."""
    return Line(what, float(found.mean()), printed, spread=float(found.std()), form=".1f")


def picture(axes: tuple[int, ...], rates: dict[str, Array], pixels: Array) -> Any:
    """Draw the rates against the number of axes."""
    from matplotlib.figure import Figure

    figure = Figure((6.4, 4.2), layout="constrained")
    ax = figure.subplots()
    reference = float(pixels.mean())
    ax.axhline(reference, color="#8c8c8c", linestyle="--", label=f"pixels, {reference:.1f} %")
    for (name, found), colour in zip(rates.items(), ("#0072b2", "#009e73", "#d55e00"), strict=True):
        mean, spread = found.mean(axis=0), found.std(axis=0)
        ax.fill_between(axes, mean - spread, mean + spread, color=colour, alpha=0.12, linewidth=0)
        ax.plot(axes, mean, color=colour, marker="o", markersize=4, label=name)
    ax.set(xscale="log", xlabel="number of axes", ylabel="recognised, %", ylim=(None, 100))
    ax.set_xticks(axes, [str(k) for k in axes])
    ax.minorticks_off()
    ax.set_title("ORL faces, five training images a person", fontsize=10, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    return figure

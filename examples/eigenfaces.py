"""Eigenfaces: people recognised by the nearest of the projections of their photographs.

    python examples/eigenfaces.py
    python examples/eigenfaces.py --splits 5 -o faces.png

Prints the share of new photographs that are recognised against the number of axes, for linear and
kernel PCA, and draws it beside the mean face, the first eigenfaces, and photographs with what the
axes keep of them and their nearest neighbours. The photographs are ORL's, 40 people ten times,
from orl_faces.npz in the folder that MERCER_DATA names; where it is not there, handwritten digits
stand in, which come with scikit-learn. After J. Worrell, Principal Component Analysis (2017), §4.1.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from mercer import PCA, KernelPCA, NearestProjection

BLUE, ORANGE, GREY, GREEN, RED = "#0072b2", "#d55e00", "#8c8c8c", "#009e73", "#c0392b"
AXES = (2, 5, 10, 20, 40, 80, 150)
SHOWN = (10, 40, 150)
MODELS = {
    "linear PCA": NearestProjection(PCA()),
    "kernel PCA": NearestProjection(KernelPCA(kernel="rbf", gamma="median")),
}


@dataclass(frozen=True)
class Pictures:
    """Pictures as rows of grey values, who is on them, and how large they are."""

    rows: np.ndarray
    names: np.ndarray
    shape: tuple[int, int]
    what: str


def main(arguments: list[str] | None = None) -> None:
    """Measure the recognition rates, print them, and draw everything."""
    options = read(arguments)
    console = Console(highlight=False)
    faces = photographs(console)
    half = len(faces.rows) // 2
    splits = StratifiedShuffleSplit(options.splits, test_size=half, random_state=0)
    parts = list(splits.split(faces.rows, faces.names))
    axes = [k for k in AXES if k < min(half, faces.rows.shape[1])]
    pixels, rates = measure(faces, parts, axes)
    table = Table(box=None, pad_edge=False)
    for name in ("axes", *rates):
        table.add_column(name, justify="right")
    for j, k in enumerate(axes):
        table.add_row(str(k), *(f"{found[j]:.1f} %" for found in rates.values()))
    console.print(f"{faces.what}, half of them known\n")
    console.print(table)
    console.print(f"\nnearest neighbour of the pixels themselves: {pixels:.1f} %")
    draw(faces, parts[0], axes, pixels, rates).savefig(options.output, dpi=150)
    console.print(f"Eigenfaces: {options.output}", markup=False, soft_wrap=True)


def photographs(console: Console) -> Pictures:
    """Return ORL's photographs, or digits where they are not there."""
    folder = Path(os.environ.get("MERCER_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if (folder / "orl_faces.npz").is_file():
        with np.load(folder / "orl_faces.npz") as file:
            rows, names = file["X"].astype(np.float32), file["y"]
        return Pictures(rows, names, (112, 92), "400 photographs of 40 people, 92 × 112 pixels")
    console.print("There is no orl_faces.npz in MERCER_DATA: digits stand in for faces.\n")
    digits = load_digits()
    rows = 16 - digits.data[:600].astype(np.float32)
    return Pictures(rows, digits.target[:600], (8, 8), "600 handwritten digits, 8 × 8 pixels")


def measure(faces: Pictures, parts: list[Any], axes: list[int]) -> tuple[float, dict[str, Any]]:
    """Return the mean recognition rates: of pixels, and of every model for every number of axes."""
    X, y = faces.rows, faces.names
    pixels = []
    rates = {name: np.zeros((len(parts), len(axes))) for name in MODELS}
    for i, (train, test) in enumerate(parts):
        pixels.append(KNeighborsClassifier(1).fit(X[train], y[train]).score(X[test], y[test]))
        for name, model in MODELS.items():
            for j, k in enumerate(axes):
                model.set_params(estimator__n_components=k).fit(X[train], y[train])
                rates[name][i, j] = model.score(X[test], y[test])
    return 100 * float(np.mean(pixels)), {name: 100 * r.mean(axis=0) for name, r in rates.items()}


def draw(faces: Pictures, part: Any, axes: list[int], pixels: float, rates: dict[str, Any]) -> Any:
    """Draw eigenfaces, some photographs with their neighbours, and the rates."""
    from matplotlib.figure import Figure

    high, wide = faces.shape
    width = 1.05
    tall = width * high / wide
    figure = Figure((11.4, 4 * tall + 2.1), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(6.6 * width, 4.0))
    top, bottom = left.subfigures(2, 1, height_ratios=(1.0, 3.1))
    _eigenfaces(top, faces, part)
    _probes(bottom, faces, part, [k for k in SHOWN if k <= axes[-1]])
    _curves(right.subplots(), axes, pixels, rates)
    return figure


def _eigenfaces(figure: Any, faces: Pictures, part: Any) -> None:
    pca = PCA(5).fit(faces.rows[part[0]])
    panels = figure.subplots(1, 6)
    figure.suptitle("The mean, and the first five axes", fontsize=10, fontweight="bold")
    show(panels[0], pca.mean_, faces, "mean")
    for ax, axis, share in zip(
        panels[1:], pca.components_, pca.explained_variance_ratio_, strict=True
    ):
        limit = float(np.abs(axis).max())
        show(ax, axis, faces, f"{100 * share:.0f} %", vmin=-limit, vmax=limit)


def _probes(figure: Any, faces: Pictures, part: Any, counts: list[int]) -> None:
    """Draw new photographs, what the axes keep of them, and the nearest of the known ones."""
    train, test = part
    X, y = faces.rows[train], faces.names[train]
    known = NearestProjection(PCA(counts[1])).fit(X, y)
    found = known.kneighbors(faces.rows[test], return_distance=False)[:, 0]
    right = y[found] == faces.names[test]
    hits = np.flatnonzero(right)
    some = [hits[0], hits[len(hits) // 2], *np.flatnonzero(~right)[:1]]
    kernel = KernelPCA(counts[1], kernel="rbf", gamma="median", preimage="fixed_point").fit(X)
    kept = {f"{k} axes": PCA(k).fit(X).reconstruct for k in counts}
    kept[f"kernel PCA, {counts[1]}"] = kernel.reconstruct
    panels = figure.subplots(len(some), 2 + len(kept))
    title = f"New ones, what axes keep of them, and the nearest known by {counts[1]} axes"
    figure.suptitle(title, fontsize=10, fontweight="bold")
    for i, (row, at) in enumerate(zip(panels, some, strict=True)):
        probe = faces.rows[test[at]]
        show(row[0], probe, faces, "new" if i == 0 else "")
        for ax, (name, keep) in zip(row[1:-1], kept.items(), strict=True):
            show(ax, keep(probe[None])[0], faces, name if i == 0 else "", vmin=0, vmax=X.max())
        show(row[-1], X[found[at]], faces, "nearest" if i == 0 else "")
        colour = GREEN if right[at] else RED
        row[-1].spines[:].set(color=colour, linewidth=2)
        row[-1].set_xlabel("the same" if right[at] else "another", fontsize=8, color=colour)


def _curves(ax: Any, axes: list[int], pixels: float, rates: dict[str, Any]) -> None:
    ax.axhline(pixels, color=GREY, linestyle="--", label=f"pixels, {pixels:.1f} %")
    for (name, found), colour in zip(rates.items(), (BLUE, ORANGE), strict=True):
        ax.plot(axes, found, color=colour, marker="o", markersize=4, label=name)
    ax.set(xscale="log", xlabel="number of axes", ylabel="recognised, %", ylim=(None, 100))
    ax.set_xticks(axes, [str(k) for k in axes])
    ax.minorticks_off()
    ax.set_title("Recognised, by number of axes", fontsize=10, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right", fontsize=9)


def show(ax: Any, row: np.ndarray, faces: Pictures, title: str, **limits: Any) -> None:
    """Draw a row as the picture it is."""
    ax.imshow(np.asarray(row).reshape(faces.shape), cmap="gray", **limits)
    ax.set_title(title, fontsize=8, pad=3)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(color=GREY, linewidth=0.7)


def read(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--splits", type=int, default=3, help="random halves to average over (3)")
    parser.add_argument("-o", "--output", type=Path, default=Path("eigenfaces.png"))
    options = parser.parse_args(arguments)
    if options.splits < 1:
        parser.error(f"--splits {options.splits}: at least one is needed")
    if not options.output.parent.is_dir():
        parser.error(f"there is no folder {options.output.parent}")
    return options


if __name__ == "__main__":
    main()

"""Where points of the plane are novel: kernel PCA, linear PCA and a one-class SVM side by side.

    python examples/novelty.py
    python examples/novelty.py --points 300 --contamination 0.02 -o boundaries.png

Each detector learns a shape from points on it alone. The table says how many new points of the
shape it knows again, and how much of the box around it it takes for the shape: the less, the
tighter the boundary. After the figures of H. Hoffmann, Kernel PCA for novelty detection, Pattern
Recognition 40 (2007). The points are drawn here; nothing is read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import OneClassSVM

from mercer import PCA, KernelPCA, NoveltyDetector
from mercer.kernels import RBF

BLUE, INK, GREY = "#0072b2", "#262626", "#8c8c8c"
SEA = ("#fbfaf8", "#d5d0e8", "#a79dcd", "#7468ac")


def frame(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return points of a square frame, a fifth of its side wide."""
    points = rng.uniform(-1, 1, (8 * n, 2))
    return points[np.abs(points).max(axis=1) > 0.6][:n]


def ring_line_square(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return points of a ring, a line and a square beside each other."""
    parts = np.array_split(np.arange(n), [int(0.45 * n), int(0.6 * n)])
    angle = rng.uniform(0, 2 * np.pi, len(parts[0]))
    radius = np.sqrt(rng.uniform(0.6**2, 0.85**2, len(parts[0])))
    ring = np.stack([radius * np.cos(angle) - 1.6, radius * np.sin(angle)], axis=1)
    line = np.stack([rng.uniform(-0.75, 0.6, len(parts[1])), rng.normal(0, 0.02, len(parts[1]))])
    square = rng.uniform(-0.6, 0.6, (len(parts[2]), 2)) + np.array([1.2, 0.0])
    return np.concatenate([ring, line.T, square])


def spiral(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return points of a spiral of two turns."""
    angle = 4 * np.pi * np.sqrt(rng.uniform(0.02, 1, n))
    arm = np.stack([angle * np.cos(angle), angle * np.sin(angle)], axis=1) / (4 * np.pi)
    return arm + rng.normal(0, 0.025, (n, 2))


@dataclass(frozen=True)
class Shape:
    """How points are drawn, and a kernel's width and a number of axes that suit them."""

    draw: Callable[[int, np.random.Generator], np.ndarray]
    sigma: float
    axes: int


SHAPES = {
    "frame": Shape(frame, 0.3, 40),
    "ring, line and square": Shape(ring_line_square, 0.4, 40),
    "spiral": Shape(spiral, 0.2, 60),
}


def detectors(shape: Shape, share: float) -> dict[str, Any]:
    """Return what is compared, unfitted."""
    kernel = RBF.from_sigma(shape.sigma)
    model = KernelPCA(shape.axes, kernel=kernel)
    return {
        "kernel PCA": NoveltyDetector(model, contamination=share),
        "one-class SVM": OneClassSVM(nu=share, gamma=kernel.gamma),
        "linear PCA": NoveltyDetector(PCA(1), contamination=share),
    }


def box(X: np.ndarray) -> np.ndarray:
    """Return the corners of the box around points, with a margin."""
    low, high = X.min(axis=0), X.max(axis=0)
    margin = 0.15 * (high - low).max()
    return np.stack([low - margin, high + margin])


def main(arguments: list[str] | None = None) -> None:
    """Fit every detector to every shape; print a table, and draw the boundaries."""
    options = read(arguments)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 116)
    table = Table(box=None, pad_edge=False)
    for name in ("points of", "detector"):
        table.add_column(name)
    for name in ("new points known again", "box taken for the shape"):
        table.add_column(name, justify="right")
    rows = []
    for name, shape in SHAPES.items():
        rng = np.random.default_rng(0)
        X, new = shape.draw(options.points, rng), shape.draw(2000, rng)
        beside = rng.uniform(*box(X), (20_000, 2))
        fitted = {
            label: detector.fit(X)
            for label, detector in detectors(shape, options.contamination).items()
        }
        for label, detector in fitted.items():
            kept = [100 * np.mean(detector.predict(some) == 1) for some in (new, beside)]
            table.add_row(name, label, *(f"{share:.1f} %" for share in kept))
        rows.append((name, shape, X, fitted))
    console.print(
        f"{options.points} points a shape; {options.contamination:g} of them are outside\n"
    )
    console.print(table)
    picture(rows).savefig(options.output, dpi=150)
    console.print(f"\nBoundaries: {options.output}", markup=False, soft_wrap=True)


def picture(rows: list[tuple[str, Shape, np.ndarray, dict[str, Any]]]) -> Any:
    """Draw a row of panels for each shape: the score in shades, the boundary as a line."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    sides = [np.ptp(box(X), axis=0) for _, _, X, _ in rows]
    heights = [3.3 * side[1] / side[0] + 0.35 for side in sides]
    figure = Figure((10.4, sum(heights) + 0.55), layout="constrained")
    panels = figure.subplots(len(rows), 3, squeeze=False, gridspec_kw={"height_ratios": heights})
    sea = LinearSegmentedColormap.from_list("sea", SEA)
    for axes, (name, shape, X, fitted) in zip(panels, rows, strict=True):
        for ax, (label, detector) in zip(axes, fitted.items(), strict=True):
            _panel(ax, X, detector, sea)
            detail = {
                "kernel PCA": f"σ = {shape.sigma}, {shape.axes} axes",
                "one-class SVM": f"σ = {shape.sigma}",
                "linear PCA": "1 axis",
            }[label]
            ax.set_title(f"{label}, {detail}", fontsize=9)
        axes[0].set_ylabel(name, fontsize=9)
    title = "Novelty in shades, and the boundary of what is not novel"
    figure.suptitle(title, fontsize=11, fontweight="bold")
    return figure


def _panel(ax: Any, X: np.ndarray, detector: Any, shades: Any) -> None:
    (x0, y0), (x1, y1) = box(X)
    x, y = np.linspace(x0, x1, 220), np.linspace(y0, y1, 220)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    Z = -detector.decision_function(grid).reshape(len(y), len(x))
    levels = np.linspace(min(Z.min(), 0), np.quantile(Z, 0.98), 12)
    ax.contourf(x, y, Z, levels=levels, cmap=shades, extend="max")
    ax.contour(x, y, Z, levels=[0], colors=INK, linewidths=1.4)
    ax.scatter(*X.T, s=5, color=BLUE, edgecolor="white", linewidth=0.25, zorder=3)
    ax.set(xticks=[], yticks=[], aspect="equal", xlim=(x0, x1), ylim=(y0, y1))
    ax.spines[:].set(color=GREY, linewidth=0.7)


def read(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--points", type=int, default=700, help="points of each shape (700)")
    parser.add_argument(
        "--contamination", type=float, default=0.02, help="share of them outside (0.02)"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("novelty.png"))
    options = parser.parse_args(arguments)
    if options.points < 80:
        parser.error(f"--points {options.points}: at least 80 are needed")
    if not 0 < options.contamination <= 0.5:
        parser.error(f"--contamination {options.contamination:g} must be above 0, at most 0.5")
    if not options.output.parent.is_dir():
        parser.error(f"there is no folder {options.output.parent}")
    return options


if __name__ == "__main__":
    main()

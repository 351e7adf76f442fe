"""Rows as points, coloured by class or by a number, and the key to the colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.panels import Axes, Values

# Okabe & Ito (2008), Color universal design: told apart by every kind of colour vision.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW)
MARKERS = "os^Dv*"
INK = "#262626"
# Floats of more values than this are a scale, not the names of classes.
MANY = 20


def draw_points(ax: Axes, rows: Values, labels: Any) -> Any:
    """Draw rows of two numbers; return the points where their colours are a scale."""
    n = len(rows)
    style: dict[str, Any] = {"s": float(np.clip(4000 / max(n, 1), 4, 15)), "zorder": 3}
    # A million points would make a vector file of a million marks.
    style |= {"linewidths": 0.3, "edgecolors": "white", "rasterized": n > 10_000}
    if labels is None:
        ax.scatter(*rows.T, color=INK, **style)
        return None
    classes = checked(labels, n)
    names, which = np.unique(classes, return_inverse=True)
    if classes.dtype.kind == "f" and len(names) > MANY:
        return ax.scatter(*rows.T, c=classes, cmap="viridis", **style)
    for i, label in enumerate(names):
        marker = MARKERS[i // len(COLOURS) % len(MARKERS)]
        colour = COLOURS[i % len(COLOURS)]
        ax.scatter(*rows[which == i].T, color=colour, marker=marker, label=str(label), **style)
    return None


def checked(labels: Any, n: int) -> Values:
    """Return labels as an array that can be sorted, one for each row."""
    classes = to_numpy(labels)
    if classes.shape != (n,):
        raise ValueError(
            f"labels has shape {classes.shape}; there are {n} rows, give one for each."
        )
    # Objects, such as a name beside None, need not have an order; their texts do.
    return classes.astype(str) if classes.dtype.kind == "O" else classes


def draw_key(axes: list[Axes], labels: Any, scale: Any, place: str) -> None:
    """Name the classes in a legend, or the numbers along a bar of colours."""
    if labels is None:
        return
    title = getattr(labels, "name", None) or None
    figure = axes[0].figure
    if scale is not None:
        figure.colorbar(scale, ax=axes, label=title)
        return
    marks, names = axes[0].get_legend_handles_labels()
    outside = place.startswith("outside")
    host = figure if outside else axes[0]
    columns = min(len(names), 8) if outside else 1 + len(names) // 12
    style = {"ncols": columns, "frameon": False, "markerscale": 1.5}
    host.legend(marks, names, title=title, loc=place, **style)

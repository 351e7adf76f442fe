"""What the pictures of the plane share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mercer.plotting import ScoresDisplay
from papers.shapes import Array

BLUE, ORANGE, GREEN, RED, GREY, INK = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#c0392b",
    "#8c8c8c",
    "#404040",
)


def plane(ax: Any, title: str | None = None) -> None:
    """Leave out names and numbers of the plane; one unit is as long as the other."""
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[], aspect="equal")
    ax.set_title(ax.get_title() if title is None else title, fontsize=9)


def points(ax: Any, rows: Array, labels: Array, title: str = "") -> None:
    """Draw points by their classes, without a key."""
    drawn = ScoresDisplay.from_scores(rows, labels=labels, ax=ax)
    drawn.ax_.get_legend().remove()
    ax.set_title(title, fontsize=9)


def arrows(ax: Any, pca: Any) -> None:
    """Draw the first two axes of a plane, each as long as a deviation and a quarter."""
    lengths = 1.25 * np.sqrt(pca.explained_variance_)
    for j, (axis, length) in enumerate(zip(pca.components_, lengths, strict=True)):
        tip = pca.mean_ + length * axis
        style = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.6, "shrinkA": 0}
        ax.annotate("", tip, pca.mean_, arrowprops=style, zorder=5)
        name = {"ha": "center", "va": "center", "fontsize": 9, "fontweight": "bold"}
        halo = {"boxstyle": "circle,pad=0.1", "facecolor": "white", "linewidth": 0}
        ax.text(*(tip + 0.12 * lengths[0] * axis), str(j + 1), bbox=halo, zorder=6, **name)


def open_frames(axes: Iterable[Any]) -> None:
    """Leave out the upper and the right line of the frames."""
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)

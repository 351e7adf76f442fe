"""Base of the displays: Axes and figures, colors, texts."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.extras import extra
from mercer.messages import percent

Axes: TypeAlias = Any
"""A matplotlib Axes."""
Style: TypeAlias = dict[str, Any]
"""Keyword arguments of matplotlib."""
Values: TypeAlias = npt.NDArray[Any]

# Okabe & Ito (2008), Color universal design, and two of Tol's muted colors: distinct from each
# other in every kind of color vision.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
WINE, INDIGO = "#882255", "#332288"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW, WINE, INDIGO)
INK, GRAY, LIGHT_GRAY = "#262626", "#8c8c8c", "#bdbdbd"
MAX_COLUMNS = 4
MAX_PANELS = 2 * MAX_COLUMNS
MAX_LETTERS = 28


class Display(ABC):
    """Base of the displays: the constructor stores what was computed, `plot` draws it.

    `plot` sets `figure_`, and `ax_` or, for several panels, `axes_`. What it draws are attributes
    that end in an underscore, too.
    """

    figsize: ClassVar[tuple[float, float]] = (5.6, 3.6)
    ax_: Axes
    axes_: Any
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on the Axes passed, or in a new figure, and return the display."""

    def _open(self, ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
        """Set and return the Axes to draw on; those of a new figure have no upper right frame."""
        if ax is None:
            ax = new_figure(*(figsize or self.figsize)).subplots()
            ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _open_panels(self, ax: Any, count: int, what: str = "components") -> Any:
        """Set and return as many Axes: those passed, or a new figure with rows of equal length."""
        if ax is not None:
            self.axes_ = check_axes(ax, count, what)
        else:
            across = row_length(count)
            down = -(-count // across)
            figure = new_figure(2.5 * across + 0.4, 2.5 * down + 0.4)
            axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
            for spare in axes[count:]:
                spare.remove()
            self.axes_ = axes[:count]
            for panel in self.axes_[-across:]:  # matplotlib hides the ticks above a removed panel
                panel.xaxis.set_tick_params(labelbottom=True)
        self.figure_ = self.axes_[0].figure
        return self.axes_


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or raise an error that says how to install it."""
    return extra(f"matplotlib.{module}", "plot", "mercer.plotting draws with")


def new_figure(width: float, height: float) -> Any:
    """Return a figure that a notebook displays, and that nothing else refers to."""
    # pyplot keeps a figure until it is closed, which a notebook does at the end of a cell. Outside
    # of one nobody would close it, so the figure is a plain one, freed with its last Axes.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    make = matplotlib("pyplot").figure if hasattr(shell, "kernel") else matplotlib("figure").Figure
    return make(figsize=(width, height), layout="constrained")


def check_axes(ax: Any, count: int, what: str) -> Values:
    """Return the Axes passed as a flat array, or raise an error unless there are `count`."""
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != count:
        raise ValueError(
            f"ax holds {len(axes)} Axes, and there are {count} {what} to draw: pass one Axes for "
            f"each."
        )
    return axes


def row_length(count: int) -> int:
    """Return how many panels a row has: at most four, and rows as even as possible."""
    return -(-count // -(-count // MAX_COLUMNS))


def lay_out(ax: Axes) -> None:
    """Place the Axes of a figure as they will be drawn, to measure texts."""
    root = ax.figure.figure  # of a subfigure, the outer figure
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)
    ax.apply_aspect()


def component_titles(components: Sequence[int], ratio: Any) -> list[str]:
    """Return titles of components, counted from 1, with their shares of the variance."""
    shares = ["" if ratio is None else f" ({percent(to_numpy(ratio)[j], 1)})" for j in components]
    return [f"Component {j + 1}{share}" for j, share in zip(components, shares, strict=True)]


def one_line(text: Any, most: int = MAX_LETTERS) -> str:
    """Return a text on one line, cut where it is too long to draw."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def set_texts(ax: Axes, **texts: str) -> None:
    """Set title, xlabel or ylabel literally: a $ in a name does not start a formula."""
    for what, text in texts.items():
        getattr(ax, f"set_{what}")(text, parse_math=False)


def draw_flags(
    heights: Mapping[Axes, float], places: Sequence[float], texts: Sequence[str], color: str = INK
) -> list[tuple[Any, Any]]:
    """Draw a vertical line at each place with its name at the top; return lines and names.

    `heights` maps Axes with a common horizontal axis to the largest value drawn on them; the
    last Axes gets the lines. Each name has a row of its own above the data.
    """
    ax, count = list(heights)[-1], max(len(places), 1)
    lay_out(ax)
    frame, pixels = ax.get_window_extent(), ax.figure.figure.dpi / 72
    size = matplotlib("font_manager").FontProperties(size="small").get_size_in_points()
    step = min(1.5 * size * pixels / max(frame.height, 1.0), 0.6 / count)
    for panel, height in heights.items():
        panel.set_ylim(0, 1.05 * height / (1 - len(places) * step))
        panel.set_yticks([tick for tick in panel.get_yticks() if 0 <= tick <= 1.05 * height])
    both = ax.get_xaxis_transform()
    dashed: Style = {"color": color, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 4}
    style: Style = {"fontsize": min(size, step * frame.height / pixels / 1.2), "color": color}
    style |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}}
    style |= {"xycoords": both, "textcoords": "offset points", "va": "center", "parse_math": False}
    flags = []
    for i, (x, text) in enumerate(zip(places, texts, strict=True)):
        y = 1 - (i + 0.6) * step
        (line,) = ax.plot([x, x], [0, y], transform=both, scalex=False, scaley=False, **dashed)
        name = ax.annotate(text, (x, y), xytext=(4, 0), zorder=5, **style)
        name.set_in_layout(False)  # it is inside the frame
        box = name.get_window_extent()
        if box.x1 > frame.x1:  # no room on the right of the line
            name.xyann = (4 - min(box.width / pixels + 8, (box.x0 - frame.x0) / pixels), 0)
        flags.append((line, name))
    return flags

"""What every figure needs: matplotlib, Axes to draw on, text that is never taken for a formula."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.extras import extra
from mercer.messages import percent

Axes: TypeAlias = Any
"""A matplotlib Axes."""
Panels: TypeAlias = npt.NDArray[Any]
"""An array of Axes."""
Values: TypeAlias = npt.NDArray[Any]

WIDEST = 4
LONGEST = 28


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or say how to get it."""
    return extra(f"matplotlib.{module}", "plot", "mercer.plotting draws with")


def figure(width: float, height: float) -> Any:
    """Make a figure that a notebook displays, and that nothing else holds on to."""
    # pyplot keeps a figure until it is closed; a notebook closes it at the end of the cell.
    # Elsewhere nobody would close ours, so it is a bare one, freed with the last of its Axes.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    make = matplotlib("pyplot").figure if hasattr(shell, "kernel") else matplotlib("figure").Figure
    return make(figsize=(width, height), layout="constrained")


def panels(ax: Any, count: int, what: str = "components") -> Panels:
    """Return the Axes given, or those of a new figure, in rows of equal length."""
    if ax is not None:
        return given(ax, count, what)
    down, across = -(-count // WIDEST), row_length(count)
    new = figure(2.5 * across + 0.4, 2.5 * down + 0.4)
    axes: Panels = new.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.remove()
    for panel in lowest(axes[:count]):  # Above a spare one, matplotlib hides the numbers.
        panel.xaxis.set_tick_params(labelbottom=True)
    return axes[:count]


def given(ax: Any, count: int, what: str) -> Panels:
    """Return Axes that were given, as many as are to be drawn on."""
    found = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(found) != count:
        raise ValueError(
            f"ax holds {len(found)} Axes, and {count} {what} are to be drawn: give one for "
            f"each, or name the {what}."
        )
    return found


def row_length(count: int) -> int:
    """Return how many panels a row has: at most four, and rows as even as can be."""
    return -(-count // -(-count // WIDEST))


def lowest(axes: Panels) -> Panels:
    """Return the panels that have none below them."""
    return axes[-row_length(len(axes)) :]


def leftmost(axes: Panels) -> Panels:
    """Return the panels that begin a row."""
    return axes[:: row_length(len(axes))]


def open_panel(width: float, height: float) -> Axes:
    """Return the only Axes of a new figure, open at the top and on the right."""
    ax = figure(width, height).subplots()
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def points_of(ax: Axes) -> tuple[float, float]:
    """Return width and height of an Axes in points, the unit of fonts."""
    box, dpi = ax.get_window_extent(), ax.figure.figure.dpi
    return 72 * box.width / dpi, 72 * box.height / dpi


def settle(ax: Axes) -> None:
    """Place the Axes of a figure where they will be drawn, so that text can be measured."""
    root = ax.figure.figure  # of a figure within a figure, the outer one
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)


def chosen(components: Any, width: int, most: int = 2 * WIDEST) -> list[int]:
    """Return the components to draw, all of them among those there are."""
    if not width:
        raise ValueError("There is no component to draw: the model has none.")
    if components is None:
        return list(range(min(width, most)))
    if isinstance(components, Integral):
        found = list(range(int(components)))
    else:
        found = [int(j) for j in components]
    if not found or not all(0 <= j < width for j in found):
        raise ValueError(
            f"components={components!r}, but there are {width}: name how many of the first, "
            f"or which of 0 to {width - 1}."
        )
    return found


def name(j: int, ratio: Values | None) -> str:
    """Name a component, counted from 1, with its share of the variance."""
    return f"Component {j + 1}" + ("" if ratio is None else f" ({percent(ratio[j], 1)})")


def short(text: Any, longest: int = LONGEST) -> str:
    """Return a text on one line, cut where it is too long to draw."""
    line = " ".join(str(text).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def entitle(ax: Axes, **texts: str) -> None:
    """Set title, xlabel and ylabel as they stand: a name with a $ in it is no formula."""
    for what, text in texts.items():
        getattr(ax, f"set_{what}")(text, parse_math=False)

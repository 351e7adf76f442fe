"""What every figure needs: matplotlib, Axes to draw on, components and their names."""

from __future__ import annotations

import importlib
import sys
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy

Axes: TypeAlias = Any
"""A matplotlib Axes."""
Panels: TypeAlias = npt.NDArray[Any]
"""An array of Axes."""
Values: TypeAlias = npt.NDArray[Any]

WIDEST = 4


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or say how to get it."""
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError as missing:
        raise ImportError(
            f"mercer.plotting draws with matplotlib, which could not be imported ({missing}). "
            "Install it with: pip install 'mercer[plot]'"
        ) from missing


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
        given = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(given) != count:
            raise ValueError(
                f"ax holds {len(given)} Axes, and {count} {what} are to be drawn: give one for "
                f"each, or name the {what}."
            )
        return given
    down, across = -(-count // WIDEST), row_length(count)
    new = figure(2.5 * across + 0.4, 2.5 * down + 0.4)
    axes: Panels = new.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.remove()
    for panel in lowest(axes[:count]):  # Above a spare one, matplotlib hides the numbers.
        panel.xaxis.set_tick_params(labelbottom=True)
    return axes[:count]


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


def chosen(components: Any, width: int) -> list[int]:
    """Return the components to draw, all of them among those there are."""
    if components is None:
        return list(range(min(width, 2 * WIDEST)))
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


def shares(model: Any) -> Values | None:
    """Return the shares of the variance of a model, or of the last step of a pipeline."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    ratio = getattr(last, "explained_variance_ratio_", None)
    return None if ratio is None else to_numpy(ratio)


def name(j: int, ratio: Values | None) -> str:
    """Name a component, counted from 1, with its share of the variance."""
    return f"Component {j + 1}" + ("" if ratio is None else f" ({100 * ratio[j]:.1f} %)")


def dense(X: Any) -> Values:
    """Bring rows to the host, dense."""
    return to_numpy(X.toarray() if hasattr(X, "toarray") else X)

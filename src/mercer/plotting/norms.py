"""Contours of projection norms over the plane, for models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.panels import (
    Axes,
    Panels,
    Values,
    dense,
    leftmost,
    lowest,
    matplotlib,
    panels,
)
from mercer.plotting.plane import grid, plane
from mercer.plotting.points import INK, VERMILION

# From nothing to all ever darker, and another hue beyond: told apart by every colour vision.
SEA, BEYOND = ("#fbfaf8", "#d5d0e8", "#a79dcd", "#7468ac"), "#e3c458"


def projection_norms(
    models: Mapping[str, Any],
    X: Any,
    *,
    basis: Any = None,
    levels: int | Sequence[float] = 10,
    resolution: int = 120,
    cmap: Any = None,
    ax: Axes | Sequence[Axes] | Panels | None = None,
) -> Panels:
    r"""Draw :math:`\|P\Phi(x)\|` over the plane for several models, on one scale of colours.

    P is each model's own operator, and Φ(x) is centred where the model centres: near the data of
    a kernel of k(x, x) = 1 the norm is near one, where the axes hold them well. It is
    :math:`\sqrt{y^TGy}` of the scores y, with G the inner products of the axes. Models that
    approximate the first one should look like it.

    Parameters
    ----------
    models : mapping of str to fitted models of two columns
        Panels by their titles. The first model sets the scale; what exceeds it is of one colour.
    X : array or DataFrame of shape (n, 2)
        Rows to draw; the plane is drawn as far as they reach.
    basis : array of shape (m, 2) or None
        Points to mark in the first panel.
    levels : int or increasing sequence
        About how many steps, at round numbers; or the norms to draw lines at.
    resolution : int
        Points of the grid along each side.
    cmap : str, Colormap or None
        Colours from zero to the largest.
    ax : Axes, sequence of Axes or None
        One for each model. None makes a figure, with a bar of the colours.

    Returns
    -------
    ndarray of Axes, one for each model

    References
    ----------
    Y. Washizawa, Subset basis approximation of kernel principal component analysis (2012),
    Figs. 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Subset
    >>> from mercer.plotting import projection_norms
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> kpca = KernelPCA(3, kernel="rbf", center=False)
    >>> subset = KernelPCA(3, kernel="rbf", center=False, method=Subset(10))
    >>> axes = projection_norms({"All rows": kpca.fit(X), "Ten": subset.fit(X)}, X)
    >>> [ax.get_title() for ax in axes]
    ['All rows', 'Ten']
    """
    if not models:
        raise ValueError("models is empty: give one model at least, by its title.")
    planes = [plane(model, X) for model in models.values()]  # refuses each that takes no plane
    rows, names = planes[0]
    x, y, points = grid(rows, X, resolution)
    norms = [_norms(model, points).reshape(len(y), len(x)) for model in models.values()]
    steps = _steps(levels, float(norms[0].max()))
    axes = panels(ax, len(models), "models")
    for panel, title, Z in zip(axes, models, norms, strict=True):
        filled = _sea(panel, x, y, Z, steps, cmap)
        _rows(panel, rows, None if panel is not axes[0] or basis is None else dense(basis))
        panel.set(title=title, xlim=x[[0, -1]], ylim=y[[0, -1]])
    for panel in axes if ax is not None else lowest(axes):
        panel.set_xlabel(names[0])
    for panel in axes if ax is not None else leftmost(axes):
        panel.set_ylabel(names[1])
    if ax is None:
        axes[0].figure.colorbar(filled, ax=list(axes), label=r"$\|P\Phi(x)\|$")
    return axes


def _norms(model: Any, points: Any) -> Values:
    """Return ‖PΦ(x)‖ of points; where the axes are orthonormal, the length of the scores."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    overlaps = getattr(getattr(last, "projection_", None), "overlaps", None)
    scores = to_numpy(model.transform(points)).astype(np.float64)
    along = scores if overlaps is None else scores @ overlaps
    squares: Values = np.einsum("ij,ij->i", scores, along)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _steps(levels: Any, largest: float) -> Values:
    """Return the levels of all panels."""
    if not isinstance(levels, Integral):
        return np.asarray(levels, np.float64)
    steps = matplotlib("ticker").MaxNLocator(int(levels)).tick_values(0.0, largest or 1.0)
    return np.asarray(steps, np.float64)


def _sea(ax: Axes, x: Values, y: Values, Z: Values, steps: Values, cmap: Any) -> Any:
    """Draw the contours of one model."""
    colours = matplotlib("colors")
    if cmap is None:
        cmap = colours.LinearSegmentedColormap.from_list("sea", SEA).with_extremes(over=BEYOND)
    norm = colours.Normalize(steps[0], steps[-1])
    filled = ax.contourf(x, y, Z, levels=steps, norm=norm, cmap=cmap, extend="max")
    if np.ptp(Z) > 0:
        style = {"colors": INK, "linewidths": 0.5, "linestyles": "solid"}
        ax.contour(x, y, Z, levels=steps, **style)
    return filled


def _rows(ax: Axes, rows: Values, basis: Values | None) -> None:
    """Draw the rows small, so that the lines stay in sight, and the basis larger."""
    far = {"rasterized": len(rows) > 10_000, "zorder": 3}
    ax.scatter(*rows.T, s=2.0, color=INK, alpha=0.35, linewidths=0, **far)
    if basis is not None:
        ax.scatter(*basis.T, s=16, color=VERMILION, linewidths=0.5, edgecolors="white", zorder=4)

"""Contours of projection norms over the plane, for models side by side."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from mercer.plotting.models import dense, scores_of, split
from mercer.plotting.panels import Axes, Panels, Values, entitle, matplotlib, panels
from mercer.plotting.plane import grid, name_plane, plane
from mercer.plotting.points import INK, VERMILION

# From nothing to all ever darker, and another hue beyond: told apart by every colour vision.
SEA, BEYOND = ("#fbfaf8", "#d5d0e8", "#a79dcd", "#7468ac"), "#e3c458"


class NormsDisplay:
    r"""Lengths :math:`\|P\Phi(x)\|` of projections over the plane, on one scale of colours.

    P is each model's own operator, and Φ(x) is centred where the model centres: near the data of
    a kernel of k(x, x) = 1 the norm is near one, where the components hold them well. It is
    :math:`\sqrt{y^TGy}` of the scores y, with G the inner products of the components. Models that
    approximate the first one should look like it.

    Make it with `from_estimators`, or `from_estimator` for one.

    Parameters
    ----------
    x, y : arrays of shape (r,)
        Lines of the grid.
    norms : mapping of str to array of shape (r, r)
        Norms at each y and x, by the title of their panel. The first sets the scale; what exceeds
        it is of one colour.
    rows : array of shape (n, 2)
        Rows to draw.
    names : two of str
        Names of the columns.
    basis : array of shape (m, 2) or None
        Points to mark in the first panel.

    Attributes
    ----------
    axes_ : ndarray of Axes, one for each model
    figure_ : matplotlib Figure
    contours_ : list of QuadContourSet
        The colours of each panel.
    colorbar_ : Colorbar or None
        None where Axes were given.

    References
    ----------
    Y. Washizawa, Subset basis approximation of kernel principal component analysis (2012),
    Figs. 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.methods import Subset
    >>> from mercer.plotting import NormsDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> kpca = KernelPCA(3, kernel="rbf", center=False)
    >>> subset = KernelPCA(3, kernel="rbf", center=False, method=Subset(10))
    >>> models = {"All rows": kpca.fit(X), "Ten": subset.fit(X)}
    >>> [ax.get_title() for ax in NormsDisplay.from_estimators(models, X).axes_]
    ['All rows', 'Ten']
    """

    def __init__(
        self,
        x: Values,
        y: Values,
        norms: Mapping[str, Values],
        *,
        rows: Values,
        names: Sequence[str] = ("x₁", "x₂"),
        basis: Any = None,
    ) -> None:
        self.x = x
        self.y = y
        self.norms = norms
        self.rows = rows
        self.names = names
        self.basis = basis

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        *,
        basis: Any = None,
        resolution: int = 120,
        levels: int | Sequence[float] = 10,
        cmap: Any = None,
        ax: Axes | Sequence[Axes] | Panels | None = None,
    ) -> Self:
        """Draw the norms of fitted models, side by side.

        Parameters
        ----------
        estimators : mapping of str to fitted models of two columns
            Panels by their titles.
        X : array or DataFrame of shape (n, 2)
            Rows to draw; the plane is drawn as far as they reach.
        basis : array of shape (m, 2) or None
            Points to mark in the first panel.
        resolution : int
            Points of the grid along each side.
        levels : int or increasing sequence
            About how many steps, at round numbers; or the norms to draw lines at.
        cmap : str, Colormap or None
            Colours from zero to the largest.
        ax : Axes, sequence of Axes or None
            One for each model. None makes a figure, with a bar of the colours.

        Returns
        -------
        NormsDisplay
        """
        if not estimators:
            raise ValueError("estimators is empty: give one model at least, by its title.")
        planes = [plane(one, X) for one in estimators.values()]  # refuses what takes no plane
        rows, names = planes[0]
        x, y, points = grid(rows, X, resolution)
        norms = {
            title: _norms(one, points).reshape(len(y), len(x)) for title, one in estimators.items()
        }
        made = cls(x, y, norms, rows=rows, names=names, basis=basis)
        return made.plot(ax, levels=levels, cmap=cmap)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the norms of one fitted model; options as in `from_estimators`."""
        return cls.from_estimators({type(split(estimator)[1]).__name__: estimator}, X, **options)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | Panels | None = None,
        *,
        levels: int | Sequence[float] = 10,
        cmap: Any = None,
    ) -> Self:
        """Draw the norms.

        Parameters
        ----------
        ax, levels, cmap
            As in `from_estimators`.

        Returns
        -------
        NormsDisplay
            Itself.
        """
        largest = float(next(iter(self.norms.values())).max())
        steps = _steps(levels, largest)
        axes = panels(ax, len(self.norms), "models")
        self.contours_ = []
        for panel, (title, Z) in zip(axes, self.norms.items(), strict=True):
            self.contours_.append(_sea(panel, self.x, self.y, Z, steps, cmap))
            marked = panel is axes[0] and self.basis is not None
            _rows(panel, self.rows, dense(self.basis) if marked else None)
            panel.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]])
            entitle(panel, title=title)
        name_plane(axes, self.names, given=ax is not None)
        self.axes_, self.figure_, self.colorbar_ = axes, axes[0].figure, None
        if ax is None:
            self.colorbar_ = self.figure_.colorbar(self.contours_[0], ax=list(axes))
            self.colorbar_.set_label("‖PΦ(x)‖")
        return self


def _norms(model: Any, points: Any) -> Values:
    """Return ‖PΦ(x)‖ of points; where the components are orthonormal, the length of the scores."""
    overlaps = getattr(getattr(split(model)[1], "projection_", None), "overlaps", None)
    scores = scores_of(model, points, None, sys.maxsize)[0].astype(np.float64)
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

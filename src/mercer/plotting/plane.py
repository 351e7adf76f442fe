"""Scores and lengths of projections over the plane of a model with two columns."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np

from mercer.arrays import is_foreign, like, working_dtype
from mercer.estimators.inspection import explained_ratio, host_rows, selected_scores, unwrap
from mercer.plotting import base
from mercer.plotting.base import Axes, ComponentDisplay, Display, Values

# Pale, for the points to stand out: negative, zero, positive.
SIGNED = ("#7e73b3", "#c3bcdf", "#f9f8f6", "#e9dcae", "#c2a44a")
# From zero to the largest ever darker, and another hue for what exceeds it.
LENGTHS, BEYOND = ("#fbfaf8", "#d5d0e8", "#a79dcd", "#7468ac"), "#e3c458"
MARGIN = 0.12
MAX_COLUMNS = 4
MAX_PANELS = 2 * MAX_COLUMNS


@dataclass(eq=False, repr=False)
class PlaneDisplay(Display):
    """Base of displays over a grid in the plane, one panel per component or model."""

    x: Values
    y: Values
    _: KW_ONLY
    rows: Values
    names: Sequence[str] = ("x₁", "x₂")

    def _open_panels(self, ax: Any, titles: Sequence[str], what: str) -> Any:
        """Set and return Axes with titles: those passed, or a new figure with even rows."""
        count = len(titles)
        # At most four panels in a row, and rows as even as possible.
        across = -(-count // -(-count // MAX_COLUMNS))
        if ax is not None:
            axes = base.check_axes(ax, count, what)
        else:
            down = -(-count // across)
            figure = base.new_figure(2.5 * across + 0.4, 2.5 * down + 0.4)
            axes = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
            for spare in axes[count:]:
                spare.remove()
            axes = axes[:count]
        self.axes_, self.figure_ = axes, axes[0].figure
        for i, (panel, title) in enumerate(zip(axes, titles, strict=True)):
            panel.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]])
            base.set_texts(panel, title=title)
            if ax is not None or i >= count - across:
                base.set_texts(panel, xlabel=self.names[0])
                panel.xaxis.set_tick_params(labelbottom=True)  # hidden above a removed panel
            if ax is not None or i % across == 0:
                base.set_texts(panel, ylabel=self.names[1])
        return axes

    def _draw_levels(self, ax: Axes, Z: Values, levels: Any, widths: Any, **style: Any) -> Any:
        """Draw values at each y and x as colors and lines; return the colors."""
        filled = ax.contourf(self.x, self.y, Z, levels, **style)
        if np.ptp(Z) > 0:  # a constant has no lines
            lines = {"colors": base.INK, "linewidths": widths, "linestyles": "solid"}
            ax.contour(self.x, self.y, Z, levels, **lines)
        return filled


@dataclass(eq=False, repr=False)
class ContoursDisplay(ComponentDisplay, PlaneDisplay):
    """Contours of each component's score over the plane, with the rows on top.

    A line joins the points x of equal score yⱼ(x): straight and orthogonal to the component in
    linear PCA, curved along the data in kernel PCA. Zero, the score of the mean, is the heavier
    line. Each panel has its own color scale, symmetric about zero.

    Create it with `from_estimator`. Source: Schölkopf, Smola & Müller (1998), Nonlinear component
    analysis as a kernel eigenvalue problem, Neural Computation 10, 1299–1319.

    Parameters
    ----------
    x, y, scores : arrays of shape (r,), (r,) and (k, r, r)
        Coordinates of the grid, and scores on each component drawn, at each y and x.
    rows, names : array of shape (n, 2) and two of str
        Rows to draw, and names of the columns.
    components, ratio, labels
        As in `ScoresDisplay`.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, one per component, and Figure
    contours_, key_ : list of QuadContourSet, one per component; Legend, Colorbar or None

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import PCA
    >>> from mercer.plotting import ContoursDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) * [3, 1]
    >>> display = ContoursDisplay.from_estimator(PCA().fit(X), X)
    >>> [ax.get_title() for ax in display.axes_]
    ['Component 1 (89.1 %)', 'Component 2 (10.8 %)']
    """

    scores: Values

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        labels: Any = None,
        *,
        components: Any = None,
        resolution: int = 120,
        **style: Any,
    ) -> Self:
        """Draw the contours of a fitted model, or a pipeline, of two columns over a grid.

        `X` are rows to draw, `resolution` is the number of points along each side of the grid,
        which covers them, and the column names of a DataFrame label the axes. `labels` and
        `components` are as in `ScoresDisplay.from_estimator`; by default all components are
        drawn, at most eight. `ax`, `levels` and `cmap` are those of `plot`.
        """
        rows, names = _plane(estimator, X)
        x, y, grid = _grid(rows, X, resolution)
        scores, selected = selected_scores(estimator, grid, components, MAX_PANELS)
        Z, ratio = scores.T.reshape(len(selected), len(y), len(x)), explained_ratio(estimator)
        about = {"components": selected, "ratio": ratio, "labels": labels}
        return cls(x, y, Z, rows=rows, names=names, **about).plot(**style)

    def plot(self, ax: Any = None, *, levels: Any = 12, cmap: Any = None) -> Self:
        """Draw the contours on one Axes per component, or in a new figure.

        `levels` is the approximate number of levels, at round scores, or the scores themselves;
        `cmap` has the colors from negative to positive.
        """
        by, colors = base.label_coloring(self.labels, len(self.rows)), base.matplotlib("colors")
        cmap = colors.LinearSegmentedColormap.from_list("signed", SIGNED) if cmap is None else cmap
        titles = base.component_titles(self.components, self.ratio)
        axes = self._open_panels(ax, titles, "components")
        self.contours_, self.key_ = [], None
        for panel, Z in zip(axes, self.scores, strict=True):
            norm = colors.CenteredNorm(0, float(np.abs(Z).max()) or 1.0)
            at = _level_values(levels, float(Z.min()), float(Z.max()))
            widths = np.where(np.abs(at) <= 1e-9 * np.abs(at).max(), 1.0, 0.4)
            filled = self._draw_levels(panel, Z, at, widths, norm=norm, cmap=cmap, extend="both")
            self.contours_.append(filled)
            collections = base.draw_points(panel, self.rows, by)
        if ax is None:
            self.key_ = base.draw_key(list(axes), by, collections, "outside lower center")
        return self


@dataclass(eq=False, repr=False)
class NormsDisplay(PlaneDisplay):
    r"""Lengths :math:`\|P\Phi(x)\|` of projections over the plane, on one color scale.

    P is each model's own operator, and Φ(x) is centered where the model centers. The length is
    :math:`\sqrt{y^TGy}` for scores y and the inner products G of the components; with a kernel of
    k(x, x) = 1 it is close to one near rows that the components represent well. Models that
    approximate the first one should look like it.

    Create it with `from_estimators`, or `from_estimator` for one. Source: Washizawa (2012), Subset
    basis approximation of kernel principal component analysis, Figs. 1 and 2.

    Parameters
    ----------
    x, y, rows, names
        As in `ContoursDisplay`.
    norms : mapping of str to array of shape (r, r)
        Norms at each y and x, by the title of their panel. The first sets the scale; values beyond
        it have a color of their own.
    basis : array of shape (m, 2) or None
        Points to mark in the first panel.

    Attributes
    ----------
    axes_, figure_, contours_, colorbar_
        As in `ContoursDisplay`, one panel per model; None for a color bar where Axes were passed.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> from mercer.plotting import NormsDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> models = {k: KernelPCA(k, kernel="rbf", center=False).fit(X) for k in (1, 3)}
    >>> [ax.get_title() for ax in NormsDisplay.from_estimators(models, X).axes_]
    ['1', '3']
    """

    norms: Mapping[str, Values]
    _: KW_ONLY
    basis: Any = None

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        X: Any,
        *,
        basis: Any = None,
        resolution: int = 120,
        **style: Any,
    ) -> Self:
        """Draw the norms of fitted models of two columns by their titles, side by side.

        `X`, `resolution` and the style are those of `ContoursDisplay.from_estimator`.
        """
        if not estimators:
            raise ValueError("estimators is empty: pass at least one model by name.")
        (rows, names), *_ = [_plane(model, X) for model in estimators.values()]
        x, y, grid = _grid(rows, X, resolution)
        shape = len(y), len(x)
        norms = {name: _norms(model, grid).reshape(shape) for name, model in estimators.items()}
        return cls(x, y, norms, rows=rows, names=names, basis=basis).plot(**style)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw the norms of one fitted model; options as in `from_estimators`."""
        return cls.from_estimators({type(unwrap(estimator)[1]).__name__: estimator}, X, **options)

    def plot(self, ax: Any = None, *, levels: Any = 10, cmap: Any = None) -> Self:
        """Draw the norms, as `ContoursDisplay.plot` draws scores, and return the display."""
        largest = float(next(iter(self.norms.values())).max()) or 1.0
        levels, colors = _level_values(levels, 0.0, largest), base.matplotlib("colors")
        if cmap is None:
            cmap = colors.LinearSegmentedColormap.from_list("lengths", LENGTHS)
            cmap = cmap.with_extremes(over=BEYOND)
        style = {"norm": colors.Normalize(levels[0], levels[-1]), "cmap": cmap, "extend": "max"}
        self.contours_ = []
        axes = self._open_panels(ax, list(self.norms), "models")
        for panel, Z in zip(axes, self.norms.values(), strict=True):
            self.contours_.append(self._draw_levels(panel, Z, levels, 0.5, **style))
            dots = {"s": 2.0, "color": base.INK, "alpha": 0.35, "linewidths": 0, "zorder": 3}
            panel.scatter(*self.rows.T, rasterized=len(self.rows) > 10_000, **dots)
        if self.basis is not None:
            marks = {"s": 16, "color": base.VERMILION, "linewidths": 0.5, "edgecolors": "white"}
            self.axes_[0].scatter(*host_rows(self.basis).T, zorder=4, **marks)
        self.colorbar_ = None
        if ax is None:
            self.colorbar_ = self.figure_.colorbar(self.contours_[0], ax=list(self.axes_))
            self.colorbar_.set_label("‖PΦ(x)‖")
        return self


def _level_values(levels: Any, low: float, high: float) -> Values:
    """Return about as many round values from low to high, or the values passed."""
    if isinstance(levels, Integral):
        levels = base.matplotlib("ticker").MaxNLocator(int(levels) + 1).tick_values(low, high)
    return np.asarray(levels, np.float64)


def _plane(model: Any, X: Any) -> tuple[Values, list[str]]:
    """Return rows with two columns and the names of the columns, or raise an error."""
    d = getattr(model, "n_features_in_", 2)
    if d != 2:
        raise ValueError(
            f"This {type(unwrap(model)[1]).__name__} takes {d} columns, but contours need two. "
            f"Fit it to two columns, or draw its scores with mercer.plotting.ScoresDisplay."
        )
    rows = host_rows(X)
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) == 0:
        raise ValueError(f"X has shape {rows.shape}: contours need rows with two columns.")
    if not np.isfinite(rows.astype(np.float64)).all():
        raise ValueError("X contains NaN or infinity. Drop those rows.")
    return rows, [base.one_line(name) for name in getattr(X, "columns", ("x₁", "x₂"))]


def _grid(rows: Values, X: Any, resolution: int) -> tuple[Values, Values, Any]:
    """Return the coordinates of a grid around the rows, and its points as the type of X."""
    low, high = (np.asarray(end, np.float64) for end in (rows.min(axis=0), rows.max(axis=0)))
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, resolution).T
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    if hasattr(X, "columns"):  # a model fitted with names expects them; pandas and polars alike
        return x, y, type(X)(dict(zip(X.columns, grid.T, strict=True)))
    return x, y, like(grid, X if is_foreign(X) else rows, working_dtype(rows.dtype))


def _norms(model: Any, rows: Any) -> Values:
    """Return ‖PΦ(x)‖ of rows: the length of the scores where the components are orthonormal."""
    overlaps = getattr(getattr(unwrap(model)[1], "projection_", None), "overlaps", None)
    scores = selected_scores(model, rows, None, sys.maxsize)[0].astype(np.float64)
    squares = np.einsum("ij,ij->i", scores, scores if overlaps is None else scores @ overlaps)
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

"""Contours of components over the plane of a model of two columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from mercer.arrays import is_foreign, like, to_numpy, working_dtype
from mercer.plotting.models import dense, scores_of, shares, split
from mercer.plotting.panels import (
    WIDEST,
    Axes,
    Panels,
    Values,
    entitle,
    leftmost,
    lowest,
    matplotlib,
    name,
    panels,
    short,
)
from mercer.plotting.points import INK, draw_key, draw_points, grouped

# Negative, zero, positive: pale, so that the points stand out.
LAND = ("#7e73b3", "#c3bcdf", "#f9f8f6", "#e9dcae", "#c2a44a")
MARGIN = 0.12


class ContoursDisplay:
    """Contours of each component's score over the plane, with the rows on top.

    A line joins the points x of equal score yⱼ(x): straight and orthogonal to the component in
    linear PCA, bent along the data in kernel PCA. Zero, the score of the mean, is the heavier
    line. Each panel has its own scale of colours, symmetric about zero.

    Make it with `from_estimator`.

    Parameters
    ----------
    x, y : arrays of shape (r,)
        Lines of the grid.
    scores : array of shape (k, r, r)
        Scores of each component drawn, at each y and x.
    rows : array of shape (n, 2)
        Rows to draw.
    names : two of str
        Names of the columns.
    components : sequence of k int
        Which components these are, counted from 0.
    ratio : array or None
        The model's `explained_variance_ratio_`, all of it, for the titles.
    labels : array of shape (n,) or None
        Classes of the rows, or a number for each, as in `ScoresDisplay`.

    Attributes
    ----------
    axes_ : ndarray of Axes, one for each component
    figure_ : matplotlib Figure
    contours_ : list of QuadContourSet
        The colours of each panel.
    key_ : Legend, Colorbar or None

    References
    ----------
    B. Schölkopf, A. Smola, K.-R. Müller (1998), Nonlinear component analysis as a kernel
    eigenvalue problem, Neural Computation 10, 1299–1319, where kernel PCA is shown this way.

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

    def __init__(
        self,
        x: Values,
        y: Values,
        scores: Values,
        *,
        rows: Values,
        names: Sequence[str] = ("x₁", "x₂"),
        components: Sequence[int],
        ratio: Any = None,
        labels: Any = None,
    ) -> None:
        self.x = x
        self.y = y
        self.scores = scores
        self.rows = rows
        self.names = names
        self.components = components
        self.ratio = ratio
        self.labels = labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        labels: Any = None,
        *,
        components: int | Iterable[int] | None = None,
        resolution: int = 120,
        levels: int | Sequence[float] = 12,
        cmap: Any = None,
        ax: Axes | Sequence[Axes] | Panels | None = None,
    ) -> Self:
        """Draw the contours of a fitted model.

        Parameters
        ----------
        estimator : fitted model of two columns
            Anything with `transform`. Its `explained_variance_ratio_`, or that of the last step
            of a pipeline, goes into the titles.
        X : array or DataFrame of shape (n, 2)
            Rows to draw; the plane is drawn as far as they reach. The names of a DataFrame's
            columns become the labels of the axes.
        labels : array of shape (n,) or None
            Classes of the rows, or a number for each, as in `ScoresDisplay`.
        components : int, iterable of int or None
            How many of the first, or which ones, counted from 0. None: all, at most eight.
        resolution : int
            Points of the grid along each side.
        levels : int or increasing sequence
            About how many steps, at round numbers; or the scores to draw lines at.
        cmap : str, Colormap or None
            Colours from negative to positive.
        ax : Axes, sequence of Axes or None
            One for each component. None makes a figure, with a key where there are labels.

        Returns
        -------
        ContoursDisplay
        """
        rows, names = plane(estimator, X)
        x, y, points = grid(rows, X, resolution)
        scores, drawn = scores_of(estimator, points, components, 2 * WIDEST)
        made = cls(
            x,
            y,
            scores.T.reshape(len(drawn), len(y), len(x)),
            rows=rows,
            names=names,
            components=drawn,
            ratio=shares(estimator),
            labels=labels,
        )
        return made.plot(ax, levels=levels, cmap=cmap)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | Panels | None = None,
        *,
        levels: int | Sequence[float] = 12,
        cmap: Any = None,
    ) -> Self:
        """Draw the contours.

        Parameters
        ----------
        ax, levels, cmap
            As in `from_estimator`.

        Returns
        -------
        ContoursDisplay
            Itself.
        """
        labels = grouped(self.labels, len(self.rows))
        axes = panels(ax, len(self.components))
        ratio = None if self.ratio is None else to_numpy(self.ratio)
        self.contours_, marks = [], []
        for panel, j, Z in zip(axes, self.components, self.scores, strict=True):
            self.contours_.append(landscape(panel, self.x, self.y, Z, levels, cmap))
            marks = draw_points(panel, self.rows, labels)
            panel.set(xlim=self.x[[0, -1]], ylim=self.y[[0, -1]])
            entitle(panel, title=name(j, ratio))
        name_plane(axes, self.names, given=ax is not None)
        self.key_ = None
        if ax is None:
            self.key_ = draw_key(list(axes), labels, marks, "outside lower center")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def plane(model: Any, X: Any) -> tuple[Values, list[str]]:
    """Return the rows of a plane and the names of its two axes."""
    takes = getattr(model, "n_features_in_", 2)
    if takes != 2:
        raise ValueError(
            f"This {type(split(model)[1]).__name__} takes {takes} columns, and contours need a "
            "plane. Fit it to two columns, or draw its scores with mercer.plotting.ScoresDisplay."
        )
    rows = dense(X)
    if rows.ndim != 2 or rows.shape[1] != 2 or len(rows) == 0:
        raise ValueError(f"X has shape {rows.shape}; contours need rows of two columns.")
    if not np.isfinite(rows.astype(np.float64)).all():
        raise ValueError("X contains NaN or infinity, which no plane reaches. Drop such rows.")
    names = getattr(X, "columns", ("x₁", "x₂"))
    return rows, [short(column) for column in names]


def name_plane(axes: Panels, names: Sequence[str], given: bool) -> None:
    """Name the axes: in a figure of our own the panels share them, and the outer ones do."""
    for panel in axes if given else lowest(axes):
        entitle(panel, xlabel=names[0])
    for panel in axes if given else leftmost(axes):
        entitle(panel, ylabel=names[1])


def grid(rows: Values, X: Any, resolution: int) -> tuple[Values, Values, Any]:
    """Return the lines of a grid around the rows, and its points, y by y, in the kind of X."""
    if resolution < 2:
        raise ValueError(f"resolution={resolution}, but a grid has at least 2 points a side.")
    low, high = (np.asarray(end, np.float64) for end in (rows.min(axis=0), rows.max(axis=0)))
    margin = MARGIN * np.where(high > low, high - low, 1.0)
    x, y = np.linspace(low - margin, high + margin, resolution).T
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    if hasattr(X, "columns"):  # A model fitted to names asks for them; pandas and polars alike.
        return x, y, type(X)(dict(zip(X.columns, points.T, strict=True)))
    return x, y, like(points, X if is_foreign(X) else rows, working_dtype(rows.dtype))


def landscape(ax: Axes, x: Values, y: Values, Z: Values, levels: Any, cmap: Any) -> Any:
    """Draw the contours of one component, zero in the middle of the colours."""
    colours = matplotlib("colors")
    cmap = colours.LinearSegmentedColormap.from_list("land", LAND) if cmap is None else cmap
    norm = colours.CenteredNorm(0, float(np.abs(Z).max()) or 1.0)
    if np.ptp(Z) == 0:  # A constant has no contours: one colour, that of its sign.
        return ax.pcolormesh(x, y, Z, norm=norm, cmap=cmap, shading="gouraud")
    extend = "neither" if isinstance(levels, Integral) else "both"
    filled = ax.contourf(x, y, Z, levels=levels, norm=norm, cmap=cmap, extend=extend)
    zero = np.abs(filled.levels) <= 1e-9 * np.abs(filled.levels).max()
    widths = np.where(zero, 1.0, 0.4)
    ax.contour(x, y, Z, levels=filled.levels, colors=INK, linewidths=widths, linestyles="solid")
    return filled

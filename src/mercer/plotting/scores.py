"""Scores of components against each other: of two, or of several pair by pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.estimators import inspection
from mercer.estimators.coloring import Coloring
from mercer.messages import percent
from mercer.plotting import base
from mercer.plotting.base import Axes, ComponentDisplay, Values


@dataclass(eq=False, repr=False)
class ScoresDisplay(ComponentDisplay):
    """Scores of two components against each other, colored by label.

    Create it with `from_estimator` or `from_scores`.

    Parameters
    ----------
    scores : array of shape (n, 2) or (n, 1)
        Scores on the components drawn; of one component, they are drawn row by row.
    components : sequence of int
        Indices of these components, horizontal first.
    ratio, labels
        As in `from_scores`.

    Attributes
    ----------
    points_ : list of PathCollection
        One per class, in the order of the legend; rows without a label are gray. More than 3000
        rows are mixed, one collection per marker, and no class covers the others.
    key_ : Legend, Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.plotting import ScoresDisplay
    >>> X, species = load_iris(return_X_y=True)
    >>> display = ScoresDisplay.from_estimator(PCA(2).fit(X), X, labels=species)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Component 1 (92.4 %)', 'Component 2 (5.3 %)')
    """

    figsize = (5.4, 3.9)
    default_components: ClassVar[int] = 2
    scores: Any

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, labels: Any = None, *, components: Any = None, ax: Any = None
    ) -> Self:
        """Draw the scores that a fitted model gives rows and return the display.

        Parameters
        ----------
        estimator : fitted model
            Anything with `transform`, a model built on one, or a pipeline that ends in one.
        X : array, sparse matrix, DataFrame, path or Source
            Rows, read block by block; only the scores to draw are kept in memory.
        labels : array of shape (n,) or None
            Classes of the rows, for a legend. Floats and dates with more than 20 distinct values,
            and integers with more than 60, are a scale with a color bar.
        components : int, iterable of int or None
            How many of the first, or indices. None: the first two, of pairs the first four.
        ax
            As in `plot`.
        """
        Y, selected = inspection.selected_scores(estimator, X, components, cls.default_components)
        ratio = inspection.explained_ratio(estimator)
        return cls(Y, components=selected, ratio=ratio, labels=labels).plot(ax)

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        *,
        components: Any = None,
        ax: Any = None,
        **about: Any,
    ) -> Self:
        """Draw scores that `transform` returned on all components, and return the display.

        `components` and `labels` are as in `from_estimator`; `ratio` is the model's
        `explained_variance_ratio_`, for the axis labels.
        """
        Y = check_plot_scores(scores)
        selected = inspection.select_components(components, Y.shape[1], cls.default_components)
        return cls(Y[:, selected], components=selected, **about).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the scores on the Axes passed, or in a new figure, and return the display."""
        Y = check_plot_scores(self.scores)
        titles = base.component_titles(self.components, self.ratio)
        if Y.shape[1] not in (1, 2) or Y.shape[1] != len(titles):
            raise ValueError(
                f"components={self.components!r}, but scores has shape {Y.shape}: pass the scores "
                f"on one or two components and their indices, such as (0, 1)."
            )
        if len(titles) == 1:
            Y, titles = np.column_stack([np.arange(len(Y)), Y]), ["Row", *titles]
        base.set_texts(self._open(ax), xlabel=titles[0], ylabel=titles[1])
        self._draw_rows(Y, outside=ax is None)
        return self


class PairsDisplay(ScoresDisplay):
    """Pairs of components: scores against each other, histograms on the diagonal.

    Create it with `from_estimator` or `from_scores`.

    Parameters
    ----------
    scores : array of shape (n, k)
        Scores on the components drawn.
    components, ratio, labels
        As in `ScoresDisplay`.

    Attributes
    ----------
    axes_, figure_ : ndarray of k×k Axes, and Figure
    points_, histograms_, key_
        As in `ScoresDisplay`, for each panel (i, j) below the diagonal; one list of StepPatch for
        each panel on it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.plotting import PairsDisplay
    >>> X, species = load_iris(return_X_y=True)
    >>> display = PairsDisplay.from_estimator(PCA(3).fit(X), X, labels=species)
    >>> sorted(display.points_)
    [(1, 0), (2, 0), (2, 1)]
    """

    default_components = 4

    def plot(self, ax: Any = None, *, bins: int = 25) -> Self:
        """Draw the pairs, with `bins` bars per histogram, on k×k Axes or in a new figure."""
        Y = check_plot_scores(self.scores)
        k = Y.shape[1]
        if k != len(self.components):
            raise ValueError(
                f"components={self.components!r}, but scores has shape {Y.shape}: pass one index "
                f"per column of scores."
            )
        by = base.label_coloring(self.labels, len(Y))
        side = 1.75 * k + 0.6
        axes = base.new_figure(side + 0.6, side).subplots(k, k) if ax is None else ax
        self.axes_ = base.check_axes(axes, k * k, "panels").reshape(k, k)
        self.figure_ = self.axes_[0, 0].figure
        self.points_: Any = {}
        self.histograms_, self.key_ = [], None
        titles = base.component_titles(self.components, None)
        for (i, j), panel in np.ndenumerate(self.axes_):
            panel.set_visible(i >= j)
            if i == j:
                self.histograms_.append(self._draw_histogram(panel, Y[:, i], i, by, bins))
            elif i > j:
                self.points_[i, j] = base.draw_points(panel, Y[:, [j, i]], by)
            if ax is None:
                panel.spines[["top", "right"]].set_visible(False)
            # One scale per row and column.
            panel.tick_params(labelsize="small", labelbottom=i == k - 1, labelleft=j == 0 < i)
            if i == k - 1:
                base.set_texts(panel, xlabel=titles[j])
            if j == 0 < i:
                base.set_texts(panel, ylabel=titles[i])
        if self.points_ and by is not None and (ax is None or by.numbers is not None):
            lower, place = list(self.axes_[np.tril_indices(k)]), "outside right upper"
            self.key_ = base.draw_key(lower, by, self.points_[1, 0], place)
        return self

    def _draw_histogram(
        self, ax: Axes, column: Values, i: int, by: Coloring | None, bins: int
    ) -> list[Any]:
        """Draw the distribution of scores, class by class as long as each has its own color."""
        edges = np.histogram_bin_edges(column, bins)
        groups: list[tuple[Any, str]] = [(slice(None), base.BLUE if by is None else base.GRAY)]
        if by is not None and by.numbers is None and len(by.classes) <= len(base.COLORS):
            groups = [(group.rows, group.color) for group in base.color_groups(by)]
        patches = []
        for rows, color in groups:
            counts, alpha = np.histogram(column[rows], edges)[0], 0.25 if len(groups) > 1 else 1.0
            ax.stairs(counts, edges, fill=True, color=color, alpha=alpha)
            patches.append(ax.stairs(counts, edges, color=color, linewidth=0.9))
        ax.set(ylim=(0, 1.2 * ax.get_ylim()[1]), yticks=[])
        ax.spines["left"].set_visible(False)
        if self.ratio is not None:
            share = percent(to_numpy(self.ratio)[self.components[i]], 1)
            style = {"ha": "right", "va": "top", "fontsize": "small"}
            ax.text(0.97, 0.95, share, transform=ax.transAxes, **style)
        return patches


def check_plot_scores(scores: Any) -> Values:
    """Return scores as an array of finite numbers, or raise an error."""
    Y = np.asarray(inspection.host_rows(scores), np.float64)
    if Y.ndim != 2 or 0 in Y.shape:
        raise ValueError(f"scores has shape {Y.shape}: pass at least one row and one column.")
    bad = np.flatnonzero(~np.isfinite(Y).all(axis=1))
    if len(bad):
        raise ValueError(
            f"scores contains NaN or infinity: the first is in row {bad[0]}. Drop those rows."
        )
    return Y

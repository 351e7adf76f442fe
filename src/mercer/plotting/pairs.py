"""Pairs of the first components: scores against each other, and each for itself."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.messages import percent
from mercer.plotting.models import scores_of, shares
from mercer.plotting.panels import Axes, Panels, Values, chosen, entitle, figure, given
from mercer.plotting.points import BLUE, COLOURS, GREY, Labels, draw_key, draw_points, grouped
from mercer.plotting.scores import checked_scores

FIRST = 4


class PairsDisplay:
    """Pairs of components: scores against each other, histograms on the diagonal.

    Make it with `from_estimator` or `from_scores`.

    Parameters
    ----------
    scores : array of shape (n, k)
        Scores along the components drawn.
    components : sequence of k int
        Which components these are, counted from 0.
    ratio : array or None
        The model's `explained_variance_ratio_`, all of it, for the labels.
    labels : array of shape (n,) or None
        Classes of the rows, or numbers along a scale of colours.

    Attributes
    ----------
    axes_ : ndarray of shape (k, k)
        The Axes; None above the diagonal of a figure of our own.
    figure_ : matplotlib Figure
    points_ : dict of (int, int) to list of PathCollection
        The points of each panel below the diagonal, by row and column.
    histograms_ : list of list of Polygon
        Those on the diagonal, one for each class.
    key_ : Legend, Colorbar or None

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

    def __init__(
        self, scores: Any, *, components: Any, ratio: Any = None, labels: Any = None
    ) -> None:
        self.scores = scores
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
        components: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the scores that a fitted model gives rows.

        Parameters
        ----------
        estimator : fitted model
            Anything with `transform`, what is built around it, or a pipeline that ends in it.
        X : array, sparse matrix, DataFrame, path or Source
            Rows; only their scores along the components drawn are held.
        labels : array of shape (n,) or None
            Classes of the rows, or numbers.
        components : int, iterable of int or None
            How many of the first, or which ones, counted from 0. None: the first four.
        ax : array of k×k Axes or None
            None makes a figure.

        Returns
        -------
        PairsDisplay
        """
        scores, drawn = scores_of(estimator, X, components, FIRST)
        made = cls(scores, components=drawn, ratio=shares(estimator), labels=labels)
        return made.plot(ax)

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        *,
        components: Any = None,
        ratio: Any = None,
        labels: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw scores that are there already: what `transform` gave.

        Parameters
        ----------
        scores : array or DataFrame of shape (n, k)
            Scores along all components.
        components, labels, ax
            As in `from_estimator`.
        ratio : array of shape (k,) or None
            The model's `explained_variance_ratio_`, for the labels.

        Returns
        -------
        PairsDisplay
        """
        Y = checked_scores(scores)
        drawn = chosen(components, Y.shape[1], FIRST)
        return cls(Y[:, drawn], components=drawn, ratio=ratio, labels=labels).plot(ax)

    def plot(self, ax: Any = None, *, bins: int = 25) -> Self:
        """Draw the pairs.

        Parameters
        ----------
        ax : array of k×k Axes or None
            None makes a figure. Of Axes given, those above the diagonal are made invisible.
        bins : int
            Bars of each histogram.

        Returns
        -------
        PairsDisplay
            Itself.
        """
        Y = checked_scores(self.scores)
        k = Y.shape[1]
        if k != len(self.components):
            raise ValueError(f"components={self.components!r} of scores of shape {Y.shape}.")
        labels = grouped(self.labels, len(Y))
        axes = _square(ax, k)
        ratio = None if self.ratio is None else to_numpy(self.ratio)
        self.points_: dict[tuple[int, int], list[Any]] = {}
        self.histograms_: list[list[Any]] = []
        ends = [_ends(column) for column in Y.T]
        for i in range(k):
            self.histograms_.append(_histogram(axes[i, i], Y[:, i], labels, bins, ends[i]))
            for j in range(i):
                self.points_[i, j] = draw_points(axes[i, j], Y[:, [j, i]], labels)
                axes[i, j].set(xlim=ends[j], ylim=ends[i])
        self._name(axes, ratio)
        self.axes_, self.figure_ = axes, axes[0, 0].figure
        self.key_ = self._key(labels, ours=ax is None)
        return self

    def _name(self, axes: Panels, ratio: Values | None) -> None:
        """Name the components at the outer panels, and their shares on the diagonal."""
        k = len(self.components)
        for i, number in enumerate(self.components):
            # A row and a column each have one scale: numbers at their ends are enough.
            for j in range(i + 1):
                axes[i, j].tick_params(
                    labelbottom=i == k - 1, labelleft=j == 0 and i > 0, labelsize="small"
                )
            text = f"Component {number + 1}"
            entitle(axes[k - 1, i], xlabel=text)
            if i:
                entitle(axes[i, 0], ylabel=text)
            if ratio is not None:
                share = percent(ratio[number], 1)
                style = {"ha": "right", "va": "top", "fontsize": "small"}
                axes[i, i].text(0.97, 0.95, share, transform=axes[i, i].transAxes, **style)

    def _key(self, labels: Labels | None, ours: bool) -> Any:
        """Draw the key in the empty corner of a figure of our own."""
        k = len(self.components)
        if labels is None or (not ours and labels.numbers is None):
            return None
        lower = [panel for i in range(k) for panel in self.axes_[i, : i + 1]]
        if not self.points_:
            return None
        marks = self.points_[1, 0]
        return draw_key(lower, labels, marks, "outside right upper")


def _square(ax: Any, k: int) -> Panels:
    """Return k×k Axes, of which those above the diagonal are not drawn."""
    if ax is not None:
        axes: Panels = given(ax, k * k, "panels").reshape(k, k)
        for i, j in zip(*np.triu_indices(k, 1), strict=True):
            axes[i, j].set_visible(False)
        return axes
    side = 1.75 * k + 0.6
    new: Panels = figure(side + 0.6, side).subplots(k, k, squeeze=False)
    for i, j in zip(*np.triu_indices(k, 1), strict=True):
        new[i, j].remove()
        new[i, j] = None
    for panel in new[np.tril_indices(k)]:
        panel.spines[["top", "right"]].set_visible(False)
    return new


def _ends(column: Values) -> tuple[float, float]:
    """Return the ends of a scale a little beyond the scores; of equal ones, around them."""
    low, high = float(column.min()), float(column.max())
    margin = 0.06 * (high - low) or 0.5 * max(abs(low), 1.0)
    return low - margin, high + margin


def _histogram(
    ax: Axes, column: Values, labels: Labels | None, bins: int, ends: tuple[float, float]
) -> list[Any]:
    """Draw how often scores occur, class by class while colours tell the classes apart."""
    edges, drawn = np.linspace(*ends, bins + 1), []
    apart = labels is not None and labels.numbers is None and len(labels.names) <= len(COLOURS)
    for group in range(len(labels.names)) if apart and labels is not None else ():
        assert labels is not None
        colour, part = labels.style(group)["color"], column[labels.which == group]
        for fill in (True, False):
            style: dict[str, Any] = {"alpha": 0.25} if fill else {"linewidth": 0.9}
            patch = ax.stairs(np.histogram(part, edges)[0], edges, fill=fill, color=colour, **style)
        drawn.append(patch)
    if not apart:
        colour = BLUE if labels is None else GREY
        drawn = [ax.stairs(np.histogram(column, edges)[0], edges, fill=True, color=colour)]
    ax.set(xlim=ends, yticks=[])
    ax.set_ylim(0, 1.2 * ax.get_ylim()[1])
    ax.spines["left"].set_visible(False)
    return drawn

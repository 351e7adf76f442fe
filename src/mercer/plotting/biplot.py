"""Biplot: rows as points and columns as arrows, in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.models import feature_names, scores_of, shares, split
from mercer.plotting.panels import (
    Axes,
    Values,
    entitle,
    name,
    open_panel,
    settle,
    short,
)
from mercer.plotting.points import INK, draw_key, draw_points, grouped
from mercer.plotting.scores import checked_scores
from mercer.plotting.spread import draw_names, font_size


class BiplotDisplay:
    r"""Biplot: standardised scores as points, loadings as arrows.

    With scores of unit variance, :math:`z = y/\sqrt\lambda`, and loadings
    :math:`l = \sqrt\lambda\,v`, the product :math:`z_i^T l_j` is what two components keep of
    column j of the centred row i; the length of an arrow is what they keep of the column's
    deviation, and the cosine between two arrows nears the columns' correlation, the more of
    them the components keep. All arrows are stretched by one factor, `stretch_`, to the size of
    the points.

    Make it with `from_estimator`.

    Parameters
    ----------
    scores : array of shape (n, 2)
        Standardised scores along the components drawn.
    loadings : array of shape (d, 2)
        Axes times standard deviations.
    names : sequence of d str
        Names of the columns.
    components : two of int
        Which components these are, counted from 0.
    ratio : array or None
        The model's `explained_variance_ratio_`, all of it, for the labels of the axes.
    labels : array of shape (n,) or None
        Classes of the rows, or numbers.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of PathCollection
    arrows_ : Quiver
        Longest first.
    names_ : list of Annotation
        Names of the arrows, as far as there is room for them.
    drawn_ : ndarray of int
        Columns whose arrows are drawn.
    stretch_ : float
        What the loadings are multiplied by.
    key_ : Legend, Colorbar or None

    References
    ----------
    K. R. Gabriel (1971), The biplot graphic display of matrices with application to principal
    component analysis, Biometrika 58, 453–467.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> from mercer.plotting import BiplotDisplay
    >>> X, cultivar = load_wine(return_X_y=True, as_frame=True)
    >>> display = BiplotDisplay.from_estimator(PCA(2, scale=True).fit(X), X, labels=cultivar)
    >>> display.names[display.drawn_[0]]
    'flavanoids'
    """

    def __init__(
        self,
        scores: Any,
        loadings: Any,
        names: Sequence[str],
        *,
        components: Any = (0, 1),
        ratio: Any = None,
        labels: Any = None,
    ) -> None:
        self.scores = scores
        self.loadings = loadings
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
        components: Any = None,
        names: Sequence[str] | None = None,
        top: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Draw rows and loadings of a fitted linear model.

        Parameters
        ----------
        estimator : fitted model
            PCA, ours or scikit-learn's, or a pipeline that ends in it.
        X : array, sparse matrix, DataFrame, path or Source
            Rows; only their scores along two components are held.
        labels : array of shape (n,) or None
            Classes of the rows, or numbers.
        components : two of int or None
            Which ones, across and up, counted from 0. None: the first two.
        names : sequence of str or None
            Names of the columns; None: those that the model was fitted with.
        top : int
            How many of the longest arrows are drawn.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        BiplotDisplay
        """
        axes = split(estimator)[1]
        if not hasattr(axes, "components_") or not hasattr(axes, "explained_variance_"):
            raise TypeError(
                f"This {type(axes).__name__} has no loadings: it is not fitted, or its components "
                f"are not directions of the columns. Fit it, or draw its scores with "
                f"mercer.plotting.ScoresDisplay."
            )
        V = to_numpy(axes.components_).astype(np.float64)
        if len(V) < 2:
            raise ValueError(f"A biplot needs two components, and there are {len(V)}: fit two.")
        if names is not None and len(names) != V.shape[1]:
            raise ValueError(f"There are {V.shape[1]} columns, and {len(names)} names for them.")
        scores, drawn = scores_of(estimator, X, components, 2)
        deviation = np.sqrt(to_numpy(axes.explained_variance_).astype(np.float64))[drawn]
        if not getattr(axes, "whiten", False):
            scores = scores / np.where(deviation > 0, deviation, 1.0)
        made = cls(
            scores,
            V[drawn].T * deviation,
            feature_names(estimator, V.shape[1]) if names is None else [str(x) for x in names],
            components=drawn,
            ratio=shares(estimator),
            labels=labels,
        )
        return made.plot(ax, top=top)

    def plot(self, ax: Axes | None = None, *, top: int = 10) -> Self:
        """Draw the biplot.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.
        top : int
            How many of the longest arrows are drawn.

        Returns
        -------
        BiplotDisplay
            Itself.
        """
        Y, L = checked_scores(self.scores), np.asarray(self.loadings, np.float64)
        if Y.shape[1] != 2 or L.shape != (len(self.names), 2) or len(self.components) != 2:
            raise ValueError(
                f"scores {Y.shape}, loadings {L.shape}, {len(self.names)} names, "
                f"components={self.components!r}: a biplot has two components, such as (0, 1), "
                f"and a name for each row of loadings."
            )
        if top < 1:
            raise ValueError(f"top={top}, but one arrow at least is to be drawn.")
        labels, ours = grouped(self.labels, len(Y)), ax is None
        ax = open_panel(6.2, 4.6) if ax is None else ax
        self.points_ = draw_points(ax, Y, labels, dimmed=True)
        lengths = np.hypot(*L.T)
        longest = np.argsort(-lengths, kind="stable")[:top]
        self.drawn_ = longest[lengths[longest] > 0]
        reach = np.quantile(np.abs(Y), 0.99) or 1.0
        self.stretch_ = float(1.1 * reach / lengths.max()) if lengths.max() > 0 else 1.0
        tips = self.stretch_ * L[self.drawn_]
        self._frame(ax, tips)
        inside = "best" if len(Y) < 5000 else "upper right"
        self.key_ = draw_key([ax], labels, self.points_, "outside right upper" if ours else inside)
        self._arrows(ax, tips, len(L))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _frame(self, ax: Axes, tips: Values) -> None:
        """Leave room for arrows and names; one unit across is one unit up, so angles are true."""
        ax.update_datalim(np.concatenate([tips, np.zeros((1, 2))]))
        ax.margins(0.1)
        ax.set_aspect("equal", adjustable="datalim")
        ax.autoscale_view()
        ratio = None if self.ratio is None else to_numpy(self.ratio)
        texts = [name(j, ratio) for j in self.components]
        entitle(ax, xlabel=texts[0], ylabel=texts[1])
        line = {"color": "#d0d0d0", "linewidth": 0.7, "zorder": 1}
        ax.axhline(0, **line)
        ax.axvline(0, **line)

    def _arrows(self, ax: Axes, tips: Values, d: int) -> None:
        settle(ax)
        ax.apply_aspect()
        width = {"width": 1.0 / 72, "units": "inches", "headwidth": 6, "headlength": 7}
        straight = {"angles": "xy", "scale_units": "xy", "scale": 1, "zorder": 5}
        origin = np.zeros(len(tips))
        self.arrows_ = ax.quiver(origin, origin, *tips.T, color=INK, **straight, **width)
        size = font_size("small")
        texts = [short(self.names[j], 20) for j in self.drawn_]
        paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6}
        key = self._fixed_key(ax)
        self.names_ = draw_names(ax, tips, texts, size, key, color=INK, zorder=6, bbox=paper)
        text = "standardised scores, " + (f"{len(tips)} of {d} loadings" if len(tips) < d else "")
        style = {"ha": "right", "va": "bottom", "fontsize": "x-small", "color": "#6b6b6b"}
        ax.text(0.995, 0.01, text.rstrip(", "), transform=ax.transAxes, zorder=6, **style)

    def _fixed_key(self, ax: Axes) -> list[Any]:
        """Return the legend in the Axes, where there is one, kept at the place it has now."""
        key = ax.get_legend()
        if key is None:
            return []
        corner = key.get_window_extent().get_points()[0]
        key.set_loc(tuple(ax.transAxes.inverted().transform(corner)))
        key.borderaxespad = 0
        return [key]

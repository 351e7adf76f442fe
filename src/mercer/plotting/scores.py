"""Scores of two components against each other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.models import dense, scores_of, shares
from mercer.plotting.panels import Axes, Values, chosen, entitle, name, open_panel
from mercer.plotting.points import draw_key, draw_points, grouped


class ScoresDisplay:
    """Scores of two components against each other, coloured by label.

    Make it with `from_estimator` or `from_scores`.

    Parameters
    ----------
    scores : array of shape (n, 2) or (n, 1)
        Scores along the components drawn; of one component, they are drawn row by row.
    components : sequence of int
        Which components these are, across and up, counted from 0.
    ratio : array or None
        The model's `explained_variance_ratio_`, all of it, for the labels of the axes.
    labels : array of shape (n,) or None
        Classes of the rows, named in a legend, or numbers along a scale of colours.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : list of PathCollection
        One for each class, in the order of the legend; rows without a label are grey. Of more
        than 3000 rows, one for all classes, which are mixed so that none lies over the others.
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

    def __init__(
        self,
        scores: Any,
        *,
        components: Any = (0, 1),
        ratio: Any = None,
        labels: Any = None,
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
        ax: Axes | None = None,
    ) -> Self:
        """Draw the scores that a fitted model gives rows.

        Parameters
        ----------
        estimator : fitted model
            Anything with `transform`, what is built around it, or a pipeline that ends in it.
        X : array, sparse matrix, DataFrame, path or Source
            Rows; only their scores along the components drawn are held.
        labels : array of shape (n,) or None
            Classes of the rows. Floats of more than 20 values, and whole numbers of more than
            60, are a scale of colours, with its bar.
        components : one or two of int, or None
            Which ones, across and up, counted from 0. None: the first two.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        ScoresDisplay
        """
        scores, drawn = scores_of(estimator, X, components, 2)
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
        ax: Axes | None = None,
    ) -> Self:
        """Draw scores that are there already: what `transform` gave.

        Parameters
        ----------
        scores : array or DataFrame of shape (n, k)
            Scores along all components.
        components, labels, ax
            As in `from_estimator`.
        ratio : array of shape (k,) or None
            The model's `explained_variance_ratio_`, for the labels of the axes.

        Returns
        -------
        ScoresDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.plotting import ScoresDisplay
        >>> scores = np.random.default_rng(0).normal(size=(50, 3))
        >>> ScoresDisplay.from_scores(scores, components=(2, 0)).ax_.get_xlabel()
        'Component 3'
        """
        Y = checked_scores(scores)
        drawn = chosen(components, Y.shape[1], 2)
        return cls(Y[:, drawn], components=drawn, ratio=ratio, labels=labels).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the scores.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        ScoresDisplay
            Itself.
        """
        Y = checked_scores(self.scores)
        if Y.shape[1] not in (1, 2) or Y.shape[1] != len(self.components):
            raise ValueError(
                f"components={self.components!r} of scores of shape {Y.shape}: two are drawn, "
                f"such as (0, 1), or one."
            )
        labels = grouped(self.labels, len(Y))
        ours = ax is None
        ax = open_panel(5.4, 3.9) if ax is None else ax
        ratio = None if self.ratio is None else to_numpy(self.ratio)
        texts = [name(j, ratio) for j in self.components]
        if len(texts) == 1:
            Y, texts = np.column_stack([np.arange(len(Y)), Y[:, 0]]), ["Row", *texts]
        self.points_ = draw_points(ax, Y, labels)
        entitle(ax, xlabel=texts[0], ylabel=texts[1])
        # To find the emptiest corner takes long with many points.
        inside = "best" if len(Y) < 5000 else "upper right"
        self.key_ = draw_key([ax], labels, self.points_, "outside right upper" if ours else inside)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def checked_scores(scores: Any) -> Values:
    """Return scores as rows of numbers, or say what they are instead."""
    Y = dense(scores)
    if Y.ndim != 2 or 0 in Y.shape:
        raise ValueError(f"scores has shape {Y.shape}; rows and columns are needed, one at least.")
    if Y.dtype.kind not in "iufb":
        raise ValueError(f"scores holds {Y.dtype}, and numbers are needed: what transform gave.")
    bad = np.flatnonzero(~np.isfinite(Y).all(axis=1))
    if len(bad):
        raise ValueError(
            f"scores contains NaN or infinity: the first is in row {bad[0]}. Drop such rows."
        )
    return Y

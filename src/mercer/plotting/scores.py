"""Scores of two components against each other."""

from __future__ import annotations

from typing import Any

from mercer.arrays import to_numpy
from mercer.plotting.panels import Axes, chosen, dense, name, open_panel
from mercer.plotting.points import draw_key, draw_points


def scatter(
    scores: Any,
    labels: Any = None,
    *,
    components: tuple[int, int] = (0, 1),
    ratio: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the scores of two components against each other.

    Parameters
    ----------
    scores : array or DataFrame of shape (n, k)
        What `transform` gave.
    labels : array of shape (n,) or None
        Classes of the rows, named in a legend. Floats of more than 20 values are a scale of
        colours, with its bar.
    components : two of int
        Which ones, across and up, counted from 0.
    ratio : array of shape (k,) or None
        The model's `explained_variance_ratio_`, for the labels of the axes.
    ax : Axes or None
        None makes a figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.plotting import scatter
    >>> X, species = load_iris(return_X_y=True)
    >>> pca = PCA(2).fit(X)
    >>> ax = scatter(pca.transform(X), species, ratio=pca.explained_variance_ratio_)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('Component 1 (92.5 %)', 'Component 2 (5.3 %)')
    """
    Y = dense(scores)
    if Y.ndim != 2 or Y.shape[1] < 2:
        raise ValueError(f"scores has shape {Y.shape}; scatter needs two columns or more.")
    pair = chosen(components, Y.shape[1])
    if len(pair) != 2:
        raise ValueError(f"components={components!r}; scatter draws two, such as (0, 1).")
    ax = open_panel(4.8, 3.8) if ax is None else ax
    scale = draw_points(ax, Y[:, pair], labels)
    share = None if ratio is None else to_numpy(ratio)
    ax.set(xlabel=name(pair[0], share), ylabel=name(pair[1], share))
    # To find the emptiest corner takes long with many points.
    draw_key([ax], labels, scale, "best" if len(Y) < 5000 else "upper right")
    return ax

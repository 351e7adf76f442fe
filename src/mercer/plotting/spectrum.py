"""Shares of the variance, component by component."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.plotting.panels import Axes, matplotlib, open_panel, shares
from mercer.plotting.points import INK, SKY


def scree(model: Any, ax: Axes | None = None) -> Axes:
    """Draw each component's share of the variance, λⱼ / Σλ, and their running sum.

    Parameters
    ----------
    model : fitted model
        Anything with `explained_variance_ratio_`, or a pipeline that ends in it.
    ax : Axes or None
        None makes a figure.

    Returns
    -------
    Axes

    References
    ----------
    R. B. Cattell (1966), The scree test for the number of factors, Multivariate Behavioral
    Research 1, 245–276.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import PCA
    >>> from mercer.plotting import scree
    >>> ax = scree(PCA().fit(load_iris().data))
    >>> [round(float(bar.get_height()), 3) for bar in ax.patches]
    [0.925, 0.053, 0.017, 0.005]
    """
    ratio = shares(model)
    if ratio is None:
        raise ValueError(
            f"This {type(model).__name__} has no explained_variance_ratio_ to draw: it is not "
            "fitted, or it never has one, as scikit-learn's KernelPCA. Fit it, or use mercer's."
        )
    ax = open_panel(4.8, 3.4) if ax is None else ax
    number = np.arange(1, len(ratio) + 1)
    ax.bar(number, ratio, color=SKY, label="each")
    dots = {"marker": "o", "markersize": 3.5} if len(ratio) <= 40 else {}
    ax.plot(number, np.cumsum(ratio), color=INK, linewidth=1.2, label="together", **dots)
    ticker = matplotlib("ticker")
    ax.yaxis.set_major_formatter(ticker.PercentFormatter(1, symbol=" %"))
    ax.xaxis.set_major_locator(ticker.MaxNLocator(integer=True, min_n_ticks=1))
    ax.set(xlabel="Component", ylabel="Share of the variance", ylim=(0, 1.04))
    ax.legend(frameon=False, loc="center right")
    return ax

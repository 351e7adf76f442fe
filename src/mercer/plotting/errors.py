"""Reconstruction errors: how far rows are from the components, and which are furthest."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.estimators.pipeline import parts
from mercer.plotting.flags import draw_flags, row_height
from mercer.plotting.models import errors_of
from mercer.plotting.panels import Axes, Values, entitle, open_panel, settle, short
from mercer.plotting.points import BLUE, INK, VERMILION

# Beyond this share of the median the furthest rows would leave the others in one bar.
WIDE = 50


class ReconstructionErrorDisplay:
    """Histogram of the distances of rows from the components, with threshold and furthest rows.

    Make it with `from_estimator`, or from errors that are there already.

    Parameters
    ----------
    errors : array of shape (n,)
        Squared distance of each row from the components: `reconstruction_error`.
    threshold : float
        Rows beyond it are outliers.
    rule : str
        What the threshold is.
    ids : array of shape (n,) or None
        Names of the rows; None: their numbers, counted from 0.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    within_, beyond_ : StepPatch
        The histograms of ordinary rows and of outliers.
    threshold_ : Line2D
    furthest_ : list of (Line2D, Annotation)
        What marks the furthest outliers, furthest first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mercer import PCA
    >>> from mercer.plotting import ReconstructionErrorDisplay
    >>> X = load_wine().data
    >>> pca = PCA(5, scale=True).fit(X)
    >>> display = ReconstructionErrorDisplay.from_estimator(pca, X, quantile=0.98)
    >>> display.outliers
    array([158, 159,  95, 121])
    """

    def __init__(
        self, errors: Any, threshold: float, *, rule: str = "threshold", ids: Any = None
    ) -> None:
        self.errors = errors
        self.threshold = threshold
        self.rule = rule
        self.ids = ids

    @property
    def outliers(self) -> Values:
        """Numbers of the rows beyond the threshold, furthest first."""
        errors = np.asarray(self.errors)
        beyond = np.flatnonzero(errors > self.threshold)
        return beyond[np.argsort(-errors[beyond], kind="stable")]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        quantile: float | None = None,
        ids: Any = None,
        furthest: int = 5,
        bins: int = 40,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the errors that a fitted model leaves in rows.

        Parameters
        ----------
        estimator : fitted model
            PCA, KernelPCA, NoveltyDetector, or a pipeline that ends in one.
        X : array, sparse matrix, DataFrame, path or Source
            Rows; only their errors are held.
        quantile : float in [0, 1] or None
            The share of the rows that is within the threshold. None: the threshold of a
            NoveltyDetector, 0.99 of the rows for any other model.
        ids : array of shape (n,) or None
            Names of the rows.
        furthest : int
            How many outliers are named.
        bins : int
            Bars of the histogram.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        ReconstructionErrorDisplay
        """
        if quantile is not None and not 0 <= quantile <= 1:
            raise ValueError(f"quantile={quantile!r} is a share of the rows, in [0, 1].")
        errors = errors_of(estimator, X)
        offset = getattr(parts(estimator)[1], "offset_", None)
        if quantile is None and offset is not None:
            threshold, rule = -float(offset), "threshold"
        else:
            share = 0.99 if quantile is None else float(quantile)
            threshold, rule = float(np.quantile(errors, share)), f"{100 * share:g} % quantile"
        made = cls(errors, threshold, rule=rule, ids=ids)
        return made.plot(ax, furthest=furthest, bins=bins)

    def plot(self, ax: Axes | None = None, *, furthest: int = 5, bins: int = 40) -> Self:
        """Draw the histogram.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.
        furthest : int
            How many outliers are named.
        bins : int
            Bars of the histogram. Where the furthest row is more than 50 times as far as most, they
            are of equal width on a scale of logarithms.

        Returns
        -------
        ReconstructionErrorDisplay
            Itself.
        """
        errors = np.asarray(self.errors, np.float64)
        self._check(errors, bins)
        ax = open_panel(5.6, 3.6) if ax is None else ax
        edges, log = _edges(errors, self.threshold, bins)
        outlier = errors > self.threshold
        style = {"fill": True, "linewidth": 0}
        self.within_ = ax.stairs(
            np.histogram(errors[~outlier], edges)[0], edges, color=BLUE, alpha=0.75, **style
        )
        self.beyond_ = ax.stairs(
            np.histogram(errors[outlier], edges)[0], edges, color=VERMILION, **style
        )
        if log:
            ax.set_xscale("log")
            ends = np.exp(_widened(np.log(edges[[0, -1]])))
        else:
            ends = _widened(edges[[0, -1]])
        ax.set_xlim(ends)
        entitle(ax, xlabel="Squared distance from the components", ylabel="Rows")
        self._mark(ax, errors, furthest)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _check(self, errors: Values, bins: int) -> None:
        if errors.ndim != 1 or not len(errors):
            raise ValueError(f"errors has shape {errors.shape}: one for each row is needed.")
        if not np.isfinite(errors).all():
            bad = int(np.argmin(np.isfinite(errors)))
            raise ValueError(
                f"The error of row {bad} is {errors[bad]}: only finite ones are drawn."
            )
        if self.ids is not None and len(self.ids) != len(errors):
            raise ValueError(f"There are {len(errors)} rows, and {len(self.ids)} ids for them.")
        if bins < 1:
            raise ValueError(f"bins={bins}, but a histogram has one bar at least.")

    def _mark(self, ax: Axes, errors: Values, furthest: int) -> None:
        """Mark threshold and furthest rows above the bars: the scale leaves room for names."""
        named = self.outliers[:furthest]
        highest = max(
            float(np.max(patch.get_data().values)) for patch in (self.within_, self.beyond_)
        )
        settle(ax)
        count = len(named) + 1
        room = 1 - count * row_height(ax, count)
        ax.set_ylim(0, 1.05 * max(highest, 1.0) / room)
        ticks = ax.get_yticks()
        ax.set_yticks(ticks[(ticks <= 1.05 * highest) & (ticks == np.round(ticks))])
        ids = np.arange(len(errors)) if self.ids is None else np.asarray(self.ids)
        many = int(np.sum(errors > self.threshold))
        beyond = f"{many:,} row{'s' if many != 1 else ''} beyond".replace(",", " ")
        texts = [f"{short(self.rule)}: {self.threshold:.3g}, {beyond}"]
        texts += [f"row {short(ids[i], 20)}" for i in named]
        flags = draw_flags(ax, [self.threshold, *errors[named]], texts)
        for line, note in flags[1:]:
            line.set(color=VERMILION, linewidth=0.7, linestyle="-")
            note.set_color(VERMILION)
        self.threshold_ = flags[0][0]
        self.threshold_.set_color(INK)
        self.furthest_ = flags[1:]


def _widened(ends: Values) -> Values:
    margin = 0.03 * float(ends[1] - ends[0])
    return np.asarray(ends + np.array([-margin, margin]))


def _edges(errors: Values, threshold: float, bins: int) -> tuple[Values, bool]:
    """Return the edges of the bars, and whether they are on a scale of logarithms.

    The threshold is one of them where it lies between: no bar is half within.
    """
    low, high, median = float(errors.min()), float(errors.max()), float(np.median(errors))
    high = max(high, threshold)
    log = low > 0 and high > WIDE * median
    if log:
        edges = np.geomspace(min(low, threshold if threshold > 0 else low), high, bins + 1)
    else:
        low = 0.0 if low < 0.3 * high else low
        edges = np.linspace(min(low, threshold), high if high > low else low + 1.0, bins + 1)
    if edges[0] < threshold < edges[-1]:
        edges[np.argmin(np.abs(edges[1:-1] - threshold)) + 1 if bins > 1 else 0] = threshold
    # Rounding of a geometric row must leave no error outside.
    edges[0], edges[-1] = min(edges[0], float(errors.min())), max(edges[-1], float(errors.max()))
    return edges, log

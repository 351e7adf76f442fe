"""Reconstruction errors: a histogram, the threshold, and the furthest rows."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer.estimators.coloring import row_values
from mercer.estimators.inspection import parts, squared_errors
from mercer.messages import counted
from mercer.plotting import base
from mercer.plotting.base import Axes, Display, Values

# Beyond this multiple of the median, the furthest rows would leave all others in one bar.
WIDE = 50


@dataclass(eq=False, repr=False)
class ReconstructionErrorDisplay(Display):
    """Histogram of the distances of rows from the components, with threshold and furthest rows.

    Create it with `from_estimator`, or from errors.

    Parameters
    ----------
    errors : array of shape (n,)
        Squared distance of each row from the components: `reconstruction_error`.
    threshold, rule : float and str
        Rows beyond it are outliers; its name.
    ids : array of shape (n,) or None
        Names of the rows; None: their numbers, counted from 0.

    Attributes
    ----------
    within_, beyond_ : StepPatch
        The histograms of ordinary rows and of outliers.
    threshold_, furthest_
        The threshold, and the furthest outliers: a pair (Line2D, Annotation) for each.

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

    errors: Any
    threshold: float
    _: KW_ONLY
    rule: str = "threshold"
    ids: Any = None

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
        **style: Any,
    ) -> Self:
        """Draw the reconstruction errors of rows under a fitted model or pipeline.

        Rows are read block by block; only their errors are kept. `quantile` is the share of the
        rows within the threshold; None: the threshold of a NoveltyDetector, 0.99 of the rows for
        any other model. `ids` are those of the class; `ax`, `furthest` and `bins` those of `plot`.
        """
        if quantile is not None and not 0 <= quantile <= 1:
            raise ValueError(f"quantile={quantile!r} must be in [0, 1]: it is a share of the rows.")
        errors = squared_errors(estimator, X)
        offset = getattr(parts(estimator)[1], "offset_", None)
        if quantile is None and offset is not None:
            threshold, rule = -float(offset), "threshold"
        else:
            share = 0.99 if quantile is None else float(quantile)
            threshold, rule = float(np.quantile(errors, share)), f"{100 * share:g} % quantile"
        return cls(errors, threshold, rule=rule, ids=ids).plot(**style)

    def plot(self, ax: Axes | None = None, *, furthest: int = 5, bins: int = 40) -> Self:
        """Draw a histogram with this number of bars, and name the furthest outliers.

        Its axis is logarithmic if the furthest row is more than 50 times as far as the median.
        """
        errors = np.asarray(self.errors, np.float64)
        if errors.ndim != 1 or not len(errors):
            raise ValueError(f"errors has shape {errors.shape}: pass one error per row.")
        bad = int(np.argmin(np.isfinite(errors)))
        if not np.isfinite(errors[bad]):
            raise ValueError(f"The error of row {bad} is {errors[bad]}: pass finite errors only.")
        n = len(errors)
        ids = row_values(np.arange(n) if self.ids is None else self.ids, n, "ids")
        ax = self._open(ax)
        edges, log = _bin_edges(errors, self.threshold, bins)
        outlier = errors > self.threshold
        within, beyond = (np.histogram(errors[at], edges)[0] for at in (~outlier, outlier))
        self.within_ = ax.stairs(within, edges, fill=True, linewidth=0, color=base.BLUE, alpha=0.75)
        self.beyond_ = ax.stairs(beyond, edges, fill=True, linewidth=0, color=base.VERMILION)
        ax.set_xscale("log" if log else "linear")
        ax.margins(x=0.03)
        ax.autoscale(axis="x")
        base.set_texts(ax, xlabel="Squared distance from the components", ylabel="Rows")
        named = self.outliers[:furthest]
        texts = [
            f"{base.one_line(self.rule)}: {self.threshold:.3g}, "
            f"{counted(int(outlier.sum()), 'row')} beyond",
            *(f"row {base.one_line(ids[i], 20)}" for i in named),
        ]
        highest = max(float(np.max([within, beyond])), 1.0)
        flags = base.draw_flags(
            {ax: highest}, [self.threshold, *errors[named]], texts, base.VERMILION
        )
        ax.set_yticks([tick for tick in ax.get_yticks() if tick == round(tick)])
        (self.threshold_, name), *self.furthest_ = flags
        self.threshold_.set_color(base.INK)
        name.set_color(base.INK)
        return self


def _bin_edges(errors: Values, threshold: float, bins: int) -> tuple[Values, bool]:
    """Return the edges of the bars, and whether they are logarithmic.

    The threshold is one of them where it lies between: no bar has rows of both sides.
    """
    low, high = float(errors.min()), max(float(errors.max()), threshold)
    log = low > 0 and high > WIDE * float(np.median(errors))
    if log:
        edges = np.geomspace(min(low, threshold) if threshold > 0 else low, high, bins + 1)
    else:
        low = min(0.0 if low < 0.3 * high else low, threshold)
        edges = np.linspace(low, high if high > low else low + 1.0, bins + 1)
    if edges[0] < threshold < edges[-1]:
        edges[np.argmin(np.abs(edges[1:-1] - threshold)) + 1] = threshold
    # Rounding in geomspace must leave no error outside.
    edges[0], edges[-1] = min(edges[0], float(errors.min())), max(edges[-1], float(errors.max()))
    return edges, log

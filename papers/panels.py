"""What several figures are made of: a spectrum, its running sum, and two scatters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer import PCA
from mercer.methods import Covariance, Dot
from mercer.plotting import ScoresDisplay
from mercer.rules import Fraction
from papers.data import Array

SHARES = (0.9, 0.95, 0.99)
COLUMNS = ("eigenvalues", "share of the variance, %", "first and second axis", "first and last")
# Eigenvalues below this share of the largest are rounding.
NOTHING = 1e-12


@dataclass
class Case:
    """A data set with all axes of its z-scores, from the smaller of the two matrices."""

    name: str
    X: Array
    labels: Array
    scale: bool = True

    def __post_init__(self) -> None:
        n, d = self.X.shape
        self.model = PCA(scale=self.scale, svd_solver=Dot() if n < d else Covariance()).fit(self.X)
        self.values = np.asarray(self.model.explained_variance_, np.float64)
        self.rank = int((self.values > NOTHING * self.values[0]).sum())

    def axes_for(self, share: float) -> int:
        """Return how many axes hold this share of the variance."""
        found = Fraction(share).choose(self.values, float(self.values.sum()), *self.X.shape)
        assert found is not None
        return found

    def draw(self, axes: Any) -> None:
        """Draw a row of four panels."""
        draw_values(axes[0], self.values[: self.rank])
        draw_shares(axes[1], self.values, {share: self.axes_for(share) for share in SHARES})
        for ax, second in zip(axes[2:], (1, self.rank - 1), strict=True):
            self.scatter(ax, second)
        axes[0].set_ylabel(self.name, fontweight="bold", fontsize=10)

    def scatter(self, ax: Any, second: int) -> None:
        """Draw all rows along the first axis and another."""
        made = ScoresDisplay.from_estimator(
            self.model, self.X, components=(0, second), labels=self.labels, ax=ax
        )
        dress(made, 1.5 if len(self.X) > 20_000 else 5.0)
        share = 100 * self.values[second] / self.values.sum()
        if share < 0.05:  # more than nothing
            ax.set_ylabel(f"Component {second + 1} ({share:.0e} %)", fontsize=8)


def dress(made: ScoresDisplay, size: float) -> None:
    """Make the dots of a small panel small, without a key."""
    if made.key_ is not None:
        made.key_.remove()
    for points in made.points_:
        points.set(sizes=[size], linewidths=0)
    made.ax_.set_title("")
    made.ax_.xaxis.label.set_size(8)
    made.ax_.yaxis.label.set_size(8)
    made.ax_.tick_params(labelsize=7)


def draw_values(ax: Any, values: Array, **style: Any) -> None:
    """Draw eigenvalues, both scales logarithmic."""
    marker = "o" if len(values) <= 30 else None
    look = {"color": "#0072b2", "marker": marker, "markersize": 3.5, "linewidth": 1.4} | style
    ax.plot(np.arange(1, len(values) + 1), values, **look)
    ax.set(xscale="log", yscale="log")
    if len(values) <= 30:
        ticks = [k for k in (1, 2, 5, 10, 20) if k <= len(values)]
        ax.set_xticks(ticks, [str(k) for k in ticks])
        ax.set_xticks([], minor=True)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)


def draw_shares(ax: Any, values: Array, cuts: dict[float, int], **style: Any) -> None:
    """Draw the running sum, and how many axes reach which share."""
    shares = 100 * np.append(0.0, np.cumsum(values)) / values.sum()
    look = {"color": "#0072b2", "linewidth": 1.4} | style
    ax.plot(np.arange(len(shares)), shares, **look)
    for k in cuts.values():
        ax.plot([k, k], [0, shares[k]], color="#d55e00", linewidth=0.8)
        ax.plot(k, shares[k], "o", color="#d55e00", markersize=3)
    text = "\n".join(f"{100 * share:.0f} %: {k}" for share, k in cuts.items())
    look = {"fontsize": 8, "color": "#a34700", "ha": "right", "transform": ax.transAxes}
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}  # over the lines
    ax.text(0.97, 0.08, text, bbox=paper, **look)
    ax.set(ylim=(0, 104), xlim=(0, None))
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)


def rows_of_panels(cases: list[Case]) -> Any:
    """Draw all cases, a row each."""
    from matplotlib.figure import Figure

    figure = Figure((11.0, 2.25 * len(cases) + 0.3), layout="constrained")
    grid = figure.subplots(len(cases), 4, squeeze=False)
    for axes, case in zip(grid, cases, strict=True):
        case.draw(axes)
    for ax, title in zip(grid[0], COLUMNS, strict=True):
        ax.set_title(title, fontsize=10, fontweight="bold")
    return figure

"""Pictures that compare_methods.py draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mercer import KernelPCA
from mercer.plotting import NormsDisplay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#8c8c8c"
# Colours that every kind of colour vision tells apart (Okabe & Ito), and marks beside them.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
MARKS = ("o", "s", "^", "D")
# Shares below this are rounding.
LEAST = 1e-12


@dataclass(frozen=True)
class Result:
    """What one method did."""

    method: str
    rule: str
    size: int
    model: KernelPCA
    error: float
    distance: float
    seconds: float
    memory: int | None

    @property
    def basis(self) -> tuple[str, int]:
        """The basis that it was on: methods on the same are comparable."""
        return self.rule, self.size


def percent(share: float) -> str:
    """Write a share with two digits; NaN is what is not known."""
    if np.isnan(share):
        return "–"
    if share < 1e-8:
        return "< 1e-6 %"
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"


def contours(results: list[Result], X: np.ndarray, title: str) -> Figure:
    """Draw a row of panels for each rule: exact with the basis, then every method on it."""
    from matplotlib.figure import Figure

    exact = results[0]
    bases = {result.basis: [] for result in results[1:]}
    for result in results[1:]:
        bases[result.basis].append(result)
    bases = {basis: here for basis, here in bases.items() if len(here) > 1}
    across, width, height = 1 + max(map(len, bases.values())), *np.ptp(X, axis=0)
    tall = float(np.clip(2.2 * height / width, 1.0, 4.0))
    figure = Figure((2.2 * across + 0.9, len(bases) * (tall + 0.4) + 0.4), layout="constrained")
    figure.suptitle(title, fontsize=10, fontweight="bold")
    panels = figure.subplots(len(bases), across, squeeze=False)
    for axes, ((rule, _), here) in zip(panels, bases.items(), strict=True):
        models = {f"exact; basis by {rule}": exact.model}
        models |= {caption(result, exact): result.model for result in here}
        basis = here[0].model.X_fit_
        drawn = NormsDisplay.from_estimators(models, X, basis=basis, ax=axes)
        for ax in drawn.axes_:
            ax.set(xlabel="", ylabel="", xticks=[], yticks=[], aspect="equal")
            ax.title.set_fontsize(8)
            ax.spines[:].set(color=GREY, linewidth=0.7)
    filled = panels[0, 0].collections[0]
    bar = figure.colorbar(filled, ax=panels, label="‖PΦ(x)‖", aspect=30 * len(bases), pad=0.01)
    bar.outline.set(color=GREY, linewidth=0.7)
    bar.ax.tick_params(labelsize=8)
    return figure


def caption(result: Result, exact: Result) -> str:
    """Return a method's name and figures."""
    return f"{result.method}: E {result.error / exact.error:.3f}, D²/r {percent(result.distance)}"


def runtimes(found: dict[str, list[Result]]) -> Figure:
    """Draw a panel for each data set: D²/r against seconds, a line for each method."""
    from matplotlib.figure import Figure

    figure = Figure((max(8.0, 4.6 * len(found)), 5.2), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    for ax, (title, results) in zip(panels, found.items(), strict=True):
        _runtime(ax, title, results)
    panels[0].set_ylabel("D²/r, squared distance from exact")
    handles, labels = panels[0].get_legend_handles_labels()
    side = min(5, 2 * len(found))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=side, fontsize=8, frameon=False
    )
    return figure


def _runtime(ax: Axes, title: str, results: list[Result]) -> None:
    exact, lines = results[0], dict[tuple[str, str], list[Result]]()
    for result in results[1:]:
        lines.setdefault((result.method, result.rule), []).append(result)
    methods = list(dict.fromkeys(method for method, _ in lines))
    rules = {method: [r for m, r in lines if m == method] for method in methods}
    for (method, rule), points in lines.items():
        ax.plot(
            [point.seconds for point in points],
            [max(point.distance, LEAST) for point in points],
            color=COLOURS[methods.index(method) % len(COLOURS)],
            marker=MARKS[rules[method].index(rule) % len(MARKS)],
            linestyle="-" if methods.index(method) < len(COLOURS) else "--",
            markersize=4,
            linewidth=1,
            label=f"{method}, {rule}",
        )
    ax.axvline(exact.seconds, color=GREY, linestyle=":", label="time of exact kernel PCA")
    ax.set(xscale="log", yscale="log", xlabel="seconds")
    ax.xaxis.set_minor_formatter("")  # of a short axis the labels would overlap
    ax.set_title(title.replace(", ", ",\n", 1), fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)

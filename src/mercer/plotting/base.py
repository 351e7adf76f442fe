"""Base of the displays: Axes and figures, colors, texts, and rows as points."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.estimators.coloring import MISSING, Coloring, coloring
from mercer.extras import extra
from mercer.messages import percent

Axes: TypeAlias = Any
"""A matplotlib Axes."""
Style: TypeAlias = dict[str, Any]
"""Keyword arguments of matplotlib."""
Values: TypeAlias = npt.NDArray[Any]

# Okabe & Ito (2008), Color universal design, and two of Tol's muted colors: distinct from each
# other in every kind of color vision.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
WINE, INDIGO = "#882255", "#332288"
COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW, WINE, INDIGO)
INK, GRAY, LIGHT_GRAY = "#262626", "#8c8c8c", "#bdbdbd"
MAX_LETTERS = 28
MARKERS = "os^Dv*"
LOOKS = len(COLORS) * len(MARKERS)
MAX_APART = 3000
"""With more rows than this, classes are drawn in mixed order."""


class Display(ABC):
    """Base of the displays: the constructor stores what was computed, `plot` draws it."""

    figsize: ClassVar[tuple[float, float]] = (5.6, 3.6)
    ax_: Axes
    figure_: Any

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw on the Axes passed, or in a new figure, and return the display."""

    def _open(self, ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
        """Set and return the Axes to draw on; those of a new figure have no upper right frame."""
        if ax is None:
            ax = new_figure(*(figsize or self.figsize)).subplots()
            ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@dataclass(eq=False, repr=False)
class ComponentDisplay(Display):
    """Base of displays of some components: their indices, shares of the variance, row labels."""

    _: KW_ONLY
    components: Any = (0, 1)
    ratio: Any = None
    labels: Any = None

    def _draw_rows(self, rows: Values, outside: bool, faint: bool = False) -> None:
        """Draw rows with a key, outside or inside of the Axes."""
        by = label_coloring(self.labels, len(rows))
        self.points_ = draw_points(self.ax_, rows, by, faint)
        # The search for the emptiest corner is slow with many points.
        inside = "lower left" if faint else "best" if len(rows) < 5000 else "upper right"
        place = "outside right upper" if outside else inside
        self.key_ = draw_key([self.ax_], by, self.points_, place)


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, or raise an error that says how to install it."""
    return extra(f"matplotlib.{module}", "plot", "mercer.plotting requires")


def new_figure(width: float, height: float) -> Any:
    """Return a figure that a notebook displays, and that nothing else refers to."""
    # pyplot keeps a figure until it is closed, which a notebook does at the end of a cell. Outside
    # of one nobody would close it, so the figure is a plain one, freed with its last Axes.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    make = matplotlib("pyplot").figure if hasattr(shell, "kernel") else matplotlib("figure").Figure
    return make(figsize=(width, height), layout="constrained")


def check_axes(ax: Any, count: int, what: str) -> Values:
    """Return the Axes passed as a flat array, or raise an error unless there are `count`."""
    axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != count:
        raise ValueError(
            f"ax has {len(axes)} Axes, but there are {count} {what} to draw: pass one Axes for "
            f"each."
        )
    return axes


def lay_out(ax: Axes) -> None:
    """Place the Axes of a figure as they will be drawn, to measure texts."""
    root = ax.figure.figure  # of a subfigure, the outer figure
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)
    ax.apply_aspect()


def fitting_size(ax: Axes, texts: Sequence[str], share: float = 1.0) -> float:
    """Return a font size with which each text fits a share of the width of the Axes."""
    lay_out(ax)
    width = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    longest = max((len(line) for text in texts for line in text.splitlines()), default=1)
    # A letter is about 0.6 of its size wide.
    return float(np.clip(share * width / (0.6 * longest), 2.5, 8.3))


def component_titles(components: Any, ratio: Any, prefix: str = "Component ") -> list[str]:
    """Return titles of components, counted from 1, with their shares of the variance."""
    shares = ["" if ratio is None else f" ({percent(to_numpy(ratio)[j], 1)})" for j in components]
    return [f"{prefix}{j + 1}{share}" for j, share in zip(components, shares, strict=True)]


def one_line(text: Any, most: int = MAX_LETTERS) -> str:
    """Return a text on one line, cut where it is too long to draw."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def set_texts(ax: Axes, **texts: str) -> None:
    """Set title, xlabel or ylabel literally: a $ in a name does not start a formula."""
    for what, text in texts.items():
        getattr(ax, f"set_{what}")(text, parse_math=False)


def draw_flags(
    heights: Mapping[Axes, float], places: Sequence[float], texts: Sequence[str], color: str = INK
) -> list[tuple[Any, Any]]:
    """Draw a vertical line at each place with its name at the top; return lines and names.

    `heights` maps Axes with a common horizontal axis to the largest value drawn on them; the
    last Axes gets the lines. Each name has a row of its own above the data.
    """
    ax, count = list(heights)[-1], max(len(places), 1)
    lay_out(ax)
    frame, point = ax.get_window_extent(), ax.figure.figure.dpi / 72
    step = min(12.5 * point / max(frame.height, 1.0), 0.6 / count)
    for panel, height in heights.items():
        panel.set_ylim(0, 1.05 * height / (1 - len(places) * step))
        panel.set_yticks([tick for tick in panel.get_yticks() if 0 <= tick <= 1.05 * height])
    both = ax.get_xaxis_transform()
    dashed: Style = {"color": color, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 4}
    style: Style = {"fontsize": step * frame.height / point / 1.5, "color": color, "va": "center"}
    style |= {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}}
    style |= {"xycoords": both, "textcoords": "offset points", "parse_math": False}
    flags = []
    for i, (x, text) in enumerate(zip(places, texts, strict=True)):
        y = 1 - (i + 0.6) * step
        (line,) = ax.plot([x, x], [0, y], transform=both, scalex=False, scaley=False, **dashed)
        name = ax.annotate(text, (x, y), xytext=(4, 0), zorder=5, **style)
        name.set_in_layout(False)  # it is inside the frame
        box = name.get_window_extent()
        if box.x1 > frame.x1:  # no room on the right of the line
            name.xyann = (4 - min(box.width / point + 8, (box.x0 - frame.x0) / point), 0)
        flags.append((line, name))
    return flags


class Group(NamedTuple):
    """Rows with a common look."""

    name: str
    rows: Values
    color: str
    marker: str


def label_coloring(labels: Any, n: int) -> Coloring | None:
    """Return the colors of n points, or None."""
    if labels is None:
        return None
    return coloring(labels, n, name=one_line(getattr(labels, "name", None) or ""))


def color_groups(by: Coloring) -> list[Group]:
    """Return the rows of each class, and last, in gray, small classes or missing values."""
    k = len(by.classes)
    own = k if k <= LOOKS else LOOKS - 1
    place = by.groups(LOOKS)
    group, names = np.append(place, own)[by.codes], dict(zip(place, by.classes, strict=True))
    looks = [(color, marker) for marker in MARKERS for color in COLORS]
    groups = [Group(one_line(names[g]) or "(empty)", group == g, *looks[g]) for g in range(own)]
    rest = group == own if by.numbers is None else by.missing
    if rest.any():
        name = MISSING if k <= LOOKS else f"{k - own} others"
        groups.append(Group(name, rest, LIGHT_GRAY, "o"))
    return groups


def draw_points(ax: Axes, rows: Values, by: Coloring | None, faint: bool = False) -> list[Any]:
    """Draw rows of two numbers; return the collections: a scale first, then one per group.

    More than 3000 rows of several classes are mixed, and none covers the others.
    """
    n = len(rows)
    style: Style = {"s": max(18 * min(1.0, (200 / max(n, 1)) ** 0.4), 1.5), "zorder": 3}
    # Edges separate few points and hide many; a vector file with a million points is too large.
    style |= {"linewidths": 0.3 if n <= 1000 else 0, "edgecolors": "white"}
    style |= {"rasterized": n > 10_000, "alpha": 0.45 if faint else 0.7 if n > 1000 else None}
    if by is None:
        return [ax.scatter(*rows.T, color=GRAY if faint else BLUE, **style)]
    groups, collections = color_groups(by), []
    if by.numbers is not None:
        numbers = by.numbers[~by.missing] / (86_400_000 if by.dates else 1)  # matplotlib's days
        finite = numbers[np.isfinite(numbers)]
        ends = {"vmin": finite.min(), "vmax": finite.max()} if len(finite) else {}
        at = rows[~by.missing]
        collections.append(ax.scatter(*at.T, c=numbers, cmap="viridis", **ends, **style))
    elif n > MAX_APART:
        order = np.random.default_rng(0).permutation(n)
        which = np.argmax([group.rows for group in groups], axis=0)[order]
        colors, markers = (np.array([group[i] for group in groups])[which] for i in (2, 3))
        for marker in np.unique(markers).tolist():
            at = markers == marker
            points = ax.scatter(*rows[order[at]].T, c=colors[at], marker=marker, **style)
            collections.append(points)
        return collections
    sizes = np.array([group.rows.sum() for group in groups])
    for group, size in zip(groups, sizes, strict=True):
        # Small classes lie over large ones, and gray points under all.
        style["zorder"] = 2.9 if group.color == LIGHT_GRAY else 3 + 0.09 * (sizes > size).mean()
        look = {"label": group.name, "color": group.color, "marker": group.marker}
        collections.append(ax.scatter(*rows[group.rows].T, **style, **look))
    return collections


def draw_key(axes: list[Axes], by: Coloring | None, collections: list[Any], place: str) -> Any:
    """Draw a legend of the classes, or a color bar for numbers; return it."""
    if by is None:
        return None
    figure = axes[0].figure
    if by.numbers is not None:
        dates, ticks = matplotlib("dates"), {}
        if by.dates:
            locator = dates.AutoDateLocator()
            ticks = {"ticks": locator, "format": dates.ConciseDateFormatter(locator)}
        bar = figure.colorbar(collections[0], ax=axes, aspect=30, **ticks)
        bar.outline.set_visible(False)
        bar.set_label(by.name, parse_math=False)
        if bar.solids is not None:
            bar.solids.set_alpha(1)
        return bar
    groups, below = color_groups(by), place == "outside lower center"
    columns = min(len(groups), 8) if below else 1 + (len(groups) - 1) // 20
    # Several columns of long names would leave no room for the points.
    room = MAX_LETTERS if below or columns == 1 else MAX_LETTERS // columns
    dot: Style = {"linestyle": "", "markersize": 5, "markeredgewidth": 0}
    style: Style = {"title": by.name or None, "loc": place, "ncols": columns, "edgecolor": "none"}
    style |= {"handletextpad": 0.2, "columnspacing": 1.0}
    style |= {"fontsize": "small", "title_fontsize": "small"}
    line = matplotlib("lines").Line2D
    dots = [line([], [], color=group.color, marker=group.marker, **dot) for group in groups]
    host = figure if place.startswith("outside") else axes[0]
    key = host.legend(dots, [one_line(group.name, room) for group in groups], **style)
    for text in (*key.get_texts(), key.get_title()):
        text.set_parse_math(False)
    return key

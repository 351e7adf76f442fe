"""Rows as points, colored by class or by a number, and the key to the colors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.estimators.coloring import MISSING, Coloring, coloring
from mercer.plotting import base
from mercer.plotting.base import COLORS, Axes, Style, Values

MARKERS = "os^Dv*"
LOOKS = len(COLORS) * len(MARKERS)
MAX_APART = 3000
"""With more rows than this, classes are drawn in mixed order."""


class Group(NamedTuple):
    """Rows with a common look; `rest` are small classes that share one, or missing values."""

    name: str
    rows: Values
    color: str
    marker: str
    rest: bool


def draw_labeled(ax: Axes, rows: Values, labels: Any, outside: bool, **style: Any) -> Any:
    """Draw rows with a key, outside or inside of the Axes; return the collections and the key."""
    by = label_coloring(labels, len(rows))
    collections = draw_points(ax, rows, by, **style)
    # The search for the emptiest corner is slow with many points.
    inside = "best" if len(rows) < 5000 else "upper right"
    place = "outside right upper" if outside else inside
    return collections, draw_key([ax], by, collections, place)


def label_coloring(labels: Any, n: int) -> Coloring | None:
    """Return what n points are colored by, or None."""
    if labels is None:
        return None
    return coloring(labels, n, name=base.one_line(getattr(labels, "name", None) or ""))


def color_groups(by: Coloring) -> list[Group]:
    """Return the rows of each class, and those without a color of their own last."""
    k = len(by.classes)
    own = k if k <= LOOKS else LOOKS - 1
    group = np.append(by.groups(LOOKS), own)[by.codes]
    names = dict(zip(by.groups(LOOKS).tolist(), by.classes, strict=True))
    groups = [
        Group(
            base.one_line(names[g]) or "(empty)",
            group == g,
            COLORS[g % len(COLORS)],
            MARKERS[g // len(COLORS)],
            rest=False,
        )
        for g in range(own)
    ]
    rest = group == own if by.numbers is None else by.missing
    if rest.any():
        name = MISSING if k <= LOOKS else f"{k - own} others"
        groups.append(Group(name, rest, base.LIGHT_GRAY, "o", rest=True))
    return groups


def draw_points(ax: Axes, rows: Values, by: Coloring | None, *, faint: bool = False) -> list[Any]:
    """Draw rows of two numbers; return the collections: a scale first, then one per group.

    More than 3000 rows of several classes are mixed, and none covers the others.
    """
    n = len(rows)
    style: Style = {"s": max(18 * min(1.0, (200 / max(n, 1)) ** 0.4), 1.5), "zorder": 3}
    # Edges separate few points and hide many; a vector file with a million points is too large.
    style |= {"linewidths": 0.3, "edgecolors": "white"} if n <= 1000 else {"linewidths": 0}
    style |= {"rasterized": n > 10_000, "alpha": 0.45 if faint else 0.7 if n > 1000 else None}
    if by is None:
        return [ax.scatter(*rows.T, color=base.GRAY if faint else base.BLUE, **style)]
    groups, collections = color_groups(by), []
    if by.numbers is not None:
        numbers = by.numbers[~by.missing] / (86_400_000 if by.dates else 1)  # matplotlib's days
        finite = numbers[np.isfinite(numbers)]
        ends = {"vmin": finite.min(), "vmax": finite.max()} if len(finite) else {}
        at = rows[~by.missing]
        collections.append(ax.scatter(*at.T, c=numbers, cmap="viridis", **ends, **style))
    elif n > MAX_APART:
        return _draw_mixed(ax, rows, groups, style)
    sizes = np.array([group.rows.sum() for group in groups])
    for group, size in zip(groups, sizes, strict=True):
        # Small classes lie over large ones, and rows without a class under all.
        style["zorder"] = 2.9 if group.rest else 3 + 0.09 * (sizes > size).mean()
        look = {"label": group.name, "color": group.color, "marker": group.marker}
        collections.append(ax.scatter(*rows[group.rows].T, **style, **look))
    return collections


def _draw_mixed(ax: Axes, rows: Values, groups: list[Group], style: Style) -> list[Any]:
    """Draw rows of all groups in random order, one collection per marker."""
    which = np.argmax([group.rows for group in groups], axis=0)
    order = np.random.default_rng(0).permutation(len(rows))
    under = np.array([group.rest for group in groups])[which[order]]
    order = order[np.argsort(~under, kind="stable")]
    colors, markers = (np.array([g[i] for g in groups])[which[order]] for i in (2, 3))
    return [
        ax.scatter(*rows[order[at]].T, c=colors[at], marker=marker, **style)
        for marker in dict.fromkeys(markers.tolist())
        for at in [markers == marker]
    ]


def draw_key(axes: list[Axes], by: Coloring | None, collections: list[Any], place: str) -> Any:
    """Draw a legend of the classes, or a color bar for numbers; return it."""
    if by is None:
        return None
    figure = axes[0].figure
    if by.numbers is not None:
        dates, ticks = base.matplotlib("dates"), {}
        if by.dates:
            locator = dates.AutoDateLocator()
            ticks = {"ticks": locator, "format": dates.ConciseDateFormatter(locator)}
        bar = figure.colorbar(collections[0], ax=axes, aspect=30, **ticks)
        bar.outline.set_visible(False)
        bar.set_label(by.name, parse_math=False)
        if bar.solids is not None:
            bar.solids.set_alpha(1)
        return bar
    groups = color_groups(by)
    outside, below = place.startswith("outside"), place == "outside lower center"
    columns = min(len(groups), 8) if below else 1 + (len(groups) - 1) // 20
    style: Style = {"ncols": columns, "frameon": not outside, "framealpha": 0.8}
    style |= {"edgecolor": "none", "handletextpad": 0.2, "columnspacing": 1.0}
    style |= {"fontsize": "small", "title_fontsize": "small"}
    line, dot = (
        base.matplotlib("lines").Line2D,
        {"linestyle": "", "markersize": 5, "markeredgewidth": 0},
    )
    dots = [line([], [], color=group.color, marker=group.marker, **dot) for group in groups]
    # Numbers at first: a legend drops a name that begins with an underscore.
    host, numbers = figure if outside else axes[0], [str(g) for g in range(len(groups))]
    key = host.legend(dots, numbers, title=by.name or None, loc=place, **style)
    # Several columns of long names would leave no room for the points.
    room = base.MAX_LETTERS if below or columns == 1 else base.MAX_LETTERS // columns
    for text, group in zip(key.get_texts(), groups, strict=True):
        text.set(text=base.one_line(group.name, room), parse_math=False)
    key.get_title().set_parse_math(False)
    return key

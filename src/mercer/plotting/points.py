"""Rows as points, coloured by class or by a number, and the key to the colours."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from mercer.arrays import to_numpy
from mercer.plotting.dates import absent, moments, written
from mercer.plotting.panels import LONGEST, Axes, Values, matplotlib, short

# Okabe & Ito (2008), Color universal design, and two of Tol's muted colours: as far from each
# other and from all the rest, in every kind of colour vision, as those are among themselves.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, YELLOW = "#E69F00", "#56B4E9", "#000000", "#F0E442"
WINE, INDIGO = "#882255", "#332288"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, YELLOW, WINE, INDIGO)
MARKERS = "os^Dv*"
INK, GREY, PALE = "#262626", "#8c8c8c", "#e8e8e8"
# Floats of more values than this are a scale, not the names of classes.
MANY = 20
LOOKS = len(COLOURS) * len(MARKERS)
MISSING = "missing"
# More rows than this cover each other.
CROWD = 3000


class Labels(NamedTuple):
    """Labels of rows as they are drawn: groups, or numbers along a scale of colours.

    Attributes
    ----------
    title : str
        Name of what the labels are; empty where they have none.
    names : list of str
        Name of each group.
    which : ndarray of shape (n,)
        Group of each row.
    numbers : ndarray of shape (n,) or None
        Numbers, where they are a scale; of the groups, only the missing ones are drawn.
    grey : int or None
        Group that is no class: of rows without a label, or of classes too small for a colour.
    dates : bool
        Whether the numbers are days since 1970, as matplotlib counts them.
    """

    title: str
    names: list[str]
    which: Values
    numbers: Values | None
    grey: int | None
    dates: bool = False

    def style(self, group: int) -> dict[str, Any]:
        """Return colour and marker of a group."""
        if group == self.grey:
            return {"color": "#bdbdbd", "marker": "o"}
        marker = MARKERS[group // len(COLOURS) % len(MARKERS)]
        return {"color": COLOURS[group % len(COLOURS)], "marker": marker}


def grouped(labels: Any, n: int) -> Labels | None:
    """Return labels as they are drawn, one for each of n rows."""
    if labels is None:
        return None
    title = short(getattr(labels, "name", None) or "")
    values = _numbers(to_numpy(labels))
    values = moments(values) if values.ndim == 1 else values
    if values.shape != (n,):
        raise ValueError(f"labels has shape {values.shape}; there are {n} rows, give one for each.")
    lost = _lost(values)
    if values.dtype.kind == "M":
        days = values.astype(np.int64) / 86_400_000
        if len(np.unique(values[~lost])) > MANY:
            return Labels(title, [MISSING], np.where(lost, 0, -1), days, 0, dates=True)
        said = np.full(n, None, object)
        said[~lost] = written(values[~lost])
        values = said
    found, which = np.unique(_sortable(values[~lost]), return_inverse=True)
    few = MANY if values.dtype.kind == "f" else LOOKS
    if values.dtype.kind in "iuf" and len(found) > few:
        return Labels(title, [MISSING], np.where(lost, 0, -1), values.astype(np.float64), 0)
    groups = np.full(n, -1)
    names = [_named(label) for label in found]
    if len(found) > LOOKS:
        names, which = _largest(names, which)
    groups[~lost] = which
    grey = len(names) - 1 if len(found) > LOOKS else None
    if lost.any() and grey is None:
        names, grey = [*names, MISSING], len(names)
    groups[lost] = -1 if grey is None else grey
    return Labels(title, names, groups, None, grey)


def _numbers(values: Values) -> Values:
    """Return objects that are all numbers, or missing, as numbers: pandas' Int64 with an NA."""
    if values.dtype.kind != "O" or values.ndim != 1:
        return values
    lost = _lost(values)
    kinds = {type(x) for x in values[~lost]}
    if lost.all() or bool in kinds or not all(issubclass(t, Real) for t in kinds):
        return values
    found = np.full(len(values), np.nan)
    found[~lost] = values[~lost].astype(np.float64)
    return found


def _lost(values: Values) -> Values:
    """Tell which rows have no label: NaN, NaT, None, pandas' NA."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    return np.array([absent(x) for x in values], bool)


def _sortable(values: Values) -> Values:
    """Return labels that have an order: objects need not, their texts do."""
    return values.astype(str) if values.dtype.kind == "O" else values


def _named(label: Any) -> str:
    whole = isinstance(label, np.floating) and float(label).is_integer()
    return short(int(label) if whole else label) or "(empty)"


def _largest(names: list[str], which: Values) -> tuple[list[str], Values]:
    """Return the largest classes, as many as there are looks, with one of all others."""
    counts = np.bincount(which, minlength=len(names))
    kept = np.sort(np.argsort(-counts, kind="stable")[: LOOKS - 1])
    to = np.full(len(names), len(kept))
    to[kept] = np.arange(len(kept))
    return [*(names[j] for j in kept), f"{len(names) - len(kept)} others"], to[which]


def draw_points(ax: Axes, rows: Values, labels: Labels | None, dimmed: bool = False) -> list[Any]:
    """Draw rows of two numbers; return the points, those of each group for themselves.

    Very many are mixed, whatever their groups, so that none lies over the others.
    """
    n = len(rows)
    size = 18 * min(1.0, (200 / max(n, 1)) ** 0.4)
    style: dict[str, Any] = {"s": max(size, 1.5), "zorder": 3}
    # A million points would make a vector file of a million marks. Edges part few of them, and
    # hide many.
    edges = {"linewidths": 0.3, "edgecolors": "white"} if n <= 1000 else {"linewidths": 0}
    style |= {**edges, "rasterized": n > 10_000}
    style |= {"alpha": 0.45} if dimmed else {"alpha": 0.7} if n > 1000 else {}
    if labels is None:
        return [ax.scatter(*rows.T, color=GREY if dimmed else BLUE, **style)]
    if labels.numbers is None and n > CROWD:
        return _crowd(ax, rows, labels, style)
    drawn = []
    if labels.numbers is not None:
        known = labels.which < 0
        c = labels.numbers[known]
        ends = c[np.isfinite(c)]
        scale = {"vmin": ends.min(), "vmax": ends.max()} if len(ends) else {}
        drawn.append(ax.scatter(*rows[known].T, c=c, cmap="viridis", **scale, **style))
    sizes = np.array([(labels.which == group).sum() for group in range(len(labels.names))])
    for group, text in enumerate(labels.names):
        at = labels.which == group
        if labels.numbers is None or at.any():
            # Small classes lie over large ones, and rows of no class under all.
            above = 3 + 0.09 * float((sizes > sizes[group]).sum()) / len(sizes)
            look = style | labels.style(group)
            look["zorder"] = 2.9 if group == labels.grey else above
            drawn.append(ax.scatter(*rows[at].T, label=text, **look))
    return drawn


def _crowd(ax: Axes, rows: Values, labels: Labels, style: dict[str, Any]) -> list[Any]:
    """Draw rows of all classes mixed, so that none lies over the others; by marker, if several."""
    looks = [labels.style(group) for group in range(len(labels.names))]
    colours = np.array([look["color"] for look in looks])
    markers = np.array([look["marker"] for look in looks])
    order = np.random.default_rng(0).permutation(len(rows))
    if labels.grey is not None:  # rows that are of no class lie under the others
        order = order[np.argsort(labels.which[order] != labels.grey, kind="stable")]
    which, drawn = labels.which[order], []
    for marker in dict.fromkeys(markers):
        at = markers[which] == marker
        c = colours[which[at]]
        drawn.append(ax.scatter(*rows[order[at]].T, c=c, marker=marker, **style))
    return drawn


def draw_key(axes: list[Axes], labels: Labels | None, marks: list[Any], place: str) -> Any:
    """Name the classes in a legend, or the numbers along a bar of colours; return it."""
    if labels is None:
        return None
    figure = axes[0].figure
    if labels.numbers is not None:
        bar = figure.colorbar(marks[0], ax=axes, aspect=30, **_calendar(labels))
        bar.outline.set_visible(False)
        bar.set_label(labels.title, parse_math=False)
        if bar.solids is not None:
            bar.solids.set_alpha(1)
        return bar
    outside = place.startswith("outside")
    host = figure if outside else axes[0]
    below = "lower" in place and outside
    columns = min(len(labels.names), 8) if below else 1 + (len(labels.names) - 1) // 20
    style: dict[str, Any] = {"ncols": columns, "frameon": not outside, "framealpha": 0.8}
    style |= {"edgecolor": "none", "handletextpad": 0.2, "columnspacing": 1.0}
    style |= {"fontsize": "small", "title_fontsize": "small"}
    dot, thin = matplotlib("lines").Line2D, {"linestyle": "", "markeredgewidth": 0}
    dots = [
        dot([], [], markersize=5, **thin, **labels.style(group))
        for group in range(len(labels.names))
    ]
    # Numbered at first: a legend takes a name that begins with _ for none.
    numbers = [str(group) for group in range(len(dots))]
    key = host.legend(dots, numbers, title=labels.title or None, loc=place, **style)
    # Several columns of long names would leave no room for the points.
    room = LONGEST if below or columns == 1 else LONGEST // columns
    for text, name in zip(key.get_texts(), labels.names, strict=True):
        text.set(text=short(name, room), parse_math=False)
    key.get_title().set_parse_math(False)
    return key


def _calendar(labels: Labels) -> dict[str, Any]:
    """Return how dates are written along a bar of colours."""
    if not labels.dates:
        return {}
    dates = matplotlib("dates")
    ticks = dates.AutoDateLocator()
    return {"ticks": ticks, "format": dates.ConciseDateFormatter(ticks)}

"""Names of places along the horizontal axis, a row for each, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mercer.plotting.panels import Axes, matplotlib, points_of
from mercer.plotting.points import INK

SIZE = "small"
MOST = 0.6


def row_height(ax: Axes, count: int) -> float:
    """Return the height of a row of text as a share of the height of the Axes."""
    size = matplotlib("font_manager").FontProperties(size=SIZE).get_size_in_points()
    return float(min(1.5 * size / max(points_of(ax)[1], 1.0), MOST / max(count, 1)))


def draw_flags(
    ax: Axes, places: Sequence[float], texts: Sequence[str], colour: str = INK
) -> list[tuple[Any, Any]]:
    """Draw a line at each place and its name at the top of it; return lines and names."""
    step = row_height(ax, len(places))
    middle = ax.get_window_extent().x0 + ax.get_window_extent().width / 2
    both = ax.get_xaxis_transform()
    shift = {"xycoords": both, "textcoords": "offset points", "va": "center", "fontsize": SIZE}
    style = {"color": colour, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 4}
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.2, "alpha": 0.85}
    drawn = []
    for i, (x, text) in enumerate(zip(places, texts, strict=True)):
        y = 1 - (i + 0.6) * step
        (line,) = ax.plot([x, x], [0, y], transform=both, scalex=False, scaley=False, **style)
        left = ax.transData.transform((x, 0))[0] > middle
        side = {"ha": "right", "xytext": (-4, 0)} if left else {"ha": "left", "xytext": (4, 0)}
        note = ax.annotate(
            text, (x, y), color=colour, bbox=paper, zorder=5, parse_math=False, **shift, **side
        )
        drawn.append((line, note))
    return drawn

"""Names of places along the horizontal axis, a row for each, so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mercer.plotting.panels import Axes, points_of
from mercer.plotting.points import INK
from mercer.plotting.spread import extent, font_size

BESIDE = 4.0
MOST = 0.6


def row_height(ax: Axes, count: int) -> float:
    """Return the height of a row of text as a share of the height of the Axes."""
    return min(1.5 * font_size("small") / max(points_of(ax)[1], 1.0), MOST / max(count, 1))


def draw_flags(
    ax: Axes, places: Sequence[float], texts: Sequence[str], colour: str = INK
) -> list[tuple[Any, Any]]:
    """Draw a line at each place and its name at the top of it; return lines and names.

    A name is on the right of its line, on the left where there is no room, and in the frame.
    """
    step, width, both = row_height(ax, len(places)), points_of(ax)[0], ax.get_xaxis_transform()
    size = min(font_size("small"), step * points_of(ax)[1] / 1.2)
    style = {"color": colour, "linewidth": 0.9, "linestyle": (0, (4, 2)), "zorder": 4}
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}
    note = {"xycoords": both, "textcoords": "offset points", "va": "center", "ha": "left"}
    note |= {"fontsize": size, "color": colour, "bbox": paper, "zorder": 5, "parse_math": False}
    drawn = []
    for i, (x, text) in enumerate(zip(places, texts, strict=True)):
        y = 1 - (i + 0.6) * step
        (line,) = ax.plot([x, x], [0, y], transform=both, scalex=False, scaley=False, **style)
        at = float(ax.transAxes.inverted().transform(ax.transData.transform((x, 0)))[0]) * width
        long = extent(text, size)[0]
        shift = BESIDE if at + BESIDE + long < width else -BESIDE - long
        shift = min(max(shift, 2 - at), max(width - at - long, 2 - at))
        name = ax.annotate(text, (x, y), xytext=(shift, 0), **note)
        # Names are in the frame: the layout need not make room for them.
        name.set_in_layout(False)
        drawn.append((line, name))
    return drawn

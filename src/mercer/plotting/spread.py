"""Names beside the tips of arrows, none over another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mercer.plotting.panels import Axes, Values, matplotlib

DISTANCES = (4.0, 9.0, 15.0, 23.0, 33.0, 45.0)
TURNS = tuple(math.radians(t) for t in (0, 18, -18, 38, -38, 60, -60, 85, -85, 115, -115))


class Box(NamedTuple):
    """A rectangle, in points."""

    left: float
    low: float
    right: float
    high: float

    def meets(self, other: Box) -> bool:
        """Tell whether two rectangles overlap."""
        across = self.left < other.right and other.left < self.right
        return across and self.low < other.high and other.low < self.high

    def within(self, width: float, height: float) -> bool:
        """Tell whether it is in an Axes of that size."""
        return self.left >= 0 and self.low >= 0 and self.right <= width and self.high <= height


def extent(text: str, size: float) -> tuple[float, float]:
    """Return width and height of a text in points."""
    font = matplotlib("font_manager").FontProperties(size=size)
    # Another letter beside it: a text of spaces alone has no path.
    path = matplotlib("textpath").TextPath((0, 0), text.replace("$", r"\$") + ".", prop=font)
    return float(path.get_extents().width), 1.25 * size


def places(
    tips: Values, texts: list[str], size: float, frame: tuple[float, float], origin: Values
) -> list[tuple[float, float] | None]:
    """Return the middle of each text, beside its tip and over no other; None: there is no room.

    All in points from the lower left corner of a frame of that width and height. Texts come in
    the order of their weight: the first has the first choice.
    """
    taken = [Box(x - 2, y - 2, x + 2, y + 2) for x, y in tips]
    found: list[tuple[float, float] | None] = []
    for (x, y), text in zip(tips, texts, strict=True):
        width, height = extent(text, size)
        outward = math.atan2(y - origin[1], x - origin[0])
        place = None
        for reach, turn in ((r, t) for r in DISTANCES for t in TURNS):
            c, s = math.cos(outward + turn), math.sin(outward + turn)
            # The middle lies so far out that the nearest edge of the box is at that distance.
            mx, my = x + c * reach + width / 2 * _sign(c), y + s * reach + height / 2 * s
            box = Box(mx - width / 2, my - height / 2, mx + width / 2, my + height / 2)
            if box.within(*frame) and not any(box.meets(other) for other in taken):
                taken.append(box)
                place = (mx, my)
                break
        found.append(place)
    return found


def _sign(c: float) -> float:
    """Return on which side of a tip a text lies; above and below it, in the middle."""
    return float(np.clip(2.5 * c, -1, 1))


def draw_names(ax: Axes, tips: Values, texts: list[str], size: float, **style: Any) -> list[Any]:
    """Write a name beside each tip, given in data, where there is room; return those written."""
    box = ax.get_window_extent()
    to_points = 72 / ax.get_figure(root=True).dpi
    corner = np.array([box.x0, box.y0])
    at = (ax.transData.transform(tips) - corner) * to_points
    origin = (ax.transData.transform((0.0, 0.0)) - corner) * to_points
    frame = (box.width * to_points, box.height * to_points)
    drawn = []
    for text, tip, start, middle in zip(
        texts, tips, at, places(at, texts, size, frame, origin), strict=True
    ):
        if middle is None:
            continue
        far = math.dist(start, middle) > 30 + extent(text, size)[0] / 2
        leader = {"arrowstyle": "-", "linewidth": 0.5, "color": "#8c8c8c"} if far else None
        shift = (middle[0] - start[0], middle[1] - start[1])
        note = ax.annotate(
            text,
            tip,
            xytext=shift,
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            arrowprops=leader,
            parse_math=False,
            **style,
        )
        drawn.append(note)
    return drawn

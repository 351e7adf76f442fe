"""Names beside the tips of arrows, none over another."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mercer.plotting.panels import Axes, Values, matplotlib

DISTANCES = (4.0, 9.0, 15.0, 23.0, 33.0, 45.0)
ANGLES = tuple(math.radians(t) for t in range(0, 360, 15))
SHIFTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
# Points of distance that it is worth to lie outward of a tip, and to need no line to it.
OUTWARD, FAR = 6.0, 8.0


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

    def meets_any(self, others: list[Box]) -> bool:
        """Tell whether it overlaps one of several."""
        return any(self.meets(other) for other in others)

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return (self.left + self.right) / 2, (self.low + self.high) / 2

    def away(self, x: float, y: float) -> float:
        """Return the distance of a point."""
        return math.hypot(
            max(self.left - x, 0, x - self.right), max(self.low - y, 0, y - self.high)
        )

    def within(self, width: float, height: float) -> bool:
        """Tell whether it is in an Axes of that size."""
        return self.left >= 0 and self.low >= 0 and self.right <= width and self.high <= height


def font_size(name: str) -> float:
    """Return a size by its name, as "small", in points."""
    return float(matplotlib("font_manager").FontProperties(size=name).get_size_in_points())


def extent(text: str, size: float) -> tuple[float, float]:
    """Return width and height of a text in points."""
    font = matplotlib("font_manager").FontProperties(size=size)
    # Another letter beside it: a text of spaces alone has no path.
    path = matplotlib("textpath").TextPath((0, 0), text.replace("$", r"\$") + ".", prop=font)
    return float(path.get_extents().width), 1.25 * size


def places(
    tips: Values,
    texts: list[str],
    size: float,
    frame: tuple[float, float],
    origin: Values,
    taken: list[Box],
) -> list[tuple[float, float] | None]:
    """Return the middle of each text, beside its tip and over no other; None: there is no room.

    All in points from the lower left corner of a frame of that width and height. Texts come in
    the order of their weight: the first has the first choice. Nothing is written over what is
    taken.
    """
    heads = [Box(x - 3, y - 3, x + 3, y + 3) for x, y in tips]
    shafts = [Box(x - 1, y - 1, x + 1, y + 1) for tip in tips for x, y in _along(origin, tip)]
    taken = [*taken]
    found: list[tuple[float, float] | None] = []
    for (x, y), text in zip(tips, texts, strict=True):
        boxes = [
            box
            for box in _around(x, y, extent(text, size), math.atan2(y - origin[1], x - origin[0]))
            if box.within(*frame) and not box.meets_any(taken)
        ]
        # Beside all arrows at best, over a shaft where it must be.
        for others in ([*heads, *shafts], heads, []):
            free = [box for box in boxes if not box.meets_any(others)]
            if free:
                break
        taken += free[:1]
        found.append(free[0].middle if free else None)
    return found


def _along(start: Values, tip: Values) -> Values:
    """Return points of an arrow, five points apart."""
    count = max(2, int(math.dist(start, tip) / 5))
    points: Values = start + np.linspace(0, 1, count)[:, None] * (tip - start)
    return points


def _around(x: float, y: float, size: tuple[float, float], outward: float) -> list[Box]:
    """Return places for a text around a tip, the best first: near it, and outward."""
    width, height = size
    middles = []
    for reach in DISTANCES:
        for angle in ANGLES:
            c, s = math.cos(angle), math.sin(angle)
            # So far out that the nearest edge is about at that distance.
            side = min(max(2.5 * c, -1.0), 1.0)
            middles.append((x + c * reach + width / 2 * side, y + s * (reach + height / 2)))
        for up in (-1, 1):
            middles += [(x + a * width / 2, y + up * (reach + height / 2)) for a in SHIFTS]

    def cost(middle: tuple[float, float]) -> float:
        turn = math.atan2(middle[1] - y, middle[0] - x) - outward
        return _box(middle, size).away(x, y) + OUTWARD * (1 - math.cos(turn))

    return [_box(middle, size) for middle in sorted(middles, key=cost)]


def _box(middle: tuple[float, float], size: tuple[float, float]) -> Box:
    (x, y), (width, height) = middle, size
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def draw_names(
    ax: Axes, tips: Values, texts: list[str], size: float, around: list[Any], **style: Any
) -> list[Any]:
    """Write a name beside each tip, given in data, where there is room; return those written.

    `around` are things drawn already that no name may cover.
    """
    box = ax.get_window_extent()
    to_points = 72 / ax.figure.figure.dpi
    corner = np.array([box.x0, box.y0])
    at = (ax.transData.transform(tips) - corner) * to_points
    origin = (ax.transData.transform((0.0, 0.0)) - corner) * to_points
    frame = (box.width * to_points, box.height * to_points)
    taken = []
    for other in around:
        its = (other.get_window_extent().get_points() - corner) * to_points
        taken.append(Box(*its.ravel()))
    middles = places(at, texts, size, frame, origin, taken)
    drawn = []
    for text, tip, start, middle in zip(texts, tips, at, middles, strict=True):
        if middle is None:
            continue
        far = _box(middle, extent(text, size)).away(*start) > FAR
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

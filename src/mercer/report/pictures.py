"""Rows as images, written into the page itself."""

from __future__ import annotations

import base64
import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.extras import extra

Pixels = npt.NDArray[np.uint8]
# A larger image is thinned out; so many pixels of a side are enough for a look.
SIDE = 192


def check_shape(shape: Any, d: int) -> tuple[int, ...] | None:
    """Return (height, width) or (height, width, 3), or refuse what does not hold d pixels."""
    if shape is None:
        return None
    sides = tuple(int(side) for side in shape)
    plain = len(sides) == 2 or (len(sides) == 3 and sides[2] in (1, 3))
    if not plain or min(sides, default=0) < 1 or math.prod(sides) != d:
        raise ValueError(
            f"image_shape={shape!r} must be (height, width), or (height, width, 3) for colours, "
            f"of {d} numbers in all, as many as a row has."
        )
    return sides[:2] if sides[2:] == (1,) else sides


def levels(rows: npt.NDArray[Any], low: float, high: float) -> Pixels:
    """Return rows as bytes between black and white."""
    with np.errstate(all="ignore"):
        parts = (np.asarray(rows, np.float64) - low) / (high - low if high > low else 1.0)
    return (np.clip(np.nan_to_num(parts), 0.0, 1.0) * 255).round().astype(np.uint8)


def diverging(row: npt.NDArray[Any]) -> Pixels:
    """Return signed numbers as bytes: the middle grey is zero."""
    most = float(np.max(np.abs(row), initial=0.0))
    return levels(row, -most, most)


def png(pixels: Pixels, shape: tuple[int, ...]) -> str:
    """Return an image as a data address."""
    image = extra("PIL.Image", "report", "Images of a report are written with")
    step = max(1, -(-max(shape[:2]) // SIDE))
    picture = np.ascontiguousarray(pixels.reshape(shape)[::step, ::step])
    buffer = io.BytesIO()
    image.fromarray(picture).save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

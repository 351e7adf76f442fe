"""Images as rows of numbers."""

from __future__ import annotations

import math
import os
from numbers import Integral
from typing import Any

import numpy as np

from mercer.arrays import is_foreign
from mercer.data import require_present


def array_shape(X: Any) -> tuple[int, ...]:
    """Return the shape of an array-like; () for a path."""
    if isinstance(X, (str, os.PathLike)):
        return ()
    return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)


def check_image_shape(shape: Any) -> None:
    """Raise unless this is the shape of an image, or None."""
    if shape is None or (
        len(shape) and all(isinstance(side, Integral) and int(side) >= 1 for side in shape)
    ):
        return
    raise ValueError(f"image_shape={shape!r} must be positive integers, such as (28, 28).")


def flatten_images(X: Any, image_shape: Any) -> Any:
    """Return images of a shape as rows, and rows as they are."""
    shape = array_shape(X)
    if len(shape) <= 2 and image_shape is None:
        return X
    if image_shape is None:
        raise ValueError(
            f"Found array with dim {len(shape)}, and rows have dim 2: X has shape {shape}. For "
            f"images set image_shape={shape[1:]}."
        )
    image, d = tuple(image_shape), math.prod(image_shape)
    if shape == image and shape[1:] not in (image, (d,)):
        raise ValueError(f"X has shape {shape}, that of one image: pass X[None], an array of one.")
    if len(shape) > 1 and shape[1:] not in (image, (d,)):
        raise ValueError(
            f"X has shape {shape}, and images have {image}: pass images of that shape, or rows of "
            f"{d} columns."
        )
    if shape[1:] != image:
        return X
    require_present(X)
    return (X if is_foreign(X) else np.asarray(X)).reshape((shape[0], d))


def refuse_images(estimator: Any, X: Any) -> Any:
    """Return X; raise if it is an array of images, and say how to make rows of them."""
    shape = getattr(X, "shape", ())
    if len(shape) > 2:
        n, *sides = (int(side) for side in shape)
        raise ValueError(
            f"X has shape {(n, *sides)}, and {type(estimator).__name__} takes one row per image: "
            f"found array with dim {len(shape)}, expected <= 2. Pass X.reshape({n}, -1)."
        )
    return X


def image_sides(image_shape: Any, d: int) -> tuple[int, ...]:
    """Return (height, width) or (height, width, 3) of images with d numbers; None: a square."""
    if image_shape is None:
        side = math.isqrt(d)
        if side * side != d:
            raise ValueError(
                f"A row of {d} numbers is not a square image: pass image_shape, such as (28, 28)."
            )
        return side, side
    sides = tuple(int(side) for side in image_shape)
    valid = len(sides) == 2 or (len(sides) == 3 and sides[2] in (1, 3))
    if not valid or min(sides) < 1 or math.prod(sides) != d:
        raise ValueError(
            f"image_shape={image_shape!r} has {math.prod(sides)} pixels, and a row has {d} "
            f"numbers: pass (height, width), or (height, width, 3) for color images."
        )
    return sides

"""Images as rows."""

from __future__ import annotations

import math
import os
from numbers import Integral
from typing import Any

import numpy as np

from mercer.arrays import is_foreign
from mercer.data import require_present


def shape_of(X: Any) -> tuple[int, ...]:
    """Return the shape of an array or of what can be made one; none is that of a path."""
    if isinstance(X, (str, os.PathLike)):
        return ()
    return tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)


def check_image_shape(shape: Any) -> None:
    """Refuse what is not the shape of an image; None is of rows."""
    if shape is None or (
        len(shape) and all(isinstance(s, Integral) and int(s) >= 1 for s in shape)
    ):
        return
    raise ValueError(f"image_shape={shape!r} must be whole numbers, as (28, 28).")


def as_rows(X: Any, image_shape: Any) -> Any:
    """Return images of that shape as rows; rows as they are."""
    shape = shape_of(X)
    if len(shape) <= 2 and image_shape is None:
        return X
    if image_shape is None:
        raise ValueError(
            f"Found array with dim {len(shape)}, and rows have dim 2: X has shape {shape}. For "
            f"images set image_shape={shape[1:]}."
        )
    wanted, d = tuple(image_shape), math.prod(image_shape)
    if shape == wanted and shape[1:] not in (wanted, (d,)):
        raise ValueError(f"X has shape {shape}, that of one image: pass X[None], an array of one.")
    if len(shape) > 1 and shape[1:] not in (wanted, (d,)):
        raise ValueError(
            f"X has shape {shape}, and images are {wanted}: pass images of that shape, or rows "
            f"of {d} columns."
        )
    if shape[1:] != wanted:
        return X
    require_present(X)
    return (X if is_foreign(X) else np.asarray(X)).reshape((shape[0], d))


def no_images(estimator: Any, X: Any) -> Any:
    """Refuse a stack of images, which rows are not, and say how to make rows of it."""
    shape = getattr(X, "shape", ())
    if len(shape) > 2:
        n, *sides = (int(side) for side in shape)
        raise ValueError(
            f"X has shape {(n, *sides)}, and {type(estimator).__name__} takes one row of numbers "
            f"an image: found array with dim {len(shape)}, expected <= 2. Pass "
            f"X.reshape({n}, -1)."
        )
    return X

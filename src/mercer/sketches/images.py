"""Sketches of images: fewer pixels, gray or in color."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.checks import require
from mercer.sketches.base import SketchMap
from mercer.sketches.matrix import FixedMatrix, SketchMatrix


class ImageMap(SketchMap):
    """A map of the pixels of an image, the same for every channel."""

    shape: Any
    channels: str

    @abstractmethod
    def axes(self, height: int, width: int) -> Any:
        """Return the sparse matrix of one channel, pixels to pixels."""

    def check(self) -> None:
        expected = "(height, width), or with the number of channels (height, width, channels)"
        require(self, "shape", _sizes(self.shape, (2, 3)), expected)
        require(self, "channels", self.channels in ("last", "first"), 'one of "last" and "first"')

    def matrix_for(self, d: int, rng: np.random.Generator | None = None) -> SketchMatrix:
        self.check()
        height, width, channels = _image(self.shape)
        if height * width * channels != d:
            product = " × ".join(str(int(size)) for size in self.shape)
            raise ValueError(
                f"{self!r}: images of shape {product} have {height * width * channels} pixels, "
                f"but the rows have {d} columns. Pass the shape of the images."
            )
        factors = self.axes(height, width), sp.eye_array(channels)
        return FixedMatrix(sp.kron(*(factors if self.channels == "last" else factors[::-1])))


@dataclass(eq=False, repr=False)
class Resize(ImageMap):
    r"""Images resized by area: every new pixel is the mean of the pixels it covers.

    Multiplied by :math:`\sqrt{d/q}`, without which eigenvalues are too small by d/q: Marukatat
    (2022), Algorithm 3, corrected. Pixels on a border are weighted by the area covered. Dot
    products are exact for constant images, and nearly exact for smooth ones.

    Parameters
    ----------
    shape : (int, int) or (int, int, int)
        Height and width of the images, and the number of channels if there are several.
    to : (int, int)
        New height and width, at most the old.
    channels : {"last", "first"}
        Whether a row holds the colors of a pixel side by side, or one image per color.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import Resize
    >>> y, x = np.mgrid[:32, :24] / 32
    >>> X = np.stack([np.cos(x + y), np.exp(x * y)]).reshape(2, -1)
    >>> Y = Resize((32, 24), (8, 6)).fit_transform(X)
    >>> Y.shape
    (2, 48)
    >>> bool(np.allclose(Y @ Y.T, X @ X.T, rtol=5e-3))
    True
    """

    shape: Any
    to: Any
    _: KW_ONLY
    channels: str = "last"

    def check(self) -> None:
        super().check()
        require(self, "to", _sizes(self.to, (2,)), "(height, width)")
        smaller = all(new <= old for new, old in zip(self.to, self.shape[:2], strict=True))
        height, width, _ = _image(self.shape)
        require(self, "to", smaller, f"at most the image size {height} × {width}")

    def axes(self, height: int, width: int) -> Any:
        h, w = (int(size) for size in self.to)
        factor = math.sqrt(height * width / (h * w))
        return factor * sp.kron(_areas(height, h), _areas(width, w))


@dataclass(eq=False, repr=False)
class PixelGrouping(ImageMap):
    r"""Groups of neighboring pixels: each block of an image becomes one pixel.

    A block of m pixels becomes :math:`\sqrt m` times its mean, or its top-left pixel:
    :math:`\sqrt{d/q}` for blocks of equal size, less for smaller ones at the right and at the
    bottom. Marukatat (2022), §4.2 and Fig. 5c, with the factor. Dot products of images that are
    constant on the blocks are exact.

    Parameters
    ----------
    shape, channels
        As in `Resize`.
    block : int or (int, int)
        Height and width of a block.
    by : {"mean", "corner"}
        The value of a block: the mean of its pixels, or its top-left pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.sketches import PixelGrouping
    >>> image = np.array([[1.0, 1.0, 5.0], [1.0, 1.0, 5.0]])
    >>> PixelGrouping((2, 3), 2).fit_transform(image.reshape(1, -1)).round(3)
    array([[2.   , 7.071]])
    """

    shape: Any
    block: Any = 2
    _: KW_ONLY
    by: str = "mean"
    channels: str = "last"

    def check(self) -> None:
        super().check()
        valid = _sizes(self.block, (2,)) or _sizes((self.block,), (1,))
        require(self, "block", valid, "an integer of at least 1, or (height, width)")
        require(self, "by", self.by in ("mean", "corner"), 'one of "mean" and "corner"')

    def axes(self, height: int, width: int) -> Any:
        h, w = self.block if np.iterable(self.block) else (self.block, self.block)
        corner = self.by == "corner"
        return sp.kron(_groups(height, int(h), corner), _groups(width, int(w), corner))


def _areas(old: int, new: int) -> Any:
    """Return the matrix, old × new, of means over equal parts of a line of pixels."""
    pixel, part = np.arange(old)[:, None], np.arange(new)[None, :]
    # In units of 1/new of a pixel all ends are integers: nothing is lost to rounding.
    low = np.maximum(pixel * new, part * old)
    high = np.minimum((pixel + 1) * new, (part + 1) * old)
    return sp.csr_array(np.maximum(high - low, 0) / old)


def _groups(old: int, size: int, corner: bool) -> Any:
    """Return the matrix that sends runs of `size` pixels each to √m times one value."""
    pixel = np.arange(old)
    group = pixel // size
    count = np.bincount(group)[group]
    value = np.where(pixel % size == 0, np.sqrt(count), 0.0) if corner else 1 / np.sqrt(count)
    matrix = sp.csr_array((value, (pixel, group)))
    matrix.eliminate_zeros()
    return matrix


def _sizes(value: Any, lengths: tuple[int, ...]) -> bool:
    """Return whether a value is a sequence of positive integers, of one of the lengths."""
    sizes = list(value) if np.iterable(value) else []
    whole = all(isinstance(s, (int, np.integer)) and not isinstance(s, bool) for s in sizes)
    return len(sizes) in lengths and whole and min(sizes) >= 1


def _image(shape: Any) -> list[int]:
    """Return height, width and channels."""
    return [int(size) for size in (*shape, 1)[:3]]

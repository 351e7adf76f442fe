"""Rows as images: components, reconstructions, and the same images in several states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.messages import percent
from mercer.plotting.models import Slices, dense, shares, split
from mercer.plotting.panels import (
    Axes,
    Values,
    chosen,
    figure,
    matplotlib,
    points_of,
    settle,
    short,
)
from mercer.plotting.points import INK

FIRST = 10
GAP = 0.07


class GalleryDisplay:
    """Images in rows, each row with its title: eigenfaces, reconstructions, noise and its removal.

    Make it with `from_estimator` (components), `from_reconstructions` or `from_images`.

    Parameters
    ----------
    images : mapping of str to array of shape (m, height, width) or (m, height, width, 3)
        Images in grey or colour, by the title of their row.
    captions : mapping of str to sequence of str, or None
        A line below each image of a row.
    limits : (float, float), "symmetric" or None
        Values of black and white. "symmetric": those of each image, zero in the middle. None:
        the least and the largest of the first row.
    across : int or None
        Where there is one title: how many images are side by side; None: at most ten.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    images_ : list of list of AxesImage
        By row.
    titles_, captions_ : list of Text

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.plotting import GalleryDisplay
    >>> X = load_digits().data
    >>> display = GalleryDisplay.from_reconstructions(PCA(10).fit(X), X, rows=5)
    >>> list(display.images)
    ['original', '10 components']
    """

    def __init__(
        self,
        images: Mapping[str, Any],
        *,
        captions: Mapping[str, Sequence[str]] | None = None,
        limits: Any = None,
        across: int | None = None,
    ) -> None:
        self.images = images
        self.captions = captions
        self.limits = limits
        self.across = across

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        image_shape: Sequence[int] | None = None,
        *,
        components: Any = None,
        across: int | None = None,
        cmap: Any = "gray",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the components of a fitted linear model as images: eigenfaces.

        Parameters
        ----------
        estimator : fitted model
            PCA, ours or scikit-learn's, what is built around one, or a pipeline that ends in it.
        image_shape : (height, width), (height, width, 3) or None
            None: the model's own, else a square.
        components : int, iterable of int or None
            How many of the first, or which ones, counted from 0. None: the first ten.
        across : int or None
            How many images are side by side.
        cmap : str or Colormap
            Colours from negative to positive.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        GalleryDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from mercer import PCA
        >>> from mercer.plotting import GalleryDisplay
        >>> display = GalleryDisplay.from_estimator(PCA(4).fit(load_digits().data), (8, 8))
        >>> [text.get_text() for text in display.captions_]
        ['1 (14.8 %)', '2 (13.6 %)', '3 (11.7 %)', '4 (8.4 %)']
        """
        axes = split(estimator)[1]
        if not hasattr(axes, "components_"):
            raise TypeError(
                f"This {type(axes).__name__} has no components_: it is not fitted, or not linear. "
                f"Fit it, or draw its reconstructions of images with from_reconstructions."
            )
        V, ratio = to_numpy(axes.components_), shares(estimator)
        drawn = chosen(components, len(V), FIRST)
        said = ["" if ratio is None else f" ({percent(ratio[j], 1)})" for j in drawn]
        texts = [f"{j + 1}{share}" for j, share in zip(drawn, said, strict=True)]
        images = as_images(V[drawn], _shape(estimator, image_shape))
        made = cls({"": images}, captions={"": texts}, limits="symmetric", across=across)
        return made.plot(ax, cmap=cmap)

    @classmethod
    def from_reconstructions(
        cls,
        estimator: Any,
        X: Any,
        image_shape: Sequence[int] | None = None,
        *,
        rows: Any = FIRST,
        cmap: Any = "gray",
        ax: Axes | None = None,
    ) -> Self:
        """Draw images, and below them what a fitted model keeps of them.

        Parameters
        ----------
        estimator : fitted model
            With `reconstruct`, or `transform` and `inverse_transform`; or a pipeline of such.
        X : array, sparse matrix, DataFrame, path or Source
            Images as rows.
        image_shape : (height, width), (height, width, 3) or None
            None: the model's own, else a square.
        rows : int or sequence of int
            How many of the first, or which ones, counted from 0.
        cmap : str or Colormap
            Colours of images in grey.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        GalleryDisplay
        """
        given = Slices(X)
        if isinstance(rows, Integral):
            wanted = list(range(min(int(rows), given.shape[0])))
        else:
            wanted = [int(i) for i in rows]
        if not wanted or not all(0 <= i < given.shape[0] for i in wanted):
            raise ValueError(
                f"rows={rows!r}, but there are {given.shape[0]}: name how many of the first, or "
                f"which of 0 to {given.shape[0] - 1}."
            )
        taken = np.concatenate([dense(given.read(i, i + 1)) for i in wanted])
        kept, shape = _kept(estimator, given, wanted), _shape(estimator, image_shape)
        k = getattr(split(estimator)[1], "n_components_", None)
        title = f"{k} components" if k is not None and k != 1 else "reconstruction"
        images = {"original": as_images(taken, shape), title: as_images(kept, shape)}
        return cls(images).plot(ax, cmap=cmap)

    @classmethod
    def from_images(
        cls,
        images: Mapping[str, Any] | Any,
        image_shape: Sequence[int] | None = None,
        *,
        captions: Mapping[str, Sequence[str]] | None = None,
        limits: Any = None,
        across: int | None = None,
        cmap: Any = "gray",
        ax: Axes | None = None,
    ) -> Self:
        """Draw images by the titles of their rows: original, noisy, denoised.

        Parameters
        ----------
        images : mapping of str to array, or array
            Images, (m, height, width) or (m, height, width, 3), or as rows of numbers.
        image_shape : (height, width), (height, width, 3) or None
            Shape of images that are rows of numbers; None: a square.
        captions, limits, across
            As in the class.
        cmap : str or Colormap
            Colours of images in grey.
        ax : Axes or None
            None makes a figure.

        Returns
        -------
        GalleryDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from mercer.plotting import GalleryDisplay
        >>> clean = np.zeros((3, 16))
        >>> noisy = clean + np.random.default_rng(0).normal(size=clean.shape)
        >>> display = GalleryDisplay.from_images({"original": clean, "noisy": noisy})
        >>> [len(row) for row in display.images_]
        [3, 3]
        """
        if not isinstance(images, Mapping):
            images = {"": images}
        shaped = {
            title: as_images(dense(rows), None if image_shape is None else tuple(image_shape))
            for title, rows in images.items()
        }
        made = cls(shaped, captions=captions, limits=limits, across=across)
        return made.plot(ax, cmap=cmap)

    def plot(self, ax: Axes | None = None, *, cmap: Any = "gray") -> Self:
        """Draw the images.

        Parameters
        ----------
        ax : Axes or None
            None makes a figure.
        cmap : str or Colormap
            Colours of images in grey.

        Returns
        -------
        GalleryDisplay
            Itself.
        """
        lines = self._lines()
        height, width = lines[0][1][0].shape[:2]
        most = max(len(images) for _, images, _ in lines)
        below = 0.24 if any(texts for _, _, texts in lines) else 0.0
        step = (height * (1 + GAP + below), width * (1 + GAP))
        if ax is None:
            tile = min(1.0, 9.0 / most)
            tall = tile * step[0] / step[1]
            ax = figure(
                tile * most + 0.2 + 0.9 * any(t for t, _, _ in lines), tall * len(lines) + 0.1
            )
            ax = ax.subplots()
        self.images_, marks = [], []
        for i, (_, images, texts) in enumerate(lines):
            drawn = [self._tile(ax, image, i, j, step, cmap) for j, image in enumerate(images)]
            self.images_.append(drawn)
            marks += [(i, j, text) for j, text in enumerate(texts)]
        ax.set(xlim=(-0.02 * width, most * step[1]), ylim=(len(lines) * step[0], -0.02 * height))
        ax.set_aspect("equal")
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        self._write([title for title, _, _ in lines], marks, step, (height, width))
        return self

    def _lines(self) -> list[tuple[str, list[Values], list[str]]]:
        """Return title, images and captions of each line of the gallery."""
        rows = {title: list(np.asarray(x)) for title, x in self.images.items()}
        shapes = {image.shape for images in rows.values() for image in images}
        if not shapes or not all(rows.values()):
            raise ValueError("images is empty: give one image at least for every title.")
        if len(shapes) > 1:
            raise ValueError(f"images are of different shapes, {sorted(shapes)}: one is needed.")
        (shape,) = shapes
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise ValueError(
                f"images have shape {shape}; it is (height, width), in colour (height, width, 3)."
            )
        captions = {title: list((self.captions or {}).get(title, ())) for title in rows}
        for title, texts in captions.items():
            if texts and len(texts) != len(rows[title]):
                raise ValueError(
                    f"{title!r} has {len(rows[title])} images, and {len(texts)} captions for them."
                )
        if len(rows) > 1:
            return [(title, images, captions[title]) for title, images in rows.items()]
        ((title, images),) = rows.items()
        # Rows as even as can be.
        across = self.across or -(-len(images) // -(-len(images) // FIRST))
        return [
            (
                title if start == 0 else "",
                images[start : start + across],
                captions[title][start : start + across],
            )
            for start in range(0, len(images), across)
        ]

    def _tile(self, ax: Axes, image: Values, i: int, j: int, step: Any, cmap: Any) -> Any:
        """Draw one image at its place."""
        low, high = self._ends(image)
        values = image.astype(np.float64)
        x, y = j * step[1], i * step[0]
        place = (x, x + image.shape[1], y + image.shape[0], y)
        style: dict[str, Any] = {"extent": place, "interpolation": "nearest"}
        if image.ndim == 3 and image.shape[2] == 3:
            scaled = np.clip((values - low) / ((high - low) or 1.0), 0, 1)
            return ax.imshow(scaled, **style)
        frame = matplotlib("patches").Rectangle(
            (x, y), image.shape[1], image.shape[0], fill=False, edgecolor="#cccccc", linewidth=0.5
        )
        ax.add_patch(frame)
        return ax.imshow(values.reshape(image.shape[:2]), cmap=cmap, vmin=low, vmax=high, **style)

    def _ends(self, image: Values) -> tuple[float, float]:
        """Return the values of black and white."""
        if isinstance(self.limits, str) and self.limits == "symmetric":
            largest = float(np.nanmax(np.abs(image))) or 1.0
            return -largest, largest
        if self.limits is not None:
            low, high = self.limits
            return float(low), float(high)
        first = np.asarray(next(iter(self.images.values())))
        low, high = float(np.nanmin(first)), float(np.nanmax(first))
        return (low, high) if high > low else (low - 0.5, low + 0.5)

    def _write(self, titles: list[str], marks: list[Any], step: Any, size: Any) -> None:
        """Write titles beside the rows and captions below the images."""
        ax = self.ax_
        side = {"ha": "right", "va": "center", "parse_math": False, "color": INK}
        self.titles_ = [
            ax.text(-0.08 * size[1], i * step[0] + size[0] / 2, short(title), **side)
            for i, title in enumerate(titles)
            if title
        ]
        settle(ax)
        span = ax.get_xlim()[1] - ax.get_xlim()[0]
        room = points_of(ax)[0] * step[1] / span
        longest = max((len(text) for _, _, text in marks), default=1)
        # A letter is about 0.6 of its size wide.
        fontsize = float(np.clip(room / (0.6 * longest), 3.5, 8.0))
        style = {"ha": "center", "va": "top", "parse_math": False, "fontsize": fontsize}
        self.captions_ = [
            ax.text(
                j * step[1] + size[1] / 2, i * step[0] + 1.03 * size[0], text, color=INK, **style
            )
            for i, j, text in marks
        ]


def as_images(rows: Values, image_shape: Sequence[int] | None) -> Values:
    """Return rows of numbers as images; images as they are."""
    if rows.ndim in (3, 4):
        return rows
    if rows.ndim != 2:
        raise ValueError(f"images have shape {rows.shape}; rows of numbers are needed, or images.")
    d = rows.shape[1]
    if image_shape is None:
        side = math.isqrt(d)
        if side * side != d:
            raise ValueError(f"{d} numbers are no square: name image_shape, as (28, 28).")
        image_shape = (side, side)
    if math.prod(image_shape) != d:
        raise ValueError(
            f"image_shape={tuple(image_shape)} has {math.prod(image_shape)} numbers, and a row {d}."
        )
    return rows.reshape(len(rows), *image_shape)


def _shape(model: Any, image_shape: Any) -> Any:
    """Return the shape of images that was given, or the model's own."""
    while image_shape is None and hasattr(model, "steps"):
        model = model.steps[-1][1]
    found = getattr(model, "image_shape", None) if image_shape is None else image_shape
    return None if found is None else tuple(int(side) for side in found)


def _kept(model: Any, rows: Slices, wanted: list[int]) -> Values:
    """Return what a model keeps of some rows, in the space of the rows."""
    before, axes = split(model)
    model = model if before else axes
    back = getattr(model, "reconstruct", None)
    if back is None and hasattr(model, "inverse_transform"):

        def back(x: Any) -> Any:
            return model.inverse_transform(model.transform(x))

    if back is None:
        raise TypeError(
            f"{type(model).__name__} has no way back to rows: neither reconstruct nor "
            f"inverse_transform. Pass a PCA, a KernelPCA with preimage=, or a pipeline of such."
        )
    return np.concatenate([dense(back(rows.read(i, i + 1))) for i in wanted])

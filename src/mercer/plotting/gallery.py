"""Rows as images: components, reconstructions, and the same images in several states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from mercer.arrays import to_numpy
from mercer.estimators import inspection
from mercer.estimators.validation import image_sides
from mercer.plotting import base
from mercer.plotting.base import Axes, Display, Values

DEFAULT = 10
GAP, CAPTION = 0.07, 0.24


@dataclass(eq=False, repr=False)
class GalleryDisplay(Display):
    """Images in rows, each row with its title: eigenfaces, reconstructions, denoising.

    Create it with `from_estimator` (components), `from_reconstructions` or `from_images`.

    Parameters
    ----------
    images : mapping of str to array of shape (m, height, width) or (m, height, width, 3)
        Gray or color images, by the title of their row.
    captions : mapping of str to sequence of str, or None
        A line below each image of a row.
    limits : (float, float), "symmetric" or None
        Values shown as black and white. "symmetric": ± the largest of each image. None: the
        smallest and the largest value of the first row.
    across : int or None
        Images per line; None: at most ten, in lines as even as possible.

    Attributes
    ----------
    images_ : list of list of AxesImage
        By line.
    titles_, captions_ : list of Text

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import PCA
    >>> from mercer.plotting import GalleryDisplay
    >>> X = load_digits().data
    >>> pca = PCA(10).fit(X)
    >>> list(GalleryDisplay.from_reconstructions(pca, X, rows=5).images)
    ['original', '10 components']
    >>> GalleryDisplay.from_estimator(pca, (8, 8)).captions_[0].get_text()
    '1 (14.8 %)'
    """

    images: Mapping[str, Any]
    _: KW_ONLY
    captions: Mapping[str, Sequence[str]] | None = None
    limits: Any = None
    across: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        image_shape: Sequence[int] | None = None,
        *,
        components: Any = None,
        **style: Any,
    ) -> Self:
        """Draw the components of a fitted PCA, or a model or pipeline with one: eigenfaces.

        `image_shape` is (height, width), (height, width, 3), or None: the model's own, or else a
        square. `components` is a number of leading components, by default ten, or their indices.
        The style is that of `from_images`.
        """
        pca = inspection.unwrap(estimator)[1]
        if not hasattr(pca, "components_"):
            raise TypeError(
                f"This {type(pca).__name__} has no components_: it is not fitted, or not linear. "
                f"Fit it, or draw its reconstructions of images with from_reconstructions."
            )
        V, ratio = to_numpy(pca.components_), inspection.explained_ratio(estimator)
        selected = inspection.select_components(components, len(V), DEFAULT)
        captions = base.component_titles(selected, ratio, "")
        options = {"captions": {"": captions}, "limits": "symmetric", **style}
        return cls.from_images(V[selected], image_shape or _model_shape(estimator), **options)

    @classmethod
    def from_reconstructions(
        cls,
        estimator: Any,
        X: Any,
        image_shape: Sequence[int] | None = None,
        *,
        rows: Any = None,
        **style: Any,
    ) -> Self:
        """Draw images, and below them their reconstructions by a fitted model.

        The model has `reconstruct`, or `transform` and `inverse_transform`, or is a pipeline. `X`
        has images as rows, of which `rows` selects a number of leading ones, by default ten, or
        indices.
        `image_shape` and the style are those of `from_estimator`.
        """
        source = inspection.SlicedRows(X)
        at = inspection.select_components(rows, source.shape[0], DEFAULT, "rows")
        reconstruct, shape = _reconstruction(estimator), image_shape or _model_shape(estimator)
        images = [source.read(i, i + 1) for i in at]
        originals = np.concatenate([inspection.host_rows(x) for x in images])
        copies = np.concatenate([inspection.host_rows(reconstruct(x)) for x in images])
        k = getattr(inspection.unwrap(estimator)[1], "n_components_", None)
        title = f"{k} components" if k is not None and k != 1 else "reconstruction"
        return cls.from_images({"original": originals, title: copies}, shape, **style)

    @classmethod
    def from_images(
        cls,
        images: Mapping[str, Any] | Any,
        image_shape: Sequence[int] | None = None,
        *,
        ax: Axes | None = None,
        cmap: Any = "gray",
        **options: Any,
    ) -> Self:
        """Draw images by the titles of their rows: original, noisy, denoised.

        `images` is an array, or a mapping of titles to arrays: images, (m, height, width) or
        (m, height, width, 3), or rows of numbers with the shape `image_shape`, by default a
        square. `captions`, `limits` and `across` are those of the class.
        """
        images = images if isinstance(images, Mapping) else {"": images}
        shaped = {title: _as_images(x, image_shape) for title, x in images.items()}
        return cls(shaped, **options).plot(ax, cmap=cmap)

    def plot(self, ax: Axes | None = None, *, cmap: Any = "gray") -> Self:
        """Draw the images on `ax`, or in a new figure; `cmap` colors the gray ones."""
        lines = self._lines()
        height, width = lines[0][1][0].shape[:2]
        most = max(len(images) for _, images, _ in lines)
        captions = [text for _, _, texts in lines for text in texts]
        down, across = height * (1 + GAP + CAPTION * bool(captions)), width * (1 + GAP)
        inches, titled = min(1.0, 9.0 / most), any(title for title, _, _ in lines)
        figsize = (inches * most + 0.2 + 0.9 * titled, inches * down / across * len(lines) + 0.1)
        ax = self._open(ax, figsize)
        ax.set(xlim=(-0.02 * width, most * across), ylim=(len(lines) * down, -0.02 * height))
        ax.set_aspect("equal")
        ax.set_axis_off()
        style = {"color": base.INK, "parse_math": False}
        size = base.fitting_size(ax, captions, 1 / most)
        below = {"ha": "center", "va": "top", "fontsize": size, **style}
        self.images_, self.titles_, self.captions_ = [], [], []
        for i, (title, images, texts) in enumerate(lines):
            y = i * down
            if title:
                place = (-0.08 * width, y + height / 2, base.one_line(title))
                self.titles_.append(ax.text(*place, ha="right", va="center", **style))
            self.images_.append(
                [self._draw_tile(image, (j * across, y), cmap) for j, image in enumerate(images)]
            )
            for j, text in enumerate(texts):
                place = (j * across + width / 2, y + 1.03 * height, text)
                self.captions_.append(ax.text(*place, **below))
        return self

    def _lines(self) -> list[tuple[str, list[Values], list[str]]]:
        """Return title, images and captions of each line of the gallery."""
        shapes = {title: np.shape(x) for title, x in self.images.items()}
        if not shapes or 0 in [shape[0] for shape in shapes.values()]:
            raise ValueError("images is empty: pass at least one image for every title.")
        shape, *others = {shape[1:] for shape in shapes.values()}
        if others or len(shape) not in (2, 3) or shape[2:] not in ((), (1,), (3,)):
            raise ValueError(
                f"images have shapes {shapes}: pass images of one shape, (height, width), or "
                f"(height, width, 3) for color."
            )
        lines = []
        for title, images in self.images.items():
            m, texts = len(images), list((self.captions or {}).get(title, ()))
            if len(texts) not in (0, m):
                raise ValueError(
                    f"{title!r} has {m} images and {len(texts)} captions: pass one caption per "
                    f"image."
                )
            across = self.across or -(-m // -(-m // DEFAULT))
            for start in range(0, m, across):
                part = slice(start, start + across)
                name = title if start == 0 else ""
                lines.append((name, list(np.asarray(images)[part]), texts[part]))
        return lines

    def _draw_tile(self, image: Values, corner: tuple[float, float], cmap: Any) -> Any:
        """Draw one image at its place."""
        low, high = self._limits(image)
        values, (x, y), (height, width) = image.astype(np.float64), corner, image.shape[:2]
        style = {"extent": (x, x + width, y + height, y), "interpolation": "nearest"}
        if image.shape[2:] == (3,):
            return self.ax_.imshow(np.clip((values - low) / (high - low), 0, 1), **style)
        frame = {"fill": False, "edgecolor": "#cccccc", "linewidth": 0.5}
        self.ax_.add_patch(base.matplotlib("patches").Rectangle(corner, width, height, **frame))
        values = values.reshape(height, width)
        return self.ax_.imshow(values, cmap=cmap, vmin=low, vmax=high, **style)

    def _limits(self, image: Values) -> tuple[float, float]:
        """Return the values of black and white."""
        if isinstance(self.limits, str) and self.limits == "symmetric":
            high = float(np.nanmax(np.abs(image)))
            low = -high
        else:
            first = next(iter(self.images.values()))
            low, high = self.limits or (float(np.nanmin(first)), float(np.nanmax(first)))
        return (low, high) if high > low else (low - 0.5, low + 0.5)


def _as_images(rows: Any, image_shape: Any) -> Values:
    """Return rows of numbers as images; images as they are."""
    values: Values = inspection.host_rows(rows)
    if values.ndim in (3, 4):
        return values
    if values.ndim != 2:
        raise ValueError(f"images have shape {values.shape}: pass rows of numbers, or images.")
    return values.reshape(len(values), *image_sides(image_shape, values.shape[1]))


def _model_shape(model: Any) -> Any:
    """Return the shape of images that the model was fitted with."""
    return getattr(inspection.parts(model)[1], "image_shape", None)


def _reconstruction(model: Any) -> Any:
    """Return the function from rows to their reconstructions."""
    steps, estimator = inspection.unwrap(model)
    model = model if steps else estimator
    if hasattr(model, "reconstruct"):
        return model.reconstruct
    if not hasattr(model, "inverse_transform"):
        raise TypeError(
            f"This {type(model).__name__} cannot reconstruct rows: it has neither reconstruct nor "
            f"inverse_transform. Pass a PCA, a KernelPCA with preimage=, or a pipeline of these."
        )
    return lambda rows: model.inverse_transform(model.transform(rows))

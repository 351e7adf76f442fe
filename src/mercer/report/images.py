"""Rows as images: the mean, the components, and rows beside their reconstructions."""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.extras import extra
from mercer.report.rows import ReportRows, furthest_rows
from mercer.report.subject import Subject

Values = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint8]
MAX_PAIRS, MAX_COMPONENTS = 6, 16
# Pixels a side; larger images are thinned out.
MAX_SIDE = 192


class ImagePair(NamedTuple):
    """A row and its reconstruction, each as a data URL."""

    name: str
    original: str
    reconstruction: str


class ImageGallery(NamedTuple):
    """Images as data URLs; `note` says why there are no reconstructions."""

    groups: list[tuple[str, list[ImagePair]]]
    mean: str | None
    components: list[str]
    note: str


def image_gallery(
    subject: Subject, shown: ReportRows | None, shape: tuple[int, ...]
) -> ImageGallery:
    """Return the mean, the components, and rows that are reconstructed badly, fairly and well."""
    mean, components, model = None, [], subject.model
    if subject.linear:
        row = _undo_steps(subject, to_numpy(model.mean_).astype(np.float64)[None])[0]
        mean = _png(gray_levels(row, float(row.min()), float(row.max())), shape)
        for component in to_numpy(model.components_[:MAX_COMPONENTS, :]):
            largest = float(np.max(np.abs(component), initial=0.0))
            components.append(_png(gray_levels(component, -largest, largest), shape))
    if shown is None or shown.errors is None:
        return ImageGallery([], mean, components, "")
    if not hasattr(model, "inverse_transform"):
        note = 'To show reconstructions, fit the model with preimage="auto".'
        return ImageGallery([], mean, components, note)
    order = np.argsort(shown.errors, kind="stable")
    middle = max(0, len(order) // 2 - MAX_PAIRS // 2)
    places = {
        "Furthest from the components": furthest_rows(shown.errors, MAX_PAIRS),
        "At the median distance": order[middle : middle + MAX_PAIRS],
        "Nearest to the components": order[:MAX_PAIRS],
    }
    groups = []
    for title, at in places.items():
        originals = to_numpy(shown.rows.raw.take(at)).astype(np.float64)
        treated = to_numpy(shown.rows.treated.take(at)).astype(np.float64)
        copies = _undo_steps(subject, to_numpy(model.reconstruct(treated)).astype(np.float64))
        pairs = []
        for i, original, copy in zip(at.tolist(), originals, copies, strict=True):
            low, high = float(np.nanmin(original)), float(np.nanmax(original))
            images = (_png(gray_levels(x, low, high), shape) for x in (original, copy))
            pairs.append(ImagePair(str(shown.name(i)), *images))
        groups.append((title, pairs))
    return ImageGallery(groups, mean, components, "")


def _undo_steps(subject: Subject, rows: Values) -> Values:
    """Undo the scaling of preprocessing steps; imputed values stay."""
    for step in reversed(subject.steps):
        if hasattr(step, "scale_") and hasattr(step, "inverse_transform"):
            rows = np.asarray(step.inverse_transform(rows))
    return rows


def gray_levels(rows: npt.NDArray[Any], low: float, high: float) -> Pixels:
    """Return rows as bytes from black at `low` to white at `high`."""
    with np.errstate(all="ignore"):
        levels = (np.asarray(rows, np.float64) - low) / (high - low if high > low else 1.0)
    return (np.clip(np.nan_to_num(levels), 0.0, 1.0) * 255).round().astype(np.uint8)


def _png(pixels: Pixels, shape: tuple[int, ...]) -> str:
    """Return an image as a data URL."""
    image = extra("PIL.Image", "report", "Images of a report are written with")
    step = max(1, -(-max(shape[:2]) // MAX_SIDE))
    picture = np.ascontiguousarray(pixels.reshape(shape)[::step, ::step])
    buffer = io.BytesIO()
    image.fromarray(picture).save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

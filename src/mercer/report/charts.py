"""Charts and images: their data, and images as PNG."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.estimators.coloring import MAX_LEVELS, Coloring
from mercer.estimators.inspection import undo
from mercer.extras import extra
from mercer.report.html import clean_text, format_percent, pack, pack_floats, short_text
from mercer.report.subject import ReportRows, Subject, furthest_rows

Values = npt.NDArray[np.float64]
# Columns of the data that points can be colored by; more points than MAX_SVG need WebGL.
MAX_COLUMNS, MAX_SVG = 16, 2000
MAX_PAIRS, MAX_COMPONENTS = 6, 16
# Pixels a side; larger images are thinned out.
MAX_SIDE = 192


def chart_data(
    subject: Subject, shown: ReportRows | None, image_shape: tuple[int, ...] | None
) -> dict[str, Any]:
    """Return the data of every chart."""
    cuts = [cut for cut in subject.cuts if cut.components is not None]
    data: dict[str, Any] = {
        "spectrum": {
            "shares": subject.shares.tolist(),
            "cuts": [{"letter": cut.letter, "components": cut.components} for cut in cuts],
        },
        "points": None,
        "errors": None,
    }
    if shown is not None and shown.errors is not None:
        data["errors"] = error_histogram(shown.errors, subject.threshold)
    if shown is not None and subject.model.n_components_:
        data["points"] = _points(subject, shown, image_shape)
    return data


def _points(subject: Subject, shown: ReportRows, image_shape: Any) -> dict[str, Any]:
    at, values, ids = shown.sample.at, shown.values, shown.ids
    colors = [_color(coloring, at) for coloring in shown.colorings]
    data: dict[str, Any] = {
        "rows": pack(at.astype(np.int32)),
        "webgl": len(at) > MAX_SVG,
        "ids": None if ids is None else [short_text(name, 80) for name in ids[at]],
        "components": [
            {"name": f"Component {j + 1} ({format_percent(share)})", "values": pack_floats(scores)}
            for j, (share, scores) in enumerate(zip(subject.shares, shown.scores.T, strict=False))
        ],
        "errors": None if shown.errors is None else pack_floats(shown.errors[at]),
        "labeled": shown.label is not None,
        "passed": len(colors),
        "colors": [*colors, *_columns(subject, shown, {color["name"] for color in colors})],
        "texts": None,
        "pixels": None,
    }
    if subject.strings:
        data["texts"] = [clean_text(text, 300) for text in shown.rows.raw.take(at)]
    if image_shape is not None and values is not None:
        pixels = gray_levels(values, float(np.nanmin(values)), float(np.nanmax(values)))
        data["pixels"] = {"shape": image_shape, **pack(pixels.ravel())}
    return data


def _columns(subject: Subject, shown: ReportRows, taken: set[str]) -> list[dict[str, Any]]:
    """Return the columns of the data, where they are few, without those passed by name."""
    values = shown.values
    if values is None or not subject.has_columns or values.shape[1] > MAX_COLUMNS:
        return []
    names = getattr(subject.first, "feature_names_in_", None)
    names = [f"x{j}" for j in range(values.shape[1])] if names is None else names
    columns = zip(map(short_text, names), values.T, strict=True)
    return [
        {"name": name, "kind": "number", "dates": False, "values": pack_floats(column)}
        for name, column in columns
        if name not in taken
    ]


def _color(coloring: Coloring, at: npt.NDArray[np.int64]) -> dict[str, Any]:
    if coloring.numbers is not None:
        # A date in milliseconds does not fit single precision.
        values = (pack if coloring.dates else pack_floats)(coloring.numbers[at])
        kind = {"kind": "number", "dates": coloring.dates, "values": values}
        return {"name": coloring.name, **kind}
    classes = len(coloring.classes)
    own = classes if classes <= MAX_LEVELS else MAX_LEVELS - 1
    used, codes = np.unique(coloring.codes[at], return_inverse=True)
    missing = int(bool(len(used)) and used[0] < 0)
    return {
        "name": coloring.name,
        "kind": "class",
        "codes": pack((codes - missing).astype(np.int32)),
        "names": [short_text(coloring.classes[code], 80) for code in used[missing:].tolist()],
        "groups": coloring.groups(MAX_LEVELS)[used[missing:]].tolist(),
        "own": own,
        "others": classes - own,
    }


def error_histogram(errors: Values, threshold: float | None) -> dict[str, Any]:
    """Count squared distances in bins; logarithmic ones where a few are far from the rest."""
    positive = errors[errors > 0]
    largest = float(errors.max(initial=0.0))
    log = len(positive) > 1 and largest > 50 * float(np.median(positive))
    values = np.log10(positive) if log else errors
    if log:  # rounding errors would stretch the axis to the left
        values = values[values > np.log10(largest) - 8]
    bins = int(np.clip(np.sqrt(len(values)) * 1.5, 8, 60))
    low, high = float(values.min()), float(values.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):  # all are equal
        margin = 0.1 if log else 0.05 * abs(low) or 1e-300
        low, high, bins = low - margin, high + margin, 1
    counts, edges = np.histogram(values, bins=bins, range=(low, high))
    return {
        "counts": counts.tolist(),
        "edges": [float(f"{edge:.6g}") for edge in (10**edges if log else edges)],
        "log": bool(log),
        "left": int(len(errors) - len(values)),
        "threshold": threshold,
    }


def image_gallery(
    subject: Subject, shown: ReportRows | None, shape: tuple[int, ...]
) -> dict[str, Any]:
    """Return the mean, the components, and rows that are reconstructed badly, fairly and well.

    Images are data URLs; "note" says why there are no reconstructions.
    """
    model = subject.model
    gallery: dict[str, Any] = {"groups": [], "mean": None, "components": [], "note": ""}
    if subject.linear:
        row = undo(subject.steps, to_numpy(model.mean_).astype(np.float64)[None])[0]
        gallery["mean"] = _png(gray_levels(row, float(row.min()), float(row.max())), shape)
        for component in to_numpy(model.components_[:MAX_COMPONENTS, :]):
            largest = float(np.max(np.abs(component), initial=0.0))
            gallery["components"].append(_png(gray_levels(component, -largest, largest), shape))
    if shown is None or shown.errors is None:
        return gallery
    if not hasattr(model, "inverse_transform"):
        gallery["note"] = 'To show reconstructions, fit the model with preimage="auto".'
        return gallery
    order = furthest_rows(shown.errors, len(shown.errors))
    middle = max(0, len(order) // 2 - MAX_PAIRS // 2)
    places = {
        "Furthest from the components": order[:MAX_PAIRS],
        "At the median distance": order[middle : middle + MAX_PAIRS],
        "Nearest to the components": order[::-1][:MAX_PAIRS],
    }
    for title, at in places.items():
        originals = to_numpy(shown.rows.raw.take(at)).astype(np.float64)
        preprocessed = to_numpy(shown.rows.preprocessed.take(at)).astype(np.float64)
        copies = undo(subject.steps, to_numpy(model.reconstruct(preprocessed)).astype(np.float64))
        pairs = []
        for i, original, copy in zip(at.tolist(), originals, copies, strict=True):
            low, high = float(np.nanmin(original)), float(np.nanmax(original))
            images = [_png(gray_levels(x, low, high), shape) for x in (original, copy)]
            pairs.append((str(shown.name(i)), *images))
        gallery["groups"].append((title, pairs))
    return gallery


def gray_levels(rows: npt.NDArray[Any], low: float, high: float) -> npt.NDArray[np.uint8]:
    """Return rows as bytes from black at `low` to white at `high`."""
    with np.errstate(all="ignore"):
        levels = (np.asarray(rows, np.float64) - low) / (high - low if high > low else 1.0)
    return (np.clip(np.nan_to_num(levels), 0.0, 1.0) * 255).round().astype(np.uint8)


def _png(pixels: npt.NDArray[np.uint8], shape: tuple[int, ...]) -> str:
    image = extra("PIL.Image", "report", "Images in a report require")
    step = max(1, -(-max(shape[:2]) // MAX_SIDE))
    picture = np.ascontiguousarray(pixels.reshape(shape)[::step, ::step])
    buffer = io.BytesIO()
    image.fromarray(picture).save(buffer, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

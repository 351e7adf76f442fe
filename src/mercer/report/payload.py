"""What the page's charts are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.report import html
from mercer.report.colours import MANY, Colour
from mercer.report.pictures import levels
from mercer.report.spectrum import Cut, shares
from mercer.report.subject import Subject
from mercer.report.survey import Found
from mercer.report.tables import histogram
from mercer.report.text import clean, percent, short

# Scores that the page holds, and columns of the data that points can be coloured by.
SCORES, COLOURED = 1_000_000, 16
# More points than this are drawn with WebGL.
MANY_POINTS = 2000


def axes_drawn(subject: Subject, n: int, most: int) -> int:
    """Return how many axes can be chosen to draw."""
    return min(int(subject.model.n_components_), max(2, SCORES // max(1, min(n, most))))


def charts(
    subject: Subject,
    found: Found | None,
    colours: list[Colour],
    labelled: bool,
    cuts: list[Cut],
    ids: Callable[[int], str] | None,
    image: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Return the data of every chart."""
    data: dict[str, Any] = {
        "spectrum": {
            "share": shares(subject).tolist(),  # digits that are cut off could make it 100 %
            "cuts": [{"letter": c.letter, "axes": c.axes} for c in cuts if c.axes is not None],
        },
        "points": None,
        "errors": None,
    }
    if found is None:
        return data
    if found.errors is not None and len(found.errors):
        data["errors"] = histogram(found.errors, subject.threshold)
    if subject.model.n_components_:
        data["points"] = _points(subject, found, colours, labelled, ids, image)
    return data


def _points(
    subject: Subject, found: Found, colours: Any, labelled: bool, ids: Any, image: Any
) -> dict[str, Any]:
    at = found.sample.at
    share = shares(subject)
    names = [f"Component {j + 1} ({percent(share[j])})" for j in range(found.scores.shape[1])]
    data: dict[str, Any] = {
        "rows": html.packed(at.astype(np.int32)),
        "many": len(at) > MANY_POINTS,
        "ids": None if ids is None else [short(ids(i), 80) for i in at.tolist()],
        "axes": [
            {"name": name, "values": html.floats(values)}
            for name, values in zip(names, found.scores.T, strict=True)
        ],
        "errors": None if found.errors is None else html.floats(found.errors[at]),
        "label": labelled,
        "given": len(colours),
        "colours": [
            *(_colour(colour, at) for colour in colours),
            *_columns(subject, found, {colour.name for colour in colours}),
        ],
        "texts": _texts(found) if subject.strings else None,
        "pixels": None,
    }
    if image is not None and found.kept is not None:
        low, high = float(np.nanmin(found.kept)), float(np.nanmax(found.kept))
        data["pixels"] = {"shape": image, **html.packed(levels(found.kept, low, high).ravel())}
    return data


def _texts(found: Found) -> list[str]:
    texts: list[str] = found.rows.raw.take(found.sample.at)
    return [clean(text, 300) for text in texts]


def _columns(subject: Subject, found: Found, taken: set[str]) -> list[dict[str, Any]]:
    """Return the columns of the data, where they are few, without those given by name already."""
    names = subject.names if not subject.steps else _given_names(subject)
    if found.kept is None or not names or found.kept.shape[1] > COLOURED:
        return []
    pairs = zip(names, found.kept.T, strict=True)
    return [
        {"name": short(name), "kind": "number", "values": html.floats(values)}
        for name, values in pairs
        if short(name) not in taken
    ]


def _given_names(subject: Subject) -> list[str]:
    names = getattr(subject.first, "feature_names_in_", None)
    d = int(subject.first.n_features_in_)
    return [f"column {j}" for j in range(d)] if names is None else [str(n) for n in names]


def _colour(colour: Colour, at: Any) -> dict[str, Any]:
    if colour.numbers is not None:
        # A date in milliseconds does not fit single precision.
        pack = html.packed if colour.dates else html.floats
        values = pack(colour.numbers[at])
        return {"name": colour.name, "kind": "number", "dates": colour.dates, "values": values}
    assert colour.codes is not None
    own = len(colour.names) if len(colour.names) <= MANY else MANY - 1
    used, codes = np.unique(colour.codes[at], return_inverse=True)
    missing = int(bool(len(used)) and used[0] < 0)
    return {
        "name": colour.name,
        "kind": "class",
        "codes": html.packed((codes - missing).astype(np.int32)),
        "names": [short(colour.names[code], 80) for code in used[missing:].tolist()],
        "places": used[missing:].tolist(),
        "own": own,
        "others": len(colour.names) - own,
    }

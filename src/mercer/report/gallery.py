"""Pictures of rows beside what the axes keep of them; the mean and the axes as pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mercer.arrays import to_numpy
from mercer.report.pictures import diverging, levels, png
from mercer.report.sample import furthest
from mercer.report.subject import Subject
from mercer.report.survey import Found

Values = npt.NDArray[np.float64]
PAIRS, AXES = 6, 16


@dataclass(frozen=True)
class Pair:
    """A row, and what the axes keep of it."""

    name: str
    original: str
    kept: str


@dataclass(frozen=True)
class Gallery:
    """Pictures; each a data address."""

    groups: list[tuple[str, list[Pair]]]
    mean: str | None
    axes: list[str]
    note: str


def gallery(
    subject: Subject, found: Found | None, shape: tuple[int, ...], name: Callable[[int], Any]
) -> Gallery:
    """Return the mean, the axes, and rows that the axes keep well, fairly and badly."""
    mean, axes = (_linear(subject, shape)) if subject.linear else (None, [])
    if found is None or found.errors is None:
        return Gallery([], mean, axes, "")
    errors, chosen = found.errors, np.argsort(found.errors, kind="stable")
    middle = len(chosen) // 2 - PAIRS // 2
    places = {
        "Furthest from the components": furthest(errors, PAIRS),
        "In the middle": chosen[max(0, middle) : max(0, middle) + PAIRS],
        "Nearest": chosen[:PAIRS],
    }
    groups = []
    for title, at in places.items():
        rows = to_numpy(found.rows.raw.take(at)).astype(np.float64)
        back = _back(subject, found, at)
        if back is None:
            note = (
                'There is no way back to images: set preimage="distances", or '
                "fit_inverse_transform=True, and fit again."
            )
            return Gallery([], mean, axes, note)
        groups.append((title, _pairs(rows, back, [str(name(i)) for i in at.tolist()], shape)))
    return Gallery(groups, mean, axes, "")


def _pairs(rows: Values, back: Values, names: list[str], shape: Any) -> list[Pair]:
    pairs = []
    for row, kept, name in zip(rows, back, names, strict=True):
        low, high = float(np.nanmin(row)), float(np.nanmax(row))
        pictures = [png(levels(x, low, high), shape) for x in (row, kept)]
        pairs.append(Pair(name, *pictures))
    return pairs


def _back(subject: Subject, found: Found, at: Any) -> Values | None:
    """Return what the axes keep of rows, as the rows were given; None where nothing can."""
    model = subject.model
    if not subject.linear and not hasattr(model, "preimage_") and not hasattr(model, "dual_coef_"):
        return None
    treated = to_numpy(found.rows.treated.take(at)).astype(np.float64)
    return _undone(subject, to_numpy(model.reconstruct(treated)).astype(np.float64))


def _undone(subject: Subject, rows: Values) -> Values:
    """Take rows back through what was done to them; what was filled in stays."""
    for step in reversed(subject.steps):
        if hasattr(step, "scale_") and hasattr(step, "inverse_transform"):
            rows = np.asarray(step.inverse_transform(rows))
    return rows


def _linear(subject: Subject, shape: tuple[int, ...]) -> tuple[str, list[str]]:
    """Return the mean and the first axes as pictures."""
    mean = _undone(subject, to_numpy(subject.model.mean_).astype(np.float64)[None])[0]
    parts = to_numpy(subject.model.components_[:AXES, :])
    picture = png(levels(mean, float(mean.min()), float(mean.max())), shape)
    return picture, [png(diverging(part), shape) for part in parts]
